//! Prepares a parsed text kernel to run: arguments in global memory, the kernarg table, and initial
//! registers.

use super::abi;
use super::prepared::{Buffer, Modes, Prepared, Shape, Source};
use super::surface::{self, ResourceError, Surface};
use isa_spec::pcode::ir::Space;
use isa_spec::source::SourceMap;
use wavesim_engine::sched::dispatch::{InitialState, Layout, Registers};
use wavesim_machine::exec::program::{Program, TooLarge};
use wavesim_machine::memory::{AllocError, Memory};
use wavesim_machine::state::barrier::NAMED_BARRIERS;
pub use wavesim_text::Options;
use wavesim_text::header::{Abi, Arg};
use wavesim_text::image::Resource;
use wavesim_text::{self as text, TextKernel};

/// Alignment of arguments, as in real runtimes.
const ALIGN: u64 = 256;
/// Address of the first instruction as S_GETPC returns it. No memory is mapped there, and offsets keep their
/// low bits.
const CODE_BASE: u64 = 0x1_0000_0000;
/// Defaults if the header specifies no size and the instructions use the memory.
const DEFAULT_LDS: u32 = 64 << 10;
const DEFAULT_SCRATCH: u32 = 4 << 10;

/// The reason why a text kernel cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The rendered diagnostics of a text with errors.
    #[error("{0}")]
    Text(String),
    /// The arguments do not fit global memory.
    #[error(transparent)]
    Memory(#[from] AllocError),
    /// An image or a sampler has no descriptor.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// The code is too large.
    #[error(transparent)]
    Program(#[from] TooLarge),
}

/// Parses a text kernel and prepares it to run. `name` is the file name in messages. Global memory has
/// `options.global_bytes` bytes, with `guard` unused bytes between arguments.
pub fn prepare(name: &str, text: &str, options: &Options, guard: u64) -> Result<Prepared, LoadError> {
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    let kernel = text::parse(&sources, file, options)
        .map_err(|diagnostics| LoadError::Text(text::render(&sources, &diagnostics)))?;
    let memory = Memory::with_guard(options.global_bytes, guard)?;
    load(kernel, Source { name: name.to_string(), text: text.to_string() }, memory)
}

/// Stores the arguments in `memory` and describes the launch.
pub fn load(kernel: TextKernel, source: Source, mut memory: Memory) -> Result<Prepared, LoadError> {
    let header = &kernel.header;
    let (mut buffers, mut addresses) = (Vec::new(), Vec::new());
    for arg in &header.args {
        match &arg.resource {
            None => {
                let buffer = Buffer::place(&arg.name, &arg.array, arg.is_output(), ALIGN, &mut memory)?;
                addresses.push(buffer.address);
                buffers.push(buffer);
            }
            Some(Resource::Image(image)) => {
                let surface = Surface { image: image.clone(), arch: kernel.arch };
                let output = arg.is_output();
                let buffer =
                    Buffer::place_image(&arg.name, &arg.array, surface.clone(), output, &mut memory)?;
                addresses.push(surface.place_descriptor(&arg.name, buffer.address, &mut memory)?);
                buffers.push(buffer);
            }
            Some(Resource::Sampler(sampler)) => {
                addresses.push(surface::place_sampler(&arg.name, sampler, kernel.arch, &mut memory)?);
            }
        }
    }
    let table = match header.abi {
        Abi::Text => table(&header.args, &addresses),
        Abi::Hsa => segment(&header.args, &addresses),
    };
    let pointer = if table.is_empty() {
        Vec::new()
    } else {
        let at = memory.alloc(table.len() as u64, 64, "kernarg")?;
        // The memory was just allocated, so the write cannot fail.
        let written = memory.write(at, &table);
        debug_assert!(written.is_ok());
        vec![at as u32, (at >> 32) as u32]
    };
    let listed = |dims: usize| [dims > 0, dims > 1, dims > 2];
    let (layout, first) = match header.abi {
        Abi::Text => {
            (Layout::Text { group_ids: listed(header.global.1), item_ids: listed(header.local.1) }, 3)
        }
        Abi::Hsa => {
            let architected = abi::has_architected_ids(kernel.arch);
            (Layout::Hsa { first_system_sgpr: 2, group_ids: [true; 3], architected, item_id_dims: 2 }, 0)
        }
    };
    let mode = abi::default_mode(kernel.arch);
    let program = Program::new(kernel.arch, kernel.instructions)?.for_wave_size(kernel.wave);
    let default = |space, bytes| if program.accesses(&[space, Space::Flat]) { bytes } else { 0 };
    let lds_bytes = header.lds.unwrap_or_else(|| default(Space::Lds, DEFAULT_LDS));
    let scratch_bytes = header.scratch.unwrap_or_else(|| default(Space::Scratch, DEFAULT_SCRATCH));
    let shape = Shape {
        grid: header.global.0,
        cluster: header.cluster,
        block: header.local.0,
        wave_size: kernel.wave,
        named_barriers: NAMED_BARRIERS as u32,
        lds_bytes,
        scratch_bytes: scratch_bytes.checked_next_multiple_of(4).unwrap_or(!3),
        registers: Registers::ALL,
        init: InitialState { layout, mode, sgprs: vec![(first, pointer)] },
        entry_pc: 0,
        code_base: CODE_BASE,
    };
    Ok(Prepared {
        program: program.with_syntax(wavesim_asm::print::syntax),
        memory,
        shape,
        buffers,
        source: Some(source),
        labels: kernel.labels,
        prints: kernel.prints,
        modes: Modes::default(),
        debug: Default::default(),
        padding: Vec::new(),
        constant: Vec::new(),
        objects: Default::default(),
    })
}

/// The argument table: addresses of inputs, then of outputs.
fn table(args: &[Arg], addresses: &[u64]) -> Vec<u8> {
    let of = |output| args.iter().zip(addresses).filter(move |(arg, _)| arg.is_output() == output);
    of(false).chain(of(true)).flat_map(|(_, address)| address.to_le_bytes()).collect()
}

/// A kernarg segment as of a compiled kernel: in source order, arrays, outputs and descriptors by address, scalars
/// by value, each aligned to its size.
fn segment(args: &[Arg], addresses: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for (arg, address) in args.iter().zip(addresses) {
        let by_value = arg.array.shape.is_empty() && !arg.is_output() && arg.resource.is_none();
        let address = address.to_le_bytes();
        let bytes: &[u8] = if by_value { &arg.array.bytes } else { &address };
        out.resize(out.len().next_multiple_of(bytes.len()), 0);
        out.extend(bytes);
    }
    // Loads may access the remainder of the last 16 bytes.
    out.resize(out.len().next_multiple_of(16), 0);
    out
}
