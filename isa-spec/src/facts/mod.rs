//! What an instruction's body reads, writes and calls, computed from the typed tree: the one source of what
//! checks, traces and the debugger know about an instruction.
//!
//! [`Facts::of`] runs a body without values (abstract interpretation, `walk`): loops with fixed bounds are
//! unrolled, both sides of a branch are taken unless the wave size decides it. A condition on the instruction
//! itself (a field, the number of an operand's register) becomes part of the fact, as [`Touch::when`]. Every
//! other condition makes the fact a *may*: what is listed is a superset of what any execution touches, and
//! [`Touch::always`] marks what every execution touches.
//!
//! Facts are about roles and register numbers relative to them. Which registers these are in an instruction,
//! with DPP, op_sel and null, is the binding of its operands, which this module knows nothing of.

mod merge;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use crate::pcode::builtins::Control;
use crate::pcode::ir::{FieldName, Semantics, Space, State};
use crate::tables::Role;
use std::borrow::Cow;

/// The facts of one body in waves of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    pub registers: Cow<'static, [Touch]>,
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
    pub write: bool,
    pub what: What,
    /// Bits of the operand, the state or each register.
    pub bits: u128,
    pub lanes: Lanes,
    /// Conditions on the instruction, all of which hold where this happens.
    pub when: Cow<'static, [Condition]>,
    /// Every execution with a lane that this concerns does it.
    pub always: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    Operand(Role),
    /// Registers of a wide operand beyond the first four, which `bits` of [`What::Operand`] cannot name.
    Dwords {
        role: Role,
        first: u32,
        count: u32,
    },
    State(State),
    Vgpr(Number),
    Sgpr(Number),
    /// Register numbers that depend on data.
    AnyVgpr,
    AnySgpr,
}

/// Consecutive registers by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number {
    /// The operand whose register's number, taken through `mask`, is counted from.
    pub base: Option<Role>,
    pub mask: u32,
    pub first: u32,
    pub count: u32,
    /// What M0 adds.
    pub index: Option<Index>,
    /// The number taken where the body finds this one out of range.
    pub otherwise: Option<u32>,
}

/// `(M0 >> shift) & mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index {
    pub shift: u32,
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
    /// This one.
    Lane(u32),
    /// The lowest active one, or lane 0 if none is.
    LowestActive,
    /// The one that the value of a scalar source names, modulo the wave size.
    Selected(Role),
    /// Any, by data.
    Any,
}

/// A test of the instruction itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Condition {
    pub of: Of,
    pub shift: u32,
    pub mask: u32,
    pub equals: u32,
    /// The test is for inequality.
    pub not: bool,
}

/// A number that the instruction fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Of {
    Field(FieldName),
    /// The register of an operand.
    Index(Role),
}

/// A load or a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryTouch {
    pub space: Space,
    pub bytes: u32,
    pub write: bool,
    pub when: Cow<'static, [Condition]>,
    pub always: bool,
}

impl Facts {
    /// Of a body, in waves of `wave_size` lanes.
    pub fn of(sem: &Semantics, wave_size: u32) -> Facts {
        walk::facts(sem, wave_size)
    }

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
