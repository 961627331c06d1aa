//! The interpreter's rounds and the scheduler for compiled code order waves alike.

use crate::compiled::{Next, Waves};
use crate::handlers::HANDLERS;
use crate::sched::next_ready::Limits;
use crate::sched::order::splitmix64;
use crate::sched::round::Round;
use crate::sched::slot::{Slot, Status, park};
use smallvec::SmallVec;
use std::sync::atomic::AtomicBool;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::lower::Lowered;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{Wave, Workgroup};

/// The status of each wave, and how many barriers it has passed.
type States = Vec<(Status, u32)>;

/// A workgroup whose running wave stops at the barrier 0.
#[derive(Clone)]
struct Case {
    slots: Vec<Slot>,
    order: Vec<usize>,
    turn: usize,
    limits: Limits,
    cancelled: bool,
    instructions: u64,
}

impl Case {
    fn random(mut seed: u64) -> Case {
        let mut random = |limit: u64| {
            seed = splitmix64(seed);
            seed % limit
        };
        let count = 1 + random(6) as usize;
        let group = workgroup(count);
        let slot = |state| {
            let mut wave = Wave::new(32);
            // In state 1, the wave waits for the next completion of the barrier; in state 2, for the last one.
            wave.passed[0] = group.barrier(0).completed.wrapping_sub((state == 2) as u32);
            let status =
                [Status::Running, Status::Waiting(0), Status::Waiting(0), Status::Ended][state as usize];
            Slot { wave, status }
        };
        let mut slots: Vec<Slot> = (0..count).map(|_| slot(random(4))).collect();
        let turn = random(count as u64) as usize;
        let first = random(count as u64) as usize;
        let order: Vec<usize> = (0..count).map(|at| (first + at) % count).collect();
        // The wave that stops may find the barrier complete, as the last one to arrive does.
        slots[order[turn]] = slot(1 + random(2));
        slots[order[turn]].status = Status::Running;
        let limits = Limits { budget_end: 4000 + random(500), slice_end: random(200) };
        Case { slots, order, turn, limits, cancelled: random(3) == 0, instructions: random(200) }
    }

    /// Returns the wave that runs next, the instruction count up to which it may run, and the states of all
    /// waves, by a round or by its scheduler for compiled code.
    fn next(mut self, compiled: bool) -> (Option<(usize, u64)>, States) {
        let (lowered, memory) = (Lowered::default(), Memory::empty());
        let mut group = workgroup(self.slots.len());
        let cancel = AtomicBool::new(self.cancelled);
        let mut context = Context::new(&memory, &mut [], &mut group);
        context.instructions = self.instructions;
        let mut waves = SmallVec::new();
        park(&mut waves, &mut self.slots, &mut [], 0, &self.order);
        let (limits, pools) = (self.limits, lowered.pools());
        let mut round = Round {
            waves: &mut waves,
            turn: self.turn,
            limits,
            cancel: Some(&cancel),
            pools,
            succession: None,
        };
        let found = if compiled {
            let mut scheduler = round.barrier_scheduler().expect("rounds have one");
            // SAFETY: the round is alive and not used; its waves are accessed through it only.
            let next = unsafe { scheduler.wait(0, context.workgroup, self.instructions) };
            next.map(|(_, end)| (scheduler.turn(), end))
        } else {
            let (wave, _) = round.take().expect("no wave runs yet");
            let mut cx = Cx::new(&HANDLERS, None, Arch::Rdna3, wave, &mut context, pools, 0);
            match round.next(&mut cx, Event::BarrierWait(0)) {
                Next::Wave(end) | Next::Workgroup(end) => Some((round.turn, end)),
                Next::None => None,
                Next::Event(event) => panic!("{event:?} is for the scheduler"),
            }
        };
        drop(waves);
        (found, self.slots.iter().map(|slot| (slot.status, slot.wave.passed[0])).collect())
    }
}

/// Returns a workgroup whose barrier 0 has completed once.
fn workgroup(waves: usize) -> Workgroup {
    let mut group = Workgroup::new(waves as u32);
    for _ in 0..waves {
        group.signal(0);
    }
    group
}

#[test]
fn compiled_code_orders_waves_and_notices_cancellation_as_rounds_do() {
    let (mut switched, mut stayed, mut stopped, mut cancelled) = (0, 0, 0, 0);
    for seed in 0..5000 {
        let case = Case::random(seed);
        let (next, states) = case.clone().next(false);
        assert_eq!((next, &states), (case.clone().next(true).0, &case.clone().next(true).1), "case {seed}");
        match next {
            Some((turn, _)) if turn == case.turn => stayed += 1,
            Some(_) => switched += 1,
            None => stopped += 1,
        }
        // The same without cancellation would go on.
        cancelled += (case.cancelled
            && next.is_none()
            && Case { cancelled: false, ..case }.next(false).0.is_some()) as u32;
    }
    for count in [switched, stayed, stopped, cancelled] {
        assert!(count > 100, "{switched} {stayed} {stopped} {cancelled}");
    }
}
