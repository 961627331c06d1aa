//! Tests of `wavesim_machine::exec::rt::memory` with whole instructions.

use crate::interp;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::Context;
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
