//! Lexer for header lines: tokens with their spans in the file.

use isa_spec::arith::decimal::Decimal;
use std::ops::Range;
use wavesim_array::Num;

/// The kinds of token.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A key, a type, a constant or a function.
    Name(String),
    /// A number without its sign.
    Number(Num),
    /// Quoted text.
    Text(String),
    /// One of `:=[]()<>,+-*/%`.
    Punct(char),
    /// A malformed number, or a character that no token starts with.
    Bad(String),
}

/// A token and its span.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned {
    /// The token.
    pub token: Token,
    /// Byte range in the file.
    pub at: Range<usize>,
}

/// Strips the comment (`;`, `//`, `#`) of a line. These characters do not start a comment in quoted text.
pub fn without_comment(line: &str) -> &str {
    if memchr::memchr3(b';', b'#', b'/', line.as_bytes()).is_none() {
        return line;
    }
    let mut quoted = false;
    let bytes = line.as_bytes();
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b';' | b'#' if !quoted => return &line[..at],
            b'/' if !quoted && bytes.get(at + 1) == Some(&b'/') => return &line[..at],
            _ => {}
        }
    }
    line
}

/// The tokens of a line that starts at byte `base` of the file.
pub fn tokens(line: &str, base: usize) -> Vec<Spanned> {
    let line = without_comment(line);
    let mut out = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return out };
        let start = line.len() - rest.len();
        let (token, len) = match first {
            'a'..='z' | 'A'..='Z' | '_' => name(rest),
            '0'..='9' | '.' => number(rest),
            '"' => text(rest),
            ':' | '=' | '[' | ']' | '(' | ')' | '<' | '>' | ',' | '+' | '-' | '*' | '/' | '%' => {
                (Token::Punct(first), 1)
            }
            _ => (Token::Bad(first.to_string()), first.len_utf8()),
        };
        out.push(Spanned { token, at: base + start..base + start + len });
        rest = &rest[len..];
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn name(rest: &str) -> (Token, usize) {
    let len = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
    (Token::Name(rest[..len].to_string()), len)
}

fn text(rest: &str) -> (Token, usize) {
    match rest[1..].find('"') {
        Some(len) => (Token::Text(rest[1..1 + len].to_string()), len + 2),
        None => (Token::Bad("the closing quote is missing".to_string()), rest.len()),
    }
}

fn number(rest: &str) -> (Token, usize) {
    let mut len = rest.find(|c: char| !is_name(c) && c != '.').unwrap_or(rest.len());
    // The sign of an exponent.
    let decimal = !rest.starts_with("0x") && !rest.starts_with("0X");
    if decimal && rest[..len].ends_with(['e', 'E']) && rest[len..].starts_with(['+', '-']) {
        let digits = &rest[len + 1..];
        len += 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    }
    let word = &rest[..len];
    (parse_number(word).map_or_else(|| Token::Bad(word.to_string()), Token::Number), len)
}

/// Parses an unsigned number: decimal, `0x`, `0b`, or a decimal fraction with or without exponent.
pub fn parse_number(word: &str) -> Option<Num> {
    let lower = word.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = lower.strip_prefix("0b") {
        return radix(digits, 2);
    }
    if lower.bytes().all(|b| b.is_ascii_digit()) {
        return lower.parse().ok().map(Num::Int);
    }
    Decimal::parse(&lower).map(Num::from)
}

fn radix(digits: &str, radix: u32) -> Option<Num> {
    // `from_str_radix` accepts a sign.
    let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain).map(Num::Bits)
}
