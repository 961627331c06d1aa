//! Checks places, the targets of assignments.

use super::convert::constant;
use super::index::vgpr_parts;
use super::{Binding, Checker, R};
use crate::pcode::ast;
use crate::pcode::ir::{BinOp, Expr, ExprKind, Local, LocalId, Place, PlaceKind, Space, Ty};
use crate::pcode::sig::Family;
use crate::source::Span;
use crate::tables::Role;

impl<'a> Checker<'a> {
    /// Checks a place; if `ty` is given, the value is stored as that type.
    pub(super) fn place(&mut self, e: &'a ast::Expr, ty: Option<Ty>) -> R<Place> {
        let span = e.span;
        self.count_expression(span)?;
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
                if let Some(place) = self.register_beyond_value(base, at, width, ty, span)? {
                    return Ok(place);
                }
                let base = self.place(base, None)?;
                self.check_bounds(at, width, base.ty.width(), span)?;
                let ty = self.slice_ty(width, ty, span)?;
                Ok(Place { kind: PlaceKind::Slice { base: Box::new(base), lo: Box::new(lo) }, ty })
            }
            ast::ExprKind::Part(base, lo, width) => {
                let at = lo;
                let (lo, width) = self.part_bounds(lo, width)?;
                let base = self.place(base, None)?;
                self.check_bounds(at, width, base.ty.width(), span)?;
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
                        self.check_element_bounds(id, index)?;
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
                self.check_bounds(index, 1, base.ty.width(), span)?;
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
        let base = name.split_once('.').map_or(name, |(base, _)| base);
        if self.bound_record(base).is_some() {
            return self.error(span, format!("`{base}` is a record: its fields can only be read"));
        }
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
            Some(Binding::Record(_)) | None => {}
        }
        if let Some(role) = self.operand_role(name, true) {
            let output = match self.sig().operands.get(&role) {
                Some(info) => info.output || matches!(role, Role::D0 | Role::D1),
                None => true,
            };
            if !output && role != Role::Vcc {
                return self.error(
                    span,
                    format!("`{name}` is an input of {}; it cannot be written", self.sig().name),
                );
            }
            let width = self.operand_width(role);
            // The whole 32-bit register can be assigned even if the result is narrower.
            if let Some(ty) = ty
                && ty.width() > width.max(32) as u32
                && !self.sig().permissive
            {
                return self.error(
                    span,
                    format!(
                        "{} bits are stored into `{name}`, which has {width} in {}",
                        ty.width(),
                        self.sig().name
                    ),
                );
            }
            return Ok(Place { kind: PlaceKind::Operand(role), ty: ty.unwrap_or(Ty::B(width)) });
        }
        if let Some((state, state_ty)) = Self::state(name) {
            // A flag is one bit under any view.
            let ty = ty.filter(|_| state_ty.width() > 1);
            return self.viewed(Place { kind: PlaceKind::State(state), ty: state_ty }, ty, span);
        }
        self.unknown_name(name, span)
    }

    /// Returns `base`, or its lowest bits if `ty` is narrower.
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

    /// Returns a register by number, or consecutive registers if the type is wider.
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

    /// Checks `SDATA[159 : 128]`: a register of a result that is wider than the 128 bits of a value.
    fn register_beyond_value(
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
        let Some(info) = self.sig().operands.get(&role) else { return Ok(None) };
        if first != last || last < 128 || last + width as i128 > info.width as i128 {
            return Ok(None);
        }
        if width != 32 || last % 32 != 0 || self.sig().family != Family::Memory(Space::Scalar) {
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

    /// Rejects an index that is known to be out of the array's bounds.
    pub(super) fn check_element_bounds(&mut self, id: LocalId, index: &ast::Expr) -> R<()> {
        let Some(len) = self.locals[id as usize].len else { return Ok(()) };
        match self.range(index) {
            Some((first, last)) if first < 0 || last >= len as i128 => {
                let at = if first < 0 { first } else { last };
                self.error(index.span, format!("element {at} of an array of {len}"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the number of the register `k` after `reg`.
pub(super) fn next_register(reg: &Expr, k: u128) -> Expr {
    let ty = Ty::U(32);
    let add = |k| ExprKind::Binary(BinOp::Add, Box::new(reg.clone()), Box::new(constant(k, ty, reg.span)));
    if k == 0 { reg.clone() } else { Expr { kind: add(k), ty, span: reg.span } }
}

/// Returns the name at the base of a place, and the type of its view.
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
