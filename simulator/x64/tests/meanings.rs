//! The meaning of every vector instruction on random and special operands, in all kinds of locations, and the float
//! operations with flushed denormals. The same on every host.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use common::eval::Vector;
use common::meaning::{double, doubles, from_doubles, meaning, single};
use common::{Rng, host, run};
use wavesim_x64::inst::{Inst, Mem, Src, V};
use wavesim_x64::{Code, Function};

/// Words that matter as integers, counts of shifts, and halves of f64.
const WORDS: [u32; 16] =
    [0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX];
/// f32: zeros, denormals, numbers whose products are denormal or round to the least normal one, NaNs of both kinds,
/// limits of integers.
const SINGLES: [u32; 30] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x0080_0001,
    0x3f00_0000,
    0x4000_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0001,
    0xffc0_0002,
    0x7f80_0003,
    0xffa0_0004,
    0x4f00_0000,
    0xcf00_0000,
    0xcf00_0001,
    0x4eff_ffff,
    0x4b00_0001,
    0x3fc0_0000,
    0xc020_0000,
    0x3300_0000,
];
const DOUBLES: [u64; 20] = [
    0,
    1 << 63,
    1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbfef_ffff_ffff_ffff,
    0x3fe0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0001,
    0xfff0_0000_2000_0002,
    0x41df_ffff_ffff_ffff,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_001f_ffff,
    0xc1e0_0000_0020_0000,
    0x3810_0000_0000_0000,
    0x380f_ffff_ffff_ffff,
    0x3690_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
];

/// MXCSR with denormals kept, and with DAZ.
const CONTROLS: [u32; 2] = [0x1f80, 0x1fc0];

fn operand(rng: &mut Rng) -> Vector {
    let kind = rng.below(6);
    if kind == 0 {
        return from_doubles(std::array::from_fn(|_| rng.pick(&DOUBLES)));
    }
    std::array::from_fn(|_| match kind {
        1 => rng.pick(&WORDS),
        2 | 3 => rng.pick(&SINGLES),
        4 => rng.word() as u32 >> (rng.word() & 31),
        _ => rng.word() as u32,
    })
}

/// Runs `make` on vectors at offsets 0, 32 and 64 of memory, with some in registers, and others folded loads or
/// spilled. If a control is given, float control is set around it.
fn result(
    inputs: [Vector; 3],
    location: usize,
    control: Option<u32>,
    make: impl FnOnce(&mut Function, [V; 3]) -> V,
) -> Vector {
    let mut buffer = [inputs[0], inputs[1], inputs[2], [0; 8], [0; 8]].concat();
    buffer[32] = CONTROLS[0];
    buffer[33] = control.unwrap_or(0);
    let mut f = Function::new(2);
    let base = f.param(0);
    if control.is_some() {
        f.push(Inst::LoadMxcsr { from: Mem { base, disp: 132 } });
    }
    let sources = [0, 32, 64].map(|at| f.vload(base, at, location & 1 == 1));
    let count = if location & 2 == 2 { 30 } else { 0 };
    let others: Vec<V> = (0..count).map(|n| f.splat(false, f.param(n & 1))).collect();
    let d = make(&mut f, sources);
    f.vstore(base, 96, d);
    // These are used more often than the operands, so that they keep their registers.
    for _ in 0..9 {
        others.iter().for_each(|&v| f.vstore(base, 160, v));
    }
    if control.is_some() {
        f.push(Inst::LoadMxcsr { from: Mem { base, disp: 128 } });
    }
    if location & 1 == 0 {
        for (&v, at) in sources.iter().zip([0, 32, 64]) {
            f.vstore(base, at, v);
        }
    }
    f.push(Inst::Return { v: Src::Imm(0) });
    buffer.extend([0; 8]);
    run(&f, buffer.as_mut_ptr() as u64, 0);
    assert_eq!(buffer[..24], inputs.concat(), "the operands are unchanged");
    buffer[24..32].try_into().expect("eight words")
}

/// Whether a result is what is expected: where denormals are flushed, hosts may flush results, too.
fn agrees(made: Vector, expected: Vector, zeros: bool, wide: bool) -> bool {
    if made == expected || !zeros {
        return made == expected;
    }
    if wide {
        let flush = |v: Vector| doubles(v).map(|x| double::daz(x, true));
        return flush(made) == flush(expected);
    }
    made.map(|x| single::daz(x, true)) == expected.map(|x| single::daz(x, true))
}

fn is_wide_float(code: Code) -> bool {
    code.name().ends_with("pd") && code.name() != "vcvtps2pd"
}

fn may_flush(code: Code) -> bool {
    let operations = ["vadd", "vsub", "vmul", "vdiv"];
    operations.iter().any(|name| code.name() == format!("{name}ps") || code.name() == format!("{name}pd"))
        || code.name() == "vcvtpd2ps"
}

fn check(code: Code, rounds: usize, controls: &[Option<u32>]) {
    let mut rng = Rng(code as u64);
    for round in 0..rounds {
        let imm = code.has_imm().then(|| match code {
            // What rounding says, to nearest or toward zero; an exception does not matter.
            Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8 => rng.pick(&[0, 3]),
            Code::VEX_Vroundps_ymm_ymmm256_imm8 | Code::VEX_Vroundpd_ymm_ymmm256_imm8 => rng.below(12) as u8,
            Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8 | Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8 => {
                rng.below(32) as u8
            }
            _ => rng.word() as u8 >> (rng.word() & 7),
        });
        let inputs = [operand(&mut rng), operand(&mut rng), operand(&mut rng)];
        for &control in controls {
            let zeros = control == Some(CONTROLS[1]);
            // The second source is also the first one, or the result's.
            let [a, b] = if round % 8 == 7 { [inputs[0]; 2] } else { [inputs[0], inputs[1]] };
            let made = result(inputs, round % 4, control, |f, [x, y, _]| {
                let y = if round % 8 == 7 { x } else { y };
                match code.sources() {
                    1 => f.rm(code, y, imm),
                    _ => f.rvm(code, x, y, imm),
                }
            });
            let Some(expected) = meaning(code, imm.unwrap_or(0), a, b, zeros) else { continue };
            let flushes = zeros && may_flush(code);
            assert!(
                agrees(made, expected, flushes, is_wide_float(code)),
                "{code:?} {imm:?} {control:x?} {a:x?} {b:x?}: {made:x?}, not {expected:x?}"
            );
        }
    }
}

#[test]
fn every_instruction_means_the_same() {
    if host().is_none() {
        return;
    }
    for &code in Code::ALL {
        check(code, 48, &[None]);
    }
}

#[test]
fn floats_with_float_control() {
    if host().is_none() {
        return;
    }
    let is_float = |code: &&Code| code.name().ends_with("ps") || code.name().ends_with("pd");
    for &code in Code::ALL.iter().filter(is_float) {
        check(code, 32, &[Some(CONTROLS[0]), Some(CONTROLS[1])]);
    }
}

/// The estimate's relative error is at most 1.5 * 2^-12.
#[test]
fn estimates() {
    if host().is_none() {
        return;
    }
    let input: Vector = [1f32, 2.0, 3.0, 0.7, 1e30, 1e-30, 123.4, 65536.0].map(f32::to_bits);
    let made = result([input; 3], 0, None, |f, [x, ..]| f.rm(Code::VEX_Vrsqrtps_ymm_ymmm256, x, None));
    for (made, of) in made.map(f32::from_bits).into_iter().zip(input.map(f32::from_bits)) {
        let exact = 1.0 / f64::from(of).sqrt();
        assert!((f64::from(made) / exact - 1.0).abs() < 1.5 / 4096.0, "{of}: {made}");
    }
}

/// Sums of products of special numbers, with the operands and the result in all locations.
#[test]
fn fused_sums() {
    if host().is_none() {
        return;
    }
    let mut rng = Rng(5);
    for round in 0..200 {
        let mut inputs: [Vector; 3] = std::array::from_fn(|_| operand(&mut rng));
        // The result replaces this operand, counted from 1, or none. The last kind: a factor that is the addend, too.
        let replaced = round / 4 % 5;
        let both = replaced == 4;
        if both {
            inputs[2] = inputs[1];
        }
        for control in [None, Some(CONTROLS[0]), Some(CONTROLS[1])] {
            let zeros = control == Some(CONTROLS[1]);
            for wide in [false, true] {
                let made = result(inputs, round % 4, control, |f, [a, b, c]| match replaced {
                    0 => f.fma(wide, a, b, c),
                    n => {
                        let copies = [a, b, c].map(|v| {
                            let d = f.fresh(wavesim_x64::inst::Class::Vec);
                            f.push(Inst::Move { d, a: v });
                            d
                        });
                        let d = if both { copies[1] } else { copies[n - 1] };
                        let c = if both { d } else { copies[2] };
                        f.push(Inst::Fma { wide, d, a: copies[0], b: copies[1], c });
                        d
                    }
                });
                let expected: Vector = if wide {
                    let [a, b, c] = inputs.map(doubles);
                    from_doubles(std::array::from_fn(|i| {
                        let operands = [a[i], b[i], c[i]].map(|x| double::daz(x, zeros));
                        double::result(&operands, |x| x[0].mul_add(x[1], x[2]))
                    }))
                } else {
                    std::array::from_fn(|i| {
                        let operands = inputs.map(|v| single::daz(v[i], zeros));
                        single::result(&operands, |x| x[0].mul_add(x[1], x[2]))
                    })
                };
                assert!(
                    agrees(made, expected, zeros, wide),
                    "{control:x?} {wide} {round} {inputs:x?}: {made:x?}, not {expected:x?}"
                );
            }
        }
    }
}
