//! One workgroup: its waves, LDS and scratch, and whose turn it is. The objects are made once and used for workgroup after workgroup.

use super::dispatch::{Budget, Dispatch, INTERRUPT, Schedule};
use super::start::start;
use crate::interp;
use crate::observe::{self, Nobody, Observer};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{Wave, Workgroup};

/// Instructions a wave runs before the next one's turn.
const TURN: u64 = 4096;
/// The same at most, where the schedule is random.
const RANDOM_TURN: u64 = 64;
/// Instructions taken from the dispatch's budget at a time: its count is shared by threads, turns may be short.
const ALLOWANCE: u64 = 1 << 16;

/// Scratch of a workgroup that is zeroed in place.
const FILLED: usize = 4 << 20;

/// What a wave is doing between its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Running,
    /// At the barrier with this index.
    Waiting(usize),
    Ended,
}

/// A wave's place in its workgroup.
#[derive(Clone)]
pub struct Slot {
    pub wave: Wave,
    pub status: Status,
}

/// A workgroup in progress.
#[derive(Clone)]
pub struct Group<'a> {
    dispatch: &'a Dispatch<'a>,
    memory: &'a Memory,
    id: [u32; 3],
    pub slots: Vec<Slot>,
    pub shared: Workgroup,
    pub lds: Vec<u8>,
    /// Of all waves, lane by lane.
    pub scratch: Vec<u8>,
    /// Whose turn it is, in order, this round.
    order: Vec<usize>,
    random: u64,
    /// Instructions taken from the budget and not yet used.
    allowance: u64,
    /// Instructions of all workgroups that this object ran.
    pub executed: u64,
}

impl<'a> Group<'a> {
    /// `dispatch` has passed its [`Dispatch::check`].
    pub fn new(dispatch: &'a Dispatch<'a>, memory: &'a Memory) -> Group<'a> {
        let waves = dispatch.waves() as usize;
        let slot = || Slot { wave: Wave::new(dispatch.shape.wave_size), status: Status::Ended };
        Group {
            dispatch,
            memory,
            id: [0; 3],
            slots: std::iter::repeat_with(slot).take(waves).collect(),
            shared: Workgroup::default(),
            lds: vec![0; dispatch.shape.lds_bytes as usize],
            scratch: vec![0; wave_scratch(dispatch) * waves],
            order: (0..waves).collect(),
            random: 0,
            allowance: 0,
            executed: 0,
        }
    }

    /// Begins the workgroup with these coordinates. Registers and memory of the last one are cleared: results never depend on what ran before.
    pub fn start(&mut self, id: [u32; 3]) {
        self.id = id;
        self.shared = Workgroup::new(self.slots.len() as u32);
        self.lds.fill(0);
        clear(&mut self.scratch);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.wave.reset();
            slot.status = Status::Running;
            start(self.dispatch, &mut slot.wave, id, index as u32);
        }
        if let Schedule::Random(seed) = self.dispatch.schedule {
            let [x, y, z] = id.map(u64::from);
            self.random = seed ^ x ^ y << 20 ^ z << 40;
        }
    }

    /// Runs the workgroup to its end, or until it has executed so many instructions. Returns whether it has ended.
    pub fn run(&mut self, budget: &Budget, slice: u64) -> Result<bool, Box<Fault>> {
        self.run_with::<Nobody>(budget, slice, None)
    }

    /// As [`Group::run`], with an observer of every instruction.
    pub fn run_observed<O: Observer + ?Sized>(
        &mut self,
        budget: &Budget,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        observer.group_started(self.id, self.slots.len());
        self.run_with(budget, u64::MAX, Some(&mut *observer))?;
        observer.group_ended(self.id);
        Ok(())
    }

    fn run_with<O: Observer + ?Sized>(
        &mut self,
        budget: &Budget,
        slice: u64,
        mut observer: Option<&mut O>,
    ) -> Result<bool, Box<Fault>> {
        let started = self.executed;
        loop {
            self.arrange();
            let mut progress = false;
            for turn in 0..self.order.len() {
                let at = self.order[turn];
                if !self.ready(at) {
                    continue;
                }
                progress = true;
                let wanted = match self.dispatch.schedule {
                    Schedule::Random(_) => 1 + self.next_random() % RANDOM_TURN,
                    _ => TURN,
                };
                if INTERRUPT.load(Ordering::Relaxed) {
                    return Err(self.interrupted(at));
                }
                if self.allowance < wanted {
                    self.allowance += budget.take(ALLOWANCE);
                }
                let granted = wanted.min(self.allowance);
                if granted == 0 {
                    let limit = budget.limit;
                    let message = format!("{limit} instructions executed without an end: {}", self.places());
                    let event = Event::fault(FaultKind::InstructionLimit, message);
                    return Err(self.fault(at, self.slots[at].wave.pc, event));
                }
                let before = self.executed;
                let result = match &mut observer {
                    None => self.advance(at, granted),
                    Some(observer) => self.advance_observed(at, granted, &mut **observer),
                };
                self.allowance = self.allowance.saturating_sub(self.executed - before);
                result?;
            }
            if self.slots.iter().all(|s| s.status == Status::Ended) {
                budget.give_back(std::mem::take(&mut self.allowance));
                return Ok(true);
            }
            if !progress {
                return Err(self.deadlock());
            }
            if self.executed - started >= slice {
                budget.give_back(std::mem::take(&mut self.allowance));
                return Ok(false);
            }
        }
    }

    /// Whether the wave can run; one whose barrier has completed goes on.
    pub fn ready(&mut self, at: usize) -> bool {
        let slot = &mut self.slots[at];
        if let Status::Waiting(barrier) = slot.status {
            let completed = self.shared.barrier(barrier).completed;
            if slot.wave.passed[barrier] == completed {
                return false;
            }
            slot.wave.passed[barrier] = completed;
            slot.status = Status::Running;
        }
        slot.status == Status::Running
    }

    /// Whether [`Group::ready`] would return true.
    pub fn can_run(&self, at: usize) -> bool {
        let slot = &self.slots[at];
        match slot.status {
            Status::Running => true,
            Status::Waiting(barrier) => slot.wave.passed[barrier] != self.shared.barrier(barrier).completed,
            Status::Ended => false,
        }
    }

    /// Bytes that a copy of this takes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.slots.iter().map(|s| s.wave.file_bytes()).sum();
        rows + self.lds.len() + self.scratch.len()
    }

    /// Runs a ready wave for at most `instructions`.
    pub fn advance(&mut self, at: usize, instructions: u64) -> Result<(), Box<Fault>> {
        let program = self.dispatch.program;
        let (slot, mut context, executed) = self.parts(at);
        let result = interp::run(program, &mut slot.wave, &mut context, instructions, executed);
        self.stopped(at, result)
    }

    /// As [`Group::advance`], observed.
    pub fn advance_observed<O: Observer + ?Sized>(
        &mut self,
        at: usize,
        instructions: u64,
        observer: &mut O,
    ) -> Result<(), Box<Fault>> {
        let program = self.dispatch.program;
        let (slot, mut context, executed) = self.parts(at);
        let result = observe::run(program, &mut slot.wave, &mut context, instructions, executed, observer);
        self.stopped(at, result)
    }

    /// What running a wave needs: it, what it reaches, and the count of instructions.
    fn parts(&mut self, at: usize) -> (&mut Slot, Context<'_>, &mut u64) {
        let per_wave = wave_scratch(self.dispatch);
        let context = Context {
            memory: self.memory,
            lds: &mut self.lds,
            scratch: &mut self.scratch[at * per_wave..(at + 1) * per_wave],
            scratch_stride: self.dispatch.shape.scratch_bytes,
            workgroup: &mut self.shared,
            instructions: self.executed,
        };
        (&mut self.slots[at], context, &mut self.executed)
    }

    /// Records why a wave stopped.
    fn stopped(&mut self, at: usize, result: Result<(), Event>) -> Result<(), Box<Fault>> {
        let slot = &mut self.slots[at];
        match result {
            Ok(()) => Ok(()),
            Err(Event::EndPgm) => {
                slot.status = Status::Ended;
                self.shared.end_wave(slot.wave.joined);
                Ok(())
            }
            Err(Event::BarrierWait(barrier)) => {
                slot.status = Status::Waiting(barrier);
                Ok(())
            }
            Err(event) => {
                let pc = slot.wave.pc;
                Err(self.fault(at, pc, event))
            }
        }
    }

    /// Decides this round's order.
    fn arrange(&mut self) {
        let count = self.order.len();
        match self.dispatch.schedule {
            Schedule::RoundRobin => {}
            Schedule::Reverse => {
                self.order.iter_mut().enumerate().for_each(|(turn, at)| *at = count - 1 - turn)
            }
            Schedule::Random(_) => {
                for last in (1..count).rev() {
                    let other = self.next_random() % (last as u64 + 1);
                    self.order.swap(last, other as usize);
                }
            }
        }
    }

    /// SplitMix64: any generator will do, so that the order is the seed's.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// The user stopped the run: the fault that lists where every wave stands.
    fn interrupted(&self, at: usize) -> Box<Fault> {
        let message = format!("stopped after {} instructions: {}", self.executed, self.places());
        self.fault(at, self.slots[at].wave.pc, Event::fault(FaultKind::Interrupted, message))
    }

    /// Where every wave stands.
    fn places(&self) -> String {
        let program = self.dispatch.program;
        let mut places: BTreeMap<(u64, &str), Vec<usize>> = BTreeMap::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let (pc, how) = match slot.status {
                Status::Running => (slot.wave.pc, "at"),
                Status::Waiting(_) => (self.before(slot.wave.pc), "waiting at"),
                Status::Ended => (u64::MAX, "ended"),
            };
            places.entry((pc, how)).or_default().push(at);
        }
        let parts: Vec<String> = places
            .iter()
            .map(|(&(pc, how), waves)| match how {
                "ended" => format!("{} ended", numbers(waves)),
                _ => format!("{} {how} {}", numbers(waves), program.place(pc)),
            })
            .collect();
        parts.join("; ")
    }

    /// No wave can go on: the fault that lists which waits where.
    fn deadlock(&self) -> Box<Fault> {
        let mut places: BTreeMap<(u64, usize), Vec<usize>> = BTreeMap::new();
        let mut ended = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            match slot.status {
                Status::Waiting(barrier) => {
                    places.entry((self.before(slot.wave.pc), barrier)).or_default().push(at)
                }
                _ => ended.push(at),
            }
        }
        let mut parts: Vec<String> = places
            .iter()
            .map(|(&(pc, barrier), waves)| {
                let state = self.shared.barrier(barrier);
                let verb = if waves.len() == 1 { "waits" } else { "wait" };
                let name = match barrier {
                    0 => "the workgroup's barrier".to_string(),
                    n => format!("barrier {n}"),
                };
                format!(
                    "{} {verb} at {} ({name}: {} of {} waves have signalled)",
                    numbers(waves),
                    self.dispatch.program.place(pc),
                    state.signals,
                    state.members
                )
            })
            .collect();
        if !ended.is_empty() {
            let verb = if ended.len() == 1 { "has" } else { "have" };
            parts.push(format!("{} {verb} ended", numbers(&ended)));
        }
        let first = places.first_key_value().map_or((0, 0), |(&(pc, _), waves)| (waves[0], pc));
        let event = Event::fault(FaultKind::BarrierDeadlock, parts.join("; "));
        self.fault(first.0, first.1, event)
    }

    /// The instruction before `pc` in the code: barriers do not jump.
    fn before(&self, pc: u64) -> u64 {
        let pcs = &self.dispatch.program.pcs;
        let at = pcs.partition_point(|&p| p < pc);
        at.checked_sub(1).map_or(pc, |at| pcs[at])
    }

    /// The fault of a wave at `pc`.
    fn fault(&self, at: usize, pc: u64, event: Event) -> Box<Fault> {
        let (kind, mut message, lane, address) = match event {
            Event::Fault { kind, message, lane, address } => (kind, message, lane, address),
            Event::EndPgm | Event::BarrierWait(_) => (FaultKind::Other, "stopped".to_string(), None, None),
        };
        let program = self.dispatch.program;
        let mut index = program.inst_at(pc);
        if kind == FaultKind::PcOutOfRange
            && let Some(last) = program.ending_at(pc)
        {
            message += " behind its last instruction";
            if program.arch.machine().is_none() {
                message += ", which is no `s_endpgm`";
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

/// Zeroes it. A large one is mapped again instead, because most of its pages were never touched.
fn clear(scratch: &mut Vec<u8>) {
    match scratch.len() {
        0..=FILLED => scratch.fill(0),
        len => *scratch = vec![0; len],
    }
}

/// Bytes of scratch of a wave.
fn wave_scratch(d: &Dispatch<'_>) -> usize {
    d.shape.scratch_bytes as usize * d.shape.wave_size as usize
}

/// `waves 0-3, 7`.
fn numbers(waves: &[usize]) -> String {
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
