//! Terms that are evaluated many times: each step's arguments are the results of earlier ones.

use super::term::{Op, Sort, Term, Terms};
use super::value::operation;
use isa_spec::arith::mask;

/// Some terms, ready to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Tape {
    /// The variables that the terms depend on, with their widths.
    inputs: Vec<(String, u32)>,
    steps: Vec<Step>,
    /// The step of each term.
    results: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq)]
struct Step {
    what: What,
    width: u32,
    args: Vec<u32>,
    widths: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    Input(u32),
    /// A function of which nothing is known, by a number that is made of its name.
    Unknown(u64),
    Operation(Op),
}

/// Mixes a value into a hash.
fn mixed(hash: u64, value: u128) -> u64 {
    let word = value as u64 ^ (value >> 64) as u64;
    let next = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    next ^ next >> 29
}

impl Tape {
    /// Prepares terms. `None` if they depend on memory.
    pub fn of(terms: &Terms, roots: &[Term]) -> Option<Tape> {
        let order = terms.reachable(roots);
        let memory = |term: &Term| matches!(terms.node(*term).sort, Sort::Memory(_));
        if order.iter().any(memory) { None } else { Tape::of_order(terms, &order, roots) }
    }

    /// Prepares terms and all that they are made of, which are returned in the order of the values that [`Tape::run`]
    /// leaves. All memories are one unknown function of the address, so that terms that agree need not be equal.
    pub fn sketch(terms: &Terms, roots: &[Term]) -> Option<(Tape, Vec<Term>)> {
        let mut order = terms.reachable(roots);
        order.retain(|term| terms.width(*term) > 0);
        Some((Tape::of_order(terms, &order, roots)?, order))
    }

    fn of_order(terms: &Terms, order: &[Term], roots: &[Term]) -> Option<Tape> {
        let mut numbers = std::collections::HashMap::new();
        let mut tape = Tape { inputs: Vec::new(), steps: Vec::new(), results: Vec::new() };
        for (number, term) in (0..).zip(order.iter().copied()) {
            let node = terms.node(term);
            let Sort::Bits(width) = node.sort else { return None };
            let mut from = &node.args[..];
            let what = match &node.op {
                Op::Select => {
                    from = &from[1..];
                    What::Unknown(mixed(1, 0))
                }
                Op::Var(name) => {
                    tape.inputs.push((name.clone(), width));
                    What::Input(tape.inputs.len() as u32 - 1)
                }
                Op::Apply(name) => {
                    What::Unknown(name.bytes().fold(1, |hash, byte| mixed(hash, byte as u128)))
                }
                op => What::Operation(op.clone()),
            };
            let args = from.iter().map(|arg| numbers.get(arg).copied()).collect::<Option<Vec<u32>>>()?;
            let widths = from.iter().map(|arg| terms.width(*arg)).collect();
            numbers.insert(term, number);
            tape.steps.push(Step { what, width, args, widths });
        }
        tape.results = roots.iter().filter_map(|root| numbers.get(root).copied()).collect();
        Some(tape)
    }

    /// The variables, in the order in which [`Tape::run`] takes their values, with their widths.
    pub fn inputs(&self) -> &[(String, u32)] {
        &self.inputs
    }

    /// Evaluates the terms. `values` has the steps' results from an earlier run, or is empty; a function of which nothing
    /// is known is an arbitrary one.
    pub fn run<'v>(
        &self,
        inputs: &[u128],
        values: &'v mut Vec<u128>,
    ) -> impl Iterator<Item = u128> + use<'_, 'v> {
        values.clear();
        for step in &self.steps {
            let mut args = [0; 3];
            for (to, from) in args.iter_mut().zip(&step.args) {
                *to = values[*from as usize];
            }
            let value = match &step.what {
                What::Input(at) => inputs[*at as usize],
                What::Unknown(name) => {
                    let hash = step.args.iter().fold(*name, |hash, arg| mixed(hash, values[*arg as usize]));
                    (mixed(hash, 1) as u128) << 64 | hash as u128
                }
                // At most three arguments; only what is unknown has more.
                What::Operation(op) => {
                    operation(op, step.width, &args[..step.args.len().min(3)], &step.widths).unwrap_or(0)
                }
            };
            values.push(value & mask(step.width));
        }
        self.results.iter().map(|at| values[*at as usize])
    }
}
