//! Adds fast handlers: without modifiers, for operands that already are lane vectors or in the scalar file.

use super::strip_resizes;
use crate::ir::*;
use crate::lower::Lower;
use crate::lower::operands::slot;
use crate::visit::{any_in, any_value};
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::{Role, Ty};
use isa_spec::pcode::sig::Family;

/// Adds the fast handler of an operation, unless it has a block copy already.
pub fn run(handlers: &mut Handlers, op: &Operation) {
    if is_scalar(handlers, op) {
        handlers.fast = Fast::Scalar(Lower::new(op, &handlers.operands).direct().once());
    }
    let Body::Lanes(general) = &handlers.general else { return };
    if !general.broadcast {
        return;
    }
    let direct = general.main_loop().and_then(flushes);
    handlers.flushing = direct.map(|direct| {
        let read = op.sem.uses.reads.iter().filter(|role| handlers.operands.widths.contains_key(role));
        let sources = read.map(|role| match role {
            Role::D0 => Slot::VectorResult,
            role => slot(*role),
        });
        Flushing { sources: sources.collect(), direct }
    });
    handlers.fast = Fast::Lanes(lanes(general, direct));
}

/// Returns whether the fast handler on staged sources replaces the general one. It does not if the body reads
/// the clamp bit, which fast handlers assume to be 0, or accesses operands other than as staged lane vectors.
pub fn replaces_general(handlers: &Handlers) -> bool {
    let (Body::Lanes(general), Fast::Lanes(_)) = (&handlers.general, &handlers.fast) else { return false };
    let other = |v: &Value| {
        matches!(
            v.kind,
            ValueKind::Saturate { .. }
                | ValueKind::Field("CLAMP")
                | ValueKind::OperandNumber(_)
                | ValueKind::OperandLane { .. }
                | ValueKind::Scalar { .. }
                | ValueKind::Vgpr { .. }
                | ValueKind::Control { .. }
        )
    };
    let modified = general.steps.iter().any(|step| matches!(step, Step::Modify { .. }));
    let staged = general.steps.iter().all(|step| match step {
        Step::Loop(lanes) => !any_value(&lanes.body, &other),
        // The statements ahead of the calls are in the loop, too.
        Step::Simd { calls, .. } => !calls.iter().flatten().any(|v| any_in(v, &other)),
        Step::StoreRoom { .. } | Step::Memory(_) => false,
        Step::Declare { .. }
        | Step::Once { .. }
        | Step::If { .. }
        | Step::For { .. }
        | Step::Masked { .. } => false,
        Step::Stage { .. }
        | Step::StageOld
        | Step::Modify { .. }
        | Step::ReadMask
        | Step::Gather { .. }
        | Step::Write { .. } => true,
    });
    modified && staged && handlers.operands.indexed.is_empty()
}

/// Returns whether the operation is a scalar instruction on SGPRs and constants only.
fn is_scalar(handlers: &Handlers, op: &Operation) -> bool {
    let (uses, widths) = (&op.sem.uses, &handlers.operands.widths);
    op.sig.family == Family::Scalar
        && !(uses.memory_read || uses.memory_write || uses.control || uses.registers)
        && !widths.is_empty()
        && widths.values().all(|width| *width <= 64)
}

/// Returns the handler of one half of the wave for unmodified lane vectors.
fn lanes(general: &Lanes, flushes: Option<bool>) -> Lanes {
    let steps = general.steps.iter().filter_map(|step| match step {
        Step::Stage { role, slot, dwords, .. } => {
            Some(Step::Stage { role: *role, slot: *slot, dwords: *dwords, direct: true })
        }
        Step::Modify { .. } => None,
        Step::Write { dwords, how: WriteBack::General { .. } } => {
            let how = WriteBack::Fast { flushing: flushes.is_some(), direct: flushes == Some(true) };
            Some(Step::Write { dwords: *dwords, how })
        }
        step => Some(step.clone()),
    });
    Lanes { halves: Halves::One, broadcast: false, steps: steps.collect(), masks: general.masks.clone() }
}

/// Returns `Some` if the body is only f32 arithmetic that flushes its operands and results. The value is true
/// if it is a single operation directly from its sources to its result.
fn flushes(main: &LaneLoop) -> Option<bool> {
    let [Stmt::Set(Var::Operand(Role::D0), value)] = &main.body[..] else { return None };
    fn tree(v: &Value) -> bool {
        leaf(v).is_some() || arithmetic(v).is_some_and(|(_, args)| args.iter().all(tree))
    }
    let (_, args) = arithmetic(value)?;
    args.iter().all(tree).then(|| args.iter().all(|v| leaf(v).is_some()))
}

/// Returns the operation and its operands if the body is a single f32 operation directly from its sources to
/// its result.
pub fn single_operation(main: &LaneLoop) -> Option<(FloatOp, Vec<Role>)> {
    let [Stmt::Set(Var::Operand(Role::D0), value)] = &main.body[..] else { return None };
    let (op, args) = arithmetic(value)?;
    Some((op, args.iter().map(leaf).collect::<Option<_>>()?))
}

/// Returns the operand that a value is.
fn leaf(v: &Value) -> Option<Role> {
    match strip_resizes(v, 32).kind {
        ValueKind::Var(Var::Operand(role)) => Some(role),
        _ => None,
    }
}

/// Returns the operation and the operands of f32 arithmetic.
fn arithmetic(v: &Value) -> Option<(FloatOp, &[Value])> {
    match &strip_resizes(v, 32).kind {
        ValueKind::Float {
            op: op @ (FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Fma),
            ty: Ty::F32,
            args,
        } => Some((*op, args)),
        _ => None,
    }
}
