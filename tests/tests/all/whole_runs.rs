//! Compares the handlers with the evaluator on whole programs: random vector, scalar and LDS instructions,
//! memory accesses, branches, loops and divergence, in wave32 and wave64. Registers, masks, memory and PC
//! must be equal.
//!
//! `WAVESIM_PROGRAMS` sets the number of programs of each kind, `WAVESIM_LENGTH` their maximum length,
//! `WAVESIM_LONG` the number of programs of 10,000 instructions, and `WAVESIM_SEED` the seed.

use wavesim::arch::Arch;
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim_tests::machine::{Machine, compare};
use wavesim_tests::random::{self, GLOBAL, LDS, Rng, SCRATCH};
use wavesim_tests::whole::{self, Entries, Features};

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Slices of at most this many instructions end exactly at their budget.
const MAX_SLICE: u64 = 900;
/// No program reaches this limit: loops have at most three iterations and limited nesting.
const MAX_INSTRUCTIONS: u64 = 1 << 20;

/// How the engines are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Execution {
    /// The interpreter runs from start to end.
    Uninterrupted,
    /// The program runs in slices.
    Sliced,
}

/// Executes up to `budget` instructions in the evaluator, or until an event.
fn evaluate(machine: &mut Machine, program: &Program, budget: u64) -> Result<(), Event> {
    for _ in 0..budget {
        let pc = machine.wave.pc;
        if let Err(event) = machine.evaluate(program) {
            // Like the interpreter, leaves the PC at the faulting instruction.
            if matches!(event, Event::Fault(_)) {
                machine.wave.pc = pc;
            }
            return Err(event);
        }
    }
    Ok(())
}

/// Runs a slice in both engines from `start`. Returns the evaluator's machine and the result of the run, or
/// the first difference.
fn run_slice(
    program: &Program,
    start: &Machine,
    budget: u64,
) -> Result<(Machine, Result<(), Event>), String> {
    let (mut compiled, mut reference) = (start.clone(), start.clone());
    let a = compiled.run(program, budget);
    let b = evaluate(&mut reference, program, budget);
    if a != b {
        return Err(format!("handlers end with {a:?}, evaluator with {b:?}"));
    }
    // Partial effects of a faulting instruction are not compared.
    if matches!(b, Err(Event::Fault(_))) {
        return Ok((reference, b));
    }
    match compare(start, &compiled, &reference) {
        Some(what) => Err(what),
        None => Ok((reference, b)),
    }
}

/// Finds the first instruction of a slice after which the engines differ. Returns the difference.
fn first_difference(program: &Program, start: &Machine, budget: u64) -> Option<String> {
    let mut machine = start.clone();
    for _ in 0..budget {
        let at = program.inst_at(machine.wave.pc)?;
        let before = machine.clone();
        let (mut compiled, mut reference) = (before.clone(), before.clone());
        let (a, b) = (compiled.run(program, 1), reference.evaluate(program));
        let what = match compare(&before, &compiled, &reference) {
            _ if a != b => Some(format!("{a:?}, {b:?}")),
            what => what,
        };
        if let Some(what) = what {
            return Some(format!("instruction {at}, {}: {what}", program.text(at)));
        }
        if b.is_err() {
            return None;
        }
        machine = reference;
    }
    None
}

/// Runs a program. Returns the event that stopped it before its end, if any, or an error that describes a
/// difference.
fn check(
    rng: &mut Rng,
    program: &Program,
    start: Machine,
    execution: Execution,
) -> Result<Option<String>, String> {
    let mut machine = start;
    let mut executed = 0;
    loop {
        let budget = match execution {
            Execution::Uninterrupted => MAX_INSTRUCTIONS,
            Execution::Sliced => 1 + rng.below(MAX_SLICE),
        };
        let from = machine.wave.pc;
        let ended = match run_slice(program, &machine, budget) {
            Ok((reference, ended)) => {
                machine = reference;
                ended
            }
            Err(what) => {
                let whole = format!("from PC 0x{from:x}: {what}");
                let first = first_difference(program, &machine, budget);
                let first = first.unwrap_or_else(|| "not in single steps".to_string());
                return Err(format!("{first}; {whole}"));
            }
        };
        executed += budget;
        match ended {
            Ok(()) if executed < MAX_INSTRUCTIONS => {}
            Ok(()) => {
                let at = program.inst_at(machine.wave.pc).unwrap_or_default();
                return Err(format!(
                    "the program does not end: it is at instruction {at}, {}",
                    program.text(at)
                ));
            }
            Err(Event::EndPgm) => return Ok(None),
            Err(event) => {
                let text = program.inst_at(machine.wave.pc).map(|at| program.text(at)).unwrap_or_default();
                return Ok(Some(format!("{text}: {event:?}")));
            }
        }
    }
}

fn programs_agree(arch: Arch, seed: u64) {
    let seed = env("WAVESIM_SEED", 1) << 32 ^ seed << 24;
    let length = env("WAVESIM_LENGTH", 400);
    let (mut ended, mut stopped) = (0, Vec::new());
    for size in [32, 64] {
        let kinds = [
            // (floats, instructions that change MODE, modes to start in)
            (Execution::Sliced, true, true, &[0xf0, 0xc0, 0x3c0, 0xff][..]),
            (Execution::Uninterrupted, false, false, &[0xf0, 0xc0]),
            // With rounding toward zero, host arithmetic is not used.
            (Execution::Uninterrupted, true, false, &[0xff]),
        ];
        for (number, (execution, floats, mode, modes)) in kinds.into_iter().enumerate() {
            let kind = Features { arch, size, floats, mode, memory: true };
            let entries = Entries::new(kind);
            for case in 0..env("WAVESIM_PROGRAMS", 4) {
                let mut rng = Rng(seed ^ (size as u64) << 16 ^ (number as u64) << 12 ^ case);
                let length = 1 + rng.below(length) as usize;
                let program = whole::program(&mut rng, kind, &entries, length).for_wave_size(size);
                let start = machine(&mut rng, size, modes);
                match check(&mut rng, &program, start, execution) {
                    Ok(None) => ended += 1,
                    Ok(Some(event)) => stopped.push(format!("wave{size} {execution:?} case {case}: {event}")),
                    Err(what) => {
                        panic!(
                            "{} wave{size} {execution:?} case {case}, {length} instructions: {what}",
                            arch.name()
                        )
                    }
                }
            }
        }
    }
    let first = stopped[..stopped.len().min(5)].join("\n");
    println!("{}: {ended} programs came to their end, {} stopped:\n{first}", arch.name(), stopped.len());
    assert!(ended >= 4 * stopped.len(), "most programs stop before their end:\n{first}");
}

/// Returns a machine with random registers and memory.
fn machine(rng: &mut Rng, size: u32, modes: &[u32]) -> Machine {
    let mut wave = random::wave(rng, size);
    wave.mode = rng.pick(modes);
    if rng.chance(2) {
        wave.set_exec(u64::MAX);
    }
    let mut bytes = |n: u64| (0..n / 4).flat_map(|_| rng.dword().to_le_bytes()).collect::<Vec<u8>>();
    let (global, lds) = (bytes(GLOBAL), bytes(LDS));
    let scratch = bytes(SCRATCH as u64 * size as u64);
    Machine { wave, global, lds, scratch }
}

/// Runs programs of 10,000 instructions with thousands of literals, uninterrupted.
fn long_programs_agree(arch: Arch) {
    for size in [32, 64] {
        for case in 0..env("WAVESIM_LONG", 1) {
            // Without features that end a program early. With rounding toward zero, host arithmetic is not
            // used.
            let kind = Features { arch, size, floats: true, mode: false, memory: false };
            let entries = Entries::new(kind);
            let mut rng = Rng(env("WAVESIM_SEED", 1) << 32 ^ (size as u64) << 16 ^ case);
            let program = whole::program(&mut rng, kind, &entries, 10_000).for_wave_size(size);
            assert!(program.insts.len() >= 10_000);
            let start = machine(&mut rng, size, &[0xff]);
            let ended = check(&mut rng, &program, start, Execution::Uninterrupted);
            assert_eq!(ended, Ok(None), "{} wave{size} case {case}", arch.name());
        }
    }
}

#[test]
fn long_programs() {
    Arch::RDNA.into_iter().for_each(long_programs_agree);
}

#[test]
fn rdna3() {
    programs_agree(Arch::Rdna3, 3);
}

#[test]
fn rdna35() {
    programs_agree(Arch::Rdna35, 35);
}

#[test]
fn rdna4() {
    programs_agree(Arch::Rdna4, 4);
}
