//! Comparison of values under a record's tolerance.

use super::record::Tolerance;
use isa_spec::arith;
use isa_spec::pcode::ir::Ty;

/// Returns the element type and count for a tolerance's `t`.
fn parse(t: &str) -> Option<(Ty, u32)> {
    Some(match t {
        "f16" => (Ty::F16, 1),
        "bf16" => (Ty::BF16, 1),
        "f32" => (Ty::F32, 1),
        "f64" => (Ty::F64, 1),
        "f16x2" => (Ty::F16, 2),
        "bf16x2" => (Ty::BF16, 2),
        "f32x2" => (Ty::F32, 2),
        _ => return None,
    })
}

/// Returns the number of registers of one value of the type.
pub fn dwords(tol: &Option<Tolerance>) -> usize {
    match tol.as_ref().and_then(|t| parse(&t.t)) {
        Some((Ty::F64, _)) => 2,
        _ => 1,
    }
}

/// Returns whether `actual` is acceptable for `expected`; both are one register, or two for f64.
pub fn agrees(expected: u64, actual: u64, tol: &Option<Tolerance>) -> bool {
    if expected == actual {
        return true;
    }
    let Some(tol) = tol else { return false };
    let Some((ty, count)) = parse(&tol.t) else { return false };
    let width = ty.width();
    // Bits beyond the elements must be equal (the other half of a 16-bit result).
    let covered = width * count;
    if covered < 64 && expected >> covered != actual >> covered {
        // The upper half may hold a 16-bit result, too.
        let high = |v: u64| (v >> 16) & 0xffff;
        let low_equal = expected & 0xffff == actual & 0xffff;
        return ty.width() == 16 && count == 1 && low_equal && element(high(expected), high(actual), ty, tol);
    }
    (0..count).all(|at| {
        let part = |v: u64| v >> (at * width) & arith::mask(width) as u64;
        element(part(expected), part(actual), ty, tol)
    })
}

fn element(expected: u64, actual: u64, ty: Ty, tol: &Tolerance) -> bool {
    let (e, a) = (expected as u128, actual as u128);
    if expected == actual {
        return true;
    }
    if arith::is_nan(e, ty) || arith::is_nan(a, ty) {
        return tol.nan.as_deref() == Some("any") && arith::is_nan(e, ty) && arith::is_nan(a, ty);
    }
    let Some(ulp) = tol.ulp else { return false };
    let ordered = |x: u128| {
        let sign = 1u128 << (ty.width() - 1);
        let magnitude = (x & (sign - 1)) as i128;
        if x & sign != 0 { -magnitude } else { magnitude }
    };
    (ordered(e) - ordered(a)).unsigned_abs() <= ulp as u128
}
