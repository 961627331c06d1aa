//! A code object's loaded bytes and their relocations, as a runtime puts them into memory (LLVM AMDGPUUsage, *Relocation Records*).

use super::code_object::LoadError;
use object::{Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget};
use wavesim_asm::link::kind;
use wavesim_machine::memory::{AllocError, MemError, Memory};

/// Bytes of a loaded image at most: nothing real comes near, and a damaged size must not take the host's memory.
const MAX_IMAGE: u64 = 1 << 32;
/// Relocations at most, likewise.
const MAX_RELOCATIONS: usize = 1 << 20;

/// What is loaded. Addresses are the file's: the image goes anywhere.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// Loadable segments in the order of the program headers.
    pub segments: Vec<Segment>,
    /// What to write once the image has an address.
    pub relocations: Vec<Relocation>,
}

/// A part of the image; after `data`, zeros.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Virtual address of the first byte.
    pub address: u64,
    /// What the file has of it, from `address` on.
    pub data: Vec<u8>,
    /// Bytes in memory, at least as many as `data` has.
    pub size: u64,
}

/// A number to write where the image is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Virtual address of the number.
    pub at: u64,
    /// 4 or 8.
    pub bytes: u32,
    /// Symbol plus addend, less `at` if relative to its place; before [`Relocation::from_base`] and [`Relocation::high`] are applied.
    pub value: u64,
    /// The value is an address in the image.
    pub from_base: bool,
    /// The high half of the value is wanted.
    pub high: bool,
}

impl Image {
    /// Of a file of `len` bytes.
    pub fn read(file: &object::File, len: usize) -> Result<Image, LoadError> {
        let mut image = Image::default();
        // Segments may share bytes of the file, but not all of them with each other.
        let mut room = len.saturating_mul(4);
        for s in file.segments() {
            let (address, size) = (s.address(), s.size());
            if address.checked_add(size).is_none_or(|end| end > MAX_IMAGE) {
                return Err(LoadError::Bad(format!("a segment of {size} bytes at 0x{address:x}")));
            }
            let data = s.data()?;
            let data = &data[..data.len().min(size as usize)];
            room = room.checked_sub(data.len()).ok_or_else(|| {
                LoadError::Bad("its segments have many times the bytes of the file".to_string())
            })?;
            image.segments.push(Segment { address, data: data.to_vec(), size });
        }
        image.relocations = relocations(file)?;
        Ok(image)
    }

    /// Bytes from address 0 of the file to the image's end.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|s| s.address + s.size).max().unwrap_or(0)
    }

    /// `len` bytes as the file has them.
    pub fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.segments.iter().find_map(|s| {
            let at = usize::try_from(address.checked_sub(s.address)?).ok()?;
            s.data.get(at..)?.get(..len)
        })
    }

    /// Puts the image into memory and relocates it; gives where the file's address 0 is.
    pub fn map(&self, memory: &mut Memory) -> Result<u64, MapImageError> {
        let base = memory.alloc(self.size(), 4096, "code object")?;
        self.place(base, memory)?;
        Ok(base)
    }

    /// Writes the image to memory that is zeroed and has its size, and relocates it there.
    pub fn place(&self, base: u64, memory: &Memory) -> Result<(), MapImageError> {
        for s in &self.segments {
            memory.write(base + s.address, &s.data)?;
        }
        for r in &self.relocations {
            let value = if r.from_base { base.wrapping_add(r.value) } else { r.value };
            let value = if r.high { value >> 32 } else { value };
            let at = base.checked_add(r.at).ok_or(MapImageError::Relocation(r.at))?;
            memory.store_value(at, r.bytes, value as u128).map_err(|_| MapImageError::Relocation(r.at))?;
        }
        Ok(())
    }
}

/// Why an image is not in memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapImageError {
    /// Global memory has no room for it.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A segment is outside of the memory that it was to be placed in.
    #[error(transparent)]
    Memory(#[from] MemError),
    /// This address of a relocation is outside of the image.
    #[error("a relocation of the code object at 0x{0:x} is outside its image")]
    Relocation(u64),
}

/// Dynamic relocations: those that a linker leaves to the loader.
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

/// The symbol's address; `None` for a weak one that nothing defines: it counts as 0.
fn symbol(file: &object::File, index: object::SymbolIndex) -> Result<Option<u64>, LoadError> {
    let table = file.dynamic_symbol_table().ok_or_else(|| LoadError::Bad("no dynamic symbols".into()))?;
    let symbol = table.symbol_by_index(index)?;
    if symbol.is_undefined() {
        let name = symbol.name().unwrap_or("?").to_string();
        return if symbol.is_weak() { Ok(None) } else { Err(LoadError::Undefined(name)) };
    }
    Ok(Some(symbol.address()))
}
