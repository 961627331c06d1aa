//! Tests of `wavesim_machine::exec::rt::block` with whole instructions.

use crate::interp;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::lower::Lowered;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::rt::watch::{Access, Logs, Watch};
use wavesim_machine::exec::rt::{Cx, Flow};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

const BYTES: usize = 1024;

/// Selects how an instruction is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The handlers for this host.
    Fast,
    /// The portable handlers.
    Portable,
    /// Either kind, with a watch.
    Watched { fast: bool },
}

/// Result, registers, memory and LDS after one instruction, and the lanes' accesses if there was a watch.
type After = (Result<(), Event>, Vec<LaneVec>, Vec<u8>, Vec<Access>);

fn instruction(text: &str) -> Inst {
    parse(text, &Options::new(Arch::Rdna3), &NoSymbols).expect(text).inst
}

/// `high`: v[0:1] is a 64-bit address whose upper half is that of the buffer plus this per-lane value.
fn run_one(by: By, inst: &Inst, lanes: &LaneVec, high: Option<fn(u32) -> u32>, exec: u32) -> After {
    let bytes: Vec<u8> = (0..BYTES as u32).map(|b| (b.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let mut memory = Memory::new(1 << 20).expect("a small memory");
    let base = memory.alloc(BYTES as u64, 256, "buffer").expect("room");
    memory.write(base, &bytes).expect("inside");
    let mut lds = bytes.clone();
    let mut wave = Wave::new(32);
    (wave.sgprs[4], wave.sgprs[5]) = (base as u32, (base >> 32) as u32);
    // The block fast path tries the range that the previous instruction accessed.
    let mut start = Workgroup::new(1);
    let mut before = Context::new(&memory, &mut [], &mut start);
    let first = instruction("global_load_b32 v1, v0, s[4:5]");
    assert_eq!(interp::step(Arch::Rdna3, &first, &mut wave, &mut before), Some(Ok(())));
    wave.set_exec(exec as u64);
    wave.set_lane_vec(0, 0, *lanes);
    for reg in 1..12 {
        wave.set_lane_vec(0, reg, LaneVec(std::array::from_fn(|l| 0x0101_0000 * reg as u32 + l as u32)));
    }
    if let Some(high) = high {
        // The lower half of `base` is 0.
        wave.set_lane_vec(
            0,
            1,
            LaneVec(std::array::from_fn(|l| ((base >> 32) as u32).wrapping_add(high(l as u32)))),
        );
    }
    let mut workgroup = Workgroup::new(1);
    let mut context = Context::new(&memory, &mut lds, &mut workgroup);
    let mut log = Vec::new();
    let result = match by {
        By::Fast => interp::step(Arch::Rdna3, inst, &mut wave, &mut context).expect("a handler"),
        By::Portable => {
            interp::step_with(None, Arch::Rdna3, inst, &mut wave, &mut context).expect("a handler")
        }
        By::Watched { fast } => {
            let mut logs = Logs::default();
            let mut watch = Watch {
                memory: context.memory,
                lds: &mut *context.lds,
                scratch: &mut [],
                scratch_stride: 0,
                logs: &mut logs,
                quiet: false,
                keeps_loads: false,
                keep_going: false,
            };
            let nothing = Memory::empty();
            let mut blind = Context::new(&nothing, &mut [], &mut *context.workgroup);
            let mut lowered = Lowered::default();
            lowered.push(Arch::Rdna3, inst, 0, 0).expect("one instruction");
            let fast = Avx2::detect().filter(|_| fast);
            let mut cx = Cx::new(
                &crate::handlers::HANDLERS,
                fast,
                Arch::Rdna3,
                &mut wave,
                &mut blind,
                lowered.pools(),
                0,
            );
            cx.watch = Some(&mut watch);
            // SAFETY: `lowered` belongs to `cx`.
            let flow = unsafe { crate::handlers::dispatch(&mut cx, &lowered.ops()[0]) };
            let result = match flow {
                Flow::NEXT => Ok(()),
                _ => Err(cx.event.take().expect("a fault")),
            };
            log.extend(logs.accesses.drain(..).flat_map(Access::each));
            log.sort_by_key(|a| (a.lane, a.address));
            result
        }
    };
    let mut both = vec![0; BYTES];
    memory.read(base, &mut both).expect("inside");
    both.extend(lds);
    (result, (0..12).map(|reg| *wave.lane_vec(0, reg)).collect(), both, log)
}

#[test]
fn blocks_match_per_lane_accesses() {
    let global = |dwords: u32| {
        let (size, last) = (32 * dwords, 3 + dwords);
        [
            format!("global_load_b{size} v[4:{last}], v0, s[4:5]"),
            format!("global_load_b{size} v[4:{last}], v0, s[4:5] offset:12"),
            format!("global_load_b{size} v[0:{}], v0, s[4:5]", dwords - 1),
            format!("global_store_b{size} v0, v[4:{last}], s[4:5]"),
            format!("global_load_b{size} v[4:{last}], v[0:1], off"),
            format!("global_load_b{size} v[0:{}], v[0:1], off offset:12", dwords - 1),
            format!("global_store_b{size} v[0:1], v[4:{last}], off"),
            format!("ds_load_b{size} v[4:{last}], v0"),
            format!("ds_load_b{size} v[0:{}], v0 offset:20", dwords - 1),
            format!("ds_store_b{size} v0, v[4:{last}] offset:4"),
        ]
    };
    let two = [
        "ds_load_2addr_b32 v[4:5], v0 offset0:1 offset1:17",
        "ds_load_2addr_b32 v[0:1], v0 offset1:3",
        "ds_load_2addr_b64 v[4:7], v0 offset1:2",
        "ds_load_2addr_stride64_b32 v[4:5], v0 offset1:1",
        "ds_store_2addr_b32 v0, v4, v5 offset1:9",
    ];
    let texts = (1..=4).flat_map(global).chain(two.map(String::from));
    // Unit stride for each element size, uniform, two runs of sixteen, descending, at and beyond the end, and
    // misaligned.
    let patterns: [fn(u32) -> u32; 11] = [
        |l| 4 * l,
        |l| 8 * l,
        |l| 12 * l + 8,
        |l| 16 * l,
        |_| 36,
        |l| 4 * (l % 16) + 64 * (l / 16),
        |l| 4 * (31 - l),
        |l| BYTES as u32 - 128 + 4 * l,
        |l| BYTES as u32 - 124 + 4 * l,
        |l| 4 * l + 1,
        |l| (4 * l).wrapping_sub(16),
    ];
    // Upper halves of 64-bit addresses: all in the memory, or one lane elsewhere.
    let highs: [fn(u32) -> u32; 2] = [|_| 0, |l| (l == 7) as u32];
    let cases = texts.flat_map(|text| {
        let wide = text.ends_with("off") || text.contains("off ");
        let highs: Vec<_> = if wide { highs.map(Some).to_vec() } else { vec![None] };
        highs.into_iter().map(move |high| (text.clone(), high))
    });
    let mut full_exec_cases = 0;
    for (text, high) in cases {
        let inst = instruction(&text);
        for (number, pattern) in patterns.iter().enumerate() {
            for exec in [u32::MAX, 0x7fff_ffff, 0xffff_0000, 0] {
                let lanes = LaneVec(std::array::from_fn(|l| pattern(l as u32)));
                let by = |by| run_one(by, &inst, &lanes, high, exec);
                let (fast, portable) = (by(By::Fast), by(By::Portable));
                let (watched, watched_portable) =
                    (by(By::Watched { fast: true }), by(By::Watched { fast: false }));
                assert_eq!(fast.0, portable.0, "{text}, pattern {number}, EXEC {exec:x}");
                // After a fault, the two may have stopped at different lanes.
                if fast.0.is_ok() {
                    assert_eq!(fast.1, portable.1, "{text}, pattern {number}, EXEC {exec:x}");
                    assert!(fast.2 == portable.2, "{text}, pattern {number}, EXEC {exec:x}: memory");
                    assert!(watched == watched_portable, "{text}, pattern {number}, EXEC {exec:x}: watched");
                    assert_eq!(watched.1, fast.1, "{text}, pattern {number}, EXEC {exec:x}: watched");
                    assert!(watched.2 == fast.2, "{text}, pattern {number}, EXEC {exec:x}: watched memory");
                    full_exec_cases += (exec == u32::MAX) as u32;
                }
            }
        }
    }
    assert!(full_exec_cases > 200, "{full_exec_cases}");
}
