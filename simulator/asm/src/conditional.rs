//! Conditional assembly (`.if`, `.elseif`, `.else`, `.endif`): tracks whether lines are active.

use super::error::{AsmError, Span};
use super::source::{Place, Text};

/// An open `.if`.
#[derive(Debug)]
pub struct Conditional {
    /// Location of the `.if`.
    pub place: Place,
    /// The line of the `.if`, for error messages.
    pub line: Text,
    /// The span of the directive in that line.
    pub span: Span,
    /// Whether the enclosing lines are active.
    outside: bool,
    /// Whether the current branch is selected.
    reads: bool,
    /// Whether a branch has already been selected.
    taken: bool,
    last: bool,
}

/// The stack of open conditionals.
#[derive(Debug, Default)]
pub struct Conditionals {
    /// The open conditionals, innermost last.
    pub open: Vec<Conditional>,
}

/// Maximum nesting depth, far above what files use.
const MAX_DEPTH: usize = 256;

impl Conditionals {
    /// Returns whether lines are active here.
    pub fn reads(&self) -> bool {
        self.open.last().is_none_or(|c| c.outside && c.reads)
    }

    /// Handles `.if`; an error if conditionals nest too deeply.
    pub fn begin(&mut self, place: Place, line: Text, span: Span, holds: bool) -> Result<(), AsmError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(AsmError::new(span, format!("conditionals nest more than {MAX_DEPTH} deep")));
        }
        let outside = self.reads();
        self.open.push(Conditional { place, line, span, outside, reads: holds, taken: holds, last: false });
        Ok(())
    }

    /// Returns whether an `.elseif` here must evaluate its condition.
    pub fn asks(&self) -> bool {
        self.open.last().is_some_and(|c| c.outside && !c.taken)
    }

    /// Handles `.elseif`, or `.else` if `last`. The first `floor` conditionals belong to the caller of a
    /// macro or to another file and cannot be continued here.
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

    /// Handles `.endif`; an error if there is no `.if` above `floor`.
    pub fn end(&mut self, span: Span, floor: usize) -> Result<(), AsmError> {
        if self.open.len() > floor && self.open.pop().is_some() {
            return Ok(());
        }
        Err(AsmError::new(span, "`.endif` without `.if`"))
    }
}
