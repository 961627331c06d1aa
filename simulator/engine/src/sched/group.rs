//! One workgroup: its waves, LDS and scratch, and the order of their turns. The objects are reused from
//! workgroup to workgroup, and, through a [`Pool`], from dispatch to dispatch.

mod faults;
mod outstanding;

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
use crate::delayed;
use crate::float_control::DefaultFloatControl;
use crate::interp;
use crate::observe::{self, NoObserver, Observer};
use smallvec::SmallVec;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::Workgroup;
use wavesim_machine::state::barrier::CLUSTER_INDEX;
use wavesim_machine::state::scratch;

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
    /// No wave can run before other workgroups have done something: signalled the barrier of the cluster, or arrived at
    /// a resource of global wave sync.
    ForOthers,
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
            delayed: dispatch.delayed.map(|_| delayed::State::new(waves, lanes, dispatch.choices())),
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
        if self.dispatch.meets() {
            *self.shared.gws() = self.dispatch.gws_at_start();
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
            state.placements = self.dispatch.placements(id);
        }
        self.initial.set_workgroup(&self.dispatch.shape.init.layout, id, cluster.as_ref());
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.status = Status::Running;
            start(self.dispatch, &self.initial, &mut slot.wave, index as u32);
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
                if self.waits_for_others() {
                    budget.return_unused(std::mem::take(&mut self.allowance));
                    return Ok(Pause::ForOthers);
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
    pub fn ready(&mut self, wave_index: usize) -> bool {
        let Slot { wave, status } = &mut self.slots[wave_index];
        is_ready(wave, status, &self.shared)
    }

    /// Whether a wave waits for what other workgroups do.
    pub fn waits_for_others(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.status, Status::Waiting(CLUSTER_INDEX..)))
    }

    /// Whether [`RunningGroup::ready`] would return true.
    pub fn can_run(&self, wave_index: usize) -> bool {
        let slot = &self.slots[wave_index];
        match slot.status {
            Status::Running => true,
            Status::Waiting(barrier) => self.shared.has_released(barrier, &slot.wave.passed),
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
    pub fn advance(&mut self, wave_index: usize, instructions: u64) -> Result<(), Box<Fault>> {
        if self.delayed.is_some() {
            return self.advance_delayed::<NoObserver>(wave_index, instructions, None);
        }
        let (program, compiled) = (self.dispatch.program, self.compiled());
        let (slot, mut context, executed) = self.split(wave_index);
        let (wave, no_others) = (&mut slot.wave, &mut interp::SingleWave);
        let result =
            interp::run_waves(program, wave, &mut context, instructions, executed, compiled, no_others);
        self.apply_result(wave_index, result)
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
            initial: &mut self.initial,
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
        wave_index: usize,
        instructions: u64,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        let _float_control = DefaultFloatControl::set();
        if self.delayed.is_some() {
            return self.advance_delayed(wave_index, instructions, Some(observer));
        }
        let program = self.dispatch.program;
        let (slot, mut context, executed) = self.split(wave_index);
        let result = observe::run(program, &mut slot.wave, &mut context, instructions, executed, observer);
        self.apply_result(wave_index, result)
    }

    /// Splits the workgroup into a wave, the context that it runs in, and the instruction counter.
    #[inline(always)]
    fn split(&mut self, wave_index: usize) -> (&mut Slot, Context<'_>, &mut u64) {
        let per_wave = wave_scratch(self.dispatch);
        let context = Context {
            memory: self.memory,
            lds: &mut self.lds,
            scratch: &mut self.scratch[wave_index * per_wave..(wave_index + 1) * per_wave],
            scratch_stride: self.dispatch.shape.scratch_bytes,
            workgroup: &mut self.shared,
            instructions: self.executed,
            cancel: self.dispatch.cancel,
        };
        (&mut self.slots[wave_index], context, &mut self.executed)
    }

    /// Applies the event that stopped a wave.
    #[inline(always)]
    fn apply_result(&mut self, wave_index: usize, result: Result<(), Event>) -> Result<(), Box<Fault>> {
        let Err(event) = result else { return Ok(()) };
        let Slot { wave, status } = &mut self.slots[wave_index];
        match apply_event(wave, status, &mut self.shared, event) {
            None => Ok(()),
            Some(event) => {
                let pc = wave.pc;
                Err(self.fault(wave_index, pc, event))
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
    scratch::size(d.shape.scratch_bytes, d.shape.wave_size)
}

impl RunningGroup<'_> {
    /// Reads bytes of the scratch of a lane, counted from the workgroup's first one. Returns `None` if they are not all
    /// inside.
    pub fn read_scratch(&self, lane: usize, address: u64, to: &mut [u8]) -> Option<()> {
        let (per_lane, size) = (self.dispatch.shape.scratch_bytes, self.dispatch.shape.wave_size);
        let own = self.scratch.get(lane / size as usize * wave_scratch(self.dispatch)..)?;
        scratch::read(own, per_lane, (lane % size as usize) as u32, address, to)
    }

    /// Writes bytes of a lane's scratch, as [`RunningGroup::read_scratch`] reads them.
    pub fn write_scratch(&mut self, lane: usize, address: u64, from: &[u8]) -> Option<()> {
        let (per_lane, size) = (self.dispatch.shape.scratch_bytes, self.dispatch.shape.wave_size);
        let own = self.scratch.get_mut(lane / size as usize * wave_scratch(self.dispatch)..)?;
        scratch::write(own, per_lane, (lane % size as usize) as u32, address, from)
    }
}
