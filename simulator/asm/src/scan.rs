//! The scanner: a position in a line of text, and the lexical rules for white space, words, numbers and
//! strings.

use super::error::{AsmError, Span};
use isa_spec::arith::decimal::Decimal;

/// A position in a text. The short functions run for every byte of a file and are called from the whole
/// assembler, hence `#[inline]`.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    /// Up to where it is read.
    text: &'a str,
    at: usize,
}

/// Class of identifier bytes; see [`class`].
pub const WORD: u8 = 1;
/// Class of bytes that can start an identifier.
pub const START: u8 = 2;
/// Class of decimal digits.
pub const DIGIT: u8 = 4;
/// Space or tab. [`RARE`] is any other white space, or the first byte of a character that may be white space.
const SPACE: u8 = 8;
const RARE: u8 = 16;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        let word = b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'@');
        if word {
            classes[byte] |= WORD;
            classes[byte] |= if b.is_ascii_digit() { DIGIT } else { START };
        }
        match b {
            b' ' | b'\t' => classes[byte] |= SPACE,
            b'\n'..=b'\r' => classes[byte] |= RARE,
            _ => {}
        }
        byte += 1;
    }
    while byte < 256 {
        classes[byte] = RARE;
        byte += 1;
    }
    classes
};

/// The classes of a byte, as a bit mask.
#[inline]
pub fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Returns the index after the run of bytes of class `wanted` that starts at `position`.
#[inline]
pub fn end_of_class(bytes: &[u8], mut position: usize, wanted: u8) -> usize {
    while position < bytes.len() && class(bytes[position]) & wanted != 0 {
        position += 1;
    }
    position
}

/// A number as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer; hexadecimal and binary ones may use all 64 bits.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(Decimal),
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`.
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    /// A scanner at byte `at` of `text`; positions are relative to the whole text.
    #[inline]
    pub fn from(text: &'a str, at: usize) -> Scanner<'a> {
        Scanner { text, at }
    }

    /// The text that has not been read.
    #[inline]
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The bytes that have not been read.
    #[inline]
    pub fn rest_bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The text at `span`.
    #[inline]
    pub fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    /// Returns the next character without reading it.
    #[inline]
    pub fn peek(&self) -> Option<char> {
        match self.peek_byte() {
            Some(byte) if byte.is_ascii() => Some(byte as char),
            Some(_) => self.rest().chars().next(),
            None => None,
        }
    }

    /// Returns the next byte without reading it.
    #[inline]
    pub fn peek_byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte after the next one.
    #[inline]
    pub fn peek_second(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at + 1).copied()
    }

    /// The byte position in the text.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// The span of the next character; empty at the end of the text.
    pub fn next_span(&self) -> Span {
        let width = self.peek().map_or(0, char::len_utf8);
        Span::new(self.at, self.at + width)
    }

    /// The span from `start` to the current position.
    #[inline]
    pub fn span_since(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    /// Advances by `bytes`, which must end at a character boundary.
    #[inline]
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Skips white space of any kind.
    #[inline]
    pub fn skip_space(&mut self) {
        while let Some(byte) = self.peek_byte() {
            match class(byte) & (SPACE | RARE) {
                SPACE => self.at += 1,
                0 => return,
                _ => return self.skip_rare_space(),
            }
        }
    }

    /// Skips white space other than space and tab; a character may take several bytes.
    #[cold]
    fn skip_rare_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips white space and returns whether the text has ended.
    #[inline]
    pub fn at_end(&mut self) -> bool {
        self.skip_space();
        self.at >= self.text.len()
    }

    /// Skips white space and reads `c` if it follows. Returns whether it did.
    #[inline]
    pub fn eat(&mut self, c: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    /// Skips white space and reads `c`, or returns an error if another character follows.
    pub fn expect(&mut self, c: char) -> Result<(), AsmError> {
        if self.eat(c) {
            return Ok(());
        }
        Err(AsmError::new(self.next_span(), format!("`{c}` is missing here")))
    }

    /// Skips white space and reads an identifier: a register, label, mnemonic or keyword.
    #[inline]
    pub fn ident(&mut self) -> Option<(&'a str, Span)> {
        self.skip_space();
        self.word()
    }

    /// Reads an identifier at the current position.
    #[inline]
    pub fn word(&mut self) -> Option<(&'a str, Span)> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if class(*bytes.get(start)?) & START == 0 {
            return None;
        }
        self.at = end_of_class(bytes, start + 1, WORD);
        let span = self.span_since(start);
        Some((self.slice(span), span))
    }

    /// Returns the next identifier without reading it.
    pub fn peek_ident(&self) -> Option<(&'a str, Span)> {
        self.clone().ident()
    }

    /// Reads `1b` or `2f`: a reference to a numbered label before or after this position.
    pub fn local_label(&mut self) -> Option<(&'a str, Span)> {
        self.skip_space();
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
        Some((&rest[..digits + 1], self.span_since(start)))
    }

    /// Reads a quoted string and returns its contents with escapes resolved.
    pub fn string(&mut self) -> Result<Vec<u8>, AsmError> {
        self.skip_space();
        let start = self.at;
        let Some(body) = self.rest().strip_prefix('"') else {
            return Err(AsmError::new(self.next_span(), "expected a string in quotes"));
        };
        let len = string_end(body);
        self.at += 1 + len;
        let Some(body) = body[..len].strip_suffix('"') else {
            return Err(AsmError::new(self.span_since(start), "the string is not terminated"));
        };
        let mut out = Vec::new();
        let mut chars = body.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            let escaped = chars.next().unwrap_or('\\');
            let mut number = |first: u32, radix: u32, max_digits: usize| {
                let mut value = first;
                for _ in 0..max_digits {
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

    /// Reads an integer; a float is an error.
    pub fn integer(&mut self) -> Result<i64, AsmError> {
        let start = self.at;
        match self.number()? {
            Number::Int(value) => Ok(value),
            Number::Float(_) => Err(AsmError::new(self.span_since(start), "expected an integer")),
        }
    }

    /// Fast path for most numbers: reads decimal digits that fit 64 bits, without prefix, fraction or
    /// exponent.
    #[inline]
    pub fn short_decimal(&mut self) -> Option<i64> {
        let bytes = self.rest_bytes();
        let (mut value, mut digits) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = bytes.get(digits)
            && digits < 18
        {
            value = 10 * value + (digit - b'0') as i64;
            digits += 1;
        }
        let ends = bytes.get(digits).is_none_or(|b| class(*b) & WORD == 0);
        let octal = digits > 1 && bytes[0] == b'0';
        (digits > 0 && ends && !octal).then(|| self.at += digits)?;
        Some(value)
    }

    /// Reads an unsigned number: decimal, `0x`, `0b`, octal with a leading 0, or a float (`1.5`, `2e-3`).
    pub fn number(&mut self) -> Result<Number, AsmError> {
        self.skip_space();
        if let Some(value) = self.short_decimal() {
            return Ok(Number::Int(value));
        }
        let rest = self.rest();
        let start = self.at;
        let bytes = rest.as_bytes();
        let digits = end_of_class(bytes, 0, DIGIT);
        let word = |at: usize| at + bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let radix = match bytes {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        if radix != 10 {
            let len = word(0);
            self.at += len;
            return integer(&rest[2..len], radix).ok_or_else(|| {
                AsmError::new(self.span_since(start), format!("`{}` is not a 64-bit number", &rest[..len]))
            });
        }
        let mut len = digits;
        let mut float = false;
        if bytes.get(len) == Some(&b'.') && bytes.get(len + 1) != Some(&b'.') {
            float = true;
            len = end_of_class(bytes, len + 1, DIGIT);
        }
        if let Some(b'e' | b'E') = bytes.get(len) {
            let digits = len + 1 + usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
            let exponent = end_of_class(bytes, digits, DIGIT);
            if exponent > digits {
                float = true;
                len = exponent;
            }
        }
        // `12abc` is one malformed word, not a number followed by a symbol.
        let whole = word(len);
        self.at += whole;
        let text = &rest[..len];
        let value = match text.as_bytes() {
            _ if whole > len || len == 0 => None,
            _ if float => Decimal::parse(text).map(Number::Float),
            [b'0', _, ..] => integer(&text[1..], 8),
            _ => integer(text, 10),
        };
        value.ok_or_else(|| {
            AsmError::new(self.span_since(start), format!("`{}` is not a number", &rest[..whole]))
        })
    }
}

fn integer(digits: &str, radix: u32) -> Option<Number> {
    u64::from_str_radix(digits, radix).map(|v| Number::Int(v as i64)).ok()
}

/// Length of the rest of a string, including its closing quote.
pub fn string_end(body: &str) -> usize {
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
