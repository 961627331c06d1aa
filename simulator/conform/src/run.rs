//! Executes a record and compares every listed output.

use super::compare::{agrees, dwords};
use super::record::{Record, hex_bytes, hex64, lanes};
use isa_spec::pcode::ir::{Semantics, Shape};
use std::collections::BTreeMap;
use wavesim_engine::interp::{Compiled, SingleWave, run_waves};
use wavesim_engine::reference;
use wavesim_isa::arch::Arch;
use wavesim_isa::codec::decode;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand;
use wavesim_machine::exec::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::FaultKind;
use wavesim_machine::isa;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::Wave;
use wavesim_machine::state::Workgroup;
use wavesim_machine::state::scratch;
use wavesim_machine::state::wave::{M0, VCC_LO};

/// The engine that executes the instruction.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    /// Generated handlers.
    Interpreter,
    /// The reference evaluator.
    Reference,
    /// The reference executor with another evaluator of bodies.
    Evaluator(reference::Evaluate),
    /// Compiled code as the given function produces it for a program, with the interpreter for instructions
    /// without compiled code.
    Compiled(fn(&Program) -> Option<Box<dyn Compiled>>),
}

/// The result of executing a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The final state is the expected one.
    Passed,
    /// The differences, a line each.
    Failed(Vec<String>),
    /// The instruction has no semantics, or the machine is not modelled.
    Unsupported(String),
}

/// MODE of the vectors unless a record says otherwise: nearest even, f32 denormals flushed, f16/f64 kept, DX10_CLAMP, IEEE.
const MODE: u32 = 0x3c0 | 0x100;

/// Size of LDS, and of scratch per lane, unless a record says otherwise.
const DEFAULT_BYTES: u32 = 65536;

/// Maximum number of instructions that a record executes.
const LIMIT: u64 = 100_000;

/// Executes a record. `overrides` holds semantics, by upper-case instruction name, that replace the built-in
/// ones.
pub fn run(record: &Record, arch: Arch, engine: Engine, overrides: &BTreeMap<String, Semantics>) -> Outcome {
    match try_run(record, arch, engine, overrides) {
        Ok(outcome) => outcome,
        Err(message) => Outcome::Failed(vec![message]),
    }
}

fn try_run(
    record: &Record,
    arch: Arch,
    engine: Engine,
    overrides: &BTreeMap<String, Semantics>,
) -> Result<Outcome, String> {
    let words: Vec<u32> =
        record.words.iter().map(|w| hex64(w).map(|v| v as u32)).collect::<Option<_>>().ok_or("bad words")?;
    let mut insts = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let inst = decode(arch, &words[at..]).map_err(|e| e.to_string())?;
        insts.push((at as u64 * 4, inst));
        at += inst.size as usize / 4;
    }
    if record.wave != 32 && record.wave != 64 {
        return Ok(Outcome::Unsupported(record.op.clone()));
    }
    let mut wave = Wave::new(record.wave);
    wave.set_accumulation(arch.facts().vgprs.accumulation);
    // Most instructions access no memory; for these, memory is neither set up nor compared.
    let accesses_memory = |inst: &Inst| match semantics(arch, inst, overrides) {
        Some((x, y)) => [Some(x), y].into_iter().flatten().any(|s| s.uses.memory_read || s.uses.memory_write),
        None => false,
    };
    let memory = insts.iter().any(|(_, inst)| accesses_memory(inst));
    let size_or_default =
        |bytes: Option<u32>, region: bool| if memory || region { bytes.unwrap_or(DEFAULT_BYTES) } else { 0 };
    let mut lds = vec![0u8; size_or_default(record.lds_bytes, record.lds_in.is_some()) as usize];
    let stride = match &record.scratch_in {
        Some(s) => s.stride,
        None => size_or_default(record.scratch_bytes, false),
    };
    // Records have the scratch of one lane after the other.
    let mut by_lane = vec![0u8; stride as usize * record.wave as usize];
    let mut mapped = set_up(record, &mut wave, &mut lds, &mut by_lane)?;
    let mut scratch = vec![0u8; scratch::size(stride, record.wave)];
    for (lane, own) in (0..).zip(by_lane.chunks(stride.max(1) as usize)) {
        scratch::write(&mut scratch, stride, lane, 0, own);
    }
    let mut memory = Memory::empty();
    for (base, bytes) in &mut mapped {
        // SAFETY: each `bytes` is an allocation of `bytes.len()` bytes that stays in place while `memory`
        // exists: `mapped` is a local that is declared before `memory` and hence dropped after it. This
        // function does not access the bytes while instructions execute.
        let mapping = unsafe { memory.map_host(*base, bytes.as_mut_ptr(), bytes.len() as u64, true) };
        mapping.map_err(|e| e.to_string())?;
    }
    let before = |hex: Option<&String>| hex.and_then(|hex| hex_bytes(hex)).unwrap_or_default();
    let before_lds = before(record.lds_in.as_ref().map(|m| &m.hex));
    let before_scratch = before(record.scratch_in.as_ref().map(|m| &m.hex));
    let before_mem: Vec<(u64, Vec<u8>)> = mapped.clone();
    let mut workgroup = Workgroup::new(1);
    let mut context = Context {
        memory: &memory,
        lds: &mut lds,
        scratch: &mut scratch,
        scratch_stride: stride,
        workgroup: &mut workgroup,
        instructions: 0,
        cancel: None,
    };
    let ended = match engine {
        Engine::Interpreter => step_through(&insts, &mut wave, &mut context, |inst, wave, context| {
            wavesim_engine::step(arch, inst, wave, context)
        }),
        Engine::Reference => step_through(&insts, &mut wave, &mut context, |inst, wave, context| {
            let (sem, sem_y) = semantics(arch, inst, overrides)?;
            Some(reference::step(arch, inst, sem, sem_y, wave, context))
        }),
        Engine::Evaluator(evaluate) => {
            step_through(&insts, &mut wave, &mut context, |inst, wave, context| {
                let (sem, sem_y) = semantics(arch, inst, overrides)?;
                Some(reference::step_with(arch, inst, [Some(sem), sem_y], wave, context, evaluate))
            })
        }
        Engine::Compiled(compile) => {
            let list = insts.iter().map(|(_, inst)| (*inst, 0)).collect();
            let program = Program::new(arch, list).map_err(|e| e.to_string())?.for_wave_size(record.wave);
            let code = compile(&program);
            let (executed, alone) = (&mut 0, &mut SingleWave);
            let result =
                run_waves(&program, &mut wave, &mut context, LIMIT, executed, code.as_deref(), alone);
            Some(match result {
                // A record ends after its last instruction.
                Err(Event::Fault(cause)) if cause.kind == FaultKind::PcOutOfRange => Ok(()),
                result => result,
            })
        }
    };
    match ended {
        None => return Ok(Outcome::Unsupported(record.op.clone())),
        Some(Ok(()) | Err(Event::EndPgm)) => {}
        Some(Err(Event::Fault(cause))) => return Err(cause.message),
        Some(Err(Event::BarrierWait(_))) => return Err("stopped: it waits at a barrier".to_string()),
    }
    let mut diff = Vec::new();
    compare_registers(record, &wave, &mut diff);
    let changed_mem = before_mem.iter().zip(&mapped).flat_map(|((base, old), (_, new))| {
        let offset = base - before_mem[0].0;
        changed_words(old, new).into_iter().map(move |(at, v)| (at + offset, v))
    });
    compare_memory(
        "mem",
        record.mem_out.as_ref(),
        changed_mem.collect(),
        &mapped.first().map(|m| m.1.clone()),
        &mut diff,
    );
    compare_memory("lds", record.lds_out.as_ref(), changed_words(&before_lds, &lds), &Some(lds), &mut diff);
    for (lane, own) in (0..).zip(by_lane.chunks_mut(stride.max(1) as usize)) {
        scratch::read(&scratch, stride, lane, 0, own);
    }
    compare_memory(
        "scratch",
        record.scratch_out.as_ref(),
        changed_words(&before_scratch, &by_lane),
        &Some(by_lane),
        &mut diff,
    );
    if let Some(pc) = record.pc_out
        && wave.pc as i64 != pc
    {
        diff.push(format!("pc: expected {pc}, got {}", wave.pc as i64));
    }
    Ok(if diff.is_empty() { Outcome::Passed } else { Outcome::Failed(diff) })
}

/// Executes the instruction at the PC until there is none. Returns how execution ended, or `None` if `step`
/// cannot execute an instruction.
fn step_through(
    insts: &[(u64, Inst)],
    wave: &mut Wave,
    context: &mut Context<'_>,
    mut step: impl FnMut(&Inst, &mut Wave, &mut Context<'_>) -> Option<Result<(), Event>>,
) -> Option<Result<(), Event>> {
    for steps in 0..LIMIT {
        let Some((_, inst)) = insts.iter().find(|(pc, _)| *pc == wave.pc) else { break };
        context.instructions = steps;
        match step(inst, wave, context)? {
            Ok(()) => {}
            event => return Some(event),
        }
    }
    Some(Ok(()))
}

/// Returns the semantics of an instruction, and of a VOPD's second half; `None` if there are none, or none
/// that support DPP.
pub fn semantics<'a>(
    arch: Arch,
    inst: &Inst,
    overrides: &'a BTreeMap<String, Semantics>,
) -> Option<(&'a Semantics, Option<&'a Semantics>)> {
    let table = arch.table();
    let of = |entry: u16| -> Option<&'a Semantics> {
        let at = table.entries[entry as usize].inst as usize;
        let own = overrides.get(table.instructions[at].name);
        let sem = match own {
            Some(sem) => sem,
            None => isa::number(arch, at).and_then(isa::operation).map(|op| &op.sem)?,
        };
        // DPP is meaningless for a body that selects lanes itself.
        (sem.shape != Shape::Wave || !operand::binding(arch, entry).has_dpp()).then_some(sem)
    };
    let first = of(inst.entry)?;
    if inst.entry_y == u16::MAX {
        return Some((first, None));
    }
    Some((first, Some(of(inst.entry_y)?)))
}

type Mapped = Vec<(u64, Vec<u8>)>;

fn set_up(record: &Record, wave: &mut Wave, lds: &mut [u8], scratch: &mut [u8]) -> Result<Mapped, String> {
    let bad = |what: &str| format!("{}: bad {what}", record.id);
    wave.mode = record.mode.as_deref().and_then(hex64).map_or(MODE, |m| m as u32);
    wave.set_exec(hex64(&record.exec).ok_or_else(|| bad("exec"))?);
    wave.scc = record.scc;
    if let Some(vcc) = record.vcc.as_deref() {
        let vcc = hex64(vcc).ok_or_else(|| bad("vcc"))?;
        wave.sgprs[VCC_LO] = vcc as u32;
        wave.sgprs[VCC_LO + 1] = (vcc >> 32) as u32;
    }
    if let Some(m0) = record.m0.as_deref() {
        wave.sgprs[M0] = hex64(m0).ok_or_else(|| bad("m0"))? as u32;
    }
    for (reg, value) in &record.sgpr_in {
        let reg: u32 = reg.parse().map_err(|_| bad("sgpr_in"))?;
        wave.set_sgpr(reg, hex64(value).ok_or_else(|| bad("sgpr_in"))? as u32);
    }
    for (reg, values) in Record::vgprs(&record.vgpr_in, &record.acc_in) {
        let reg = reg.ok_or_else(|| bad("vgpr_in"))?;
        for (lane, value) in lanes(values).ok_or_else(|| bad("vgpr_in"))?.into_iter().enumerate() {
            wave.set_vgpr(lane as u32, reg, value);
        }
    }
    let fill = |target: &mut [u8], hex: &str, what: &str| -> Result<(), String> {
        let bytes = hex_bytes(hex).ok_or_else(|| bad(what))?;
        target.get_mut(..bytes.len()).ok_or_else(|| bad(what))?.copy_from_slice(&bytes);
        Ok(())
    };
    if let Some(data) = &record.lds_in {
        fill(lds, &data.hex, "lds_in")?;
    }
    if let Some(data) = &record.scratch_in {
        fill(scratch, &data.hex, "scratch_in")?;
    }
    record
        .mem_in()
        .iter()
        .map(|region| {
            let base = region.base().ok_or_else(|| bad("mem_in"))?;
            Ok((base, hex_bytes(&region.hex).ok_or_else(|| bad("mem_in"))?))
        })
        .collect()
}

fn compare_registers(record: &Record, wave: &Wave, diff: &mut Vec<String>) {
    let asserted = record.lanes.as_deref().and_then(hex64).unwrap_or(u64::MAX);
    let first = record.sgpr_out.keys().filter_map(|reg| reg.parse::<u32>().ok()).min().unwrap_or(0);
    for (reg, expected) in &record.sgpr_out {
        let Ok(number) = reg.parse::<u32>() else { continue };
        let expected = hex64(expected).unwrap_or(0) as u32;
        let actual = wave.sgpr(number);
        let tol = &record.tol;
        let same = if record.lanes.is_some() {
            // An instruction for which lanes are asserted writes only lane masks to SGPRs: one bit per lane,
            // 32 per register.
            let mask = (asserted >> (32 * (number - first).min(1))) as u32;
            expected & mask == actual & mask
        } else if dwords(tol) == 2 {
            expected == actual
        } else {
            agrees(expected as u64, actual as u64, tol)
        };
        if !same {
            diff.push(format!(
                "s{reg}: expected {}, got {}",
                show(expected as u64, 1),
                show(actual as u64, 1)
            ));
        }
    }
    let span = dwords(&record.tol);
    let mut skip = None;
    let outputs: BTreeMap<u32, &String> =
        Record::vgprs(&record.vgpr_out, &record.acc_out).filter_map(|(reg, v)| Some((reg?, v))).collect();
    for (&number, &expected) in &outputs {
        if skip == Some(number) {
            continue;
        }
        let Some(expected) = lanes(expected) else { continue };
        let high = if span == 2 { outputs.get(&(number + 1)).and_then(|v| lanes(v)) } else { None };
        if high.is_some() {
            skip = Some(number + 1);
        }
        for lane in 0..wave.size() {
            if asserted >> lane & 1 == 0 {
                continue;
            }
            let value = |low: u32, high: u32| low as u64 | (high as u64) << 32;
            let e = value(
                expected.get(lane as usize).copied().unwrap_or(0),
                high.as_ref().and_then(|h| h.get(lane as usize)).copied().unwrap_or(0),
            );
            let a =
                value(wave.vgpr(lane, number), if high.is_some() { wave.vgpr(lane, number + 1) } else { 0 });
            if !agrees(e, a, &record.tol) {
                let what =
                    format!("v{number} lane {lane}: expected {}, got {}", show(e, span), show(a, span));
                diff.push(what + &inputs(record, lane as usize));
                break;
            }
        }
    }
    let mut check = |name: &str, expected: Option<u64>, actual: u64, mask: u64| {
        if let Some(expected) = expected
            && expected & mask != actual & mask
        {
            diff.push(format!("{name}: expected {expected:x}, got {actual:x}"));
        }
    };
    check("scc", record.scc_out.map(u64::from), wave.scc as u64, u64::MAX);
    let masks = asserted & wave.full_mask();
    check("vcc", record.vcc_out.as_deref().and_then(hex64), wave.vcc(), masks);
    check("exec", record.exec_out.as_deref().and_then(hex64), wave.exec(), masks);
    check("m0", record.m0_out.as_deref().and_then(hex64), wave.sgprs[M0] as u64, u64::MAX);
    // State that the record does not mention must be unchanged.
    if record.scc_out.is_none() && wave.scc != record.scc {
        diff.push(format!("scc: expected {} (unchanged), got {}", record.scc, wave.scc));
    }
    if record.exec_out.is_none() && Some(wave.exec()) != hex64(&record.exec) {
        diff.push(format!("exec changed to {:x}", wave.exec()));
    }
    if record.vcc_out.is_none()
        && !record.sgpr_out.contains_key(&VCC_LO.to_string())
        && let Some(vcc) = record.vcc.as_deref().and_then(hex64)
        && vcc & wave.full_mask() != wave.vcc()
    {
        diff.push(format!("vcc changed to {:x}", wave.vcc()));
    }
}

fn show(value: u64, dwords: usize) -> String {
    if dwords == 2 {
        format!("{value:016x} ({:e})", f64::from_bits(value))
    } else {
        format!("{value:08x} ({:e})", f32::from_bits(value as u32))
    }
}

/// Returns the register inputs of a lane as a separate line.
fn inputs(record: &Record, lane: usize) -> String {
    let vector = record.vgpr_in.iter().filter_map(|(reg, values)| {
        let value = *lanes(values)?.get(lane)?;
        Some(format!("v{reg} = {}", show(value as u64, 1)))
    });
    let scalar =
        record.sgpr_in.iter().filter_map(|(reg, value)| Some(format!("s{reg} = {}", show(hex64(value)?, 1))));
    let list: Vec<String> = vector.chain(scalar).take(8).collect();
    if list.is_empty() { String::new() } else { format!("\n        with {}", list.join(", ")) }
}

/// Returns the words that differ: byte offset -> new value. Bytes beyond the end of `old` were zero.
fn changed_words(old: &[u8], new: &[u8]) -> BTreeMap<u64, u32> {
    const BLOCK: usize = 4096;
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    let mut out = BTreeMap::new();
    for (number, now) in new.chunks(BLOCK).enumerate() {
        let start = number * BLOCK;
        let mut before = ZEROS;
        let known = old.get(start..).unwrap_or_default();
        let known = &known[..known.len().min(BLOCK)];
        before[..known.len()].copy_from_slice(known);
        if before[..now.len()] == *now {
            continue;
        }
        for (at, (a, b)) in before.chunks(4).zip(now.chunks(4)).enumerate() {
            if a[..b.len()] != *b {
                let mut word = [0; 4];
                word[..b.len()].copy_from_slice(b);
                out.insert((start + at * 4) as u64, u32::from_le_bytes(word));
            }
        }
    }
    out
}

fn compare_memory(
    what: &str,
    expected: Option<&BTreeMap<String, String>>,
    actual: BTreeMap<u64, u32>,
    now: &Option<Vec<u8>>,
    diff: &mut Vec<String>,
) {
    let mut rest = actual;
    for (offset, value) in expected.into_iter().flatten() {
        let (Some(at), Some(value)) = (hex64(offset), hex64(value)) else { continue };
        let got = rest.remove(&at).or_else(|| {
            let bytes = now.as_ref()?.get(at as usize..at as usize + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        });
        if got != Some(value as u32) {
            diff.push(format!("{what} {at:x}: expected {value:08x}, got {:08x}", got.unwrap_or(0)));
        }
    }
    for (at, value) in rest {
        diff.push(format!("{what} {at:x}: changed to {value:08x}, expected no change"));
    }
}
