//! Proofs that the lowering of typed bodies to lane loops, and each pass over these, keeps what they compute: for all
//! operands, fields of the instruction, state and contents of memory. One lane is looked at, whose number is arbitrary.

mod run;
mod stages;
mod value;

use crate::{VerifyError, unsupported};
use isa_export::smt::{Op, Sort, Term, Terms};
use isa_export::smtlib;
use isa_lower::ir::{Body, Fast, Handlers, Mask};
use isa_spec::canonical::Operation;
use isa_spec::pcode::ir::{Role, State as Name};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use wavesim_prove::{Solver, SolverAnswer};

/// What two forms of a body are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassAnswer {
    /// They compute the same.
    Equal,
    /// They do not: this result differs for these operands, fields and state; all others are 0.
    Differ {
        /// The name of the result: `D0`, `scc`, `memory`.
        result: String,
        /// Operands, fields and state by the names of exports.
        inputs: BTreeMap<String, u128>,
    },
    /// Not decided, for this reason.
    Unknown(String),
    /// The proof does not know something in it.
    Refused(String),
}

/// What a pass does to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The name of the pass; `lower` is the lowering of the typed body.
    pub name: &'static str,
    /// Whether the body before and the body after it compute the same.
    pub answer: PassAnswer,
}

/// Asks of each pass that changes an operation whether it keeps what the operation computes.
///
/// # Errors
/// The solver cannot be used, or these are not the passes of `isa_lower`.
pub fn verify_passes(op: &Operation, solver: &Solver) -> Result<Vec<Pass>, VerifyError> {
    verify_passes_with(op, solver, &mut |_, _| {})
}

/// Returns a digest of an operation's typed body and of what each pass leaves: what [`verify_passes`] compares.
///
/// # Errors
/// These are not the passes of `isa_lower`.
pub fn digest_of_passes(op: &Operation) -> Result<u64, VerifyError> {
    let mut hash = Sha256::new();
    hash.update(format!("{:?} {} {}", op.sem.shape, op.sem.ignores_mode, isa_export::json::body(&op.sem)));
    for (name, handlers) in known_stages(op)? {
        hash.update(format!("{name} {handlers:?}"));
    }
    let bytes: [u8; 32] = hash.finalize().into();
    Ok(u64::from_le_bytes(std::array::from_fn(|at| bytes[at])))
}

fn known_stages(op: &Operation) -> Result<Vec<(&'static str, Handlers)>, VerifyError> {
    match stages::stages(op) {
        Some(stages) => Ok(stages),
        None => unsupported("isa_lower::lower has other passes than those that are proven"),
    }
}

/// As [`verify_passes`], with a function that changes what a pass leaves, for passes with planted faults.
///
/// # Errors
/// As those of [`verify_passes`].
pub fn verify_passes_with(
    op: &Operation,
    solver: &Solver,
    change: &mut dyn FnMut(&str, &mut Handlers),
) -> Result<Vec<Pass>, VerifyError> {
    let mut stages = known_stages(op)?;
    for (name, handlers) in &mut stages {
        change(name, handlers);
    }
    let mut passes = Vec::new();
    let mut before: Option<&Handlers> = None;
    for (name, after) in &stages {
        let answer = match before {
            None => Some(first(op, after, solver)),
            Some(before) if before.general == after.general && before.fast == after.fast => None,
            Some(before) => Some(step(op, before, after, solver)),
        };
        let answer = match answer {
            Some(Err(VerifyError::Unsupported(why))) => Some(PassAnswer::Refused(why)),
            answer => answer.transpose()?,
        };
        passes.extend(answer.map(|answer| Pass { name, answer }));
        before = Some(after);
    }
    Ok(passes)
}

type Results = BTreeMap<String, Term>;

/// The lanes of a wave, at most.
const MAX_LANES: u32 = 64;

/// Compares the typed body with the lane loop that it is lowered to.
fn first(op: &Operation, after: &Handlers, solver: &Solver) -> Result<PassAnswer, VerifyError> {
    let mut terms = Terms::default();
    let typed =
        smtlib::evaluate_in(&mut terms, &op.sem).map_err(|e| VerifyError::Unsupported(e.to_string()))?;
    let lowered = results(&mut terms, op, after, &after.general)?;
    if has_floats(&terms, lowered.values()) {
        // The lane loop names operations of the host's.
        return unsupported("float arithmetic");
    }
    let (mut typed, mut lanes): (Results, u32) = (typed, MAX_LANES);
    for (name, bit) in [("D0", "D0.bit"), ("VCC_OUT", "VCC_OUT.bit"), ("exec_out", "exec_out.bit")] {
        if lowered.contains_key(bit)
            && let Some(whole) = typed.remove(name)
        {
            // There are no more lanes than bits.
            lanes = lanes.min(terms.width(whole));
            let own = bit_of_lane(&mut terms, whole);
            typed.insert(bit.to_string(), own);
        }
    }
    compare(&mut terms, &typed, &lowered, lanes, solver)
}

/// Compares the handlers before and after a pass; a fast handler that is new with the general one, of an instruction
/// without modifiers.
fn step(
    op: &Operation,
    before: &Handlers,
    after: &Handlers,
    solver: &Solver,
) -> Result<PassAnswer, VerifyError> {
    if before.general != after.general {
        let mut terms = Terms::default();
        let a = results(&mut terms, op, before, &before.general)?;
        let b = results(&mut terms, op, after, &after.general)?;
        match compare(&mut terms, &a, &b, MAX_LANES, solver)? {
            PassAnswer::Equal => {}
            other => return Ok(other),
        }
    }
    let fast = |handlers: &Handlers| match &handlers.fast {
        Fast::None | Fast::Block(_) => None,
        Fast::Lanes(lanes) => Some(Body::Lanes(lanes.clone())),
        Fast::Scalar(once) => Some(Body::Once(once.clone())),
    };
    let Some(new) = fast(after).filter(|_| before.fast != after.fast) else { return Ok(PassAnswer::Equal) };
    let old = fast(before).unwrap_or_else(|| before.general.clone());
    let mut terms = Terms::default();
    let [a, b] = [results(&mut terms, op, before, &old)?, results(&mut terms, op, after, &new)?];
    // Fast handlers are for instructions without modifiers.
    let none: BTreeMap<Term, Term> = [("clamp", 1), ("field.clamp", 32)]
        .into_iter()
        .map(|(name, width)| (terms.var(name, Sort::Bits(width)), terms.constant(0, width)))
        .collect();
    let [a, b] = [a, b].map(|results| {
        results.into_iter().map(|(name, value)| (name, terms.substituted(value, &none))).collect::<Results>()
    });
    compare(&mut terms, &a, &b, MAX_LANES, solver)
}

fn has_floats<'t>(terms: &Terms, values: impl Iterator<Item = &'t Term>) -> bool {
    let roots: Vec<Term> = values.copied().collect();
    terms.reachable(&roots).into_iter().any(|term| matches!(terms.node(term).op, Op::Apply(_)))
}

/// What a body leaves, by the names of exports.
fn results(
    terms: &mut Terms,
    op: &Operation,
    handlers: &Handlers,
    body: &Body,
) -> Result<Results, VerifyError> {
    let widths = smtlib::widths(&op.sem);
    let mut state = State::new(terms);
    for local in &handlers.locals {
        let zero = terms.constant(0, isa_lower::ir::HostWidth::of(local.ty.width()).bits());
        state.locals.push(vec![zero; local.len.unwrap_or(1).max(1) as usize]);
    }
    let mut machine = Machine {
        terms,
        handlers,
        widths,
        state,
        whole: None,
        loaded: BTreeMap::new(),
        simd: Vec::new(),
        steps: 0,
    };
    machine.body(body)?;
    // Bits above those that the pseudocode writes belong to no result.
    let width = machine.widths.get(&Role::D0).copied();
    let mut named = machine.state.named;
    if let (Some(width), Some(value)) = (width, named.get_mut("D0"))
        && terms.width(*value) > width
    {
        *value = terms.extract(*value, 0, width);
    }
    Ok(named)
}

/// Asks whether results are the same in one of so many lanes.
fn compare(
    terms: &mut Terms,
    a: &Results,
    b: &Results,
    lanes: u32,
    solver: &Solver,
) -> Result<PassAnswer, VerifyError> {
    let lane = terms.var("lane", Sort::Bits(32));
    let lanes = terms.constant(lanes as u128, 32);
    let given = [terms.ult(lane, lanes)];
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for name in names {
        let [x, y] = match (a.get(name), b.get(name)) {
            (Some(x), Some(y)) => [*x, *y],
            // What only one writes is what it was.
            (Some(x), None) | (None, Some(x)) => [*x, terms.var(name, terms.node(*x).sort)],
            (None, None) => continue,
        };
        if terms.node(x).sort != terms.node(y).sort {
            return Ok(PassAnswer::Unknown(format!("{name} has another width")));
        }
        if x == y {
            continue;
        }
        let variables: Vec<Term> = terms
            .reachable(&[x, y, given[0]])
            .into_iter()
            .filter(|term| matches!(terms.node(*term).op, Op::Var(_)) && terms.width(*term) > 0)
            .collect();
        let answer = solver.ask_differ(terms, &given, [x, y], &variables);
        match answer.map_err(|e| VerifyError::Solver(e.to_string()))? {
            SolverAnswer::Never => {}
            SolverAnswer::Unknown(why) => return Ok(PassAnswer::Unknown(format!("{name}: {why}"))),
            SolverAnswer::Holds(model) => {
                let named = model.iter().filter(|(_, value)| **value != 0);
                let inputs = named.filter_map(|(term, value)| match &terms.node(*term).op {
                    Op::Var(name) => Some((name.clone(), *value)),
                    _ => None,
                });
                return Ok(PassAnswer::Differ { result: name.clone(), inputs: inputs.collect() });
            }
        }
    }
    Ok(PassAnswer::Equal)
}

/// What a lane, or code that runs once, has computed.
#[derive(Clone)]
struct State {
    /// The elements of each local, of the host width.
    locals: Vec<Vec<Term>>,
    /// Operands that are assigned.
    operands: BTreeMap<Role, Term>,
    /// This lane's bits of masks.
    bits: BTreeMap<Mask, Term>,
    /// Results, state and memory, by the names of exports.
    named: BTreeMap<String, Term>,
    /// Whether, and at which address, the memory step after the loop accesses.
    address: Option<(Term, Term)>,
    /// Whether, and what, it stores.
    stored: Option<(Term, Term)>,
    /// Whether the lane has ended.
    left: Term,
}

impl State {
    fn new(terms: &mut Terms) -> State {
        State {
            locals: Vec::new(),
            operands: BTreeMap::new(),
            bits: BTreeMap::new(),
            named: BTreeMap::new(),
            address: None,
            stored: None,
            left: terms.bool(false),
        }
    }
}

struct Machine<'a> {
    terms: &'a mut Terms,
    handlers: &'a Handlers,
    /// The bits of each operand that the pseudocode accesses.
    widths: BTreeMap<Role, u32>,
    state: State,
    /// The value of the enclosing parts.
    whole: Option<Term>,
    /// What memory steps have loaded.
    loaded: BTreeMap<usize, Term>,
    /// The results of calls ahead of the loop.
    simd: Vec<Term>,
    steps: u32,
}

impl Machine<'_> {
    /// Something that has a name, or had it at the start.
    fn named(&mut self, name: &str, sort: Sort) -> Term {
        match self.state.named.get(name) {
            Some(value) => *value,
            None => self.terms.var(name, sort),
        }
    }

    /// The registers of an operand.
    fn dwords(&self, role: Role) -> u32 {
        self.handlers.operands.width(role).div_ceil(32)
    }

    fn bit_of_lane(&mut self, mask: Term) -> Term {
        bit_of_lane(self.terms, mask)
    }
}

fn bit_of_lane(terms: &mut Terms, mask: Term) -> Term {
    let lane = terms.var("lane", Sort::Bits(32));
    let lane = terms.zero_extend(lane, 64);
    let mask = terms.resize(mask, 64);
    let shifted = terms.lshr(mask, lane);
    terms.extract(shifted, 0, 1)
}

/// The name of an operand in exports.
fn name_of(role: Role) -> String {
    format!("{role:?}").to_uppercase()
}

/// The name of state in exports.
fn snake(state: Name) -> String {
    isa_export::snake(&format!("{state:?}"))
}
