//! The initial state of a wave: ids in the registers that the layout names, EXEC set for the work-items that
//! exist.

use super::launch::{Dispatch, Layout};
use smallvec::SmallVec;
use wavesim_isa::arch::machine::ReadOnlyValue;
use wavesim_machine::state::wave::{NULL, SGPRS, StartState, TTMP};
use wavesim_machine::state::{ClusterPlace, LaneVec, Wave};

/// Operand code of ttmp0.
const TTMP0: usize = TTMP.start;

/// The initial registers of a workgroup's waves. What is the same in each workgroup of a dispatch is computed once: the
/// ids of work-items in VGPRs, and most SGPRs. Computing them for each would take an eighth of the time of a wave of 200
/// instructions.
#[derive(Clone)]
pub struct InitialRegisters {
    /// The SGPRs by operand code, with the ids of the workgroup that [`InitialRegisters::set_workgroup`] was given.
    sgprs: [u32; SGPRS],
    workgroup: [u32; 3],
    /// Number of work-items of a workgroup.
    items: u32,
    /// Number of VGPRs that a wave has.
    vgprs: u32,
    /// Whether the architecture has accumulation VGPRs.
    accumulation: bool,
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
        InitialRegisters {
            sgprs,
            workgroup: [0; 3],
            items,
            vgprs: d.shape.registers.allocated_vgprs(d.program.arch, d.shape.wave_size),
            accumulation: d.program.arch.facts().vgprs.accumulation,
            group_ids: group_id_registers(layout),
            registers,
            contents,
        }
    }

    /// Sets the ids of the workgroup that starts next. All workgroups of a dispatch have the same layout, and are in
    /// clusters if one is, so that nothing is left of the one before.
    pub fn set_workgroup(&mut self, layout: &Layout, workgroup: [u32; 3], cluster: Option<&ClusterPlace>) {
        self.workgroup = workgroup;
        for (register, dim) in &self.group_ids {
            if let Some(sgpr) = self.sgprs[..NULL].get_mut(*register as usize) {
                *sgpr = workgroup[*dim];
            }
        }
        if let Layout::Hsa { architected: true, .. } = layout {
            // gfx12: X in ttmp9, Y and Z in the halves of ttmp7.
            let [x, y, z] = workgroup;
            (self.sgprs[TTMP0 + 7], self.sgprs[TTMP0 + 9]) = (y & 0xffff | z << 16, x);
        }
        if let Some(place) = cluster {
            set_cluster_ids(place, &mut self.sgprs);
        }
    }

    /// The VGPRs that have ids.
    #[cfg(test)]
    pub fn vgprs(&self) -> &[usize] {
        &self.registers
    }

    /// The lanes of the VGPRs of a wave.
    fn lanes(&self, wave: &Wave, index: u32) -> &[[u32; 32]] {
        let count = wave.halves() * self.registers.len();
        self.contents.get(index as usize * count..).and_then(|rest| rest.get(..count)).unwrap_or_default()
    }
}

/// Initialises a wave of the workgroup that [`InitialRegisters::set_workgroup`] was given, whatever it ran before.
/// `index` is its index in the workgroup.
pub fn start(d: &Dispatch<'_>, initial: &InitialRegisters, wave: &mut Wave, index: u32) {
    let lanes = initial.items.saturating_sub(index * d.shape.wave_size).min(d.shape.wave_size);
    let exec = if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 };
    let (sgprs, vgprs, lanes) = (&initial.sgprs, &initial.registers[..], initial.lanes(wave, index));
    wave.reset_to(&StartState { exec, sgprs, vgprs, lanes });
    wave.id = index;
    wave.workgroup = initial.workgroup;
    wave.pc = d.shape.entry_pc;
    wave.code_base = d.shape.code_base;
    wave.mode = d.shape.init.mode;
    wave.set_accumulation(initial.accumulation);
    wave.set_vgpr_count(initial.vgprs);
    if let Some(poison) = d.poison {
        let named = d.delayed.and_then(|model| model.vgprs());
        poison.fill_registers(d.program.arch, d.shape.registers.accumulation, named, wave);
        restore_registers(d, initial, wave, index);
    }
    ids_of_wave(&d.shape.init.layout, wave, initial.workgroup, index);
}

/// Sets the initial registers of a wave again, after all of them have been filled.
#[cold]
fn restore_registers(d: &Dispatch<'_>, initial: &InitialRegisters, wave: &mut Wave, index: u32) {
    let set = d.shape.init.sgprs.iter();
    let set = set.flat_map(|(first, values)| (*first as u32..).zip(values).map(|(code, _)| code));
    let ids = initial.group_ids.iter().map(|(register, _)| *register);
    for code in set.chain(ids).filter(|code| *code < NULL as u32) {
        wave.set_sgpr(code, initial.sgprs[code as usize]);
    }
    let lanes = initial.lanes(wave, index);
    let registers =
        (0..wave.halves()).flat_map(|half| initial.registers.iter().map(move |register| (half, *register)));
    for ((half, register), lanes) in registers.zip(lanes) {
        wave.set_lane_vec(half, register, LaneVec(*lanes));
    }
}

/// The ids of a cluster in trap registers (CDNA5 manual, *Cluster State*), whatever the layout of other ids.
fn set_cluster_ids(place: &ClusterPlace, sgprs: &mut [u32; SGPRS]) {
    let [x, y, z] = place.position;
    let [wx, wy, wz] = place.workgroup;
    let [nx, ny, nz] = place.size.map(|n| n - 1);
    let last = place.count() - 1;
    sgprs[TTMP0 + 6] = wx | wy << 4 | wz << 8 | nx << 12 | ny << 16 | nz << 20 | last << 24;
    sgprs[TTMP0 + 7] = y & 0xffff | z << 16;
    sgprs[TTMP0 + 9] = x;
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

/// Writes what differs from wave to wave, or is in VGPRs in the order of the layout.
fn ids_of_wave(layout: &Layout, wave: &mut Wave, workgroup: [u32; 3], index: u32) {
    match layout {
        // gfx12: the wave's index in ttmp8[29:25].
        Layout::Hsa { architected: true, .. } => wave.sgprs[TTMP0 + 8] = (index & 31) << 25,
        Layout::Text { .. } | Layout::Hsa { .. } => {}
        Layout::Own(file) => {
            let holds_group = |(_, held): &(usize, &ReadOnlyValue)| **held == ReadOnlyValue::GroupId;
            for (register, _) in file.read_only.iter().enumerate().filter(holds_group) {
                let id = LaneVec::splat(workgroup[0]);
                (0..wave.halves()).for_each(|half| wave.set_lane_vec(half, register, id));
            }
        }
    }
}
