//! Terms, each of which exists once, so that equal terms are the same number. Constructors simplify.

mod compare;
mod slices;

use foldhash::HashMap;
use isa_spec::arith::mask;
use isa_spec::pcode::ir::Ty;
use std::collections::HashSet;

/// The sort of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sort {
    /// A bit vector of at most 128 bits.
    Bits(u32),
    /// Bytes by an address of this many bits.
    Memory(u32),
}

/// A term of [`Terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(u32);

impl Term {
    /// The number of the term: later terms have larger ones.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Rounding of a float operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants say what they are")]
pub enum Rounding {
    NearestEven,
    Positive,
    Negative,
    Zero,
}

/// An operation of the theory of floating-point numbers, on bit patterns. A result that is a NaN is any NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants say what they are")]
pub enum FloatOp {
    Add(Ty, Rounding),
    Mul(Ty, Rounding),
    Div(Ty, Rounding),
    Fma(Ty, Rounding),
    Sqrt(Ty, Rounding),
    /// To an integral number.
    Integral(Ty, Rounding),
    /// Between formats.
    Convert {
        from: Ty,
        to: Ty,
        rounding: Rounding,
    },
    /// From an integer.
    FromInt {
        signed: bool,
        to: Ty,
        rounding: Rounding,
    },
    /// To an integer, which can represent the number.
    ToInt {
        from: Ty,
        width: u32,
        signed: bool,
        rounding: Rounding,
    },
    /// One bit: `<`; false with a NaN.
    Less(Ty),
    /// One bit: `==`; false with a NaN, and -0 equals +0.
    Equal(Ty),
}

/// An operation with the meaning that SMT-LIB gives it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// A free variable.
    Var(String),
    /// A constant of the term's sort.
    Const(u128),
    /// `bvnot`.
    Not,
    /// `bvand`.
    And,
    /// `bvor`.
    Or,
    /// `bvxor`.
    Xor,
    /// `bvadd`.
    Add,
    /// `bvmul`.
    Mul,
    /// `bvudiv`.
    Udiv,
    /// `bvurem`.
    Urem,
    /// `bvshl`.
    Shl,
    /// `bvlshr`.
    Lshr,
    /// `bvashr`.
    Ashr,
    /// One bit: equal.
    Eq,
    /// One bit: `bvult`.
    Ult,
    /// One bit: `bvslt`.
    Slt,
    /// The second argument if the first is 1, else the third.
    Ite,
    /// The bits from this one on.
    Extract(u32),
    /// The first argument is the upper part.
    Concat,
    /// The byte of a memory at an address.
    Select,
    /// A memory with another byte at an address.
    Store,
    /// A function about which nothing is known but that equal arguments have equal results.
    Apply(String),
    /// Float arithmetic.
    Float(FloatOp),
}

/// An operation with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The arguments.
    pub args: Vec<Term>,
    /// The sort of the result.
    pub sort: Sort,
}

/// Constants with at most so many runs of equal bits are masks.
const MAX_RUNS: u32 = 5;

/// Numbers of at most so many bits are looked at for conditions that are all of their values.
const MAX_CHOICE: u32 = 4;

/// Returns the number of runs of equal bits.
fn runs(bits: u128, width: u32) -> u32 {
    ((bits ^ bits >> 1) & mask(width - 1)).count_ones() + 1
}

/// A set of terms.
#[derive(Debug, Default)]
pub struct Terms {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Term>,
    /// Parts of terms that were asked for before: a term may be reached on many ways.
    extracts: HashMap<(Term, u32, u32), Term>,
    /// Comparisons that were asked for before, with whether they are signed.
    comparisons: HashMap<(bool, Term, Term), Term>,
}

impl Terms {
    /// Returns the operation and arguments of a term.
    pub fn node(&self, term: Term) -> &Node {
        &self.nodes[term.0 as usize]
    }

    /// Returns the number of terms that exist.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there is no term yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn add(&mut self, op: Op, args: Vec<Term>, sort: Sort) -> Term {
        let next = Term(self.nodes.len() as u32);
        let node = Node { op, args, sort };
        match self.numbers.entry(node) {
            std::collections::hash_map::Entry::Occupied(found) => *found.get(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                self.nodes.push(entry.key().clone());
                entry.insert(next);
                next
            }
        }
    }

    fn bits(&mut self, op: Op, args: Vec<Term>, width: u32) -> Term {
        self.add(op, args, Sort::Bits(width))
    }

    /// Returns the width of a bit vector; 0 for a memory.
    pub fn width(&self, term: Term) -> u32 {
        match self.node(term).sort {
            Sort::Bits(width) => width,
            Sort::Memory(_) => 0,
        }
    }

    /// Returns the value of a constant.
    pub fn value(&self, term: Term) -> Option<u128> {
        match self.node(term).op {
            Op::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value of a condition that is constant.
    pub fn truth(&self, term: Term) -> Option<bool> {
        self.value(term).map(|value| value != 0)
    }

    /// A free variable.
    pub fn var(&mut self, name: &str, sort: Sort) -> Term {
        self.add(Op::Var(name.to_string()), Vec::new(), sort)
    }

    /// A constant of a width.
    pub fn constant(&mut self, value: u128, width: u32) -> Term {
        self.bits(Op::Const(value & mask(width)), Vec::new(), width)
    }

    /// A condition.
    pub fn bool(&mut self, value: bool) -> Term {
        self.constant(value as u128, 1)
    }

    /// Inverts all bits.
    pub fn not(&mut self, a: Term) -> Term {
        let width = self.width(a);
        match &self.node(a).op {
            Op::Const(value) => {
                let value = !value;
                self.constant(value, width)
            }
            Op::Not => self.node(a).args[0],
            _ => self.bits(Op::Not, vec![a], width),
        }
    }

    /// Two's complement.
    pub fn neg(&mut self, a: Term) -> Term {
        let (width, not) = (self.width(a), self.not(a));
        let one = self.constant(1, width);
        self.add_bits(not, one)
    }

    /// The arguments in the order of a commutative operation: constants last.
    fn ordered(&self, a: Term, b: Term) -> (Term, Term) {
        let key = |t: Term| (self.value(t).is_some(), t);
        if key(a) <= key(b) { (a, b) } else { (b, a) }
    }

    /// Bitwise and.
    pub fn and(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x & y, width),
            (_, Some(0)) => b,
            (_, Some(y)) if y == mask(width) => a,
            _ if a == b => a,
            (_, Some(y)) if runs(y, width) <= MAX_RUNS => {
                self.by_runs(
                    y,
                    width,
                    |t, set, lo, width| {
                        if set { t.extract(a, lo, width) } else { t.constant(0, width) }
                    },
                )
            }
            _ if width == 1 && (self.is_not(a, b)) => self.bool(false),
            _ => self.bits(Op::And, vec![a, b], width),
        }
    }

    /// Joins parts that a function makes of the runs of equal bits of a constant. Operations with masks become
    /// movements of bits, which have one form only.
    fn by_runs(&mut self, bits: u128, width: u32, part: impl Fn(&mut Terms, bool, u32, u32) -> Term) -> Term {
        let (mut value, mut lo) = (None, 0);
        while lo < width {
            let set = bits >> lo & 1 == 1;
            let run = if set { (bits >> lo).trailing_ones() } else { (bits >> lo).trailing_zeros() };
            let run = run.min(width - lo);
            let next = part(self, set, lo, run);
            value = Some(value.map_or(next, |low| self.concat(next, low)));
            lo += run;
        }
        value.unwrap_or_else(|| self.constant(0, width))
    }

    /// Returns whether one term is the other, inverted.
    fn is_not(&self, a: Term, b: Term) -> bool {
        let inverts = |a: Term, b: Term| self.node(a).op == Op::Not && self.node(a).args[0] == b;
        inverts(a, b) || inverts(b, a)
    }

    /// Bitwise or.
    pub fn or(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x | y, width),
            (_, Some(0)) => a,
            (_, Some(y)) if y == mask(width) => b,
            (_, Some(y)) if runs(y, width) <= MAX_RUNS => self.by_runs(y, width, |t, set, lo, width| {
                if set { t.constant(u128::MAX, width) } else { t.extract(a, lo, width) }
            }),
            _ if a == b => a,
            _ if width == 1 && self.is_not(a, b) => self.bool(true),
            _ => self.bits(Op::Or, vec![a, b], width),
        }
    }

    /// Bitwise exclusive or.
    pub fn xor(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x ^ y, width),
            (_, Some(0)) => a,
            (_, Some(y)) if y == mask(width) => self.not(a),
            (_, Some(y)) if runs(y, width) <= MAX_RUNS => self.by_runs(y, width, |t, set, lo, width| {
                let part = t.extract(a, lo, width);
                if set { t.not(part) } else { part }
            }),
            _ if a == b => self.constant(0, width),
            _ => self.bits(Op::Xor, vec![a, b], width),
        }
    }

    /// A sum, wrapping.
    pub fn add_bits(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x.wrapping_add(y), width),
            (_, Some(0)) => a,
            (_, Some(y)) => {
                // The sum of a term and one constant.
                if let Node { op: Op::Add, args, .. } = self.node(a)
                    && let Some(x) = self.value(args[1])
                {
                    let first = args[0];
                    let sum = self.constant(x.wrapping_add(y), width);
                    return self.add_bits(first, sum);
                }
                self.bits(Op::Add, vec![a, b], width)
            }
            _ => {
                // Constants move outwards: (x + 1) + y is (x + y) + 1.
                for (one, other) in [(a, b), (b, a)] {
                    if let Node { op: Op::Add, args, .. } = self.node(one)
                        && self.value(args[1]).is_some()
                    {
                        let (first, constant) = (args[0], args[1]);
                        let sum = self.add_bits(first, other);
                        return self.add_bits(sum, constant);
                    }
                }
                self.bits(Op::Add, vec![a, b], width)
            }
        }
    }

    /// A difference, wrapping.
    pub fn sub(&mut self, a: Term, b: Term) -> Term {
        if a == b {
            let width = self.width(a);
            return self.constant(0, width);
        }
        let negative = self.neg(b);
        self.add_bits(a, negative)
    }

    /// A product, wrapping.
    pub fn mul(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x.wrapping_mul(y), width),
            (_, Some(0)) => b,
            (_, Some(1)) => a,
            (_, Some(y)) if y.is_power_of_two() => {
                let count = self.constant(y.trailing_zeros() as u128, width);
                self.shl(a, count)
            }
            _ => self.bits(Op::Mul, vec![a, b], width),
        }
    }

    /// An unsigned quotient; all ones for a divisor of 0.
    pub fn udiv(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x.checked_div(y).unwrap_or(u128::MAX), width),
            (_, Some(1)) => a,
            _ => self.bits(Op::Udiv, vec![a, b], width),
        }
    }

    /// An unsigned remainder; the dividend for a divisor of 0.
    pub fn urem(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.constant(x.checked_rem(y).unwrap_or(x), width),
            _ => self.bits(Op::Urem, vec![a, b], width),
        }
    }

    /// Shifts left; 0 for counts at or beyond the width. The count has the same width.
    pub fn shl(&mut self, a: Term, count: Term) -> Term {
        let width = self.width(a);
        match self.value(count) {
            Some(0) => a,
            Some(count) if count >= width as u128 => self.constant(0, width),
            Some(count) => {
                let low = self.extract(a, 0, width - count as u32);
                let zeros = self.constant(0, count as u32);
                self.concat(low, zeros)
            }
            None => self.bits(Op::Shl, vec![a, count], width),
        }
    }

    /// Shifts right; 0 for counts at or beyond the width.
    pub fn lshr(&mut self, a: Term, count: Term) -> Term {
        let width = self.width(a);
        match self.value(count) {
            Some(0) => a,
            Some(count) if count >= width as u128 => self.constant(0, width),
            Some(count) => {
                let high = self.extract(a, count as u32, width - count as u32);
                self.zero_extend(high, width)
            }
            None => self.bits(Op::Lshr, vec![a, count], width),
        }
    }

    /// Shifts right with copies of the sign.
    pub fn ashr(&mut self, a: Term, count: Term) -> Term {
        let width = self.width(a);
        match self.value(count) {
            Some(0) => a,
            Some(count) => {
                let count = (count as u32).min(width - 1);
                let high = self.extract(a, count, width - count);
                self.sign_extend(high, width)
            }
            None => self.bits(Op::Ashr, vec![a, count], width),
        }
    }

    /// Chooses by a condition.
    pub fn ite(&mut self, cond: Term, a: Term, b: Term) -> Term {
        match self.truth(cond) {
            Some(true) => return a,
            Some(false) => return b,
            None if a == b => return a,
            None => {}
        }
        if self.node(cond).op == Op::Not {
            let cond = self.node(cond).args[0];
            return self.ite(cond, b, a);
        }
        // A choice by the same condition inside.
        let inner = |terms: &Terms, t: Term, at: usize| {
            let node = terms.node(t);
            (node.op == Op::Ite && node.args[0] == cond).then(|| node.args[at])
        };
        let (a, b) = (inner(self, a, 1).unwrap_or(a), inner(self, b, 2).unwrap_or(b));
        if a == b {
            return a;
        }
        if let Some(b) = self.without_default(cond, b) {
            return self.ite(cond, a, b);
        }
        if self.width(a) == 1 {
            match (self.truth(a), self.truth(b)) {
                (Some(true), Some(false)) => return cond,
                (Some(false), Some(true)) => return self.not(cond),
                (Some(true), None) => return self.or(cond, b),
                (None, Some(false)) => return self.and(cond, a),
                (Some(false), None) => {
                    let not = self.not(cond);
                    return self.and(not, b);
                }
                (None, Some(true)) => {
                    let not = self.not(cond);
                    return self.or(not, a);
                }
                _ => {}
            }
        }
        let sort = self.node(a).sort;
        self.add(Op::Ite, vec![cond, a, b], sort)
    }

    /// A number of a few bits, if a condition is that it equals a constant.
    fn equality(&self, cond: Term) -> Option<(Term, u32)> {
        let node = self.node(cond);
        let (Op::Eq, &[number, constant]) = (&node.op, &node.args[..]) else { return None };
        let value = self.value(constant)?;
        (self.width(number) <= MAX_CHOICE).then_some((number, value as u32))
    }

    /// The alternative to a condition without its last alternative, if that is never chosen: together, the conditions are
    /// all values of a number. The last one of them need not be asked then.
    fn without_default(&mut self, cond: Term, alternative: Term) -> Option<Term> {
        let (number, value) = self.equality(cond)?;
        let all = (1_u32 << (1 << self.width(number))) - 1;
        let (mut seen, mut list, mut rest) = (1_u32 << value, Vec::new(), alternative);
        while seen != all {
            let (Op::Ite, &[cond, yes, no]) = (&self.node(rest).op, &self.node(rest).args[..]) else {
                return None;
            };
            let (_, value) = self.equality(cond).filter(|(other, _)| *other == number)?;
            seen |= 1 << value;
            list.push((cond, yes));
            rest = no;
        }
        let (_, last) = list.pop()?;
        Some(list.into_iter().rev().fold(last, |rest, (cond, yes)| self.ite(cond, yes, rest)))
    }

    /// An address as a term plus a constant.
    fn offset(&self, address: Term) -> (Option<Term>, u128) {
        let node = self.node(address);
        match node.op {
            Op::Const(value) => (None, value),
            Op::Add => match self.value(node.args[1]) {
                Some(value) => (Some(node.args[0]), value),
                None => (Some(address), 0),
            },
            _ => (Some(address), 0),
        }
    }

    /// The byte of a memory at an address.
    pub fn select(&mut self, mut memory: Term, address: Term) -> Term {
        let (base, offset) = self.offset(address);
        while self.node(memory).op == Op::Store {
            let [before, at, byte] = self.node(memory).args[..] else { break };
            if at == address {
                return byte;
            }
            let (other, distance) = self.offset(at);
            // The same base with another offset is another address.
            if other != base || distance == offset {
                break;
            }
            memory = before;
        }
        self.bits(Op::Select, vec![memory, address], 8)
    }

    /// A memory with another byte at an address.
    pub fn store(&mut self, memory: Term, address: Term, byte: Term) -> Term {
        let sort = self.node(memory).sort;
        self.add(Op::Store, vec![memory, address, byte], sort)
    }

    /// An unknown function.
    pub fn apply(&mut self, name: &str, args: Vec<Term>, width: u32) -> Term {
        self.bits(Op::Apply(name.to_string()), args, width)
    }

    /// A float operation, whose result has this width. Which NaN results is left open, so that sums and products do not
    /// depend on the order.
    pub fn float(&mut self, op: FloatOp, mut args: Vec<Term>, width: u32) -> Term {
        if matches!(op, FloatOp::Add(..) | FloatOp::Mul(..) | FloatOp::Fma(..) | FloatOp::Equal(_)) {
            args[..2].sort_unstable();
        }
        self.bits(Op::Float(op), args, width)
    }

    /// Returns the terms that a list of terms is made of, each after its arguments.
    pub fn reachable(&self, roots: &[Term]) -> Vec<Term> {
        let (mut seen, mut order) = (HashSet::new(), Vec::new());
        // A term is left when it is met the second time: terms can be nested too deeply for recursion.
        let mut stack: Vec<(Term, bool)> = roots.iter().rev().map(|root| (*root, false)).collect();
        while let Some((term, done)) = stack.pop() {
            if done {
                order.push(term);
            } else if seen.insert(term) {
                stack.push((term, true));
                stack.extend(self.node(term).args.iter().rev().map(|arg| (*arg, false)));
            }
        }
        order
    }
}
