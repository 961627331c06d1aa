//! Diagnostics: what every loader and checker of this crate reports, and the one renderer that the command
//! line and the macro share.

use crate::source::{SourceMap, Span};

/// How serious a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input is wrong: nothing is built from it.
    Error,
    /// The input is used as it is.
    Warning,
}

/// One message with a primary place, further places, and suggestions.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// The headline: `` `S3` is not an operand of V_ADD3_U32 ``.
    pub message: String,
    /// The primary place, which the caret marks.
    pub span: Span,
    /// Text beside the caret; may be empty.
    pub label: String,
    /// Further places, each with the text beside its caret.
    pub also: Vec<(Span, String)>,
    /// Advice on what to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with a headline; `label`, `also` and `help` add to it.
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

    /// A warning with a headline.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    /// Sets the text beside the caret.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds a further place with its text.
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

/// The nearest of `names` to `wanted`, if near enough to suggest.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(wanted, names, wanted.chars().count().div_ceil(3).max(1))
}

/// The nearest of `names` to `wanted`, at most `limit` edits away. Case does not count.
pub fn nearest_within<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Option<&'a str> {
    let length = wanted.chars().count();
    let wanted = wanted.to_lowercase();
    names
        .into_iter()
        // An edit adds or removes one character: the length alone rules out most names.
        .filter(|name| name.chars().count().abs_diff(length) <= limit)
        .map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Diagnostics shown in one report; the rest is counted. What only makes one longer, such as a suggestion, is
/// not computed for more.
pub const SHOWN: usize = 20;

/// All messages of a run, by file and position, without repetitions: at most 20, then `and N more`. Errors
/// come into the twenty before warnings.
pub fn render_all(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    render_first(sources, diagnostics, SHOWN)
}

/// As [`render_all`], with another bound.
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

/// `error: headline` then the place, the line and carets, in the style of rustc. Columns count characters.
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

/// A span as the renderer accepts it: inside the text, on character boundaries, not after the last line's
/// break.
fn clip(text: &str, span: Span) -> std::ops::Range<usize> {
    let last = text.trim_end_matches(['\r', '\n']).len();
    let floor = |at: u32| {
        let at = (at as usize).min(text.len());
        (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
    };
    let start = floor(span.start).min(last);
    start..floor(span.end).min(last).max(start)
}
