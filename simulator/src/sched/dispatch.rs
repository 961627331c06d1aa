//! What is launched: program, shape, initial state. Waves of a workgroup run round-robin, workgroups one after another
//! (or on threads).

use crate::exec::interp;
use crate::exec::machine_ops::{Event, Workgroup};
use crate::exec::program::Program;
use crate::exec::reference::Context;
use crate::fault::{Fault, FaultKind};
use crate::machine::Wave;
use crate::memory::Memory;

/// A launch.
pub struct Dispatch<'a> {
    pub program: &'a Program,
    /// Workgroups per dimension.
    pub grid: [u32; 3],
    /// Work-items per workgroup and dimension.
    pub block: [u32; 3],
    /// 32 or 64.
    pub wave_size: u32,
    /// Static plus dynamic LDS of a workgroup.
    pub lds_bytes: u32,
    /// Private memory of a lane.
    pub scratch_bytes: u32,
    pub init: InitialState,
    /// Byte offset of the first instruction in the program.
    pub entry_pc: u64,
    /// Address of the program's first byte, as S_GETPC sees it.
    pub code_base: u64,
    /// Fault after this many wave-instructions in total.
    pub max_instructions: u64,
    pub schedule: Schedule,
    pub threads: usize,
}

/// Registers of a wave at its start.
#[derive(Debug, Clone)]
pub struct InitialState {
    pub layout: Layout,
    /// MODE register.
    pub mode: u32,
    /// `(first SGPR, values)`: the same in every wave.
    pub sgprs: Vec<(u16, Vec<u32>)>,
}

/// Where workgroup and work-item ids go.
#[derive(Debug, Clone)]
pub enum Layout {
    /// The text format: workgroup ids in s0, s1, s2 and work-item ids in v0, v1, v2, each only for the dimensions flagged.
    Text { group_ids: [bool; 3], item_ids: [bool; 3] },
    /// The HSA ABI (LLVM AMDGPUUsage, *Initial Kernel Execution State*): system SGPRs from `first_system_sgpr` on for the enabled
    /// workgroup ids (`architected`: in ttmp9/ttmp7 instead, gfx12), packed work-item ids in v0 (`item_id_dims` 0, 1 or 2 beyond X).
    Hsa { first_system_sgpr: u16, group_ids: [bool; 3], architected: bool, item_id_dims: u8 },
}

/// Order in which the waves of a workgroup take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    #[default]
    RoundRobin,
    Reverse,
    Random(u64),
}

/// What a finished run says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Wave-instructions executed.
    pub instructions: u64,
    pub waves: u64,
}

/// A wave's slot in its workgroup.
struct Slot {
    wave: Wave,
    waits: Option<Wait>,
    done: bool,
}

/// Barrier index and the generation that must be passed.
struct Wait {
    barrier: usize,
    generation: u32,
}

/// Instructions a wave runs before the next one's turn.
const QUANTUM: u64 = 4096;

/// Runs the dispatch to its end, workgroup by workgroup, x fastest.
pub fn run(dispatch: &Dispatch<'_>, memory: &Memory) -> Result<RunStats, Box<Fault>> {
    let mut stats = RunStats::default();
    let [gx, gy, gz] = dispatch.grid;
    for z in 0..gz {
        for y in 0..gy {
            for x in 0..gx {
                workgroup(dispatch, memory, [x, y, z], &mut stats)?;
            }
        }
    }
    Ok(stats)
}

fn workgroup(
    d: &Dispatch<'_>,
    memory: &Memory,
    id: [u32; 3],
    stats: &mut RunStats,
) -> Result<(), Box<Fault>> {
    let items = d.block.iter().product::<u32>();
    let count = items.div_ceil(d.wave_size).max(1);
    let mut lds = vec![0u8; d.lds_bytes as usize];
    let per_wave = d.scratch_bytes as usize * d.wave_size as usize;
    let mut scratch = vec![0u8; per_wave * count as usize];
    let mut group = Workgroup { live: count, ..Workgroup::default() };
    let mut slots: Vec<Slot> =
        (0..count).map(|w| Slot { wave: start(d, id, w, items), waits: None, done: false }).collect();
    stats.waves += count as u64;
    let mut random = match d.schedule {
        Schedule::Random(seed) => seed | 1,
        _ => 1,
    };
    loop {
        let mut progress = false;
        for turn in 0..slots.len() {
            let at = match d.schedule {
                Schedule::RoundRobin => turn,
                Schedule::Reverse => slots.len() - 1 - turn,
                Schedule::Random(_) => {
                    // xorshift64: any order will do, so that the order is the seed's.
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    (random % slots.len() as u64) as usize
                }
            };
            let slot = &mut slots[at];
            if slot.done {
                continue;
            }
            if let Some(wait) = &slot.waits {
                if group.barriers[wait.barrier].generation == wait.generation {
                    continue;
                }
                slot.waits = None;
            }
            progress = true;
            let left = d.max_instructions.saturating_sub(stats.instructions);
            if left == 0 {
                let message = format!("{} instructions executed without an end", d.max_instructions);
                return Err(place(d, &slot.wave, id, Event::fault(FaultKind::InstructionLimit, message)));
            }
            let mut context = Context {
                memory,
                lds: &mut lds,
                scratch: &mut scratch[at * per_wave..(at + 1) * per_wave],
                scratch_stride: d.scratch_bytes,
                workgroup: &mut group,
                instructions: stats.instructions,
            };
            let budget = QUANTUM.min(left);
            match interp::run(d.program, &mut slot.wave, &mut context, budget, &mut stats.instructions) {
                Ok(()) => {}
                Err(Event::EndPgm) => {
                    slot.done = true;
                    group.leave();
                }
                Err(Event::Barrier) => {
                    // The generation before the arrival, which may be the last one.
                    let generation = group.barriers[0].generation;
                    group.signal(-1);
                    slot.waits = Some(Wait { barrier: 0, generation });
                }
                Err(Event::BarrierWait(barrier)) => {
                    let index = if barrier == -1 { 0 } else { barrier.clamp(0, 16) as usize };
                    let state = group.barriers[index];
                    // Nothing outstanding: the barrier has completed since this wave's signal.
                    if state.signals > 0 {
                        slot.waits = Some(Wait { barrier: index, generation: state.generation });
                    }
                }
                Err(fault) => return Err(place(d, &slot.wave, id, fault)),
            }
        }
        if slots.iter().all(|s| s.done) {
            return Ok(());
        }
        let stuck = slots.iter().all(|s| {
            s.done || s.waits.as_ref().is_some_and(|w| group.barriers[w.barrier].generation == w.generation)
        });
        if !progress && stuck {
            let waiting = slots.iter().find(|s| !s.done).map_or(&slots[0].wave, |s| &s.wave);
            let message = "every wave left waits at a barrier that cannot complete";
            return Err(place(d, waiting, id, Event::fault(FaultKind::BarrierDeadlock, message)));
        }
    }
}

/// A wave in its initial state (LLVM AMDGPUUsage, *Initial Kernel Execution State*).
fn start(d: &Dispatch<'_>, id: [u32; 3], index: u32, items: u32) -> Wave {
    let mut wave = Wave::new(d.wave_size);
    wave.id = index;
    wave.workgroup = id;
    wave.pc = d.entry_pc;
    wave.code_base = d.code_base;
    wave.mode = d.init.mode;
    for (first, values) in &d.init.sgprs {
        for (k, value) in values.iter().enumerate() {
            wave.set_sgpr(*first as u32 + k as u32, *value);
        }
    }
    let mut exec = 0u64;
    for lane in 0..d.wave_size {
        let item = index * d.wave_size + lane;
        if item >= items {
            break;
        }
        exec |= 1 << lane;
        let [bx, by, _] = d.block;
        let at = [item % bx, item / bx % by, item / bx / by];
        match &d.init.layout {
            Layout::Text { item_ids, .. } => {
                for k in 0..3 {
                    if item_ids[k] {
                        wave.set_vgpr(lane, k as u32, at[k]);
                    }
                }
            }
            Layout::Hsa { item_id_dims, .. } => {
                let mut packed = at[0];
                if *item_id_dims >= 1 {
                    packed |= at[1] << 10;
                }
                if *item_id_dims >= 2 {
                    packed |= at[2] << 20;
                }
                wave.set_vgpr(lane, 0, packed);
            }
        }
    }
    match &d.init.layout {
        Layout::Text { group_ids, .. } => {
            for k in 0..3 {
                if group_ids[k] {
                    wave.set_sgpr(k as u32, id[k]);
                }
            }
        }
        Layout::Hsa { architected: true, .. } => {
            wave.set_sgpr(TTMP0 + 9, id[0]);
            wave.set_sgpr(TTMP0 + 7, id[1] | id[2] << 16);
        }
        Layout::Hsa { first_system_sgpr, group_ids, .. } => {
            let mut next = *first_system_sgpr as u32;
            for k in 0..3 {
                if group_ids[k] {
                    wave.set_sgpr(next, id[k]);
                    next += 1;
                }
            }
        }
    }
    wave.set_exec(exec);
    wave
}

/// Operand code of ttmp0.
const TTMP0: u32 = 108;

fn place(d: &Dispatch<'_>, wave: &Wave, workgroup: [u32; 3], event: Event) -> Box<Fault> {
    let (kind, message, lane, address) = match event {
        Event::Fault { kind, message, lane, address } => (kind, message, lane, address),
        other => (FaultKind::Other, format!("{other:?}"), None, None),
    };
    let at = d.program.inst_at(wave.pc);
    let table = d.program.arch.table();
    let instruction = at.map_or("(no instruction)", |at| d.program.insts[at].instruction(table).name);
    Box::new(Fault {
        kind,
        message,
        line: at.map_or(0, |at| d.program.lines[at]),
        pc: wave.pc,
        instruction: instruction.to_lowercase(),
        workgroup,
        wave: wave.id,
        lane,
        address,
    })
}
