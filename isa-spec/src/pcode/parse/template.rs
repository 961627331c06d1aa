//! Template expansion on tokens: `$NAME` and `${NAME}` are replaced everywhere, inside words and strings too.
//!
//! A hole takes the longest parameter name that its letters begin with, so `$TO` is `TO` where there is one
//! and `T` followed by an `O` where there is not. Holes of a template nested in the body stay for its own
//! expansion.

use super::super::ast::{LiteralType, Name, TemplateRow};
use super::super::token::{Tok, Token, lex};
use crate::diag::Diagnostic;
use crate::source::{FileId, Span};

/// What the templates of one file may expand to, in tokens of 16 bytes: nested templates multiply.
pub(super) const MAX_TOKENS: usize = 500_000;

/// The longest word or string that filling holes may make, in bytes.
const MAX_WORD: usize = 1 << 16;

/// An entry of a row: its text, and the tokens that take the place of a hole.
pub(super) struct Entry {
    /// The entry as written, for the printer.
    pub name: Name,
    /// What replaces a hole.
    pub tokens: Vec<Token>,
}

/// A row of a template: one entry per parameter.
pub(super) struct Row {
    /// In the order of the parameters.
    pub entries: Vec<Entry>,
    /// From `(` to `)`.
    pub span: Span,
}

/// `body` with the parameters replaced by one row's entries. The tokens keep their place in the template's
/// text. `None` if that is more than `budget`, which is lowered by what was made.
pub(super) fn expand(
    file: FileId,
    body: &[Token],
    inner: &[String],
    parameters: &[Name],
    row: &Row,
    budget: &mut usize,
    errors: &mut Vec<Diagnostic>,
) -> Option<Vec<Token>> {
    let fills: Vec<(&str, &str)> =
        parameters.iter().zip(&row.entries).map(|(p, e)| (p.text.as_str(), e.name.text.as_str())).collect();
    let mut out = Vec::with_capacity(body.len());
    let mut charged = 0;
    for token in body {
        match &token.tok {
            Tok::Ident(text) if text.contains('$') => {
                // A hole that is the whole token takes the entry's tokens as they are.
                if let Some(entry) = parameters.iter().position(|p| is_hole(text, &p.text)) {
                    let tokens = &row.entries[entry].tokens;
                    out.extend(tokens.iter().map(|t| Token { tok: t.tok.clone(), span: token.span }));
                } else {
                    let text = substitute(text, inner, &fills);
                    push_lexed(file, &text, token.span, &mut out, errors);
                }
            }
            Tok::Str(text) if text.contains('$') => {
                let text = substitute(text, inner, &fills);
                out.push(Token { tok: Tok::Str(text), span: token.span });
            }
            _ => out.push(token.clone()),
        }
        for made in &out[charged..] {
            let bytes = match &made.tok {
                Tok::Ident(text) | Tok::Str(text) | Tok::Float { text, .. } => text.len(),
                _ => 0,
            };
            *budget = budget.checked_sub(1 + bytes / 16)?;
        }
        charged = out.len();
    }
    Some(out)
}

fn is_hole(text: &str, name: &str) -> bool {
    text.strip_prefix('$').is_some_and(|rest| {
        rest == name || rest.strip_prefix('{').and_then(|t| t.strip_suffix('}')).is_some_and(|t| t == name)
    })
}

/// One pass: holes in the text of an entry are not filled.
fn substitute(text: &str, inner: &[String], fills: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if out.len() > MAX_WORD {
            return out;
        }
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let (hole, braced, after) = split_hole(tail);
        // Which parameter: the whole word in braces, else the longest that the letters begin with.
        let matches = |p: &str| if braced { p == hole } else { hole.starts_with(p) };
        let ours = fills.iter().filter(|(p, _)| matches(p)).max_by_key(|(p, _)| p.len());
        let theirs = inner.iter().filter(|p| matches(p)).map(|p| p.len()).max().unwrap_or(0);
        match ours {
            Some((p, entry)) if p.len() > theirs => {
                out.push_str(entry);
                rest = if braced { after } else { &tail[p.len()..] };
            }
            _ => {
                let len = 1 + tail.len() - after.len();
                out.push_str(&rest[at..at + len]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// A template's text with the holes filled that one of its instructions was expanded by, innermost template
/// first: what a reader of that instruction wants to see, comments included.
pub fn fill(text: &str, rows: &[TemplateRow]) -> String {
    rows.iter().fold(text.to_string(), |text, row| {
        let fills: Vec<(&str, &str)> = row.fills.iter().map(|(p, e)| (p.as_str(), e.as_str())).collect();
        substitute(&text, &[], &fills)
    })
}

/// After a `$`: the name, whether it is in braces, and what follows.
fn split_hole(tail: &str) -> (&str, bool, &str) {
    if let Some((name, after)) = tail.strip_prefix('{').and_then(|t| t.split_once('}')) {
        return (name, true, after);
    }
    let len = tail.bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'_').count();
    (&tail[..len], false, &tail[len..])
}

/// The names of the holes in a word.
pub(super) fn holes(text: &str) -> impl Iterator<Item = String> {
    text.split('$').skip(1).map(|tail| split_hole(tail).0.to_string())
}

/// Parameters of templates nested in `body`: their holes are not the outer template's to fill.
pub(super) fn inner_parameters(body: &[Token]) -> Vec<String> {
    let mut out = Vec::new();
    for (at, pair) in body.windows(2).enumerate() {
        let template = matches!(&pair[0].tok, Tok::Ident(word) if word == "template");
        if template && pair[1].tok == Tok::P("(") {
            for token in &body[at + 2..] {
                match &token.tok {
                    Tok::Ident(name) => out.push(name.clone()),
                    Tok::P(",") => {}
                    _ => break,
                }
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

/// A word with its holes filled in may be another kind of token: `$W'1U` becomes a literal.
fn push_lexed(file: FileId, text: &str, span: Span, out: &mut Vec<Token>, errors: &mut Vec<Diagnostic>) {
    let (tokens, lex_errors) = lex(file, text, 0);
    if let Some(first) = lex_errors.into_iter().next() {
        let mut error = Diagnostic::error(span, format!("this becomes `{text}`: {}", first.message));
        error.help = first.help;
        errors.push(error);
        // Avoids a second message about something missing here.
        out.push(Token { tok: Tok::Int { value: 0, ty: LiteralType::None }, span });
        return;
    }
    out.extend(tokens.into_iter().filter(|t| t.tok != Tok::Eof).map(|t| Token { tok: t.tok, span }));
}
