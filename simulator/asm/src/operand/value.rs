//! Parsing of one operand or of a call's argument: registers, numbers, symbols, calls and lists, with their
//! signs.

use super::register::{register_file, register_name};
use super::{
    Arg, ArgValue, Call, Operand, Reg, RegBase, STRUCTURE, Value, consecutive, parse_register, unsigned,
};
use crate::error::AsmError;
use crate::expr::{self, Expr, Symbols};
use crate::scan::{DIGIT, Number, START, Scanner, class, end_of_class};

/// Reads a number that is not the start of a longer expression. Returns `None` and reads nothing otherwise.
pub(super) fn lone_number(s: &mut Scanner) -> Option<Number> {
    let mut ahead = s.clone();
    let number = match ahead.short_decimal() {
        Some(value) => Number::Int(value),
        // `1b` is a label.
        None if matches!(
            ahead.rest_bytes().get(end_of_class(ahead.rest_bytes(), 0, DIGIT)),
            Some(b'b' | b'f')
        ) =>
        {
            return None;
        }
        None => ahead.number().ok()?,
    };
    ends_expression(&mut ahead).then(|| *s = ahead)?;
    Some(number)
}

/// As [`lone_number`], for integers only.
pub(super) fn lone_integer(s: &mut Scanner) -> Option<i64> {
    let mut ahead = s.clone();
    let Number::Int(value) = lone_number(&mut ahead)? else { return None };
    *s = ahead;
    Some(value)
}

/// Skips white space and returns whether no operator follows.
#[inline]
pub(super) fn ends_expression(s: &mut Scanner) -> bool {
    s.skip_space();
    s.peek_byte().is_none_or(|b| matches!(b, b',' | b')' | b']') || class(b) & START != 0)
}

/// Reads an argument: a number, an expression that can be evaluated, or a word.
pub(super) fn parse_arg<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Arg<'t>, AsmError> {
    s.skip_space();
    let start = s.position();
    if let Some(b'0'..=b'9') = s.peek_byte()
        && let Some(value) = lone_integer(s)
    {
        return Ok(Arg { value: ArgValue::Int(value), span: s.span_since(start) });
    }
    if s.eat('"') {
        let rest = s.rest();
        let Some(len) = rest.find('"') else {
            return Err(AsmError::new(s.span_since(start), "the closing quote is missing"));
        };
        s.skip(len + 1);
        return Ok(Arg { value: ArgValue::Text(&rest[..len]), span: s.span_since(start) });
    }
    let e = expr::parse(s, true)?;
    let span = s.span_since(start);
    let value = match (&e, e.eval(symbols)) {
        (_, Ok(value)) => ArgValue::Int(value),
        (Expr::Symbol(_, at), Err(_)) => ArgValue::Word(s.slice(*at)),
        (_, Err(error)) => return Err(error),
    };
    Ok(Arg { value, span })
}

/// Reads one operand: a register, number, symbol, call or list, with its sign and absolute value.
pub fn parse_operand<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Operand<'t>, AsmError> {
    s.skip_space();
    let start = s.position();
    let mut operand = signed_operand(s, symbols, None)?;
    operand.span = s.span_since(start);
    Ok(operand)
}

/// Wrappers of an operand, from the outermost to the innermost that LLVM accepts: `-abs(lit(1.0))`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wrapper {
    /// `neg(…)`, `-`.
    Neg,
    /// `abs(…)`, `|…|`.
    Abs,
    /// `lit(…)`, `sext(…)`.
    Inner,
}

/// Reads an operand inside of `outer`. Wrappers inside must be further in.
fn signed_operand<'t>(
    s: &mut Scanner<'t>,
    symbols: &dyn Symbols,
    outer: Option<Wrapper>,
) -> Result<Operand<'t>, AsmError> {
    s.skip_space();
    let start = s.position();
    let enter = |s: &Scanner<'t>, wrapper: Wrapper| match outer {
        Some(outer) if wrapper <= outer => Err(AsmError::new(
            s.span_since(start),
            "signs go around absolute values, and these around `lit()` and `sext()`, each once",
        )),
        _ => Ok(Some(wrapper)),
    };
    match s.peek_byte() {
        Some(b'-') => {
            // A minus before a number is part of the number.
            let mut ahead = s.clone();
            ahead.skip(1);
            ahead.skip_space();
            let doubled = ahead.peek_byte() == Some(b'-');
            let register = ahead.peek_ident().is_some_and(|(name, _)| {
                register_name(name).is_some()
                    || register_file(name).is_some() && ahead.rest()[name.len()..].starts_with('[')
                    || matches!(name, "abs" | "neg")
                        && ahead.rest()[name.len()..].trim_start().starts_with('(')
            });
            if ahead.peek_byte() == Some(b'|') || register {
                *s = ahead;
                let inside = enter(s, Wrapper::Neg)?;
                let mut operand = signed_operand(s, symbols, inside)?;
                operand.neg = !operand.neg;
                return Ok(operand);
            }
            return Ok(Operand { doubled, ..number(s, symbols, true)? });
        }
        Some(b'|') => {
            s.skip(1);
            enter(s, Wrapper::Abs)?;
            let mut operand = match s.peek_byte() {
                Some(b'-') => number(s, symbols, false)?,
                _ => unsigned_operand(s, symbols, false)?,
            };
            if !s.eat('|') {
                return Err(AsmError::new(s.next_span(), "the closing `|` is missing"));
            }
            operand.abs = true;
            return Ok(operand);
        }
        _ => {}
    }
    if let Some((name @ ("neg" | "abs" | "lit" | "lit64" | "sext"), _)) = s.peek_ident() {
        let mut ahead = s.clone();
        ahead.ident();
        if ahead.eat('(') {
            *s = ahead;
            let wrapper = match name {
                "neg" => Wrapper::Neg,
                "abs" => Wrapper::Abs,
                _ => Wrapper::Inner,
            };
            let inside = enter(s, wrapper)?;
            let mut operand = signed_operand(s, symbols, inside)?;
            if name.starts_with("lit")
                && matches!(operand.value, Value::Reg(_) | Value::List(_) | Value::Call(_))
            {
                return Err(AsmError::new(s.span_since(start), "`lit()` takes a number"));
            }
            s.expect(')')?;
            match name {
                "neg" => operand.neg = !operand.neg,
                "abs" => operand.abs = true,
                "lit" | "lit64" => operand.literal = true,
                _ => operand.sext = true,
            }
            return Ok(operand);
        }
    }
    unsigned_operand(s, symbols, true)
}

fn unsigned_operand<'t>(
    s: &mut Scanner<'t>,
    symbols: &dyn Symbols,
    bar: bool,
) -> Result<Operand<'t>, AsmError> {
    s.skip_space();
    if s.peek_byte() == Some(b'[') {
        return list(s, symbols);
    }
    if s.peek_byte() == Some(b'{') {
        return Ok(unsigned(Value::Call(structure(s, symbols)?)));
    }
    if let Some(reg) = parse_register(s, symbols)? {
        return Ok(unsigned(Value::Reg(reg)));
    }
    if let Some((name, _)) = s.peek_ident() {
        let mut ahead = s.clone();
        ahead.ident();
        if ahead.peek_byte() == Some(b'(') {
            ahead.skip(1);
            *s = ahead;
            return Ok(unsigned(Value::Call(call(s, symbols, name)?)));
        }
    }
    number(s, symbols, bar)
}

/// Reads the arguments of the call of `name`; the parenthesis has been read.
pub(super) fn call<'t>(
    s: &mut Scanner<'t>,
    symbols: &dyn Symbols,
    name: &'t str,
) -> Result<Box<Call<'t>>, AsmError> {
    let mut args = Vec::new();
    if !s.eat(')') {
        loop {
            args.push(parse_arg(s, symbols)?);
            if !s.eat(',') {
                break;
            }
        }
        s.expect(')')?;
    }
    Ok(Box::new(Call { name, args }))
}

/// Reads `{id: 5, offset: 0, size: 32}` as a call of [`STRUCTURE`] whose arguments alternate between names
/// and values.
fn structure<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Box<Call<'t>>, AsmError> {
    s.expect('{')?;
    let mut args = Vec::new();
    if !s.eat('}') {
        loop {
            s.skip_space();
            let Some((name, span)) = s.ident() else {
                return Err(AsmError::new(s.next_span(), "expected the name of a field"));
            };
            args.push(Arg { value: ArgValue::Word(name), span });
            s.expect(':')?;
            args.push(parse_arg(s, symbols)?);
            if !s.eat(',') {
                break;
            }
        }
        s.expect('}')?;
    }
    Ok(Box::new(Call { name: STRUCTURE, args }))
}

/// Reads a number or an expression.
fn number<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols, bar: bool) -> Result<Operand<'t>, AsmError> {
    s.skip_space();
    let start = s.clone();
    let negative = s.eat('-');
    s.skip_space();
    let digit = s.peek().is_some_and(|c| c.is_ascii_digit());
    let fraction = s.rest().strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    if (digit || fraction)
        && s.clone().local_label().is_none()
        && let Number::Float(value) = s.number()?
    {
        return Ok(unsigned(Value::Float(if negative { -value } else { value })));
    }
    *s = start;
    let e = expr::parse(s, bar)?;
    Ok(unsigned(match (e.eval(symbols), e) {
        (Ok(value), _) => Value::Int(value),
        (Err(_), Expr::Symbol(_, at)) => Value::Word(s.slice(at)),
        (Err(_), e) => Value::Expr(Box::new(e)),
    }))
}

/// Reads `[s0, s1]`: another spelling of a range, or a list of registers.
fn list<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Operand<'t>, AsmError> {
    s.expect('[')?;
    let mut regs: Vec<Reg> = Vec::new();
    loop {
        s.skip_space();
        let Some(reg) = parse_register(s, symbols)? else {
            return Err(AsmError::new(s.next_span(), "expected a register"));
        };
        regs.push(reg);
        if !s.eat(',') {
            break;
        }
    }
    s.expect(']')?;
    // Vector registers in brackets are separate addresses, even if they are consecutive.
    let vectors = regs.iter().any(|r| matches!(r.base, RegBase::Vgpr(_)));
    Ok(unsigned(match consecutive(&regs).filter(|_| !vectors) {
        Some(range) => Value::Reg(range),
        None => Value::List(regs),
    }))
}
