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
        ("IMAGE_", Space::Global),
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
