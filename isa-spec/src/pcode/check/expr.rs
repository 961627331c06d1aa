//! Checks expressions: resolves names, determines the type of each node, and inserts conversions.

use super::convert::{constant, respan};
use super::{Binding, Checker, R, TExpr};
use crate::arith::decimal::Decimal;
use crate::pcode::ast::{self, LiteralType};
use crate::pcode::ir::{Expr, ExprKind, LocalId, Ty};
use crate::source::Span;

impl<'a> Checker<'a> {
    /// Looks up a name bound in the current frame.
    pub(super) fn lookup_binding(&mut self, name: &str, span: Span) -> Option<TExpr> {
        let binding = self.frames.last()?.names.get(name)?.clone();
        match binding {
            Binding::Value(mut e) => {
                respan(&mut e.expr, span);
                Some(e)
            }
            Binding::Local(id) => {
                self.read(id, span);
                let ty = self.locals[id as usize].ty;
                Some(TExpr::of(ExprKind::Local(id), ty, span))
            }
            Binding::Record(_) => None,
        }
    }

    pub(super) fn read(&mut self, id: LocalId, span: Span) {
        self.read_locals.insert(id);
        self.spans[id as usize].1.get_or_insert(span);
    }

    pub(super) fn expr(&mut self, e: &'a ast::Expr) -> R<TExpr> {
        let span = e.span;
        self.count_expression(span)?;
        match &e.kind {
            ast::ExprKind::Paren(inner) => self.expr(inner),
            ast::ExprKind::Int { value, ty } => match ty {
                LiteralType::None => match i128::try_from(*value) {
                    Ok(v) => Ok(TExpr::int(v, span)),
                    Err(_) => Ok(TExpr { expr: constant(*value, Ty::U(128), span), lit: None }),
                },
                LiteralType::Typed(name) => {
                    let ty = self.ty_named(*name, span)?;
                    if ty.is_float() {
                        let bits = super::convert::float_bits(*value, ty);
                        return Ok(TExpr { expr: constant(bits, ty, span), lit: None });
                    }
                    if ty.width() < 128 && *value >> ty.width() != 0 {
                        return self.error(span, format!("{value} does not fit {} bits", ty.width()));
                    }
                    Ok(TExpr { expr: constant(*value, ty, span), lit: None })
                }
            },
            ast::ExprKind::Float { text, ty } => {
                let Some(value) = Decimal::parse(text) else {
                    return self.error(span, format!("`{text}` is not a number"));
                };
                match ty {
                    LiteralType::None => Ok(TExpr::float(value, span)),
                    LiteralType::Typed(name) => {
                        let ty = self.ty_named(*name, span)?;
                        Ok(TExpr {
                            expr: constant(super::convert::float_bits(value, ty), ty, span),
                            lit: None,
                        })
                    }
                }
            }
            ast::ExprKind::Str(_) => self.error(span, "a string has no meaning here"),
            ast::ExprKind::Name(name) => self.name_value(name, span),
            ast::ExprKind::Unary(op, inner) => self.unary(*op, inner, span),
            ast::ExprKind::Binary(op, a, b) => self.binary(*op, a, b, span),
            ast::ExprKind::Select(c, a, b) => self.select(c, a, b, span),
            ast::ExprKind::View(inner, name) => {
                let ty = self.ty_named(*name, span)?;
                if let Some(access) = self.memory(inner, Some(ty), span)? {
                    return Ok(access);
                }
                if let Some(registers) = self.registers_read(inner, ty, span)? {
                    return Ok(registers);
                }
                let value = self.expr(inner)?;
                self.view_fits(&value, ty, span)?;
                let mut out = self.view(value, ty);
                out.expr.span = span;
                Ok(out)
            }
            ast::ExprKind::Index(base, index) => self.index(base, index, span),
            ast::ExprKind::Slice(base, hi, lo) => {
                // `x[0 : 31]` is the manuals' notation for a bit reversal.
                if let (ast::ExprKind::Int { value: first, .. }, ast::ExprKind::Int { value: last, .. }) =
                    (&hi.kind, &lo.kind)
                    && first < last
                {
                    return self.reversed(base, lo, hi, span);
                }
                let at = lo;
                let (lo, width) = self.slice_bounds(hi, lo, span)?;
                let base = self.expr(base)?;
                self.check_bounds(at, width, base.ty().width(), span)?;
                Ok(self.slice_of(base.expr, lo, width, span))
            }
            ast::ExprKind::Part(base, lo, width) => {
                let at = lo;
                let (lo, width) = self.part_bounds(lo, width)?;
                let base = self.expr(base)?;
                self.check_bounds(at, width, base.ty().width(), span)?;
                Ok(self.slice_of(base.expr, lo, width, span))
            }
            ast::ExprKind::Member(base, name) => self.member(base, name, span),
            ast::ExprKind::Cast(name, inner) => {
                let ty = self.ty_named(*name, span)?;
                if let Some(value) = self.format_cast(inner, ty, span)? {
                    return Ok(value);
                }
                let value = self.expr(inner)?;
                let from = value.ty();
                // A hexadecimal number cast to a float denotes the float's bits.
                if ty.is_float() && self.is_hexadecimal(inner) {
                    return match value.expr.kind {
                        ExprKind::Const(bits) if ty.width() >= 128 - bits.leading_zeros() => {
                            Ok(TExpr::of(ExprKind::Const(bits), ty, span))
                        }
                        _ => self.error(span, format!("this does not fit the {} bits of {}", ty.width(), ty)),
                    };
                }
                if matches!(from, Ty::B(_))
                    && ty.is_float()
                    && from.width() != ty.width()
                    && value.lit.is_none()
                {
                    return self.error_help(
                        span,
                        format!("{} raw bits are not a value of type {}", from.width(), ty),
                        "view them as an integer or a float first: x.u32, x.f16",
                    );
                }
                let rounds = match (from.is_float(), ty.is_float()) {
                    (true, true) => from.width() > ty.width(),
                    (false, true) => true,
                    _ => false,
                };
                if rounds && value.lit.is_none() {
                    self.require_mode_rounding(span)?;
                }
                let bits = matches!(ty, Ty::B(_)) && from.is_float();
                let mut out = if bits { self.view(value, ty).expr } else { self.cast(value, ty) };
                out.span = span;
                Ok(TExpr { expr: out, lit: None })
            }
            ast::ExprKind::Call(name, args) => match self.call(name, args, span)? {
                Some(value) => Ok(value),
                None => self.error(span, format!("`{}` returns no value", name.text)),
            },
            ast::ExprKind::Concat(parts) => {
                let mut out = Vec::new();
                let mut width = 0;
                for part in parts {
                    let value = self.expr(part)?;
                    if value.lit.is_some() {
                        return self.error_help(
                            part.span,
                            "a literal in a concatenation needs a width",
                            "for example 16'0 or 8'0xff",
                        );
                    }
                    width += value.ty().width();
                    out.push(value.expr);
                }
                if width > 128 {
                    return self.error(span, format!("this concatenation has {width} bits; at most 128"));
                }
                Ok(TExpr::of(ExprKind::Concat(out), Ty::B(width as u16), span))
            }
        }
    }

    pub(super) fn slice_of(&mut self, base: Expr, lo: Expr, width: u16, span: Span) -> TExpr {
        let kind = ExprKind::Slice { base: Box::new(base), lo: Box::new(lo) };
        TExpr::of(kind, if width == 1 { Ty::U(1) } else { Ty::B(width) }, span)
    }
}
