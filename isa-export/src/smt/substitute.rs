//! Terms with other terms in place of variables.

use super::term::{Op, Term, Terms};
use std::collections::{BTreeMap, HashMap};

impl Terms {
    /// Returns a term in which terms are replaced by others of their sorts, and simplified again.
    pub fn substituted(&mut self, root: Term, by: &BTreeMap<Term, Term>) -> Term {
        if by.is_empty() {
            return root;
        }
        let mut done: HashMap<Term, Term> = HashMap::new();
        for term in self.reachable(&[root]) {
            let new = match by.get(&term) {
                Some(other) => *other,
                None => {
                    let args: Vec<Term> = self.node(term).args.iter().map(|arg| done[arg]).collect();
                    if args == self.node(term).args { term } else { self.again(term, &args) }
                }
            };
            done.insert(term, new);
        }
        done[&root]
    }

    /// The operation of a term with other arguments.
    fn again(&mut self, term: Term, args: &[Term]) -> Term {
        let (op, width) = (self.node(term).op.clone(), self.width(term));
        match (op, args) {
            (Op::Not, [a]) => self.not(*a),
            (Op::And, [a, b]) => self.and(*a, *b),
            (Op::Or, [a, b]) => self.or(*a, *b),
            (Op::Xor, [a, b]) => self.xor(*a, *b),
            (Op::Add, [a, b]) => self.add_bits(*a, *b),
            (Op::Mul, [a, b]) => self.mul(*a, *b),
            (Op::Udiv, [a, b]) => self.udiv(*a, *b),
            (Op::Urem, [a, b]) => self.urem(*a, *b),
            (Op::Shl, [a, b]) => self.shl(*a, *b),
            (Op::Lshr, [a, b]) => self.lshr(*a, *b),
            (Op::Ashr, [a, b]) => self.ashr(*a, *b),
            (Op::Eq, [a, b]) => self.eq(*a, *b),
            (Op::Ult, [a, b]) => self.ult(*a, *b),
            (Op::Slt, [a, b]) => self.slt(*a, *b),
            (Op::Ite, [cond, a, b]) => self.ite(*cond, *a, *b),
            (Op::Extract(lo), [a]) => self.extract(*a, lo, width),
            (Op::Concat, [high, low]) => self.concat(*high, *low),
            (Op::Select, [memory, address]) => self.select(*memory, *address),
            (Op::Store, [memory, address, byte]) => self.store(*memory, *address, *byte),
            (Op::Apply(name), args) => self.apply(&name, args.to_vec(), width),
            (Op::Float(op), args) => self.float(op, args.to_vec(), width),
            // Variables and constants have no arguments.
            _ => term,
        }
    }
}
