//! Relocations: values that the loader of a shared object fills in.

/// Relocation types (LLVM AMDGPUUsage, *Relocation Records*).
pub mod kind {
    /// R_AMDGPU_NONE: no relocation.
    pub const NONE: u32 = 0;
    /// R_AMDGPU_ABS32_LO: low half of an address.
    pub const ABS32_LO: u32 = 1;
    /// R_AMDGPU_ABS32_HI: high half of an address.
    pub const ABS32_HI: u32 = 2;
    /// R_AMDGPU_ABS64: an address.
    pub const ABS64: u32 = 3;
    /// R_AMDGPU_REL32: 32-bit offset relative to the field.
    pub const REL32: u32 = 4;
    /// R_AMDGPU_REL64: 64-bit offset relative to the field.
    pub const REL64: u32 = 5;
    /// R_AMDGPU_ABS32: a 32-bit address.
    pub const ABS32: u32 = 6;
    /// R_AMDGPU_GOTPCREL: distance to the symbol's entry in the global offset table.
    pub const GOTPCREL: u32 = 7;
    /// R_AMDGPU_GOTPCREL32_LO: low half of that distance.
    pub const GOTPCREL32_LO: u32 = 8;
    /// R_AMDGPU_GOTPCREL32_HI: high half of that distance.
    pub const GOTPCREL32_HI: u32 = 9;
    /// R_AMDGPU_REL32_LO: low half of the offset relative to the field.
    pub const REL32_LO: u32 = 10;
    /// R_AMDGPU_REL32_HI: high half of the offset relative to the field.
    pub const REL32_HI: u32 = 11;
    /// R_AMDGPU_RELATIVE64: the load address plus the addend.
    pub const RELATIVE64: u32 = 13;
    /// R_AMDGPU_REL16: distance of a branch in words.
    pub const REL16: u32 = 14;
}

/// A value that the loader fills in; the field is zero until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// Index of the section that contains the field.
    pub section: usize,
    /// Byte offset of the field in the section.
    pub offset: u64,
    /// One of the constants in [`kind`].
    pub kind: u32,
    /// The base of the addend.
    pub target: Target,
    /// Offset from the base in bytes.
    pub addend: i64,
}

/// The base of a relocation's addend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The start of the image.
    Image,
    /// A symbol that another file may preempt.
    Symbol(String),
    /// The start of a section, given by its index.
    Section(usize),
}
