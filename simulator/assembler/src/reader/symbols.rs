//! Labels and symbols.

use super::{REGISTER_COUNTS, Reader};
use crate::program::{Definition, SectionAddresses, Values};
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::expr::{self, Expr};
use wavesim_asm::scan::Scanner;

impl Reader<'_> {
    /// Defines a label at the current offset; an error if the symbol is already defined.
    pub fn label(&mut self, name: &str, span: Span) -> Result<(), AsmError> {
        if self.program.symbols.contains_key(name) {
            return Err(AsmError::new(span, format!("`{name}` is defined already")));
        }
        let definition = Definition::Label { section: self.current, offset: self.offset() };
        self.program.symbols.insert(name.to_string(), definition);
        self.program.order.push(name.to_string());
        Ok(())
    }

    /// Defines a numbered label (`1:`), which can be defined repeatedly.
    pub(super) fn define_numbered_label(&mut self, digits: &str, line: &str) -> Result<(), AsmError> {
        let count = self.numbered.entry(digits.to_string()).or_default();
        *count += 1;
        let name = format!("{digits}#{count}");
        self.label(&name, Span::new(0, line.len()))
    }

    /// Resolves the names that depend on the current position: numbered labels get their unique names, and
    /// `.` becomes an anonymous label.
    pub fn bind_position(&mut self, e: Expr) -> Expr {
        let mut here = None;
        let e = e.renamed(&mut |name| {
            if name == "." {
                here = Some(format!(".#{}", self.anonymous));
                return here.clone();
            }
            let (digits, direction) = name.split_at(name.len().checked_sub(1)?);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let defined = self.numbered.get(digits).copied().unwrap_or(0);
            Some(format!("{digits}#{}", if direction == "b" { defined } else { defined + 1 }))
        });
        if let Some(name) = here {
            self.anonymous += 1;
            let definition = Definition::Label { section: self.current, offset: self.offset() };
            self.program.symbols.insert(name, definition);
        }
        e
    }

    /// Defines or redefines a symbol.
    pub fn set(&mut self, name: &str, e: Expr) {
        self.program.symbols.insert(name.to_string(), Definition::Expr(e));
    }

    /// Handles `name = expression`. A value that can be evaluated is evaluated now, so `n = n + 1` counts. A
    /// label difference stays an expression, which instructions encode as a literal, as in LLVM.
    pub fn define(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<(), AsmError> {
        let e = expr::parse(s, true)?;
        let e = self.bind_position(e);
        let known = match e.mentions(name) {
            true => Values::constant(&self.program.symbols, &e),
            false => e.eval(&Values::new(&self.program.symbols, SectionAddresses::Unknown)),
        };
        let e = known.map_or(e, Expr::Int);
        if !s.at_end() {
            return Err(AsmError::new(s.next_span(), "unexpected text after the expression"));
        }
        if matches!(self.program.symbols.get(name), Some(Definition::Label { .. })) {
            return Err(AsmError::new(span, format!("`{name}` is a label already")));
        }
        if name == "." {
            return Err(AsmError::new(span, "use `.org` to set the location counter"));
        }
        if let Some(at) = REGISTER_COUNTS.iter().position(|u| *u == name) {
            self.used[at] = if let Expr::Int(v) = e { v } else { self.used[at] };
        }
        self.set(name, e);
        Ok(())
    }

    /// Reads an expression, reduced to its value if it can already be evaluated.
    pub fn expression(&mut self, s: &mut Scanner) -> Result<Expr, AsmError> {
        let e = expr::parse(s, true)?;
        let e = self.bind_position(e);
        Ok(Values::constant(&self.program.symbols, &e).map_or(e, Expr::Int))
    }

    /// Reads an expression that can already be evaluated.
    pub fn value(&mut self, s: &mut Scanner) -> Result<(i64, Span), AsmError> {
        s.skip_space();
        let start = s.position();
        let e = expr::parse(s, true)?;
        let e = self.bind_position(e);
        let span = s.span_since(start);
        let value = Values::constant(&self.program.symbols, &e);
        match value {
            Ok(value) => Ok((value, span)),
            Err(e) => Err(if e.span == Span::default() { AsmError { span, ..e } } else { e }),
        }
    }
}

/// Reads the label and colon of `1:` and returns the digits.
pub(super) fn numbered_label<'t>(s: &mut Scanner<'t>) -> Option<&'t str> {
    s.peek_byte().filter(u8::is_ascii_digit)?;
    let rest = s.rest();
    let len = rest.find(|c: char| !c.is_ascii_digit())?;
    let after = rest[len..].trim_start();
    if !after.starts_with(':') || after.starts_with("::") {
        return None;
    }
    s.skip(rest.len() - after.len() + 1);
    Some(&rest[..len])
}
