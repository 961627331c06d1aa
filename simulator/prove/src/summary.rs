//! What a program leaves in the registers, as terms of what they contained at the start.

use crate::execute::{End, execute};
use crate::machine::Executor;
use crate::proof::{Code, semantics};
use crate::routes::{Register, Routes};
use crate::setup::{Lanes, Setup};
use crate::state::initial;
use isa_export::smt::{Term, Terms, Unsupported};
use std::cell::Cell;
use std::collections::BTreeMap;
use wavesim_isa::inst::Inst;

/// The registers that a program writes, with their values at the end for one lane. Variables are named as
/// [`register_name`](crate::register_name) says; `active` is the lane's bit of EXEC, and names that begin with `other`
/// are bits of other lanes, or what those write.
pub struct Summary {
    /// The terms.
    pub terms: Terms,
    /// The registers, with their values.
    pub registers: Vec<(Register, Term)>,
}

impl Summary {
    /// Executes a program for one lane.
    ///
    /// # Errors
    /// An instruction that proofs do not know, or that sees other lanes.
    pub fn of(setup: &Setup, code: Code<'_>, lane: u32) -> Result<Summary, Unsupported> {
        let (mut terms, routes) = (Terms::default(), Routes::default());
        let find = |inst: &Inst| semantics(setup, inst);
        let lanes = Lanes::One(lane);
        let executor =
            Executor { setup, lanes, routes: &routes, semantics: &find, program: 0, masks: Cell::new(0) };
        let state = execute(&mut terms, &executor, code.program, code.entry)?.state;
        if state.loads_after_stores {
            return Err(Unsupported("lanes that may see each other's stores".into()));
        }
        let written: Vec<(u32, Register)> = state.written().collect();
        let registers = written
            .into_iter()
            .map(|(at, one)| (one, state.get(&mut terms, setup, lanes, at, one)))
            .collect();
        Ok(Summary { terms, registers })
    }
}

/// The registers that a program writes, with their values at the end for all lanes. Variables are named as
/// [`register_name`](crate::register_name) says, those of VGPRs with the lane: `v1.3`.
pub struct WaveSummary {
    /// By lane (0 for SGPRs) and register.
    pub registers: BTreeMap<(u32, Register), Term>,
}

impl WaveSummary {
    /// Executes a program for all lanes.
    ///
    /// # Errors
    /// An instruction that proofs do not know, or an access to memory.
    pub fn of(terms: &mut Terms, setup: &Setup, code: Code<'_>) -> Result<WaveSummary, Unsupported> {
        let routes = Routes::default();
        let find = |inst: &Inst| semantics(setup, inst);
        let lanes = Lanes::All;
        let executor =
            Executor { setup, lanes, routes: &routes, semantics: &find, program: 0, masks: Cell::new(0) };
        let outcome = execute(terms, &executor, code.program, code.entry)?;
        if outcome.end != End::Code {
            return Err(Unsupported("the end of the wave, or a jump".into()));
        }
        let state = outcome.state;
        if !state.addresses.is_empty() || state.memories().next().is_some() || !state.events.is_empty() {
            return Err(Unsupported("an access to memory".into()));
        }
        let written: Vec<(u32, Register)> = state.written().collect();
        let registers = written
            .into_iter()
            .map(|(lane, one)| ((lane, one), state.get(terms, setup, lanes, lane, one)))
            .collect();
        Ok(WaveSummary { registers })
    }
}

/// The variable of a register of a lane at the start, when all lanes are modelled.
pub fn initial_of_wave(terms: &mut Terms, setup: &Setup, lane: u32, register: Register) -> Term {
    initial(terms, setup, Lanes::All, lane, register)
}
