//! HSA code objects (LLVM AMDGPUUsage, *Code Object V5*): image, kernel descriptor, metadata.

use crate::arch::Arch;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("not a code object: {0}")]
    Elf(#[from] object::Error),
    #[error("processor 0x{0:02x} of e_flags is none of rdna3, rdna3.5, rdna4")]
    Processor(u32),
    #[error("no kernel `{name}`; the code object has {has}")]
    NoKernel { name: String, has: String },
    #[error("bad code object: {0}")]
    Bad(String),
}

/// A kernel of a code object.
pub struct Kernel {
    pub arch: Arch,
    /// Loaded segments: virtual address and bytes.
    pub segments: Vec<(u64, Vec<u8>)>,
    /// `.text` by virtual address.
    pub text: (u64, Vec<u8>),
    /// Virtual address of the entry.
    pub entry: u64,
    pub group_segment: u32,
    pub private_segment: u32,
    pub rsrc1: u32,
    pub rsrc2: u32,
    /// Enables of user SGPRs.
    pub properties: u16,
    pub kernarg_size: u32,
    pub args: Vec<Arg>,
}

/// An argument of the metadata.
#[derive(Debug, Clone)]
pub struct Arg {
    /// `.name`, which compilers may leave out.
    pub name: Option<String>,
    pub kind: String,
    pub offset: u32,
    pub size: u32,
}

/// `e_flags`' processor numbers (LLVM AMDGPUUsage, *AMDGPU Processors*: EF_AMDGPU_MACH).
fn processor(mach: u32) -> Option<Arch> {
    Some(match mach {
        0x41 | 0x44 | 0x46 | 0x47 => Arch::Rdna3,
        0x43 | 0x4a | 0x55 | 0x58 => Arch::Rdna35,
        0x48 | 0x4e => Arch::Rdna4,
        _ => return None,
    })
}

/// Bytes of a loaded image at most: nothing real comes near, and a damaged size must not take the host's memory.
const MAX_IMAGE: u64 = 1 << 30;

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

/// The architecture that the ELF header's flags name.
pub fn arch_of(file: &object::File) -> Result<Arch, LoadError> {
    let flags = match file.flags() {
        object::FileFlags::Elf { e_flags, .. } => e_flags & 0xff,
        _ => return Err(LoadError::Bad("not ELF".into())),
    };
    processor(flags).ok_or(LoadError::Processor(flags))
}

pub fn load(bytes: &[u8], kernel: &str) -> Result<Kernel, LoadError> {
    let file = object::File::parse(bytes)?;
    let arch = arch_of(&file)?;
    let descriptor = format!("{kernel}.kd");
    let symbol = file.dynamic_symbols().chain(file.symbols()).find(|s| s.name() == Ok(descriptor.as_str()));
    let Some(symbol) = symbol else {
        let names: Vec<String> = kernels(bytes)?.iter().map(|n| format!("`{n}`")).collect();
        return Err(LoadError::NoKernel { name: kernel.into(), has: names.join(", ") });
    };
    let segments: Vec<(u64, Vec<u8>)> = file
        .segments()
        .map(|s| {
            let mut data = s.data()?.to_vec();
            if s.size() > MAX_IMAGE || s.address() > MAX_IMAGE {
                return Err(LoadError::Bad(format!(
                    "a segment of {} bytes at 0x{:x}",
                    s.size(),
                    s.address()
                )));
            }
            data.resize(s.size() as usize, 0);
            Ok((s.address(), data))
        })
        .collect::<Result<_, LoadError>>()?;
    let at = symbol.address();
    let kd = segments
        .iter()
        .find_map(|(base, data)| data.get(at.checked_sub(*base)? as usize..)?.get(..64))
        .ok_or_else(|| LoadError::Bad(format!("the descriptor at 0x{at:x} is in no segment")))?;
    let u32_at = |o: usize| u32::from_le_bytes([kd[o], kd[o + 1], kd[o + 2], kd[o + 3]]);
    let entry = at.wrapping_add(u32_at(16) as u64 | (u32_at(20) as u64) << 32);
    let text = file.section_by_name(".text").ok_or_else(|| LoadError::Bad("no .text".into()))?;
    let within = entry.checked_sub(text.address()).is_some_and(|at| at < text.size());
    if !within {
        return Err(LoadError::Bad(format!("the entry at 0x{entry:x} is not in .text")));
    }
    // Hand-written assembly may come without metadata: then the descriptor is all that is known.
    let args = match file.section_by_name(".note") {
        Some(note) => {
            arguments(note.data()?, kernel).ok_or_else(|| LoadError::Bad("metadata of the kernel".into()))?
        }
        None => Vec::new(),
    };
    Ok(Kernel {
        arch,
        text: (text.address(), text.data()?.to_vec()),
        entry,
        group_segment: u32_at(0),
        private_segment: u32_at(4),
        kernarg_size: u32_at(8),
        rsrc1: u32_at(48),
        rsrc2: u32_at(52),
        properties: u16::from_le_bytes([kd[56], kd[57]]),
        segments,
        args,
    })
}

/// The kernel's `.args` out of the note (owner `AMDGPU`, MessagePack).
fn arguments(note: &[u8], kernel: &str) -> Option<Vec<Arg>> {
    let word = |o: usize| Some(u32::from_le_bytes(note.get(o..o + 4)?.try_into().ok()?) as usize);
    let start = 12 + word(0)?.next_multiple_of(4);
    let mut payload = note.get(start..start + word(4)?)?;
    let root = rmpv::decode::read_value(&mut payload).ok()?;
    let get = |v: &rmpv::Value, key: &str| {
        v.as_map()?.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v.clone())
    };
    let kernels = get(&root, "amdhsa.kernels")?;
    let found =
        kernels.as_array()?.iter().find(|k| get(k, ".name").is_some_and(|n| n.as_str() == Some(kernel)))?;
    let Some(args) = get(found, ".args") else { return Some(Vec::new()) };
    args.as_array()?
        .iter()
        .map(|a| {
            Some(Arg {
                name: get(a, ".name").and_then(|n| n.as_str().map(str::to_string)),
                kind: get(a, ".value_kind")?.as_str()?.to_string(),
                offset: get(a, ".offset")?.as_u64()? as u32,
                size: get(a, ".size")?.as_u64()? as u32,
            })
        })
        .collect()
}
