//! What is known of a value before the instruction runs.

use super::{Condition, Flow, Index, Number, Of};
use crate::tables::Role;

/// A value and the sources that it carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    pub kind: Kind,
    pub flow: Vec<(Role, Flow)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Known(u128),
    /// `(n >> shift) & mask` of a number that the instruction fixes.
    Fixed {
        of: Of,
        shift: u32,
        mask: u32,
    },
    Register(Number),
    M0(Index),
    Exec,
    /// EXEC's bit of a lane.
    ExecBit(u32),
    /// The lowest active lane.
    Lowest,
    /// `laneId`.
    Own,
    /// The low bits of a scalar source that number a lane.
    Selected(Role),
    /// All of an operand's low dword.
    Operand(Role),
    Unknown,
}

/// What a branch makes sure of.
#[derive(Debug, Clone, PartialEq)]
pub enum Guard {
    Instruction(Condition),
    Active(u32),
    Unknown,
}

/// A condition: known, or what holds on either side.
pub struct Test {
    pub known: Option<bool>,
    pub yes: Vec<Guard>,
    pub no: Vec<Guard>,
}

impl Test {
    pub fn known(value: bool) -> Test {
        Test { known: Some(value), yes: Vec::new(), no: Vec::new() }
    }

    pub fn unknown() -> Test {
        Test { known: None, yes: vec![Guard::Unknown], no: vec![Guard::Unknown] }
    }

    /// Whether a fixed number is `equals`.
    pub fn fixed(of: Of, shift: u32, mask: u32, equals: u32) -> Test {
        let test = |not| vec![Guard::Instruction(Condition { of, shift, mask, equals, not })];
        Test { known: None, yes: test(false), no: test(true) }
    }

    pub fn not(self) -> Test {
        Test { known: self.known.map(|k| !k), yes: self.no, no: self.yes }
    }
}

impl Value {
    pub fn unknown() -> Value {
        Value { kind: Kind::Unknown, flow: Vec::new() }
    }

    pub fn of(kind: Kind) -> Value {
        Value { kind, flow: Vec::new() }
    }

    pub fn known(bits: u128) -> Value {
        Value::of(Kind::Known(bits))
    }

    /// One of the two, by a condition that is open.
    pub fn join(self, other: Value) -> Value {
        if self == other {
            return self;
        }
        let kind = match (self.kind, other.kind) {
            (a, b) if a == b => a,
            // Out of range.
            (Kind::Known(n), Kind::Register(number)) | (Kind::Register(number), Kind::Known(n))
                if number.otherwise.is_none_or(|o| o == n as u32) =>
            {
                Kind::Register(Number { otherwise: Some(n as u32), ..number })
            }
            // Lane 0 where no lane is active.
            (Kind::Known(0), Kind::Lowest) | (Kind::Lowest, Kind::Known(0)) => Kind::Lowest,
            _ => Kind::Unknown,
        };
        Value { kind, flow: both(self.flow, other.flow, Flow::Upwards) }
    }

    /// What becomes of the sources in an operation whose result bits depend on operand bits up to their place.
    pub fn upwards(self, other: Value, kind: Kind) -> Value {
        Value { kind, flow: both(self.flow, other.flow, Flow::Upwards) }
    }

    /// The number of a register.
    pub fn number(&self) -> Option<Number> {
        let number = |base, mask, first| Number { base, mask, first, count: 1, index: None, otherwise: None };
        match self.kind {
            Kind::Known(n) => Some(number(None, 0, n as u32)),
            Kind::Fixed { of: Of::Index(role), shift: 0, mask } => Some(number(Some(role), mask, 0)),
            Kind::Register(number) => Some(number),
            _ => None,
        }
    }
}

/// The sources of both, each at least as entangled as `least`.
fn both(mut a: Vec<(Role, Flow)>, b: Vec<(Role, Flow)>, least: Flow) -> Vec<(Role, Flow)> {
    for (role, flow) in b {
        match a.iter_mut().find(|(r, _)| *r == role) {
            Some((_, old)) => *old = (*old).max(flow),
            None => a.push((role, flow)),
        }
    }
    a.iter_mut().for_each(|(_, flow)| *flow = (*flow).max(least));
    a
}
