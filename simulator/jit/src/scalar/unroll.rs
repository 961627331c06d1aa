//! Scalar code with counted loops, arrays and loads: decides whether it can be emitted with its loops
//! unrolled and all indices constant.

use isa_lower::ir::*;
use isa_lower::visit::{any_in, any_stmt, any_value, each_stmt, each_value};
use isa_spec::pcode::ir::{LocalId, Space};
use std::collections::HashSet;

/// The maximum number of iterations of a loop.
const MAX_ITERATIONS: usize = 16;

/// Returns the first and the last counter value of a loop, if they are constant.
pub fn bounds(from: &Value, to: &Value) -> Option<(u32, u32)> {
    match (&from.kind, &to.kind) {
        (ValueKind::Const(from), ValueKind::Const(to)) if from <= to && *to < MAX_ITERATIONS as u128 => {
            Some((*from as u32, *to as u32))
        }
        _ => None,
    }
}

/// Returns the address of a load of `dwords` registers, which may be masked to its width.
pub fn wide_load(value: &Value, dwords: u32) -> Option<&Value> {
    match &value.kind {
        ValueKind::Load { space: Space::Scalar, addr, bytes, retry: false } if *bytes == 4 * dwords => {
            Some(addr)
        }
        ValueKind::Op2(Op2::And, loaded, mask)
            if (1..=4).contains(&dwords)
                && mask.kind == ValueKind::Const(u128::MAX >> (128 - 32 * dwords)) =>
        {
            wide_load(loaded, dwords)
        }
        _ => None,
    }
}

/// Returns whether the loops, arrays and loads of a body can be emitted; everything else is ignored.
pub fn is_supported(body: &[Stmt]) -> bool {
    let nested = |s: &Stmt| matches!(s, Stmt::For { .. } | Stmt::SetElement { .. });
    let has_load = |list: &[Stmt]| any_value(list, &|v| matches!(v.kind, ValueKind::Load { .. }));
    let writes = |list: &[Stmt]| {
        let write = |s: &Stmt| {
            matches!(
                s,
                Stmt::SetScalar { .. } | Stmt::SetSgpr { .. } | Stmt::SetState(..) | Stmt::SetMaskOperand(_)
            )
        };
        any_stmt(list, &write)
    };
    let mut written = false;
    for stmt in body {
        let list = std::slice::from_ref(stmt);
        // A load that faults must leave the state unchanged.
        let own = match stmt {
            Stmt::For { body, .. } => {
                if any_stmt(body, &|s| matches!(s, Stmt::For { .. } | Stmt::If { .. })) {
                    return false;
                }
                writes(list)
            }
            Stmt::If { arms, otherwise } => {
                let lists = || arms.iter().map(|(_, body)| body).chain([otherwise]);
                if lists().any(|body| any_stmt(body, &nested) || has_load(body)) {
                    return false;
                }
                false
            }
            _ => false,
        };
        if has_load(list) && (written || own) {
            return false;
        }
        written |= writes(list);
    }
    wide_loads_are_assigned(body) && indices_are_constant(body)
}

fn wide_loads_are_assigned(body: &[Stmt]) -> bool {
    let (mut loads, mut assigned) = (0, 0);
    each_value(body, &mut |v| loads += matches!(v.kind, ValueKind::Load { bytes: 9.., .. }) as usize);
    each_stmt(body, &mut |s| {
        assigned += matches!(s, Stmt::SetScalar { dwords: dwords @ 3..=4, value, .. } if wide_load(value, *dwords).is_some())
            as usize;
    });
    loads == assigned
}

/// Returns whether all array indices and register numbers depend only on the instruction and on loop
/// counters.
fn indices_are_constant(body: &[Stmt]) -> bool {
    let mut varying = HashSet::new();
    loop {
        let before = varying.len();
        each_stmt(body, &mut |s| match s {
            Stmt::Set(Var::Local(id), value) if !is_constant(value, &varying) => drop(varying.insert(*id)),
            Stmt::SetLow { var: Var::Local(id), .. } => drop(varying.insert(*id)),
            _ => {}
        });
        if varying.len() == before {
            break;
        }
    }
    let mut constant = true;
    each_stmt(body, &mut |s| {
        if let Stmt::SetElement { index, .. } | Stmt::SetSgpr { reg: index, .. } = s {
            constant &= is_constant(index, &varying);
        }
    });
    each_value(body, &mut |v| {
        if let ValueKind::Element(_, index) = &v.kind {
            constant &= is_constant(index, &varying);
        }
    });
    constant
}

fn is_constant(value: &Value, varying: &HashSet<LocalId>) -> bool {
    !any_in(value, &|v| match &v.kind {
        ValueKind::Var(Var::Local(id)) => varying.contains(id),
        ValueKind::Const(_)
        | ValueKind::OperandNumber(_)
        | ValueKind::Op2(..)
        | ValueKind::Select(..)
        | ValueKind::Compare { .. } => v.host_width == HostWidth::W128,
        _ => true,
    })
}
