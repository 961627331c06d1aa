//! One line of assembly as written: a mnemonic, operands, modifiers. Knows registers and numbers, but no instruction.
//!
//! [`parse_line`] is the entry. What an operand may be where, [`matching`](super::matching) says.

use super::dialect::symbols::FLAGS;
use super::error::{AsmError, Span};
use super::expr::{self, Expr, Symbols};
use super::scan::{DIGIT, Number, START, Scanner, class, end_of};
use smallvec::SmallVec;

/// As many as nearly all instructions have, without an allocation.
pub type Operands<'t> = SmallVec<[Operand<'t>; 4]>;
pub type Modifiers<'t> = SmallVec<[Modifier<'t>; 1]>;

/// A line that holds one instruction, or two halves of a dual one. Its words are the text's.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'t> {
    pub mnemonic: &'t str,
    pub mnemonic_span: Span,
    pub operands: Operands<'t>,
    pub modifiers: Modifiers<'t>,
    /// After `::`.
    pub second: Option<Box<Line<'t>>>,
    /// The whole, without space around it.
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operand<'t> {
    pub value: Value<'t>,
    /// `-v1`, `neg(v1)`; of a plain number, `-1` is the number.
    pub neg: bool,
    /// `|v1|`, `abs(v1)`.
    pub abs: bool,
    /// `lit(…)`: to be a literal even where an inline constant would do.
    pub literal: bool,
    /// `--1`: a number with two signs, which LLVM reads for integers alone.
    pub doubled: bool,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value<'t> {
    Reg(Reg),
    Int(i64),
    Float(f64),
    /// An expression with symbols that have no value yet.
    Expr(Box<Expr>),
    /// A word that is no register: `off`, `mrt0`, `attr3.x`, a label.
    Word(&'t str),
    /// `vmcnt(0)`, `hwreg(HW_REG_MODE, 0, 4)`, `sendmsg(MSG_INTERRUPT)`.
    Call(Box<Call<'t>>),
    /// `[v1, v5, v[7:8]]` that is no range of registers: addresses of an image instruction.
    List(Vec<Reg>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call<'t> {
    pub name: &'t str,
    pub args: Vec<Arg<'t>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Arg<'t> {
    pub value: ArgValue<'t>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArgValue<'t> {
    Int(i64),
    Word(&'t str),
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
    /// By its first 32 bits.
    Special(Special),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    Low,
    High,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Modifier<'t> {
    pub name: &'t str,
    pub value: ModifierValue<'t>,
    pub span: Span,
    pub value_span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModifierValue<'t> {
    /// A flag.
    None,
    /// A flag that is taken back: `noglc`.
    No,
    Int(i64),
    Word(&'t str),
    List(Vec<ArgValue<'t>>),
    /// `offset:swizzle(…)`
    Call(Box<Call<'t>>),
}

/// Registers that have a name and not a number, 32 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    VccLo,
    VccHi,
    ExecLo,
    ExecHi,
    M0,
    Null,
    Scc,
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    PopsExitingWaveId,
    Vccz,
    Execz,
    LdsDirect,
    FlatScratchLo,
    FlatScratchHi,
}

impl Special {
    /// With their names in the ISA description.
    pub const ALL: [(Special, &'static str); 17] = [
        (Special::VccLo, "vcc_lo"),
        (Special::VccHi, "vcc_hi"),
        (Special::ExecLo, "exec_lo"),
        (Special::ExecHi, "exec_hi"),
        (Special::M0, "m0"),
        (Special::Null, "null"),
        (Special::Scc, "src_scc"),
        (Special::SharedBase, "src_shared_base"),
        (Special::SharedLimit, "src_shared_limit"),
        (Special::PrivateBase, "src_private_base"),
        (Special::PrivateLimit, "src_private_limit"),
        (Special::PopsExitingWaveId, "src_pops_exiting_wave_id"),
        (Special::Vccz, "src_vccz"),
        (Special::Execz, "src_execz"),
        (Special::LdsDirect, "src_lds_direct"),
        (Special::FlatScratchLo, "flat_scratch_lo"),
        (Special::FlatScratchHi, "flat_scratch_hi"),
    ];

    pub fn name(self) -> &'static str {
        Special::ALL[self as usize].1
    }

    /// As wide as asked for.
    pub fn any_width(self) -> bool {
        self == Special::Null || self.name().starts_with("src_")
    }
}

/// A register by its name, which may stand for two.
fn special(name: &str) -> Option<Reg> {
    let (first, count) = match name {
        "vcc" => (Special::VccLo, 2),
        "exec" => (Special::ExecLo, 2),
        "flat_scratch" => (Special::FlatScratchLo, 2),
        // Sources also without the word before their name.
        _ => {
            let is_called = |own: &str| own == name || own.strip_prefix("src_") == Some(name);
            (Special::ALL.iter().find(|(_, own)| is_called(own))?.0, 1)
        }
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
            RegBase::Special(special) => special.name().to_string(),
        }
    }

    /// The register after its last, if it is one of a numbered file.
    fn follows(&self, before: &Reg) -> bool {
        let ends = |r: &Reg| match r.base {
            RegBase::Vgpr(n) => Some((0, n as u32, n as u32 + r.count as u32)),
            RegBase::Sgpr(n) => Some((1, n as u32, n as u32 + r.count as u32)),
            RegBase::Ttmp(n) => Some((2, n as u32, n as u32 + r.count as u32)),
            RegBase::Special(Special::VccLo | Special::ExecLo) => Some((3, 0, r.count as u32)),
            RegBase::Special(Special::VccHi | Special::ExecHi) => Some((3, 1, 2)),
            RegBase::Special(_) => None,
        };
        let same_pair = match (before.base, self.base) {
            (RegBase::Special(a), RegBase::Special(b)) => a.name()[..3] == b.name()[..3],
            _ => true,
        };
        same_pair
            && matches!((ends(before), ends(self)), (Some((f, _, end)), Some((g, start, _))) if f == g && end == start)
    }
}

/// Reads a line. It holds no label and no comment.
pub fn parse_line<'t>(text: &'t str, symbols: &dyn Symbols) -> Result<Line<'t>, AsmError> {
    let s = &mut Scanner::new(text);
    let mut line = Line::begin(s)?;
    line.read_rest(s, symbols)?;
    Ok(line)
}

impl<'t> Line<'t> {
    fn begin(s: &mut Scanner<'t>) -> Result<Line<'t>, AsmError> {
        let name = s.ident();
        let (mnemonic, span) = name.ok_or_else(|| AsmError::new(s.here(), "an instruction belongs here"))?;
        Ok(Line::new(mnemonic, span))
    }

    /// With nothing behind its mnemonic.
    pub fn new(mnemonic: &'t str, span: Span) -> Line<'t> {
        let (operands, modifiers) = (Operands::new(), Modifiers::new());
        Line { mnemonic, mnemonic_span: span, operands, modifiers, second: None, span }
    }

    /// Reads what stands behind the mnemonic.
    pub fn read_rest(&mut self, s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<(), AsmError> {
        if self.half(s, symbols)? {
            let mut second = Line::begin(s)?;
            if second.half(s, symbols)? {
                return Err(AsmError::new(
                    Span::new(s.at() - 2, s.at()),
                    "a dual instruction has two halves",
                ));
            }
            self.span.end = second.span.end;
            self.second = Some(Box::new(second));
        }
        Ok(())
    }

    /// Operands and modifiers up to the end of the text, or up to `::`, which says that another half follows.
    fn half(&mut self, s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<bool, AsmError> {
        loop {
            s.space();
            let Some(byte) = s.byte() else { return Ok(false) };
            // Between operands a comma; before modifiers none, or one.
            let comma = byte == b',';
            if comma {
                s.skip(1);
                if s.done() {
                    return Err(AsmError::new(s.here(), "an operand belongs after the comma"));
                }
            } else if byte == b':' && s.second() == Some(b':') {
                s.skip(2);
                return Ok(true);
            }
            match simple_operand(s) {
                Some(operand) => self.operands.push(operand),
                None => item(s, self, comma, symbols)?,
            }
            self.span.end = s.at();
        }
    }
}

/// What most operands are, read at once: `v1`, `s[2:3]`, and numbers that stand alone. `None`, and nothing read, for all else.
#[inline]
fn simple_operand<'t>(s: &mut Scanner<'t>) -> Option<Operand<'t>> {
    let start = s.at();
    let text = s.rest_bytes();
    let value = match *text {
        [file @ (b'v' | b's'), b'[', ..] => {
            let (first, colon) = decimal(text, 2)?;
            let (last, end) =
                if text.get(colon) == Some(&b':') { decimal(text, colon + 1)? } else { (first, colon) };
            if text.get(end) != Some(&b']') || last < first {
                return None;
            }
            s.skip(end + 1);
            register(file, first, last)
        }
        [file @ (b'v' | b's'), b'0'..=b'9', ..] => {
            let (number, end) = decimal(text, 1)?;
            // Not the start of another word, nor of a label or a half.
            matches!(text.get(end), None | Some(b',' | b' ' | b'\t')).then_some(())?;
            s.skip(end);
            register(file, number, number)
        }
        [b'0'..=b'9', ..] => match lone_number(s)? {
            Number::Int(value) => Value::Int(value),
            Number::Float(value) => Value::Float(value),
        },
        _ => return None,
    };
    Some(Operand { span: s.since(start), ..plain(value) })
}

#[inline]
fn register<'t>(file: u8, first: u32, last: u32) -> Value<'t> {
    let base = if file == b'v' { RegBase::Vgpr(first as u16) } else { RegBase::Sgpr(first as u16) };
    Value::Reg(Reg { base, count: (last - first + 1) as u16, half: None })
}

/// One to four digits at `at`, and where they end.
#[inline]
fn decimal(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let (mut value, mut end) = (0, at);
    while let Some(digit @ b'0'..=b'9') = text.get(end)
        && end < at + 5
    {
        value = 10 * value + (digit - b'0') as u32;
        end += 1;
    }
    matches!(end - at, 1..=4).then_some((value, end))
}

/// A number with which no longer expression begins; nothing is read otherwise.
fn lone_number(s: &mut Scanner) -> Option<Number> {
    let mut ahead = s.clone();
    let number = match ahead.short_decimal() {
        Some(value) => Number::Int(value),
        // `1b` is a label.
        None if matches!(ahead.rest_bytes().get(end_of(ahead.rest_bytes(), 0, DIGIT)), Some(b'b' | b'f')) => {
            return None;
        }
        None => ahead.number().ok()?,
    };
    ends_expression(&mut ahead).then(|| *s = ahead)?;
    Some(number)
}

/// As [`lone_number`]; a float is none.
fn lone_integer(s: &mut Scanner) -> Option<i64> {
    let mut ahead = s.clone();
    let Number::Int(value) = lone_number(&mut ahead)? else { return None };
    *s = ahead;
    Some(value)
}

/// Whether no operator follows.
#[inline]
fn ends_expression(s: &mut Scanner) -> bool {
    s.space();
    s.byte().is_none_or(|b| matches!(b, b',' | b')' | b']') || class(b) & START != 0)
}

/// What is no [`simple_operand`]: a modifier, or an operand that a front end may read by [`parse_operand`].
fn item<'t>(
    s: &mut Scanner<'t>,
    line: &mut Line<'t>,
    comma: bool,
    symbols: &dyn Symbols,
) -> Result<(), AsmError> {
    let start = s.clone();
    if let Some((name, span)) = s.word() {
        let next = s.byte();
        let valued = next == Some(b':') && s.second() != Some(b':');
        if !valued && let Some(reg) = register_name(name) {
            line.operands.push(Operand { span, ..plain(Value::Reg(reg)) });
            return Ok(());
        }
        // A symbol may be called like a flag.
        let denied = name.strip_prefix("no").is_some_and(|name| FLAGS.contains(&name));
        let flag = denied || FLAGS.contains(&name);
        let symbol = || (comma || line.operands.is_empty()) && symbols.value(name).is_some();
        if (valued || flag) && !(flag && symbol()) {
            line.modifiers.push(modifier(s, name, span, valued, symbols)?);
            return Ok(());
        }
        if let Some(value) = word(s, name, symbols)? {
            line.operands.push(Operand { span: s.since(span.start), ..plain(value) });
            return Ok(());
        }
        *s = start;
    } else if let Some(Operand { value: Value::Call(_), .. }) = line.operands.last()
        && let Some(b'&' | b'|') = s.byte()
    {
        // `vmcnt(0) & lgkmcnt(0)`, `instid0(…) | instskip(…)`
        s.skip(1);
    }
    line.operands.push(parse_operand(s, symbols)?);
    Ok(())
}

/// An operand that begins with a word and is neither register nor expression: a call or a symbol. `None` for all else.
fn word<'t>(
    s: &mut Scanner<'t>,
    name: &'t str,
    symbols: &dyn Symbols,
) -> Result<Option<Value<'t>>, AsmError> {
    let wraps = matches!(name, "neg" | "abs" | "lit" | "sext");
    let fraction = name.as_bytes()[0] == b'.' && name[1..].starts_with(|c: char| c.is_ascii_digit());
    if s.byte() == Some(b'(') && !wraps {
        s.skip(1);
        return Ok(Some(Value::Call(call(s, symbols, name)?)));
    }
    let mut ahead = s.clone();
    let alone = ends_expression(&mut ahead) && !fraction;
    Ok(alone.then(|| symbols.value(name).map_or(Value::Word(name), Value::Int)))
}

/// A modifier whose name has been read: a flag, or `name:value`.
fn modifier<'t>(
    s: &mut Scanner<'t>,
    name: &'t str,
    span: Span,
    valued: bool,
    symbols: &dyn Symbols,
) -> Result<Modifier<'t>, AsmError> {
    if !valued {
        let denied = name.strip_prefix("no").filter(|name| FLAGS.contains(name));
        let value = if denied.is_some() { ModifierValue::No } else { ModifierValue::None };
        return Ok(Modifier { name: denied.unwrap_or(name), value, span, value_span: span });
    }
    s.skip(1);
    s.space();
    let start = s.at();
    let value = if s.byte() == Some(b'[') {
        s.skip(1);
        let mut list = Vec::new();
        if !s.eat(']') {
            loop {
                list.push(parse_arg(s, symbols)?.value);
                if !s.eat(',') {
                    break;
                }
            }
            s.expect(']')?;
        }
        ModifierValue::List(list)
    } else if name == "dim" {
        // `dim:2D_ARRAY` starts with a digit.
        let rest = s.rest();
        let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        s.skip(len);
        ModifierValue::Word(&rest[..len])
    } else if let Some((name @ "swizzle", _)) = s.peek_ident() {
        s.ident();
        s.expect('(')?;
        ModifierValue::Call(call(s, symbols, name)?)
    } else {
        match parse_arg(s, symbols)?.value {
            ArgValue::Int(value) => ModifierValue::Int(value),
            ArgValue::Word(word) => ModifierValue::Word(word),
        }
    };
    let value_span = s.since(start);
    Ok(Modifier { name, value, span: span.to(value_span), value_span })
}

/// A number, an expression that has a value, or a word.
fn parse_arg<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Arg<'t>, AsmError> {
    s.space();
    let start = s.at();
    if let Some(b'0'..=b'9') = s.byte()
        && let Some(value) = lone_integer(s)
    {
        return Ok(Arg { value: ArgValue::Int(value), span: s.since(start) });
    }
    if s.eat('"') {
        let rest = s.rest();
        let Some(len) = rest.find('"') else {
            return Err(AsmError::new(s.since(start), "the closing quote is missing"));
        };
        s.skip(len + 1);
        return Ok(Arg { value: ArgValue::Word(&rest[..len]), span: s.since(start) });
    }
    let e = expr::parse(s, true)?;
    let span = s.since(start);
    let value = match (&e, e.eval(symbols)) {
        (_, Ok(value)) => ArgValue::Int(value),
        (Expr::Symbol(_, at), Err(_)) => ArgValue::Word(s.slice(*at)),
        (_, Err(error)) => return Err(error),
    };
    Ok(Arg { value, span })
}

/// One operand: a register, number, symbol, call or list, with its sign and absolute value.
pub fn parse_operand<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Operand<'t>, AsmError> {
    s.space();
    let start = s.at();
    let mut operand = signed_operand(s, symbols, 0)?;
    operand.span = s.since(start);
    Ok(operand)
}

/// A value with no sign around it, and no place yet.
#[inline]
pub fn plain(value: Value<'_>) -> Operand<'_> {
    Operand { value, neg: false, abs: false, literal: false, doubled: false, span: Span::default() }
}

fn signed_operand<'t>(
    s: &mut Scanner<'t>,
    symbols: &dyn Symbols,
    depth: u32,
) -> Result<Operand<'t>, AsmError> {
    s.space();
    if depth > 4 {
        return Err(AsmError::new(s.here(), "too many signs around one operand"));
    }
    match s.byte() {
        Some(b'-') => {
            // A minus before a number belongs to the number.
            let mut ahead = s.clone();
            ahead.skip(1);
            ahead.space();
            let doubled = ahead.byte() == Some(b'-');
            let register = ahead.peek_ident().is_some_and(|(name, _)| {
                register_name(name).is_some()
                    || matches!(name, "v" | "s" | "ttmp") && ahead.rest()[name.len()..].starts_with('[')
                    || matches!(name, "abs" | "neg")
                        && ahead.rest()[name.len()..].trim_start().starts_with('(')
            });
            if ahead.byte() == Some(b'|') || register {
                *s = ahead;
                let mut operand = signed_operand(s, symbols, depth + 1)?;
                operand.neg = !operand.neg;
                return Ok(operand);
            }
            return Ok(Operand { doubled, ..number(s, symbols, true)? });
        }
        Some(b'|') => {
            s.skip(1);
            let mut operand = match s.byte() {
                Some(b'-') => number(s, symbols, false)?,
                _ => unsigned_operand(s, symbols, false)?,
            };
            if !s.eat('|') {
                return Err(AsmError::new(s.here(), "the closing `|` is missing"));
            }
            operand.abs = true;
            return Ok(operand);
        }
        _ => {}
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

fn unsigned_operand<'t>(
    s: &mut Scanner<'t>,
    symbols: &dyn Symbols,
    bar: bool,
) -> Result<Operand<'t>, AsmError> {
    s.space();
    if s.byte() == Some(b'[') {
        return list(s, symbols);
    }
    if s.byte() == Some(b'{') {
        return Ok(plain(Value::Call(structure(s, symbols)?)));
    }
    if let Some(reg) = parse_register(s, symbols)? {
        return Ok(plain(Value::Reg(reg)));
    }
    if let Some((name, _)) = s.peek_ident() {
        let mut ahead = s.clone();
        ahead.ident();
        if ahead.byte() == Some(b'(') {
            ahead.skip(1);
            *s = ahead;
            return Ok(plain(Value::Call(call(s, symbols, name)?)));
        }
    }
    number(s, symbols, bar)
}

/// The call of `name` whose bracket has been opened.
fn call<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols, name: &'t str) -> Result<Box<Call<'t>>, AsmError> {
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

/// `{id: 5, offset: 0, size: 32}`, as a call of [`STRUCTURE`] whose arguments are names and values in turn.
fn structure<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Box<Call<'t>>, AsmError> {
    s.expect('{')?;
    let mut args = Vec::new();
    if !s.eat('}') {
        loop {
            s.space();
            let Some((name, span)) = s.ident() else {
                return Err(AsmError::new(s.here(), "the name of a part belongs here"));
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

/// The name of a call that is written in braces.
pub const STRUCTURE: &str = "{}";

/// A number or an expression.
fn number<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols, bar: bool) -> Result<Operand<'t>, AsmError> {
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
        (Err(_), Expr::Symbol(_, at)) => Value::Word(s.slice(at)),
        (Err(_), e) => Value::Expr(Box::new(e)),
    }))
}

/// `[s0, s1]`: a range in other words, or a list.
fn list<'t>(s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<Operand<'t>, AsmError> {
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
    Ok(plain(match consecutive(&regs).filter(|_| !vectors) {
        Some(range) => Value::Reg(range),
        None => Value::List(regs),
    }))
}

/// Single registers that follow each other, as one range.
pub fn consecutive(regs: &[Reg]) -> Option<Reg> {
    let single = regs.iter().all(|r| r.count == 1);
    let range = regs.windows(2).all(|w| w[1].follows(&w[0]));
    let count = regs.len().min(0xffff) as u16;
    regs.first().filter(|_| single && range).map(|first| Reg { count, ..*first })
}

/// A register whose name says it all: `v1`, `s7`, `vcc`, `v3.h`.
fn register_name(name: &str) -> Option<Reg> {
    let (name, half) = match name.as_bytes() {
        [.., b'.', b'l'] => (&name[..name.len() - 2], Some(Half::Low)),
        [.., b'.', b'h'] => (&name[..name.len() - 2], Some(Half::High)),
        _ => (name, None),
    };
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (file, number) = name.split_at(digits);
    let base: fn(u16) -> RegBase = match file {
        "v" => RegBase::Vgpr,
        "s" => RegBase::Sgpr,
        "ttmp" => RegBase::Ttmp,
        _ => return special(name).map(|reg| Reg { half, ..reg }),
    };
    Some(Reg { base: base(number.parse().ok()?), count: 1, half })
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
    use crate::expr::NoSymbols;

    fn operand(text: &str) -> Operand<'_> {
        let s = &mut Scanner::new(text);
        let mut line = Line::new("x", Span::default());
        line.read_rest(s, &NoSymbols).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(line.operands.len(), 1, "{text}");
        line.operands[0].clone()
    }

    fn value(text: &str) -> Value<'_> {
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
        assert_eq!(value("vmem"), Value::Word("vmem"));
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
        assert_eq!(line.modifiers[1].value, ModifierValue::Word("2D"));
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
