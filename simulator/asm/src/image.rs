//! How many registers an image instruction's addresses and data take.
//!
//! Addresses are, in this order: offset, bias or depth reference, gradients, coordinates, and level of detail or clamp (ISA manuals,
//! *Image Addressing*). The name says which there are, DIM how many coordinates.

/// Coordinates and gradients of each dimension, by the value of DIM.
const COORDINATES: [u16; 8] = [1, 2, 3, 3, 2, 3, 3, 4];
const GRADIENTS: [u16; 8] = [2, 4, 6, 4, 2, 4, 4, 4];

/// Registers of addresses. `name` is the instruction's, upper case.
pub fn address_registers(name: &str, dim: u32, a16: bool) -> u16 {
    if name.starts_with("IMAGE_BVH") {
        return ray_addresses(name, a16).iter().sum();
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
        // Two 16-bit gradients a register, those of each direction apart.
        (true, true) => (GRADIENTS[dim] / 2).next_multiple_of(2),
    };
    extra + gradients + coordinates
}

/// A ray: node, extent, origin, direction, inverse of it; sizes in registers.
pub fn ray_addresses(name: &str, a16: bool) -> Vec<u16> {
    match name {
        // Direction and its inverse are packed.
        "IMAGE_BVH_INTERSECT_RAY" if a16 => vec![1, 1, 3, 3],
        "IMAGE_BVH64_INTERSECT_RAY" if a16 => vec![2, 1, 3, 3],
        "IMAGE_BVH_INTERSECT_RAY" => vec![1, 1, 3, 3, 3],
        "IMAGE_BVH64_INTERSECT_RAY" => vec![2, 1, 3, 3, 3],
        // Node, extent and mask, origin, direction, offset or offsets.
        "IMAGE_BVH_DUAL_INTERSECT_RAY" => vec![2, 2, 3, 3, 2],
        _ => vec![2, 2, 3, 3, 1],
    }
}

/// Whether DMASK names the one channel that is read of several texels or samples.
pub fn one_channel(name: &str) -> bool {
    name.starts_with("IMAGE_GATHER4") || name.starts_with("IMAGE_MSAA_LOAD")
}

/// Registers of data.
pub fn data_registers(name: &str, listed: u16, dmask: u32, d16: bool, tfe: bool) -> u16 {
    if name.starts_with("IMAGE_BVH") {
        return listed;
    }
    // Four texels, or samples, of one channel.
    let components = if one_channel(name) { 4 } else { dmask.count_ones().max(1) as u16 };
    let packed = d16 && !name.contains("ATOMIC");
    (if packed { components.div_ceil(2) } else { components }) + u16::from(tfe)
}
