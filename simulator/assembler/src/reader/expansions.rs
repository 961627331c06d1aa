//! Macros, repetitions and included files: directives that determine which lines are read next.

use super::{Reader, at_call, file_name};
use crate::macros::{self, Macro};
use crate::source::SourceLine;
use std::rc::Rc;
use wavesim_asm::error::{AsmError, Span};
use wavesim_asm::scan::Scanner;

impl Reader<'_> {
    /// Handles a directive that determines which lines are read next. Returns false if `name` is not one.
    pub(super) fn expansion(&mut self, name: &str, span: Span, s: &mut Scanner) -> Result<bool, AsmError> {
        let open = self.conditionals.open.len();
        match name {
            ".macro" => {
                let lines =
                    self.body(name, span, |w| w == ".macro", |w| matches!(w, ".endm" | ".endmacro"))?;
                let start = s.next_span();
                let own = Macro::define(s, lines)?;
                if self.macros.contains_key(&own.name) {
                    let error = AsmError::new(start, format!("the macro `{}` is already defined", own.name));
                    return Err(error.help("`.purgem` removes a macro"));
                }
                self.macros.insert(own.name.clone(), Rc::new(own));
            }
            ".purgem" => {
                let Some((name, at)) = s.ident() else {
                    return Err(AsmError::new(s.next_span(), "expected a macro's name"));
                };
                if self.macros.remove(name).is_none() {
                    return Err(AsmError::new(at, format!("there is no macro `{name}`")));
                }
            }
            ".exitm" => match self.input.leave_macro() {
                Some(conditionals) => self.conditionals.open.truncate(conditionals),
                None => return Err(AsmError::new(span, "this is not inside a macro")),
            },
            ".rept" | ".rep" => {
                let times = self.value(s);
                let lines = self.repetition(name, span)?;
                let (times, at_count) = times?;
                let times = u64::try_from(times)
                    .map_err(|_| AsmError::new(at_count, "a count must not be negative"))?;
                at_call(span, self.input.enter_repetition(lines, times, open))?;
            }
            ".irp" | ".irpc" => {
                let symbol = s.ident().map(|i| i.0.to_string());
                let here = s.next_span();
                let lines = self.repetition(name, span)?;
                let Some(symbol) = symbol else {
                    return Err(AsmError::new(here, "expected a symbol"));
                };
                s.expect(',')?;
                let mut values = Vec::new();
                if name == ".irpc" {
                    values.extend(s.rest().trim().trim_matches('"').chars().map(String::from));
                } else {
                    loop {
                        values.push(macros::argument(s)?);
                        if !s.eat(',') && s.at_end() {
                            break;
                        }
                    }
                }
                at_call(span, self.input.enter_for_each(lines, &symbol, values, self.macro_calls, open))?;
            }
            ".include" => {
                let (name, span) = file_name(s)?;
                let bytes =
                    (self.file.open)(&name).map_err(|e| AsmError::new(span, format!("{name}: {e}")))?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| AsmError::new(span, format!("{name} is not text (UTF-8)")))?;
                self.reserve(text.len(), span)?;
                at_call(span, self.input.enter_file(&name, &text, open))?;
            }
            ".end" => self.input.leave_all(),
            ".endm" | ".endmacro" | ".endr" => {
                let begin = if name == ".endr" { ".rept" } else { ".macro" };
                return Err(AsmError::new(span, format!("`{name}` without `{begin}`")));
            }
            ".altmacro" | ".noaltmacro" => self.altmacro = name == ".altmacro",
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn repetition(&mut self, name: &str, span: Span) -> Result<Vec<SourceLine>, AsmError> {
        self.body(name, span, |w| matches!(w, ".rept" | ".rep" | ".irp" | ".irpc"), |w| w == ".endr")
    }

    fn body(
        &mut self,
        name: &str,
        span: Span,
        begins: impl Fn(&str) -> bool,
        ends: impl Fn(&str) -> bool,
    ) -> Result<Vec<SourceLine>, AsmError> {
        let lines = self.input.read_block(begins, ends)?;
        // Lines that the block expands to are attributed to the block's first line.
        self.input.location = self.location;
        lines.ok_or_else(|| {
            let end = if name == ".macro" { ".endm" } else { ".endr" };
            AsmError::new(span, format!("`{name}` has no `{end}`"))
        })
    }
}
