//! Images of kernels in memory: texels without gaps, as arrays have them, to the arrangement that descriptors
//! describe, and back.

use wavesim_isa::arch::Arch;
use wavesim_machine::exec::image::{self, Image, ImageError, LayoutError, Place, Sampler};
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
    /// Calls `part` for each part of the image with its offset in memory and its length, in the order of arrays: level,
    /// layer, row. Parts are rows of elements of linear images, otherwise elements.
    fn each_part(&self, mut part: impl FnMut(u64, usize)) -> Result<(), LayoutError> {
        let layout = self.image.layout(self.arch)?;
        let (bytes, block) = (self.image.element_bytes() as usize, self.image.block());
        let linear = self.image.sw_mode == 0;
        for level in 0..self.image.levels {
            let size = self.image.level_size(level);
            let columns = if linear { 1 } else { size[0].div_ceil(block) };
            let length = if linear { size[0].div_ceil(block) as usize * bytes } else { bytes };
            for z in 0..self.image.layers * size[2] {
                for y in 0..size[1].div_ceil(block) {
                    for x in 0..columns {
                        for sample in 0..self.image.samples {
                            part(
                                layout.offset(Place { level, x: x * block, y: y * block, z, sample }),
                                length,
                            );
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The bytes of the image in memory, from its elements without gaps.
    pub fn arrange(&self, elements: &[u8]) -> Result<Vec<u8>, LayoutError> {
        let mut out = vec![0; self.image.bytes(self.arch)? as usize];
        let mut from = 0;
        self.each_part(|to, length| {
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
        self.each_part(|from, length| {
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
