//! Digests of terms, by which questions are recognised in other runs.

use super::term::{Op, Sort, Term, Terms};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;

impl Terms {
    /// Returns a digest of terms in this order: their operations, constants, and the names and sorts of their variables.
    pub fn digest(&self, roots: &[Term]) -> u64 {
        let (mut hash, mut places) = (Sha256::new(), HashMap::new());
        let number = |hash: &mut Sha256, value: u128| hash.update(value.to_le_bytes());
        let name = |hash: &mut Sha256, text: &str| {
            number(hash, text.len() as u128);
            hash.update(text);
        };
        for (place, term) in (0_u128..).zip(self.reachable(roots)) {
            let node = self.node(term);
            match &node.op {
                Op::Var(of) => name(&mut hash, &format!("variable {of}")),
                Op::Const(value) => {
                    name(&mut hash, "constant");
                    number(&mut hash, *value);
                }
                op => name(&mut hash, &format!("{op:?}")),
            }
            match node.sort {
                Sort::Bits(width) => number(&mut hash, width as u128),
                Sort::Memory(width) => number(&mut hash, 1000 + width as u128),
            }
            number(&mut hash, node.args.len() as u128);
            for arg in &node.args {
                number(&mut hash, places[arg]);
            }
            places.insert(term, place);
        }
        for root in roots {
            number(&mut hash, places[root]);
        }
        let bytes: [u8; 32] = hash.finalize().into();
        u64::from_le_bytes(std::array::from_fn(|at| bytes[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_do_not_depend_on_other_terms() {
        let question = |others: u128, by: u128| {
            let mut t = Terms::default();
            for k in 0..others {
                t.constant(1000 + k, 32);
            }
            let [x, y] = ["x", "y"].map(|name| t.var(name, Sort::Bits(32)));
            let (by, sum) = (t.constant(by, 32), t.add_bits(x, y));
            let product = t.mul(sum, by);
            t.digest(&[product, x])
        };
        assert_eq!(question(0, 3), question(9, 3));
        assert_ne!(question(0, 3), question(0, 5));
    }
}
