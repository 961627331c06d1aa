//! Floating-point formats as data, and the two conversions on which all arithmetic is based: from a bit
//! pattern to an exact value ([`unpack`]) and from an exact value to the nearest bit pattern ([`pack`]). Only
//! `pack` rounds.

use super::env::Round;
use crate::pcode::ir::Ty;

/// The MODE bits that govern a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModeClass {
    /// f32 and bf16: `MODE[1:0]` and `MODE[5:4]`.
    Single,
    /// f16 and f64: `MODE[3:2]` and `MODE[7:6]`.
    HalfDouble,
    /// No MODE bits: nearest even, denormals kept.
    Fixed,
}

/// A binary floating-point format; from the top: sign, exponent, fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Format {
    /// Bits of the exponent.
    pub exp_bits: u32,
    /// Bits of the fraction, without the implied leading one.
    pub frac_bits: u32,
    /// Exponent bias.
    pub bias: i32,
    /// E4M3: no infinities; exponent and fraction all ones is the only NaN.
    pub finite_only: bool,
    /// The MODE bits that govern rounding and denormals.
    pub class: ModeClass,
    /// MODE.FP16_OVFL applies.
    pub overflow_clamps: bool,
}

impl Format {
    /// IEEE binary16.
    pub const F16: Format = Format::ieee(5, 10, ModeClass::HalfDouble, true);
    /// bfloat16: the upper half of an f32.
    pub const BF16: Format = Format::ieee(8, 7, ModeClass::Single, true);
    /// IEEE binary32.
    pub const F32: Format = Format::ieee(8, 23, ModeClass::Single, false);
    /// IEEE binary64.
    pub const F64: Format = Format::ieee(11, 52, ModeClass::HalfDouble, false);
    /// OCP E4M3.
    pub const FP8: Format = Format { finite_only: true, ..Format::ieee(4, 3, ModeClass::Fixed, true) };
    /// OCP E5M2.
    pub const BF8: Format = Format::ieee(5, 2, ModeClass::Fixed, true);

    const fn ieee(exp_bits: u32, frac_bits: u32, class: ModeClass, overflow_clamps: bool) -> Format {
        Format {
            exp_bits,
            frac_bits,
            bias: (1 << (exp_bits - 1)) - 1,
            finite_only: false,
            class,
            overflow_clamps,
        }
    }

    /// Returns the format of a float type.
    #[inline]
    pub const fn of(ty: Ty) -> Option<Format> {
        Some(match ty {
            Ty::F16 => Format::F16,
            Ty::BF16 => Format::BF16,
            Ty::F32 => Format::F32,
            Ty::F64 => Format::F64,
            Ty::FP8 => Format::FP8,
            Ty::BF8 => Format::BF8,
            Ty::B(_) | Ty::U(_) | Ty::I(_) => return None,
        })
    }

    /// Returns the width in bits.
    #[inline]
    pub const fn width(self) -> u32 {
        1 + self.exp_bits + self.frac_bits
    }

    /// Returns the mask of the sign bit.
    #[inline]
    pub const fn sign_bit(self) -> u64 {
        1 << (self.exp_bits + self.frac_bits)
    }

    /// Returns the mask of all bits but the sign.
    #[inline]
    pub const fn magnitude_mask(self) -> u64 {
        self.sign_bit() - 1
    }

    /// Returns the mask of the fraction.
    #[inline]
    pub const fn fraction_mask(self) -> u64 {
        (1 << self.frac_bits) - 1
    }

    /// Returns the mask of the exponent.
    #[inline]
    pub const fn exponent_mask(self) -> u64 {
        self.magnitude_mask() & !self.fraction_mask()
    }

    /// Returns the largest finite number.
    #[inline]
    pub const fn max_finite(self) -> u64 {
        if self.finite_only { self.magnitude_mask() - 1 } else { self.exponent_mask() - 1 }
    }

    /// Returns infinity, or NaN if the format has no infinity.
    #[inline]
    pub const fn infinity(self) -> u64 {
        if self.finite_only { self.magnitude_mask() } else { self.exponent_mask() }
    }

    /// Returns the NaN that results from an invalid operation: quiet, sign set (`V_LOG_F32(-1.0) =>
    /// 0xffc00000`, RDNA4 ISA manual).
    #[inline]
    pub const fn default_nan(self) -> u64 {
        self.sign_bit() | self.infinity() | self.quiet_bit()
    }

    /// Returns the fraction bit that makes a NaN quiet; 0 in E4M3, whose NaN is always quiet.
    #[inline]
    pub const fn quiet_bit(self) -> u64 {
        if self.finite_only { 0 } else { 1 << (self.frac_bits - 1) }
    }

    /// Returns the bit pattern of 1.0.
    #[inline]
    pub const fn one(self) -> u64 {
        (self.bias as u64) << self.frac_bits
    }

    /// Returns whether `bits` is a NaN, quiet or signalling.
    #[inline]
    pub const fn is_nan(self, bits: u64) -> bool {
        if self.finite_only {
            bits & self.magnitude_mask() == self.magnitude_mask()
        } else {
            bits & self.magnitude_mask() > self.exponent_mask()
        }
    }

    /// Returns whether `bits` is an infinity, which E4M3 does not have.
    #[inline]
    pub const fn is_infinite(self, bits: u64) -> bool {
        !self.finite_only && bits & self.magnitude_mask() == self.exponent_mask()
    }

    /// Returns whether `bits` is a quiet NaN; in E4M3 every NaN is quiet.
    #[inline]
    pub const fn is_quiet_nan(self, bits: u64) -> bool {
        self.is_nan(bits) && (self.finite_only || bits & self.quiet_bit() != 0)
    }

    /// Returns whether `bits` is a signalling NaN.
    #[inline]
    pub const fn is_signal_nan(self, bits: u64) -> bool {
        self.is_nan(bits) && !self.is_quiet_nan(bits)
    }

    /// Returns whether `bits` is a zero of either sign.
    #[inline]
    pub const fn is_zero(self, bits: u64) -> bool {
        bits & self.magnitude_mask() == 0
    }

    /// Returns whether `bits` is a denormal other than zero.
    #[inline]
    pub const fn is_denormal(self, bits: u64) -> bool {
        bits & self.exponent_mask() == 0 && bits & self.fraction_mask() != 0
    }

    /// Returns whether the sign bit is set, including that of zeros and NaNs.
    #[inline]
    pub const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign_bit() != 0
    }

    /// Makes a NaN quiet; returns any other value unchanged.
    #[inline]
    pub const fn quiet(self, bits: u64) -> u64 {
        if self.is_nan(bits) { bits | self.quiet_bit() } else { bits }
    }

    /// Flushes a denormal to the zero of its sign; returns any other value unchanged.
    #[inline]
    pub const fn flush(self, bits: u64) -> u64 {
        if bits & self.exponent_mask() == 0 { bits & self.sign_bit() } else { bits }
    }
}

/// A float's value, by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Value {
    /// Any NaN; the payload is lost.
    Nan,
    /// An infinity.
    Infinite { negative: bool },
    /// A zero.
    Zero { negative: bool },
    /// Any other number.
    Finite(Exact),
}

/// `±sig · 2^exp` with a non-zero `sig`. Before rounding, the lowest bit may be *sticky*: it is set if any
/// bit below it was non-zero. Rounding stays exact if at least two bits, including the sticky bit, are
/// dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    /// The sign.
    pub negative: bool,
    /// Exponent of the lowest bit of `sig`.
    pub exp: i32,
    /// Significand, below 2^127.
    pub sig: u128,
}

impl Exact {
    /// Normalises the value such that its leading bit is at position `top`; bits shifted out become sticky.
    #[inline]
    pub fn with_top(self, top: u32) -> Exact {
        let have = 127 - self.sig.leading_zeros();
        if have <= top {
            let up = top - have;
            Exact { sig: self.sig << up, exp: self.exp - up as i32, ..self }
        } else {
            let down = have - top;
            Exact { sig: shift_right_sticky(self.sig, down), exp: self.exp + down as i32, ..self }
        }
    }
}

/// `sig >> count`, with the shifted-out bits OR-ed into bit 0.
#[inline]
pub fn shift_right_sticky(sig: u128, count: u32) -> u128 {
    if count == 0 {
        sig
    } else if count >= 128 {
        (sig != 0) as u128
    } else {
        sig >> count | (sig << (128 - count) != 0) as u128
    }
}

/// Returns the exact value of a bit pattern of `format`; ignores higher bits.
#[inline]
pub fn unpack(format: Format, bits: u64) -> Value {
    let negative = format.is_negative(bits);
    let fraction = bits & format.fraction_mask();
    let biased = (bits & format.exponent_mask()) >> format.frac_bits;
    if format.is_nan(bits) {
        Value::Nan
    } else if format.is_infinite(bits) {
        Value::Infinite { negative }
    } else if biased != 0 {
        let sig = fraction | 1 << format.frac_bits;
        Value::Finite(Exact {
            negative,
            exp: biased as i32 - format.bias - format.frac_bits as i32,
            sig: sig as u128,
        })
    } else if fraction != 0 {
        Value::Finite(Exact {
            negative,
            exp: 1 - format.bias - format.frac_bits as i32,
            sig: fraction as u128,
        })
    } else {
        Value::Zero { negative }
    }
}

/// Drops the low `drop` bits of `sig`, with rounding; exact if `drop` is 0.
#[inline]
pub fn round_off(negative: bool, sig: u128, drop: u32, round: Round) -> u128 {
    if drop == 0 {
        return sig;
    }
    let (kept, rest_is_zero, half) = if drop > 127 {
        // `sig`, being below 2^127, is less than half a unit.
        (0, sig == 0, std::cmp::Ordering::Less)
    } else {
        let rest = sig & ((1 << drop) - 1);
        (sig >> drop, rest == 0, rest.cmp(&(1 << (drop - 1))))
    };
    let up = match round {
        Round::NearestEven => half.is_gt() || half.is_eq() && kept & 1 == 1,
        Round::Up => !negative && !rest_is_zero,
        Round::Down => negative && !rest_is_zero,
        Round::Zero => false,
    };
    kept + up as u128
}

/// Rounds an exact value once to a bit pattern of `format`. If `saturate`, an overflow returns the largest
/// finite number in every rounding mode. Denormal results are kept.
#[inline]
pub fn pack(format: Format, value: Exact, round: Round, saturate: bool) -> u64 {
    let Exact { negative, exp, sig } = value;
    debug_assert!(sig != 0 && sig >> 127 == 0);
    let sign = if negative { format.sign_bit() } else { 0 };
    // The exponents of the leading bit and of the lowest bit that the format can represent there.
    let leading = exp + (127 - sig.leading_zeros() as i32);
    let last = (leading.max(1 - format.bias)) - format.frac_bits as i32;
    let rounded = if last > exp {
        round_off(negative, sig, (last - exp) as u32, round) as u64
    } else {
        (sig << (exp - last)) as u64
    };
    let hidden = 1 << format.frac_bits;
    let magnitude = if rounded < hidden {
        rounded
    } else {
        // `rounded` may be 2·hidden after a carry: the addition then carries into the exponent.
        let biased = (last + format.frac_bits as i32 + format.bias) as u64;
        if biased >> format.exp_bits != 0 {
            format.infinity()
        } else {
            (biased << format.frac_bits) + (rounded - hidden)
        }
    };
    if magnitude <= format.max_finite() {
        return sign | magnitude;
    }
    let finite = saturate
        || match round {
            Round::NearestEven => false,
            Round::Up => negative,
            Round::Down => !negative,
            Round::Zero => true,
        };
    sign | if finite { format.max_finite() } else { format.infinity() }
}
