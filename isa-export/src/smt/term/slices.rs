//! Parts of bit vectors.

use super::{Op, Term, Terms};

impl Terms {
    /// `width` bits from bit `lo` on, which are all inside.
    pub fn extract(&mut self, a: Term, lo: u32, width: u32) -> Term {
        let of = self.width(a);
        debug_assert!(lo + width <= of && width > 0, "{lo} + {width} of {of}");
        if width == of {
            return a;
        }
        if let Some(found) = self.extracts.get(&(a, lo, width)) {
            return *found;
        }
        let found = self.extract_from(a, lo, width);
        self.extracts.insert((a, lo, width), found);
        found
    }

    fn extract_from(&mut self, a: Term, lo: u32, width: u32) -> Term {
        let node = self.node(a);
        match &node.op {
            Op::Const(value) => {
                let value = value >> lo;
                self.constant(value, width)
            }
            Op::Extract(inner) => {
                let (inner, of) = (*inner, node.args[0]);
                self.extract(of, inner + lo, width)
            }
            Op::Concat => {
                let (high, low) = (node.args[0], node.args[1]);
                let split = self.width(low);
                if lo >= split {
                    self.extract(high, lo - split, width)
                } else if lo + width <= split {
                    self.extract(low, lo, width)
                } else {
                    let upper = self.extract(high, 0, lo + width - split);
                    let lower = self.extract(low, lo, split - lo);
                    self.concat(upper, lower)
                }
            }
            // Bitwise operations of parts; the low part of a sum or product depends on the low parts only.
            Op::Not | Op::And | Op::Or | Op::Xor => {
                let (op, args) = (node.op.clone(), node.args.clone());
                let args: Vec<Term> = args.into_iter().map(|arg| self.extract(arg, lo, width)).collect();
                match op {
                    Op::Not => self.not(args[0]),
                    Op::And => self.and(args[0], args[1]),
                    Op::Or => self.or(args[0], args[1]),
                    _ => self.xor(args[0], args[1]),
                }
            }
            Op::Add | Op::Mul if lo == 0 => {
                let (sum, args) = (node.op == Op::Add, node.args.clone());
                let args: Vec<Term> = args.into_iter().map(|arg| self.extract(arg, 0, width)).collect();
                if sum { self.add_bits(args[0], args[1]) } else { self.mul(args[0], args[1]) }
            }
            Op::Ite => {
                let (cond, yes, no) = (node.args[0], node.args[1], node.args[2]);
                let yes = self.extract(yes, lo, width);
                let no = self.extract(no, lo, width);
                self.ite(cond, yes, no)
            }
            _ => self.bits(Op::Extract(lo), vec![a], width),
        }
    }

    /// Joins bit vectors, the first above the second.
    pub fn concat(&mut self, high: Term, low: Term) -> Term {
        let width = self.width(high) + self.width(low);
        if let (Some(x), Some(y)) = (self.value(high), self.value(low)) {
            let shifted = x.checked_shl(self.width(low)).unwrap_or(0);
            return self.constant(shifted | y, width);
        }
        // Adjacent parts of one term, and constants that meet.
        let (h, l) = (self.node(high).clone(), self.node(low).clone());
        if let (Op::Extract(above), Op::Extract(below)) = (&h.op, &l.op)
            && h.args[0] == l.args[0]
            && *above == below + self.width(low)
        {
            return self.extract(h.args[0], *below, width);
        }
        if l.op == Op::Concat {
            let (middle, rest) = (l.args[0], l.args[1]);
            let joins = self.value(high).is_some() && self.value(middle).is_some()
                || match (&h.op, &self.node(middle).op) {
                    (Op::Extract(above), Op::Extract(below)) => {
                        self.node(middle).args[0] == h.args[0] && *above == below + self.width(middle)
                    }
                    _ => false,
                };
            if joins {
                let upper = self.concat(high, middle);
                return self.concat(upper, rest);
            }
        }
        // To the right, so that the comparison above sees each pair of neighbours.
        if h.op == Op::Concat {
            let (first, second) = (h.args[0], h.args[1]);
            let lower = self.concat(second, low);
            return self.concat(first, lower);
        }
        self.bits(Op::Concat, vec![high, low], width)
    }

    /// Extends with zeros to a width, which is not smaller.
    pub fn zero_extend(&mut self, a: Term, width: u32) -> Term {
        let own = self.width(a);
        if own == width {
            return a;
        }
        let zeros = self.constant(0, width - own);
        self.concat(zeros, a)
    }

    /// Extends with copies of the sign to a width, which is not smaller.
    pub fn sign_extend(&mut self, a: Term, width: u32) -> Term {
        let own = self.width(a);
        if own == width {
            return a;
        }
        let sign = self.extract(a, own - 1, 1);
        let (ones, zeros) = (self.constant(u128::MAX, width - own), self.constant(0, width - own));
        let above = self.ite(sign, ones, zeros);
        self.concat(above, a)
    }

    /// Truncates, or extends with zeros.
    pub fn resize(&mut self, a: Term, width: u32) -> Term {
        if width <= self.width(a) { self.extract(a, 0, width) } else { self.zero_extend(a, width) }
    }

    /// Replaces the bits from `lo` on, all of which are inside.
    pub fn replace(&mut self, old: Term, part: Term, lo: u32) -> Term {
        let (of, width) = (self.width(old), self.width(part));
        let mut result = part;
        if lo > 0 {
            let below = self.extract(old, 0, lo);
            result = self.concat(result, below);
        }
        if lo + width < of {
            let above = self.extract(old, lo + width, of - lo - width);
            result = self.concat(above, result);
        }
        result
    }
}
