//! The NaN that an operation returns on every host: the first of its NaN operands, made quiet; without one, the
//! default NaN, which is negative (RDNA 4 manual, *NaN Handling*: "if SRC0 == NaN: result = QNaN of SRC0 (preserve
//! sign), else if SRC1 == NaN …, else -QNAN").
//!
//! Instructions of x86 follow the same rule, but compilers exchange the operands of sums and products. Therefore an
//! operand after a NaN is replaced with zero there, so that no instruction has two NaNs. Other hosts select another
//! NaN or another default, so that a NaN result is replaced.
//!
//! Differences and quotients need neither on x86: compilers do not exchange their operands.

/// A float of the host.
pub(super) trait HostFloat: Copy {
    /// The result of an invalid operation.
    const DEFAULT: Self;
    const ZERO: Self;
    fn is_nan(self) -> bool;
    fn quiet(self) -> Self;
}

macro_rules! host_float {
    ($($t:ident $default:literal $quiet:literal;)*) => { $(
        impl HostFloat for $t {
            const DEFAULT: $t = $t::from_bits($default);
            const ZERO: $t = 0.0;
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn quiet(self) -> $t {
                $t::from_bits(self.to_bits() | $quiet)
            }
        }
    )* };
}

host_float! {
    f32 0xffc0_0000 0x0040_0000;
    f64 0xfff8_0000_0000_0000 0x0008_0000_0000_0000;
}

const X86: bool = cfg!(target_arch = "x86_64");

/// Computes a commutative function of two operands.
#[inline(always)]
pub(super) fn of_two<T: HostFloat>(a: T, b: T, f: impl Fn(T, T) -> T) -> T {
    if X86 { f(a, if a.is_nan() { T::ZERO } else { b }) } else { result([a, b], f(a, b)) }
}

/// Computes a function of three operands that is commutative in the first two.
#[inline(always)]
pub(super) fn of_three<T: HostFloat>(a: T, b: T, c: T, f: impl Fn(T, T, T) -> T) -> T {
    if X86 {
        let (second, third) = (a.is_nan(), a.is_nan() | b.is_nan());
        f(a, if second { T::ZERO } else { b }, if third { T::ZERO } else { c })
    } else {
        result([a, b, c], f(a, b, c))
    }
}

/// The result of an operation on `operands`, of which the host has computed `found`.
#[inline(always)]
pub(super) fn result<T: HostFloat, const N: usize>(operands: [T; N], found: T) -> T {
    if X86 { found } else { corrected(operands, found) }
}

/// Replaces a NaN by the one that the operation returns. Without branches, so that loops over lanes are vectorised.
#[inline(always)]
fn corrected<T: HostFloat, const N: usize>(operands: [T; N], found: T) -> T {
    let mut first = T::DEFAULT;
    for x in operands.into_iter().rev() {
        first = if x.is_nan() { x.quiet() } else { first };
    }
    if found.is_nan() { first } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What other hosts compute: a positive default NaN (AArch64), another operand, or a signalling NaN as it is.
    #[test]
    fn nans_of_other_hosts_are_replaced() {
        let f = f32::from_bits;
        let bits = |operands: &[u32], found: u32| match *operands {
            [a] => corrected([f(a)], f(found)).to_bits(),
            [a, b] => corrected([f(a), f(b)], f(found)).to_bits(),
            [a, b, c] => corrected([f(a), f(b), f(c)], f(found)).to_bits(),
            _ => unreachable!("up to three operands"),
        };
        const ONE: u32 = 0x3f80_0000;
        const INFINITY: u32 = 0x7f80_0000;
        // The root of a negative number, the difference of infinities.
        assert_eq!(bits(&[0xbf80_0000], 0x7fc0_0000), 0xffc0_0000);
        assert_eq!(bits(&[INFINITY, 0xff80_0000], 0x7fc0_0000), 0xffc0_0000);
        // The signalling NaN precedes the quiet one on AArch64.
        assert_eq!(bits(&[0x7fc0_0001, 0xff80_0002], 0xffc0_0002), 0x7fc0_0001);
        assert_eq!(bits(&[ONE, 0xff80_0002], 0xff80_0002), 0xffc0_0002);
        // Zero times infinity plus a NaN; the addend precedes the factors on AArch64.
        assert_eq!(bits(&[0, INFINITY, 0x7fc0_0003], 0x7fc0_0000), 0x7fc0_0003);
        assert_eq!(bits(&[0x7fc0_0001, ONE, 0x7f80_0003], 0x7fc0_0003), 0x7fc0_0001);
        assert_eq!(bits(&[ONE, ONE], 0x4000_0000), 0x4000_0000);
        let difference = corrected([f64::INFINITY, f64::NEG_INFINITY], f64::NAN);
        assert_eq!(difference.to_bits(), 0xfff8_0000_0000_0000);
    }

    /// The compiler may exchange the operands of these functions.
    #[test]
    fn exchanged_operands_have_the_same_result() {
        let values =
            [0x7fc0_0001u32, 0xff80_0002, 0x7fc0_0003, 0x3f80_0000, 0, 0x7f80_0000].map(f32::from_bits);
        for (a, b, c) in
            values.iter().flat_map(|a| values.map(|b| (*a, b))).flat_map(|(a, b)| values.map(|c| (a, b, c)))
        {
            let sums = [of_two(a, b, |a, b| a + b), of_two(a, b, |a, b| b + a)];
            let products = [of_two(a, b, |a, b| a * b), of_two(a, b, |a, b| b * a)];
            let fused = [of_three(a, b, c, f32::mul_add), of_three(a, b, c, |a, b, c| b.mul_add(a, c))];
            let first = [a, b, c].into_iter().find(|x| x.is_nan());
            for [x, y] in [sums, products, fused] {
                assert_eq!(x.to_bits(), y.to_bits(), "{a:?} {b:?} {c:?}");
            }
            let (sum, expected) = (fused[0], first.map(HostFloat::quiet));
            assert!(expected.is_none_or(|nan| nan.to_bits() == sum.to_bits()), "{a:?} {b:?} {c:?}: {sum:?}");
        }
    }
}
