//! A position in a line of text.

use super::error::{AsmError, Span};

#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

/// Bytes of identifiers.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        word[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'.' | b'$' | b'@');
        byte += 1;
    }
    word
};

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

    #[inline]
    pub fn peek(&self) -> Option<char> {
        match self.byte() {
            Some(byte) if byte.is_ascii() => Some(byte as char),
            _ => self.rest().chars().next(),
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        if self.at < self.end { Some(self.text.as_bytes()[self.at]) } else { None }
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

    #[inline]
    pub fn space(&mut self) {
        while let Some(byte) = self.byte() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                // Rare kinds of space, some of several bytes.
                b'\n'..=b'\r' | 0x80.. => {
                    let rest = self.rest();
                    self.at += rest.len() - rest.trim_start().len();
                    return;
                }
                _ => return,
            }
        }
    }

    #[inline]
    pub fn done(&mut self) -> bool {
        self.space();
        self.at >= self.end
    }

    /// Skips space and then `c`, if it is there.
    #[inline]
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
    #[inline]
    pub fn ident(&mut self) -> Option<(&'a str, Span)> {
        self.space();
        let rest = self.rest();
        let len = rest.bytes().position(|b| !WORD[b as usize]).unwrap_or(rest.len());
        if len == 0 || rest.as_bytes()[0].is_ascii_digit() {
            return None;
        }
        let start = self.at;
        self.at += len;
        Some((&rest[..len], self.since(start)))
    }

    /// The next identifier, not read.
    pub fn peek_ident(&self) -> Option<(&'a str, Span)> {
        self.clone().ident()
    }

    /// `1b`, `2f`: a numbered label before or behind.
    pub fn local_label(&mut self) -> Option<(&'a str, Span)> {
        self.space();
        let rest = self.rest();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|n| *n > 0)?;
        let mut after = rest[digits..].chars();
        let ends =
            |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'));
        if !(matches!(after.next(), Some('b' | 'f')) && ends(after.next())) {
            return None;
        }
        let start = self.at;
        self.at += digits + 1;
        Some((&rest[..digits + 1], self.since(start)))
    }

    /// The body of a string in quotes, with its escapes undone.
    pub fn string(&mut self) -> Result<Vec<u8>, AsmError> {
        self.space();
        let start = self.at;
        let Some(body) = self.rest().strip_prefix('"') else {
            return Err(AsmError::new(self.here(), "a string in quotes belongs here"));
        };
        let len = super::source::string_end(body);
        self.at += 1 + len;
        let Some(body) = body[..len].strip_suffix('"') else {
            return Err(AsmError::new(self.since(start), "the string has no end"));
        };
        let mut out = Vec::new();
        let mut chars = body.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            let escaped = chars.next().unwrap_or('\\');
            let mut number = |first: u32, radix: u32, most: usize| {
                let mut value = first;
                for _ in 0..most {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
                    value = value * radix + digit;
                    chars.next();
                }
                value as u8
            };
            match escaped {
                'n' => out.push(b'\n'),
                't' => out.push(b'\t'),
                'r' => out.push(b'\r'),
                'b' => out.push(8),
                'f' => out.push(12),
                'x' | 'X' => out.push(number(0, 16, 2)),
                c if c.is_digit(8) => out.push(number(c.to_digit(8).unwrap_or(0), 8, 2)),
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Ok(out)
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
