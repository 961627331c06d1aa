//! Checks operators: determines result types, resolves operands of mixed types, and folds constants.

use super::convert::common;
use super::{Checker, Lit, R, TExpr};
use crate::pcode::ast::{self, BinaryOp, UnaryOp};
use crate::pcode::ir::{BinOp, Expr, ExprKind, Ty, UnOp};
use crate::source::Span;

impl<'a> Checker<'a> {
    pub(super) fn unary(&mut self, op: UnaryOp, inner: &'a ast::Expr, span: Span) -> R<TExpr> {
        let value = self.expr(inner)?;
        let lit = value.lit;
        match (op, lit) {
            (UnaryOp::Plus, _) => return Ok(value),
            (UnaryOp::Neg, Some(Lit::Int(v))) => return Ok(TExpr::int(v.wrapping_neg(), span)),
            (UnaryOp::Neg, Some(Lit::Float(v))) => return Ok(TExpr::float(-v, span)),
            (UnaryOp::Not, Some(Lit::Int(v))) => return Ok(TExpr::int(!v, span)),
            _ => {}
        }
        match op {
            UnaryOp::LogicalNot => {
                let cond = self.condition(value)?;
                Ok(TExpr::of(ExprKind::Unary(UnOp::LogicalNot, Box::new(cond)), Ty::U(1), span))
            }
            UnaryOp::Not => {
                if value.ty().is_float() {
                    return self.error_help(span, "`~` needs an integer", "view the bits: ~x.u32");
                }
                let ty = value.ty();
                Ok(TExpr::of(ExprKind::Unary(UnOp::Not, Box::new(value.expr)), ty, span))
            }
            _ => {
                let ty = match value.ty() {
                    Ty::B(w) => Ty::U(w),
                    ty => ty,
                };
                let inner = self.cast(value, ty);
                Ok(TExpr::of(ExprKind::Unary(UnOp::Neg, Box::new(inner)), ty, span))
            }
        }
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        a: &'a ast::Expr,
        b: &'a ast::Expr,
        span: Span,
    ) -> R<TExpr> {
        if let Some(is) = self.denormal(op, a, b, span)? {
            return Ok(is);
        }
        let left = self.expr(a);
        let right = self.expr(b);
        let mut left = left?;
        // A right shift of a slice of a signed number is arithmetic.
        if let (BinaryOp::Shr, Ty::B(width), true) = (op, left.ty(), is_signed_slice(a)) {
            left = self.view(left, Ty::I(width));
        }
        self.binary_values(op, left, right?, span)
    }

    pub(super) fn binary_values(&mut self, op: BinaryOp, a: TExpr, b: TExpr, span: Span) -> R<TExpr> {
        let (a, b) = if sign_matters(op) { adapt_signedness(a, b) } else { (a, b) };
        if let (Some(x), Some(y)) = (a.lit, b.lit)
            && let Some(folded) = fold(op, x, y, span)
        {
            return Ok(folded);
        }
        let ir_op = match op {
            BinaryOp::Add => BinOp::Add,
            BinaryOp::Sub => BinOp::Sub,
            BinaryOp::Mul => BinOp::Mul,
            BinaryOp::Div => BinOp::Div,
            BinaryOp::Rem => BinOp::Rem,
            BinaryOp::Pow => BinOp::Pow,
            BinaryOp::And => BinOp::And,
            BinaryOp::Or => BinOp::Or,
            BinaryOp::Xor => BinOp::Xor,
            BinaryOp::Shl => BinOp::Shl,
            BinaryOp::Shr | BinaryOp::Sar => BinOp::Shr,
            BinaryOp::Eq => BinOp::Eq,
            BinaryOp::Ne => BinOp::Ne,
            BinaryOp::Lt => BinOp::Lt,
            BinaryOp::Le => BinOp::Le,
            BinaryOp::Gt => BinOp::Gt,
            BinaryOp::Ge => BinOp::Ge,
            BinaryOp::Lg => BinOp::Lg,
            BinaryOp::LogicalAnd => BinOp::LogicalAnd,
            BinaryOp::LogicalOr => BinOp::LogicalOr,
        };
        match op {
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr => {
                let a = self.condition(a)?;
                let b = self.condition(b)?;
                Ok(TExpr::of(ExprKind::Binary(ir_op, Box::new(a), Box::new(b)), Ty::U(1), span))
            }
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Sar => {
                if a.ty().is_float() || b.ty().is_float() {
                    return self.error_help(span, "shifts need integers", "view the bits: x.u32");
                }
                let mut ty = a.ty();
                if op == BinaryOp::Sar {
                    ty = Ty::I(ty.width() as u16);
                }
                if let (BinaryOp::Shl, Ty::B(w)) = (op, ty) {
                    ty = if w < 32 { Ty::U(32) } else { ty };
                }
                let left = self.convert(a.expr, ty);
                let count = self.cast(b, Ty::U(32));
                Ok(TExpr::of(ExprKind::Binary(ir_op, Box::new(left), Box::new(count)), ty, span))
            }
            BinaryOp::Pow => {
                let base = match a.lit {
                    Some(_) => self.cast(a, Ty::F32),
                    None => a.expr,
                };
                if !base.ty.is_float() {
                    return self.error(span, "`**` needs a float base");
                }
                self.require_mode_rounding(span)?;
                let ty = base.ty;
                let power = if b.ty().is_float() { self.cast(b, ty) } else { self.cast(b, Ty::I(32)) };
                Ok(TExpr::of(ExprKind::Binary(BinOp::Pow, Box::new(base), Box::new(power)), ty, span))
            }
            _ => {
                let mut ty = match (a.lit, b.lit) {
                    (Some(lit), None) => literal_type(lit, b.ty()),
                    (None, Some(lit)) => literal_type(lit, a.ty()),
                    _ => common(a.ty(), b.ty()),
                };
                self.check_mixed_types(op, &a, &b, span)?;
                let bitwise = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
                if bitwise && ty.is_float() {
                    return self.error_help(span, "bitwise operations need integers", "view the bits: x.u32");
                }
                // Raw bits act as an unsigned number in arithmetic, which does not wrap at the few bits of a
                // slice.
                if !bitwise && let Ty::B(w) = ty {
                    ty = Ty::U(w.max(32));
                }
                if matches!(ty, Ty::FP8 | Ty::BF8) {
                    return self.error_help(
                        span,
                        "there is no arithmetic on 8-bit floats",
                        "convert: fp8_to_f32(x)",
                    );
                }
                let a = self.cast(a, ty);
                let b = self.cast(b, ty);
                let rounds = matches!(
                    op,
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem
                );
                if rounds && ty.is_float() {
                    self.require_mode_rounding(span)?;
                }
                let compare = matches!(
                    op,
                    BinaryOp::Eq
                        | BinaryOp::Ne
                        | BinaryOp::Lt
                        | BinaryOp::Le
                        | BinaryOp::Gt
                        | BinaryOp::Ge
                        | BinaryOp::Lg
                );
                let ir_op = if op == BinaryOp::Lg && !ty.is_float() { BinOp::Ne } else { ir_op };
                let result = if compare { Ty::U(1) } else { ty };
                Ok(TExpr::of(ExprKind::Binary(ir_op, Box::new(a), Box::new(b)), result, span))
            }
        }
    }

    /// Rejects ambiguous operand types: an integer with a float, and signed with unsigned in operators whose
    /// result depends on the sign.
    fn check_mixed_types(&mut self, op: BinaryOp, a: &TExpr, b: &TExpr, span: Span) -> R<()> {
        let (x, y) = (a.ty(), b.ty());
        let fraction = |t: &TExpr| matches!(t.lit, Some(Lit::Float(_)));
        let float_and_integer = match (a.lit, b.lit) {
            (None, None) => x.is_float() != y.is_float(),
            (Some(_), None) => fraction(a) && !y.is_float(),
            (None, Some(_)) => fraction(b) && !x.is_float(),
            _ => false,
        };
        if float_and_integer {
            return self.error_help(
                span,
                format!("an operation on {} and {}", x, y),
                "cast one of them: 32'F(x), 32'I(x); or view its bits: x.u32",
            );
        }
        let signs = matches!((x, y), (Ty::I(_), Ty::U(_)) | (Ty::U(_), Ty::I(_)));
        if sign_matters(op) && signs && a.lit.is_none() && b.lit.is_none() {
            return self.error_help(
                span,
                format!("mixed signedness: {} and {}", x, y),
                "cast or view one of them: 32'I(x), x.u32",
            );
        }
        Ok(())
    }

    /// Returns whether a literal is written with `0x`.
    pub(super) fn is_hexadecimal(&self, e: &ast::Expr) -> bool {
        let text = self.sources.text(e.span);
        matches!(e.kind, ast::ExprKind::Int { .. }) && text.contains("0x")
    }

    pub(super) fn select(
        &mut self,
        c: &'a ast::Expr,
        a: &'a ast::Expr,
        b: &'a ast::Expr,
        span: Span,
    ) -> R<TExpr> {
        let cond = self.expr(c).and_then(|c| self.condition(c));
        let a = self.expr(a);
        let b = self.expr(b);
        let (cond, a, b) = (cond?, a?, b?);
        if let (Some(x), Some(y)) = (a.lit, b.lit) {
            // Two literals keep their default types.
            let ty = match (x, y) {
                (Lit::Int(_), Lit::Int(_)) => common(a.ty(), b.ty()),
                _ => Ty::F64,
            };
            let a = self.cast(a, ty);
            let b = self.cast(b, ty);
            return Ok(TExpr::of(ExprKind::Select(Box::new(cond), Box::new(a), Box::new(b)), ty, span));
        }
        let ty = match (a.lit, b.lit) {
            (Some(lit), None) => literal_type(lit, b.ty()),
            (None, Some(lit)) => literal_type(lit, a.ty()),
            _ if a.ty() == b.ty() => a.ty(),
            _ => common(a.ty(), b.ty()),
        };
        if a.ty().is_float() != b.ty().is_float() && a.lit.is_none() && b.lit.is_none() {
            return self.error_help(
                span,
                format!("the two results have types {} and {}", a.ty(), b.ty()),
                "give both the same type",
            );
        }
        let a = self.cast(a, ty);
        let b = self.cast(b, ty);
        Ok(TExpr::of(ExprKind::Select(Box::new(cond), Box::new(a), Box::new(b)), ty, span))
    }
}

/// Returns whether an expression is a slice of a signed view: `S1.i[15 : 0]`.
fn is_signed_slice(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::Paren(inner) => is_signed_slice(inner),
        ast::ExprKind::Slice(base, ..) | ast::ExprKind::Part(base, ..) => {
            matches!(&base.kind, ast::ExprKind::View(_, ty) if ty.kind == ast::TypeKind::I)
        }
        _ => false,
    }
}

fn sign_matters(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Div | Rem | Lt | Le | Gt | Ge)
}

/// Adapts a constant such as `16'0` to the signedness of the other operand.
fn adapt_signedness(a: TExpr, b: TExpr) -> (TExpr, TExpr) {
    let signed = |e: TExpr, other: Ty| match (&e.expr.kind, e.expr.ty, other) {
        (ExprKind::Const(bits), Ty::U(w), Ty::I(_)) if e.lit.is_none() && bits >> (w - 1) == 0 => {
            TExpr { expr: Expr { ty: Ty::I(w), ..e.expr }, lit: None }
        }
        _ => e,
    };
    let (x, y) = (a.ty(), b.ty());
    (signed(a, y), signed(b, x))
}

fn literal_type(lit: Lit, other: Ty) -> Ty {
    match (lit, other) {
        // A float literal turns an integer operand into a float. AMD's text has no such case, but the meaning
        // is clear.
        (Lit::Float(_), ty) if !ty.is_float() => Ty::F64,
        (_, ty) => ty,
    }
}

fn fold(op: BinaryOp, a: Lit, b: Lit, span: Span) -> Option<TExpr> {
    match (a, b) {
        (Lit::Int(a), Lit::Int(b)) => {
            let value = match op {
                BinaryOp::Add => a.checked_add(b)?,
                BinaryOp::Sub => a.checked_sub(b)?,
                BinaryOp::Mul => a.checked_mul(b)?,
                BinaryOp::Div => a.checked_div(b)?,
                BinaryOp::Rem => a.checked_rem(b)?,
                BinaryOp::And => a & b,
                BinaryOp::Or => a | b,
                BinaryOp::Xor => a ^ b,
                BinaryOp::Shl if (0..100).contains(&b) => a.checked_mul(1i128 << b)?,
                BinaryOp::Shr if (0..100).contains(&b) => a >> b,
                _ => return None,
            };
            Some(TExpr::int(value, span))
        }
        (Lit::Float(a), Lit::Float(b)) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            let value = match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Pow => a.powf(b),
                _ => return None,
            };
            Some(TExpr::float(value, span))
        }
        (Lit::Float(a), Lit::Int(b)) if op == BinaryOp::Pow => {
            Some(TExpr::float(a.to_f64().powi(i32::try_from(b).ok()?), span))
        }
        _ => None,
    }
}
