//! The registers, state and memory that an instruction's body reads and writes, and what it calls, computed
//! from the typed tree: the one source of these facts for checks, traces and the debugger.
//!
//! [`Facts::of`] runs a body without values (abstract interpretation, `walk`): loops with fixed bounds are
//! unrolled, both sides of a branch are taken unless the wave size decides it. A condition on the instruction
//! itself (a field, the number of an operand's register) becomes part of the fact, as [`Touch::when`]. Every
//! other condition makes the fact a *may*: what is listed is a superset of what any execution touches, and
//! [`Touch::always`] marks what every execution touches.
//!
//! Facts are about roles and register numbers relative to them. Which registers these are in an instruction,
//! with DPP, op_sel and null, depends on the binding of its operands, which is not modelled here.

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
    /// Registers, operands and state that it reads and writes.
    pub registers: Cow<'static, [Touch]>,
    /// Loads and stores.
    pub memory: Cow<'static, [MemoryTouch]>,
    /// Control builtins that it may call.
    pub calls: Cow<'static, [Control]>,
    /// Encoding fields that it reads as they are: a modifier among them is not applied to operands.
    pub fields: Cow<'static, [FieldName]>,
    /// D0 becomes S0, and nothing else happens.
    pub copies: bool,
    /// It stores one value or another, by whether two are equal: compare-and-swap.
    pub compares: bool,
}

/// A read or a write of registers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Touch {
    /// True for a write, false for a read.
    pub write: bool,
    /// What is read or written.
    pub what: What,
    /// Bits of the operand, the state or each register.
    pub bits: u128,
    /// Lanes of vector registers that are affected.
    pub lanes: Lanes,
    /// Conditions on the instruction, all of which hold where this happens.
    pub when: Cow<'static, [Condition]>,
    /// Every execution with a lane that this concerns does it.
    pub always: bool,
}

/// What a [`Touch`] reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum What {
    /// The registers of an operand.
    Operand(Role),
    /// Registers of a wide operand beyond the first four, which `bits` of [`What::Operand`] cannot name.
    Dwords { role: Role, first: u32, count: u32 },
    /// Architectural state that the body names.
    State(State),
    /// VGPRs by number.
    Vgpr(Number),
    /// SGPRs by number.
    Sgpr(Number),
    /// VGPRs whose numbers depend on data.
    AnyVgpr,
    /// SGPRs whose numbers depend on data.
    AnySgpr,
}

/// Consecutive registers by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number {
    /// The operand whose register's number, taken through `mask`, is counted from.
    pub base: Option<Role>,
    /// Applied to the base register's number before `first` is added.
    pub mask: u32,
    /// Offset of the first register from the base, or its number without a base.
    pub first: u32,
    /// Number of registers.
    pub count: u32,
    /// What M0 adds.
    pub index: Option<Index>,
    /// The number taken where the body finds this one out of range.
    pub otherwise: Option<u32>,
}

/// A bit field of M0 that is added to a register's number: `(M0 >> shift) & mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index {
    /// Lowest bit of the field.
    pub shift: u32,
    /// Bits of the field, shifted down.
    pub mask: u32,
}

/// Lanes of a vector register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lanes {
    /// The body runs once: no lanes. A vector register is taken in lane 0.
    Once,
    /// The body runs once for each active lane, which touches its own.
    Own,
    /// The body runs once, and touches the lanes that are active.
    Active,
    /// Lanes that the body fixes, whatever EXEC is: all of the wave, or a part.
    All,
    /// This lane.
    Lane(u32),
    /// The lowest active one, or lane 0 if none is.
    LowestActive,
    /// The one that the value of a scalar source names, modulo the wave size.
    Selected(Role),
    /// Any, by data.
    Any,
}

/// A test of the instruction itself: `(number >> shift) & mask == equals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Condition {
    /// The number that is tested.
    pub of: Of,
    /// Lowest bit that is tested.
    pub shift: u32,
    /// Bits that are tested, shifted down.
    pub mask: u32,
    /// What these bits are compared with.
    pub equals: u32,
    /// The test is for inequality.
    pub not: bool,
}

/// A number that the instruction fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Of {
    /// An encoding field.
    Field(FieldName),
    /// The number of an operand's register.
    Index(Role),
}

/// A load or a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryTouch {
    /// Address space.
    pub space: Space,
    /// Size of the access per lane, in bytes.
    pub bytes: u32,
    /// True for a store, false for a load.
    pub write: bool,
    /// Conditions on the instruction, all of which hold where this happens.
    pub when: Cow<'static, [Condition]>,
    /// Every execution with a lane that this concerns does it.
    pub always: bool,
}

impl Facts {
    /// The facts of a body in waves of `wave_size` lanes.
    pub fn of(sem: &Semantics, wave_size: u32) -> Facts {
        walk::facts(sem, wave_size)
    }

    /// Whether it may call a control builtin.
    pub fn calls(&self, bi: Control) -> bool {
        self.calls.contains(&bi)
    }

    /// Whether memory of this kind is read (`false`) or written (`true`).
    pub fn accesses(&self, space: Space, write: bool) -> bool {
        self.memory.iter().any(|m| m.space == space && m.write == write)
    }

    /// Loads and stores in one space: changes memory in one step.
    pub fn is_atomic(&self) -> bool {
        self.memory.iter().any(|m| m.write && self.accesses(m.space, false))
    }
}

impl Condition {
    /// For an instruction whose numbers `value` gives.
    pub fn holds(&self, value: impl Fn(Of) -> u32) -> bool {
        ((value(self.of) >> self.shift & self.mask) == self.equals) != self.not
    }
}
