//! Number of registers of an image instruction's addresses and data, with those of ray intersections.

use super::dialect::RAYS;
use wavesim_isa::arch::Arch;
use wavesim_isa::image;
use wavesim_isa::inst::Inst;

/// Number of address registers.
pub fn address_registers(inst: &Inst, arch: Arch) -> u16 {
    match ray_addresses(inst, arch) {
        Some(ray) => ray.iter().sum(),
        None => image::address_registers(inst, arch.table()),
    }
}

/// Address sizes of a ray intersection instruction in registers; `None` for others.
pub fn ray_addresses(inst: &Inst, arch: Arch) -> Option<&'static [u16]> {
    let table = arch.table();
    let name = inst.instruction(table).name;
    let (_, wide, packed) = RAYS.iter().find(|ray| ray.0 == name)?;
    let a16 = inst.field(table, "A16").is_some_and(|value| value != 0);
    Some(if a16 { packed } else { wide })
}

/// Number of data registers. `listed` is the number in the ISA description.
pub fn data_registers(inst: &Inst, arch: Arch, listed: u16) -> u16 {
    let table = arch.table();
    if inst.instruction(table).subgroup() == "BVH" { listed } else { image::data_registers(inst, table) }
}
