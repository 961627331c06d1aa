//! The question whether two programs are equal, and its answer.
//!
//! First each lane is looked at alone, with the bits that other lanes write to masks unknown and different in both
//! programs: what is equal then is equal. Most code needs no more, and most lanes ask the same question. If that
//! does not decide, all lanes are modelled at once.

use crate::assume::{self, AssumeError};
use crate::execute::{End, Outcome, execute};
use crate::machine::{CODE, Executor, code_base};
use crate::replay;
use crate::routes::{Register, Routes};
use crate::setup::{Lanes, Setup};
use crate::solver::{Answer, Solver, SolverError};
use crate::state::{Event, MemoryId, OTHER_LANES, State, register_name};
use isa_export::smt::{Op, Term, Terms, Unsupported};
use isa_spec::pcode::ir::Semantics;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::program::Program;
use wavesim_machine::isa;
use wavesim_machine::state::wave::{EXEC_HI, EXEC_LO};

/// A program with the address where it begins.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// The instructions.
    pub program: &'a Program,
    /// The byte offset of the first one.
    pub entry: u64,
}

/// What is compared at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// All registers that either program writes, and memory.
    Written,
    /// These registers, and memory.
    Registers(BTreeSet<Register>),
    /// Only memory: a kernel.
    Memory,
}

impl Live {
    /// What is compared after a function if nothing is said: the first register of a result, EXEC, which a function
    /// restores (LLVM AMDGPUUsage, *Non-Kernel Functions*), and memory. The code does not tell how long the result is.
    pub fn function() -> Live {
        let exec = [EXEC_LO, EXEC_HI].map(|code| Register::Scalar(code as u32));
        Live::Registers([Register::Vector(0)].into_iter().chain(exec).collect())
    }
}

/// The question.
pub struct Question<'a> {
    /// The machine.
    pub setup: Setup,
    /// The programs.
    pub codes: [Code<'a>; 2],
    /// What is compared; `None`: memory if the wave ends, [`Live::function`] after a return, else all that is
    /// written.
    pub live: Option<Live>,
    /// Preconditions.
    pub assumptions: Vec<String>,
    /// Who decides.
    pub solver: Solver,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Equal for all inputs.
    Equal,
    /// Equal if no loop runs more often than this.
    EqualUpTo(u32),
    /// Equal if memory through different pointers does not overlap.
    EqualApart,
    /// Different for these inputs.
    Differ(Counterexample),
    /// Not decided, for this reason.
    Unknown(String),
}

/// Inputs for which two programs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// Registers at the start, by name; those that are not named are 0, and EXEC is full.
    pub inputs: BTreeMap<String, u128>,
    /// Bytes of memory at the start, by address; all others are 0.
    pub memory: BTreeMap<u64, u8>,
    /// What differs, with the values that the interpreter computed with each program.
    pub outputs: Vec<Difference>,
}

/// A register or byte of memory that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// What each program computes.
    pub values: [u64; 2],
}

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// An instruction or a way to use it that proofs do not know.
    #[error("{0}")]
    Unsupported(#[from] Unsupported),
    /// A precondition cannot be read.
    #[error(transparent)]
    Assume(#[from] AssumeError),
    /// The solver cannot be used.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// The programs differ in the model, but not in the interpreter.
    #[error("the counterexample does not reproduce on the interpreter, which is a defect of the prover: {0}")]
    NotReproduced(String),
}

/// Values that have to be equal, where a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pair {
    name: String,
    values: [Term; 2],
}

/// What a model of some lanes says about the programs.
enum Part {
    Equal {
        unfinished: bool,
    },
    /// The model leaves it open.
    Undecided(String),
    /// The solver does not know.
    Unknown(String),
    Differ(Found),
}

/// The semantics of an instruction, for its first half and for VOPD's second.
pub(crate) fn semantics(
    setup: &Setup,
    inst: &Inst,
) -> Option<(&'static Semantics, Option<&'static Semantics>)> {
    let table = setup.arch.table();
    let of = |at: usize| isa::operation(isa::number(setup.arch, at)?).map(|operation| &operation.sem);
    let first = of(inst.entry(table).inst as usize)?;
    if inst.entry_y == u16::MAX {
        return Some((first, None));
    }
    Some((first, Some(of(inst.instruction_y(table))?)))
}

impl Question<'_> {
    /// Answers the question. Pointers may be equal, unless the answer is [`Verdict::EqualApart`], which is only looked for
    /// if `setup.apart`.
    pub fn answer(&self) -> Result<Verdict, ProofError> {
        let question = |apart: bool| Question {
            setup: Setup { apart, ..self.setup.clone() },
            codes: self.codes,
            live: self.live.clone(),
            assumptions: self.assumptions.clone(),
            solver: self.solver.clone(),
        };
        let verdict = question(false).decide();
        let open = matches!(verdict, Ok(Verdict::Differ(_) | Verdict::Unknown(_)));
        if !self.setup.apart || !open || !self.accesses_memory() {
            return verdict;
        }
        match question(true).decide() {
            Ok(Verdict::Equal) => Ok(Verdict::EqualApart),
            _ => verdict,
        }
    }

    fn accesses_memory(&self) -> bool {
        let accesses = |sem: &Semantics| sem.uses.memory_read || sem.uses.memory_write;
        let instructions = self.codes.iter().flat_map(|code| &code.program.insts);
        let mut bodies = instructions.filter_map(|inst| semantics(&self.setup, inst));
        bodies.any(|(first, second)| accesses(first) || second.is_some_and(accesses))
    }

    fn decide(&self) -> Result<Verdict, ProofError> {
        let routes = Routes::default();
        let mut unfinished = false;
        let mut reason = None;
        let mut decided = Decided::default();
        let mut terms = Terms::default();
        for lane in 0..self.setup.wave_size {
            match self.part(&mut terms, &routes, Lanes::One(lane), &mut decided) {
                Ok(Part::Equal { unfinished: more }) => unfinished |= more,
                Ok(Part::Undecided(why)) => reason = Some(why),
                Ok(Part::Unknown(why)) => return Ok(Verdict::Unknown(why)),
                // No memory is such that a replay could have it.
                Ok(Part::Differ(found)) if self.setup.apart => return Ok(Verdict::Unknown(found.name)),
                Ok(Part::Differ(found)) => {
                    // The difference may be due to what other lanes write, which was left open.
                    match self.differ(&mut terms, &found) {
                        Ok(Verdict::Differ(example)) => return Ok(Verdict::Differ(example)),
                        _ => reason = Some("lanes depend on each other".to_string()),
                    }
                }
                Err(ProofError::Unsupported(why)) => reason = Some(why.to_string()),
                Err(other) => return Err(other),
            }
            if reason.is_some() {
                break;
            }
        }
        if reason.is_none() {
            reason = decided.open_words();
        }
        if reason.is_none() {
            return Ok(self.equal(unfinished));
        }
        let mut terms = Terms::default();
        match self.part(&mut terms, &routes, Lanes::All, &mut Decided::default())? {
            Part::Equal { unfinished } => Ok(self.equal(unfinished)),
            Part::Undecided(why) | Part::Unknown(why) => Ok(Verdict::Unknown(why)),
            Part::Differ(found) if self.setup.apart => Ok(Verdict::Unknown(found.name)),
            Part::Differ(found) => self.differ(&mut terms, &found),
        }
    }

    fn equal(&self, unfinished: bool) -> Verdict {
        if unfinished { Verdict::EqualUpTo(self.setup.unroll) } else { Verdict::Equal }
    }

    /// Decides for some lanes.
    fn part(
        &self,
        terms: &mut Terms,
        routes: &Routes,
        lanes: Lanes,
        decided: &mut Decided,
    ) -> Result<Part, ProofError> {
        let setup = &self.setup;
        let mut outcomes = Vec::new();
        for (number, code) in self.codes.iter().enumerate() {
            let find = |inst: &Inst| semantics(setup, inst);
            let executor =
                Executor { setup, lanes, routes, semantics: &find, program: number, masks: 0.into() };
            outcomes.push(execute(terms, &executor, code.program, code.entry)?);
        }
        let [a, b] = &outcomes[..] else { return Ok(Part::Undecided("two programs are needed".into())) };
        let mut assumptions = Vec::new();
        let list = match lanes {
            Lanes::One(lane) => lane..lane + 1,
            Lanes::All => 0..setup.wave_size,
        };
        for text in &self.assumptions {
            for lane in list.clone() {
                assumptions.push(assume::parse(terms, setup, lanes, lane, text)?);
            }
        }
        let live = self.live_after(a.end);
        let pairs = match self.pairs(terms, lanes, [a, b], &live, decided) {
            Ok(pairs) => pairs,
            Err(why) => return Ok(Part::Undecided(why)),
        };
        // What is proven equal is one term from then on; so is a register of which bits are known.
        let mut same = assume::known_bits(terms, &assumptions);
        for pair in pairs {
            if pair.values[0] == pair.values[1] {
                continue;
            }
            let values = pair.values.map(|value| terms.substituted(value, &same));
            let equal = terms.eq(values[0], values[1]);
            let differ = terms.not(equal);
            if terms.truth(differ) == Some(false) {
                continue;
            }
            // What runs longer than loops are unrolled is not compared.
            let finished = [a, b].map(|outcome| terms.not(outcome.unfinished));
            let given: Vec<Term> = assumptions.iter().copied().chain(finished).collect();
            let mut conditions = given.clone();
            conditions.push(differ);
            // Most lanes ask the same; what is assumed of EXEC may tell them apart.
            let answer = if decided.never.contains(&conditions) {
                Answer::Never
            } else {
                let inputs = inputs(terms, &conditions);
                self.solver.ask_differ(terms, &given, values, &inputs)?
            };
            match answer {
                Answer::Never => {
                    decided.never.insert(conditions);
                    let one =
                        if terms.value(values[1]).is_some() { values[1] } else { values[0].min(values[1]) };
                    let others = pair.values.into_iter().chain(values);
                    same.extend(
                        others.filter(|other| terms.value(*other).is_none()).map(|other| (other, one)),
                    );
                }
                Answer::Unknown(why) => {
                    let hint = pointers_that_may_overlap(terms, [&a.state, &b.state]).unwrap_or_default();
                    return Ok(Part::Unknown(format!("{}: {why}{hint}", pair.name)));
                }
                Answer::Holds(model) => {
                    let addresses =
                        [a, b].iter().flat_map(|outcome| outcome.state.addresses.clone()).collect();
                    let returns =
                        [a, b].into_iter().filter_map(|outcome| outcome.end.return_address()).collect();
                    let name = pair.name;
                    return Ok(Part::Differ(Found {
                        lanes,
                        name,
                        conditions,
                        addresses,
                        returns,
                        live,
                        model,
                    }));
                }
            }
        }
        let mut unfinished = false;
        for outcome in [a, b] {
            if terms.truth(outcome.unfinished) != Some(false) {
                let mut conditions = assumptions.clone();
                conditions.push(outcome.unfinished);
                unfinished |= self.solver.ask(terms, &conditions, &[])? != Answer::Never;
            }
        }
        Ok(Part::Equal { unfinished })
    }

    /// What is compared after programs that end so.
    fn live_after(&self, end: End) -> Live {
        self.live.clone().unwrap_or_else(|| match end {
            End::Wave => Live::Memory,
            End::Return(_) => Live::function(),
            End::Code => Live::Written,
        })
    }

    /// The values that have to be equal.
    fn pairs(
        &self,
        terms: &mut Terms,
        lanes: Lanes,
        [a, b]: [&Outcome; 2],
        live: &Live,
        decided: &mut Decided,
    ) -> Result<Vec<Pair>, String> {
        let setup = &self.setup;
        let mut pairs = Vec::new();
        match (a.end, b.end) {
            (End::Return(x), End::Return(y)) => {
                pairs.push(Pair { name: "the return address".into(), values: [x, y] })
            }
            (x, y) if x == y => {}
            // Code without an end of its own ends where the other does.
            _ => return Err("one program ends the wave, the other does not".into()),
        }
        let written: BTreeSet<(u32, Register)> = a.state.written().chain(b.state.written()).collect();
        let wanted = |register: Register| match live {
            Live::Written => true,
            Live::Registers(list) => list.contains(&register),
            Live::Memory => false,
        };
        // Scalar registers first: what vector registers are made of.
        let mut written: Vec<(u32, Register)> =
            written.into_iter().filter(|(_, register)| wanted(*register)).collect();
        written.sort_by_key(|(_, register)| matches!(register, Register::Vector(_)));
        for (lane, register) in written {
            let values = [&a.state, &b.state].map(|state| state.get(terms, setup, lanes, lane, register));
            let mut name = register_name(register);
            if lanes == Lanes::All && matches!(register, Register::Vector(_)) {
                name = format!("{name}, lane {lane}");
            }
            let Lanes::One(lane) = lanes else {
                pairs.push(Pair { name, values });
                continue;
            };
            if values[0] == values[1] || !values.iter().any(|value| depends_on_others(terms, *value)) {
                pairs.push(Pair { name, values });
                continue;
            }
            // A mask: the lane's own bit. The word may be the half that belongs to other lanes.
            let bit = lane % 32;
            let values = values
                .map(|value| if terms.width(value) == 32 { terms.extract(value, bit, 1) } else { value });
            let open = values.iter().any(|value| depends_on_others(terms, *value));
            decided.note(register, bit, !open);
            if !open {
                pairs.push(Pair { name, values });
            }
        }
        match lanes {
            Lanes::One(_) => pairs.extend(stores(terms, &a.state, &b.state)?),
            Lanes::All => {
                let ids: BTreeSet<MemoryId> = a.state.memories().chain(b.state.memories()).collect();
                for id in ids.into_iter().filter(|id| !matches!(id, MemoryId::Scratch(_))) {
                    let values = [&a.state, &b.state].map(|state| state.memory(terms, id));
                    pairs.push(Pair {
                        name: if id == MemoryId::Lds { "LDS" } else { "memory" }.into(),
                        values,
                    });
                }
            }
        }
        Ok(pairs)
    }

    /// Runs both programs on the interpreter with the inputs for which the conditions hold.
    fn differ(&self, terms: &mut Terms, difference: &Found) -> Result<Verdict, ProofError> {
        let Found { lanes, name, conditions, addresses, returns, live, model } = difference;
        let unknown = |why: &str| Verdict::Unknown(format!("{name} differs in the model, but {why}"));
        let mut memory = BTreeMap::new();
        let mut model = model.clone();
        let code = code_base(terms);
        let reads_code = terms.reachable(conditions).contains(&code);
        if !addresses.is_empty() || !returns.is_empty() || reads_code {
            // Once more, with addresses that the interpreter can have, and the bytes that are read there.
            let mut conditions = conditions.clone();
            for address in addresses {
                conditions.push(replay::is_inside(terms, *address));
            }
            conditions.push(replay::is_code_base(terms, code));
            for address in returns {
                conditions.push(replay::is_caller(terms, *address));
            }
            let loads: Vec<[Term; 2]> = terms
                .reachable(&conditions)
                .into_iter()
                .filter(|term| terms.node(*term).op == Op::Select)
                .filter(|term| matches!(&terms.node(terms.node(*term).args[0]).op, Op::Var(name) if name == "memory"))
                .map(|term| [terms.node(term).args[1], term])
                .collect();
            let mut wanted = inputs(terms, &conditions);
            wanted.extend(loads.iter().flatten());
            match self.solver.ask(terms, &conditions, &wanted)? {
                Answer::Holds(values) => model = values,
                _ => return Ok(unknown("no addresses are found for which it does")),
            }
            let bytes =
                loads.iter().filter_map(|[at, byte]| Some((*model.get(at)? as u64, *model.get(byte)? as u8)));
            memory.extend(bytes);
        }
        let mut inputs = BTreeMap::new();
        for (term, value) in &model {
            let Op::Var(variable) = &terms.node(*term).op else { continue };
            match lanes {
                Lanes::All => drop(inputs.insert(variable.clone(), *value)),
                // All lanes get what the one lane has.
                Lanes::One(_) if variable == "active" => {
                    let words =
                        ["exec_lo", "exec_hi"].map(|name| (name.to_string(), value * u32::MAX as u128));
                    inputs.extend(words);
                }
                Lanes::One(_) if variable.starts_with(['v', 'a']) && !variable.starts_with("vcc") => {
                    inputs
                        .extend((0..self.setup.wave_size).map(|lane| (format!("{variable}.{lane}"), *value)));
                }
                Lanes::One(_) => drop(inputs.insert(variable.clone(), *value)),
            }
        }
        inputs.retain(|name, value| *value != 0 && !name.starts_with(OTHER_LANES) && name != CODE);
        match replay::run(self, live, &inputs, &memory) {
            Ok(outputs) if !outputs.is_empty() => {
                Ok(Verdict::Differ(Counterexample { inputs, memory, outputs }))
            }
            // Where something is left open, the model may choose what hardware does not.
            Ok(_) if terms.reachable(conditions).iter().any(|term| is_open(terms, *term)) => {
                Ok(unknown("not on the interpreter: the model leaves memory or functions open"))
            }
            Ok(_) => Err(ProofError::NotReproduced(format!("{name} with {inputs:x?}"))),
            Err(why) => Ok(unknown(&format!("it could not be run: {why}"))),
        }
    }
}

/// Returns whether a term is something of which not all is known.
fn is_open(terms: &Terms, term: Term) -> bool {
    match &terms.node(term).op {
        Op::Apply(_) | Op::Select => true,
        Op::Var(name) => name.starts_with(OTHER_LANES),
        _ => false,
    }
}

/// A difference in the model of some lanes.
struct Found {
    lanes: Lanes,
    /// What differs.
    name: String,
    /// What holds if it does.
    conditions: Vec<Term>,
    /// The addresses of all accesses to global memory.
    addresses: Vec<Term>,
    /// Where each program returns to, if it does.
    returns: Vec<Term>,
    /// What is compared.
    live: Live,
    model: BTreeMap<Term, u128>,
}

/// What has been decided in the models of single lanes.
#[derive(Default)]
struct Decided {
    /// Conditions that never hold together.
    never: BTreeSet<Vec<Term>>,
    /// Words that are compared bit by bit, with the bits that are equal.
    words: HashMap<Register, u32>,
}

impl Decided {
    fn note(&mut self, register: Register, bit: u32, equal: bool) {
        *self.words.entry(register).or_insert(0) |= (equal as u32) << bit;
    }

    /// A word of which some bits belong to no lane.
    fn open_words(&self) -> Option<String> {
        let open = self.words.iter().find(|(_, bits)| **bits != u32::MAX);
        open.map(|(register, _)| format!("{} depends on several lanes", register_name(*register)))
    }
}

/// Returns whether a value depends on what other lanes compute.
fn depends_on_others(terms: &Terms, value: Term) -> bool {
    let other = |term: &Term| matches!(&terms.node(*term).op, Op::Var(name) if name.starts_with(OTHER_LANES));
    terms.reachable(&[value]).iter().any(other)
}

/// Says which pointers may overlap, and what to assume, if programs store, and access memory through several pointers.
fn pointers_that_may_overlap(terms: &Terms, states: [&State; 2]) -> Option<String> {
    if states.iter().all(|state| state.events.is_empty()) {
        return None;
    }
    let mut pointers = BTreeSet::new();
    for address in states.iter().flat_map(|state| &state.addresses) {
        let mut node = terms.node(*address);
        if node.op == Op::Add && terms.value(node.args[1]).is_some() {
            node = terms.node(node.args[0]);
        }
        let args = node.args.iter().map(|arg| &terms.node(*arg).op);
        // Two registers, the higher first.
        match &args.collect::<Vec<_>>()[..] {
            [Op::Var(high), Op::Var(low)] if node.op == Op::Concat => {
                let [low, high] = [low, high].map(|name| name.split('.').next().unwrap_or_default());
                pointers.insert((high.to_string(), format!("{low} and {high}")));
            }
            _ => {}
        }
    }
    let mut pointers = pointers.into_iter();
    let ((a, first), (b, second)) = (pointers.next()?, pointers.next()?);
    Some(format!(
        "; memory through {first} and through {second} may overlap: an assumption is missing that tells the pointers \
         of all lanes apart, such as --assume '{a} == 1 && {b} == 2'"
    ))
}

/// The stores of one lane have to be the same, one by one: lanes may overwrite each other.
fn stores(terms: &mut Terms, a: &State, b: &State) -> Result<Vec<Pair>, String> {
    let different = || "the programs access memory in different orders".to_string();
    if a.events.is_empty() && b.events.is_empty() {
        return Ok(Vec::new());
    }
    if a.loads_after_stores || b.loads_after_stores {
        return Err("a load may see the store of another lane".into());
    }
    if a.events.len() != b.events.len() {
        return Err(different());
    }
    // The order matters within each memory only.
    let [a, b] = [a, b].map(|state| {
        let mut events: Vec<&Event> = state.events.iter().collect();
        events.sort_by_key(|event| event.memory);
        events
    });
    let mut pairs = Vec::new();
    for (x, y) in a.into_iter().zip(b) {
        if x.memory != y.memory || terms.width(x.value) != terms.width(y.value) {
            return Err(different());
        }
        let name = if x.memory == MemoryId::Lds { "a store to LDS" } else { "a store" };
        pairs.push(Pair { name: name.into(), values: [x.guard, y.guard] });
        // Where nothing is stored, address and value do not matter.
        for (p, q) in [(x.address, y.address), (x.value, y.value)] {
            let q = terms.ite(x.guard, q, p);
            pairs.push(Pair { name: name.into(), values: [p, q] });
        }
    }
    Ok(pairs)
}

/// The free variables of conditions.
fn inputs(terms: &mut Terms, conditions: &[Term]) -> Vec<Term> {
    let bits =
        |terms: &Terms, term: &Term| matches!(terms.node(*term).op, Op::Var(_)) && terms.width(*term) > 0;
    terms.reachable(conditions).into_iter().filter(|term| bits(terms, term)).collect()
}
