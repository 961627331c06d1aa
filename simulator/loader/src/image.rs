//! The loadable bytes of a code object and their relocations, as applied by a runtime (LLVM AMDGPUUsage,
//! *Relocation Records*).

use super::error::LoadError;
use object::{
    Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, SegmentFlags,
    elf,
};
use std::ops::Range;
use wavesim_assembler::relocation::kind;
use wavesim_machine::memory::{AllocError, MemError, Memory};

/// Maximum size of an image in bytes, far above real images: a corrupt size must not exhaust the host's
/// memory.
const MAX_IMAGE: u64 = 1 << 32;
/// Maximum number of relocations, for the same reason.
const MAX_RELOCATIONS: usize = 1 << 20;

/// A loadable image. Addresses are the file's; the image is position-independent.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// Loadable segments in the order of the program headers.
    pub segments: Vec<Segment>,
    /// Relocations to apply once the image has an address.
    pub relocations: Vec<Relocation>,
}

/// A segment of the image; `data` is followed by zeros.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Virtual address of the first byte.
    pub address: u64,
    /// The contents in the file, starting at `address`.
    pub data: Vec<u8>,
    /// Size in memory in bytes, at least the length of `data`.
    pub size: u64,
    /// Whether the program may store to the segment.
    pub writable: bool,
}

/// A value to write once the image has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Virtual address of the field.
    pub at: u64,
    /// Size of the field in bytes: 4 or 8.
    pub bytes: u32,
    /// Symbol plus addend, less `at` if relative; before [`Relocation::from_base`] and [`Relocation::high`]
    /// are applied.
    pub value: u64,
    /// Whether the value is an address in the image, to which the load address is added.
    pub from_base: bool,
    /// Whether to write the high half of the value.
    pub high: bool,
}

impl Image {
    /// Reads the image of a file of `len` bytes.
    pub fn read(file: &object::File, len: usize) -> Result<Image, LoadError> {
        let mut image = Image::default();
        // Segments may share bytes of the file, but their total size is limited.
        let mut room = len.saturating_mul(4);
        for s in file.segments() {
            let (address, size) = (s.address(), s.size());
            if address.checked_add(size).is_none_or(|end| end > MAX_IMAGE) {
                return Err(LoadError::Bad(format!("a segment of {size} bytes at 0x{address:x}")));
            }
            let data = s.data()?;
            let data = &data[..data.len().min(size as usize)];
            room = room.checked_sub(data.len()).ok_or_else(|| {
                LoadError::Bad("its segments are many times larger than the file".to_string())
            })?;
            let flags = match s.flags() {
                SegmentFlags::Elf { p_flags } => p_flags,
                _ => elf::PF_W,
            };
            let writable = flags & elf::PF_W != 0;
            image.segments.push(Segment { address, data: data.to_vec(), size, writable });
        }
        image.relocations = relocations(file)?;
        Ok(image)
    }

    /// The size from address 0 of the file to the end of the image.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|s| s.address + s.size).max().unwrap_or(0)
    }

    /// Returns the addresses of the segments to which a program may not store, given the load address.
    pub fn constant(&self, base: u64) -> Vec<Range<u64>> {
        let constant = self.segments.iter().filter(|s| !s.writable);
        constant.map(|s| base + s.address..base + s.address + s.size).collect()
    }

    /// Returns `len` bytes of the file's contents.
    pub fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.segments.iter().find_map(|s| {
            let at = usize::try_from(address.checked_sub(s.address)?).ok()?;
            s.data.get(at..)?.get(..len)
        })
    }

    /// Allocates memory for the image, writes and relocates it. Returns the load address, which is the file's
    /// address 0.
    pub fn load(&self, memory: &mut Memory) -> Result<u64, LoadImageError> {
        let base = memory.alloc(self.size(), 4096, "code object")?;
        self.write_to(base, memory)?;
        Ok(base)
    }

    /// Writes the image to zeroed memory of its size, and relocates it.
    pub fn write_to(&self, base: u64, memory: &Memory) -> Result<(), LoadImageError> {
        for s in &self.segments {
            memory.write(base + s.address, &s.data)?;
        }
        for r in &self.relocations {
            let value = if r.from_base { base.wrapping_add(r.value) } else { r.value };
            let value = if r.high { value >> 32 } else { value };
            let at = base.checked_add(r.at).ok_or(LoadImageError::Relocation(r.at))?;
            memory.store_value(at, r.bytes, value as u128).map_err(|_| LoadImageError::Relocation(r.at))?;
        }
        Ok(())
    }
}

/// The reason why an image cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadImageError {
    /// The image does not fit global memory.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A segment is outside of the memory reserved for the image.
    #[error(transparent)]
    Memory(#[from] MemError),
    /// A relocation's field, at this address, is outside of the image.
    #[error("a relocation of the code object at 0x{0:x} is outside its image")]
    Relocation(u64),
}

/// Dynamic relocations, which the linker leaves to the loader.
fn relocations(file: &object::File) -> Result<Vec<Relocation>, LoadError> {
    let mut out = Vec::new();
    for (at, relocation) in file.dynamic_relocations().into_iter().flatten().take(MAX_RELOCATIONS) {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let symbol = match relocation.target() {
            RelocationTarget::Symbol(index) => symbol(file, index)?,
            _ => None,
        };
        let value = symbol.unwrap_or(0).wrapping_add(relocation.addend() as u64);
        let absolute = |bytes, high| Relocation { at, bytes, value, from_base: symbol.is_some(), high };
        let relative = |bytes, high| Relocation {
            value: value.wrapping_sub(at),
            from_base: false,
            ..absolute(bytes, high)
        };
        out.push(match r_type {
            kind::NONE => continue,
            kind::ABS32_LO | kind::ABS32 => absolute(4, false),
            kind::ABS32_HI => absolute(4, true),
            kind::ABS64 => absolute(8, false),
            kind::REL32 | kind::REL32_LO => relative(4, false),
            kind::REL32_HI => relative(4, true),
            kind::REL64 => relative(8, false),
            kind::RELATIVE64 => Relocation { from_base: true, ..absolute(8, false) },
            _ => return Err(LoadError::Relocation { r_type, at }),
        });
    }
    Ok(out)
}

/// The address of a symbol; `None` for an undefined weak symbol, which has the value 0.
fn symbol(file: &object::File, index: object::SymbolIndex) -> Result<Option<u64>, LoadError> {
    let table = file.dynamic_symbol_table().ok_or_else(|| LoadError::Bad("no dynamic symbols".into()))?;
    let symbol = table.symbol_by_index(index)?;
    if symbol.is_undefined() {
        let name = symbol.name().unwrap_or("?").to_string();
        return if symbol.is_weak() { Ok(None) } else { Err(LoadError::Undefined(name)) };
    }
    Ok(Some(symbol.address()))
}
