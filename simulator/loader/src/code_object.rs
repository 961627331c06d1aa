//! HSA code objects (LLVM AMDGPUUsage, *Code Object V5*): image, kernel descriptor, metadata.

use super::bundle;
use super::image::Image;
use super::line_table::LineTable;
pub use super::metadata::Arg;
use super::metadata::{self, metadata};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};
use std::borrow::Cow;
use std::fmt;
use wavesim_engine::sched::dispatch::{Registers, vgpr_granule};
use wavesim_isa::arch::Arch;
use wavesim_isa::descriptor::{self, Descriptor};

/// Why a file is not a code object with the kernel wanted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum LoadError {
    /// It does not parse as ELF.
    #[error("not a code object: {0}")]
    Elf(#[from] object::Error),
    /// It is something else that is recognised, named with its article: "this is …".
    #[error("this is {0}")]
    Foreign(String),
    /// The ELF header names a processor that is not simulated.
    #[error("processor 0x{0:02x} of e_flags is none of rdna3, rdna3.5, rdna4, cdna3, cdna4")]
    Processor(u32),
    /// No descriptor `name.kd`; `has` lists the kernels that there are.
    #[error("no kernel `{name}`; the code object has {has}")]
    NoKernel { name: String, has: String },
    /// The bundle has nothing for the target wished for; `has` lists its targets.
    #[error("no code object for {wish} in the bundle; it has {has}")]
    NotInBundle { wish: String, has: String },
    /// A launch file names a target, and its code object is for another architecture.
    #[error("the code object is for {object}, not {wish}")]
    Target { object: &'static str, wish: String },
    /// The ABI version of the ELF header is none of code object versions 3 to 6, which are known.
    #[error("code object version {0}: versions 3 to 6 are known")]
    Version(String),
    /// A relocatable file, as compilers give it before linking.
    #[error("an object file that is not linked (`ld.lld -shared` links it)")]
    NotLinked,
    /// A relocation needs this symbol, which is neither defined nor weak.
    #[error("`{0}` is defined nowhere in the code object")]
    Undefined(String),
    /// The dynamic relocation at address `at` is of a type that is not supported.
    #[error("relocation type {r_type} at 0x{at:x} is unknown")]
    Relocation { r_type: u32, at: u64 },
    /// Its parts contradict each other; the text says which.
    #[error("bad code object: {0}")]
    Bad(String),
}

/// The section that holds the code.
pub const TEXT: &str = ".text";

/// A kernel of a code object.
pub struct Kernel {
    /// Whose instructions it has.
    pub arch: Arch,
    /// All that is loaded for it, with its descriptor.
    pub image: Image,
    /// `.text` by virtual address.
    pub text: (u64, Vec<u8>),
    /// Virtual address of the entry.
    pub entry: u64,
    /// How its waves start.
    pub descriptor: Descriptor,
    /// Of the metadata; `None` where there is none, as in hand-written assembly.
    pub args: Option<Vec<Arg>>,
    /// Work-items of a workgroup, where the metadata says so (`.reqd_workgroup_size`).
    pub block: Option<[u32; 3]>,
    /// The most work-items of a workgroup, likewise (`.max_flat_workgroup_size`).
    pub max_items: Option<u32>,
    /// `.vgpr_count` and `.sgpr_count` of the metadata, likewise.
    pub counts: [Option<u32>; 2],
    /// Names of places in `.text`, by offset there.
    pub labels: Vec<(String, u64)>,
    /// Source lines by virtual address, where the file has debug information.
    pub lines: LineTable,
}

impl Kernel {
    /// The arguments that the kernel's source has, as far as metadata lists them.
    pub fn explicit(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().flatten().filter(|a| !a.kind.starts_with("hidden_"))
    }
}

impl Kernel {
    /// Static LDS of a workgroup in bytes.
    pub fn group_segment(&self) -> u32 {
        self.descriptor.get(descriptor::GROUP_SEGMENT_FIXED_SIZE)
    }

    /// Scratch of a work-item in bytes.
    pub fn private_segment(&self) -> u32 {
        self.descriptor.get(descriptor::PRIVATE_SEGMENT_FIXED_SIZE)
    }

    /// Size of the kernarg segment in bytes.
    pub fn kernarg_size(&self) -> u32 {
        self.descriptor.get(descriptor::KERNARG_SIZE)
    }

    /// Lanes of a wave.
    pub fn wave_size(&self) -> u32 {
        if self.descriptor.has(descriptor::WAVEFRONT_SIZE32) { 32 } else { 64 }
    }

    /// Registers of a wave: VGPRs as the descriptor has them, in granules of 8 (wave32) or 4, or as the metadata says more exactly. SGPRs
    /// are not in the descriptor: the processors allocate all of them, so that only what the metadata declares is left to hold a kernel to.
    pub fn registers(&self) -> Registers {
        let [vgprs, sgprs] = self.counts;
        if self.arch.is_cdna() {
            return self.cdna_registers(vgprs, sgprs);
        }
        let granule = vgpr_granule(self.wave_size());
        let allocated = (self.descriptor.get(descriptor::VGPR_GRANULES) + 1) * granule;
        let exact = vgprs.filter(|n| n.max(&1).next_multiple_of(granule) == allocated);
        let most = Registers::ALL;
        Registers {
            vgprs: exact.unwrap_or(allocated).min(most.vgprs as u32) as u16,
            sgprs: sgprs.map_or(most.sgprs, |n| n.min(most.sgprs as u32) as u16),
        }
    }
}

impl Kernel {
    /// CDNA's unified file holds VGPRs, then accumulation VGPRs from ACCUM_OFFSET on (AMDGPUUsage, *compute_pgm_rsrc3 for GFX90A*).
    fn cdna_registers(&self, vgprs: Option<u32>, sgprs: Option<u32>) -> Registers {
        let allocated = (self.descriptor.get(descriptor::VGPR_GRANULES) + 1) * 8;
        let accumulation = (self.descriptor.get(descriptor::ACCUM_OFFSET) + 1) * 4;
        let exact = vgprs.filter(|n| n.max(&1).next_multiple_of(8) == allocated);
        let most = Registers::ALL;
        Registers {
            vgprs: exact.unwrap_or(allocated).min(accumulation).min(most.vgprs as u32) as u16,
            sgprs: sgprs.map_or(most.sgprs, |n| n.min(most.sgprs as u32) as u16),
        }
    }

    /// Kernel arguments that the hardware has loaded when the wave starts: the first byte in the segment and the number of dwords. A
    /// program for which it does that starts 256 bytes later (AMDGPUUsage, *Preloaded Kernel Arguments*).
    pub fn preloaded(&self) -> Option<(u32, u32)> {
        let dwords = self.descriptor.get(descriptor::KERNARG_PRELOAD_LENGTH);
        let first = self.descriptor.get(descriptor::KERNARG_PRELOAD_OFFSET);
        (self.arch.is_cdna() && dwords > 0).then_some((first * 4, dwords))
    }
}

/// Which code object of a file that has several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// By LLVM's name; this or [`Wish::arch`] or neither.
    pub processor: Option<String>,
    /// Any processor of this architecture.
    pub arch: Option<Arch>,
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.processor, self.arch) {
            (Some(processor), _) => write!(f, "{processor}"),
            (None, Some(arch)) => write!(f, "{}", arch.name()),
            (None, None) => write!(f, "any target of this simulator"),
        }
    }
}

/// The code object in a file: its own bytes, or out of a bundle.
pub fn open<'a>(bytes: &'a [u8], wish: &Wish) -> Result<Cow<'a, [u8]>, LoadError> {
    let object = bundle::pick(bytes, wish)?;
    match foreign(&object) {
        Some(what) => Err(LoadError::Foreign(what)),
        None => Ok(object),
    }
}

/// Whether a file's first bytes say that it is a code object or holds some; other files may be words.
pub fn is_object(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF_MAGIC) || bundle::is_bundle(bytes)
}

/// What a file is that is certainly neither code of a GPU nor a container of some that can be opened here, and what makes such a thing of it.
pub fn foreign(bytes: &[u8]) -> Option<String> {
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

/// Files that toolchains make beside code objects, by their first bytes.
const FOREIGN: [(&[u8], &str); 5] = [
    (b"BC\xc0\xde", "LLVM bitcode (`clang -target amdgcn-amd-amdhsa -mcpu=…` compiles it)"),
    (b"!<arch>\n", "an archive (`ar x` takes it apart)"),
    (b"!<thin>\n", "an archive that names its files"),
    (
        &[0x10, 0xff, 0x10, 0xad],
        "an offload package (`clang-offload-packager --image=file=…` takes it apart)",
    ),
    (&[0xcf, 0xfa, 0xed, 0xfe], "a Mach-O file"),
];

/// EM_AMDGPU.
const MACHINE: [u8; 2] = [0xe0, 0];

/// Whether these bytes begin like a code object.
pub fn is_amdgpu(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF_MAGIC) && bytes.get(18..20) == Some(&MACHINE)
}

/// Refuses what is not a code object, or cannot be run as it is. The version is in the ELF header (AMDGPUUsage, *ELF Header*: ELFABIVERSION_AMDGPU_HSA).
fn check(bytes: &[u8], file: &object::File) -> Result<(), LoadError> {
    if let Some(what) = foreign(bytes) {
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

/// Names of the kernels in a code object.
pub fn kernels(bytes: &[u8]) -> Result<Vec<String>, LoadError> {
    let file = object::File::parse(bytes)?;
    let mut names: Vec<String> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter_map(|s| s.name().ok().and_then(|n| n.strip_suffix(".kd")).map(str::to_string))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// A variable of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The symbol's name, mangled as the compiler left it.
    pub name: String,
    /// In the image.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// What a module has beside its kernels: the image that they share, and the variables in it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Whose instructions it has.
    pub arch: Arch,
    /// All that is loaded, kernels among it.
    pub image: Image,
    /// Address in the image and size of `.text`.
    pub text: (u64, u64),
    /// By name.
    pub variables: Vec<Variable>,
    /// Formats of OpenCL's `printf`: number, sizes of arguments, text (`amdhsa.printf`).
    pub printf: Vec<String>,
}

/// Reads the image and the variables of a code object.
pub fn module(bytes: &[u8]) -> Result<Module, LoadError> {
    let file = object::File::parse(bytes)?;
    check(bytes, &file)?;
    let mut variables: Vec<Variable> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|s| s.kind() == SymbolKind::Data && !s.is_undefined())
        .filter_map(|s| {
            let name = s.name().ok().filter(|n| !n.is_empty() && !n.ends_with(".kd"))?;
            Some(Variable { name: name.to_string(), address: s.address(), size: s.size() })
        })
        .collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables.dedup_by(|a, b| a.name == b.name);
    let text = file.section_by_name(TEXT).map_or((0, 0), |text| (text.address(), text.size()));
    let note = file.section_by_name(".note").map(|note| note.data()).transpose()?;
    let printf = note.map(metadata::printf_formats).unwrap_or_default();
    Ok(Module { arch: arch_of(&file)?, image: Image::read(&file, bytes.len())?, text, variables, printf })
}

/// The architecture that the ELF header's flags name.
pub fn arch_of(file: &object::File) -> Result<Arch, LoadError> {
    let flags = match file.flags() {
        object::FileFlags::Elf { e_flags, .. } => e_flags & 0xff,
        _ => return Err(LoadError::Bad("not ELF".into())),
    };
    Arch::from_mach(flags).ok_or(LoadError::Processor(flags))
}

/// Reads a kernel with the image around it.
///
/// # Errors
/// No code object for a simulated processor, no such kernel, or a damaged file.
pub fn load(bytes: &[u8], kernel: &str) -> Result<Kernel, LoadError> {
    let file = object::File::parse(bytes)?;
    check(bytes, &file)?;
    let arch = arch_of(&file)?;
    let name = format!("{kernel}.kd");
    let symbol = file.dynamic_symbols().chain(file.symbols()).find(|s| s.name() == Ok(name.as_str()));
    let Some(symbol) = symbol else {
        let names: Vec<String> = kernels(bytes)?.iter().map(|n| format!("`{n}`")).collect();
        return Err(LoadError::NoKernel { name: kernel.into(), has: names.join(", ") });
    };
    let image = Image::read(&file, bytes.len())?;
    let at = symbol.address();
    let outside = || LoadError::Bad(format!("the descriptor at 0x{at:x} is in no segment"));
    let bytes: [u8; descriptor::SIZE] =
        image.bytes(at, descriptor::SIZE).and_then(|b| b.try_into().ok()).ok_or_else(outside)?;
    let descriptor = Descriptor::from(bytes);
    let entry = at.wrapping_add_signed(descriptor.entry_offset());
    let text = file.section_by_name(TEXT).ok_or_else(|| LoadError::Bad("no .text".into()))?;
    let within = entry.checked_sub(text.address()).is_some_and(|at| at < text.size());
    if !within {
        return Err(LoadError::Bad(format!("the entry at 0x{entry:x} is not in .text")));
    }
    // Hand-written assembly may come without metadata: then the descriptor is all that is known.
    let note = file.section_by_name(".note").map(|note| note.data()).transpose()?;
    let (args, block, max_items, counts) = match note.filter(|note| !note.is_empty()) {
        Some(note) => {
            let found =
                metadata(note, kernel).ok_or_else(|| LoadError::Bad("metadata of the kernel".into()))?;
            (Some(found.args), found.block, found.max_items, [found.vgprs, found.sgprs])
        }
        None => (None, None, None, [None; 2]),
    };
    let mut labels: Vec<(String, u64)> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter_map(|s| {
            let offset = s.address().checked_sub(text.address()).filter(|at| *at < text.size())?;
            Some((s.name().ok().filter(|n| !n.is_empty())?.to_string(), offset))
        })
        .collect();
    labels.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    labels.dedup();
    let lines = LineTable::read(&file, text.address()..text.address().saturating_add(text.size()));
    let text = (text.address(), text.data()?.to_vec());
    Ok(Kernel { arch, text, entry, descriptor, image, args, block, max_items, counts, labels, lines })
}
