//! Atomics of workgroups on several host threads: none may be lost.

use wavesim::arch::Arch;
use wavesim::exec::program::Program;
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{self, Dispatch, InitialState, Layout, Registers, Schedule, Shape};

const BASE: u64 = 0x10_0000;
const ROUNDS: u32 = 200;

/// Every lane adds 1 to the same dword, `ROUNDS` times.
const ADD: [u32; 11] = [
    0xbe80_00ff,
    0x0010_0000, // s_mov_b32 s0, BASE
    0xbe81_0080, // s_mov_b32 s1, 0
    0x7e00_0280, // v_mov_b32 v0, 0
    0x7e02_0281, // v_mov_b32 v1, 1
    0xb002_00c8, // s_movk_i32 s2, ROUNDS
    0xdcd6_0000,
    0x0000_0100, // global_atomic_add_u32 v0, v1, s[0:1]
    0x8082_8102, // s_sub_u32 s2, s2, 1
    0xbf07_8002, // s_cmp_lg_u32 s2, 0
    0xbfa2_fffb, // s_cbranch_scc1 back to the atomic
];
const END: u32 = 0xbfb0_0000;

#[test]
fn no_atomic_is_lost() {
    let words: Vec<u32> = ADD.into_iter().chain([END]).collect();
    let program = Program::from_words(Arch::Rdna3, &words).expect("a small program");
    for threads in [1, 2, 4] {
        let mut counter = [0u64; 8];
        let mut memory = Memory::empty();
        // SAFETY: `counter` outlives `memory`.
        unsafe { memory.map_host(BASE, counter.as_mut_ptr().cast(), 64, true) }.unwrap();
        let shape = Shape {
            grid: [16, 1, 1],
            block: [64, 1, 1],
            wave_size: 32,
            lds_bytes: 0,
            scratch_bytes: 0,
            registers: Registers::ALL,
            init: InitialState {
                layout: Layout::Text { group_ids: [false; 3], item_ids: [false; 3] },
                mode: 0xf0,
                sgprs: Vec::new(),
            },
            entry_pc: 0,
            code_base: 0,
        };
        let dispatch = Dispatch {
            program: &program,
            shape: &shape,
            max_instructions: 1_000_000,
            schedule: Schedule::RoundRobin,
            order: Default::default(),
            threads,
            cooperative: false,
            progress: None,
            pool: None,
            cancel: None,
            compiled: None,
        };
        dispatch::run(&dispatch, &memory).unwrap();
        drop(memory);
        assert_eq!(counter[0], 16 * 64 * ROUNDS as u64, "{threads} threads");
    }
}
