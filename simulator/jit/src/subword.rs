//! Loads and stores of bytes and 16-bit halves: recognised as copies of words, plus the per-lane code around
//! the access.

use crate::selected::Subword;
use isa_lower::ir::*;
use isa_lower::lower::operands::slot;
use isa_lower::passes::block;
use isa_lower::visit::{each_stmt, each_value};
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::{ALL_VGPRS, NULL};

/// Recognises a handler that consists of such an access.
pub fn find(lanes: &Lanes) -> Option<Subword> {
    let mut words = lanes.clone();
    let mut found = None;
    for step in &mut words.steps {
        match step {
            Step::Memory(memory)
                if found.is_none() && matches!(memory.bytes, 1 | 2) && memory.dwords == 1 =>
            {
                found = Some((memory.store, memory.bytes as usize, memory.space));
                memory.bytes = 4;
            }
            Step::Stage { .. } | Step::StageOld | Step::StoreRoom { .. } | Step::Loop(_) => {}
            Step::Write { dwords: 1, how: WriteBack::General { output: Output::Bits } } => {}
            _ => return None,
        }
    }
    let (store, bytes, space) = found?;
    let mut loops = words.steps.iter_mut().filter_map(|step| match step {
        Step::Loop(lanes) => Some(lanes),
        _ => None,
    });
    let lane_loop = loops.next()?;
    if loops.next().is_some() || lane_loop.leaves || lane_loop.retries {
        return None;
    }
    let own = lane_loop.clone();
    let word = |kind| Value { kind, hold: Hold::W32 };
    if store {
        let Some(Stmt::SetStored { value, .. }) = lane_loop.body.last_mut() else { return None };
        *value = word(ValueKind::Var(Var::Operand(Role::Data)));
    } else {
        let loaded = word(ValueKind::Loaded { access: 0, dwords: 1 });
        lane_loop.body = vec![Stmt::Set(Var::Operand(Role::D0), loaded)];
    }
    let block = block::find(&words)?;
    let part = Subword { block, space, bytes, lanes: own };
    reads_only_access_operands(&part).then_some(part)
}

/// Returns whether the per-lane code reads only the lane's address operand, the accessed value and its
/// result.
fn reads_only_access_operands(part: &Subword) -> bool {
    let (Block::Global { offsets, .. } | Block::Lds { lanes: offsets, .. }) = &part.block;
    let (mut fine, mut stores) = (true, 0);
    each_value(&part.lanes.body, &mut |v| {
        if let ValueKind::Var(Var::Operand(role)) = &v.kind {
            fine &= role == offsets || matches!(role, Role::Data | Role::D0);
        }
    });
    each_stmt(&part.lanes.body, &mut |s| {
        stores += matches!(s, Stmt::SetStored { .. }) as usize;
        fine &= matches!(s, Stmt::Set(..) | Stmt::SetStored { .. });
    });
    let result = part.lanes.result.is_none_or(|r| r.width <= 32 && r.start != Start::OldHalf);
    fine && result && stores < 2
}

/// Returns whether the operands can be compiled; the conditions are those for copies of words.
pub fn operands_supported(op: &Op, block: &Block) -> bool {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    let vector = |role: Role, words: usize| match slot(role) {
        Slot::Source(at) => {
            matches!(op.src[at].place(), Place::Vector(first) if first + words <= ALL_VGPRS)
        }
        _ => false,
    };
    let (offsets, store, base) = match block {
        Block::Global { offsets, store, unless, wide, .. } => {
            let base = match op.src[1].place() {
                Place::Scalar(NULL) => unless.is_none() || wide.is_some() && vector(*offsets, 2),
                Place::Scalar(at) => at + 2 <= NULL,
                _ => false,
            };
            (*offsets, *store, base)
        }
        Block::Lds { lanes, store, .. } => (*lanes, *store, true),
    };
    let data = if store { vector(Role::Data, 1) } else { (op.d as usize) < ALL_VGPRS };
    op.flags & MODIFIED == 0 && base && vector(offsets, 1) && data
}
