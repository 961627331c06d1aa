//! Parses XML text into a tree, within limits.

use crate::diag::Diagnostic;
use crate::source::{FileId, Span};

/// Parses a document. Rejects documents that nest too deeply or have a DTD.
pub(super) fn parse(text: &str, file: FileId) -> Result<roxmltree::Document<'_>, Diagnostic> {
    if let Some(at) = too_deep(text) {
        let message = format!("elements nested deeper than {MAX_NESTING}");
        return Err(Diagnostic::error(Span::new(file, at, at + 1), message));
    }
    // Without DTDs there are no entities, whose expansion could grow without bound; the documents use none.
    let options = roxmltree::ParsingOptions { allow_dtd: false, nodes_limit: 4_000_000 };
    roxmltree::Document::parse_with_options(text, options).map_err(|e| {
        let at = offset_of(text, e.pos());
        let next = text[at..].chars().next().map_or(0, char::len_utf8);
        Diagnostic::error(Span::new(file, at, at + next), format!("not well-formed XML: {e}"))
    })
}

/// Limit on the nesting of elements; AMD's files nest 20 deep.
const MAX_NESTING: usize = 256;

/// Returns the offset at which elements nest deeper than [`MAX_NESTING`]. This scan runs before the XML
/// parser, which recurses without a limit of its own. On text that is not well-formed the scan may
/// overestimate the parser's depth but never underestimates it.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let rest = &text[start..];
        let skip = |open: &str, close: &str| {
            rest.strip_prefix(open)
                .map(|r| r.find(close).map_or(rest.len(), |n| open.len() + n + close.len()))
        };
        let skipped = skip("<!--", "-->").or_else(|| skip("<![CDATA[", "]]>")).or_else(|| skip("<?", "?>"));
        let (length, change) = match skipped {
            Some(length) => (length, 0),
            None if rest.starts_with("</") => (2, -1),
            None => match tag_end(rest) {
                Some((length, true)) => (length, 0),
                Some((length, false)) => (length, 1),
                None => (1, 1),
            },
        };
        depth = depth.saturating_add_signed(change);
        if depth > MAX_NESTING {
            return Some(start);
        }
        at = start + length;
    }
    None
}

/// Returns the length of the start tag at the start of `text`, and whether the tag is self-closing.
fn tag_end(text: &str) -> Option<(usize, bool)> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (Some(q), b) if q == b => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some((at + 1, text.as_bytes()[at - 1] == b'/')),
            _ => {}
        }
    }
    None
}

/// Converts a row and column (1-based, in characters) to a byte offset on a character boundary.
fn offset_of(text: &str, pos: roxmltree::TextPos) -> usize {
    let line_start: usize =
        text.split_inclusive('\n').take((pos.row as usize).saturating_sub(1)).map(str::len).sum();
    let line = &text[line_start..];
    line.char_indices()
        .nth((pos.col as usize).saturating_sub(1))
        .map_or(text.len(), |(at, _)| line_start + at)
}
