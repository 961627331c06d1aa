//! Tests arithmetic against references that share no code with it: `rustc_apfloat` for arithmetic and
//! conversions, big-integer rationals for roots and quotients, values from the ISA manuals for the special
//! cases.

mod against_apfloat;
mod approx;
mod buffer;
mod decimal;
mod fp8;
mod manual;
mod named;
mod rational;
mod trig_preop;
mod wide;

use isa_spec::arith::Format;
use proptest::prelude::*;

/// The formats with arithmetic.
const FORMATS: [Format; 4] = [Format::F16, Format::BF16, Format::F32, Format::F64];

/// Generates bit patterns of a format, biased toward specials, neighbours of powers of two, few significant
/// bits (exact and half-way results), and close exponents (cancellation).
fn bits(format: Format) -> impl Strategy<Value = u64> {
    let all = format.sign_bit() | format.magnitude_mask();
    let specials = [
        0,
        1,
        2,
        format.fraction_mask(),
        format.fraction_mask() + 1,
        format.one(),
        format.one() - 1,
        format.one() + 1,
        format.max_finite(),
        format.infinity(),
        format.infinity() | format.quiet_bit(),
        format.infinity() | 1,
    ];
    let sign = move |bits: u64, negative: bool| if negative { bits | format.sign_bit() } else { bits };
    prop_oneof![
        4 => any::<u64>().prop_map(move |x| x & all),
        2 => (prop::sample::select(specials.to_vec()), any::<bool>()).prop_map(move |(x, s)| sign(x, s)),
        // Exponents near one, for which sums cancel and products stay in range.
        3 => (any::<u64>(), 0..8u64, any::<bool>()).prop_map(move |(x, e, s)| {
            let near_one = format.one() - (4 << format.frac_bits) + (e << format.frac_bits);
            sign(near_one + (x & format.fraction_mask()), s)
        }),
        // A few leading and trailing fraction bits.
        3 => (any::<u64>(), 0..64u32, any::<u64>()).prop_map(move |(x, cut, low)| {
            (x & !((1u64 << cut) - 1) | low & 3) & all
        }),
    ]
}

/// Returns whether two values are equal or both NaN.
fn same(format: Format, a: u64, b: u64) -> bool {
    a == b || format.is_nan(a) && format.is_nan(b)
}
