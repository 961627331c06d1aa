//! Float arithmetic near the smallest normal number.

use super::families::handler_lines;
use super::{program, random, run, start};
use wavesim_jit::Jit;
use wavesim_machine::state::LaneVec;

/// Returns an edge-case float: denormals, the smallest normal numbers, zeros, infinities, NaNs, and factors
/// that lead there.
fn edge(seed: &mut u64) -> u32 {
    let bits = random(seed) as u32;
    let sign = (random(seed) as u32 & 1) << 31;
    sign | match random(seed) % 12 {
        0 => bits & 0x007f_ffff,
        1 => 0x0080_0000 + bits % 3,
        2 => 0x007f_ffff - bits % 3,
        3 => 0x3f7f_ffff,
        4 => 0,
        5 => 0x7f80_0000,
        6 => 0x7fc0_0000 | bits & 0xffff,
        // Products of these are exact denormals.
        7 => (40 + bits % 60) << 23,
        8 => 1 << (bits % 23),
        _ => 0x3f00_0000 + bits % 0x0100_0000,
    }
}

/// Loops of float arithmetic whose values move around the smallest normal number, in packets whose lanes
/// execute all iterations. Registers and flags must be bit-identical to the interpreter's.
#[test]
fn denormals_in_loops() {
    let (mut seed, mut compared) = (1, 0);
    for case in 0..60_u64 {
        let mut lines = vec!["s_movk_i32 s4, 0x20".to_string()];
        let few = case.is_multiple_of(3);
        for _ in 0..3 + random(&mut seed) % 14 {
            let [d, a, b, c] = [(); 4].map(|()| random(&mut seed) % if few { 5 } else { 12 });
            let sign = |v: u64, n: u64| match n % 5 {
                0 => format!("-v{v}"),
                1 => format!("|v{v}|"),
                _ => format!("v{v}"),
            };
            let (x, y) = (sign(a, random(&mut seed)), sign(b, random(&mut seed)));
            lines.push(match random(&mut seed) % 14 {
                0 | 1 => format!("v_add_f32_e64 v{d}, {x}, {y}"),
                2 | 3 => format!("v_mul_f32_e64 v{d}, {x}, {y}"),
                4 | 5 => format!("v_fma_f32 v{d}, {x}, {y}, v{c}"),
                6 => format!("v_sub_f32 v{d}, v{a}, v{b}"),
                7 => format!("v_fmac_f32 v{d}, v{a}, v{b}"),
                8 => format!("v_max_f32 v{d}, v{a}, v{b}"),
                9 => format!("v_mov_b32 v{d}, v{a}"),
                10 => format!("v_xor_b32 v{d}, v{a}, v{b}"),
                11 => format!("v_mul_f32 v{d}, 0.5, v{a}"),
                12 => format!("v_floor_f32 v{d}, v{a}"),
                _ => format!("v_add_nc_u32 v{d}, v{a}, v{b}"),
            });
        }
        lines.push("s_add_i32 s4, s4, -1".to_string());
        lines.push("s_cmp_lg_u32 s4, 0".to_string());
        lines.push("s_cbranch_scc1 @1".to_string());
        lines.push("s_endpgm".to_string());
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for (size, mode) in [(32, 0xc0), (64, 0xc0), (32, 0xf0)] {
            let program = program(&lines, size);
            let code = Jit::with_threshold(&program, 0).expect("a supported host");
            let mut plain = start(size, mode);
            let mild = random(&mut seed).is_multiple_of(2);
            for half in 0..plain.halves() {
                for reg in 0..12 {
                    // With few denormals, code runs for a while before it reaches one.
                    let mut lane = |_: usize| match mild && !random(&mut seed).is_multiple_of(64) {
                        true => 0x3f00_0000 + random(&mut seed) as u32 % 0x0080_0000,
                        false => edge(&mut seed),
                    };
                    let lanes = LaneVec(std::array::from_fn(&mut lane));
                    plain.set_lane_vec(half, reg, lanes);
                }
            }
            if random(&mut seed).is_multiple_of(4) {
                plain.set_exec(random(&mut seed) | random(&mut seed) << 32);
            }
            let mut compiled = plain.clone();
            for turn in 0..3 {
                let (a, b) =
                    (run(&program, &mut plain, 1500, None), run(&program, &mut compiled, 1500, Some(&code)));
                assert_eq!(a, b, "case {case} turn {turn} wave{size} mode {mode:x}: {lines:#?}");
            }
            assert_eq!((plain.sgprs, plain.scc, plain.pc), (compiled.sgprs, compiled.scc, compiled.pc));
            for half in 0..plain.halves() {
                for lane in 0..32 {
                    compared += 1;
                    for reg in 0..16 {
                        let (a, b) =
                            (plain.lane_vec(half, reg).0[lane], compiled.lane_vec(half, reg).0[lane]);
                        assert!(
                            a == b,
                            "case {case} wave{size} {mode:x} v{reg}[{lane}]: {a:x} {b:x} {lines:#?}"
                        );
                    }
                }
            }
            assert_eq!(code.stats().failed, 0);
        }
    }
    assert!(compared > 2000, "{compared} lanes");
}

/// f64 denormals are kept where those of f32 are flushed, in one run or in several.
#[test]
fn denormals_of_doubles_between_floats() {
    for between in ["v_mov_b32 v20, v21", "s_mov_b32 exec_lo, -1"] {
        let lines = [
            "s_movk_i32 s4, 0x8",
            "v_mul_f32 v1, v2, v3",
            between,
            "v_add_f64 v[4:5], v[6:7], v[8:9]",
            between,
            "v_fma_f32 v1, v1, v3, v2",
            "v_fract_f64 v[10:11], v[6:7]",
            "v_mul_f32 v12, v1, v3",
            "s_add_i32 s4, s4, -1",
            "s_cmp_lg_u32 s4, 0",
            "s_cbranch_scc1 @1",
            "s_endpgm",
        ];
        let program = program(&lines, 32);
        let code = Jit::with_threshold(&program, 0).expect("a supported host");
        let mut plain = start(32, 0xc0);
        for reg in [6, 8] {
            plain.set_lane_vec(0, reg, LaneVec(std::array::from_fn(|lane| 1 + lane as u32)));
            plain.set_lane_vec(0, reg + 1, LaneVec([0; 32]));
        }
        let mut compiled = plain.clone();
        let ended = run(&program, &mut plain, 1500, None);
        assert_eq!(ended, run(&program, &mut compiled, 1500, Some(&code)));
        for reg in 0..16 {
            assert_eq!(plain.lane_vec(0, reg), compiled.lane_vec(0, reg), "v{reg}, {between}");
        }
        let (sum, fraction) = (compiled.lane_vec(0, 4).0, compiled.lane_vec(0, 10).0);
        assert!(sum.iter().zip(1..).all(|(sum, lane)| *sum == 2 * lane), "{sum:?}");
        assert!(fraction.iter().zip(1..).all(|(fraction, lane)| *fraction == lane), "{fraction:?}");
        assert!(code.stats().failed == 0 && code.stats().operations > 10, "{:?}", code.stats());
    }
}

/// The same, but MXCSR.DAZ is set between blocks: handlers that the code calls must still keep f64 denormals.
#[test]
fn denormals_of_doubles_in_handlers() {
    let handler = "v_add_f64 v[12:13], v[6:7], v[8:9] mul:2";
    let lines = [
        "s_movk_i32 s4, 0x8",
        "v_mul_f32 v1, v2, v3",
        "v_fma_f32 v1, v1, v3, v2",
        handler,
        "v_add_f32 v14, v1, v3",
        "s_add_i32 s4, s4, -1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 @1",
        "s_endpgm",
    ];
    let program = program(&lines, 32);
    assert_eq!(handler_lines(&program, &lines), [handler, "s_endpgm"]);
    let code = Jit::with_threshold(&program, 0).expect("a supported host");
    let mut wave = start(32, 0xc0);
    for reg in [6, 8] {
        wave.set_lane_vec(0, reg, LaneVec(std::array::from_fn(|lane| 1 + lane as u32)));
        wave.set_lane_vec(0, reg + 1, LaneVec([0; 32]));
    }
    let (_, executed) = run(&program, &mut wave, 1500, Some(&code));
    assert_eq!((executed, code.stats().failed), (1 + 8 * 7 + 1, 0));
    // MODE keeps denormals, so that the output modifier is ignored.
    let sum = wave.lane_vec(0, 12).0;
    assert!(sum.iter().zip(1..).all(|(sum, lane)| *sum == 2 * lane), "{sum:?}");
}
