//! One line of assembly as written: a mnemonic, operands, modifiers. Knows registers and numbers, but no instruction.
//!
//! [`parse_line`] is the entry. What an operand may be where, [`matching`](super::matching) says.

use super::error::{AsmError, Span};
use super::expr::{self, Expr, Symbols};
use super::scan::{Number, Scanner};

/// A line that holds one instruction, or two halves of a dual one.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub mnemonic: String,
    pub mnemonic_span: Span,
    pub operands: Vec<Operand>,
    pub modifiers: Vec<Modifier>,
    /// After `::`.
    pub second: Option<Box<Line>>,
    /// The whole, without space around it.
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    pub value: Value,
    /// `-v1`, `neg(v1)`; of a plain number, `-1` is the number.
    pub neg: bool,
    /// `|v1|`, `abs(v1)`.
    pub abs: bool,
    /// `lit(…)`: to be a literal even where an inline constant would do.
    pub literal: bool,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Reg(Reg),
    Int(i64),
    Float(f64),
    /// An expression with symbols that have no value yet.
    Expr(Expr),
    /// A word that is no register: `off`, `mrt0`, `attr3.x`, a label.
    Word(String),
    /// `vmcnt(0)`, `hwreg(HW_REG_MODE, 0, 4)`, `sendmsg(MSG_INTERRUPT)`.
    Call(Call),
    /// `[v1, v5, v[7:8]]` that is no range of registers: addresses of an image instruction.
    List(Vec<Reg>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: Vec<Arg>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Arg {
    pub value: ArgValue,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ArgValue {
    Int(i64),
    Word(String),
}

/// A register, or a range of registers that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg {
    pub base: RegBase,
    pub count: u16,
    /// `.l` and `.h`: half of a 16-bit operand.
    pub half: Option<Half>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegBase {
    Vgpr(u16),
    Sgpr(u16),
    Ttmp(u16),
    /// By the name of its first 32 bits, as the ISA description spells it.
    Special(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    Low,
    High,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Modifier {
    pub name: String,
    pub value: ModifierValue,
    pub span: Span,
    pub value_span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModifierValue {
    /// A flag.
    None,
    Int(i64),
    Word(String),
    List(Vec<ArgValue>),
    /// `offset:swizzle(…)`
    Call(Call),
}

/// Names that stand alone as modifiers. Whether an instruction takes one is decided later.
fn is_flag(name: &str) -> bool {
    matches!(
        name,
        "glc"
            | "slc"
            | "dlc"
            | "scc_flag"
            | "offen"
            | "idxen"
            | "addr64"
            | "lds"
            | "tfe"
            | "lwe"
            | "unorm"
            | "r128"
            | "a16"
            | "d16"
            | "gds"
            | "clamp"
            | "done"
            | "row_en"
            | "vm"
            | "compr"
            | "da"
            | "high"
            | "row_mirror"
            | "row_half_mirror"
    )
}

/// Registers that have a name and not a number: name of the first 32 bits, how many.
fn special(name: &str) -> Option<Reg> {
    let (first, count) = match name {
        "vcc" => ("vcc_lo", 2),
        "vcc_lo" => ("vcc_lo", 1),
        "vcc_hi" => ("vcc_hi", 1),
        "exec" => ("exec_lo", 2),
        "exec_lo" => ("exec_lo", 1),
        "exec_hi" => ("exec_hi", 1),
        "m0" => ("m0", 1),
        "null" => ("null", 1),
        "scc" => ("src_scc", 1),
        "src_scc" => ("src_scc", 1),
        "shared_base" => ("src_shared_base", 1),
        "src_shared_base" => ("src_shared_base", 1),
        "shared_limit" => ("src_shared_limit", 1),
        "src_shared_limit" => ("src_shared_limit", 1),
        "private_base" => ("src_private_base", 1),
        "src_private_base" => ("src_private_base", 1),
        "private_limit" => ("src_private_limit", 1),
        "src_private_limit" => ("src_private_limit", 1),
        "pops_exiting_wave_id" => ("src_pops_exiting_wave_id", 1),
        "src_pops_exiting_wave_id" => ("src_pops_exiting_wave_id", 1),
        "vccz" => ("src_vccz", 1),
        "src_vccz" => ("src_vccz", 1),
        "execz" => ("src_execz", 1),
        "src_execz" => ("src_execz", 1),
        "lds_direct" => ("src_lds_direct", 1),
        "src_lds_direct" => ("src_lds_direct", 1),
        "flat_scratch" => ("flat_scratch_lo", 2),
        "flat_scratch_lo" => ("flat_scratch_lo", 1),
        "flat_scratch_hi" => ("flat_scratch_hi", 1),
        _ => return None,
    };
    Some(Reg { base: RegBase::Special(first), count, half: None })
}

impl Reg {
    pub fn vgpr(first: u16, count: u16) -> Reg {
        Reg { base: RegBase::Vgpr(first), count, half: None }
    }

    pub fn sgpr(first: u16, count: u16) -> Reg {
        Reg { base: RegBase::Sgpr(first), count, half: None }
    }

    /// The name of its first register, as the ISA description has it.
    pub fn first_name(&self) -> String {
        match self.base {
            RegBase::Vgpr(n) => format!("v{n}"),
            RegBase::Sgpr(n) => format!("s{n}"),
            RegBase::Ttmp(n) => format!("ttmp{n}"),
            RegBase::Special(name) => name.to_string(),
        }
    }

    /// The register after its last, if it is one of a numbered file.
    fn follows(&self, before: &Reg) -> bool {
        let ends = |r: &Reg| match r.base {
            RegBase::Vgpr(n) => Some((0, n as u32, n as u32 + r.count as u32)),
            RegBase::Sgpr(n) => Some((1, n as u32, n as u32 + r.count as u32)),
            RegBase::Ttmp(n) => Some((2, n as u32, n as u32 + r.count as u32)),
            RegBase::Special("vcc_lo" | "exec_lo") => Some((3, 0, r.count as u32)),
            RegBase::Special("vcc_hi" | "exec_hi") => Some((3, 1, 2)),
            RegBase::Special(_) => None,
        };
        let same_pair = match (before.base, self.base) {
            (RegBase::Special(a), RegBase::Special(b)) => a[..3] == b[..3],
            _ => true,
        };
        same_pair
            && matches!((ends(before), ends(self)), (Some((f, _, end)), Some((g, start, _))) if f == g && end == start)
    }
}

/// Reads a line. It holds no label and no comment.
pub fn parse_line(text: &str, symbols: &dyn Symbols) -> Result<Line, AsmError> {
    parse_line_from(text, 0, symbols)
}

/// As [`parse_line`], from a byte of the text on; places are those of the whole text.
pub fn parse_line_from(text: &str, start: usize, symbols: &dyn Symbols) -> Result<Line, AsmError> {
    half_line(&mut Scanner::within(text, Span::new(start, text.len())), symbols, true)
}

fn half_line(s: &mut Scanner, symbols: &dyn Symbols, first: bool) -> Result<Line, AsmError> {
    let Some((mnemonic, mnemonic_span)) = s.ident() else {
        return Err(AsmError::new(s.here(), "an instruction belongs here"));
    };
    let mut line = Line {
        mnemonic: mnemonic.to_string(),
        mnemonic_span,
        operands: Vec::with_capacity(4),
        modifiers: Vec::new(),
        second: None,
        span: mnemonic_span,
    };
    loop {
        if s.done() {
            break;
        }
        if first && s.rest().starts_with("::") {
            s.skip(2);
            line.second = Some(Box::new(half_line(s, symbols, false)?));
            break;
        }
        // Between operands a comma; before modifiers none, or one.
        let comma = s.eat(',');
        if comma && s.done() {
            return Err(AsmError::new(s.here(), "an operand belongs after the comma"));
        }
        if let Some(operand) = simple_operand(s) {
            line.operands.push(operand);
            line.span.end = s.at();
            continue;
        }
        // A symbol may be called like a flag.
        let symbol = (comma || line.operands.is_empty())
            && s.peek_ident().is_some_and(|(name, _)| is_flag(name) && symbols.value(name).is_some());
        let modifier = if symbol { None } else { parse_modifier(s, symbols)? };
        if let Some(modifier) = modifier {
            line.modifiers.push(modifier);
        } else {
            // `vmcnt(0) & lgkmcnt(0)`, `instid0(…) | instskip(…)`
            let after_call = matches!(line.operands.last(), Some(o) if matches!(o.value, Value::Call(_)));
            if after_call && s.rest().starts_with(['&', '|']) {
                s.skip(1);
            }
            line.operands.push(parse_operand(s, symbols)?);
        }
        line.span.end = s.at();
    }
    if let Some(second) = &line.second {
        line.span.end = second.span.end;
    }
    Ok(line)
}

/// What most operands are, read at once: `v1`, `s[2:3]`, and numbers that stand alone. `None`, and nothing read, for all else.
fn simple_operand(s: &mut Scanner) -> Option<Operand> {
    let start = s.at();
    let text = s.rest().as_bytes();
    let (value, len) = match text {
        [b'v' | b's', b'[', ..] => {
            let (first, colon) = decimal(text, 2)?;
            let (last, end) =
                if text.get(colon) == Some(&b':') { decimal(text, colon + 1)? } else { (first, colon) };
            if text.get(end) != Some(&b']') || last < first {
                return None;
            }
            (register(text[0], first, last), end + 1)
        }
        [b'v' | b's', b'0'..=b'9', ..] => {
            let (number, end) = decimal(text, 1)?;
            // Not the start of another word, nor of a label or a half.
            matches!(text.get(end), None | Some(b',' | b' ' | b'\t')).then_some(())?;
            (register(text[0], number, number), end)
        }
        [b'0'..=b'9', ..] => {
            let (value, end) = match text {
                [b'0', b'x', ..] => hex(text, 2)?,
                // A leading 0 says octal.
                [b'0', b'0'..=b'9', ..] => return None,
                _ => decimal(text, 0).map(|(value, end)| (value as u64, end))?,
            };
            // An expression may go on behind a space.
            matches!(text.get(end), None | Some(b',')).then_some(())?;
            (Value::Int(value as i64), end)
        }
        _ => return None,
    };
    s.skip(len);
    Some(Operand { span: s.since(start), ..plain(value) })
}

fn register(file: u8, first: u32, last: u32) -> Value {
    let base = if file == b'v' { RegBase::Vgpr(first as u16) } else { RegBase::Sgpr(first as u16) };
    Value::Reg(Reg { base, count: (last - first + 1) as u16, half: None })
}

/// One to four digits at `at`, and where they end.
fn decimal(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = text.get(at..)?.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = |digits: &[u8]| digits.iter().fold(0, |value, digit| 10 * value + (digit - b'0') as u32);
    matches!(digits, 1..=4).then(|| (value(&text[at..at + digits]), at + digits))
}

/// One to sixteen hexadecimal digits at `at`, and where they end.
fn hex(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let digits = text.get(at..)?.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let value =
        |digits: &[u8]| digits.iter().fold(0, |v, d| v << 4 | (*d as char).to_digit(16).unwrap_or(0) as u64);
    matches!(digits, 1..=16).then(|| (value(&text[at..at + digits]), at + digits))
}

/// A modifier, if one starts here: a flag, or `name:value`.
pub fn parse_modifier(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Option<Modifier>, AsmError> {
    let Some((name, span)) = s.peek_ident() else { return Ok(None) };
    let mut ahead = s.clone();
    ahead.ident();
    let value = ahead.peek() == Some(':') && !ahead.rest().starts_with("::");
    if !value {
        if !is_flag(name) {
            return Ok(None);
        }
        *s = ahead;
        let modifier =
            Modifier { name: name.to_string(), value: ModifierValue::None, span, value_span: span };
        return Ok(Some(modifier));
    }
    ahead.skip(1);
    ahead.space();
    let start = ahead.at();
    let value = if ahead.eat('[') {
        let mut list = Vec::new();
        if !ahead.eat(']') {
            loop {
                list.push(parse_arg(&mut ahead, symbols)?.value);
                if !ahead.eat(',') {
                    break;
                }
            }
            ahead.expect(']')?;
        }
        ModifierValue::List(list)
    } else if name == "dim" {
        // `dim:2D_ARRAY` starts with a digit.
        let rest = ahead.rest();
        let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        ahead.skip(len);
        ModifierValue::Word(rest[..len].to_string())
    } else if let Some((name, _)) = ahead.peek_ident().filter(|(name, _)| *name == "swizzle") {
        ahead.ident();
        ahead.expect('(')?;
        ModifierValue::Call(Call { name: name.to_string(), args: call_args(&mut ahead, symbols)? })
    } else {
        match parse_arg(&mut ahead, symbols)?.value {
            ArgValue::Int(value) => ModifierValue::Int(value),
            ArgValue::Word(word) => ModifierValue::Word(word),
        }
    };
    *s = ahead;
    let value_span = s.since(start);
    Ok(Some(Modifier { name: name.to_string(), value, span: span.to(value_span), value_span }))
}

/// A number, an expression that has a value, or a word.
fn parse_arg(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Arg, AsmError> {
    s.space();
    let start = s.at();
    if s.eat('"') {
        let rest = s.rest();
        let Some(len) = rest.find('"') else {
            return Err(AsmError::new(s.since(start), "the closing quote is missing"));
        };
        s.skip(len + 1);
        return Ok(Arg { value: ArgValue::Word(rest[..len].to_string()), span: s.since(start) });
    }
    let e = expr::parse(s, true)?;
    let span = s.since(start);
    let value = match (&e, e.eval(symbols)) {
        (_, Ok(value)) => ArgValue::Int(value),
        (Expr::Symbol(name, _), Err(_)) => ArgValue::Word(name.clone()),
        (_, Err(error)) => return Err(error),
    };
    Ok(Arg { value, span })
}

/// One operand: a register, number, symbol, call or list, with its sign and absolute value.
pub fn parse_operand(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Operand, AsmError> {
    s.space();
    let start = s.at();
    let mut operand = signed_operand(s, symbols, 0)?;
    operand.span = s.since(start);
    Ok(operand)
}

fn plain(value: Value) -> Operand {
    Operand { value, neg: false, abs: false, literal: false, span: Span::default() }
}

fn signed_operand(s: &mut Scanner, symbols: &dyn Symbols, depth: u32) -> Result<Operand, AsmError> {
    s.space();
    if depth > 4 {
        return Err(AsmError::new(s.here(), "too many signs around one operand"));
    }
    if s.peek() == Some('-') {
        // A minus before a number belongs to the number.
        let mut ahead = s.clone();
        ahead.skip(1);
        ahead.space();
        let register = ahead.peek_ident().is_some_and(|(name, _)| {
            register_name(name).is_some()
                || matches!(name, "v" | "s" | "ttmp") && ahead.rest()[name.len()..].starts_with('[')
                || matches!(name, "abs" | "neg") && ahead.rest()[name.len()..].trim_start().starts_with('(')
        });
        if ahead.peek() == Some('|') || register {
            *s = ahead;
            let mut operand = signed_operand(s, symbols, depth + 1)?;
            operand.neg = !operand.neg;
            return Ok(operand);
        }
        return number(s, symbols, true);
    }
    if s.peek() == Some('|') {
        s.skip(1);
        let mut operand = match s.peek() {
            Some('-') => number(s, symbols, false)?,
            _ => unsigned_operand(s, symbols, false)?,
        };
        if !s.eat('|') {
            return Err(AsmError::new(s.here(), "the closing `|` is missing"));
        }
        operand.abs = true;
        return Ok(operand);
    }
    if let Some((name @ ("neg" | "abs" | "lit" | "sext"), span)) = s.peek_ident() {
        let mut ahead = s.clone();
        ahead.ident();
        if ahead.eat('(') {
            *s = ahead;
            let mut operand = signed_operand(s, symbols, depth + 1)?;
            s.expect(')')?;
            match name {
                "neg" => operand.neg = !operand.neg,
                "abs" => operand.abs = true,
                "lit" => operand.literal = true,
                _ => {
                    return Err(AsmError::new(
                        span,
                        "sext() belongs to SDWA, which these processors do not have",
                    ));
                }
            }
            return Ok(operand);
        }
    }
    unsigned_operand(s, symbols, true)
}

fn unsigned_operand(s: &mut Scanner, symbols: &dyn Symbols, bar: bool) -> Result<Operand, AsmError> {
    s.space();
    if s.peek() == Some('[') {
        return list(s, symbols);
    }
    if let Some(reg) = parse_register(s, symbols)? {
        return Ok(plain(Value::Reg(reg)));
    }
    if let Some((name, _)) = s.peek_ident() {
        let mut ahead = s.clone();
        ahead.ident();
        if ahead.peek() == Some('(') {
            ahead.skip(1);
            *s = ahead;
            return call(s, symbols, name);
        }
    }
    number(s, symbols, bar)
}

fn call(s: &mut Scanner, symbols: &dyn Symbols, name: &str) -> Result<Operand, AsmError> {
    let args = call_args(s, symbols)?;
    Ok(plain(Value::Call(Call { name: name.to_string(), args })))
}

/// Arguments and the closing bracket.
fn call_args(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Vec<Arg>, AsmError> {
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
    Ok(args)
}

/// A number or an expression.
fn number(s: &mut Scanner, symbols: &dyn Symbols, bar: bool) -> Result<Operand, AsmError> {
    s.space();
    let start = s.clone();
    let negative = s.eat('-');
    s.space();
    let digit = s.peek().is_some_and(|c| c.is_ascii_digit());
    let fraction = s.rest().strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    if (digit || fraction)
        && s.clone().local_label().is_none()
        && let Number::Float(value) = s.number()?
    {
        return Ok(plain(Value::Float(if negative { -value } else { value })));
    }
    *s = start;
    let e = expr::parse(s, bar)?;
    Ok(plain(match (e.eval(symbols), e) {
        (Ok(value), _) => Value::Int(value),
        (Err(_), Expr::Symbol(name, _)) => Value::Word(name),
        (Err(_), e) => Value::Expr(e),
    }))
}

/// `[s0, s1]`: a range in other words, or a list.
fn list(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Operand, AsmError> {
    s.expect('[')?;
    let mut regs: Vec<Reg> = Vec::new();
    loop {
        s.space();
        let Some(reg) = parse_register(s, symbols)? else {
            return Err(AsmError::new(s.here(), "a register belongs here"));
        };
        regs.push(reg);
        if !s.eat(',') {
            break;
        }
    }
    s.expect(']')?;
    // Vector registers in brackets are addresses, each on its own, even where they follow each other.
    let vectors = regs.iter().any(|r| matches!(r.base, RegBase::Vgpr(_)));
    let range = regs.windows(2).all(|w| w[1].follows(&w[0]));
    if vectors || !range {
        return Ok(plain(Value::List(regs)));
    }
    let count = regs.iter().map(|r| r.count).sum();
    Ok(plain(Value::Reg(Reg { count, ..regs[0] })))
}

/// A register whose name says it all: `v1`, `s7`, `vcc`, `v3.h`.
fn register_name(name: &str) -> Option<Reg> {
    let (name, half) = match name.rsplit_once('.') {
        Some((name, "l")) => (name, Some(Half::Low)),
        Some((name, "h")) => (name, Some(Half::High)),
        _ => (name, None),
    };
    if let Some(reg) = special(name) {
        return Some(Reg { half, ..reg });
    }
    let numbered = |prefix: &str| {
        let digits = name.strip_prefix(prefix)?;
        (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
    };
    let base = if let Some(n) = numbered("v") {
        RegBase::Vgpr(n)
    } else if let Some(n) = numbered("s") {
        RegBase::Sgpr(n)
    } else {
        RegBase::Ttmp(numbered("ttmp")?)
    };
    Some(Reg { base, count: 1, half })
}

/// A register or a range, if one starts here.
pub fn parse_register(s: &mut Scanner, symbols: &dyn Symbols) -> Result<Option<Reg>, AsmError> {
    let Some((name, span)) = s.peek_ident() else { return Ok(None) };
    if let Some(reg) = register_name(name) {
        s.ident();
        return Ok(Some(reg));
    }
    let mut ahead = s.clone();
    ahead.ident();
    let base: fn(u16) -> RegBase = match name {
        "v" => RegBase::Vgpr,
        "s" => RegBase::Sgpr,
        "ttmp" => RegBase::Ttmp,
        _ => return Ok(None),
    };
    if !ahead.eat('[') {
        return Ok(None);
    }
    let index = |s: &mut Scanner| -> Result<i64, AsmError> {
        s.space();
        let start = s.at();
        let value = expr::parse(s, true)?.eval(symbols)?;
        if (0..=0xffff).contains(&value) {
            return Ok(value);
        }
        Err(AsmError::new(s.since(start), format!("there is no register {value}")))
    };
    let first = index(&mut ahead)?;
    let last = if ahead.eat(':') { index(&mut ahead)? } else { first };
    ahead.expect(']')?;
    *s = ahead;
    if last < first {
        let span = span.to(s.since(span.start));
        return Err(AsmError::new(span, format!("the range ends ({last}) before it starts ({first})")));
    }
    Ok(Some(Reg { base: base(first as u16), count: (last - first + 1).min(0xffff) as u16, half: None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::expr::NoSymbols;

    fn operand(text: &str) -> Operand {
        let line = parse_line(&format!("x {text}"), &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(line.operands.len(), 1, "{text}");
        line.operands[0].clone()
    }

    fn value(text: &str) -> Value {
        operand(text).value
    }

    #[test]
    fn registers() {
        assert_eq!(value("v1"), Value::Reg(Reg::vgpr(1, 1)));
        assert_eq!(value("v[1:4]"), Value::Reg(Reg::vgpr(1, 4)));
        assert_eq!(value("s[2*2]"), Value::Reg(Reg::sgpr(4, 1)));
        assert_eq!(value("[s2,s3]"), Value::Reg(Reg::sgpr(2, 2)));
        assert_eq!(value("[vcc_lo, vcc_hi]"), value("vcc"));
        assert_eq!(value("ttmp[4:5]"), Value::Reg(Reg { base: RegBase::Ttmp(4), count: 2, half: None }));
        assert_eq!(value("v7.h"), Value::Reg(Reg { half: Some(Half::High), ..Reg::vgpr(7, 1) }));
        assert!(matches!(value("vcc_lo.h"), Value::Reg(Reg { half: Some(Half::High), count: 1, .. })));
        assert_eq!(value("[v1, v2]"), Value::List(vec![Reg::vgpr(1, 1), Reg::vgpr(2, 1)]));
        assert_eq!(value("vmem"), Value::Word("vmem".to_string()));
    }

    #[test]
    fn signs() {
        let o = operand("-|v1|");
        assert!(o.neg && o.abs);
        let o = operand("neg(abs(v[1:2]))");
        assert!(o.neg && o.abs);
        let o = operand("-v[1:2]");
        assert!(o.neg && !o.abs);
        assert!(operand("|-1.5|").abs);
        assert_eq!(value("-1"), Value::Int(-1));
        assert_eq!(value("-1.5e-1"), Value::Float(-0.15));
        assert_eq!(value("0x7f+1"), Value::Int(128));
        assert!(operand("lit(1)").literal);
        assert_eq!(value("1|2"), Value::Int(3));
    }

    #[test]
    fn modifiers_and_calls() {
        let line = parse_line("ds_x v1, v2 offset:4+4 gds", &NoSymbols).unwrap();
        assert_eq!(line.modifiers[0].value, ModifierValue::Int(8));
        assert_eq!(line.modifiers[1].name, "gds");
        let line = parse_line("v_x v1 quad_perm:[0,1,2,3] dim:2D", &NoSymbols).unwrap();
        assert_eq!(line.modifiers[0].value, ModifierValue::List([0, 1, 2, 3].map(ArgValue::Int).to_vec()));
        assert_eq!(line.modifiers[1].value, ModifierValue::Word("2D".to_string()));
        let line = parse_line("s_waitcnt vmcnt(0) & lgkmcnt(1)", &NoSymbols).unwrap();
        assert_eq!(line.operands.len(), 2);
        let line = parse_line("v_dual_a v1, v2 :: v_dual_b v3, v4", &NoSymbols).unwrap();
        assert_eq!(line.second.unwrap().operands.len(), 2);
    }

    #[test]
    fn errors_have_places() {
        for (text, column) in [("s_x s[3:1]", 5), ("s_x 12ab", 5), ("s_x s1,", 8), ("s_x |v1", 8)] {
            let e = parse_line(text, &NoSymbols).unwrap_err();
            assert_eq!(e.column(text), column, "{text}: {e}");
        }
    }
}
