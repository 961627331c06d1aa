//! 8-bit floats: the overflow table of the RDNA4 ISA manual (*OPSEL with FP8 and BF8 Conversions*) and
//! stochastic rounding.

use super::named::*;
use isa_spec::arith::*;
use isa_spec::pcode::ir::Ty;

const KEEP: FloatEnv = FloatEnv::KEEP;
const CLAMP: FloatEnv = FloatEnv { overflow_clamps: true, ..FloatEnv::KEEP };

#[test]
fn overflow_table() {
    let nan8 = |bits: u8| Format::FP8.is_nan(bits as u64);
    for (sign, s8) in [(0, 0), (0x8000_0000, 0x80)] {
        let (inf, big) = (sign | 0x7f80_0000, sign | 1e6f32.to_bits());
        for x in [inf, big] {
            assert!(nan8(f32_to_fp8(x, &KEEP)));
            assert_eq!(f32_to_fp8(x, &CLAMP), s8 | 0x7e);
            assert_eq!(f32_to_bf8(x, &KEEP), s8 | 0x7c);
            assert_eq!(f32_to_bf8(x, &CLAMP), s8 | 0x7b);
        }
        for env in [&KEEP, &CLAMP] {
            assert!(nan8(f32_to_fp8(sign | 0x7fc0_0000, env)));
            assert!(Format::BF8.is_nan(f32_to_bf8(sign | 0x7fc0_0000, env) as u64));
        }
    }
    assert_eq!(f32_to_fp8(448f32.to_bits(), &KEEP), 0x7e);
    assert_eq!(f32_to_fp8(464f32.to_bits(), &KEEP), 0x7e, "half-way to 480 (a NaN's pattern) rounds to even");
    assert!(nan8(f32_to_fp8(464.1f32.to_bits(), &KEEP)));
    assert_eq!(f32_to_fp8(2f32.powi(-9).to_bits(), &KEEP), 1);
    // MODE's rounding and denormal bits do not matter.
    assert_eq!(f32_to_fp8(1.06f32.to_bits(), &KEEP.with_round(Round::Up)), 0x38);
}

/// Over all seeds, the share that rounds up is the fraction dropped.
#[test]
fn stochastic_rounding_is_fair() {
    for (ty, step_bits) in [(Ty::FP8, 20), (Ty::BF8, 21)] {
        for quarter in 0..4u32 {
            let x = 1.5f32.to_bits() + (quarter << (step_bits - 2));
            let low = stochastic_8(1.5f32.to_bits() as u128, 0, ty, &KEEP);
            let seeds = (0..256u32).map(|s| s << 24 | 0xff_ffff);
            let up = seeds.filter(|&s| stochastic_8(x as u128, s, ty, &KEEP) == low + 1).count();
            assert_eq!(up, 64 * quarter as usize, "{ty:?} {quarter}/4");
        }
    }
}

#[test]
fn stochastic_edges() {
    // A carry reaches the exponent.
    assert_eq!(stochastic_8(1.999f32.to_bits() as u128, u32::MAX, Ty::FP8, &KEEP), 0x40);
    assert_eq!(stochastic_8(1.999f32.to_bits() as u128, 0, Ty::FP8, &KEEP), 0x3f);
    // An exact value stays for every seed.
    for seed in [0, 1, 0x8000_0000, u32::MAX] {
        assert_eq!(stochastic_8((-448f32).to_bits() as u128, seed, Ty::FP8, &KEEP), 0xfe);
        assert_eq!(stochastic_8(57344f32.to_bits() as u128, seed, Ty::BF8, &KEEP), 0x7b);
    }
    assert_eq!(stochastic_8(500f32.to_bits() as u128, 0, Ty::FP8, &KEEP), 0x7f);
    assert_eq!(stochastic_8(500f32.to_bits() as u128, 0, Ty::FP8, &CLAMP), 0x7e);
    assert_eq!(stochastic_8(0x7f80_0000, 0, Ty::BF8, &KEEP), 0x7c);
    assert_eq!(stochastic_8(0x8000_0000, 0, Ty::FP8, &KEEP), 0x80);
}

/// Widening and narrowing again is the identity.
#[test]
fn round_trips() {
    for x in 0..=255u8 {
        if !Format::FP8.is_nan(x as u64) {
            assert_eq!(f32_to_fp8(fp8_to_f32(x, &KEEP), &KEEP), x);
        }
        if !Format::BF8.is_nan(x as u64) {
            assert_eq!(f32_to_bf8(bf8_to_f32(x, &KEEP), &KEEP), x);
        }
    }
}
