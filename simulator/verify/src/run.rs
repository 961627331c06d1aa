//! Symbolic execution of a function up to where it leaves the program's code. Each path is executed on its own.

use crate::host::{self, Vector};
use crate::listing::Listed;
use crate::memory::{FRAME, Memory};
use crate::{VerifyError, unsupported};
use isa_export::smt::{Sort, Term, Terms};
use std::collections::HashMap;
use wavesim_prove::Setup;
use wavesim_x64::inst::{Inst, Mem, Src, V};

type Result<T> = std::result::Result<T, VerifyError>;

/// Paths that are executed.
const MAX_PATHS: usize = 64;

/// Instructions on a path.
const MAX_STEPS: usize = 100_000;

/// The state at the end of a path, and when it is taken.
pub struct Path {
    /// All of these hold.
    pub conditions: Vec<Term>,
    pub memory: Memory,
}

#[derive(Clone)]
struct State {
    at: usize,
    ints: HashMap<usize, Term>,
    vectors: HashMap<usize, Vector>,
    memory: Memory,
    conditions: Vec<Term>,
    steps: usize,
}

/// Functions of the host at which the code of the program ends.
const ENDS: [&str; 4] = ["run_and_switch", "end_wave", "wait_for_barrier", "arrive_at_barrier"];

/// Executes a function for a wave that begins with the first instruction.
pub fn run(terms: &mut Terms, setup: &Setup, listed: &Listed) -> Result<Vec<Path>> {
    let function = &listed.function;
    let mut labels = HashMap::new();
    for (at, inst) in function.insts().iter().enumerate() {
        if let Inst::Label(label) = inst {
            labels.insert(label.index(), at);
        }
    }
    let mut first = State {
        at: 0,
        ints: HashMap::new(),
        vectors: HashMap::new(),
        memory: Memory::default(),
        conditions: Vec::new(),
        steps: 0,
    };
    for (k, param) in function.params().iter().enumerate() {
        let value = if k == 0 { FRAME } else { 0 };
        first.ints.insert(param.index(), terms.constant(value as u128, 64));
    }
    let mut machine = Machine { terms, setup, listed, labels, undefined: 0 };
    let (mut open, mut paths) = (vec![first], Vec::new());
    while let Some(state) = open.pop() {
        if open.len() + paths.len() >= MAX_PATHS {
            return unsupported("too many paths");
        }
        if let Some(path) = machine.path(state, &mut open)? {
            paths.push(path);
        }
    }
    Ok(paths)
}

struct Machine<'a> {
    terms: &'a mut Terms,
    setup: &'a Setup,
    listed: &'a Listed,
    labels: HashMap<usize, usize>,
    /// The number of values that are undefined.
    undefined: u32,
}

impl Machine<'_> {
    fn int(&self, state: &State, v: V) -> Result<Term> {
        state.ints.get(&v.index()).copied().ok_or(VerifyError::Unsupported("an unassigned integer".into()))
    }

    fn vector(&self, state: &State, v: V) -> Result<Vector> {
        state.vectors.get(&v.index()).copied().ok_or(VerifyError::Unsupported("an unassigned vector".into()))
    }

    fn src(&mut self, state: &State, src: Src) -> Result<Term> {
        match src {
            Src::Value(v) => self.int(state, v),
            Src::Imm(value) => Ok(self.terms.constant(value as i128 as u128, 64)),
        }
    }

    fn address(&self, state: &State, mem: Mem) -> Result<u64> {
        let base = self.int(state, mem.base)?;
        match self.terms.value(base) {
            Some(base) => Ok((base as u64).wrapping_add_signed(mem.disp.into())),
            None => unsupported("an access whose address is not constant"),
        }
    }

    fn words(&mut self, state: &mut State, address: u64, count: u64) -> Result<Vec<Term>> {
        (0..count)
            .map(|k| {
                let word = state.memory.load(self.terms, self.setup, address + 4 * k, 4)?;
                Ok(self.terms.extract(word, 0, 32))
            })
            .collect()
    }

    fn load_vector(&mut self, state: &mut State, address: u64) -> Result<Vector> {
        let words = self.words(state, address, 8)?;
        Ok(std::array::from_fn(|k| words[k]))
    }

    fn store_words(&mut self, state: &mut State, address: u64, words: &[Term]) -> Result<()> {
        for (k, word) in (0..).zip(words) {
            state.memory.store(self.terms, self.setup, address + 4 * k, 4, *word)?;
        }
        Ok(())
    }

    /// Whether a condition holds on the path; both may be possible.
    fn decided(&mut self, state: &State, cond: Term) -> Option<bool> {
        let not = self.terms.not(cond);
        self.terms.truth(cond).or_else(|| {
            state
                .conditions
                .contains(&cond)
                .then_some(true)
                .or(state.conditions.contains(&not).then_some(false))
        })
    }

    /// Continues at a label if a condition holds. The other path is executed later.
    fn branch(&mut self, state: &mut State, cond: Term, to: usize, open: &mut Vec<State>) {
        match self.decided(state, cond) {
            Some(true) => state.at = to,
            Some(false) => {}
            None => {
                let mut taken = state.clone();
                taken.at = to;
                taken.conditions.push(cond);
                open.push(taken);
                let not = self.terms.not(cond);
                state.conditions.push(not);
            }
        }
    }

    fn path(&mut self, mut state: State, open: &mut Vec<State>) -> Result<Option<Path>> {
        loop {
            let Some(inst) = self.listed.function.insts().get(state.at) else {
                return unsupported("a function without an end");
            };
            state.at += 1;
            state.steps += 1;
            if state.steps > MAX_STEPS {
                return unsupported("too long a path");
            }
            match inst {
                Inst::Call { function, .. } => {
                    let name = self.listed.names.get(function).map_or("a function", String::as_str);
                    if ENDS.contains(&name) {
                        return Ok(Some(Path { conditions: state.conditions, memory: state.memory }));
                    }
                    return unsupported(format!("a call of {name}"));
                }
                Inst::ColdCall { function, .. } => {
                    let name = self.listed.names.get(function).map_or("a function", String::as_str);
                    return unsupported(format!("a call of {name}"));
                }
                Inst::Return { .. } => {
                    return Ok(Some(Path { conditions: state.conditions, memory: state.memory }));
                }
                inst => self.step(&mut state, inst, open)?,
            }
        }
    }

    fn step(&mut self, state: &mut State, inst: &Inst, open: &mut Vec<State>) -> Result<()> {
        let int = |state: &mut State, d: V, value: Term| {
            state.ints.insert(d.index(), value);
        };
        let vector = |state: &mut State, d: V, value: Vector| {
            state.vectors.insert(d.index(), value);
        };
        match inst.clone() {
            Inst::Const { d, bits } => {
                let value = self.terms.constant(bits as u128, 64);
                int(state, d, value);
            }
            Inst::Move { d, a } => match state.ints.get(&a.index()) {
                Some(value) => int(state, d, *value),
                None => {
                    let value = self.vector(state, a)?;
                    vector(state, d, value);
                }
            },
            Inst::Int2 { op, width, d, a, b } => {
                let (a, b) = (self.int(state, a)?, self.src(state, b)?);
                let value = host::int2(self.terms, op, width, a, b);
                int(state, d, value);
            }
            Inst::Int1 { op, width, d, a } => {
                let a = self.int(state, a)?;
                let value = host::int1(self.terms, op, width, a);
                int(state, d, value);
            }
            Inst::Compare { cc, width, d, a, b } => {
                let (a, b) = (self.int(state, a)?, self.src(state, b)?);
                let bit = host::compare(self.terms, cc, width, a, b);
                let value = self.terms.zero_extend(bit, 64);
                int(state, d, value);
            }
            Inst::Select { d, cond, a, b } => {
                let (cond, a, b) = (self.int(state, cond)?, self.int(state, a)?, self.int(state, b)?);
                let zero = self.terms.constant(0, 64);
                let none = self.terms.eq(cond, zero);
                let value = self.terms.ite(none, b, a);
                int(state, d, value);
            }
            Inst::Load { size, d, from } => {
                let at = self.address(state, from)?;
                let value = state.memory.load(self.terms, self.setup, at, size.bytes() as u64)?;
                int(state, d, value);
            }
            Inst::Store { size, to, v } => {
                let (at, v) = (self.address(state, to)?, self.src(state, v)?);
                state.memory.store(self.terms, self.setup, at, size.bytes() as u64, v)?;
            }
            Inst::Label(_) | Inst::Prefetch { .. } | Inst::LoadMxcsr { .. } => {}
            Inst::Jump(to) => state.at = self.labels[&to.index()],
            Inst::Branch { cc, width, a, b, to } => {
                let (a, b) = (self.int(state, a)?, self.src(state, b)?);
                let cond = host::compare(self.terms, cc, width, a, b);
                self.branch(state, cond, self.labels[&to.index()], open);
            }
            Inst::BranchAny { a, b, none, to } => {
                let (a, b) = (self.vector(state, a)?, self.vector(state, b)?);
                let any = host::any(self.terms, &a, &b);
                let cond = if none { self.terms.not(any) } else { any };
                self.branch(state, cond, self.labels[&to.index()], open);
            }
            Inst::Table { index, to } => {
                let index = self.int(state, index)?;
                let Some(index) = self.terms.value(index) else { return unsupported("a computed jump") };
                let Some(to) = to.get(index as usize).or(to.last()) else {
                    return unsupported("an empty table");
                };
                state.at = self.labels[&to.index()];
            }
            Inst::VecConst { d, constant } => {
                let words = self.listed.function.constants()[constant as usize];
                let value = words.map(|word| self.terms.constant(word as u128, 32));
                vector(state, d, value);
            }
            Inst::VecLoad { d, from, .. } => {
                let at = self.address(state, from)?;
                let value = self.load_vector(state, at)?;
                vector(state, d, value);
            }
            Inst::VecStore { to, v } | Inst::VecStream { to, v } => {
                let (at, v) = (self.address(state, to)?, self.vector(state, v)?);
                self.store_words(state, at, &v)?;
            }
            Inst::SplatLoad { d, from } => {
                let at = self.address(state, from)?;
                let word = self.words(state, at, 1)?[0];
                vector(state, d, [word; 8]);
            }
            Inst::Rm { code, d, b, imm } => {
                let b = self.vector(state, b)?;
                let value = host::rm(self.terms, code, &b, imm)?;
                vector(state, d, value);
            }
            Inst::Rvm { code, d, a, b, imm } => {
                let (a, b) = (self.vector(state, a)?, self.vector(state, b)?);
                let value = host::rvm(self.terms, code, &a, &b, imm)?;
                vector(state, d, value);
            }
            Inst::Blend { wide, d, a, b, mask } => {
                let (a, b) = (self.vector(state, a)?, self.vector(state, b)?);
                let mask = self.vector(state, mask)?;
                let value = host::blend(self.terms, wide, &a, &b, &mask);
                vector(state, d, value);
            }
            Inst::UpperHalf { d, b } => {
                let b = self.vector(state, b)?;
                self.undefined += 1;
                let name = format!("undefined.{}", self.undefined);
                let rest = self.terms.var(&name, Sort::Bits(32));
                vector(state, d, std::array::from_fn(|k| if k < 4 { b[k + 4] } else { rest }));
            }
            Inst::Splat { wide, d, a } => {
                let a = self.int(state, a)?;
                let (low, high) = (self.terms.extract(a, 0, 32), self.terms.extract(a, 32, 32));
                vector(state, d, std::array::from_fn(|k| if wide && k % 2 == 1 { high } else { low }));
            }
            Inst::LowInt { d, a } => {
                let a = self.vector(state, a)?;
                let value = self.terms.zero_extend(a[0], 64);
                int(state, d, value);
            }
            Inst::SignBits { d, a } => {
                let a = self.vector(state, a)?;
                let value = host::sign_bits(self.terms, &a);
                int(state, d, value);
            }
            Inst::LoadHalves { d, low, high } => {
                let (low, high) = (self.address(state, low)?, self.address(state, high)?);
                let (low, high) = (self.words(state, low, 4)?, self.words(state, high, 4)?);
                vector(state, d, std::array::from_fn(|k| if k < 4 { low[k] } else { high[k - 4] }));
            }
            Inst::StoreHalves { v, low, high } => {
                let (low, high, v) =
                    (self.address(state, low)?, self.address(state, high)?, self.vector(state, v)?);
                self.store_words(state, low, &v[..4])?;
                self.store_words(state, high, &v[4..])?;
            }
            Inst::Fma { .. } => return unsupported("float arithmetic (fma)"),
            Inst::Gather { .. } => return unsupported("a gather"),
            Inst::Call { .. } | Inst::ColdCall { .. } | Inst::Return { .. } => {
                return unsupported("a call inside an instruction");
            }
        }
        Ok(())
    }
}
