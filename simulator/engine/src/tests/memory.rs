//! Tests of `wavesim_machine::exec::rt::memory` with whole instructions.

use crate::interp;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

/// Offsets that are consecutive only modulo 32 bits: the eight lanes around the wrap are at opposite ends of
/// 4 GiB.
#[test]
#[cfg_attr(miri, ignore = "Miri has no pages that cost nothing until they are touched")]
fn offsets_do_not_wrap_into_each_other() {
    const GIB: u64 = 1 << 30;
    // Untouched pages cost nothing, but a host may refuse to reserve them.
    let Ok(mut memory) = Memory::new(5 * GIB) else {
        println!("skipped: the host has no address space for 5 GiB");
        return;
    };
    let base = memory.alloc(5 * GIB, 256, "buffer").expect("room");
    let offset = |lane: u32| 0xffff_fff0u32.wrapping_add(4 * lane);
    let write = |at: u64, word: u32| memory.write(at, &word.to_le_bytes()).expect("inside");
    for lane in 0..32 {
        write(base + 0xffff_fff0 + 4 * lane as u64, 0xbad0 + lane);
    }
    (0..32).for_each(|lane| write(base + offset(lane) as u64, 100 + lane));
    let text = "global_load_b32 v1, v0, s[4:5]";
    let inst = parse(text, &Options::new(Arch::Rdna3), &NoSymbols).expect("an instruction").inst;
    for portably in [false, true] {
        let mut wave = Wave::new(32);
        wave.set_exec(u32::MAX as u64);
        (wave.sgprs[4], wave.sgprs[5]) = (base as u32, (base >> 32) as u32);
        wave.set_lane_vec(0, 0, LaneVec(std::array::from_fn(|lane| offset(lane as u32))));
        let mut workgroup = Workgroup::new(1);
        let mut context = Context::new(&memory, &mut [], &mut workgroup);
        let result = match portably {
            false => interp::step(Arch::Rdna3, &inst, &mut wave, &mut context),
            true => interp::step_with(None, Arch::Rdna3, &inst, &mut wave, &mut context),
        };
        assert!(matches!(result, Some(Ok(()))));
        assert_eq!(wave.lane_vec(0, 1).0, std::array::from_fn(|lane| 100 + lane as u32));
    }
}

/// Prefetch hints last for a turn: neither results nor the number of instructions depend on them.
#[test]
fn results_do_not_depend_on_hints() {
    const BYTES: u64 = 1 << 16;
    let lines = [
        "global_load_b32 v1, v0, s[4:5]",
        "v_add_nc_u32 v2, v2, v1",
        "global_store_b32 v0, v2, s[4:5] offset:128",
        "v_add_nc_u32 v0, 0x100, v0",
        "s_sub_u32 s6, s6, 1",
        "s_cmp_lg_u32 s6, 0",
        "s_cbranch_scc1 65526",
        "s_endpgm",
    ];
    let parsed = |line| (parse(line, &Options::new(Arch::Rdna3), &NoSymbols).expect(line).inst, 0);
    let program = Program::new(Arch::Rdna3, lines.into_iter().map(parsed).collect()).expect("a program");
    let outcome = |turn: u64| {
        let mut memory = Memory::new(BYTES).expect("room");
        let base = memory.alloc(BYTES / 2, 256, "buffer").expect("room");
        (0..BYTES as u32 / 8)
            .for_each(|n| memory.write(base + 4 * n as u64, &n.to_le_bytes()).expect("inside"));
        let mut wave = Wave::new(32);
        wave.set_exec(u32::MAX as u64);
        (wave.sgprs[4], wave.sgprs[5], wave.sgprs[6]) = (base as u32, (base >> 32) as u32, 60);
        wave.set_lane_vec(0, 0, LaneVec(std::array::from_fn(|lane| 4 * lane as u32)));
        let (mut workgroup, mut executed) = (Workgroup::new(1), 0);
        let ended = loop {
            let mut context = Context::new(&memory, &mut [], &mut workgroup);
            context.instructions = executed;
            if let Err(event) = interp::run(&program, &mut wave, &mut context, turn, &mut executed) {
                break event;
            }
        };
        let mut bytes = vec![0; BYTES as usize / 2];
        memory.read(base, &mut bytes).expect("inside");
        (format!("{ended:?}"), executed, *wave.lane_vec(0, 2), bytes)
    };
    let expected = outcome(u64::MAX);
    assert_eq!((&expected.0[..], expected.1), ("EndPgm", 60 * 7 + 1));
    for turn in [1, 8, 50] {
        assert!(outcome(turn) == expected, "turns of {turn}");
    }
}
