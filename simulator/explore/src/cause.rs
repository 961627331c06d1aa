//! The accesses whose order makes the difference between two runs.

use crate::choice::Schedule;
use crate::footprint::{Range, Space};
use crate::machine::{Event, Machine, Thread};
use crate::minimise::{Found, follow};
use crate::outcome::Outcome;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use wavesim_loader::prepared::Prepared;

/// Two conflicting accesses, in the order in which the wrong run made them. The right run made them in the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reversed {
    /// The first access.
    pub first: Event,
    /// The second one.
    pub second: Event,
    /// Bytes that both access.
    pub range: Range,
}

/// Where an access of a cause is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The source file, where debug information names one.
    pub file: Option<Arc<str>>,
    /// The line; 0 without source.
    pub line: u32,
    /// The step, in words.
    pub text: String,
    /// Address of the instruction, as listings show it.
    pub pc: u64,
    /// The instruction.
    pub instruction: String,
    /// Coordinates of the workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup.
    pub wave: u32,
}

impl Place {
    /// Returns the place of a step; none for steps that are no instructions.
    pub fn of(machine: &Machine<'_>, event: &Event) -> Option<Place> {
        let program = &machine.prepared.program;
        let index = event.index?;
        let pc = program.pcs[index];
        let at = program.location(pc).unwrap_or_default();
        let (group, wave) = machine.place(event.thread);
        Some(Place {
            file: at.file,
            line: at.line,
            text: describe_step(machine, event),
            pc,
            instruction: program.text(index).to_string(),
            workgroup: machine.workgroup(group),
            wave,
        })
    }
}

/// Returns a difference in the form of a finding's machine output (`wavesim-check-1`): `places` are the second and the first
/// of the accesses that make it, if there are any. `edge` is what reports write between the two.
pub fn as_finding(message: &str, places: &[Place]) -> Value {
    let site = |place: &Place| {
        json!({
            "line": place.line, "file": place.file.as_deref(), "pc": place.pc, "text": place.instruction,
            "workgroup": place.workgroup, "wave": place.wave,
        })
    };
    let mut out = json!({
        "schema": "wavesim-check-1",
        "check": "explore",
        "severity": "error",
        "kind": "second in this schedule",
        "message": message,
        "line": null,
        "file": null,
        "edge": ["the other order", "is expected"],
    });
    let mut sites = places.iter().map(site);
    if let (Some(Value::Object(second)), Value::Object(out)) = (sites.next(), &mut out) {
        out.extend(second);
        if let Some(mut first) = sites.next() {
            first["role"] = json!("first in this schedule");
            out.insert("other".to_string(), first);
        }
    }
    out
}

/// Schedules that are tried to find a similar one.
const MOST_ATTEMPTS: usize = 64;

/// Steps of the runs that are compared, at most: each is compared with all before it.
const MOST_STEPS: usize = 4096;

/// Returns the conflicting accesses that two runs made in different orders, as the first run has them.
pub fn reversed(wrong: &[Event], right: &[Event]) -> Vec<Reversed> {
    let positions = |events: &[Event]| {
        let mut counts: HashMap<Thread, usize> = HashMap::new();
        let of = |event: &Event| {
            let count = counts.entry(event.thread).or_default();
            *count += 1;
            (event.thread, *count)
        };
        events.iter().map(of).collect::<Vec<_>>()
    };
    let right_positions: HashMap<(Thread, usize), usize> = positions(right).into_iter().zip(0..).collect();
    let keys = positions(wrong);
    // The place of the same step in the right run, if it is the same instruction.
    let place = |at: usize| {
        let place = *right_positions.get(&keys[at])?;
        (right[place].index == wrong[at].index).then_some(place)
    };
    let mut out = Vec::new();
    for (at, second) in wrong.iter().enumerate().take(MOST_STEPS) {
        let Some(second_place) = place(at).filter(|_| !second.footprint.is_empty()) else { continue };
        // The last conflicting step of each other wave.
        let mut seen: Vec<Thread> = vec![second.thread];
        for (before, first) in wrong[..at].iter().enumerate().rev() {
            if seen.contains(&first.thread) {
                continue;
            }
            let Some(range) = first.footprint.conflict(&second.footprint) else { continue };
            seen.push(first.thread);
            if place(before).is_some_and(|first_place| first_place > second_place) {
                out.push(Reversed { first: first.clone(), second: second.clone(), range });
            }
        }
    }
    out
}

/// Returns the conflicting accesses that a wrong run makes in another order than the most similar schedule that is not
/// wrong: those whose result a load shows come first.
pub fn of_difference(
    machine: &mut Machine<'_>,
    found: &Found,
    limit: u64,
    wrong: &dyn Fn(&Outcome) -> bool,
) -> Vec<Reversed> {
    // Without the last switches, the outcome is the expected one.
    let Schedule { segments, late, caches } = &found.schedule;
    let count = segments.len();
    let right = (0..count).rev().take(MOST_ATTEMPTS).find_map(|kept| {
        let schedule = Schedule { segments: segments[..kept].to_vec(), late: late.clone(), caches: *caches };
        follow(machine, &schedule, limit).filter(|other| !wrong(&other.outcome))
    });
    let Some(right) = right else { return Vec::new() };
    let mut pairs = reversed(&found.events, &right.events);
    let loads = |event: &Event| !event.footprint.loads.is_empty();
    pairs.sort_by_key(|pair| !loads(&pair.first) && !loads(&pair.second));
    pairs
}

/// Whether both accesses are atomics on floats, whose results depend on the order of rounding.
pub fn is_float_order(machine: &Machine<'_>, pair: &Reversed) -> bool {
    [&pair.first, &pair.second].iter().all(|event| event.index.is_some_and(|at| machine.is_float_atomic(at)))
}

/// Describes two accesses in three lines.
pub fn describe(machine: &Machine<'_>, pair: &Reversed) -> String {
    format!(
        "{}\n  before {}\n  ({}); with the expected result, it is the other way round",
        describe_step(machine, &pair.first),
        describe_step(machine, &pair.second),
        describe_range(machine.prepared, pair.range)
    )
}

/// Describes bytes: `out_data+0x10`, `LDS offset 0x0`, with their number.
pub fn describe_range(prepared: &Prepared, range: Range) -> String {
    let bytes = range.end.saturating_sub(range.start);
    let count = if bytes == 1 { "1 byte".to_string() } else { format!("{bytes} bytes") };
    match range.space {
        Space::Global => {
            let name = prepared.memory.describe(range.start);
            format!("{count} at {}", name.unwrap_or_else(|| format!("0x{:x}", range.start)))
        }
        Space::Lds(_) => format!("{count} at LDS offset 0x{:x}", range.start),
        Space::Barriers(_) => "the state of a barrier".to_string(),
        Space::Messages => "messages".to_string(),
        Space::Registers(_) => "registers".to_string(),
        Space::Cache(_) => "a cache".to_string(),
    }
}

/// Describes a step: its wave, its line and its instruction.
pub fn describe_step(machine: &Machine<'_>, event: &Event) -> String {
    let program = &machine.prepared.program;
    let name = machine.name(event.thread);
    match event.index {
        Some(index) => {
            let late = if machine.is_operation(event.thread) { ", late," } else { "" };
            let does = match (event.footprint.loads.is_empty(), event.footprint.stores.is_empty()) {
                (false, true) => "loads",
                (true, false) => "stores",
                _ => "accesses",
            };
            format!("{name} {does}{late} at {}: {}", program.place(program.pcs[index]), program.text(index))
        }
        None => name,
    }
}
