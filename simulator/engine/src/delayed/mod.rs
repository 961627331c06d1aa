//! Delayed memory: memory operations take effect some time after their issue, as on hardware, and not at once.
//!
//! An operation goes through these steps, at times that [`Delays`] chooses between its issue and the wait that
//! demands it:
//!
//! 1. It is *issued*: its sources are read, and never again.
//! 2. It is *performed*: it accesses memory. Its handler runs on a shadow wave that has the registers of the time
//!    of issue, so that no handler knows of delays.
//! 3. It *returns*: its results are written to the wave's registers. Results return in the order that the
//!    architecture defines ([`wavesim_machine::exec::issue`], which the check of missing waits uses, too).
//!
//! Operations of a wave are performed in any order, with these exceptions (LLVM AMDGPUUsage, *Memory Model*; the
//! manuals' chapters on LDS): LDS operations are performed in order, and operations that access the same bytes
//! are, unless one of them is a scalar load, or one copies between global memory and LDS and the other accesses
//! that LDS. Those need a wait.
//!
//! A wait performs and returns the operations that it shows to be complete. So does the end of a wave for all of
//! its operations. A program that has all waits that it needs computes what it computes with immediate memory.

mod blocked;
mod pending;
mod private;
mod queue;
mod run;

pub use queue::{Outstanding, Queue};
pub(crate) use run::{DelayedWorkgroup, OnQueue, Stop, run, with_queue};

use crate::caches::{Caches, Placement, Policy};
use crate::execute::execute;
use crate::handlers::HANDLERS;
use crate::sched::order::splitmix64;
use crate::sched::poison::Poison;
use isa_spec::pcode::builtins::Control;
use std::str::FromStr;
use std::sync::Arc;
use wavesim_isa::arch::facts::{Counter, HalfWrite};
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::effects::{self, Class, Effects, File, Relative, Use};
use wavesim_machine::exec::issue::Issue;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::Cx;
use wavesim_machine::exec::watch::{Logs, Watch};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::{Wave, Workgroup};

/// When memory operations are performed and return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delays {
    /// At random times, derived from this seed, the number of the wave, and the number of the operation: a quarter
    /// at once, half of them only when a wait demands it.
    Random(u64),
    /// Only when a wait demands it, or [`RunningGroup::perform`](crate::sched::group::RunningGroup::perform) and
    /// [`RunningGroup::complete`](crate::sched::group::RunningGroup::complete) are called. With [`Choices`], only those
    /// that they select are delayed, and the others are performed and return at once.
    Demanded,
}

/// A memory operation of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    /// The workgroup, by its place in the order of starts.
    pub group: u64,
    /// The wave's index in its workgroup.
    pub wave: u32,
    /// The number of the operation among those of its wave, from 0.
    pub number: u64,
}

/// Which operations are delayed, with [`Delays::Demanded`].
#[derive(Clone)]
pub struct Choices {
    /// Returns whether an operation is delayed, given the index of its instruction.
    pub is_late: Arc<dyn Fn(OperationId, usize) -> bool + Send + Sync>,
    /// A wave's turn ends before an instruction that waits for an outstanding operation. Unless it would be the first one
    /// of the turn, it also ends before an instruction that could wait, if an operation of the wave was delayed, and
    /// before one that accesses registers that an outstanding operation is going to write. The caller then chooses what
    /// happens first.
    pub stops: bool,
}

/// Memory that is immediate or delayed, as parsed from `immediate`, `delayed` or `delayed:SEED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// Memory operations take effect at once.
    #[default]
    Immediate,
    /// At random times, which this seed determines: [`Delays::Random`].
    Delayed(u64),
}

impl Timing {
    /// Returns the delayed memory of a program, or `None` for immediate memory.
    ///
    /// # Errors
    /// The architecture has no counters.
    pub fn model(self, program: &Program, wave_size: u32) -> Result<Option<DelayedMemory>, NoCounters> {
        match self {
            Timing::Immediate => Ok(None),
            Timing::Delayed(seed) => DelayedMemory::new(program, wave_size, Delays::Random(seed)).map(Some),
        }
    }

    /// Returns the garbage that workgroups start with, unless told otherwise.
    pub fn poison(self) -> Option<Poison> {
        match self {
            Timing::Immediate => None,
            Timing::Delayed(seed) => Some(Poison(seed)),
        }
    }
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(text: &str) -> Result<Timing, String> {
        let seed = |seed: &str| seed.parse().map_err(|_| format!("the seed `{seed}` is not a number"));
        match text.split_once(':') {
            None if text == "immediate" => Ok(Timing::Immediate),
            None if text == "delayed" => Ok(Timing::Delayed(1)),
            Some(("delayed", text)) => seed(text).map(Timing::Delayed),
            _ => Err(format!("`{text}` is not one of immediate, delayed and delayed:SEED")),
        }
    }
}

/// Why a program cannot run with delayed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} has no counters of outstanding memory operations, so nothing tells when a delayed one must be complete"
)]
pub struct NoCounters(&'static str);

/// Delayed memory for a program: what each instruction issues or waits for.
pub struct DelayedMemory {
    /// When operations are performed and return.
    pub delays: Delays,
    insts: Vec<Inst>,
    /// By instruction: whether it neither issues nor waits.
    plain: Vec<bool>,
    /// By instruction, with [`Delays::Random`]: the distance to the wait that demands its operation, if up to there only other
    /// waves could see when it takes effect; otherwise 0.
    private: Vec<u8>,
    /// By instruction, with [`Delays::Demanded`]: the registers that it reads, and those that it writes.
    uses: Vec<[Box<[Use]>; 2]>,
    /// The VGPRs that the instructions name, in ascending order; `None` if a number depends on the wave's state.
    vgprs: Option<Box<[u16]>>,
    /// Whether any load may hit in a cache and any instruction stores.
    uses_caches: bool,
    /// Whether caches other than that of scalar loads do, or one of the instructions discards that cache.
    needs_controls: bool,
}

/// The outstanding operations of a workgroup.
pub(crate) struct State {
    /// By wave.
    pub queues: Vec<Queue>,
    /// The wave whose registers handlers of operations access. It has no state between operations.
    pub shadow: Box<Wave>,
    /// Which operations are delayed.
    pub choices: Option<Choices>,
    /// By wave: the caches that it sits behind; empty if caches are always coherent.
    pub placements: Vec<Placement>,
}

impl Clone for State {
    fn clone(&self) -> State {
        State {
            queues: self.queues.clone(),
            shadow: Box::new(Wave::new(self.shadow.size())),
            choices: self.choices.clone(),
            placements: self.placements.clone(),
        }
    }
}

impl State {
    /// Creates the state of a workgroup of `waves` waves.
    pub fn new(waves: usize, wave_size: u32, choices: Option<Choices>) -> State {
        let shadow = Box::new(Wave::new(wave_size));
        State { queues: vec![Queue::default(); waves], shadow, choices, placements: Vec::new() }
    }

    /// Empties the queues for a workgroup that starts.
    pub fn start(&mut self, delays: Delays, [x, y, z]: [u32; 3]) {
        let Delays::Random(seed) = delays else {
            return self.queues.iter_mut().for_each(|queue| queue.start(0));
        };
        let group = splitmix64(seed ^ u64::from(x) ^ u64::from(y) << 20 ^ u64::from(z) << 40);
        for (wave, queue) in (0..).zip(&mut self.queues) {
            queue.start(splitmix64(group.wrapping_add(wave)));
        }
    }
}

/// What an instruction means for outstanding operations.
enum Inst {
    /// It neither issues an operation nor waits for any.
    Plain,
    /// It waits until at most so many operations of these counters are outstanding.
    Wait(Box<[(Counter, u32)]>),
    /// As [`Inst::Wait`], for numbers that depend on the wave's state.
    ComputedWait,
    /// It waits for all operations.
    WaitAll,
    /// It accesses registers whose numbers depend on data, and runs after all outstanding operations.
    Serial,
    /// It merges results of 16 bits into these registers, whose other halves it reads and writes back.
    Merge(Box<[Use]>),
    /// It discards the contents of these caches, and issues no operation.
    Invalidate(Caches),
    Operation(Box<Operation>),
}

/// An asynchronous operation.
struct Operation {
    issue: Issue,
    path: Path,
    reads: Vec<Use>,
    writes: Vec<Use>,
    policy: Policy,
    /// The caches whose contents it discards, at its issue.
    invalidates: Caches,
}

/// The path that an operation takes to memory, which determines its order with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// LDS instructions.
    Lds,
    /// Vector memory; `lds` for FLAT, which may access LDS.
    Vector { lds: bool },
    /// Scratch.
    Scratch,
    /// Copies between global memory and LDS.
    Copy,
    /// Scalar memory and messages.
    Scalar,
}

impl DelayedMemory {
    /// Analyses a program for waves of this size.
    ///
    /// # Errors
    /// The architecture has no counters.
    pub fn new(program: &Program, wave_size: u32, delays: Delays) -> Result<DelayedMemory, NoCounters> {
        if program.arch.machine().is_some() {
            return Err(NoCounters(program.arch.facts().title));
        }
        let effects = effects::table(program, wave_size);
        let mut scratch = Wave::new(wave_size);
        let loads_halves = effects.iter().any(|e| e.class.is_memory() && e.writes.iter().any(is_half));
        let of = |(index, effects): (usize, &Effects)| match delays {
            // The end of a wave waits for its operations.
            Delays::Demanded if effects.calls.contains(&Control::EndPgm) => Inst::WaitAll,
            _ => match classify(program, index, effects, &mut scratch) {
                Inst::Plain if loads_halves => merge(program, effects),
                inst => inst,
            },
        };
        let insts: Vec<Inst> = effects.iter().enumerate().map(of).collect();
        let plain = insts.iter().map(|inst| matches!(inst, Inst::Plain)).collect();
        let private = match delays {
            Delays::Random(_) => private::distances(program, &effects, &insts),
            Delays::Demanded => vec![0; insts.len()],
        };
        let uses = match delays {
            Delays::Random(_) => Vec::new(),
            Delays::Demanded => {
                effects.iter().map(|e| [e.reads.clone().into(), e.writes.clone().into()]).collect()
            }
        };
        let policies =
            || program.insts.iter().zip(effects.iter()).map(|(i, e)| Policy::of(program.arch, i, e));
        let stores = effects.iter().any(|e| e.memory.iter().any(|m| m.write));
        let uses_caches = stores && policies().any(|policy| !policy.hits.is_empty() || policy.stays);
        let vector = |policy: Policy| policy.hits.meets(Caches::L0.or(Caches::L1)) || policy.stays;
        let drops = |inst: &Inst| match inst {
            Inst::Invalidate(caches) => caches.meets(Caches::SCALAR),
            _ => false,
        };
        let needs_controls = uses_caches && (policies().any(vector) || insts.iter().any(drops));
        let vgprs = named_vgprs(&effects);
        Ok(DelayedMemory { delays, insts, plain, private, uses, vgprs, uses_caches, needs_controls })
    }

    /// Returns the VGPRs that the program's instructions name, in ascending order; `None` if a number depends on the wave's
    /// state.
    pub(crate) fn vgprs(&self) -> Option<&[u16]> {
        self.vgprs.as_deref()
    }

    /// Returns whether caches can make a difference: an instruction stores, and one may load from a cache.
    pub fn uses_caches(&self) -> bool {
        self.uses_caches
    }

    /// Returns whether caches can make a difference to what a wave loads, apart from constants such as its arguments.
    pub fn needs_controls(&self) -> bool {
        self.needs_controls
    }

    /// Returns whether an instruction neither issues an operation nor waits for any. Also true beyond the program,
    /// where the interpreter raises a fault.
    #[inline(always)]
    fn is_plain(&self, index: usize) -> bool {
        self.plain.get(index).is_none_or(|plain| *plain)
    }
}

/// Returns the VGPRs that instructions name.
fn named_vgprs(effects: &[Effects]) -> Option<Box<[u16]>> {
    let uses =
        || effects.iter().flat_map(|e| e.reads.iter().chain(&e.writes)).filter(|u| u.file == File::Vgpr);
    if uses().any(|used| used.relative.is_some()) {
        return None;
    }
    let all: std::collections::BTreeSet<u16> =
        uses().flat_map(|used| used.first..used.first.saturating_add(used.count)).collect();
    Some(all.into_iter().collect())
}

/// Whether a half of a vector register is written.
fn is_half(used: &Use) -> bool {
    used.file == File::Vgpr && used.bits != u32::MAX
}

/// Classifies an instruction that neither issues nor waits, in a program with loads into halves of registers.
fn merge(program: &Program, effects: &Effects) -> Inst {
    let merges = program.arch.facts().half_writes.result == HalfWrite::Merge;
    let halves: Box<[Use]> = effects.writes.iter().filter(|used| merges && is_half(used)).cloned().collect();
    if halves.is_empty() { Inst::Plain } else { Inst::Merge(halves) }
}

fn classify(program: &Program, index: usize, effects: &Effects, scratch: &mut Wave) -> Inst {
    let facts = program.arch.facts();
    if effects.calls.contains(&Control::WaitIdle) {
        return Inst::WaitAll;
    }
    if effects.calls.iter().any(|call| Counter::of(*call).is_some()) {
        let waits = match effects.reads.is_empty() {
            true => waits_of(program, index, scratch),
            false => None,
        };
        return waits.map_or(Inst::ComputedWait, |waits| Inst::Wait(waits.into()));
    }
    let policy = Policy::of(program.arch, &program.insts[index], effects);
    let invalidates = match effects.calls.contains(&Control::InvalidateCaches) {
        true => invalidated(program, index, scratch).and(policy.reaches),
        false => Caches::default(),
    };
    let Some(issue) = Issue::of(&facts.counters, effects) else {
        return if invalidates.is_empty() { Inst::Plain } else { Inst::Invalidate(invalidates) };
    };
    let mut uses = effects.reads.iter().chain(&effects.writes);
    if uses.any(|used| used.relative == Some(Relative::Any)) {
        return Inst::Serial;
    }
    let path = match effects.class {
        Class::Lds => Path::Lds,
        Class::Flat => Path::Vector { lds: true },
        Class::Scratch => Path::Scratch,
        Class::Vmem if effects.loads_to_lds() => Path::Copy,
        Class::Vmem => Path::Vector { lds: false },
        _ => Path::Scalar,
    };
    let (reads, writes) = (effects.reads.clone(), effects.writes.clone());
    Inst::Operation(Box::new(Operation { issue, path, reads, writes, policy, invalidates }))
}

/// Runs an instruction that only waits, and returns what it waits for; `None` if it has other effects.
fn waits_of(program: &Program, index: usize, wave: &mut Wave) -> Option<Vec<(Counter, u32)>> {
    let calls = calls_of(program, index, wave)?;
    let waits = calls.iter().filter_map(|(call, n)| Some((Counter::of(*call)?, *n)));
    calls.iter().all(|(call, _)| call.is_wait()).then(|| waits.collect())
}

/// Runs an instruction that invalidates caches, and returns these.
fn invalidated(program: &Program, index: usize, wave: &mut Wave) -> Caches {
    let calls = calls_of(program, index, wave).unwrap_or_default();
    let of = |(call, caches): &(Control, u32)| {
        if *call == Control::InvalidateCaches { Caches(*caches as u8) } else { Caches::default() }
    };
    calls.iter().map(of).fold(Caches::default(), Caches::or)
}

/// Runs an instruction that accesses no memory, and returns the builtins that it calls, with their first arguments; `None`
/// if it has ended the wave's turn.
fn calls_of(program: &Program, index: usize, wave: &mut Wave) -> Option<Vec<(Control, u32)>> {
    let mut logs = Logs::default();
    let memory = Memory::empty();
    let mut nothing = ([0u8; 0], [0u8; 0], [0u8; 0], [0u8; 0]);
    let mut workgroup = Workgroup::new(1);
    let mut watch = Watch {
        memory: &memory,
        lds: &mut nothing.0,
        scratch: &mut nothing.1,
        scratch_stride: 0,
        logs: &mut logs,
        quiet: false,
        keep_going: true,
        keeps_loads: false,
    };
    let mut context = Context {
        memory: &memory,
        lds: &mut nothing.2,
        scratch: &mut nothing.3,
        scratch_stride: 0,
        workgroup: &mut workgroup,
        instructions: 0,
        cancel: None,
    };
    let pools = program.lowered().pools();
    let mut cx = Cx::new(&HANDLERS, Avx2::detect(), program.arch, wave, &mut context, pools, 0);
    cx.watch = Some(&mut watch);
    cx.op = program.any_op_at(program.pcs[index])?;
    let event = execute(&mut cx, program, index, None).1;
    event.is_none().then_some(logs.calls)
}
