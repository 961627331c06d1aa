//! The kernel descriptor: 64 bytes that specify the initial state of a kernel's waves (LLVM AMDGPUUsage,
//! *Kernel Descriptor*). Named fields serve both readers and writers.

/// Size of a kernel descriptor in bytes.
pub const SIZE: usize = 64;

/// A kernel descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor([u8; SIZE]);

/// A field of at most 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Byte offset of the dword that contains the field.
    byte: u8,
    /// Lowest bit in the dword.
    first: u8,
    /// Width in bits.
    bits: u8,
}

const fn field(byte: u8, first: u8, bits: u8) -> Field {
    Field { byte, first, bits }
}

/// Static LDS per workgroup in bytes.
pub const GROUP_SEGMENT_FIXED_SIZE: Field = field(0, 0, 32);
/// Scratch per work-item in bytes.
pub const PRIVATE_SEGMENT_FIXED_SIZE: Field = field(4, 0, 32);
/// Size of the kernarg segment in bytes.
pub const KERNARG_SIZE: Field = field(8, 0, 32);
/// COMPUTE_PGM_RSRC3.
pub const RSRC3: Field = field(44, 0, 32);
/// Start of the accumulation VGPRs in the unified file, in groups of 4 registers minus one (CDNA).
pub const ACCUM_OFFSET: Field = field(44, 0, 6);
/// COMPUTE_PGM_RSRC1.
pub const RSRC1: Field = field(48, 0, 32);
/// VGPR granules minus one.
pub const VGPR_GRANULES: Field = field(48, 0, 6);
/// SGPR granules of 16 minus one (CDNA).
pub const SGPR_GRANULES: Field = field(48, 6, 4);
/// Rounding and denormals: the low 8 bits of MODE.
pub const FLOAT_MODE: Field = field(48, 12, 8);
/// DX10_CLAMP (not RDNA 4).
pub const DX10_CLAMP: Field = field(48, 21, 1);
/// IEEE (not RDNA 4).
pub const IEEE_MODE: Field = field(48, 23, 1);
/// FP16_OVFL: overflowing results of 16 bits and less are the largest finite number.
pub const FP16_OVFL: Field = field(48, 26, 1);
/// WGP mode: the waves of a workgroup run on both halves of a processor; in CU mode they run on one.
pub const WGP_MODE: Field = field(48, 29, 1);
/// COMPUTE_PGM_RSRC2.
pub const RSRC2: Field = field(52, 0, 32);
/// Number of user SGPRs.
pub const USER_SGPR_COUNT: Field = field(52, 1, 5);
/// Number of user SGPRs (CDNA 5).
pub const USER_SGPR_COUNT_6: Field = field(52, 1, 6);
/// Named barriers of a workgroup in groups of 4 (CDNA 5).
pub const NAMED_BARRIERS: Field = field(44, 14, 3);
/// Enables of the workgroup IDs x, y and z in SGPRs.
pub const WORKGROUP_IDS: [Field; 3] = [field(52, 7, 1), field(52, 8, 1), field(52, 9, 1)];
/// Dimensions of the work-item IDs in v0 minus one.
pub const WORKITEM_ID: Field = field(52, 11, 2);
/// LDS in granules of 512 bytes (set by the packet processor).
pub const LDS_GRANULES: Field = field(52, 15, 9);
/// Enable bits of user SGPRs and other properties.
pub const PROPERTIES: Field = field(56, 0, 16);
/// User SGPRs: the address of the dispatch packet.
pub const DISPATCH_PTR: Field = field(56, 1, 1);
/// User SGPRs: the address of the queue.
pub const QUEUE_PTR: Field = field(56, 2, 1);
/// User SGPRs: the address of the kernarg segment.
pub const KERNARG_SEGMENT_PTR: Field = field(56, 3, 1);
/// User SGPRs: the dispatch ID.
pub const DISPATCH_ID: Field = field(56, 4, 1);
/// User SGPR: the size of a work-item's scratch.
pub const PRIVATE_SEGMENT_SIZE: Field = field(56, 6, 1);
/// Wave32.
pub const WAVEFRONT_SIZE32: Field = field(56, 10, 1);
/// The code calls functions whose scratch size is unknown.
pub const DYNAMIC_STACK: Field = field(56, 11, 1);
/// Number of kernel argument dwords preloaded to SGPRs.
pub const KERNARG_PRELOAD_LENGTH: Field = field(56, 16, 7);
/// First preloaded dword in the kernarg segment.
pub const KERNARG_PRELOAD_OFFSET: Field = field(56, 23, 9);

impl Field {
    /// A range of bits of this field.
    pub const fn part(self, first: u8, bits: u8) -> Field {
        assert!(first + bits <= self.bits, "the part is within the field");
        Field { byte: self.byte, first: self.first + first, bits }
    }

    /// The maximum value.
    pub const fn max(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}

impl Descriptor {
    /// A descriptor with all fields 0.
    pub const ZERO: Descriptor = Descriptor([0; SIZE]);

    /// The value of a field.
    pub fn get(&self, field: Field) -> u32 {
        let at = field.byte as usize;
        let dword = u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]]);
        dword >> field.first & field.max()
    }

    /// Returns whether a field is nonzero.
    pub fn has(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// Sets a field; excess bits of `value` are dropped.
    pub fn set(&mut self, field: Field, value: u32) {
        let at = field.byte as usize;
        let dword = u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]]);
        let mask = field.max() << field.first;
        let dword = dword & !mask | value << field.first & mask;
        self.0[at..at + 4].copy_from_slice(&dword.to_le_bytes());
    }

    /// Offset of the kernel's first instruction from the descriptor in bytes.
    pub fn entry_offset(&self) -> i64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[16..24]);
        i64::from_le_bytes(bytes)
    }

    /// Sets [`Descriptor::entry_offset`].
    pub fn set_entry_offset(&mut self, offset: i64) {
        self.0[16..24].copy_from_slice(&offset.to_le_bytes());
    }

    /// The bytes as stored in a code object.
    pub fn bytes(&self) -> &[u8; SIZE] {
        &self.0
    }
}

impl From<[u8; SIZE]> for Descriptor {
    fn from(bytes: [u8; SIZE]) -> Descriptor {
        Descriptor(bytes)
    }
}
