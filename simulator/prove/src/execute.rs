//! Symbolic execution of a program: the paths that meet at an instruction are merged there, and loops are unrolled.

use crate::machine::{Executor, code_base};
use crate::setup::{Lanes, Setup};
use crate::state::State;
use isa_export::smt::{Op, Term, Terms, Unsupported};
use std::collections::{BTreeMap, HashMap};
use wavesim_machine::exec::program::Program;

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The wave ends.
    Wave,
    /// A jump to an address from outside: the end of a function.
    Return(Term),
    /// Behind the last instruction.
    Code,
}

impl End {
    /// Where a function returns to.
    pub fn return_address(self) -> Option<Term> {
        match self {
            End::Return(address) => Some(address),
            End::Wave | End::Code => None,
        }
    }
}

/// The state at the end, and how it was reached.
pub struct Outcome {
    pub state: State,
    pub end: End,
    /// The condition under which a loop runs more often than it was unrolled.
    pub unfinished: Term,
}

/// The target of a jump.
enum Target {
    Address(u64),
    Outside(Term),
}

/// The targets of a jump, each with its condition.
fn targets(terms: &mut Terms, jump: Term, cond: Term, found: &mut Vec<(Term, Target)>) {
    if terms.truth(cond) == Some(false) {
        return;
    }
    let base = code_base(terms);
    let node = terms.node(jump).clone();
    match node.op {
        Op::Ite => {
            let (test, yes, no) = (node.args[0], node.args[1], node.args[2]);
            let not = terms.not(test);
            let (first, second) = (terms.and(cond, test), terms.and(cond, not));
            targets(terms, yes, first, found);
            targets(terms, no, second, found);
        }
        Op::Add if node.args[0] == base && terms.value(node.args[1]).is_some() => {
            let offset = terms.value(node.args[1]).unwrap_or(0);
            found.push((cond, Target::Address(offset as u64)));
        }
        _ if jump == base => found.push((cond, Target::Address(0))),
        _ => found.push((cond, Target::Outside(jump))),
    }
}

struct Run<'a> {
    setup: &'a Setup,
    lanes: Lanes,
    /// States by the address of the next instruction, with the conditions under which they are reached.
    pending: BTreeMap<u64, (Term, State)>,
    ends: Vec<(Term, State, End)>,
}

impl Run<'_> {
    fn go(&mut self, terms: &mut Terms, to: u64, cond: Term, state: State) -> Result<(), Unsupported> {
        let (cond, state) = match self.pending.remove(&to) {
            None => (cond, state),
            Some((other, before)) => {
                (terms.or(cond, other), state.merge(terms, self.setup, self.lanes, cond, before)?)
            }
        };
        self.pending.insert(to, (cond, state));
        Ok(())
    }
}

/// Runs a program from an address on.
pub fn execute(
    terms: &mut Terms,
    executor: &Executor<'_>,
    program: &Program,
    entry: u64,
) -> Result<Outcome, Unsupported> {
    let (setup, lanes) = (executor.setup, executor.lanes);
    let mut run = Run { setup, lanes, pending: BTreeMap::new(), ends: Vec::new() };
    let always = terms.bool(true);
    run.pending.insert(entry, (always, State::default()));
    let mut rounds: HashMap<u64, u32> = HashMap::new();
    let mut unfinished = terms.bool(false);
    // The jump that ends a loop which runs too often.
    let mut endless = None;
    while let Some((pc, (cond, state))) = run.pending.pop_first() {
        let Ok(at) = program.pcs.binary_search(&pc) else {
            run.ends.push((cond, state, End::Code));
            continue;
        };
        let inst = &program.insts[at];
        let after = executor.step(terms, inst, pc, &state)?;
        if after.ended {
            run.ends.push((cond, after.state, End::Wave));
            continue;
        }
        let Some(jump) = after.jump else {
            run.go(terms, pc + inst.size as u64, cond, after.state)?;
            continue;
        };
        let mut found = Vec::new();
        targets(terms, jump, cond, &mut found);
        for (cond, target) in found {
            match target {
                Target::Outside(address) => run.ends.push((cond, after.state.clone(), End::Return(address))),
                Target::Address(to) => {
                    if to <= pc {
                        let rounds = rounds.entry(to).or_insert(0);
                        *rounds += 1;
                        if *rounds > setup.unroll {
                            unfinished = terms.or(unfinished, cond);
                            endless = Some(inst.instruction(setup.arch.table()).name.to_lowercase());
                            continue;
                        }
                    }
                    run.go(terms, to, cond, after.state.clone())?;
                }
            }
        }
    }
    let mut ends = run.ends.into_iter();
    let Some((_, mut state, mut end)) = ends.next() else {
        let jump = endless.map_or(String::new(), |name| format!("{name}: "));
        return Err(Unsupported(format!("{jump}no path ends within {} iterations (--unroll)", setup.unroll)));
    };
    for (cond, other, how) in ends {
        end = match (how, end) {
            (End::Return(a), End::Return(b)) => End::Return(terms.ite(cond, a, b)),
            (a, b) if a == b => a,
            _ => return Err(Unsupported("paths that end in different ways".into())),
        };
        state = other.merge(terms, setup, lanes, cond, state)?;
    }
    Ok(Outcome { state, end, unfinished })
}
