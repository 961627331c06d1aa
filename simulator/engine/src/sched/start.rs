//! The initial state of a wave: ids in the registers that the layout names, EXEC set for the work-items that
//! exist.

use super::dispatch::{Dispatch, Layout};
use wavesim_isa::arch::machine::ReadOnlyValue;
use wavesim_machine::state::{LaneVec, Wave};

/// Operand code of ttmp0.
const TTMP0: u32 = 108;

/// Initialises a wave that has just been reset. `index` is its index in the workgroup.
pub fn start(d: &Dispatch<'_>, wave: &mut Wave, workgroup: [u32; 3], index: u32) {
    wave.id = index;
    wave.workgroup = workgroup;
    wave.pc = d.shape.entry_pc;
    wave.code_base = d.shape.code_base;
    wave.mode = d.shape.init.mode;
    wave.set_accumulation(d.program.arch.is_cdna());
    wave.set_vgpr_count(d.shape.registers.allocated_vgprs(d.shape.wave_size));
    for (first, values) in &d.shape.init.sgprs {
        for (reg, value) in (*first as u32..).zip(values) {
            wave.set_sgpr(reg, *value);
        }
    }
    let items = d.items();
    let first = index * d.shape.wave_size;
    let lanes = items.saturating_sub(first).min(d.shape.wave_size);
    let dims = item_dims(&d.shape.init.layout);
    if dims != [false; 3] {
        let mut at = position(d.shape.block, first);
        let mut ids = [LaneVec::ZERO; 3];
        for half in 0..wave.halves() {
            let lanes = lanes.saturating_sub(32 * half as u32).min(32);
            positions(d.shape.block, &mut at, lanes as usize, dims, &mut ids);
            item_ids(&d.shape.init.layout, wave, half, dims, &ids);
        }
    }
    group_ids(&d.shape.init.layout, wave, workgroup, index);
    if let Layout::Own(file) = &d.shape.init.layout {
        for (reg, held) in (0..).zip(file.read_only) {
            for lane in 0..d.shape.wave_size {
                let value = match held {
                    ReadOnlyValue::Zero => 0,
                    ReadOnlyValue::ItemId => first + lane,
                    ReadOnlyValue::GroupId => workgroup[0],
                    ReadOnlyValue::GroupSize => items,
                };
                wave.set_vgpr(lane, reg, value);
            }
        }
    }
    wave.set_exec(if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 });
}

/// Returns the position of a work-item. Work-items are numbered with x fastest.
fn position(block: [u32; 3], item: u32) -> [u32; 3] {
    let [x, y, _] = block;
    [item % x, item / x % y, item / x / y]
}

/// Returns the dimensions in which work-items have ids.
fn item_dims(layout: &Layout) -> [bool; 3] {
    match layout {
        Layout::Text { item_ids, .. } => *item_ids,
        Layout::Hsa { item_id_dims, .. } => [0, 1, 2].map(|dim| dim <= *item_id_dims),
        Layout::Own(_) => [false; 3],
    }
}

/// Sets `ids` to X, Y and Z, if they are among `dims`, of `lanes` consecutive work-items, beginning at position
/// `at`, and advances `at` past them. The ids of further lanes are 0. (Dividing once per lane would take an eighth
/// of the run time of a short wave.)
fn positions(block: [u32; 3], at: &mut [u32; 3], lanes: usize, dims: [bool; 3], ids: &mut [LaneVec; 3]) {
    let mut lane = 0;
    while lane < lanes {
        // The work-items that differ in X only.
        let len = ((block[0] - at[0]) as usize).min(lanes - lane);
        for (dim, ids) in ids.iter_mut().enumerate().filter(|(dim, _)| dims[*dim]) {
            let (first, step) = (at[dim], (dim == 0) as u32);
            // Lanes from `lane + len` on are set, too, and later overwritten or cleared: a loop of known length is
            // vectorised.
            for (n, id) in (0..).zip(&mut ids.0) {
                let id_of_lane = first.wrapping_add(step.wrapping_mul(u32::wrapping_sub(n, lane as u32)));
                *id = if n < lane as u32 { *id } else { id_of_lane };
            }
        }
        lane += len;
        at[0] += len as u32;
        if at[0] == block[0] {
            (at[0], at[1]) = (0, at[1] + 1);
        }
        if at[1] == block[1] {
            (at[1], at[2]) = (0, at[2] + 1);
        }
    }
    ids.iter_mut().for_each(|ids| ids.0[lanes..].fill(0));
}

fn item_ids(layout: &Layout, wave: &mut Wave, half: usize, dims: [bool; 3], ids: &[LaneVec; 3]) {
    let used = (0..3).filter(|&dim| dims[dim]);
    match layout {
        Layout::Text { .. } => used.for_each(|dim| wave.set_lane_vec(half, dim, ids[dim])),
        // Ten bits each in v0, X lowest (AMDGPUUsage, *Initial Kernel Execution State*: always packed from
        // gfx11 on).
        Layout::Hsa { .. } => {
            let mut packed = LaneVec::ZERO;
            for dim in used {
                packed.0.iter_mut().zip(ids[dim].0).for_each(|(v, id)| *v |= id << (10 * dim));
            }
            wave.set_lane_vec(half, 0, packed);
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
