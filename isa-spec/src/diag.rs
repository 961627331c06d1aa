//! Diagnostics: what every loader and checker of this crate reports, and the one renderer that the command line
//! and the macro share.

use crate::source::{SourceMap, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// One message with a primary place, further places, and suggestions.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The headline: `` `S3` is not an operand of V_ADD3_U32 ``.
    pub message: String,
    pub span: Span,
    /// Text beside the caret; may be empty.
    pub label: String,
    pub also: Vec<(Span, String)>,
    pub help: Option<String>,
}

impl Diagnostic {
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

    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }

    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.also.push((span, text.into()));
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// The nearest of `names` to `wanted`, if near enough to suggest.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = wanted.chars().count().div_ceil(3).max(1);
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// `error: headline` then the place, the line and carets, in the style of rustc.
pub fn render(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
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
    let mut group = level.primary_title(diagnostic.message.as_str());
    let mut out = None;
    for file in files {
        let source = sources.file(file);
        let clip = |span: Span| {
            let end = (span.end as usize).min(source.text.len());
            (span.start as usize).min(end)..end
        };
        let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str());
        if diagnostic.span.file == file {
            snippet = snippet.annotation(
                AnnotationKind::Primary.span(clip(diagnostic.span)).label(diagnostic.label.as_str()),
            );
        }
        for (span, text) in diagnostic.also.iter().filter(|(span, _)| span.file == file) {
            snippet = snippet.annotation(AnnotationKind::Context.span(clip(*span)).label(text.as_str()));
        }
        out = Some(match out.take() {
            None => std::mem::replace(&mut group, Level::NOTE.primary_title("")).element(snippet),
            Some(g) => annotate_snippets::Group::element(g, snippet),
        });
    }
    let mut group = out.expect("a diagnostic has at least one file");
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::plain().render(&[group])
}
