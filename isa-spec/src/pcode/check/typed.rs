//! Checks notation of the manuals that is not an ordinary expression: typed buffers, the rounding mode,
//! exception flags, constants, sines.

use super::call_body::Scope;
use super::convert::{constant, float_bits};
use super::{Checker, R, Rounding, TExpr};
use crate::mnemonic;
use crate::pcode::ast::{self, BinaryOp};
use crate::pcode::builtins::{Builtin, Control, Pure};
use crate::pcode::ir::{BinOp, Expr, ExprKind, Stmt, Ty, UnOp};
use crate::source::Span;

impl<'a> Checker<'a> {
    /// Handles assignments to names that are not registers. Returns whether this was one.
    pub(super) fn special_assignment(
        &mut self,
        place: &'a ast::Expr,
        value: &'a ast::Expr,
        span: Span,
    ) -> R<bool> {
        if let ast::ExprKind::Name(name) = &place.kind {
            if name.starts_with("TRAPSTS.") {
                // Exceptions are not recorded, and nothing reads them.
                self.expr(value)?;
                return Ok(true);
            }
            if name == "ROUND_MODE" {
                self.set_rounding(value, span)?;
                return Ok(true);
            }
        }
        if component(place).is_some()
            && let Some(addr) = element_address(place)
        {
            self.expr(addr)?;
        }
        match component(place) {
            Some(0) => self.store_element(span).map(|()| true),
            // Stored together with the first component.
            Some(_) if self.element(0).is_some() => Ok(true),
            Some(_) => {
                self.error_help(span, "a component is stored without component X", "store TADDR.X first")
            }
            None => Ok(false),
        }
    }

    /// Handles `ROUND_MODE = …`, which applies to later conversions that support this rounding.
    fn set_rounding(&mut self, value: &'a ast::Expr, span: Span) -> R<()> {
        self.progress.depends_on(Scope::Call);
        if self.out.len() > 1 {
            return self.error(span, "`ROUND_MODE` can be set at the top level of a body only");
        }
        let ast::ExprKind::Name(name) = &value.kind else {
            return self.error_help(span, "not a rounding mode", "ROUND_TOWARD_ZERO or ROUND_NEAREST_EVEN");
        };
        let saved = || {
            let body = self.frames.last().map_or(&[][..], |f| f.body);
            body.iter().any(|s| match &s.kind {
                ast::StmtKind::Assign { place, value, .. } => {
                    matches!(&place.kind, ast::ExprKind::Name(n) if n == name)
                        && matches!(&value.kind, ast::ExprKind::Name(n) if n == "ROUND_MODE")
                }
                _ => false,
            })
        };
        self.rounding = match name.as_str() {
            "ROUND_TOWARD_ZERO" => Rounding::Zero,
            "ROUND_NEAREST_EVEN" => Rounding::Even,
            _ if saved() => Rounding::Mode,
            _ => {
                let help = "ROUND_TOWARD_ZERO, ROUND_NEAREST_EVEN, or a local that holds ROUND_MODE";
                return self.error_help(value.span, format!("`{name}` is not a rounding mode"), help);
            }
        };
        // Mark the local that holds the saved mode as read.
        let _ = self.lookup_binding(name, value.span);
        Ok(())
    }

    /// Returns the variant of a builtin that rounds by the current ROUND_MODE; reports an error if there is
    /// none.
    pub(super) fn rounded(&mut self, builtin: Builtin, span: Span) -> R<Builtin> {
        let Builtin::Pure(pure) = builtin else { return Ok(builtin) };
        match (self.rounding, pure) {
            (Rounding::Mode, _) => Ok(builtin),
            (Rounding::Zero, Pure::F32ToF16) => Ok(Pure::F32ToF16Rtz.into()),
            (Rounding::Zero, Pure::Fma) => Ok(Pure::FmaRtz.into()),
            // These always round to nearest even.
            (Rounding::Even, Pure::F32ToFp8 | Pure::F32ToBf8) => Ok(builtin),
            _ if exact(pure) => Ok(builtin),
            _ => self.rounding_error(span),
        }
    }

    /// Rejects arithmetic that rounds by MODE if the body has set another rounding.
    pub(super) fn require_mode_rounding(&mut self, span: Span) -> R<()> {
        if self.rounding == Rounding::Mode { Ok(()) } else { self.rounding_error(span) }
    }

    fn rounding_error<T>(&mut self, span: Span) -> R<T> {
        let help = "after ROUND_MODE is set, only f32_to_f16, fma, f32_to_fp8, f32_to_bf8 and exact operations are possible";
        self.error_help(span, "this rounds by MODE, not by the ROUND_MODE set before", help)
    }

    // ---- typed buffers

    /// Returns the value that the body stores to component `index` of the element.
    fn element(&self, index: usize) -> Option<&'a ast::Expr> {
        let body = self.frames.last()?.body;
        body.iter().find_map(|s| match &s.kind {
            ast::StmtKind::Assign { place, op: None, value } if component(place) == Some(index) => {
                Some(value)
            }
            _ => None,
        })
    }

    /// Handles `MEM[TADDR.X] = ConvertToFormat(…)` together with the other components: stores one element.
    fn store_element(&mut self, span: Span) -> R<()> {
        self.progress.depends_on(Scope::Call);
        if self.out.len() > 1 {
            return self.error(span, "an element is stored at the top level of a body only");
        }
        let mut parts = Vec::new();
        for value in (0..4).map_while(|at| self.element(at)).collect::<Vec<_>>() {
            let ast::ExprKind::Call(name, args) = &value.kind else {
                return self.error_help(
                    value.span,
                    "a stored component must be converted to the format",
                    "ConvertToFormat(…)",
                );
            };
            match (name.text.as_str(), args.as_slice()) {
                ("ConvertToFormat", [arg]) => {
                    // `32'B(DATA[15 : 0].b16)`: the component has 16 bits despite the cast.
                    let uncast = match &arg.kind {
                        ast::ExprKind::Cast(_, inner) => self.expr(inner)?.expr,
                        _ => self.expr(arg)?.expr,
                    };
                    parts.push(if uncast.ty.width() == 16 { uncast } else { self.expr(arg)?.expr });
                }
                _ => {
                    return self.error_help(
                        value.span,
                        "a stored component must be converted to the format",
                        "ConvertToFormat(…)",
                    );
                }
            }
        }
        let width = parts[0].ty.width();
        if !matches!(width, 16 | 32) || parts.iter().any(|p| p.ty.width() != width) {
            return self.error(span, "the components of an element have 16 or 32 bits, all the same");
        }
        let (builtin, whole) = match width {
            16 => (Pure::ToFormat16, Ty::U(64)),
            _ => (Pure::ToFormat, Ty::U(128)),
        };
        parts.reverse();
        let all = width * parts.len() as u32;
        let concat = Expr { kind: ExprKind::Concat(parts), ty: Ty::B(all as u16), span };
        let components = self.convert(concat, whole);
        let format = self.format(span)?.expr;
        let kind = ExprKind::Call(builtin.into(), vec![format.clone(), components]);
        let raw = TExpr::of(kind, Ty::U(128), span);
        let format = TExpr { expr: format, lit: None };
        let kind = self.format_kind(span);
        self.library_call("store_element", vec![format, raw, kind], span).map(|_| ())
    }

    /// Checks `ConvertFromFormat(MEM[TADDR.X])`, converted to `width` bits.
    fn load_component(&mut self, args: &'a [ast::Expr], width: u32, span: Span) -> R<TExpr> {
        let [arg] = args else { return self.error(span, "`ConvertFromFormat` takes one component") };
        let Some(at) = component(arg) else {
            return self.error_help(arg.span, "not a component of an element", "MEM[TADDR.X], .Y, .Z or .W");
        };
        if let Some(addr) = element_address(arg) {
            self.expr(addr)?;
        }
        let format = self.format(span)?;
        let kind = self.format_kind(span);
        let raw = self.library_call("typed_element", vec![format.clone(), kind], span)?;
        let number = constant(at as u128, Ty::U(32), span);
        let (builtin, ty) = match width {
            16 => (Pure::FromFormat16, Ty::U(16)),
            _ => (Pure::FromFormat, Ty::U(32)),
        };
        let raw = self.convert(raw.expr, Ty::U(128));
        Ok(TExpr::of(ExprKind::Call(builtin.into(), vec![format.expr, raw, number]), ty, span))
    }

    /// Returns the format of the element, from the instruction or the descriptor.
    fn format(&mut self, span: Span) -> R<TExpr> {
        if mnemonic::is_typed_buffer(&self.sig().name) {
            return self.name_value("FORMAT", span);
        }
        self.library_call("descriptor_format", Vec::new(), span)
    }

    /// Returns the last argument of `buffer_place`: the format is the descriptor's (1) or the instruction's
    /// (2).
    fn format_kind(&self, span: Span) -> TExpr {
        let kind = if mnemonic::is_typed_buffer(&self.sig().name) { 2 } else { 1 };
        TExpr { expr: constant(kind, Ty::U(32), span), lit: None }
    }

    fn library_call(&mut self, name: &str, args: Vec<TExpr>, span: Span) -> R<TExpr> {
        match self.function(name) {
            Some(function) => {
                self.expand_values(name, &function.parameters, &function.body, args, span, false)
            }
            None => self.error_help(
                span,
                format!("this needs a function called `{name}`"),
                "it is defined in pseudocode/memory/buffer.pcode",
            ),
        }
    }

    /// Handles `16'B(ConvertFromFormat(…))`, which converts to 16 bits rather than truncating.
    pub(super) fn format_cast(&mut self, inner: &'a ast::Expr, ty: Ty, span: Span) -> R<Option<TExpr>> {
        match &inner.kind {
            ast::ExprKind::Call(name, args) if name.text == "ConvertFromFormat" && ty.width() == 16 => {
                let value = self.load_component(args, 16, span)?;
                Ok(Some(self.view(value, ty)))
            }
            _ => Ok(None),
        }
    }

    // ---- calls

    /// Handles calls that occur only in bodies pasted from the manuals. Returns `Some(None)` for a call
    /// without a value.
    pub(super) fn manual_call(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> R<Option<Option<TExpr>>> {
        Ok(match (name.text.as_str(), args) {
            ("ConvertFromFormat", _) => {
                let value = self.load_component(args, 32, span)?;
                Some(Some(self.view(value, Ty::B(32))))
            }
            ("ConvertToFormat", _) => {
                return self.error_help(
                    span,
                    "only a component of an element can be converted",
                    "MEM[TADDR.X] = …",
                );
            }
            // Caches are not simulated.
            ("PrefetchScalarData" | "PrefetchScalarInst", [address, length]) => {
                self.expr(address)?;
                self.expr(length)?;
                self.emit(Stmt::Call { builtin: Control::Nop, args: Vec::new(), span });
                Some(None)
            }
            ("sin" | "cos", [arg]) => Some(Some(self.trig_of_radians(name, arg, span)?)),
            ("float32", [sign, exponent, fraction]) => {
                let mut parts = Vec::new();
                for (arg, ty) in [(sign, Ty::U(1)), (exponent, Ty::U(8)), (fraction, Ty::U(23))] {
                    let value = self.expr(arg)?;
                    if value.ty().is_float() {
                        return self.error(arg.span, "`float32` takes the fields of a float as integers");
                    }
                    parts.push(self.cast(value, ty));
                }
                let bits = TExpr::of(ExprKind::Concat(parts), Ty::B(32), span);
                Some(Some(self.view(bits, Ty::F32)))
            }
            ("signext", [arg]) => self.extended_product(arg, span)?.map(Some),
            _ => None,
        })
    }

    /// Handles `signext(SIMM16.i16 * 16'4)`: the product is not truncated to the width of its factors before
    /// the extension.
    fn extended_product(&mut self, arg: &'a ast::Expr, span: Span) -> R<Option<TExpr>> {
        let ast::ExprKind::Binary(BinaryOp::Mul, a, b) = &arg.kind else { return Ok(None) };
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        if a.ty().is_float() || b.ty().is_float() {
            return self.error_help(arg.span, "`signext` needs an integer here", "view the bits: x.u32");
        }
        let (a, b) = (self.cast(a, Ty::I(64)), self.cast(b, Ty::I(64)));
        let kind = ExprKind::Binary(BinOp::Mul, Box::new(a), Box::new(b));
        Ok(Some(TExpr::of(kind, Ty::I(64), span)))
    }

    /// Handles `sin(x * 32'F(PI * 2.0))`: the hardware's sine takes turns, and the product counts as exact.
    fn trig_of_radians(&mut self, name: &ast::Name, arg: &'a ast::Expr, span: Span) -> R<TExpr> {
        let builtin = if name.text == "sin" { Pure::Sin } else { Pure::Cos };
        let value = self.expr(arg)?.expr;
        let ty = value.ty;
        // `PI * 2.0` may be one constant of the format, or a product of f64 constants.
        let turn = float_bits(std::f64::consts::TAU, ty);
        if ty.is_float()
            && let (Some(turns), factor) = factors(value)
            && (factor == Some(turn)
                || ty == Ty::F64 && factor.is_some_and(|f| f64::from_bits(f as u64) == std::f64::consts::TAU))
        {
            return Ok(TExpr::of(ExprKind::Call(builtin.into(), vec![turns]), ty, span));
        }
        let name = &name.text;
        self.error_help(
            span,
            format!("`{name}` takes radians, which must be a multiple of 2 pi: {name}(x * 32'F(PI * 2.0))"),
            format!("`{name}_turns(x)` is the {name} of x turns"),
        )
    }

    // ---- names

    /// Looks up a constant of the manuals.
    pub(super) fn manual_constant(&mut self, name: &str, span: Span) -> Option<TExpr> {
        let typed = |value: f64, ty: Ty| TExpr { expr: constant(float_bits(value, ty), ty, span), lit: None };
        Some(match name {
            "PI" => TExpr::float(std::f64::consts::PI, span),
            "INF" => TExpr::float(f64::INFINITY, span),
            "NAN" => TExpr::float(f64::NAN, span),
            "MAX_FLOAT_F16" => typed(65504.0, Ty::F16),
            "MAX_FLOAT_F32" => typed(f32::MAX.into(), Ty::F32),
            "MAX_FLOAT_F64" => typed(f64::MAX, Ty::F64),
            "OVERFLOW_F32" => typed(f64::INFINITY, Ty::F32),
            "OVERFLOW_F64" => typed(f64::INFINITY, Ty::F64),
            "UNDERFLOW_F32" => typed(0.0, Ty::F32),
            "UNDERFLOW_F64" => typed(0.0, Ty::F64),
            // Always clear in the simulator, which has no traps, no host debugger, and no caches.
            "WAVE_STATUS.PRIV"
            | "WAVE_STATUS.COND_DBG_USER"
            | "WAVE_STATUS.COND_DBG_SYS"
            | "MODE.SCALAR_PREFETCH_EN" => TExpr { expr: constant(0, Ty::U(1), span), lit: None },
            _ => return None,
        })
    }

    /// Handles `x == DENORM.f64`, a test whether x is denormal.
    pub(super) fn denormal(
        &mut self,
        op: BinaryOp,
        a: &'a ast::Expr,
        b: &'a ast::Expr,
        span: Span,
    ) -> R<Option<TExpr>> {
        let value = match (is_denorm(a), is_denorm(b)) {
            (true, false) => b,
            (false, true) => a,
            _ => return Ok(None),
        };
        if !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            return self.error_help(span, "`DENORM` is any denormal number", "compare with == or !=");
        }
        let value = self.expr(value)?;
        if !value.ty().is_float() {
            return self.error(span, format!("a value of type {} is never denormal", value.ty()));
        }
        let is = Expr { kind: ExprKind::Call(Pure::IsDenorm.into(), vec![value.expr]), ty: Ty::U(1), span };
        let kind = match op {
            BinaryOp::Eq => is.kind,
            _ => ExprKind::Unary(UnOp::LogicalNot, Box::new(is)),
        };
        Ok(Some(TExpr::of(kind, Ty::U(1), span)))
    }
}

/// Splits a product into its variable factor and the product of its constants.
fn factors(e: Expr) -> (Option<Expr>, Option<u128>) {
    match e.kind {
        ExprKind::Const(bits) => (None, Some(bits)),
        ExprKind::Binary(BinOp::Mul, a, b) => {
            let ty = e.ty;
            let times = |x: Option<u128>, y: Option<u128>| match (x, y) {
                (Some(x), Some(y)) if ty == Ty::F64 => {
                    Some((f64::from_bits(x as u64) * f64::from_bits(y as u64)).to_bits() as u128)
                }
                (x, None) => x,
                (None, y) => y,
                _ => None,
            };
            match (factors(*a), factors(*b)) {
                ((Some(x), c), (None, d)) | ((None, c), (Some(x), d)) => (Some(x), times(c, d)),
                ((None, c), (None, d)) => (None, times(c, d)),
                _ => (None, None),
            }
        }
        _ => (Some(e), None),
    }
}

fn is_denorm(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::View(inner, _) | ast::ExprKind::Paren(inner) => is_denorm(inner),
        ast::ExprKind::Name(name) => name == "DENORM",
        _ => false,
    }
}

/// Returns the component that `MEM[TADDR.X]` or `MEM[addr + ChannelOffsetX()]` denotes.
fn component(e: &ast::Expr) -> Option<usize> {
    let ast::ExprKind::Index(base, index) = &e.kind else { return None };
    if !matches!(&base.kind, ast::ExprKind::Name(mem) if mem == "MEM") {
        return None;
    }
    let component = match &index.kind {
        ast::ExprKind::Name(name) => name.strip_prefix("TADDR.")?,
        ast::ExprKind::Binary(BinaryOp::Add, _, offset) => match &offset.kind {
            ast::ExprKind::Call(name, args) if args.is_empty() => name.text.strip_prefix("ChannelOffset")?,
            _ => return None,
        },
        _ => return None,
    };
    ["X", "Y", "Z", "W"].iter().position(|c| *c == component)
}

/// Returns the element's address, to which the offset of a component is added.
fn element_address(e: &ast::Expr) -> Option<&ast::Expr> {
    match &e.kind {
        ast::ExprKind::Index(_, index) => match &index.kind {
            ast::ExprKind::Binary(_, addr, _) => Some(addr),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether the result of a builtin is exact (needs no rounding).
fn exact(id: Pure) -> bool {
    use crate::pcode::builtins::Ret;
    let float = |ty: Ty| ty.is_float();
    match id {
        Pure::Abs
        | Pure::Floor
        | Pure::Ceil
        | Pure::Trunc
        | Pure::Rndne
        | Pure::FrexpMant
        | Pure::Mantissa
        | Pure::CvtToQuietNan
        | Pure::Minimum
        | Pure::Maximum
        | Pure::MinimumNumber
        | Pure::MaximumNumber
        | Pure::F16ToF32
        | Pure::Bf16ToF32
        | Pure::F32ToF64
        | Pure::I32ToF64
        | Pure::U32ToF64
        | Pure::Fp8ToF32
        | Pure::Bf8ToF32
        | Pure::F32ToF16Rtz
        | Pure::FmaRtz
        | Pure::FmaNearest
        | Pure::F32ToFp8Sr
        | Pure::F32ToBf8Sr => true,
        Pure::F32ToU8 => false,
        _ => match id.def().ret {
            Ret::Is(ty) => !float(ty),
            Ret::FirstUnsigned | Ret::None => true,
            Ret::First => id == Pure::SignExtFromBit,
        },
    }
}
