//! Template expansion at the token level: replaces `$NAME` and `${NAME}` everywhere, including in words and
//! strings.
//!
//! A placeholder refers to the longest parameter name that is a prefix of its letters: `$TO` is the parameter
//! `TO` if it exists, and otherwise `$T` followed by an `O`. Placeholders of nested templates are left to
//! their own expansion.

use super::super::ast::{LiteralType, Name, TemplateRow};
use super::super::token::{Tok, Token, lex};
use crate::diag::Diagnostic;
use crate::on_demand::headers::pattern_of;
use crate::pattern::matches;
use crate::source::{FileId, Span};

/// Limit on the expansion of one file's templates, in tokens of 16 bytes: the rows of nested templates
/// multiply.
pub(super) const MAX_TOKENS: usize = 500_000;

/// Limit on the length in bytes of a word or string after substitution.
const MAX_WORD: usize = 1 << 16;

/// An entry of a row: its text, and its tokens.
pub(super) struct Entry {
    /// The entry as written, for the printer.
    pub name: Name,
    /// The tokens that replace a placeholder.
    pub tokens: Vec<Token>,
}

/// A row of a template: one entry per parameter.
pub(super) struct Row {
    /// Entries in the order of the parameters.
    pub entries: Vec<Entry>,
    /// From `(` to `)`.
    pub span: Span,
}

/// Returns `body` with the parameters replaced by a row's entries. Tokens keep their spans in the template's
/// text. Subtracts the size of the result from `budget`; returns `None` if that is exceeded.
pub(super) fn expand(
    file: FileId,
    body: &[Token],
    inner: &[String],
    parameters: &[Name],
    row: &Row,
    budget: &mut usize,
    errors: &mut Vec<Diagnostic>,
) -> Option<Vec<Token>> {
    let fills = fills(parameters, row);
    let mut out = Vec::with_capacity(body.len());
    let mut charged = 0;
    for token in body {
        match &token.tok {
            Tok::Ident(text) if text.contains('$') => {
                // If the placeholder is the whole token, the entry's tokens replace it unchanged.
                if let Some(entry) = parameters.iter().position(|p| is_placeholder(text, &p.text)) {
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
                Tok::Ident(text) => text.len(),
                Tok::Str(text) | Tok::Float { text, .. } => text.len(),
                _ => 0,
            };
            *budget = budget.checked_sub(1 + bytes / 16)?;
        }
        charged = out.len();
    }
    Some(out)
}

/// Returns the names in the headers of instructions, with placeholders, that may become this name in some
/// row.
pub(super) fn candidates<'t>(body: &'t [Token], instruction: &str) -> Vec<&'t str> {
    let mut in_names = false;
    let mut found = Vec::new();
    for token in body {
        match &token.tok {
            Tok::Ident(word) if &**word == "instruction" => in_names = true,
            Tok::Punct("{") => in_names = false,
            Tok::Ident(name) if in_names && may_become(name, instruction) => found.push(&**name),
            _ => {}
        }
    }
    found
}

/// Returns whether a name may become another one, in upper case, if placeholders are replaced.
fn may_become(name: &str, instruction: &str) -> bool {
    matches(&pattern_of(name).to_uppercase(), instruction)
}

/// Returns whether a row's expansion may define an instruction, whose [`candidates`] these are. Placeholders
/// of nested templates match anything.
pub(super) fn may_define(
    candidates: &[&str],
    inner: &[String],
    parameters: &[Name],
    row: &Row,
    instruction: &str,
) -> bool {
    let fills = fills(parameters, row);
    // An entry of several tokens may consist of several names.
    let may = |text: &str| text.split([',', ' ']).any(|name| may_become(name, instruction));
    candidates.iter().any(|name| may(&substitute(name, inner, &fills)))
}

fn fills<'a>(parameters: &'a [Name], row: &'a Row) -> Vec<(&'a str, &'a str)> {
    parameters.iter().zip(&row.entries).map(|(p, e)| (p.text.as_str(), e.name.text.as_str())).collect()
}

fn is_placeholder(text: &str, name: &str) -> bool {
    text.strip_prefix('$').is_some_and(|rest| {
        rest == name || rest.strip_prefix('{').and_then(|t| t.strip_suffix('}')).is_some_and(|t| t == name)
    })
}

/// Substitutes in one pass: placeholders in the text of an entry are not expanded.
fn substitute(text: &str, inner: &[String], fills: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if out.len() > MAX_WORD {
            return out;
        }
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let (name, braced, after) = split_placeholder(tail);
        // The parameter is the whole word in braces, or else the longest name that is a prefix of the
        // letters.
        let matches = |p: &str| if braced { p == name } else { name.starts_with(p) };
        let own = fills.iter().filter(|(p, _)| matches(p)).max_by_key(|(p, _)| p.len());
        let inner_len = inner.iter().filter(|p| matches(p)).map(|p| p.len()).max().unwrap_or(0);
        match own {
            Some((p, entry)) if p.len() > inner_len => {
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

/// Returns a template's text as one of its instructions was expanded from it, including comments. Rows are
/// ordered innermost template first.
pub fn fill(text: &str, rows: &[TemplateRow]) -> String {
    rows.iter().fold(text.to_string(), |text, row| {
        let fills: Vec<(&str, &str)> = row.fills.iter().map(|(p, e)| (p.as_str(), e.as_str())).collect();
        substitute(&text, &[], &fills)
    })
}

/// Splits the text after a `$` into the name, whether it is in braces, and the rest.
fn split_placeholder(tail: &str) -> (&str, bool, &str) {
    if let Some((name, after)) = tail.strip_prefix('{').and_then(|t| t.split_once('}')) {
        return (name, true, after);
    }
    let len = tail.bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'_').count();
    (&tail[..len], false, &tail[len..])
}

/// Returns the names of the placeholders in a word.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = String> {
    text.split('$').skip(1).map(|tail| split_placeholder(tail).0.to_string())
}

/// Returns the parameters of templates nested in `body`, whose placeholders the outer template must not
/// expand.
pub(super) fn inner_parameters(body: &[Token]) -> Vec<String> {
    let mut out = Vec::new();
    for (at, pair) in body.windows(2).enumerate() {
        let template = matches!(&pair[0].tok, Tok::Ident(word) if &**word == "template");
        if template && pair[1].tok == Tok::Punct("(") {
            for token in &body[at + 2..] {
                match &token.tok {
                    Tok::Ident(name) => out.push(name.to_string()),
                    Tok::Punct(",") => {}
                    _ => break,
                }
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

/// Lexes a word again after substitution: it may have become another kind of token, such as the literal of
/// `$W'1U`.
fn push_lexed(file: FileId, text: &str, span: Span, out: &mut Vec<Token>, errors: &mut Vec<Diagnostic>) {
    let (tokens, lex_errors) = lex(file, text, 0);
    if let Some(first) = lex_errors.into_iter().next() {
        let mut error = Diagnostic::error(span, format!("this expands to `{text}`: {}", first.message));
        error.help = first.help;
        errors.push(error);
        // A dummy token avoids a follow-up error about a missing one.
        out.push(Token { tok: Tok::Int { value: 0, ty: LiteralType::None }, span });
        return;
    }
    out.extend(tokens.into_iter().filter(|t| t.tok != Tok::Eof).map(|t| Token { tok: t.tok, span }));
}
