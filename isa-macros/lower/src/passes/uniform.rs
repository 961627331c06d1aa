//! Finds uniform values, and addresses that are a uniform value plus 32 bits of each lane.

use super::strip_resizes;
use crate::ir::*;
use crate::lower::operands::is_scalar;
use crate::visit::any_in;
use isa_spec::tables::Role;

/// Returns whether a value is uniform: computed without side effects from scalar operands, fields and
/// constants.
pub fn is_uniform(value: &Value) -> bool {
    !any_in(value, &|v| {
        let leaf = match &v.kind {
            ValueKind::Const(_) | ValueKind::Field(_) | ValueKind::OperandNumber(_) => true,
            ValueKind::Var(var) => matches!(var, Var::Operand(role) if is_scalar(*role)),
            ValueKind::Resize(_)
            | ValueKind::SignExtend { .. }
            | ValueKind::Op1(..)
            | ValueKind::Op2(..)
            | ValueKind::Div { .. }
            | ValueKind::ShlConst(..)
            | ValueKind::ShrConst(..)
            | ValueKind::Shl(..)
            | ValueKind::Shr(..)
            | ValueKind::Sar { .. }
            | ValueKind::Compare { .. }
            | ValueKind::LogicalAnd(..)
            | ValueKind::LogicalOr(..)
            | ValueKind::Select(..) => true,
            _ => false,
        };
        !leaf
    })
}

/// An address as uniform terms and one operand of 32 bits per lane, which may be scaled.
pub struct Terms<'a> {
    /// A uniform condition under which the address has another form.
    pub unless: Option<&'a Value>,
    /// Uniform terms.
    pub base: Vec<&'a Value>,
    /// The operand with each lane's 32 bits.
    pub offsets: Role,
    /// What these are multiplied by.
    pub scale: Option<Scale>,
    /// The uniform terms if `unless` is not 0 and the operand then has 64 bits per lane.
    pub address64: Option<Vec<&'a Value>>,
}

impl<'a> Terms<'a> {
    /// Splits an address; returns `None` if it has another form.
    pub fn of(addr: &'a Value) -> Option<Terms<'a>> {
        if let ValueKind::Select(unless, other, sum) = &addr.kind
            && is_uniform(unless)
        {
            let terms = Terms::of(sum)?;
            return Some(Terms { unless: Some(unless), address64: address64(other, terms.offsets), ..terms });
        }
        let (mut base, mut lanes) = (Vec::new(), None);
        collect(addr, &mut base, &mut lanes)?;
        let (offsets, scale) = lanes?;
        Some(Terms { unless: None, base, offsets, scale, address64: None })
    }
}

/// Matches the sum of 64 bits of `lanes` and uniform terms; returns the terms.
fn address64(addr: &Value, lanes: Role) -> Option<Vec<&Value>> {
    fn collect<'a>(value: &'a Value, lanes: Role, base: &mut Vec<&'a Value>, count: &mut u32) -> Option<()> {
        if value.host_width != HostWidth::W64 {
            return None;
        }
        match &value.kind {
            _ if is_uniform(value) => base.push(value),
            ValueKind::Op2(Op2::Add, a, b) => {
                collect(a, lanes, base, count)?;
                collect(b, lanes, base, count)?;
            }
            ValueKind::Var(Var::Operand(role)) if *role == lanes => *count += 1,
            _ => return None,
        }
        Some(())
    }
    let (mut base, mut count) = (Vec::new(), 0);
    collect(addr, lanes, &mut base, &mut count)?;
    (count == 1).then_some(base)
}

/// The lanes' term of a sum: an operand, and what it is multiplied by.
type LaneTerm = (Role, Option<Scale>);

/// Collects the terms of a sum; returns `None` if a term has another form.
fn collect<'a>(value: &'a Value, base: &mut Vec<&'a Value>, lanes: &mut Option<LaneTerm>) -> Option<()> {
    if value.host_width != HostWidth::W64 {
        return None;
    }
    match &value.kind {
        _ if is_uniform(value) => base.push(value),
        ValueKind::Op2(Op2::Add, a, b) => {
            collect(a, base, lanes)?;
            collect(b, base, lanes)?;
        }
        _ if lanes.is_none() => *lanes = Some(lane_term(value)?),
        _ => return None,
    }
    Some(())
}

/// Matches 32 bits of a lane, zero-extended to 64 and possibly scaled.
fn lane_term(value: &Value) -> Option<LaneTerm> {
    match &value.kind {
        ValueKind::Resize(lane) if lane.host_width == HostWidth::W32 => match strip_resizes(lane, 32).kind {
            ValueKind::Var(Var::Operand(role)) => Some((role, None)),
            _ => None,
        },
        ValueKind::Op2(Op2::Mul, lane, factor) if value.host_width == HostWidth::W64 => {
            Some((lane_term(lane)?.0, scale(factor)?)).filter(|_| matches!(lane.kind, ValueKind::Resize(_)))
        }
        _ => None,
    }
}

/// Matches a factor of 64 bits that a field of the instruction selects; without effect, it is `Some(None)`.
fn scale(factor: &Value) -> Option<Option<Scale>> {
    let ValueKind::Select(condition, yes, no) = &strip_resizes(factor, 32).kind else { return None };
    let ValueKind::Compare { op: Compare::Ne, a, b, .. } = &condition.kind else { return None };
    match (&a.kind, &b.kind, &yes.kind, &no.kind) {
        (&ValueKind::Field(field), ValueKind::Const(0), &ValueKind::Const(factor), ValueKind::Const(1)) => {
            let factor = u32::try_from(factor).ok().filter(|factor| *factor > 0)?;
            Some((factor > 1).then_some(Scale { field, factor }))
        }
        _ => None,
    }
}

/// Matches an LDS address: the lanes' 32-bit part plus a uniform offset.
pub fn lds_terms(addr: &Value) -> Option<(Role, &Value)> {
    let ValueKind::Resize(sum) = &addr.kind else { return None };
    let ValueKind::Op2(Op2::Add, lanes, number) = &sum.kind else { return None };
    match strip_resizes(lanes, 32).kind {
        ValueKind::Var(Var::Operand(role)) if sum.host_width == HostWidth::W32 && is_uniform(number) => {
            Some((role, number))
        }
        _ => None,
    }
}
