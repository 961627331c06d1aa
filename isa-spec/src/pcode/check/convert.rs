//! The types of expressions, and implicit and explicit conversions between them.

use super::{Checker, Lit, R, TExpr};
use crate::arith::decimal::Decimal;
use crate::diag::Diagnostic;
use crate::pcode::ast::{TypeKind, TypeName};
use crate::pcode::ir::{BinOp, Expr, ExprKind, Ty};
use crate::source::Span;

/// Returns the type that a name such as `f32` or `32'U` denotes.
pub(super) fn ty_of(name: TypeName) -> Option<Ty> {
    Some(match (name.kind, name.width) {
        (TypeKind::B, w) => Ty::B(w),
        (TypeKind::U, w) => Ty::U(w),
        (TypeKind::I, w) => Ty::I(w),
        (TypeKind::F, 16) => Ty::F16,
        (TypeKind::F, 32) => Ty::F32,
        (TypeKind::F, 64) => Ty::F64,
        (TypeKind::BF, 16) => Ty::BF16,
        (TypeKind::Fp8, 8) => Ty::FP8,
        (TypeKind::Bf8, 8) => Ty::BF8,
        _ => return None,
    })
}

pub(super) fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Converts a float literal to bits of `ty`, rounding once to nearest even.
pub(super) fn float_bits(value: impl Into<Decimal>, ty: Ty) -> u128 {
    let value = value.into();
    crate::arith::constant(if ty == Ty::F64 { value.to_f64() } else { value.to_narrow() }, ty)
}

impl TExpr {
    /// Returns the expression's type.
    pub fn ty(&self) -> Ty {
        self.expr.ty
    }

    /// Creates an integer literal. Its type, the first of `I(32)`, `I(64)`, `U(64)` and `U(128)` that fits,
    /// adapts to that of the other operand.
    pub fn int(value: i128, span: Span) -> TExpr {
        let ty = if i32::try_from(value).is_ok() {
            Ty::I(32)
        } else if i64::try_from(value).is_ok() {
            Ty::I(64)
        } else if u64::try_from(value).is_ok() {
            Ty::U(64)
        } else {
            Ty::U(128)
        };
        TExpr { expr: constant(value as u128, ty, span), lit: Some(Lit::Int(value)) }
    }

    /// Creates a float literal. Its type, f64, adapts to that of the other operand.
    pub fn float(value: impl Into<Decimal>, span: Span) -> TExpr {
        let value = value.into();
        TExpr { expr: constant(float_bits(value, Ty::F64), Ty::F64, span), lit: Some(Lit::Float(value)) }
    }

    /// Creates an expression that is not a literal.
    pub fn of(kind: ExprKind, ty: Ty, span: Span) -> TExpr {
        TExpr { expr: Expr { kind, ty, span }, lit: None }
    }
}

pub(super) fn constant(bits: u128, ty: Ty, span: Span) -> Expr {
    Expr { kind: ExprKind::Const(bits & mask(ty.width())), ty, span }
}

/// Sets the span of a simple value, the argument of a call, to that of a use of the parameter.
pub(super) fn respan(value: &mut Expr, span: Span) {
    value.span = span;
    if let ExprKind::Bits(inner) = &mut value.kind {
        respan(inner, span);
    }
}

/// Returns the common type of an operation on two types: for integers the wider width, unsigned if an operand
/// of that width is unsigned.
pub(super) fn common(a: Ty, b: Ty) -> Ty {
    if a.is_float() || b.is_float() {
        return match (a.is_float(), b.is_float()) {
            (true, false) => a,
            (false, true) => b,
            _ if rank(a) >= rank(b) => a,
            _ => b,
        };
    }
    let width = a.width().max(b.width()) as u16;
    let unsigned = |t: Ty| t.width() == width as u32 && !t.is_signed();
    let both_bits = matches!((a, b), (Ty::B(_), Ty::B(_)));
    if both_bits {
        Ty::B(width)
    } else if unsigned(a) || unsigned(b) {
        Ty::U(width)
    } else {
        Ty::I(width)
    }
}

fn rank(t: Ty) -> u32 {
    match t {
        Ty::F64 => 4,
        Ty::F32 => 3,
        Ty::F16 => 2,
        Ty::BF16 => 1,
        _ => 0,
    }
}

impl Checker<'_> {
    pub(super) fn ty_named(&mut self, name: TypeName, span: Span) -> R<Ty> {
        match ty_of(name) {
            Some(ty) if ty.width() <= 128 => Ok(ty),
            Some(ty) => self.error(span, format!("a value of {} bits is too wide; at most 128", ty.width())),
            None => self.error(span, "there is no such type"),
        }
    }

    /// Converts the value of `e` to type `ty` (a cast).
    pub(super) fn cast(&mut self, e: TExpr, ty: Ty) -> Expr {
        if let Some(lit) = e.lit {
            return self.literal(lit, ty, e.expr.span);
        }
        self.convert(e.expr, ty)
    }

    /// Converts a literal to type `ty`.
    pub(super) fn literal(&mut self, lit: Lit, ty: Ty, span: Span) -> Expr {
        if let (Lit::Int(v), false) = (lit, ty.is_float())
            && ty.width() < 127
            && !(-(1i128 << (ty.width() - 1))..1i128 << ty.width()).contains(&v)
        {
            let error = format!("{v} is out of range for {}", ty);
            self.errors.push(Diagnostic::error(span, error));
        }
        match (lit, ty.is_float()) {
            (Lit::Int(v), false) => constant(v as u128, ty, span),
            (Lit::Int(v), true) => constant(float_bits(v, ty), ty, span),
            (Lit::Float(v), true) => constant(float_bits(v, ty), ty, span),
            (Lit::Float(v), false) => constant(v.to_f64() as i128 as u128, ty, span),
        }
    }

    pub(super) fn convert(&mut self, e: Expr, ty: Ty) -> Expr {
        if e.ty == ty {
            return e;
        }
        let span = e.span;
        let same_width = e.ty.width() == ty.width();
        let bits = matches!(e.ty, Ty::B(_)) || matches!(ty, Ty::B(_));
        let integers = !e.ty.is_float() && !ty.is_float();
        if let ExprKind::Const(value) = e.kind
            && integers
        {
            let value = if e.ty.is_signed() { sign_extend(value, e.ty.width()) } else { value };
            return constant(value, ty, span);
        }
        let kind = if same_width && (bits || integers) {
            ExprKind::Bits(Box::new(e))
        } else if bits && !integers {
            // Raw bits of another width are resized to the float's width.
            ExprKind::Bits(Box::new(e))
        } else {
            ExprKind::Convert(Box::new(e))
        };
        Expr { kind, ty, span }
    }

    /// Reinterprets the bits of a value as another type.
    pub(super) fn view(&mut self, e: TExpr, ty: Ty) -> TExpr {
        let span = e.expr.span;
        if e.expr.ty == ty && e.lit.is_none() {
            return e;
        }
        if let (Some(Lit::Int(v)), false) = (e.lit, ty.is_float()) {
            return TExpr { expr: constant(v as u128, ty, span), lit: None };
        }
        // A float literal adapts to the format of its view.
        if let Some(lit @ Lit::Float(_)) = e.lit
            && ty.is_float()
        {
            return TExpr { expr: self.literal(lit, ty, span), lit: None };
        }
        if let ExprKind::Const(value) = e.expr.kind {
            return TExpr { expr: constant(value & mask(e.expr.ty.width()), ty, span), lit: None };
        }
        // A wider signed view of a signed number sign-extends.
        if let (Ty::I(from), Ty::I(to)) = (e.expr.ty, ty)
            && from < to
        {
            return TExpr { expr: self.convert(e.expr, ty), lit: None };
        }
        // A view of an operand reads the operand as that type.
        if let ExprKind::Operand(role) = e.expr.kind
            && ty.width() <= e.expr.ty.width()
        {
            return TExpr::of(ExprKind::Operand(role), ty, span);
        }
        if let ExprKind::Bits(inner) = &e.expr.kind
            && inner.ty.width() >= e.expr.ty.width()
            && ty.width() <= e.expr.ty.width()
        {
            return TExpr::of(ExprKind::Bits(inner.clone()), ty, span);
        }
        TExpr::of(ExprKind::Bits(Box::new(e.expr)), ty, span)
    }

    /// Converts the value of an assignment to the type of the place, `ty`.
    pub(super) fn convert_for_store(&mut self, e: TExpr, ty: Ty, span: Span) -> R<Expr> {
        if e.lit.is_some() {
            if let (Some(Lit::Float(_)), false) = (e.lit, ty.is_float()) {
                return self.error_help(
                    span,
                    "a float literal is stored into an integer",
                    "use a cast such as 32'I(…), or a float view of the destination",
                );
            }
            return Ok(self.cast(e, ty));
        }
        let from = e.expr.ty;
        if from == ty {
            return Ok(e.expr);
        }
        match (from.is_float(), ty.is_float()) {
            (false, false) => {
                if from.width() > ty.width() {
                    self.warnings.push(
                        Diagnostic::warning(
                            span,
                            format!("{} bits are stored into {}", from.width(), ty.width()),
                        )
                        .help(format!("the low bits are kept; make that explicit: x.{}", ty)),
                    );
                }
                Ok(self.convert(e.expr, ty))
            }
            (true, true) => self.error_help(
                span,
                format!("a value of type {} is stored into a place of type {}", from, ty),
                "convert it: 32'F(…), f16_to_f32(…) …",
            ),
            // Raw bits take the type of the other side.
            _ if from.width() == ty.width() && (matches!(from, Ty::B(_)) || matches!(ty, Ty::B(_))) => {
                Ok(self.view(e, ty).expr)
            }
            (true, false) if from.width() < ty.width() && matches!(ty, Ty::B(_)) => Ok(self.view(e, ty).expr),
            _ => self.error_help(
                span,
                format!("a value of type {} is stored into a place of type {}", from, ty),
                "cast it (32'F(…), 32'I(…)) or view its bits (.u32, .f32)",
            ),
        }
    }

    /// Converts a value to a condition: an integer is true if it is not zero.
    pub(super) fn condition(&mut self, e: TExpr) -> R<Expr> {
        let ty = e.ty();
        let span = e.expr.span;
        if ty == Ty::U(1) {
            return Ok(e.expr);
        }
        if let Some(Lit::Int(v)) = e.lit {
            return Ok(constant((v != 0) as u128, Ty::U(1), span));
        }
        if ty.is_float() {
            return self.error_help(span, "a float is not a condition", "compare it: x != 0.0");
        }
        if ty.width() == 1 {
            return Ok(self.view(e, Ty::U(1)).expr);
        }
        let zero = constant(0, ty, span);
        Ok(Expr { kind: ExprKind::Binary(BinOp::Ne, Box::new(e.expr), Box::new(zero)), ty: Ty::U(1), span })
    }
}

pub(super) fn sign_extend(value: u128, width: u32) -> u128 {
    if width >= 128 {
        return value;
    }
    let shift = 128 - width;
    (((value << shift) as i128) >> shift) as u128
}
