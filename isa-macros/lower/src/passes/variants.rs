//! Variants of vector loops: if a field of the instruction selects between conversions, such as the format of a
//! matrix, each choice gets a loop of its own. One loop would convert every element in every way.

use crate::ir::*;
use crate::visit::{any_in, each_in, rewrite};

/// Returns a condition on fields of the instruction that selects, in one of these values, between different
/// conversions.
pub fn condition<'a>(values: impl IntoIterator<Item = &'a Value>) -> Option<Value> {
    let mut found = None;
    for value in values {
        each_in(value, &mut |v| {
            if let ValueKind::Select(condition, yes, no) = &v.kind
                && found.is_none()
                && is_of_fields(condition)
                && conversions(yes) != conversions(no)
            {
                found = Some((**condition).clone());
            }
        });
    }
    found
}

fn is_of_fields(condition: &Value) -> bool {
    !any_in(condition, &|v| {
        !matches!(
            v.kind,
            ValueKind::Const(_)
                | ValueKind::Field(_)
                | ValueKind::Resize(_)
                | ValueKind::Op2(..)
                | ValueKind::ShrConst(..)
                | ValueKind::Compare { .. }
                | ValueKind::LogicalAnd(..)
                | ValueKind::LogicalOr(..)
        )
    })
}

/// Returns the conversions in a value.
fn conversions(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    each_in(value, &mut |v| {
        if matches!(v.kind, ValueKind::Conversion(..) | ValueKind::Convert { .. }) {
            found.push(v);
        }
    });
    found
}

/// Returns the number that a value is, whatever the instruction.
pub fn constant(value: &Value) -> Option<u128> {
    let mut value = value.clone();
    rewrite(&mut value, &mut fold);
    match value.kind {
        ValueKind::Const(number) => Some(number),
        _ => None,
    }
}

/// Specialises a value to the case that a condition holds, or does not.
pub fn assume(value: &mut Value, condition: &Value, holds: bool) {
    let known = match &condition.kind {
        ValueKind::Compare { op: Compare::Eq, a, b, .. } if holds => match b.kind {
            ValueKind::Const(number) => Some((&**a, number)),
            _ => None,
        },
        _ => None,
    };
    rewrite(value, &mut |v| {
        if let Some((_, number)) = known.filter(|(known, _)| *known == v) {
            v.kind = ValueKind::Const(number);
        } else if let ValueKind::Select(test, yes, no) = &v.kind
            && **test == *condition
        {
            *v = if holds { (**yes).clone() } else { (**no).clone() };
        } else {
            fold(v);
        }
    });
}

/// Replaces an operation on constants by its result.
fn fold(value: &mut Value) {
    let number = |v: &Value| match v.kind {
        ValueKind::Const(number) => Some(number),
        _ => None,
    };
    let low = |v: u128| v & (u128::MAX >> (128 - value.host_width.bits()));
    let folded = match &value.kind {
        ValueKind::Resize(inner) => number(inner).map(low),
        ValueKind::Op2(Op2::And, a, b) => number(a).zip(number(b)).map(|(a, b)| a & b),
        ValueKind::Compare { op: op @ (Compare::Eq | Compare::Ne), a, b, .. } => {
            number(a).zip(number(b)).map(|(a, b)| ((a == b) == (*op == Compare::Eq)) as u128)
        }
        ValueKind::Compare { op: op @ (Compare::Lt | Compare::Ge), int, a, b } if !int.signed => {
            number(a).zip(number(b)).map(|(a, b)| ((a < b) == (*op == Compare::Lt)) as u128)
        }
        ValueKind::Select(condition, yes, no) => {
            if let Some(condition) = number(condition) {
                *value = if condition != 0 { (**yes).clone() } else { (**no).clone() };
            }
            None
        }
        _ => None,
    };
    if let Some(folded) = folded {
        value.kind = ValueKind::Const(folded);
    }
}
