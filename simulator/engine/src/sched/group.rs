//! One workgroup: its waves, LDS and scratch, and the order of their turns. The objects are reused from
//! workgroup to workgroup, and, through a [`Pool`], from dispatch to dispatch.

use super::launch::{Budget, Dispatch};
use super::next_ready::{Limits, TURN};
use super::order::splitmix64;
pub use super::pool::Pool;
use super::pool::Spare;
use super::queue::{Followers, Succession, new_workgroup, zero};
use super::round::Round;
pub use super::slot::{Slot, Status};
use super::slot::{apply_event, is_ready, park};
use super::start::{InitialRegisters, start};
use crate::delayed::{self, Outstanding, Queue};
use crate::float_control::DefaultFloatControl;
use crate::interp;
use crate::observe::{self, Done, NoObserver, Observer, Step};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, Logs, Place};
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::Workgroup;
use wavesim_machine::state::barrier::CLUSTER_INDEX;

/// Number of instructions taken from the dispatch's budget at a time: threads share its counter, and turns
/// may be short.
const ALLOWANCE: u64 = 1 << 16;

/// While there is no compiled code, hotness is counted in one turn out of this many. Where straight-line
/// regions between barriers are short, counting takes a few percent of the time.
const COUNTING_INTERVAL: u32 = 16;

/// Scratch of a workgroup up to this size is zeroed in place.
const MAX_ZEROED_IN_PLACE: usize = 4 << 20;

/// Why a workgroup stops running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// All of its waves have ended.
    Ended,
    /// Its slice is used up.
    Slice,
    /// No wave can run before other workgroups of the cluster have signalled its barrier.
    AtCluster,
}

/// A workgroup in progress.
#[derive(Clone)]
pub struct RunningGroup<'a> {
    dispatch: &'a Dispatch<'a>,
    memory: &'a Memory,
    initial: InitialRegisters,
    /// The workgroup's coordinates.
    pub id: [u32; 3],
    /// Its index in the order of starts.
    pub index: u64,
    pub slots: Vec<Slot>,
    /// Spare waves left from larger workgroups, kept for the pool.
    spare: Vec<Slot>,
    pub shared: Workgroup,
    /// LDS of the workgroup, [`Shape::lds_bytes`](super::launch::Shape::lds_bytes) bytes long.
    pub lds: Vec<u8>,
    /// Scratch of all waves, lane by lane.
    pub scratch: Vec<u8>,
    /// The waves' indices in the order of their turns in this round.
    order: Vec<usize>,
    random: u64,
    /// Instructions taken from the budget and not yet used.
    allowance: u64,
    /// Instructions of all workgroups that this object has run.
    pub executed: u64,
    /// Number of turns for which compiled code was considered.
    turns: u32,
    /// Outstanding operations, with delayed memory.
    delayed: Option<delayed::State>,
}

impl<'a> RunningGroup<'a> {
    /// Creates a workgroup object. `dispatch` has passed [`Dispatch::check`].
    pub fn new(dispatch: &'a Dispatch<'a>, memory: &'a Memory) -> RunningGroup<'a> {
        let (waves, lanes) = (dispatch.waves() as usize, dispatch.shape.wave_size);
        let mut spare = dispatch.pool.and_then(|pool| pool.take(lanes)).unwrap_or_default();
        spare.resize(waves, lanes);
        let Spare { slots, spare, mut lds } = spare;
        lds.resize(dispatch.shape.lds_bytes as usize, 0);
        RunningGroup {
            dispatch,
            memory,
            initial: InitialRegisters::new(dispatch),
            id: [0; 3],
            index: 0,
            slots,
            spare,
            shared: Workgroup::default(),
            lds,
            scratch: vec![0; wave_scratch(dispatch) * waves],
            order: (0..waves).collect(),
            random: 0,
            allowance: 0,
            executed: 0,
            turns: 0,
            delayed: dispatch.delayed.map(|_| delayed::State::new(waves, lanes)),
        }
    }

    /// Returns the reusable parts to the dispatch's pool.
    pub fn recycle(self) {
        if let Some(pool) = self.dispatch.pool {
            pool.put(Spare { slots: self.slots, spare: self.spare, lds: self.lds });
        }
    }

    /// Starts the workgroup that starts as the `index`-th ([`Dispatch::workgroup`]). Registers and memory of the
    /// previous one are cleared: results never depend on earlier workgroups.
    pub fn start(&mut self, index: u64) {
        let id = self.dispatch.workgroup(index);
        (self.id, self.index) = (id, index);
        self.shared = new_workgroup(self.dispatch, self.slots.len());
        let cluster = self.dispatch.cluster_place(id);
        if let Some(place) = cluster {
            self.shared.set_cluster(place);
        }
        match self.dispatch.poison {
            None => {
                zero(&mut self.lds);
                clear_scratch(&mut self.scratch);
            }
            Some(poison) => poison.fill(id, &mut self.lds, &mut self.scratch),
        }
        if let (Some(state), Some(model)) = (&mut self.delayed, self.dispatch.delayed) {
            state.start(model.delays, id);
        }
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.status = Status::Running;
            start(self.dispatch, &self.initial, &mut slot.wave, id, cluster.as_ref(), index as u32);
        }
        if let Some(seed) = self.dispatch.schedule.seed() {
            let [x, y, z] = id.map(u64::from);
            self.random = seed ^ x ^ y << 20 ^ z << 40;
        }
    }

    /// Runs the workgroup until it ends, waits for its cluster, or has executed `slice` instructions. Others may
    /// then have started in its place and ended: the object has the last one.
    pub fn run(
        &mut self,
        budget: &Budget,
        slice: u64,
        followers: Option<Followers<'_>>,
    ) -> Result<Pause, Box<Fault>> {
        self.run_with::<NoObserver>(budget, slice, followers, None)
    }

    /// As [`RunningGroup::run`], with an observer of every instruction.
    pub fn run_observed<O: Observer + ?Sized>(
        &mut self,
        budget: &Budget,
        slice: u64,
        observer: &mut O,
    ) -> Result<Pause, Box<Fault>> {
        self.run_with(budget, slice, None, Some(observer))
    }

    fn run_with<O: Observer + ?Sized>(
        &mut self,
        budget: &Budget,
        slice: u64,
        followers: Option<Followers<'_>>,
        mut observer: Option<&mut O>,
    ) -> Result<Pause, Box<Fault>> {
        let _float_control = DefaultFloatControl::set();
        let mut slice_end = self.executed.saturating_add(slice);
        loop {
            self.arrange();
            let mut progress = false;
            let mut turn = 0;
            while let Some(&at) = self.order.get(turn) {
                if !self.ready(at) {
                    turn += 1;
                    continue;
                }
                progress = true;
                let schedule = self.dispatch.schedule;
                let random = schedule.seed().and_then(|_| schedule.turn(self.next_random()));
                let wanted = random.unwrap_or(TURN);
                if self.dispatch.is_cancelled() {
                    return Err(self.interrupted(at));
                }
                if self.allowance < wanted {
                    self.allowance += budget.take(ALLOWANCE);
                }
                let granted = wanted.min(self.allowance);
                if granted == 0 {
                    let limit = budget.limit;
                    let pc = self.slots[at].wave.pc;
                    let message = format!(
                        "{limit} instructions executed without an end: {}",
                        self.describe_positions()
                    );
                    return Err(self.fault(at, pc, Event::fault(FaultKind::InstructionLimit, message)));
                }
                let before = self.executed;
                let result = match &mut observer {
                    None if wanted == TURN && self.delayed.is_none() => {
                        self.advance_round(&mut turn, granted, &mut slice_end, followers)
                    }
                    None => self.advance(at, granted),
                    Some(observer) => self.advance_observed(at, granted, &mut **observer),
                };
                self.allowance = self.allowance.saturating_sub(self.executed - before);
                result?;
                turn += 1;
            }
            if self.shared.live() == 0 {
                budget.return_unused(std::mem::take(&mut self.allowance));
                return Ok(Pause::Ended);
            }
            if !progress {
                if self.waits_for_cluster() {
                    budget.return_unused(std::mem::take(&mut self.allowance));
                    return Ok(Pause::AtCluster);
                }
                return Err(self.deadlock());
            }
            if self.executed >= slice_end {
                budget.return_unused(std::mem::take(&mut self.allowance));
                return Ok(Pause::Slice);
            }
        }
    }

    /// Returns whether the wave can run, and releases it if the barrier that it waits for has completed.
    #[inline(always)]
    pub fn ready(&mut self, at: usize) -> bool {
        let Slot { wave, status } = &mut self.slots[at];
        is_ready(wave, status, &self.shared)
    }

    /// Whether a wave waits for the barrier of the cluster.
    pub fn waits_for_cluster(&self) -> bool {
        self.slots.iter().any(|slot| slot.status == Status::Waiting(CLUSTER_INDEX))
    }

    /// Whether [`RunningGroup::ready`] would return true.
    pub fn can_run(&self, at: usize) -> bool {
        let slot = &self.slots[at];
        match slot.status {
            Status::Running => true,
            Status::Waiting(barrier) => slot.wave.passed[barrier] != self.shared.barrier(barrier).completed,
            Status::Ended => false,
        }
    }

    /// Returns the number of bytes that a copy of the workgroup takes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.slots.iter().map(|s| s.wave.file_bytes()).sum();
        rows + self.lds.len() + self.scratch.len()
    }

    /// Returns the compiled code if this turn should use it or count hotness for it.
    #[inline(always)]
    fn compiled(&mut self) -> Option<&'a dyn interp::Compiled> {
        let compiled = self.dispatch.compiled?;
        let counts = self.turns.is_multiple_of(COUNTING_INTERVAL);
        self.turns = self.turns.wrapping_add(1);
        (counts || compiled.is_ready()).then_some(compiled)
    }

    /// Runs a ready wave for at most `instructions`.
    pub fn advance(&mut self, at: usize, instructions: u64) -> Result<(), Box<Fault>> {
        if self.delayed.is_some() {
            return self.advance_delayed::<NoObserver>(at, instructions, None);
        }
        let (program, compiled) = (self.dispatch.program, self.compiled());
        let (slot, mut context, executed) = self.split(at);
        let (wave, no_others) = (&mut slot.wave, &mut interp::SingleWave);
        let result =
            interp::run_waves(program, wave, &mut context, instructions, executed, compiled, no_others);
        self.apply_result(at, result)
    }

    /// Runs the wave whose turn it is for at most `instructions`. If the wave waits at a barrier or ends
    /// before its turn is over, the waves after it run, round after round, until the instruction count
    /// reaches `slice_end`; if the workgroup ends, the next of `followers` starts in its place. `turn` is set to that
    /// of the last wave run, `slice_end` to that of the last workgroup.
    #[inline(always)]
    fn advance_round(
        &mut self,
        turn: &mut usize,
        instructions: u64,
        slice_end: &mut u64,
        followers: Option<Followers<'_>>,
    ) -> Result<(), Box<Fault>> {
        let (program, compiled) = (self.dispatch.program, self.compiled());
        // While there is no code, hotness is counted in some turns only, which must be short.
        let follows = self.dispatch.compiled.is_none_or(|code| code.is_ready())
            && self.dispatch.poison.is_none()
            && self.scratch.len() <= MAX_ZEROED_IN_PLACE;
        let succession = followers.filter(|_| follows).map(|followers| Succession {
            dispatch: self.dispatch,
            followers,
            initial: &self.initial,
            id: &mut self.id,
            index: &mut self.index,
        });
        let per_wave = wave_scratch(self.dispatch);
        // The context is declared before the round because the round's waves borrow from it.
        let mut context = Context {
            memory: self.memory,
            lds: &mut self.lds,
            scratch: &mut [],
            scratch_stride: self.dispatch.shape.scratch_bytes,
            workgroup: &mut self.shared,
            instructions: self.executed,
            cancel: self.dispatch.cancel,
        };
        let mut waves = SmallVec::new();
        park(&mut waves, &mut self.slots, &mut self.scratch, per_wave, &self.order);
        let mut round = Round {
            waves: &mut waves,
            turn: *turn,
            limits: Limits {
                budget_end: self.executed.saturating_add(self.allowance),
                slice_end: *slice_end,
            },
            cancel: self.dispatch.cancel,
            pools: program.lowered().pools(),
            succession,
        };
        let (wave, scratch) = round.take().expect("no wave of a new round runs yet");
        context.scratch = scratch;
        let executed = &mut self.executed;
        let result =
            interp::run_waves(program, wave, &mut context, instructions, executed, compiled, &mut round);
        (*turn, *slice_end) = (round.turn, round.limits.slice_end);
        drop(waves);
        self.apply_result(self.order[*turn], result)
    }

    /// As [`RunningGroup::advance`], observed.
    pub fn advance_observed<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        instructions: u64,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        let _float_control = DefaultFloatControl::set();
        if self.delayed.is_some() {
            return self.advance_delayed(at, instructions, Some(observer));
        }
        let program = self.dispatch.program;
        let (slot, mut context, executed) = self.split(at);
        let result = observe::run(program, &mut slot.wave, &mut context, instructions, executed, observer);
        self.apply_result(at, result)
    }

    /// As [`RunningGroup::advance`], with delayed memory.
    fn advance_delayed<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        instructions: u64,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        let Some(group) = self.split_delayed() else { return Ok(()) };
        match delayed::run(group, at, instructions, observer) {
            Ok(()) => Ok(()),
            Err(delayed::Stop::Event(event)) => self.apply_result(at, Err(event)),
            Err(delayed::Stop::Operation(failed)) => Err(self.fault(failed.wave, failed.pc, failed.event)),
        }
    }

    /// Returns what the run of a wave with delayed memory needs; `None` with immediate memory.
    fn split_delayed(&mut self) -> Option<delayed::Group<'_>> {
        let delayed::State { queues, shadow } = self.delayed.as_mut()?;
        Some(delayed::Group {
            program: self.dispatch.program,
            model: self.dispatch.delayed?,
            memory: self.memory,
            slots: &mut self.slots,
            queues,
            shadow,
            shared: &mut self.shared,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            wave_scratch: wave_scratch(self.dispatch),
            scratch_stride: self.dispatch.shape.scratch_bytes,
            cancel: self.dispatch.cancel,
            executed: &mut self.executed,
        })
    }

    /// Returns the outstanding operations of a wave, oldest first; none with immediate memory.
    pub fn outstanding(&self, at: usize) -> impl Iterator<Item = Outstanding> {
        let queue = self.delayed.as_ref().and_then(|state| state.queues.get(at));
        queue.into_iter().flat_map(Queue::outstanding)
    }

    /// Performs a wave's outstanding operation, given by its position among [`RunningGroup::outstanding`], and those
    /// before it that must come first. Nothing happens if it has been performed.
    ///
    /// # Errors
    /// The operation faults.
    pub fn perform<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        operation: usize,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        self.with_queue(at, observer, |queue, machine, shadow, wave, observer| {
            queue.perform(operation, machine, shadow, wave, observer)
        })
    }

    /// As [`RunningGroup::perform`], and writes the results to the wave's registers, after those of the operations that
    /// return before it. Complete operations are then no longer outstanding.
    ///
    /// # Errors
    /// An operation faults.
    pub fn complete<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        operation: usize,
        observer: Option<&mut O>,
    ) -> Result<(), Box<Fault>> {
        self.with_queue(at, observer, |queue, machine, shadow, wave, observer| {
            queue.complete(operation, machine, shadow, wave, observer)?;
            queue.retire();
            Ok(())
        })
    }

    fn with_queue<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        mut observer: Option<&mut O>,
        f: impl delayed::OnQueue<O>,
    ) -> Result<(), Box<Fault>> {
        let _float_control = DefaultFloatControl::set();
        let Some(mut group) = self.split_delayed() else { return Ok(()) };
        let mut logs = Logs::default();
        let result = delayed::with_queue(&mut group, at, &mut logs, &mut observer, f);
        result.map_err(|failed| self.fault(failed.wave, failed.pc, failed.event))
    }

    /// Splits the workgroup into a wave, the context that it runs in, and the instruction counter.
    #[inline(always)]
    fn split(&mut self, at: usize) -> (&mut Slot, Context<'_>, &mut u64) {
        let per_wave = wave_scratch(self.dispatch);
        let context = Context {
            memory: self.memory,
            lds: &mut self.lds,
            scratch: &mut self.scratch[at * per_wave..(at + 1) * per_wave],
            scratch_stride: self.dispatch.shape.scratch_bytes,
            workgroup: &mut self.shared,
            instructions: self.executed,
            cancel: self.dispatch.cancel,
        };
        (&mut self.slots[at], context, &mut self.executed)
    }

    /// Applies the event that stopped a wave.
    #[inline(always)]
    fn apply_result(&mut self, at: usize, result: Result<(), Event>) -> Result<(), Box<Fault>> {
        let Err(event) = result else { return Ok(()) };
        let Slot { wave, status } = &mut self.slots[at];
        match apply_event(wave, status, &mut self.shared, event) {
            None => Ok(()),
            Some(event) => {
                let pc = wave.pc;
                Err(self.fault(at, pc, event))
            }
        }
    }

    /// Determines the order of turns in this round.
    fn arrange(&mut self) {
        let schedule = self.dispatch.schedule;
        if schedule.seed().is_some() {
            for last in (1..self.order.len()).rev() {
                let other = self.next_random() % (last as u64 + 1);
                self.order.swap(last, other as usize);
            }
        }
        schedule.arrange(&mut self.order);
    }

    fn next_random(&mut self) -> u64 {
        let number = splitmix64(self.random);
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        number
    }

    /// Returns the fault for a run that the user stopped, with the position of every wave.
    fn interrupted(&mut self, at: usize) -> Box<Fault> {
        let pc = self.slots[at].wave.pc;
        let executed = self.executed;
        let message = format!("stopped after {executed} instructions: {}", self.describe_positions());
        self.fault(at, pc, Event::fault(FaultKind::Interrupted, message))
    }

    /// Describes the position of every wave, and the locations polled by waves in a loop. The run cannot
    /// continue afterwards: loops are run once more to find out.
    fn describe_positions(&mut self) -> String {
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
    fn describe_polling(&mut self, at: usize) -> String {
        let mut round = Iteration { from: self.slots[at].wave.pc, ..Iteration::default() };
        let _ = self.advance_observed(at, MAX_POLL_LENGTH, &mut round);
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
    pub(super) fn deadlock(&self) -> Box<Fault> {
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
                let state = self.shared.barrier(barrier);
                let verb = if waves.len() == 1 { "waits" } else { "wait" };
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
    pub(super) fn fault_of(&self, at: usize, event: Event) -> Box<Fault> {
        self.fault(at, self.slots[at].wave.pc, event)
    }

    /// Returns the fault of a wave at `pc`.
    #[cold]
    #[inline(never)]
    fn fault(&self, at: usize, pc: u64, event: Event) -> Box<Fault> {
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
            wave: at as u32,
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

/// Zeroes scratch. A large buffer is allocated anew instead, because most of its pages were never touched.
fn clear_scratch(scratch: &mut Vec<u8>) {
    match scratch.len() {
        0..=MAX_ZEROED_IN_PLACE => zero(scratch),
        len => *scratch = vec![0; len],
    }
}

/// Returns the number of bytes of scratch of a wave.
fn wave_scratch(d: &Dispatch<'_>) -> usize {
    d.shape.scratch_bytes as usize * d.shape.wave_size as usize
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
