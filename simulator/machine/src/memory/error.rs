//! What goes wrong with memory: an access, an allocation, a range of the host.

/// Where an access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of {size_bytes} bytes at 0x{address:x} is outside every buffer", if *write { "store" } else { "load" })]
pub struct MemError {
    /// First byte of the access, as the instruction computed it.
    pub address: u64,
    /// Bytes of the access.
    pub size_bytes: u32,
    /// It was a store, or an atomic.
    pub write: bool,
}

/// Why an allocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// The allocation `name` needs `wanted` bytes; of the `total`, only `left` are free.
    #[error(
        "{name} needs {wanted} bytes but {left} of {total} bytes of global memory are free (--global-memsize MB sets the size)"
    )]
    Full { name: String, wanted: u64, left: u64, total: u64 },
    /// The allocation `name` asks for an alignment (in bytes) that no address in the space has.
    #[error("{name}: an alignment of {align} bytes is beyond what memory has")]
    Alignment { name: String, align: u64 },
    /// The host refused memory of so many bytes.
    #[error("the host has no {bytes} bytes for global memory")]
    Host { bytes: u64 },
}

/// Why a host range cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// `base + len` exceeds 2^64.
    #[error("{len} bytes at 0x{base:x} run beyond the end of the address space")]
    Wraps { base: u64, len: u64 },
    /// Another range has some of these addresses.
    #[error("{len} bytes at 0x{base:x} overlap the {other_len} bytes at 0x{other:x}")]
    Overlap { base: u64, len: u64, other: u64, other_len: u64 },
}
