//! HSA code objects (LLVM AMDGPUUsage, *Code Object V5*): image, kernel descriptor, metadata.

use super::bundle;
pub use super::bundle::TargetRequest;
use super::debug_info::DebugInfo;
pub use super::error::LoadError;
use super::image::Image;
use super::kernel_name::demangled;
use super::line_table::LineTable;
pub use super::metadata::Arg;
use super::metadata::{KernelMetadata, Notes};
use super::parameters::{self, Parameter};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use wavesim_engine::sched::dispatch::Registers;
use wavesim_isa::arch::Arch;
use wavesim_isa::descriptor::{self, Descriptor};
use wavesim_machine::exec::linked::CallableCode;
use wavesim_machine::memory::{MemError, Memory};
use wavesim_machine::state::barrier::NAMED_BARRIERS;

/// The code section.
pub const TEXT: &str = ".text";

/// A kernel of a code object.
pub struct Kernel {
    /// The architecture of the code.
    pub arch: Arch,
    /// The loadable image, which contains the descriptor.
    pub image: Arc<Image>,
    /// Virtual address and contents of `.text`.
    pub text: (u64, Arc<[u8]>),
    /// Virtual address of the entry point.
    pub entry: u64,
    /// The kernel descriptor, which specifies the initial state of waves.
    pub descriptor: Descriptor,
    /// Arguments according to the metadata; `None` without metadata, as in hand-written assembly.
    pub args: Option<Vec<Arg>>,
    /// The required workgroup size, if the metadata specifies one (`.reqd_workgroup_size`).
    pub block: Option<[u32; 3]>,
    /// The workgroups of a cluster per dimension, if the metadata specifies them (`.cluster_dims`).
    pub cluster: Option<[u32; 3]>,
    /// The maximum number of work-items per workgroup, if specified (`.max_flat_workgroup_size`).
    pub max_items: Option<u32>,
    /// `.vgpr_count` and `.sgpr_count` of the metadata, if specified.
    pub counts: [Option<u32>; 2],
    /// Whether the kernel may call functions that its code object does not have.
    pub calls_unknown: bool,
    /// Size of the kernarg segment in bytes: the descriptor's, or `.kernarg_segment_size` of the metadata.
    kernarg_size: u32,
    /// Symbols in `.text` with their offsets.
    pub labels: Arc<[(String, u64)]>,
    /// Source lines by virtual address, if the file has debug information.
    pub lines: Arc<LineTable>,
    /// Functions, variables and types, if the file has debug information.
    pub debug: Arc<DebugInfo>,
    /// Variables of the file in global memory.
    pub variables: Arc<[Variable]>,
    /// What [`Kernel::parameters`] has found.
    parameters: OnceLock<Vec<Parameter>>,
}

impl Kernel {
    /// The explicit arguments, as far as the metadata lists them.
    pub fn explicit_args(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().flatten().filter(|a| !a.kind.starts_with("hidden_"))
    }

    /// The parameters of the explicit arguments, with names and types as far as the file has them.
    pub fn parameters(&self) -> &[Parameter] {
        let args = || self.explicit_args().collect::<Vec<_>>();
        self.parameters.get_or_init(|| parameters::of_kernel(&args(), &self.debug, self.entry))
    }
}

impl Kernel {
    /// Static LDS per workgroup in bytes.
    pub fn group_segment(&self) -> u32 {
        self.descriptor.get(descriptor::GROUP_SEGMENT_FIXED_SIZE)
    }

    /// Scratch per work-item in bytes.
    pub fn private_segment(&self) -> u32 {
        self.descriptor.get(descriptor::PRIVATE_SEGMENT_FIXED_SIZE)
    }

    /// Size of the kernarg segment in bytes.
    pub fn kernarg_size(&self) -> u32 {
        self.kernarg_size
    }

    /// The wave size.
    pub fn wave_size(&self) -> u32 {
        if self.descriptor.has(descriptor::WAVEFRONT_SIZE32) { 32 } else { 64 }
    }

    /// Number of named barriers of a workgroup: the descriptor's, or all where it has no number.
    pub fn named_barriers(&self) -> u32 {
        match self.arch.facts().descriptor.named_barriers {
            true => 4 * self.descriptor.get(descriptor::NAMED_BARRIERS),
            false => NAMED_BARRIERS as u32,
        }
    }

    /// Number of registers per wave. The descriptor stores VGPRs in granules of the architecture; the
    /// metadata may have the exact number. SGPRs are not in the descriptor, since the processors always
    /// allocate all of them, so only the metadata's count limits a kernel.
    pub fn registers(&self) -> Registers {
        let [vgprs, sgprs] = self.counts;
        let rules = &self.arch.facts().descriptor;
        let granule = rules.vgpr_granule[usize::from(self.wave_size() == 64)];
        let allocated = (self.descriptor.get(descriptor::VGPR_GRANULES) + 1) * granule;
        let exact = vgprs.filter(|n| n.max(&1).next_multiple_of(granule) == allocated);
        let total = exact.unwrap_or(allocated);
        // Accumulation VGPRs follow from ACCUM_OFFSET on (AMDGPUUsage, *compute_pgm_rsrc3 for GFX90A*).
        let before_accumulation = match rules.accum_offset {
            true => (self.descriptor.get(descriptor::ACCUM_OFFSET) + 1) * 4,
            false => u32::MAX,
        };
        let limit = Registers::ALL;
        Registers {
            vgprs: total.min(before_accumulation).min(limit.vgprs as u32) as u16,
            accumulation: total.saturating_sub(before_accumulation).min(limit.accumulation as u32) as u16,
            sgprs: sgprs.map_or(limit.sgprs, |n| n.min(limit.sgprs as u32) as u16),
        }
    }

    /// Kernel arguments that the hardware preloads: offset in the kernarg segment in bytes, and number of
    /// dwords. With preloading, the program starts 256 bytes later (AMDGPUUsage, *Preloaded Kernel
    /// Arguments*).
    pub fn preloaded(&self) -> Option<(u32, u32)> {
        let dwords = self.descriptor.get(descriptor::KERNARG_PRELOAD_LENGTH);
        let first = self.descriptor.get(descriptor::KERNARG_PRELOAD_OFFSET);
        (self.arch.facts().descriptor.preloads_kernarg && dwords > 0).then_some((first * 4, dwords))
    }
}

/// Returns the code object in a file: the file itself, or an entry of a bundle.
pub fn open<'a>(bytes: &'a [u8], request: &TargetRequest) -> Result<Cow<'a, [u8]>, LoadError> {
    let object = bundle::select(bytes, request)?;
    match describe_foreign(&object) {
        Some(what) => Err(LoadError::Foreign(what)),
        None => Ok(object),
    }
}

/// Returns whether the first bytes identify a code object or a bundle; other files may be raw words.
pub fn is_object(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF_MAGIC) || bundle::is_bundle(bytes)
}

/// Describes a file that is certainly neither GPU code nor a container that can be opened here, with the tool
/// that converts it.
pub fn describe_foreign(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(ELF_MAGIC) && !is_amdgpu(bytes) {
        let machine = object::File::parse(bytes).map(|file| file.architecture());
        let machine = match machine {
            Ok(object::Architecture::Unknown) | Err(_) => "another machine".to_string(),
            Ok(machine) => format!("{machine:?}"),
        };
        return Some(format!("an ELF file for {machine}, not for an AMD GPU, and has no bundle in it"));
    }
    let format = FOREIGN.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|f| f.1);
    format.map(str::to_string)
}

const ELF_MAGIC: &[u8] = b"\x7fELF";

/// Other files that toolchains produce, by their first bytes.
const FOREIGN: [(&[u8], &str); 5] = [
    (b"BC\xc0\xde", "LLVM bitcode (`clang -target amdgcn-amd-amdhsa -mcpu=…` compiles it)"),
    (b"!<arch>\n", "an archive (`ar x` extracts it)"),
    (b"!<thin>\n", "an archive that names its files"),
    (&[0x10, 0xff, 0x10, 0xad], "an offload package (`clang-offload-packager --image=file=…` extracts it)"),
    (&[0xcf, 0xfa, 0xed, 0xfe], "a Mach-O file"),
];

/// ELFABIVERSION_AMDGPU_HSA_V5.
const ABI_VERSION_5: u8 = 3;

/// EM_AMDGPU.
const MACHINE: [u8; 2] = [0xe0, 0];

/// Returns whether the bytes start like a code object.
pub fn is_amdgpu(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF_MAGIC) && bytes.get(18..20) == Some(&MACHINE)
}

/// Rejects files that are not code objects or cannot run as they are. The version is in the ELF header
/// (AMDGPUUsage, *ELF Header*: ELFABIVERSION_AMDGPU_HSA).
fn check(bytes: &[u8], file: &object::File) -> Result<(), LoadError> {
    if let Some(what) = describe_foreign(bytes) {
        return Err(LoadError::Foreign(what));
    }
    match bytes.get(8) {
        Some(1..=4) => {}
        Some(0) => return Err(LoadError::Version("2 or unknown".into())),
        other => {
            return Err(LoadError::Version(other.map_or("unknown".into(), |v| (*v as u32 + 2).to_string())));
        }
    }
    if file.kind() == ObjectKind::Relocatable {
        return Err(LoadError::NotLinked);
    }
    Ok(())
}

/// The names of the kernels in a code object.
pub fn kernels(bytes: &[u8]) -> Result<Vec<String>, LoadError> {
    Ok(descriptors(&object::File::parse(bytes)?).into_keys().collect())
}

/// Maximum number of names in a message. Code objects of libraries have thousands of kernels.
const MAX_NAMES: usize = 10;
/// Maximum length in bytes of a name that is compared with the others.
const MAX_COMPARED: usize = 100;

/// Lists names for a message, at most ten of them: the one that is most like the name that was asked for, if
/// any is, and the first others.
pub fn some_of(names: &[String], asked: &str) -> String {
    // Longer names are generated, not typed. An edit distance to each of a library's would take seconds.
    let is_typed = asked.len() <= MAX_COMPARED;
    let nearest =
        is_typed.then(|| isa_spec::diag::nearest(asked, names.iter().map(String::as_str))).flatten();
    let others = names.iter().map(String::as_str).filter(|name| Some(*name) != nearest);
    let shown: Vec<String> = nearest.into_iter().chain(others).take(MAX_NAMES).map(shown_name).collect();
    match names.len() - shown.len() {
        _ if names.is_empty() => "none".to_string(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns a name as the source has it, with the symbol if that is another one.
fn shown_name(symbol: &str) -> String {
    let name = demangled(symbol);
    if name == symbol { format!("`{name}`") } else { format!("`{name}` ({symbol})") }
}

/// A variable of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The symbol name, as mangled by the compiler.
    pub name: String,
    /// Address in the image.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

/// The parts of a module that its kernels share: the image, and the variables in it.
#[derive(Debug, Clone)]
pub struct Module {
    /// The architecture of the code.
    pub arch: Arch,
    /// The loadable image, including the kernels.
    pub image: Arc<Image>,
    /// Address and size of `.text` in the image.
    pub text: (u64, u64),
    /// Variables sorted by name.
    pub variables: Arc<[Variable]>,
    /// Format strings of OpenCL's `printf`: number, argument sizes, text (`amdhsa.printf`).
    pub printf: Vec<String>,
}

/// Reads the image and the variables of a code object.
///
/// # Errors
/// The file is damaged, or is not a code object for a simulated processor.
pub fn module(bytes: &[u8]) -> Result<Module, LoadError> {
    let file = object::File::parse(bytes)?;
    check(bytes, &file)?;
    module_of(&file, bytes.len(), &notes(&file)?)
}

fn module_of(file: &object::File, file_bytes: usize, notes: &Notes) -> Result<Module, LoadError> {
    let mut variables: Vec<Variable> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|s| s.kind() == SymbolKind::Data && !s.is_undefined())
        .filter_map(|s| {
            let name = s.name().ok().filter(|n| !n.is_empty() && !n.ends_with(DESCRIPTOR))?;
            Some(Variable { name: name.to_string(), address: s.address(), size: s.size() })
        })
        .collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables.dedup_by(|a, b| a.name == b.name);
    let text = file.section_by_name(TEXT).map_or((0, 0), |text| (text.address(), text.size()));
    let (printf, image) = (notes.printf_formats(), Arc::new(Image::read(file, file_bytes)?));
    Ok(Module { arch: arch_of(file)?, image, text, variables: variables.into(), printf })
}

/// Finds the metadata.
fn notes<'a>(file: &object::File<'a>) -> Result<Notes<'a>, LoadError> {
    let mut notes = Notes::default();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Note) {
        notes.add_section(section.data()?);
    }
    Ok(notes)
}

/// The architecture specified by the ELF header's flags.
pub fn arch_of(file: &object::File) -> Result<Arch, LoadError> {
    let flags = match file.flags() {
        object::FileFlags::Elf { e_flags, .. } => e_flags & 0xff,
        _ => return Err(LoadError::Bad("not ELF".into())),
    };
    Arch::from_mach(flags).ok_or(LoadError::Processor(flags))
}

/// A code object that has been read. Its kernels share what they have in common, so that reading all of them
/// takes no longer than reading the file.
#[derive(Debug, Clone)]
pub struct CodeObject {
    /// The image and the variables.
    pub module: Module,
    /// The contents of `.text`; `None` if there is no such section.
    text: Option<Arc<[u8]>>,
    /// Addresses and contents of the descriptors by the names of the kernels; no contents outside of the image.
    descriptors: BTreeMap<String, (u64, Option<[u8; descriptor::SIZE]>)>,
    /// The metadata of the kernels; `None` without metadata, as in hand-written assembly.
    metadata: Option<BTreeMap<String, KernelMetadata>>,
    labels: Arc<[(String, u64)]>,
    /// Addresses of the code of functions other than kernels, sorted; adjacent ones as one range.
    functions: Vec<Range<u64>>,
    /// Whether descriptors say which kernels call functions that the compiler does not know, as since version 5.
    declares_calls: bool,
    lines: Arc<LineTable>,
    debug: Arc<DebugInfo>,
}

impl CodeObject {
    /// Reads a code object.
    ///
    /// # Errors
    /// The file is damaged, or is not a code object for a simulated processor.
    pub fn read(bytes: &[u8]) -> Result<CodeObject, LoadError> {
        let file = object::File::parse(bytes)?;
        check(bytes, &file)?;
        CodeObject::of(bytes, &file, descriptors(&file))
    }

    /// Reads a code object, but only these kernels of it.
    fn of(
        bytes: &[u8],
        file: &object::File,
        descriptors: BTreeMap<String, u64>,
    ) -> Result<CodeObject, LoadError> {
        let notes = notes(file)?;
        let module = module_of(file, bytes.len(), &notes)?;
        let metadata = (!notes.is_empty()).then(|| notes.kernels(|name| descriptors.contains_key(name)));
        let (address, size) = module.text;
        let mut labels: Vec<(String, u64)> = file
            .dynamic_symbols()
            .chain(file.symbols())
            .filter_map(|s| {
                let offset = s.address().checked_sub(address).filter(|at| *at < size)?;
                Some((s.name().ok().filter(|n| !n.is_empty())?.to_string(), offset))
            })
            .collect();
        labels.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        labels.dedup();
        let functions = functions(file, address..address.saturating_add(size), &descriptors);
        let addresses = address..address.saturating_add(size);
        let lines = Arc::new(LineTable::read(file, addresses.clone()));
        let debug = Arc::new(DebugInfo::read(file, addresses));
        let text = file.section_by_name(TEXT).map(|text| text.data()).transpose()?.map(Arc::from);
        let contents = |at| module.image.bytes(at, descriptor::SIZE).and_then(|b| b.try_into().ok());
        let descriptors = descriptors.into_iter().map(|(name, at)| (name, (at, contents(at)))).collect();
        let declares_calls = bytes.get(8).is_some_and(|version| *version >= ABI_VERSION_5);
        let labels = labels.into();
        Ok(CodeObject {
            module,
            text,
            descriptors,
            metadata,
            labels,
            functions,
            declares_calls,
            lines,
            debug,
        })
    }

    /// Drops the contents of the image and of `.text`, once they have been loaded: its kernels have the addresses.
    pub fn without_contents(mut self) -> CodeObject {
        let mut image = Arc::unwrap_or_clone(self.module.image);
        image.segments.iter_mut().for_each(|segment| segment.data = Vec::new());
        self.module.image = Arc::new(image);
        self.text = self.text.map(|_| Arc::default());
        self
    }

    /// Returns whether code of other code objects can call functions of this one by their addresses.
    pub fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Returns the code of functions other than kernels, in memory where the image is at `image`.
    pub fn callable_code(&self, image: u64, memory: &Memory) -> Result<Vec<CallableCode>, MemError> {
        let read = |range: &Range<u64>| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let address = image.wrapping_add(range.start);
            memory.read(address, &mut bytes)?;
            Ok(CallableCode { address, base: range.start, bytes })
        };
        self.functions.iter().map(read).collect()
    }

    /// The source lines by address.
    pub fn lines(&self) -> &LineTable {
        &self.lines
    }

    /// The names of the kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.descriptors.keys().map(String::as_str)
    }

    /// Whether there is a kernel of this name.
    pub fn has_kernel(&self, name: &str) -> bool {
        self.descriptors.contains_key(name)
    }

    /// Returns a kernel.
    ///
    /// # Errors
    /// There is no such kernel, or its descriptor or its metadata is damaged.
    pub fn kernel(&self, name: &str) -> Result<Kernel, LoadError> {
        let Some(&(at, bytes)) = self.descriptors.get(name) else {
            let names: Vec<String> = self.kernels().map(str::to_string).collect();
            return Err(LoadError::NoKernel { name: name.into(), available: some_of(&names, name) });
        };
        let outside = || LoadError::Bad(format!("the descriptor at 0x{at:x} is in no segment"));
        let descriptor = Descriptor::from(bytes.ok_or_else(outside)?);
        let entry = at.wrapping_add_signed(descriptor.entry_offset());
        let text = self.text.clone().ok_or_else(|| LoadError::Bad("no .text".into()))?;
        let (address, size) = self.module.text;
        if entry.checked_sub(address).is_none_or(|at| at >= size) {
            return Err(LoadError::Bad(format!("the entry at 0x{entry:x} is not in .text")));
        }
        // Hand-written assembly may lack metadata; only the descriptor is available then.
        let none = || LoadError::Bad(format!("its metadata does not describe kernel `{name}`"));
        let found = self.metadata.as_ref().map(|all| all.get(name).ok_or_else(none)).transpose()?;
        // Hand-written kernels may leave the size to the metadata.
        let kernarg_size = match descriptor.get(descriptor::KERNARG_SIZE) {
            0 => found.and_then(|found| found.kernarg_size).unwrap_or(0),
            size => size,
        };
        Ok(Kernel {
            arch: self.module.arch,
            image: self.module.image.clone(),
            text: (address, text),
            entry,
            descriptor,
            args: found.map(|found| found.args.clone()),
            block: found.and_then(|found| found.block),
            // LLVM writes 0 for "no clusters".
            cluster: found.and_then(|found| found.cluster).filter(|dims| !dims.contains(&0)),
            max_items: found.and_then(|found| found.max_items),
            counts: found.map_or([None; 2], |found| [found.vgprs, found.sgprs]),
            calls_unknown: !self.declares_calls || descriptor.has(descriptor::DYNAMIC_STACK),
            kernarg_size,
            labels: self.labels.clone(),
            lines: self.lines.clone(),
            debug: self.debug.clone(),
            variables: self.module.variables.clone(),
            parameters: OnceLock::new(),
        })
    }
}

/// Returns the addresses of the code of functions that are not kernels, within `text`.
fn functions(file: &object::File, text: Range<u64>, descriptors: &BTreeMap<String, u64>) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
        .filter(|s| s.name().is_ok_and(|name| !descriptors.contains_key(name)))
        .map(|s| s.address()..s.address().saturating_add(s.size()))
        .filter(|code| text.start <= code.start && code.end <= text.end && code.start.is_multiple_of(4))
        .collect();
    found.sort_by_key(|code| (code.start, code.end));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for code in found {
        match joined.last_mut() {
            Some(last) if code.start <= last.end => last.end = last.end.max(code.end),
            _ => joined.push(code),
        }
    }
    joined
}

/// The suffix of the symbols of kernel descriptors.
const DESCRIPTOR: &str = ".kd";

/// Returns the addresses of the descriptors by the names of the kernels. Dynamic symbols come first.
fn descriptors(file: &object::File) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        if let Some(name) = symbol.name().ok().and_then(|name| name.strip_suffix(DESCRIPTOR)) {
            found.entry(name.to_string()).or_insert(symbol.address());
        }
    }
    found
}

/// Loads one kernel. [`CodeObject`] loads several.
///
/// # Errors
/// The file is damaged, is not a code object for a simulated processor, or has no such kernel.
pub fn load(bytes: &[u8], kernel: &str) -> Result<Kernel, LoadError> {
    let file = object::File::parse(bytes)?;
    check(bytes, &file)?;
    arch_of(&file)?;
    let mut descriptors = descriptors(&file);
    if !descriptors.contains_key(kernel) {
        let names: Vec<String> = descriptors.into_keys().collect();
        return Err(LoadError::NoKernel { name: kernel.into(), available: some_of(&names, kernel) });
    }
    descriptors.retain(|name, _| name == kernel);
    CodeObject::of(bytes, &file, descriptors)?.kernel(kernel)
}
