//! Runs both programs on the interpreter's reference with the registers of a counterexample.

use crate::assume;
use crate::proof::{Code, Difference, Live, Question};
use crate::routes::Register;
use crate::setup::Setup;
use crate::state::register_name;
use isa_export::smt::{Term, Terms};
use std::collections::{BTreeMap, BTreeSet};
use wavesim_engine::interp;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::memory::{Memory, OWNED_BASE};
use wavesim_machine::state::wave::{ALL_VGPRS, EXEC_HI, SGPRS};
use wavesim_machine::state::{Wave, Workgroup};

/// Bytes of LDS.
const LDS: usize = 64 << 10;

/// Instructions that a replay may take.
const BUDGET: u64 = 1_000_000;

/// Bytes of the memory in which accesses lie.
const MEMORY: u64 = 1 << 20;

/// The address of the code.
const CODE_BASE: u64 = 0x1_0000_0000;

/// Where functions return to, from the start of the code: outside of all programs.
const CALLER: u64 = 1 << 30;

/// The condition that code is at the address at which a replay has it.
pub fn is_code_base(terms: &mut Terms, code: Term) -> Term {
    let base = terms.constant(CODE_BASE as u128, 64);
    terms.eq(code, base)
}

/// The condition that an address is the one to which functions return in a replay.
pub fn is_caller(terms: &mut Terms, address: Term) -> Term {
    let caller = terms.constant((CODE_BASE + CALLER) as u128, 64);
    terms.eq(address, caller)
}

/// The condition that an access is inside the memory that a replay has.
pub fn is_inside(terms: &mut Terms, address: Term) -> Term {
    let low = terms.constant(OWNED_BASE as u128, 64);
    let distance = terms.sub(address, low);
    let end = terms.constant((MEMORY - 64) as u128, 64);
    terms.ult(distance, end)
}

/// Returns what differs after both programs of what is compared; the reason if one cannot run. `bytes` is memory at the
/// start.
pub fn run(
    question: &Question<'_>,
    live: &Live,
    inputs: &BTreeMap<String, u128>,
    bytes: &BTreeMap<u64, u8>,
) -> Result<Vec<Difference>, String> {
    let memories = [memory(bytes)?, memory(bytes)?];
    let [a, b] = &question.codes;
    let waves =
        [one(&question.setup, *a, inputs, &memories[0])?, one(&question.setup, *b, inputs, &memories[1])?];
    let listed = |register: Register| match live {
        Live::Written => true,
        Live::Registers(list) => list.contains(&register),
        Live::Memory => false,
    };
    let mut differences = Vec::new();
    let mut note = |name: String, values: [u32; 2]| {
        if values[0] != values[1] {
            differences.push(Difference { name, values: values.map(u64::from) });
        }
    };
    for number in (0..ALL_VGPRS as u32).filter(|n| listed(Register::Vector(*n))) {
        for lane in 0..question.setup.wave_size {
            let name = format!("{}, lane {lane}", register_name(Register::Vector(number)));
            note(name, [0, 1].map(|k: usize| waves[k].vgpr(lane, number)));
        }
    }
    let codes: BTreeSet<u32> = (0..SGPRS as u32).filter(|code| *code <= EXEC_HI as u32).collect();
    for code in codes.into_iter().filter(|code| listed(Register::Scalar(*code))) {
        note(register_name(Register::Scalar(code)), [0, 1].map(|k: usize| waves[k].sgprs[code as usize]));
    }
    if listed(Register::Scc) {
        note("scc".into(), [0, 1].map(|k: usize| waves[k].scc));
    }
    let contents = memories.map(|memory| memory.snapshot());
    let at = contents[0].iter().zip(&contents[1]).position(|(x, y)| x != y);
    if let Some(at) = at {
        let values = [0, 1].map(|k: usize| contents[k][at] as u64);
        differences.push(Difference { name: format!("memory at {:#x}", OWNED_BASE + at as u64), values });
    }
    Ok(differences)
}

/// Memory with these bytes.
fn memory(bytes: &BTreeMap<u64, u8>) -> Result<Memory, String> {
    let mut memory = Memory::new(MEMORY).map_err(|e| e.to_string())?;
    let base = memory.alloc(MEMORY - 64, 1, "memory").map_err(|e| e.to_string())?;
    for (address, byte) in bytes.iter().filter(|(address, _)| (base..base + MEMORY - 64).contains(address)) {
        memory.write(*address, &[*byte]).map_err(|e| e.to_string())?;
    }
    Ok(memory)
}

/// Runs one program to its end.
fn one(
    setup: &Setup,
    code: Code<'_>,
    inputs: &BTreeMap<String, u128>,
    memory: &Memory,
) -> Result<Wave, String> {
    let mut wave = Wave::new(setup.wave_size);
    wave.mode = setup.mode;
    wave.pc = code.entry;
    wave.code_base = CODE_BASE;
    let mut exec = u64::MAX;
    for (name, value) in inputs {
        let (name, lane) = match name.split_once('.') {
            Some((name, lane)) => (name, lane.parse().ok()),
            None => (name.as_str(), None),
        };
        let value = *value as u32;
        match (assume::register(name), lane) {
            (Some(Register::Vector(number)), Some(lane)) => wave.set_vgpr(lane, number, value),
            (Some(Register::Scalar(_)), _)
                if name == "exec_lo" || setup.wave_size == 64 && name == "exec_hi" => {}
            (Some(Register::Scalar(code)), _) => wave.sgprs[code as usize] = value,
            (Some(Register::Scc), _) => wave.scc = value & 1,
            // The base of the code, or another workgroup's place.
            _ => {}
        }
    }
    if !setup.full_exec {
        let word = |name: &str| inputs.get(name).copied().unwrap_or(0) as u64;
        exec = word("exec_lo") | word("exec_hi") << 32;
    }
    wave.set_exec(exec);
    let (mut lds, mut workgroup) = (vec![0; LDS], Workgroup::new(1));
    let mut context = Context::new(memory, &mut lds, &mut workgroup);
    let mut executed = 0;
    let last = code.program.insts.last().zip(code.program.pcs.last());
    let end = last.map_or(0, |(inst, pc)| pc + inst.size as u64);
    match interp::run(code.program, &mut wave, &mut context, BUDGET, &mut executed) {
        Err(Event::EndPgm) => Ok(wave),
        // Sequences have no end of their own; functions return.
        Err(_) if wave.pc == end || wave.pc == CALLER => Ok(wave),
        Err(event) => Err(format!("{event:?}")),
        Ok(()) => Err(format!("it takes more than {BUDGET} instructions")),
    }
}
