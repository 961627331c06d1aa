//! What is launched: program, shape, initial state; and running it. Waves of a workgroup take turns (`group`), workgroups run one
//! after another, or on threads; long ones take turns too.

use super::group::{Group, Pool};
pub use super::order::{GroupOrder, Schedule};
use crate::interp::Compiled;
use crate::observe::Observer;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wavesim_isa::arch::machine::VectorFile;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::VGPRS;
use wavesim_machine::state::wave::VCC_LO;

/// A launch, and how it runs.
pub struct Dispatch<'a> {
    /// The code that every wave runs, from [`Shape::entry_pc`] on.
    pub program: &'a Program,
    /// Grid, workgroups, and the registers that waves start with.
    pub shape: &'a Shape,
    /// Fault after this many wave-instructions in total.
    pub max_instructions: u64,
    /// Which wave of a workgroup runs next. A correct kernel gives the same under each.
    pub schedule: Schedule,
    /// Which workgroup starts next.
    pub order: GroupOrder,
    /// Host threads that run workgroups; 0 counts as 1. Without the feature `threads` there is one.
    pub threads: usize,
    /// Workgroups are known to wait for each other: they take shorter turns.
    pub cooperative: bool,
    /// Counts workgroups that have ended, for a display of progress.
    pub progress: Option<&'a AtomicU64>,
    /// Where register files come from and go to; `None`: they are allocated for this dispatch.
    pub pool: Option<&'a Pool>,
    /// Set to end this run, as [`INTERRUPT`] ends all.
    pub cancel: Option<&'a AtomicBool>,
    /// Compiled code of the program, for runs that nobody observes; `None`: it is interpreted.
    pub compiled: Option<&'a (dyn Compiled + Sync)>,
}

/// What a launch says beside program and memory.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Workgroups per dimension.
    pub grid: [u32; 3],
    /// Work-items per workgroup and dimension.
    pub block: [u32; 3],
    /// 32 or 64.
    pub wave_size: u32,
    /// Static plus dynamic LDS of a workgroup.
    pub lds_bytes: u32,
    /// Private memory of a lane.
    pub scratch_bytes: u32,
    /// What the kernel declares. An instruction that names others reaches them all the same; the check `hazard` reports it.
    pub registers: Registers,
    /// What the registers hold when a wave starts.
    pub init: InitialState,
    /// Byte offset of the first instruction in the program.
    pub entry_pc: u64,
    /// Address of the program's first byte, as S_GETPC sees it.
    pub code_base: u64,
}

/// Set to end all runs of the process between turns, with a fault that says where the waves stand: Ctrl-C.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Registers that a kernel declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// VGPRs of a lane, before the rounding of [`Registers::allocated_vgprs`].
    pub vgprs: u16,
    /// Numbered ones, without VCC and the other special registers.
    pub sgprs: u16,
}

impl Registers {
    /// All that instructions can name.
    pub const ALL: Registers = Registers { vgprs: VGPRS as u16, sgprs: VCC_LO as u16 };

    /// VGPRs that a wave of so many lanes is allocated: more are out of range of indexed instructions.
    pub fn allocated_vgprs(self, wave_size: u32) -> u32 {
        (self.vgprs as u32).max(1).next_multiple_of(vgpr_granule(wave_size)).min(VGPRS as u32)
    }
}

/// VGPRs are allocated in multiples of so many (LLVM AMDGPUUsage, *compute_pgm_rsrc1*).
pub fn vgpr_granule(wave_size: u32) -> u32 {
    if wave_size == 32 { 8 } else { 4 }
}

/// Registers of a wave at its start.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// Where workgroup and work-item ids go.
    pub layout: Layout,
    /// MODE register.
    pub mode: u32,
    /// `(first SGPR, values)`: the same in every wave.
    pub sgprs: Vec<(u16, Vec<u32>)>,
}

/// Where workgroup and work-item ids go.
#[derive(Debug, Clone)]
pub enum Layout {
    /// The text format: workgroup ids in s0, s1, s2 and work-item ids in v0, v1, v2, each only for the dimensions flagged.
    Text { group_ids: [bool; 3], item_ids: [bool; 3] },
    /// The HSA ABI (LLVM AMDGPUUsage, *Initial Kernel Execution State*): system SGPRs from `first_system_sgpr` on for the enabled
    /// workgroup ids (`architected`: in ttmp9/ttmp7 instead, gfx12), packed work-item ids in v0 (`item_id_dims` 0, 1 or 2 beyond X).
    Hsa { first_system_sgpr: u16, group_ids: [bool; 3], architected: bool, item_id_dims: u8 },
    /// A machine of its own: in the read-only registers of this file.
    Own(&'static VectorFile),
}

/// What a finished run says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Wave-instructions executed.
    pub instructions: u64,
    /// Waves that were started.
    pub waves: u64,
}

/// Why a dispatch cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// A wave of so many lanes.
    #[error("waves have 32 or 64 lanes, not {0}")]
    WaveSize(u32),
    #[error("{arch} has no waves of {size} lanes")]
    NoSuchWave { arch: &'static str, size: u32 },
    #[error("a workgroup of {0:?} work-items: 1 to {1} are possible")]
    Block([u32; 3], u64),
    #[error("{0} bytes of LDS: a workgroup has at most {1}")]
    Lds(u32, u32),
    #[error("{bytes} bytes of scratch for each of {items} work-items: a workgroup has at most {MAX_SCRATCH}")]
    Scratch { bytes: u32, items: u32 },
}

/// Work-items of a workgroup (RDNA4 manual, *Work-groups and Barriers*).
pub const MAX_ITEMS: u64 = 1024;
/// Waves of a workgroup, where each has 32 lanes.
pub const MAX_WAVES: usize = MAX_ITEMS as usize / 32;
/// Bytes of LDS that a workgroup can be allocated on any architecture; `Arch::lds_bytes` has those of one.
pub const MAX_LDS: u32 = 160 << 10;
/// Bytes of scratch of a workgroup: a bound of ours, so that no header makes us take all of the host's memory.
pub const MAX_SCRATCH: u64 = 128 << 20;

impl<'a> Dispatch<'a> {
    /// Workgroup after workgroup on one thread, interpreted. Schedule, threads and the rest are the caller's to change.
    pub fn new(program: &'a Program, shape: &'a Shape, max_instructions: u64) -> Dispatch<'a> {
        Dispatch {
            program,
            shape,
            max_instructions,
            schedule: Schedule::RoundRobin,
            order: Default::default(),
            threads: 1,
            cooperative: false,
            progress: None,
            pool: None,
            cancel: None,
            compiled: None,
        }
    }
}

impl Dispatch<'_> {
    /// Work-items of a workgroup.
    pub fn items(&self) -> u32 {
        self.shape.block.iter().product()
    }

    /// Waves of a workgroup, the last one perhaps partial.
    pub fn waves(&self) -> u32 {
        self.items().div_ceil(self.shape.wave_size)
    }

    /// Whether this can run at all; [`run`] checks it first.
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
        let lanes = self.waves() * self.shape.wave_size;
        if self.shape.scratch_bytes as u64 * lanes as u64 > MAX_SCRATCH {
            return Err(DispatchError::Scratch { bytes: self.shape.scratch_bytes, items: self.items() });
        }
        Ok(())
    }

    /// Workgroups of the grid.
    pub fn workgroups(&self) -> u64 {
        self.shape.grid.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64)).unwrap_or(u64::MAX)
    }

    /// Whether the run is to end.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        INTERRUPT.load(Ordering::Relaxed) || self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Instructions of a workgroup before another one begins in its place.
    fn first_slice(&self) -> u64 {
        if self.cooperative { SHORT_SLICE } else { FIRST_SLICE }
    }

    fn count_group(&self) {
        if let Some(progress) = self.progress {
            progress.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Coordinates of the workgroup that starts as the `index`-th. They are numbered with x fastest.
    pub fn workgroup(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.shape.grid.map(u64::from);
        let index = self.order.number(index, self.workgroups());
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }
}

/// Coordinates of a workgroup: `x`, `x,y` or `x,y,z`; those that are missing are 0.
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

/// Instructions left to the dispatch, shared by its threads.
pub struct Budget {
    left: AtomicU64,
    /// Wave-instructions that there were at the start, for the message of the fault.
    pub limit: u64,
}

impl Budget {
    /// So many wave-instructions, for the whole dispatch.
    pub fn new(limit: u64) -> Budget {
        Budget { left: AtomicU64::new(limit), limit }
    }

    /// Up to `wanted` instructions, 0 when none are left.
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

    /// Returns what was taken and not executed.
    pub fn give_back(&self, unused: u64) {
        self.left.fetch_add(unused, Ordering::Relaxed);
    }
}

/// Runs the dispatch to its end, or to the first fault in the order of workgroups.
pub fn run(dispatch: &Dispatch<'_>, memory: &Memory) -> Result<RunStats, Box<Fault>> {
    dispatch.check().map_err(refused)?;
    let total = dispatch.workgroups();
    let threads = if cfg!(feature = "threads") { dispatch.threads.max(1) } else { 1 };
    let threads = (threads as u64).min(total.max(1)) as usize;
    let work = Work {
        dispatch,
        memory,
        total,
        threads,
        budget: Budget::new(dispatch.max_instructions),
        next: AtomicU64::new(0),
        stop_behind: AtomicU64::new(u64::MAX),
        fault: Mutex::new(None),
    };
    let _running = memory.run_on(threads as u32);
    let instructions = if threads == 1 { work.run() } else { on_threads(threads, &work) };
    match work.fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some((_, fault)) => Err(fault),
        None => Ok(RunStats { instructions, waves: total * dispatch.waves() as u64 }),
    }
}

#[cfg(feature = "threads")]
#[allow(clippy::disallowed_methods, reason = "the one place that starts threads, by feature")]
fn on_threads(threads: usize, work: &Work<'_>) -> u64 {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work.run())).collect();
        workers.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    })
}

#[cfg(not(feature = "threads"))]
fn on_threads(_: usize, work: &Work<'_>) -> u64 {
    work.run()
}

/// As [`run`] on one thread, with an observer of every instruction. The count of instructions is given on a fault too.
pub fn run_observed<O: Observer + ?Sized>(
    dispatch: &Dispatch<'_>,
    memory: &Memory,
    observer: &mut O,
) -> (RunStats, Result<(), Box<Fault>>) {
    let mut stats = RunStats::default();
    if let Err(e) = dispatch.check() {
        return (stats, Err(refused(e)));
    }
    let budget = Budget::new(dispatch.max_instructions);
    let (total, waves) = (dispatch.workgroups(), dispatch.waves() as usize);
    let mut spare = Some(Group::new(dispatch, memory));
    let resident = MAX_RESIDENT_BYTES / spare.as_ref().map_or(1, Group::bytes).max(1);
    let mut parked: VecDeque<Group<'_>> = VecDeque::new();
    let mut first = dispatch.first_slice().min(OBSERVED_SLICE);
    let mut next = 0;
    loop {
        let (mut group, slice) = if next < total && parked.len() < resident.max(1) {
            let mut group = spare.take().unwrap_or_else(|| Group::new(dispatch, memory));
            group.start(dispatch.workgroup(next));
            next += 1;
            stats.waves += waves as u64;
            observer.group_started(group.id, waves);
            (group, first)
        } else if let Some(group) = parked.pop_front() {
            observer.group_resumed(group.id);
            (group, NEXT_SLICE)
        } else {
            break;
        };
        // The time of an observer is that of the dispatch.
        group.executed = stats.instructions;
        let result = group.run_observed(&budget, slice, observer);
        stats.instructions = group.executed;
        match result {
            Ok(true) => {
                observer.group_ended(group.id);
                dispatch.count_group();
                spare = Some(group);
            }
            Ok(false) => {
                first = SHORT_SLICE;
                observer.group_parked(group.id);
                parked.push_back(group);
            }
            Err(fault) => {
                dispatch.count_group();
                return (stats, Err(fault));
            }
        }
    }
    spare.into_iter().for_each(Group::recycle);
    (stats, Ok(()))
}

fn refused(e: DispatchError) -> Box<Fault> {
    Box::new(Fault {
        kind: FaultKind::Other,
        message: e.to_string(),
        line: 0,
        file: None,
        pc: 0,
        instruction: "(not started)".to_string(),
        workgroup: [0; 3],
        wave: 0,
        lane: None,
        address: None,
    })
}

/// What the threads share.
struct Work<'a> {
    dispatch: &'a Dispatch<'a>,
    memory: &'a Memory,
    /// Workgroups.
    total: u64,
    threads: usize,
    budget: Budget,
    /// The next workgroup to start.
    next: AtomicU64,
    /// Index of the first faulty workgroup so far: those before it still finish, so that the reported fault is the same whatever the
    /// number of threads.
    stop_behind: AtomicU64,
    fault: Mutex<Option<(u64, Box<Fault>)>>,
}

/// Instructions of a workgroup before another one runs in its place: workgroups may wait for each other's stores. Most end before.
const FIRST_SLICE: u64 = 4 << 20;
/// The same of an observed run, in which instructions take longer.
const OBSERVED_SLICE: u64 = 1 << 20;
/// The same if workgroups have proven to be long, or are known to wait for each other.
const SHORT_SLICE: u64 = 256 << 10;
/// Instructions of a workgroup that goes on.
const NEXT_SLICE: u64 = 64 << 10;
/// Bytes of the workgroups that have begun and not ended, at most, on all threads.
const MAX_RESIDENT_BYTES: usize = 1 << 30;

impl<'a> Work<'a> {
    /// Takes workgroups until none are left; gives the instructions executed.
    fn run(&self) -> u64 {
        let mut executed = 0;
        let mut spare = Some(Group::new(self.dispatch, self.memory));
        let bytes = spare.as_ref().map_or(1, Group::bytes).max(1);
        let resident = (MAX_RESIDENT_BYTES / self.threads / bytes).max(1);
        let mut waiting: VecDeque<(u64, Group<'a>)> = VecDeque::new();
        let mut first = self.dispatch.first_slice();
        let mut left = true;
        loop {
            let mut begun = None;
            if left && waiting.len() < resident {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                left = index < self.total && index <= self.stop_behind.load(Ordering::Relaxed);
                if left {
                    let mut group = spare.take().unwrap_or_else(|| Group::new(self.dispatch, self.memory));
                    group.start(self.dispatch.workgroup(index));
                    begun = Some((index, group, first));
                }
            }
            let next = begun.or_else(|| waiting.pop_front().map(|(index, group)| (index, group, NEXT_SLICE)));
            let Some((index, mut group, slice)) = next else {
                spare.into_iter().for_each(Group::recycle);
                return executed;
            };
            if index > self.stop_behind.load(Ordering::Relaxed) {
                continue;
            }
            let before = group.executed;
            let result = group.run(&self.budget, slice);
            executed += group.executed - before;
            match result {
                Ok(false) => {
                    first = SHORT_SLICE;
                    waiting.push_back((index, group));
                    continue;
                }
                Ok(true) => {}
                Err(fault) => self.record(index, fault),
            }
            self.dispatch.count_group();
            spare = Some(group);
        }
    }

    /// The first fault in the order of workgroups is the dispatch's.
    fn record(&self, index: u64, fault: Box<Fault>) {
        self.stop_behind.fetch_min(index, Ordering::Relaxed);
        let mut first = self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|f| index < f.0) {
            *first = Some((index, fault));
        }
    }
}
