//! Pairs of sequences whose relation is known. Without a solver, they are skipped.

mod approximate;
mod modifiers;
mod pairs;
mod random;
mod search;

use std::time::Duration;
use wavesim_asm::{NoSymbols, Options, parse};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::program::Program;
use wavesim_prove::{Code, Live, ProofError, Question, Setup, Solver, Verdict};

/// Assembles instructions, separated by semicolons.
pub fn assemble(arch: Arch, wave_size: u32, text: &str) -> Program {
    let options = Options::new(arch).wave(wave_size);
    let list = text.split(';').map(str::trim).filter(|line| !line.is_empty());
    let list = list.map(|line| (parse(line, &options, &NoSymbols).expect(line).inst, 0)).collect();
    Program::new(arch, list).expect(text).for_wave_size(wave_size)
}

/// Answers whether two sequences are equal; `None` if there is no solver.
pub fn ask(
    setup: Setup,
    texts: [&str; 2],
    assume: &[&str],
    live: Option<Live>,
) -> Option<Result<Verdict, ProofError>> {
    ask_within(60, setup, texts, assume, live)
}

/// As [`ask`], with a limit of the time of each question to the solver, in seconds.
pub fn ask_within(
    limit: u64,
    setup: Setup,
    texts: [&str; 2],
    assume: &[&str],
    live: Option<Live>,
) -> Option<Result<Verdict, ProofError>> {
    let Ok(solver) = Solver::find(Duration::from_secs(limit)) else {
        println!("skipped: no SMT solver");
        return None;
    };
    let [a, b] = texts.map(|text| assemble(setup.arch, setup.wave_size, text));
    let codes = [&a, &b].map(|program| Code { program, entry: 0 });
    let assumptions = assume.iter().map(|text| text.to_string()).collect();
    Some(Question { setup, codes, live, assumptions, solver }.answer())
}
