//! Workgroups of several waves: compiled code switches to other waves at barriers.

use super::program_by;
use std::sync::atomic::{AtomicU32, Ordering};
use wavesim_asm::Options;
use wavesim_engine::interp::{Compiled, EnterResult, HotnessCounters, Waves};
use wavesim_engine::observe::NoObserver;
use wavesim_engine::sched::dispatch::{
    self, Dispatch, InitialState, Layout, Registers, RunStats, Schedule, Shape,
};
use wavesim_engine::sched::order::Choice;
use wavesim_isa::arch::Arch;
use wavesim_jit::Jit;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;

const BASE: u64 = 0x10_0000;
const WAVES: u32 = 5;
const GROUPS: u32 = 3;
const LIMIT: u64 = 1 << 22;

/// s0 is the workgroup, v0 the work-item, s[2:3] the base address of one dword per work-item, which is in v1
/// initially; s4 is the wave, v2 the dword's offset, and v3 the LDS offset of a work-item of the next wave.
fn kernel(body: &[&'static str], size: u32, arch: Arch) -> Program {
    let items: &'static str = if size == 32 { "s_movk_i32 s6, 160" } else { "s_movk_i32 s6, 320" };
    let (wave, next): (&str, &str) = match size {
        32 => ("s_lshr_b32 s4, s4, 5", "v_add_nc_u32 v3, 32, v0"),
        _ => ("s_lshr_b32 s4, s4, 6", "v_add_nc_u32 v3, 64, v0"),
    };
    let mut lines = vec![
        "s_mov_b32 s2, 0x100000",
        "s_mov_b32 s3, 0",
        "v_readfirstlane_b32 s4, v0",
        wave,
        items,
        next,
        "v_cmp_le_u32 vcc_lo, s6, v3",
        "v_subrev_nc_u32 v4, s6, v3",
        "v_cndmask_b32 v3, v3, v4, vcc_lo",
        "v_lshlrev_b32 v3, 2, v3",
        "v_lshlrev_b32 v5, 2, v0",
        "s_mul_i32 s7, s0, s6",
        "v_add_nc_u32 v2, s7, v0",
        "v_lshlrev_b32 v2, 2, v2",
        "global_load_b32 v1, v2, s[2:3]",
        "s_waitcnt vmcnt(0)",
    ];
    if arch == Arch::Rdna4 {
        lines[15] = "s_wait_loadcnt 0x0";
    }
    if size == 64 {
        lines[6] = "v_cmp_le_u32 vcc, s6, v3";
        lines[8] = "v_cndmask_b32 v3, v3, v4, vcc";
    }
    // Branch targets in `body` are relative to its first line.
    let shift = lines.len();
    let moved = |line: &&'static str| -> &'static str {
        match line.split_once('@') {
            Some((branch, to)) => {
                let to: usize = to.parse().expect("a line");
                Box::leak(format!("{branch}@{}", to + shift).into_boxed_str())
            }
            None => line,
        }
    };
    lines.extend(body.iter().map(moved));
    lines.extend(["global_store_b32 v2, v1, s[2:3]", "s_endpgm"]);
    program_by(&Options::new(arch).wave(size), &lines, size)
}

type Outcome = (Result<RunStats, Box<Fault>>, Vec<u32>);

fn launch(
    program: &Program,
    size: u32,
    schedule: Schedule,
    max_instructions: u64,
    code: Option<&(dyn Compiled + Sync)>,
) -> Outcome {
    launch_by(dispatch::run, program, size, schedule, max_instructions, code)
}

/// [`launch`], with a function that runs the dispatch.
fn launch_by(
    run: impl FnOnce(&Dispatch<'_>, &Memory) -> Result<RunStats, Box<Fault>>,
    program: &Program,
    size: u32,
    schedule: Schedule,
    max_instructions: u64,
    code: Option<&(dyn Compiled + Sync)>,
) -> Outcome {
    let mut data: Vec<u32> = (0..WAVES * size * GROUPS).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let mut memory = Memory::empty();
    // SAFETY: `data` outlives `memory`.
    unsafe { memory.map_host(BASE, data.as_mut_ptr().cast(), 4 * data.len() as u64, true) }.expect("room");
    let shape = Shape {
        grid: [GROUPS, 1, 1],
        cluster: [1; 3],
        named_barriers: 16,
        block: [WAVES * size, 1, 1],
        wave_size: size,
        lds_bytes: 4 * WAVES * size,
        scratch_bytes: 0,
        registers: Registers::ALL,
        init: InitialState {
            layout: Layout::Text { group_ids: [true, false, false], item_ids: [true, false, false] },
            mode: 0xf0,
            sgprs: Vec::new(),
        },
        entry_pc: 0,
        code_base: 0,
    };
    let dispatch = Dispatch { schedule, compiled: code, ..Dispatch::new(program, &shape, max_instructions) };
    let result = run(&dispatch, &memory);
    drop(memory);
    (result, data)
}

/// Compares launches under all schedules, interpreted and compiled: results, instruction counts and faults.
fn compare(body: &[&'static str], limits: &[u64]) -> Vec<Outcome> {
    compare_on(Arch::Rdna3, body, limits)
}

/// [`compare`], on an architecture.
fn compare_on(arch: Arch, body: &[&'static str], limits: &[u64]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for size in [32, 64] {
        let program = kernel(body, size, arch);
        for schedule in [
            Schedule::RoundRobin,
            Schedule::Reverse,
            Schedule::Random(3),
            "waves:3,1".parse::<Choice>().expect("an order").waves.expect("of waves"),
        ] {
            for &limit in limits {
                let expected = launch(&program, size, schedule, limit, None);
                let code = Jit::with_threshold(&program, 0).expect("a supported host");
                for run in 0..2 {
                    let found = launch(&program, size, schedule, limit, Some(&code));
                    assert_eq!(found, expected, "wave{size}, {schedule:?}, limit {limit}, run {run}");
                }
                // Short turns must end at exact instructions, so that they run without code.
                let short = matches!(schedule, Schedule::Random(_)) || limit < 1024;
                assert!(code.stats().units > 0 || short);
                outcomes.push(expected);
            }
        }
    }
    outcomes
}

/// Waves exchange values; the clock counts the instructions of all of them.
const EXCHANGE: [&str; 13] = [
    "s_movk_i32 s8, 40",
    "ds_store_b32 v5, v1",
    "s_waitcnt lgkmcnt(0)",
    "s_barrier",
    "ds_load_b32 v6, v3",
    "s_waitcnt lgkmcnt(0)",
    "v_mad_u32_u24 v1, v1, v6, v5",
    "s_getreg_b32 s9, hwreg(HW_REG_SHADER_CYCLES)",
    "v_xor_b32 v1, s9, v1",
    "s_barrier",
    "s_add_i32 s8, s8, -1",
    "s_cmp_lg_u32 s8, 0",
    "s_cbranch_scc1 @1",
];

#[test]
fn waves_exchange_values() {
    for (result, _) in compare(&EXCHANGE, &[LIMIT]) {
        result.expect("the launch ends");
    }
}

/// Handlers run immediately before a barrier; between a signal and its wait, other waves run, and clocks
/// count the instructions of all of them.
#[test]
fn waves_signal_and_wait() {
    let together = [
        "s_movk_i32 s8, 40",
        "ds_store_b32 v5, v1",
        "v_cvt_f32_u32 v7, v1",
        "v_exp_f32 v8, v7",
        "s_barrier",
        "ds_load_b32 v6, v3",
        "v_mad_u32_u24 v1, v1, v6, v5",
        "s_getreg_b32 s9, hwreg(HW_REG_SHADER_CYCLES)",
        "v_xor_b32 v1, s9, v1",
        "v_sin_f32 v8, v7",
        "s_barrier",
        "v_xor_b32 v1, v8, v1",
        "s_add_i32 s8, s8, -1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @1",
    ];
    let apart = [
        "s_movk_i32 s8, 40",
        "ds_store_b32 v5, v1",
        "s_wait_dscnt 0x0",
        "s_barrier_signal -1",
        "v_cvt_f32_u32 v7, v1",
        "v_exp_f32 v8, v7",
        "s_barrier_wait -1",
        "ds_load_b32 v6, v3",
        "s_wait_dscnt 0x0",
        "v_mad_u32_u24 v1, v1, v6, v5",
        "s_getreg_b32 s9, hwreg(HW_REG_SHADER_CYCLES_LO)",
        "v_xor_b32 v1, s9, v1",
        "s_barrier_signal -1",
        "s_barrier_wait 0xffff",
        "s_add_i32 s8, s8, -1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @1",
    ];
    for (arch, body) in [(Arch::Rdna3, &together[..]), (Arch::Rdna4, &apart)] {
        for (result, _) in compare_on(arch, body, &[LIMIT]) {
            result.expect("the launch ends");
        }
        for (result, _) in compare_on(arch, body, &[1500, 4001]) {
            assert_eq!(result.expect_err("the instruction limit").kind, FaultKind::InstructionLimit);
        }
    }
}

/// LDS offsets are invariant in an inner loop but not in the outer one; odd waves have another order of
/// lanes. Code or a handler changes the offsets; some iterations run with inactive lanes.
#[test]
fn offsets_that_change_in_an_outer_loop() {
    let handler = "v_mov_b32_dpp v3, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf";
    for change in ["v_xor_b32 v3, 0x7c, v3", "v_xor_b32 v3, 8, v3", handler] {
        let body = [
            "s_bitcmp1_b32 s4, 0",
            "s_cbranch_scc0 @3",
            "v_xor_b32 v3, 0x70, v3",
            "s_movk_i32 s8, 6",
            "s_movk_i32 s10, 4",
            "s_mov_b32 exec_lo, -1",
            "ds_store_b32 v5, v1",
            "s_barrier",
            "s_bitcmp1_b32 s10, 1",
            "s_cselect_b32 exec_lo, -1, 0x00ffff01",
            "ds_load_b32 v6, v3",
            "v_mad_u32_u24 v1, v1, v6, v5",
            "s_barrier",
            "ds_store_b32 v3, v1",
            "s_barrier",
            "s_mov_b32 exec_lo, -1",
            "ds_load_b32 v6, v3",
            "v_xor_b32 v1, v6, v1",
            "s_barrier",
            "s_add_i32 s10, s10, -1",
            "s_cmp_lg_u32 s10, 0",
            "s_cbranch_scc1 @5",
            change,
            "s_add_i32 s8, s8, -1",
            "s_cmp_lg_u32 s8, 0",
            "s_cbranch_scc1 @4",
            "s_mov_b32 exec_lo, -1",
        ];
        for (result, _) in compare(&body, &[LIMIT]) {
            result.expect("the launch ends");
        }
    }
}

#[test]
fn limits_end_launches_at_the_same_instruction() {
    for (result, _) in compare(&EXCHANGE, &[1, 777, 1023, 1500, 4000, 6001]) {
        assert_eq!(result.expect_err("the instruction limit").kind, FaultKind::InstructionLimit);
    }
}

/// Each wave has one iteration more than the previous one: waves that have ended do not block the others,
/// which are then at different program points.
#[test]
fn waves_end_at_different_times() {
    let body = [
        "s_add_i32 s8, s4, 1",
        "v_add_nc_u32 v1, s4, v1",
        "s_bitcmp1_b32 s4, 0",
        "s_cbranch_scc1 @6",
        "s_barrier",
        "s_branch @8",
        "v_xor_b32 v1, 0x55, v1",
        "s_barrier",
        "v_mul_lo_u32 v1, v1, v5",
        "s_add_i32 s8, s8, -1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @1",
    ];
    for (result, _) in compare(&body, &[LIMIT]) {
        result.expect("the launch ends");
    }
}

/// Odd waves flush denormals and the others keep them: code of one mode switches to waves of the other.
#[test]
fn waves_of_different_modes_take_turns() {
    let body = [
        "s_bitcmp1_b32 s4, 0",
        "s_cbranch_scc0 @3",
        "s_denorm_mode 12",
        "s_movk_i32 s8, 6",
        "v_and_b32 v6, 0x7fffff, v1",
        "v_add_f32 v6, v6, v6",
        "v_add_nc_u32 v1, v6, v1",
        "s_barrier",
        "s_add_i32 s8, s8, -1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @4",
    ];
    let outcomes = compare(&body, &[LIMIT]);
    // Flushing and keeping have different results.
    let (_, data) = &outcomes[0];
    let start = |n: u32| n.wrapping_mul(0x9e37_79b9);
    let changed = |wave: u32| (wave * 32..wave * 32 + 32).any(|n| data[n as usize] != start(n));
    assert!(changed(0) && !changed(1));
}

/// A fault reports its own wave and instruction, whichever wave entered the code.
#[test]
fn faults_after_barriers_name_the_wave() {
    let body = [
        "s_movk_i32 s8, 4",
        "v_add_nc_u32 v1, 3, v1",
        "s_barrier",
        "v_mov_b32 v7, v2",
        "s_cmp_lg_u32 s8, 2",
        "s_cbranch_scc1 @9",
        "s_cmp_lg_u32 s4, 3",
        "s_cbranch_scc1 @9",
        "v_add_nc_u32 v7, 0x100000, v7",
        "global_load_b32 v6, v7, s[2:3]",
        "s_waitcnt vmcnt(0)",
        "s_add_i32 s8, s8, -1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @1",
    ];
    for (result, _) in compare(&body, &[LIMIT]) {
        let fault = result.expect_err("a fault");
        assert_eq!((fault.wave, fault.workgroup), (3, [0, 0, 0]), "{fault}");
    }
}

/// One wave never reaches the barrier: the fault reports where all waves are.
#[test]
fn limits_name_the_waves_that_wait() {
    let body = ["s_cmp_eq_u32 s4, 2", "s_cbranch_scc1 @1", "v_xor_b32 v1, 1, v1", "s_barrier"];
    for (result, _) in compare(&body, &[20_000]) {
        let fault = result.expect_err("the instruction limit");
        assert!(fault.message.contains("waves 0, 1, 3, 4 waiting at"), "{fault}");
    }
}

/// EXEC changes before a barrier, after which an instruction is interpreted.
#[test]
fn exec_changes_before_barriers() {
    let body = [
        "s_movk_i32 s8, 6",
        "s_mov_b32 m0, 0",
        "s_lshl_b32 exec_lo, 0x0f0f0f0f, s8",
        "s_barrier",
        "v_movreld_b32 v1, v3",
        "s_mov_b32 exec_lo, -1",
        "v_mad_u32_u24 v1, v1, 3, s8",
        "s_sub_u32 s8, s8, 1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @2",
    ];
    compare(&body, &[LIMIT]);
}

/// Some waves wait in one unit while others have reached the next one.
#[test]
fn waves_wait_in_several_units() {
    let sums = ["v_add_nc_u32 v1, 3, v1", "v_xor_b32 v1, v2, v1"];
    let between = || sums.into_iter().cycle().take(1100);
    let first = ["s_movk_i32 s8, 3", "s_barrier", "ds_store_b32 v5, v1"];
    let second = ["s_barrier", "ds_load_b32 v1, v3", "s_waitcnt lgkmcnt(0)"];
    let last = ["s_sub_u32 s8, s8, 1", "s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 @1"];
    let body: Vec<&str> =
        first.into_iter().chain(between()).chain(second).chain(between()).chain(last).collect();
    compare(&body, &[LIMIT]);
}

/// Without barriers, code goes on with the wave after one that has ended, whose EXEC, mode and cached offsets
/// may differ. A fault names the wave.
#[test]
fn waves_start_where_others_have_ended() {
    let flush_and_halve_exec = [
        "ds_store_b32 v5, v1",
        "s_bitcmp1_b32 s4, 0",
        "s_cbranch_scc0 @6",
        "s_denorm_mode 12",
        "v_add_nc_u32 v5, 4, v5",
        "s_lshr_b32 exec_lo, exec_lo, 7",
        "s_movk_i32 s8, 20",
        "v_and_b32 v6, 0x7fffff, v1",
        "v_add_f32 v6, v6, v6",
        "ds_load_b32 v7, v5",
        "s_waitcnt lgkmcnt(0)",
        "v_mad_u32_u24 v1, v6, v7, v1",
        "s_sub_u32 s8, s8, 1",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 @7",
    ];
    for (result, _) in compare(&flush_and_halve_exec, &[LIMIT]) {
        result.expect("the launch ends");
    }
    for (result, _) in compare(&flush_and_halve_exec, &[1, 200, 1100, 1500]) {
        assert_eq!(result.expect_err("the instruction limit").kind, FaultKind::InstructionLimit);
    }
    let fault =
        ["s_cmp_lg_u32 s4, 3", "s_cbranch_scc1 @3", "v_add_nc_u32 v2, 0x100000, v2", "v_xor_b32 v1, 1, v1"];
    for (result, _) in compare(&fault, &[LIMIT]) {
        let fault = result.expect_err("a fault");
        assert_eq!((fault.wave, fault.workgroup), (3, [0, 0, 0]), "{fault}");
    }
}

/// Compiled code that counts how often it is entered.
struct Counted {
    jit: Jit,
    visits: AtomicU32,
}

// SAFETY: as for the code itself.
unsafe impl Compiled for Counted {
    fn is_ready(&self) -> bool {
        self.jit.is_ready()
    }

    fn hotness(&self, cx: &Cx<'_>, program: &Program) -> HotnessCounters<'_> {
        self.jit.hotness(cx, program)
    }

    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> EnterResult<'a> {
        self.visits.fetch_add(1, Ordering::Relaxed);
        self.jit.enter(cx, program, start, end, waves)
    }
}

/// A workgroup starts in place of one that has ended, in the same visit of compiled code. It finds registers, modes and
/// memories as the first one does. In an observed run, the scheduler starts each of them: results, counts and faults are
/// the same.
#[test]
fn workgroups_start_where_others_have_ended() {
    let stale = [
        "ds_load_b32 v6, v5",
        "s_waitcnt lgkmcnt(0)",
        "v_add_nc_u32 v6, v6, v40",
        "v_add_nc_u32 v6, s20, v6",
        "v_add_nc_u32 v1, v6, v1",
        "v_and_b32 v6, 0x7fffff, v1",
        "v_add_f32 v6, v6, v6",
        "v_add_nc_u32 v1, v6, v1",
        "ds_store_b32 v5, v1",
        "v_mov_b32 v40, v1",
        "s_movk_i32 s20, 77",
        "s_denorm_mode 12",
        "s_cmp_lg_u32 s0, 1",
        "s_cbranch_scc1 @15",
        "s_lshr_b32 exec_lo, exec_lo, 5",
        "v_xor_b32 v1, 1, v1",
    ];
    let faulty = [
        "s_add_i32 s8, s0, s4",
        "s_cmp_lg_u32 s8, 5",
        "s_cbranch_scc1 @4",
        "v_add_nc_u32 v2, 0x100000, v2",
        "v_xor_b32 v1, 1, v1",
    ];
    // A wave that writes MODE leaves code.
    let same_mode = stale.map(|line| if line == "s_denorm_mode 12" { "s_nop 0" } else { line });
    for (body, group) in [(&stale[..], None), (&same_mode, None), (&faulty, Some((1, 4)))] {
        let program = kernel(body, 32, Arch::Rdna3);
        for schedule in [Schedule::RoundRobin, Schedule::Reverse] {
            let observed = |dispatch: &Dispatch<'_>, memory: &Memory| {
                let (stats, result) = dispatch::run_observed(dispatch, memory, &mut NoObserver);
                result.map(|()| stats)
            };
            let expected = launch_by(observed, &program, 32, schedule, LIMIT, None);
            match (&expected.0, group) {
                (Err(fault), Some((group, wave))) => {
                    assert_eq!((fault.workgroup, fault.wave), ([group, 0, 0], wave), "{fault}")
                }
                (result, _) => assert!(result.is_ok() && group.is_none(), "{result:?}"),
            }
            assert_eq!(launch(&program, 32, schedule, LIMIT, None), expected);
            let jit = Jit::with_threshold(&program, 0).expect("a supported host");
            let code = Counted { jit, visits: AtomicU32::new(0) };
            assert_eq!(launch(&program, 32, schedule, LIMIT, Some(&code)), expected);
            assert_eq!(launch(&program, 32, schedule, LIMIT, Some(&code)), expected);
            if body == same_mode {
                assert_eq!(code.visits.load(Ordering::Relaxed), 2, "one for each launch");
            }
        }
    }
}
