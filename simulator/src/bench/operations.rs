//! The cost of every instruction: each is generated from its description, with legal operands and random
//! register contents, and timed in a program of many copies.

use super::BenchError;
use crate::example::{ADDRESS, instruction, is_first, name, operands};
use isa_spec::tables::{EntryId, Role};
use std::time::Instant;
use wavesim_asm::form::forms;
use wavesim_engine::interp;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_isa::operand::M0;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::Memory;
use wavesim_machine::state::{LaneVec, Wave, Workgroup};

/// The architecture whose instructions are timed if none is named.
pub const DEFAULT_ARCH: Arch = Arch::Rdna4;

/// The cost of an instruction.
#[derive(Debug, Clone)]
pub struct Cost {
    /// The mnemonic, with the suffix of its encoding.
    pub name: String,
    /// Whether its operands are mostly 64-bit floats.
    pub is_f64: bool,
    /// Median time of a wave-instruction.
    pub ns: f64,
}

/// The costs of an architecture's instructions, most expensive first, and the instructions that cannot be
/// timed, with the reason.
#[derive(Debug, Clone)]
pub struct Costs {
    /// The timed instructions.
    pub costs: Vec<Cost>,
    /// The instructions that could not be timed, with the reason.
    pub not_run: Vec<(String, String)>,
    /// Time of the f32 multiply-add in nanoseconds.
    pub single: f64,
    /// Time of the f64 multiply-add in nanoseconds.
    pub double: f64,
}

/// The reference instructions: first f32, then f64.
const UNITS: &str = include_str!("../../bench/units.txt");

/// Number of copies of an instruction in a program.
const COPIES: usize = 256;
/// Number of runs; the median counts.
const RUNS: usize = 5;
/// Size of each memory that instructions access, in bytes.
const BYTES: u64 = 1 << 16;
/// Measures the instructions whose mnemonic contains `part`, in waves of `lanes` lanes.
///
/// # Errors
/// There is not enough memory for them to access.
pub fn measure(arch: Arch, lanes: u32, part: &str) -> Result<Costs, BenchError> {
    let table = arch.table();
    let mut machine = Machine::new(lanes)?;
    let mut units = UNITS.lines().map(|name| {
        let id = forms(arch).lookup(name).and_then(|entries| entries.first().copied());
        let inst = id.and_then(|id| instruction(arch, id));
        inst.and_then(|inst| machine.time(arch, &inst).ok()).unwrap_or(f64::NAN)
    });
    let (single, double) = (units.next().unwrap_or(f64::NAN), units.next().unwrap_or(f64::NAN));
    drop(units);
    let mut out = Costs { costs: Vec::new(), not_run: Vec::new(), single, double };
    for id in 0..table.entries.len() as EntryId {
        let entry = &table.entries[id as usize];
        if !is_first(arch, id) {
            continue;
        }
        let name = name(arch, id);
        if !name.contains(part) {
            continue;
        }
        let Some(inst) = instruction(arch, id) else {
            out.not_run.push((name, "no legal operands are known".to_string()));
            continue;
        };
        let double =
            operands(arch, entry).iter().any(|o| table.formats[o.format as usize].name.contains("F64"));
        match machine.time(arch, &inst) {
            Ok(ns) => out.costs.push(Cost { name, is_f64: double, ns }),
            Err(why) => out.not_run.push((name, why)),
        }
    }
    out.costs.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    Ok(out)
}

/// The state on which instructions execute.
struct Machine {
    /// Lanes of a wave.
    lanes: u32,
    memory: Memory,
    base: u64,
    lds: Vec<u8>,
    scratch: Vec<u8>,
}

impl Machine {
    fn new(lanes: u32) -> Result<Machine, BenchError> {
        let mut memory = Memory::new(1 << 20)?;
        let base = memory.alloc(BYTES, 256, "buffer")?;
        Ok(Machine { lanes, memory, base, lds: vec![0; BYTES as usize], scratch: vec![0; BYTES as usize] })
    }

    /// Returns the median time of an execution in nanoseconds, or the reason why there is none.
    fn time(&mut self, arch: Arch, inst: &Inst) -> Result<f64, String> {
        let program = |copies: usize| Program::new(arch, vec![(*inst, 0); copies]).map_err(|e| e.to_string());
        let (one, many) = (program(1)?, program(COPIES)?);
        let mut wave = self.wave(arch, inst);
        self.run(&one, &mut wave)?;
        let mut times = [one, many].map(|program| (program, Vec::new()));
        for _ in 0..RUNS {
            for (program, times) in &mut times {
                self.prepare(&mut wave);
                let before = Instant::now();
                self.run(program, &mut wave)?;
                times.push(before.elapsed().as_nanos() as f64);
            }
        }
        let [one, many] = times.map(|(_, times)| super::median_of(times));
        Ok((many - one).max(0.0) / (COPIES - 1) as f64)
    }

    /// Runs a program to its end.
    fn run(&mut self, program: &Program, wave: &mut Wave) -> Result<(), String> {
        let mut workgroup = Workgroup::new(1);
        let mut context = Context {
            memory: &self.memory,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            scratch_stride: BYTES as u32 / 64,
            workgroup: &mut workgroup,
            instructions: 0,
            cancel: None,
        };
        let end = program.insts.iter().map(|inst| inst.size as u64).sum::<u64>();
        let executed = &mut 0;
        match interp::run(program, wave, &mut context, COPIES as u64 * 8 + 1024, executed) {
            Err(Event::Fault(_)) if wave.pc == end && *executed >= program.insts.len() as u64 => Ok(()),
            Err(Event::Fault(cause)) => Err(cause.message),
            Err(event) => Err(format!("{event:?}").to_lowercase()),
            Ok(()) => Err("it does not end".to_string()),
        }
    }

    /// Returns a wave with random register contents in the formats of the instruction's operands.
    fn wave(&self, arch: Arch, inst: &Inst) -> Wave {
        let table = arch.table();
        let entry = inst.entry(table);
        let format = operands(arch, entry).iter().map(|o| table.formats[o.format as usize].name);
        let (mut half_floats, mut double) = (false, false);
        for name in format {
            half_floats |= name.contains("F16");
            double |= name.contains("F64");
        }
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        let mut wave = Wave::new(self.lanes);
        wave.set_accumulation(arch.facts().vgprs.accumulation);
        for (half, reg) in (0..wave.halves()).flat_map(|half| (0..128).map(move |reg| (half, reg))) {
            let mut row = LaneVec::ZERO;
            for lane in &mut row.0 {
                let bits = random();
                // Values from 0.5 to 2.
                *lane = match (double, half_floats) {
                    (true, _) if reg & 1 == 1 => bits & 0x001f_ffff | 0x3fe0_0000,
                    (true, _) => bits,
                    (_, true) => bits & 0x07ff_07ff | 0x3800_3800,
                    _ => bits & 0x00ff_ffff | 0x3f00_0000,
                };
            }
            wave.set_lane_vec(half, reg, row);
        }
        for lane in 0..self.lanes {
            wave.set_vgpr(lane, ADDRESS, self.base as u32 + 16 * lane);
            wave.set_vgpr(lane, ADDRESS + 1, (self.base >> 32) as u32);
        }
        let lds = operands(arch, entry).iter().any(|o| o.role == Role::VAddr && o.size_bits <= 32)
            && !operands(arch, entry).iter().any(|o| o.role == Role::SAddr);
        if lds {
            (0..self.lanes).for_each(|lane| wave.set_vgpr(lane, ADDRESS, 16 * lane));
        }
        self.prepare(&mut wave);
        wave
    }

    /// Resets state that one instruction may have changed and another depends on.
    fn prepare(&self, wave: &mut Wave) {
        wave.pc = 0;
        wave.set_exec(u64::MAX);
        wave.mode = 0xf0;
        wave.scc = 0;
        let (low, high) = (self.base as u32, (self.base >> 32) as u32);
        // A base to which the 32-bit lane offsets are added, the address itself, and a descriptor.
        let words = [0, high, 0, 0, low, high, 0, 0, low, high, BYTES as u32, 0x3100_4000];
        for (at, word) in words.into_iter().enumerate() {
            wave.set_sgpr(at as u32, word);
        }
        for at in 12..106 {
            wave.set_sgpr(at, 0x3f80_0000 + at);
        }
        wave.set_sgpr(M0 as u32, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_of_64_are_timed() {
        let costs = measure(Arch::Cdna4, 64, "v_permlane").expect("memory");
        assert!(costs.not_run.is_empty() && costs.costs.len() == 2, "{costs:?}");
    }

    #[test]
    fn each_kind_of_instruction_is_timed() {
        let timed = |part: &str| {
            let costs = measure(Arch::Rdna4, 32, part).expect("memory");
            assert!(costs.single > 0.0 && costs.double > 0.0);
            (costs.costs, costs.not_run)
        };
        // Lanes with each permutation, f64, scalars, every kind of memory, a matrix product.
        for (part, least) in [
            ("v_mov_b32", 3),
            ("v_fma_f64", 1),
            ("s_add_f32", 1),
            ("s_load_b32", 1),
            ("global_load_b32", 1),
            ("global_atomic_add_u32", 1),
            ("buffer_store_b32", 1),
            ("scratch_load_b32", 1),
            ("ds_load_b64", 1),
            ("ds_bpermute", 2),
            ("v_wmma_f32_16x16x16_f16", 1),
            ("v_dual_mov_b32", 1),
        ] {
            let (costs, not_run) = timed(part);
            assert_eq!(not_run, [], "{part}");
            assert!(costs.len() >= least && costs.iter().all(|c| c.ns > 0.0), "{part}: {costs:?}");
        }
        let (costs, not_run) = timed("s_endpgm");
        assert!(costs.is_empty() && !not_run.is_empty());
    }
}
