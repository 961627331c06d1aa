//! Parses expressions by precedence climbing, with the printer's table of operators.

use super::{Parser, R};
use crate::diag::{Diagnostic, nearest};
use crate::pcode::ast::*;
use crate::pcode::print::OPERATORS;
use crate::pcode::token::Tok;
use crate::source::Span;

/// Limit on the height of an expression tree; chains of operators, which nest to the left, count too.
const MAX_HEIGHT: u32 = 250;

/// Candidates when suggesting a correction of a mistyped `.view`.
const VIEWS: &[&str] = &[
    "u32", "i32", "b32", "f32", "u64", "i64", "b64", "f64", "u16", "i16", "b16", "f16", "bf16", "u8", "i8",
    "b8", "fp8", "bf8", "u24", "i24", "b128", "u4", "i4", "u1",
];

/// The names of types in other languages.
const OTHER_VIEWS: &[(&str, &str)] = &[
    ("float", "f32"),
    ("half", "f16"),
    ("double", "f64"),
    ("int", "i32"),
    ("uint", "u32"),
    ("s8", "i8"),
    ("s16", "i16"),
    ("s32", "i32"),
    ("s64", "i64"),
];

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> R<Expr> {
        self.deeper(|p| p.select())
    }

    /// Builds a node above the expression parsed last and, if higher, another one of height `height`.
    fn node(&mut self, kind: ExprKind, span: Span, height: u32) -> R<Expr> {
        self.height = self.height.max(height) + 1;
        if self.height > MAX_HEIGHT {
            let message =
                format!("this expression is too long or nested too deeply: at most {MAX_HEIGHT} levels");
            self.give_up(span, message);
            return Err(());
        }
        Ok(Expr { kind, span })
    }

    fn select(&mut self) -> R<Expr> {
        let cond = self.binary(0)?;
        if !self.eat("?") {
            return Ok(cond);
        }
        let height = self.height;
        let a = self.expr()?;
        let height = height.max(self.height);
        self.expect(":")?;
        let b = self.expr()?;
        let span = cond.span.to(b.span);
        self.node(ExprKind::Select(Box::new(cond), Box::new(a), Box::new(b)), span, height)
    }

    /// Parses operators of precedence `min` and above.
    fn binary(&mut self, min: u8) -> R<Expr> {
        let mut left = self.unary()?;
        loop {
            let Tok::Punct(p) = *self.tok() else { return Ok(left) };
            let Some(&(_, op, level)) = OPERATORS.iter().find(|o| o.0 == p) else { return Ok(left) };
            if level < min {
                return Ok(left);
            }
            let height = self.height;
            self.bump();
            // `**` is right-associative, so a chain of it recurses.
            let right = match op {
                BinaryOp::Pow => self.deeper(|p| p.binary(level))?,
                _ => self.binary(level + 1)?,
            };
            let span = left.span.to(right.span);
            left = self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), span, height)?;
        }
    }

    fn unary(&mut self) -> R<Expr> {
        let start = self.span();
        let op = match self.tok() {
            Tok::Punct("-") => UnaryOp::Neg,
            Tok::Punct("+") => UnaryOp::Plus,
            Tok::Punct("~") => UnaryOp::Not,
            Tok::Punct("!") => UnaryOp::LogicalNot,
            _ => return self.postfix(),
        };
        self.bump();
        let inner = self.deeper(|p| p.unary())?;
        let span = start.to(inner.span);
        self.node(ExprKind::Unary(op, Box::new(inner)), span, 0)
    }

    fn postfix(&mut self) -> R<Expr> {
        let mut e = self.primary()?;
        loop {
            let height = self.height;
            if self.eat(".") {
                e = self.view_or_field(e)?;
            } else if self.is("[") {
                let open = self.bump();
                let first = self.expr()?;
                let first_height = self.height.max(height);
                let second = if self.eat(":") {
                    Some((false, self.expr()?))
                } else if self.eat("+:") {
                    Some((true, self.expr()?))
                } else {
                    None
                };
                self.expect_close("]", open)?;
                let span = e.span.to(self.prev_span());
                let (base, first) = (Box::new(e), Box::new(first));
                let kind = match second {
                    None => ExprKind::Index(base, first),
                    Some((false, lo)) => ExprKind::Slice(base, first, Box::new(lo)),
                    Some((true, width)) => ExprKind::Part(base, first, Box::new(width)),
                };
                e = self.node(kind, span, first_height)?;
            } else {
                return Ok(e);
            }
        }
    }

    /// Parses what follows a `.`: a view, or the field of a register or structure.
    fn view_or_field(&mut self, e: Expr) -> R<Expr> {
        let name = self.name("a type such as `f32` or `u32`")?;
        let span = e.span.to(name.span);
        if let Some(ty) = type_suffix(&name.text) {
            return self.node(ExprKind::View(Box::new(e), ty), span, 0);
        }
        if looks_like_view(&name.text) {
            let mut error = Diagnostic::error(name.span, format!("`.{}` is not a type", name.text));
            let other = OTHER_VIEWS.iter().find(|o| o.0 == name.text).map(|o| o.1);
            if let Some(near) = other.or_else(|| nearest(&name.text, VIEWS.iter().copied())) {
                error = error.help(format!("did you mean `.{near}`?"));
            }
            self.report(error);
            return Ok(e);
        }
        match e.kind {
            // A register with its field is looked up as one name.
            ExprKind::Name(base) => self.node(ExprKind::Name(format!("{base}.{}", name.text)), span, 0),
            _ => self.node(ExprKind::Member(Box::new(e), name), span, 0),
        }
    }

    fn primary(&mut self) -> R<Expr> {
        let start = self.span();
        self.height = 0;
        let kind = match self.tok().clone() {
            Tok::Int { value, ty } => {
                self.bump();
                ExprKind::Int { value, ty }
            }
            Tok::Float { text, ty } => {
                self.bump();
                ExprKind::Float { text, ty }
            }
            Tok::Str(text) => {
                self.bump();
                ExprKind::Str(text)
            }
            Tok::Type(ty) => {
                self.bump();
                ExprKind::Cast(ty, Box::new(self.parenthesised()?))
            }
            Tok::Punct("(") => ExprKind::Paren(Box::new(self.parenthesised()?)),
            Tok::Punct("{") => {
                self.bump();
                let parts = self.list("}")?;
                if parts.is_empty() {
                    return self.unexpected("an expression");
                }
                self.expect_close("}", start)?;
                ExprKind::Concat(parts)
            }
            Tok::Ident(text) if !text.contains('$') && !self.is_reserved() => {
                let name = Name { text: text.to_string(), span: self.bump() };
                if self.is("(") {
                    let open = self.bump();
                    let args = self.list(")")?;
                    self.expect_close(")", open)?;
                    ExprKind::Call(name, args)
                } else {
                    ExprKind::Name(name.text)
                }
            }
            _ => return self.unexpected("an expression"),
        };
        self.node(kind, start.to(self.prev_span()), 0)
    }

    fn parenthesised(&mut self) -> R<Expr> {
        let open = self.span();
        self.expect("(")?;
        let inner = self.expr()?;
        self.expect_close(")", open)?;
        Ok(inner)
    }

    /// Parses comma-separated expressions up to `end`; `self.height` becomes the maximum of their heights.
    fn list(&mut self, end: &str) -> R<Vec<Expr>> {
        let mut out = Vec::new();
        let mut height = 0;
        while !self.is(end) {
            out.push(self.expr()?);
            height = height.max(self.height);
            if !self.eat(",") {
                break;
            }
        }
        self.height = height;
        Ok(out)
    }
}

/// Returns whether a word looks like a mistyped view: a type's letter and digits.
fn looks_like_view(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letters = &text[..text.len() - digits.len()];
    let kind = ["f", "u", "i", "b", "bf", "fp", "s"].contains(&letters.to_ascii_lowercase().as_str());
    kind && !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())
        || OTHER_VIEWS.iter().any(|o| o.0 == text)
}

/// Parses the type of a view: `f32`, `u8`, `b64`; `f`, `u`, `i`, `b` alone are 32 bits wide.
pub fn type_suffix(text: &str) -> Option<TypeName> {
    match text {
        "bf16" => return Some(TypeName { kind: TypeKind::BF, width: 16 }),
        "fp8" => return Some(TypeName { kind: TypeKind::Fp8, width: 8 }),
        "bf8" => return Some(TypeName { kind: TypeKind::Bf8, width: 8 }),
        _ => {}
    }
    let mut chars = text.chars();
    let kind = match chars.next()? {
        'f' => TypeKind::F,
        'u' => TypeKind::U,
        'i' => TypeKind::I,
        'b' => TypeKind::B,
        _ => return None,
    };
    let digits = chars.as_str();
    if digits.is_empty() {
        return Some(TypeName { kind, width: 32 });
    }
    if !digits.bytes().all(|c| c.is_ascii_digit()) || digits.starts_with('0') {
        return None;
    }
    let width: u16 = digits.parse().ok()?;
    match kind {
        TypeKind::F if !matches!(width, 16 | 32 | 64) => None,
        _ if width > 2048 => None,
        _ => Some(TypeName { kind, width }),
    }
}
