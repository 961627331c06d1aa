//! What AMD's naming scheme says about an instruction: the first word of its name is the unit, or the memory,
//! that it concerns (ISA manuals, chapters of the instruction formats). Facts about single instructions are in
//! the XML, its overlays and the headers of pseudocode, and not here.

use crate::pcode::ir::Space;

/// A vector ALU instruction.
pub fn is_vector(name: &str) -> bool {
    name.starts_with("V_")
}

/// A vector compare, with or without a write of EXEC.
pub fn is_vector_compare(name: &str) -> bool {
    name.starts_with("V_CMP")
}

/// Accesses an image.
pub fn is_image(name: &str) -> bool {
    name.starts_with("IMAGE_")
}

/// A buffer access whose format is in the instruction.
pub fn is_typed_buffer(name: &str) -> bool {
    name.starts_with("TBUFFER_")
}

/// The memory that an instruction accesses.
pub fn memory(name: &str) -> Option<Space> {
    const UNITS: [(&str, Space); 10] = [
        ("S_LOAD_", Space::Scalar),
        ("S_BUFFER_LOAD_", Space::Scalar),
        ("DS_", Space::Lds),
        ("LDS_", Space::Lds),
        ("GLOBAL_", Space::Global),
        ("IMAGE_", Space::Global),
        ("FLAT_", Space::Flat),
        ("SCRATCH_", Space::Scratch),
        ("BUFFER_", Space::Buffer),
        ("TBUFFER_", Space::Buffer),
    ];
    UNITS.iter().find(|unit| name.starts_with(unit.0)).map(|unit| unit.1)
}
