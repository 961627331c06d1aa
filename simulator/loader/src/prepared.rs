//! A kernel ready to run: what every front end (text kernels, launch files) makes, and what running, checking, tracing and
//! debugging start from.

use super::inlined::Inlined;
use wavesim_array::{Array, DType};
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::{AllocError, MemError, Memory};
use wavesim_text::print::Print;

pub use wavesim_engine::sched::dispatch::Shape;

/// A program with its memory filled and its launch described.
pub struct Prepared {
    /// The code, decoded and lowered.
    pub program: Program,
    /// Global memory with arguments and images in place.
    pub memory: Memory,
    /// Grid, workgroup, and the registers that waves start with.
    pub shape: Shape,
    /// Arguments in memory, in the order of the kernel's parameters.
    pub buffers: Vec<Buffer>,
    /// The program's text, where it has one; `Program::lines` counts its lines.
    pub source: Option<Source>,
    /// Names of places in the program, by byte offset.
    pub labels: Vec<(String, u64)>,
    /// `print` directives, by byte offset.
    pub prints: Vec<Print>,
    /// Hardware modes that the launch sets.
    pub modes: Modes,
    /// Calls that the compiler has inlined, by address in listings.
    pub inlined: Inlined,
}

/// Modes of the hardware that change what checks report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// The waves of a workgroup run on one compute unit and share its L0 cache (CU mode); in WGP mode, they run on two.
    pub cu: bool,
    /// Plain accesses to LDS may have any address, as drivers for compute set it (SH_MEM_CONFIG.alignment_mode).
    pub unaligned_lds: bool,
}

/// A named argument in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// The kernel's parameter.
    pub name: String,
    /// Global address of the first byte.
    pub address: u64,
    /// Bytes of all elements.
    pub len_bytes: u64,
    /// Type of an element.
    pub dtype: DType,
    /// Empty for a scalar.
    pub shape: Vec<u64>,
    /// Shown after the run.
    pub output: bool,
}

impl Buffer {
    /// Allocates and writes `array`.
    pub fn place(
        name: &str,
        array: &Array,
        output: bool,
        align: u64,
        memory: &mut Memory,
    ) -> Result<Buffer, AllocError> {
        let len_bytes = array.bytes.len() as u64;
        let address = memory.alloc(len_bytes, align, name)?;
        // Just allocated: the write cannot miss.
        let written = memory.write(address, &array.bytes);
        debug_assert!(written.is_ok(), "{name}");
        let (name, shape) = (name.to_string(), array.shape.clone());
        Ok(Buffer { name, dtype: array.dtype, shape, address, len_bytes, output })
    }

    /// Its present content.
    pub fn read(&self, memory: &Memory) -> Result<Array, MemError> {
        let mut bytes = vec![0; self.len_bytes as usize];
        memory.read(self.address, &mut bytes)?;
        Ok(Array { dtype: self.dtype, shape: self.shape.clone(), bytes })
    }
}

/// A text, for messages and listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path as the user gave it, or another name for messages.
    pub name: String,
    /// All of it.
    pub text: String,
}

impl Prepared {
    /// Code and memory without names.
    pub fn bare(program: Program, memory: Memory, shape: Shape) -> Prepared {
        Prepared {
            program,
            memory,
            shape,
            buffers: Vec::new(),
            source: None,
            labels: Vec::new(),
            prints: Vec::new(),
            modes: Modes::default(),
            inlined: Inlined::default(),
        }
    }

    /// The dispatch, workgroup after workgroup on one thread. The schedule and the number of threads are the caller's to change.
    pub fn dispatch(&self, max_instructions: u64) -> Dispatch<'_> {
        Dispatch::new(&self.program, &self.shape, max_instructions)
    }

    /// The outputs' present contents.
    pub fn outputs(&self) -> Result<Vec<(&str, Array)>, MemError> {
        let outputs = self.buffers.iter().filter(|b| b.output);
        outputs.map(|b| Ok((b.name.as_str(), b.read(&self.memory)?))).collect()
    }

    /// The argument of this name; `None` if there is none in memory.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.buffers.iter().find(|b| b.name == name)
    }
}
