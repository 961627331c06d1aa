//! Runs the commands of `docs/proofs.md`, and compares their output with the page; compares the terms of
//! instructions with the evaluator.

use clap::Parser as _;
use isa_spec::tables::EntryId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wavesim::arch::Arch;
use wavesim::cli::{Cli, dispatch};
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::inst::Inst;
use wavesim::prove::{Code, Inputs, Register, Setup, Summary, Unsupported, register, register_name};
use wavesim::state::{Wave, scratch};
use wavesim_tests::machine::{Engine, Machine};
use wavesim_tests::random::{self, Rng};
use wavesim_tests::{command_words, root};

#[test]
fn documented_proofs() {
    if let Err(error) = wavesim::prove::Solver::find(std::time::Duration::from_secs(1)) {
        println!("skipped: docs/proofs.md: {error}");
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/proofs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let mut sessions: Vec<(&str, String)> = Vec::new();
    for line in lines {
        match line.strip_prefix("$ ") {
            Some(command) => sessions.push((command, String::new())),
            None => {
                if let Some((_, output)) = sessions.last_mut() {
                    output.push_str(line);
                    output.push('\n');
                }
            }
        }
    }
    for (command, expected) in &sessions {
        let mut out = Vec::new();
        let code = dispatch(&Cli::parse_from(command_words(command)).command, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), *expected, "{command}");
        assert_eq!(code, expected.starts_with("differ") as u8, "{command}");
    }
    assert!(sessions.len() >= 4, "{} commands", sessions.len());
}

/// The bodies of mnemonics on different architectures: which are equal, and which result of others differs. One mnemonic in so
/// many is looked at.
#[test]
fn bodies_on_several_architectures() {
    if let Err(error) = wavesim::prove::Solver::find(std::time::Duration::from_secs(1)) {
        println!("skipped: bodies on several architectures: {error}");
        return;
    }
    let env =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (every, seed) = (env("WAVESIM_EVERY", 12), env("WAVESIM_SEED", env("PROPTEST_RNG_SEED", 1)));
    let only = std::env::var("WAVESIM_OP").unwrap_or_default().to_lowercase();
    let names: BTreeSet<String> = Arch::AMD
        .iter()
        .flat_map(|arch| arch.table().instructions)
        .map(|instruction| instruction.name.to_lowercase())
        .collect();
    let mut found = String::new();
    for (number, name) in (0..).zip(&names) {
        if !name.contains(&only) || !Rng(seed << 24 ^ number).chance(every) {
            continue;
        }
        let mut out = Vec::new();
        let command = ["wavesim", "prove", "--timeout", "3", "--architectures", name];
        // Instructions without semantics.
        if dispatch(&Cli::parse_from(command).command, &mut out).is_err() {
            continue;
        }
        for line in
            String::from_utf8(out).unwrap().lines().filter(|line| line.starts_with(&format!("{name}:")))
        {
            // Which inputs are found depends on the solver and the time.
            let verdict =
                ["differ", "unknown"].into_iter().find(|verdict| line.contains(&format!(": {verdict}")));
            let line = match verdict
                .and_then(|verdict| Some((line.split_once(&format!(": {verdict}"))?.0, verdict)))
            {
                Some((bodies, verdict)) => format!("{bodies}: {verdict}"),
                None => line.to_string(),
            };
            found += &format!("{line}\n");
        }
    }
    let file = root().join("tests/filetests/export/architectures.expected");
    if every == 1 && only.is_empty() {
        wavesim_golden::check(&file, &found);
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    let expected: BTreeSet<&str> = expected.lines().collect();
    let missing: Vec<&str> = found.lines().filter(|line| !expected.contains(line)).collect();
    assert!(missing.is_empty(), "not in {}: {missing:#?}", file.display());
}

#[test]
fn wrong_inputs_are_explained() {
    let refused = |line: &str| {
        let mut out = Vec::new();
        let error = dispatch(&Cli::parse_from(command_words(line)).command, &mut out).unwrap_err();
        format!("{error:#}")
    };
    let file = root().join("examples/scale.s").display().to_string();
    assert_eq!(
        refused(&format!("wavesim prove --symbol scael {file} {file}")).rsplit("; ").next().unwrap(),
        "did you mean `scale`?"
    );
    assert!(refused("wavesim prove missing.s missing.s").contains("missing.s"));
}

/// Random instructions on random states: the terms have the values that the evaluator computes. This is the referee of
/// symbolic evaluation, of the simplification of terms, and of what is learned about operands.
#[test]
fn terms_have_the_values_of_the_evaluator() {
    let env =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let seed = env("WAVESIM_SEED", env("PROPTEST_RNG_SEED", 1));
    let only = std::env::var("WAVESIM_OP").unwrap_or_default().to_uppercase();
    // One entry in so many is tested.
    let every = env("WAVESIM_EVERY", 12);
    let mut failures = Vec::new();
    let (mut compared, mut refused) = (0, BTreeMap::<String, usize>::new());
    for arch in Arch::AMD {
        let table = arch.table();
        for id in 0..table.entries.len() as EntryId {
            let name = table.instructions[table.entries[id as usize].inst as usize].name;
            let mut rng = Rng(seed << 24 ^ (arch as u64) << 20 ^ id as u64);
            if !name.contains(&only) || !rng.chance(every) {
                continue;
            }
            let Some(inst) = random::instruction(&mut rng, arch, id) else { continue };
            match terms_differ(&mut rng, arch, &inst) {
                Ok(None) => compared += 1,
                Ok(Some(what)) => failures.push(format!("{} {name} (entry {id}): {what}", arch.name())),
                Err(why) => *refused.entry(why.to_string()).or_default() += 1,
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{}\n{} failures",
        failures[..failures.len().min(20)].join("\n"),
        failures.len()
    );
    println!("{compared} instructions compared, {refused:?}");
    assert!(!only.is_empty() || compared > 500, "{compared}, {refused:?}");
}

/// Returns a register that has another value than its term; the reason if there are no terms.
fn terms_differ(rng: &mut Rng, arch: Arch, inst: &Inst) -> Result<Option<String>, Unsupported> {
    let size = rng.pick(arch.wave_sizes());
    let mut wave = random::wave(rng, size);
    if arch.facts().vgprs.accumulation {
        random::accumulators(rng, &mut wave);
    }
    random::set_addresses(rng, arch, inst, &mut wave);
    let lane = rng.below(size as u64) as u32;
    let program = Program::new(arch, vec![(*inst, 0)]).expect("a program").for_wave_size(size);
    let setup = Setup { mode: wave.mode, ..Setup::new(arch, size) };
    let summary = Summary::of(&setup, Code { program: &program, entry: 0 }, lane)?;
    let mut bytes = |n: u64| random::bytes(rng, n);
    let start = Machine {
        wave,
        global: bytes(random::GLOBAL),
        lds: bytes(random::LDS),
        scratch: bytes(random::SCRATCH as u64 * size as u64),
    };
    let mut end = start.clone();
    match end.step(arch, inst, Engine::Evaluator) {
        Some(Ok(()) | Err(Event::EndPgm)) => {}
        // What faults is not part of a proof.
        _ => return Ok(None),
    }
    let read = |wave: &Wave, register: Register| match register {
        Register::Vector(n) => wave.vgpr(lane, n) as u128,
        Register::Scalar(n) => wave.sgprs[n as usize] as u128,
        Register::Scc => wave.scc as u128,
    };
    let variable = |name: &str| match name {
        "active" => Some((start.wave.exec() >> lane & 1) as u128),
        "wave_id" => Some(start.wave.id as u128),
        "code" => Some(start.wave.code_base as u128),
        _ => {
            let name = name.strip_prefix("other.").unwrap_or(name);
            Some(read(&start.wave, register(name)?))
        }
    };
    let byte = |name: &str, at: u128| match name {
        "memory" => {
            start.global.get(usize::try_from(at.checked_sub(random::GLOBAL_BASE as u128)?).ok()?).copied()
        }
        "lds" => start.lds.get(usize::try_from(at).ok()?).copied(),
        _ => {
            let at = usize::try_from(at).ok().filter(|at| *at < random::SCRATCH as usize)?;
            let mut own = [0];
            scratch::read(&start.scratch, random::SCRATCH, lane, at as u64, &mut own).map(|()| own[0])
        }
    };
    let inputs = Inputs { variable: &variable, byte: &byte };
    let Summary { mut terms, registers } = summary;
    let mut written = BTreeSet::new();
    for (register, term) in registers {
        written.insert(register);
        let actual = read(&end.wave, register);
        let at = format!("wave{size} lane {lane} mode {:x}: {}", start.wave.mode, register_name(register));
        if let Some(value) = terms.value_of(term, &inputs) {
            if value != actual {
                return Ok(Some(format!("{at}: {value:x} instead of {actual:x}")));
            }
        } else if matches!(register, Register::Scalar(_)) {
            // A mask, of which the lane's own bit is known.
            let bit = terms.extract(term, lane % 32, 1);
            let value = terms.value_of(bit, &inputs);
            if value.is_some_and(|value| value != actual >> (lane % 32) & 1) {
                return Ok(Some(format!("{at}: bit {} is {value:?}", lane % 32)));
            }
        }
    }
    let registers =
        (0..1024).map(Register::Vector).chain((0..128).map(Register::Scalar)).chain([Register::Scc]);
    let changed = registers
        .filter(|one| !written.contains(one))
        .find(|one| read(&start.wave, *one) != read(&end.wave, *one));
    Ok(changed.map(|one| format!("wave{size} lane {lane}: {} is written", register_name(one))))
}
