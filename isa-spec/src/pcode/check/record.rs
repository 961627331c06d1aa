//! Checks records: `V = NAME(bits)` gives the fields of a value names, and `V.field` reads one.

use super::convert::{constant, respan};
use super::{Binding, Checker, R, TExpr};
use crate::diag::{Diagnostic, nearest};
use crate::pcode::ast;
use crate::pcode::ir::{Definition, DefinitionKind, Expr, ExprKind, Ty};
use crate::source::Span;

/// Bits of a record that are read from one value.
const PART: u16 = 128;

/// A name for a record: the layout, and the values that hold its bits, lowest first.
#[derive(Clone)]
pub(super) struct Bound {
    pub(super) name: String,
    width: u16,
    /// Names, highest and lowest bit.
    fields: Vec<(String, u16, u16)>,
    pub(super) parts: Vec<Expr>,
}

impl<'a> Checker<'a> {
    /// Returns the function of a name for the body's architecture.
    pub(super) fn function(&mut self, name: &str) -> Option<&'a ast::Function> {
        let found = self.library.function(name, self.arch)?;
        if !found.archs.is_empty() {
            self.depends_on(DefinitionKind::Function, name, found.span);
        }
        Some(found)
    }

    /// Returns the block of an instruction that the body calls.
    pub(super) fn called_block(&mut self, name: &str) -> Option<&'a ast::Instruction> {
        let found = self.library.block(name, self.arch)?;
        if !found.archs.is_empty() {
            self.depends_on(DefinitionKind::Instruction, name, found.span);
        }
        Some(found)
    }

    fn depends_on(&mut self, kind: DefinitionKind, name: &str, span: Span) {
        self.definitions.insert(Definition { kind, name: name.to_string(), span });
    }

    /// Returns the record that a name in the current frame denotes.
    pub(super) fn bound_record(&self, name: &str) -> Option<Bound> {
        match self.frames.last()?.names.get(name)? {
            Binding::Record(record) => Some(record.clone()),
            Binding::Local(_) | Binding::Value(_) => None,
        }
    }

    /// Handles `V = NAME(bits)`. Returns whether the value is a record.
    pub(super) fn assign_record(&mut self, place: &'a ast::Expr, value: &'a ast::Expr) -> R<bool> {
        let ast::ExprKind::Call(called, args) = &value.kind else { return Ok(false) };
        let Some(record) = self.library.record(&called.text, self.arch) else { return Ok(false) };
        let ast::ExprKind::Name(text) = &place.kind else {
            return self.error_help(place.span, "a record is assigned to a name", "V = NAME(bits)");
        };
        let name = ast::Name { text: text.clone(), span: place.span };
        self.check_new_name(&name)?;
        if text.contains('.') || self.frames.last().is_some_and(|f| f.names.contains_key(text)) {
            let message = format!("`{text}` exists already");
            return self.error_help(place.span, message, "choose another name for the record");
        }
        let bound = self.record_of(record, args, value.span)?;
        self.bind(text, Binding::Record(bound));
        Ok(true)
    }

    /// Checks `NAME(bits)`, whose arguments have 128 bits each, the lowest first.
    fn record_of(&mut self, record: &'a ast::Record, args: &'a [ast::Expr], span: Span) -> R<Bound> {
        if !record.archs.is_empty() {
            self.depends_on(DefinitionKind::Record, &record.name.text, record.span);
        }
        let name = &record.name.text;
        let count = record.width.div_ceil(PART) as usize;
        if args.len() != count {
            let message = format!("`{name}` takes its bits in {count} values, not {}", args.len());
            return self.error_help(span, message, format!("{PART} bits each, the lowest first"));
        }
        let mut parts = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let width = PART.min(record.width - PART * at as u16);
            let value = self.expr(arg)?;
            let ty = value.ty();
            if value.lit.is_some() || ty.is_float() || ty.width() < width.into() {
                let message = format!("this is no value of {width} bits");
                return self.error_help(arg.span, message, format!("view the bits: x.b{width}"));
            }
            let value = self.view(value, Ty::B(width));
            let binding = self.parameter(name, value, arg.span);
            parts.push(match binding {
                Binding::Value(value) => value.expr,
                Binding::Local(id) => Expr { kind: ExprKind::Local(id), ty: Ty::B(width), span: arg.span },
                Binding::Record(_) => return Err(()),
            });
        }
        let fields = record
            .fields
            .iter()
            .flat_map(|field| field.names.iter().map(|name| (name.text.clone(), field.high, field.low)));
        Ok(Bound { name: name.clone(), width: record.width, fields: fields.collect(), parts })
    }

    /// Returns the value of `V.field`; `None` if `V` is no record.
    pub(super) fn record_field(&mut self, name: &str, span: Span) -> Option<R<TExpr>> {
        let (base, field) = name.split_once('.').unwrap_or((name, ""));
        let record = self.bound_record(base)?;
        if field.is_empty() {
            let message = format!("`{base}` is a record");
            return Some(self.error_help(
                span,
                message,
                format!("name one of its fields: {}", record.names()),
            ));
        }
        Some(self.field_of(&record, field, span))
    }

    /// Checks `NAME(bits).field`.
    pub(super) fn member(&mut self, base: &'a ast::Expr, field: &'a ast::Name, span: Span) -> R<TExpr> {
        if let ast::ExprKind::Call(called, args) = &base.kind
            && let Some(record) = self.library.record(&called.text, self.arch)
        {
            let record = self.record_of(record, args, base.span)?;
            return self.field_of(&record, &field.text, span);
        }
        self.error(field.span, format!("there is no field called `{}`", field.text))
    }

    fn field_of(&mut self, record: &Bound, field: &str, span: Span) -> R<TExpr> {
        let Some(&(_, high, low)) = record.fields.iter().find(|(name, ..)| name == field) else {
            let message = format!("`{}` has no field `{field}`", record.name);
            let mut error = Diagnostic::error(span, message);
            error = match nearest(field, record.fields.iter().map(|(name, ..)| name.as_str())) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("its fields are {}", record.names())),
            };
            self.errors.push(error);
            return Err(());
        };
        // The parts of the field in the values, highest first.
        let mut pieces = Vec::new();
        for (at, part) in record.parts.iter().enumerate().rev() {
            let first = PART * at as u16;
            let (low, high) = (low.max(first), high.min(first + PART.min(record.width - first) - 1));
            if low <= high {
                pieces.push(bits_of(part, low - first, high - low + 1, span));
            }
        }
        let ty = Ty::U(high - low + 1);
        let whole = match pieces.len() {
            1 => pieces.remove(0),
            _ => TExpr::of(ExprKind::Concat(pieces.into_iter().map(|piece| piece.expr).collect()), ty, span),
        };
        let mut whole = whole;
        whole.expr.ty = ty;
        Ok(whole)
    }
}

impl Bound {
    fn names(&self) -> String {
        self.fields.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Bits of a value. Of an operand, only the registers that are needed are read.
fn bits_of(value: &Expr, low: u16, width: u16, span: Span) -> TExpr {
    let mut base = value.clone();
    if let ExprKind::Bits(inner) = &base.kind
        && matches!(inner.kind, ExprKind::Operand(_))
        && inner.ty.width() >= base.ty.width()
    {
        base = (**inner).clone();
    }
    if matches!(base.kind, ExprKind::Operand(_)) && low + width <= 64 {
        base.ty = Ty::B(64.min(base.ty.width() as u16));
    }
    respan(&mut base, span);
    let low = Box::new(constant(low.into(), Ty::U(32), span));
    TExpr::of(ExprKind::Slice { base: Box::new(base), lo: low }, Ty::U(width), span)
}
