//! What a program leaves in the registers, as terms of what they contained at the start.

use crate::execute::execute;
use crate::machine::Executor;
use crate::proof::{Code, semantics};
use crate::routes::{Register, Routes};
use crate::setup::{Lanes, Setup};
use isa_export::smt::{Term, Terms, Unsupported};
use std::cell::Cell;
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
