//! Integer operations with semantics that Rust's operators lack: shifts beyond the width, division by zero,
//! saturation.

macro_rules! shifts {
    ($($shl:ident $shr:ident $sar:ident $div:ident $rem:ident $narrow:ident $u:ty, $i:ty, $bits:literal;)*) => { $(
        /// Shifts left by `n` bits; returns 0 if `n` is the width or more.
        #[inline(always)]
        pub fn $shl(a: $u, n: u32) -> $u {
            if n >= $bits { 0 } else { a << n }
        }
        /// Shifts right by `n` bits, filling with zeros; returns 0 if `n` is the width or more.
        #[inline(always)]
        pub fn $shr(a: $u, n: u32) -> $u {
            if n >= $bits { 0 } else { a >> n }
        }
        /// Shifts right by `n` bits, filling with copies of the sign.
        #[inline(always)]
        pub fn $sar(a: $i, n: u32) -> $i {
            a >> if n >= $bits { $bits - 1 } else { n }
        }
        /// Returns the quotient of integers of `width` bits, rounded toward zero; all ones if `b` is 0. The
        /// least number divided by -1 wraps.
        #[inline(always)]
        pub fn $div(a: $u, b: $u, width: u32, signed: bool) -> $u {
            let mask = <$u>::MAX >> ($bits - width);
            if b == 0 {
                return mask;
            }
            if signed {
                let s = $bits - width;
                (((a << s) as $i >> s).wrapping_div((b << s) as $i >> s)) as $u & mask
            } else {
                a / b
            }
        }
        /// Returns the remainder of integers of `width` bits, with the sign of `a`; `a` if `b` is 0.
        #[inline(always)]
        pub fn $rem(a: $u, b: $u, width: u32, signed: bool) -> $u {
            if b == 0 {
                return a;
            }
            if signed {
                let s = $bits - width;
                (((a << s) as $i >> s).wrapping_rem((b << s) as $i >> s)) as $u & (<$u>::MAX >> ($bits - width))
            } else {
                a % b
            }
        }
        /// Narrows an integer: wraps, or saturates if `clamp`.
        #[inline(always)]
        pub fn $narrow(a: $u, from: u32, from_signed: bool, to: u32, to_signed: bool, clamp: bool) -> u64 {
            let mask = u64::MAX >> (64 - to);
            if !clamp {
                return a as u64 & mask;
            }
            isa_spec::arith::narrow(a as u128, from, from_signed, to, to_signed, true) as u64
        }
    )* };
}

shifts! {
    shl32 shr32 sar32 div32 rem32 narrow32 u32, i32, 32;
    shl64 shr64 sar64 div64 rem64 narrow64 u64, i64, 64;
    shl128 shr128 sar128 div128 rem128 narrow128 u128, i128, 128;
}

/// Returns the bits of a value from `lo` on.
#[inline(always)]
pub fn shr(a: u128, lo: u32, _width: u32) -> u128 {
    if lo >= 128 { 0 } else { a >> lo }
}
