//! Atomic read-modify-writes: a function accesses memory for all lanes (`frame::atomics`). Code computes the part of the
//! address that the lanes share.

use super::addresses::offset_shift;
use super::subword;
use crate::arith::builder::{Bug, R};
use crate::frame::{Atomic, Update, run_atomic};
use crate::lowering::Why;
use crate::selected::AtomicUpdate;
use crate::state::emitter::Emitter;
use isa_lower::ir::*;
use isa_lower::lower::operands::{Operands, slot};
use isa_lower::passes::{block, memory};
use isa_spec::tables::Role;
use wavesim_machine::exec::op::{DecodedSource, Op};
use wavesim_machine::state::wave::ALL_VGPRS;
use wavesim_x64::inst::Src;

/// Recognises a handler that updates the memory at each lane's address by one operation on the old value and the lane's
/// data.
pub fn find(lanes: &Lanes, operands: &Operands) -> Option<AtomicUpdate> {
    let mut own = None;
    for step in &lanes.steps {
        match step {
            Step::Loop(found) if own.is_none() && found.retries && !found.leaves => own = Some(found),
            Step::Stage { .. } => {}
            Step::Write { how: WriteBack::General { output: Output::Bits }, .. } => {}
            _ => return None,
        }
    }
    let own = own?;
    let [Stmt::Set(address, sum), Stmt::Set(old, loaded), rest @ ..] = &own.body[..] else { return None };
    let ValueKind::Load { space, addr, bytes, .. } = &loaded.kind else { return None };
    let (space, bits) = (*space, 8 * *bytes);
    if addr.kind != ValueKind::Var(*address) || !matches!(bits, 32 | 64) {
        return None;
    }
    let mut alias = None;
    let rest = match rest {
        [Stmt::Set(to, value), rest @ ..] if value.kind == ValueKind::Var(*old) => match to {
            Var::Local(_) => {
                alias = Some(*to);
                rest
            }
            _ => return None,
        },
        rest => rest,
    };
    let (exchange, returned) = match rest {
        [exchange] => (exchange, false),
        [exchange, Stmt::Set(Var::Operand(Role::D0), value)] if value.kind == ValueKind::Var(*old) => {
            (exchange, true)
        }
        _ => return None,
    };
    let update = match exchange {
        Stmt::Exchange { space: to, addr, bytes, value }
            if *to == space && addr.kind == ValueKind::Var(*address) && 8 * *bytes == bits =>
        {
            let is_old = |v: &Value| matches!(strip(v, bits).kind, ValueKind::Var(var) if var == *old || Some(var) == alias);
            update(strip(value, bits), bits, &is_old)?
        }
        _ => return None,
    };
    let reads_data = |read: &Read| read.role == Role::Data;
    if !own.reads.iter().filter(|read| reads_data(read)).all(|read| read.width == bits) {
        return None;
    }
    // The addresses are those of a load.
    let load = Value { kind: loaded_once(&loaded.kind), host_width: loaded.host_width };
    let body = vec![Stmt::Set(*address, sum.clone()), Stmt::Set(Var::Operand(Role::D0), load)];
    let load = LaneLoop {
        result: Some(LaneResult { width: bits, start: Start::Zero, written: true }),
        reads: own.reads.iter().filter(|read| !reads_data(read)).copied().collect(),
        body,
        retries: false,
        ..own.clone()
    };
    let steps = lanes.steps.iter().filter_map(|step| match step {
        Step::Loop(_) => Some(Step::Loop(load.clone())),
        Step::Stage { role: Role::Data, .. } | Step::Write { .. } => None,
        step => Some(step.clone()),
    });
    let as_load = Lanes { steps: steps.collect(), ..lanes.clone() };
    let mut block = block::find(&memory::run(&as_load, operands)?)?;
    let (Block::Global { store, .. } | Block::Lds { store, .. }) = &mut block;
    *store = true;
    Some(AtomicUpdate { block, space, bytes: bits as usize / 8, update, returned })
}

/// The same load, which is not repeated.
fn loaded_once(load: &ValueKind) -> ValueKind {
    match load.clone() {
        ValueKind::Load { space, addr, bytes, .. } => ValueKind::Load { space, addr, bytes, retry: false },
        other => other,
    }
}

/// Looks through conversions that keep the low `bits` bits.
fn strip(value: &Value, bits: u32) -> &Value {
    match &value.kind {
        ValueKind::Resize(inner) if value.host_width.bits() >= bits && inner.host_width.bits() >= bits => {
            strip(inner, bits)
        }
        _ => value,
    }
}

/// Recognises the new value of an atomic.
fn update(value: &Value, bits: u32, is_old: &dyn Fn(&Value) -> bool) -> Option<Update> {
    let is_data = |v: &Value| strip(v, bits).kind == ValueKind::Var(Var::Operand(Role::Data));
    let in_order = |a: &Value, b: &Value| is_old(a) && is_data(b);
    match &value.kind {
        _ if is_data(value) => Some(Update::Swap),
        ValueKind::Op2(op, a, b) if value.host_width.bits() == bits => {
            let any_order = in_order(a, b) || in_order(b, a);
            match op {
                Op2::Add if any_order => Some(Update::Add),
                Op2::And if any_order => Some(Update::And),
                Op2::Or if any_order => Some(Update::Or),
                Op2::Xor if any_order => Some(Update::Xor),
                Op2::Sub if in_order(a, b) => Some(Update::Sub),
                _ => None,
            }
        }
        ValueKind::Select(test, yes, no) if in_order(no, yes) => match &test.kind {
            ValueKind::Compare { op, int, a, b } if int.width == bits && in_order(b, a) => {
                match (op, int.signed) {
                    (Compare::Lt, false) => Some(Update::MinUnsigned),
                    (Compare::Gt, false) => Some(Update::MaxUnsigned),
                    (Compare::Lt, true) => Some(Update::MinSigned),
                    (Compare::Gt, true) => Some(Update::MaxSigned),
                    _ => None,
                }
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether the operands can be compiled.
pub fn operands_supported(op: &Op, found: &AtomicUpdate) -> Result<(), Why> {
    // A result that is partly past the last register is the handler's.
    let first = usize::from(op.d);
    let is_cut = found.returned && first < ALL_VGPRS && first + found.bytes / 4 > ALL_VGPRS;
    match subword::operands_supported(op, &found.block) && data(op, found).is_some() && !is_cut {
        true => Ok(()),
        false => Err(Why("unusual operands of an atomic operation")),
    }
}

/// Returns the first register of the data.
fn data(op: &Op, found: &AtomicUpdate) -> Option<u16> {
    let Slot::Source(source) = slot(Role::Data) else { return None };
    match op.src[source].decode() {
        DecodedSource::Vector(first) if first + found.bytes / 4 <= ALL_VGPRS => Some(first as u16),
        _ => None,
    }
}

impl Emitter<'_> {
    /// Emits an atomic, with all state in the wave.
    pub fn atomic(&mut self, op_index: u32, op: &Op, found: &AtomicUpdate) -> R<()> {
        self.close_run()?;
        let (accesses, data) = self.accesses(&found.block, None, op)?;
        let ([access], Some(data)) = (&accesses[..], data) else { return Err(Bug("an atomic")) };
        let base = self.uniform(access.base, HostWidth::W64)?;
        self.flush_scalars();
        let dwords = found.bytes / 4;
        let result = Some(op.d).filter(|d| found.returned && usize::from(*d) < ALL_VGPRS);
        let atomic = Atomic {
            offsets: access.register,
            shift: if access.address64 {
                0
            } else {
                offset_shift(&found.block, op, &self.exts[op.ext as usize])
            },
            address64: access.address64,
            lds: access.lds,
            dwords: dwords as u8,
            data,
            result,
            update: found.update,
        };
        if let Some(result) = result {
            self.forget_cached_offsets(|register| (result..result + dwords as u16).contains(&register));
        }
        // The handler may have to run.
        self.sync_msbs_before(op_index);
        let op = self.op_address(op_index);
        let [registers, flags] = atomic.to_arguments();
        let args = [
            Src::Value(self.b.frame),
            Src::Value(op),
            Src::Value(base),
            Src::Imm(registers as i32),
            Src::Imm(flags as i32),
        ];
        self.call_for_flow(run_atomic as *const (), &args, false);
        self.forget_state();
        self.paths.atomics += 1;
        Ok(())
    }
}
