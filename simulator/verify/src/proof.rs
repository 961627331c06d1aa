//! The comparison of compiled code with the pseudocode.

use crate::listing::{self, Listed};
use crate::run::{Path, run};
use crate::{VerifyError, unsupported};
use isa_export::smt::{Op, Sort, Term, Terms};
use std::collections::{BTreeMap, BTreeSet};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::wave::{EXEC_HI, NULL};
use wavesim_prove::{
    Code, Register, Setup, Solver, SolverAnswer, WaveSummary, initial_of_wave, register_name,
};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The code computes what the pseudocode says, for all inputs.
    Equal,
    /// It does not for these.
    Differ(Counterexample),
    /// Not decided, for this reason.
    Unknown(String),
}

/// Inputs for which the code computes something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The registers of which one differs.
    pub registers: Vec<String>,
    /// Registers at the start, by name (with the lane, `v1.3`); those that are not named are 0.
    pub inputs: BTreeMap<String, u128>,
}

/// Asks whether the code that is compiled for a program without branches computes what the pseudocode says.
///
/// # Errors
/// The program is not compiled, or has something that the proof does not know.
pub fn verify(setup: &Setup, program: &Program, solver: &Solver) -> Result<Answer, VerifyError> {
    verify_function(setup, program, &listing::function(program, setup.wave_size)?, solver)
}

/// As [`verify`], for a function that may not be the one that is compiled.
///
/// # Errors
/// As those of [`verify`].
pub fn verify_function(
    setup: &Setup,
    program: &Program,
    listed: &Listed,
    solver: &Solver,
) -> Result<Answer, VerifyError> {
    let mut terms = Terms::default();
    let expected = WaveSummary::of(&mut terms, setup, Code { program, entry: 0 })
        .map_err(|e| VerifyError::Unsupported(e.to_string()))?;
    let paths = run(&mut terms, setup, listed)?;
    let mut proof = Proof { terms: &mut terms, setup, solver, proven: BTreeSet::new() };
    for path in paths {
        match proof.path(&expected, &path)? {
            Answer::Equal => {}
            other => return Ok(other),
        }
    }
    Ok(Answer::Equal)
}

struct Proof<'a> {
    terms: &'a mut Terms,
    setup: &'a Setup,
    solver: &'a Solver,
    /// Values of any lane that are equal, where these conditions of the lane hold.
    proven: BTreeSet<([Term; 2], Vec<Term>)>,
}

impl Proof<'_> {
    /// Compares what one path leaves.
    fn path(&mut self, expected: &WaveSummary, path: &Path) -> Result<Answer, VerifyError> {
        let actual: BTreeMap<(u32, Register), Term> = path.memory.registers().collect();
        let places: BTreeSet<(u32, Register)> =
            expected.registers.keys().chain(actual.keys()).copied().collect();
        // What the path says about inputs makes many values equal.
        let facts = facts(self.terms, &path.conditions);
        for (lane, register) in places {
            if !is_compared(self.setup, register) {
                continue;
            }
            let terms = &mut *self.terms;
            let before = initial_of_wave(terms, self.setup, lane, register);
            let wanted = expected.registers.get(&(lane, register)).copied().unwrap_or(before);
            let found = actual.get(&(lane, register)).copied().unwrap_or(before);
            let values = [wanted, found].map(|value| {
                let value = terms.zero_extend(value, 32);
                terms.substituted(value, &facts)
            });
            if values[0] == values[1] {
                continue;
            }
            if is_open(terms, values[1]) {
                let name = register_name(register);
                return unsupported(format!("{name} depends on what the proof does not know"));
            }
            // A mask has a bit of each lane.
            let lanes: BTreeSet<u32> = values.iter().flat_map(|value| lanes_of(terms, *value)).collect();
            let name = match register {
                Register::Vector(_) => format!("{}.{lane}", register_name(register)),
                _ => register_name(register),
            };
            let first =
                if register == Register::Scalar(EXEC_HI as u32) || lanes.iter().all(|lane| *lane >= 32) {
                    32
                } else {
                    0
                };
            let mask = !matches!(register, Register::Vector(_)) && lanes.len() > 1;
            let pairs: Vec<(u32, [Term; 2])> = if mask {
                (0..32).map(|bit| (first + bit, values.map(|value| terms.extract(value, bit, 1)))).collect()
            } else {
                vec![(lane, values)]
            };
            for (lane, values) in pairs {
                match self.pair(&name, lane, values, &path.conditions)? {
                    Answer::Equal => {}
                    other => return Ok(other),
                }
            }
        }
        Ok(Answer::Equal)
    }

    /// Compares two values of a lane. Most lanes ask the same question, which is asked once, of any inputs.
    fn pair(
        &mut self,
        name: &str,
        lane: u32,
        values: [Term; 2],
        conditions: &[Term],
    ) -> Result<Answer, VerifyError> {
        if values[0] == values[1] {
            return Ok(Answer::Equal);
        }
        // What the path says of this lane, such as that no selector is beyond a limit.
        let own = conjuncts(self.terms, conditions)
            .into_iter()
            .filter(|one| lanes_of(self.terms, *one).into_iter().eq([lane]))
            .collect::<Vec<_>>();
        let [any, own] = [values.to_vec(), own].map(|list| {
            list.into_iter().map(|value| of_any_lane(self.terms, value, lane)).collect::<Vec<Term>>()
        });
        let question = ([any[0], any[1]], own.into_iter().collect::<BTreeSet<Term>>().into_iter().collect());
        if any[0] == any[1] || self.proven.contains(&question) {
            return Ok(Answer::Equal);
        }
        if let SolverAnswer::Never = self.ask(question.0, &question.1)?.0 {
            self.proven.insert(question);
            return Ok(Answer::Equal);
        }
        let (answer, variables) = self.ask(values, conditions)?;
        Ok(match answer {
            SolverAnswer::Never => Answer::Equal,
            SolverAnswer::Unknown(why) => Answer::Unknown(why),
            SolverAnswer::Holds(model) => {
                let inputs = model.iter().filter(|(_, value)| **value != 0);
                let inputs = inputs.map(|(term, value)| (variables[term].clone(), *value)).collect();
                Answer::Differ(Counterexample { registers: vec![name.to_string()], inputs })
            }
        })
    }

    /// Asks for inputs for which two values differ.
    fn ask(
        &mut self,
        [a, b]: [Term; 2],
        conditions: &[Term],
    ) -> Result<(SolverAnswer, BTreeMap<Term, String>), VerifyError> {
        let mut variables = BTreeMap::new();
        let roots: Vec<Term> = conditions.iter().copied().chain([a, b]).collect();
        for term in self.terms.reachable(&roots) {
            if let Op::Var(name) = &self.terms.node(term).op
                && self.terms.width(term) > 0
            {
                variables.insert(term, name.clone());
            }
        }
        let wanted: Vec<Term> = variables.keys().copied().collect();
        let answer = self.solver.ask_differ(self.terms, conditions, [a, b], &wanted);
        Ok((answer.map_err(|e| VerifyError::Solver(e.to_string()))?, variables))
    }
}

/// The conditions that hold if all conditions of a list do.
fn conjuncts(terms: &mut Terms, conditions: &[Term]) -> Vec<Term> {
    let (mut open, mut all) = (conditions.to_vec(), BTreeSet::new());
    while let Some(one) = open.pop() {
        let node = terms.node(one).clone();
        match node.op {
            Op::And => open.extend(node.args),
            // Not (a or b).
            Op::Not if terms.node(node.args[0]).op == Op::Or => {
                let parts = terms.node(node.args[0]).args.clone();
                open.extend(parts.into_iter().map(|part| terms.not(part)).collect::<Vec<_>>());
            }
            _ => drop(all.insert(one)),
        }
    }
    all.into_iter().collect()
}

/// The lanes whose registers a value depends on.
fn lanes_of(terms: &Terms, value: Term) -> BTreeSet<u32> {
    let lane = |term: &Term| match &terms.node(*term).op {
        Op::Var(name) => name.split_once('.')?.1.parse().ok(),
        _ => None,
    };
    terms.reachable(&[value]).iter().filter_map(lane).collect()
}

/// A value of a lane, with names that do not tell which lane it is: its registers, and its bits of masks.
fn of_any_lane(terms: &mut Terms, value: Term, lane: u32) -> Term {
    let end = format!(".{lane}");
    let mut names = BTreeMap::new();
    for term in terms.reachable(&[value]) {
        let node = terms.node(term).clone();
        match node.op {
            Op::Var(name) => {
                if let Some(register) = name.strip_suffix(&end) {
                    names.insert(term, terms.var(&format!("{register}.lane"), node.sort));
                }
            }
            Op::Extract(bit) if bit == lane % 32 && node.sort == Sort::Bits(1) => {
                if let Op::Var(name) = &terms.node(node.args[0]).op
                    && !name.contains('.')
                {
                    let name = format!("{name}.bit");
                    names.insert(term, terms.var(&name, Sort::Bits(1)));
                }
            }
            _ => {}
        }
    }
    terms.substituted(value, &names)
}

/// Registers that programs can see.
fn is_compared(setup: &Setup, register: Register) -> bool {
    match register {
        Register::Scalar(code) if code as usize == NULL => false,
        Register::Scalar(code) if code as usize == EXEC_HI => setup.wave_size == 64,
        _ => true,
    }
}

/// Variables that conditions determine, with their values.
fn facts(terms: &mut Terms, conditions: &[Term]) -> BTreeMap<Term, Term> {
    let mut facts = BTreeMap::new();
    for condition in conditions {
        let node = terms.node(*condition);
        if node.op == Op::Eq
            && matches!(terms.node(node.args[0]).op, Op::Var(_))
            && terms.value(node.args[1]).is_some()
        {
            facts.insert(node.args[0], node.args[1]);
        }
    }
    facts
}

/// Whether a value depends on memory of which nothing is known.
fn is_open(terms: &Terms, value: Term) -> bool {
    let open = |term: &Term| match &terms.node(*term).op {
        Op::Var(name) => ["frame.", "temporary.", "undefined."].iter().any(|prefix| name.starts_with(prefix)),
        _ => false,
    };
    terms.reachable(&[value]).iter().any(open)
}
