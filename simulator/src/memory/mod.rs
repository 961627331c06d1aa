//! Global memory: address ranges with access rights, over owned bytes or borrowed host memory.
//!
//! One concrete type rather than a trait: a guest address is looked up in a short sorted list of ranges, the last hit first;
//! owned spaces and host ranges differ only in who frees the bytes. So the memory handlers exist once.

use std::cell::UnsafeCell;

/// Where an access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemError {
    pub address: u64,
    pub size_bytes: u32,
    pub write: bool,
    pub misaligned: bool,
}

/// Global memory.
pub struct Memory {
    ranges: Vec<Range>,
    /// Bump allocator of the owned space: next free address.
    next: u64,
}

struct Range {
    base: u64,
    len: u64,
    host: *mut u8,
    writable: bool,
    /// Keeps owned bytes alive.
    _owned: Option<Box<[UnsafeCell<u8>]>>,
}
