//! Which instructions compute what another one computes? Bodies are evaluated on random operands first, with the
//! other instruction's operands and inline constants in all places; what agrees everywhere is then proved.

mod candidate;
mod values;
mod window;

use crate::proof::{Code, Live, ProofError, Question, Verdict};
use crate::routes::Register;
use crate::setup::Setup;
use crate::solver::Solver;
use candidate::{Arg, Candidate, Constant};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use values::{ALL_TESTS, Inputs, TESTS};
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_machine::exec::program::Program;
pub use window::Window;

/// Constants that are tried as operands.
const CONSTANTS: [Constant; 13] = [
    Constant::Integer(0),
    Constant::Integer(1),
    Constant::Integer(-1),
    Constant::Integer(2),
    Constant::Integer(4),
    Constant::Integer(8),
    Constant::Integer(16),
    Constant::Integer(24),
    Constant::Integer(31),
    Constant::Float(1),
    Constant::Float(2),
    Constant::Float(-2),
    Constant::Float(4),
];

/// Constants of pairs.
const PAIR_CONSTANTS: [Constant; 6] = [
    Constant::Integer(0),
    Constant::Integer(-1),
    Constant::Integer(1),
    Constant::Integer(16),
    Constant::Integer(31),
    Constant::Float(2),
];

/// Values of first instructions that are kept.
const MAX_FIRST: usize = 20_000;

/// What is searched for.
pub struct Search {
    /// The machine.
    pub setup: Setup,
    /// Who proves.
    pub solver: Solver,
    /// Pairs of instructions, too.
    pub pairs: bool,
    /// Time for the search of pairs, without proofs.
    pub time: Duration,
    /// Answers of each kind.
    pub limit: usize,
}

/// Why a search cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The instruction cannot be searched for.
    #[error("{name}: {why}")]
    Instruction {
        /// Its name.
        name: String,
        /// What prevents it.
        why: String,
    },
    /// The solver cannot be used.
    #[error(transparent)]
    Solver(#[from] crate::solver::SolverError),
}

/// Instructions that compute the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equivalent {
    /// One or two instructions.
    pub instructions: Vec<String>,
    /// The registers that only these write.
    pub also_writes: Vec<String>,
    /// Equal for all inputs; else the reason why that is not proven, though all tests agree.
    pub proof: Result<(), String>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The instruction, with operands.
    pub instruction: String,
    /// Single instructions and pairs that compute the same.
    pub equivalent: Vec<Equivalent>,
    /// How many instructions were candidates.
    pub candidates: usize,
    /// Agreed in all tests, but differ.
    pub refuted: usize,
    /// The search for pairs ended before all were looked at.
    pub out_of_time: bool,
    /// There were more answers than the limit.
    pub more: bool,
}

/// An instruction with arguments.
struct Use<'a> {
    of: &'a Candidate,
    args: Vec<Arg>,
}

/// Instructions that agree in all tests.
struct Agreed {
    texts: Vec<String>,
    also_writes: Vec<String>,
}

impl Search {
    /// Searches the instructions of the architecture.
    ///
    /// # Errors
    /// [`SearchError`].
    pub fn run(&self, instruction: usize) -> Result<Found, SearchError> {
        let arch = self.setup.arch;
        let name = arch.table().instructions[instruction].name.to_lowercase();
        let bad = |why: &str| SearchError::Instruction { name: name.clone(), why: why.into() };
        let options = Options::new(arch).wave(self.setup.wave_size);
        let target = Candidate::of(&options, instruction).map_err(|why| bad(&why))?;
        let inputs = Inputs::of(&self.setup, &target);
        let args = target.own_args();
        let text = target.text(&args, &inputs);
        let expected = inputs.results(&target, &args, None, ALL_TESTS);
        let count = arch.table().instructions.len();
        let others: Vec<Candidate> = (0..count)
            .filter(|at| *at != instruction)
            .filter_map(|at| Candidate::of(&options, at).ok())
            .filter(|other| other.shape == target.shape)
            .collect();
        let goal = Goal {
            search: self,
            target: &target,
            text: &text,
            options: &options,
            live: target.written(&self.setup),
            names: Vec::new(),
        };
        goal.find(&others, &inputs, &expected, &[])
    }

    /// Pairs of which the second reads the result of the first.
    fn pairs(
        &self,
        target: &Candidate,
        all: &[&Candidate],
        inputs: &Inputs,
        expected: &[Vec<u128>],
        constants: &[Constant],
        found: &mut Found,
    ) -> Vec<Vec<Agreed>> {
        let known: Vec<Constant> = PAIR_CONSTANTS.iter().chain(constants).copied().collect();
        let end = Instant::now() + self.time;
        let plain: Vec<&Candidate> = distinct(all.iter().copied().filter(|one| one.is_plain()));
        let words = |one: &Candidate| one.outputs[0].words;
        // What is an operand already, a constant, or the wanted result needs no second instruction.
        let trivial = |values: &[u128]| {
            values.iter().all(|value| *value == values[0])
                || (0..target.sources.len()).any(|at| inputs.column(at)[..TESTS] == *values)
                || expected.iter().zip(values).all(|(row, value)| row[0] == *value)
        };
        let mut firsts: HashMap<(u32, Vec<u128>), Use> = HashMap::new();
        // The shortest descriptions first: they are the ones that are kept.
        for constants in 0..=1 {
            for one in &plain {
                for args in one.arguments(target, &known, constants) {
                    if firsts.len() >= MAX_FIRST || Instant::now() > end {
                        break;
                    }
                    let values: Vec<u128> =
                        inputs.results(one, &args, None, TESTS).into_iter().map(|row| row[0]).collect();
                    if !trivial(&values) {
                        firsts.entry((words(one), values)).or_insert(Use { of: one, args });
                    }
                }
            }
        }
        let mut firsts: Vec<(&(u32, Vec<u128>), &Use)> = firsts.iter().collect();
        firsts.sort_by_key(|(_, first)| (first.constants(), first.args.len(), first.of.name.clone()));
        let mut pairs: Vec<Vec<Agreed>> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut seconds: Vec<&Candidate> =
            plain.iter().copied().filter(|one| one.covers(target) && one.sources.len() <= 3).collect();
        seconds.sort_by_key(|one| one.sources.len());
        for second in seconds {
            for at in 0..second.sources.len() {
                for rest in second.other_arguments(at, target, &known) {
                    for ((width, values), first) in &firsts {
                        if *width != second.sources[at].words {
                            continue;
                        }
                        if !inputs.agrees(second, &rest, &expected[..TESTS], Some(values)) {
                            continue;
                        }
                        // The result of the first instruction has to matter.
                        let other: Vec<u128> = values.iter().map(|value| !value).collect();
                        if inputs.agrees(second, &rest, &expected[..TESTS], Some(&other)) {
                            continue;
                        }
                        let values = inputs.results(first.of, &first.args, None, ALL_TESTS);
                        let values: Vec<u128> = values.into_iter().map(|row| row[0]).collect();
                        if !inputs.agrees(second, &rest, expected, Some(&values)) {
                            continue;
                        }
                        if !seen.insert((first.of.name.clone(), second.name.clone())) {
                            continue;
                        }
                        let texts = vec![first.of.text(&first.args, inputs), second.text(&rest, inputs)];
                        pairs.push(vec![Agreed { texts, also_writes: second.extra(target) }]);
                        // Some do not hold.
                        if pairs.len() > 2 * self.limit {
                            found.more = true;
                            return pairs;
                        }
                    }
                    if Instant::now() > end {
                        found.out_of_time = true;
                        return pairs;
                    }
                }
            }
        }
        pairs
    }
}

impl Use<'_> {
    fn constants(&self) -> usize {
        self.args.iter().filter(|arg| matches!(arg, Arg::Constant(_))).count()
    }
}

/// One of each group of instructions that compute the same.
fn distinct<'a>(list: impl Iterator<Item = &'a Candidate>) -> Vec<&'a Candidate> {
    let mut kept: Vec<&Candidate> = Vec::new();
    for one in list {
        if !kept.iter().any(|other| other.tape == one.tape && other.sources == one.sources) {
            kept.push(one);
        }
    }
    kept
}

/// The ways to use an instruction that agree in all tests, those without constants first.
fn single(
    target: &Candidate,
    other: &Candidate,
    inputs: &Inputs,
    expected: &[Vec<u128>],
    known: &[Constant],
) -> Vec<Agreed> {
    /// Later ones are tried if the first one turns out to differ.
    const KEPT: usize = 3;
    let mut found = Vec::new();
    if !other.covers(target) {
        return found;
    }
    for constants in 0..=other.sources.len() {
        for args in other.arguments(target, known, constants) {
            let number = args.iter().filter(|arg| matches!(arg, Arg::Constant(_))).count();
            if number == constants && inputs.agrees(other, &args, expected, None) {
                let texts = vec![other.text(&args, inputs)];
                found.push(Agreed { texts, also_writes: other.extra(target) });
                if found.len() == KEPT {
                    return found;
                }
            }
        }
    }
    found
}

/// Proofs that something computes what the instruction does.
struct Goal<'a> {
    search: &'a Search,
    target: &'a Candidate,
    text: &'a str,
    options: &'a Options,
    /// The registers that have to be equal.
    live: BTreeSet<Register>,
    /// The registers in place of those that answers are written with.
    names: Vec<(String, String)>,
}

impl Goal<'_> {
    /// Compares with instructions, and proves what agrees. `constants` are tried as operands besides the usual ones.
    fn find(
        &self,
        others: &[Candidate],
        inputs: &Inputs,
        expected: &[Vec<u128>],
        constants: &[Constant],
    ) -> Result<Found, SearchError> {
        let mut found = Found {
            instruction: self.text.replace('\n', "; "),
            equivalent: Vec::new(),
            candidates: others.len(),
            refuted: 0,
            out_of_time: false,
            more: false,
        };
        let known: Vec<Constant> = CONSTANTS.iter().chain(constants).copied().collect();
        let singles = others.iter().map(|other| single(self.target, other, inputs, expected, &known));
        self.prove(singles.filter(|list| !list.is_empty()).collect(), &mut found)?;
        if self.search.pairs {
            let own = (!self.target.is_window()).then_some(self.target);
            let all: Vec<&Candidate> = others.iter().chain(own).collect();
            let pairs = self.search.pairs(self.target, &all, inputs, expected, constants, &mut found);
            self.prove(pairs, &mut found)?;
        }
        Ok(found)
    }

    /// An answer with the registers of the question.
    fn renamed(&self, text: &str) -> String {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut out = String::new();
        for part in text.split_inclusive(|c| !is_name(c)) {
            let name = part.trim_end_matches(|c| !is_name(c));
            let new = self.names.iter().find(|(old, _)| old == name).map_or(name, |(_, new)| new);
            out += new;
            out += &part[name.len()..];
        }
        out
    }

    /// Proves the first of each group that holds.
    fn prove(&self, groups: Vec<Vec<Agreed>>, found: &mut Found) -> Result<(), SearchError> {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let proven = std::sync::atomic::AtomicUsize::new(0);
        let answers = std::sync::Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let done = proven.load(std::sync::atomic::Ordering::Relaxed);
                        let Some(group) = groups.get(at).filter(|_| done <= self.search.limit) else {
                            return;
                        };
                        let answer = self.first(group);
                        if matches!(answer, Ok((Some(_), _))) {
                            proven.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                        let mut answers = answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        answers.push((at, answer));
                    }
                });
            }
        });
        let mut answers = answers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        answers.sort_by_key(|(at, _)| *at);
        let mut count = 0;
        for (_, answer) in answers {
            let (equivalent, refuted) = answer?;
            found.refuted += refuted;
            let Some(equivalent) = equivalent else { continue };
            count += 1;
            if count > self.search.limit {
                found.more = true;
                break;
            }
            found.equivalent.push(equivalent);
        }
        Ok(())
    }

    /// The first of a group that is not refuted, and how many are.
    fn first(&self, group: &[Agreed]) -> Result<(Option<Equivalent>, usize), SearchError> {
        let mut refuted = 0;
        for one in group {
            let texts: Vec<String> = one.texts.iter().map(|text| self.renamed(text)).collect();
            let text = texts.join("\n");
            // Constants that need a literal, and registers that the encoding does not take.
            let Some(program) = self.assemble(&text) else { continue };
            let Some(own) = self.assemble(self.text) else { continue };
            let question = Question {
                setup: self.search.setup.clone(),
                codes: [&own, &program].map(|program| Code { program, entry: 0 }),
                live: Some(Live::Registers(self.live.clone())),
                assumptions: Vec::new(),
                solver: self.search.solver.clone(),
            };
            let proof = match question.answer() {
                Ok(Verdict::Equal) => Ok(()),
                Ok(Verdict::EqualUpTo(_) | Verdict::EqualApart) => Err("not for all inputs".to_string()),
                Ok(Verdict::Differ(_)) => {
                    refuted += 1;
                    continue;
                }
                Ok(Verdict::Unknown(why)) => Err(why),
                Err(ProofError::Solver(error)) => return Err(error.into()),
                Err(error) => Err(error.to_string()),
            };
            let also_writes = one.also_writes.clone();
            return Ok((Some(Equivalent { instructions: texts, also_writes, proof }), refuted));
        }
        Ok((None, refuted))
    }

    fn assemble(&self, text: &str) -> Option<Program> {
        let list = text.lines().map(|line| Some((parse(line, self.options, &NoSymbols).ok()?.inst, 0)));
        let program = Program::new(self.options.arch, list.collect::<Option<Vec<_>>>()?).ok()?;
        Some(program.for_wave_size(self.options.wave))
    }
}

/// The number of tests that have to agree.
pub const TESTED: usize = ALL_TESTS;
