//! Images of kernels in memory: texels without gaps, as arrays have them, to the arrangement that descriptors
//! describe, and back.

use wavesim_isa::arch::Arch;
use wavesim_machine::exec::image::{self, Image, ImageError, LayoutError, Sampler};
use wavesim_machine::memory::{AllocError, Memory};

/// The arrangement of an image in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    /// The image.
    pub image: Image,
    /// The architecture whose rule for the alignment of rows applies.
    pub arch: Arch,
}

/// The reason why an image or a sampler cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// There is no descriptor.
    #[error(transparent)]
    Descriptor(#[from] ImageError),
    /// The memory is full.
    #[error(transparent)]
    Memory(#[from] AllocError),
}

impl Surface {
    /// Calls `row` for each row of elements with its offset in memory, in the order of arrays: level, layer, row.
    fn each_row(&self, mut row: impl FnMut(u64, usize)) -> Result<(), LayoutError> {
        let (bytes, block) = (self.image.element_bytes(), self.image.block());
        let layer_bytes = self.image.layer_bytes(self.arch)?;
        for level in self.image.levels(self.arch)? {
            let length = level.size[0].div_ceil(block) as usize * bytes as usize;
            for layer in 0..self.image.layers as u64 * level.size[2] as u64 {
                for y in 0..level.rows as u64 {
                    row(layer * layer_bytes + level.offset + y * level.row_bytes, length);
                }
            }
        }
        Ok(())
    }

    /// The bytes of the image in memory, from its elements without gaps.
    pub fn arrange(&self, elements: &[u8]) -> Result<Vec<u8>, LayoutError> {
        let mut out = vec![0; self.image.bytes(self.arch)? as usize];
        let mut from = 0;
        self.each_row(|to, length| {
            if let (Some(source), Some(row)) =
                (elements.get(from..from + length), out.get_mut(to as usize..to as usize + length))
            {
                row.copy_from_slice(source);
            }
            from += length;
        })?;
        Ok(out)
    }

    /// The elements without gaps, from the bytes in memory.
    pub fn elements(&self, bytes: &[u8]) -> Result<Vec<u8>, LayoutError> {
        let mut out = Vec::new();
        self.each_row(|from, length| {
            out.extend(bytes.get(from as usize..from as usize + length).unwrap_or_default());
        })?;
        Ok(out)
    }

    /// Stores the descriptor of the image at an address. Returns the address of the descriptor.
    pub fn place_descriptor(
        &self,
        name: &str,
        address: u64,
        memory: &mut Memory,
    ) -> Result<u64, ResourceError> {
        let words = image::descriptor(&self.image, self.arch, address)?;
        Ok(place(&format!("{name} (descriptor)"), &words, memory)?)
    }
}

/// Stores the descriptor of a sampler. Returns its address.
pub fn place_sampler(
    name: &str,
    sampler: &Sampler,
    arch: Arch,
    memory: &mut Memory,
) -> Result<u64, ResourceError> {
    Ok(place(name, &image::sampler_descriptor(sampler, arch)?, memory)?)
}

fn place(name: &str, words: &[u32], memory: &mut Memory) -> Result<u64, AllocError> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let address = memory.alloc(bytes.len() as u64, 64, name)?;
    // The memory was just allocated, so the write cannot fail.
    let written = memory.write(address, &bytes);
    debug_assert!(written.is_ok(), "{name}");
    Ok(address)
}
