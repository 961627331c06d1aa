//! Locations of variables: DWARF expressions (DWARF 5, *Location Descriptions*), as LLVM writes them for AMDGPU.
//!
//! LLVM 19 marks the address space of a variable with `DW_OP_constu N, DW_OP_swap, DW_OP_xderef` at the end of
//! its expression. It also does so for a variable that the optimiser has moved from memory to a register
//! (`DW_OP_bregx v5+0, …`) or replaced by a value (`…, DW_OP_stack_value`), which then is not in memory. VGPRs
//! stand for the register in the lane of interest.

use super::{DebugInfo, Entry, Function, Reader, Unit, Variable};
use gimli::{AttributeValue, Operation};
use wavesim_machine::state::wave::{ACC, EXEC_LO, VCC_LO};

/// An address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Global memory, or an address of FLAT addressing.
    Generic,
    /// Scratch of the lane.
    Private,
    /// LDS.
    Local,
}

/// The machine, as far as a location depends on it.
pub trait State {
    /// Returns a register by its DWARF number, in the lane of interest.
    fn register(&self, number: u16) -> Option<u32>;

    /// Reads memory at an address of the space. Addresses of variables in global memory are those of the file.
    fn memory(&self, space: Space, address: u64, out: &mut [u8]) -> Result<(), String>;

    /// Converts an address of the file to one in memory.
    fn loaded(&self, address: u64) -> u64;
}

/// A part of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Piece {
    /// A register, and those after it if the part is larger.
    Register {
        number: u16,
    },
    Memory {
        space: Space,
        address: u64,
    },
    /// A value that is stored nowhere.
    Value(u64),
    /// The compiler has dropped it.
    Missing,
}

/// Where a variable is: its parts, each with its size in bytes; `None` for the whole variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location(pub Vec<(Piece, Option<u64>)>);

/// Why a variable has no location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// It has none at this address.
    OptimisedOut,
    /// The compiler has not recorded its offset in LDS.
    Lds,
    /// The expression uses an operation that is not supported.
    Unsupported(String),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::OptimisedOut => write!(f, "optimised out"),
            Missing::Lds => write!(f, "its offset in LDS is not recorded by the compiler"),
            Missing::Unsupported(what) => write!(f, "its location has an unsupported operation: {what}"),
        }
    }
}

/// DWARF numbers of the registers that hold the stack pointer and the frame pointer, s32 and s33 (LLVM AMDGPUUsage,
/// *Register Identifier*).
const POINTERS: std::ops::Range<u16> = 64..66;

/// A register, by its DWARF number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// An SGPR, by operand code.
    Sgpr(u16),
    /// A VGPR of the lane of interest.
    Vgpr(u16),
}

/// Returns the register with a DWARF number (LLVM AMDGPUUsage, *Register Identifier*).
pub fn register(number: u16) -> Option<Register> {
    Some(match number {
        1 | 17 => Register::Sgpr(EXEC_LO as u16),
        32..=95 => Register::Sgpr(number - 32),
        512 | 768 => Register::Sgpr(VCC_LO as u16),
        1088..=1129 => Register::Sgpr(number - 1088 + 64),
        1536..=2047 => Register::Vgpr(number - 1536),
        2048..=2303 => Register::Vgpr(number - 2048 + ACC as u16),
        2560..=2815 => Register::Vgpr(number - 2560),
        3072..=3327 => Register::Vgpr(number - 3072 + ACC as u16),
        3584..=4095 => Register::Vgpr(number - 3584 + 512),
        _ => return None,
    })
}

/// A value on the stack of an expression.
#[derive(Clone, Copy)]
struct Entry64 {
    value: u64,
    /// It is the frame's address, or was computed from it.
    of_frame: bool,
}

pub(super) type Op<'a> = Operation<super::Slice<'a>>;

impl DebugInfo {
    /// Returns where a variable is at an address of the code.
    ///
    /// # Errors
    /// The variable has no location there.
    pub fn locate(&self, variable: &Variable, address: u64, state: &dyn State) -> Result<Location, Missing> {
        let inner = self.inner.as_ref().ok_or(Missing::OptimisedOut)?;
        let reader = Reader::new(inner);
        let unit = reader.units.get(variable.unit).ok_or(Missing::OptimisedOut)?;
        let entry = unit.entry(variable.entry).map_err(|_| Missing::OptimisedOut)?;
        if let Some(value) = entry.attr(gimli::DW_AT_const_value) {
            let bits = value.udata_value().or(value.sdata_value().map(|v| v as u64));
            return bits.map(|bits| Location(vec![(Piece::Value(bits), None)])).ok_or(Missing::OptimisedOut);
        }
        let expression = reader.expression(unit, &entry, address).ok_or(Missing::OptimisedOut)?;
        let frame_base = || reader.frame_base(variable.function.as_ref(), address, state);
        let location = reader.evaluate(unit, expression, &frame_base, state)?;
        let first = location.0.first().map(|p| p.0);
        // LLVM packs the LDS variables of a kernel, and its debug information has address 0 for each.
        if first == Some(Piece::Memory { space: Space::Local, address: 0 }) && inner.index().lds_variables > 1
        {
            return Err(Missing::Lds);
        }
        Ok(location)
    }
}

impl<'a> Reader<'a> {
    /// Returns whether a variable is in LDS.
    pub(super) fn in_lds(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> bool {
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location) else {
            return false;
        };
        let Ok(ops) = operations(unit, expression) else { return false };
        matches!(ops.first(), Some(Op::AddressIndex { .. } | Op::Address { .. }))
            && split_space(&ops).1 == Some(2)
    }

    /// Returns the expression of a variable at an address.
    fn expression(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        address: u64,
    ) -> Option<gimli::Expression<super::Slice<'a>>> {
        let value = entry.attr_value(gimli::DW_AT_location)?;
        if let AttributeValue::Exprloc(expression) = value {
            return Some(expression);
        }
        let mut list = self.dwarf.attr_locations(unit, value).ok()??;
        while let Some(found) = list.next().ok()? {
            if (found.range.begin..found.range.end).contains(&address) {
                return Some(found.data);
            }
        }
        None
    }

    /// Returns the frame's address: the value that the function's expression names, or 0 for a kernel, whose
    /// frame is at the start of scratch.
    fn frame_base(&self, function: Option<&Function>, address: u64, state: &dyn State) -> u64 {
        let base = || {
            let function = function?;
            let unit = self.units.get(function.unit)?;
            // The frame of an inlined call is that of the function around it.
            let around = self.inner.index().functions.iter().find(|c| {
                let own = !c.function.inlined && c.function.unit == function.unit;
                own && c.addresses.contains(&address)
            })?;
            let entry = unit.entry(around.function.entry).ok()?;
            let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_frame_base) else {
                return None;
            };
            match self.evaluate(unit, expression, &|| 0, state).ok()?.0.first()?.0 {
                Piece::Register { number } => state.register(number).map(u64::from),
                Piece::Memory { address, .. } | Piece::Value(address) => Some(address),
                Piece::Missing => None,
            }
        };
        base().unwrap_or(0)
    }

    fn evaluate(
        &self,
        unit: &Unit<'a>,
        expression: gimli::Expression<super::Slice<'a>>,
        frame_base: &dyn Fn() -> u64,
        state: &dyn State,
    ) -> Result<Location, Missing> {
        let ops = operations(unit, expression).map_err(|e| Missing::Unsupported(e.to_string()))?;
        let mut parts = Vec::new();
        let mut rest = &ops[..];
        loop {
            let end = rest.iter().position(|op| matches!(op, Op::Piece { .. }));
            let own = &rest[..end.unwrap_or(rest.len())];
            let size = end.and_then(|end| match rest[end] {
                Op::Piece { size_in_bits, .. } => Some(size_in_bits.div_ceil(8)),
                _ => None,
            });
            if end.is_none() && !parts.is_empty() {
                break;
            }
            parts.push((self.part(unit, own, frame_base, state)?, size));
            match end {
                Some(end) => rest = &rest[end + 1..],
                None => break,
            }
        }
        match parts[..] {
            [(Piece::Missing, None)] => Err(Missing::OptimisedOut),
            _ => Ok(Location(parts)),
        }
    }

    /// Evaluates the operations of one part.
    fn part(
        &self,
        unit: &Unit<'a>,
        ops: &[Op<'a>],
        frame_base: &dyn Fn() -> u64,
        state: &dyn State,
    ) -> Result<Piece, Missing> {
        let (ops, is_value) = match ops.split_last() {
            Some((Op::StackValue, ops)) => (ops, true),
            _ => (ops, false),
        };
        let (ops, space) = split_space(ops);
        match ops {
            [] => return Ok(Piece::Missing),
            [Op::Register { register }] => return Ok(Piece::Register { number: register.0 }),
            [Op::RegisterOffset { register, offset: 0, .. }]
                if space.is_some() && !is_value && !POINTERS.contains(&register.0) =>
            {
                return Ok(Piece::Register { number: register.0 });
            }
            [Op::ImplicitValue { data }] => {
                let mut bytes = [0; 8];
                let len = data.len().min(8);
                bytes[..len].copy_from_slice(&data[..len]);
                return Ok(Piece::Value(u64::from_le_bytes(bytes)));
            }
            _ => {}
        }
        let top = self.compute(unit, ops, frame_base, state)?;
        if is_value {
            return Ok(Piece::Value(top.value));
        }
        let space = match space {
            Some(1) => Space::Private,
            Some(2) => Space::Local,
            _ if top.of_frame => Space::Private,
            _ => Space::Generic,
        };
        Ok(Piece::Memory { space, address: top.value })
    }

    /// Computes the value on top of the stack.
    fn compute(
        &self,
        unit: &Unit<'a>,
        ops: &[Op<'a>],
        frame_base: &dyn Fn() -> u64,
        state: &dyn State,
    ) -> Result<Entry64, Missing> {
        let mut stack: Vec<Entry64> = Vec::new();
        let plain = |value: u64| Entry64 { value, of_frame: false };
        let empty = || Missing::Unsupported("empty stack".to_string());
        for op in ops {
            match op {
                Op::UnsignedConstant { value } => stack.push(plain(*value)),
                Op::SignedConstant { value } => stack.push(plain(*value as u64)),
                Op::Address { address } => stack.push(plain(state.loaded(*address))),
                Op::AddressIndex { index } | Op::ConstantIndex { index } => {
                    let address = self.dwarf.address(unit, *index).map_err(|_| Missing::OptimisedOut)?;
                    // An LDS variable has an offset, which is not moved; it is below all code and data.
                    let loaded = if address < self.inner.lowest() { address } else { state.loaded(address) };
                    stack.push(plain(loaded));
                }
                Op::FrameOffset { offset } => {
                    stack.push(Entry64 { value: frame_base().wrapping_add_signed(*offset), of_frame: true });
                }
                Op::RegisterOffset { register, offset, .. } => {
                    let value = state.register(register.0).ok_or(Missing::OptimisedOut)?;
                    stack.push(Entry64 {
                        value: (value as u64).wrapping_add_signed(*offset),
                        of_frame: POINTERS.contains(&register.0),
                    });
                }
                Op::PlusConstant { value } => {
                    let top = stack.last_mut().ok_or_else(empty)?;
                    top.value = top.value.wrapping_add(*value);
                }
                Op::Drop => drop(stack.pop().ok_or_else(empty)?),
                Op::Pick { index } => {
                    let at = stack.len().checked_sub(1 + *index as usize).ok_or_else(empty)?;
                    stack.push(stack[at]);
                }
                Op::Swap => {
                    let n = stack.len();
                    if n < 2 {
                        return Err(empty());
                    }
                    stack.swap(n - 1, n - 2);
                }
                Op::Convert { base_type } => {
                    let top = stack.last_mut().ok_or_else(empty)?;
                    top.value = self.converted(unit, top.value, *base_type);
                }
                Op::Reinterpret { .. } | Op::Nop => {}
                Op::Deref { size, space, .. } => {
                    let top = stack.pop().ok_or_else(empty)?;
                    let own = if top.of_frame { Space::Private } else { Space::Generic };
                    let from = match (space, if *space { stack.pop() } else { None }.map(|s| s.value)) {
                        (true, Some(1)) => Space::Private,
                        (true, Some(2)) => Space::Local,
                        _ => own,
                    };
                    let mut bytes = [0; 8];
                    let len = (*size as usize).min(8);
                    let read = state.memory(from, top.value, &mut bytes[..len]);
                    read.map_err(|_| Missing::OptimisedOut)?;
                    stack.push(plain(u64::from_le_bytes(bytes)));
                }
                Op::Abs | Op::Neg | Op::Not => {
                    let top = stack.last_mut().ok_or_else(empty)?;
                    top.value = match op {
                        Op::Neg => top.value.wrapping_neg(),
                        Op::Not => !top.value,
                        _ => (top.value as i64).unsigned_abs(),
                    };
                }
                _ => {
                    let b = stack.pop().ok_or_else(empty)?;
                    let a = stack.pop().ok_or_else(empty)?;
                    let value = binary(op, a.value, b.value)
                        .ok_or_else(|| Missing::Unsupported(format!("{op:?}").chars().take(40).collect()))?;
                    stack.push(Entry64 { value, of_frame: a.of_frame || b.of_frame });
                }
            }
        }
        stack.pop().ok_or_else(empty)
    }

    /// Truncates or extends a value to a base type.
    fn converted(&self, unit: &Unit<'a>, value: u64, base: gimli::UnitOffset) -> u64 {
        let Ok(entry) = unit.entry(base) else { return value };
        let size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value());
        let shift = 64 - 8 * size.filter(|size| (1..8).contains(size)).unwrap_or(8) as u32;
        let signed = matches!(
            entry.attr_value(gimli::DW_AT_encoding),
            Some(AttributeValue::Encoding(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char))
        );
        let left = value.checked_shl(shift).unwrap_or(0);
        if signed { ((left as i64) >> shift) as u64 } else { left >> shift }
    }
}

impl super::Inner {
    /// The first address that may be code or data of the file.
    fn lowest(&self) -> u64 {
        // The ELF header and the descriptors come before the code.
        self.text.start.min(1 << 8)
    }
}

fn binary(op: &Op<'_>, a: u64, b: u64) -> Option<u64> {
    let shift = u32::try_from(b).ok();
    let (x, y) = (a as i64, b as i64);
    Some(match op {
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Plus => a.wrapping_add(b),
        Op::Minus => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div => x.checked_div(y)? as u64,
        Op::Mod => a.checked_rem(b)?,
        Op::Shl => shift.and_then(|s| a.checked_shl(s)).unwrap_or(0),
        Op::Shr => shift.and_then(|s| a.checked_shr(s)).unwrap_or(0),
        Op::Shra => (x >> shift.unwrap_or(63).min(63)) as u64,
        Op::Eq => (a == b) as u64,
        Op::Ne => (a != b) as u64,
        Op::Lt => (x < y) as u64,
        Op::Le => (x <= y) as u64,
        Op::Gt => (x > y) as u64,
        Op::Ge => (x >= y) as u64,
        _ => return None,
    })
}

pub(super) fn operations<'a>(
    unit: &Unit<'a>,
    expression: gimli::Expression<super::Slice<'a>>,
) -> gimli::Result<Vec<Op<'a>>> {
    let mut list = expression.operations(unit.encoding());
    let mut ops = Vec::new();
    while let Some(op) = list.next()? {
        ops.push(op);
    }
    Ok(ops)
}

/// Splits off `DW_OP_constu N, DW_OP_swap, DW_OP_xderef` at the end.
fn split_space<'o, 'a>(ops: &'o [Op<'a>]) -> (&'o [Op<'a>], Option<u64>) {
    match ops {
        [own @ .., Op::UnsignedConstant { value }, Op::Swap, Op::Deref { space: true, .. }]
            if !own.is_empty() =>
        {
            (own, Some(*value))
        }
        _ => (ops, None),
    }
}
