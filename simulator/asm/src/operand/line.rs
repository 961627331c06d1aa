//! Parsing of a line: the mnemonic, and operands and modifiers in source order.

use super::register::register_name;
use super::value::{call, ends_expression, lone_number, parse_arg};
use super::{
    ArgValue, Line, Modifier, ModifierValue, Modifiers, Operand, Operands, Reg, RegBase, Value,
    parse_operand, unsigned,
};
use crate::dialect::symbols::FLAGS;
use crate::error::{AsmError, Span};
use crate::expr::Symbols;
use crate::scan::{Number, Scanner};

/// Parses a line without label and comment.
pub fn parse_line<'t>(text: &'t str, symbols: &dyn Symbols) -> Result<Line<'t>, AsmError> {
    let s = &mut Scanner::new(text);
    let mut line = Line::begin(s)?;
    line.read_rest(s, symbols)?;
    Ok(line)
}

impl<'t> Line<'t> {
    fn begin(s: &mut Scanner<'t>) -> Result<Line<'t>, AsmError> {
        let name = s.ident();
        let (mnemonic, span) = name.ok_or_else(|| AsmError::new(s.next_span(), "expected an instruction"))?;
        Ok(Line::new(mnemonic, span))
    }

    /// Creates a line that consists of the mnemonic alone.
    pub fn new(mnemonic: &'t str, span: Span) -> Line<'t> {
        let (operands, modifiers) = (Operands::new(), Modifiers::new());
        Line { mnemonic, mnemonic_span: span, operands, modifiers, second: None, span }
    }

    /// Parses everything after the mnemonic.
    pub fn read_rest(&mut self, s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<(), AsmError> {
        if self.half(s, symbols)? {
            let mut second = Line::begin(s)?;
            if second.half(s, symbols)? {
                return Err(AsmError::new(
                    Span::new(s.position() - 2, s.position()),
                    "a dual instruction has two halves",
                ));
            }
            self.span.end = second.span.end;
            self.second = Some(Box::new(second));
        }
        Ok(())
    }

    /// Parses operands and modifiers up to the end of the text, or up to the `::` before the second half.
    /// Returns whether a second half follows.
    fn half(&mut self, s: &mut Scanner<'t>, symbols: &dyn Symbols) -> Result<bool, AsmError> {
        loop {
            s.skip_space();
            let Some(byte) = s.peek_byte() else { return Ok(false) };
            // Operands are separated by commas; a comma before a modifier is optional.
            let comma = byte == b',';
            if comma {
                s.skip(1);
                if s.at_end() {
                    return Err(AsmError::new(s.next_span(), "expected an operand after the comma"));
                }
            } else if byte == b':' && s.peek_second() == Some(b':') {
                s.skip(2);
                return Ok(true);
            }
            match simple_operand(s) {
                Some(operand) => self.operands.push(operand),
                None => item(s, self, comma, symbols)?,
            }
            self.span.end = s.position();
        }
    }
}

/// Fast path for most operands: `v1`, `s[2:3]` and single numbers. Returns `None` and reads nothing
/// otherwise.
#[inline]
fn simple_operand<'t>(s: &mut Scanner<'t>) -> Option<Operand<'t>> {
    let start = s.position();
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
            // The register name must not be the prefix of another word, of a label or of a half (`v1.l`).
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
    Some(Operand { span: s.span_since(start), ..unsigned(value) })
}

#[inline]
fn register<'t>(file: u8, first: u32, last: u32) -> Value<'t> {
    let base = if file == b'v' { RegBase::Vgpr(first as u16) } else { RegBase::Sgpr(first as u16) };
    Value::Reg(Reg { base, count: (last - first + 1) as u16, half: None })
}

/// Parses one to four digits at `position`. Returns the value and the index after them.
#[inline]
fn decimal(text: &[u8], position: usize) -> Option<(u32, usize)> {
    let (mut value, mut end) = (0, position);
    while let Some(digit @ b'0'..=b'9') = text.get(end)
        && end < position + 5
    {
        value = 10 * value + (digit - b'0') as u32;
        end += 1;
    }
    matches!(end - position, 1..=4).then_some((value, end))
}

/// Slow path for all that [`simple_operand`] rejects: a modifier, or any operand of [`parse_operand`].
fn item<'t>(
    s: &mut Scanner<'t>,
    line: &mut Line<'t>,
    comma: bool,
    symbols: &dyn Symbols,
) -> Result<(), AsmError> {
    let start = s.clone();
    if let Some((name, span)) = s.word() {
        let next = s.peek_byte();
        let valued = next == Some(b':') && s.peek_second() != Some(b':');
        // `a16` is a register of CDNA and a flag of image instructions: after a comma or as the first
        // operand, it is a register.
        let place = comma || line.operands.is_empty();
        if !valued
            && (place || !FLAGS.contains(&name))
            && let Some(reg) = register_name(name)
        {
            line.operands.push(Operand { span, ..unsigned(Value::Reg(reg)) });
            return Ok(());
        }
        // A symbol may have the name of a flag.
        let denied = name.strip_prefix("no").is_some_and(|name| FLAGS.contains(&name));
        let flag = denied || FLAGS.contains(&name);
        let symbol = || (comma || line.operands.is_empty()) && symbols.value(name).is_some();
        if (valued || flag) && !(flag && symbol()) {
            line.modifiers.push(modifier(s, name, span, valued, symbols)?);
            return Ok(());
        }
        if let Some(value) = word(s, name, symbols)? {
            line.operands.push(Operand { span: s.span_since(span.start), ..unsigned(value) });
            return Ok(());
        }
        *s = start;
    } else if let Some(Operand { value: Value::Call(_), .. }) = line.operands.last()
        && let Some(b'&' | b'|') = s.peek_byte()
    {
        // `vmcnt(0) & lgkmcnt(0)`, `instid0(…) | instskip(…)`
        s.skip(1);
    }
    line.operands.push(parse_operand(s, symbols)?);
    Ok(())
}

/// Parses an operand that starts with a word and is neither a register nor an expression: a call or a symbol.
/// Returns `None` otherwise.
fn word<'t>(
    s: &mut Scanner<'t>,
    name: &'t str,
    symbols: &dyn Symbols,
) -> Result<Option<Value<'t>>, AsmError> {
    let wraps = matches!(name, "neg" | "abs" | "lit" | "lit64" | "sext");
    let fraction = name.as_bytes()[0] == b'.' && name[1..].starts_with(|c: char| c.is_ascii_digit());
    if s.peek_byte() == Some(b'(') && !wraps {
        s.skip(1);
        return Ok(Some(Value::Call(call(s, symbols, name)?)));
    }
    let mut ahead = s.clone();
    let alone = ends_expression(&mut ahead) && !fraction;
    Ok(alone.then(|| symbols.value(name).map_or(Value::Word(name), Value::Int)))
}

/// Parses the rest of a modifier whose name has been read: a flag, or `name:value`.
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
    s.skip_space();
    let start = s.position();
    let value = if s.peek_byte() == Some(b'[') {
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
            ArgValue::Word(word) | ArgValue::Text(word) => ModifierValue::Word(word),
        }
    };
    let value_span = s.span_since(start);
    Ok(Modifier { name, value, span: span.to(value_span), value_span })
}
