//! A position in a line of text.

use super::error::{AsmError, Span};

#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

/// A number as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0, end: text.len() }
    }

    /// The part `span` of `text`; positions stay those of the whole.
    pub fn within(text: &'a str, span: Span) -> Scanner<'a> {
        Scanner { text, at: span.start, end: span.end }
    }

    pub fn rest(&self) -> &'a str {
        &self.text[self.at..self.end]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn here(&self) -> Span {
        let width = self.peek().map_or(0, char::len_utf8);
        Span::new(self.at, self.at + width)
    }

    pub fn since(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    pub fn done(&mut self) -> bool {
        self.space();
        self.rest().is_empty()
    }

    /// Skips space and then `c`, if it is there.
    pub fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    pub fn expect(&mut self, c: char) -> Result<(), AsmError> {
        if self.eat(c) {
            return Ok(());
        }
        Err(AsmError::new(self.here(), format!("`{c}` is missing here")))
    }

    /// An identifier: registers, labels, mnemonics, keywords.
    pub fn ident(&mut self) -> Option<(&'a str, Span)> {
        self.space();
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '$' | '@')) {
            return None;
        }
        let len = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@')))
            .unwrap_or(rest.len());
        let start = self.at;
        self.at += len;
        Some((&rest[..len], self.since(start)))
    }

    /// The next identifier, not read.
    pub fn peek_ident(&self) -> Option<(&'a str, Span)> {
        self.clone().ident()
    }

    pub fn integer(&mut self) -> Result<i64, AsmError> {
        let start = self.at;
        match self.number()? {
            Number::Int(value) => Ok(value),
            Number::Float(_) => Err(AsmError::new(self.since(start), "an integer belongs here")),
        }
    }

    /// A number: decimal, `0x`, `0b`, octal with a leading 0, or a float (`1.5`, `2e-3`). No sign.
    pub fn number(&mut self) -> Result<Number, AsmError> {
        self.space();
        let rest = self.rest();
        let start = self.at;
        let word = |s: &str| s.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(s.len());
        let radix = match rest.as_bytes() {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        if radix != 10 {
            let len = word(rest);
            self.at += len;
            return u64::from_str_radix(&rest[2..len], radix).map(|v| Number::Int(v as i64)).map_err(|_| {
                AsmError::new(self.since(start), format!("`{}` is no 64-bit number", &rest[..len]))
            });
        }
        let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
        let mut len = digits(rest);
        let mut float = false;
        if rest[len..].starts_with('.') && !rest[len..].starts_with("..") {
            float = true;
            len += 1;
            len += digits(&rest[len..]);
        }
        if rest[len..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
            let exponent = digits(&rest[len + 1 + sign..]);
            if exponent > 0 {
                float = true;
                len += 1 + sign + exponent;
            }
        }
        // `12abc` is one wrong word, not a number and a symbol.
        let whole = len + word(&rest[len..]);
        self.at += whole;
        let text = &rest[..len];
        let wrong = |s: &Self| AsmError::new(s.since(start), format!("`{}` is no number", &rest[..whole]));
        if whole > len || len == 0 {
            return Err(wrong(self));
        }
        if float {
            return text.parse().map(Number::Float).map_err(|_| wrong(self));
        }
        let (digits, radix) =
            if text.len() > 1 && text.starts_with('0') { (&text[1..], 8) } else { (text, 10) };
        u64::from_str_radix(digits, radix).map(|v| Number::Int(v as i64)).map_err(|_| wrong(self))
    }
}

/// The line without its comment: `//` or `;` to the end, and `/* … */` as a space of the same length.
pub fn without_comment(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['/', ';', '"']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with(';') || rest.starts_with("//") {
            return out;
        }
        let len = if let Some(body) = rest.strip_prefix("/*") {
            let len = body.find("*/").map_or(rest.len(), |end| end + 4);
            out.extend(std::iter::repeat_n(' ', len));
            rest = &rest[len..];
            continue;
        } else if let Some(body) = rest.strip_prefix('"') {
            string_end(body) + 1
        } else {
            1
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

/// Length of a string's rest with its closing quote.
fn string_end(body: &str) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    body.len()
}
