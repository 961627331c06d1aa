//! A dispatch: program, shape and initial state of a launch, and its limits.

use super::cancel::is_cancelled;
use super::order::{GroupOrder, Schedule};
use super::poison::Poison;
use super::pool::Pool;
use super::recorded::Recorded;
use super::slot::MAX_ITEMS;
use crate::caches::{Arrangement, Placement, SharedCaches};
use crate::compiled::Compiled;
use crate::delayed::{Choices, DelayedMemory, Delays, NoCounters};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::VectorFile;
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::barrier::Common;
use wavesim_machine::state::gws::Gws;
use wavesim_machine::state::wave::VCC_LO;
use wavesim_machine::state::{ALL_VGPRS, ClusterPlace, VGPRS, Wave};

/// A launch and its execution parameters.
pub struct Dispatch<'a> {
    /// The code that every wave runs, beginning at [`Shape::entry_pc`].
    pub program: &'a Program,
    /// The grid, the workgroups, and the initial registers of waves.
    pub shape: &'a Shape,
    /// A fault is raised after this many wave-instructions in total.
    pub max_instructions: u64,
    /// The order in which a workgroup's waves run. A correct kernel computes the same results under every
    /// order.
    pub schedule: Schedule,
    /// The order in which workgroups start.
    pub order: GroupOrder,
    /// A recorded schedule, which the run follows in place of the orders above ([`Dispatch::follow`]).
    pub recorded: Option<Arc<Recorded>>,
    /// Number of host threads that run workgroups; 0 counts as 1. Always 1 without the feature `threads`.
    pub threads: usize,
    /// The work, in wave-instructions, after which the first thread starts the others: short dispatches start none.
    pub alone: u64,
    /// Workgroups are known to wait for each other and take shorter turns.
    pub cooperative: bool,
    /// Upper bound of the bytes held by suspended workgroups on all threads. At least one workgroup can be suspended.
    pub resident_bytes: usize,
    /// Counts what has been done, for a progress display.
    pub progress: Option<&'a Progress>,
    /// The pool that register files are taken from and returned to; `None` allocates them for this dispatch.
    pub pool: Option<&'a Pool>,
    /// Set to end this run, as [`INTERRUPT`] ends all runs.
    pub cancel: Option<&'a AtomicBool>,
    /// Compiled code of the program for unobserved runs; `None` interprets it.
    pub compiled: Option<&'a (dyn Compiled + Sync)>,
    /// Delays of memory operations, which are then interpreted; `None` for immediate memory.
    pub delayed: Option<&'a DelayedMemory>,
    /// What registers, LDS and scratch hold at the start of a workgroup; `None` for zeros.
    pub poison: Option<Poison>,
    /// The waves of a workgroup share an L0 cache. Only with delayed memory.
    pub cu_mode: bool,
    /// What caches hold, with delayed memory.
    pub caches: SharedCaches,
    /// Global wave sync of the device. Without, all resources are 0 at the start.
    pub gws: Option<&'a Mutex<Gws>>,
}

/// What a run has done so far. The counts grow with each turn of a workgroup.
#[derive(Debug, Default)]
pub struct Progress {
    /// Wave-instructions executed.
    pub instructions: AtomicU64,
    /// Waves of workgroups that have ended.
    pub waves: AtomicU64,
}

/// The launch parameters other than program and memory.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Workgroups per dimension.
    pub grid: [u32; 3],
    /// Workgroups of a cluster per dimension; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Work-items per workgroup and dimension.
    pub block: [u32; 3],
    /// 32 or 64.
    pub wave_size: u32,
    /// Named barriers of a workgroup.
    pub named_barriers: u32,
    /// Static plus dynamic LDS of a workgroup, in bytes.
    pub lds_bytes: u32,
    /// Scratch of a lane, in bytes.
    pub scratch_bytes: u32,
    /// The registers that the kernel declares. Instructions may access others; the check `hazard` reports
    /// that.
    pub registers: Registers,
    /// The initial contents of registers.
    pub init: InitialState,
    /// Byte offset of the first instruction in the program.
    pub entry_pc: u64,
    /// Address of the program's first byte, as S_GETPC returns it.
    pub code_base: u64,
}

/// Numbers of registers that a kernel declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// VGPRs of a lane, before [`Registers::allocated_vgprs`] rounds them up.
    pub vgprs: u16,
    /// Accumulation VGPRs of a lane (CDNA).
    pub accumulation: u16,
    /// Numbered SGPRs, excluding VCC and the other special registers.
    pub sgprs: u16,
}

impl Registers {
    /// All registers that instructions can name.
    pub const ALL: Registers =
        Registers { vgprs: ALL_VGPRS as u16, accumulation: VGPRS as u16, sgprs: VCC_LO as u16 };

    /// Returns the number of VGPRs allocated to a wave of this size: indexed instructions cannot reach beyond
    /// them.
    pub fn allocated_vgprs(self, arch: Arch, wave_size: u32) -> u32 {
        let file = arch.facts().vgprs;
        (self.vgprs as u32).max(1).next_multiple_of(file.granule_of(wave_size)).min(file.most())
    }
}

/// Initial registers of a wave.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// The registers that hold workgroup and work-item ids.
    pub layout: Layout,
    /// Initial value of the MODE register.
    pub mode: u32,
    /// `(first SGPR, values)`: the same in every wave.
    pub sgprs: Vec<(u16, Vec<u32>)>,
}

/// The registers that hold workgroup and work-item ids.
#[derive(Debug, Clone)]
pub enum Layout {
    /// The text format: workgroup ids in s0, s1, s2 and work-item ids in v0, v1, v2, each only for the
    /// flagged dimensions.
    Text { group_ids: [bool; 3], item_ids: [bool; 3] },
    /// The HSA ABI (LLVM AMDGPUUsage, *Initial Kernel Execution State*): workgroup ids of the enabled
    /// dimensions in system SGPRs from `first_system_sgpr` on (`architected`: in ttmp9 and ttmp7 instead,
    /// gfx12), and packed work-item ids in v0 (`item_id_dims`: 0, 1 or 2 dimensions beyond X).
    Hsa { first_system_sgpr: u16, group_ids: [bool; 3], architected: bool, item_id_dims: u8 },
    /// A custom machine: ids in the read-only registers of this file.
    Own(&'static VectorFile),
}

/// Statistics of a finished run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Wave-instructions executed.
    pub instructions: u64,
    /// Waves started.
    pub waves: u64,
}

/// A reason why a dispatch cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// The wave size is not one that waves can have.
    #[error("waves have 32 or 64 lanes, not {0}")]
    WaveSize(u32),
    #[error("{arch} has no waves of {size} lanes")]
    NoSuchWave { arch: &'static str, size: u32 },
    #[error("a workgroup of {0:?} work-items: 1 to {1} are possible")]
    Block([u32; 3], u64),
    #[error("{0} bytes of LDS: a workgroup has at most {1}")]
    Lds(u32, u32),
    #[error("a cluster of {cluster:?} workgroups: on {arch}, a cluster has at most {most}")]
    Cluster { cluster: [u32; 3], arch: &'static str, most: u32 },
    #[error("a grid of {grid:?} workgroups is not a multiple of clusters of {cluster:?}")]
    ClusterGrid { grid: [u32; 3], cluster: [u32; 3] },
    #[error("global wave sync: all workgroups run together, and {workgroups} take more than {bytes} bytes")]
    Meets { workgroups: u64, bytes: usize },
    #[error("global wave sync orders waves in ways that the exploration of schedules does not know")]
    MeetsUnexplored,
    #[error("{bytes} bytes of scratch for each of {items} work-items: a workgroup has at most {MAX_SCRATCH}")]
    Scratch { bytes: u32, items: u32 },
    #[error("the checks follow accesses at the time of their issue, and need immediate memory")]
    DelayedChecks,
    #[error("the recorded schedule delays memory operations, and this command does not")]
    RecordedDelays,
    #[error(transparent)]
    Delayed(#[from] NoCounters),
}

/// Upper bound of a workgroup's LDS on any architecture, in bytes; `Arch::lds_bytes` returns that of one.
pub const MAX_LDS: u32 = {
    let (mut most, mut index) = (0, 0);
    while index < Arch::ALL.len() {
        let own = Arch::ALL[index].lds_bytes();
        most = if own > most { own } else { most };
        index += 1;
    }
    most
};
/// Upper bound of a workgroup's scratch in bytes. The limit is the simulator's own: a header must not be able
/// to claim all of the host's memory.
pub const MAX_SCRATCH: u64 = 128 << 20;

impl<'a> Dispatch<'a> {
    /// Creates a dispatch that runs workgroup after workgroup on one thread, interpreted. Callers may then
    /// change the other fields.
    pub fn new(program: &'a Program, shape: &'a Shape, max_instructions: u64) -> Dispatch<'a> {
        Dispatch {
            program,
            shape,
            max_instructions,
            schedule: Schedule::RoundRobin,
            order: Default::default(),
            recorded: None,
            threads: 1,
            alone: 0,
            cooperative: false,
            resident_bytes: MAX_RESIDENT_BYTES,
            progress: None,
            pool: None,
            cancel: None,
            compiled: None,
            delayed: None,
            poison: None,
            cu_mode: false,
            caches: SharedCaches::default(),
            gws: None,
        }
    }
}

impl Dispatch<'_> {
    /// Makes the run follow a recorded schedule, on one thread.
    pub fn follow(&mut self, recorded: Arc<Recorded>) {
        self.order = GroupOrder::Chosen(recorded.groups.clone());
        self.poison = recorded.late().poison.map(Poison).or(self.poison);
        self.caches.arrange(recorded.late().caches);
        self.recorded = Some(recorded);
    }

    /// Which memory operations are delayed, if the run follows a recorded schedule.
    pub(super) fn choices(&self) -> Option<Choices> {
        let recorded = self.recorded.clone()?;
        let is_late = move |id, _| recorded.late().operations.contains(&id);
        Some(Choices { is_late: Arc::new(is_late), stops: false })
    }

    /// Empties the caches, for a run that starts.
    pub fn begin(&self) {
        if self.delayed.is_some() {
            self.caches.clear();
        }
    }

    /// Returns the caches that the waves of a workgroup sit behind; none if they are always coherent.
    pub(super) fn placements(&self, id: [u32; 3]) -> Vec<Placement> {
        let arrangement = match self.delayed.map(|model| model.delays) {
            Some(Delays::Random(seed)) => Arrangement::of_seed(seed),
            Some(Delays::Demanded) => self.caches.arrangement(),
            None => None,
        };
        let Some(arrangement) = arrangement.filter(|_| self.delayed.is_some_and(DelayedMemory::uses_caches))
        else {
            return Vec::new();
        };
        let number = |[x, y, z]: [u32; 3], size: [u32; 3]| {
            let [nx, ny, _] = std::array::from_fn(|dim| u64::from(self.shape.grid[dim] / size[dim].max(1)));
            u64::from(x) + nx * (u64::from(y) + ny * u64::from(z))
        };
        let group = number(id, [1; 3]);
        let cluster =
            self.cluster_place(id).map_or(group, |place| number(place.position, self.shape.cluster));
        let place = |wave| arrangement.place(id, cluster, group, wave, self.cu_mode);
        (0..self.waves()).map(place).collect()
    }

    /// Number of work-items of a workgroup.
    pub fn items(&self) -> u32 {
        self.shape.block.iter().product()
    }

    /// Number of waves of a workgroup; the last one may be partial.
    pub fn waves(&self) -> u32 {
        self.items().div_ceil(self.shape.wave_size)
    }

    /// Checks that memory is delayed if the recorded schedule needs it.
    ///
    /// # Errors
    /// It is not.
    pub fn check_recorded(&self) -> Result<(), DispatchError> {
        match &self.recorded {
            Some(recorded) if self.delayed.is_none() && !recorded.late().is_immediate() => {
                Err(DispatchError::RecordedDelays)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the dispatch can run; [`run`](super::dispatch::run) does this first.
    pub fn check(&self) -> Result<(), DispatchError> {
        if !matches!(self.shape.wave_size, 32 | 64) {
            return Err(DispatchError::WaveSize(self.shape.wave_size));
        }
        let arch = self.program.arch;
        if !arch.wave_sizes().contains(&self.shape.wave_size) {
            return Err(DispatchError::NoSuchWave { arch: arch.name(), size: self.shape.wave_size });
        }
        let items = self.shape.block.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
        let most =
            self.program.arch.machine().map_or(MAX_ITEMS, |m| m.max_waves as u64 * m.lanes.count() as u64);
        if !items.is_some_and(|n| (1..=most).contains(&n)) {
            return Err(DispatchError::Block(self.shape.block, most));
        }
        let most = self.program.arch.lds_bytes();
        if self.shape.lds_bytes > most {
            return Err(DispatchError::Lds(self.shape.lds_bytes, most));
        }
        let (grid, cluster) = (self.shape.grid, self.shape.cluster);
        let workgroups = cluster.iter().try_fold(1u32, |n, &d| n.checked_mul(d));
        let most = arch.facts().cluster_workgroups;
        if !workgroups.is_some_and(|n| (1..=most).contains(&n)) {
            return Err(DispatchError::Cluster { cluster, arch: arch.name(), most });
        }
        if grid.iter().zip(cluster).any(|(grid, cluster)| !grid.is_multiple_of(cluster)) {
            return Err(DispatchError::ClusterGrid { grid, cluster });
        }
        let lanes = self.waves() * self.shape.wave_size;
        if self.meets() {
            let wave = Wave::new(self.shape.wave_size).file_bytes() as u64 * u64::from(self.waves());
            let each =
                wave + u64::from(self.shape.lds_bytes) + self.shape.scratch_bytes as u64 * lanes as u64;
            if self.workgroups().saturating_mul(each) > self.resident_bytes as u64 {
                return Err(DispatchError::Meets {
                    workgroups: self.workgroups(),
                    bytes: self.resident_bytes,
                });
            }
        }
        if self.shape.scratch_bytes as u64 * lanes as u64 > MAX_SCRATCH {
            return Err(DispatchError::Scratch { bytes: self.shape.scratch_bytes, items: self.items() });
        }
        Ok(())
    }

    /// Number of workgroups of the grid.
    pub fn workgroups(&self) -> u64 {
        self.shape.grid.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64)).unwrap_or(u64::MAX)
    }

    /// Returns whether the run has been cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        is_cancelled(self.cancel)
    }

    /// Instructions that a workgroup runs before it is suspended for the first time.
    pub(super) fn first_slice(&self) -> u64 {
        if self.cooperative { SHORT_SLICE } else { FIRST_SLICE }
    }

    pub(super) fn count_cluster(&self) {
        if let Some(progress) = self.progress {
            let waves = u64::from(self.waves()) * u64::from(self.cluster_workgroups());
            progress.waves.fetch_add(waves, Ordering::Relaxed);
        }
    }

    pub(super) fn count_group(&self) {
        if let Some(progress) = self.progress {
            progress.waves.fetch_add(u64::from(self.waves()), Ordering::Relaxed);
        }
    }

    pub(super) fn count_instructions(&self, executed: u64) {
        if let Some(progress) = self.progress {
            progress.instructions.fetch_add(executed, Ordering::Relaxed);
        }
    }

    /// Number of workgroups that run together, in turns, on one thread: those of a cluster; all, if they may meet
    /// ([`Dispatch::meets`]); otherwise 1.
    pub fn cluster_workgroups(&self) -> u32 {
        match self.meets() {
            true => self.workgroups().min(u64::from(u32::MAX)) as u32,
            false => self.shape.cluster.iter().product(),
        }
    }

    /// Whether the waves of different workgroups may meet, by global wave sync.
    pub fn meets(&self) -> bool {
        self.program.meets()
    }

    /// The state of global wave sync in which the dispatch starts.
    pub(super) fn gws_at_start(&self) -> Gws {
        self.gws.map_or_else(Gws::default, |gws| *gws.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Keeps the state of global wave sync after the dispatch for those that follow.
    pub(super) fn keep_gws(&self, common: &Common) {
        if let (Some(device), Some(gws)) = (self.gws, &common.gws) {
            *device.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = **gws;
        }
    }

    /// Returns the coordinates of the workgroup that starts as the `index`-th. Workgroups are numbered with x
    /// fastest. Those of a cluster follow each other; clusters, and the workgroups in each, are numbered alike.
    pub fn workgroup(&self, index: u64) -> [u32; 3] {
        let coordinates = |index: u64, [x, y]: [u64; 2]| [index % x, index / x % y, index / x / y];
        let count = u64::from(self.cluster_workgroups());
        let [x, y, _] = self.shape.grid.map(u64::from);
        if count == 1 || self.meets() {
            return coordinates(self.order.number(index, self.workgroups()), [x, y]).map(|c| c as u32);
        }
        let [nx, ny, nz] = self.shape.cluster.map(u64::from);
        let number = self.order.number(index / count, self.workgroups() / count);
        let [cx, cy, cz] = coordinates(number, [x / nx, y / ny]);
        let [wx, wy, wz] = coordinates(index % count, [nx, ny]);
        [cx * nx + wx, cy * ny + wy, cz * nz + wz].map(|c| c as u32)
    }

    /// Returns where a workgroup is in its cluster, if there are clusters of several workgroups.
    pub fn cluster_place(&self, workgroup: [u32; 3]) -> Option<ClusterPlace> {
        let size = self.shape.cluster;
        if size == [1; 3] {
            return None;
        }
        let position: [u32; 3] = std::array::from_fn(|dim| workgroup[dim] / size[dim]);
        let [x, y, _]: [u32; 3] = std::array::from_fn(|dim| self.shape.grid[dim] / size[dim]);
        let number = position[0] as u64 + x as u64 * (position[1] as u64 + y as u64 * position[2] as u64);
        let workgroup = std::array::from_fn(|dim| workgroup[dim] % size[dim]);
        // Hardware numbers the clusters that it runs at a time; 0 means none.
        Some(ClusterPlace { id: 1 + (number % 15) as u32, position, workgroup, size })
    }
}

/// Parses the coordinates of a workgroup, `x`, `x,y` or `x,y,z`; omitted ones are 0.
pub fn parse_group(text: &str) -> Result<[u32; 3], String> {
    let mut out = [0; 3];
    let parts: Vec<&str> = text.trim_matches(['(', ')']).split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err("a workgroup has three coordinates: x,y,z".to_string());
    }
    for (slot, part) in out.iter_mut().zip(&parts) {
        *slot = part.parse().map_err(|_| format!("`{part}` is not a coordinate"))?;
    }
    Ok(out)
}

/// The remaining instruction budget of a dispatch, shared by its threads.
pub struct Budget {
    left: AtomicU64,
    /// The initial budget in wave-instructions, for the fault message.
    pub limit: u64,
}

impl Budget {
    /// Creates a budget of `limit` wave-instructions for the whole dispatch.
    pub fn new(limit: u64) -> Budget {
        Budget { left: AtomicU64::new(limit), limit }
    }

    /// Takes up to `wanted` instructions from the budget; returns 0 when none are left.
    pub fn take(&self, wanted: u64) -> u64 {
        let mut left = self.left.load(Ordering::Relaxed);
        loop {
            let granted = left.min(wanted);
            match self.left.compare_exchange_weak(left, left - granted, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return granted,
                Err(now) => left = now,
            }
        }
    }

    /// Returns instructions that were taken but not executed.
    pub fn return_unused(&self, unused: u64) {
        self.left.fetch_add(unused, Ordering::Relaxed);
    }
}

/// Instructions that a workgroup runs before another one gets a turn: workgroups may wait for each other's
/// stores. Most workgroups end sooner.
const FIRST_SLICE: u64 = 4 << 20;
/// The same once workgroups have turned out to be long, or if they are known to wait for each other.
pub(super) const SHORT_SLICE: u64 = 256 << 10;
/// The default of [`Dispatch::resident_bytes`].
const MAX_RESIDENT_BYTES: usize = 1 << 30;
