//! Dispatches on several host threads: atomics are not lost, and inherited float control state does not
//! affect results.

use wavesim::arch::Arch;
use wavesim::asm::{NoSymbols, Options, parse};
use wavesim::exec::program::Program;
use wavesim::memory::Memory;
use wavesim::sched::dispatch::{self, Dispatch, InitialState, Layout, Registers, Shape};
use wavesim::sharing::{Means, Threads, sharing};

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

/// 16 workgroups of 64 work-items.
fn shape() -> Shape {
    Shape {
        grid: [16, 1, 1],
        cluster: [1; 3],
        named_barriers: 16,
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
    }
}

/// Runs a program with `data` mapped at [`BASE`] on threads that start at once.
fn run(program: &Program, threads: usize, data: &mut [u64; 8]) {
    run_after(program, threads, 0, data);
}

/// As [`run`], with threads that start after some instructions of the first one.
fn run_after(program: &Program, threads: usize, alone: u64, data: &mut [u64; 8]) {
    let mut memory = Memory::empty();
    // SAFETY: `data` is mutably borrowed for longer than `memory` lives.
    unsafe { memory.map_host(BASE, data.as_mut_ptr().cast(), 64, true) }.unwrap();
    let shape = shape();
    let dispatch = Dispatch { threads, alone, ..Dispatch::new(program, &shape, 1_000_000) };
    dispatch::run(&dispatch, &memory).unwrap();
}

fn assembled(arch: Arch, lines: &[&str]) -> Program {
    let options = Options::new(arch);
    let insts = lines.iter().map(|line| (parse(line, &options, &NoSymbols).expect(line).inst, 0));
    Program::new(arch, insts.collect()).expect("a small program")
}

/// What makes workgroups observe one another, and what does not.
#[test]
fn means_of_sharing() {
    let none = [
        "s_load_b64 s[0:1], s[0:1], 0x0",
        "global_load_b32 v1, v0, s[0:1]",
        "ds_add_rtn_u32 v2, v0, v1",
        "scratch_store_b32 off, v1, off",
        "s_barrier",
        "buffer_gl0_inv",
        "s_getreg_b32 s2, hwreg(HW_REG_MODE)",
        "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)",
        "s_endpgm",
    ];
    assert_eq!(sharing(&assembled(Arch::Rdna3, &none), 0), None);
    let means = |arch, line| sharing(&assembled(arch, &[line, "s_endpgm"]), 0).map(|found| found.means);
    for (arch, line, expected) in [
        (Arch::Rdna3, "global_atomic_add_u32 v0, v1, s[0:1]", Some(Means::Atomic)),
        (Arch::Rdna3, "flat_atomic_add_u32 v[0:1], v2", Some(Means::Atomic)),
        (Arch::Rdna3, "buffer_atomic_swap v0, off, s[0:3], 0", Some(Means::Atomic)),
        (Arch::Rdna3, "global_load_b32 v1, v0, s[0:1] glc", Some(Means::CoherentLoad)),
        (Arch::Rdna4, "global_load_b32 v1, v0, s[0:1] scope:SCOPE_DEV", Some(Means::CoherentLoad)),
        (Arch::Cdna3, "global_load_dword v1, v0, s[0:1] sc1", Some(Means::CoherentLoad)),
        (Arch::Cdna3, "global_load_dword v1, v0, s[0:1]", None),
        (Arch::Rdna3, "s_sendmsg sendmsg(MSG_INTERRUPT)", Some(Means::Message)),
        (Arch::Rdna3, "s_sendmsg_rtn_b64 s[0:1], sendmsg(MSG_RTN_GET_REALTIME)", Some(Means::Message)),
        (Arch::Rdna3, "s_getreg_b32 s2, hwreg(HW_REG_SHADER_CYCLES)", Some(Means::Clock)),
    ] {
        assert_eq!(means(arch, line), expected, "{line}");
    }
    // What no jump reaches does not count; a jump to an address in registers reaches everything.
    let atomic = "global_atomic_add_u32 v0, v1, s[0:1]";
    let behind = |jump| sharing(&assembled(Arch::Rdna3, &[jump, atomic, "s_endpgm"]), 0).is_some();
    assert!(!behind("s_branch 2"));
    assert!(behind("s_cbranch_scc0 2"));
    assert!(behind("s_setpc_b64 s[0:1]"));
}

/// Workgroups of an automatic number of threads: one if they share memory.
#[test]
fn an_automatic_number() {
    let shape = shape();
    for (line, most) in [("global_atomic_add_u32 v0, v1, s[0:1]", 1), ("v_mov_b32 v0, 0", usize::MAX)] {
        let program = assembled(Arch::Rdna3, &[line, "s_endpgm"]);
        let mut dispatch = Dispatch::new(&program, &shape, 1_000_000);
        Threads::Auto.apply(&mut dispatch, || sharing(&program, 0));
        assert_eq!(dispatch.threads, wavesim::sharing::processors().min(most), "{line}");
    }
    assert_eq!("auto".parse(), Ok(Threads::Auto));
    assert_eq!("3".parse(), Ok(Threads::Fixed(3)));
    assert!(["0", "-1", "257", "many", ""].iter().all(|text| text.parse::<Threads>().is_err()));
}

/// Dispatches that end early start no other threads; all workgroups of longer ones run once.
#[test]
fn a_thread_alone_at_first() {
    let words: Vec<u32> = ADD.into_iter().chain([END]).collect();
    let program = Program::from_words(Arch::Rdna3, &words).expect("a small program");
    for alone in [0, 1, 1_000, 10_000, u64::MAX] {
        let mut counter = [0u64; 8];
        run_after(&program, 3, alone, &mut counter);
        assert_eq!(counter[0], 16 * 64 * ROUNDS as u64, "{alone}");
    }
}

#[test]
fn atomics_are_not_lost() {
    let words: Vec<u32> = ADD.into_iter().chain([END]).collect();
    let program = Program::from_words(Arch::Rdna3, &words).expect("a small program");
    for threads in [1, 2, 4] {
        let mut counter = [0u64; 8];
        run(&program, threads, &mut counter);
        assert_eq!(counter[0], 16 * 64 * ROUNDS as u64, "{threads} threads");
    }
}

/// Sets MXCSR of this thread and restores it when dropped, even if the test panics.
#[cfg(target_arch = "x86_64")]
struct Control(u32);

#[cfg(target_arch = "x86_64")]
impl Control {
    fn set(to: u32) -> Control {
        let before = Control(Control::now());
        Control::write(to);
        before
    }

    fn now() -> u32 {
        let mut now = 0u32;
        // SAFETY: the instruction writes the four bytes of `now`.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut now) };
        now
    }

    fn write(to: u32) {
        // SAFETY: the value has no reserved bits set. Until it is restored, the test computes no floats
        // except those of waves, and the engine sets its own MXCSR for waves, as the test verifies.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &to) };
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Control {
    fn drop(&mut self) {
        Control::write(self.0);
    }
}

/// Programs linked with `-ffast-math` flush denormals in all threads, but kernels use their own MODE.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_callers_float_control_has_no_effect() {
    const FLUSHED: u32 = 0x1f80 | 0x8040;
    let lines = [
        "s_mov_b32 s0, 0x100000",
        "s_mov_b32 s1, 0",
        "v_mov_b32 v0, 0",
        "v_mov_b32 v1, 0x400000",
        "v_mul_f32 v2, 0.5, v1",
        "global_store_b32 v0, v2, s[0:1]",
        "s_endpgm",
    ];
    let program = assembled(Arch::Rdna3, &lines);
    for threads in [1, 2] {
        let mut data = [u64::MAX; 8];
        let control = Control::set(FLUSHED);
        run(&program, threads, &mut data);
        let after = Control::now();
        drop(control);
        assert_eq!(data[0] as u32, 0x20_0000, "{threads} threads");
        assert_eq!(after & !0x3f, FLUSHED);
    }
}
