//! Named constants, and arithmetic over them: `-D N=16`, `f32[N, N]`, `global = N / 32, 1, 1`.

use super::lex::{Spanned, Token, parse_number};
use isa_spec::diag;
use std::collections::BTreeMap;
use std::ops::Range;
use wavesim_array::Num;

/// Maximum nesting depth of parentheses and signs.
const MAX_DEPTH: usize = 64;

/// Named constants.
#[derive(Debug, Clone, Default)]
pub struct Constants {
    values: BTreeMap<String, Num>,
    /// Names defined on the command line, which take precedence over `const` lines.
    overridden: Vec<String>,
}

/// An error in a line of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct TextError {
    /// Byte range in the file.
    pub at: Range<usize>,
    /// One sentence without a full stop.
    pub message: String,
    /// A suggestion.
    pub help: Option<String>,
}

impl TextError {
    /// An error without a suggestion.
    pub fn new(at: Range<usize>, message: impl Into<String>) -> TextError {
        TextError { at, message: message.into(), help: None }
    }

    /// Sets the suggestion.
    pub fn help(self, text: impl Into<String>) -> TextError {
        self.with_help(Some(text.into()))
    }

    /// Sets or removes the suggestion.
    pub fn with_help(mut self, text: Option<String>) -> TextError {
        self.help = text;
        self
    }
}

impl Constants {
    /// Defines a constant from `NAME=VALUE`, the syntax of `-D`. It takes precedence over `const` lines.
    pub fn define(&mut self, text: &str) -> Result<(), String> {
        let wrong = || format!("-D takes NAME=VALUE with a number, not `{text}`");
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(wrong());
        }
        let (negative, digits) = value.strip_prefix('-').map_or((false, value), |rest| (true, rest));
        let number = parse_number(digits).ok_or_else(wrong)?;
        let number = if negative { negate(number) } else { number };
        self.values.insert(name.to_string(), number);
        self.overridden.push(name.to_string());
        Ok(())
    }

    /// Handles a `const` line: sets the value unless the command line defines it.
    pub fn set_default(&mut self, name: &str, value: Num) {
        if !self.overridden.iter().any(|n| n == name) {
            self.values.insert(name.to_string(), value);
        }
    }

    /// The value of a constant.
    pub fn get(&self, name: &str) -> Option<Num> {
        self.values.get(name).copied()
    }

    /// Names and values of all constants.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Num)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// A position in the tokens of a line.
pub struct Cursor<'a> {
    tokens: &'a [Spanned],
    next: usize,
    /// Byte offset of the end of the line, where missing tokens are reported.
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the first token of a line that ends at byte `end` of the file.
    pub fn new(tokens: &'a [Spanned], end: usize) -> Cursor<'a> {
        Cursor { tokens, next: 0, end }
    }

    /// Returns the next token without consuming it.
    pub fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next).map(|t| &t.token)
    }

    /// Returns the token after the next one.
    pub fn peek_second(&self) -> Option<&'a Token> {
        self.tokens.get(self.next + 1).map(|t| &t.token)
    }

    /// The span of the next token.
    pub fn span(&self) -> Range<usize> {
        self.tokens.get(self.next).map_or(self.end..self.end, |t| t.at.clone())
    }

    /// The span of all remaining tokens.
    pub fn rest_span(&self) -> Range<usize> {
        self.span().start..self.tokens.last().map_or(self.end, |t| t.at.end)
    }

    /// Consumes the next token.
    pub fn bump(&mut self) {
        self.next += 1;
    }

    /// Consumes the punctuation character if it is next. Returns whether it was.
    pub fn eat(&mut self, punct: char) -> bool {
        let found = self.peek() == Some(&Token::Punct(punct));
        self.next += found as usize;
        found
    }

    /// Consumes the punctuation character, or returns an error that describes its position (`after`).
    pub fn expect(&mut self, punct: char, after: &str) -> Result<(), TextError> {
        if self.eat(punct) {
            return Ok(());
        }
        Err(TextError::new(self.span(), format!("`{punct}` is missing {after}")))
    }

    /// Consumes a name, or returns an error that `what` is missing.
    pub fn name(&mut self, what: &str) -> Result<(&'a str, Range<usize>), TextError> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let at = self.span();
                self.bump();
                Ok((name, at))
            }
            _ => Err(TextError::new(self.span(), format!("{what} is missing"))),
        }
    }

    /// Returns whether the parenthesis that opens here closes at the end of the line.
    pub fn closes_at_end(&self) -> bool {
        let mut depth = 0;
        let rest = &self.tokens[self.next.min(self.tokens.len())..];
        let closed = rest.iter().position(|t| {
            match t.token {
                Token::Punct('(') => depth += 1,
                Token::Punct(')') => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        closed.is_none_or(|at| at + 1 == rest.len())
    }

    /// Returns an error if tokens remain.
    pub fn finish(&self) -> Result<(), TextError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(TextError::new(self.rest_span(), "unexpected text")),
        }
    }

    /// Evaluates an expression over numbers and named constants.
    pub fn constant(&mut self, constants: &Constants) -> Result<Num, TextError> {
        self.sum(constants, 0)
    }

    /// Evaluates an expression whose value must be an integer of at least `low`.
    pub fn integer(&mut self, constants: &Constants, low: u64, what: &str) -> Result<u64, TextError> {
        let start = self.span();
        let value = self.constant(constants)?;
        let at = start.start
            ..self.tokens[..self.next.min(self.tokens.len())].last().map_or(start.end, |t| t.at.end);
        let whole = value.as_int().and_then(|v| u64::try_from(v).ok()).filter(|v| *v >= low);
        whole.ok_or_else(|| {
            TextError::new(at, format!("{what} must be an integer of at least {low}, not {value}"))
        })
    }

    fn sum(&mut self, constants: &Constants, depth: usize) -> Result<Num, TextError> {
        let mut value = self.product(constants, depth)?;
        loop {
            let at = self.span();
            let op = match self.peek() {
                Some(Token::Punct(c @ ('+' | '-'))) => *c,
                _ => return Ok(value),
            };
            self.bump();
            let right = self.product(constants, depth)?;
            value = arithmetic(op, value, right).ok_or_else(|| overflow(at))?;
        }
    }

    fn product(&mut self, constants: &Constants, depth: usize) -> Result<Num, TextError> {
        let mut value = self.factor(constants, depth)?;
        loop {
            let at = self.span();
            let op = match self.peek() {
                Some(Token::Punct(c @ ('*' | '/' | '%'))) => *c,
                _ => return Ok(value),
            };
            self.bump();
            let right = self.factor(constants, depth)?;
            value = arithmetic(op, value, right).ok_or_else(|| overflow(at))?;
        }
    }

    fn factor(&mut self, constants: &Constants, depth: usize) -> Result<Num, TextError> {
        let at = self.span();
        if depth > MAX_DEPTH {
            return Err(TextError::new(at, "too many parentheses"));
        }
        let token = self.peek().cloned();
        match token {
            Some(Token::Number(n)) => {
                self.bump();
                Ok(n)
            }
            Some(Token::Punct('-')) => {
                self.bump();
                Ok(negate(self.factor(constants, depth + 1)?))
            }
            Some(Token::Punct('+')) => {
                self.bump();
                self.factor(constants, depth + 1)
            }
            Some(Token::Punct('(')) => {
                self.bump();
                let value = self.sum(constants, depth + 1)?;
                self.expect(')', "after this")?;
                Ok(value)
            }
            Some(Token::Name(name)) => {
                self.bump();
                if let Some(value) = constants.get(&name) {
                    return Ok(value);
                }
                match name.as_str() {
                    "inf" => Ok(Num::Float(f64::INFINITY)),
                    "nan" => Ok(Num::Float(f64::NAN)),
                    _ => Err(unknown(&name, at, constants)),
                }
            }
            Some(Token::Bad(text)) => Err(TextError::new(at, format!("`{text}` is not a number"))),
            _ => Err(TextError::new(at, "a number is missing")),
        }
    }
}

fn unknown(name: &str, range: Range<usize>, constants: &Constants) -> TextError {
    let known = diag::nearest(name, constants.iter().map(|(name, _)| name));
    TextError::new(range, format!("`{name}` has no value")).help(match known {
        Some(near) => format!("did you mean `{near}`? Or give a value with -D {name}=…"),
        None => format!("give it one with -D {name}=…, or with a line `const {name} = …`"),
    })
}

fn overflow(range: Range<usize>) -> TextError {
    TextError::new(range, "this cannot be evaluated: division by zero, or overflow")
}

fn negate(n: Num) -> Num {
    match n {
        Num::Int(v) => Num::Int(v.saturating_neg()),
        Num::Bits(v) => Num::Int(-(v as i128)),
        Num::Float(v) => Num::Float(-v),
        Num::Decimal(v) => Num::Decimal(-v),
    }
}

fn arithmetic(op: char, a: Num, b: Num) -> Option<Num> {
    if let (Some(x), Some(y)) = (integer_value(a), integer_value(b)) {
        return match op {
            '+' => x.checked_add(y),
            '-' => x.checked_sub(y),
            '*' => x.checked_mul(y),
            '/' => x.checked_div(y),
            _ => x.checked_rem(y),
        }
        .map(Num::Int);
    }
    let (x, y) = (a.as_f64(), b.as_f64());
    Some(Num::Float(match op {
        '+' => x + y,
        '-' => x - y,
        '*' => x * y,
        '/' => x / y,
        _ => x % y,
    }))
}

fn integer_value(n: Num) -> Option<i128> {
    match n {
        Num::Float(_) | Num::Decimal(_) => None,
        n => n.as_int(),
    }
}
