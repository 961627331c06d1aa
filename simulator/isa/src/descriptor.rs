//! The kernel descriptor: 64 bytes that say how a kernel's waves start (LLVM AMDGPUUsage, *Kernel Descriptor*).
//! Its fields, by name, for those that read it and those that write it.

/// Size of a kernel descriptor in bytes.
pub const SIZE: usize = 64;

/// A kernel descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor([u8; SIZE]);

/// A field of at most 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Byte of the dword that holds it.
    byte: u8,
    /// Its lowest bit in the dword.
    first: u8,
    /// Its width in bits.
    bits: u8,
}

const fn field(byte: u8, first: u8, bits: u8) -> Field {
    Field { byte, first, bits }
}

/// Bytes of LDS that the kernel declares.
pub const GROUP_SEGMENT_FIXED_SIZE: Field = field(0, 0, 32);
/// Bytes of scratch of a work-item.
pub const PRIVATE_SEGMENT_FIXED_SIZE: Field = field(4, 0, 32);
/// Bytes of the kernarg segment.
pub const KERNARG_SIZE: Field = field(8, 0, 32);
/// COMPUTE_PGM_RSRC3.
pub const RSRC3: Field = field(44, 0, 32);
/// Where accumulation VGPRs begin in the unified file, in groups of 4 registers less one (CDNA).
pub const ACCUM_OFFSET: Field = field(44, 0, 6);
/// COMPUTE_PGM_RSRC1.
pub const RSRC1: Field = field(48, 0, 32);
/// Granules of VGPRs, less one.
pub const VGPR_GRANULES: Field = field(48, 0, 6);
/// Granules of SGPRs, in a unit of 16, less one (CDNA).
pub const SGPR_GRANULES: Field = field(48, 6, 4);
/// Rounding and denormals: the low 8 bits of MODE.
pub const FLOAT_MODE: Field = field(48, 12, 8);
/// DX10_CLAMP (not RDNA 4).
pub const DX10_CLAMP: Field = field(48, 21, 1);
/// IEEE (not RDNA 4).
pub const IEEE_MODE: Field = field(48, 23, 1);
/// The waves of a workgroup share both halves of a processor (WGP mode) instead of one (CU mode).
pub const WGP_MODE: Field = field(48, 29, 1);
/// COMPUTE_PGM_RSRC2.
pub const RSRC2: Field = field(52, 0, 32);
/// Number of user SGPRs.
pub const USER_SGPR_COUNT: Field = field(52, 1, 5);
/// Workgroup ids x, y and z in SGPRs.
pub const WORKGROUP_IDS: [Field; 3] = [field(52, 7, 1), field(52, 8, 1), field(52, 9, 1)];
/// Dimensions of work-item ids in v0, less one.
pub const WORKITEM_ID: Field = field(52, 11, 2);
/// LDS, in granules of 512 bytes (set by the packet processor).
pub const LDS_GRANULES: Field = field(52, 15, 9);
/// What is set up for the kernel, a bit each.
pub const PROPERTIES: Field = field(56, 0, 16);
/// User SGPRs: the address of the dispatch packet.
pub const DISPATCH_PTR: Field = field(56, 1, 1);
/// User SGPRs: the address of the queue.
pub const QUEUE_PTR: Field = field(56, 2, 1);
/// User SGPRs: the address of the kernarg segment.
pub const KERNARG_SEGMENT_PTR: Field = field(56, 3, 1);
/// User SGPRs: the id of the dispatch.
pub const DISPATCH_ID: Field = field(56, 4, 1);
/// A user SGPR: the size of a work-item's scratch.
pub const PRIVATE_SEGMENT_SIZE: Field = field(56, 6, 1);
/// Waves of 32 lanes.
pub const WAVEFRONT_SIZE32: Field = field(56, 10, 1);
/// The code calls functions whose need of scratch is not known.
pub const DYNAMIC_STACK: Field = field(56, 11, 1);
/// Dwords of kernel arguments that are preloaded into SGPRs.
pub const KERNARG_PRELOAD_LENGTH: Field = field(56, 16, 7);
/// Dword of the kernarg segment at which they begin.
pub const KERNARG_PRELOAD_OFFSET: Field = field(56, 23, 9);

impl Field {
    /// Bits of this field.
    pub const fn part(self, first: u8, bits: u8) -> Field {
        assert!(first + bits <= self.bits, "the part is within the field");
        Field { byte: self.byte, first: self.first + first, bits }
    }

    /// The greatest value.
    pub const fn max(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}

impl Descriptor {
    /// All fields 0.
    pub const ZERO: Descriptor = Descriptor([0; SIZE]);

    /// The value of a field.
    pub fn get(&self, field: Field) -> u32 {
        let at = field.byte as usize;
        let dword = u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]]);
        dword >> field.first & field.max()
    }

    /// Whether a field is not 0.
    pub fn has(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// Sets a field; bits of `value` beyond its width are dropped.
    pub fn set(&mut self, field: Field, value: u32) {
        let at = field.byte as usize;
        let dword = u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]]);
        let mask = field.max() << field.first;
        let dword = dword & !mask | value << field.first & mask;
        self.0[at..at + 4].copy_from_slice(&dword.to_le_bytes());
    }

    /// Bytes from the descriptor to the kernel's first instruction.
    pub fn entry_offset(&self) -> i64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[16..24]);
        i64::from_le_bytes(bytes)
    }

    /// Sets [`Descriptor::entry_offset`].
    pub fn set_entry_offset(&mut self, offset: i64) {
        self.0[16..24].copy_from_slice(&offset.to_le_bytes());
    }

    /// The bytes, as in a code object.
    pub fn bytes(&self) -> &[u8; SIZE] {
        &self.0
    }
}

impl From<[u8; SIZE]> for Descriptor {
    fn from(bytes: [u8; SIZE]) -> Descriptor {
        Descriptor(bytes)
    }
}
