//! What is known about the value of a register, as far as it matters for addresses: the low dword.

use isa_spec::pcode::ir::BinOp;
use wavesim_loader::objects::{Object, Objects};

/// The start of a smaller object in bytes may be a position before the next one: `b[i - 1]`.
pub const LARGE: u32 = 64;

/// What an address is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Nothing: a number, or an offset in LDS or in the scratch of a lane.
    Zero,
    /// The start of the file in memory: an address that code computes from its own.
    Code,
    /// The stack pointer at the start of the function.
    Frame,
}

/// An object of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// By its index in [`Objects::global`].
    Global(u16),
    /// By its index in [`Objects::lds`].
    Lds(u16),
    /// By the index of its function in [`Objects::frames`], and its own there.
    Frame(u16, u16),
}

/// The distances of which an unknown offset is a sum of multiples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Bit n stands for 2^n.
    powers: u32,
    /// Another one; 0 if there is none.
    other: u32,
}

impl Strides {
    /// There is no offset.
    pub const NONE: Strides = Strides { powers: 0, other: 0 };

    fn power(stride: u32) -> Strides {
        Strides { powers: stride, other: 0 }
    }

    /// Returns the distances.
    fn each(self) -> impl Iterator<Item = u32> {
        let powers = (0..u32::BITS).map(|bit| 1 << bit).filter(move |power| self.powers & power != 0);
        powers.chain((self.other != 0).then_some(self.other))
    }

    /// Returns those of a sum; `None` if there are too many.
    fn plus(self, other: Strides) -> Option<Strides> {
        let known = [self.other, other.other];
        let differ = known[0] != 0 && known[1] != 0 && known[0] != known[1];
        (!differ).then_some(Strides { powers: self.powers | other.powers, other: known[0].max(known[1]) })
    }

    /// Returns those of a product with a constant; `None` if there are too many.
    fn times(self, factor: u32) -> Option<Strides> {
        match (self.powers, self.other) {
            (powers, other) if factor.is_power_of_two() => {
                Some(Strides { powers: powers << factor.trailing_zeros(), other: other.wrapping_mul(factor) })
            }
            (powers, 0) if powers.is_power_of_two() => {
                Some(Strides { powers: 0, other: powers.wrapping_mul(factor) })
            }
            _ => None,
        }
    }
}

/// What is known about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Nothing: it may be any address.
    Any,
    /// A base and a constant, and perhaps an unknown offset that is no address.
    At { base: Base, constant: u32, strides: Strides },
}

/// A number that is no address.
pub const OFFSET: Value = offset(1);

/// A multiple of a power of two.
const fn offset(stride: u32) -> Value {
    Value::At { base: Base::Zero, constant: 0, strides: Strides { powers: stride, other: 0 } }
}

impl Value {
    /// A constant.
    pub fn constant(constant: u32) -> Value {
        Value::exactly(Base::Zero, constant)
    }

    /// A base and a constant.
    pub fn exactly(base: Base, constant: u32) -> Value {
        Value::At { base, constant, strides: Strides::NONE }
    }

    /// Returns the constant after a base, if that is all.
    pub fn constant_of(self, of: Base) -> Option<u32> {
        match self {
            Value::At { base, constant, strides: Strides::NONE } if base == of => Some(constant),
            _ => None,
        }
    }

    /// Returns the value, if it is a constant.
    pub fn number(self) -> Option<u32> {
        self.constant_of(Base::Zero)
    }

    fn is_zero_based(self) -> bool {
        matches!(self, Value::At { base: Base::Zero, .. })
    }

    /// Returns whether it is certainly an address of its base, whatever is added to it.
    fn is_address(self) -> bool {
        matches!(self, Value::At { base: Base::Code | Base::Frame, .. })
    }

    /// Returns the sum of two values.
    pub fn plus(self, other: Value) -> Value {
        match (self, other) {
            (a, b) if a.is_address() && b.is_address() => Value::Any,
            // Nothing is added to an address but an offset.
            (Value::At { .. }, Value::Any) if self.is_address() => self.plus(OFFSET),
            (Value::Any, _) if other.is_address() => other.plus(OFFSET),
            (Value::Any, _) | (_, Value::Any) => Value::Any,
            (
                Value::At { base: a, constant: x, strides: v },
                Value::At { base: b, constant: y, strides: w },
            ) => {
                let base = if a == Base::Zero { b } else { a };
                let sum = |strides| Value::At { base, constant: x.wrapping_add(y), strides };
                v.plus(w).map_or(Value::Any, sum)
            }
        }
    }

    /// Returns the difference of two values.
    fn minus(self, other: Value) -> Value {
        match other {
            // A large step back selects another object.
            Value::At { base: Base::Zero, strides, .. } if strides.each().any(|s| s >= LARGE) => Value::Any,
            Value::At { base: Base::Zero, constant, strides } => {
                self.plus(Value::At { base: Base::Zero, constant: constant.wrapping_neg(), strides })
            }
            _ if self.is_address() && other.is_address() => OFFSET,
            _ => Value::Any,
        }
    }

    /// Returns the product with a constant.
    fn times(self, factor: u32) -> Value {
        match self {
            Value::At { base: Base::Zero, constant, strides } => {
                let product = |strides| Value::At {
                    base: Base::Zero,
                    constant: constant.wrapping_mul(factor),
                    strides,
                };
                strides.times(factor).map_or(Value::Any, product)
            }
            _ => OFFSET.times(factor),
        }
    }

    /// Returns the result of an operator on integers.
    pub fn binary(self, op: BinOp, other: Value) -> Value {
        if let (Some(a), Some(b)) = (self.number(), other.number()) {
            let shift = b.min(63);
            let folded = match op {
                BinOp::Add => Some(a.wrapping_add(b)),
                BinOp::Sub => Some(a.wrapping_sub(b)),
                BinOp::Mul => Some(a.wrapping_mul(b)),
                BinOp::And => Some(a & b),
                BinOp::Or => Some(a | b),
                BinOp::Xor => Some(a ^ b),
                BinOp::Shl => Some(((a as u64) << shift) as u32),
                BinOp::Eq => Some((a == b) as u32),
                BinOp::Ne => Some((a != b) as u32),
                BinOp::LogicalAnd => Some((a != 0 && b != 0) as u32),
                BinOp::LogicalOr => Some((a != 0 || b != 0) as u32),
                _ => None,
            };
            return folded.map_or(OFFSET, Value::constant);
        }
        match op {
            BinOp::LogicalAnd if [self, other].contains(&Value::constant(0)) => Value::constant(0),
            BinOp::LogicalOr if [self, other].contains(&Value::constant(1)) => Value::constant(1),
            BinOp::Add => self.plus(other),
            BinOp::Sub => self.minus(other),
            // Compilers replace sums whose bits do not overlap.
            BinOp::Or if self.is_zero_based() && other.is_zero_based() => self.plus(other),
            BinOp::And => match (self.number(), other.number()) {
                (Some(mask), None) => other.masked(mask),
                (None, Some(mask)) => self.masked(mask),
                _ => Value::Any,
            },
            BinOp::Shl if other.number() == Some(0) => self,
            BinOp::Shl => match other.number() {
                Some(count @ ..32) => self.times(1 << count),
                _ => OFFSET,
            },
            BinOp::Mul => match (self.number(), other.number()) {
                (Some(factor), _) => other.times(factor),
                (_, Some(factor)) => self.times(factor),
                _ => OFFSET,
            },
            BinOp::Shr if self.is_zero_based() => OFFSET,
            BinOp::Shr | BinOp::Xor | BinOp::Or => Value::Any,
            _ => OFFSET,
        }
    }

    fn masked(self, mask: u32) -> Value {
        match mask {
            // Aligned addresses do not change.
            0xffff_fff0.. if self.is_address() => self,
            0 => Value::constant(0),
            1..0x1_0000 => offset(1 << mask.trailing_zeros()),
            _ if self.is_zero_based() => offset(1 << mask.trailing_zeros()),
            _ => Value::Any,
        }
    }
}

/// Returns the object at a position of a base. `frame` is the index of the function in [`Objects::frames`].
pub fn object_at(objects: &Objects, base: Base, frame: Option<usize>, index: u32) -> Option<Target> {
    let in_frame =
        |frame: usize| Some(Target::Frame(frame as u16, find(&objects.frames[frame].variables, index)?));
    match base {
        Base::Code => Some(Target::Global(find(&objects.global, index)?)),
        Base::Frame => in_frame(frame?),
        Base::Zero => {
            let in_lds = find(&objects.lds, index).map(Target::Lds);
            in_lds.or_else(|| in_frame(frame?))
        }
    }
}

/// Returns the index of the object that contains a position.
pub fn find(objects: &[Object], offset: u32) -> Option<u16> {
    let offset = u64::from(offset);
    let index = objects.partition_point(|object| object.bytes.start <= offset).checked_sub(1)?;
    objects[index].bytes.contains(&offset).then_some(index as u16)
}

/// Returns the object for which an address is meant; `None` if one of its distances is that of two objects: compilers select
/// one of two arrays by adding it. `frame` is that of [`object_at`].
pub fn meant(objects: &Objects, frame: Option<usize>, address: Value) -> Option<Target> {
    let Value::At { base, constant, strides } = address else { return None };
    let target = object_at(objects, base, frame, constant)?;
    let start = super::object(objects, target).bytes.start;
    let selects = |stride: u32| {
        object_at(objects, base, frame, constant.wrapping_add(stride))
            .is_some_and(|other| super::object(objects, other).bytes.start == start + u64::from(stride))
    };
    (!strides.each().any(selects)).then_some(target)
}

/// Returns what is known of a value that is one of two: a pointer that counts through an object keeps its first constant.
/// `target` returns the object at a position of a base.
pub fn join(a: Value, b: Value, target: impl Fn(Base, u32) -> Option<Target>) -> Value {
    let (Value::At { base, constant, strides }, Value::At { base: other, constant: second, strides: also }) =
        (a, b)
    else {
        return Value::Any;
    };
    let same = || target(base, constant).is_some_and(|object| target(base, second) == Some(object));
    if base != other || constant != second && !same() {
        return Value::Any;
    }
    let distance = constant ^ second;
    let distance = Strides::power(if distance == 0 { 0 } else { 1 << distance.trailing_zeros() });
    let joined = strides.plus(also).and_then(|strides| strides.plus(distance));
    joined.map_or(Value::Any, |strides| Value::At { base, constant, strides })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_base() {
        let at = |base, constant, strides| Value::At { base, constant, strides };
        let ones = Strides::power(1);
        let code = Value::exactly(Base::Code, 100);
        assert_eq!(code.binary(BinOp::Add, Value::constant(8)), Value::exactly(Base::Code, 108));
        assert_eq!(OFFSET.binary(BinOp::Add, code), at(Base::Code, 100, ones));
        assert_eq!(Value::Any.binary(BinOp::Add, code), at(Base::Code, 100, ones));
        assert_eq!(Value::Any.binary(BinOp::Add, Value::constant(256)), Value::Any);
        assert_eq!(Value::Any.binary(BinOp::Shl, Value::constant(2)), offset(4));
        assert_eq!(OFFSET.binary(BinOp::Or, Value::constant(256)), at(Base::Zero, 256, ones));
        // One of two buffers.
        assert_eq!(Value::constant(0).binary(BinOp::Xor, OFFSET), Value::Any);
    }

    fn objects() -> Objects {
        let object = |start, end| Object { name: String::new(), bytes: start..end };
        Objects { lds: vec![object(0, 256), object(272, 336)], ..Objects::default() }
    }

    #[test]
    fn values_of_one_object_join() {
        let objects = objects();
        let target = |base, at| object_at(&objects, base, None, at);
        let loops = join(Value::constant(0), Value::constant(4), target);
        assert_eq!(loops, offset(4));
        assert_eq!(join(loops, loops.plus(Value::constant(4)), target), loops);
        let second = Value::constant(272);
        let varies = Value::At { base: Base::Zero, constant: 272, strides: Strides::power(4) };
        assert_eq!(join(second, second.plus(Value::constant(4)), target), varies);
        assert_eq!(join(Value::constant(0), Value::constant(272), target), Value::Any);
        assert_eq!(join(OFFSET, Value::constant(0), target), OFFSET);
    }

    #[test]
    fn distances_of_objects_select_one() {
        let objects = objects();
        let target = |value| meant(&objects, None, value);
        let index = OFFSET.binary(BinOp::Shl, Value::constant(2));
        let row = OFFSET.binary(BinOp::Mul, Value::constant(68));
        assert_eq!(target(index.plus(row)), Some(Target::Lds(0)));
        let one = Value::Any.binary(BinOp::And, Value::constant(1));
        let selected = one.binary(BinOp::Mul, Value::constant(272));
        assert_eq!(target(selected), None);
        assert_eq!(target(selected.plus(index)), None);
        assert_eq!(selected.plus(row), Value::Any);
        assert_eq!(target(Value::constant(272).plus(index)), Some(Target::Lds(1)));
        assert_eq!(Value::constant(272).binary(BinOp::Sub, selected), Value::Any);
    }
}
