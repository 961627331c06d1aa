//! Sums and products as polynomials, which have one form: solvers know little of distributivity.

use super::term::{Op, Term, Terms};
use isa_spec::arith::{mask, sign_extend};
use std::collections::{BTreeMap, HashMap};

/// Coefficients by the factors of each monomial. A factor is the value of a term as a number.
type Polynomial = BTreeMap<Vec<Term>, u128>;

/// The monomials beyond which a polynomial is given up.
const MAX_MONOMIALS: usize = 256;

/// The factors beyond which a monomial is given up.
const MAX_FACTORS: usize = 12;

impl Terms {
    /// Returns whether two bit vectors are the same polynomial of what sums and products are made of. If they are not, they
    /// may be equal for other reasons.
    pub fn is_same_polynomial(&mut self, a: Term, b: Term) -> bool {
        let width = self.width(a);
        if a == b || width == 0 || width != self.width(b) {
            return a == b;
        }
        // Choices by one condition, such as that a lane is active, and parts that are next to each other.
        let (x, y) = (self.node(a).clone(), self.node(b).clone());
        match (&x.op, &y.op) {
            (Op::Ite, Op::Ite) if x.args[0] == y.args[0] => {
                return (1..3).all(|at| {
                    // In each case, the condition is known.
                    let known = BTreeMap::from([(x.args[0], self.bool(at == 1))]);
                    let [a, b] = [&x, &y].map(|node| self.substituted(node.args[at], &known));
                    self.is_same_polynomial(a, b)
                });
            }
            (Op::Concat, Op::Concat)
                if self.width(x.args[0]) == self.width(y.args[0])
                    && (0..2).all(|at| self.is_same_polynomial(x.args[at], y.args[at])) =>
            {
                return true;
            }
            _ => {}
        }
        self.difference(a, b).is_some_and(|difference| {
            difference.is_empty() || self.lifted(&difference, width).is_some_and(|lifted| lifted.is_empty())
        })
    }

    fn difference(&self, a: Term, b: Term) -> Option<Polynomial> {
        let (mut known, width) = (HashMap::new(), self.width(a));
        let [a, b] = [a, b].map(|term| self.polynomial(term, &mut known));
        Some(plus(&a?, &scaled(&b?, u128::MAX, width), width))
    }

    /// A polynomial times a power of two, by which the upper parts of products become the products less their lower parts.
    fn lifted(&mut self, sum: &Polynomial, width: u32) -> Option<Polynomial> {
        // The product, and where its upper part begins.
        let upper = |terms: &Terms, factors: &[Term]| {
            let &[factor] = factors else { return None };
            let Op::Extract(lo) = terms.node(factor).op else { return None };
            let of = terms.node(factor).args[0];
            let end = lo + terms.width(factor);
            let is_top = terms.width(factor) >= width && terms.width(of) == end;
            // A carry of a sum that does not wrap.
            let is_carry = terms.most(of, 0).checked_shr(end) == Some(0);
            let is_upper = lo > 0 && (is_top || is_carry);
            (is_upper && matches!(terms.node(of).op, Op::Add | Op::Mul)).then_some((lo, of))
        };
        let lift = sum.keys().find_map(|factors| upper(self, factors))?.0;
        let wide = width + lift;
        if wide > 128 {
            return None;
        }
        let (mut total, mut known) = (Polynomial::new(), HashMap::new());
        for (factors, n) in sum {
            let part = match upper(self, factors) {
                Some((lo, of)) if lo == lift && self.width(of) >= wide => {
                    let low = self.extract(of, 0, lo);
                    let low = scaled(&self.number(low), u128::MAX, wide);
                    let whole = scaled(&self.polynomial(of, &mut known)?, 1, wide);
                    // The coefficient counts modulo a smaller power: the smallest one is likely to be meant.
                    scaled(&plus(&whole, &low, wide), sign_extend(*n, width), wide)
                }
                _ => scaled(&BTreeMap::from([(factors.clone(), *n)]), 1 << lift, wide),
            };
            total = plus(&total, &part, wide);
        }
        Some(total)
    }

    /// A term as a number, which has no other form.
    fn number(&self, term: Term) -> Polynomial {
        match self.value(term) {
            Some(value) => BTreeMap::from([(Vec::new(), value)]),
            None => BTreeMap::from([(vec![term], 1)]),
        }
    }

    /// The polynomial that is a term modulo 2 to the power of its width.
    fn polynomial(&self, root: Term, known: &mut HashMap<Term, Polynomial>) -> Option<Polynomial> {
        for term in self.reachable(&[root]) {
            if self.width(term) == 0 || known.contains_key(&term) {
                continue;
            }
            let node = self.node(term);
            let width = self.width(term);
            let of = |at: usize| known.get(&node.args[at]);
            let sum = match (&node.op, node.args.len()) {
                (Op::Const(_), _) => scaled(&self.number(term), 1, width),
                (Op::Add, _) => plus(of(0)?, of(1)?, width),
                (Op::Mul, _) => self.times(of(0)?, of(1)?, width)?,
                // One of two constants, such as copies of a sign.
                (Op::Ite, _) if self.value(node.args[1]).is_some() && self.value(node.args[2]).is_some() => {
                    let [yes, no] = [1, 2].map(|at| self.value(node.args[at]).unwrap_or(0));
                    let step = scaled(&self.number(node.args[0]), yes.wrapping_sub(no), width);
                    plus(&step, &BTreeMap::from([(Vec::new(), no)]), width)
                }
                // -1 - x
                (Op::Not, _) => {
                    let negative = scaled(of(0)?, u128::MAX, width);
                    plus(&negative, &BTreeMap::from([(Vec::new(), mask(width))]), width)
                }
                // The upper part counts modulo its own width, the lower one as a number.
                (Op::Concat, _) => {
                    let below = self.width(node.args[1]);
                    let high = scaled(of(0)?, 1 << below, width);
                    plus(&high, &self.number(node.args[1]), width)
                }
                _ => self.factor(term),
            };
            if sum.len() > MAX_MONOMIALS {
                return None;
            }
            known.insert(term, sum);
        }
        known.get(&root).cloned()
    }

    /// A term as a number. The low part of a term is the term, modulo the part's width.
    fn factor(&self, term: Term) -> Polynomial {
        let node = self.node(term);
        let of = if node.op == Op::Extract(0) { node.args[0] } else { term };
        BTreeMap::from([(vec![of], 1)])
    }

    fn times(&self, a: &Polynomial, b: &Polynomial, width: u32) -> Option<Polynomial> {
        if a.len() * b.len() > MAX_MONOMIALS * 4 {
            return None;
        }
        let mut product = Polynomial::new();
        for (x, n) in a {
            for (y, m) in b {
                let mut factors: Vec<Term> = x.iter().chain(y).copied().collect();
                factors.sort_unstable();
                // 0 and 1 are their own squares.
                factors.dedup_by(|a, b| a == b && self.width(*a) == 1);
                if factors.len() > MAX_FACTORS {
                    return None;
                }
                let total = product.entry(factors).or_insert(0);
                *total = total.wrapping_add(n.wrapping_mul(*m)) & mask(width);
            }
        }
        product.retain(|_, n| *n != 0);
        Some(product)
    }
}

fn scaled(sum: &Polynomial, by: u128, width: u32) -> Polynomial {
    let scaled = sum.iter().map(|(factors, n)| (factors.clone(), n.wrapping_mul(by) & mask(width)));
    scaled.filter(|(_, n)| *n != 0).collect()
}

fn plus(a: &Polynomial, b: &Polynomial, width: u32) -> Polynomial {
    let mut sum = a.clone();
    for (factors, n) in b {
        let total = sum.entry(factors.clone()).or_insert(0);
        *total = total.wrapping_add(*n) & mask(width);
    }
    sum.retain(|_, n| *n & mask(width) != 0);
    sum
}

#[cfg(test)]
mod tests {
    use super::super::{Sort, Tape};
    use super::*;

    /// A number without a pattern.
    fn next(seed: &mut u64, below: usize) -> usize {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as usize % below
    }

    /// Small terms of two variables; what is the same polynomial has the same values.
    #[test]
    fn the_same_polynomials_have_the_same_values() {
        let (mut seed, mut same) = (1, 0);
        for _ in 0..100 {
            let mut t = Terms::default();
            let mut all = vec![t.var("x", Sort::Bits(4)), t.var("y", Sort::Bits(4)), t.constant(3, 4)];
            for _ in 0..24 {
                let [a, b] = [(); 2].map(|()| all[next(&mut seed, all.len())]);
                let (low, sign) = (t.extract(a, 0, 2), t.extract(b, 3, 1));
                let new = match next(&mut seed, 10) {
                    0 => t.add_bits(a, b),
                    1 => t.mul(a, b),
                    2 => t.not(a),
                    3 => t.neg(a),
                    4 => {
                        let two = t.constant(next(&mut seed, 4) as u128, 4);
                        t.shl(a, two)
                    }
                    5 => t.zero_extend(low, 4),
                    6 => {
                        let high = t.extract(b, 1, 2);
                        t.concat(high, low)
                    }
                    // The upper half of a product, signed or not.
                    7 | 8 => {
                        let wide = [a, b].map(|v| {
                            if next(&mut seed, 2) == 0 { t.zero_extend(v, 8) } else { t.sign_extend(v, 8) }
                        });
                        let product = t.mul(wide[0], wide[1]);
                        t.extract(product, 4, 4)
                    }
                    _ => t.sign_extend(sign, 4),
                };
                all.push(new);
            }
            for (at, a) in all.iter().enumerate() {
                for b in &all[..at] {
                    if a == b || !t.is_same_polynomial(*a, *b) {
                        continue;
                    }
                    same += 1;
                    let tape = Tape::of(&t, &[*a, *b]).expect("no memory");
                    for number in 0..256_u128 {
                        let inputs: Vec<u128> = tape
                            .inputs()
                            .iter()
                            .map(|(name, _)| if name == "x" { number & 15 } else { number >> 4 })
                            .collect();
                        let values: Vec<u128> = tape.run(&inputs, &mut Vec::new()).collect();
                        assert_eq!(values[0], values[1], "{inputs:?}");
                    }
                }
            }
        }
        assert!(same > 30, "{same}");
    }
}
