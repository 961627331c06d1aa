//! Where the texels of an image are in memory.

use super::{Image, Level};
use crate::arch::Arch;
use isa_spec::arith::tiling::{self, Tile};

/// The reason why an image has no layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The architecture has no images.
    #[error("{0} has no image instructions")]
    NoImages(&'static str),
    /// The format is none of images that are supported.
    #[error("format {0} is not supported for images")]
    Format(u32),
    /// A size is zero.
    #[error("an image with a size of 0")]
    Empty,
    /// A pitch that the descriptor cannot hold.
    #[error("only images with one layer and one level can have a pitch of their own")]
    Pitch,
    /// The architecture has no such mode, or not for this image.
    #[error(
        "{arch} has no layout {mode} (sw_mode) for {samples} samples of {bytes} bytes in images of this dimension"
    )]
    Mode {
        /// The architecture.
        arch: &'static str,
        /// The field `sw_mode`.
        mode: u32,
        /// Samples of a texel.
        samples: u32,
        /// Bytes of an element.
        bytes: u32,
    },
    /// The layout has places for small levels that are not public.
    #[error(
        "where the small levels of an image with layout {0} (sw_mode) are is not known: give it one level"
    )]
    Tail(u32),
    /// Several samples are in images of two dimensions with one level.
    #[error("only images of two dimensions with one level can have several samples, and these are 2, 4 or 8")]
    Samples,
}

/// The place of a texel: level of detail, column, row, layer or slice in depth, and sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Place {
    pub level: u32,
    pub x: u32,
    pub y: u32,
    pub z: u32,
    pub sample: u32,
}

/// The layout of an image.
#[derive(Debug, Clone)]
pub struct Layout {
    kind: LayoutKind,
    /// Texels in each direction of an element.
    block: u32,
    /// Bytes of an element.
    element_bytes: u64,
    /// The size of the image in bytes.
    pub bytes: u64,
    /// Multiples of this many bytes are addresses that the image can have.
    pub alignment: u64,
}

#[derive(Debug, Clone)]
enum LayoutKind {
    Linear { levels: Vec<Level>, layer_bytes: u64 },
    Tiled { table: u32, key: u32, tile: &'static Tile, levels: Vec<TiledLevel>, slice_blocks: u64 },
}

/// A level in blocks.
#[derive(Debug, Clone)]
struct TiledLevel {
    /// The first block, in a slice of blocks.
    first: u64,
    /// Blocks in a row.
    pitch: u64,
    /// The first column and row of elements in the block, in the tail.
    origin: [u32; 2],
}

impl Image {
    /// The layout in memory.
    ///
    /// # Errors
    /// The architecture has none for the image.
    pub fn layout(&self, arch: Arch) -> Result<Layout, LayoutError> {
        let (block, element_bytes) = (self.block(), self.element_bytes() as u64);
        if self.sw_mode == 0 {
            if self.samples != 1 {
                return Err(self.no_mode(arch));
            }
            let (levels, layer_bytes) = (self.levels(arch)?, self.layer_bytes(arch)?);
            let bytes = layer_bytes * self.layers as u64 * self.size[2] as u64;
            let kind = LayoutKind::Linear { levels, layer_bytes };
            return Ok(Layout { kind, block, element_bytes, bytes, alignment: 256 });
        }
        self.tiled(arch)
    }

    fn no_mode(&self, arch: Arch) -> LayoutError {
        let (mode, samples, bytes) = (self.sw_mode, self.samples, self.element_bytes());
        LayoutError::Mode { arch: arch.name(), mode, samples, bytes }
    }

    /// The layout in blocks (AMD's address library; `pseudocode/image/tiled.pcode` computes the same of a descriptor).
    fn tiled(&self, arch: Arch) -> Result<Layout, LayoutError> {
        self.check()?;
        let table = arch.facts().image_tiling.ok_or(LayoutError::NoImages(arch.name()))?;
        let (bytes, block) = (self.element_bytes(), self.block());
        if self.pitch.is_some() {
            return Err(LayoutError::Pitch);
        }
        let several = self.samples != 1;
        let flat = matches!(self.dimension, super::Dimension::D2 | super::Dimension::D2Array);
        if several && (!flat || self.levels != 1 || !matches!(self.samples, 2 | 4 | 8)) {
            return Err(LayoutError::Samples);
        }
        if !bytes.is_power_of_two() || self.sw_mode > 31 {
            return Err(self.no_mode(arch));
        }
        let depth = self.dimension == super::Dimension::D3;
        let key = tiling::key(self.sw_mode, depth, self.samples.ilog2(), bytes.ilog2());
        let tile = tiling::tile(table, key).ok_or_else(|| self.no_mode(arch))?;
        let size = [self.size[0].div_ceil(block), self.size[1].div_ceil(block)];
        let blocks =
            |level: u32| [0, 1].map(|k| size[k].div_ceil(1 << level).div_ceil(1 << tile.size[k]) as u64);
        // The tail comes first, then levels from the smallest on.
        let tail = (0..self.levels).find(|level| self.is_in_tail(tile, size, *level));
        if tail.is_some() && !tile.tail {
            return Err(LayoutError::Tail(self.sw_mode));
        }
        let mut next = u64::from(tail.is_some());
        let mut levels = Vec::new();
        for level in (0..self.levels).rev() {
            if let Some(first) = tail.filter(|first| level >= *first) {
                let index = tail_levels(tile) - 1 - (level - first);
                let offset = if index > 6 { 16 << index } else { index << 8 };
                let origin = [spread(offset >> 9), spread(offset >> 8)];
                let unit = tail_unit(tile);
                let origin = [origin[0] << unit[0], origin[1] << unit[1]];
                levels.push(TiledLevel { first: 0, pitch: 0, origin });
            } else {
                let [columns, rows] = blocks(level);
                levels.push(TiledLevel { first: next, pitch: columns, origin: [0, 0] });
                next += columns * rows;
            }
        }
        levels.reverse();
        let slices = (self.layers * self.size[2]).div_ceil(1 << tile.size[2]) as u64;
        let alignment = 1 << tile.bits();
        let kind = LayoutKind::Tiled { table, key, tile, levels, slice_blocks: next };
        Ok(Layout { kind, block, element_bytes: bytes as u64, bytes: slices * next * alignment, alignment })
    }

    /// Whether a level shares the first block with all smaller ones.
    fn is_in_tail(&self, tile: &Tile, size: [u32; 2], level: u32) -> bool {
        // The largest level has half of a block.
        let mut most = [tile.size[0], tile.size[1]];
        match (tile.size[2] == 0, tile.bits() % 3) {
            (false, 0) => most[1] -= 1,
            _ => most[0] -= 1,
        }
        if tile.depth_order {
            most[0] -= u32::from(tile.bytes <= 1);
            most[1] -= u32::from(tile.bytes == 0);
        }
        let fits = [0, 1].iter().all(|k| size[*k].div_ceil(1 << level) <= 1 << most[*k]);
        self.levels > 1 && fits && self.levels - level <= tail_levels(tile)
    }
}

/// The most levels in the tail.
fn tail_levels(tile: &Tile) -> u32 {
    let bits = tile.bits();
    let area = if tile.size[2] == 0 { bits } else { bits - (bits - 8) / 3 };
    match area {
        _ if bits <= 8 => 0,
        ..=11 => 1 + (1 << (area - 9)),
        _ => area - 4,
    }
}

/// The logarithms of width and height of 256 bytes of elements, the unit of places in the tail.
fn tail_unit(tile: &Tile) -> [u32; 2] {
    let log = tile.bytes;
    match tile.size[2] {
        0 => [4 - log / 2, 4 - log.div_ceil(2)],
        _ => [3 - u32::from(log > 0) - u32::from(log > 3), 2 - u32::from(log > 2)],
    }
}

/// Every second bit, from bit 0 on.
fn spread(offset: u32) -> u32 {
    (0..5).map(|bit| (offset >> (2 * bit) & 1) << bit).sum()
}

impl Layout {
    /// The offset in bytes of the element with a texel, which must be in the image.
    pub fn offset(&self, place: Place) -> u64 {
        let Place { level, x, y, z, sample } = place;
        let (x, y) = (x / self.block, y / self.block);
        match &self.kind {
            LayoutKind::Linear { levels, layer_bytes } => {
                let level = &levels[level as usize];
                z as u64 * layer_bytes
                    + level.offset
                    + y as u64 * level.row_bytes
                    + x as u64 * self.element_bytes
            }
            LayoutKind::Tiled { table, key, tile, levels, slice_blocks } => {
                let level = &levels[level as usize];
                let [columns, rows, depth] = tile.size;
                let block = (z >> depth) as u64 * slice_blocks
                    + level.first
                    + (y >> rows) as u64 * level.pitch
                    + if level.pitch == 0 { 0 } else { (x >> columns) as u64 };
                let place = tiling::place(x + level.origin[0], y + level.origin[1], z, sample);
                (block << tile.bits()) + tiling::tile_offset(*table, *key, place) as u64
            }
        }
    }
}
