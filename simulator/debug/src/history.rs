//! The values that a work-item gives to the variables of the source, in the order of a run, and the first one that differs
//! from those of another build of the same kernel.
//!
//! A compiler drops values, and moves assignments: the values that one build gives to a variable may be some of those that
//! another build gives to it, in the same order. A value that is in no such order differs.

use super::expr::{Focus, Value};
use super::frames::source_place;
use super::timeline::Timeline;
use super::variables::{self, Object};
use std::collections::HashMap;
use std::ops::Range;
use wavesim_loader::debug_info::{SourcePlace, TypeKind, Variable};
use wavesim_machine::exec::watch::Place;

/// Steps of the work-item's wave that are looked at, at most: the last ones.
const MOST_STEPS: usize = 1 << 14;
/// Parts of a variable that are followed, at most.
const MOST_PARTS: usize = 16;

/// A variable has got another value.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The function in whose frame the variable is.
    pub function: String,
    /// The variable, or a part of it, as a debugger's expression.
    pub variable: String,
    /// The value.
    pub value: Value,
    /// The value as C writes it.
    pub text: String,
    /// The time after which the variable has the value.
    pub time: u64,
    /// The instruction after which the variable has the value.
    pub pc: u64,
    /// Its place in the source.
    pub place: Option<SourcePlace>,
}

impl Assignment {
    fn key(&self) -> (&str, &str) {
        (&self.function, &self.variable)
    }
}

/// A work-item of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItem {
    /// The coordinates of its workgroup.
    pub workgroup: [u32; 3],
    /// Its wave and lane.
    pub focus: Focus,
}

/// Returns what a work-item assigns to its variables before the time `end` of a run that has gone as far. Pointers are left
/// out, since another build may have them elsewhere. The current time does not change.
pub fn assignments(timeline: &mut Timeline<'_>, item: WorkItem, end: u64) -> Vec<Assignment> {
    if timeline.prepared.debug.is_empty() {
        return Vec::new();
    }
    let now = timeline.time();
    let Some(start) = timeline.start_of(item.workgroup) else { return Vec::new() };
    let recorded = std::mem::replace(&mut timeline.record_accesses, true);
    timeline.go_to(start);
    let own: Vec<u64> =
        (start..end).filter(|time| timeline.wave_of_step(*time) == Some(item.focus.wave)).collect();
    let mut history = History { item, scopes: HashMap::new(), last: HashMap::new(), out: Vec::new() };
    for time in &own[own.len().saturating_sub(MOST_STEPS)..] {
        timeline.go_to(*time);
        if timeline.workgroup() != item.workgroup {
            continue;
        }
        let pc = timeline.wave(item.focus.wave).pc;
        timeline.repeat();
        // The last step of a workgroup starts another one.
        if timeline.workgroup() == item.workgroup {
            history.note(timeline, pc);
        }
    }
    timeline.record_accesses = recorded;
    timeline.go_to(now);
    history.out
}

struct History {
    item: WorkItem,
    /// By address of the next instruction: the functions there, each with its variables in scope.
    scopes: HashMap<u64, Vec<(String, Variable)>>,
    /// The last value of each variable.
    last: HashMap<(String, String), Value>,
    out: Vec<Assignment>,
}

impl History {
    /// Notes what has changed in the step that the timeline has taken last, whose instruction is at `pc`.
    fn note(&mut self, timeline: &Timeline<'_>, pc: u64) {
        let Focus { wave, lane } = self.item.focus;
        let state = timeline.wave(wave);
        // Of a lane that is inactive, registers may hold anything.
        if state.exec() >> lane & 1 == 0 {
            return;
        }
        let stores: Vec<(Place, Range<u64>)> = timeline
            .accesses()
            .iter()
            .filter(|access| access.write && !access.outside)
            .flat_map(|access| access.each())
            .filter(|access| access.lane == Some(lane as u8))
            .map(|access| (access.place, access.address..access.address + access.len_bytes()))
            .collect();
        let prepared = timeline.prepared;
        let address = prepared.program.address(state.pc);
        let scope = self.scopes.entry(address).or_insert_with(|| {
            let functions = prepared.debug.functions(address);
            let variables = |function: &_| prepared.debug.variables(function, address);
            let named = |function: &wavesim_loader::debug_info::Function| {
                let name = function.name.clone();
                variables(function).into_iter().map(move |variable| (name.clone(), variable))
            };
            functions.iter().flat_map(named).collect()
        });
        for (function, variable) in scope.clone() {
            let Ok(object) = variables::object(timeline, self.item.focus, &variable) else { continue };
            let mut parts = Vec::new();
            leaves(variable.name, object, timeline, self.item.focus, &mut parts);
            for (name, part) in parts {
                // Memory holds the variable once the work-item has stored there.
                if let Some((space, first, len)) = part.memory() {
                    let place = space.place();
                    let is_own = |(own, bytes): &(Place, Range<u64>)| {
                        *own == place && bytes.start < first + len && first < bytes.end
                    };
                    if !stores.iter().any(is_own) {
                        continue;
                    }
                }
                self.assign(timeline, pc, function.clone(), name, &part);
            }
        }
    }

    fn assign(
        &mut self,
        timeline: &Timeline<'_>,
        pc: u64,
        function: String,
        variable: String,
        part: &Object,
    ) {
        let focus = self.item.focus;
        let (Ok(value), Ok(text)) = (part.value(timeline, focus, None), part.show(timeline, focus, None))
        else {
            return;
        };
        let key = (function, variable);
        if self.last.get(&key) == Some(&value) {
            return;
        }
        self.last.insert(key.clone(), value);
        let (time, place) = (timeline.time(), source_place(timeline.prepared, pc));
        let (function, variable) = key;
        self.out.push(Assignment { function, variable, value, text, time, pc, place });
    }
}

/// Collects the numbers that a variable consists of.
fn leaves(
    name: String,
    object: Object,
    timeline: &Timeline<'_>,
    focus: Focus,
    out: &mut Vec<(String, Object)>,
) {
    match &object.kind.kind {
        TypeKind::Pointer { .. } | TypeKind::Other => {}
        TypeKind::Struct(_) | TypeKind::Array { .. } => {
            for (part, step) in object.parts().into_iter().take(MOST_PARTS) {
                let name =
                    if part.starts_with('[') { format!("{name}{part}") } else { format!("{name}.{part}") };
                if let Ok(part) = object.clone().part(timeline, focus, &step)
                    && out.len() < MOST_PARTS
                {
                    leaves(name, part, timeline, focus, out);
                }
            }
        }
        _ => out.push((name, object)),
    }
}

/// The first value that differs between two builds.
#[derive(Debug, Clone, PartialEq)]
pub struct Parted {
    /// The value in the first build, and the one in the second.
    pub values: [Assignment; 2],
    /// The last values before it that both builds have, at most four, of other variables of its function, in the order of the
    /// first build.
    pub equal: Vec<Assignment>,
}

/// Returns the first value, in the order of the first build, that differs between two builds. `agree` compares two values.
pub fn first_difference(
    a: &[Assignment],
    b: &[Assignment],
    agree: impl Fn(&Value, &Value) -> bool,
) -> Option<Parted> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for key in a.iter().map(Assignment::key) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let of = |list: &[Assignment], key: (&str, &str)| -> Vec<Assignment> {
        list.iter().filter(|assignment| assignment.key() == key).cloned().collect()
    };
    let mut found: Option<[Assignment; 2]> = None;
    let mut equal: Vec<Assignment> = Vec::new();
    for key in keys {
        let (own, other) = (of(a, key), of(b, key));
        if own.is_empty() || other.is_empty() {
            continue;
        }
        let (pair, same) = compare(&own, &other, &agree);
        equal.extend(same);
        if let Some(pair) = pair
            && found.as_ref().is_none_or(|found| pair[0].time < found[0].time)
        {
            found = Some(pair);
        }
    }
    let values = found?;
    let first = &values[0];
    equal.retain(|assignment| {
        let is_before = assignment.time <= first.time && assignment.function == first.function;
        is_before && assignment.variable != first.variable
    });
    equal.sort_by_key(|assignment| assignment.time);
    // The last value of each variable.
    let mut last: Vec<Assignment> = Vec::new();
    for assignment in equal.into_iter().rev() {
        if last.len() < 4 && last.iter().all(|known| known.key() != assignment.key()) {
            last.push(assignment);
        }
    }
    last.reverse();
    Some(Parted { values, equal: last })
}

/// Compares the values of a variable. Returns the first pair that differs, and the values of the first build that both have.
fn compare(
    a: &[Assignment],
    b: &[Assignment],
    agree: &impl Fn(&Value, &Value) -> bool,
) -> (Option<[Assignment; 2]>, Vec<Assignment>) {
    let swapped = a.len() > b.len();
    let (short, long) = if swapped { (b, a) } else { (a, b) };
    let (mut from, mut equal) = (0, Vec::new());
    for one in short {
        match long[from..].iter().position(|other| agree(&one.value, &other.value)) {
            Some(index) => {
                let of_a = if swapped { &long[from + index] } else { one };
                equal.push(of_a.clone());
                from += index + 1;
            }
            None => {
                let rest = &long[from..];
                let other = rest.iter().find(|other| line(other) == line(one));
                let Some(other) = other.or(rest.first()).or(long.last()) else { break };
                let pair = if swapped { [other, one] } else { [one, other] };
                return (Some(pair.map(Clone::clone)), equal);
            }
        }
    }
    (None, equal)
}

fn line(assignment: &Assignment) -> Option<u32> {
    assignment.place.as_ref().map(|place| place.line)
}
