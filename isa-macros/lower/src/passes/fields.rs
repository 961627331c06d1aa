//! Optimises fast handlers of bodies that name modifier fields and thus apply input modifiers themselves. The
//! effect of fields is uniform over the lanes and therefore computed ahead of them: the dwords selected from
//! an operand, and the signs that change.

use super::{strip_resizes, uniform::is_uniform};
use crate::ir::*;
use crate::visit::each_value_mut;
use isa_spec::pcode::ir::FieldName;
use isa_spec::tables::Role;

/// Fields with a bit per source that flips its sign.
const SIGNS: [FieldName; 2] = ["NEG", "NEG_HI"];
/// Fields with a bit per source that selects a half of it.
const PARTS: [FieldName; 2] = ["OPSEL", "OPSEL_HI"];

/// Rewrites the lane loops of a fast handler.
pub fn run(lanes: &mut Lanes) {
    for step in &mut lanes.steps {
        let Step::Loop(LaneLoop { reads, body, .. }) = step else { continue };
        each_value_mut(body, &mut |value| {
            let ValueKind::Select(condition, yes, no) = &value.kind else { return };
            if let (Some((role, yes)), Some((other, no))) = (dword(yes), dword(no))
                && role == other
                && is_uniform(condition)
                && reads.iter().any(|read| read.role == role)
            {
                let number = |n| Box::new(Value::new(ValueKind::Const(n), HostWidth::W32));
                let index = match bit(condition, PARTS) {
                    Some((field, source)) if yes > no => ValueKind::SourceBit { field, source },
                    _ => ValueKind::Select(condition.clone(), number(yes), number(no)),
                };
                let index = Box::new(Value::new(index, HostWidth::W32));
                value.kind = ValueKind::StagedDword { role, index };
            } else if let Some((field, source)) = bit(condition, SIGNS)
                && let ValueKind::Op2(Op2::Xor, changed, sign) = &yes.kind
                && (changed, &sign.kind) == (no, &ValueKind::Const(0x8000_0000))
            {
                let sign = Value::new(ValueKind::SourceBit { field, source }, HostWidth::W32);
                value.kind = ValueKind::Op2(Op2::Xor, no.clone(), Box::new(sign));
            }
        });
    }
}

/// Matches a source's bit of one of these fields; returns field and source.
fn bit(value: &Value, fields: [FieldName; 2]) -> Option<(FieldName, usize)> {
    let ValueKind::Op2(Op2::And, shifted, one) = &value.kind else { return None };
    let ValueKind::ShrConst(field, bit) = &shifted.kind else { return None };
    match strip_resizes(field, bit + 1).kind {
        ValueKind::Field(field) if one.kind == ValueKind::Const(1) && fields.contains(&field) => {
            Some((field, *bit as usize))
        }
        _ => None,
    }
}

/// Matches a dword of a 64-bit operand; returns the operand and the dword's index.
fn dword(value: &Value) -> Option<(Role, u128)> {
    let ValueKind::Resize(wide) = &value.kind else { return None };
    let (operand, number) = match &wide.kind {
        ValueKind::ShrConst(operand, 32) => (&**operand, 1),
        _ => (&**wide, 0),
    };
    match strip_resizes(operand, 64).kind {
        ValueKind::Var(Var::Operand(role))
            if value.host_width == HostWidth::W32 && operand.host_width == HostWidth::W64 =>
        {
            Some((role, number))
        }
        _ => None,
    }
}
