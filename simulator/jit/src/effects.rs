//! What operations do besides computing: whether they keep VGPRs, switch waves, and depend on denormals.

use isa_lower::ir::*;
use isa_lower::visit::{any_stmt, each_value};
use isa_spec::pcode::ir::{Control, Ty};

/// Returns the builtin of an operation that only ends the wave or waits for a barrier, and the barrier's
/// number.
pub fn switching_builtin(handlers: &Handlers) -> Option<(Control, Option<&Value>)> {
    let Body::Once(once) = &handlers.general else { return None };
    match (&once.body[..], &once.operands[..]) {
        ([Stmt::Control { builtin: builtin @ (Control::Barrier | Control::EndPgm), .. }], []) => {
            Some((*builtin, None))
        }
        ([Stmt::Control { builtin: builtin @ Control::BarrierWait, args }], []) => {
            Some((*builtin, args.first()))
        }
        _ => None,
    }
}

/// Returns whether an operation's handler certainly writes no VGPR.
pub fn preserves_vgprs(handlers: &Handlers) -> bool {
    let scalar = |s: &Stmt| match s {
        Stmt::Set(var, _) | Stmt::SetLow { var, .. } => !matches!(var, Var::Operand(_)),
        Stmt::SetState(..)
        | Stmt::SetSgpr { .. }
        | Stmt::SetScalar { .. }
        | Stmt::SetMaskOperand(_)
        | Stmt::Parts { .. }
        | Stmt::If { .. }
        | Stmt::Control { .. } => true,
        _ => false,
    };
    matches!(&handlers.general, Body::Once(once) if !any_stmt(&once.body, &|s| !scalar(s)))
}

/// The float operations of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Floats {
    /// It has f32 arithmetic, whose denormals may be flushed.
    pub flushed: bool,
    /// It has arithmetic that always keeps denormals, whatever the mode of f32.
    pub kept: bool,
}

/// Collects the float operations of an instruction.
pub fn floats(lanes: &Lanes) -> Floats {
    let mut floats = Floats::default();
    let mut note = |v: &Value| {
        // No f16 value is an f32 denormal.
        if let ValueKind::Float { op, ty, .. } = v.kind
            && ty != Ty::F16
        {
            let flushed = ty == Ty::F32 && op != FloatOp::FmaNearest;
            *(if flushed { &mut floats.flushed } else { &mut floats.kept }) = true;
        }
    };
    for step in &lanes.steps {
        if let Step::Loop(lanes) | Step::Simd { lanes, .. } = step {
            each_value(&lanes.body, &mut note);
        }
    }
    floats
}
