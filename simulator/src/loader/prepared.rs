//! A kernel ready to run: what every front end (text kernels, launch files) makes, and what running, checking, tracing and
//! debugging start from.

use crate::exec::program::Program;
use crate::memory::Memory;
use crate::sched::dispatch::{Dispatch, InitialState, Schedule};

/// A program with its memory filled and its launch described.
pub struct Prepared {
    pub program: Program,
    pub memory: Memory,
    pub shape: Shape,
    /// Arguments in memory, in the order of the kernel's parameters.
    pub buffers: Vec<Buffer>,
    /// The program's text, where it has one; `Program::lines` counts its lines.
    pub source: Option<Source>,
}

/// What a launch says beside program and memory; see [`Dispatch`].
#[derive(Debug, Clone)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub wave_size: u32,
    pub lds_bytes: u32,
    pub scratch_bytes: u32,
    pub init: InitialState,
    pub entry_pc: u64,
    pub code_base: u64,
}

/// A named argument in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub name: String,
    pub address: u64,
    pub len_bytes: u64,
    /// `f32`, `u8` …, as launch files and headers name them.
    pub dtype: String,
    /// Empty for a scalar.
    pub shape: Vec<u64>,
}

/// A text, for messages and listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub text: String,
}

impl Prepared {
    /// The dispatch, workgroup after workgroup on one thread. The schedule and the number of threads are the caller's to change.
    pub fn dispatch(&self, max_instructions: u64) -> Dispatch<'_> {
        let s = &self.shape;
        Dispatch {
            program: &self.program,
            grid: s.grid,
            block: s.block,
            wave_size: s.wave_size,
            lds_bytes: s.lds_bytes,
            scratch_bytes: s.scratch_bytes,
            init: s.init.clone(),
            entry_pc: s.entry_pc,
            code_base: s.code_base,
            max_instructions,
            schedule: Schedule::RoundRobin,
            threads: 1,
        }
    }

    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.buffers.iter().find(|b| b.name == name)
    }
}
