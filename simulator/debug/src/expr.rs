//! Expressions of the debugger: `v3[5] > 10`, `s[2:3] + 8`, `out_y[3].f32 * 2`, `exec == 0xff && scc`.
//!
//! A register reads as an unsigned integer; a type after a dot or `as` reinterprets the bits. `vN` reads the
//! selected lane, `vN[lane]` another one. The name of an argument is its address, `name[i]` an element of the
//! declared type. `lds[OFFSET]`, `scratch[OFFSET]` (of the selected lane) and `mem[ADDRESS]` are dwords at a byte offset, or
//! values of the type behind it. `.lo` and `.hi` are the halves of a value of 32 bits. `$step` is the number of steps taken, `$lane` the selected lane. Expressions change nothing.

use super::timeline;
use isa_spec::diag;
use wavesim_array::{DType, Num};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::{Machine, register_number};
use wavesim_machine::exec::hwreg;
use wavesim_machine::state::VGPRS;
use wavesim_machine::state::wave::{EXEC_LO, M0, TTMP, VCC_LO};

/// A value: an integer or a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer of any type.
    Int(i128),
    /// A float of any type.
    Float(f64),
}

impl Value {
    /// Whether it is not zero.
    pub fn truth(self) -> bool {
        match self {
            Value::Int(v) => v != 0,
            Value::Float(v) => v != 0.0,
        }
    }

    /// The value as f64.
    pub fn float(self) -> f64 {
        match self {
            Value::Int(v) => v as f64,
            Value::Float(v) => v,
        }
    }

    /// The value as bits of a register: of a float, those of its f32.
    pub fn bits(self) -> u64 {
        match self {
            Value::Int(v) => v as u64,
            Value::Float(v) => (v as f32).to_bits() as u64,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v:?}"),
        }
    }
}

/// The wave and lane whose registers are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Focus {
    /// Number in the workgroup.
    pub wave: usize,
    /// Number in the wave.
    pub lane: u32,
}

/// Registers that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Register {
    /// Operand code of the first SGPR, and how many.
    Sgpr(u16, u16),
    /// First VGPR, and how many.
    Vgpr(u16, u16),
    /// The condition code.
    Scc,
    /// The program counter.
    Pc,
    /// Rounding and denormal modes.
    Mode,
    /// The hardware register STATUS.
    Status,
}

/// Parses `v3`, `v[0:3]`, `s2`, `s[2:3]`, `vcc`, `exec_lo`, `m0`, `scc`, `pc`, `mode` or `status`.
/// `wide`: masks take two registers (wave64).
pub fn register(text: &str, wide: bool, arch: Arch) -> Option<Register> {
    if let Some(machine) = arch.machine() {
        return own_register(text, machine);
    }
    let mask = |first: usize| Register::Sgpr(first as u16, if wide { 2 } else { 1 });
    Some(match text {
        "vcc" => mask(VCC_LO),
        "exec" => mask(EXEC_LO),
        "vcc_lo" => Register::Sgpr(VCC_LO as u16, 1),
        "vcc_hi" => Register::Sgpr(VCC_LO as u16 + 1, 1),
        "exec_lo" => Register::Sgpr(EXEC_LO as u16, 1),
        "exec_hi" => Register::Sgpr(EXEC_LO as u16 + 1, 1),
        "m0" => Register::Sgpr(M0 as u16, 1),
        "scc" => Register::Scc,
        "pc" => Register::Pc,
        "mode" => Register::Mode,
        "status" => Register::Status,
        _ => {
            let ttmp = text.strip_prefix("ttmp");
            let (rest, base, limit) = match (ttmp, text.as_bytes().first()?) {
                (Some(rest), _) => (rest, TTMP.start as u16, TTMP.len() as u16),
                (None, b's') => (&text[1..], 0, VCC_LO as u16),
                (None, b'v') => (&text[1..], 0, VGPRS as u16),
                _ => return None,
            };
            let (first, last) = match rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')) {
                Some(range) => match range.split_once(':') {
                    Some((a, b)) => (a.trim().parse::<u16>().ok()?, b.trim().parse::<u16>().ok()?),
                    None => {
                        let n = range.trim().parse::<u16>().ok()?;
                        (n, n)
                    }
                },
                None => {
                    let n = rest.parse::<u16>().ok()?;
                    (n, n)
                }
            };
            if last < first || last >= limit {
                return None;
            }
            let count = last - first + 1;
            if text.starts_with('v') {
                Register::Vgpr(first, count)
            } else {
                Register::Sgpr(base + first, count)
            }
        }
    })
}

/// A register of an architecture with its own register names; `exec` and `pc` exist on all of them.
fn own_register(text: &str, machine: &Machine) -> Option<Register> {
    let (vector, scalar) = (&machine.vector, &machine.scalar);
    match text {
        "exec" => Some(Register::Sgpr(EXEC_LO as u16, 1)),
        "pc" => Some(Register::Pc),
        _ => register_number(text, vector.prefix, vector.count).map(|n| Register::Vgpr(n, 1)).or_else(|| {
            register_number(text, scalar.prefix, scalar.count).map(|n| Register::Sgpr(scalar.code(n), 1))
        }),
    }
}

/// Evaluates an expression in the present state.
pub fn evaluate(text: &str, timeline: &timeline::Timeline<'_>, focus: Focus) -> Result<Value, String> {
    let tokens = lex(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, timeline, focus };
    let value = parser.binary(0)?;
    match parser.peek() {
        None => Ok(value),
        Some(t) => Err(format!("unexpected `{}` after the expression", t.text())),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Value),
    Name(String),
    Op(&'static str),
}

impl Token {
    fn text(&self) -> String {
        match self {
            Token::Number(v) => v.to_string(),
            Token::Name(n) => n.clone(),
            Token::Op(o) => (*o).to_string(),
        }
    }
}

const OPS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~",
    "!", "(", ")", "[", "]", ":", ".",
];

fn lex(text: &str) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let word = |f: &dyn Fn(char) -> bool| rest.find(|c| !f(c)).unwrap_or(rest.len());
        let len = if c.is_ascii_digit() {
            let mut len = word(&|c| c.is_ascii_alphanumeric() || c == '_');
            let hex = rest.starts_with("0x") || rest.starts_with("0b");
            // A fraction, but not a type after a dot.
            let fraction =
                rest[len..].strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
            if fraction && !hex {
                let tail = &rest[len + 1..];
                len += 1 + tail.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tail.len());
            }
            out.push(Token::Number(
                number(&rest[..len]).ok_or_else(|| format!("`{}` is not a number", &rest[..len]))?,
            ));
            len
        } else if c.is_alphabetic() || c == '_' || c == '$' {
            let len = word(&|c| c.is_alphanumeric() || c == '_' || c == '$');
            out.push(Token::Name(rest[..len].to_string()));
            len
        } else {
            let op = OPS.iter().find(|o| rest.starts_with(**o));
            let op = op.ok_or_else(|| format!("unexpected `{c}`"))?;
            out.push(Token::Op(op));
            op.len()
        };
        rest = rest[len..].trim_start();
    }
    Ok(out)
}

fn number(text: &str) -> Option<Value> {
    let clean = text.replace('_', "");
    if let Some(hex) = clean.strip_prefix("0x") {
        return i128::from_str_radix(hex, 16).ok().map(Value::Int);
    }
    if let Some(binary) = clean.strip_prefix("0b") {
        return i128::from_str_radix(binary, 2).ok().map(Value::Int);
    }
    clean.parse().ok().map(Value::Int).or_else(|| clean.parse().ok().map(Value::Float))
}

/// Nesting deeper than this is an error, not a stack overflow.
const MAX_DEPTH: usize = 64;

struct Parser<'t, 'm, 'a> {
    tokens: &'t [Token],
    at: usize,
    /// Nesting of signs, parentheses and indices.
    depth: usize,
    timeline: &'m timeline::Timeline<'a>,
    focus: Focus,
}

/// Precedence; 1 binds loosest.
fn precedence(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | "<=" | ">" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

impl Parser<'_, '_, '_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn eat(&mut self, op: &str) -> bool {
        let yes = matches!(self.peek(), Some(Token::Op(o)) if *o == op);
        self.at += yes as usize;
        yes
    }

    fn expect(&mut self, op: &str) -> Result<(), String> {
        if self.eat(op) {
            return Ok(());
        }
        let found =
            self.peek().map_or("the end of the expression".to_string(), |t| format!("`{}`", t.text()));
        Err(format!("expected `{op}`, found {found}"))
    }

    fn binary(&mut self, least: u8) -> Result<Value, String> {
        let mut left = self.unary()?;
        while let Some(Token::Op(op)) = self.peek() {
            let op = *op;
            let Some(s) = precedence(op).filter(|s| *s > least) else { break };
            self.at += 1;
            let right = self.binary(s)?;
            left = combine(op, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Value, String> {
        if self.depth == MAX_DEPTH {
            return Err("the expression nests too deeply".to_string());
        }
        self.depth += 1;
        let value = self.nested();
        self.depth -= 1;
        value
    }

    fn nested(&mut self) -> Result<Value, String> {
        if self.eat("-") {
            return Ok(match self.unary()? {
                Value::Int(v) => Value::Int(v.wrapping_neg()),
                Value::Float(v) => Value::Float(-v),
            });
        }
        if self.eat("!") {
            return Ok(Value::Int(!self.unary()?.truth() as i128));
        }
        if self.eat("~") {
            return match self.unary()? {
                Value::Int(v) => Ok(Value::Int(!v & 0xffff_ffff_ffff_ffff)),
                Value::Float(_) => Err("`~` needs an integer".to_string()),
            };
        }
        if self.eat("(") {
            let value = self.binary(0)?;
            self.expect(")")?;
            return Ok(value);
        }
        match self.peek().cloned() {
            Some(Token::Number(v)) => {
                self.at += 1;
                Ok(v)
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                self.name(&name)
            }
            Some(t) => Err(format!("expected a value, found `{}`", t.text())),
            None => Err("expected a value".to_string()),
        }
    }

    /// A register, an argument, or `$step`.
    fn name(&mut self, name: &str) -> Result<Value, String> {
        if name == "$step" {
            return Ok(Value::Int(self.timeline.time() as i128));
        }
        if name == "$lane" {
            return Ok(Value::Int(self.focus.lane as i128));
        }
        let wide = self.timeline.wave(self.focus.wave).size == 64;
        let arch = self.timeline.prepared.program.arch;
        // `s[2:3]` and `v[0:1]` are ranges, `v3[5]` is a lane.
        if matches!(name, "s" | "v" | "ttmp") && self.eat("[") {
            let (first, last) = self.range()?;
            let text = format!("{name}[{first}:{last}]");
            let found =
                register(&text, wide, arch).ok_or_else(|| format!("there are no registers {text}"))?;
            return self.register(found);
        }
        if let Some(found) = register(name, wide, arch) {
            return self.register(found);
        }
        if let Some(space) = Space::named(name)
            && self.eat("[")
        {
            let index = self.binary(0)?;
            self.expect("]")?;
            let Value::Int(at) = index else { return Err("an offset must be an integer".to_string()) };
            let at = u64::try_from(at).map_err(|_| format!("{at} is not an offset"))?;
            return self.stored(space, at);
        }
        if let Some(buffer) = self.timeline.prepared.buffer(name) {
            let (address, dtype, len) = (buffer.address, buffer.dtype, buffer.len_bytes as i128);
            if !self.eat("[") {
                return Ok(Value::Int(self.timeline.memory().own_address(address) as i128));
            }
            let index = self.binary(0)?;
            self.expect("]")?;
            let Value::Int(index) = index else { return Err("an index must be an integer".to_string()) };
            let size = dtype.size() as i128;
            if !(0..len / size).contains(&index) {
                return Err(format!("{name} has {} elements", len / size));
            }
            let at = (address as i128 + index * size) as u64;
            let bits = self.timeline.memory().load_value(at, size as u32).map_err(|e| e.to_string())?;
            return self.viewed(bits as u64, Some(dtype));
        }
        let label = self.timeline.prepared.labels.iter().find(|l| l.0 == name);
        if let Some((_, pc)) = label {
            return Ok(Value::Int(self.timeline.prepared.program.address(*pc) as i128));
        }
        let names: Vec<&str> = self.timeline.prepared.buffers.iter().map(|b| b.name.as_str()).collect();
        Err(match nearest(name, &names) {
            Some(near) => format!("there is no `{name}`; did you mean `{near}`?"),
            None => format!("`{name}` is not a register, argument or label"),
        })
    }

    fn range(&mut self) -> Result<(i128, i128), String> {
        let int = |v| match v {
            Value::Int(n) => Ok(n),
            Value::Float(_) => Err("a register number must be an integer".to_string()),
        };
        let first = int(self.binary(0)?)?;
        let last = if self.eat(":") { int(self.binary(0)?)? } else { first };
        self.expect("]")?;
        Ok((first, last))
    }

    fn register(&mut self, found: Register) -> Result<Value, String> {
        let wave = self.timeline.wave(self.focus.wave);
        let mut lane = self.focus.lane;
        if matches!(found, Register::Vgpr(..)) && self.eat("[") {
            match self.binary(0)? {
                Value::Int(n) if (0..wave.size as i128).contains(&n) => lane = n as u32,
                other => {
                    return Err(format!(
                        "there is no lane {other}; the wave has lanes 0 to {}",
                        wave.size - 1
                    ));
                }
            }
            self.expect("]")?;
        }
        let dwords = |count: u16, get: &dyn Fn(u32) -> u32| {
            (0..count.min(2) as u32).fold(0u64, |v, k| v | (get(k) as u64) << (32 * k))
        };
        let bits = match found {
            Register::Sgpr(first, count) => dwords(count, &|k| wave.sgpr(first as u32 + k)),
            Register::Vgpr(first, count) => dwords(count, &|k| wave.vgpr(lane, first as u32 + k)),
            Register::Scc => wave.scc as u64,
            Register::Pc => self.timeline.prepared.program.address(wave.pc),
            Register::Mode => wave.mode as u64,
            Register::Status => {
                hwreg::status(self.timeline.prepared.program.arch, wave, &self.timeline.group.shared) as u64
            }
        };
        self.viewed(bits, None)
    }

    /// A value in LDS, scratch or global memory.
    fn stored(&mut self, space: Space, at: u64) -> Result<Value, String> {
        let half = self.half();
        let dtype = self.typed()?;
        let len = if half.is_some() { 4 } else { dtype.map_or(4, DType::size) };
        let mut bytes = [0; 8];
        space.read(self.timeline, self.focus, at, &mut bytes[..len])?;
        let bits = u64::from_le_bytes(bytes);
        Ok(match (half, dtype) {
            (None, None) => Value::Int(bits as i128),
            (None, Some(dtype)) => read_as(bits, dtype),
            (Some(shift), dtype) => read_as(bits >> shift & 0xffff, dtype.unwrap_or(DType::U16)),
        })
    }

    /// Bits, or a half of them, as the type behind them, or as `otherwise`.
    fn viewed(&mut self, bits: u64, otherwise: Option<DType>) -> Result<Value, String> {
        if let Some(shift) = self.half() {
            let dtype = self.typed()?.unwrap_or(DType::U16);
            return Ok(read_as(bits >> shift & 0xffff, dtype));
        }
        Ok(match self.typed()?.or(otherwise) {
            Some(dtype) => read_as(bits, dtype),
            None => Value::Int(bits as i128),
        })
    }

    /// `.lo` or `.hi`, as a number of bits to shift.
    fn half(&mut self) -> Option<u32> {
        let (Some(Token::Op(".")), Some(Token::Name(name))) = (self.peek(), self.tokens.get(self.at + 1))
        else {
            return None;
        };
        let shift = match name.as_str() {
            "lo" => 0,
            "hi" => 16,
            _ => return None,
        };
        self.at += 2;
        Some(shift)
    }

    /// An optional type: `.f32` or `as f32`.
    fn typed(&mut self) -> Result<Option<DType>, String> {
        let dot = self.eat(".");
        let named = matches!(self.peek(), Some(Token::Name(n)) if n == "as");
        if !dot && !named {
            return Ok(None);
        }
        self.at += named as usize;
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return Err("expected a type: f32, i32, u32 …".to_string());
        };
        self.at += 1;
        let found = DType::from_name(&name);
        found.map(Some).ok_or_else(|| format!("`{name}` is not a type; types are {}", DType::names()))
    }
}

/// Memory that expressions name by `lds[…]`, `scratch[…]` and `mem[…]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// LDS of the workgroup.
    Lds,
    /// Scratch of a lane.
    Scratch,
    /// Global memory.
    Global,
}

impl Space {
    /// The one with a name.
    pub fn named(name: &str) -> Option<Space> {
        match name {
            "lds" => Some(Space::Lds),
            "scratch" => Some(Space::Scratch),
            "mem" => Some(Space::Global),
            _ => None,
        }
    }

    /// Where bytes at an offset are in LDS or in the scratch of all waves; of global memory, the address.
    pub fn range(
        self,
        timeline: &timeline::Timeline<'_>,
        focus: Focus,
        at: u64,
        len: usize,
    ) -> Result<u64, String> {
        let shape = &timeline.prepared.shape;
        let (name, start, size) = match self {
            Space::Global => {
                let word = timeline.memory().counts_words();
                return Ok(if word { wavesim_machine::memory::word_address(at) } else { at });
            }
            Space::Lds => ("LDS", 0, shape.lds_bytes as u64),
            Space::Scratch => {
                let lane = focus.wave as u64 * shape.wave_size as u64 + focus.lane as u64;
                ("scratch", lane * shape.scratch_bytes as u64, shape.scratch_bytes as u64)
            }
        };
        let end = at.checked_add(len as u64).filter(|end| *end <= size);
        end.map(|_| start + at).ok_or_else(|| format!("{name} has {size} bytes"))
    }

    /// Reads bytes.
    pub fn read(
        self,
        timeline: &timeline::Timeline<'_>,
        focus: Focus,
        at: u64,
        out: &mut [u8],
    ) -> Result<(), String> {
        let at = self.range(timeline, focus, at, out.len())?;
        let from = match self {
            Space::Global => {
                let memory = timeline.memory();
                return memory.read(at, out).map_err(|e| memory.explain(&e));
            }
            Space::Lds => &timeline.group.lds,
            Space::Scratch => &timeline.group.scratch,
        };
        out.copy_from_slice(&from[at as usize..at as usize + out.len()]);
        Ok(())
    }
}

/// `NAME[FIRST..LAST]` with what follows it: elements, lanes or bytes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the parts of the text")]
pub struct Slice<'t> {
    pub name: &'t str,
    pub first: &'t str,
    pub last: &'t str,
    pub tail: &'t str,
}

/// Splits a slice; `None` if the text is none.
pub fn slice(text: &str) -> Option<Slice<'_>> {
    let dots = text.find("..")?;
    let open = text[..dots].rfind('[')?;
    let close = dots + text[dots..].find(']')?;
    let (name, tail) = (text[..open].trim(), text[close + 1..].trim());
    let last = text[dots + 2..close].trim_start_matches('=').trim();
    Some(Slice { name, first: text[open + 1..dots].trim(), last, tail })
}

/// The distance of neighbours in a slice: bytes of memory are taken by the size of the type behind it.
pub fn step_of(name: &str, tail: &str) -> usize {
    let dtype = DType::from_name(tail.trim_start_matches('.').trim_start_matches("as ").trim());
    Space::named(name).map_or(1, |_| dtype.map_or(4, DType::size))
}

/// The most similar name of a list, if one is at most two edits away.
pub fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    diag::nearest_within(name, names.iter().copied(), 2)
}

/// Reinterprets bits as a type.
pub fn read_as(bits: u64, dtype: DType) -> Value {
    match dtype.decode(&bits.to_le_bytes()[..dtype.size()]) {
        Num::Int(v) => Value::Int(v),
        Num::Bits(v) => Value::Int(v as i128),
        Num::Float(v) => Value::Float(v),
    }
}

fn combine(op: &str, a: Value, b: Value) -> Result<Value, String> {
    let truth = |t: bool| Ok(Value::Int(t as i128));
    match op {
        "&&" => return truth(a.truth() && b.truth()),
        "||" => return truth(a.truth() || b.truth()),
        _ => {}
    }
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        let shift = |b: i128| u32::try_from(b).ok().filter(|b| *b < 64);
        return Ok(Value::Int(match op {
            "|" => a | b,
            "^" => a ^ b,
            "&" => a & b,
            "==" => (a == b) as i128,
            "!=" => (a != b) as i128,
            "<" => (a < b) as i128,
            "<=" => (a <= b) as i128,
            ">" => (a > b) as i128,
            ">=" => (a >= b) as i128,
            "<<" => shift(b).map_or(0, |b| a << b),
            ">>" => shift(b).map_or(0, |b| a >> b),
            "+" => a.wrapping_add(b),
            "-" => a.wrapping_sub(b),
            "*" => a.wrapping_mul(b),
            "/" => a.checked_div(b).ok_or("division by zero")?,
            _ => a.checked_rem(b).ok_or("division by zero")?,
        }));
    }
    let (x, y) = (a.float(), b.float());
    match op {
        "==" => truth(x == y),
        "!=" => truth(x != y),
        "<" => truth(x < y),
        "<=" => truth(x <= y),
        ">" => truth(x > y),
        ">=" => truth(x >= y),
        "+" => Ok(Value::Float(x + y)),
        "-" => Ok(Value::Float(x - y)),
        "*" => Ok(Value::Float(x * y)),
        "/" => Ok(Value::Float(x / y)),
        _ => Err(format!("`{op}` needs integers")),
    }
}
