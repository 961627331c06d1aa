//! Properties that follow from AMD's naming scheme: the first word of an instruction's name is its unit or
//! memory (ISA manuals, chapters of the instruction formats). Facts about single instructions are in the XML,
//! its overlays and the headers of pseudocode files, not here.

use crate::pcode::ir::Space;

/// Returns whether the name is that of a vector ALU instruction.
pub fn is_vector(name: &str) -> bool {
    name.starts_with("V_")
}

/// Returns whether the name is that of a vector compare, including compares that write EXEC.
pub fn is_vector_compare(name: &str) -> bool {
    name.starts_with("V_CMP")
}

/// Returns whether the instruction accesses an image.
pub fn is_image(name: &str) -> bool {
    name.starts_with("IMAGE_")
}

/// The words after the operation in the name of an image instruction (RDNA manuals, *Sample Instruction Suffix Key*).
/// Each is a bit of the field `SUFFIXES` of pseudocode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageSuffixes(pub u32);

impl ImageSuffixes {
    /// `C`: a reference is compared with the texels.
    pub const COMPARE: u32 = 1;
    /// `D`: derivatives are given.
    pub const DERIVATIVES: u32 = 1 << 1;
    /// `L`: the level of detail is given.
    pub const LOD: u32 = 1 << 2;
    /// `B`: a bias is added to the level of detail.
    pub const BIAS: u32 = 1 << 3;
    /// `LZ`: the level of detail is 0.
    pub const LOD_ZERO: u32 = 1 << 4;
    /// `CL`: the level of detail has a lower limit.
    pub const CLAMP: u32 = 1 << 5;
    /// `O`: offsets are added to the coordinates.
    pub const OFFSET: u32 = 1 << 6;
    /// `G16`: derivatives have 16 bits.
    pub const G16: u32 = 1 << 7;
    /// `MIP`: the level is given as an integer.
    pub const MIP: u32 = 1 << 8;
    /// `PCK`: no conversion of formats.
    pub const PACKED: u32 = 1 << 9;
    /// `SGN`: signed elements.
    pub const SIGNED: u32 = 1 << 10;
    /// The image is sampled: its addresses are floats.
    pub const SAMPLED: u32 = 1 << 11;
    /// The result is one channel of four texels or samples.
    pub const ONE_CHANNEL: u32 = 1 << 12;
    /// The only address is a level.
    pub const INFO: u32 = 1 << 13;
    /// The result is the level of detail.
    pub const LEVEL: u32 = 1 << 14;

    /// The suffixes in the name of an image instruction; none for other instructions.
    pub fn of(name: &str) -> ImageSuffixes {
        let Some(rest) = name.strip_prefix("IMAGE_") else { return ImageSuffixes::default() };
        let words = rest.split('_').map(|word| match word {
            "C" => Self::COMPARE,
            "D" => Self::DERIVATIVES,
            "L" => Self::LOD,
            "B" => Self::BIAS,
            "LZ" => Self::LOD_ZERO,
            "CL" => Self::CLAMP,
            "O" => Self::OFFSET,
            "G16" => Self::G16,
            "MIP" => Self::MIP,
            "PCK" => Self::PACKED,
            "SGN" => Self::SIGNED,
            "SAMPLE" => Self::SAMPLED,
            "LOD" => Self::SAMPLED | Self::LEVEL,
            "MSAA" => Self::ONE_CHANNEL,
            "RESINFO" => Self::INFO,
            word if word.starts_with("GATHER4") => Self::SAMPLED | Self::ONE_CHANNEL,
            _ => 0,
        });
        ImageSuffixes(words.fold(0, |all, bit| all | bit))
    }

    /// Returns whether any of these suffixes is present.
    pub fn has(self, suffixes: u32) -> bool {
        self.0 & suffixes != 0
    }
}

/// Returns whether the instruction is a buffer access that encodes its format.
pub fn is_typed_buffer(name: &str) -> bool {
    name.starts_with("TBUFFER_")
}

/// Returns the address space that an instruction accesses.
pub fn memory(name: &str) -> Option<Space> {
    const UNITS: [(&str, Space); 11] = [
        ("S_LOAD_", Space::Scalar),
        ("S_BUFFER_LOAD_", Space::Scalar),
        ("DS_", Space::Lds),
        ("LDS_", Space::Lds),
        ("GLOBAL_", Space::Global),
        ("CLUSTER_", Space::Global),
        ("IMAGE_", Space::Buffer),
        ("FLAT_", Space::Flat),
        ("SCRATCH_", Space::Scratch),
        ("BUFFER_", Space::Buffer),
        ("TBUFFER_", Space::Buffer),
    ];
    UNITS.iter().find(|unit| name.starts_with(unit.0)).map(|unit| unit.1)
}

/// Returns the number of bytes that an access transfers for each lane, from the number of bits at the end of
/// its name; 4 if there is none.
pub fn access_bytes(name: &str) -> u32 {
    let digits = name.trim_start_matches(|c: char| c != '_').rsplit('_').next().unwrap_or_default();
    let bits = digits.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().unwrap_or(32);
    let packed = if name.contains("_PK_") { 2 } else { 1 };
    bits * packed / 8
}
