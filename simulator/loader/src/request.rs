//! Launch requests for compiled kernels, from a launch file or the command line, and their preparation.

use super::abi;
use super::code_object::{Arg, Kernel};
use super::image::LoadImageError;
use super::objects::ObjectSource;
use super::parameters::{Parameter, listing};
use super::prepared::{Buffer, Prepared, Shape};
use super::surface::{self, ResourceError, Surface};
use anyhow::{Context as _, Result, anyhow};
use std::ops::Range;
use std::path::Path;
use wavesim_array::{Array, ArrayError, DType, Num, file};
use wavesim_isa::descriptor;
use wavesim_machine::exec::image::{Image, Sampler};
use wavesim_machine::exec::program::{Program, TooLarge};
use wavesim_machine::memory::{AllocError, MemError, Memory};
use wavesim_text::Options;
use wavesim_text::constant::Constants;
use wavesim_text::header::HeaderParser;

/// The value of a kernel argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentValue {
    /// An array in global memory; the kernel gets its address.
    Buffer(Array),
    /// Bytes passed by value.
    Bytes(Vec<u8>),
    /// A number passed by value, converted to the parameter's size.
    Number(Num),
    /// An allocation of LDS of this size; the kernel gets its offset.
    Local(u32),
    /// An image with its texels in global memory; the kernel gets the address of its descriptor.
    Image(Image, Array),
    /// A sampler; the kernel gets the address of its descriptor.
    Sampler(Sampler),
}

/// A launch.
#[derive(Debug, Clone)]
pub struct Request {
    /// Number of workgroups per dimension.
    pub grid: [u32; 3],
    /// Work-items per workgroup in each dimension.
    pub block: [u32; 3],
    /// Dynamic LDS per workgroup in bytes, in addition to the kernel's static LDS.
    pub dynamic_lds: u32,
    /// Arguments in parameter order.
    pub args: Vec<(String, ArgumentValue)>,
    /// Names of the buffers shown after the run; if empty, all are.
    pub outputs: Vec<String>,
}

/// Alignment of buffers, as in real runtimes.
const ALIGN: u64 = 256;

/// The reason why a launch cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum LaunchError {
    /// An image or a sampler has no descriptor.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// Two buffers have this name.
    #[error("two arguments are called `{0}`")]
    DuplicateName(String),
    /// The arguments end at byte `end`, before the end of the kernarg segment of `size` bytes.
    #[error(
        "arguments are missing (--arg, or `args` of a launch description): those given end at byte {end} of the kernel's {size} \
         (.amdhsa_kernarg_size)"
    )]
    Missing { end: u32, size: u32 },
    /// `given` arguments do not match the parameters `expected` of the metadata.
    #[error(
        "arguments given: {given}, but the kernel has {} (--arg, or `args` of a launch description){}",
        .expected.len(), listing(.expected)
    )]
    Count { expected: Vec<Parameter>, given: usize },
    /// An argument's value does not fit its parameter.
    #[error("argument {name}: {reason}")]
    Argument { name: String, reason: ArgumentError },
    /// A host passed `given` bytes of explicit arguments, which according to the metadata end at byte `end`.
    #[error("the explicit arguments end at byte {end} of the kernarg segment, {given} bytes are given")]
    Kernarg { end: u64, given: u64 },
    /// The kernarg segment is larger than that of any real kernel.
    #[error("a kernarg segment of {0} bytes: at most {MAX_KERNARG} are possible")]
    KernargSize(u32),
    /// The workgroup is larger than the kernel was compiled for.
    #[error(
        "a workgroup of {block:?} work-items: the kernel was compiled for at most {max_items} (.max_flat_workgroup_size)"
    )]
    Items { block: [u32; 3], max_items: u32 },
    /// The kernel was compiled for other clusters.
    #[error("clusters of {given:?} workgroups: the kernel was compiled for {compiled:?} (.cluster_dims)")]
    Cluster { given: [u32; 3], compiled: [u32; 3] },
    /// The workgroup needs more LDS than is available.
    #[error("{0} bytes of LDS: a workgroup has at most {max}", max = wavesim_engine::sched::dispatch::MAX_LDS)]
    Lds(u64),
    /// The code object's image cannot be loaded.
    #[error(transparent)]
    Image(#[from] LoadImageError),
    /// A buffer does not fit global memory.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// The code is too large.
    #[error(transparent)]
    Program(#[from] TooLarge),
    /// An argument cannot be written to the memory provided for it.
    #[error(transparent)]
    Memory(#[from] MemError),
}

/// The reason why a value does not fit its parameter.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum ArgumentError {
    /// A number that does not fit a parameter of `size` bytes.
    #[error("{value} does not fit a parameter of {size} bytes")]
    Number { value: Num, size: u32 },
    /// A fraction for a parameter of a type of integers.
    #[error("{value} for `{type_name}`, which is an integer")]
    Fraction { value: Num, type_name: String },
    /// A value of `len` bytes for a smaller parameter.
    #[error("{len} bytes for a parameter of {size} bytes")]
    Bytes { len: usize, size: u32 },
    /// A buffer for a parameter of this size; addresses have 8 bytes.
    #[error("a buffer for a parameter of {0} bytes that is not a pointer")]
    Buffer(u32),
    /// The argument ends beyond the kernarg segment.
    #[error(
        "it ends at byte {end} of the kernel's arguments, which have {size} bytes (.amdhsa_kernarg_size)"
    )]
    Room { end: u32, size: u32 },
    /// LDS for a parameter that is not a `dynamic_shared_pointer`.
    #[error("memory of a workgroup (`local`) for a parameter that is not a pointer to it")]
    Local,
    /// The array cannot be created or read.
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// Maximum size of a kernarg segment in bytes, many times the compilers' limit.
const MAX_KERNARG: u32 = 1 << 20;
/// Scratch per work-item of a kernel that calls functions unknown to the compiler (*uses dynamic stack* in
/// the descriptor). The descriptor's size is only a minimum; HIP's runtime allocates this size.
const DYNAMIC_STACK: u32 = 16 << 10;

fn round_lds(lds: u32) -> Result<u32, LaunchError> {
    lds.checked_next_multiple_of(16).ok_or(LaunchError::Lds(lds as u64))
}

fn empty_kernarg(kernel: &Kernel) -> Result<Vec<u8>, LaunchError> {
    match kernel.kernarg_size() {
        size if size > MAX_KERNARG => Err(LaunchError::KernargSize(size)),
        size => Ok(vec![0; size as usize]),
    }
}

impl Request {
    /// Loads the image, allocates and fills the arguments, and describes the launch.
    pub fn prepare(&self, kernel: &Kernel, memory: Memory) -> Result<Prepared, LaunchError> {
        self.prepare_with(kernel, memory, None, &abi::Services::default())
    }

    /// As [`Request::prepare`], with this number of workgroups per dimension of a cluster, and services in `memory`.
    pub fn prepare_with(
        &self,
        kernel: &Kernel,
        mut memory: Memory,
        cluster: Option<[u32; 3]>,
        services: &abi::Services,
    ) -> Result<Prepared, LaunchError> {
        let code = kernel.image.load(&mut memory)?;
        let mut buffers = Vec::new();
        let (kernarg, local) = explicit_kernarg(kernel, &self.args, &mut |name, value| {
            let output = self.outputs.is_empty() || self.outputs.iter().any(|o| o == name);
            match value {
                ArgumentValue::Image(image, texels) => {
                    let surface = Surface { image: image.clone(), arch: kernel.arch };
                    let buffer = Buffer::place_image(name, texels, surface.clone(), output, &mut memory)?;
                    let address = surface.place_descriptor(name, buffer.address, &mut memory)?;
                    buffers.push(buffer);
                    Ok(address)
                }
                ArgumentValue::Sampler(sampler) => {
                    Ok(surface::place_sampler(name, sampler, kernel.arch, &mut memory)?)
                }
                ArgumentValue::Buffer(array) => {
                    let buffer = Buffer::place(name, array, output, ALIGN, &mut memory)?;
                    let address = buffer.address;
                    buffers.push(buffer);
                    Ok(address)
                }
                ArgumentValue::Bytes(_) | ArgumentValue::Number(_) | ArgumentValue::Local(_) => Ok(0),
            }
        })?;
        // Outputs are identified by name.
        let mut names: Vec<&str> = buffers.iter().map(|b| b.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LaunchError::DuplicateName(pair[0].to_string()));
        }
        let dynamic_lds = self.dynamic_lds.max(local);
        let shape = abi::Shape { cluster, ..abi::Shape::new(self.grid, self.block, dynamic_lds) };
        let prepared = finish(kernel, code, kernarg, &shape, services, memory)?;
        Ok(Prepared { buffers, ..prepared })
    }
}

/// Builds the kernarg segment with the explicit arguments. Also returns the size of the LDS that arguments
/// allocate in addition to the kernel's own. `store` stores an array, an image or a sampler in memory and returns the
/// address that the kernel gets.
pub fn explicit_kernarg(
    kernel: &Kernel,
    args: &[(String, ArgumentValue)],
    store: &mut dyn FnMut(&str, &ArgumentValue) -> Result<u64, LaunchError>,
) -> Result<(Vec<u8>, u32), LaunchError> {
    let mut kernarg = empty_kernarg(kernel)?;
    let fixed = round_lds(kernel.group_segment())?;
    let mut lds = fixed;
    for ((name, given), slot) in args.iter().zip(parameter_slots(kernel, args)?) {
        let size = slot.size;
        let wrong = |reason| LaunchError::Argument { name: name.clone(), reason };
        let value = match given {
            ArgumentValue::Buffer(_) | ArgumentValue::Image(..) | ArgumentValue::Sampler(_) => {
                if size != 8 {
                    return Err(wrong(ArgumentError::Buffer(size)));
                }
                store(name, given)?.to_le_bytes().to_vec()
            }
            ArgumentValue::Bytes(bytes) if bytes.len() > size as usize => {
                return Err(wrong(ArgumentError::Bytes { len: bytes.len(), size }));
            }
            ArgumentValue::Bytes(bytes) => bytes.clone(),
            ArgumentValue::Number(n) => number(*n, size, slot.dtype).map_err(wrong)?,
            ArgumentValue::Local(_) if !slot.local => return Err(wrong(ArgumentError::Local)),
            ArgumentValue::Local(size) => {
                let at = lds;
                lds = at.checked_add(round_lds(*size)?).ok_or(LaunchError::Lds(at as u64 + *size as u64))?;
                at.to_le_bytes().to_vec()
            }
        };
        abi::write_argument(&mut kernarg, slot.offset, size, &value);
    }
    Ok((kernarg, lds - fixed))
}

/// Returns arguments of zeros, for a kernel that is not going to run.
pub fn zeros(kernel: &Kernel) -> Vec<(String, ArgumentValue)> {
    let sizes = match &kernel.args {
        Some(_) => kernel.parameters().iter().map(|p| p.size).collect(),
        None => vec![kernel.kernarg_size()],
    };
    let zeros = |(index, size)| (format!("arg{index}"), ArgumentValue::Bytes(vec![0; size as usize]));
    sizes.into_iter().enumerate().map(zeros).collect()
}

/// The location of each argument: as in the metadata, or, without metadata, consecutive and aligned to their
/// sizes as in a C structure.
fn parameter_slots(
    kernel: &Kernel,
    args: &[(String, ArgumentValue)],
) -> Result<Vec<ParameterSlot>, LaunchError> {
    if kernel.args.is_some() {
        let parameters = kernel.parameters();
        if parameters.len() != args.len() {
            return Err(LaunchError::Count { expected: parameters.to_vec(), given: args.len() });
        }
        let slot = |(a, p): (&Arg, &Parameter)| {
            let type_name = p.type_name.clone().unwrap_or_default();
            let dtype = p.number().map(|dtype| (dtype, type_name));
            ParameterSlot { offset: a.offset, size: a.size, local: p.local, dtype }
        };
        return Ok(kernel.explicit_args().zip(parameters).map(slot).collect());
    }
    let mut end = 0u32;
    let mut slots = Vec::new();
    for (name, given) in args {
        let size = match given {
            ArgumentValue::Buffer(_) | ArgumentValue::Image(..) | ArgumentValue::Sampler(_) => 8,
            ArgumentValue::Number(_) | ArgumentValue::Local(_) => 4,
            ArgumentValue::Bytes(bytes) => bytes.len() as u32,
        };
        let offset = end.next_multiple_of(size.next_power_of_two().clamp(1, 16));
        end = offset + size;
        if end > kernel.kernarg_size() {
            let reason = ArgumentError::Room { end, size: kernel.kernarg_size() };
            return Err(LaunchError::Argument { name: name.clone(), reason });
        }
        slots.push(ParameterSlot { offset, size, local: true, dtype: None });
    }
    // The segment may be padded to the size of a pointer.
    if end.next_multiple_of(8) < kernel.kernarg_size() {
        return Err(LaunchError::Missing { end, size: kernel.kernarg_size() });
    }
    Ok(slots)
}

/// The location of a parameter in the kernarg segment, in bytes.
struct ParameterSlot {
    offset: u32,
    size: u32,
    /// Whether the parameter may be an LDS offset.
    local: bool,
    /// The type of a number, if it is known, and its name in the source.
    dtype: Option<(DType, String)>,
}

/// Prepares a launch with explicit arguments that are already laid out. `memory` holds the data they refer
/// to.
pub fn with_kernarg(
    kernel: &Kernel,
    explicit: &[u8],
    shape: &abi::Shape,
    mut memory: Memory,
) -> Result<Prepared, LaunchError> {
    let kernarg = kernarg_segment(kernel, explicit)?;
    let code = kernel.image.load(&mut memory)?;
    finish(kernel, code, kernarg, shape, &abi::Services::default(), memory)
}

/// Builds the kernarg segment with these explicit arguments. Hidden arguments are 0;
/// [`abi::write_hidden_arguments`] fills them in.
pub fn kernarg_segment(kernel: &Kernel, explicit: &[u8]) -> Result<Vec<u8>, LaunchError> {
    let end = kernel.explicit_args().map(|a| a.offset as u64 + a.size as u64).max().unwrap_or(0);
    if end > explicit.len() as u64 {
        return Err(LaunchError::Kernarg { end, given: explicit.len() as u64 });
    }
    let mut kernarg = empty_kernarg(kernel)?;
    let len = explicit.len().min(kernarg.len());
    kernarg[..len].copy_from_slice(&explicit[..len]);
    Ok(kernarg)
}

/// The addresses of a launch's parts.
#[derive(Debug, Clone, Copy)]
pub struct LaunchAddresses {
    /// Load address of the image: the file's address 0.
    pub code: u64,
    /// The kernarg segment.
    pub kernarg: u64,
    /// The dispatch packet.
    pub packet: u64,
    /// The queue; 0 if there is none.
    pub queue: u64,
}

/// Builds the engine's description of a launch. `kernarg` are the contents of the kernarg segment.
pub fn shape(
    kernel: &Kernel,
    shape: &abi::Shape,
    kernarg: &[u8],
    addresses: &LaunchAddresses,
) -> Result<Shape, LaunchError> {
    let items = shape.block.iter().fold(1u64, |n, &d| n.saturating_mul(d as u64));
    if let Some(max_items) = kernel.max_items.filter(|max| items > *max as u64) {
        return Err(LaunchError::Items { block: shape.block, max_items });
    }
    let cluster = match (shape.cluster, kernel.cluster) {
        (Some(given), Some(compiled)) if given != compiled => {
            return Err(LaunchError::Cluster { given, compiled });
        }
        (given, compiled) => given.or(compiled).unwrap_or([1; 3]),
    };
    let text = kernel.text.0;
    let dynamic_stack = if kernel.descriptor.has(descriptor::DYNAMIC_STACK) { DYNAMIC_STACK } else { 0 };
    let scratch = kernel.private_segment().max(dynamic_stack);
    let preloaded = preloaded(kernel, kernarg);
    Ok(Shape {
        grid: shape.grid,
        cluster,
        block: shape.block,
        wave_size: kernel.wave_size(),
        named_barriers: kernel.named_barriers(),
        lds_bytes: round_lds(kernel.group_segment())?.saturating_add(shape.dynamic_lds),
        scratch_bytes: scratch.checked_next_multiple_of(4).unwrap_or(!3),
        registers: kernel.registers(),
        init: abi::initial_state(kernel, addresses.kernarg, addresses.packet, addresses.queue, &preloaded),
        entry_pc: kernel.entry - text + if preloaded.is_empty() { 0 } else { PRELOAD_PROLOGUE },
        code_base: addresses.code.wrapping_add(text),
    })
}

/// Decodes the kernel's program from the relocated image: `len` bytes of code at `address`.
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

/// Size of the code before a program with preloaded arguments, which loads them on hardware without
/// preloading.
const PRELOAD_PROLOGUE: u64 = 256;

/// The dwords of the kernarg segment that are preloaded to SGPRs.
fn preloaded(kernel: &Kernel, kernarg: &[u8]) -> Vec<u32> {
    let Some((first, dwords)) = kernel.preloaded() else { return Vec::new() };
    let dword = |n: u32| {
        let at = (first + 4 * n) as usize;
        kernarg.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    };
    (0..dwords).map(dword).collect()
}

/// Returns the addresses of the bytes of a kernarg segment that belong to no argument of the metadata; none
/// without metadata.
pub fn padding(kernel: &Kernel, kernarg: u64, len: u64) -> Vec<Range<u64>> {
    let Some(args) = &kernel.args else { return Vec::new() };
    let mut ends: Vec<(u64, u64)> =
        args.iter().map(|a| (a.offset as u64, a.offset as u64 + a.size as u64)).collect();
    ends.sort_unstable();
    let (mut at, mut out) = (0, Vec::new());
    for (start, end) in ends.into_iter().chain([(len, len)]) {
        if at < start.min(len) {
            out.push(kernarg + at..kernarg + start.min(len));
        }
        at = at.max(end);
    }
    out
}

/// Fills in hidden arguments, stores kernarg segment and dispatch packet, and decodes the program from the
/// relocated image. `code` is the load address of the file's address 0.
fn finish(
    kernel: &Kernel,
    code: u64,
    mut kernarg: Vec<u8>,
    given: &abi::Shape,
    services: &abi::Services,
    mut memory: Memory,
) -> Result<Prepared, LaunchError> {
    abi::write_hidden_arguments(kernel, given, services, &mut kernarg);
    let kernarg_at = memory.alloc(kernarg.len().next_multiple_of(16).max(16) as u64, 64, "kernarg")?;
    memory.write(kernarg_at, &kernarg)?;
    let packet_at = memory.alloc(64, 64, "dispatch packet")?;
    memory.write(packet_at, &abi::dispatch_packet(given, kernel, kernarg_at))?;
    let addresses = LaunchAddresses { code, kernarg: kernarg_at, packet: packet_at, queue: 0 };
    let shape = shape(kernel, given, &kernarg, &addresses)?;
    let program = program(kernel, shape.code_base, kernel.text.1.len() as u64, &memory)?;
    let modes = abi::modes(&kernel.descriptor);
    let (labels, debug) = (kernel.labels.to_vec(), kernel.debug.clone());
    let padding = padding(kernel, kernarg_at, kernarg.len() as u64);
    let (constant, objects) = (kernel.image.constant(code), ObjectSource::of(kernel, kernarg_at));
    Ok(Prepared {
        labels,
        modes,
        debug,
        padding,
        constant,
        objects,
        ..Prepared::without_names(program, memory, shape)
    })
}

/// Encodes a number for a parameter of `size` bytes: in its type, or, if that is not known, floats as floats and integers
/// as integers. Bit patterns are never converted.
fn number(value: Num, size: u32, dtype: Option<(DType, String)>) -> Result<Vec<u8>, ArgumentError> {
    let value = match (value, dtype) {
        (Num::Int(n), Some((dtype, _))) if dtype.is_float() => Num::Float(n as f64),
        (Num::Float(n), Some((dtype, type_name))) if !dtype.is_float() => {
            if n.fract() != 0.0 || !(-1e18..=1e18).contains(&n) {
                return Err(ArgumentError::Fraction { value, type_name });
            }
            Num::Int(n as i128)
        }
        (value, _) => value,
    };
    let dtype = match (value, size) {
        (Num::Float(_) | Num::Decimal(_), 2) => DType::F16,
        (Num::Float(_) | Num::Decimal(_), 4) => DType::F32,
        (Num::Float(_) | Num::Decimal(_), 8) => DType::F64,
        (Num::Float(_) | Num::Decimal(_), _) => return Err(ArgumentError::Number { value, size }),
        (n, size) => {
            let int = n.as_int().unwrap_or_default();
            let bytes = int.to_le_bytes();
            // The omitted bytes must be copies of the sign.
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

/// Parses an argument of the command line: `f32[1024]=arange(1024)`, `file:x.npy`, `local:4096`, `1000`,
/// `2.5` or `i64=-1`, optionally after a name and a colon. `options` are those of a text kernel's header.
pub fn argument(text: &str, index: usize, options: &Options) -> Result<(String, ArgumentValue)> {
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

fn spec_value(name: &str, spec: &str, options: &Options) -> Result<ArgumentValue> {
    if let Some(path) = spec.strip_prefix("file:") {
        return Ok(ArgumentValue::Buffer(file::npy(Path::new(path), &options.files, None)?));
    }
    if let Some(size) = spec.strip_prefix("local:") {
        return Ok(ArgumentValue::Local(
            size.trim().parse().map_err(|_| anyhow!("`{size}` is not a number of bytes"))?,
        ));
    }
    let mut constants = Constants::default();
    if constants.define(&format!("value={spec}")).is_ok()
        && let Some(n) = constants.get("value")
    {
        return Ok(ArgumentValue::Number(n));
    }
    let mut parser = HeaderParser::new(options);
    let line = format!("{name}: {spec}");
    parser.line(&line, 0, 1).map_err(|wrong| {
        let help = wrong.help.map(|h| format!(" ({h})")).unwrap_or_default();
        anyhow!("{}{help}", wrong.message)
    })?;
    let arg = parser.finish().args.pop().ok_or_else(|| anyhow!("not an argument"))?;
    Ok(if arg.array.shape.is_empty() {
        ArgumentValue::Bytes(arg.array.bytes)
    } else {
        ArgumentValue::Buffer(arg.array)
    })
}
