//! The registers, state and memory that an instruction's body reads and writes, and the builtins that it
//! calls, computed from the typed tree. Checks, traces and the debugger take these facts from here only.
//!
//! [`Facts::of`] runs the abstract interpreter in `walk` over a body: it unrolls loops with fixed bounds and
//! takes both sides of a branch unless the wave size decides it. A condition on the instruction itself (a
//! field, the number of an operand's register) becomes part of the fact, as [`Access::conditions`]. Every other
//! condition turns a fact into a *may* fact: the list is a superset of the accesses of any execution, and
//! [`Access::always`] marks accesses that every execution performs.
//!
//! Facts name roles, and register numbers relative to them. The registers of a particular instruction (with
//! DPP, op_sel and null) follow from its operand binding, which is not modelled here.

mod merge;
mod value;
mod walk;

use crate::pcode::builtins::Control;
use crate::pcode::ir::{FieldName, Semantics, Space, State};
use crate::tables::Role;
use std::borrow::Cow;

/// The facts of one body in waves of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Accesses to registers, operands and state.
    pub registers: Cow<'static, [Access]>,
    /// Loads and stores.
    pub memory: Cow<'static, [MemoryAccess]>,
    /// Control builtins that the body may call.
    pub calls: Cow<'static, [Control]>,
    /// Encoding fields that the body reads directly: a modifier among them is not applied to operands.
    pub fields: Cow<'static, [FieldName]>,
    /// The body only copies S0 to D0.
    pub is_copy: bool,
    /// The stored value depends on a comparison for equality: compare-and-swap.
    pub is_compare_swap: bool,
}

/// A read or a write of registers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// True for a write, false for a read.
    pub write: bool,
    /// The accessed resource.
    pub resource: Resource,
    /// The accessed bits of the operand, of the state, or of each register.
    pub bits: u128,
    /// The accessed lanes of vector registers.
    pub lanes: Lanes,
    /// Conditions on the instruction, all of which hold when this access happens.
    pub conditions: Cow<'static, [Condition]>,
    /// Every execution in which one of the lanes takes part performs the access.
    pub always: bool,
}

/// The resource that an [`Access`] reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Resource {
    /// The registers of an operand.
    Operand(Role),
    /// Registers of a wide operand beyond the first four, which `bits` of [`Resource::Operand`] cannot name.
    Dwords { role: Role, first: u32, count: u32 },
    /// Architectural state that the body names.
    State(State),
    /// VGPRs by number.
    Vgpr(RegisterRange),
    /// SGPRs by number.
    Sgpr(RegisterRange),
    /// VGPRs whose numbers are computed from data.
    AnyVgpr,
    /// SGPRs whose numbers are computed from data.
    AnySgpr,
}

/// A range of consecutive registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterRange {
    /// The encoded number that, masked by `mask`, is the base of the range: that of an operand's register, or a
    /// field with the number of a register.
    pub base: Option<EncodedValue>,
    /// Mask of the base register's number, applied before `first` is added.
    pub mask: u32,
    /// Offset of the first register from the base; without a base, its number.
    pub first: u32,
    /// Number of registers.
    pub count: u32,
    /// The bit field of M0 that is added to the number.
    pub index: Option<M0Field>,
    /// The register number used instead if this one is out of range.
    pub fallback: Option<u32>,
}

/// A bit field of M0 that is added to a register's number: `(M0 >> shift) & mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct M0Field {
    /// Lowest bit of the field.
    pub shift: u32,
    /// Mask of the field after the shift.
    pub mask: u32,
}

/// Lanes of a vector register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lanes {
    /// The body runs once, without lanes. A vector register is accessed in lane 0.
    Once,
    /// The body runs once per active lane and accesses that lane.
    Own,
    /// The body runs once and accesses the active lanes.
    Active,
    /// Fixed lanes, independent of EXEC: all lanes of the wave, or a part.
    All,
    /// One fixed lane.
    Lane(u32),
    /// The lowest active lane, or lane 0 if no lane is active.
    LowestActive,
    /// The lane whose index is the value of a scalar source, modulo the wave size.
    Selected(Role),
    /// A lane index computed from data.
    Any,
}

/// A condition on the instruction itself: `(number >> shift) & mask == equals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Condition {
    /// The tested number.
    pub value: EncodedValue,
    /// Lowest tested bit.
    pub shift: u32,
    /// Mask of the tested bits after the shift.
    pub mask: u32,
    /// The value that these bits are compared with.
    pub equals: u32,
    /// Negates the comparison.
    pub negated: bool,
}

/// A number that the encoded instruction determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EncodedValue {
    /// An encoding field.
    Field(FieldName),
    /// The number of an operand's register.
    RegisterNumber(Role),
}

/// A load or a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryAccess {
    /// Address space.
    pub space: Space,
    /// Size of the access per lane, in bytes.
    pub bytes: u32,
    /// True for a store, false for a load.
    pub write: bool,
    /// Conditions on the instruction, all of which hold when this access happens.
    pub conditions: Cow<'static, [Condition]>,
    /// Every execution in which one of the lanes takes part performs the access.
    pub always: bool,
}

impl Facts {
    /// Computes the facts of a body in waves of `wave_size` lanes.
    pub fn of(sem: &Semantics, wave_size: u32) -> Facts {
        walk::facts(sem, wave_size)
    }

    /// Returns whether the body may call a control builtin.
    pub fn calls(&self, bi: Control) -> bool {
        self.calls.contains(&bi)
    }

    /// Returns whether the body loads from (`write` is false) or stores to an address space.
    pub fn accesses(&self, space: Space, write: bool) -> bool {
        self.memory.iter().any(|m| m.space == space && m.write == write)
    }

    /// Returns whether the body both loads from and stores to one address space: an atomic read-modify-write.
    pub fn is_atomic(&self) -> bool {
        self.memory.iter().any(|m| m.write && self.accesses(m.space, false))
    }
}

impl Condition {
    /// Evaluates the condition for an instruction whose encoded values `value_of` returns.
    pub fn holds(&self, value_of: impl Fn(EncodedValue) -> u32) -> bool {
        ((value_of(self.value) >> self.shift & self.mask) == self.equals) != self.negated
    }
}
