//! Faults of a workgroup, and what their messages say of its waves.

use super::super::slot::Status;
use super::RunningGroup;
use crate::observe::{Done, Observer, Step};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, Place};
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::state::barrier::CLUSTER_INDEX;
use wavesim_machine::state::gws;

impl RunningGroup<'_> {
    /// Returns the fault for a run that the user stopped, with the position of every wave.
    pub(super) fn interrupted(&mut self, wave_index: usize) -> Box<Fault> {
        let pc = self.slots[wave_index].wave.pc;
        let executed = self.executed;
        let message = format!("stopped after {executed} instructions: {}", self.describe_positions());
        self.fault(wave_index, pc, Event::fault(FaultKind::Interrupted, message))
    }

    /// Describes the position of every wave, and the locations polled by waves in a loop. The run cannot
    /// continue afterwards: loops are run once more to find out.
    pub(super) fn describe_positions(&mut self) -> String {
        let program = self.dispatch.program;
        let mut places: BTreeMap<(u64, &str, String), Vec<usize>> = BTreeMap::new();
        let states: Vec<(u64, Status)> = self.slots.iter().map(|s| (s.wave.pc, s.status)).collect();
        for (at, (pc, status)) in states.into_iter().enumerate() {
            let (pc, how) = match status {
                Status::Running => (pc, "at"),
                Status::Waiting(_) => (self.previous_pc(pc), "waiting at"),
                Status::Ended => (u64::MAX, "ended"),
            };
            let polls = if status == Status::Running { self.describe_polling(at) } else { String::new() };
            places.entry((pc, how, polls)).or_default().push(at);
        }
        let parts: Vec<String> = places
            .iter()
            .map(|((pc, how, polls), waves)| match *how {
                "ended" => format!("{} ended", format_waves(waves)),
                _ => format!("{} {how} {}{polls}", format_waves(waves), program.place(*pc)),
            })
            .collect();
        parts.join("; ")
    }

    /// Describes the locations that a wave loads in its present loop, if it stores nothing there.
    fn describe_polling(&mut self, wave_index: usize) -> String {
        let mut round = Iteration { from: self.slots[wave_index].wave.pc, ..Iteration::default() };
        let _ = self.advance_observed(wave_index, MAX_POLL_LENGTH, &mut round);
        if !round.closed || round.loads.is_empty() || round.loads.len() > MAX_POLLED {
            return String::new();
        }
        let mut list: Vec<String> = Vec::new();
        for a in &round.loads {
            let len = a.size_bytes.min(8) as usize;
            let mut bytes = [0; 8];
            let place = match a.place {
                Place::Lds => {
                    let from = a.address as usize;
                    let Some(found) = self.lds.get(from..from + len) else { continue };
                    bytes[..len].copy_from_slice(found);
                    format!("LDS offset 0x{:x}", a.address)
                }
                _ => {
                    if self.memory.read(a.address, &mut bytes[..len]).is_err() {
                        continue;
                    }
                    let name = self.memory.describe(a.address);
                    name.unwrap_or_else(|| format!("0x{:x}", a.address))
                }
            };
            list.push(format!("{place}, which holds 0x{:x}", u64::from_le_bytes(bytes)));
        }
        if list.is_empty() { String::new() } else { format!(" (polls {})", list.join(", ")) }
    }

    /// Returns the fault for a workgroup in which no wave can run: it lists where each one waits.
    pub(in crate::sched) fn deadlock(&self) -> Box<Fault> {
        let mut places: BTreeMap<(u64, usize), Vec<usize>> = BTreeMap::new();
        let mut ended = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            match slot.status {
                Status::Waiting(barrier) => {
                    places.entry((self.previous_pc(slot.wave.pc), barrier)).or_default().push(at)
                }
                _ => ended.push(at),
            }
        }
        let mut parts: Vec<String> = places
            .iter()
            .map(|(&(pc, barrier), waves)| {
                let verb = if waves.len() == 1 { "waits" } else { "wait" };
                if let Some((number, semaphore)) = gws::resource_of(barrier) {
                    let common = self.shared.common().gws.unwrap_or_default();
                    let resource = common.resource(number as u32);
                    let state = match semaphore {
                        true => "a semaphore that nobody releases".to_string(),
                        false => {
                            format!("a barrier that {} more must reach", resource.counter.wrapping_add(1))
                        }
                    };
                    let place = self.dispatch.program.place(pc);
                    return format!(
                        "{} {verb} at {place} (global wave sync resource {number}: {state})",
                        format_waves(waves)
                    );
                }
                let state = self.shared.barrier(barrier);
                let (name, who) = match barrier {
                    0 => ("the workgroup's barrier".to_string(), "waves"),
                    CLUSTER_INDEX => ("the cluster's barrier".to_string(), "workgroups"),
                    n => (format!("barrier {n}"), "waves"),
                };
                format!(
                    "{} {verb} at {} ({name}: {} of {} {who} have signalled)",
                    format_waves(waves),
                    self.dispatch.program.place(pc),
                    state.signals,
                    state.members
                )
            })
            .collect();
        if !ended.is_empty() {
            let verb = if ended.len() == 1 { "has" } else { "have" };
            parts.push(format!("{} {verb} ended", format_waves(&ended)));
        }
        let first = places.first_key_value().map_or((0, 0), |(&(pc, _), waves)| (waves[0], pc));
        let event = Event::fault(FaultKind::BarrierDeadlock, parts.join("; "));
        self.fault(first.0, first.1, event)
    }

    /// Returns the address of the instruction before `pc` in the code, which is the last one executed if that
    /// was a barrier.
    fn previous_pc(&self, pc: u64) -> u64 {
        let pcs = &self.dispatch.program.pcs;
        let at = pcs.partition_point(|&p| p < pc);
        at.checked_sub(1).map_or(pc, |at| pcs[at])
    }

    /// Returns the fault of a wave where it is.
    pub(in crate::sched) fn fault_of(&self, wave_index: usize, event: Event) -> Box<Fault> {
        self.fault(wave_index, self.slots[wave_index].wave.pc, event)
    }

    /// Returns the fault of a wave at `pc`.
    #[cold]
    #[inline(never)]
    pub(super) fn fault(&self, wave_index: usize, pc: u64, event: Event) -> Box<Fault> {
        let (kind, mut message, lane, address) = match event {
            Event::Fault(cause) => (cause.kind, cause.message, cause.lane, cause.address),
            Event::EndPgm | Event::BarrierWait(_) => (FaultKind::Other, "stopped".to_string(), None, None),
        };
        let program = self.dispatch.program;
        let mut index = program.inst_at(pc);
        if kind == FaultKind::PcOutOfRange
            && let Some(last) = program.ending_at(pc)
        {
            message += " after its last instruction";
            if program.arch.machine().is_none() {
                message += ", which is not an `s_endpgm`";
            }
            index = Some(last);
        }
        let instruction = match index {
            Some(index) => program.text(index),
            None => "(no instruction)".to_string(),
        };
        let location = index.and_then(|index| program.location(program.pcs[index])).unwrap_or_default();
        Box::new(Fault {
            kind,
            message,
            line: location.line,
            file: location.file,
            pc: program.address(pc),
            instruction,
            workgroup: self.id,
            wave: wave_index as u32,
            lane,
            address,
        })
    }
}

/// Upper bounds of a polling loop: instructions in it, and locations polled.
const MAX_POLL_LENGTH: u64 = 256;
const MAX_POLLED: usize = 4;

/// An observer of one loop iteration, which collects the loads.
#[derive(Default)]
struct Iteration {
    from: u64,
    steps: u64,
    /// The wave is back at `from` and has stored nothing.
    closed: bool,
    stores: bool,
    /// One load per location.
    loads: Vec<Access>,
}

impl Observer for Iteration {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.closed |= self.steps > 0 && step.pc == self.from && !self.stores;
        self.steps += 1;
        if self.closed || self.stores { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn after(&mut self, _step: &Step<'_>, done: &Done<'_>) {
        let atomic = done.accesses.iter().any(|a| !a.write);
        self.stores |= !atomic && done.accesses.iter().any(|a| a.write);
        for a in done.accesses.iter().filter(|a| !a.write && !a.outside && a.place != Place::Scratch) {
            for a in a.each().take(MAX_POLLED + 1) {
                if !self.loads.iter().any(|known| (known.place, known.address) == (a.place, a.address)) {
                    self.loads.push(a);
                }
            }
        }
    }
}

/// Formats wave indices as `waves 0-3, 7`.
fn format_waves(waves: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &at in waves {
        match ranges.last_mut() {
            Some(last) if last.1 + 1 == at => last.1 = at,
            _ => ranges.push((at, at)),
        }
    }
    let list: Vec<String> = ranges
        .iter()
        .map(|&(a, b)| match b - a {
            0 => a.to_string(),
            1 => format!("{a}, {b}"),
            _ => format!("{a}-{b}"),
        })
        .collect();
    format!("{} {}", if waves.len() == 1 { "wave" } else { "waves" }, list.join(", "))
}
