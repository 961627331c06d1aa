//! Abstract values: what is known of a value before the instruction runs, and what a branch implies.

use super::{Condition, Index, Number, Of};
use crate::arith;
use crate::tables::Role;

/// What is known of a value before the instruction runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A constant.
    Known(u128),
    /// `(n >> shift) & mask` of a number that the instruction fixes.
    Fixed { of: Of, shift: u32, mask: u32 },
    /// A register's number, relative to an operand's.
    Register(Number),
    /// One of a few register numbers, each with what holds where it is taken.
    OneOf(Vec<(Vec<Guard>, Number)>),
    /// A bit field of M0.
    M0(Index),
    /// The EXEC mask.
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
    /// Anything.
    Unknown,
}

/// What holds in a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A condition on the instruction itself.
    Instruction(Condition),
    /// This lane is active.
    Active(u32),
    /// EXEC is zero.
    NoLane,
    /// What M0 adds to a register's number is above 255.
    FarIndex,
    /// The number that M0 adds to is beyond a limit that its base decides.
    BeyondLimit,
    /// A condition that this analysis does not track.
    Unknown,
}

/// Alternatives for a register's number that are kept apart.
const MOST_ALTERNATIVES: usize = 4;

/// A condition: its value if that is known, or what holds in either branch.
pub struct Test {
    /// The condition's value where the wave size or constants decide it.
    pub known: Option<bool>,
    /// What holds where the condition does.
    pub yes: Vec<Guard>,
    /// What holds where the condition does not.
    pub no: Vec<Guard>,
}

impl Test {
    /// A condition with this value.
    pub fn known(value: bool) -> Test {
        Test { known: Some(value), yes: Vec::new(), no: Vec::new() }
    }

    /// A condition of which nothing is known.
    pub fn unknown() -> Test {
        Test { known: None, yes: vec![Guard::Unknown], no: vec![Guard::Unknown] }
    }

    /// Whether a fixed number is `equals`.
    pub fn fixed(of: Of, shift: u32, mask: u32, equals: u32) -> Test {
        let test = |not| vec![Guard::Instruction(Condition { of, shift, mask, equals, not })];
        Test { known: None, yes: test(false), no: test(true) }
    }

    /// A condition that only execution decides, and what is sure if it holds.
    pub fn guarded(yes: Guard) -> Test {
        Test { known: None, yes: vec![yes], no: vec![Guard::Unknown] }
    }

    /// The negation: the branches swap.
    pub fn not(self) -> Test {
        Test { known: self.known.map(|k| !k), yes: self.no, no: self.yes }
    }
}

impl Value {
    /// One of the two, by what holds where either is taken.
    pub fn join(self, other: Value, guards: &[Guard], others: &[Guard]) -> Value {
        if self == other {
            return self;
        }
        choice((&self, guards), (&other, others))
            .or_else(|| choice((&other, others), (&self, guards)))
            .or_else(|| self.alternatives(&other, guards, others))
            .unwrap_or(Value::Unknown)
    }

    /// The numbers of registers that either value is.
    fn alternatives(&self, other: &Value, guards: &[Guard], others: &[Guard]) -> Option<Value> {
        let mut list: Vec<(Vec<Guard>, Number)> = Vec::new();
        for (value, guards) in [(self, guards), (other, others)] {
            // What is sure of lanes is so in the branch only.
            let lasting =
                |guard: &Guard| if let Guard::Instruction(_) = guard { *guard } else { Guard::Unknown };
            let guards = guards.iter().map(lasting);
            for (inner, number) in value.numbers()? {
                list.push((inner.into_iter().chain(guards.clone()).collect(), number));
            }
        }
        let counts = list.len() <= MOST_ALTERNATIVES && list.iter().any(|(_, number)| number.base.is_some());
        counts.then_some(Value::OneOf(list))
    }

    /// The numbers of registers that this may be, with what holds where it is.
    pub fn numbers(&self) -> Option<Vec<(Vec<Guard>, Number)>> {
        match self {
            Value::OneOf(list) => Some(list.clone()),
            _ => Some(vec![(Vec::new(), self.number()?)]),
        }
    }

    /// The number of a register.
    pub fn number(&self) -> Option<Number> {
        let number = |base, mask, first| Number { base, mask, first, count: 1, index: None, otherwise: None };
        match *self {
            Value::Known(n) => Some(number(None, 0, n as u32)),
            Value::Fixed { of: Of::Index(role), shift: 0, mask } => Some(number(Some(role), mask, 0)),
            Value::Register(number) => Some(number),
            _ => None,
        }
    }
}

/// A known value in one branch, and in the other what it stands in for there.
fn choice((known, guards): (&Value, &[Guard]), (other, _): (&Value, &[Guard])) -> Option<Value> {
    match (known, other) {
        (a, b) if a == b => Some(a.clone()),
        // Out of range.
        (Value::Known(n), Value::Register(number)) if number.index.is_some() => {
            let far = guards.iter().all(|g| matches!(g, Guard::FarIndex | Guard::BeyondLimit));
            let otherwise = *n as u32;
            // Without a limit it must be a number above those of all registers.
            let limited = guards.contains(&Guard::BeyondLimit) || otherwise == u32::MAX;
            (far && !guards.is_empty() && limited && number.otherwise.is_none_or(|o| o == otherwise))
                .then_some(Value::Register(Number { otherwise: Some(otherwise), ..*number }))
        }
        // Lane 0 where no lane is active.
        (Value::Known(0), Value::Lowest) if guards == [Guard::NoLane] => Some(Value::Lowest),
        _ => None,
    }
}

/// `a + b` of a register number, or of each alternative, and a constant or M0; `None` if the result is no
/// register number.
pub fn sums(a: &Value, b: &Value) -> Option<Value> {
    let Value::OneOf(list) = a else { return sum(a, b) };
    let each = list.iter().map(|(guards, number)| match sum(&Value::Register(*number), b)? {
        Value::Register(number) => Some((guards.clone(), number)),
        _ => None,
    });
    Some(Value::OneOf(each.collect::<Option<_>>()?))
}

/// The number of a register after another one, or after M0.
fn sum(a: &Value, b: &Value) -> Option<Value> {
    let number = a.number()?;
    match *b {
        Value::Known(n) if *a != Value::Known(0) || number.base.is_some() => {
            // The number for the case out of range moves along.
            let otherwise = number.otherwise.map(|o| o.wrapping_add(n as u32));
            Some(Value::Register(Number { first: number.first.wrapping_add(n as u32), otherwise, ..number }))
        }
        Value::M0(index) if number.index.is_none() && number.base.is_some() => {
            Some(Value::Register(Number { index: Some(index), ..number }))
        }
        _ => None,
    }
}

/// `a & b` with a constant `b`. All lane bits of an operand select a lane; `None` if nothing is known of the
/// result.
pub fn both_bits(a: &Value, b: &Value, wave_size: u32) -> Option<Value> {
    let Value::Known(mask) = *b else { return None };
    match a {
        Value::Operand(role) if mask as u32 == wave_size - 1 => Some(Value::Selected(*role)),
        value => masked(value.clone(), mask as u32, 0),
    }
}

/// `(value >> at) & mask`, where that is still something known.
pub fn masked(value: Value, mask: u32, at: u32) -> Option<Value> {
    match value {
        _ if at >= 32 => None,
        Value::Fixed { of, shift, mask: old } => {
            Some(Value::Fixed { of, shift: shift + at, mask: old >> at & mask })
        }
        Value::M0(index) => Some(Value::M0(Index { shift: index.shift + at, mask: index.mask >> at & mask })),
        _ => None,
    }
}

/// A mask of the low `width` bits, of at most 32.
pub fn width_mask(width: u32) -> u32 {
    arith::mask(width.min(32)) as u32
}
