//! Executable memory, which is never writable and executable at once.

use crate::compile::Compiled;
use crate::error::CompileError;
use memmap2::{Mmap, MmapMut};

/// The page size of x86-64.
const PAGE: usize = 4096;

/// Owns machine code, which can be called until this is dropped.
#[derive(Debug, Default)]
pub struct Memory {
    mappings: Vec<Mmap>,
    bytes: usize,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Makes a function executable and returns its entry. The entry is valid as long as `self`.
    pub fn add(&mut self, code: Compiled) -> Result<*const u8, CompileError> {
        let failed = |error: std::io::Error| CompileError::Memory(error.to_string());
        // The page alignment exceeds that of the constants.
        let mut mapping = MmapMut::map_anon(code.bytes.len()).map_err(failed)?;
        mapping.copy_from_slice(&code.bytes);
        let mapping = mapping.make_exec().map_err(failed)?;
        let entry = mapping.as_ptr();
        self.bytes += mapping.len().next_multiple_of(PAGE);
        self.mappings.push(mapping);
        Ok(entry)
    }

    /// Returns the size of the mapped memory in bytes; each function begins on a page of its own.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
