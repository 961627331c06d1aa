//! A kernel ready to run: the common result of all front ends (text kernels, launch files), and the starting
//! point of running, checking, tracing and debugging.

use super::debug_info::DebugInfo;
use super::objects::ObjectSource;
use super::surface::{ResourceError, Surface};
use fnv::FnvHasher;
use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::Arc;
use wavesim_array::{Array, DType};
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_machine::exec::image::{self, ImageError};
use wavesim_machine::exec::program::Program;
use wavesim_machine::memory::{AllocError, MemError, Memory};
use wavesim_text::print::Print;

pub use wavesim_engine::sched::dispatch::Shape;

/// A program with its initial memory and its launch parameters.
pub struct Prepared {
    /// The decoded and lowered program.
    pub program: Program,
    /// Global memory, which holds arguments and images.
    pub memory: Memory,
    /// Grid, workgroup size and initial registers.
    pub shape: Shape,
    /// Arguments in memory, in parameter order.
    pub buffers: Vec<Buffer>,
    /// The source text, if any; `Program::lines` refers to its lines.
    pub source: Option<Source>,
    /// Labels of the program with their byte offsets.
    pub labels: Vec<(String, u64)>,
    /// `print` directives, by byte offset.
    pub prints: Vec<Print>,
    /// Hardware modes of the launch.
    pub modes: Modes,
    /// The debug information of the code object; its addresses are those of listings.
    pub debug: Arc<DebugInfo>,
    /// Addresses of bytes of the kernarg segment that belong to no argument.
    pub padding: Vec<Range<u64>>,
    /// Addresses of constant data and code, to which the program may not store.
    pub constant: Vec<Range<u64>>,
    /// What the variables of the program are found from.
    pub objects: ObjectSource,
}

/// Hardware modes that affect the reports of checks, and delayed memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// CU mode: the waves of a workgroup run on one compute unit and share its L0 cache. In WGP mode, they
    /// run on two.
    pub cu_mode: bool,
    /// LDS accesses other than atomics need not be aligned, as compute drivers configure it
    /// (SH_MEM_CONFIG.alignment_mode).
    pub unaligned_lds: bool,
}

/// A named argument in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the kernel parameter.
    pub name: String,
    /// Global address of the first byte.
    pub address: u64,
    /// Total size in bytes.
    pub len_bytes: u64,
    /// The element type.
    pub dtype: DType,
    /// The shape; empty for a scalar.
    pub shape: Vec<u64>,
    /// Whether the buffer is shown after the run.
    pub output: bool,
    /// The arrangement of an image, whose elements are the array.
    pub surface: Option<Surface>,
}

impl Buffer {
    /// Allocates memory for `array` and writes it.
    pub fn place(
        name: &str,
        array: &Array,
        output: bool,
        align: u64,
        memory: &mut Memory,
    ) -> Result<Buffer, AllocError> {
        let len_bytes = array.bytes.len() as u64;
        let address = memory.alloc(len_bytes, align, name)?;
        // The memory was just allocated, so the write cannot fail.
        let written = memory.write(address, &array.bytes);
        debug_assert!(written.is_ok(), "{name}");
        let (name, shape) = (name.to_string(), array.shape.clone());
        Ok(Buffer { name, dtype: array.dtype, shape, address, len_bytes, output, surface: None })
    }

    /// Allocates memory for an image, whose elements are `array`, and writes it.
    pub fn place_image(
        name: &str,
        array: &Array,
        surface: Surface,
        output: bool,
        memory: &mut Memory,
    ) -> Result<Buffer, ResourceError> {
        let alignment = surface.image.layout(surface.arch).map_err(ImageError::from)?.alignment;
        let bytes = surface.arrange(&array.bytes).map_err(ImageError::from)?;
        let stored = Array { dtype: DType::U8, shape: vec![bytes.len() as u64], bytes };
        let placed = Buffer::place(name, &stored, output, alignment, memory)?;
        let (dtype, shape) = (array.dtype, array.shape.clone());
        Ok(Buffer { dtype, shape, surface: Some(surface), ..placed })
    }

    /// Reads the current contents.
    pub fn read(&self, memory: &Memory) -> Result<Array, MemError> {
        let mut bytes = vec![0; self.len_bytes as usize];
        memory.read(self.address, &mut bytes)?;
        let elements = self.surface.as_ref().and_then(|surface| surface.elements(&bytes).ok());
        let bytes = elements.unwrap_or(bytes);
        Ok(Array { dtype: self.dtype, shape: self.shape.clone(), bytes })
    }
}

/// A source text, for messages and listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path given by the user, or another name for messages.
    pub name: String,
    /// The complete text.
    pub text: String,
}

impl Prepared {
    /// Creates a kernel without named buffers, labels and source.
    pub fn without_names(program: Program, memory: Memory, shape: Shape) -> Prepared {
        Prepared {
            program,
            memory,
            shape,
            buffers: Vec::new(),
            source: None,
            labels: Vec::new(),
            prints: Vec::new(),
            modes: Modes::default(),
            debug: Arc::default(),
            padding: Vec::new(),
            constant: Vec::new(),
            objects: ObjectSource::default(),
        }
    }

    /// Creates the dispatch, which by default runs one workgroup after another on one thread. The caller may
    /// change the schedule and the number of threads.
    pub fn dispatch(&self, max_instructions: u64) -> Dispatch<'_> {
        let dispatch = Dispatch::new(&self.program, &self.shape, max_instructions);
        Dispatch { cu_mode: self.modes.cu_mode, ..dispatch }
    }

    /// Reads the current contents of the outputs.
    pub fn outputs(&self) -> Result<Vec<(&str, Array)>, MemError> {
        let outputs = self.buffers.iter().filter(|b| b.output);
        outputs.map(|b| Ok((b.name.as_str(), b.read(&self.memory)?))).collect()
    }

    /// Returns a number that identifies the launch: of the program, the grid, the workgroup and the present contents of
    /// the arguments (FNV-1a). Saved sessions and recorded schedules have it, so that they are not used for another one.
    pub fn identity(&self) -> u64 {
        let mut hash = FnvHasher::default();
        let mut add = |bytes: &[u8]| hash.write(bytes);
        for at in 0..self.program.insts.len() {
            add(self.program.text(at).as_bytes());
        }
        for extent in self.shape.grid.iter().chain(&self.shape.block) {
            add(&extent.to_le_bytes());
        }
        add(&self.shape.wave_size.to_le_bytes());
        for buffer in &self.buffers {
            if let Ok(array) = buffer.read(&self.memory) {
                add(&array.bytes);
            }
        }
        hash.finish()
    }

    /// Reads the outputs that are pictures: images of two dimensions with 8-bit components, as `u8[height, width, 4]`.
    pub fn pictures(&self) -> Result<Vec<(&str, Array)>, MemError> {
        let mut pictures = Vec::new();
        for buffer in self.buffers.iter().filter(|b| b.output && b.surface.is_some()) {
            let array = buffer.read(&self.memory)?;
            let (DType::U8, Some(surface)) = (array.dtype, &buffer.surface) else { continue };
            let (height, width, parts) = match *array.shape.as_slice() {
                [height, width, parts @ 1..=4] => (height, width, parts as usize),
                [height, width] => (height, width, 1),
                _ => continue,
            };
            let swizzle = surface.image.swizzle;
            let pixel = |texel: &[u8]| {
                swizzle.map(|from| match from {
                    image::ZERO => 0,
                    image::ONE => 255,
                    component => texel[component as usize % parts],
                })
            };
            let bytes = array.bytes.chunks_exact(parts).flat_map(pixel).collect();
            let picture = Array { dtype: DType::U8, shape: vec![height, width, 4], bytes };
            pictures.push((buffer.name.as_str(), picture));
        }
        Ok(pictures)
    }

    /// Returns the buffer with this name, if the argument is in memory.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.buffers.iter().find(|b| b.name == name)
    }
}
