//! Parsed expressions and their evaluation: a condition is parsed once and evaluated at each hit.

use super::{Focus, Register, Space, Value, read_as, register};
use crate::timeline::Timeline;
use crate::variables::{self, Object, Part};
use std::fmt;
use wavesim_array::DType;
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::hwreg;
use wavesim_machine::state::Wave;

/// A parsed expression.
#[derive(Clone, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

/// Expressions are equal if their texts are.
impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({})", self.text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A node of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Value(Value),
    /// `$step`.
    Step,
    /// `$lane`.
    Lane,
    /// A register, or registers, in the selected lane or another one.
    Register {
        register: Register,
        lane: Option<Box<Node>>,
        view: View,
    },
    /// Registers whose numbers are computed: `s[2 * $lane]`.
    Numbered {
        file: String,
        first: Box<Node>,
        last: Option<Box<Node>>,
        lane: Option<Box<Node>>,
        view: View,
    },
    /// Memory at an offset.
    Stored {
        space: Space,
        at: Box<Node>,
        view: View,
    },
    /// An element of an argument.
    Element {
        buffer: usize,
        index: Box<Node>,
        view: View,
    },
    /// A variable of the source, or a part of one. If it is not in scope, or only in the kernel, the argument
    /// of the same name.
    Variable {
        name: String,
        parts: Vec<Select>,
        dtype: Option<DType>,
        argument: Option<Box<Node>>,
    },
    /// Whether an expression is not zero in any active lane, or in all of them.
    Lanes {
        all: bool,
        of: Box<Node>,
    },
    /// `a ? b : c`.
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Negated(Box<Node>),
    Not(Box<Node>),
    Inverted(Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
}

/// A part of a variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Select {
    Part(Part),
    Element(Node),
}

/// An interpretation of bits: a half of them, as a type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Number of bits to shift.
    pub half: Option<u32>,
    /// The type; without one, an unsigned integer.
    pub dtype: Option<DType>,
}

impl View {
    fn of(self, bits: u64) -> Value {
        match (self.half, self.dtype) {
            (Some(shift), dtype) => read_as(bits >> shift & 0xffff, dtype.unwrap_or(DType::U16)),
            (None, Some(dtype)) => read_as(bits, dtype),
            (None, None) => Value::Int(bits as i128),
        }
    }
}

/// The state in which an expression is evaluated.
pub struct Scope<'s> {
    prepared: &'s Prepared,
    wave: &'s Wave,
    lane: u32,
    /// The state of the workgroup; absent while the wave runs.
    timeline: Option<(&'s Timeline<'s>, Focus)>,
}

impl<'s> Scope<'s> {
    /// Creates a scope of the current state.
    pub fn new(timeline: &'s Timeline<'_>, focus: Focus) -> Scope<'s> {
        let wave = timeline.frame_wave(focus.wave);
        Scope { prepared: timeline.prepared, wave, lane: focus.lane, timeline: Some((timeline, focus)) }
    }

    /// Creates a scope of a running wave, which suffices for expressions that are
    /// [wave-local](Expression::is_wave_local).
    pub fn for_running_wave(prepared: &'s Prepared, wave: &'s Wave, lane: u32) -> Scope<'s> {
        Scope { prepared, wave, lane, timeline: None }
    }

    fn timeline(&self) -> Result<(&'s Timeline<'s>, Focus), String> {
        self.timeline.ok_or_else(|| "the wave runs".to_string())
    }
}

impl Expression {
    /// Parses an expression over the registers and arguments of a launch.
    ///
    /// # Errors
    /// The text is not a valid expression.
    pub fn parse(text: &str, prepared: &Prepared) -> Result<Expression, String> {
        let root = super::parse::parse(text, prepared)?;
        Ok(Expression { text: text.trim().to_string(), root })
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// The expression has no value: an index is out of range, or a division by zero.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, String> {
        self.root.value(scope)
    }

    /// Returns the variable of the source, or the part of one, that the expression names; `None` if it is
    /// something else.
    ///
    /// # Errors
    /// The variable is not in scope, or does not have this part.
    pub fn object(&self, scope: &Scope<'_>) -> Option<Result<Object, String>> {
        let Node::Variable { name, dtype: None, argument, .. } = &self.root else { return None };
        let (timeline, focus) = scope.timeline?;
        let hidden = argument.is_none() || variables::hides_argument(timeline, focus.wave, name);
        hidden.then(|| self.root.object(scope))
    }

    /// Returns whether the expression names variables of the source.
    pub fn has_variables(&self) -> bool {
        self.root.has_variables()
    }

    /// Returns whether the value depends only on registers of the wave and global memory.
    pub fn is_wave_local(&self) -> bool {
        self.root.is_wave_local()
    }
}

impl Node {
    fn parts(&self) -> [Option<&Node>; 3] {
        match self {
            Node::Value(_) | Node::Step | Node::Lane | Node::Variable { .. } => [None; 3],
            Node::Lanes { of, .. } => [Some(of), None, None],
            Node::Choice(a, b, c) => [Some(a), Some(b), Some(c)],
            Node::Register { lane, .. } => [lane.as_deref(), None, None],
            Node::Numbered { first, last, lane, .. } => [Some(first), last.as_deref(), lane.as_deref()],
            Node::Stored { at: part, .. }
            | Node::Element { index: part, .. }
            | Node::Negated(part)
            | Node::Not(part)
            | Node::Inverted(part) => [Some(part), None, None],
            Node::Binary(_, a, b) => [Some(a), Some(b), None],
        }
    }

    fn has_variables(&self) -> bool {
        matches!(self, Node::Variable { .. }) || self.parts().into_iter().flatten().any(Node::has_variables)
    }

    fn is_wave_local(&self) -> bool {
        let more = match self {
            Node::Step | Node::Variable { .. } => true,
            Node::Register { register, .. } => *register == Register::Status,
            Node::Stored { space, .. } => *space != Space::Global,
            _ => false,
        };
        !more && self.parts().into_iter().flatten().all(Node::is_wave_local)
    }

    fn value(&self, scope: &Scope<'_>) -> Result<Value, String> {
        Ok(match self {
            Node::Value(value) => *value,
            Node::Step => Value::Int(scope.timeline()?.0.time() as i128),
            Node::Lane => Value::Int(scope.lane as i128),
            Node::Register { register, lane, view } => {
                view.of(bits(*register, lane_number(lane.as_deref(), scope)?, scope)?)
            }
            Node::Numbered { file, first, last, lane, view } => {
                let first = register_index(first.value(scope)?)?;
                let last = last.as_ref().map_or(Ok(first), |last| register_index(last.value(scope)?))?;
                let found =
                    numbered(file, first, last, scope.wave.size() == 64, scope.prepared.program.arch)?;
                view.of(bits(found, lane_number(lane.as_deref(), scope)?, scope)?)
            }
            Node::Stored { space, at, view } => {
                let at = offset(at.value(scope)?)?;
                let len = if view.half.is_some() { 4 } else { view.dtype.map_or(4, DType::size) };
                let mut bytes = [0; 8];
                match (space, scope.timeline) {
                    (Space::Global, None) => {
                        let memory = &scope.prepared.memory;
                        let at = Space::address(memory, at);
                        memory.read(at, &mut bytes[..len]).map_err(|e| memory.explain(&e))?;
                    }
                    _ => {
                        let (timeline, focus) = scope.timeline()?;
                        space.read(timeline, focus, at, &mut bytes[..len])?;
                    }
                }
                view.of(u64::from_le_bytes(bytes))
            }
            Node::Element { buffer, index, view } => {
                let buffer = &scope.prepared.buffers[*buffer];
                let Value::Int(index) = index.value(scope)? else {
                    return Err("an index must be an integer".to_string());
                };
                let (size, len) = (buffer.dtype.size() as i128, buffer.len_bytes as i128);
                if !(0..len / size).contains(&index) {
                    return Err(format!("{} has {} elements", buffer.name, len / size));
                }
                let at = (buffer.address as i128 + index * size) as u64;
                let bits = scope.prepared.memory.load_value(at, size as u32).map_err(|e| e.to_string())?;
                let own = view.half.is_none().then_some(buffer.dtype);
                View { dtype: view.dtype.or(own), ..*view }.of(bits as u64)
            }
            Node::Variable { name, dtype, argument, .. } => {
                let (timeline, focus) = scope.timeline()?;
                match argument {
                    Some(argument) if !variables::hides_argument(timeline, focus.wave, name) => {
                        argument.value(scope)?
                    }
                    _ => self.object(scope)?.value(timeline, focus, *dtype)?,
                }
            }
            Node::Lanes { all, of } => {
                let exec = scope.wave.exec();
                let lanes = (0..scope.wave.size()).filter(|lane| exec >> lane & 1 == 1);
                let mut result = *all;
                for lane in lanes {
                    let timeline = scope.timeline.map(|(t, focus)| (t, Focus { lane, ..focus }));
                    if of.value(&Scope { lane, timeline, ..*scope })?.truth() != *all {
                        result = !*all;
                        break;
                    }
                }
                Value::Int(result as i128)
            }
            Node::Choice(condition, yes, no) => {
                if condition.value(scope)?.truth() {
                    yes.value(scope)?
                } else {
                    no.value(scope)?
                }
            }
            Node::Negated(a) => match a.value(scope)? {
                Value::Int(v) => Value::Int(v.wrapping_neg()),
                Value::Float(v) => Value::Float(-v),
            },
            Node::Not(a) => Value::Int(!a.value(scope)?.truth() as i128),
            Node::Inverted(a) => match a.value(scope)? {
                Value::Int(v) => Value::Int(!v & 0xffff_ffff_ffff_ffff),
                Value::Float(_) => return Err("`~` needs an integer".to_string()),
            },
            Node::Binary(op, a, b) => combine(op, a.value(scope)?, b.value(scope)?)?,
        })
    }
}

impl Node {
    /// Returns the variable, or the part of one, that the expression names.
    fn object(&self, scope: &Scope<'_>) -> Result<Object, String> {
        let Node::Variable { name, parts, .. } = self else {
            return Err("the expression is not a variable".to_string());
        };
        let (timeline, focus) = scope.timeline()?;
        let mut object = variables::find(timeline, focus, name)?;
        for part in parts {
            let part = match part {
                Select::Part(part) => part.clone(),
                Select::Element(index) => match index.value(scope)? {
                    Value::Int(index) => Part::Element(index),
                    Value::Float(_) => return Err("an index must be an integer".to_string()),
                },
            };
            object = object.part(timeline, focus, &part)?;
        }
        Ok(object)
    }
}

fn offset(value: Value) -> Result<u64, String> {
    let Value::Int(at) = value else { return Err("an offset must be an integer".to_string()) };
    u64::try_from(at).map_err(|_| format!("{at} is not an offset"))
}

pub(super) fn register_index(value: Value) -> Result<i128, String> {
    match value {
        Value::Int(n) => Ok(n),
        Value::Float(_) => Err("a register number must be an integer".to_string()),
    }
}

/// Returns the registers `s[first:last]`, `v[first:last]` or `ttmp[first:last]`.
pub(super) fn numbered(
    file: &str,
    first: i128,
    last: i128,
    wide: bool,
    arch: Arch,
) -> Result<Register, String> {
    let text = format!("{file}[{first}:{last}]");
    register(&text, wide, arch).ok_or_else(|| format!("there are no registers {text}"))
}

fn lane_number(lane: Option<&Node>, scope: &Scope<'_>) -> Result<u32, String> {
    let Some(lane) = lane else { return Ok(scope.lane) };
    let size = scope.wave.size();
    match lane.value(scope)? {
        Value::Int(n) if (0..size as i128).contains(&n) => Ok(n as u32),
        other => Err(format!("there is no lane {other}; the wave has lanes 0 to {}", size - 1)),
    }
}

/// Returns the bits of a register, or of the first two of several.
fn bits(register: Register, lane: u32, scope: &Scope<'_>) -> Result<u64, String> {
    let wave = scope.wave;
    let dwords = |count: u16, get: &dyn Fn(u32) -> u32| {
        (0..count.min(2) as u32).fold(0u64, |v, k| v | (get(k) as u64) << (32 * k))
    };
    let program = &scope.prepared.program;
    Ok(match register {
        Register::Sgpr(first, count) => dwords(count, &|k| wave.sgpr(first as u32 + k)),
        Register::Vgpr(first, count) => dwords(count, &|k| wave.vgpr(lane, first as u32 + k)),
        Register::Scc => wave.scc as u64,
        Register::Pc => program.address(wave.pc),
        Register::Mode => wave.mode as u64,
        Register::Status => hwreg::status(program.arch, wave, &scope.timeline()?.0.group.shared) as u64,
    })
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
        "+" => Ok(Value::Float((x + y).into())),
        "-" => Ok(Value::Float((x - y).into())),
        "*" => Ok(Value::Float((x * y).into())),
        "/" => Ok(Value::Float((x / y).into())),
        _ => Err(format!("`{op}` needs integers")),
    }
}
