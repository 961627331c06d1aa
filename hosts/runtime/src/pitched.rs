//! Copies between boxes of bytes, whose rows are apart in memory.

use crate::ffi::Memory;

/// Rows of bytes: `width` bytes, `height` rows, `depth` slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Where rows go.
    pub to: Pitched,
    /// Where they come from.
    pub from: Pitched,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// Memory whose rows are `pitch` bytes apart, and whose slices `slice` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pitched {
    /// The first byte of the first row.
    pub at: Memory,
    /// Bytes from a row to the next; 0 where there is one row.
    pub pitch: usize,
    /// Bytes from a slice to the next; 0 where there is one slice.
    pub slice: usize,
}

impl Pitched {
    /// Bytes one after the other.
    pub fn linear(at: Memory) -> Pitched {
        Pitched { at, pitch: 0, slice: 0 }
    }

    /// Rows of `pitch` bytes.
    pub fn rows(at: Memory, pitch: usize) -> Pitched {
        Pitched { at, pitch, slice: 0 }
    }

    /// The first byte of a row.
    pub fn row(&self, slice: usize, row: usize) -> Memory {
        self.at.offset(slice.wrapping_mul(self.slice).wrapping_add(row.wrapping_mul(self.pitch)))
    }

    /// Bytes from the first to the last of such a box.
    pub fn extent(&self, width: usize, height: usize, depth: usize) -> usize {
        if width == 0 || height == 0 || depth == 0 {
            return 0;
        }
        let slices = (depth - 1).saturating_mul(self.slice);
        slices.saturating_add((height - 1).saturating_mul(self.pitch)).saturating_add(width)
    }
}

impl Copy {
    /// `len` bytes.
    pub fn linear(to: Memory, from: Memory, len: usize) -> Copy {
        Copy { to: Pitched::linear(to), from: Pitched::linear(from), width: len, height: 1, depth: 1 }
    }

    /// Copies.
    pub fn run(&self) {
        for slice in 0..self.depth {
            for row in 0..self.height {
                self.to.row(slice, row).copy_from(self.from.row(slice, row), self.width);
            }
        }
    }
}
