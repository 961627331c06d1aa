//! Dispatches: program, shape and initial state of a launch, and how to run it. The waves of a workgroup take
//! turns (`group`). Workgroups run one after another or on several threads; long ones take turns as well.

use super::group::{Group, Pool};
pub use super::order::{GroupOrder, Schedule};
use crate::interp::Compiled;
use crate::observe::Observer;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::arch::machine::VectorFile;
use wavesim_machine::exec::program::Program;
use wavesim_machine::fault::{Fault, FaultKind};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::VGPRS;
use wavesim_machine::state::wave::VCC_LO;

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
    /// Number of host threads that run workgroups; 0 counts as 1. Always 1 without the feature `threads`.
    pub threads: usize,
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
    /// Work-items per workgroup and dimension.
    pub block: [u32; 3],
    /// 32 or 64.
    pub wave_size: u32,
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

/// Set on Ctrl-C to end all runs of the process between turns, with a fault that lists the position of every
/// wave.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

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
        Registers { vgprs: VGPRS as u16, accumulation: VGPRS as u16, sgprs: VCC_LO as u16 };

    /// Returns the number of VGPRs allocated to a wave of this size: indexed instructions cannot reach beyond
    /// them.
    pub fn allocated_vgprs(self, arch: Arch, wave_size: u32) -> u32 {
        let granule = arch.facts().vgprs.granule_of(wave_size);
        (self.vgprs as u32).max(1).next_multiple_of(granule).min(VGPRS as u32)
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
    #[error("{bytes} bytes of scratch for each of {items} work-items: a workgroup has at most {MAX_SCRATCH}")]
    Scratch { bytes: u32, items: u32 },
}

/// Upper bound of work-items in a workgroup (RDNA4 manual, *Work-groups and Barriers*).
pub const MAX_ITEMS: u64 = 1024;
/// Upper bound of waves in a workgroup, reached with waves of 32 lanes.
pub const MAX_WAVES: usize = MAX_ITEMS as usize / 32;
/// Upper bound of a workgroup's LDS on any architecture, in bytes; `Arch::lds_bytes` returns that of one.
pub const MAX_LDS: u32 = 160 << 10;
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
            threads: 1,
            cooperative: false,
            resident_bytes: MAX_RESIDENT_BYTES,
            progress: None,
            pool: None,
            cancel: None,
            compiled: None,
        }
    }
}

impl Dispatch<'_> {
    /// Number of work-items of a workgroup.
    pub fn items(&self) -> u32 {
        self.shape.block.iter().product()
    }

    /// Number of waves of a workgroup; the last one may be partial.
    pub fn waves(&self) -> u32 {
        self.items().div_ceil(self.shape.wave_size)
    }

    /// Checks that the dispatch can run; [`run`] does this first.
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

    /// Number of workgroups of the grid.
    pub fn workgroups(&self) -> u64 {
        self.shape.grid.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64)).unwrap_or(u64::MAX)
    }

    /// Returns whether the run has been cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        INTERRUPT.load(Ordering::Relaxed) || self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Instructions that a workgroup runs before it is suspended for the first time.
    fn first_slice(&self) -> u64 {
        if self.cooperative { SHORT_SLICE } else { FIRST_SLICE }
    }

    fn count_group(&self) {
        if let Some(progress) = self.progress {
            progress.waves.fetch_add(self.waves() as u64, Ordering::Relaxed);
        }
    }

    fn count_instructions(&self, executed: u64) {
        if let Some(progress) = self.progress {
            progress.instructions.fetch_add(executed, Ordering::Relaxed);
        }
    }

    /// Returns the coordinates of the workgroup that starts as the `index`-th. Workgroups are numbered with x
    /// fastest.
    pub fn workgroup(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.shape.grid.map(u64::from);
        let index = self.order.number(index, self.workgroups());
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
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

/// Runs the dispatch until it ends, or until the first fault in workgroup order.
pub fn run(dispatch: &Dispatch<'_>, memory: &Memory) -> Result<RunStats, Box<Fault>> {
    dispatch.check().map_err(launch_fault)?;
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
        first_faulty: AtomicU64::new(u64::MAX),
        fault: Mutex::new(None),
    };
    let _running = memory.register_threads(threads as u32);
    let instructions = if threads == 1 { work.run() } else { run_on_threads(threads, &work) };
    match work.fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some((_, fault)) => Err(fault),
        None => Ok(RunStats { instructions, waves: total * dispatch.waves() as u64 }),
    }
}

#[cfg(feature = "threads")]
#[allow(clippy::disallowed_methods, reason = "the one place that starts threads, by feature")]
fn run_on_threads(threads: usize, work: &Work<'_>) -> u64 {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work.run())).collect();
        workers.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    })
}

#[cfg(not(feature = "threads"))]
fn run_on_threads(_: usize, work: &Work<'_>) -> u64 {
    work.run()
}

/// As [`run`] on one thread, with an observer of every instruction. Returns the instruction count after a
/// fault as well.
pub fn run_observed<O: Observer + ?Sized>(
    dispatch: &Dispatch<'_>,
    memory: &Memory,
    observer: &mut O,
) -> (RunStats, Result<(), Box<Fault>>) {
    let mut stats = RunStats::default();
    if let Err(e) = dispatch.check() {
        return (stats, Err(launch_fault(e)));
    }
    let budget = Budget::new(dispatch.max_instructions);
    let (total, waves) = (dispatch.workgroups(), dispatch.waves() as usize);
    let mut spare = Some(Group::new(dispatch, memory));
    let resident = dispatch.resident_bytes / spare.as_ref().map_or(1, |group| group.bytes()).max(1);
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
        // An observer's time counts the instructions of the whole dispatch.
        group.executed = stats.instructions;
        let before = group.executed;
        let result = group.run_observed(&budget, slice, observer);
        dispatch.count_instructions(group.executed - before);
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
    spare.into_iter().for_each(|group| group.recycle());
    (stats, Ok(()))
}

fn launch_fault(e: DispatchError) -> Box<Fault> {
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

/// State shared by the threads.
struct Work<'a> {
    dispatch: &'a Dispatch<'a>,
    memory: &'a Memory,
    /// Number of workgroups.
    total: u64,
    threads: usize,
    budget: Budget,
    /// The next workgroup to start.
    next: AtomicU64,
    /// Index of the first workgroup known to have faulted. Those before it still finish, so that the reported
    /// fault does not depend on the number of threads.
    first_faulty: AtomicU64,
    fault: Mutex<Option<(u64, Box<Fault>)>>,
}

/// Instructions that a workgroup runs before another one gets a turn: workgroups may wait for each other's
/// stores. Most workgroups end sooner.
const FIRST_SLICE: u64 = 4 << 20;
/// The same for an observed run, in which instructions take longer.
const OBSERVED_SLICE: u64 = 1 << 20;
/// The same once workgroups have turned out to be long, or if they are known to wait for each other.
const SHORT_SLICE: u64 = 256 << 10;
/// Instructions in each later turn of a suspended workgroup.
const NEXT_SLICE: u64 = 64 << 10;
/// The default of [`Dispatch::resident_bytes`].
const MAX_RESIDENT_BYTES: usize = 1 << 30;

impl<'a> Work<'a> {
    /// Runs workgroups until none are left; returns the number of instructions executed.
    fn run(&self) -> u64 {
        let mut executed = 0;
        // Boxed, because workgroups are moved several times, which is a good part of the time of a short one.
        let new = || Box::new(Group::new(self.dispatch, self.memory));
        let mut spare = Some(new());
        let bytes = spare.as_ref().map_or(1, |group| group.bytes()).max(1);
        let resident = (self.dispatch.resident_bytes / self.threads / bytes).max(1);
        let mut waiting: VecDeque<(u64, Box<Group<'a>>)> = VecDeque::new();
        let mut first = self.dispatch.first_slice();
        let mut left = true;
        loop {
            let mut begun = None;
            if left && waiting.len() < resident {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                left = index < self.total && index <= self.first_faulty.load(Ordering::Relaxed);
                if left {
                    let mut group = spare.take().unwrap_or_else(new);
                    group.start(self.dispatch.workgroup(index));
                    begun = Some((index, group, first));
                }
            }
            let next = begun.or_else(|| waiting.pop_front().map(|(index, group)| (index, group, NEXT_SLICE)));
            let Some((index, mut group, slice)) = next else {
                spare.into_iter().for_each(|group| group.recycle());
                return executed;
            };
            if index > self.first_faulty.load(Ordering::Relaxed) {
                continue;
            }
            let before = group.executed;
            let result = group.run(&self.budget, slice);
            executed += group.executed - before;
            self.dispatch.count_instructions(group.executed - before);
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

    /// Records a fault. The dispatch reports the first one in workgroup order.
    fn record(&self, index: u64, fault: Box<Fault>) {
        self.first_faulty.fetch_min(index, Ordering::Relaxed);
        let mut first = self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|f| index < f.0) {
            *first = Some((index, fault));
        }
    }
}
