//! A wave's turn with delayed memory.

use super::pending::{Failure, Machine};
use super::queue::{Queue, When};
use super::{Choices, DelayedMemory, Delays, Inst, OperationId, blocked};
use crate::caches::{Caches, Placement, SharedCaches};
use crate::execute::execute;
use crate::faults::fault_without_handler;
use crate::handlers::{HANDLERS, dispatch};
use crate::observe::{Done, NO_MEMORY, Observer, Step};
use crate::sched::slot::Slot;
use std::sync::atomic::AtomicBool;
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};
use wavesim_machine::exec::watch::{Logs, Watch};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::{Wave, Workgroup};

/// A workgroup whose memory is delayed.
pub(crate) struct DelayedWorkgroup<'g> {
    pub program: &'g Program,
    pub model: &'g DelayedMemory,
    pub memory: &'g Memory,
    pub slots: &'g mut [Slot],
    pub queues: &'g mut [Queue],
    pub shadow: &'g mut Wave,
    pub shared: &'g mut Workgroup,
    /// Its place in the order of starts.
    pub index: u64,
    pub choices: Option<&'g Choices>,
    pub caches: &'g SharedCaches,
    /// By wave; empty if caches are always coherent.
    pub placements: &'g [Placement],
    pub lds: &'g mut [u8],
    /// Scratch of all waves, and of each wave and lane in bytes.
    pub scratch: &'g mut [u8],
    pub wave_scratch: usize,
    pub scratch_stride: u32,
    pub cancel: Option<&'g AtomicBool>,
    /// Instructions that the workgroup has executed.
    pub executed: &'g mut u64,
}

/// Why a turn has ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An event of the wave.
    Event(Event),
    /// An operation of any wave has failed.
    Operation(Failure),
}

impl From<Event> for Stop {
    fn from(event: Event) -> Stop {
        Stop::Event(event)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Operation(failure)
    }
}

/// Runs a wave for at most `instructions`, and performs the operations of all waves that become due.
pub(crate) fn run<O: Observer + ?Sized>(
    group: DelayedWorkgroup<'_>,
    wave: usize,
    instructions: u64,
    observer: Option<&mut O>,
) -> Result<(), Stop> {
    let start = *group.executed;
    let end = start.saturating_add(instructions);
    let mut logs = Logs::default();
    Turn { group, wave, start, end, next_due: 0, observer, logs: &mut logs }.run()
}

struct Turn<'t, 'g, O: ?Sized> {
    group: DelayedWorkgroup<'g>,
    wave: usize,
    /// The number of instructions of the workgroup at the start of the turn.
    start: u64,
    /// The turn ends at this number of instructions of the workgroup.
    end: u64,
    /// The next instruction count at which an operation is due.
    next_due: u64,
    observer: Option<&'t mut O>,
    /// The logs of an observed run, and of waits.
    logs: &'t mut Logs,
}

impl<O: Observer + ?Sized> Turn<'_, '_, O> {
    fn run(&mut self) -> Result<(), Stop> {
        while *self.group.executed < self.end {
            if *self.group.executed >= self.next_due {
                self.perform_due()?;
            }
            let pc = self.group.slots[self.wave].wave.pc;
            let index = self.group.program.any_op_at(pc).map(|op| op.number as usize);
            let index = index.filter(|index| !self.group.model.is_plain(*index));
            // `any_op_at` maps a hole to the instruction after it.
            match index.filter(|index| self.group.program.pcs[*index] == pc) {
                None => self.run_plain()?,
                Some(index) if self.stops_before(index) => return Ok(()),
                Some(_) if !self.begin(pc) => return Ok(()),
                Some(index) => self.step(index, pc)?,
            }
        }
        Ok(())
    }

    /// Performs the operations that are due.
    #[inline(never)]
    fn perform_due(&mut self) -> Result<(), Stop> {
        let now = *self.group.executed;
        self.next_due = u64::MAX;
        for wave in 0..self.group.queues.len() {
            let runs = wave == self.wave;
            if self.group.queues[wave].next_due(runs) <= now {
                self.with_queue(wave, |queue, machine, shadow, wave, observer| {
                    queue.advance(now, machine, shadow, wave, observer, runs)
                })?;
            }
            self.next_due = self.next_due.min(self.group.queues[wave].next_due(runs));
        }
        Ok(())
    }

    /// Calls `f` with the queue of a wave, and what its operations need.
    fn with_queue(&mut self, wave: usize, f: impl OnQueue<O>) -> Result<(), Stop> {
        with_queue(&mut self.group, wave, self.logs, &mut self.observer, f)?;
        Ok(())
    }

    /// Completes the operations of the running wave that these waits show to be complete; without waits, all of them.
    fn wait(&mut self, waits: Option<&[(Counter, u32)]>) -> Result<(), Stop> {
        let queue = &mut self.group.queues[self.wave];
        queue.forget_quick(waits);
        if queue.is_empty() {
            return Ok(());
        }
        self.with_queue(self.wave, |queue, machine, shadow, wave, observer| {
            queue.wait(waits, machine, shadow, wave, observer)
        })
    }

    /// Returns whether the turn ends before an instruction that issues or waits, so that the caller can choose what
    /// happens first.
    fn stops_before(&self, index: usize) -> bool {
        let group = &self.group;
        let (queue, wave) = (&group.queues[self.wave], &group.slots[self.wave].wave);
        if !group.choices.is_some_and(|choices| choices.stops) || !queue.has_late() {
            return false;
        }
        let is_first = *group.executed == self.start;
        queue.blocks(group.model, group.program, index, wave)
            || !is_first
                && (group.model.waits(index) || queue.touched(group.model, index, wave).next().is_some())
    }

    /// Calls the observer before an instruction. Returns false if the turn ends.
    fn begin(&mut self, pc: u64) -> bool {
        let Some(observer) = &mut self.observer else { return true };
        let DelayedWorkgroup { program, slots, shared, executed, .. } = &self.group;
        let Some(index) = program.inst_at(pc) else { return true };
        let wave = &slots[self.wave].wave;
        observer.before(&Step { program, index, pc, wave, group: shared, time: **executed }).is_continue()
    }

    /// Runs an instruction that issues an operation, or waits.
    fn step(&mut self, index: usize, pc: u64) -> Result<(), Stop> {
        let model = self.group.model;
        match &model.insts[index] {
            Inst::Plain => {}
            Inst::Wait(waits) => self.wait(Some(waits))?,
            Inst::WaitAll => self.wait(None)?,
            Inst::Serial => {
                self.wait(None)?;
                if !self.group.placements.is_empty() {
                    self.group.caches.flush();
                }
            }
            Inst::Merge(halves) => {
                let wave = &self.group.slots[self.wave].wave;
                self.group.queues[self.wave].lose_halves(halves, wave);
            }
            Inst::Invalidate(caches) => self.invalidate(*caches),
            Inst::ComputedWait => {
                let wave = &self.group.slots[self.wave].wave;
                let waits = blocked::computed_waits(self.group.program, index, wave);
                self.wait(Some(&waits))?;
            }
            Inst::Operation(operation) => {
                if self.group.queues[self.wave].is_full() {
                    self.with_queue(self.wave, |queue, machine, shadow, wave, observer| {
                        queue.complete(0, machine, shadow, wave, observer)?;
                        queue.retire();
                        Ok(())
                    })?;
                }
                self.invalidate(operation.invalidates);
                let DelayedWorkgroup {
                    program,
                    slots,
                    queues,
                    executed,
                    choices,
                    index: group,
                    placements,
                    ..
                } = &mut self.group;
                let (queue, wave) = (&mut queues[self.wave], &mut slots[self.wave].wave);
                let id = OperationId { group: *group, wave: self.wave as u32, number: queue.issued() };
                let late = choices.is_none_or(|choices| (choices.is_late)(id, index));
                let policy = operation.policy;
                let cached = !placements.is_empty() && (policy.global || policy.writes_back);
                // Up to the wait that demands it, the wave goes on alone, and uses none of its results.
                let waited = **executed + u64::from(model.private[index]);
                let is_private = model.private[index] > 0 && waited < self.end && waited < self.next_due;
                let when = When { now: **executed, late, cached, is_private };
                if queue.issue(model, operation, index, wave, when) {
                    self.next_due = self.next_due.min(queue.next_due(true));
                    wave.pc += program.insts[index].size as u64;
                    if cached && policy.writes_back {
                        self.before_write_back()?;
                    }
                    if model.delays == Delays::Demanded {
                        self.issued(late)?;
                    }
                    self.end_step(index, pc);
                    return Ok(());
                }
            }
        }
        self.run_one(index, pc)
    }

    /// Discards the contents of caches of the running wave.
    fn invalidate(&mut self, caches: Caches) {
        if let Some(placement) = self.group.placements.get(self.wave).filter(|_| !caches.is_empty()) {
            self.group.caches.invalidate(placement, caches);
        }
    }

    /// After the issue of a write-back: stores of other waves that were issued before reach the cache before.
    fn before_write_back(&mut self) -> Result<(), Stop> {
        let own = self.wave;
        for other in (0..self.group.queues.len()).filter(|other| *other != own) {
            self.with_queue(other, |queue, machine, shadow, wave, observer| {
                queue.perform_all(machine, shadow, wave, observer)
            })?;
        }
        Ok(())
    }

    /// After the issue of an operation whose delay is chosen: finds out what must come before it, or performs it if it is
    /// not delayed.
    fn issued(&mut self, late: bool) -> Result<(), Stop> {
        if !late {
            self.perform_due()?;
            // Those that have been performed before it, because they must be, hold it up no more.
            return self.with_queue(self.wave, |queue, _, _, wave, _| {
                queue.return_followers(wave);
                Ok(())
            });
        }
        if self.group.choices.is_some_and(|choices| choices.stops) {
            return self.with_queue(self.wave, |queue, machine, shadow, wave, _| {
                queue.order_last(machine, shadow, wave);
                Ok(())
            });
        }
        Ok(())
    }

    /// Counts an instruction without effects, and calls the observer.
    fn end_step(&mut self, index: usize, pc: u64) {
        *self.group.executed += 1;
        if let Some(observer) = &mut self.observer {
            let DelayedWorkgroup { program, slots, shared, executed, lds, .. } = &self.group;
            let wave = &slots[self.wave].wave;
            let step = Step { program, index, pc, wave, group: shared, time: **executed };
            observer.after(&step, &Done::of(self.logs, lds, None, false));
            self.logs.clear();
        }
    }
}

impl<O: Observer + ?Sized> Turn<'_, '_, O> {
    /// Runs an instruction at once.
    fn run_one(&mut self, index: usize, pc: u64) -> Result<(), Stop> {
        match self.observer {
            None => self.run_handlers(true),
            Some(_) => self.run_observed(Some((index, pc))),
        }
    }

    /// Runs instructions that neither issue nor wait, until the turn ends or an operation is due.
    fn run_plain(&mut self) -> Result<(), Stop> {
        match self.observer {
            None => self.run_handlers(false),
            Some(_) => self.run_observed(None),
        }
    }

    /// Runs instructions as the interpreter does, up to one that issues or waits, which runs only if it is the first
    /// one and `first` is set.
    fn run_handlers(&mut self, mut first: bool) -> Result<(), Stop> {
        let limit = self.end.min(self.next_due);
        let group = &mut self.group;
        let (program, model, executed) = (group.program, group.model, &mut *group.executed);
        let from = self.wave * group.wave_scratch;
        let mut context = Context {
            memory: group.memory,
            lds: &mut *group.lds,
            scratch: &mut group.scratch[from..from + group.wave_scratch],
            scratch_stride: group.scratch_stride,
            workgroup: &mut *group.shared,
            instructions: *executed,
            cancel: group.cancel,
        };
        let wave = &mut group.slots[self.wave].wave;
        let Some(op) = program.any_op_at(wave.pc) else {
            return Err(fault_without_handler(&END, None).into());
        };
        let pools = program.lowered().pools();
        let mut cx = Cx::new(&HANDLERS, Avx2::detect(), program.arch, wave, &mut context, pools, 0);
        cx.op = op;
        let event = loop {
            let op = cx.op;
            let index = op.number as usize;
            let is_plain = model.is_plain(index) || program.pcs.get(index) != Some(&cx.pc());
            if !first && (*executed >= limit || !is_plain) {
                cx.wave.pc = cx.pc();
                return Ok(());
            }
            // SAFETY: the operation belongs to the program of `cx`.
            match unsafe { dispatch(&mut cx, op) } {
                Flow::NEXT | Flow::MODE => {
                    let completed = (op.complete() - op.number) as u64;
                    // The rest of an instruction of several operations.
                    first &= completed == 0;
                    *executed += completed;
                    cx.instructions += completed;
                    cx.op = program.op_after(op);
                }
                Flow::JUMP => {
                    first = false;
                    *executed += 1;
                    cx.instructions += 1;
                    program.jump(cx.wave, cx.jump);
                    match program.any_op_at(cx.wave.pc) {
                        Some(target) => cx.op = target,
                        None => {
                            break fault_without_handler(&END, None);
                        }
                    }
                }
                flow => {
                    let pc = cx.pc();
                    cx.wave.pc = pc;
                    if program.pcs.get(index) != Some(&pc) {
                        break fault_without_handler(op, None);
                    }
                    *executed += 1;
                    let (next, event) = execute(&mut cx, program, index, Some(flow));
                    let faulted = matches!(event, Some(Event::Fault(_)));
                    match faulted {
                        true => cx.wave.pc = pc,
                        false => program.jump(cx.wave, next),
                    }
                    match event {
                        Some(event) => break event,
                        None => return Ok(()),
                    }
                }
            }
        };
        self.stop(event)
    }

    /// As [`Turn::run_handlers`], for one instruction at a time, which `before` has accepted if it is given.
    fn run_observed(&mut self, mut given: Option<(usize, u64)>) -> Result<(), Stop> {
        let limit = self.end.min(self.next_due);
        let Some(observer) = &mut self.observer else { return Ok(()) };
        let group = &mut self.group;
        let (program, model, executed) = (group.program, group.model, &mut *group.executed);
        let from = self.wave * group.wave_scratch;
        let mut nothing = ([0u8; 0], [0u8; 0]);
        let mut watch = Watch {
            memory: group.memory,
            lds: &mut *group.lds,
            scratch: &mut group.scratch[from..from + group.wave_scratch],
            scratch_stride: group.scratch_stride,
            logs: &mut *self.logs,
            quiet: false,
            keep_going: observer.keeps_going(),
            keeps_loads: false,
        };
        let mut context = Context {
            memory: &NO_MEMORY,
            lds: &mut nothing.0,
            scratch: &mut nothing.1,
            scratch_stride: 0,
            workgroup: &mut *group.shared,
            instructions: *executed,
            cancel: group.cancel,
        };
        let wave = &mut group.slots[self.wave].wave;
        let pools = program.lowered().pools();
        let mut cx = Cx::new(&HANDLERS, Avx2::detect(), program.arch, wave, &mut context, pools, 0);
        cx.watch = Some(&mut watch);
        let event = loop {
            let pc = cx.wave.pc;
            let accepted = given.take();
            if accepted.is_none() && *executed >= limit {
                return Ok(());
            }
            let Some(op) = program.any_op_at(pc) else { break fault_without_handler(&END, None) };
            cx.op = op;
            let index = op.number as usize;
            if program.pcs.get(index) != Some(&pc) {
                break fault_without_handler(op, None);
            }
            if accepted.is_none() {
                if !model.is_plain(index) {
                    return Ok(());
                }
                let queue = &group.queues[self.wave];
                if group.choices.is_some_and(|choices| choices.stops)
                    && *executed > self.start
                    && queue.touched(model, index, cx.wave).next().is_some()
                {
                    self.end = *executed;
                    return Ok(());
                }
                let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time: *executed };
                if observer.before(&step).is_break() {
                    self.end = *executed;
                    return Ok(());
                }
            }
            *executed += 1;
            cx.instructions += 1;
            let (next, event) = execute(&mut cx, program, index, None);
            match event {
                Some(Event::Fault(_)) => cx.wave.pc = pc,
                _ => program.jump(cx.wave, next),
            }
            let jumped = next != pc + program.insts[index].size as u64;
            let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time: *executed };
            observer.after(&step, &crate::observe::done(&cx.watch, event.as_ref(), jumped));
            if let Some(watch) = &mut cx.watch {
                watch.logs.clear();
            }
            if let Some(event) = event {
                break event;
            }
        };
        self.stop(event)
    }

    /// Ends the turn with an event; at its end, a wave completes its operations.
    fn stop(&mut self, event: Event) -> Result<(), Stop> {
        if event == Event::EndPgm {
            self.wait(None)?;
        }
        Err(event.into())
    }
}

/// The end of a program.
static END: Op = Op::end();

/// A function that performs or completes operations of a queue, given what they need, the shadow wave, and their
/// wave.
pub(crate) trait OnQueue<O: ?Sized>:
    FnOnce(&mut Queue, &mut Machine<'_>, &mut Wave, &mut Wave, &mut Option<&mut O>) -> Result<(), Failure>
{
}

impl<O: ?Sized, F> OnQueue<O> for F where
    F: FnOnce(&mut Queue, &mut Machine<'_>, &mut Wave, &mut Wave, &mut Option<&mut O>) -> Result<(), Failure>
{
}

/// Calls `f` with the queue of a wave of a workgroup, and what its operations need.
pub(crate) fn with_queue<O: Observer + ?Sized>(
    group: &mut DelayedWorkgroup<'_>,
    wave: usize,
    logs: &mut Logs,
    observer: &mut Option<&mut O>,
    f: impl OnQueue<O>,
) -> Result<(), Failure> {
    let keep_going = observer.as_ref().is_some_and(|observer| observer.keeps_going());
    let from = wave * group.wave_scratch;
    let mut machine = Machine {
        program: group.program,
        memory: group.memory,
        lds: &mut *group.lds,
        scratch: &mut group.scratch[from..from + group.wave_scratch],
        scratch_stride: group.scratch_stride,
        workgroup: &mut *group.shared,
        instructions: *group.executed,
        cancel: group.cancel,
        logs,
        observed: observer.is_some(),
        keep_going,
        caches: group.placements.get(wave).map(|placement| (group.caches, *placement)),
    };
    f(&mut group.queues[wave], &mut machine, &mut *group.shadow, &mut group.slots[wave].wave, observer)
}
