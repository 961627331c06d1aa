//! Statements and places.

use super::convert::constant;
use super::expr::vgpr_parts;
use super::{Binding, Checker, Lit, R, TExpr};
use crate::pcode::ast::{self, StmtKind};
use crate::pcode::ir::{BinOp, Expr, ExprKind, LocalId, Place, PlaceKind, Stmt, Ty, UnOp};
use crate::pcode::sig::Family;
use crate::source::Span;
use crate::tables::Role;

impl<'a> Checker<'a> {
    pub(super) fn stmts(&mut self, list: &'a [ast::Stmt]) {
        for (at, stmt) in list.iter().enumerate() {
            // An error in one statement does not hide those of the next.
            let _ = self.stmt(stmt);
            // What follows a `break` happens only if it was not reached.
            let rest = &list[at + 1..];
            if let Some(&flag) = self.breaks.last()
                && has_break(stmt)
                && !rest.is_empty()
            {
                let body = self.block(rest);
                self.emit(unless(flag, body, stmt.span));
                return;
            }
        }
    }

    /// A loop's body. `break` is a flag that the rest of the body, and all later turns, are skipped by; the second
    /// result is the flag, cleared before the loop.
    fn loop_body(&mut self, list: &'a [ast::Stmt], span: Span) -> (Vec<Stmt>, Option<LocalId>) {
        if !list.iter().any(has_break) {
            return (self.block(list), None);
        }
        let flag = self.new_local("break$", Ty::U(1), None);
        let place = Place { kind: PlaceKind::Local(flag), ty: Ty::U(1) };
        self.emit(Stmt::Assign { place, value: constant(0, Ty::U(1), span), span });
        self.breaks.push(flag);
        let body = self.block(list);
        self.breaks.pop();
        (vec![unless(flag, body, span)], Some(flag))
    }

    pub(super) fn block(&mut self, list: &'a [ast::Stmt]) -> Vec<Stmt> {
        self.out.push(Vec::new());
        self.stmts(list);
        self.out.pop().unwrap_or_default()
    }

    fn stmt(&mut self, stmt: &'a ast::Stmt) -> R<()> {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Empty => Ok(()),
            StmtKind::Declare { name, ty, len } => {
                // Names that the manual declares for the reader although the encoding gives them.
                if matches!(name.text.as_str(), "OFFSET" | "DATA0" | "VDST" | "S" | "OFFSET0" | "OFFSET1")
                    && len.is_none()
                {
                    return Ok(());
                }
                let ty = self.ty_named(*ty, span)?;
                let len = match len {
                    Some(e) => match self.expr(e)?.lit {
                        Some(Lit::Int(n)) if (1..=4096).contains(&n) => Some(n as u32),
                        _ => return self.error(e.span, "an array's length must be a number from 1 to 4096"),
                    },
                    None => None,
                };
                let id = self.new_local(&name.text, ty, len);
                self.bind(&name.text, Binding::Local(id));
                // A declaration starts at zero each time it is reached.
                if len.is_none() {
                    let place = Place { kind: PlaceKind::Local(id), ty };
                    self.emit(Stmt::Assign { place, value: constant(0, ty, span), span });
                }
                Ok(())
            }
            StmtKind::Assign { place, op, value } => self.assign(place, *op, value, span),
            StmtKind::If { arms, otherwise } => {
                let mut out = Vec::new();
                for (cond, body) in arms {
                    let cond = self.expr(cond).and_then(|c| self.condition(c));
                    let body = self.block(body);
                    if let Ok(cond) = cond {
                        out.push((cond, body));
                    }
                }
                let otherwise = match otherwise {
                    Some(body) => self.block(body),
                    None => Vec::new(),
                };
                self.emit(Stmt::If { arms: out, otherwise, span });
                Ok(())
            }
            StmtKind::For { var, from, to, body } => {
                let from = self.expr(from);
                let to = self.expr(to);
                let id = self.new_local(&format!("{}$", var.text), Ty::I(32), None);
                let shadowed =
                    self.frames.last_mut().and_then(|f| f.names.insert(var.text.clone(), Binding::Local(id)));
                let (body, _) = self.loop_body(body, span);
                if let Some(frame) = self.frames.last_mut() {
                    match shadowed {
                        Some(old) => frame.names.insert(var.text.clone(), old),
                        None => frame.names.remove(&var.text),
                    };
                }
                let (from, to) = (from?, to?);
                let from = self.cast(from, Ty::I(32));
                let to = self.cast(to, Ty::I(32));
                self.emit(Stmt::For { var: id, from, to, body, span });
                Ok(())
            }
            StmtKind::While { cond, body } => {
                let before = self.out.last().map_or(0, Vec::len);
                let value = self.expr(cond).and_then(|c| self.condition(c))?;
                if self.out.last().map_or(0, Vec::len) != before {
                    return self
                        .error(cond.span, "a loop's condition cannot call a function with statements");
                }
                let (body, flag) = self.loop_body(body, span);
                let cond = match flag {
                    Some(flag) => {
                        let both =
                            ExprKind::Binary(BinOp::LogicalAnd, Box::new(not(flag, span)), Box::new(value));
                        Expr { kind: both, ty: Ty::U(1), span: cond.span }
                    }
                    None => value,
                };
                self.emit(Stmt::While { cond, body, span });
                Ok(())
            }
            StmtKind::Break => match self.breaks.last() {
                Some(&flag) => {
                    let place = Place { kind: PlaceKind::Local(flag), ty: Ty::U(1) };
                    self.emit(Stmt::Assign { place, value: constant(1, Ty::U(1), span), span });
                    Ok(())
                }
                None => self.error(span, "`break` outside of a loop"),
            },
            StmtKind::Lambda { name, .. } => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.lambdas.insert(name.text.clone(), stmt);
                }
                Ok(())
            }
            StmtKind::Return(value) => self.returned(value.as_ref(), span),
            StmtKind::Call(call) => match &call.kind {
                ast::ExprKind::Call(name, args) => self.call(name, args, call.span).map(|_| ()),
                _ => self.error(span, "not a call"),
            },
        }
    }

    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name.to_string(), binding);
        }
    }

    /// `return`: in an expanded call the value goes to the call's result; in the instruction's own body it ends it.
    fn returned(&mut self, value: Option<&'a ast::Expr>, span: Span) -> R<()> {
        let in_call = self.frames.last().is_some_and(|f| f.result.is_some());
        if !in_call {
            if let Some(value) = value {
                return self.error(value.span, "an instruction's body returns no value");
            }
            self.emit(Stmt::Return { span });
            return Ok(());
        }
        let Some(value) = value else { return self.error(span, "this return needs a value") };
        let value = self.expr(value)?;
        self.set_result(value, span)
    }

    pub(super) fn set_result(&mut self, value: TExpr, span: Span) -> R<()> {
        let result = self.frames.last().and_then(|f| f.result.clone()).unwrap_or_default();
        let (id, ty) = match (result.local, result.ty) {
            (Some(id), Some(ty)) => (id, ty),
            _ => {
                let ty = value.ty();
                (self.new_local("result$", ty, None), ty)
            }
        };
        let value = self.stored(value, ty, span)?;
        if let Some(result) = self.frames.last_mut().and_then(|f| f.result.as_mut()) {
            result.local = Some(id);
            result.ty = Some(ty);
            result.returned = true;
        }
        self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Local(id), ty }, value, span });
        Ok(())
    }

    fn assign(
        &mut self,
        place: &'a ast::Expr,
        op: Option<ast::BinaryOp>,
        value: &'a ast::Expr,
        span: Span,
    ) -> R<()> {
        // Atomics without return share the body of those with.
        if self.no_return(place) {
            return Ok(());
        }
        let result = self.expr(value);
        if result.is_err()
            && let Some((name, _)) = local_name(place)
            && !self.known(name)
        {
            // Its value is wrong, and said to be; that its name is known spares more of the same.
            self.unreadable.insert(name.to_string());
        }
        let mut result = result?;
        if let Some(op) = op {
            let old = self.expr(place)?;
            result = self.binary_values(op, old, result, span)?;
        }
        // D0 of an expanded instruction is the call's result.
        if self.inlined_output(place).is_some() {
            let viewed = match &place.kind {
                ast::ExprKind::View(_, name) => {
                    let ty = self.ty_named(*name, place.span)?;
                    let stored = self.stored(result, ty, span)?;
                    TExpr { expr: stored, lit: None }
                }
                _ => result,
            };
            return self.set_result(viewed, span);
        }
        // First assignment of a new name declares it.
        if let Some((name, view)) = local_name(place)
            && !self.known(name)
        {
            let ty = match view {
                Some(name) => self.ty_named(name, place.span)?,
                None => result.ty(),
            };
            if let ast::ExprKind::Slice(..) | ast::ExprKind::Part(..) | ast::ExprKind::Index(..) = place.kind
            {
                // `tmp[15:0] = …` on an undeclared name: 32 raw bits, as the manual means it.
                let id = self.new_local(name, Ty::B(64), None);
                self.bind(name, Binding::Local(id));
            } else {
                let id = self.new_local(name, ty, None);
                self.bind(name, Binding::Local(id));
                let value = self.stored(result, ty, span)?;
                self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Local(id), ty }, value, span });
                return Ok(());
            }
        }
        let place = self.place(place, None)?;
        let value = self.stored(result, place.ty, span)?;
        self.emit(Stmt::Assign { place, value, span });
        Ok(())
    }

    /// A write to RETURN_DATA where the instruction returns nothing.
    fn no_return(&self, place: &ast::Expr) -> bool {
        match local_name(place) {
            Some(("RETURN_DATA", _)) => {
                matches!(self.sig.family, Family::Memory(_))
                    && !self.sig.permissive
                    && !self.sig.operands.contains_key(&Role::D0)
            }
            _ => false,
        }
    }

    fn known(&mut self, name: &str) -> bool {
        self.frames.last().is_some_and(|f| f.names.contains_key(name))
            || Self::state(name).is_some()
            || self.operand_role(name, true).is_some()
            || matches!(
                name,
                "MEM" | "BUFFER" | "LDS" | "SCRATCH" | "VGPR" | "SGPR" | "DMEM" | "GLOBAL" | "ROUND_MODE"
            )
            || (self.sig.family == Family::Vector && name == "VCC")
            || matches!(
                name,
                "D0" | "D1" | "S0" | "S1" | "S2" | "S3" | "VDATA" | "SDATA" | "VDST" | "SDST" | "RETURN_DATA"
            )
            || name.contains('.')
    }

    /// Whether `place` is the output of an instruction being expanded.
    fn inlined_output(&self, place: &ast::Expr) -> Option<Role> {
        if !self.frames.last().is_some_and(|f| f.instruction) {
            return None;
        }
        match &place.kind {
            ast::ExprKind::View(inner, _) => self.inlined_output(inner),
            ast::ExprKind::Name(name) if name == "D0" => Some(Role::D0),
            _ => None,
        }
    }

    /// A place, stored as `ty` if given.
    fn place(&mut self, e: &'a ast::Expr, ty: Option<Ty>) -> R<Place> {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Paren(inner) => self.place(inner, ty),
            ast::ExprKind::View(inner, name) => {
                let ty = self.ty_named(*name, span)?;
                self.place(inner, Some(ty))
            }
            ast::ExprKind::Name(name) => self.named_place(name, ty, span),
            ast::ExprKind::Slice(base, hi, lo) => {
                let (lo, width) = self.slice_bounds(hi, lo, span)?;
                let base = self.place(base, None)?;
                let ty = self.slice_ty(width, ty, span)?;
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo: Box::new(lo) }, ty })
            }
            ast::ExprKind::Part(base, lo, width) => {
                let (lo, width) = self.part_bounds(lo, width)?;
                let base = self.place(base, None)?;
                let ty = self.slice_ty(width, ty, span)?;
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo: Box::new(lo) }, ty })
            }
            ast::ExprKind::Index(base, index) => {
                if let ast::ExprKind::Name(name) = &base.kind {
                    if let Some(space) = self.space(name, base.span)? {
                        let addr = self.address(index)?;
                        let ty = ty.unwrap_or(Ty::B(32));
                        return Ok(Place { kind: PlaceKind::Mem { space, addr: Box::new(addr) }, ty });
                    }
                    if name == "SGPR" {
                        let reg = self.register(index)?;
                        return Ok(Place {
                            kind: PlaceKind::Sgpr { reg: Box::new(reg) },
                            ty: ty.unwrap_or(Ty::B(32)),
                        });
                    }
                    if let Some(Binding::Local(id)) =
                        self.frames.last().and_then(|f| f.names.get(name.as_str())).cloned()
                        && self.locals[id as usize].len.is_some()
                    {
                        let index = self.expr(index)?;
                        let index = self.cast(index, Ty::I(32));
                        let ty = self.locals[id as usize].ty;
                        return Ok(Place { kind: PlaceKind::Element(id, Box::new(index)), ty });
                    }
                }
                if let Some((lane, reg)) = vgpr_parts(base, index) {
                    let lane = self.expr(lane)?;
                    let lane = self.cast(lane, Ty::U(32));
                    let reg = self.register(reg)?;
                    return Ok(Place {
                        kind: PlaceKind::Vgpr { lane: Box::new(lane), reg: Box::new(reg) },
                        ty: ty.unwrap_or(Ty::B(32)),
                    });
                }
                let base = self.place(base, None)?;
                let bit = self.expr(index)?;
                let bit = self.cast(bit, Ty::U(32));
                let ty = self.slice_ty(1, ty, span)?;
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo: Box::new(bit) }, ty })
            }
            ast::ExprKind::Concat(parts) => {
                let places: Result<Vec<Place>, ()> = parts.iter().map(|p| self.place(p, None)).collect();
                let places = places?;
                let width: u32 = places.iter().map(|p| p.ty.width()).sum();
                Ok(Place { kind: PlaceKind::Concat(places), ty: ty.unwrap_or(Ty::B(width as u16)) })
            }
            _ => self.error(span, "this cannot be assigned to"),
        }
    }

    fn slice_ty(&mut self, width: u16, ty: Option<Ty>, span: Span) -> R<Ty> {
        match ty {
            None if width == 1 => Ok(Ty::U(1)),
            None => Ok(Ty::B(width)),
            Some(ty) if ty.width() == width as u32 => Ok(ty),
            Some(ty) => {
                self.error(span, format!("a slice of {width} bits is viewed with {} bits", ty.width()))
            }
        }
    }

    fn named_place(&mut self, name: &str, ty: Option<Ty>, span: Span) -> R<Place> {
        match self.frames.last().and_then(|f| f.names.get(name)).cloned() {
            Some(Binding::Local(id)) => {
                let local_ty = self.locals[id as usize].ty;
                // A view of a local that is as wide: stored through that type.
                let ty = ty.filter(|t| t.width() == local_ty.width()).unwrap_or(local_ty);
                return Ok(Place { kind: PlaceKind::Local(id), ty });
            }
            Some(Binding::Value(_)) => {
                return self.error(span, format!("parameter `{name}` cannot be assigned to"));
            }
            None => {}
        }
        if let Some(role) = self.operand_role(name, true) {
            let output = match self.sig.operands.get(&role) {
                Some(info) => info.output || matches!(role, Role::D0 | Role::D1),
                None => true,
            };
            if !output && role != Role::Vcc {
                return self
                    .error(span, format!("`{name}` is an input of {}; it cannot be written", self.sig.name));
            }
            let width = self.operand_width(role);
            return Ok(Place { kind: PlaceKind::Operand(role), ty: ty.unwrap_or(Ty::B(width)) });
        }
        if let Some((state, state_ty)) = Self::state(name) {
            let ty = ty.filter(|t| t.width() == state_ty.width()).unwrap_or(state_ty);
            return Ok(Place { kind: PlaceKind::State(state), ty });
        }
        self.unknown(name, span)
    }

    pub(super) fn simple(e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Const(_)
            | ExprKind::Operand(_)
            | ExprKind::OperandIndex(_)
            | ExprKind::Field(_)
            | ExprKind::State(_) => true,
            ExprKind::Bits(inner) => Self::simple(inner),
            _ => false,
        }
    }
}

/// Whether a statement may leave the loop around it.
fn has_break(stmt: &ast::Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Break => true,
        StmtKind::If { arms, otherwise } => {
            arms.iter().any(|a| a.1.iter().any(has_break)) || otherwise.iter().flatten().any(has_break)
        }
        _ => false,
    }
}

fn not(flag: LocalId, span: Span) -> Expr {
    let read = Expr { kind: ExprKind::Local(flag), ty: Ty::U(1), span };
    Expr { kind: ExprKind::Unary(UnOp::LogicalNot, Box::new(read)), ty: Ty::U(1), span }
}

fn unless(flag: LocalId, body: Vec<Stmt>, span: Span) -> Stmt {
    Stmt::If { arms: vec![(not(flag, span), body)], otherwise: Vec::new(), span }
}

/// The bare name a place starts with, and its view's type.
fn local_name(e: &ast::Expr) -> Option<(&str, Option<ast::TypeName>)> {
    match &e.kind {
        ast::ExprKind::Name(name) => Some((name, None)),
        ast::ExprKind::View(inner, ty) => match &inner.kind {
            ast::ExprKind::Name(name) => Some((name, Some(*ty))),
            _ => local_name(inner),
        },
        ast::ExprKind::Slice(base, ..) | ast::ExprKind::Part(base, ..) | ast::ExprKind::Index(base, _) => {
            local_name(base)
        }
        _ => None,
    }
}
