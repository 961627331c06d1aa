//! Compares division, square root and remainder as compiled by clang
//! (`tests/filetests/code_objects/rounding`) with the host's correctly rounded results. The intermediate
//! steps (V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP, V_RCP, V_RSQ, fused multiply-adds, denormal modes) yield the
//! exact result only if all of them are correct.
//!
//! `WAVESIM_PAIRS` sets the number of operand pairs per kernel and code object, and `WAVESIM_SEED` the seed.

use wavesim::array::{Array, DType};
use wavesim::loader::code_object;
use wavesim::loader::request::{ArgumentValue, Request};
use wavesim::memory::Memory;
use wavesim::sched::dispatch;
use wavesim_tests::random::Rng;
use wavesim_tests::root;

/// A float format of the host.
trait Float: Copy {
    const DTYPE: DType;
    const FRACTION: u32;
    const EXPONENT: u64;
    /// Difference of exponents at which V_DIV_SCALE switches to scaling.
    const SCALE_THRESHOLD: u64;
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn is_nan(self) -> bool;
    fn quotient(self, y: Self) -> Self;
    fn root(self) -> Self;
    fn remainder(self, y: Self) -> Self;
}

macro_rules! float {
    ($t:ty, $bits:ty, $dtype:ident, $fraction:literal, $exponent:literal, $threshold:literal) => {
        impl Float for $t {
            const DTYPE: DType = DType::$dtype;
            const FRACTION: u32 = $fraction;
            const EXPONENT: u64 = $exponent;
            const SCALE_THRESHOLD: u64 = $threshold;
            fn from_bits(bits: u64) -> Self {
                <$t>::from_bits(bits as $bits)
            }
            fn bits(self) -> u64 {
                self.to_bits() as u64
            }
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            fn quotient(self, y: Self) -> Self {
                self / y
            }
            fn root(self) -> Self {
                self.sqrt()
            }
            fn remainder(self, y: Self) -> Self {
                self % y
            }
        }
    };
}

float!(f32, u32, F32, 23, 0xff, 96);
float!(f64, u64, F64, 52, 0x7ff, 768);

/// Returns a pair of operands, biased towards the thresholds of the algorithms.
fn pair<F: Float>(rng: &mut Rng) -> (F, F) {
    let ones = (1u64 << F::FRACTION) - 1;
    let fraction = |rng: &mut Rng| match rng.below(6) {
        0 => 0,
        1 => ones,
        2 => rng.below(4),
        3 => ones ^ rng.below(4),
        // Few significant bits, so that quotients and products are often ties.
        4 => rng.bits() & ones & !(ones >> rng.below(F::FRACTION as u64)),
        _ => rng.bits() & ones,
    };
    let number = |rng: &mut Rng, exponent: u64, fraction: u64| {
        let sign = (rng.below(4) == 0) as u64;
        let top = F::DTYPE.size() as u32 * 8 - 1;
        F::from_bits(sign << top | exponent.min(F::EXPONENT) << F::FRACTION | fraction)
    };
    let exponent = |rng: &mut Rng| match rng.below(5) {
        // Denormals and nearby numbers; near overflow; tiny numerators for V_DIV_SCALE; any exponent.
        0 => rng.below(3),
        1 => F::EXPONENT - 1 - rng.below(4),
        2 => F::FRACTION as u64 - 2 + rng.below(5),
        _ => rng.below(F::EXPONENT),
    };
    let y = exponent(rng);
    let x = match rng.below(6) {
        0 | 1 => exponent(rng),
        // Differences near the thresholds.
        2 => y + F::SCALE_THRESHOLD - 2 + rng.below(5),
        3 => (y + 2).saturating_sub(F::SCALE_THRESHOLD + rng.below(5)),
        // Quotients near the smallest normal number.
        4 => (y + rng.below(4)).saturating_sub(F::EXPONENT / 2 + rng.below(F::FRACTION as u64 + 3)),
        // Moderate quotients.
        _ => (y + rng.below(40)).saturating_sub(20),
    };
    let (mut x, mut y) = ((x, fraction(rng)), (y, fraction(rng)));
    for special in [&mut x, &mut y] {
        match rng.below(60) {
            0 => *special = (0, 0),
            1 => *special = (F::EXPONENT, 0),
            2 => *special = (F::EXPONENT, 1 << (F::FRACTION - 1) | special.1),
            3 => *special = (0, special.1),
            _ => {}
        }
    }
    if x.0 >= F::EXPONENT && x.1 != 0 {
        x.1 |= 1 << (F::FRACTION - 1);
    }
    (number(rng, x.0, x.1), number(rng, y.0, y.1))
}

/// Flushes a denormal to zero with the same sign.
fn flush<F: Float>(x: F) -> F {
    let magnitude = ((F::EXPONENT + 1) << F::FRACTION) - 1;
    let denormal = (x.bits() & magnitude) >> F::FRACTION == 0;
    if denormal { F::from_bits(x.bits() & !magnitude) } else { x }
}

/// Returns true if both are equal or both are NaN.
fn same<F: Float>(a: F, b: F) -> bool {
    a.bits() == b.bits() || a.is_nan() && b.is_nan()
}

fn array<F: Float>(values: &[F]) -> ArgumentValue {
    let bytes =
        values.iter().flat_map(|v| v.bits().to_le_bytes().into_iter().take(F::DTYPE.size())).collect();
    ArgumentValue::Buffer(Array { dtype: F::DTYPE, shape: vec![values.len() as u64], bytes })
}

fn values<F: Float>(array: &Array) -> Vec<F> {
    let value = |bytes: &[u8]| bytes.iter().rev().fold(0, |v, b| v << 8 | *b as u64);
    array.bytes.chunks_exact(F::DTYPE.size()).map(|bytes| F::from_bits(value(bytes))).collect()
}

/// Runs `kernel` on random pairs and compares the results. `flushed` means that its MODE flushes denormals of
/// this format.
fn check<F: Float>(object: &str, kernel: &str, flushed: bool) {
    let env = |name: &str, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (pairs, seed): (u64, u64) = (env("WAVESIM_PAIRS", 8192), env("WAVESIM_SEED", 1));
    let path = root().join("tests/filetests/code_objects/rounding").join(object);
    let code = code_object::load(&std::fs::read(&path).unwrap(), kernel).unwrap();
    const BATCH: u64 = 1 << 16;
    let mut failures = Vec::new();
    let mut rng = Rng(seed << 32 ^ object.len() as u64);
    for start in (0..pairs).step_by(BATCH as usize) {
        let count = (pairs - start).min(BATCH).next_multiple_of(256);
        let (x, y): (Vec<F>, Vec<F>) = (0..count).map(|_| pair::<F>(&mut rng)).unzip();
        let out = || array(&vec![F::from_bits(0); count as usize]);
        let args =
            [("x", array(&x)), ("y", array(&y)), ("quotient", out()), ("root", out()), ("remainder", out())];
        let request = Request {
            grid: [count as u32 / 256, 1, 1],
            block: [256, 1, 1],
            dynamic_lds: 0,
            args: args.into_iter().map(|(name, given)| (name.to_string(), given)).collect(),
            outputs: Vec::new(),
        };
        let prepared = request.prepare(&code, Memory::new(8 << 20).unwrap()).unwrap();
        dispatch::run(&prepared.dispatch(u64::MAX), &prepared.memory).unwrap();
        let found = |name: &str| values::<F>(&prepared.buffer(name).unwrap().read(&prepared.memory).unwrap());
        let (quotient, root, remainder) = (found("quotient"), found("root"), found("remainder"));
        for i in 0..count as usize {
            let input = |v: F| if flushed { flush(v) } else { v };
            let (x, y) = (input(x[i]), input(y[i]));
            // If the remainder equals the dividend, no arithmetic has flushed it.
            let remainder = if flushed { flush(remainder[i]) } else { remainder[i] };
            for (what, found, exact) in [
                ("/", quotient[i], x.quotient(y)),
                ("sqrt", root[i], x.root()),
                ("%", remainder, x.remainder(y)),
            ] {
                let exact = if flushed { flush(exact) } else { exact };
                if !same(found, exact) {
                    let [x, y, found, exact] = [x, y, found, exact].map(F::bits);
                    failures.push(format!("{x:x} {what} {y:x}: {found:x}, exact {exact:x}"));
                }
            }
        }
    }
    let shown = &failures[..failures.len().min(10)];
    assert!(
        failures.is_empty(),
        "{object} {kernel}: {} of {pairs} pairs:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

macro_rules! code_objects {
    ($($name:ident $object:literal $flushed:literal;)*) => { $(
        #[test]
        fn $name() {
            check::<f32>($object, "round32", $flushed);
            // MODE flushes f32 only.
            check::<f64>($object, "round64", false);
        }
    )* };
}

code_objects! {
    rdna3_keeps_denormals "rounding.gfx1100.keep.co" false;
    rdna3_flushes_denormals "rounding.gfx1100.flush.co" true;
    rdna3_in_waves_of_64 "rounding.gfx1100.w64.co" false;
    rdna4_keeps_denormals "rounding.gfx1201.keep.co" false;
    rdna4_flushes_denormals "rounding.gfx1201.flush.co" true;
}
