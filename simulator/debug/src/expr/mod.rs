//! Expressions of the debugger: `v3[5] > 10`, `s[2:3] + 8`, `out_y[3].f32 * 2`, `exec == 0xff && scc`.
//!
//! A register reads as an unsigned integer; a type after a dot or `as` reinterprets the bits. `vN` reads the
//! selected lane, `vN[lane]` another one. The name of an argument is its address, and `name[i]` is an element
//! of the declared type. `lds[OFFSET]`, `scratch[OFFSET]` (of the selected lane) and `mem[ADDRESS]` are
//! dwords at a byte offset, or values of the type after it. `.lo` and `.hi` are the halves of a 32-bit value.
//! Names of variables of the source read them in the selected frame: `acc`, `tile[3]`, `p.x`, `q->n`, `*q`,
//! `&p`. `lane` is the selected lane, `$step` the number of steps taken. `any(…)` and `all(…)` are evaluated in
//! the active lanes, `a ? b : c` as in C. Expressions have no side effects.

mod parse;
mod tree;

pub use tree::{Expression, Scope};

use super::timeline;
use isa_spec::arith::decimal::Decimal;
use isa_spec::diag;
use wavesim_array::{DType, Num};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::{Machine, register_number};
use wavesim_machine::exec::watch::Place;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::VGPRS;
use wavesim_machine::state::wave::{EXEC_LO, M0, TTMP, VCC_LO};

/// A value: an integer or a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer of any type.
    Int(i128),
    /// A float of any type.
    Float(Decimal),
}

impl Value {
    /// Returns whether the value is not zero.
    pub fn truth(self) -> bool {
        match self {
            Value::Int(v) => v != 0,
            Value::Float(v) => v.to_f64() != 0.0,
        }
    }

    /// Returns the value as f64.
    pub fn float(self) -> f64 {
        match self {
            Value::Int(v) => v as f64,
            Value::Float(v) => v.to_f64(),
        }
    }

    /// Returns the value as register bits; a float is converted to the bits of an f32.
    pub fn bits(self) -> u64 {
        match self {
            Value::Int(v) => v as u64,
            Value::Float(v) => v.to_f32().to_bits() as u64,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{:?}", v.to_f64()),
        }
    }
}

/// The selected wave and lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Focus {
    /// Index in the workgroup.
    pub wave: usize,
    /// Index in the wave.
    pub lane: u32,
}

/// Registers that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Register {
    /// Operand code of the first SGPR, and the number of SGPRs.
    Sgpr(u16, u16),
    /// The first VGPR, and the number of VGPRs.
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

/// Parses `v3`, `v[0:3]`, `s2`, `s[2:3]`, `vcc`, `exec_lo`, `m0`, `scc`, `pc`, `mode` or `status`. With
/// `wide` (wave64), masks take two registers.
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

/// Parses a register of an architecture with register names of its own; `exec` and `pc` exist on all of them.
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

/// Parses and evaluates an expression in the current state.
///
/// # Errors
/// The expression is invalid or has no value.
pub fn evaluate(text: &str, timeline: &timeline::Timeline<'_>, focus: Focus) -> Result<Value, String> {
    Expression::parse(text, timeline.prepared)?.evaluate(&Scope::new(timeline, focus))
}

/// Memory that expressions access with `lds[…]`, `scratch[…]` and `mem[…]`.
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
    /// Returns the address space with a name.
    pub fn named(name: &str) -> Option<Space> {
        match name {
            "lds" => Some(Space::Lds),
            "scratch" => Some(Space::Scratch),
            "mem" => Some(Space::Global),
            _ => None,
        }
    }

    /// Returns the place that accesses of the address space have.
    pub fn place(self) -> Place {
        match self {
            Space::Lds => Place::Lds,
            Space::Scratch => Place::Scratch,
            Space::Global => Place::Global,
        }
    }

    /// Converts an address in the kernel's unit to bytes.
    pub(super) fn address(memory: &Memory, offset: u64) -> u64 {
        if memory.is_word_addressed() { wavesim_machine::memory::word_address(offset) } else { offset }
    }

    /// Returns the position of bytes in LDS or in the scratch of all waves, lane by lane; for global memory, the address.
    pub fn range(
        self,
        timeline: &timeline::Timeline<'_>,
        focus: Focus,
        offset: u64,
        len: usize,
    ) -> Result<u64, String> {
        let shape = &timeline.prepared.shape;
        let (name, start, size) = match self {
            Space::Global => return Ok(Space::address(timeline.memory(), offset)),
            Space::Lds => ("LDS", 0, shape.lds_bytes as u64),
            Space::Scratch => {
                let lane = focus.wave as u64 * shape.wave_size as u64 + focus.lane as u64;
                ("scratch", lane * shape.scratch_bytes as u64, shape.scratch_bytes as u64)
            }
        };
        let end = offset.checked_add(len as u64).filter(|end| *end <= size);
        end.map(|_| start + offset).ok_or_else(|| format!("{name} has {size} bytes"))
    }

    /// Returns the edit of a byte at a position that [`Space::range`] has returned.
    pub(super) fn edit(self, at: u64, value: u8) -> timeline::Edit {
        match self {
            Space::Lds => timeline::Edit::Lds { offset: at as usize, value },
            Space::Scratch => timeline::Edit::Scratch { offset: at as usize, value },
            Space::Global => timeline::Edit::Memory { address: at, value },
        }
    }

    /// Reads bytes.
    pub fn read(
        self,
        timeline: &timeline::Timeline<'_>,
        focus: Focus,
        address: u64,
        out: &mut [u8],
    ) -> Result<(), String> {
        let at = self.range(timeline, focus, address, out.len())?;
        match self {
            Space::Global => {
                let memory = timeline.memory();
                memory.read(at, out).map_err(|e| memory.explain(&e))
            }
            Space::Lds => {
                out.copy_from_slice(&timeline.group.lds[at as usize..at as usize + out.len()]);
                Ok(())
            }
            Space::Scratch => {
                let lane = focus.wave * timeline.prepared.shape.wave_size as usize + focus.lane as usize;
                let read = timeline.group.read_scratch(lane, address, out);
                read.ok_or_else(|| format!("scratch has no {} bytes at {address}", out.len()))
            }
        }
    }
}

/// `NAME[FIRST..LAST]` and the text after it: elements, lanes or bytes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the parts of the text")]
pub struct Slice<'t> {
    pub name: &'t str,
    pub first: &'t str,
    pub last: &'t str,
    pub tail: &'t str,
}

/// Splits a slice; returns `None` if the text is not one.
pub fn slice(text: &str) -> Option<Slice<'_>> {
    let dots = text.find("..")?;
    let open = text[..dots].rfind('[')?;
    let close = dots + text[dots..].find(']')?;
    let (name, tail) = (text[..open].trim(), text[close + 1..].trim());
    let last = text[dots + 2..close].trim_start_matches('=').trim();
    Some(Slice { name, first: text[open + 1..dots].trim(), last, tail })
}

/// Returns the stride of a slice: for memory, the size of the type after it.
pub fn step_of(name: &str, tail: &str) -> usize {
    let dtype = DType::from_name(tail.trim_start_matches('.').trim_start_matches("as ").trim());
    Space::named(name).map_or(1, |_| dtype.map_or(4, DType::size))
}

/// Returns the most similar name of a list, if it is at most two edits away.
pub fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    diag::nearest_within(name, names.iter().copied(), 2)
}

/// Reinterprets bits as a type.
pub fn read_as(bits: u64, dtype: DType) -> Value {
    match dtype.decode(&bits.to_le_bytes()[..dtype.size()]) {
        Num::Int(v) => Value::Int(v),
        Num::Bits(v) => Value::Int(v as i128),
        n @ (Num::Float(_) | Num::Decimal(_)) => Value::Float(n.as_decimal()),
    }
}
