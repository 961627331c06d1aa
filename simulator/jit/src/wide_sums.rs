//! 128-bit sums of signed integers, of which only 64 bits and bit 64 are observed. [`crate::emit`] represents
//! 64 bits.

use isa_lower::ir::*;
use isa_lower::visit::each_value;

/// Recognises `a * b + c`, with two sign-extended 32-bit factors and a sign-extended 64-bit addend.
pub fn signed_sum(value: &Value) -> Option<[&Value; 3]> {
    fn extended(v: &Value, from: HostWidth) -> Option<&Value> {
        match &v.kind {
            ValueKind::SignExtend { value, width } if value.host_width == from && *width == from.bits() => {
                (v.host_width == HostWidth::W128).then_some(value)
            }
            _ => None,
        }
    }
    let ValueKind::Op2(Op2::Add, product, c) = &value.kind else { return None };
    let ValueKind::Op2(Op2::Mul, a, b) = &product.kind else { return None };
    Some([extended(a, HostWidth::W32)?, extended(b, HostWidth::W32)?, extended(c, HostWidth::W64)?])
}

/// Recognises the extraction of bit 64.
pub fn is_bit_64(value: &Value) -> bool {
    let above = |v: &Value| matches!(v.kind, ValueKind::ShrConst(_, 64));
    matches!(&value.kind, ValueKind::Op2(Op2::And, a, b) if above(a) && b.kind == ValueKind::Const(1))
}

/// Returns whether all sign extensions to 128 bits belong to such sums, and no bit above 63 but bit 64 is
/// read.
pub fn are_supported(body: &[Stmt]) -> bool {
    let (mut extended, mut sums, mut above, mut bits) = (0, 0, 0, 0);
    each_value(body, &mut |v| {
        extended +=
            (v.host_width == HostWidth::W128 && matches!(v.kind, ValueKind::SignExtend { .. })) as usize;
        sums += signed_sum(v).is_some() as usize;
        above += (v.host_width == HostWidth::W128 && matches!(v.kind, ValueKind::ShrConst(..))) as usize;
        bits += is_bit_64(v) as usize;
    });
    extended == 3 * sums && (sums == 0 || above == bits)
}
