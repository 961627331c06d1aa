//! Recognises loads and stores of scratch, where each lane has its own memory.

use crate::lowering::{Place as EmissionPlace, check_value, check_values};
use crate::selected::Scratch;
use isa_lower::ir::*;
use isa_lower::lower::operands::slot;
use isa_lower::visit::{any_in, any_value, each_stmt};
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{Op, Place};
use wavesim_machine::state::wave::ALL_VGPRS;

/// Recognises a handler that consists of a scratch access.
pub fn find(lanes: &Lanes) -> Option<Scratch> {
    let (mut memory, mut own) = (None, None);
    for step in &lanes.steps {
        match step {
            Step::Memory(found) if memory.is_none() && found.space == Space::Scratch => memory = Some(found),
            Step::Loop(lanes) if own.is_none() && !lanes.leaves && !lanes.retries => own = Some(lanes),
            Step::Stage { .. } | Step::StageOld | Step::StoreRoom { .. } => {}
            Step::Write { how: WriteBack::General { output: Output::Bits }, .. } => {}
            _ => return None,
        }
    }
    let (memory, own) = (memory?, own?.clone());
    let address_code = match &memory.addresses {
        Addresses::Computed(lanes) => lanes.clone(),
        Addresses::Set => own.clone(),
        Addresses::Sum(_) => return None,
    };
    let address = address(&address_code.body)?;
    let (bytes, registers) = (memory.bytes as usize, memory.dwords as usize);
    let copy = bytes == 4 * registers && is_copy(&own.body, memory.store, bytes);
    let found = Scratch { store: memory.store, bytes, registers, copy, address_code, address, lanes: own };
    (is_supported(&found) && (copy || matches!(bytes, 1 | 2))).then_some(found)
}

/// Returns the 32-bit value that a 64-bit scratch address is zero-extended from.
fn address(body: &[Stmt]) -> Option<Value> {
    let found = body.iter().find_map(|stmt| match stmt {
        Stmt::SetAddress { space: Space::Scratch, addr }
        | Stmt::SetStored { address: Some((Space::Scratch, addr)), .. } => Some(addr),
        _ => None,
    })?;
    let value = match &found.kind {
        ValueKind::Var(Var::Local(id)) => {
            let mut values = body.iter().filter_map(|stmt| match stmt {
                Stmt::Set(Var::Local(to), value) if to == id => Some(value),
                _ => None,
            });
            values.next().filter(|_| values.next().is_none())?
        }
        _ => found,
    };
    match &value.kind {
        ValueKind::Resize(word) if word.hold == Hold::W32 => Some((**word).clone()),
        _ => None,
    }
}

/// Returns whether the per-lane code moves whole registers unchanged.
fn is_copy(body: &[Stmt], store: bool, bytes: usize) -> bool {
    let whole = |v: &Value| v.kind == ValueKind::Const(u128::MAX >> (128 - 8 * bytes));
    fn inner<'v>(v: &'v Value, whole: &dyn Fn(&Value) -> bool) -> &'v Value {
        match &v.kind {
            ValueKind::Op2(Op2::And, a, b) if whole(b) => inner(a, whole),
            ValueKind::Resize(a) if a.hold >= v.hold || whole(a) => a,
            _ => v,
        }
    }
    match body.last() {
        Some(Stmt::Set(Var::Operand(Role::D0), v)) if !store => {
            matches!(inner(v, &whole).kind, ValueKind::Loaded { .. })
        }
        Some(Stmt::SetStored { value, .. }) if store => {
            inner(value, &whole).kind == ValueKind::Var(Var::Operand(Role::Data))
        }
        _ => false,
    }
}

fn is_supported(found: &Scratch) -> bool {
    // The address code is also emitted outside of loops over lanes.
    let of_wave = |v: &Value| !matches!(v.kind, ValueKind::State(_) | ValueKind::LaneBit(_));
    let lane = EmissionPlace::Lane;
    let sets = found.address_code.body.iter().take_while(|stmt| matches!(stmt, Stmt::Set(Var::Local(_), _)));
    let sets: Vec<Stmt> = sets.cloned().collect();
    let ends = matches!(
        found.address_code.body.get(sets.len()),
        Some(Stmt::SetAddress { .. } | Stmt::SetStored { .. })
    );
    let before = ends
        && check_values(&sets, lane).is_ok()
        && check_value(&found.address, lane).is_ok()
        && !any_value(&sets, &|v| !of_wave(v))
        && !any_in(&found.address, &|v| !of_wave(v));
    let mut stores = 0;
    each_stmt(&found.lanes.body, &mut |s| stores += matches!(s, Stmt::SetStored { .. }) as usize);
    // Wide values that are only moved are not lowered.
    let own = found.copy || {
        let set = |s: &Stmt| matches!(s, Stmt::Set(..) | Stmt::SetStored { .. });
        found.lanes.body.iter().all(set) && check_values(&found.lanes.body, EmissionPlace::Access).is_ok()
    };
    let word = |read: &Read| read.width <= 32 || found.copy && read.role == Role::Data;
    before && own && stores == found.store as usize && found.address_code.reads.iter().all(word)
}

/// Returns whether the operands can be compiled.
pub fn operands_supported(op: &Op, found: &Scratch) -> bool {
    const MODIFIED: u16 = Op::MODIFY | Op::OUTPUT | Op::HIGH | Op::SCALAR_DEST | Op::CLAMP | Op::NO_RESULT;
    op.flags & MODIFIED == 0
        && match data(op, found) {
            Some(data) => data + found.registers <= ALL_VGPRS,
            None => false,
        }
}

/// Returns the first register that is loaded or stored.
pub fn data(op: &Op, found: &Scratch) -> Option<usize> {
    if !found.store {
        return Some(op.d as usize);
    }
    let Slot::Source(at) = slot(Role::Data) else { return None };
    match op.src[at].place() {
        Place::Vector(first) => Some(first),
        _ => None,
    }
}
