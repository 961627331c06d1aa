//! The wave caches of a frame have slots for one workgroup: two waves whose numbers differ by a multiple of
//! the number of slots evict each other.

use super::{program, registers, start};
use std::collections::VecDeque;
use wavesim_engine::interp::{self, BarrierScheduler, Next, Waves};
use wavesim_engine::sched::dispatch::MAX_WAVES;
use wavesim_jit::Jit;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

/// Waiting waves, the next one first. At each barrier the next wave runs, whether the barrier is complete or
/// not.
struct Queue<'a> {
    program: &'a Program,
    waves: VecDeque<&'a mut Wave>,
}

// SAFETY: only `Cx::switch` replaces the wave; the rest of the context is unchanged.
unsafe impl<'a> Waves<'a> for Queue<'a> {
    fn next(&mut self, cx: &mut Cx<'a>, event: Event) -> Next {
        let waits = match event {
            Event::BarrierWait(_) => true,
            Event::EndPgm => false,
            fault => return Next::Event(fault),
        };
        let Some(next) = self.waves.pop_front() else { return Next::None };
        let (before, _) = cx.switch(next, &mut [], self.program.lowered().pools());
        if waits {
            self.waves.push_back(before);
        }
        Next::Wave(cx.instructions + 100_000)
    }

    fn barrier_scheduler(&mut self) -> Option<BarrierScheduler> {
        None
    }

    fn sync_context(&mut self, _: &mut Cx<'a>, _: usize) {}
}

/// The state and the cached facts of one wave are never used for another one, neither while it waits nor
/// after another wave has evicted it. LDS offsets do not change, so that their classification is cached; each
/// wave has a different order of lanes.
#[test]
fn caches_belong_to_one_wave() {
    let program = program(
        &[
            "s_movk_i32 s4, 40",
            "ds_store_b32 v2, v1",
            "s_barrier",
            "ds_load_b32 v4, v2",
            "v_mad_u32_u24 v1, v1, v4, v5",
            "s_barrier",
            "s_add_i32 s4, s4, -1",
            "s_cmp_lg_u32 s4, 0",
            "s_cbranch_scc1 @1",
            "s_endpgm",
        ],
        32,
    );
    let far = MAX_WAVES as u32;
    let orders: [fn(u32) -> u32; 4] = [|lane| lane, |lane| 31 - lane, |lane| lane ^ 5, |_| 7];
    // One wave per slot, then two or three that share a slot.
    for numbers in [&[3, 4][..], &[3, 3 + far], &[3, 4, 3 + far], &[3, 4, 3 + far, 3 + 2 * far]] {
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        let outcome = |code: Option<&Jit>| {
            let mut waves: Vec<Wave> = numbers
                .iter()
                .zip(orders)
                .zip(0..)
                .map(|((number, order), nth)| {
                    let mut wave = start(32, 0xf0);
                    wave.id = *number;
                    let offset = |lane: usize| 128 * nth + 4 * order(lane as u32);
                    wave.set_lane_vec(0, 2, LaneVec(std::array::from_fn(offset)));
                    wave.set_lane_vec(0, 5, LaneVec([1000 * nth; 32]));
                    wave
                })
                .collect();
            let memory = Memory::empty();
            let (mut lds, mut workgroup, mut executed) = ([0; 512], Workgroup::new(4), 0);
            let mut context = Context::new(&memory, &mut lds, &mut workgroup);
            let mut queue = Queue { program: &program, waves: waves.iter_mut().collect() };
            let first = queue.waves.pop_front().expect("waves");
            let compiled = code.map(|code| code as &dyn interp::Compiled);
            let ended = interp::run_waves(
                &program,
                first,
                &mut context,
                100_000,
                &mut executed,
                compiled,
                &mut queue,
            );
            assert!(ended.is_ok(), "{ended:?}");
            let of = |wave: &Wave| (registers(wave, 16), wave.sgprs, wave.pc);
            (waves.iter().map(of).collect::<Vec<_>>(), lds, executed)
        };
        let expected = outcome(None);
        // The first run compiles the code; in the second one it exists from the beginning.
        for run in 0..2 {
            assert!(outcome(Some(&code)) == expected, "waves {numbers:?}, run {run}");
        }
        assert_eq!((code.stats().failed, code.has_code()), (0, true));
    }
}
