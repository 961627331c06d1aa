//! What a compiled kernel is launched with, from a launch file or from the command line, and preparing it.

use super::abi;
use super::code_object::{Arg, Kernel};
use super::image::MapImageError;
use super::prepared::{Buffer, Prepared, Shape};
use anyhow::{Context as _, Result, anyhow};
use std::path::Path;
use wavesim_array::{Array, ArrayError, DType, Num, file};
use wavesim_isa::descriptor;
use wavesim_machine::exec::program::{Program, TooLarge};
use wavesim_machine::memory::{AllocError, MemError, Memory};
use wavesim_text::Options;
use wavesim_text::constant::Constants;
use wavesim_text::header::HeaderParser;

/// A value for a kernel's parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// In global memory; the kernel gets its address.
    Buffer(Array),
    /// By value.
    Bytes(Vec<u8>),
    /// By value, in the parameter's size.
    Number(Num),
    /// So many bytes of LDS; the kernel gets their offset.
    Local(u32),
}

/// A launch.
#[derive(Debug, Clone)]
pub struct Request {
    /// In workgroups.
    pub grid: [u32; 3],
    /// Work-items of a workgroup, a number for each dimension.
    pub block: [u32; 3],
    /// LDS of a workgroup in bytes, on top of the kernel's own.
    pub dynamic_lds: u32,
    /// In the order of the kernel's parameters.
    pub args: Vec<(String, Given)>,
    /// Buffers shown after the run; none named: all.
    pub outputs: Vec<String>,
}

/// Buffers begin at multiples of this, as real runtimes have it.
const ALIGN: u64 = 256;

/// Why a launch cannot be made ready.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum LaunchError {
    /// Two buffers have this name.
    #[error("two arguments are called `{0}`")]
    Twice(String),
    /// The arguments given end at byte `end`, before the end of the kernarg segment, which has `size` bytes.
    #[error(
        "arguments are missing (--arg, or `args` of a launch description): those given end at byte {end} of the kernel's {size} \
         (.amdhsa_kernarg_size)"
    )]
    Missing { end: u32, size: u32 },
    /// The kernel's metadata names the parameters `takes`; `given` arguments are another number.
    #[error(
        "arguments given: {given}, but the kernel has {} (--arg, or `args` of a launch description){}",
        .takes.len(), listed(.takes)
    )]
    Count { takes: Vec<String>, given: usize },
    /// The value of this argument does not fit its parameter.
    #[error("argument {name}: {reason}")]
    Argument { name: String, reason: ArgumentError },
    /// A host gave `given` bytes of explicit arguments; by the metadata they end at byte `end`.
    #[error("the explicit arguments end at byte {end} of the kernarg segment, {given} bytes are given")]
    Kernarg { end: u64, given: u64 },
    /// A kernarg segment of more bytes than any real kernel's.
    #[error("a kernarg segment of {0} bytes: at most {MAX_KERNARG} are possible")]
    KernargSize(u32),
    /// More work-items than the kernel was compiled for.
    #[error(
        "a workgroup of {block:?} work-items: the kernel was compiled for at most {most} (.max_flat_workgroup_size)"
    )]
    Items { block: [u32; 3], most: u32 },
    /// More LDS than a workgroup can have.
    #[error("{0} bytes of LDS: a workgroup has at most {max}", max = wavesim_engine::sched::dispatch::MAX_LDS)]
    Lds(u64),
    /// The code object's image cannot be placed.
    #[error(transparent)]
    Image(#[from] MapImageError),
    /// A buffer does not fit global memory.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The code is too large.
    #[error(transparent)]
    Program(#[from] TooLarge),
    /// An argument cannot be written to the memory it was given.
    #[error(transparent)]
    Memory(#[from] MemError),
}

/// Why a value does not fit its parameter.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ArgumentError {
    /// A number that a parameter of `size` bytes cannot hold.
    #[error("{value} does not fit a parameter of {size} bytes")]
    Number { value: Num, size: u32 },
    /// A value of `len` bytes, more than the parameter has.
    #[error("{len} bytes for a parameter of {size} bytes")]
    Bytes { len: usize, size: u32 },
    /// A buffer's address has 8 bytes; the parameter has so many.
    #[error("a buffer for a parameter of {0} bytes that is not a pointer")]
    Buffer(u32),
    /// The argument ends beyond the kernarg segment.
    #[error(
        "it ends at byte {end} of the kernel's arguments, which have {size} bytes (.amdhsa_kernarg_size)"
    )]
    Room { end: u32, size: u32 },
    /// LDS given for a parameter whose kind is not `dynamic_shared_pointer`.
    #[error("memory of a workgroup (`local`) for a parameter that is not a pointer to it")]
    Local,
    /// The array cannot be made or read.
    #[error(transparent)]
    Array(#[from] ArrayError),
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; it takes {}", names.join(", ")) }
}

/// Bytes of a kernarg segment at most: a bound of ours, many times what compilers let a kernel have.
const MAX_KERNARG: u32 = 1 << 20;
/// Scratch of a work-item whose kernel calls what the compiler does not know (*uses dynamic stack* in the descriptor): what the
/// descriptor says is the least, and this is what HIP's runtime gives.
const DYNAMIC_STACK: u32 = 16 << 10;

fn round(lds: u32) -> Result<u32, LaunchError> {
    lds.checked_next_multiple_of(16).ok_or(LaunchError::Lds(lds as u64))
}

fn empty_kernarg(kernel: &Kernel) -> Result<Vec<u8>, LaunchError> {
    match kernel.kernarg_size() {
        size if size > MAX_KERNARG => Err(LaunchError::KernargSize(size)),
        size => Ok(vec![0; size as usize]),
    }
}

impl Request {
    /// Fills memory and describes the launch.
    pub fn prepare(&self, kernel: &Kernel, mut memory: Memory) -> Result<Prepared, LaunchError> {
        let code = kernel.image.map(&mut memory)?;
        let mut buffers = Vec::new();
        let (kernarg, local) = explicit(kernel, &self.args, &mut |name, array| {
            let output = self.outputs.is_empty() || self.outputs.iter().any(|o| o == name);
            let buffer = Buffer::place(name, array, output, ALIGN, &mut memory)?;
            let address = buffer.address;
            buffers.push(buffer);
            Ok(address)
        })?;
        // Outputs go by their names.
        let mut names: Vec<&str> = buffers.iter().map(|b| b.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LaunchError::Twice(pair[0].to_string()));
        }
        let dynamic_lds = self.dynamic_lds.max(local);
        let shape = abi::Shape::new(self.grid, self.block, dynamic_lds);
        let prepared = finish(kernel, code, kernarg, &shape, memory)?;
        Ok(Prepared { buffers, ..prepared })
    }
}

/// The kernarg segment with explicit arguments, and the LDS that arguments take beside the kernel's own. `buffer` puts an array into
/// memory and gives its address.
pub fn explicit(
    kernel: &Kernel,
    args: &[(String, Given)],
    buffer: &mut dyn FnMut(&str, &Array) -> Result<u64, LaunchError>,
) -> Result<(Vec<u8>, u32), LaunchError> {
    let mut kernarg = empty_kernarg(kernel)?;
    let fixed = round(kernel.group_segment())?;
    let mut lds = fixed;
    for ((name, given), place) in args.iter().zip(places(kernel, args)?) {
        let size = place.size;
        let wrong = |reason| LaunchError::Argument { name: name.clone(), reason };
        let value = match given {
            Given::Buffer(_) if size != 8 => return Err(wrong(ArgumentError::Buffer(size))),
            Given::Buffer(array) => buffer(name, array)?.to_le_bytes().to_vec(),
            Given::Bytes(bytes) if bytes.len() > size as usize => {
                return Err(wrong(ArgumentError::Bytes { len: bytes.len(), size }));
            }
            Given::Bytes(bytes) => bytes.clone(),
            Given::Number(n) => number(*n, size).map_err(wrong)?,
            Given::Local(_) if !place.local => return Err(wrong(ArgumentError::Local)),
            Given::Local(size) => {
                let at = lds;
                lds = at.checked_add(round(*size)?).ok_or(LaunchError::Lds(at as u64 + *size as u64))?;
                at.to_le_bytes().to_vec()
            }
        };
        abi::put(&mut kernarg, place.offset, size, &value);
    }
    Ok((kernarg, lds - fixed))
}

/// Where each argument goes: as the metadata says, or where there is none one after the other, each aligned to its size, as a C structure
/// has them.
fn places(kernel: &Kernel, args: &[(String, Given)]) -> Result<Vec<Place>, LaunchError> {
    if kernel.args.is_some() {
        let explicit: Vec<&Arg> = kernel.explicit().collect();
        if explicit.len() != args.len() {
            let names = explicit.iter().map(|a| a.name.clone().unwrap_or_else(|| a.kind.clone()));
            return Err(LaunchError::Count { takes: names.collect(), given: args.len() });
        }
        let place = |a: &Arg| Place { offset: a.offset, size: a.size, local: a.is_local() };
        return Ok(explicit.into_iter().map(place).collect());
    }
    let mut end = 0u32;
    let mut places = Vec::new();
    for (name, given) in args {
        let size = match given {
            Given::Buffer(_) => 8,
            Given::Number(_) | Given::Local(_) => 4,
            Given::Bytes(bytes) => bytes.len() as u32,
        };
        let offset = end.next_multiple_of(size.next_power_of_two().clamp(1, 16));
        end = offset + size;
        if end > kernel.kernarg_size() {
            let reason = ArgumentError::Room { end, size: kernel.kernarg_size() };
            return Err(LaunchError::Argument { name: name.clone(), reason });
        }
        places.push(Place { offset, size, local: true });
    }
    // The segment may be padded to pointers.
    if end.next_multiple_of(8) < kernel.kernarg_size() {
        return Err(LaunchError::Missing { end, size: kernel.kernarg_size() });
    }
    Ok(places)
}

/// A parameter's place in the kernarg segment, in bytes.
struct Place {
    offset: u32,
    size: u32,
    /// It may be an offset in LDS.
    local: bool,
}

/// A launch whose explicit arguments are laid out already, in `memory` or as values.
pub fn with_kernarg(
    kernel: &Kernel,
    explicit: &[u8],
    shape: &abi::Shape,
    mut memory: Memory,
) -> Result<Prepared, LaunchError> {
    let kernarg = segment(kernel, explicit)?;
    let code = kernel.image.map(&mut memory)?;
    finish(kernel, code, kernarg, shape, memory)
}

/// The kernarg segment with these explicit arguments. Hidden ones are 0: [`abi::hidden`] fills them in.
pub fn segment(kernel: &Kernel, explicit: &[u8]) -> Result<Vec<u8>, LaunchError> {
    let end = kernel.explicit().map(|a| a.offset as u64 + a.size as u64).max().unwrap_or(0);
    if end > explicit.len() as u64 {
        return Err(LaunchError::Kernarg { end, given: explicit.len() as u64 });
    }
    let mut kernarg = empty_kernarg(kernel)?;
    let len = explicit.len().min(kernarg.len());
    kernarg[..len].copy_from_slice(&explicit[..len]);
    Ok(kernarg)
}

/// Where the parts of a launch are in memory.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Address 0 of the code object's file.
    pub code: u64,
    /// The kernarg segment.
    pub kernarg: u64,
    /// The dispatch packet.
    pub packet: u64,
    /// The queue; 0: none.
    pub queue: u64,
}

/// What the engine needs to know of a launch. `kernarg`: what the kernarg segment holds.
pub fn shape(
    kernel: &Kernel,
    shape: &abi::Shape,
    kernarg: &[u8],
    places: &Places,
) -> Result<Shape, LaunchError> {
    let items = shape.block.iter().fold(1u64, |n, &d| n.saturating_mul(d as u64));
    if let Some(most) = kernel.max_items.filter(|most| items > *most as u64) {
        return Err(LaunchError::Items { block: shape.block, most });
    }
    let text = kernel.text.0;
    let dynamic_stack = if kernel.descriptor.has(descriptor::DYNAMIC_STACK) { DYNAMIC_STACK } else { 0 };
    let scratch = kernel.private_segment().max(dynamic_stack);
    let preloaded = preloaded(kernel, kernarg);
    Ok(Shape {
        grid: shape.grid,
        block: shape.block,
        wave_size: kernel.wave_size(),
        lds_bytes: round(kernel.group_segment())?.saturating_add(shape.dynamic_lds),
        scratch_bytes: scratch.checked_next_multiple_of(4).unwrap_or(!3),
        registers: kernel.registers(),
        init: abi::initial_state(kernel, places.kernarg, places.packet, places.queue, &preloaded),
        entry_pc: kernel.entry - text + if preloaded.is_empty() { 0 } else { PRELOAD_PROLOGUE },
        code_base: places.code.wrapping_add(text),
    })
}

/// The kernel's program, out of the relocated image: `len` bytes of code at `address`.
pub fn program(kernel: &Kernel, address: u64, len: u64, memory: &Memory) -> Result<Program, LaunchError> {
    let mut bytes = vec![0; len as usize];
    memory.read(address, &mut bytes)?;
    let mut program = Program::from_bytes(kernel.arch, &bytes)?
        .for_wave_size(kernel.wave_size())
        .with_syntax(wavesim_asm::print::syntax);
    let text = kernel.text.0;
    program.base = text;
    Ok(kernel.lines.annotate(program, text))
}

/// Bytes in front of a program whose arguments the hardware loads, which load them for hardware that does not.
const PRELOAD_PROLOGUE: u64 = 256;

/// The dwords of the kernarg segment that the wave finds in SGPRs.
fn preloaded(kernel: &Kernel, kernarg: &[u8]) -> Vec<u32> {
    let Some((first, dwords)) = kernel.preloaded() else { return Vec::new() };
    let dword = |n: u32| {
        let at = (first + 4 * n) as usize;
        kernarg.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    (0..dwords).map(dword).collect()
}

/// Hidden arguments, the dispatch packet, and the program out of the relocated image. `code`: where the file's address 0 is.
fn finish(
    kernel: &Kernel,
    code: u64,
    mut kernarg: Vec<u8>,
    given: &abi::Shape,
    mut memory: Memory,
) -> Result<Prepared, LaunchError> {
    abi::hidden(kernel, given, &abi::Services::default(), &mut kernarg);
    let kernarg_at = memory.alloc(kernarg.len().next_multiple_of(16).max(16) as u64, 64, "kernarg")?;
    memory.write(kernarg_at, &kernarg)?;
    let packet_at = memory.alloc(64, 64, "dispatch packet")?;
    memory.write(packet_at, &abi::packet(given, kernel, kernarg_at))?;
    let places = Places { code, kernarg: kernarg_at, packet: packet_at, queue: 0 };
    let shape = shape(kernel, given, &kernarg, &places)?;
    let program = program(kernel, shape.code_base, kernel.text.1.len() as u64, &memory)?;
    let modes = abi::modes(&kernel.descriptor);
    let (labels, inlined) = (kernel.labels.clone(), kernel.lines.inlined.clone());
    Ok(Prepared { labels, modes, inlined, ..Prepared::bare(program, memory, shape) })
}

/// A number in a parameter of `size` bytes: a float where it is written as one.
fn number(value: Num, size: u32) -> Result<Vec<u8>, ArgumentError> {
    let dtype = match (value, size) {
        (Num::Float(_), 2) => DType::F16,
        (Num::Float(_), 4) => DType::F32,
        (Num::Float(_), 8) => DType::F64,
        (Num::Float(_), _) => return Err(ArgumentError::Number { value, size }),
        (n, size) => {
            let int = n.as_int().unwrap_or_default();
            let bytes = int.to_le_bytes();
            // The bytes left out are copies of the sign.
            let kept = 8 * size.min(16);
            let fits = kept == 128 || kept != 0 && (int >> (kept - 1) == -1 || int >> kept == 0);
            return match fits {
                true => Ok(bytes[..size.min(16) as usize].to_vec()),
                false => Err(ArgumentError::Number { value, size }),
            };
        }
    };
    let mut out = Vec::new();
    dtype.encode(value, &mut out)?;
    Ok(out)
}

/// An argument as the command line gives it: `f32[1024]=arange(1024)`, `file:x.npy`, `local:4096`, `1000`, `2.5`, `i64=-1`; before it, if
/// wanted, a name and a colon. `options`: as of a text kernel's header.
pub fn argument(text: &str, index: usize, options: &Options) -> Result<(String, Given)> {
    let (name, spec) = match text.split_once(':') {
        Some((name, spec)) if !matches!(name.trim(), "file" | "local") && is_name(name.trim()) => {
            (name.trim().to_string(), spec.trim())
        }
        _ => (format!("arg{index}"), text.trim()),
    };
    let given = spec_value(&name, spec, options).with_context(|| format!("--arg {text}"))?;
    Ok((name, given))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn spec_value(name: &str, spec: &str, options: &Options) -> Result<Given> {
    if let Some(path) = spec.strip_prefix("file:") {
        return Ok(Given::Buffer(file::npy(Path::new(path), &options.files, None)?));
    }
    if let Some(size) = spec.strip_prefix("local:") {
        return Ok(Given::Local(
            size.trim().parse().map_err(|_| anyhow!("`{size}` is not a number of bytes"))?,
        ));
    }
    let mut constants = Constants::default();
    if constants.define(&format!("value={spec}")).is_ok()
        && let Some(n) = constants.get("value")
    {
        return Ok(Given::Number(n));
    }
    let mut parser = HeaderParser::new(options);
    let line = format!("{name}: {spec}");
    parser.line(&line, 0, 1).map_err(|wrong| {
        let help = wrong.help.map(|h| format!(" ({h})")).unwrap_or_default();
        anyhow!("{}{help}", wrong.message)
    })?;
    let arg = parser.finish().args.pop().ok_or_else(|| anyhow!("not an argument"))?;
    Ok(if arg.array.shape.is_empty() { Given::Bytes(arg.array.bytes) } else { Given::Buffer(arg.array) })
}
