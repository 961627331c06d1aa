//! Checks expressions: resolves names, finds the type of each node and inserts conversions.

use super::convert::{common, constant, show};
use super::stmt::next_register;
use super::{Binding, Checker, Lit, R, TExpr};
use crate::pcode::ast::{self, BinaryOp, LiteralType, UnaryOp};
use crate::pcode::ir::{BinOp, Expr, ExprKind, LocalId, Pure, Space, Ty, UnOp};
use crate::pcode::shape::mentions_lane_id;
use crate::pcode::sig::Family;
use crate::source::Span;
use crate::tables::Role;
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// A name bound in the current frame.
    pub(super) fn bound(&mut self, name: &str, span: Span) -> Option<TExpr> {
        let binding = self.frames.last()?.names.get(name)?.clone();
        match binding {
            Binding::Value(mut e) => {
                e.expr.span = span;
                Some(e)
            }
            Binding::Local(id) => {
                self.read(id, span);
                let ty = self.locals[id as usize].ty;
                Some(TExpr::of(ExprKind::Local(id), ty, span))
            }
        }
    }

    pub(super) fn read(&mut self, id: LocalId, span: Span) {
        self.read_locals.insert(id);
        self.spans[id as usize].1.get_or_insert(span);
    }

    pub(super) fn expr(&mut self, e: &'a ast::Expr) -> R<TExpr> {
        let span = e.span;
        self.spend(span)?;
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
                        let bits = super::convert::float_bits(*value as f64, ty);
                        return Ok(TExpr { expr: constant(bits, ty, span), lit: None });
                    }
                    if ty.width() < 128 && *value >> ty.width() != 0 {
                        return self.error(span, format!("{value} does not fit {} bits", ty.width()));
                    }
                    Ok(TExpr { expr: constant(*value, ty, span), lit: None })
                }
            },
            ast::ExprKind::Float { text, ty } => {
                let Ok(value) = text.parse::<f64>() else {
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
                // `x[0 : 31]`: the manual's notation for a reversal.
                if let (ast::ExprKind::Int { value: first, .. }, ast::ExprKind::Int { value: last, .. }) =
                    (&hi.kind, &lo.kind)
                    && first < last
                {
                    return self.reversed(base, lo, hi, span);
                }
                let at = lo;
                let (lo, width) = self.slice_bounds(hi, lo, span)?;
                let base = self.expr(base)?;
                self.within(at, width, base.ty().width(), span)?;
                Ok(self.slice_of(base.expr, lo, width, span))
            }
            ast::ExprKind::Part(base, lo, width) => {
                let at = lo;
                let (lo, width) = self.part_bounds(lo, width)?;
                let base = self.expr(base)?;
                self.within(at, width, base.ty().width(), span)?;
                Ok(self.slice_of(base.expr, lo, width, span))
            }
            ast::ExprKind::Member(_, name) => {
                self.error(name.span, format!("there is no field called `{}`", name.text))
            }
            ast::ExprKind::Cast(name, inner) => {
                let ty = self.ty_named(*name, span)?;
                if let Some(value) = self.format_cast(inner, ty, span)? {
                    return Ok(value);
                }
                let value = self.expr(inner)?;
                let from = value.ty();
                // A float written in hexadecimal is its bits.
                if ty.is_float() && self.is_hexadecimal(inner) {
                    return match value.expr.kind {
                        ExprKind::Const(bits) if ty.width() >= 128 - bits.leading_zeros() => {
                            Ok(TExpr::of(ExprKind::Const(bits), ty, span))
                        }
                        _ => self.error(
                            span,
                            format!("this does not fit the {} bits of {}", ty.width(), show(ty)),
                        ),
                    };
                }
                if matches!(from, Ty::B(_))
                    && ty.is_float()
                    && from.width() != ty.width()
                    && value.lit.is_none()
                {
                    return self.error_help(
                        span,
                        format!("{} raw bits are no {}", from.width(), show(ty)),
                        "view them as an integer or a float first: x.u32, x.f16",
                    );
                }
                let rounds = match (from.is_float(), ty.is_float()) {
                    (true, true) => from.width() > ty.width(),
                    (false, true) => true,
                    _ => false,
                };
                if rounds && value.lit.is_none() {
                    self.rounds_by_mode(span)?;
                }
                let bits = matches!(ty, Ty::B(_)) && from.is_float();
                let mut out = if bits { self.view(value, ty).expr } else { self.cast(value, ty) };
                out.span = span;
                Ok(TExpr { expr: out, lit: None })
            }
            ast::ExprKind::Call(name, args) => match self.call(name, args, span)? {
                Some(value) => Ok(value),
                None => self.error(span, format!("`{}` gives no value", name.text)),
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

    fn unary(&mut self, op: UnaryOp, inner: &'a ast::Expr, span: Span) -> R<TExpr> {
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

    fn binary(&mut self, op: BinaryOp, a: &'a ast::Expr, b: &'a ast::Expr, span: Span) -> R<TExpr> {
        if let Some(is) = self.denormal(op, a, b, span)? {
            return Ok(is);
        }
        let left = self.expr(a);
        let right = self.expr(b);
        let mut left = left?;
        // Bits of a signed number are shifted as one.
        if let (BinaryOp::Shr, Ty::B(width), true) = (op, left.ty(), signed_bits(a)) {
            left = self.view(left, Ty::I(width));
        }
        self.binary_values(op, left, right?, span)
    }

    pub(super) fn binary_values(&mut self, op: BinaryOp, a: TExpr, b: TExpr, span: Span) -> R<TExpr> {
        let (a, b) = if sign_matters(op) { same_sign(a, b) } else { (a, b) };
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
                self.rounds_by_mode(span)?;
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
                self.mixed(op, &a, &b, span)?;
                let bitwise = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
                if bitwise && ty.is_float() {
                    return self.error_help(span, "bitwise operations need integers", "view the bits: x.u32");
                }
                // Raw bits are a number in arithmetic, which is not cut to the few bits of a slice.
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
                    self.rounds_by_mode(span)?;
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

    /// Refuses what has two readings: an integer with a float, and signed with unsigned where the sign
    /// matters.
    fn mixed(&mut self, op: BinaryOp, a: &TExpr, b: &TExpr, span: Span) -> R<()> {
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
                format!("an operation on {} and {}", show(x), show(y)),
                "cast one of them: 32'F(x), 32'I(x); or view its bits: x.u32",
            );
        }
        let signs = matches!((x, y), (Ty::I(_), Ty::U(_)) | (Ty::U(_), Ty::I(_)));
        if sign_matters(op) && signs && a.lit.is_none() && b.lit.is_none() {
            return self.error_help(
                span,
                format!("{} against {}: signed or unsigned?", show(x), show(y)),
                "cast or view one of them: 32'I(x), x.u32",
            );
        }
        Ok(())
    }

    /// Whether a literal is written with `0x`.
    fn is_hexadecimal(&self, e: &ast::Expr) -> bool {
        let text = self.sources.text(e.span);
        matches!(e.kind, ast::ExprKind::Int { .. }) && text.contains("0x")
    }

    fn select(&mut self, c: &'a ast::Expr, a: &'a ast::Expr, b: &'a ast::Expr, span: Span) -> R<TExpr> {
        let cond = self.expr(c).and_then(|c| self.condition(c));
        let a = self.expr(a);
        let b = self.expr(b);
        let (cond, a, b) = (cond?, a?, b?);
        if let (Some(x), Some(y)) = (a.lit, b.lit) {
            // Two literals stay typed by default.
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
                format!("the two results have types {} and {}", show(a.ty()), show(b.ty())),
                "give both the same type",
            );
        }
        let a = self.cast(a, ty);
        let b = self.cast(b, ty);
        Ok(TExpr::of(ExprKind::Select(Box::new(cond), Box::new(a), Box::new(b)), ty, span))
    }

    /// `MEM[a]`, `LDS[a]`, `VGPR[l][r]`, `SGPR[r]`, with the type viewed.
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
            "MEM" => match self.sig.family {
                Family::Memory(space) => Ok(Some(space)),
                _ if self.sig.permissive => Ok(Some(Space::Global)),
                _ => self.error(span, format!("{} does not address memory", self.sig.name)),
            },
            _ => Ok(None),
        }
    }

    fn index(&mut self, base: &'a ast::Expr, index: &'a ast::Expr, span: Span) -> R<TExpr> {
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
                self.element_within(id, index)?;
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
            // The register that a source is, as manuals write it: the source of that lane, which may be a
            // constant.
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
        self.within(index, 1, base.ty().width(), span)?;
        let bit = self.expr(index)?;
        let bit = self.cast(bit, Ty::U(32));
        Ok(self.slice_of(base.expr, bit, 1, span))
    }

    /// A view of a register by number, where that is more than one register.
    fn registers_read(&mut self, e: &'a ast::Expr, ty: Ty, span: Span) -> R<Option<TExpr>> {
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

    /// A float is all there. (An integer has zeros above.)
    fn view_fits(&mut self, value: &TExpr, ty: Ty, span: Span) -> R<()> {
        let ExprKind::Operand(role) = value.expr.kind else { return Ok(()) };
        if self.sig.permissive || !ty.is_float() || ty.width() <= self.operand_width(role) as u32 {
            return Ok(());
        }
        let width = self.operand_width(role);
        self.error(
            span,
            format!("{} bits are read of an operand that has {width} in {}", ty.width(), self.sig.name),
        )
    }

    /// A register number: an operand's name means its register.
    pub(super) fn register(&mut self, e: &'a ast::Expr) -> R<Expr> {
        if let ast::ExprKind::Name(name) = &e.kind
            && self.bound(name, e.span).is_none()
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

    /// `x[lo : hi]` with the low bit first: the bits in reverse order.
    fn reversed(
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

    /// Low bound and width of `[lo +: width]`.
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

    /// Low bound and width of `[hi : lo]`; the width must not depend on values.
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

/// A slice of a signed view: `S1.i[15 : 0]`.
fn signed_bits(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::Paren(inner) => signed_bits(inner),
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

/// A constant like `16'0` takes the signedness of the other operand.
fn same_sign(a: TExpr, b: TExpr) -> (TExpr, TExpr) {
    let signed = |e: TExpr, other: Ty| match (&e.expr.kind, e.expr.ty, other) {
        (ExprKind::Const(bits), Ty::U(w), Ty::I(_)) if e.lit.is_none() && bits >> (w - 1) == 0 => {
            TExpr { expr: Expr { ty: Ty::I(w), ..e.expr }, lit: None }
        }
        _ => e,
    };
    let (x, y) = (a.ty(), b.ty());
    (signed(a, y), signed(b, x))
}

/// `VGPR[lane][reg]`.
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

/// `SRC0`, possibly converted.
fn source_number(e: &Expr) -> Option<Role> {
    match &e.kind {
        ExprKind::OperandIndex(role @ (Role::S0 | Role::S1 | Role::S2)) => Some(*role),
        ExprKind::Convert(a) | ExprKind::Bits(a) => source_number(a),
        _ => None,
    }
}

fn literal_type(lit: Lit, other: Ty) -> Ty {
    match (lit, other) {
        // A fraction makes an integer operand float; AMD's text has no such case, but the meaning is clear.
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
            Some(TExpr::float(a.powi(i32::try_from(b).ok()?), span))
        }
        _ => None,
    }
}

/// Constant part and symbolic part (term text -> coefficient) of an index expression.
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
