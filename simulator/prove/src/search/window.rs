//! Shorter sequences that compute what a few instructions compute.

use super::candidate::{Candidate, Constant, Output};
use super::values::{ALL_TESTS, Inputs};
use super::{Found, Goal, Search, SearchError};
use crate::assume::register;
use crate::proof::Code;
use crate::routes::Register;
use crate::state::register_name;
use crate::summary::Summary;
use isa_export::smt::{Sort, Tape, Term};
use isa_spec::pcode::ir::Shape;
use std::collections::{BTreeMap, BTreeSet};
use wavesim_asm::{Options, print};
use wavesim_machine::exec::program::Program;

/// Instructions in a row.
pub struct Window<'a> {
    /// Two or three instructions without branches and memory.
    pub program: &'a Program,
    /// The registers that are read later; all that are written, if nothing is said.
    pub live: Option<BTreeSet<Register>>,
}

/// The instructions of a window, at most.
const MAX_INSTRUCTIONS: usize = 3;

impl Search {
    /// Searches for one instruction, and for two of them in place of three, that leave the same in the live registers.
    /// Others may be overwritten.
    ///
    /// # Errors
    /// [`SearchError`].
    pub fn shorter(&self, window: &Window<'_>) -> Result<Found, SearchError> {
        let bad = |why: String| SearchError::Instruction { name: "the window".into(), why };
        let arch = self.setup.arch;
        let options = Options::new(arch).wave(self.setup.wave_size);
        let insts = &window.program.insts;
        if !(2..=MAX_INSTRUCTIONS).contains(&insts.len()) {
            return Err(bad(format!("it has {} instructions, instead of two or three", insts.len())));
        }
        let texts: Vec<String> = insts.iter().map(|inst| print::instruction(inst, &options)).collect();
        let code = Code { program: window.program, entry: 0 };
        let summary = Summary::of(&self.setup, code, 0).map_err(|why| bad(why.to_string()))?;
        let Summary { mut terms, registers } = summary;
        // Inactive lanes keep what they have, whatever is executed.
        let active = terms.var("active", Sort::Bits(1));
        let one = BTreeMap::from([(active, terms.bool(true))]);
        let is_live = |register: &Register| window.live.as_ref().is_none_or(|live| live.contains(register));
        let live: Vec<(Register, Term)> = registers
            .into_iter()
            .filter(|(register, _)| is_live(register))
            .map(|(register, value)| (register, terms.substituted(value, &one)))
            .collect();
        let (shape, result) = match &live[..] {
            [(register @ Register::Vector(_), _)] => (Shape::Lane, *register),
            [(register @ Register::Scalar(_), _)]
            | [(register @ Register::Scalar(_), _), (Register::Scc, _)] => (Shape::Scalar, *register),
            [] => return Err(bad("it leaves nothing in live registers".into())),
            _ => {
                let names: Vec<String> = live.iter().map(|(register, _)| register_name(*register)).collect();
                let names = names.join(", ");
                return Err(bad(format!("its results are {names}, instead of one register (--live)")));
            }
        };
        let roots: Vec<Term> = live.iter().map(|(_, value)| *value).collect();
        let tape = Tape::of(&terms, &roots).ok_or_else(|| bad("it accesses memory".into()))?;
        let is_source =
            |name: &str| matches!(register(name), Some(Register::Vector(_) | Register::Scalar(_)));
        if let Some((name, _)) = tape.inputs().iter().find(|(name, width)| !is_source(name) || *width != 32) {
            return Err(bad(format!("it depends on {name}")));
        }
        let outputs = ["D0", "scc"][..live.len()]
            .iter()
            .map(|name| Output { name: name.to_string(), words: 1 })
            .collect();
        let constants = constants(&texts.join(" "));
        let names: Vec<String> = tape.inputs().iter().map(|(name, _)| name.clone()).collect();
        let target = Candidate::window(shape, tape, outputs);
        let inputs = Inputs::of(&self.setup, &target);
        let expected = inputs.results(&target, &target.own_args(), None, ALL_TESTS);
        let others: Vec<Candidate> = (0..arch.table().instructions.len())
            .filter_map(|at| Candidate::of(&options, at).ok())
            .filter(|other| other.shape == shape)
            .collect();
        let prefix = if shape == Shape::Lane { 'v' } else { 's' };
        let own = [(format!("{prefix}0"), register_name(result))];
        let sources =
            (0..).zip(names).map(|(k, name)| (format!("{prefix}{}", inputs.first_register(k)), name));
        let search = Search {
            pairs: insts.len() > 2,
            solver: self.solver.clone(),
            setup: self.setup.clone(),
            ..*self
        };
        let text = texts.join("\n");
        let goal = Goal {
            search: &search,
            target: &target,
            text: &text,
            options: &options,
            live: live.iter().map(|(register, _)| *register).collect(),
            names: own.into_iter().chain(sources).collect(),
        };
        goal.find(&others, &inputs, &expected, &constants)
    }
}

/// The numbers in instructions, which are likely to be operands of shorter ones.
fn constants(text: &str) -> Vec<Constant> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(|value| value as i32),
        None => word.parse::<i32>().ok(),
    };
    let mut found: Vec<i32> = words.filter_map(number).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(Constant::Integer).collect()
}
