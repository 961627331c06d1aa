//! The observer of a step.

use super::{Completion, Event};
use crate::footprint::Space;
use crate::visible::{Object, Table, object};
use isa_spec::pcode::builtins::Control;
use std::ops::ControlFlow;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_machine::exec::watch::Place;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::barrier::BARRIERS;

/// Ends a step before the second visible instruction, and records the first.
pub(super) struct StepObserver<'m> {
    pub table: &'m Table,
    pub counts_signals: bool,
    pub memory: &'m Memory,
    pub group: u64,
    /// The first workgroup of the cluster.
    pub first: u64,
    pub event: Event,
    /// The wave has stored in its scratch.
    pub private: bool,
    /// Whether to find out if stores change anything.
    pub compares: bool,
}

impl StepObserver<'_> {
    /// Records the accesses of a visible instruction.
    fn accessed(&mut self, done: &Done<'_>) {
        let (mut stores, group) = (false, self.group);
        for access in done.accesses.iter().filter(|access| access.place != Place::Scratch) {
            self.event.footprint.add(group, access);
            stores |= access.write;
        }
        self.event.changed |= stores && (!self.compares || self.has_changed(done));
    }

    /// Returns whether stores have replaced bytes by others.
    fn has_changed(&self, done: &Done<'_>) -> bool {
        let stores = done.accesses.iter().filter(|access| access.write && !access.outside);
        stores.flat_map(|access| access.each()).any(|access| {
            (access.address..access.address.saturating_add(access.size_bytes.into())).any(|address| {
                let now = match access.place {
                    Place::Lds => done.lds.get(address as usize).copied(),
                    _ => self.memory.load::<1>(address).ok().map(|byte| byte[0]),
                };
                now.is_none() || done.replaced.byte(access.place, address) != now
            })
        })
    }
}

impl Observer for StepObserver<'_> {
    fn skip(&mut self, step: &Step<'_>) -> Skip {
        Skip { count: self.table.get(step.index).unobserved as usize, ..Skip::default() }
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        match self.event.index.is_some() && self.table.get(step.index).visible {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn performed(&mut self, _step: &Step<'_>, done: &Done<'_>) {
        self.accessed(done);
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        if self.table.get(step.index).visible {
            self.event.index = Some(step.index);
            self.accessed(done);
        }
        self.private |= done.accesses.iter().any(|access| access.write && access.place == Place::Scratch);
        for (call, argument) in done.calls {
            match object(*call, self.counts_signals) {
                Some(Object::Barriers) => {
                    self.event.footprint.add_object(Space::Barriers(self.first), 0);
                    self.event.changed = true;
                }
                Some(Object::Messages) => {
                    self.event.footprint.add_object(Space::Messages, 0);
                    self.event.changed = true;
                }
                None => {}
            }
            let group = self.group;
            let mut signal = |barrier| self.event.signals.push(Completion { group, barrier, count: 0 });
            match call {
                // Whatever barrier a wave leaves by its end.
                Control::EndPgm => (0..BARRIERS as u8).for_each(signal),
                call if call.signals_barrier() => {
                    let number = if *call == Control::Barrier { -1 } else { *argument as i32 };
                    if let Some(index) = step.group.own_index(number) {
                        signal(index as u8);
                    }
                }
                _ => {}
            }
        }
        for signal in self.event.signals.iter_mut().filter(|s| s.barrier as usize == BARRIERS - 1) {
            signal.group = self.first;
        }
    }
}
