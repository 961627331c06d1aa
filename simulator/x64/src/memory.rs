//! Executable memory: written, then made executable, never both.

use crate::compile::{CompileError, Compiled};
use memmap2::{Mmap, MmapMut};

/// The host's pages, on x86-64.
const PAGE: usize = 4096;

/// Code that can be called, until this is dropped.
#[derive(Debug, Default)]
pub struct Memory {
    mappings: Vec<Mmap>,
    bytes: usize,
}

impl Memory {
    /// Without code.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Makes a function executable. What the entry points to is there as long as `self`.
    pub fn add(&mut self, code: Compiled) -> Result<*const u8, CompileError> {
        let failed = |error: std::io::Error| CompileError::Memory(error.to_string());
        // Pages are aligned to more than the constants need.
        let mut mapping = MmapMut::map_anon(code.bytes.len()).map_err(failed)?;
        mapping.copy_from_slice(&code.bytes);
        let mapping = mapping.make_exec().map_err(failed)?;
        let entry = mapping.as_ptr();
        self.bytes += mapping.len().next_multiple_of(PAGE);
        self.mappings.push(mapping);
        Ok(entry)
    }

    /// How many bytes it takes of the host's memory: each function begins on a page.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
