//! Conditional directives.

use super::Reader;
use crate::program::{SectionAddresses, Values};
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::expr::Symbols;
use wavesim_asm::scan::Scanner;

impl Reader<'_> {
    /// Handles a line of a skipped branch, of which only conditional directives matter.
    pub(super) fn skip_line(&mut self, s: &mut Scanner, word: &str) -> Result<(), AsmError> {
        if word.starts_with(".if") {
            let span = Span::new(0, s.rest().len());
            return self.conditionals.begin_if(self.location, self.line.clone(), span, false);
        }
        if matches!(word, ".else" | ".elseif" | ".endif") {
            while let Some((name, span)) = s.ident() {
                if name == word {
                    return self.conditional(name, span, s).map(|_| ());
                }
                s.eat(':');
            }
        }
        Ok(())
    }

    /// Handles a conditional directive. Returns false if `name` is not one.
    pub(super) fn conditional(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<bool, AsmError> {
        let floor = self.input.conditional_floor();
        match name {
            ".else" => self.conditionals.begin_branch(name, span, true, true, floor)?,
            ".elseif" => {
                let holds = self.conditionals.needs_condition() && self.value(s)?.0 != 0;
                self.conditionals.begin_branch(name, span, holds, false, floor)?;
            }
            ".endif" => self.conditionals.end_if(span, floor)?,
            _ if name.starts_with(".if") => {
                // A condition that cannot be evaluated counts as false, so that its `.endif` still has a
                // matching `.if`.
                let holds = self.condition(name, span, s);
                let known = *holds.as_ref().unwrap_or(&false);
                self.conditionals.begin_if(self.location, self.line.clone(), span, known)?;
                holds?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn condition(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<bool, AsmError> {
        Ok(match name {
            ".if" | ".ifne" => self.value(s)?.0 != 0,
            ".ifeq" => self.value(s)?.0 == 0,
            ".ifge" => self.value(s)?.0 >= 0,
            ".ifgt" => self.value(s)?.0 > 0,
            ".ifle" => self.value(s)?.0 <= 0,
            ".iflt" => self.value(s)?.0 < 0,
            ".ifdef" | ".ifndef" | ".ifnotdef" => {
                let Some((symbol, _)) = s.ident() else {
                    return Err(AsmError::new(s.next_span(), "expected a symbol"));
                };
                let defined =
                    Values::new(&self.program.symbols, SectionAddresses::Spaced(0)).value(symbol).is_some()
                        || self.program.symbols.contains_key(symbol);
                defined == (name == ".ifdef")
            }
            ".ifb" | ".ifnb" => s.rest().trim().is_empty() == (name == ".ifb"),
            ".ifc" | ".ifnc" => {
                let rest = s.rest();
                let Some((a, b)) = rest.split_once(',') else {
                    return Err(AsmError::new(s.next_span(), "expected two strings separated by a comma"));
                };
                (a.trim() == b.trim()) == (name == ".ifc")
            }
            ".ifeqs" | ".ifnes" => {
                let a = s.string()?;
                s.expect(',')?;
                (a == s.string()?) == (name == ".ifeqs")
            }
            _ => return Err(AsmError::new(span, format!("there is no directive `{name}`"))),
        })
    }
}
