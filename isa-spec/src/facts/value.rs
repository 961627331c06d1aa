//! The abstract domain: values as far as they are known before the instruction runs, and the guards that hold
//! in a branch.

use super::{Condition, EncodedValue, M0Field, RegisterRange};
use crate::arith;
use crate::tables::Role;

/// An abstract value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A constant.
    Known(u128),
    /// `(n >> shift) & mask` of a number that the encoded instruction determines.
    Fixed { of: EncodedValue, shift: u32, mask: u32 },
    /// A register number, relative to that of an operand.
    Register(RegisterRange),
    /// One of a few register numbers, each with the guards under which it is chosen.
    OneOf(Vec<(Vec<Guard>, RegisterRange)>),
    /// A bit field of M0.
    M0(M0Field),
    /// The EXEC mask.
    Exec,
    /// The EXEC bit of a lane.
    ExecBit(u32),
    /// The lowest active lane.
    LowestActive,
    /// `laneId`.
    LaneId,
    /// The low bits of a scalar source, used as a lane index.
    Selected(Role),
    /// At least the whole low dword of an operand.
    Operand(Role),
    /// Anything.
    Unknown,
}

/// A fact that holds in a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A condition on the instruction itself.
    Instruction(Condition),
    /// This lane is active.
    Active(u32),
    /// EXEC is zero.
    ExecZero,
    /// The offset that M0 adds to a register number is above 255.
    IndexAbove255,
    /// The M0-relative register number is beyond a limit that depends on its base.
    BeyondLimit,
    /// A condition that this analysis does not track.
    Unknown,
}

/// Upper bound on the alternatives of a register number that are tracked.
const MAX_ALTERNATIVES: usize = 4;

/// The abstract value of a condition, with the guards of both branches.
pub struct Test {
    /// The condition's value where the wave size or constants decide it.
    pub known: Option<bool>,
    /// Guards of the branch where the condition holds.
    pub if_true: Vec<Guard>,
    /// Guards of the branch where the condition does not hold.
    pub if_false: Vec<Guard>,
}

impl Test {
    /// Returns a condition with a known value.
    pub fn known(value: bool) -> Test {
        Test { known: Some(value), if_true: Vec::new(), if_false: Vec::new() }
    }

    /// Returns an unknown condition.
    pub fn unknown() -> Test {
        Test { known: None, if_true: vec![Guard::Unknown], if_false: vec![Guard::Unknown] }
    }

    /// Returns the condition that bits of a fixed number equal `equals`.
    pub fn fixed(of: EncodedValue, shift: u32, mask: u32, equals: u32) -> Test {
        let test = |negated| vec![Guard::Instruction(Condition { value: of, shift, mask, equals, negated })];
        Test { known: None, if_true: test(false), if_false: test(true) }
    }

    /// Returns a condition that is decided at run time, with a guard for the branch where it holds.
    pub fn guarded(if_true: Guard) -> Test {
        Test { known: None, if_true: vec![if_true], if_false: vec![Guard::Unknown] }
    }

    /// Negates the condition: swaps the branches.
    pub fn not(self) -> Test {
        Test { known: self.known.map(|k| !k), if_true: self.if_false, if_false: self.if_true }
    }
}

impl Value {
    /// Joins the values of two branches, given the guards of each.
    pub fn join(self, other: Value, guards: &[Guard], others: &[Guard]) -> Value {
        if self == other {
            return self;
        }
        join_replacement((&self, guards), (&other, others))
            .or_else(|| join_replacement((&other, others), (&self, guards)))
            .or_else(|| self.join_alternatives(&other, guards, others))
            .unwrap_or(Value::Unknown)
    }

    /// Joins two values as alternative register numbers.
    fn join_alternatives(&self, other: &Value, guards: &[Guard], others: &[Guard]) -> Option<Value> {
        let mut list: Vec<(Vec<Guard>, RegisterRange)> = Vec::new();
        for (value, guards) in [(self, guards), (other, others)] {
            // Guards about lanes hold inside the branch only.
            let outside_branch =
                |guard: &Guard| if let Guard::Instruction(_) = guard { *guard } else { Guard::Unknown };
            let guards = guards.iter().map(outside_branch);
            for (inner, number) in value.numbers()? {
                list.push((inner.into_iter().chain(guards.clone()).collect(), number));
            }
        }
        let is_tracked =
            list.len() <= MAX_ALTERNATIVES && list.iter().any(|(_, number)| number.base.is_some());
        is_tracked.then_some(Value::OneOf(list))
    }

    /// Returns the register numbers that this value may be, each with the guards under which it is chosen.
    pub fn numbers(&self) -> Option<Vec<(Vec<Guard>, RegisterRange)>> {
        match self {
            Value::OneOf(list) => Some(list.clone()),
            _ => Some(vec![(Vec::new(), self.number()?)]),
        }
    }

    /// Returns the value as a register number.
    pub fn number(&self) -> Option<RegisterRange> {
        let number =
            |base, mask, first| RegisterRange { base, mask, first, count: 1, index: None, fallback: None };
        match *self {
            Value::Known(n) => Some(number(None, 0, n as u32)),
            Value::Fixed { of, shift: 0, mask } => Some(number(Some(of), mask, 0)),
            Value::Register(number) => Some(number),
            _ => None,
        }
    }
}

/// Joins a constant in one branch with a value in the other branch that already covers it.
fn join_replacement((known, guards): (&Value, &[Guard]), (other, _): (&Value, &[Guard])) -> Option<Value> {
    match (known, other) {
        (a, b) if a == b => Some(a.clone()),
        // The constant replaces a register number that is out of range.
        (Value::Known(n), Value::Register(number)) if number.index.is_some() => {
            let out_of_range = guards.iter().all(|g| matches!(g, Guard::IndexAbove255 | Guard::BeyondLimit));
            let fallback = *n as u32;
            // Without a limit, the constant must be above every register number.
            let limited = guards.contains(&Guard::BeyondLimit) || fallback == u32::MAX;
            (out_of_range && !guards.is_empty() && limited && number.fallback.is_none_or(|o| o == fallback))
                .then_some(Value::Register(RegisterRange { fallback: Some(fallback), ..*number }))
        }
        // `Lowest` already means lane 0 if no lane is active.
        (Value::Known(0), Value::LowestActive) if guards == [Guard::ExecZero] => Some(Value::LowestActive),
        _ => None,
    }
}

/// Adds a constant or M0 to a register number, or to each alternative. Returns `None` if the result is not a
/// register number.
pub fn add_numbers(a: &Value, b: &Value) -> Option<Value> {
    let Value::OneOf(list) = a else { return add_number(a, b) };
    let each = list.iter().map(|(guards, number)| match add_number(&Value::Register(*number), b)? {
        Value::Register(number) => Some((guards.clone(), number)),
        _ => None,
    });
    Some(Value::OneOf(each.collect::<Option<_>>()?))
}

/// Adds a constant or M0 to one register number.
fn add_number(a: &Value, b: &Value) -> Option<Value> {
    let number = a.number()?;
    match *b {
        Value::Known(n) if *a != Value::Known(0) || number.base.is_some() => {
            // The number used when out of range shifts by the same amount.
            let fallback = number.fallback.map(|o| o.wrapping_add(n as u32));
            Some(Value::Register(RegisterRange {
                first: number.first.wrapping_add(n as u32),
                fallback,
                ..number
            }))
        }
        Value::M0(index) if number.index.is_none() && number.base.is_some() => {
            Some(Value::Register(RegisterRange { index: Some(index), ..number }))
        }
        _ => None,
    }
}

/// Evaluates `a & b` with a constant `b`. Keeping exactly the lane-index bits of an operand selects a lane.
/// Returns `None` if the result is unknown.
pub fn and_mask(a: &Value, b: &Value, wave_size: u32) -> Option<Value> {
    let Value::Known(mask) = *b else { return None };
    match a {
        Value::Operand(role) if mask as u32 == wave_size - 1 => Some(Value::Selected(*role)),
        value => masked(value.clone(), mask as u32, 0),
    }
}

/// Evaluates `(value >> at) & mask`. Returns `None` if the result is unknown.
pub fn masked(value: Value, mask: u32, offset: u32) -> Option<Value> {
    match value {
        _ if offset >= 32 => None,
        Value::Fixed { of, shift, mask: old } => {
            Some(Value::Fixed { of, shift: shift + offset, mask: old >> offset & mask })
        }
        Value::M0(index) => {
            Some(Value::M0(M0Field { shift: index.shift + offset, mask: index.mask >> offset & mask }))
        }
        _ => None,
    }
}

/// Returns a mask of the low `width` bits, at most 32.
pub fn width_mask(width: u32) -> u32 {
    arith::mask(width.min(32)) as u32
}
