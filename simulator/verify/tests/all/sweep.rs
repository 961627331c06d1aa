//! Instructions of all architectures with operands of all kinds: a sample of them, or all.

use isa_spec::tables::{EntryId, MAX_FIELDS};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wavesim_asm::form::forms;
use wavesim_asm::{Options, legal, print};
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::{OperandKind, binding};
use wavesim_machine::exec::program::Program;
use wavesim_prove::{Setup, Solver};
use wavesim_verify::{Answer, VerifyError, verify};

/// A linear congruence, so that cases are reproducible.
fn next(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 33) % below
}

/// An instruction with random operands: registers, and inline constants where they are allowed. `None` if the operands are
/// not legal.
fn instruction(arch: Arch, id: EntryId, seed: &mut u64) -> Option<Inst> {
    let table = arch.table();
    let entry = &table.entries[id as usize];
    let encoding = &table.encodings[entry.enc as usize];
    let bound = binding(arch, id);
    let mut fields: [u32; MAX_FIELDS] = forms(arch).get(id).initial_fields;
    for operand in &bound.operands {
        let Some(at) = operand.field else { continue };
        let even = 2 * next(seed, 12) as u32;
        fields[at as usize] = match operand.kind {
            OperandKind::Vgpr => even,
            OperandKind::Code => match next(seed, 6) {
                0 => even,
                1 if operand.input && !operand.output => 128 + next(seed, 65) as u32,
                _ if operand.ty != 0 && is_vector(arch, operand.ty) => 256 + even,
                _ => even,
            },
            _ => return None,
        };
    }
    // The clamp bit, sometimes.
    if let Some(clamp) = bound.mods.clamp.filter(|_| next(seed, 4) == 0) {
        fields[clamp as usize] = 1;
    }
    let mut bits = 0u128;
    for (at, field) in encoding.fields.iter().enumerate() {
        let opcode = (encoding.op_field == Some(at as u8)).then_some(entry.opcode as u32);
        bits = field.insert(bits, field.fixed.or(opcode).unwrap_or(fields[at]));
    }
    let words: Vec<u32> = (0..encoding.bits as usize / 32).map(|at| (bits >> (32 * at)) as u32).collect();
    let inst = decode(arch, &words).ok()?;
    (inst.entry == id && legal::check_decoded(&inst, &Options::new(arch)).is_ok()).then_some(inst)
}

/// Whether a type of operands has VGPRs.
fn is_vector(arch: Arch, ty: u8) -> bool {
    arch.table().operand_types[ty as usize].values.iter().any(|value| value.1 >= 256)
}

/// `WAVESIM_EVERY` is the inverse of the share of instructions that are proven (1: all), `WAVESIM_SEED` chooses operands
/// and the sample, `WAVESIM_OP` is a part of the names of the only instructions.
#[test]
fn instructions_of_all_architectures() {
    let Ok(solver) = Solver::find(Duration::from_secs(5)) else {
        println!("skipped: no SMT solver");
        return;
    };
    if wavesim_x64::Host::detect().is_err() {
        println!("skipped: no compiled engine");
        return;
    }
    let env = |name: &str| std::env::var(name).ok();
    let number = |name: &str, default: u64| env(name).and_then(|value| value.parse().ok()).unwrap_or(default);
    let seed = number("WAVESIM_SEED", number("PROPTEST_RNG_SEED", 1));
    let every = number("WAVESIM_EVERY", 300);
    let only = env("WAVESIM_OP").unwrap_or_default().to_uppercase();
    let start = Instant::now();
    let (mut proven, mut unknown) = (0, Vec::new());
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for arch in Arch::AMD {
        let table = arch.table();
        let size = arch.wave_sizes()[0];
        for id in 0..table.entries.len() as EntryId {
            let mut seed = (seed << 40) ^ ((arch as u64) << 32) ^ id as u64;
            for _ in 0..4 {
                next(&mut seed, 2);
            }
            let name = table.instructions[table.entries[id as usize].inst as usize].name;
            let memory =
                ["LOAD", "STORE", "ATOMIC", "DS_", "BUFFER", "IMAGE"].iter().any(|part| name.contains(part));
            if !name.contains(&only) || only.is_empty() && memory || next(&mut seed, every) != 0 {
                continue;
            }
            // Most operands that are drawn are legal.
            let Some(inst) = (0..8).find_map(|_| instruction(arch, id, &mut seed)) else { continue };
            let program = Program::new(arch, vec![(inst, 0)]).expect("one instruction").for_wave_size(size);
            let text =
                || format!("{}: {}", arch.name(), print::instruction(&inst, &Options::new(arch).wave(size)));
            match verify(&Setup::new(arch, size), &program, &solver) {
                Ok(Answer::Equal) => proven += 1,
                Ok(Answer::Unknown(why)) => unknown.push(format!("{}: {why}", text())),
                Ok(Answer::Differ(example)) => panic!("{}: {example:?}", text()),
                Err(VerifyError::Unsupported(why)) => {
                    let kind = why.split(['(', ':']).next().unwrap_or_default().to_string();
                    *refused.entry(kind).or_default() += 1;
                    if !only.is_empty() {
                        println!("{}: {why}", text());
                    }
                }
                Err(why) => panic!("{}: {why}", text()),
            }
        }
    }
    println!("{proven} proven in {:?}, unknown: {unknown:#?}, refused: {refused:#?}", start.elapsed());
    assert!(!only.is_empty() || proven as u64 >= 400 / every, "{proven} proven");
    // Products and counts of bits take longer than is allowed here.
    assert!(unknown.len() * 2 <= proven, "{unknown:#?}");
}
