//! Contiguous ranges of code: a program's own, and those of other code objects.

/// A contiguous range of code.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// Byte offset of its first byte in the program.
    pub(super) start: u64,
    /// Index of the operation at each dword; `u32::MAX` inside an instruction.
    pub(super) by_dword: Vec<u32>,
}

impl Code {
    /// The byte offset after it.
    pub(super) fn end(&self) -> u64 {
        self.start + self.by_dword.len() as u64 * 4
    }

    /// Returns the index of the operation at a byte offset; out of bounds inside an instruction.
    #[inline(always)]
    pub(super) fn index(&self, pc: u64) -> Option<usize> {
        let offset = pc.wrapping_sub(self.start);
        if !offset.is_multiple_of(4) {
            return None;
        }
        self.by_dword.get((offset / 4) as usize).map(|index| *index as usize)
    }
}

/// A linked range of code.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) code: Code,
    /// The address of its first byte in listings.
    pub(super) base: u64,
    /// The address less the byte offset of each of its instructions.
    pub(super) code_base: u64,
}

impl Linked {
    pub(super) fn contains(&self, pc: u64) -> bool {
        (self.code.start..self.code.end()).contains(&pc)
    }
}
