//! Integer expressions over symbols, with C's operator precedence.

use super::error::{AsmError, Span};
use super::scan::Scanner;

/// Values of symbols.
pub trait Symbols {
    /// Returns the absolute value of a symbol if it is already defined.
    fn value(&self, name: &str) -> Option<i64>;
}

/// A symbol table without symbols.
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn value(&self, _: &str) -> Option<i64> {
        None
    }
}

impl<F: Fn(&str) -> Option<i64>> Symbols for F {
    fn value(&self, name: &str) -> Option<i64> {
        self(name)
    }
}

/// An expression. Arithmetic wraps at 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Int(i64),
    /// A symbol and its span.
    Symbol(String, Span),
    /// `-`, `~`, `!` or `+`.
    Unary(char, Box<Expr>),
    /// A binary operator of C. Comparisons yield all ones for true, as in LLVM.
    Binary(&'static str, Box<Expr>, Box<Expr>),
}

/// Binary operators and their precedence; longer spellings first.
const OPERATORS: [(&str, u8); 19] = [
    ("||", 1),
    ("&&", 2),
    ("==", 3),
    ("!=", 3),
    ("<>", 3),
    ("<<", 6),
    (">>", 6),
    ("<=", 3),
    (">=", 3),
    ("<", 3),
    (">", 3),
    ("+", 5),
    ("-", 5),
    ("|", 4),
    ("^", 4),
    ("&", 4),
    ("*", 6),
    ("/", 6),
    ("%", 6),
];

/// Maximum nesting depth; deeper nesting is an error instead of a stack overflow.
const MAX_DEPTH: u32 = 64;
/// Maximum length of a chain of operators over symbols.
const MAX_TERMS: u32 = 64;

impl Expr {
    /// Returns the value, or an error for the first symbol without a value.
    pub fn eval(&self, symbols: &dyn Symbols) -> Result<i64, AsmError> {
        Ok(match self {
            Expr::Int(value) => *value,
            Expr::Symbol(name, span) => symbols.value(name).ok_or_else(|| {
                AsmError::new(*span, format!("`{name}` is neither a register nor a defined symbol"))
            })?,
            Expr::Unary(op, a) => {
                let a = a.eval(symbols)?;
                match op {
                    '-' => a.wrapping_neg(),
                    '~' => !a,
                    '!' => (a == 0) as i64,
                    _ => a,
                }
            }
            Expr::Binary(op, a, b) => binary(op, a.eval(symbols)?, b.eval(symbols)?),
        })
    }

    /// Returns the expression with symbols renamed where `name` returns a new name.
    pub fn renamed(self, name: &mut dyn FnMut(&str) -> Option<String>) -> Expr {
        match self {
            Expr::Int(_) => self,
            Expr::Symbol(old, span) => Expr::Symbol(name(&old).unwrap_or(old), span),
            Expr::Unary(op, a) => Expr::Unary(op, Box::new(a.renamed(name))),
            Expr::Binary(op, a, b) => {
                let a = a.renamed(name);
                Expr::Binary(op, Box::new(a), Box::new(b.renamed(name)))
            }
        }
    }

    /// Returns whether `symbol` occurs in the expression.
    pub fn mentions(&self, symbol: &str) -> bool {
        match self {
            Expr::Int(_) => false,
            Expr::Symbol(name, _) => name == symbol,
            Expr::Unary(_, a) => a.mentions(symbol),
            Expr::Binary(_, a, b) => a.mentions(symbol) || b.mentions(symbol),
        }
    }

    /// Returns the first symbol, if any.
    pub fn symbol(&self) -> Option<(&str, Span)> {
        self.symbols().into_iter().next()
    }

    /// The symbols in order of occurrence, with repetitions.
    pub fn symbols(&self) -> Vec<(&str, Span)> {
        match self {
            Expr::Int(_) => Vec::new(),
            Expr::Symbol(name, span) => vec![(name, *span)],
            Expr::Unary(_, a) => a.symbols(),
            Expr::Binary(_, a, b) => [a.symbols(), b.symbols()].concat(),
        }
    }
}

fn binary(op: &str, a: i64, b: i64) -> i64 {
    let shift = u32::try_from(b).ok();
    match op {
        "||" => (a != 0 || b != 0) as i64,
        "&&" => (a != 0 && b != 0) as i64,
        // Comparisons yield all ones, as in LLVM's assembler.
        "==" => -((a == b) as i64),
        "!=" | "<>" => -((a != b) as i64),
        "<" => -((a < b) as i64),
        ">" => -((a > b) as i64),
        "<=" => -((a <= b) as i64),
        ">=" => -((a >= b) as i64),
        "<<" => shift.and_then(|n| a.checked_shl(n)).unwrap_or(0),
        ">>" => shift.and_then(|n| (a as u64).checked_shr(n)).unwrap_or(0) as i64,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b).unwrap_or(0),
        "%" => a.checked_rem(b).unwrap_or(0),
        "|" => a | b,
        "^" => a ^ b,
        _ => a & b,
    }
}

/// Parses an expression. `bar` enables the operator `|`, which would otherwise end an operand in `|v|`
/// brackets.
pub fn parse(s: &mut Scanner, bar: bool) -> Result<Expr, AsmError> {
    binary_expr(s, 0, bar, 0)
}

fn binary_expr(s: &mut Scanner, min: u8, bar: bool, depth: u32) -> Result<Expr, AsmError> {
    let mut left = unary(s, depth)?;
    let mut terms = 0;
    loop {
        s.skip_space();
        let rest = s.rest();
        if rest.starts_with([',', ']', ')', ':']) || rest.is_empty() {
            return Ok(left);
        }
        let found = OPERATORS.iter().find(|(op, _)| rest.starts_with(op));
        let Some(&(op, binds)) = found else { return Ok(left) };
        if binds <= min || (!bar && op.starts_with('|')) {
            return Ok(left);
        }
        s.skip(op.len());
        let right = binary_expr(s, binds, bar, depth + 1)?;
        left = match (left, right) {
            (Expr::Int(a), Expr::Int(b)) => Expr::Int(binary(op, a, b)),
            (left, right) => {
                terms += 1;
                Expr::Binary(op, Box::new(left), Box::new(right))
            }
        };
        if terms > MAX_TERMS {
            return Err(AsmError::new(s.next_span(), "this expression has too many terms"));
        }
    }
}

fn unary(s: &mut Scanner, depth: u32) -> Result<Expr, AsmError> {
    if depth > MAX_DEPTH {
        return Err(AsmError::new(s.next_span(), "this expression nests too deeply"));
    }
    s.skip_space();
    match s.peek() {
        Some(op @ ('-' | '+' | '~' | '!')) => {
            s.skip(1);
            Ok(match (op, unary(s, depth + 1)?) {
                ('-', Expr::Int(value)) => Expr::Int(value.wrapping_neg()),
                (op, e) => Expr::Unary(op, Box::new(e)),
            })
        }
        Some('(') => {
            s.skip(1);
            let e = binary_expr(s, 0, true, depth + 1)?;
            s.expect(')')?;
            Ok(e)
        }
        Some(c) if c.is_ascii_digit() => match s.local_label() {
            Some((name, span)) => Ok(Expr::Symbol(name.to_string(), span)),
            None => Ok(Expr::Int(s.integer()?)),
        },
        _ => {
            let (name, span) = s.ident().ok_or_else(|| {
                AsmError::new(s.next_span(), "expected a register, a number or an expression")
            })?;
            Ok(Expr::Symbol(name.to_string(), span))
        }
    }
}
