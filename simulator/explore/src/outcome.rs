//! What a run computes, and in what two runs differ.

use crate::machine::End;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use wavesim_array::{Array, Num};
use wavesim_engine::sched::dispatch::RunStats;
use wavesim_loader::compare::{Mismatch, Tolerance, compare};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::{Fault, FaultKind};

/// What a run computes.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ends.
    pub end: End,
    /// The outputs, if it ends without a fault. The arguments in memory, if none is an output.
    pub outputs: Vec<(String, Array)>,
}

impl Outcome {
    /// Reads the outcome of a run that has just ended.
    pub fn read(prepared: &Prepared, end: End) -> Outcome {
        let any = prepared.buffers.iter().any(|buffer| buffer.output);
        let read = |end: &End| match end {
            End::Finished => prepared
                .buffers
                .iter()
                .filter(|buffer| buffer.output || !any)
                .filter_map(|buffer| Some((buffer.name.clone(), buffer.read(&prepared.memory).ok()?)))
                .collect(),
            End::Fault(_) | End::Deadlock(_) | End::Livelock(_) => Vec::new(),
        };
        Outcome { outputs: read(&end), end }
    }

    /// As [`Outcome::read`], for a run by the engine.
    pub fn of_run(prepared: &Prepared, result: Result<RunStats, Box<Fault>>) -> Outcome {
        let end = match result {
            Ok(_) => End::Finished,
            Err(fault) if fault.kind == FaultKind::BarrierDeadlock => End::Deadlock(fault),
            Err(fault) if fault.kind == FaultKind::InstructionLimit => End::Livelock(fault.message.clone()),
            Err(fault) => End::Fault(fault),
        };
        Outcome::read(prepared, end)
    }

    /// A number that identifies the outcome.
    pub fn hash(&self) -> u64 {
        let mut hasher = foldhash::quality::FixedState::with_seed(1).build_hasher();
        end_key(&self.end).hash(&mut hasher);
        for (name, array) in &self.outputs {
            (name, &array.bytes).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns in what another outcome differs from this one.
    pub fn difference(&self, other: &Outcome, tolerance: Tolerance) -> Option<Difference> {
        if end_key(&self.end) != end_key(&other.end) {
            return Some(Difference::Ends(describe(&self.end), describe(&other.end)));
        }
        if self.outputs == other.outputs {
            return None;
        }
        let pairs = self.outputs.iter().zip(&other.outputs);
        let different: Vec<Mismatch> =
            pairs.filter_map(|((name, own), (_, other))| compare(name, other, own, tolerance)).collect();
        (!different.is_empty()).then_some(Difference::Outputs(different))
    }

    /// Returns the outcome in one line: the values of short outputs, or the end.
    pub fn line(&self) -> String {
        const SHOWN: usize = 16;
        if self.end != End::Finished {
            return describe(&self.end);
        }
        let one = |(name, array): &(String, Array)| {
            let values: Vec<String> = array.values().take(SHOWN).map(|value| value.to_string()).collect();
            let more = if array.len() > SHOWN { ", …" } else { "" };
            match array.len() {
                1 => format!("{name}={}", values.join("")),
                _ => format!("{name}=[{}{more}]", values.join(", ")),
            }
        };
        self.outputs.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// What makes two ends the same: which wave comes first to a fault or a deadlock is no difference.
fn end_key(end: &End) -> (u8, &'static str, u64) {
    match end {
        End::Finished => (0, "", 0),
        End::Fault(fault) => (1, fault.kind.name(), fault.pc),
        End::Deadlock(_) => (2, "", 0),
        End::Livelock(_) => (3, "", 0),
    }
}

/// Describes an end in one line.
pub fn describe(end: &End) -> String {
    match end {
        End::Finished => "the kernel ends".to_string(),
        End::Fault(fault) => {
            let place = match (&fault.file, fault.line) {
                (_, 0) => format!("pc 0x{:x}", fault.pc),
                (None, line) => format!("line {line}"),
                (Some(file), line) => format!("{file}:{line}"),
            };
            format!("{}: {} ({place}: {})", fault.kind.name(), fault.message, fault.instruction)
        }
        End::Deadlock(fault) => format!("deadlock: {}", fault.message),
        End::Livelock(message) => format!("livelock: {message}"),
    }
}

/// In what two outcomes differ.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// They end differently: the first one, and the other.
    Ends(String, String),
    /// Outputs have other values.
    Outputs(Vec<Mismatch>),
}

impl Difference {
    /// The first element that differs: its output, its index, the value of the first run, and the other one.
    pub fn first(&self) -> Option<(&str, usize, Num, Num)> {
        match self {
            Difference::Ends(..) => None,
            Difference::Outputs(list) => {
                let first = list.first()?;
                first.first.first().map(|(index, a, b)| (&*first.output, *index, *a, *b))
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Ends(first, other) => {
                write!(f, "the first run: {first}\nthis schedule: {other}")
            }
            Difference::Outputs(list) => {
                for (at, mismatch) in list.iter().enumerate() {
                    let separator = if at == 0 { "" } else { "\n" };
                    write!(
                        f,
                        "{separator}{}: {} of {} elements differ",
                        mismatch.output, mismatch.differing, mismatch.total
                    )?;
                    for (index, first, other) in mismatch.first.iter().take(4) {
                        write!(f, "\n  [{index}]: {first} in the first run, {other} in this schedule")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The largest differences between values of float outputs, over all runs so far.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    /// By output and element: least and greatest value.
    ranges: Vec<(String, Vec<(f64, f64)>)>,
}

impl Spread {
    /// Adds the values of a run.
    pub fn add(&mut self, outcome: &Outcome) {
        for (name, array) in outcome.outputs.iter().filter(|(_, array)| array.dtype.is_float()) {
            let values = array.values().map(Num::as_f64);
            match self.ranges.iter_mut().find(|(known, _)| known == name) {
                None => self.ranges.push((name.clone(), values.map(|v| (v, v)).collect())),
                Some((_, ranges)) => {
                    for (range, v) in ranges.iter_mut().zip(values) {
                        *range = (range.0.min(v), range.1.max(v));
                    }
                }
            }
        }
    }

    /// Adds the values of other runs.
    pub fn join(&mut self, other: &Spread) {
        for (name, ranges) in &other.ranges {
            match self.ranges.iter_mut().find(|(known, _)| known == name) {
                None => self.ranges.push((name.clone(), ranges.clone())),
                Some((_, own)) => {
                    for (range, v) in own.iter_mut().zip(ranges) {
                        *range = (range.0.min(v.0), range.1.max(v.1));
                    }
                }
            }
        }
    }

    /// Returns the outputs with several values of an element: name, number of such elements, the element with the
    /// largest relative difference, its least and its greatest value.
    pub fn differing(&self) -> Vec<(&str, usize, usize, f64, f64)> {
        let relative =
            |(low, high): &(f64, f64)| (high - low) / low.abs().max(high.abs()).max(f64::MIN_POSITIVE);
        let of = |(name, ranges): &'_ (String, Vec<(f64, f64)>)| {
            let count = ranges.iter().filter(|(low, high)| low < high).count();
            let worst =
                (0..ranges.len()).max_by(|a, b| relative(&ranges[*a]).total_cmp(&relative(&ranges[*b])))?;
            (count > 0).then(|| (name.clone(), count, worst, ranges[worst].0, ranges[worst].1))
        };
        let names =
            |name: String| self.ranges.iter().find(|(known, _)| *known == name).map(|(known, _)| &**known);
        self.ranges
            .iter()
            .filter_map(of)
            .filter_map(|(n, c, w, l, h)| Some((names(n)?, c, w, l, h)))
            .collect()
    }
}
