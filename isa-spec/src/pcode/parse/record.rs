//! Parses records: named fields of a value.

use super::{Parser, R};
use crate::diag::Diagnostic;
use crate::pcode::ast::{Name, Record, RecordField, TypeKind};
use crate::pcode::token::Tok;
use crate::source::Span;

/// Limit on the size of a record in bits.
const MAX_BITS: u16 = 1024;

impl Parser<'_> {
    /// Parses `record NAME : 128'B for cdna5 { base [56 : 0]; … }`.
    pub(super) fn record(&mut self) -> R<Record> {
        let start = self.bump();
        let name = self.name("a record's name")?;
        self.expect(":")?;
        let width = self.record_width()?;
        let archs = self.archs()?;
        let open = self.span();
        self.expect("{")?;
        let mut fields: Vec<RecordField> = Vec::new();
        while !self.is("}") && !self.at_eof() {
            let field = self.record_field()?;
            self.check_field(&field, width, &fields);
            fields.push(field);
            while self.eat(";") {}
        }
        self.expect_close("}", open)?;
        Ok(Record { name, width, archs, fields, span: start.to(self.prev_span()) })
    }

    fn record_width(&mut self) -> R<u16> {
        let Tok::Type(ty) = *self.tok() else {
            return self.unexpected("the size of the record, such as 128'B");
        };
        let span = self.bump();
        let whole = ty.width.is_multiple_of(32) && (32..=MAX_BITS).contains(&ty.width);
        if ty.kind != TypeKind::B || !whole {
            let message = format!("a record has whole dwords of raw bits, and at most {MAX_BITS} bits");
            self.report(Diagnostic::error(span, message).help("for example 128'B"));
            return Err(());
        }
        Ok(ty.width)
    }

    fn record_field(&mut self) -> R<RecordField> {
        let mut names: Vec<Name> = vec![self.name("a field's name")?];
        while self.eat(",") {
            names.push(self.name("a field's name")?);
        }
        let open = self.span();
        self.expect("[")?;
        let high = self.bit_number()?;
        let low = if self.eat(":") { self.bit_number()? } else { high };
        self.expect_close("]", open)?;
        let span = names[0].span.to(self.prev_span());
        if high < low {
            let error = Diagnostic::error(span, "the high bit of this field is below the low bit");
            self.report(error.help("write [hi : lo]"));
            return Err(());
        }
        Ok(RecordField { names, high, low, span })
    }

    fn bit_number(&mut self) -> R<u16> {
        match *self.tok() {
            Tok::Int { value, .. } if value < MAX_BITS as u128 => {
                self.bump();
                Ok(value as u16)
            }
            _ => self.unexpected("the number of a bit"),
        }
    }

    /// Reports a field that the record has no bits for, that overlaps another one, or whose name is taken.
    fn check_field(&mut self, field: &RecordField, width: u16, others: &[RecordField]) {
        let mut report = |message: String, other: Option<Span>| {
            let error = Diagnostic::error(field.span, message);
            self.report(match other {
                Some(span) => error.also(span, "the other field"),
                None => error,
            });
        };
        let name = &field.names[0].text;
        if field.high >= width {
            report(format!("the record has {width} bits: `{name}` does not fit"), None);
        }
        if field.width() > 128 {
            report(format!("`{name}` has {} bits; a value has at most 128", field.width()), None);
        }
        for (at, own) in field.names.iter().enumerate() {
            let taken = |other: &&RecordField| other.names.iter().any(|name| name.text == own.text);
            let other = others.iter().find(taken).map(|other| other.span);
            if other.is_some() || field.names[..at].iter().any(|name| name.text == own.text) {
                report(format!("two fields are called `{}`", own.text), other);
            }
        }
        if let Some(other) = others.iter().find(|other| field.low <= other.high && other.low <= field.high) {
            report(format!("`{name}` overlaps `{}`", other.names[0].text), Some(other.span));
        }
    }
}
