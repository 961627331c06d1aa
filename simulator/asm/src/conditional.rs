//! Conditional assembly (`.if`, `.elseif`, `.else`, `.endif`): whether the lines at this place are read.

use super::error::{AsmError, Span};
use super::source::{Place, Text};

/// An open `.if`.
#[derive(Debug)]
pub struct Conditional {
    /// Where it begins.
    pub place: Place,
    /// The line of its `.if`, for messages.
    pub line: Text,
    /// The directive in that line.
    pub span: Span,
    /// The lines around it are read.
    outside: bool,
    /// This part's lines are, if those around it are.
    reads: bool,
    /// One part was read already.
    taken: bool,
    last: bool,
}

/// The open conditionals, the innermost last.
#[derive(Debug, Default)]
pub struct Conditionals {
    /// The innermost last.
    pub open: Vec<Conditional>,
}

/// Bound of nesting, far above what files use.
const MAX_DEPTH: usize = 256;

impl Conditionals {
    /// Whether lines are read here.
    pub fn reads(&self) -> bool {
        self.open.last().is_none_or(|c| c.outside && c.reads)
    }

    /// `.if`: an error if conditionals nest too deep.
    pub fn begin(&mut self, place: Place, line: Text, span: Span, holds: bool) -> Result<(), AsmError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(AsmError::new(span, format!("conditionals nest more than {MAX_DEPTH} deep")));
        }
        let outside = self.reads();
        self.open.push(Conditional { place, line, span, outside, reads: holds, taken: holds, last: false });
        Ok(())
    }

    /// Whether an `.elseif` here must evaluate its condition.
    pub fn asks(&self) -> bool {
        self.open.last().is_some_and(|c| c.outside && !c.taken)
    }

    /// `.elseif`, or `.else` with `last`. Conditionals below `floor` belong to the caller of a macro or to
    /// another file: they cannot be continued here.
    pub fn otherwise(
        &mut self,
        name: &str,
        span: Span,
        holds: bool,
        last: bool,
        floor: usize,
    ) -> Result<(), AsmError> {
        let open = self.open.len() > floor;
        let Some(c) = self.open.last_mut().filter(|_| open) else {
            return Err(AsmError::new(span, format!("`{name}` without `.if`")));
        };
        if c.last {
            return Err(AsmError::new(span, format!("`{name}` after `.else`")));
        }
        c.reads = holds && !c.taken;
        c.taken |= holds;
        c.last = last;
        Ok(())
    }

    /// `.endif`; an error without an `.if` above `floor`.
    pub fn end(&mut self, span: Span, floor: usize) -> Result<(), AsmError> {
        if self.open.len() > floor && self.open.pop().is_some() {
            return Ok(());
        }
        Err(AsmError::new(span, "`.endif` without `.if`"))
    }
}
