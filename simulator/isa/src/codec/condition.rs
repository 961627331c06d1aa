//! Encoding conditions, compiled for the decoder to masks and values instead of expression trees wherever
//! possible.

use isa_spec::tables::{Cond, CondOp, Field, MAX_FIELDS};

/// A compiled encoding condition. Nearly all conditions compare fields to constants, which compiles to masks
/// and values of the instruction's first 64 bits.
#[derive(Debug)]
pub enum Predicate {
    /// Always holds.
    Always,
    /// Holds if any `(mask, value)` matches the first 64 bits.
    Any(Vec<(u64, u64)>),
    /// Holds if no `(mask, value)` matches the first 64 bits.
    None(Vec<(u64, u64)>),
    /// Any other condition: the expression over the encoding's fields.
    Expression(&'static Cond, &'static [Field]),
}

impl Predicate {
    /// Compiles a condition over an encoding's fields.
    pub fn new(expr: &'static Cond, fields: &'static [Field]) -> Predicate {
        match expr {
            Cond::True => Predicate::Always,
            Cond::Lit(value) if *value != 0 => Predicate::Always,
            Cond::Op(CondOp::Not, [inner]) => match Predicate::new(inner, fields) {
                Predicate::Any(list) => Predicate::None(list),
                Predicate::None(list) => Predicate::Any(list),
                _ => Predicate::Expression(expr, fields),
            },
            Cond::Op(op @ (CondOp::Or | CondOp::And), [left, right]) => {
                match (op, Predicate::new(left, fields), Predicate::new(right, fields)) {
                    (CondOp::Or, Predicate::Any(a), Predicate::Any(b)) => Predicate::Any([a, b].concat()),
                    (CondOp::And, Predicate::None(a), Predicate::None(b)) => Predicate::None([a, b].concat()),
                    _ => Predicate::Expression(expr, fields),
                }
            }
            Cond::Op(op @ (CondOp::Eq | CondOp::Ne), [Cond::Field(at), Cond::Lit(value)]) => {
                let plain = fields.get(*at as usize).and_then(|field| equals(field, *value));
                match (op, plain) {
                    (CondOp::Eq, Some(plain)) => Predicate::Any(vec![plain]),
                    (_, Some(plain)) => Predicate::None(vec![plain]),
                    (_, None) => Predicate::Expression(expr, fields),
                }
            }
            _ => Predicate::Expression(expr, fields),
        }
    }

    /// Evaluates the condition for an instruction, given as its first and second 64 bits.
    #[inline]
    pub fn holds(&self, halves: [u64; 2]) -> bool {
        let any = |list: &[(u64, u64)]| list.iter().any(|(mask, value)| halves[0] & mask == *value);
        match self {
            Predicate::Always => true,
            Predicate::Any(list) => any(list),
            Predicate::None(list) => !any(list),
            Predicate::Expression(expr, fields) => tree(expr, fields, halves),
        }
    }
}

/// Mask and value for comparing a field to `value`; `None` if the field is not within the first 64 bits or
/// the value does not fit.
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
