//! Text -> tokens.

use super::ast::{LiteralType, TypeKind, TypeName};
use crate::diag::Diagnostic;
use crate::source::{FileId, Span};

#[derive(Debug, Clone, PartialEq)]
pub enum Tok {
    /// Identifiers and keywords; may contain template holes (`V_${OP}_$T`) before expansion.
    Ident(String),
    Int {
        value: u128,
        ty: LiteralType,
    },
    Float {
        text: String,
        ty: LiteralType,
    },
    Str(String),
    /// `32'F` before `(` : a cast head or a declared type.
    Type(TypeName),
    /// Operators and punctuation.
    P(&'static str),
    Eof,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub tok: Tok,
    pub span: Span,
}

/// Longest first.
const PUNCT: &[&str] = &[
    ">>>=", "**=", "<<=", ">>=", ">>>", "**", "<<", ">>", "<>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", "(", ")", "[", "]", "{", "}", ",", ";", ":", "?",
    ".", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=",
];

/// Tokens of `text` (which starts at byte `base` of the file); comments are dropped.
pub fn lex(file: FileId, text: &str, base: usize) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer =
        Lexer { file, text, bytes: text.as_bytes(), at: 0, base, out: Vec::new(), errors: Vec::new() };
    lexer.run();
    (lexer.out, lexer.errors)
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    base: usize,
    out: Vec<Token>,
    errors: Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn span(&self, start: usize) -> Span {
        Span::new(self.file, self.base + start, self.base + self.at)
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, start: usize, tok: Tok) {
        let span = self.span(start);
        self.out.push(Token { tok, span });
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let start = self.at;
            let c = self.bytes[self.at];
            match c {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.peek(1) == b'/' => {
                    while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
                        self.at += 1;
                    }
                }
                b'"' => self.string(start),
                b'0'..=b'9' => self.number(start),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.ident(start),
                _ => match PUNCT.iter().find(|p| self.text[self.at..].starts_with(**p)) {
                    Some(p) => {
                        self.at += p.len();
                        self.push(start, Tok::P(p));
                    }
                    None => {
                        let ch = self.text[self.at..].chars().next().unwrap_or(' ');
                        self.at += ch.len_utf8();
                        let span = self.span(start);
                        self.errors.push(Diagnostic::error(span, format!("unexpected character `{ch}`")));
                    }
                },
            }
        }
        let end = self.at;
        self.push(end, Tok::Eof);
    }

    fn string(&mut self, start: usize) {
        self.at += 1;
        while self.at < self.bytes.len() && self.bytes[self.at] != b'"' && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
        let content = self.text[start + 1..self.at].to_string();
        if self.peek(0) == b'"' {
            self.at += 1;
        } else {
            let span = self.span(start);
            self.errors
                .push(Diagnostic::error(span, "this string does not end on its line").help("add `\"`"));
        }
        self.push(start, Tok::Str(content));
    }

    fn ident(&mut self, start: usize) {
        loop {
            match self.peek(0) {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => self.at += 1,
                b'$' if self.peek(1) == b'{' => {
                    while self.at < self.bytes.len()
                        && self.bytes[self.at] != b'}'
                        && self.bytes[self.at] != b'\n'
                    {
                        self.at += 1;
                    }
                    self.at = (self.at + 1).min(self.bytes.len());
                }
                b'$' => self.at += 1,
                _ => break,
            }
        }
        // `$W'1U`: a width that a template fills in; kept whole and lexed again after expansion.
        if self.text[start..self.at].contains('$') && self.peek(0) == b'\'' {
            self.at += 1;
            while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'$' {
                if self.peek(0) == b'$' && self.peek(1) == b'{' {
                    while self.at < self.bytes.len() && self.bytes[self.at] != b'}' {
                        self.at += 1;
                    }
                }
                self.at += 1;
            }
            self.at = self.at.min(self.bytes.len());
        }
        let text = self.text[start..self.at].to_string();
        self.push(start, Tok::Ident(text));
    }

    fn digits(&mut self) -> &str {
        let start = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// `123`, `0x1f`, followed by nothing, a suffix, `'` (sized) or a fraction.
    fn number(&mut self, start: usize) {
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') {
            self.at += 2;
            let value = self.hex();
            let ty = self.int_suffix();
            self.finish_int(start, value, ty);
            return;
        }
        let text = self.digits().to_string();
        if self.peek(0) == b'\'' {
            self.at += 1;
            self.sized(start, &text);
            return;
        }
        let mut float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E')
            && (self.peek(1).is_ascii_digit()
                || (matches!(self.peek(1), b'-' | b'+') && self.peek(2).is_ascii_digit()))
        {
            float = true;
            self.at += 2;
            self.digits();
        }
        if float {
            let text = self.text[start..self.at].to_string();
            let ty = self.float_suffix();
            self.push(start, Tok::Float { text, ty });
            return;
        }
        let value = text.parse::<u128>();
        let ty = self.int_suffix();
        match value {
            Ok(value) => self.finish_int(start, Some(value), ty),
            Err(_) => self.finish_int(start, None, ty),
        }
    }

    fn hex(&mut self) -> Option<u128> {
        let start = self.at;
        while self.peek(0).is_ascii_hexdigit() {
            self.at += 1;
        }
        u128::from_str_radix(&self.text[start..self.at], 16).ok()
    }

    fn float_suffix(&mut self) -> LiteralType {
        if self.peek(0) == b'F' {
            self.at += 1;
            return LiteralType::Typed(TypeName { kind: TypeKind::F, width: 32 });
        }
        LiteralType::None
    }

    fn int_suffix(&mut self) -> LiteralType {
        let rest = &self.text[self.at..];
        let (len, kind, width) = if rest.starts_with("ULL") {
            (3, TypeKind::U, 64)
        } else if rest.starts_with("LL") {
            (2, TypeKind::I, 64)
        } else if rest.starts_with('U') {
            (1, TypeKind::U, 32)
        } else if rest.starts_with('F') {
            // `1F`.
            (1, TypeKind::F, 32)
        } else {
            return LiteralType::None;
        };
        self.at += len;
        LiteralType::Typed(TypeName { kind, width })
    }

    fn finish_int(&mut self, start: usize, value: Option<u128>, ty: LiteralType) {
        if self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
                self.at += 1;
            }
            let span = self.span(start);
            let text = &self.text[start..self.at];
            self.errors.push(
                Diagnostic::error(span, format!("`{text}` is not a number"))
                    .help("suffixes are U, LL and ULL for integers, F for floats"),
            );
        }
        let value = value.unwrap_or_else(|| {
            let span = self.span(start);
            self.errors.push(Diagnostic::error(span, "number does not fit 128 bits or has no digits"));
            0
        });
        match ty {
            LiteralType::Typed(TypeName { kind: TypeKind::F, .. }) => {
                self.push(start, Tok::Float { text: value.to_string(), ty })
            }
            _ => self.push(start, Tok::Int { value, ty }),
        }
    }

    /// After `32'`: a literal (`1U`, `0xff`, `-1`-less), a float (`0.5`), or a type (`F`, `U`, `B`).
    fn sized(&mut self, start: usize, width: &str) {
        let width: u16 = match width.parse() {
            Ok(w) if (1..=2048).contains(&w) => w,
            _ => {
                let span = self.span(start);
                self.errors.push(Diagnostic::error(span, format!("{width} is not a width in bits")));
                32
            }
        };
        let letter = |c: u8| match c {
            b'U' => Some(TypeKind::U),
            b'I' => Some(TypeKind::I),
            b'B' => Some(TypeKind::B),
            b'F' => Some(TypeKind::F),
            _ => None,
        };
        if self.text[self.at..].starts_with("BF") {
            self.at += 2;
            self.push(start, Tok::Type(TypeName { kind: TypeKind::BF, width }));
            return;
        }
        if let Some(kind) = letter(self.peek(0))
            && !self.peek(1).is_ascii_alphanumeric()
        {
            self.at += 1;
            self.push(start, Tok::Type(TypeName { kind, width }));
            return;
        }
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') {
            self.at += 2;
            let value = self.hex();
            let kind = letter(self.peek(0)).inspect(|_| self.at += 1).unwrap_or(TypeKind::U);
            self.finish_int(start, value, LiteralType::Typed(TypeName { kind, width }));
            return;
        }
        if self.peek(0).is_ascii_digit() {
            let digits_at = self.at;
            self.digits();
            if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
                self.at += 1;
                self.digits();
                let text = self.text[digits_at..self.at].to_string();
                if self.peek(0) == b'F' {
                    self.at += 1;
                }
                self.push(
                    start,
                    Tok::Float { text, ty: LiteralType::Typed(TypeName { kind: TypeKind::F, width }) },
                );
                return;
            }
            let value = self.text[digits_at..self.at].parse::<u128>().ok();
            let kind = letter(self.peek(0)).inspect(|_| self.at += 1).unwrap_or(TypeKind::U);
            self.finish_int(start, value, LiteralType::Typed(TypeName { kind, width }));
            return;
        }
        let span = self.span(start);
        self.errors.push(
            Diagnostic::error(span, "expected a literal or a type after the width")
                .help("for example 16'0xff, 1'1U, 32'F(x)"),
        );
    }
}
