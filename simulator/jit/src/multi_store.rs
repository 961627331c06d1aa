//! Stores of one instruction to several LDS addresses, which each lane performs in order.

use crate::selected::MultiStore;
use isa_lower::ir::*;
use isa_lower::lower::operands::slot;
use isa_lower::visit::any_in;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::ALL_VGPRS;

/// Recognises a handler that consists of such stores.
pub fn find(lanes: &Lanes) -> Option<MultiStore> {
    let mut body = None;
    for step in &lanes.steps {
        match step {
            Step::Loop(lanes) if body.is_none() && !lanes.leaves && !lanes.retries => {
                body = Some(&lanes.body)
            }
            Step::Stage { .. } => {}
            _ => return None,
        }
    }
    let (mut offsets, mut size, mut plus, mut data) = (None, None, Vec::new(), Vec::new());
    for stmt in body? {
        let Stmt::Store { space: Space::Lds, addr, bytes: bytes @ (4 | 8), value } = stmt else {
            return None;
        };
        let (role, number) = terms(addr)?;
        if *offsets.get_or_insert(role) != role || *size.get_or_insert(*bytes) != *bytes {
            return None;
        }
        plus.push(number.clone());
        data.push(operand(value, 8 * bytes)?);
    }
    let block = Block::Lds { lanes: offsets?, plus, store: true, dwords: size? / 4 };
    Some(MultiStore { block, data })
}

/// Splits a 32-bit address into the lane's operand and a uniform value that is added.
fn terms(addr: &Value) -> Option<(Role, &Value)> {
    let ValueKind::Resize(sum) = &addr.kind else { return None };
    let ValueKind::Op2(Op2::Add, lanes, number) = &sum.kind else { return None };
    let field = |v: &Value| matches!(v.kind, ValueKind::Const(_) | ValueKind::Field(_) | ValueKind::Op2(..));
    let known = !any_in(number, &|v| !field(v) || v.hold != Hold::W32);
    (sum.hold == Hold::W32 && known).then_some((operand(lanes, 32)?, number))
}

/// Returns the role of an operand of `bits` bits.
fn operand(value: &Value, bits: u32) -> Option<Role> {
    match &value.kind {
        ValueKind::Var(Var::Operand(role)) if value.hold.bits() == bits => Some(*role),
        ValueKind::Resize(inner) if inner.hold <= value.hold => operand(inner, bits),
        _ => None,
    }
}

/// Returns whether all operands are unmodified registers.
pub fn operands_supported(op: &Op, pair: &MultiStore) -> bool {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    let Block::Lds { lanes, dwords, .. } = &pair.block else { return false };
    let is_register =
        |(role, words): (Role, usize)| register(op, role).is_some_and(|first| first + words <= ALL_VGPRS);
    let data = pair.data.iter().map(|role| (*role, *dwords as usize));
    op.flags & MODIFIED == 0 && data.chain([(*lanes, 1)]).all(is_register)
}

/// Returns the register of an operand.
pub fn register(op: &Op, role: Role) -> Option<usize> {
    match slot(role) {
        Slot::Source(at) => match op.src[at].place() {
            Place::Vector(first) if first < ALL_VGPRS => Some(first),
            _ => None,
        },
        _ => None,
    }
}
