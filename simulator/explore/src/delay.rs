//! Why a delay changes a result: the instruction that does not wait for the operation.

use crate::cause::describe_range;
use crate::machine::{Event, Machine, Thread};
use crate::minimise::Found;
use wavesim_engine::sched::recorded::Act;

/// What a delayed operation of a run means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// The operation: its wave, its line and its instruction.
    pub operation: String,
    /// What happens before it takes effect, and does not wait for it.
    pub why: Vec<String>,
}

/// Describes the delays of a run.
pub fn describe(machine: &Machine<'_>, found: &Found) -> Vec<Delay> {
    found.schedule.late.iter().filter_map(|thread| one(machine, &found.events, *thread)).collect()
}

fn one(machine: &Machine<'_>, events: &[Event], thread: Thread) -> Option<Delay> {
    let program = &machine.prepared.program;
    let at = |index: usize| format!("{}: {}", program.place(program.pcs[index]), program.text(index));
    let owner = machine.wave_of(thread);
    let issued = events.iter().position(|event| event.issued.contains(&thread))?;
    let of = |act: Act| events.iter().position(|event| event.thread == thread && event.act == Some(act));
    let index = events.iter().find(|event| event.thread == thread)?.index?;
    let operation = format!("{} {}", machine.name(owner), at(index));
    let mut why = Vec::new();
    // The wave uses the registers before the results are there.
    let touches = events.iter().skip(issued + 1).position(|event| event.touched.contains(&thread));
    let touching =
        touches.and_then(|offset| events[..=issued + offset].iter().rev().find(|e| e.thread == owner));
    if let Some(used) = touching.and_then(|event| event.next) {
        why.push(format!("{} uses the registers before the results have returned", at(used)));
    }
    // Others access the same memory before it does.
    if let Some(performed) = of(Act::Access) {
        let footprint = &events[performed].footprint;
        let mut seen = Vec::new();
        for event in &events[issued + 1..performed] {
            let Some(other) = event.index.filter(|other| !seen.contains(other)) else { continue };
            let Some(range) = event.footprint.conflict(footprint) else { continue };
            seen.push(other);
            let name = machine.name(machine.wave_of(event.thread));
            let range = describe_range(machine.prepared, range);
            why.push(format!("{name} {} accesses {range} before the operation does", at(other)));
        }
    }
    Some(Delay { operation, why })
}
