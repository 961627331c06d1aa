//! Checks indexing: memory, array elements, registers by number, slices of values.

use super::convert::constant;
use super::place::next_register;
use super::{Binding, Checker, Lit, R, TExpr};
use crate::pcode::ast::{self, BinaryOp};
use crate::pcode::ir::{Expr, ExprKind, Pure, Space, Ty};
use crate::pcode::shape::mentions_lane_id;
use crate::pcode::sig::Family;
use crate::source::Span;
use crate::tables::Role;
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Checks `MEM[a]`, `LDS[a]` and the like, accessed as the type of the view.
    pub(super) fn memory(&mut self, e: &'a ast::Expr, ty: Option<Ty>, span: Span) -> R<Option<TExpr>> {
        let ast::ExprKind::Index(base, index) = &e.kind else { return Ok(None) };
        let ast::ExprKind::Name(name) = &base.kind else { return Ok(None) };
        let Some(space) = self.space(name, base.span)? else { return Ok(None) };
        let ty = ty.unwrap_or(Ty::B(32));
        let addr = self.address(space, index, ty)?;
        Ok(Some(TExpr::of(ExprKind::Mem { space, addr: Box::new(addr) }, ty, span)))
    }

    pub(super) fn space(&mut self, name: &str, span: Span) -> R<Option<Space>> {
        match name {
            "LDS" => Ok(Some(Space::Lds)),
            "SCRATCH" => Ok(Some(Space::Scratch)),
            "GLOBAL" => Ok(Some(Space::Global)),
            "BUFFER" => Ok(Some(Space::Buffer)),
            "DMEM" => Ok(Some(Space::Word)),
            "MEM" => match self.sig().family {
                Family::Memory(space) => Ok(Some(space)),
                _ if self.sig().permissive => Ok(Some(Space::Global)),
                _ => self.error(span, format!("{} does not address memory", self.sig().name)),
            },
            _ => Ok(None),
        }
    }

    pub(super) fn index(&mut self, base: &'a ast::Expr, index: &'a ast::Expr, span: Span) -> R<TExpr> {
        if let ast::ExprKind::Name(name) = &base.kind {
            if let Some(space) = self.space(name, base.span)? {
                let addr = self.address(space, index, Ty::B(32))?;
                return Ok(TExpr::of(ExprKind::Mem { space, addr: Box::new(addr) }, Ty::B(32), span));
            }
            if name == "SGPR" {
                let reg = self.register(index)?;
                return Ok(TExpr::of(ExprKind::Sgpr { reg: Box::new(reg) }, Ty::B(32), span));
            }
            if let Some(Binding::Local(id)) =
                self.frames.last().and_then(|f| f.names.get(name.as_str())).cloned()
                && self.locals[id as usize].len.is_some()
            {
                self.read(id, base.span);
                self.check_element_bounds(id, index)?;
                let index = self.expr(index)?;
                let index = self.cast(index, Ty::I(32));
                let ty = self.locals[id as usize].ty;
                return Ok(TExpr::of(ExprKind::Element(id, Box::new(index)), ty, span));
            }
        }
        if let Some((lane, reg)) = vgpr_parts(base, index) {
            let lane = self.expr(lane)?;
            let lane = self.cast(lane, Ty::U(32));
            let reg = self.register(reg)?;
            let lane = Box::new(lane);
            // The manuals write a source operand as the register of its number. It means the source in that
            // lane, which may also be a constant.
            let kind = match source_number(&reg) {
                Some(role) if mentions_lane_id(&lane) => {
                    let index = Box::new(constant(0, Ty::U(32), span));
                    ExprKind::OperandLane { role, lane, index }
                }
                _ => ExprKind::Vgpr { lane, reg: Box::new(reg) },
            };
            return Ok(TExpr::of(kind, Ty::B(32), span));
        }
        let base = self.expr(base)?;
        self.check_bounds(index, 1, base.ty().width(), span)?;
        let bit = self.expr(index)?;
        let bit = self.cast(bit, Ty::U(32));
        Ok(self.slice_of(base.expr, bit, 1, span))
    }

    /// Checks a view of a register by number that spans more than one register.
    pub(super) fn registers_read(&mut self, e: &'a ast::Expr, ty: Ty, span: Span) -> R<Option<TExpr>> {
        let ast::ExprKind::Index(base, index) = &e.kind else { return Ok(None) };
        let scalar = matches!(&base.kind, ast::ExprKind::Name(name) if name == "SGPR");
        let vector = vgpr_parts(base, index);
        if ty.width() <= 32 || !scalar && vector.is_none() {
            return Ok(None);
        }
        if !ty.width().is_multiple_of(32) {
            return self.error(span, format!("{} bits are not a whole number of registers", ty.width()));
        }
        let first = self.expr(e)?.expr;
        let parts = (0..ty.width() as u128 / 32).rev().map(|k| {
            let kind = match &first.kind {
                ExprKind::Vgpr { lane, reg } => {
                    ExprKind::Vgpr { lane: lane.clone(), reg: Box::new(next_register(reg, k)) }
                }
                ExprKind::Sgpr { reg } => ExprKind::Sgpr { reg: Box::new(next_register(reg, k)) },
                other => other.clone(),
            };
            Expr { kind, ty: Ty::B(32), span }
        });
        let all = TExpr::of(ExprKind::Concat(parts.collect()), Ty::B(ty.width() as u16), span);
        Ok(Some(self.view(all, ty)))
    }

    /// Checks that a float view does not exceed the operand's width. (An integer view may: it has zeros
    /// above.)
    pub(super) fn view_fits(&mut self, value: &TExpr, ty: Ty, span: Span) -> R<()> {
        let ExprKind::Operand(role) = value.expr.kind else { return Ok(()) };
        if self.sig().permissive || !ty.is_float() || ty.width() <= self.operand_width(role) as u32 {
            return Ok(());
        }
        let width = self.operand_width(role);
        self.error(
            span,
            format!("{} bits are read from an operand that has {width} in {}", ty.width(), self.sig().name),
        )
    }

    /// Checks a register number; the name of an operand denotes the number of its register.
    pub(super) fn register(&mut self, e: &'a ast::Expr) -> R<Expr> {
        if let ast::ExprKind::Name(name) = &e.kind
            && self.lookup_binding(name, e.span).is_none()
            && let Some(role) = match name.as_str() {
                "ADDR" => Some(Role::VAddr),
                other => self.operand_role(other, false),
            }
        {
            return Ok(Expr { kind: ExprKind::OperandIndex(role), ty: Ty::U(32), span: e.span });
        }
        let value = self.expr(e)?;
        Ok(self.cast(value, Ty::U(32)))
    }

    /// Checks `x[lo : hi]`, the low bit first: the bits in reverse order.
    pub(super) fn reversed(
        &mut self,
        base: &'a ast::Expr,
        hi: &'a ast::Expr,
        lo: &'a ast::Expr,
        span: Span,
    ) -> R<TExpr> {
        let (lo, width) = self.slice_bounds(hi, lo, span)?;
        let base = self.expr(base)?;
        let bits = self.slice_of(base.expr, lo, width, span);
        let bits = self.cast(bits, Ty::U(width));
        let builtin = Pure::ReverseBits.into();
        Ok(TExpr::of(ExprKind::Call(builtin, vec![bits]), Ty::U(width), span))
    }

    /// Returns the low bound and the width of `[lo +: width]`.
    pub(super) fn part_bounds(&mut self, lo: &'a ast::Expr, width: &'a ast::Expr) -> R<(Expr, u16)> {
        let count = match self.expr(width)?.expr.kind {
            ExprKind::Const(bits) => bits,
            _ => {
                return self.error_help(
                    width.span,
                    "the width of this slice is not fixed",
                    "write a number after `+:`",
                );
            }
        };
        if !(1..=128).contains(&count) {
            return self.error(width.span, format!("this slice has {count} bits; 1 to 128 are possible"));
        }
        let lo = self.expr(lo)?;
        Ok((self.cast(lo, Ty::U(32)), count as u16))
    }

    /// Returns the low bound and the width of `[hi : lo]`; the width must be a constant.
    pub(super) fn slice_bounds(
        &mut self,
        hi: &'a ast::Expr,
        lo: &'a ast::Expr,
        span: Span,
    ) -> R<(Expr, u16)> {
        let hi_value = self.expr(hi)?;
        let lo_value = self.expr(lo)?;
        let width = match (hi_value.lit, lo_value.lit) {
            (Some(Lit::Int(h)), Some(Lit::Int(l))) => Some(h - l + 1),
            _ => match (linear(hi), linear(lo)) {
                (Some((hc, ht)), Some((lc, lt))) if ht == lt => Some(hc - lc + 1),
                _ => match (&hi_value.expr.kind, &lo_value.expr.kind) {
                    (ExprKind::Const(h), ExprKind::Const(l)) => Some(*h as i128 - *l as i128 + 1),
                    _ => None,
                },
            },
        };
        match width {
            Some(w) if (1..=128).contains(&w) => {
                let lo = self.cast(lo_value, Ty::U(32));
                Ok((lo, w as u16))
            }
            Some(w) if w <= 0 => {
                self.error_help(span, "the high bit of this slice is below the low bit", "write [hi : lo]")
            }
            Some(w) => self.error(span, format!("this slice has {w} bits; at most 128")),
            None => self.error_help(
                span,
                "the width of this slice is not fixed",
                "bounds must differ by a constant: [i * 8 + 7 : i * 8]",
            ),
        }
    }
}

/// Matches `VGPR[lane][reg]`; returns lane and register.
pub(super) fn vgpr_parts<'e>(
    base: &'e ast::Expr,
    index: &'e ast::Expr,
) -> Option<(&'e ast::Expr, &'e ast::Expr)> {
    let ast::ExprKind::Index(inner, lane) = &base.kind else { return None };
    match &inner.kind {
        ast::ExprKind::Name(name) if name == "VGPR" => Some((lane, index)),
        _ => None,
    }
}

/// Matches a source's register number (`SRC0`), possibly converted.
fn source_number(e: &Expr) -> Option<Role> {
    match &e.kind {
        ExprKind::OperandIndex(role @ (Role::S0 | Role::S1 | Role::S2)) => Some(*role),
        ExprKind::Convert(a) | ExprKind::Bits(a) => source_number(a),
        _ => None,
    }
}

/// Decomposes an index expression into its constant and its symbolic part (variable -> coefficient).
fn linear(e: &ast::Expr) -> Option<(i128, BTreeMap<String, i128>)> {
    match &e.kind {
        ast::ExprKind::Paren(inner) => linear(inner),
        ast::ExprKind::Int { value, .. } => Some((i128::try_from(*value).ok()?, BTreeMap::new())),
        ast::ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
            let (mut c, mut terms) = linear(a)?;
            let (bc, bt) = linear(b)?;
            let sign = if *op == BinaryOp::Add { 1 } else { -1 };
            c += sign * bc;
            for (term, k) in bt {
                *terms.entry(term).or_insert(0) += sign * k;
            }
            terms.retain(|_, k| *k != 0);
            Some((c, terms))
        }
        ast::ExprKind::Binary(BinaryOp::Mul, a, b) => {
            let (ac, at) = linear(a)?;
            let (bc, bt) = linear(b)?;
            match (at.is_empty(), bt.is_empty()) {
                (true, _) => Some((ac * bc, bt.into_iter().map(|(t, k)| (t, k * ac)).collect())),
                (_, true) => Some((ac * bc, at.into_iter().map(|(t, k)| (t, k * bc)).collect())),
                _ => None,
            }
        }
        ast::ExprKind::Name(name) => Some((0, BTreeMap::from([(name.clone(), 1)]))),
        _ => None,
    }
}
