//! Conditional assembly (`.if`, `.elseif`, `.else`, `.endif`): tracks whether lines are active.

use super::source::{Location, Text};
use wavesim_asm::error::{AsmError, Span};

/// An open `.if`.
#[derive(Debug)]
pub struct Conditional {
    /// Location of the `.if`.
    pub location: Location,
    /// The line of the `.if`, for error messages.
    pub line: Text,
    /// The span of the directive in that line.
    pub span: Span,
    /// Whether the enclosing lines are active.
    enclosing_active: bool,
    /// Whether the current branch is selected.
    selected: bool,
    /// Whether a branch has already been selected.
    any_selected: bool,
    is_else: bool,
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
    pub fn is_active(&self) -> bool {
        self.open.last().is_none_or(|c| c.enclosing_active && c.selected)
    }

    /// Handles `.if`; an error if conditionals nest too deeply.
    pub fn begin_if(
        &mut self,
        location: Location,
        line: Text,
        span: Span,
        holds: bool,
    ) -> Result<(), AsmError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(AsmError::new(span, format!("conditionals nest more than {MAX_DEPTH} deep")));
        }
        let enclosing_active = self.is_active();
        self.open.push(Conditional {
            location,
            line,
            span,
            enclosing_active,
            selected: holds,
            any_selected: holds,
            is_else: false,
        });
        Ok(())
    }

    /// Returns whether an `.elseif` here must evaluate its condition.
    pub fn needs_condition(&self) -> bool {
        self.open.last().is_some_and(|c| c.enclosing_active && !c.any_selected)
    }

    /// Handles `.elseif`, or `.else` if `is_else`. The first `floor` conditionals belong to the caller of a
    /// macro or to another file and cannot be continued here.
    pub fn begin_branch(
        &mut self,
        name: &str,
        span: Span,
        holds: bool,
        is_else: bool,
        floor: usize,
    ) -> Result<(), AsmError> {
        let open = self.open.len() > floor;
        let Some(c) = self.open.last_mut().filter(|_| open) else {
            return Err(AsmError::new(span, format!("`{name}` without `.if`")));
        };
        if c.is_else {
            return Err(AsmError::new(span, format!("`{name}` after `.else`")));
        }
        c.selected = holds && !c.any_selected;
        c.any_selected |= holds;
        c.is_else = is_else;
        Ok(())
    }

    /// Handles `.endif`; an error if there is no `.if` above `floor`.
    pub fn end_if(&mut self, span: Span, floor: usize) -> Result<(), AsmError> {
        if self.open.len() > floor && self.open.pop().is_some() {
            return Ok(());
        }
        Err(AsmError::new(span, "`.endif` without `.if`"))
    }
}
