//! The operands of an operation: their widths and slots.

use crate::ir::Slot;
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::*;
use isa_spec::pcode::visit::{Visitor, walk_expr, walk_place};
use std::collections::{BTreeMap, BTreeSet};

/// The operands that a body uses by value, with the widest use, and those that it uses by register number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operands {
    /// Operands used by value, with their widths in bits.
    pub widths: BTreeMap<Role, u32>,
    /// Operands used by register number.
    pub indexed: BTreeSet<Role>,
}

impl Operands {
    /// Collects the operands of a body; a use of part of a wide result counts as a use of the whole.
    pub fn of(op: &Operation) -> Operands {
        let mut out = Operands::default();
        out.stmts(&op.sem.body);
        if let (Some(info), Some(width)) = (op.sig.operands.get(&Role::D0), out.widths.get_mut(&Role::D0)) {
            // A partial write of a wide result still owns the whole result.
            *width = (*width).max((info.width as u32).min(128));
        }
        out
    }

    /// Returns the width in bits of the variable that holds an operand.
    pub fn width(&self, role: Role) -> u32 {
        self.widths.get(&role).copied().unwrap_or(32)
    }

    fn record_use(&mut self, role: Role, width: u32) {
        let slot = self.widths.entry(role).or_insert(0);
        *slot = (*slot).max(width);
    }

    /// Returns the number of registers that handlers read from each source slot.
    pub fn sources(&self) -> [u8; 4] {
        let mut dwords = [0; 4];
        for (&role, &width) in &self.widths {
            if is_source(role) {
                // The fifth source is stored separately.
                if let Some(slot) = dwords.get_mut(source(role)) {
                    *slot = (*slot).max(width.div_ceil(32) as u8);
                }
            }
        }
        dwords
    }
}

impl<'a> Visitor<'a> for Operands {
    fn place(&mut self, place: &'a Place) {
        if let PlaceKind::Operand(role) = place.kind {
            self.record_use(role, place.ty.width());
        }
        walk_place(self, place);
    }

    fn expr(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Operand(role) => self.record_use(*role, e.ty.width()),
            ExprKind::OperandLane { role, .. } => {
                self.record_use(*role, 32);
                walk_expr(self, e);
            }
            ExprKind::OperandIndex(role) => {
                self.indexed.insert(*role);
            }
            // A constant slice uses only the bits up to its highest one. (A narrower view of an operand is an
            // operand of the view's type.)
            ExprKind::Slice { base, lo } => match (&base.kind, &lo.kind) {
                (ExprKind::Operand(role), ExprKind::Const(at)) => {
                    self.record_use(*role, (*at as u32 + e.ty.width()).min(base.ty.width()));
                }
                _ => walk_expr(self, e),
            },
            _ => walk_expr(self, e),
        }
    }
}

/// Returns whether an operand is one of the operation's sources, not a result or mask.
pub fn is_source(role: Role) -> bool {
    !matches!(role, Role::D0 | Role::D1 | Role::Vcc)
}

/// Returns whether an operand has the same value in all lanes: no encoding has a vector register for it.
pub fn is_scalar(role: Role) -> bool {
    matches!(role, Role::SAddr | Role::SOffset)
}

/// The source number of the fifth source, which is stored among the operation's modifiers rather than in a
/// slot.
const FIFTH: usize = 4;

/// Returns the source number of an operand.
pub fn source(role: Role) -> usize {
    match role {
        Role::S0 | Role::VAddr => 0,
        Role::S1 | Role::SAddr => 1,
        Role::S2 | Role::Data => 2,
        Role::S4 => FIFTH,
        _ => 3,
    }
}

/// Returns the slot of an operand. A result that is read as a scalar is its destination register.
pub fn slot(role: Role) -> Slot {
    match role {
        Role::D0 | Role::D1 => Slot::ScalarResult,
        Role::S4 => Slot::Fifth,
        role => Slot::Source(source(role)),
    }
}

/// Like [`slot`], for an operand whose lanes are read: a result is lane vectors.
pub fn lane_slot(role: Role) -> Slot {
    match role {
        Role::D0 | Role::D1 => Slot::VectorResult,
        role => slot(role),
    }
}

/// Returns the source number of an operand that accepts input modifiers.
pub fn numbered(role: Role) -> Option<usize> {
    [Role::S0, Role::S1, Role::S2, Role::S3].iter().position(|r| *r == role)
}
