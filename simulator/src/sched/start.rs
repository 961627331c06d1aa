//! The state a wave starts in: ids where the layout wants them, EXEC for the work-items that exist.

use super::dispatch::{Dispatch, Layout};
use crate::arch::machine::Held;
use crate::machine::Wave;

/// Operand code of ttmp0.
const TTMP0: u32 = 108;

/// Fills a wave that has just been reset. `index`: of the wave in its workgroup.
pub fn start(d: &Dispatch<'_>, wave: &mut Wave, workgroup: [u32; 3], index: u32) {
    wave.id = index;
    wave.workgroup = workgroup;
    wave.pc = d.entry_pc;
    wave.code_base = d.code_base;
    wave.mode = d.init.mode;
    for (first, values) in &d.init.sgprs {
        for (reg, value) in (*first as u32..).zip(values) {
            wave.set_sgpr(reg, *value);
        }
    }
    let items = d.items();
    let first = index * d.wave_size;
    let lanes = items.saturating_sub(first).min(d.wave_size);
    for lane in 0..lanes {
        item_ids(&d.init.layout, wave, lane, position(d.block, first + lane));
    }
    group_ids(&d.init.layout, wave, workgroup, index);
    if let Layout::Own(file) = &d.init.layout {
        for (reg, held) in (0..).zip(file.read_only) {
            for lane in 0..d.wave_size {
                let value = match held {
                    Held::Zero => 0,
                    Held::ItemId => first + lane,
                    Held::GroupId => workgroup[0],
                    Held::GroupSize => items,
                };
                wave.set_vgpr(lane, reg, value);
            }
        }
    }
    wave.set_exec(if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 });
}

/// Work-items are numbered x fastest.
fn position(block: [u32; 3], item: u32) -> [u32; 3] {
    let [x, y, _] = block;
    [item % x, item / x % y, item / x / y]
}

fn item_ids(layout: &Layout, wave: &mut Wave, lane: u32, at: [u32; 3]) {
    match layout {
        Layout::Text { item_ids, .. } => {
            for dim in (0..3).filter(|&d| item_ids[d]) {
                wave.set_vgpr(lane, dim as u32, at[dim]);
            }
        }
        // Ten bits each in v0, from X up (AMDGPUUsage, *Initial Kernel Execution State*: always packed from gfx11 on).
        Layout::Hsa { item_id_dims, .. } => {
            let used = 1 + (*item_id_dims as usize).min(2);
            let packed = (0..used).fold(0, |v, dim| v | at[dim] << (10 * dim));
            wave.set_vgpr(lane, 0, packed);
        }
        Layout::Own(_) => {}
    }
}

fn group_ids(layout: &Layout, wave: &mut Wave, workgroup: [u32; 3], index: u32) {
    let [x, y, z] = workgroup;
    match layout {
        Layout::Text { group_ids, .. } => {
            for dim in (0..3).filter(|&d| group_ids[d]) {
                wave.set_sgpr(dim as u32, workgroup[dim]);
            }
        }
        // gfx12: X in ttmp9, Y and Z in the halves of ttmp7, the wave's index in ttmp8[29:25].
        Layout::Hsa { architected: true, .. } => {
            wave.set_sgpr(TTMP0 + 7, y & 0xffff | z << 16);
            wave.set_sgpr(TTMP0 + 8, (index & 31) << 25);
            wave.set_sgpr(TTMP0 + 9, x);
        }
        Layout::Hsa { first_system_sgpr, group_ids, .. } => {
            let enabled = (0..3).filter(|&d| group_ids[d]);
            for (reg, dim) in (*first_system_sgpr as u32..).zip(enabled) {
                wave.set_sgpr(reg, workgroup[dim]);
            }
        }
        Layout::Own(_) => {}
    }
}
