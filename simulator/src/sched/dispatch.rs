//! What is launched: program, shape, initial state. Waves of a workgroup run round-robin, workgroups one after another
//! (or on threads).

use crate::exec::program::Program;
use crate::fault::Fault;
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

/// Runs the dispatch to its end.
pub fn run(dispatch: &Dispatch<'_>, memory: &Memory) -> Result<RunStats, Box<Fault>> {
    let _ = (dispatch, memory);
    unimplemented!("scheduler")
}
