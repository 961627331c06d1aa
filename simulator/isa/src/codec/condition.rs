//! Conditions of encodings, compiled for the decoder: masks and values instead of expression trees wherever
//! possible.

use isa_spec::tables::{Cond, CondOp, Field, MAX_FIELDS};

/// An encoding's condition. Nearly all of them say that some field has some value, or that none has: those
/// are masks and values of the instruction's first 64 bits.
#[derive(Debug)]
pub enum Test {
    /// Always holds.
    Always,
    /// Holds if any `(mask, value)` matches the first 64 bits.
    Any(Vec<(u64, u64)>),
    /// Holds if no `(mask, value)` matches the first 64 bits.
    None(Vec<(u64, u64)>),
    /// Anything else: the expression over the encoding's fields.
    Tree(&'static Cond, &'static [Field]),
}

impl Test {
    /// Compiles a condition over an encoding's fields.
    pub fn new(expr: &'static Cond, fields: &'static [Field]) -> Test {
        match expr {
            Cond::True => Test::Always,
            Cond::Lit(value) if *value != 0 => Test::Always,
            Cond::Op(CondOp::Not, [inner]) => match Test::new(inner, fields) {
                Test::Any(list) => Test::None(list),
                Test::None(list) => Test::Any(list),
                _ => Test::Tree(expr, fields),
            },
            Cond::Op(op @ (CondOp::Or | CondOp::And), [left, right]) => {
                match (op, Test::new(left, fields), Test::new(right, fields)) {
                    (CondOp::Or, Test::Any(a), Test::Any(b)) => Test::Any([a, b].concat()),
                    (CondOp::And, Test::None(a), Test::None(b)) => Test::None([a, b].concat()),
                    _ => Test::Tree(expr, fields),
                }
            }
            Cond::Op(op @ (CondOp::Eq | CondOp::Ne), [Cond::Field(at), Cond::Lit(value)]) => {
                let plain = fields.get(*at as usize).and_then(|field| equals(field, *value));
                match (op, plain) {
                    (CondOp::Eq, Some(plain)) => Test::Any(vec![plain]),
                    (_, Some(plain)) => Test::None(vec![plain]),
                    (_, None) => Test::Tree(expr, fields),
                }
            }
            _ => Test::Tree(expr, fields),
        }
    }

    /// Whether the condition holds of an instruction, given as its first and second 64 bits.
    #[inline]
    pub fn holds(&self, halves: [u64; 2]) -> bool {
        let any = |list: &[(u64, u64)]| list.iter().any(|(mask, value)| halves[0] & mask == *value);
        match self {
            Test::Always => true,
            Test::Any(list) => any(list),
            Test::None(list) => !any(list),
            Test::Tree(expr, fields) => tree(expr, fields, halves),
        }
    }
}

/// Mask and value of the bits of a field that equals `value`; `None` where they are not all in the first 64,
/// or the value does not fit.
fn equals(field: &Field, value: u64) -> Option<(u64, u64)> {
    let (narrow, all) = (u32::try_from(value).ok()?, field.insert(0, u32::MAX));
    let bits = field.insert(0, narrow);
    (field.extract(bits) == narrow).then_some(())?;
    Some((u64::try_from(all).ok()?, u64::try_from(bits).ok()?))
}

#[cold]
fn tree(expr: &Cond, fields: &[Field], halves: [u64; 2]) -> bool {
    let bits = halves[0] as u128 | (halves[1] as u128) << 64;
    let mut values = [0; MAX_FIELDS];
    for (value, field) in values.iter_mut().zip(fields) {
        *value = field.extract(bits);
    }
    expr.eval(&values) != 0
}
