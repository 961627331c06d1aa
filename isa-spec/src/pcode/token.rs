//! The lexer of pseudocode. Drops comments and white space.

use super::ast::{LiteralType, TypeKind, TypeName};
use crate::diag::Diagnostic;
use crate::source::{FileId, Span};
use std::sync::Arc;

/// Tokens.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Tok {
    /// Identifiers and keywords; before expansion, may contain template placeholders (`V_${OP}_$T`).
    Ident(Arc<str>),
    /// Integer literal: its value, and its type as spelled.
    Int { value: u128, ty: LiteralType },
    /// Float literal: its digits as written, and its type as spelled.
    Float { text: String, ty: LiteralType },
    /// String literal, without its quotes.
    Str(String),
    /// `32'F`: the start of a cast, or a declared type.
    Type(TypeName),
    /// Operators and punctuation.
    Punct(&'static str),
    /// End of the file.
    Eof,
}

/// A token with its span.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// The token without its span.
    pub tok: Tok,
    /// Source location.
    pub span: Span,
}

/// Punctuation, longest first. `++` and `--` are not operators of the language; lexing them as tokens gives
/// better error messages.
const PUNCT: &[&str] = &[
    ">>>=", "**=", "<<=", ">>=", ">>>", "**", "<<", ">>", "<>", "<=", ">=", "==", "!=", "&&", "||", "+:",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", "(", ")", "[", "]", "{", "}", ",", ";", ":",
    "?", ".", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=",
];

/// Typographic characters and their ASCII equivalents.
const LOOKALIKES: &[(char, &str)] = &[
    ('×', "*"),
    ('÷', "/"),
    ('≤', "<="),
    ('≥', ">="),
    ('≠', "!="),
    ('–', "-"),
    ('—', "-"),
    ('−', "-"),
    ('∧', "&"),
    ('∨', "|"),
    ('¬', "!"),
];

/// Limit on the text of a file, since spans have 32 bits. No file of instructions comes near it.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// Limit on widths in bits; constants such as 2/pi are wider than a register.
const MAX_WIDTH: u16 = 2048;

/// Lexes `text`, which starts at byte `base` of the file.
pub fn lex(file: FileId, text: &str, base: usize) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer =
        Lexer { file, text, bytes: text.as_bytes(), at: 0, base, out: Vec::new(), errors: Vec::new() };
    if text.len() > MAX_TEXT_BYTES {
        lexer.text = "";
        lexer.bytes = b"";
        let span = Span::new(file, 0, 0);
        lexer.errors.push(Diagnostic::error(span, "this text is too large: at most 64 MiB"));
    }
    lexer.run();
    (lexer.out, lexer.errors)
}

impl Tok {
    /// Returns the token's source form, as quoted in messages and pasted into words by templates.
    pub fn spelling(&self) -> String {
        match self {
            Tok::Ident(text) => text.to_string(),
            Tok::Int { value, ty } => super::print::int(*value, *ty),
            Tok::Float { text, ty } => super::print::float(text, *ty),
            Tok::Str(text) => format!("\"{text}\""),
            Tok::Type(ty) => super::print::cast_type(*ty),
            Tok::Punct(text) => (*text).to_string(),
            Tok::Eof => String::new(),
        }
    }
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
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while self.at < self.bytes.len() {
            let start = self.at;
            let c = self.bytes[self.at];
            match c {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'"' => self.string(start),
                b'0'..=b'9' => self.number(start),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.ident(start),
                _ => {
                    match PUNCT.iter().find(|p| p.as_bytes()[0] == c && self.text[self.at..].starts_with(**p))
                    {
                        Some(p) => {
                            self.at += p.len();
                            self.push(start, Tok::Punct(p));
                        }
                        None => self.invalid_characters(start),
                    }
                }
            }
        }
        // Errors at the end of the file point after the last token rather than after blank lines and
        // comments.
        let end = self.out.last().map_or(self.base as u32, |t| t.span.end);
        self.out.push(Token { tok: Tok::Eof, span: Span { file: self.file, start: end, end } });
    }

    /// Reports a run of invalid characters once. If the intended token is clear, emits it to the parser.
    fn invalid_characters(&mut self, start: usize) {
        let rest = &self.text[start..];
        let is_valid = |c: char| {
            c.is_ascii_alphanumeric()
                || c.is_ascii_whitespace()
                || c == '_'
                || c == '$'
                || c == '"'
                || PUNCT.iter().any(|p| p.starts_with(c))
        };
        let Some(first) = rest.chars().next() else { return };
        let lookalike = LOOKALIKES.iter().find(|m| m.0 == first);
        // The first character is invalid here, even if it may start a token elsewhere (half of an operator).
        let run = rest[first.len_utf8()..].find(is_valid).map_or(rest.len(), |at| first.len_utf8() + at);
        self.at = start + if lookalike.is_some() { first.len_utf8() } else { run };
        let text = &self.text[start..self.at];
        let shown: String = text
            .chars()
            .take(20)
            .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
            .collect();
        let plural = if text.chars().nth(1).is_some() { "s" } else { "" };
        let error = Diagnostic::error(self.span(start), format!("unexpected character{plural} `{shown}`"));
        self.errors.push(match (lookalike, first) {
            (Some((_, instead)), _) => error.help(format!("write `{instead}`")),
            (_, '\u{a0}' | '\u{2000}'..='\u{200b}' | '\u{202f}' | '\u{3000}') => {
                error.help("this is not an ordinary space")
            }
            (_, '‘' | '’' | '`' | '´') => error.help("write `'` between a width and a type: 32'U"),
            (_, '\'') => error.help("`'` follows a width: 32'U(x), 16'0x7fff"),
            (_, '“' | '”') => error.help("write `\"`"),
            (_, '#') => error.help("comments start with `//`"),
            _ => error,
        });
        if let Some(&(_, instead)) = lookalike {
            self.push(start, Tok::Punct(instead));
        } else if first == '#' {
            self.skip_line();
        } else if matches!(first, '“' | '”') {
            // Extends to the closing quote, if that is on this line.
            let line = &self.text[self.at..];
            let line = &line[..line.find('\n').unwrap_or(line.len())];
            if let Some(end) = line.find(['“', '”']) {
                let content = line[..end].to_string();
                self.at += end + '”'.len_utf8();
                self.push(start, Tok::Str(content));
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
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
            self.errors.push(Diagnostic::error(span, "unterminated string").help("add `\"`"));
        }
        self.push(start, Tok::Str(content));
    }

    fn ident(&mut self, start: usize) {
        self.ident_tail();
        // `$W'1U`: a template fills in the width. The token stays whole and is lexed again after expansion.
        if self.text[start..self.at].contains('$') && self.peek(0) == b'\'' {
            self.at += 1;
            self.ident_tail();
        }
        self.push(start, Tok::Ident(self.text[start..self.at].into()));
    }

    /// Lexes letters, digits, `_` and template placeholders.
    fn ident_tail(&mut self) {
        loop {
            match self.peek(0) {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' => self.at += 1,
                b'{' if self.at > 0 && self.bytes[self.at - 1] == b'$' => {
                    let Some(len) =
                        self.bytes[self.at..].iter().take(64).position(|&c| matches!(c, b'}' | b'\n'))
                    else {
                        return;
                    };
                    if self.bytes[self.at + len] == b'\n' {
                        return;
                    }
                    self.at += len + 1;
                }
                _ => return,
            }
        }
    }

    fn digits(&mut self) -> &str {
        let start = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Lexes `123` or `0x1f`, followed by nothing, a suffix, `'` (sized) or a fraction.
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
        if self.fraction() {
            let text = self.text[start..self.at].to_string();
            let ty = self.float_suffix();
            self.reject_letters_after(start);
            self.push(start, Tok::Float { text, ty });
            return;
        }
        let value = text.parse::<u128>().ok();
        let ty = self.int_suffix();
        self.finish_int(start, value, ty);
    }

    /// Reports letters or digits directly after a number.
    fn reject_letters_after(&mut self, start: usize) {
        if !self.peek(0).is_ascii_alphanumeric() && self.peek(0) != b'_' {
            return;
        }
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            self.at += 1;
        }
        let span = self.span(start);
        let text = &self.text[start..self.at];
        let help = match text.strip_suffix(['f', 'u', 'l']) {
            Some(number) if text.ends_with('f') => format!("write `{number}F`"),
            Some(number) if text.ends_with('u') => format!("write `{number}U`"),
            _ if text.starts_with("0b") => {
                "write it in hexadecimal: 0x1f, or 8'0x1f with a width".to_string()
            }
            _ => "suffixes are U, LL and ULL for integers, F for floats".to_string(),
        };
        self.errors.push(Diagnostic::error(span, format!("`{text}` is not a number")).help(help));
    }

    /// Lexes `.5`, `.5e-3` or `e9` after the digits of a float.
    fn fraction(&mut self) -> bool {
        let start = self.at;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E')
            && (self.peek(1).is_ascii_digit()
                || (matches!(self.peek(1), b'-' | b'+') && self.peek(2).is_ascii_digit()))
        {
            self.at += 2;
            self.digits();
        }
        self.at > start
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
        let before = self.errors.len();
        self.reject_letters_after(start);
        let value = value.unwrap_or_else(|| {
            let span = self.span(start);
            if self.errors.len() == before {
                let message = if self.text[start..self.at].len() > 4 {
                    "this number does not fit 128 bits"
                } else {
                    "this number has no digits"
                };
                self.errors.push(Diagnostic::error(span, message));
            }
            0
        });
        match ty {
            LiteralType::Typed(TypeName { kind: TypeKind::F, .. }) => {
                self.push(start, Tok::Float { text: value.to_string(), ty })
            }
            _ => self.push(start, Tok::Int { value, ty }),
        }
    }

    /// Lexes what follows `32'`: a literal (`1U`, `0xff`), a float (`0.5`), or a type (`F`, `U`, `B`).
    fn sized(&mut self, start: usize, width: &str) {
        let width: u16 = match width.parse() {
            Ok(w) if (1..=MAX_WIDTH).contains(&w) => w,
            _ => {
                let span = self.span(start);
                self.errors.push(
                    Diagnostic::error(span, format!("{width} is not a width in bits"))
                        .help(format!("widths are 1 to {MAX_WIDTH}")),
                );
                32
            }
        };
        let typed = |kind| LiteralType::Typed(TypeName { kind, width });
        if let Some((len, kind)) = type_letters(&self.text[self.at..])
            && !self.peek(len).is_ascii_alphanumeric()
        {
            self.at += len;
            self.push(start, Tok::Type(TypeName { kind, width }));
            return;
        }
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') {
            self.at += 2;
            let value = self.hex();
            let kind = self.literal_kind();
            self.finish_int(start, value, typed(kind));
            return;
        }
        if self.peek(0).is_ascii_digit() {
            let digits_at = self.at;
            self.digits();
            if self.fraction() {
                let text = self.text[digits_at..self.at].to_string();
                if self.peek(0) == b'F' {
                    self.at += 1;
                }
                self.reject_letters_after(start);
                self.push(start, Tok::Float { text, ty: typed(TypeKind::F) });
                return;
            }
            let value = self.text[digits_at..self.at].parse::<u128>().ok();
            let kind = self.literal_kind();
            self.finish_int(start, value, typed(kind));
            return;
        }
        // `32'$T(x)`: a template fills in the type; the token is lexed again after expansion.
        if self.peek(0) == b'$' {
            self.ident_tail();
            self.push(start, Tok::Ident(self.text[start..self.at].into()));
            return;
        }
        while self.peek(0).is_ascii_alphanumeric() {
            self.at += 1;
        }
        let span = self.span(start);
        self.errors.push(
            Diagnostic::error(span, "expected a literal or a type after the width")
                .help("for example 16'0xff, 1'1U, 32'F(x); the types are B, U, I, F and BF"),
        );
        let kind = TypeKind::U;
        let cast = self.peek(0) == b'(';
        let tok =
            if cast { Tok::Type(TypeName { kind, width }) } else { Tok::Int { value: 0, ty: typed(kind) } };
        self.push(start, tok);
    }

    /// Lexes `U`, `I`, `B` or `F` after a sized literal; defaults to `U`.
    fn literal_kind(&mut self) -> TypeKind {
        let kind = match self.peek(0) {
            b'U' => TypeKind::U,
            b'I' => TypeKind::I,
            b'B' => TypeKind::B,
            b'F' => TypeKind::F,
            _ => return TypeKind::U,
        };
        self.at += 1;
        kind
    }
}

/// Returns the length of the type's letters at the start of `text`, and the type.
fn type_letters(text: &str) -> Option<(usize, TypeKind)> {
    if text.starts_with("BF") {
        return Some((2, TypeKind::BF));
    }
    let kind = match text.bytes().next()? {
        b'U' => TypeKind::U,
        b'I' => TypeKind::I,
        b'B' => TypeKind::B,
        b'F' => TypeKind::F,
        _ => return None,
    };
    Some((1, kind))
}
