//! Parts that two terms have in common, although they are written in different ways. Inputs tell which parts may be equal,
//! and each pair of them, the innermost first, is a small question: what is equal becomes one term. Products and sums of
//! many bits that no solver decides as a whole are often decided so.

use crate::samples::operand;
use crate::solver::{Answer, Solver, SolverError};
use isa_export::smt::{Node, Op, Tape, Term, Terms};
use isa_spec::arith::mask;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// The inputs that are tried.
const TESTS: usize = 320;

/// The number of tests that must satisfy the conditions; with fewer, all tests count.
const ENOUGH: usize = 24;

/// Terms beyond which nothing is tried.
const MAX_TERMS: usize = 60_000;

/// The part of the limit that the first question has, which is enough for most.
const FIRST: u32 = 4;

/// The limit of each question about parts.
const EACH: Duration = Duration::from_secs(2);

impl Solver {
    /// Asks for inputs for which two values differ where the conditions hold, and for the values of `wanted`. What is not
    /// decided in a part of the limit is asked again with parts that are proven to be equal.
    ///
    /// # Errors
    /// As [`Solver::ask`].
    pub fn ask_differ(
        &self,
        terms: &mut Terms,
        conditions: &[Term],
        values: [Term; 2],
        wanted: &[Term],
    ) -> Result<Answer, SolverError> {
        let question = |terms: &mut Terms, [a, b]: [Term; 2]| {
            let equal = terms.eq(a, b);
            let mut all = conditions.to_vec();
            all.push(terms.not(equal));
            all
        };
        let values = by_case(terms, values);
        if terms.is_same_polynomial(values[0], values[1]) {
            return Ok(Answer::Never);
        }
        let all = question(terms, values);
        let first = Solver { limit: self.limit / FIRST, ..self.clone() };
        match first.ask(terms, &all, wanted)? {
            Answer::Unknown(_) => {}
            answer => return Ok(answer),
        }
        let same = self.parts(terms, conditions, values)?;
        let values = values.map(|value| terms.substituted(value, &same));
        if terms.is_same_polynomial(values[0], values[1]) {
            return Ok(Answer::Never);
        }
        let all = question(terms, values);
        self.ask(terms, &all, wanted)
    }

    /// Terms in the second value that are equal to terms in the first, or to constants, where the conditions hold.
    fn parts(
        &self,
        terms: &mut Terms,
        conditions: &[Term],
        values: [Term; 2],
    ) -> Result<BTreeMap<Term, Term>, SolverError> {
        let end = Instant::now() + self.limit / 2;
        let mut same = BTreeMap::new();
        let mut agreed = agreeing(terms, conditions, values);
        // What needs no solver first.
        agreed.retain(|[part, other]| {
            let is_same = terms.is_same_polynomial(*part, *other);
            if is_same {
                same.insert(*part, *other);
            }
            !is_same
        });
        for [part, other] in agreed {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let [new, one] = [part, other].map(|term| terms.substituted(term, &same));
            if new == one || terms.is_same_polynomial(new, one) {
                same.extend([(part, one), (new, one)]);
                continue;
            }
            let equal = terms.eq(new, one);
            let mut question = conditions.to_vec();
            question.push(terms.not(equal));
            let solver = Solver { limit: EACH.min(left), ..self.clone() };
            if solver.ask(terms, &question, &[])? == Answer::Never {
                same.extend([(part, one), (new, one)]);
            }
        }
        Ok(same)
    }
}

/// Two choices by one variable, such as whether the lane is active, which is then known in each case.
fn by_case(terms: &mut Terms, values: [Term; 2]) -> [Term; 2] {
    let nodes = values.map(|value| terms.node(value).clone());
    let [a, b] = &nodes;
    let is_var = |terms: &Terms, node: &Node| matches!(terms.node(node.args[0]).op, Op::Var(_));
    if a.op != Op::Ite || b.op != Op::Ite || a.args[0] != b.args[0] || !is_var(terms, a) {
        return values;
    }
    let known = [true, false].map(|value| BTreeMap::from([(a.args[0], terms.bool(value))]));
    [a, b].map(|node| {
        let (yes, no) =
            (terms.substituted(node.args[1], &known[0]), terms.substituted(node.args[2], &known[1]));
        terms.ite(node.args[0], yes, no)
    })
}

/// Pairs of a term of the second value and one of the first, or a constant, that agree in all tests, the innermost first.
fn agreeing(terms: &mut Terms, conditions: &[Term], values: [Term; 2]) -> Vec<[Term; 2]> {
    let roots: Vec<Term> = values.iter().chain(conditions).copied().collect();
    let Some((tape, order)) = Tape::sketch(terms, &roots) else { return Vec::new() };
    if order.len() > MAX_TERMS {
        return Vec::new();
    }
    let places: HashMap<Term, usize> = order.iter().copied().zip(0..).collect();
    // Of each test: whether it satisfies the conditions, and the values of all terms, mixed into those of all tests.
    let (mut hashes, mut counts) = ([vec![0_u64; order.len()], vec![0_u64; order.len()]], [0, 0]);
    let mut constant: Vec<Option<u128>> = vec![None; order.len()];
    let mut varies = vec![false; order.len()];
    let mut scratch = Vec::new();
    for test in 0..TESTS {
        let inputs: Vec<u128> =
            (0..).zip(tape.inputs()).map(|(k, (_, width))| operand(test, k) & mask(*width)).collect();
        let holds = tape.run(&inputs, &mut scratch).skip(2).all(|condition| condition != 0);
        for (set, hash) in hashes.iter_mut().enumerate().skip(usize::from(!holds)) {
            counts[set] += 1;
            for (hash, value) in hash.iter_mut().zip(&scratch) {
                *hash = mixed(*hash, *value);
            }
        }
        for (at, value) in scratch.iter().enumerate() {
            varies[at] |= constant[at].is_some_and(|one| one != *value);
            constant[at] = Some(*value);
        }
    }
    let [satisfying, all] = hashes;
    let hash = if counts[0] >= ENOUGH { satisfying } else { all };
    let first: Vec<Term> = terms.reachable(&[values[0]]);
    let known: HashSet<Term> = first.iter().copied().collect();
    let class = |terms: &Terms, term: Term| (terms.width(term), hash[places[&term]]);
    let mut classes = HashMap::new();
    for term in first.into_iter().filter(|term| terms.width(*term) > 0) {
        classes.entry(class(terms, term)).or_insert(term);
    }
    let mut pairs = Vec::new();
    for term in terms.reachable(&[values[1]]) {
        let is_part = terms.width(term) > 0 && !known.contains(&term) && term != values[1];
        if !is_part || matches!(terms.node(term).op, Op::Var(_) | Op::Const(_)) {
            continue;
        }
        match (varies[places[&term]], classes.get(&class(terms, term))) {
            (false, _) => {
                let value = constant[places[&term]].unwrap_or(0);
                let other = terms.constant(value, terms.width(term));
                pairs.push([term, other]);
            }
            (true, Some(other)) => pairs.push([term, *other]),
            (true, None) => {}
        }
    }
    pairs
}

fn mixed(hash: u64, value: u128) -> u64 {
    let word = value as u64 ^ (value >> 64) as u64;
    let next = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (next ^ next >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
