//! Checks the order of reads and writes. Statements execute in order, but hardware reads all sources first.
//! Bodies that read after they write are rewritten such that every engine computes the same result:
//!
//! - In a body that runs once per wave, a source that is read after a write is read ahead of the body, since
//!   its register may be the one written.
//! - A scalar result that is read after it is written is kept in a local, since the register may be null or
//!   another one that is written.
//! - A lane's bit of a mask that is read after it is written is kept in a local, since the masks themselves
//!   are written at the end.
//! - Sequences that neither the handlers nor the evaluator can execute are errors.

use crate::diag::Diagnostic;
use crate::pcode::ir::*;
use crate::pcode::shape::is_lane_id;
use crate::pcode::visit::{
    Visitor, any_expr, each_expr_mut, each_list_mut, walk_expr, walk_place, walk_stmt,
};
use crate::source::Span;
use std::collections::BTreeSet;

/// A resource that is written and read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Resource {
    /// A lane's own bit of a mask.
    MaskBit(Mask),
    Operand(Role),
    State(State),
    Vgpr,
    Sgpr,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Mask {
    Operand(Role),
    State(State),
}

/// Sources, which keep their values from the instruction's start.
const SOURCES: &[Role] = &[
    Role::S0,
    Role::S1,
    Role::S2,
    Role::S3,
    Role::Data,
    Role::Data1,
    Role::VAddr,
    Role::SAddr,
    Role::SOffset,
];

/// Rewrites reads that follow writes. Returns errors for sequences that cannot be rewritten.
pub fn check(sem: &mut Semantics) -> Vec<Diagnostic> {
    let (lane, scalar) = (sem.shape == Shape::Lane, sem.shape == Shape::Scalar);
    let mut walk = Walk { lane, scalar, ..Walk::default() };
    walk.stmts(&sem.body);
    let mut errors = std::mem::take(&mut walk.errors);
    errors.dedup();
    if !errors.is_empty() {
        return errors;
    }
    for role in std::mem::take(&mut walk.late_sources) {
        hoist_source_read(sem, role);
    }
    if walk.late_result {
        cache_result(sem);
    }
    for mask in std::mem::take(&mut walk.late_bits) {
        cache_mask_bit(sem, mask);
    }
    errors
}

#[derive(Default)]
struct Walk {
    lane: bool,
    scalar: bool,
    written: BTreeSet<Resource>,
    late_sources: BTreeSet<Role>,
    late_bits: BTreeSet<Mask>,
    late_result: bool,
    errors: Vec<Diagnostic>,
}

impl Walk {
    fn error(&mut self, span: Span, message: &str, help: &str) {
        let error = Diagnostic::error(span, message).help(help);
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Reports a read of a whole mask after a write to a lane's bit: the mask is complete only after the last
    /// lane.
    fn check_whole_mask_read(&mut self, mask: Mask, span: Span) {
        if self.written.contains(&Resource::MaskBit(mask)) && mask != Mask::Operand(Role::D0) {
            let help = "the other lanes' bits are not assigned yet: read `[laneId]`, or read the mask before";
            self.error(span, "the whole mask is read after a lane's bit of it is assigned", help);
        }
    }
}

impl<'a> Visitor<'a> for Walk {
    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::If { arms, otherwise, .. } => {
                let mut after = self.written.clone();
                for (cond, body) in arms {
                    self.expr(cond);
                    let before = self.written.clone();
                    self.stmts(body);
                    after.append(&mut std::mem::replace(&mut self.written, before));
                }
                self.stmts(otherwise);
                self.written.append(&mut after);
            }
            // The second iteration runs after the first one's writes.
            Stmt::For { body, .. } => {
                walk_stmt(self, stmt);
                self.stmts(body);
            }
            Stmt::While { cond, .. } => {
                walk_stmt(self, stmt);
                walk_stmt(self, stmt);
                self.expr(cond);
            }
            Stmt::Assign { .. } | Stmt::Return { .. } | Stmt::Call { .. } => walk_stmt(self, stmt),
        }
    }

    fn place(&mut self, place: &'a Place) {
        match &place.kind {
            PlaceKind::Operand(role) => {
                self.written.insert(Resource::Operand(*role));
            }
            PlaceKind::State(state) => {
                self.written.insert(Resource::State(*state));
            }
            PlaceKind::Slice { base, lo } => {
                self.expr(lo);
                match mask_of_place(base) {
                    Some(mask) if self.lane && is_lane_id(lo) => {
                        self.written.insert(Resource::MaskBit(mask));
                    }
                    _ => self.place(base),
                }
            }
            PlaceKind::Vgpr { .. } => {
                walk_place(self, place);
                self.written.insert(Resource::Vgpr);
            }
            PlaceKind::Sgpr { .. } => {
                walk_place(self, place);
                self.written.insert(Resource::Sgpr);
            }
            PlaceKind::Local(_) | PlaceKind::Element(..) | PlaceKind::Mem { .. } | PlaceKind::Concat(_) => {
                walk_place(self, place);
            }
        }
    }

    fn expr(&mut self, e: &'a Expr) {
        let floats = match &e.kind {
            ExprKind::Binary(_, a, _) => a.ty.is_float(),
            ExprKind::Convert(a) => a.ty.is_float() || e.ty.is_float(),
            ExprKind::Call(_, args) => e.ty.is_float() || args.iter().any(|a| a.ty.is_float()),
            _ => false,
        };
        if floats && self.written.contains(&Resource::State(State::Mode)) {
            let help = "rounding and denormals follow the MODE at the instruction's start";
            self.error(e.span, "float arithmetic after MODE is written", help);
        }
        match &e.kind {
            ExprKind::Slice { base, lo } if self.lane && is_lane_id(lo) && mask_of(base).is_some() => {
                let Some(mask) = mask_of(base) else { return };
                if self.written.contains(&Resource::MaskBit(mask)) {
                    self.late_bits.insert(mask);
                }
                return;
            }
            ExprKind::Operand(role) => {
                if self.lane {
                    if *role == Role::D0 && self.written.contains(&Resource::Vgpr) {
                        let help = "keep the value in a local";
                        self.error(e.span, "`D0` is read after a register is written by number", help);
                    }
                    self.check_whole_mask_read(Mask::Operand(*role), e.span);
                } else if self.scalar && *role == Role::D0 {
                    self.late_result |= self.written.contains(&Resource::Operand(Role::D0));
                } else if SOURCES.contains(role) && !self.written.is_empty() {
                    self.late_sources.insert(*role);
                }
            }
            ExprKind::State(state) => {
                let mask = match state {
                    State::ExecLo | State::ExecHi | State::Execz => State::Exec,
                    State::VccLo | State::VccHi | State::Vccz => State::Vcc,
                    state => *state,
                };
                if self.lane {
                    self.check_whole_mask_read(Mask::State(mask), e.span);
                }
                if *state == State::Pc && self.written.contains(&Resource::State(State::Pc)) {
                    let help = "`PC` is this instruction's address: compute with it before the jump";
                    self.error(e.span, "`PC` is read after it is assigned", help);
                }
            }
            ExprKind::Vgpr { .. } if self.lane && self.written.contains(&Resource::Operand(Role::D0)) => {
                let help = "all lanes read before any lane writes: keep the value in a local";
                self.error(e.span, "a register is read by number after `D0` is assigned", help);
            }
            _ => {}
        }
        walk_expr(self, e);
    }
}

fn mask_of(e: &Expr) -> Option<Mask> {
    match e.kind {
        ExprKind::Operand(role @ Role::Vcc) => Some(Mask::Operand(role)),
        ExprKind::State(state @ (State::Exec | State::Vcc)) => Some(Mask::State(state)),
        _ => None,
    }
}

fn mask_of_place(place: &Place) -> Option<Mask> {
    match place.kind {
        PlaceKind::Operand(role @ Role::Vcc) => Some(Mask::Operand(role)),
        PlaceKind::State(state @ (State::Exec | State::Vcc)) => Some(Mask::State(state)),
        _ => None,
    }
}

// ---- rewriting

/// Reads `role` into a local ahead of the body and replaces all its uses by the local.
fn hoist_source_read(sem: &mut Semantics, role: Role) {
    let mut width = 0;
    each_expr_mut(&mut sem.body, |e| {
        if e.kind == ExprKind::Operand(role) {
            width = width.max(e.ty.width() as u16);
        }
    });
    let id = sem.locals.len() as LocalId;
    let ty = Ty::B(width);
    sem.locals.push(Local { name: format!("{role:?}$"), ty, len: None });
    each_expr_mut(&mut sem.body, |e| {
        if e.kind == ExprKind::Operand(role) {
            let local = Expr { kind: ExprKind::Local(id), ty, span: e.span };
            e.kind = if e.ty == ty { ExprKind::Local(id) } else { ExprKind::Bits(Box::new(local)) };
        }
    });
    let span = sem.span;
    let value = Expr { kind: ExprKind::Operand(role), ty, span };
    let place = Place { kind: PlaceKind::Local(id), ty };
    sem.body.insert(0, Stmt::Assign { place, value, span });
}

/// Keeps the lane's bit of `mask` in a local, which each assignment to the bit also sets.
fn cache_mask_bit(sem: &mut Semantics, mask: Mask) {
    let bit = Ty::U(1);
    let id = sem.locals.len() as LocalId;
    sem.locals.push(Local { name: "bit$".to_string(), ty: bit, len: None });
    let mut first = None;
    each_expr_mut(&mut sem.body, |e| {
        if let ExprKind::Slice { base, lo } = &e.kind
            && is_lane_id(lo)
            && mask_of(base) == Some(mask)
        {
            first.get_or_insert_with(|| e.clone());
            e.kind = ExprKind::Local(id);
        }
    });
    let Some(value) = first else { return };
    each_list_mut(&mut sem.body, |list| {
        let mut at = 0;
        while at < list.len() {
            if let Stmt::Assign { place, value, span } = &mut list[at]
                && let PlaceKind::Slice { base, lo } = &place.kind
                && is_lane_id(lo)
                && mask_of_place(base) == Some(mask)
            {
                let span = *span;
                let local = Expr { kind: ExprKind::Local(id), ty: bit, span };
                let value = std::mem::replace(value, local);
                let to = Place { kind: PlaceKind::Local(id), ty: bit };
                list.insert(at, Stmt::Assign { place: to, value, span });
                at += 1;
            }
            at += 1;
        }
    });
    let place = Place { kind: PlaceKind::Local(id), ty: bit };
    sem.body.insert(0, Stmt::Assign { place, value, span: sem.span });
}

/// Keeps `D0` in a local; each assignment to `D0` sets the local and copies it to `D0`.
fn cache_result(sem: &mut Semantics) {
    let locals = &mut sem.locals;
    each_list_mut(&mut sem.body, |list| split_results(list, locals));
    let mut width = 0;
    each_expr_mut(&mut sem.body, |e| {
        if e.kind == ExprKind::Operand(Role::D0) {
            width = width.max(e.ty.width() as u16);
        }
    });
    each_list_mut(&mut sem.body, |list| {
        for stmt in list.iter() {
            if let Stmt::Assign { place, .. } = stmt
                && let Some(ty) = result_of(place)
            {
                width = width.max(ty.width() as u16);
            }
        }
    });
    let id = sem.locals.len() as LocalId;
    let ty = Ty::B(width);
    sem.locals.push(Local { name: "D0$".to_string(), ty, len: None });
    let is_set_first = sem.body.iter().find_map(|stmt| {
        let reads = any_expr(std::slice::from_ref(stmt), |e| e.kind == ExprKind::Operand(Role::D0));
        match stmt {
            _ if reads => Some(false),
            Stmt::Assign { place, .. } => result_of(place)
                .map(|to| place.kind == PlaceKind::Operand(Role::D0) && written_bits(to) >= width),
            Stmt::If { .. } | Stmt::For { .. } | Stmt::While { .. } => Some(false),
            Stmt::Return { .. } | Stmt::Call { .. } => None,
        }
    });
    each_expr_mut(&mut sem.body, |e| {
        if e.kind == ExprKind::Operand(Role::D0) {
            *e = part_of_local(id, ty, e.ty, e.span);
        }
    });
    let locals = &mut sem.locals;
    each_list_mut(&mut sem.body, |list| {
        let mut out = Vec::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            let Stmt::Assign { place, span, .. } = &mut stmt else {
                out.push(stmt);
                continue;
            };
            let (to, span) = (result_of(place), *span);
            let Some(to) = to else {
                out.push(stmt);
                continue;
            };
            let bits = written_bits(to);
            let assign = |kind, ty, value| Stmt::Assign { place: Place { kind, ty }, value, span };
            if bits >= width {
                set_local(place, id);
                out.push(stmt);
            } else {
                // The upper dwords of the local keep their value, as in the register: build the assigned part
                // separately.
                let part = locals.len() as LocalId;
                locals.push(Local { name: "part$".to_string(), ty: to, len: None });
                if place.kind != PlaceKind::Operand(Role::D0) {
                    out.push(assign(PlaceKind::Local(part), to, part_of_local(id, ty, to, span)));
                }
                set_local(place, part);
                out.push(stmt);
                let base = Box::new(Place { kind: PlaceKind::Local(id), ty });
                let lo = Box::new(Expr { kind: ExprKind::Const(0), ty: Ty::U(32), span });
                let (low, bits) = (PlaceKind::Slice { base, lo }, Ty::B(bits));
                out.push(assign(low, bits, part_of_local(part, to, bits, span)));
            }
            let to = Ty::B(bits.min(width));
            out.push(assign(PlaceKind::Operand(Role::D0), to, part_of_local(id, ty, to, span)));
        }
        *list = out;
    });
    if is_set_first != Some(true) {
        let value = Expr { kind: ExprKind::Operand(Role::D0), ty, span: sem.span };
        let place = Place { kind: PlaceKind::Local(id), ty };
        sem.body.insert(0, Stmt::Assign { place, value, span: sem.span });
    }
}

/// Splits assignments to a concatenation that contains `D0` into one assignment per part, lowest first.
fn split_results(list: &mut Vec<Stmt>, locals: &mut Vec<Local>) {
    let mut at = 0;
    while at < list.len() {
        if let Stmt::Assign { place, span, .. } = &list[at]
            && let PlaceKind::Concat(parts) = &place.kind
            && has_result(place)
        {
            let (span, ty, parts) = (*span, Ty::B(place.ty.width() as u16), parts.clone());
            let id = locals.len() as LocalId;
            locals.push(Local { name: "parts$".to_string(), ty, len: None });
            if let Stmt::Assign { place, .. } = &mut list[at] {
                place.kind = PlaceKind::Local(id);
            }
            let mut lo = 0;
            let pieces = parts.into_iter().rev().map(|place| {
                let base = Box::new(Expr { kind: ExprKind::Local(id), ty, span });
                let from = Box::new(Expr { kind: ExprKind::Const(lo), ty: Ty::U(32), span });
                lo += place.ty.width() as u128;
                let ty = Ty::B(place.ty.width() as u16);
                let value = Expr { kind: ExprKind::Slice { base, lo: from }, ty, span };
                Stmt::Assign { place, value, span }
            });
            let pieces: Vec<Stmt> = pieces.collect();
            // A part may be a concatenation itself, which a later iteration splits.
            list.splice(at + 1..at + 1, pieces);
        }
        at += 1;
    }
}

fn has_result(place: &Place) -> bool {
    match &place.kind {
        PlaceKind::Concat(parts) => parts.iter().any(has_result),
        _ => result_of(place).is_some(),
    }
}

/// Returns the bits written to a scalar result: whole dwords, zero-extended.
fn written_bits(ty: Ty) -> u16 {
    ty.width().next_multiple_of(32) as u16
}

/// Returns the low bits of a local, or the zero-extended local.
fn part_of_local(id: LocalId, ty: Ty, to: Ty, span: Span) -> Expr {
    let local = Expr { kind: ExprKind::Local(id), ty, span };
    if to == ty { local } else { Expr { kind: ExprKind::Bits(Box::new(local)), ty: to, span } }
}

/// Returns the type that `D0` is assigned as, if `D0` is the target.
fn result_of(place: &Place) -> Option<Ty> {
    match &place.kind {
        PlaceKind::Operand(Role::D0) => Some(place.ty),
        PlaceKind::Slice { base, .. } => result_of(base),
        _ => None,
    }
}

fn set_local(place: &mut Place, id: LocalId) {
    match &mut place.kind {
        PlaceKind::Slice { base, .. } => set_local(base, id),
        kind => *kind = PlaceKind::Local(id),
    }
}
