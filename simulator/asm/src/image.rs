//! Number of registers of an image instruction's addresses and data.
//!
//! The order of addresses is: offset, bias or depth reference, gradients, coordinates, and level of detail or
//! clamp (ISA manuals, *Image Addressing*). The name determines which of them are present, and DIM the number
//! of coordinates.

use super::dialect::RAYS;
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;

/// Coordinates and gradients of each dimension, by the value of DIM.
const COORDINATES: [u16; 8] = [1, 2, 3, 3, 2, 3, 3, 4];
const GRADIENTS: [u16; 8] = [2, 4, 6, 4, 2, 4, 4, 4];

/// Number of address registers. `name` is the instruction's upper-case name.
pub fn address_registers(name: &str, dim: u32, a16: bool) -> u16 {
    if let Some(ray) = ray_addresses(name, a16) {
        return ray.iter().sum();
    }
    let dim = dim as usize & 7;
    let parts: Vec<&str> = name.split('_').collect();
    let has = |part: &str| parts.contains(&part);
    let sample = has("SAMPLE") || parts.iter().any(|p| p.starts_with("GATHER4"));
    // One register each.
    let extra =
        if sample { [has("C"), has("O"), has("B")].into_iter().filter(|h| *h).count() as u16 } else { 0 };
    let level = u16::from(sample && (has("L") || has("CL")) || has("MIP") || has("RESINFO"));
    let coordinates = if has("RESINFO") { 0 } else { COORDINATES[dim] } + level;
    let coordinates = if a16 { coordinates.div_ceil(2) } else { coordinates };
    let gradients = match (sample && has("D"), has("G16")) {
        (false, _) => 0,
        (true, false) => GRADIENTS[dim],
        // Two 16-bit gradients per register; the two directions are in separate registers.
        (true, true) => (GRADIENTS[dim] / 2).next_multiple_of(2),
    };
    extra + gradients + coordinates
}

/// Address sizes of a ray intersection instruction in registers; `None` for others.
pub fn ray_addresses(name: &str, a16: bool) -> Option<&'static [u16]> {
    let (_, wide, packed) = RAYS.iter().find(|ray| ray.0 == name)?;
    Some(if a16 { packed } else { wide })
}

/// Number of data registers. `listed` is the number in the ISA description; `one_channel` is set if the instruction
/// returns four texels or samples of one channel.
pub fn data_registers(inst: &Inst, arch: Arch, listed: u16, one_channel: bool, dmask: u32) -> u16 {
    let table = arch.table();
    let set = |field: &str| inst.field(table, field).is_some_and(|value| value != 0);
    let subgroup = inst.instruction(table).subgroup();
    if subgroup == "BVH" {
        return listed;
    }
    let components = if one_channel { 4 } else { dmask.count_ones().max(1) as u16 };
    let packed = set("D16") && subgroup != "ATOMIC";
    (if packed { components.div_ceil(2) } else { components }) + u16::from(set("TFE"))
}
