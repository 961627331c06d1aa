//! Data-parallel primitives (DPP): the mapping of source lanes. Source code 250 announces a DPP16 word, 233
//! and 234 a DPP8 word (ISA manuals, *DPP*).

use crate::arch::Arch;

/// Source code of a DPP8 word that does not read inactive lanes.
pub const DPP8: u32 = 233;
/// Source code of a DPP8 word that also reads inactive lanes.
pub const DPP8_FETCH_INACTIVE: u32 = 234;
/// Source code of a DPP16 word.
pub const DPP16: u32 = 250;

/// Returns whether a DPP control moves data between rows, where the architecture has such controls: wave shifts and rotations, and broadcasts
/// of a row's last lane.
pub fn crosses_rows(arch: Arch, ctrl: u32) -> bool {
    arch.facts().dpp.across_rows && matches!(ctrl, 0x130 | 0x134 | 0x138 | 0x13c | 0x142 | 0x143)
}

/// The lane that `lane` reads, within the wave; `None` if outside of the row.
pub fn source(arch: Arch, ctrl: u32, lane: u32) -> Option<u32> {
    let row = lane & !15;
    let at = lane & 15;
    let n = ctrl & 15;
    match ctrl {
        0x000..=0x0ff => Some(lane & !3 | ctrl >> (2 * (lane & 3)) & 3),
        0x101..=0x10f => (at + n < 16).then_some(lane + n),
        0x111..=0x11f => at.checked_sub(n).map(|a| row | a),
        0x121..=0x12f => Some(row | (at + 16 - n) & 15),
        0x130 | 0x134 | 0x138 | 0x13c | 0x142 | 0x143 if arch.facts().dpp.across_rows => match ctrl {
            0x130 => (lane < 63).then_some(lane + 1),
            0x134 => Some((lane + 1) & 63),
            0x138 => lane.checked_sub(1),
            0x13c => Some((lane + 63) & 63),
            // The last lane of the previous row, or of the first half.
            0x142 => row.checked_sub(1),
            _ => (lane >= 32).then_some(31),
        },
        0x140 => Some(row | (15 - at)),
        0x141 => Some(lane & !7 | (7 - (lane & 7))),
        0x150..=0x15f => Some(row | n),
        0x160..=0x16f if arch.facts().dpp.xmask => Some(row | (at ^ n)),
        _ => None,
    }
}
