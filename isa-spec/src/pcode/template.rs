//! Template expansion on tokens: `$NAME` and `${NAME}` are replaced wherever they stand, inside identifiers too.

use super::ast::Name;
use super::token::{Tok, Token, lex};
use crate::diag::{Diagnostic, nearest};
use crate::source::FileId;

/// `body` with the parameters replaced by one row's entries. Parameters of an inner template stay.
pub(super) fn expand(
    file: FileId,
    body: &[Token],
    parameters: &[Name],
    row: &[(Name, Vec<Token>)],
    errors: &mut Vec<Diagnostic>,
) -> Vec<Token> {
    let mut out = Vec::with_capacity(body.len());
    let inner = inner_parameters(body);
    for token in body {
        match &token.tok {
            Tok::Ident(text) if text.contains('$') => {
                // A whole-token hole takes the entry's tokens as they are.
                if let Some(at) = parameters.iter().position(|p| is_hole(text, &p.text)) {
                    for mut t in row[at].1.clone() {
                        t.span = token.span;
                        out.push(t);
                    }
                    continue;
                }
                let replaced = substitute(text, parameters, row);
                if let Some(hole) = unknown_hole(&replaced, &inner) {
                    let mut error =
                        Diagnostic::error(token.span, format!("`${hole}` is not a parameter here"));
                    if let Some(near) = nearest(&hole, parameters.iter().map(|p| p.text.as_str())) {
                        error = error.help(format!("did you mean `${near}`?"));
                    }
                    errors.push(error);
                    continue;
                }
                push_lexed(file, &replaced, token, &mut out, errors);
            }
            Tok::Str(text) if text.contains('$') => {
                out.push(Token { tok: Tok::Str(substitute(text, parameters, row)), span: token.span });
            }
            _ => out.push(token.clone()),
        }
    }
    out
}

fn is_hole(text: &str, name: &str) -> bool {
    text.strip_prefix('$').is_some_and(|t| {
        t == name || t.strip_prefix('{').and_then(|t| t.strip_suffix('}')).is_some_and(|t| t == name)
    })
}

/// Longest parameter names first, so that `$TO` is not taken for `$T` with an `O`.
fn substitute(text: &str, parameters: &[Name], row: &[(Name, Vec<Token>)]) -> String {
    let mut order: Vec<usize> = (0..parameters.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(parameters[at].text.len()));
    let mut out = text.to_string();
    for at in order {
        let value = &row[at].0.text;
        out = out.replace(&format!("${{{}}}", parameters[at].text), value);
        out = replace_bare(&out, &parameters[at].text, value);
    }
    out
}

/// `$NAME` where no longer upper-case name starts.
fn replace_bare(text: &str, name: &str, value: &str) -> String {
    let hole = format!("${name}");
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&hole) {
        out.push_str(&rest[..at]);
        out.push_str(value);
        rest = &rest[at + hole.len()..];
    }
    out.push_str(rest);
    out
}

/// Parameters of templates nested in `body`: their holes are not ours to fill.
fn inner_parameters(body: &[Token]) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < body.len() {
        if matches!(&body[at].tok, Tok::Ident(w) if w == "template") {
            let mut j = at + 1;
            while j < body.len() && body[j].tok != Tok::P(")") {
                if let Tok::Ident(name) = &body[j].tok {
                    out.push(name.clone());
                }
                j += 1;
            }
        }
        at += 1;
    }
    out
}

fn unknown_hole(text: &str, inner: &[String]) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let tail = &rest[at + 1..];
        let name: String = match tail.strip_prefix('{') {
            Some(braced) => braced.chars().take_while(|&c| c != '}').collect(),
            None => tail.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect(),
        };
        if !inner.iter().any(|p| name.starts_with(p.as_str())) {
            return Some(name);
        }
        rest = tail;
    }
    None
}

fn push_lexed(file: FileId, text: &str, token: &Token, out: &mut Vec<Token>, errors: &mut Vec<Diagnostic>) {
    if text.is_empty() {
        return;
    }
    let (tokens, lex_errors) = lex(file, text, 0);
    if !lex_errors.is_empty() {
        errors.push(Diagnostic::error(token.span, format!("`{text}` is not a word after expansion")));
        return;
    }
    for mut t in tokens {
        if t.tok != Tok::Eof {
            t.span = token.span;
            out.push(t);
        }
    }
}
