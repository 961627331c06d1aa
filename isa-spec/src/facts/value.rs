//! What is known of a value before the instruction runs.

use super::{Condition, Flow, Index, Number, Of};
use crate::arith;
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
    /// Any of these, by what holds.
    OneOf(Vec<(Vec<Guard>, Number)>),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Instruction(Condition),
    Active(u32),
    /// EXEC is zero.
    NoLane,
    /// What M0 adds to a register's number is above 255.
    FarIndex,
    /// The number that M0 adds to is beyond a limit that its base decides.
    BeyondLimit,
    Unknown,
}

/// Alternatives for a register's number that are told apart.
const MOST_ALTERNATIVES: usize = 4;

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

    /// Something that only the run decides, and what is sure if it holds.
    pub fn guarded(yes: Guard) -> Test {
        Test { known: None, yes: vec![yes], no: vec![Guard::Unknown] }
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

    /// One of the two, by what holds where either is taken.
    pub fn join(self, other: Value, guards: &[Guard], others: &[Guard]) -> Value {
        if self == other {
            return self;
        }
        let kind = choice((&self.kind, guards), (&other.kind, others))
            .or_else(|| choice((&other.kind, others), (&self.kind, guards)))
            .or_else(|| self.alternatives(&other, guards, others));
        Value { kind: kind.unwrap_or(Kind::Unknown), flow: both(self.flow, other.flow, Flow::Upwards) }
    }

    /// The numbers of registers that either value is.
    fn alternatives(&self, other: &Value, guards: &[Guard], others: &[Guard]) -> Option<Kind> {
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
        counts.then_some(Kind::OneOf(list))
    }

    /// What becomes of the sources in an operation whose result bits depend on operand bits up to their place.
    pub fn upwards(self, other: Value, kind: Kind) -> Value {
        Value { kind, flow: both(self.flow, other.flow, Flow::Upwards) }
    }

    /// The numbers of registers that this may be, with what holds where it is.
    pub fn numbers(&self) -> Option<Vec<(Vec<Guard>, Number)>> {
        match &self.kind {
            Kind::OneOf(list) => Some(list.clone()),
            _ => Some(vec![(Vec::new(), self.number()?)]),
        }
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

/// A known value in one branch, and in the other what it stands in for there.
fn choice((known, guards): (&Kind, &[Guard]), (other, _): (&Kind, &[Guard])) -> Option<Kind> {
    match (known, other) {
        (a, b) if a == b => Some(a.clone()),
        // Out of range.
        (Kind::Known(n), Kind::Register(number)) if number.index.is_some() => {
            let far = guards.iter().all(|g| matches!(g, Guard::FarIndex | Guard::BeyondLimit));
            let otherwise = *n as u32;
            // Without a limit it must be a number that no register has.
            let limited = guards.contains(&Guard::BeyondLimit) || otherwise == u32::MAX;
            (far && !guards.is_empty() && limited && number.otherwise.is_none_or(|o| o == otherwise))
                .then_some(Kind::Register(Number { otherwise: Some(otherwise), ..*number }))
        }
        // Lane 0 where no lane is active.
        (Kind::Known(0), Kind::Lowest) if guards == [Guard::NoLane] => Some(Kind::Lowest),
        _ => None,
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

pub fn sums(a: &Value, b: &Value) -> Option<Kind> {
    let Kind::OneOf(list) = &a.kind else { return sum(a, b) };
    let each = list.iter().map(|(guards, number)| match sum(&Value::of(Kind::Register(*number)), b)? {
        Kind::Register(number) => Some((guards.clone(), number)),
        _ => None,
    });
    Some(Kind::OneOf(each.collect::<Option<_>>()?))
}

/// The number of a register after another one, or after M0.
fn sum(a: &Value, b: &Value) -> Option<Kind> {
    let number = a.number()?;
    match b.kind {
        Kind::Known(n) if a.kind != Kind::Known(0) || number.base.is_some() => {
            // What stands in for a number out of range is a number of its own.
            let otherwise = number.otherwise.map(|o| o.wrapping_add(n as u32));
            Some(Kind::Register(Number { first: number.first.wrapping_add(n as u32), otherwise, ..number }))
        }
        Kind::M0(index) if number.index.is_none() && number.base.is_some() => {
            Some(Kind::Register(Number { index: Some(index), ..number }))
        }
        _ => None,
    }
}

pub fn both_bits(a: &Value, b: &Value, wave_size: u32) -> Option<Kind> {
    let Kind::Known(mask) = b.kind else { return None };
    match &a.kind {
        Kind::Operand(role) if mask as u32 == wave_size - 1 => Some(Kind::Selected(*role)),
        kind => masked(kind.clone(), mask as u32, 0),
    }
}

/// `(kind >> at) & mask`, where that is still something known.
pub fn masked(kind: Kind, mask: u32, at: u32) -> Option<Kind> {
    match kind {
        _ if at >= 32 => None,
        Kind::Fixed { of, shift, mask: old } => {
            Some(Kind::Fixed { of, shift: shift + at, mask: old >> at & mask })
        }
        Kind::M0(index) => Some(Kind::M0(Index { shift: index.shift + at, mask: index.mask >> at & mask })),
        _ => None,
    }
}

pub fn width_mask(width: u32) -> u32 {
    arith::mask(width.min(32)) as u32
}
