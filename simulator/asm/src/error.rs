//! Errors in one line of assembly: span, message and suggestion.

use isa_spec::diag;
use std::borrow::Cow;

/// A byte range of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// The bytes `start..end`.
    #[inline]
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// An error in a line of assembly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct AsmError {
    /// The span of the offending text.
    pub span: Span,
    /// One sentence without a full stop.
    pub message: Cow<'static, str>,
    /// A suggestion: `did you mean …?`, or the rule in full.
    pub help: Option<String>,
}

impl AsmError {
    /// An error without a suggestion.
    pub fn new(span: Span, message: impl Into<Cow<'static, str>>) -> AsmError {
        AsmError { span, message: message.into(), help: None }
    }

    /// Sets the suggestion.
    pub fn help(mut self, help: impl Into<String>) -> AsmError {
        self.help = Some(help.into());
        self
    }

    /// Returns the error located at `span` if it has no span yet.
    pub fn or_at(self, span: Span) -> AsmError {
        if self.span == Span::default() { AsmError { span, ..self } } else { self }
    }

    /// The column in characters, counted from 1 as in editors.
    pub fn column(&self, line: &str) -> usize {
        line.char_indices().take_while(|(at, _)| *at < self.span.start).count() + 1
    }
}

/// Maximum number of errors that get a suggestion. Nobody reads more, and searching for similar names is
/// slow.
pub const MAX_SUGGESTIONS: usize = 200;

/// Returns `did you mean …?` if one of `candidates` is similar to `name`.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    diag::nearest_within(name, candidates, 1 + name.len() / 5).map(|near| format!("did you mean `{near}`?"))
}
