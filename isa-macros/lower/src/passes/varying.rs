//! Which values are the same in all lanes, or in all iterations of a loop.

use crate::ir::*;
use crate::lower::operands::is_scalar;
use crate::visit::{any_stmt, parts};
use isa_spec::pcode::ir::{LocalId, State};
use std::collections::BTreeSet;

/// What differs between the lanes or iterations of a body.
#[derive(Debug, Clone, Default)]
pub struct Varying {
    /// Locals whose values differ.
    pub locals: BTreeSet<LocalId>,
    /// The body assigns scalar registers or state, so that reads of these may differ.
    pub registers: bool,
}

impl Varying {
    /// Nothing that is known to differ but what the statements do to scalar registers.
    pub fn of(body: &[Stmt]) -> Varying {
        let registers = any_stmt(body, &|stmt| {
            matches!(
                stmt,
                Stmt::SetState(..) | Stmt::SetSgpr { .. } | Stmt::SetScalar { .. } | Stmt::SetMaskOperand(_)
            )
        });
        Varying { locals: BTreeSet::new(), registers }
    }

    /// Returns whether a value is the same for all, and can be computed at any time: without memory accesses,
    /// vector registers, and calls that can end the handler.
    pub fn is_same(&self, value: &Value) -> bool {
        let own = match &value.kind {
            ValueKind::Var(Var::Local(id)) | ValueKind::Element(id, _) => !self.locals.contains(id),
            ValueKind::Var(Var::Operand(role)) => is_scalar(*role),
            ValueKind::Sgpr { .. } | ValueKind::Scalar { .. } => !self.registers,
            ValueKind::State(state) => {
                matches!(state, State::Wave32 | State::Wave64 | State::WaveSize | State::VgprSize)
            }
            ValueKind::Var(Var::Whole)
            | ValueKind::LaneBit(_)
            | ValueKind::MaskOperand(_)
            | ValueKind::StagedLane { .. }
            | ValueKind::StagedDword { .. }
            | ValueKind::OperandLane { .. }
            | ValueKind::LaneElement(..)
            | ValueKind::Vgpr { .. }
            | ValueKind::Load { .. }
            | ValueKind::Loaded { .. }
            | ValueKind::VectorRead { .. }
            | ValueKind::Simd { .. }
            | ValueKind::SimdResult { .. }
            | ValueKind::Control { .. } => false,
            ValueKind::Const(_)
            | ValueKind::Field(_)
            | ValueKind::SourceBit { .. }
            | ValueKind::OperandNumber(_)
            | ValueKind::WordAddress(_)
            | ValueKind::Resize(_)
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
            | ValueKind::Select(..)
            | ValueKind::Extract { .. }
            | ValueKind::Insert { .. }
            | ValueKind::Concat(_)
            | ValueKind::Saturate { .. }
            | ValueKind::Float { .. }
            | ValueKind::FloatBits { .. }
            | ValueKind::Conversion(..)
            | ValueKind::Convert { .. }
            | ValueKind::Pow { .. }
            | ValueKind::Pure { .. } => true,
        };
        let mut same = own;
        parts(value, &mut |part| same = same && self.is_same(part));
        same
    }

    /// Returns whether a statement only assigns locals, and does the same for all.
    pub fn is_same_statement(&self, stmt: &Stmt) -> bool {
        let all = |list: &[Stmt]| list.iter().all(|stmt| self.is_same_statement(stmt));
        let own = assigned(stmt).is_none_or(|id| !self.locals.contains(&id));
        match stmt {
            Stmt::Set(Var::Local(_), value) | Stmt::SetLow { var: Var::Local(_), value, .. } => {
                own && self.is_same(value)
            }
            Stmt::SetElement { index, value, .. } => own && self.is_same(index) && self.is_same(value),
            Stmt::If { arms, otherwise } => {
                arms.iter().all(|(cond, body)| self.is_same(cond) && all(body)) && all(otherwise)
            }
            Stmt::For { from, to, body, .. } => own && self.is_same(from) && self.is_same(to) && all(body),
            _ => false,
        }
    }

    /// Adds the locals whose values differ because statements assign them to others, or under conditions that differ,
    /// until nothing is added. Statements run in order, once for all lanes where `same` holds.
    pub fn follow(&mut self, list: &[Stmt]) {
        loop {
            let before = self.locals.len();
            self.follow_once(list, true);
            if self.locals.len() == before {
                return;
            }
        }
    }

    fn follow_once(&mut self, list: &[Stmt], same: bool) {
        for stmt in list {
            let is_same = match stmt {
                Stmt::Set(_, value) | Stmt::SetLow { value, .. } => self.is_same(value),
                Stmt::SetElement { index, value, .. } => self.is_same(index) && self.is_same(value),
                Stmt::For { from, to, .. } => self.is_same(from) && self.is_same(to),
                _ => true,
            };
            if !(same && is_same) {
                self.locals.extend(assigned(stmt));
            }
            match stmt {
                Stmt::If { arms, otherwise } => {
                    let mut reached = same;
                    for (cond, body) in arms {
                        reached = reached && self.is_same(cond);
                        self.follow_once(body, reached);
                    }
                    self.follow_once(otherwise, reached);
                }
                Stmt::For { body, .. } => self.follow_once(body, same && is_same),
                Stmt::While { body, .. } | Stmt::Parts { parts: body, .. } => self.follow_once(body, false),
                _ => {}
            }
        }
    }
}

/// Returns the local that a statement itself assigns, if it is one.
pub fn assigned(stmt: &Stmt) -> Option<LocalId> {
    match stmt {
        Stmt::Set(Var::Local(id), _)
        | Stmt::SetLow { var: Var::Local(id), .. }
        | Stmt::SetElement { id, .. }
        | Stmt::SetLaneElement { id, .. }
        | Stmt::For { var: id, .. } => Some(*id),
        _ => None,
    }
}

/// Returns the local that a value itself reads.
pub fn read(value: &Value) -> Option<LocalId> {
    match &value.kind {
        ValueKind::Var(Var::Local(id)) | ValueKind::Element(id, _) | ValueKind::LaneElement(id, _) => {
            Some(*id)
        }
        _ => None,
    }
}
