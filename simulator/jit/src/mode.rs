//! The part of MODE that code is specialised for, besides the float modes.

use isa_lower::ir::*;
use isa_lower::visit::each_value;
use isa_spec::pcode::ir::State;

pub use wavesim_machine::exec::output::IEEE;

/// Returns whether a value is MODE.IEEE, which code is specialised for.
pub fn is_ieee_bit(value: &Value) -> bool {
    let mode = |v: &Value| matches!(v.kind, ValueKind::State(State::Mode));
    let shifted = |v: &Value| matches!(&v.kind, ValueKind::ShrConst(inner, n) if *n == IEEE.trailing_zeros() && mode(inner));
    matches!(&value.kind, ValueKind::Op2(Op2::And, a, b) if shifted(a) && b.kind == ValueKind::Const(1))
}

/// Returns whether a body reads no other bit of MODE.
pub fn reads_only_ieee_bit(body: &[Stmt]) -> bool {
    let (mut reads, mut bits) = (0, 0);
    each_value(body, &mut |v| {
        reads += matches!(v.kind, ValueKind::State(State::Mode)) as usize;
        bits += is_ieee_bit(v) as usize;
    });
    reads == bits
}
