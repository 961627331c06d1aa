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

/// An address as uniform terms and one operand of 32 bits per lane.
pub struct Terms<'a> {
    /// A uniform condition under which the address has another form.
    pub unless: Option<&'a Value>,
    /// Uniform terms.
    pub base: Vec<&'a Value>,
    /// The operand with each lane's 32 bits.
    pub offsets: Role,
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
        let (mut base, mut offsets) = (Vec::new(), None);
        collect(addr, &mut base, &mut offsets)?;
        Some(Terms { unless: None, base, offsets: offsets?, address64: None })
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

/// Collects the terms of a sum; returns `None` if a term has another form.
fn collect<'a>(value: &'a Value, base: &mut Vec<&'a Value>, offsets: &mut Option<Role>) -> Option<()> {
    if value.host_width != HostWidth::W64 {
        return None;
    }
    match &value.kind {
        _ if is_uniform(value) => base.push(value),
        ValueKind::Op2(Op2::Add, a, b) => {
            collect(a, base, offsets)?;
            collect(b, base, offsets)?;
        }
        ValueKind::Resize(lane) if offsets.is_none() && lane.host_width == HostWidth::W32 => {
            match strip_resizes(lane, 32).kind {
                ValueKind::Var(Var::Operand(role)) => *offsets = Some(role),
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
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
