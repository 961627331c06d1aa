//! Compares the compiled engine with the interpreter on random programs with jumps, in every float mode and
//! wave size. With equal budgets, both stop at the same instruction, with the same registers, memory and
//! instruction count.
//!
//! `WAVESIM_CASES` and `WAVESIM_SEED` work as in `engines`.

use isa_spec::tables::EntryId;
use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::conform::run::semantics;
use wavesim::exec::interp::{self, Compiled};
use wavesim::exec::machine_ops::Event;
use wavesim::exec::program::Program;
use wavesim::inst::Inst;
use wavesim::jit::Jit;
use wavesim_tests::machine::{Machine, compare};
use wavesim_tests::random::{self, GLOBAL, GLOBAL_BASE, LDS, Rng, SCRATCH};
use wavesim_tests::with_context;

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Runs a program for at most `budget` instructions. Returns the event that stopped the wave, and the
/// instruction count.
fn run_slice(
    machine: &mut Machine,
    program: &Program,
    budget: u64,
    code: Option<&dyn Compiled>,
) -> (Result<(), Event>, u64) {
    machine.wave.set_accumulation(program.arch.facts().vgprs.accumulation);
    let mut executed = 0;
    let global = Some((GLOBAL_BASE, &mut machine.global[..]));
    let result = with_context(global, &mut machine.lds, (&mut machine.scratch, SCRATCH), |cx| match code {
        None => interp::run(program, &mut machine.wave, cx, budget, &mut executed),
        Some(code) => interp::run_waves(
            program,
            &mut machine.wave,
            cx,
            budget,
            &mut executed,
            Some(code),
            &mut interp::SingleWave,
        ),
    });
    (result, executed)
}

/// Returns the entries of instructions in these groups whose names are accepted.
fn entries(arch: Arch, groups: &[&str], accepts: impl Fn(&str) -> bool) -> Vec<EntryId> {
    let table = arch.table();
    let all = 0..table.entries.len() as EntryId;
    all.filter(|&id| {
        let inst = &table.instructions[table.entries[id as usize].inst as usize];
        groups.contains(&inst.group()) && accepts(inst.name)
    })
    .collect()
}

fn random_start(rng: &mut Rng, arch: Arch, size: u32) -> Machine {
    let mut wave = random::wave(rng, size);
    if arch.is_cdna() {
        random::accumulators(rng, &mut wave);
    }
    // Code is compiled for two float modes; other modes, and code after a write to MODE, fall back to the
    // interpreter.
    match rng.below(8) {
        0 => {}
        1..4 => wave.mode = 0x3c0,
        _ => wave.mode = 0xf0,
    }
    if rng.chance(2) {
        wave.set_exec(u64::MAX);
    }
    Machine {
        wave,
        global: (0..GLOBAL).map(|n| n as u8).collect(),
        lds: (0..LDS).map(|n| n as u8).collect(),
        scratch: vec![0; SCRATCH as usize * size as usize],
    }
}

/// Runs a program in both engines, slice by slice, and compares the states after each slice. Returns true if
/// the comparison was complete and code was compiled.
fn compare_engines(arch: Arch, insts: &[Inst], start: &Machine, what: &str) -> bool {
    let list = insts.iter().map(|inst| (*inst, 0)).collect();
    let program = Program::new(arch, list).expect("a small program").for_wave_size(start.wave.size());
    let code = Jit::checked(&program, 0).expect("a host that is compiled for");
    let (mut plain, mut compiled) = (start.clone(), start.clone());
    for _ in 0..3 {
        let (a, b) = (
            run_slice(&mut plain, &program, 1500, None),
            run_slice(&mut compiled, &program, 1500, Some(&code)),
        );
        let table = arch.table();
        let names = || -> Vec<&str> { insts.iter().map(|inst| inst.instruction(table).name).collect() };
        let position = |m: &Machine| format!("pc {:x}", m.wave.pc);
        if a != b {
            panic!(
                "{what}: {:?}: interpreter {a:x?} {}, compiled {b:x?} {}",
                names(),
                position(&plain),
                position(&compiled)
            );
        }
        if let Some(difference) = compare(start, &compiled, &plain) {
            panic!("{what} {}: {:?}: {difference}", position(&plain), names());
        }
        if a.0.is_err() {
            break;
        }
    }
    assert_eq!(code.stats().failed, 0, "{what}: the code generator refused a unit");
    code.stats().units > 0
}

/// Compares single instructions with random operands.
fn instructions_are_equal(arch: Arch) {
    let (cases, seed) = (env("WAVESIM_CASES", 6).div_ceil(3), env("WAVESIM_SEED", 1));
    let none = BTreeMap::new();
    let end = wavesim_tests::inst(arch, "S_ENDPGM", "ENC_SOPP", &[]).expect("an end");
    let all = entries(arch, &["VALU", "SALU", "SMEM", "LDS", "VMEM"], |name| !name.starts_with("S_SETHALT"));
    for &id in &all {
        for case in 0..cases {
            let mut rng = Rng(seed << 40 ^ (id as u64) << 20 ^ case ^ 0x5eed);
            let Some(inst) = random::instruction(&mut rng, arch, id) else { break };
            if semantics(arch, &inst, &none).is_none() {
                break;
            }
            let size = rng.pick(arch.wave_sizes());
            let mut start = random_start(&mut rng, arch, size);
            random::set_addresses(&mut rng, arch, &inst, &mut start.wave);
            let what =
                format!("{} entry {id} case {case} wave{size} mode {:x}", arch.name(), start.wave.mode);
            // Vector arithmetic also with registers beyond v255. Addresses would be random ones there.
            let vector = inst.instruction(arch.table()).group() == "VALU";
            let extends = arch.facts().vgprs.msbs && vector && rng.chance(2);
            let bits = [("SIMM16", rng.below(256) as u32)];
            let set =
                extends.then(|| wavesim_tests::inst(arch, "S_SET_VGPR_MSB", "ENC_SOPP", &bits)).flatten();
            let insts: Vec<Inst> = set.into_iter().chain([inst, end]).collect();
            compare_engines(arch, &insts, &start, &what);
        }
    }
}

/// Compares programs of random instructions, including jumps with arbitrary targets.
fn programs_are_equal(arch: Arch) {
    let (programs, seed) = (env("WAVESIM_CASES", 6) * 50, env("WAVESIM_SEED", 1));
    let none = BTreeMap::new();
    let has_meaning = |rng: &mut Rng, list: &[EntryId]| loop {
        let id = rng.pick(list);
        let Some(inst) = random::instruction(rng, arch, id) else { continue };
        if semantics(arch, &inst, &none).is_some() {
            return inst;
        }
    };
    let straight = entries(arch, &["VALU", "SALU", "LDS"], |name| {
        !name.contains("PC_B64") && !name.contains("BRANCH") && !name.starts_with("S_SETHALT")
    });
    let common = entries(arch, &["VALU", "SALU"], |name| {
        let compiled = [
            "V_ADD",
            "V_MUL",
            "V_FMA",
            "V_CMP",
            "V_CNDMASK",
            "V_MAX",
            "V_MIN",
            "S_AND",
            "S_ADD",
            "S_CMP",
            "V_LSHL",
        ];
        compiled.iter().any(|start| name.starts_with(start))
            && !["F16", "BF16", "PK"].iter().any(|part| name.contains(part))
    });
    let jumps = entries(arch, &["BRANCH"], |name| name.starts_with("S_CBRANCH") || name == "S_BRANCH");
    let end = wavesim_tests::inst(arch, "S_ENDPGM", "ENC_SOPP", &[]).expect("an end");
    let mut compiled = 0;
    for case in 0..programs {
        let mut rng = Rng(seed << 40 ^ case << 8 ^ arch as u64 ^ 0xc0de);
        let length = 4 + rng.below(40);
        let mut insts = Vec::new();
        for _ in 0..length {
            insts.push(match rng.below(8) {
                0 if !jumps.is_empty() => {
                    let mut inst = has_meaning(&mut rng, &jumps);
                    let encoding = inst.encoding(arch.table());
                    // Joins and some forks have their target in registers.
                    if let Some(at) = encoding.fields.iter().position(|f| f.name == "SIMM16") {
                        let far = if rng.chance(20) { 1000 } else { length };
                        inst.fields[at] = (rng.below(2 * far) as u32).wrapping_sub(far as u32) & 0xffff;
                    }
                    inst
                }
                1 | 2 => has_meaning(&mut rng, &straight),
                _ => has_meaning(&mut rng, &common),
            });
        }
        insts.push(end);
        let size = rng.pick(arch.wave_sizes());
        let start = random_start(&mut rng, arch, size);
        let what = format!("{} program {case} wave{size} mode {:x}", arch.name(), start.wave.mode);
        compiled += compare_engines(arch, &insts, &start, &what) as u64;
    }
    assert!(compiled * 4 > programs, "{compiled} of {programs} programs compared to their end had code");
}

#[test]
fn instructions_rdna3() {
    instructions_are_equal(Arch::Rdna3);
}

#[test]
fn instructions_rdna4() {
    instructions_are_equal(Arch::Rdna4);
}

#[test]
fn instructions_cdna4() {
    instructions_are_equal(Arch::Cdna4);
}

#[test]
fn instructions_cdna5() {
    instructions_are_equal(Arch::Cdna5);
}

#[test]
fn programs_rdna3() {
    programs_are_equal(Arch::Rdna3);
}

#[test]
fn programs_rdna4() {
    programs_are_equal(Arch::Rdna4);
}

#[test]
fn programs_cdna3() {
    programs_are_equal(Arch::Cdna3);
}
