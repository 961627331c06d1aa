//! Diagnostics of all loaders and checkers of this crate, and the renderer that the command line and the
//! macro share.

use crate::source::{SourceMap, Span};

/// How serious a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input is invalid; nothing is built from it.
    Error,
    /// The input is accepted unchanged.
    Warning,
}

/// A message with a primary span, secondary spans, and a suggestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// The headline: `` `S3` is not an operand of V_ADD3_U32 ``.
    pub message: String,
    /// The primary span, marked by carets.
    pub span: Span,
    /// Text at the primary carets; may be empty.
    pub label: String,
    /// Secondary spans, each with the text at its carets.
    pub also: Vec<(Span, String)>,
    /// Advice on what to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error with a headline; `label`, `also` and `help` add to it.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            also: Vec::new(),
            help: None,
        }
    }

    /// Creates a warning with a headline.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// Sets the text at the primary carets.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds a secondary span with its text.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.also.push((span, text.into()));
        self
    }

    /// Sets the advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// Returns the name with the smallest edit distance to `wanted`, if it is close enough to suggest.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(wanted, names, wanted.chars().count().div_ceil(3).max(1))
}

/// Returns the name with the smallest edit distance to `wanted`, if that is at most `limit`. Ignores case.
pub fn nearest_within<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Option<&'a str> {
    let length = wanted.chars().count();
    let wanted = wanted.to_lowercase();
    names
        .into_iter()
        // An edit changes the length by at most one, so the length alone rules out most names.
        .filter(|name| name.chars().count().abs_diff(length) <= limit)
        .map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Maximum number of diagnostics in one report; the rest are only counted. Suggestions are not computed for
/// diagnostics beyond it.
pub const MAX_SHOWN: usize = 20;

/// Renders the diagnostics of a run, sorted by file and position and deduplicated: at most [`MAX_SHOWN`], then
/// `and N more`. Errors take precedence over warnings.
pub fn render_all(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    render_first(sources, diagnostics, MAX_SHOWN)
}

/// Like [`render_all`], with another limit.
pub fn render_first(sources: &SourceMap, diagnostics: &[Diagnostic], shown: usize) -> String {
    let place = |d: &Diagnostic| (sources.file(d.span.file).name.clone(), d.span, d.severity);
    let mut list: Vec<&Diagnostic> = diagnostics.iter().collect();
    list.sort_by_cached_key(|d| (place(d), d.message.clone()));
    list.dedup_by(|a, b| a == b);
    let errors = list.iter().filter(|d| d.severity == Severity::Error).count();
    let (mut error_room, mut warning_room) = (shown, shown.saturating_sub(errors));
    let mut blocks = Vec::new();
    for diagnostic in &list {
        let room = match diagnostic.severity {
            Severity::Error => &mut error_room,
            Severity::Warning => &mut warning_room,
        };
        if *room > 0 {
            *room -= 1;
            blocks.push(render(sources, diagnostic));
        }
    }
    if list.len() > blocks.len() {
        blocks.push(format!("and {} more", list.len() - blocks.len()));
    }
    if blocks.is_empty() { String::new() } else { blocks.join("\n\n") + "\n" }
}

/// Renders one diagnostic in the style of rustc: `error: headline`, then location, source line and carets.
/// Columns count characters.
pub fn render(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut files = vec![diagnostic.span.file];
    for (span, _) in &diagnostic.also {
        if !files.contains(&span.file) {
            files.push(span.file);
        }
    }
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
    for file in files {
        let source = sources.file(file);
        let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str());
        if diagnostic.span.file == file {
            let span = clip(&source.text, diagnostic.span);
            snippet = snippet.annotation(AnnotationKind::Primary.span(span).label(diagnostic.label.as_str()));
        }
        for (span, text) in diagnostic.also.iter().filter(|(span, _)| span.file == file) {
            let span = clip(&source.text, *span);
            snippet = snippet.annotation(AnnotationKind::Context.span(span).label(text.as_str()));
        }
        group = group.element(snippet);
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::plain().render(&[group])
}

/// Clips a span to what the renderer accepts: inside the text, on character boundaries, and not past the last
/// line's terminator.
fn clip(text: &str, span: Span) -> std::ops::Range<usize> {
    let last = text.trim_end_matches(['\r', '\n']).len();
    let floor = |at: u32| {
        let at = (at as usize).min(text.len());
        (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
    };
    let start = floor(span.start).min(last);
    start..floor(span.end).min(last).max(start)
}
