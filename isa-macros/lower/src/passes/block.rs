//! Finds block copies: bodies that only move whole registers between memory and the lanes. If every lane is
//! active they need no vectors of addresses, and if the addresses are coalesced a single copy serves all
//! lanes.

use super::strip_resizes;
use super::uniform::lds_terms;
use crate::ir::*;
use isa_spec::pcode::ir::Space;
use isa_spec::tables::Role;

/// Returns the block copy that a handler performs, if it is one; runs after [`super::memory`].
pub fn find(lanes: &Lanes) -> Option<Block> {
    let LaneLoop { body, result, .. } = lanes.main_loop()?;
    let accesses: Vec<&Memory> = lanes
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Memory(access) => Some(access),
            _ => None,
        })
        .collect();
    let &&Memory { store, space, bytes, dwords, .. } = accesses.first()?;
    if bytes % 4 != 0
        || accesses.iter().any(|a| a.bytes != bytes)
        || !is_plain_copy(body, accesses.len(), 8 * bytes)
        // Otherwise, the handler extends what it loads.
        || result.is_some_and(|result| result.width != 8 * bytes * accesses.len() as u32)
    {
        return None;
    }
    match (&accesses[..], space) {
        ([Memory { addresses: Addresses::Sum(sum), .. }], _) => Some(Block::Global {
            base: sum.base.clone(),
            offsets: sum.offsets,
            scale: sum.scale,
            unless: sum.unless.as_ref().map(|(unless, _)| unless.clone()),
            address64: sum.address64.clone(),
            store,
            dwords,
        }),
        (_, Space::Lds) => {
            let mut terms = accesses.iter().map(|access| lds_terms(address(access, body)?));
            let (lanes, first) = terms.next()??;
            let mut plus = vec![first.clone()];
            for term in terms {
                let (role, number) = term?;
                if role != lanes {
                    return None;
                }
                plus.push(number.clone());
            }
            Some(Block::Lds { lanes, plus, store, dwords })
        }
        _ => None,
    }
}

/// Returns the address of an access, looking through a local that the first statement sets.
fn address<'a>(access: &'a Memory, body: &'a [Stmt]) -> Option<&'a Value> {
    let (body, addr) = match &access.addresses {
        Addresses::Computed(lanes) => match lanes.body.last()? {
            Stmt::SetAddress { addr, .. } => (&lanes.body[..], addr),
            _ => return None,
        },
        Addresses::Set => match body.last()? {
            Stmt::SetStored { address: Some((_, addr)), .. } => (body, addr),
            _ => return None,
        },
        Addresses::Sum(_) => return None,
    };
    match (&addr.kind, body.first()) {
        (ValueKind::Var(var), Some(Stmt::Set(to, value))) if var == to => Some(value),
        _ => Some(addr),
    }
}

/// Returns whether the body consists of an optional address computation and either loads whose unmodified
/// values form the destination, lowest first, or one store of whole registers.
fn is_plain_copy(body: &[Stmt], count: usize, bits: u32) -> bool {
    let Some((last, before)) = body.split_last() else { return false };
    let is_address = |s: &[Stmt]| match s {
        [] => true,
        [Stmt::Set(Var::Local(_), value)] => {
            !matches!(strip_resizes(value, bits).kind, ValueKind::Loaded { .. })
        }
        _ => false,
    };
    match last {
        Stmt::SetStored { value, .. } => {
            // An operand of a smaller host width is extended.
            let data = Value::new(ValueKind::Var(Var::Operand(Role::Data)), HostWidth::of(bits));
            is_address(before) && *strip_resizes(value, bits) == data
        }
        Stmt::Set(Var::Operand(Role::D0), value) => match &strip_resizes(value, bits).kind {
            ValueKind::Loaded { .. } => is_address(before),
            ValueKind::Concat(parts) => {
                // Each part must be the local of a statement that is a plain load.
                let from = |(number, (stmt, (part, lo))): (usize, (&Stmt, &(Value, u32)))| {
                    let Stmt::Set(to, value) = stmt else { return false };
                    let loaded = matches!(strip_resizes(value, bits).kind, ValueKind::Loaded { access, .. } if access == number);
                    loaded
                        && strip_resizes(part, bits).kind == ValueKind::Var(*to)
                        && *lo == number as u32 * bits
                };
                before.len() == count
                    && parts.len() == count
                    && before.iter().zip(parts.iter().rev()).enumerate().all(from)
            }
            _ => false,
        },
        _ => false,
    }
}
