//! Statements happen one after the other, sources are read first: what a body reads after it has written is made the same for
//! whoever runs it.
//!
//! - A source that runs once a wave and is read after a write is read ahead of the body: its register may be the one written.
//! - A lane's bit of a mask that is read after it is written is kept in a local: the masks themselves are written at the end.
//! - What neither the handlers nor the evaluator could give is refused.

use crate::diag::Diagnostic;
use crate::pcode::ir::*;
use crate::pcode::shape::is_lane_id;
use crate::source::Span;
use std::collections::BTreeSet;

/// Something that is written and read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Thing {
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

/// Sources, which have the values that they had when the instruction started.
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

/// Rewrites what needs it; the errors are of what cannot be.
pub fn check(sem: &mut Semantics) -> Vec<Diagnostic> {
    let mut walk = Walk { lane: sem.shape == Shape::Lane, ..Walk::default() };
    walk.stmts(&sem.body);
    let mut errors = std::mem::take(&mut walk.errors);
    errors.dedup();
    if !errors.is_empty() {
        return errors;
    }
    for role in std::mem::take(&mut walk.late_sources) {
        read_first(sem, role);
    }
    for mask in std::mem::take(&mut walk.late_bits) {
        keep_bit(sem, mask);
    }
    errors
}

#[derive(Default)]
struct Walk {
    lane: bool,
    written: BTreeSet<Thing>,
    late_sources: BTreeSet<Role>,
    late_bits: BTreeSet<Mask>,
    errors: Vec<Diagnostic>,
}

impl Walk {
    fn error(&mut self, span: Span, message: &str, help: &str) {
        let error = Diagnostic::error(span, message).help(help);
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn stmts(&mut self, list: &[Stmt]) {
        for stmt in list {
            match stmt {
                Stmt::Assign { place, value, .. } => {
                    self.expr(value);
                    self.place(place);
                }
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
                Stmt::For { from, to, body, .. } => {
                    self.expr(from);
                    self.expr(to);
                    // The second turn comes after the first one's writes.
                    self.stmts(body);
                    self.stmts(body);
                }
                Stmt::While { cond, body, .. } => {
                    for _ in 0..2 {
                        self.expr(cond);
                        self.stmts(body);
                    }
                    self.expr(cond);
                }
                Stmt::Return { .. } => {}
                Stmt::Call { args, .. } => args.iter().for_each(|a| self.expr(a)),
            }
        }
    }

    fn place(&mut self, place: &Place) {
        match &place.kind {
            PlaceKind::Local(_) => {}
            PlaceKind::Element(_, index) => self.expr(index),
            PlaceKind::Operand(role) => {
                self.written.insert(Thing::Operand(*role));
            }
            PlaceKind::State(state) => {
                self.written.insert(Thing::State(*state));
            }
            PlaceKind::Slice { base, lo } => {
                self.expr(lo);
                match mask_of_place(base) {
                    Some(mask) if self.lane && is_lane_id(lo) => {
                        self.written.insert(Thing::MaskBit(mask));
                    }
                    _ => self.place(base),
                }
            }
            PlaceKind::Vgpr { lane, reg } => {
                self.expr(lane);
                self.expr(reg);
                self.written.insert(Thing::Vgpr);
            }
            PlaceKind::Sgpr { reg } => {
                self.expr(reg);
                self.written.insert(Thing::Sgpr);
            }
            PlaceKind::Mem { addr, .. } => self.expr(addr),
            PlaceKind::Concat(parts) => parts.iter().for_each(|p| self.place(p)),
        }
    }

    fn expr(&mut self, e: &Expr) {
        let floats = match &e.kind {
            ExprKind::Binary(_, a, _) => a.ty.is_float(),
            ExprKind::Convert(a) => a.ty.is_float() || e.ty.is_float(),
            ExprKind::Call(_, args) => e.ty.is_float() || args.iter().any(|a| a.ty.is_float()),
            _ => false,
        };
        if floats && self.written.contains(&Thing::State(State::Mode)) {
            let help = "rounding and denormals are those of the MODE that the instruction started with";
            self.error(e.span, "float arithmetic after MODE is written", help);
        }
        match &e.kind {
            ExprKind::Slice { base, lo } if self.lane && is_lane_id(lo) && mask_of(base).is_some() => {
                let Some(mask) = mask_of(base) else { return };
                if self.written.contains(&Thing::MaskBit(mask)) {
                    self.late_bits.insert(mask);
                }
                return;
            }
            ExprKind::Operand(role) => {
                if self.lane {
                    if *role == Role::D0 && self.written.contains(&Thing::Vgpr) {
                        let help = "keep the value in a local";
                        self.error(e.span, "`D0` is read after a register was written by its number", help);
                    }
                    self.whole(Mask::Operand(*role), e.span);
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
                    self.whole(Mask::State(mask), e.span);
                }
                if *state == State::Pc && self.written.contains(&Thing::State(State::Pc)) {
                    let help = "`PC` is this instruction's address: compute with it before the jump";
                    self.error(e.span, "`PC` is read after it is assigned", help);
                }
            }
            ExprKind::Vgpr { .. } if self.lane && self.written.contains(&Thing::Operand(Role::D0)) => {
                let help = "lanes read before any writes: keep the value in a local";
                self.error(e.span, "a register is read by its number after `D0` is assigned", help);
            }
            _ => {}
        }
        children(e, &mut |child| self.expr(child));
    }

    /// A mask as a whole is complete only after the last lane.
    fn whole(&mut self, mask: Mask, span: Span) {
        if self.written.contains(&Thing::MaskBit(mask)) && mask != Mask::Operand(Role::D0) {
            let help = "the other lanes' bits are not there yet: read `[laneId]`, or read the mask before";
            self.error(span, "a mask is read whole after a lane's bit of it is assigned", help);
        }
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

fn children(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    match &e.kind {
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Operand(_)
        | ExprKind::OperandIndex(_)
        | ExprKind::Field(_)
        | ExprKind::State(_) => {}
        ExprKind::Element(_, a) | ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => f(a),
        ExprKind::Sgpr { reg } => f(reg),
        ExprKind::Mem { addr, .. } => f(addr),
        ExprKind::OperandLane { lane, index, .. } => [lane, index].into_iter().for_each(|x| f(x)),
        ExprKind::Slice { base, lo } => [base, lo].into_iter().for_each(|x| f(x)),
        ExprKind::Vgpr { lane, reg } => [lane, reg].into_iter().for_each(|x| f(x)),
        ExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|x| f(x)),
        ExprKind::Select(a, b, c) => [a, b, c].into_iter().for_each(|x| f(x)),
        ExprKind::Call(_, list) | ExprKind::Concat(list) => list.iter().for_each(f),
    }
}

// ---- rewriting

/// `role` is read into a local ahead of the body, and everywhere from that.
fn read_first(sem: &mut Semantics, role: Role) {
    let mut width = 0;
    each_expr(&mut sem.body, &mut |e| {
        if e.kind == ExprKind::Operand(role) {
            width = width.max(e.ty.width() as u16);
        }
    });
    let id = sem.locals.len() as LocalId;
    let ty = Ty::B(width);
    sem.locals.push(Local { name: format!("{role:?}$"), ty, len: None });
    each_expr(&mut sem.body, &mut |e| {
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

/// The lane's bit of `mask` lives in a local, which each assignment to it sets too.
fn keep_bit(sem: &mut Semantics, mask: Mask) {
    let bit = Ty::U(1);
    let id = sem.locals.len() as LocalId;
    sem.locals.push(Local { name: "bit$".to_string(), ty: bit, len: None });
    let mut first = None;
    each_expr(&mut sem.body, &mut |e| {
        if let ExprKind::Slice { base, lo } = &e.kind
            && is_lane_id(lo)
            && mask_of(base) == Some(mask)
        {
            first.get_or_insert_with(|| e.clone());
            e.kind = ExprKind::Local(id);
        }
    });
    let Some(value) = first else { return };
    each_list(&mut sem.body, &mut |list| {
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

/// Every list of statements, innermost first.
fn each_list(list: &mut Vec<Stmt>, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
    for stmt in list.iter_mut() {
        match stmt {
            Stmt::If { arms, otherwise, .. } => {
                arms.iter_mut().for_each(|a| each_list(&mut a.1, f));
                each_list(otherwise, f);
            }
            Stmt::For { body, .. } | Stmt::While { body, .. } => each_list(body, f),
            _ => {}
        }
    }
    f(list);
}

/// Every expression, those within others first.
fn each_expr(list: &mut [Stmt], f: &mut dyn FnMut(&mut Expr)) {
    for stmt in list {
        match stmt {
            Stmt::Assign { place, value, .. } => {
                within(value, f);
                within_place(place, f);
            }
            Stmt::If { arms, otherwise, .. } => {
                for (cond, body) in arms {
                    within(cond, f);
                    each_expr(body, f);
                }
                each_expr(otherwise, f);
            }
            Stmt::For { from, to, body, .. } => {
                within(from, f);
                within(to, f);
                each_expr(body, f);
            }
            Stmt::While { cond, body, .. } => {
                within(cond, f);
                each_expr(body, f);
            }
            Stmt::Return { .. } => {}
            Stmt::Call { args, .. } => args.iter_mut().for_each(|a| within(a, f)),
        }
    }
}

fn within_place(place: &mut Place, f: &mut dyn FnMut(&mut Expr)) {
    match &mut place.kind {
        PlaceKind::Local(_) | PlaceKind::Operand(_) | PlaceKind::State(_) => {}
        PlaceKind::Element(_, e) | PlaceKind::Sgpr { reg: e } | PlaceKind::Mem { addr: e, .. } => {
            within(e, f)
        }
        PlaceKind::Slice { base, lo } => {
            within_place(base, f);
            within(lo, f);
        }
        PlaceKind::Vgpr { lane, reg } => {
            within(lane, f);
            within(reg, f);
        }
        PlaceKind::Concat(parts) => parts.iter_mut().for_each(|p| within_place(p, f)),
    }
}

fn within(e: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    match &mut e.kind {
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Operand(_)
        | ExprKind::OperandIndex(_)
        | ExprKind::Field(_)
        | ExprKind::State(_) => {}
        ExprKind::Element(_, a) | ExprKind::Unary(_, a) | ExprKind::Convert(a) | ExprKind::Bits(a) => {
            within(a, f)
        }
        ExprKind::Sgpr { reg } => within(reg, f),
        ExprKind::Mem { addr, .. } => within(addr, f),
        ExprKind::OperandLane { lane: a, index: b, .. }
        | ExprKind::Slice { base: a, lo: b }
        | ExprKind::Vgpr { lane: a, reg: b }
        | ExprKind::Binary(_, a, b) => {
            within(a, f);
            within(b, f);
        }
        ExprKind::Select(a, b, c) => {
            within(a, f);
            within(b, f);
            within(c, f);
        }
        ExprKind::Call(_, list) | ExprKind::Concat(list) => list.iter_mut().for_each(|x| within(x, f)),
    }
    f(e);
}
