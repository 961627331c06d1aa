//! Comparison of the host arithmetic of fast handlers with the evaluator's definitions: for all arguments of
//! 16 bits, and for random wider ones with an emphasis on edge cases.

use super::*;
use isa_spec::arith::{self, FloatEnv};
use wavesim_state::LaneVec;
use wavesim_state::host::Avx2;

/// A generator of random arguments.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Generates a value of a type: floats with exponents and fractions at their limits, near each other, or
    /// random; small counts.
    fn value(&mut self, ty: Ty) -> u64 {
        let (exponent_bits, fraction_bits) = match ty {
            Ty::F16 => (5, 10),
            Ty::F32 => (8, 23),
            Ty::F64 => (11, 52),
            Ty::I(32) => {
                let any = self.bits() as i32;
                let spread = [3, 30, 60, 300, 1100, 2200][self.below(6) as usize];
                let n = if self.below(8) == 0 { any } else { any % spread };
                return n as u32 as u64;
            }
            ty => return self.bits() & ((1u128 << ty.width()) - 1) as u64,
        };
        let (ones, most) = ((1u64 << fraction_bits) - 1, (1u64 << exponent_bits) - 1);
        let fraction = match self.below(6) {
            0 => 0,
            1 => ones - self.below(3),
            2 => self.below(3),
            // Few leading bits produce ties.
            3 => self.bits() & ones & !(ones >> self.below(fraction_bits)),
            4 => (1 << self.below(fraction_bits)) - 1,
            _ => self.bits() & ones,
        };
        let middle = most / 2;
        let exponent = match self.below(8) {
            0 => self.below(3),
            1 => most - self.below(3),
            2 | 3 => middle + self.below(8) - 4,
            4 | 5 => middle + self.below(2 * fraction_bits) - fraction_bits,
            _ => self.below(most + 1),
        };
        (self.bits() & 1) << (exponent_bits + fraction_bits) | exponent.min(most) << fraction_bits | fraction
    }
}

const FLUSH: FloatEnv = FloatEnv { flush_in32: true, flush_out32: true, ..FloatEnv::KEEP };

/// A builtin, and its implementation in the modes of fast handlers.
struct Case {
    builtin: Pure,
    types: &'static [Ty],
    fast: [fn(&[u64]) -> u64; 2],
}

impl Case {
    fn check(&self, args: &[u64]) {
        let wide: Vec<u128> = args.iter().map(|a| *a as u128).collect();
        for (fast, env) in self.fast.iter().zip([FloatEnv::KEEP, FLUSH]) {
            let exact = isa_spec::eval::pure(self.builtin, &wide, self.types, &env, false) as u64;
            let found = match (self.builtin, self.types) {
                // Outside handlers, this calls the host's library, which returns signalling NaNs unchanged.
                (Pure::Floor | Pure::Ceil | Pure::Trunc | Pure::Rndne, [F32]) => {
                    quiet_f32(fast(args) as u32) as u64
                }
                (Pure::Floor | Pure::Ceil | Pure::Trunc | Pure::Rndne, [F64]) => quiet_f64(fast(args)),
                _ => fast(args),
            };
            assert!(
                found == exact,
                "{:?} of {args:x?}, flushing {}: {found:x}, exact {exact:x}",
                self.builtin,
                env.flush_in32
            );
        }
    }
}

macro_rules! cases {
    ($($name:ident $builtin:ident ($($arg:ident $ty:expr),+) -> $result:expr;)*) => {
        [$(Case {
            builtin: Pure::$builtin,
            types: &[$($ty),+],
            fast: [
                |args| { let mut at = args.iter(); $(let $arg = *at.next().unwrap() as _;)+ $name(&Keep, $($arg),+) as u64 },
                |args| { let mut at = args.iter(); $(let $arg = *at.next().unwrap() as _;)+ $name(&Flush, $($arg),+) as u64 },
            ],
        }),*]
    };
}

const I16: Ty = Ty::I(16);
const I32: Ty = Ty::I(32);
const U16: Ty = Ty::U(16);
const U32: Ty = Ty::U(32);
use Ty::{BF8, BF16, F16, F32, F64, FP8};

#[test]
fn functions_of_one_argument() {
    let cases = cases! {
        floor_f16 Floor (a F16) -> F16; ceil_f16 Ceil (a F16) -> F16; trunc_f16 Trunc (a F16) -> F16;
        rndne_f16 Rndne (a F16) -> F16; fract_f16 Fract (a F16) -> F16;
        sqrt_f16 Sqrt (a F16) -> F16; rcp_f16 Rcp (a F16) -> F16; rsq_f16 Rsq (a F16) -> F16;
        frexp_mant_f16 FrexpMant (a F16) -> F16; frexp_exp_f16 FrexpExp (a F16) -> I32;
        cvt_f16_f32 F16ToF32 (a F16) -> F32; cvt_f16_i16 F16ToI16 (a F16) -> I16; cvt_f16_u16 F16ToU16 (a F16) -> U16;
        snorm_f16 F16ToSnorm (a F16) -> I16; unorm_f16 F16ToUnorm (a F16) -> U16;
        cvt_i16_f16 I16ToF16 (a I16) -> F16; cvt_u16_f16 U16ToF16 (a U16) -> F16;
        cvt_fp8_f32 Fp8ToF32 (a FP8) -> F32; cvt_bf8_f32 Bf8ToF32 (a BF8) -> F32;
        floor_f32 Floor (a F32) -> F32; ceil_f32 Ceil (a F32) -> F32; trunc_f32 Trunc (a F32) -> F32;
        rndne_f32 Rndne (a F32) -> F32; fract_f32 Fract (a F32) -> F32;
        sqrt_f32 Sqrt (a F32) -> F32; rcp_f32 Rcp (a F32) -> F32; rsq_f32 Rsq (a F32) -> F32;
        frexp_mant_f32 FrexpMant (a F32) -> F32; frexp_exp_f32 FrexpExp (a F32) -> I32;
        cvt_f32_f16 F32ToF16 (a F32) -> F16; cvt_rtz_f32_f16 F32ToF16Rtz (a F32) -> F16;
        cvt_f32_bf16 F32ToBf16 (a F32) -> BF16; cvt_f32_fp8 F32ToFp8 (a F32) -> FP8; cvt_f32_bf8 F32ToBf8 (a F32) -> BF8;
        cvt_f32_i32 F32ToI32 (a F32) -> I32; cvt_f32_u32 F32ToU32 (a F32) -> U32; cvt_f32_u8 F32ToU8 (a F32) -> U8;
        snorm_f32 F32ToSnorm (a F32) -> I16; unorm_f32 F32ToUnorm (a F32) -> U16;
        cvt_i32_f32 I32ToF32 (a I32) -> F32; cvt_u32_f32 U32ToF32 (a U32) -> F32;
        cvt_f32_f64 F32ToF64 (a F32) -> F64; cvt_f64_f32 F64ToF32 (a F64) -> F32;
        cvt_f64_i32 F64ToI32 (a F64) -> I32; cvt_f64_u32 F64ToU32 (a F64) -> U32;
        cvt_i32_f64 I32ToF64 (a I32) -> F64; cvt_u32_f64 U32ToF64 (a U32) -> F64;
        floor_f64 Floor (a F64) -> F64; ceil_f64 Ceil (a F64) -> F64; trunc_f64 Trunc (a F64) -> F64;
        rndne_f64 Rndne (a F64) -> F64; fract_f64 Fract (a F64) -> F64;
        sqrt_f64 Sqrt (a F64) -> F64; rcp_f64 Rcp (a F64) -> F64; rsq_f64 Rsq (a F64) -> F64;
        frexp_mant_f64 FrexpMant (a F64) -> F64; frexp_exp_f64 FrexpExp (a F64) -> I32;
    };
    let mut random = Random(1);
    for case in &cases {
        let width = case.types[0].width();
        if width <= 16 {
            (0..1u64 << width).for_each(|a| case.check(&[a]));
        } else {
            (0..100_000).for_each(|_| case.check(&[random.value(case.types[0])]));
        }
    }
}

#[test]
fn functions_of_more_arguments() {
    let cases = cases! {
        fma_f16 Fma (a F16, b F16, c F16) -> F16; fma_f32 Fma (a F32, b F32, c F32) -> F32; fma_f64 Fma (a F64, b F64, c F64) -> F64;
        fma_ldexp_f32 FmaLdexp (a F32, b F32, c F32, n I32) -> F32; fma_ldexp_f64 FmaLdexp (a F64, b F64, c F64, n I32) -> F64;
        ldexp_f16 Ldexp (a F16, n I32) -> F16; ldexp_f32 Ldexp (a F32, n I32) -> F32; ldexp_f64 Ldexp (a F64, n I32) -> F64;
        fma_rtz_f32 FmaRtz (a F32, b F32, c F32) -> F32;
        fp8_sr_f32 F32ToFp8Sr (a F32, n U32) -> FP8; bf8_sr_f32 F32ToBf8Sr (a F32, n U32) -> BF8;
        trig_preop_f64 TrigPreop (a F64, n U32) -> F64;
        min_num_f16 MinimumNumber (a F16, b F16) -> F16; max_num_f16 MaximumNumber (a F16, b F16) -> F16;
        minimum_f16 Minimum (a F16, b F16) -> F16; maximum_f16 Maximum (a F16, b F16) -> F16;
        min_num_f32 MinimumNumber (a F32, b F32) -> F32; max_num_f32 MaximumNumber (a F32, b F32) -> F32;
        minimum_f32 Minimum (a F32, b F32) -> F32; maximum_f32 Maximum (a F32, b F32) -> F32;
        min_num_f64 MinimumNumber (a F64, b F64) -> F64; max_num_f64 MaximumNumber (a F64, b F64) -> F64;
        minimum_f64 Minimum (a F64, b F64) -> F64; maximum_f64 Maximum (a F64, b F64) -> F64;
    };
    let mut random = Random(2);
    for case in &cases {
        for _ in 0..300_000 {
            let mut args: Vec<u64> = case.types.iter().map(|ty| random.value(*ty)).collect();
            // Often of equal magnitude: zeros of both signs, equal numbers, sums that cancel.
            if random.below(8) == 0 && args.len() == 2 {
                args[1] = if case.types[1].is_float() {
                    args[0] ^ random.below(2) << (case.types[0].width() - 1)
                } else {
                    args[1]
                };
            }
            case.check(&args);
        }
    }
}

/// Sums, differences, products and quotients of f16.
#[test]
fn arithmetic_of_halves() {
    type Fast = fn(u32, u32) -> u32;
    type Exact = fn(u128, u128, Ty, &FloatEnv) -> u128;
    let cases: [(Fast, Exact); 4] = [
        (|a, b| add_f16(&Keep, a, b), arith::add),
        (|a, b| sub_f16(&Keep, a, b), arith::sub),
        (|a, b| mul_f16(&Keep, a, b), arith::mul),
        (|a, b| div_f16(&Keep, a, b), arith::div_float),
    ];
    let mut random = Random(3);
    for (fast, exact) in cases {
        for _ in 0..300_000 {
            let (a, b) = (random.value(F16), random.value(F16));
            let (found, exact) =
                (fast(a as u32, b as u32) as u64, exact(a as u128, b as u128, F16, &FloatEnv::KEEP) as u64);
            assert!(found == exact, "{a:x} {b:x}: {found:x}, exact {exact:x}");
        }
    }
}

/// Sums and differences of bf16.
#[test]
fn sums_of_bf16() {
    let mut random = Random(5);
    for _ in 0..300_000 {
        // The upper half of an f32.
        let (a, b) = ((random.value(F32) >> 16) as u32, (random.value(F32) >> 16) as u32);
        let found =
            [add_bf16(&Keep, a, b), add_bf16(&Flush, a, b), sub_bf16(&Keep, a, b), sub_bf16(&Flush, a, b)];
        let exact = |f: fn(u128, u128, Ty, &FloatEnv) -> u128, env| f(a as u128, b as u128, BF16, env) as u64;
        let expected = [
            exact(arith::add, &FloatEnv::KEEP),
            exact(arith::add, &FLUSH),
            exact(arith::sub, &FloatEnv::KEEP),
            exact(arith::sub, &FLUSH),
        ];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(found as u64 == expected, "{a:x} {b:x}: {found:x}, exact {expected:x}");
        }
    }
}

/// The functions that are computed for all lanes at once.
#[test]
fn functions_of_lane_vectors() {
    if Avx2::detect().is_none() {
        return;
    }
    type Row = [fn(&mut LaneVec); 2];
    let cases: [(Pure, Ty, Row); 8] = [
        (Pure::Exp2, F32, [|r| exp2_f32_vec(&Keep, r), |r| exp2_f32_vec(&Flush, r)]),
        (Pure::Log2, F32, [|r| log2_f32_vec(&Keep, r), |r| log2_f32_vec(&Flush, r)]),
        (Pure::Sin, F32, [|r| sin_turns_f32_vec(&Keep, r), |r| sin_turns_f32_vec(&Flush, r)]),
        (Pure::Cos, F32, [|r| cos_turns_f32_vec(&Keep, r), |r| cos_turns_f32_vec(&Flush, r)]),
        (Pure::Exp2, F16, [|r| exp2_f16_vec(&Keep, r), |r| exp2_f16_vec(&Flush, r)]),
        (Pure::Log2, F16, [|r| log2_f16_vec(&Keep, r), |r| log2_f16_vec(&Flush, r)]),
        (Pure::Sin, F16, [|r| sin_turns_f16_vec(&Keep, r), |r| sin_turns_f16_vec(&Flush, r)]),
        (Pure::Cos, F16, [|r| cos_turns_f16_vec(&Keep, r), |r| cos_turns_f16_vec(&Flush, r)]),
    ];
    let mut random = Random(4);
    for (builtin, ty, fast) in cases {
        for at in 0..if ty == F16 { 2048 } else { 10_000 } {
            let mut row = LaneVec::ZERO;
            for (lane, value) in row.0.iter_mut().enumerate() {
                *value = if ty == F16 { 32 * at + lane as u32 } else { random.value(ty) as u32 };
            }
            for (fast, env) in fast.iter().zip([FloatEnv::KEEP, FLUSH]) {
                let mut found = row;
                fast(&mut found);
                for (x, found) in row.0.iter().zip(found.0) {
                    let exact = isa_spec::eval::pure(builtin, &[*x as u128], &[ty], &env, false) as u64;
                    assert!(found as u64 == exact, "{builtin:?} of {x:x}: {found:x}, exact {exact:x}");
                }
            }
        }
    }
}

/// Among arguments between one and two, those whose result is too near a tie for f64 to decide: the exact
/// library must decide it.
#[test]
fn results_near_ties_are_exact() {
    use isa_spec::arith::approx::{MARGIN, quick};
    if Avx2::detect().is_none() {
        return;
    }
    type Quick = fn(f64) -> f64;
    type Row = fn(&mut LaneVec);
    let cases: [(Pure, Quick, Row); 4] = [
        (Pure::Exp2, quick::exp2::<true>, |r| exp2_f32_vec(&Keep, r)),
        (Pure::Log2, quick::log2::<true>, |r| log2_f32_vec(&Keep, r)),
        (Pure::Sin, |x| quick::sin_cos::<true>(x).0, |r| sin_turns_f32_vec(&Keep, r)),
        (Pure::Cos, |x| quick::sin_cos::<true>(x).1, |r| cos_turns_f32_vec(&Keep, r)),
    ];
    for (builtin, quickly, row) in cases {
        let undecided = |bits: &u32| {
            let y = quickly(f32::from_bits(*bits) as f64);
            (y * (1.0 - MARGIN)) as f32 != (y * (1.0 + MARGIN)) as f32
        };
        // Above one; for sine and cosine, also below a quarter turn.
        let arguments = (0x3f80_0001u32..0x4000_0000).chain(0x3e00_0000..0x3e80_0000).filter(undecided);
        let mut found = 0;
        for x in arguments.take(50) {
            let mut lanes = LaneVec([x; 32]);
            lanes.0[0] = 0x3f80_0000;
            row(&mut lanes);
            let exact = isa_spec::eval::pure(builtin, &[x as u128], &[F32], &FloatEnv::KEEP, false) as u32;
            assert_eq!(lanes.0[31], exact, "{builtin:?} of {x:x}");
            found += 1;
        }
        assert!(found > 0, "{builtin:?}");
    }
}

/// The multiply-add of hosts without a fused instruction.
#[test]
fn fused_multiply_add_by_f64_rounds_once() {
    let mut random = Random(7);
    let mut value = || f32::from_bits(random.value(Ty::F32) as u32);
    for _ in 0..3_000_000 {
        let (a, b, c) = (value(), value(), value());
        // A sum that nearly cancels, or a product that only decides a tie.
        for c in [c, -(a * b), (a * b) * 4096.0] {
            let (ours, exact) = (float::fused_by_f64(a, b, c), a.mul_add(b, c));
            let same = ours.to_bits() == exact.to_bits() || ours.is_nan() && exact.is_nan();
            assert!(same, "{a:e} * {b:e} + {c:e} = {exact:e}, not {ours:e}");
        }
    }
}
