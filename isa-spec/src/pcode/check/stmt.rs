//! Checks statements.

use super::convert::constant;
use super::names::{MANUAL_DECLARATIONS, Reserved, reserved};
use super::place::local_name;
use super::{Binding, Checker, Lit, R, TExpr};
use crate::pcode::ast::{self, StmtKind};
use crate::pcode::builtins::{self, Builtin};
use crate::pcode::ir::{BinOp, Expr, ExprKind, Local, LocalId, Place, PlaceKind, Stmt, Ty, UnOp};
use crate::pcode::sig::Family;
use crate::source::Span;
use crate::tables::Role;

impl<'a> Checker<'a> {
    pub(super) fn stmts(&mut self, list: &'a [ast::Stmt]) {
        for (at, stmt) in list.iter().enumerate() {
            // Continue after an error, to report those of later statements too.
            let _ = self.stmt(stmt);
            // Statements after a `break` run only if the `break` was not reached.
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

    /// Checks a loop's body. A `break` sets a flag, under which the rest of the body and all later iterations
    /// are skipped. Returns the body and the flag, which is cleared before the loop.
    fn loop_body(&mut self, list: &'a [ast::Stmt], span: Span) -> (Vec<Stmt>, Option<LocalId>) {
        if !list.iter().any(has_break) {
            return (self.block(list), None);
        }
        let flag = self.hidden_local("break", Ty::U(1), span);
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
                // Names that the manuals declare although they are encoding fields.
                if MANUAL_DECLARATIONS.contains(&name.text.as_str()) && len.is_none() {
                    return Ok(());
                }
                self.check_new_name(name)?;
                let ty = self.ty_named(*ty, span)?;
                let len = match len {
                    Some(e) => match self.expr(e)?.lit {
                        Some(Lit::Int(n)) if (1..=4096).contains(&n) => Some(n as u32),
                        _ => return self.error(e.span, "an array's length must be a number from 1 to 4096"),
                    },
                    None => None,
                };
                let id = self.new_local(&name.text, ty, len, name.span);
                self.bind(&name.text, Binding::Local(id));
                if name.text == "S" {
                    return self.array_of_sources(id, span);
                }
                // A declaration resets the local to zero each time it is executed.
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
                let range = self.range(from).zip(self.range(to));
                let from = self.expr(from);
                let to = self.expr(to);
                self.check_new_name(var)?;
                let id = self.hidden_local(&var.text, Ty::I(32), var.span);
                let outer = self.loops.clone();
                self.loops.retain(|l| l.0 != var.text);
                if let Some(((first, _), (_, last))) = range {
                    self.loops.push((var.text.clone(), first, last.max(first)));
                }
                // The manuals also declare loop variables; such a declaration is not an unused local.
                if let Some(Binding::Local(old)) =
                    self.frames.last().and_then(|f| f.names.get(&var.text)).cloned()
                    && !self.assigned_locals.contains(&old)
                {
                    self.read_locals.insert(old);
                    self.assigned_locals.insert(old);
                }
                let shadowed =
                    self.frames.last_mut().and_then(|f| f.names.insert(var.text.clone(), Binding::Local(id)));
                let (body, _) = self.loop_body(body, span);
                self.loops = outer;
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
            StmtKind::Lambda { name, parameters, .. } => {
                if builtins::lookup(&name.text).is_some() {
                    return self.error(name.span, format!("`{}` is a builtin's name", name.text));
                }
                for parameter in parameters {
                    self.check_new_name(parameter)?;
                }
                self.lambdas += 1;
                if let Some(frame) = self.frames.last_mut() {
                    frame.scope = self.lambdas;
                    frame.lambdas.insert(name.text.clone(), stmt);
                }
                Ok(())
            }
            StmtKind::Return(value) => self.returned(value.as_ref(), span),
            StmtKind::Call(call) => match &call.kind {
                ast::ExprKind::Call(name, args) => {
                    let before = self.out.last().map_or(0, Vec::len);
                    let Some(value) = self.call(name, args, call.span)? else { return Ok(()) };
                    if let ExprKind::Call(Builtin::Control(builtin), args) = value.expr.kind {
                        self.emit(Stmt::Call { builtin, args, span });
                        return Ok(());
                    }
                    if self.out.last().map_or(0, Vec::len) == before {
                        return self.error_help(
                            span,
                            format!("the value of `{}` is unused", name.text),
                            format!("assign it: tmp = {}(…)", name.text),
                        );
                    }
                    Ok(())
                }
                _ => self.error(span, "not a call"),
            },
        }
    }

    /// Handles `declare S : 32'B[3]`: the sources as an array, as in the manuals' mixed-precision bodies.
    fn array_of_sources(&mut self, id: LocalId, span: Span) -> R<()> {
        let Local { ty, len, .. } = self.locals[id as usize];
        for (at, name) in (0..len.unwrap_or(0)).zip(["S0", "S1", "S2", "S3"]) {
            let Some(role) = self.operand_role(name, false) else { return self.unknown_name(name, span) };
            let source = self.operand(role, span);
            let value = self.convert_for_store(source, ty, span)?;
            let index = Box::new(constant(at.into(), Ty::I(32), span));
            self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Element(id, index), ty }, value, span });
        }
        self.assigned_locals.insert(id);
        Ok(())
    }

    /// Checks that a new name hides no operand and no state.
    pub(super) fn check_new_name(&mut self, name: &ast::Name) -> R<()> {
        let operand = self.operand_role(&name.text, true).is_some()
            || matches!(reserved(&name.text), Some(Reserved::Operand | Reserved::Number));
        if Self::state(&name.text).is_none() && !operand || MANUAL_DECLARATIONS.contains(&name.text.as_str())
        {
            return Ok(());
        }
        let what = if operand { "an operand" } else { "a state register" };
        self.error_help(name.span, format!("`{}` is {what}", name.text), "choose another name")
    }

    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name.to_string(), binding);
        }
    }

    /// Checks `return`: in an expanded call, stores the value in the call's result; in the instruction's own
    /// body, ends it.
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
                (self.hidden_local("result", ty, span), ty)
            }
        };
        let value = self.convert_for_store(value, ty, span)?;
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
        // Atomics without return share a body with those that return a value.
        if self.no_return(place) {
            return Ok(());
        }
        if op.is_none()
            && (self.special_assignment(place, value, span)? || self.assign_record(place, value)?)
        {
            return Ok(());
        }
        let result = self.expr(value);
        if result.is_err()
            && let Some((name, _)) = local_name(place)
            && !self.known(name)
        {
            // Record the name to avoid follow-up errors: the error in its value has been reported.
            self.unreadable.insert(name.to_string());
        }
        let mut result = result?;
        if let Some(op) = op {
            let old = self.expr(place)?;
            result = self.binary_values(op, old, result, span)?;
        }
        // In an expanded instruction, D0 is the call's result.
        if self.inlined_output(place).is_some() {
            let viewed = match &place.kind {
                ast::ExprKind::View(_, name) => {
                    let ty = self.ty_named(*name, place.span)?;
                    let stored = self.convert_for_store(result, ty, span)?;
                    TExpr { expr: stored, lit: None }
                }
                _ => result,
            };
            return self.set_result(viewed, span);
        }
        // The first assignment to a new name declares it.
        if let Some((name, view)) = local_name(place)
            && !self.known(name)
        {
            if let ast::ExprKind::Name(_) | ast::ExprKind::Paren(_) = strip_views(place).kind {
                let ty = match view {
                    Some(name) => self.ty_named(name, place.span)?,
                    None => result.ty(),
                };
                let id = self.new_local(name, ty, None, place.span);
                self.bind(name, Binding::Local(id));
                self.assigned_locals.insert(id);
                let value = self.convert_for_store(result, ty, span)?;
                self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Local(id), ty }, value, span });
                return Ok(());
            }
            // `tmp[15 : 0].u16 = …`: the local is as wide as the highest bit assigned requires.
            let width = match self.infer_width(name, place.span) {
                Ok(width) => width,
                Err(()) => {
                    self.unreadable.insert(name.to_string());
                    return Err(());
                }
            };
            let id = self.new_local(name, Ty::B(width), None, place.span);
            self.bind(name, Binding::Local(id));
        }
        let place = self.place(place, None)?;
        let value = self.convert_for_store(result, place.ty, span)?;
        self.emit(Stmt::Assign { place, value, span });
        Ok(())
    }

    /// Returns whether the place is RETURN_DATA of an instruction that returns nothing.
    fn no_return(&self, place: &ast::Expr) -> bool {
        match local_name(place) {
            Some(("RETURN_DATA", _)) => {
                matches!(self.sig().family, Family::Memory(_))
                    && !self.sig().permissive
                    && !self.sig().operands.contains_key(&Role::D0)
            }
            _ => false,
        }
    }

    fn known(&mut self, name: &str) -> bool {
        self.frames.last().is_some_and(|f| f.names.contains_key(name))
            || Self::state(name).is_some()
            || self.operand_role(name, true).is_some()
            || reserved(name).is_some()
            || name.contains('.')
    }

    /// Returns the output role if `place` is the output of an instruction being expanded.
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

    pub(super) fn is_simple(e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Const(_)
            | ExprKind::Operand(_)
            | ExprKind::OperandIndex(_)
            | ExprKind::Field(_)
            | ExprKind::State(_) => true,
            ExprKind::Bits(inner) => Self::is_simple(inner),
            _ => false,
        }
    }
}

/// Returns whether a statement may leave the enclosing loop.
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

/// Strips views and parentheses.
fn strip_views(e: &ast::Expr) -> &ast::Expr {
    match &e.kind {
        ast::ExprKind::View(inner, _) | ast::ExprKind::Paren(inner) => strip_views(inner),
        _ => e,
    }
}
