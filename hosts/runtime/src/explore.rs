//! `WAVESIM_EXPLORE`: runs a kernel in random orders of its waves, with random delays of its memory operations, before its
//! launch, and reports results that depend on them.

use crate::launch::RunOptions;
use crate::report;
use crate::{Error, exit, message};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wavesim::array::DType;
use wavesim::delayed::{DelayedMemory, Delays};
use wavesim::explore::cause::{self, Place};
use wavesim::explore::choice::{Follow, Schedule, run as run_schedule};
use wavesim::explore::delay::{self, Delay};
use wavesim::explore::machine::{End, Machine};
use wavesim::explore::minimise::minimise;
use wavesim::explore::outcome::Outcome;
use wavesim::explore::pct::{self, Pct};
use wavesim::explore::stale;
use wavesim::fault::FaultKind;
use wavesim::loader::compare::Tolerance;
use wavesim::loader::prepared::{Buffer, Prepared};
use wavesim::sched::poison::Poison;

/// What is reported.
const DEPENDS: &str = "the result depends on the order of waves, or on delays of memory operations";
/// Memory that is copied, at most.
const MOST_BYTES: u64 = 1 << 30;
/// Runs of the minimisation, at most.
const BUDGET: u64 = 200;
/// Late operations that are described, at most.
const SHOWN: usize = 3;
/// Steps after which waves take turns, at least.
const LIMIT: u64 = 10_000;
/// The absolute difference of floats that counts as equal, as a multiple of the relative one.
const ATOL: f64 = 1e-4;

/// How a launch is explored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExploreOptions {
    /// Number of random schedules.
    pub schedules: u64,
    /// Orderings that a bug needs, for which schedules are made; from 1 to 64.
    pub depth: u32,
    /// The first seed of schedules.
    pub first_seed: u64,
    /// Relative difference of floats that counts as equal.
    pub tolerance: f64,
    /// Whether memory operations are delayed, and caches hold stale lines, in every second schedule.
    pub delays: bool,
    /// Whether the exploration goes on after the first schedule whose results differ.
    pub all: bool,
}

impl Default for ExploreOptions {
    fn default() -> ExploreOptions {
        ExploreOptions { schedules: 1000, depth: 3, first_seed: 0, tolerance: 1e-5, delays: true, all: false }
    }
}

/// What an exploration has found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explored {
    /// Number of schedules that have run.
    pub schedules: u64,
    /// Steps of the first run.
    pub steps: u64,
    /// Waves of the launch.
    pub waves: u32,
    /// Each outcome, in one line, with the number of schedules that had it; that of the first run comes first.
    pub outcomes: Vec<(String, u64)>,
    /// The first schedule whose results differ: its number, from 1.
    pub found: Option<u64>,
    /// What differs in it, and why; empty if nothing does.
    pub difference: String,
    /// The second and the first of the accesses whose order makes the difference, if there are any.
    pub places: Vec<Place>,
    /// The exploration was cancelled.
    pub cancelled: bool,
}

impl Explored {
    /// Returns the least probability that a bug of a depth would have been found.
    pub fn bound(&self, options: &ExploreOptions) -> f64 {
        // The bound is one for runs without delays.
        let runs = if options.delays { self.schedules.div_ceil(2) } else { self.schedules };
        pct::bound_of_runs(self.waves, self.steps, options.depth, runs)
    }

    fn count(&mut self, line: String) {
        match self.outcomes.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => self.outcomes.push((line, 1)),
        }
    }
}

/// Runs the kernel of a prepared launch in `runs` schedules, and reports a result that depends on the order. Memory, of
/// which `writable` belongs to the host, is then as before. The report is also appended to `file`, as findings of checks are.
///
/// # Errors
/// The launch cannot run.
pub(crate) fn run(
    prepared: &Prepared,
    options: &RunOptions<'_>,
    runs: u64,
    writable: &[Range<u64>],
    file: Option<&Path>,
) -> Result<(), Error> {
    let kernel = format!("{} (launch {})", options.kernel, options.number);
    let bytes: u64 = writable.iter().map(|range| range.end - range.start).sum();
    if bytes > MOST_BYTES {
        message::report(&format!("{kernel}: not explored, as it can access {} MiB of memory", bytes >> 20));
        return Ok(());
    }
    let how = ExploreOptions { schedules: runs, ..ExploreOptions::default() };
    let explored = explore(prepared, &how, options.max_instructions, options.cancel, writable)?;
    if let Some(number) = explored.found {
        let text = format!("{DEPENDS}, as in schedule {number} of {runs}:\n{}", explored.difference);
        message::report(&format!("{kernel}: {text}"));
        exit::record_failure();
        if let Some(file) = file {
            let record = cause::as_finding(DEPENDS, &explored.places);
            report::append(file, options.kernel, options.number, [(record, text)]);
        }
    }
    Ok(())
}

/// Returns memory that the host has mapped as arguments of a kernel whose own are unknown, so that results can be compared.
pub(crate) fn mapped(writable: &[Range<u64>]) -> Vec<Buffer> {
    let buffer = |range: &Range<u64>| {
        let elements = (range.end - range.start) / 4;
        Buffer {
            name: format!("memory at 0x{:x}", range.start),
            address: range.start,
            len_bytes: 4 * elements,
            dtype: DType::U32,
            shape: vec![elements],
            output: false,
            surface: None,
        }
    };
    writable.iter().map(buffer).collect()
}

/// Runs the kernel of a prepared launch in random schedules. Memory, of which `writable` belongs to the host, is then as
/// before.
///
/// # Errors
/// The launch cannot run, or can access too much memory of the host.
pub fn explore(
    prepared: &Prepared,
    options: &ExploreOptions,
    max_instructions: u64,
    cancel: Option<&AtomicBool>,
    writable: &[Range<u64>],
) -> Result<Explored, Error> {
    if !(1..=64).contains(&options.depth) {
        return Err(Error::ExploreOption("the depth is from 1 to 64", options.depth.into()));
    }
    if !(0.0..=1.0).contains(&options.tolerance) {
        return Err(Error::ExploreOption("the tolerance is from 0 to 1", options.tolerance));
    }
    let bytes: u64 = writable.iter().map(|range| range.end - range.start).sum();
    if bytes > MOST_BYTES {
        return Err(Error::ExploreMemory { bytes, most: MOST_BYTES });
    }
    // Machines without counters of outstanding operations have no delayed memory.
    let wave_size = prepared.shape.wave_size;
    let model = || DelayedMemory::new(&prepared.program, wave_size, Delays::Demanded).ok();
    let model = options.delays.then(model).flatten();
    let mut dispatch = prepared.dispatch(max_instructions);
    dispatch.cancel = cancel;
    dispatch.delayed = model.as_ref();
    dispatch.poison = model.as_ref().map(|_| Poison(1));
    let mut machine = Machine::with_host_memory(prepared, &dispatch, writable)?;
    machine.limit_memory(MOST_BYTES);
    let explored = find(&mut machine, options);
    machine.restart();
    Ok(explored)
}

/// Looks for schedules in which a launch computes something else, and describes the first.
fn find(machine: &mut Machine<'_>, options: &ExploreOptions) -> Explored {
    let prepared = machine.prepared;
    let tolerance = Tolerance { rtol: options.tolerance, atol: options.tolerance * ATOL };
    let first = run_schedule(machine, &mut Follow::new(&[]), u64::MAX / 2);
    let mut out = Explored { steps: first.steps, waves: machine.threads(), ..Explored::default() };
    let limit = first.steps.saturating_mul(20).max(LIMIT);
    let Some(end) = first.end else { return out };
    let is_cancelled = |end: &End| matches!(end, End::Fault(fault) if fault.kind == FaultKind::Interrupted);
    if is_cancelled(&end) {
        out.cancelled = true;
        return out;
    }
    let expected = Outcome::read(prepared, end);
    out.outcomes.push((expected.line(), 0));
    for number in 0..options.schedules {
        let seed = options.first_seed.wrapping_add(number);
        let mut pct = Pct::new(seed, machine.threads(), first.steps, options.depth);
        if machine.has_delays() {
            pct = pct.with_delays();
        }
        let Some(end) = run_schedule(machine, &mut pct, limit).end else { continue };
        if is_cancelled(&end) {
            out.cancelled = true;
            break;
        }
        let outcome = Outcome::read(prepared, end);
        out.schedules += 1;
        let Some(difference) = expected.difference(&outcome, tolerance) else {
            // Differences within the tolerance are none.
            out.outcomes[0].1 += 1;
            continue;
        };
        out.count(outcome.line());
        if out.found.is_none() {
            out.found = Some(number + 1);
            let schedule = Schedule::of(machine, pct.threads);
            let (cause, places) = explain(machine, &schedule, &expected, limit, tolerance);
            (out.difference, out.places) = (format!("{difference}{cause}"), places);
        }
        if !options.all {
            break;
        }
    }
    out
}

/// Describes the accesses whose order makes the difference, the operations that are late, and stale loads. Returns also the
/// places of the second and the first access.
fn explain(
    machine: &mut Machine<'_>,
    schedule: &Schedule,
    expected: &Outcome,
    limit: u64,
    tolerance: Tolerance,
) -> (String, Vec<Place>) {
    let wrong = |outcome: &Outcome| expected.difference(outcome, tolerance).is_some();
    let Some(found) = minimise(machine, schedule, limit, BUDGET, &wrong, &|| false) else {
        return (String::new(), Vec::new());
    };
    let mut out = String::new();
    for Delay { operation, why } in delay::describe(machine, &found).iter().take(SHOWN) {
        out += &format!("\nlate: {operation}");
        why.iter().take(1).for_each(|line| out += &format!("\n  {line}"));
    }
    for Delay { operation, why } in stale::describe(machine, &found).iter().take(SHOWN) {
        out += &format!("\nstale: {operation}");
        why.iter().for_each(|line| out += &format!("\n  {line}"));
    }
    let pairs = cause::of_difference(machine, &found, limit, &wrong);
    out.extend(pairs.iter().take(1).map(|pair| format!("\n{}", cause::describe(machine, pair))));
    let events = pairs.iter().take(1).flat_map(|pair| [&pair.second, &pair.first]);
    (out, events.filter_map(|event| Place::of(machine, event)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavesim::loader::text_kernel::{self, Options};

    /// Both waves store to the same word.
    const RACE: &str = include_str!("../../../examples/explore/last_store.rdna");

    #[test]
    fn a_result_that_depends_on_the_order_is_found() {
        let explore = |source: &str| {
            let prepared = text_kernel::prepare("k.rdna", source, &Options::default(), 0).unwrap();
            let before = prepared.memory.snapshot();
            let options = ExploreOptions { schedules: 20, delays: false, all: true, ..Default::default() };
            let found = super::explore(&prepared, &options, 1 << 20, None, &[]).unwrap();
            assert_eq!(prepared.memory.snapshot(), before, "memory is restored");
            assert_eq!((found.schedules, found.waves), (20, 2));
            assert_eq!(found.outcomes.iter().map(|(_, count)| count).sum::<u64>(), 20);
            assert!((0.0..=1.0).contains(&found.bound(&options)) && found.bound(&options) > 0.01);
            found
        };
        let found = explore(RACE);
        assert_eq!(found.outcomes.len(), 2);
        assert_eq!(found.outcomes[0].0, "out_y=[32, 0]");
        let text = found.difference;
        assert!(text.contains("[0]: 32 in the first run, 0 in this schedule"), "{text}");
        assert!(text.contains("wave 1 stores at line 13"), "{text}");
        let same = explore(&RACE.replace("v_mov_b32 v2, s5", "v_mov_b32 v2, 7"));
        assert_eq!((same.found, same.outcomes.len(), &*same.difference), (None, 1, ""));
    }
}
