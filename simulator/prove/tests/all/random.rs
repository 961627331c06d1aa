//! Random pairs of similar sequences: what is said to be equal computes the same on random states.

use super::{ask_within, assemble};
use wavesim_engine::interp;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::context::Context;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::wave::{EXEC_LO, VCC_LO};
use wavesim_machine::state::{Wave, Workgroup};
use wavesim_prove::{Setup, Verdict};

/// `d`, `a` and `b` are VGPRs, `s` and `t` SGPRs, and `n` is a constant.
const INSTRUCTIONS: [&str; 30] = [
    "v_add_nc_u32 v{d}, v{a}, v{b}",
    "v_sub_nc_u32 v{d}, v{a}, v{b}",
    "v_and_b32 v{d}, v{a}, v{b}",
    "v_or_b32 v{d}, v{a}, v{b}",
    "v_xor_b32 v{d}, s{s}, v{b}",
    "v_lshlrev_b32 v{d}, {n}, v{b}",
    "v_lshrrev_b32 v{d}, {n}, v{b}",
    "v_ashrrev_i32 v{d}, {n}, v{b}",
    "v_min_u32 v{d}, v{a}, v{b}",
    "v_max_i32 v{d}, v{a}, s{s}",
    "v_cmp_lt_u32 vcc_lo, v{a}, v{b}",
    "v_cmp_ge_i32 s{t}, v{a}, v{b}",
    "v_cndmask_b32 v{d}, v{a}, v{b}, vcc_lo",
    "v_cndmask_b32 v{d}, v{a}, v{b}, s{t}",
    "v_bfe_u32 v{d}, v{a}, {n}, 5",
    "v_mov_b32 v{d}, v{a}",
    "v_mov_b32 v{d}, s{s}",
    "v_not_b32 v{d}, v{a}",
    "v_pk_add_u16 v{d}, v{a}, v{b}",
    "v_bfi_b32 v{d}, v{a}, v{b}, v{d}",
    "v_alignbit_b32 v{d}, v{a}, v{b}, {n}",
    "v_mbcnt_lo_u32_b32 v{d}, s{s}, v{a}",
    "s_and_b32 s{t}, s{t}, s{s}",
    "s_xor_b32 vcc_lo, s{t}, exec_lo",
    "s_mov_b32 exec_lo, s{t}",
    "s_add_u32 s{s}, s{s}, s{t}",
    "s_and_saveexec_b32 s{t}, vcc_lo",
    "v_readfirstlane_b32 s{s}, v{a}",
    "s_cselect_b32 s{s}, s{t}, s{s}",
    "v_add_co_u32 v{d}, vcc_lo, v{a}, v{b}",
];

/// A linear congruence, so that cases are reproducible.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *seed >> 33
}

/// Fills in a template.
fn instruction(seed: &mut u64) -> String {
    let mut line = INSTRUCTIONS[(next(seed) % INSTRUCTIONS.len() as u64) as usize].to_string();
    for (name, n) in [("{d}", 3), ("{a}", 3), ("{b}", 3)] {
        line = line.replace(name, &(next(seed) % n).to_string());
    }
    line = line
        .replace("{s}", &(4 + next(seed) % 2).to_string())
        .replace("{t}", &(6 + next(seed) % 2).to_string());
    line.replace("{n}", &(next(seed) % 32).to_string())
}

/// `WAVESIM_PROOFS` pairs, from `WAVESIM_SEED` on.
#[test]
fn equal_sequences_compute_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let count = number("WAVESIM_PROOFS").unwrap_or(8);
    let first = number("WAVESIM_SEED").or(number("PROPTEST_RNG_SEED")).unwrap_or(1);
    let (mut equal, mut different, mut other) = (0, 0, 0);
    for case in 0..count {
        let mut seed = (first << 20) + case;
        for _ in 0..4 {
            next(&mut seed);
        }
        let a: Vec<String> = (0..1 + next(&mut seed) % 4).map(|_| instruction(&mut seed)).collect();
        let mut b = a.clone();
        match next(&mut seed) % 4 {
            0 => {
                let at = next(&mut seed) as usize % b.len();
                b[at] = instruction(&mut seed);
            }
            1 => {
                let at = next(&mut seed) as usize % b.len();
                let line = instruction(&mut seed);
                b.insert(at, line);
            }
            2 if b.len() > 1 => {
                let at = next(&mut seed) as usize % (b.len() - 1);
                b.swap(at, at + 1);
            }
            _ => {
                let at = next(&mut seed) as usize % b.len();
                b.remove(at);
            }
        }
        if b.is_empty() {
            continue;
        }
        let texts = [a.join("; "), b.join("; ")];
        let setup = Setup { full_exec: next(&mut seed).is_multiple_of(2), ..Setup::new(Arch::Rdna3, 32) };
        let Some(verdict) = ask_within(5, setup.clone(), [&texts[0], &texts[1]], &[], None) else {
            return;
        };
        match verdict {
            Ok(Verdict::Equal) => equal += 1,
            Ok(Verdict::Differ(_)) => {
                different += 1;
                continue;
            }
            Err(e) => panic!("{texts:?} {e}"),
            _ => {
                other += 1;
                continue;
            }
        }
        for _ in 0..60 {
            let mut start = Wave::new(32);
            for lane in 0..32 {
                for reg in 0..4 {
                    let v = match next(&mut seed) % 3 {
                        0 => next(&mut seed) as u32 % 3,
                        _ => (next(&mut seed) << 7) as u32 ^ next(&mut seed) as u32,
                    };
                    start.set_vgpr(lane, reg, v);
                }
            }
            for code in (4..8).chain([VCC_LO]) {
                start.sgprs[code] = if next(&mut seed).is_multiple_of(3) {
                    0
                } else {
                    (next(&mut seed) << 5) as u32 ^ next(&mut seed) as u32
                };
            }
            start.scc = next(&mut seed) as u32 & 1;
            if !setup.full_exec {
                start.set_exec(if next(&mut seed).is_multiple_of(4) {
                    0
                } else {
                    next(&mut seed) << 3 ^ next(&mut seed)
                });
            } else {
                start.set_exec(u64::MAX);
            }
            let ends: Vec<Wave> = texts
                .iter()
                .map(|text| {
                    let program = assemble(Arch::Rdna3, 32, text);
                    let mut wave = start.clone();
                    let (memory, mut group) = (Memory::empty(), Workgroup::new(1));
                    let mut cx = Context::new(&memory, &mut [], &mut group);
                    let _ = interp::run(&program, &mut wave, &mut cx, 1000, &mut 0);
                    wave
                })
                .collect();
            for reg in 0..4 {
                for lane in 0..32 {
                    assert_eq!(
                        ends[0].vgpr(lane, reg),
                        ends[1].vgpr(lane, reg),
                        "{texts:?} v{reg} lane {lane} {setup:?}"
                    );
                }
            }
            for code in [4, 5, 6, 7, VCC_LO, EXEC_LO] {
                assert_eq!(ends[0].sgprs[code], ends[1].sgprs[code], "{texts:?} s{code} {setup:?}");
            }
            assert_eq!(ends[0].scc, ends[1].scc, "{texts:?}");
        }
    }
    println!("{equal} equal, {different} different, {other} unknown");
    // Of a few, all may be of one kind.
    assert!(
        count < 30 || equal * 20 >= count && different * 4 >= count,
        "of {count} pairs, {equal} equal and {different} different"
    );
}
