//! Checks statements and the places that they assign.

use super::convert::constant;
use super::index::vgpr_parts;
use super::{Binding, Checker, Lit, R, TExpr};
use crate::pcode::ast::{self, StmtKind};
use crate::pcode::builtins::{self, Builtin};
use crate::pcode::ir::{BinOp, Expr, ExprKind, Local, LocalId, Place, PlaceKind, Space, Stmt, Ty, UnOp};
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

    /// A loop's body. `break` is a flag that the rest of the body, and all later turns, are skipped by; the
    /// second result is the flag, cleared before the loop.
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
                // Names that the manual declares for the reader although the encoding gives them.
                if matches!(name.text.as_str(), "OFFSET" | "DATA0" | "VDST" | "S" | "OFFSET0" | "OFFSET1")
                    && len.is_none()
                {
                    return Ok(());
                }
                self.not_taken(name)?;
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
                let range = self.range(from).zip(self.range(to));
                let from = self.expr(from);
                let to = self.expr(to);
                self.not_taken(var)?;
                let id = self.hidden_local(&var.text, Ty::I(32), var.span);
                let outer = self.loops.clone();
                self.loops.retain(|l| l.0 != var.text);
                if let Some(((first, _), (_, last))) = range {
                    self.loops.push((var.text.clone(), first, last.max(first)));
                }
                // As the manual does, the variable may have been declared for the reader.
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
                    self.not_taken(parameter)?;
                }
                if let Some(frame) = self.frames.last_mut() {
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
                            format!("`{}` is called for its value, which goes nowhere", name.text),
                            format!("assign it: tmp = {}(…)", name.text),
                        );
                    }
                    Ok(())
                }
                _ => self.error(span, "not a call"),
            },
        }
    }

    /// `declare S : 32'B[3]`: the sources as an array, as the manual's mixed-precision bodies have them.
    fn array_of_sources(&mut self, id: LocalId, span: Span) -> R<()> {
        let Local { ty, len, .. } = self.locals[id as usize];
        for (at, name) in (0..len.unwrap_or(0)).zip(["S0", "S1", "S2", "S3"]) {
            let Some(role) = self.operand_role(name, false) else { return self.unknown(name, span) };
            let source = self.operand(role, span);
            let value = self.stored(source, ty, span)?;
            let index = Box::new(constant(at.into(), Ty::I(32), span));
            self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Element(id, index), ty }, value, span });
        }
        self.assigned_locals.insert(id);
        Ok(())
    }

    /// A new name that hides no operand and no state.
    pub(super) fn not_taken(&mut self, name: &ast::Name) -> R<()> {
        let operand = self.operand_role(&name.text, true).is_some() || is_operand(&name.text);
        // `declare RETURN_DATA : …` and the like say how an operand is used.
        if Self::state(&name.text).is_none() && !operand || READER.contains(&name.text.as_str()) {
            return Ok(());
        }
        let what = if operand { "an operand" } else { "a register of the machine" };
        self.error_help(name.span, format!("`{}` is {what}", name.text), "choose another name")
    }

    pub(super) fn bind(&mut self, name: &str, binding: Binding) {
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name.to_string(), binding);
        }
    }

    /// `return`: in an expanded call the value goes to the call's result; in the instruction's own body it
    /// ends it.
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
        if op.is_none() && self.special_assignment(place, value, span)? {
            return Ok(());
        }
        let result = self.expr(value);
        if result.is_err()
            && let Some((name, _)) = local_name(place)
            && !self.known(name)
        {
            // The error in its value has been reported; defining the name avoids follow-up errors.
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
            if let ast::ExprKind::Name(_) | ast::ExprKind::Paren(_) = plain(place).kind {
                let ty = match view {
                    Some(name) => self.ty_named(name, place.span)?,
                    None => result.ty(),
                };
                let id = self.new_local(name, ty, None, place.span);
                self.bind(name, Binding::Local(id));
                self.assigned_locals.insert(id);
                let value = self.stored(result, ty, span)?;
                self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Local(id), ty }, value, span });
                return Ok(());
            }
            // `tmp[15 : 0].u16 = …`: as wide as all of its parts need.
            let width = match self.width_by_parts(name, place.span) {
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
                "D0" | "D1"
                    | "S0"
                    | "S1"
                    | "S2"
                    | "S3"
                    | "S4"
                    | "VDATA"
                    | "SDATA"
                    | "VDST"
                    | "SDST"
                    | "RETURN_DATA"
            )
            || name.contains('.')
            || name == "TTMP"
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
        self.spend(span)?;
        match &e.kind {
            ast::ExprKind::Paren(inner) => self.place(inner, ty),
            ast::ExprKind::View(inner, name) => {
                let ty = self.ty_named(*name, span)?;
                self.place(inner, Some(ty))
            }
            ast::ExprKind::Name(name) => self.named_place(name, ty, span),
            ast::ExprKind::Slice(base, hi, lo) => {
                let at = lo;
                let (lo, width) = self.slice_bounds(hi, lo, span)?;
                if let Some(place) = self.far_register(base, at, width, ty, span)? {
                    return Ok(place);
                }
                let base = self.place(base, None)?;
                self.within(at, width, base.ty.width(), span)?;
                let ty = self.slice_ty(width, ty, span)?;
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo: Box::new(lo) }, ty })
            }
            ast::ExprKind::Part(base, lo, width) => {
                let at = lo;
                let (lo, width) = self.part_bounds(lo, width)?;
                let base = self.place(base, None)?;
                self.within(at, width, base.ty.width(), span)?;
                let ty = self.slice_ty(width, ty, span)?;
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo: Box::new(lo) }, ty })
            }
            ast::ExprKind::Index(base, index) => {
                if let ast::ExprKind::Name(name) = &base.kind {
                    if let Some(space) = self.space(name, base.span)? {
                        let ty = ty.unwrap_or(Ty::B(32));
                        let addr = self.address(space, index, ty)?;
                        return Ok(Place { kind: PlaceKind::Mem { space, addr: Box::new(addr) }, ty });
                    }
                    if name == "SGPR" {
                        let reg = self.register(index)?;
                        return self.registers(reg, ty, span, |reg| PlaceKind::Sgpr { reg: Box::new(reg) });
                    }
                    if let Some(Binding::Local(id)) =
                        self.frames.last().and_then(|f| f.names.get(name.as_str())).cloned()
                        && self.locals[id as usize].len.is_some()
                    {
                        self.element_within(id, index)?;
                        let index = self.expr(index)?;
                        let index = self.cast(index, Ty::I(32));
                        let element = self.locals[id as usize].ty;
                        let ty = self.viewed_place(ty, element, span)?.unwrap_or(element);
                        self.assigned_locals.insert(id);
                        return Ok(Place { kind: PlaceKind::Element(id, Box::new(index)), ty });
                    }
                }
                if let Some((lane, reg)) = vgpr_parts(base, index) {
                    let lane = self.expr(lane)?;
                    let lane = self.cast(lane, Ty::U(32));
                    let reg = self.register(reg)?;
                    return self.registers(reg, ty, span, |reg| PlaceKind::Vgpr {
                        lane: Box::new(lane.clone()),
                        reg: Box::new(reg),
                    });
                }
                let base = self.place(base, None)?;
                self.within(index, 1, base.ty.width(), span)?;
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
                let Local { ty: local_ty, len, .. } = self.locals[id as usize];
                if len.is_some() {
                    return self.error_help(
                        span,
                        format!("`{name}` is an array"),
                        format!("assign an element: {name}[i]"),
                    );
                }
                self.assigned_locals.insert(id);
                let base = Place { kind: PlaceKind::Local(id), ty: local_ty };
                return self.viewed(base, ty, span);
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
            // A register has 32 bits, whatever the instruction's result takes of it.
            if let Some(ty) = ty
                && ty.width() > width.max(32) as u32
                && !self.sig.permissive
            {
                return self.error(
                    span,
                    format!(
                        "{} bits are stored into `{name}`, which has {width} in {}",
                        ty.width(),
                        self.sig.name
                    ),
                );
            }
            return Ok(Place { kind: PlaceKind::Operand(role), ty: ty.unwrap_or(Ty::B(width)) });
        }
        if let Some((state, state_ty)) = Self::state(name) {
            // A flag is one bit however it is viewed.
            let ty = ty.filter(|_| state_ty.width() > 1);
            return self.viewed(Place { kind: PlaceKind::State(state), ty: state_ty }, ty, span);
        }
        self.unknown(name, span)
    }

    /// `base`, or the lowest bits of it that `ty` covers.
    fn viewed(&mut self, base: Place, ty: Option<Ty>, span: Span) -> R<Place> {
        match self.viewed_place(ty, base.ty, span)? {
            Some(ty) if ty.width() == base.ty.width() => Ok(Place { ty, ..base }),
            Some(ty) => {
                let lo = Box::new(constant(0, Ty::U(32), span));
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo }, ty })
            }
            None => Ok(base),
        }
    }

    fn viewed_place(&mut self, ty: Option<Ty>, base: Ty, span: Span) -> R<Option<Ty>> {
        match ty {
            Some(ty) if ty.width() > base.width() => self.error(
                span,
                format!("{} bits are stored into a place that has {}", ty.width(), base.width()),
            ),
            ty => Ok(ty),
        }
    }

    /// A register by number, or several from there on if the type is wider.
    fn registers(
        &mut self,
        reg: Expr,
        ty: Option<Ty>,
        span: Span,
        kind: impl Fn(Expr) -> PlaceKind,
    ) -> R<Place> {
        let ty = ty.unwrap_or(Ty::B(32));
        let count = ty.width() as u128 / 32;
        if ty.width() < 32 {
            let base = Place { kind: kind(reg), ty: Ty::B(32) };
            return self.viewed(base, Some(ty), span);
        }
        if !ty.width().is_multiple_of(32) {
            return self.error(span, format!("{} bits are not a whole number of registers", ty.width()));
        }
        if count == 1 {
            return Ok(Place { kind: kind(reg), ty });
        }
        let parts = (0..count).rev().map(|k| Place { kind: kind(next_register(&reg, k)), ty: Ty::B(32) });
        Ok(Place { kind: PlaceKind::Concat(parts.collect()), ty })
    }

    /// `SDATA[159 : 128]`: a register of a result that is wider than a value can be.
    fn far_register(
        &mut self,
        base: &ast::Expr,
        lo: &ast::Expr,
        width: u16,
        ty: Option<Ty>,
        span: Span,
    ) -> R<Option<Place>> {
        let ast::ExprKind::Name(name) = &base.kind else { return Ok(None) };
        let Some((first, last)) = self.range(lo) else { return Ok(None) };
        let Some(role @ Role::D0) = self.operand_role(name, true) else { return Ok(None) };
        let Some(info) = self.sig.operands.get(&role) else { return Ok(None) };
        if first != last || last < 128 || last + width as i128 > info.width as i128 {
            return Ok(None);
        }
        if width != 32 || last % 32 != 0 || self.sig.family != Family::Memory(Space::Scalar) {
            return self.error_help(
                span,
                "beyond bit 127 only whole registers can be assigned",
                "[159 : 128] …",
            );
        }
        let at = Expr { kind: ExprKind::OperandIndex(role), ty: Ty::U(32), span };
        let reg = Box::new(next_register(&at, last as u128 / 32));
        Ok(Some(Place { kind: PlaceKind::Sgpr { reg }, ty: ty.unwrap_or(Ty::B(32)) }))
    }

    /// Refuses an element that an array surely does not have.
    pub(super) fn element_within(&mut self, id: LocalId, index: &ast::Expr) -> R<()> {
        let Some(len) = self.locals[id as usize].len else { return Ok(()) };
        match self.range(index) {
            Some((first, last)) if first < 0 || last >= len as i128 => {
                let at = if first < 0 { first } else { last };
                self.error(index.span, format!("element {at} of an array of {len}"))
            }
            _ => Ok(()),
        }
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

/// The number of the register `k` after `reg`.
pub(super) fn next_register(reg: &Expr, k: u128) -> Expr {
    let ty = Ty::U(32);
    let add = |k| ExprKind::Binary(BinOp::Add, Box::new(reg.clone()), Box::new(constant(k, ty, reg.span)));
    if k == 0 { reg.clone() } else { Expr { kind: add(k), ty, span: reg.span } }
}

/// Names of operands in any instruction.
fn is_operand(name: &str) -> bool {
    matches!(
        name,
        "D0" | "D1"
            | "S0"
            | "S1"
            | "S2"
            | "S3"
            | "S4"
            | "SRC0"
            | "SRC1"
            | "SRC2"
            | "SRC3"
            | "VDATA"
            | "SDATA"
    )
}

/// Names that the manual's text declares although the encoding or the instruction gives them.
const READER: &[&str] = &["S", "OFFSET", "OFFSET0", "OFFSET1", "DATA0", "VDST"];

/// Without views and parentheses.
fn plain(e: &ast::Expr) -> &ast::Expr {
    match &e.kind {
        ast::ExprKind::View(inner, _) | ast::ExprKind::Paren(inner) => plain(inner),
        _ => e,
    }
}

/// The bare name a place starts with, and its view's type.
pub(super) fn local_name(e: &ast::Expr) -> Option<(&str, Option<ast::TypeName>)> {
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
