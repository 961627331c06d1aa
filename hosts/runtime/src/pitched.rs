//! Copies of 2D and 3D regions of bytes whose rows and slices have a pitch.

use crate::ffi::Memory;

/// A copy of `depth` slices of `height` rows of `width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// The destination.
    pub to: Pitched,
    /// The source.
    pub from: Pitched,
    /// Bytes per row.
    pub width: usize,
    /// Rows per slice.
    pub height: usize,
    /// Number of slices.
    pub depth: usize,
}

/// Memory with a row pitch and a slice pitch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pitched {
    /// The first byte of the first row.
    pub at: Memory,
    /// Distance between rows in bytes; 0 for a single row.
    pub pitch: usize,
    /// Distance between slices in bytes; 0 for a single slice.
    pub slice: usize,
}

impl Pitched {
    /// Returns contiguous memory: a single row.
    pub fn linear(at: Memory) -> Pitched {
        Pitched { at, pitch: 0, slice: 0 }
    }

    /// Returns memory with rows at a distance of `pitch` bytes.
    pub fn rows(at: Memory, pitch: usize) -> Pitched {
        Pitched { at, pitch, slice: 0 }
    }

    /// Returns the address of a row.
    pub fn row(&self, slice: usize, row: usize) -> Memory {
        self.at.offset(slice.wrapping_mul(self.slice).wrapping_add(row.wrapping_mul(self.pitch)))
    }

    /// Returns the number of bytes from the first to the last byte of a region of this size.
    pub fn extent(&self, width: usize, height: usize, depth: usize) -> usize {
        if width == 0 || height == 0 || depth == 0 {
            return 0;
        }
        let slices = (depth - 1).saturating_mul(self.slice);
        slices.saturating_add((height - 1).saturating_mul(self.pitch)).saturating_add(width)
    }
}

impl Copy {
    /// Returns a copy of `len` contiguous bytes.
    pub fn linear(to: Memory, from: Memory, len: usize) -> Copy {
        Copy { to: Pitched::linear(to), from: Pitched::linear(from), width: len, height: 1, depth: 1 }
    }

    /// Returns the addresses of all rows: destination and source.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let rows = (0..self.depth).flat_map(|slice| (0..self.height).map(move |row| (slice, row)));
        rows.map(|(slice, row)| (self.to.row(slice, row).address(), self.from.row(slice, row).address()))
    }

    /// Performs the copy.
    ///
    /// # Safety
    /// All rows of both sides are memory of the program or of the device.
    pub unsafe fn run(&self) {
        for slice in 0..self.depth {
            for row in 0..self.height {
                let (to, from) = (self.to.row(slice, row), self.from.row(slice, row));
                // SAFETY: the caller guarantees that the rows are valid.
                unsafe { to.copy_from(from, self.width) };
            }
        }
    }
}
