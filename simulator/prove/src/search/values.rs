//! The operands with which instructions are compared.

use super::candidate::{Arg, Candidate, Place};
use crate::samples::operand;
use crate::setup::Setup;
use isa_spec::arith::mask;
use std::cell::RefCell;

/// Tests that all candidates see; the first one tells most of them apart.
pub const TESTS: usize = 48;

/// Tests that candidates see which agree in those, with special numbers in all places.
pub const ALL_TESTS: usize = 2048;

/// The values of operands and state in each test.
pub struct Inputs {
    pub wave_size: u32,
    /// By source operand of the instruction that is searched for.
    columns: Vec<Vec<u128>>,
    /// The first register of each.
    registers: Vec<u32>,
    scratch: RefCell<(Vec<u128>, Vec<u128>)>,
}

impl Inputs {
    pub fn of(setup: &Setup, target: &Candidate) -> Inputs {
        let columns = (0..target.sources.len())
            .map(|at| {
                let width = 32 * target.sources[at].words;
                (0..ALL_TESTS).map(|test| operand(test, at) & mask(width)).collect()
            })
            .collect();
        Inputs { wave_size: setup.wave_size, columns, ..Inputs::registers(target) }
    }

    /// Registers only: for examples.
    pub fn registers(target: &Candidate) -> Inputs {
        // Pairs of SGPRs begin at even numbers.
        let wide = target.sources.iter().any(|slot| slot.words > 1)
            || target.outputs.iter().any(|output| output.words > 1);
        let each = if wide { 2 } else { 1 };
        let registers = (0..target.sources.len() as u32).map(|at| each * (at + 1)).collect();
        Inputs { wave_size: 32, columns: Vec::new(), registers, scratch: RefCell::default() }
    }

    pub fn first_register(&self, input: usize) -> u32 {
        self.registers.get(input).copied().unwrap_or(0)
    }

    /// The values of an operand.
    pub fn column(&self, input: usize) -> &[u128] {
        &self.columns[input]
    }

    /// All results, by test. `first` has the results of the first instruction of a pair.
    pub fn results(
        &self,
        of: &Candidate,
        args: &[Arg],
        first: Option<&[u128]>,
        tests: usize,
    ) -> Vec<Vec<u128>> {
        (0..tests).map(|test| self.one(of, args, first, test, |results| results.collect())).collect()
    }

    /// Whether all results that are expected are computed, in as many tests. The names of results are in the same order.
    pub fn agrees(
        &self,
        of: &Candidate,
        args: &[Arg],
        expected: &[Vec<u128>],
        first: Option<&[u128]>,
    ) -> bool {
        (0..expected.len()).all(|test| {
            self.one(of, args, first, test, |results| {
                expected[test].iter().zip(results).all(|(wanted, got)| *wanted == got)
            })
        })
    }

    fn one<T>(
        &self,
        of: &Candidate,
        args: &[Arg],
        first: Option<&[u128]>,
        test: usize,
        then: impl FnOnce(&mut dyn Iterator<Item = u128>) -> T,
    ) -> T {
        let (inputs, values) = &mut *self.scratch.borrow_mut();
        inputs.clear();
        for (place, (name, width)) in of.places.iter().zip(of.tape.inputs()) {
            let value = match place {
                Place::Source(at) => match args[*at] {
                    Arg::Input(input) => self.columns[input][test],
                    Arg::Constant(value) => value.bits(of.sources[*at]),
                    Arg::First => first.map_or(0, |values| values[test]),
                },
                Place::Field => 0,
                Place::State => state(name, test, self.wave_size),
            };
            inputs.push(value & mask(*width));
        }
        then(&mut of.tape.run(inputs, values))
    }
}

/// State that is the same for both instructions.
fn state(name: &str, test: usize, wave_size: u32) -> u128 {
    match name {
        "wave_size" => wave_size as u128,
        "lane" => (test as u32 % wave_size) as u128,
        _ => {
            let number =
                name.bytes().fold(7, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            operand(test, number)
        }
    }
}
