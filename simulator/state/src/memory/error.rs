//! Errors of global memory: failed accesses, allocations and host mappings.

/// A failed access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of {size_bytes} bytes at 0x{address:x} is outside every buffer", if *write { "store" } else { "load" })]
pub struct MemError {
    /// First byte of the access, as the instruction computed it.
    pub address: u64,
    /// Size of the access.
    pub size_bytes: u32,
    /// The access was a store or an atomic.
    pub write: bool,
}

/// The reason why an allocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// The allocation `name` needs `wanted` bytes, but only `left` of the `total` are free.
    #[error(
        "{name} needs {wanted} bytes but {left} of {total} bytes of global memory are free (--global-memsize MB sets the size)"
    )]
    Full { name: String, wanted: u64, left: u64, total: u64 },
    /// The allocation `name` requests an alignment (in bytes) that no address in the space has.
    #[error("{name}: an alignment of {align} bytes is not possible")]
    Alignment { name: String, align: u64 },
    /// The host could not provide this many bytes.
    #[error("the host has no {bytes} bytes for global memory")]
    Host { bytes: u64 },
}

/// The reason why a host range cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// `base + len` exceeds 2^64.
    #[error("{len} bytes at 0x{base:x} run beyond the end of the address space")]
    Wraps { base: u64, len: u64 },
    /// The range overlaps another one.
    #[error("{len} bytes at 0x{base:x} overlap the {other_len} bytes at 0x{other:x}")]
    Overlap { base: u64, len: u64, other: u64, other_len: u64 },
}
