//! Comparisons, and bounds of values.

use super::{Op, Term, Terms};
use isa_spec::arith::mask;

impl Terms {
    /// One bit: equal.
    pub fn eq(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.bool(x == y),
            _ if a == b => self.bool(true),
            (_, Some(1)) if self.width(a) == 1 => a,
            (_, Some(0)) if self.width(a) == 1 => self.not(a),
            // Bits above or below that are constant, such as those beyond a zero-extended value.
            (_, Some(y)) if self.node(a).op == Op::Concat => {
                let (high, low) = (self.node(a).args[0], self.node(a).args[1]);
                let width = self.width(low);
                let (above, below) = (y >> width, y & mask(width));
                match (self.value(high), self.value(low)) {
                    (Some(x), _) if x != above => self.bool(false),
                    (_, Some(x)) if x != below => self.bool(false),
                    (Some(_), _) => {
                        let below = self.constant(below, width);
                        self.eq(low, below)
                    }
                    (_, Some(_)) => {
                        let above = self.constant(above, self.width(high));
                        self.eq(high, above)
                    }
                    _ => self.bits(Op::Eq, vec![a, b], 1),
                }
            }
            _ => self.bits(Op::Eq, vec![a, b], 1),
        }
    }

    /// One bit: unsigned less.
    pub fn ult(&mut self, a: Term, b: Term) -> Term {
        self.less(Op::Ult, a, b)
    }

    /// One bit: signed less.
    pub fn slt(&mut self, a: Term, b: Term) -> Term {
        let positive = (1_u128 << (self.width(a) - 1)) - 1;
        let is_positive = |t: &Terms, v: Term| t.most(v, 0) <= positive;
        let op = if is_positive(self, a) && is_positive(self, b) { Op::Ult } else { Op::Slt };
        self.less(op, a, b)
    }

    fn less(&mut self, op: Op, a: Term, b: Term) -> Term {
        let key = (op == Op::Slt, a, b);
        if let Some(found) = self.comparisons.get(&key) {
            return *found;
        }
        let found = self.less_of(op, a, b);
        self.comparisons.insert(key, found);
        found
    }

    fn less_of(&mut self, op: Op, a: Term, b: Term) -> Term {
        let width = self.width(a);
        let signed = |v: u128| isa_spec::arith::sign_extend(v, width) as i128;
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) if op == Op::Ult => return self.bool(x < y),
            (Some(x), Some(y)) => return self.bool(signed(x) < signed(y)),
            (_, Some(0)) if op == Op::Ult => return self.bool(false),
            _ if a == b => return self.bool(false),
            (None, Some(y)) if op == Op::Ult && y.is_power_of_two() => {
                let most = self.most(a, 0);
                if most < y {
                    return self.bool(true);
                }
                // A carry: the only bit that can be set at or above.
                if most < y.saturating_mul(2) && most <= mask(width) && y <= mask(width) {
                    let carry = self.extract(a, y.trailing_zeros(), 1);
                    return self.not(carry);
                }
            }
            _ => {}
        }
        // Comparisons with a minimum or maximum are those with both.
        if let Some((smaller, [x, y])) = self.is_extreme(&op, a) {
            let (x, y) = (self.less(op.clone(), x, b), self.less(op, y, b));
            return if smaller { self.or(x, y) } else { self.and(x, y) };
        }
        if let Some((smaller, [x, y])) = self.is_extreme(&op, b) {
            let (x, y) = (self.less(op.clone(), a, x), self.less(op, a, y));
            return if smaller { self.and(x, y) } else { self.or(x, y) };
        }
        self.bits(op, vec![a, b], 1)
    }

    /// Whether a term is the smaller or larger of two, by a comparison.
    fn is_extreme(&self, op: &Op, term: Term) -> Option<(bool, [Term; 2])> {
        let node = self.node(term);
        let (Op::Ite, &[cond, a, b]) = (&node.op, &node.args[..]) else { return None };
        let test = self.node(cond);
        match test.args[..] {
            [x, y] if test.op == *op && [x, y] == [a, b] => Some((true, [a, b])),
            [x, y] if test.op == *op && [x, y] == [b, a] => Some((false, [a, b])),
            _ => None,
        }
    }

    /// A bound of a term's values.
    pub(in super::super) fn most(&self, term: Term, depth: u32) -> u128 {
        let node = self.node(term);
        let all = mask(self.width(term));
        if depth > 4 {
            return all;
        }
        let of = |at: usize| self.most(node.args[at], depth + 1);
        let bound = match node.op {
            Op::Const(value) => value,
            Op::Add => of(0).saturating_add(of(1)),
            Op::Mul => of(0).saturating_mul(of(1)),
            Op::Concat if self.value(node.args[0]) == Some(0) => of(1),
            Op::Ite => of(1).max(of(2)),
            _ => all,
        };
        // What may wrap may be anything.
        if bound > all { all } else { bound }
    }
}
