//! A launch whose waves run step by step, in the order that a caller chooses.
//!
//! A step of a wave is one visible operation and the instructions after it, up to the next visible operation; the first
//! step also has the instructions before. What comes between two visible operations is private to the wave. Signals of
//! barriers and the ends of waves only enable other waves: they belong to the step before, and need no choice.
//!
//! With delayed memory (`Delays::Demanded` of the engine), a delayed operation is a thread of two steps: it accesses
//! memory, and it writes its registers. The wave's step then ends before an instruction that waits for it, which cannot
//! run before, and before one that accesses its registers. Until a wait shows that the operation is complete, its return
//! conflicts with every step of the wave, which might use the registers earlier.
//!
//! A wave that polls does not run for ever: once it is in a loop in the same state as before and has stored nothing in
//! between, it waits until another wave changes what it has loaded.

mod constants;
mod observer;
mod operations;
mod polling;

use crate::footprint::{Footprint, Space};
use crate::visible::Table;
pub use constants::StoredLines;
use observer::StepObserver;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use wavesim_engine::caches::{Arrangement, LINE, Stale};
use wavesim_engine::delayed::DelayedMemory;
use wavesim_engine::sched::controlled::Controlled;
use wavesim_engine::sched::dispatch::{Dispatch, DispatchError};
use wavesim_engine::sched::group::{RunningGroup, Status};
use wavesim_engine::sched::recorded::{Act, Action};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::fault::Fault;
use wavesim_machine::memory::OWNED_BASE;
use wavesim_machine::state::barrier::{BARRIERS, WAITS};

/// A wave of the launch: the number of its workgroup times the waves of a workgroup, plus its index there. Greater numbers
/// are delayed operations ([`Machine::operation`]).
pub type Thread = u32;

/// Returns whether an operation is delayed, given the thread that it then is, and the index of its instruction.
pub type IsLate = Arc<dyn Fn(Thread, usize) -> bool + Send + Sync>;

/// Bytes of memory that are restored together.
const PAGE: u64 = 4096;
/// Steps of a loop that polls, at most.
const WINDOW: usize = 16;

/// A barrier of a workgroup, and the number of its completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The workgroup, or the first one of the cluster whose barrier it is.
    pub group: u64,
    /// Index of the barrier.
    pub barrier: u8,
    /// Number of completions, this one included.
    pub count: u32,
}

/// What a step did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The wave.
    pub thread: Thread,
    /// Index of the visible instruction; `None` if the wave ended, or waits, without one.
    pub index: Option<usize>,
    /// Number of instructions executed.
    pub instructions: u64,
    /// Memory that the visible instruction accessed.
    pub footprint: Footprint,
    /// Memory holds other values than before.
    pub changed: bool,
    /// Barriers that the step has signalled, the end of the wave included.
    pub signals: Vec<Completion>,
    /// Completions that the wave waited for, before the step and in it.
    pub waited: Vec<Completion>,
    /// Barriers that the step has completed.
    pub completed: Vec<Completion>,
    /// The waves that polled what the step has stored.
    pub awakened: Vec<Thread>,
    /// Delayed operations that the wave has issued.
    pub issued: Vec<Thread>,
    /// Delayed operations that are known to be complete, since the first instruction waits for them.
    pub demanded: Vec<Thread>,
    /// What a delayed operation did.
    pub act: Option<Act>,
    /// Outstanding operations of the wave whose registers the first instruction accesses.
    pub touched: Vec<Thread>,
    /// The index of the instruction before which the step ended.
    pub next: Option<usize>,
    /// Accesses that did not see the newest value.
    pub stale: Vec<Stale>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every wave has ended.
    Finished,
    /// A wave has faulted.
    Fault(Box<Fault>),
    /// Waves wait at barriers that cannot complete.
    Deadlock(Box<Fault>),
    /// Waves poll memory that nobody will change.
    Livelock(String),
}

/// What is known of a wave's loop.
#[derive(Debug, Clone, Default)]
struct Polling {
    /// The states in which the wave was, since it or others have changed memory that it uses.
    states: Vec<(u64, u64)>,
    /// What it has loaded since.
    loads: Footprint,
    blocked: bool,
}

/// A launch that runs again and again.
pub struct Machine<'a> {
    /// The kernel, with its memory.
    pub prepared: &'a Prepared,
    dispatch: &'a Dispatch<'a>,
    control: Controlled<'a>,
    table: Table,
    counts_signals: bool,
    /// Memory before the first instruction: address and contents.
    initial: Vec<(u64, Vec<u8>)>,
    /// Pages of memory that may have changed since, by address.
    dirty: BTreeSet<u64>,
    polling: Vec<Polling>,
    /// Waves of a workgroup.
    waves: u32,
    /// Upper bound of the number of workgroups that run at a time.
    resident: u64,
    /// The turns of this run.
    turns: Vec<(Thread, u64)>,
    /// What delayed operations did in this run.
    actions: Vec<Action>,
    is_late: Option<IsLate>,
    /// How workgroups are spread over caches; `None` for caches that are always coherent.
    caches: Option<Arrangement>,
    /// By wave: the delayed operations that no wait has shown to be complete.
    unwaited: Vec<Vec<operations::Issued>>,
    /// The lines to which runs have stored, if they are recorded.
    recorded_stores: Option<BTreeSet<u64>>,
    /// The lines that are not taken to be constant; without, none is.
    stored: Option<Arc<StoredLines>>,
}

impl<'a> Machine<'a> {
    /// Creates the launch in its initial state, with the present contents of memory.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn new(prepared: &'a Prepared, dispatch: &'a Dispatch<'a>) -> Result<Machine<'a>, DispatchError> {
        Machine::with_host_memory(prepared, dispatch, &[])
    }

    /// As [`Machine::new`], for memory that is mapped from the host: these ranges of addresses are restored, too.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn with_host_memory(
        prepared: &'a Prepared,
        dispatch: &'a Dispatch<'a>,
        host: &[Range<u64>],
    ) -> Result<Machine<'a>, DispatchError> {
        if dispatch.meets() {
            return Err(DispatchError::MeetsUnexplored);
        }
        let control = Controlled::checked(dispatch, &prepared.memory)?;
        let waves = dispatch.waves();
        let threads = dispatch.workgroups().saturating_mul(u64::from(waves)).min(u64::from(u32::MAX));
        let mut initial = vec![(OWNED_BASE, prepared.memory.snapshot())];
        for range in host {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            if prepared.memory.read(range.start, &mut bytes).is_ok() {
                initial.push((range.start, bytes));
            }
        }
        let caches = dispatch.delayed.is_some_and(DelayedMemory::uses_caches);
        if caches {
            dispatch.caches.record();
        }
        Ok(Machine {
            prepared,
            dispatch,
            control,
            table: Table::new(prepared, caches),
            counts_signals: Table::counts_signals(prepared),
            initial,
            dirty: BTreeSet::new(),
            polling: vec![Polling::default(); threads as usize],
            waves,
            resident: u64::MAX,
            turns: Vec::new(),
            actions: Vec::new(),
            is_late: None,
            caches: None,
            unwaited: vec![Vec::new(); threads as usize],
            recorded_stores: None,
            stored: None,
        })
    }

    /// Limits the memory that the workgroups take which have started and not ended, in bytes. One can always run.
    pub fn limit_memory(&mut self, bytes: u64) {
        let group = RunningGroup::new(self.dispatch, &self.prepared.memory);
        // The workgroups of a cluster run together.
        let least = u64::from(self.dispatch.cluster_workgroups());
        self.resident = (bytes / group.bytes().max(1) as u64).max(least);
        group.recycle();
    }

    /// Returns whether all workgroups can run at a time.
    pub fn fits(&self) -> bool {
        self.dispatch.workgroups() <= self.resident
    }

    /// Number of waves of the launch.
    pub fn threads(&self) -> u32 {
        self.polling.len() as u32
    }

    /// Number of instructions executed in this run.
    pub fn executed(&self) -> u64 {
        self.control.executed
    }

    /// Returns the workgroup of a wave, and its index there; for an operation, those of its wave.
    pub fn place(&self, thread: Thread) -> (u64, u32) {
        let thread = thread % self.threads().max(1);
        (u64::from(thread / self.waves), thread % self.waves)
    }

    /// Returns the coordinates of a workgroup in the grid.
    pub fn workgroup(&self, group: u64) -> [u32; 3] {
        self.dispatch.workgroup(group)
    }

    /// Names a wave: `wave 1`, or `workgroup (2,0,0), wave 1` if there are several workgroups.
    pub fn name(&self, thread: Thread) -> String {
        let (group, wave) = self.place(thread);
        self.name_of((self.dispatch.workgroup(group), wave))
    }

    /// As [`Machine::name`], for a wave that is given by the coordinates of its workgroup and its index there.
    pub fn name_of(&self, ([x, y, z], wave): ([u32; 3], u32)) -> String {
        match self.dispatch.workgroups() {
            1 => format!("wave {wave}"),
            _ => format!("workgroup ({x},{y},{z}), wave {wave}"),
        }
    }

    /// Returns to the state before the first instruction.
    pub fn restart(&mut self) {
        for page in std::mem::take(&mut self.dirty) {
            let (start, end) = (page * PAGE, (page + 1).saturating_mul(PAGE));
            for (base, bytes) in &self.initial {
                let (from, to) = (start.max(*base), end.min(base + bytes.len() as u64));
                if from < to {
                    let contents = &bytes[(from - base) as usize..(to - base) as usize];
                    let written = self.prepared.memory.write(from, contents);
                    debug_assert!(written.is_ok(), "the contents were read from there");
                }
            }
        }
        if self.dispatch.recorded.is_none() {
            self.dispatch.caches.arrange(self.caches);
        }
        self.control.restart();
        self.polling.iter_mut().for_each(|polling| *polling = Polling::default());
        self.turns.clear();
        self.actions.clear();
        self.unwaited.iter_mut().for_each(Vec::clear);
        self.choose_late();
    }

    /// Returns whether a wave or an operation can take a step.
    pub fn can_run(&self, thread: Thread) -> bool {
        let (group, wave) = self.place(thread);
        if self.is_operation(thread) {
            return self.outstanding(thread).is_some_and(|operation| operation.ready);
        }
        let waits = |running: &RunningGroup<'_>| running.waits_for_operation(wave as usize);
        !self.control.group(group).is_some_and(waits)
            && !self.polling[thread as usize].blocked
            && self.control.can_run(group, wave as usize)
            && (!self.control.is_new(group) || self.can_start(group))
    }

    fn can_start(&self, group: u64) -> bool {
        let ordered = !self.is_clustered() || group == self.control.started();
        ordered && self.control.resident() < self.resident
    }

    /// Returns whether workgroups form clusters, which start in ascending order.
    pub fn is_clustered(&self) -> bool {
        self.dispatch.cluster_workgroups() > 1
    }

    /// Writes the waves that can take a step to `out`.
    pub fn enabled(&self, out: &mut Vec<Thread>) {
        out.clear();
        out.extend((0..self.threads()).filter(|thread| self.can_run(*thread)));
        self.ready_operations(out);
    }

    /// Returns the end of the run, if no wave can take a step.
    pub fn end(&self) -> End {
        if self.control.has_ended() {
            return End::Finished;
        }
        let polls: Vec<String> = (0..self.threads())
            .filter(|thread| self.polling[*thread as usize].blocked)
            .map(|thread| format!("{} polls at {}", self.name(thread), self.position(thread)))
            .collect();
        match &polls[..] {
            [] => End::Deadlock(self.control.deadlock()),
            _ => End::Livelock(format!("{}, and nobody will change what is loaded there", polls.join("; "))),
        }
    }

    /// Describes the place of the next instruction of a wave.
    pub fn position(&self, thread: Thread) -> String {
        let (group, wave) = self.place(thread);
        let pc = self
            .control
            .group(group)
            .map_or(self.prepared.shape.entry_pc, |running| running.slots[wave as usize].wave.pc);
        self.prepared.program.place(pc)
    }

    /// Returns whether an instruction is an atomic on floats.
    pub fn is_float_atomic(&self, index: usize) -> bool {
        self.table.get(index).float_atomic
    }

    /// Executes a step of a wave that [can run](Machine::can_run). Returns what it has done, and the fault that ends the
    /// run, if any.
    pub fn step(&mut self, thread: Thread) -> (Event, Option<Box<Fault>>) {
        if self.is_operation(thread) {
            return self.step_operation(thread);
        }
        let (group, wave) = self.place(thread);
        let wave = wave as usize;
        let before = self.barriers(group, wave);
        let outstanding = self.last_operation(group, wave);
        let touched = self.touched(thread);
        let demanded = self.demanded(thread);
        let mut observer = StepObserver {
            table: &self.table,
            counts_signals: self.counts_signals,
            memory: &self.prepared.memory,
            group,
            first: self.first_of_cluster(group),
            event: Event { thread, touched, demanded, ..Event::default() },
            private: false,
            compares: self.compares(thread),
        };
        for operation in observer.event.touched.iter().copied().chain(self.returned(thread)) {
            observer.event.footprint.add_object(Space::Registers(thread), u64::from(operation));
        }
        let executed = self.control.executed;
        let result = self.control.run(group, wave, u64::MAX, &mut observer);
        let (mut event, private) = (observer.event, observer.private);
        event.instructions = self.control.executed - executed;
        let drops = self.note_caches(&mut event);
        event.footprint.finish();
        self.mark_dirty(&event.footprint);
        event.issued = self.issued_since(thread, outstanding);
        event.next = self.next_index(thread);
        match self.turns.last_mut() {
            Some(last) if last.0 == thread => last.1 += event.instructions,
            _ => self.turns.push((thread, event.instructions)),
        }
        if let Err(fault) = result {
            return (event, Some(fault));
        }
        self.note_barriers(group, wave, &before, &mut event);
        self.note_polling(group, wave, private, drops, &mut event);
        (event, None)
    }

    /// Adds the use of caches to what a step accesses. Returns whether it has taken lines out of caches.
    fn note_caches(&self, event: &mut Event) -> bool {
        if self.caches.is_none() {
            return false;
        }
        let mut drops = false;
        for touch in self.dispatch.caches.take_touched() {
            let (space, (start, end)) = (Space::Cache(touch.cache.0), touch.lines);
            if end - start == 1 && self.is_constant(start) {
                continue;
            }
            let list = if touch.changes { &mut event.footprint.stores } else { &mut event.footprint.loads };
            list.push(crate::footprint::Range { space, start, end });
            if touch.fills {
                // What others store in the line before is part of it.
                let (space, start, end) = (Space::Global, start * LINE, end.saturating_mul(LINE));
                event.footprint.loads.push(crate::footprint::Range { space, start, end });
            }
            drops |= touch.changes && !touch.fills;
        }
        event.stale = self.dispatch.caches.take_stale();
        drops
    }

    /// Whether to find out if the stores of a wave change anything.
    fn compares(&self, wave: Thread) -> bool {
        !self.polling[wave as usize].states.is_empty() || self.polling.iter().any(|polling| polling.blocked)
    }

    fn mark_dirty(&mut self, footprint: &Footprint) {
        self.note_stores(footprint);
        for range in footprint.stores.iter().filter(|range| range.space == Space::Global) {
            self.dirty.extend(range.start / PAGE..=range.end.saturating_sub(1) / PAGE);
        }
    }

    fn first_of_cluster(&self, group: u64) -> u64 {
        let workgroups = u64::from(self.dispatch.cluster_workgroups());
        group / workgroups * workgroups
    }

    /// Returns the state of barriers before a step of a wave.
    fn barriers(&self, group: u64, wave: usize) -> BarrierState {
        let Some(running) = self.control.group(group) else { return BarrierState::default() };
        let slot = &running.slots[wave];
        BarrierState {
            completed: std::array::from_fn(|index| running.shared.barrier(index).completed),
            passed: slot.wave.passed,
            waits: match slot.status {
                Status::Waiting(barrier) => Some(barrier),
                Status::Running | Status::Ended => None,
            },
        }
    }

    /// Records the barriers that a step has waited for and completed.
    fn note_barriers(&self, group: u64, wave: usize, before: &BarrierState, event: &mut Event) {
        let completion = |barrier: usize, count: u32| {
            let cluster = barrier == BARRIERS - 1;
            let group = if cluster { self.first_of_cluster(group) } else { group };
            Completion { group, barrier: barrier as u8, count }
        };
        if let Some(barrier) = before.waits {
            event.waited.push(completion(barrier, before.passed[barrier].wrapping_add(1)));
        }
        let Some(running) = self.control.group(group) else { return };
        for barrier in 0..BARRIERS {
            let completed = running.shared.barrier(barrier).completed;
            for count in before.completed[barrier]..completed {
                event.completed.push(completion(barrier, count + 1));
            }
            let passed = running.slots[wave].wave.passed[barrier];
            if passed != before.passed[barrier] {
                event.waited.push(completion(barrier, passed));
            }
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct BarrierState {
    completed: [u32; BARRIERS],
    passed: [u32; WAITS],
    waits: Option<usize>,
}
