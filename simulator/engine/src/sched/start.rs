//! The initial state of a wave: ids in the registers that the layout names, EXEC set for the work-items that
//! exist.

use super::launch::{Dispatch, Layout};
use smallvec::SmallVec;
use wavesim_isa::arch::machine::ReadOnlyValue;
use wavesim_machine::state::wave::{NULL, SGPRS};
use wavesim_machine::state::{ClusterPlace, LaneVec, Wave};

/// Operand code of ttmp0.
const TTMP0: u32 = 108;

/// The initial registers of a workgroup's waves, as far as they are the same in each workgroup of a dispatch: the ids
/// of work-items in VGPRs, and most SGPRs. Computing them for each would take an eighth of the time of a wave of 200
/// instructions.
#[derive(Clone)]
pub struct InitialRegisters {
    /// The SGPRs by operand code, without the ids of the workgroup.
    sgprs: [u32; SGPRS],
    /// Number of VGPRs that a wave has.
    vgprs: u32,
    /// The SGPRs that have coordinates of the workgroup, by operand code, and the dimension of each.
    group_ids: SmallVec<[(u32, usize); 3]>,
    /// The VGPRs that have ids.
    registers: SmallVec<[usize; 4]>,
    /// Their contents: for each wave, for each half, of each register. (Allocating aligned [`LaneVec`]s would
    /// take a third of the time of an empty launch.)
    contents: Vec<[u32; 32]>,
}

impl InitialRegisters {
    /// Computes the contents. `dispatch` has passed [`Dispatch::check`].
    pub fn new(d: &Dispatch<'_>) -> InitialRegisters {
        let (items, layout) = (d.items(), &d.shape.init.layout);
        let registers: SmallVec<[usize; 4]> = match layout {
            Layout::Text { item_ids, .. } => (0..3).filter(|&dim| item_ids[dim]).collect(),
            Layout::Hsa { .. } => (0..1).collect(),
            Layout::Own(file) => (0..file.read_only.len()).collect(),
        };
        let mut contents = Vec::new();
        if !registers.is_empty() {
            let lanes = d.waves() * d.shape.wave_size;
            contents.reserve_exact(lanes as usize / 32 * registers.len());
            let mut at = [0; 3];
            for first in (0..lanes).step_by(32) {
                let ids = positions(d.shape.block, &mut at, items.saturating_sub(first).min(32) as usize);
                push_item_ids(layout, &ids, first, items, &mut contents);
            }
        }
        let mut sgprs = [0; SGPRS];
        for (first, values) in &d.shape.init.sgprs {
            for (register, value) in (*first as usize..NULL).zip(values) {
                sgprs[register] = *value;
            }
        }
        let vgprs = d.shape.registers.allocated_vgprs(d.program.arch, d.shape.wave_size);
        InitialRegisters { sgprs, vgprs, group_ids: group_id_registers(layout), registers, contents }
    }

    /// Sets the VGPRs of a wave.
    fn set_vgprs(&self, wave: &mut Wave, index: u32) {
        let halves = wave.halves();
        let mut contents = self.contents[index as usize * halves * self.registers.len()..].iter();
        for half in 0..halves {
            for (register, lanes) in self.registers.iter().zip(&mut contents) {
                wave.set_lane_vec(half, *register, LaneVec(*lanes));
            }
        }
    }
}

/// Initialises a wave, whatever it ran before. `index` is its index in the workgroup.
pub fn start(
    d: &Dispatch<'_>,
    initial: &InitialRegisters,
    wave: &mut Wave,
    workgroup: [u32; 3],
    cluster: Option<&ClusterPlace>,
    index: u32,
) {
    let lanes = d.items().saturating_sub(index * d.shape.wave_size).min(d.shape.wave_size);
    wave.reset_with(if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 }, &initial.sgprs);
    wave.id = index;
    wave.workgroup = workgroup;
    wave.pc = d.shape.entry_pc;
    wave.code_base = d.shape.code_base;
    wave.mode = d.shape.init.mode;
    wave.set_accumulation(d.program.arch.facts().vgprs.accumulation);
    wave.set_vgpr_count(initial.vgprs);
    if let Some(poison) = d.poison {
        let named = d.delayed.and_then(|model| model.vgprs());
        poison.fill_registers(d.program.arch, d.shape.registers.accumulation, named, wave);
        for (first, values) in &d.shape.init.sgprs {
            (*first as u32..NULL as u32).zip(values).for_each(|(code, value)| wave.set_sgpr(code, *value));
        }
    }
    initial.set_vgprs(wave, index);
    for (register, dim) in &initial.group_ids {
        wave.set_sgpr(*register, workgroup[*dim]);
    }
    other_group_ids(&d.shape.init.layout, wave, workgroup, index);
    if let Some(place) = cluster {
        cluster_ids(place, wave);
    }
}

/// The ids of a cluster in trap registers (CDNA5 manual, *Cluster State*), whatever the layout of other ids.
fn cluster_ids(place: &ClusterPlace, wave: &mut Wave) {
    let [x, y, z] = place.position;
    let [wx, wy, wz] = place.workgroup;
    let [nx, ny, nz] = place.size.map(|n| n - 1);
    let last = place.count() - 1;
    wave.set_sgpr(TTMP0 + 6, wx | wy << 4 | wz << 8 | nx << 12 | ny << 16 | nz << 20 | last << 24);
    wave.set_sgpr(TTMP0 + 7, y & 0xffff | z << 16);
    wave.set_sgpr(TTMP0 + 9, x);
}

/// Returns X, Y and Z of `lanes` consecutive work-items, beginning at position `at`, and advances `at` past
/// them. Work-items are numbered with X fastest. The ids of further lanes are 0.
fn positions(block: [u32; 3], at: &mut [u32; 3], lanes: usize) -> [LaneVec; 3] {
    let mut ids = [LaneVec::ZERO; 3];
    let mut lane = 0;
    while lane < lanes {
        // The work-items that differ in X only. (Dividing for each lane would take several times as long.)
        let len = ((block[0] - at[0]) as usize).min(lanes - lane);
        let [x, y, z] = &mut ids;
        x.0[lane..lane + len].iter_mut().zip(at[0]..).for_each(|(id, x)| *id = x);
        y.0[lane..lane + len].fill(at[1]);
        z.0[lane..lane + len].fill(at[2]);
        lane += len;
        at[0] += len as u32;
        if at[0] == block[0] {
            (at[0], at[1]) = (0, at[1] + 1);
        }
        if at[1] == block[1] {
            (at[1], at[2]) = (0, at[2] + 1);
        }
    }
    ids
}

/// Appends the initial contents of registers in 32 lanes, of which the first is the work-item `first` of
/// `items`. `ids` are the lanes' X, Y and Z.
fn push_item_ids(layout: &Layout, ids: &[LaneVec; 3], first: u32, items: u32, contents: &mut Vec<[u32; 32]>) {
    match layout {
        Layout::Text { item_ids, .. } => {
            contents.extend(ids.iter().zip(item_ids).filter(|(_, used)| **used).map(|(ids, _)| ids.0));
        }
        // Ten bits each in v0, X lowest (AMDGPUUsage, *Initial Kernel Execution State*: always packed from
        // gfx11 on).
        Layout::Hsa { item_id_dims, .. } => {
            let mut packed = ids[0];
            for (dim, ids) in ids.iter().enumerate().take(1 + *item_id_dims as usize).skip(1) {
                packed.0.iter_mut().zip(ids.0).for_each(|(v, id)| *v |= id << (10 * dim));
            }
            contents.push(packed.0);
        }
        Layout::Own(file) => contents.extend(file.read_only.iter().map(|held| match held {
            ReadOnlyValue::ItemId => std::array::from_fn(|lane| first + lane as u32),
            ReadOnlyValue::GroupSize => [items; 32],
            ReadOnlyValue::Zero | ReadOnlyValue::GroupId => [0; 32],
        })),
    }
}

/// Returns the SGPRs that each have one coordinate of the workgroup, by operand code, and its dimension.
fn group_id_registers(layout: &Layout) -> SmallVec<[(u32, usize); 3]> {
    match layout {
        Layout::Text { group_ids, .. } => {
            (0..3).filter(|dim| group_ids[*dim]).map(|dim| (dim as u32, dim)).collect()
        }
        Layout::Hsa { architected: false, first_system_sgpr, group_ids, .. } => {
            (*first_system_sgpr as u32..).zip((0..3).filter(|dim| group_ids[*dim])).collect()
        }
        Layout::Hsa { .. } | Layout::Own(_) => SmallVec::new(),
    }
}

/// Writes the coordinates of the workgroup that no SGPR has alone.
fn other_group_ids(layout: &Layout, wave: &mut Wave, workgroup: [u32; 3], index: u32) {
    let [x, y, z] = workgroup;
    match layout {
        // gfx12: X in ttmp9, Y and Z in the halves of ttmp7, the wave's index in ttmp8[29:25].
        Layout::Hsa { architected: true, .. } => {
            wave.set_sgpr(TTMP0 + 7, y & 0xffff | z << 16);
            wave.set_sgpr(TTMP0 + 8, (index & 31) << 25);
            wave.set_sgpr(TTMP0 + 9, x);
        }
        Layout::Text { .. } | Layout::Hsa { .. } => {}
        Layout::Own(file) => {
            let holds_group = |(_, held): &(usize, &ReadOnlyValue)| **held == ReadOnlyValue::GroupId;
            for (register, _) in file.read_only.iter().enumerate().filter(holds_group) {
                (0..wave.halves()).for_each(|half| wave.set_lane_vec(half, register, LaneVec::splat(x)));
            }
        }
    }
}
