//! Delayed memory operations as threads, and the schedule of a run.

use super::{Event, IsLate, Machine, Polling, StepObserver, Thread};
use crate::footprint::{Space, wave_hash};
use std::collections::BTreeSet;
use std::sync::Arc;
use wavesim_engine::caches::Arrangement;
use wavesim_engine::delayed::{Choices, Delays, OperationId, Outstanding};
use wavesim_engine::sched::recorded::{Act, Action, Late, Recorded, Turn};
use wavesim_machine::exec::issue::{self, Counters, Order};
use wavesim_machine::fault::Fault;

/// A delayed operation that no wait has shown to be complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issued {
    thread: Thread,
    order: Order,
    counters: Counters,
}

impl issue::Outstanding for Issued {
    fn order(&self) -> Order {
        self.order
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }
}

impl Machine<'_> {
    /// Returns whether memory operations can be delayed.
    pub fn has_delays(&self) -> bool {
        self.dispatch.delayed.is_some_and(|model| model.delays == Delays::Demanded)
    }

    /// Sets which operations are delayed from the next [`Machine::restart`] on; none without.
    pub fn set_late(&mut self, is_late: Option<IsLate>) {
        self.is_late = is_late;
    }

    /// Returns whether caches can make a difference.
    pub fn has_caches(&self) -> bool {
        self.dispatch.delayed.is_some_and(|model| self.has_delays() && model.uses_caches())
    }

    /// Returns the arrangements of caches in which a search through all executions looks: coherent caches, and two others
    /// if caches matter to the kernel.
    pub fn arrangements(&self) -> &'static [Option<Arrangement>] {
        const ALL: &[Option<Arrangement>] = &[None, Some(Arrangement::TOGETHER), Some(Arrangement::APART)];
        let all = self.has_caches() && self.dispatch.delayed.is_some_and(|model| model.needs_controls());
        if all { ALL } else { &ALL[..1] }
    }

    /// Sets how workgroups are spread over caches from the next [`Machine::restart`] on; `None` for caches that are always
    /// coherent.
    pub fn set_caches(&mut self, arrangement: Option<Arrangement>) {
        self.caches = arrangement.filter(|_| self.has_caches());
    }

    /// Returns how workgroups are spread over caches in this run.
    pub fn caches(&self) -> Option<Arrangement> {
        self.caches
    }

    /// Passes on which operations are delayed.
    pub(super) fn choose_late(&mut self) {
        if !self.has_delays() {
            return;
        }
        let (threads, waves) = (self.threads(), self.waves);
        let is_late: Arc<dyn Fn(OperationId, usize) -> bool + Send + Sync> = match self.is_late.clone() {
            None => Arc::new(|_, _| false),
            Some(is_late) => Arc::new(move |id, index| {
                let wave =
                    id.group.checked_mul(waves.into()).and_then(|first| first.checked_add(id.wave.into()));
                let wave = wave.and_then(|wave| u32::try_from(wave).ok());
                let thread = wave.and_then(|wave| thread_of(id.number, wave, threads));
                thread.is_some_and(|thread| is_late(thread, index))
            }),
        };
        self.control.set_choices(Some(Choices { is_late, stops: true }));
    }

    /// Returns whether a thread is a delayed operation.
    pub fn is_operation(&self, thread: Thread) -> bool {
        thread >= self.threads()
    }

    /// Returns the wave of an operation; a wave itself.
    pub fn wave_of(&self, thread: Thread) -> Thread {
        thread % self.threads().max(1)
    }

    /// Returns whether the wave of an operation waits for one of its operations.
    pub fn waits(&self, thread: Thread) -> bool {
        let (group, wave) = self.place(thread);
        self.control.group(group).is_some_and(|running| running.waits_for_operation(wave as usize))
    }

    /// Returns the operation that a thread is, unless it is a wave.
    pub fn operation(&self, thread: Thread) -> Option<OperationId> {
        let number = (thread / self.threads().max(1)).checked_sub(1)?;
        let (group, wave) = self.place(thread);
        Some(OperationId { group, wave, number: number.into() })
    }

    /// Returns the state of a delayed operation that is outstanding.
    pub fn outstanding(&self, thread: Thread) -> Option<Outstanding> {
        let id = self.operation(thread)?;
        let group = self.control.group(id.group)?;
        group
            .outstanding(id.wave as usize)
            .find(|operation| operation.number == id.number && operation.late && !operation.returned)
    }

    /// Adds the delayed operations that can take a step to `out`, in ascending order.
    pub(super) fn ready_operations(&self, out: &mut Vec<Thread>) {
        if self.is_late.is_none() || !self.has_delays() {
            return;
        }
        let waves = out.len();
        for wave in 0..self.threads() {
            let (group, index) = self.place(wave);
            let Some(group) = self.control.group(group) else { continue };
            let ready =
                group.outstanding(index as usize).filter(|operation| operation.ready && operation.late);
            out.extend(ready.filter_map(|operation| thread_of(operation.number, wave, self.threads())));
        }
        out[waves..].sort_unstable();
    }

    /// Returns the delayed operations that are outstanding.
    pub fn late(&self) -> Vec<Thread> {
        let mut out = Vec::new();
        for wave in 0..self.threads() {
            let (group, index) = self.place(wave);
            let Some(group) = self.control.group(group) else { continue };
            let late = group.outstanding(index as usize).filter(|o| o.late && !o.returned);
            out.extend(late.filter_map(|operation| thread_of(operation.number, wave, self.threads())));
        }
        out
    }

    /// Returns the number of the last outstanding operation of a wave.
    pub(super) fn last_operation(&self, group: u64, wave: usize) -> Option<u64> {
        self.control.group(group)?.outstanding(wave).map(|operation| operation.number).last()
    }

    /// Returns the delayed operations that a wave has issued after the one with this number.
    pub(super) fn issued_since(&mut self, wave: Thread, last: Option<u64>) -> Vec<Thread> {
        let (group, index) = self.place(wave);
        let Some(group) = self.control.group(group).filter(|_| self.has_delays()) else { return Vec::new() };
        let new = |o: &Outstanding| o.late && last.is_none_or(|last| o.number > last);
        let threads = self.threads();
        let list: Vec<Issued> = group
            .outstanding(index as usize)
            .filter(new)
            .filter_map(|o| {
                let thread = thread_of(o.number, wave, threads)?;
                Some(Issued { thread, order: o.order, counters: o.counters })
            })
            .collect();
        self.unwaited[wave as usize].extend(&list);
        list.iter().map(|issued| issued.thread).collect()
    }

    /// Returns the delayed operations for which the next instruction of a wave waits, complete or not.
    pub(super) fn demanded(&mut self, wave: Thread) -> Vec<Thread> {
        let (group, index) = self.place(wave);
        let unwaited = &mut self.unwaited[wave as usize];
        let Some(group) = self.control.group(group).filter(|_| !unwaited.is_empty()) else {
            return Vec::new();
        };
        group.apply_wait(index as usize, unwaited);
        let is_complete = |issued: &Issued| issued.counters.is_empty();
        let complete = unwaited.iter().copied().filter(is_complete).map(|issued| issued.thread).collect();
        unwaited.retain(|issued| !is_complete(issued));
        complete
    }

    /// Returns the outstanding operations whose registers the next instruction of a wave accesses.
    pub(super) fn touched(&self, wave: Thread) -> Vec<Thread> {
        let (group, index) = self.place(wave);
        let Some(group) = self.control.group(group).filter(|_| self.has_delays()) else { return Vec::new() };
        let thread = |number: u64| thread_of(number, wave, self.threads());
        group.touched(index as usize).into_iter().filter_map(thread).collect()
    }

    /// Returns the delayed operations of a wave that have returned, but no wait has shown it.
    pub(super) fn returned(&self, wave: Thread) -> impl Iterator<Item = Thread> {
        let issued = self.unwaited[wave as usize].iter().map(|issued| issued.thread);
        issued.filter(|thread| self.outstanding(*thread).is_none())
    }

    /// Returns the index of the next instruction of a wave.
    pub(super) fn next_index(&self, wave: Thread) -> Option<usize> {
        let (group, index) = self.place(wave);
        let pc = self.control.group(group)?.slots[index as usize].wave.pc;
        self.prepared.program.inst_at(pc)
    }

    /// Lets a delayed operation take its next step: access memory, or write its registers.
    pub(super) fn step_operation(&mut self, thread: Thread) -> (Event, Option<Box<Fault>>) {
        let owner = self.wave_of(thread);
        let event = Event { thread, ..Event::default() };
        let (Some(id), Some(state)) = (self.operation(thread), self.outstanding(thread)) else {
            return (event, None);
        };
        let act = if state.performed { Act::Return } else { Act::Access };
        let mut observer = StepObserver {
            table: &self.table,
            counts_signals: self.counts_signals,
            memory: &self.prepared.memory,
            group: id.group,
            first: id.group,
            event: Event { index: Some(state.index), act: Some(act), ..event },
            private: false,
            compares: self.compares(owner),
        };
        let hash = |machine: &Machine<'_>| {
            let group = machine.control.group(id.group)?;
            Some(wave_hash(group, id.wave as usize, &machine.table.written))
        };
        let before = self.polling[owner as usize].blocked.then(|| hash(self)).flatten();
        // The borrow of the table ends before the state of the wave is looked at.
        let result = self.control.act(id, act, &mut observer);
        let mut event = observer.event;
        if act == Act::Return {
            event.footprint.add_object(Space::Registers(owner), u64::from(thread));
        }
        let drops = self.note_caches(&mut event);
        event.footprint.finish();
        self.mark_dirty(&event.footprint);
        self.actions.push(Action { time: self.control.executed, operation: id, act });
        if let Err(fault) = result {
            return (event, Some(fault));
        }
        self.wake(owner, drops, &mut event);
        let changes_wave = before.is_some() && before != hash(self);
        if changes_wave {
            event.awakened.push(owner);
        }
        let polling = &mut self.polling[owner as usize];
        if event.changed || changes_wave {
            *polling = Polling::default();
        } else if !polling.states.is_empty() {
            polling.loads.loads.extend(&event.footprint.loads);
            polling.loads.finish();
        }
        (event, None)
    }

    /// Returns the schedule of this run so far, for a kernel with this number.
    pub fn recorded(&self, kernel: u64) -> Recorded {
        let mut groups: Vec<u64> = Vec::new();
        let mut turns = Vec::new();
        for (thread, instructions) in &self.turns {
            let (group, wave) = self.place(*thread);
            let group = if self.is_clustered() { group } else { place_in(&mut groups, group) };
            turns.push(Turn { group, wave, instructions: *instructions });
        }
        let mut renamed = |id: OperationId| match self.is_clustered() {
            true => id,
            false => OperationId { group: place_in(&mut groups, id.group), ..id },
        };
        let outstanding = self.late().into_iter().filter_map(|thread| self.operation(thread));
        let done = self.actions.iter().map(|action| action.operation);
        let operations: BTreeSet<OperationId> = outstanding.chain(done).map(&mut renamed).collect();
        let actions = self
            .actions
            .iter()
            .map(|action| Action { operation: renamed(action.operation), ..*action })
            .collect();
        let poison = self.dispatch.poison.map(|poison| poison.0);
        Recorded::new(kernel, groups, turns).with_late(Late {
            operations,
            actions,
            poison,
            caches: self.caches,
        })
    }
}

/// Returns the place of a workgroup in a list, to which it is added if it is new.
fn place_in(groups: &mut Vec<u64>, group: u64) -> u64 {
    let known = groups.iter().position(|known| *known == group);
    let place = known.unwrap_or_else(|| {
        groups.push(group);
        groups.len() - 1
    });
    place as u64
}

/// Returns the thread that an operation is, given by its number and its wave; `None` if there are too many.
fn thread_of(number: u64, wave: Thread, threads: u32) -> Option<Thread> {
    let first = number.checked_add(1)?.checked_mul(threads.into())?;
    u32::try_from(first.checked_add(wave.into())?).ok()
}
