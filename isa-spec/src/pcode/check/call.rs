//! Checks calls of builtins, and expands calls of functions, lambdas and other instructions inline.

use super::call_body::{Callee, Scope};
use super::{Binding, CallResult, Checker, Frame, R, TExpr};
use crate::diag::{Diagnostic, MAX_SHOWN, nearest};
use crate::pcode::ast;
use crate::pcode::builtins::{self, Builtin, Param, Ret};
use crate::pcode::ir::{ExprKind, Place, PlaceKind, Space, Stmt, Ty};
use crate::pcode::sig::Family;
use crate::pcode::token::{Tok, lex};
use crate::source::Span;

/// Alternative names in the manuals.
const SYNONYMS: &[(&str, &str)] = &[
    ("isNaN", "isNAN"),
    ("pow2", "exp2"),
    ("signextFromBit", "signext_from_bit"),
    ("f16_to_f64", "f16_to_f32"),
];

impl<'a> Checker<'a> {
    /// Checks a call. Returns `None` if it has no value.
    pub(super) fn call(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> R<Option<TExpr>> {
        let text = name.text.as_str();
        if text == "operandLane" {
            return self.operand_lane(args, span).map(Some);
        }
        if text == "indexOf" {
            return self.index_of(args, span).map(Some);
        }
        if let Some(lambda) = self.frames.last().and_then(|f| f.lambdas.get(text).copied())
            && let ast::StmtKind::Lambda { parameters, body, .. } = &lambda.kind
        {
            return self.expand(text, parameters, body, args, span, true).map(Some);
        }
        // Scalar loads pasted from the manuals call the address function of another family.
        let text = match text {
            "CalcGlobalAddr" | "CalcBufferAddr" if self.sig().family == Family::Memory(Space::Scalar) => {
                "CalcSmemAddr"
            }
            "CalcDsAddr" if self.adds_offsets() => "CalcDsBase",
            text => text,
        };
        if let Some(function) = self.function(text) {
            // In the manuals, Calc…Addr has arguments for the reader's benefit; the library's functions take
            // none.
            let args = if text.starts_with("Calc") && function.parameters.is_empty() { &[] } else { args };
            return self.expand(text, &function.parameters, &function.body, args, span, false).map(Some);
        }
        if let Some(value) = self.manual_call(name, args, span)? {
            return Ok(value);
        }
        let canonical = SYNONYMS.iter().find(|s| s.0 == text).map_or(text, |s| s.1);
        if let Some(builtin) = builtins::lookup(canonical) {
            return self.builtin(builtin, name, args, span);
        }
        if let Some(block) = self.called_block(&text.to_uppercase()) {
            return self.expand_instruction(text, block, args, span);
        }
        let known = builtins::all().map(|b| b.name).chain(self.library.functions.keys().map(String::as_str));
        let mut error =
            Diagnostic::error(name.span, format!("there is no builtin or function called `{text}`"));
        if self.errors.len() < MAX_SHOWN
            && let Some(near) = nearest(text, known)
        {
            error = error.help(format!("did you mean `{near}`?"));
        }
        self.errors.push(error);
        Err(())
    }

    fn builtin(
        &mut self,
        builtin: Builtin,
        name: &ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> R<Option<TExpr>> {
        let def = builtin.def();
        if args.len() != def.params.len() {
            return self.error(
                span,
                format!("`{}` takes {} arguments, not {}", name.text, def.params.len(), args.len()),
            );
        }
        let values: Result<Vec<TExpr>, ()> = args.iter().map(|a| self.expr(a)).collect();
        let values = values?;
        // The float format of the call is that of its first typed float argument.
        let float = values
            .iter()
            .zip(def.params)
            .filter(|(v, p)| matches!(p, Param::Float) && v.lit.is_none() && v.ty().is_float())
            .map(|(v, _)| v.ty())
            .next();
        let mut out = Vec::new();
        for (value, param) in values.into_iter().zip(def.params) {
            let at = value.expr.span;
            let arg = match param {
                Param::Float => {
                    let ty = float.unwrap_or(Ty::F64);
                    if value.lit.is_none() && !value.ty().is_float() {
                        return self.error_help(
                            at,
                            format!("`{}` needs a float here", name.text),
                            "view the operand as one: S0.f32",
                        );
                    }
                    self.cast(value, ty)
                }
                Param::Int => {
                    if value.ty().is_float() {
                        return self.error_help(
                            at,
                            format!("`{}` needs an integer here", name.text),
                            "view the bits: x.u32",
                        );
                    }
                    match value.ty() {
                        Ty::B(w) => self.cast(value, Ty::U(w)),
                        _ => value.expr,
                    }
                }
                Param::Any => match value.ty() {
                    Ty::B(w) => self.cast(value, Ty::U(w)),
                    _ => value.expr,
                },
                Param::Is(ty) if ty.is_float() => {
                    let from = value.ty();
                    if value.lit.is_some() {
                        self.cast(value, *ty)
                    } else if from == *ty {
                        value.expr
                    } else if !from.is_float() && from.width() == ty.width() {
                        self.view(value, *ty).expr
                    } else {
                        return self.error_help(
                            at,
                            format!("`{}` needs a value of type {} here", name.text, ty),
                            format!("view it as one: x.{}", ty),
                        );
                    }
                }
                Param::Is(ty) => {
                    if value.ty().is_float() && value.lit.is_none() {
                        return self.error_help(
                            at,
                            format!("`{}` needs an integer here", name.text),
                            "view the bits: x.u32",
                        );
                    }
                    self.cast(value, *ty)
                }
            };
            out.push(arg);
        }
        let builtin = self.rounded(builtin, span)?;
        let ty = match def.ret {
            Ret::First => out[0].ty,
            Ret::FirstUnsigned => Ty::U(out[0].ty.width() as u16),
            Ret::Is(ty) => ty,
            Ret::None => {
                let Builtin::Control(builtin) = builtin else {
                    return self.error(span, format!("`{}` returns no value", name.text));
                };
                self.emit(Stmt::Call { builtin, args: out, span });
                return Ok(None);
            }
        };
        Ok(Some(TExpr::of(ExprKind::Call(builtin, out), ty, span)))
    }

    /// Checks `operandLane(S2, lane, dword)`.
    fn operand_lane(&mut self, args: &'a [ast::Expr], span: Span) -> R<TExpr> {
        let [operand, lane, index] = args else {
            return self.error(span, "`operandLane` takes an operand, a lane and a dword number");
        };
        let role = match &operand.kind {
            ast::ExprKind::Name(name) => match self.operand_role(name, false) {
                Some(role) => role,
                None => return self.unknown_name(name, operand.span),
            },
            _ => return self.error(operand.span, "expected an operand's name"),
        };
        let lane = self.expr(lane)?;
        let lane = self.cast(lane, Ty::U(32));
        let index = self.expr(index)?;
        let index = self.cast(index, Ty::U(32));
        let kind = ExprKind::OperandLane { role, lane: Box::new(lane), index: Box::new(index) };
        Ok(TExpr::of(kind, Ty::B(32), span))
    }

    /// Checks `indexOf(SADDR)`: the number in the operand's encoding field.
    fn index_of(&mut self, args: &'a [ast::Expr], span: Span) -> R<TExpr> {
        match args {
            [ast::Expr { kind: ast::ExprKind::Name(name), span: at }] => match self.operand_role(name, false)
            {
                Some(role) => Ok(TExpr::of(ExprKind::OperandIndex(role), Ty::U(32), span)),
                None => self.unknown_name(name, *at),
            },
            _ => self.error(span, "`indexOf` takes an operand's name"),
        }
    }

    fn expand(
        &mut self,
        name: &str,
        parameters: &'a [ast::Name],
        body: &'a [ast::Stmt],
        args: &'a [ast::Expr],
        span: Span,
        lambda: bool,
    ) -> R<TExpr> {
        if args.len() != parameters.len() {
            return self
                .error(span, format!("`{name}` takes {} arguments, not {}", parameters.len(), args.len()));
        }
        let values: R<Vec<Argument>> = args.iter().map(|a| self.argument(a)).collect();
        self.expand_arguments(name, parameters, body, values?, span, lambda)
    }

    fn argument(&mut self, e: &'a ast::Expr) -> R<Argument> {
        if let ast::ExprKind::Name(name) = &e.kind
            && let Some(record) = self.bound_record(name)
        {
            return Ok(Argument::Record(record));
        }
        self.expr(e).map(Argument::Value)
    }

    pub(super) fn expand_values(
        &mut self,
        name: &str,
        parameters: &'a [ast::Name],
        body: &'a [ast::Stmt],
        args: Vec<TExpr>,
        span: Span,
        lambda: bool,
    ) -> R<TExpr> {
        let args = args.into_iter().map(Argument::Value).collect();
        self.expand_arguments(name, parameters, body, args, span, lambda)
    }

    fn expand_arguments(
        &mut self,
        name: &str,
        parameters: &'a [ast::Name],
        body: &'a [ast::Stmt],
        args: Vec<Argument>,
        span: Span,
        lambda: bool,
    ) -> R<TExpr> {
        let mut frame = Frame { result: Some(CallResult::default()), body, ..Frame::default() };
        if lambda && let Some(outer) = self.frames.last() {
            frame.lambdas = outer.lambdas.clone();
            frame.scope = outer.scope;
        }
        let mut arguments = Vec::new();
        for (parameter, value) in parameters.iter().zip(args) {
            let binding = match value {
                Argument::Record(record) => Binding::Record(record),
                Argument::Value(value) => {
                    let at = value.expr.span;
                    self.parameter(&parameter.text, value, at)
                }
            };
            frame.names.insert(parameter.text.clone(), binding.clone());
            arguments.push(binding);
        }
        self.expand_body(Callee { name, frame, arguments, span })?.ok_or(())
    }

    /// Binds an argument: a simple value directly, any other through a local.
    pub(super) fn parameter(&mut self, name: &str, value: TExpr, span: Span) -> Binding {
        if value.lit.is_some() || Self::is_simple(&value.expr) {
            return Binding::Value(value);
        }
        let ty = value.ty();
        let id = self.hidden_local(name, ty, span);
        self.emit(Stmt::Assign { place: Place { kind: PlaceKind::Local(id), ty }, value: value.expr, span });
        Binding::Local(id)
    }

    /// Expands `v_max_u32(a, b)`: the body of the other instruction, with S0, S1, … bound to the arguments
    /// and D0 as the result, if assigned.
    fn expand_instruction(
        &mut self,
        name: &str,
        block: &'a ast::Instruction,
        args: &'a [ast::Expr],
        span: Span,
    ) -> R<Option<TExpr>> {
        let sources = sources_of(&block.body);
        if args.len() != sources && sources > 0 {
            return self
                .error(span, format!("{} has {sources} sources, not {}", name.to_uppercase(), args.len()));
        }
        let mut frame = Frame {
            result: Some(CallResult::default()),
            instruction: true,
            body: &block.body,
            ..Frame::default()
        };
        let mut arguments = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let value = self.expr(arg)?;
            let value = if value.lit.is_some() {
                let ty = value.ty();
                TExpr { expr: self.cast(value, ty), lit: None }
            } else {
                value
            };
            let operand = format!("S{at}");
            let binding = self.parameter(&operand, value, arg.span);
            frame.names.insert(operand, binding.clone());
            arguments.push(binding);
        }
        self.expand_body(Callee { name: &name.to_uppercase(), frame, arguments, span })
    }

    /// Returns whether the body names an offset field: then the body itself adds the offset to the address.
    pub(super) fn adds_offsets(&self) -> bool {
        self.progress.depends_on(Scope::Instruction);
        let Some(span) = self.body_span else { return false };
        let (tokens, _) = lex(span.file, self.sources.text(span), 0);
        tokens.iter().any(
            |t| matches!(&t.tok, Tok::Ident(word) if matches!(&**word, "OFFSET" | "OFFSET0" | "OFFSET1")),
        )
    }
}

/// An argument of a call of a function.
enum Argument {
    Value(TExpr),
    Record(super::record::Bound),
}

/// Returns the number of sources of a body: 3 if it names `S2` but not `S3`.
fn sources_of(body: &[ast::Stmt]) -> usize {
    let mut count = 0;
    crate::pcode::ast::each_name(body, &mut |name| {
        if let Some(at) = ["S0", "S1", "S2", "S3"].iter().position(|s| *s == name) {
            count = count.max(at + 1);
        }
    });
    count
}

pub(super) fn has_return(stmt: &ast::Stmt) -> bool {
    match &stmt.kind {
        ast::StmtKind::Return(_) => true,
        ast::StmtKind::If { arms, otherwise } => {
            arms.iter().any(|a| a.1.iter().any(has_return))
                || otherwise.as_ref().is_some_and(|o| o.iter().any(has_return))
        }
        ast::StmtKind::For { body, .. } | ast::StmtKind::While { body, .. } => body.iter().any(has_return),
        _ => false,
    }
}

/// Returns whether every path ends in a return, and no statement follows a return.
pub(super) fn tail_returns(body: &[ast::Stmt]) -> bool {
    let Some((last, before)) = body.split_last() else { return false };
    if before.iter().any(has_return) {
        return false;
    }
    match &last.kind {
        ast::StmtKind::Return(Some(_)) => true,
        ast::StmtKind::If { arms, otherwise } => {
            arms.iter().all(|a| tail_returns(&a.1)) && otherwise.as_ref().is_some_and(|o| tail_returns(o))
        }
        _ => false,
    }
}
