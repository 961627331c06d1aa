//! Do two bodies compute the same? Their operands, state and memory are the same variables.

use crate::proof::ProofError;
use crate::solver::{Answer, Solver};
use isa_export::smt::{Op, Sort, Tape, Term, Terms};
use isa_export::smtlib;
use isa_spec::pcode::ir::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bodies {
    /// All results are equal for all operands and state.
    Equal,
    /// Some differ.
    Differ {
        /// Operands and state for which they do, by the names of exports; all others are 0.
        inputs: BTreeMap<String, u128>,
        /// The result that differs.
        result: String,
        /// Its values, if they are known: not those of memory, nor of unknown functions.
        values: Option<[u128; 2]>,
    },
    /// Not decided, for this reason.
    Unknown(String),
}

/// Asks whether two bodies compute the same, in the modes of compute kernels.
///
/// # Errors
/// The solver cannot be used.
pub fn compare_bodies(a: &Semantics, b: &Semantics, solver: &Solver) -> Result<Bodies, ProofError> {
    let mut terms = Terms::default();
    if a.shape != b.shape {
        return Ok(Bodies::Unknown("one runs for each lane, the other for the wave".into()));
    }
    let mut results = Vec::new();
    for sem in [a, b] {
        match smtlib::evaluate_in(&mut terms, sem) {
            Ok(values) => results.push(values),
            Err(why) => return Ok(Bodies::Unknown(why.to_string())),
        }
    }
    let names: BTreeSet<&String> = results.iter().flat_map(BTreeMap::keys).collect();
    for name in names {
        let values: Vec<Term> = results.iter().filter_map(|values| values.get(name).copied()).collect();
        let &[x, y] = &values[..] else { return Ok(Bodies::Unknown(format!("only one writes {name}"))) };
        if terms.node(x).sort != terms.node(y).sort {
            return Ok(Bodies::Unknown(format!("{name} has another width")));
        }
        if let Some(name) = conflict(&terms, &[x, y]) {
            return Ok(Bodies::Unknown(format!("{name} has another width")));
        }
        let equal = terms.eq(x, y);
        let differ = terms.not(equal);
        if terms.truth(differ) == Some(false) {
            continue;
        }
        let variables: Vec<Term> = terms
            .reachable(&[differ])
            .into_iter()
            .filter(|term| matches!(terms.node(*term).op, Op::Var(_)) && terms.width(*term) > 0)
            .collect();
        match solver.ask(&terms, &[differ], &variables)? {
            Answer::Never => {}
            Answer::Unknown(why) => return Ok(Bodies::Unknown(format!("{name}: {why}"))),
            Answer::Holds(model) => return Ok(found(&terms, name, [x, y], &model)),
        }
    }
    Ok(Bodies::Equal)
}

/// A variable that has two sorts.
fn conflict(terms: &Terms, roots: &[Term]) -> Option<String> {
    let mut sorts: BTreeMap<&str, Sort> = BTreeMap::new();
    for term in terms.reachable(roots) {
        let node = terms.node(term);
        if let Op::Var(name) = &node.op
            && *sorts.entry(name).or_insert(node.sort) != node.sort
        {
            return Some(name.clone());
        }
    }
    None
}

fn found(terms: &Terms, result: &str, values: [Term; 2], model: &BTreeMap<Term, u128>) -> Bodies {
    let mut inputs = BTreeMap::new();
    for (term, value) in model {
        if let Op::Var(name) = &terms.node(*term).op {
            inputs.insert(name.clone(), *value);
        }
    }
    let unknown = |term: &Term| matches!(terms.node(*term).op, Op::Apply(_));
    let known = !terms.reachable(&values).iter().any(unknown);
    let values = Tape::of(terms, &values).filter(|_| known).and_then(|tape| {
        let operands: Vec<u128> =
            tape.inputs().iter().map(|(name, _)| inputs.get(name).copied().unwrap_or(0)).collect();
        let mut scratch = Vec::new();
        let list: Vec<u128> = tape.run(&operands, &mut scratch).collect();
        <[u128; 2]>::try_from(list).ok()
    });
    inputs.retain(|_, value| *value != 0);
    Bodies::Differ { inputs, result: result.to_string(), values }
}
