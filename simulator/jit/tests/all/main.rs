//! Compares interpreted and compiled execution of programs.

mod atomics;
mod cross_lane;
mod denormals;
mod doubles;
mod dpp;
mod families;
mod fast_path;
mod faults;
mod functions;
mod integers;
mod labels;
mod memory;
mod modified;
mod random;
mod scaled;
mod scratch;
mod sequences;
mod slot_collisions;
mod units;
mod versioning;
mod workgroups;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_engine::interp::{self, Compiled, EnterResult, HotnessCounters, Waves};
use wavesim_isa::arch::Arch;
use wavesim_jit::{CompileStats, Jit};
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::overrides::Overrides;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

/// Assembles a program. `@n` is the offset of a branch to line `n`.
fn program(lines: &[&str], wave: u32) -> Program {
    program_by(&Options::new(Arch::Rdna3), lines, wave)
}

/// [`program`], with assembler options.
fn program_by(options: &Options, lines: &[&str], wave: u32) -> Program {
    let inst = |line: &str| parse(line, options, &NoSymbols).expect(line).inst;
    let dwords = |line: &str| if line.contains('@') { 1 } else { inst(line).size / 4 };
    let places: Vec<i64> = lines
        .iter()
        .scan(0, |at, line| {
            *at += dwords(line) as i64;
            Some(*at)
        })
        .collect();
    let list = lines.iter().zip(&places).map(|(line, after)| match line.split_once('@') {
        Some((branch, target)) => {
            let target: usize = target.parse().expect("a line");
            let begin = if target == 0 { 0 } else { places[target - 1] };
            (inst(&format!("{branch}{}", begin - after)), 0)
        }
        None => (inst(line), 0),
    });
    Program::new(options.arch, list.collect()).expect("a program").for_wave_size(wave)
}

fn start(size: u32, mode: u32) -> Wave {
    let mut wave = Wave::new(size);
    wave.mode = mode;
    for half in 0..wave.halves() {
        for reg in 0..16 {
            let lane = |l: usize| ((half * 32 + l) as f32 + 0.25 * reg as f32).to_bits();
            wave.set_lane_vec(half, reg, LaneVec(std::array::from_fn(lane)));
        }
        // Denormals, and numbers whose product is denormal.
        wave.set_lane_vec(half, 14, LaneVec(std::array::from_fn(|l| l as u32 | (l as u32 & 1) << 31)));
        wave.set_lane_vec(half, 15, LaneVec(std::array::from_fn(|l| 0x0080_0000 + l as u32)));
    }
    wave
}

/// Runs turns of `budget` instructions until the wave ends, but at most twenty; returns the result and the
/// number of executed instructions.
fn run(program: &Program, wave: &mut Wave, budget: u64, code: Option<&Jit>) -> (Result<(), Event>, u64) {
    run_in(&Memory::empty(), &mut [0; 256], program, wave, budget, code)
}

/// [`run`], with memory and LDS.
fn run_in(
    memory: &Memory,
    lds: &mut [u8],
    program: &Program,
    wave: &mut Wave,
    budget: u64,
    code: Option<&Jit>,
) -> (Result<(), Event>, u64) {
    run_with(memory, lds, (&mut [], 0), program, wave, budget, code)
}

/// [`run_in`], with scratch memory and its size per lane in bytes.
fn run_with(
    memory: &Memory,
    lds: &mut [u8],
    scratch: (&mut [u8], u32),
    program: &Program,
    wave: &mut Wave,
    budget: u64,
    code: Option<&Jit>,
) -> (Result<(), Event>, u64) {
    let (mut workgroup, mut executed) = (Workgroup::new(1), 0);
    for _ in 0..20 {
        let mut context = Context {
            memory,
            lds: &mut *lds,
            scratch: &mut *scratch.0,
            scratch_stride: scratch.1,
            workgroup: &mut workgroup,
            instructions: executed,
            cancel: None,
        };
        let result = match code {
            None => interp::run(program, wave, &mut context, budget, &mut executed),
            Some(code) => interp::run_waves(
                program,
                wave,
                &mut context,
                budget,
                &mut executed,
                Some(code),
                &mut interp::SingleWave,
            ),
        };
        #[cfg(target_arch = "x86_64")]
        assert_eq!(mxcsr() & !0x3f, 0x1f80, "code has changed MXCSR");
        if result.is_err() {
            return (result, executed);
        }
    }
    (Ok(()), executed)
}

/// Returns the host's MXCSR, including the exception flags.
#[cfg(target_arch = "x86_64")]
pub fn mxcsr() -> u32 {
    let mut control = 0u32;
    // SAFETY: MXCSR is stored to the four bytes of a local variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack, preserves_flags)) };
    control
}

/// Compares the final states for all compiled wave sizes and float modes; returns the statistics of the last
/// one.
fn compare(lines: &[&str]) -> CompileStats {
    let mut stats = CompileStats::default();
    for (size, mode) in [(32, 0xf0), (32, 0xc0), (64, 0xf0), (64, 0xc0)] {
        let program = program(lines, size);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        let (mut plain, mut compiled) = (start(size, mode), start(size, mode));
        let (a, b) = (run(&program, &mut plain, 2000, None), run(&program, &mut compiled, 2000, Some(&code)));
        assert_eq!(a, b, "wave{size} mode {mode:x}");
        assert_eq!((plain.sgprs, plain.scc, plain.pc), (compiled.sgprs, compiled.scc, compiled.pc));
        (0..plain.halves()).for_each(|half| assert_eq!(plain.mask(half), compiled.mask(half)));
        for half in 0..plain.halves() {
            for reg in 0..256 {
                assert_eq!(
                    plain.lane_vec(half, reg),
                    compiled.lane_vec(half, reg),
                    "wave{size} {mode:x}: v{reg}"
                );
                assert_eq!(plain.is_written(reg as u32), compiled.is_written(reg as u32), "v{reg}");
            }
        }
        stats = code.stats();
        assert_eq!(stats.failed, 0);
    }
    stats
}

/// Compares registers, memory of `bytes` bytes at `base`, and as much LDS, for offsets in v1 and v2.
fn compare_in_memory(base: u64, bytes: usize, lines: &[&str], size: u32, offsets: [&dyn Fn(u32) -> u32; 2]) {
    assert!(compare_in_turns(base, bytes, lines, size, offsets, 2000).units > 0);
}

/// The size of scratch per lane in bytes, where it is not given.
const SCRATCH: u32 = 256;

/// [`compare_in_memory`] in turns of `budget` instructions.
fn compare_in_turns(
    base: u64,
    bytes: usize,
    lines: &[&str],
    size: u32,
    offsets: [&dyn Fn(u32) -> u32; 2],
    budget: u64,
) -> CompileStats {
    compare_in_turns_of(Arch::Rdna3, base, bytes, lines, size, offsets, budget)
}

/// [`compare_in_turns`], for an architecture.
fn compare_in_turns_of(
    arch: Arch,
    base: u64,
    bytes: usize,
    lines: &[&str],
    size: u32,
    offsets: [&dyn Fn(u32) -> u32; 2],
    budget: u64,
) -> CompileStats {
    let program = program_by(&Options::new(arch), lines, size);
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let outcome = |code: Option<&Jit>| {
        let mut wave = start(size, 0xc0);
        for half in 0..wave.halves() {
            for (register, of) in (1..).zip(offsets) {
                let lanes = std::array::from_fn(|lane| of(32 * half as u32 + lane as u32));
                wave.set_lane_vec(half, register, LaneVec(lanes));
            }
        }
        // Begins at a cache line.
        let mut data: Vec<LaneVec> = (0..bytes.div_ceil(128) as u32)
            .map(|row| LaneVec(std::array::from_fn(|n| (32 * row + n as u32).wrapping_mul(0x9e37_79b9))))
            .collect();
        let mut memory = Memory::empty();
        // SAFETY: `data` outlives `memory`.
        unsafe { memory.map_host(base, data.as_mut_ptr().cast(), bytes as u64, true) }.expect("room");
        let mut lds: Vec<u8> = (0..bytes).map(|n| (n * 7 + n / 256) as u8).collect();
        let mut scratch: Vec<u8> = (0..SCRATCH * size).map(|n| (n * 5 + n / 256) as u8).collect();
        let own = (&mut scratch[..], SCRATCH);
        let ended = run_with(&memory, &mut lds, own, &program, &mut wave, budget, code);
        drop(memory);
        (format!("{ended:?}"), registers(&wave, 40), wave.sgprs, wave.pc, data, lds, scratch)
    };
    let (expected, found) = (outcome(None), outcome(Some(&code)));
    let text = || {
        let firsts = offsets.map(|of| of(0));
        format!("wave{size}, {firsts:?}, turns of {budget}\n{}", lines.join("\n"))
    };
    assert_eq!(found.0, expected.0, "{}", text());
    assert!(found == expected, "{}", text());
    let stats = code.stats();
    assert_eq!(stats.failed, 0);
    stats
}

/// Returns the first `count` VGPRs of each half.
fn registers(wave: &Wave, count: usize) -> Vec<LaneVec> {
    let of = |half| (0..count).map(move |register| *wave.lane_vec(half, register));
    (0..wave.halves()).flat_map(of).collect()
}

/// Returns the instructions in a loop of two iterations, counted in s4.
fn twice<'a>(instructions: &[&'a str]) -> Vec<&'a str> {
    let last = ["s_add_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @1", "s_endpgm"];
    ["s_movk_i32 s4, 0x2"].into_iter().chain(instructions.iter().copied()).chain(last).collect()
}

/// A program that is compiled in the background has the same results before, while and after it switches to
/// code.
#[test]
fn background_compilation() {
    let program = program(
        &[
            "s_mov_b32 s4, 15000",
            "v_fma_f32 v1, v1, v2, v3",
            "v_mul_f32 v5, v14, v2",
            "v_xor_b32 v6, v6, v1",
            "s_add_i32 s4, s4, -1",
            "s_cmp_lg_u32 s4, 0",
            "s_cbranch_scc1 @1",
            "s_endpgm",
        ],
        32,
    );
    let code = Jit::in_background(&program).expect("a supported host");
    let mut plain = start(32, 0xc0);
    let expected = run(&program, &mut plain, u64::MAX, None);
    assert_eq!(code.stats(), CompileStats::default());
    let begun = std::time::Instant::now();
    let mut after = 0;
    while after < 3 {
        let mut wave = start(32, 0xc0);
        assert_eq!(run(&program, &mut wave, u64::MAX, Some(&code)), expected);
        for reg in 0..16 {
            assert_eq!(plain.lane_vec(0, reg), wave.lane_vec(0, reg), "v{reg}");
        }
        after += code.has_code() as u32;
        assert!(begun.elapsed().as_secs() < 60, "no code after a minute");
    }
    assert!(code.stats().units > 0);
    // Code is not entered for another program.
    let other = self::program(&["v_mov_b32 v1, 7", "s_endpgm"], 32);
    let (mut a, mut b) = (start(32, 0xc0), start(32, 0xc0));
    assert_eq!(run(&other, &mut a, 100, None), run(&other, &mut b, 100, Some(&code)));
    assert_eq!(a.lane_vec(0, 1), b.lane_vec(0, 1));
}

/// With replaced semantics it is another program, although its operations have not moved.
#[test]
fn replaced_semantics_invalidate_code() {
    let mut program = program(
        &["s_movk_i32 s4, 0x30", "v_xor_b32 v1, v2, v3", "v_add_nc_u32 v4, v4, v1", "s_add_i32 s4, s4, -1"]
            .into_iter()
            .chain(["s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @1", "s_endpgm"])
            .collect::<Vec<_>>(),
        32,
    );
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let after = |program: &Program, code: Option<&Jit>| {
        let mut wave = start(32, 0xf0);
        let ended = run(program, &mut wave, u64::MAX, code);
        (ended, wave.lane_vec(0, 1).0, wave.lane_vec(0, 4).0)
    };
    let before = after(&program, Some(&code));
    assert_eq!(before, after(&program, None));
    assert!(code.has_code());
    let text = "instruction V_XOR_B32 for rdna3 { D0.u32 = S0.u32 & S1.u32; }";
    let (own, _) = Overrides::parse("own.pcode".to_string(), text.to_string()).expect("a meaning");
    program.replace_semantics(Arc::new(own));
    let expected = after(&program, None);
    assert_ne!(expected, before);
    assert_eq!(after(&program, Some(&code)), expected);
}

/// Code that ends after a few operations is left alone after a thousand visits, and tried again much later. What counts
/// is what ran: a path of a few operations does not matter, nor does the length of a loop.
#[test]
fn short_visits_end() {
    let rests = |middle: &[&'static str], runs: usize| {
        let program = program(middle, 32);
        let code = Jit::with_threshold(&program, 1).expect("a supported host");
        for _ in 0..runs {
            let (mut a, mut b) = (start(32, 0xf0), start(32, 0xf0));
            assert_eq!(run(&program, &mut a, u64::MAX, None), run(&program, &mut b, u64::MAX, Some(&code)));
            assert_eq!(a.lane_vec(0, 1), b.lane_vec(0, 1));
        }
        assert!(code.has_code());
        code.stats().rests
    };
    let xor = "v_xor_b32 v1, v1, v2";
    assert_eq!(rests(&[xor, "s_endpgm"], 900), 0);
    assert_eq!(rests(&[xor, "s_endpgm"], 3000), 1);
    let mut long = [xor; 14];
    long[13] = "s_endpgm";
    assert_eq!(rests(&long, 1200), 0);
    // A guard that all lanes pass.
    let guarded = [&["s_cmp_eq_u32 s4, 77", "s_cbranch_scc1 @15"][..], &long].concat();
    assert_eq!(rests(&guarded, 1200), 0);
    for barrier in ["s_nop 0", "s_barrier"] {
        let round = [barrier, "s_add_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @1", "s_endpgm"];
        assert_eq!(rests(&[&["s_movk_i32 s4, 4", xor][..], &round].concat(), 1200), 0);
    }
}

/// Code that bails out is left alone only if it has executed few instructions before.
#[test]
fn code_that_bails_out_late_stays() {
    let entries = |before: usize| {
        let mut lines = vec!["s_movk_i32 s4, 3000"];
        lines.extend(vec!["s_xor_b32 s5, s5, s4"; before]);
        // Code knows no negative offsets: their sum with the constant one is in LDS.
        lines.extend(["v_mov_b32 v7, -16", "ds_load_b32 v8, v7 offset:32", "v_xor_b32 v1, v1, v8"]);
        lines.extend(["s_add_i32 s4, s4, -1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @1", "s_endpgm"]);
        let program = program(&lines, 32);
        let code =
            CountEntries(Jit::with_threshold(&program, 1).expect("a supported host"), AtomicU32::new(0));
        let (mut wave, mut expected) = (start(32, 0xf0), start(32, 0xf0));
        let memory = Memory::empty();
        let mut lds: [u8; 256] = std::array::from_fn(|at| at as u8);
        let mut context = Context {
            memory: &memory,
            lds: &mut lds,
            scratch: &mut [],
            scratch_stride: 0,
            workgroup: &mut Workgroup::new(1),
            instructions: 0,
            cancel: None,
        };
        let waves = &mut interp::SingleWave;
        let ended =
            interp::run_waves(&program, &mut wave, &mut context, u64::MAX, &mut 0, Some(&code), waves);
        let mut lds: [u8; 256] = std::array::from_fn(|at| at as u8);
        assert_eq!(run_in(&memory, &mut lds, &program, &mut expected, u64::MAX, None).0, ended);
        assert_eq!(wave.lane_vec(0, 1), expected.lane_vec(0, 1));
        assert_eq!(*wave.lane_vec(0, 8), LaneVec([u32::from_le_bytes([16, 17, 18, 19]); 32]));
        code.1.into_inner()
    };
    assert!(entries(20) > 2900, "{}", entries(20));
    assert!(entries(0) < 1100, "{}", entries(0));
}

/// Counts how often code is entered.
struct CountEntries(Jit, AtomicU32);

// SAFETY: all results are those of the engine.
unsafe impl Compiled for CountEntries {
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn hotness(&self, cx: &Cx<'_>, program: &Program) -> HotnessCounters<'_> {
        self.0.hotness(cx, program)
    }

    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> EnterResult<'a> {
        let result = self.0.enter(cx, program, start, end, waves);
        if !matches!(result, EnterResult::NoCode) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

#[test]
fn arithmetic_in_a_loop() {
    let stats = compare(&[
        "s_mov_b32 s4, 300",
        "v_fma_f32 v1, v1, v2, v3",
        "v_mul_f32 v5, v14, v2",
        "v_mul_f32 v6, 0.5, v15",
        "v_add_f32 v7, v14, v15",
        "v_add_nc_u32 v8, s4, v8",
        "v_lshlrev_b32 v9, v4, v8",
        "v_perm_b32 v10, v8, v9, v14",
        "v_mul_lo_u32 v11, v8, v9",
        "v_med3_f32 v12, v1, v5, v6",
        "v_max_f32 v13, v14, v7",
        "v_cvt_f32_u32 v13, v8",
        "v_cvt_i32_f32 v12, v13",
        "s_sub_u32 s4, s4, 1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
    // Each operation is compiled once.
    assert!(stats.units > 0 && stats.operations <= 17, "{stats:?}");
}

#[test]
fn divergent_lanes() {
    compare(&[
        "s_movk_i32 s4, 0x200",
        "v_mov_b32 v1, 0",
        "v_cmp_gt_f32 vcc_lo, v2, v3",
        "v_and_b32 v4, s4, v2",
        "v_cmp_ne_u32 s8, 0, v4",
        "s_and_saveexec_b32 s9, s8",
        "s_cbranch_execz @10",
        "v_add_nc_u32 v1, v1, v2",
        "v_cndmask_b32 v5, v1, v2, vcc_lo",
        "v_fma_f32 v6, v6, 0.5, v7",
        "s_mov_b32 exec_lo, s9",
        "v_add_co_u32 v7, vcc_lo, v7, v1",
        "v_add_co_ci_u32 v8, vcc_lo, v8, v1, vcc_lo",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @2",
        "v_cmpx_lt_f32 v1, v2",
        "v_mov_b32 v9, 1.0",
        "s_endpgm",
    ]);
}

#[test]
fn handlers_between_code() {
    compare(&[
        "s_movk_i32 s4, 0x100",
        "v_lshlrev_b32 v1, 2, v14",
        "v_and_b32 v1, 0xfc, v1",
        "ds_store_b32 v1, v2",
        "s_waitcnt lgkmcnt(0)",
        "ds_load_b32 v3, v1",
        "v_add_f32 v2, v3, v2",
        "v_exp_f32 v4, v2",
        "v_readfirstlane_b32 s6, v3",
        "v_add_f32 v5, s6, v4 clamp",
        "s_bfe_u32 s7, s6, 0x80008",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ]);
}

#[test]
fn invalid_jump_targets_fault() {
    let lines = ["s_nop 0", "v_mov_b32 v1, 1.0", "s_branch 100", "s_endpgm"];
    let program = program(&lines, 32);
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let (mut plain, mut compiled) = (start(32, 0xf0), start(32, 0xf0));
    let (a, b) = (run(&program, &mut plain, 2000, None), run(&program, &mut compiled, 2000, Some(&code)));
    assert!(matches!(a.0, Err(Event::Fault(_))));
    assert_eq!((a, plain.pc), (b, compiled.pc));
}

#[test]
fn large_programs_are_split_into_units() {
    let mut lines = vec!["v_add_nc_u32 v1, v1, v2"; 3000];
    lines.extend(["s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 @0", "s_endpgm"]);
    let stats = compare(&lines);
    assert!(stats.units >= 3 && stats.operations == 3003, "{stats:?}");
}

/// Returns a pseudorandom number.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}
