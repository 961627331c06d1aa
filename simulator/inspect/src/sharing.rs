//! Whether the workgroups of a launch can observe one another, and so on how many host threads they run.
//!
//! Workgroups observe one another by global atomics, by loads that bypass caches, by messages to the host and by
//! the clock. A kernel that has none of these has no means to exchange data that the memory model allows (LLVM
//! AMDGPUUsage, *Memory Model*): without a data race, its results do not depend on the order of workgroups.

use crate::check::successors;
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Space;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};
use wavesim_engine::sched::dispatch::Dispatch;
use wavesim_machine::exec::effects::{self, Class, Effects};
use wavesim_machine::exec::hwreg;
use wavesim_machine::exec::program::Program;

/// The work of an automatic first thread before it starts others, in wave-instructions: more than a start takes.
const ALONE: u64 = 50_000;

/// Maximum number of host threads of a launch.
pub const MAX_THREADS: usize = 256;

/// Returns the number of the host's processors that this process may use.
#[allow(clippy::disallowed_methods, reason = "an error, and so one, where there are no threads")]
pub fn processors() -> usize {
    // The system reads files to answer.
    static COUNT: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *COUNT
}

/// The number of host threads that run the workgroups of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// One for each processor if the workgroups cannot observe one another, else one.
    #[default]
    Auto,
    /// This many.
    Fixed(usize),
}

impl Threads {
    /// Sets the number of threads of a dispatch. `sharing` says how its workgroups observe one another; it is called
    /// only if that matters.
    pub fn apply(self, dispatch: &mut Dispatch<'_>, sharing: impl FnOnce() -> Option<Sharing>) {
        (dispatch.threads, dispatch.alone) = match self {
            Threads::Fixed(n) => (n, 0),
            Threads::Auto if processors() == 1 || dispatch.workgroups() == 1 || sharing().is_some() => (1, 0),
            Threads::Auto => (processors().min(MAX_THREADS), ALONE),
        };
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threads::Auto => f.write_str("auto"),
            Threads::Fixed(n) => write!(f, "{n}"),
        }
    }
}

/// Text that is no number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not `auto`, and not a number from 1 to {MAX_THREADS}")]
pub struct WrongThreads;

impl FromStr for Threads {
    type Err = WrongThreads;

    fn from_str(text: &str) -> Result<Threads, WrongThreads> {
        match text.trim() {
            "auto" => Ok(Threads::Auto),
            number => match number.parse() {
                Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(Threads::Fixed(n)),
                _ => Err(WrongThreads),
            },
        }
    }
}

/// A means by which a workgroup can observe others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// An atomic on memory that workgroups share.
    Atomic,
    /// A load that bypasses caches.
    CoherentLoad,
    /// A message to the host, or its answer.
    Message,
    /// The clock, which counts the instructions that a thread has executed.
    Clock,
    /// Semantics that the user has replaced, or none.
    Unknown,
}

/// The first instruction by which a workgroup can observe others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// Byte offset of the instruction in the program.
    pub pc: u64,
    /// What it does.
    pub means: Means,
}

impl Sharing {
    /// Describes the instruction: what it does, its text and where it is.
    pub fn describe(&self, program: &Program) -> String {
        let what = match self.means {
            Means::Atomic => "an atomic on global memory",
            Means::CoherentLoad => "a coherent load",
            Means::Message => "a message",
            Means::Clock => "a read of the clock",
            Means::Unknown => "an instruction whose semantics are not built in",
        };
        let text = program.inst_at(self.pc).map(|at| program.text(at)).unwrap_or_default();
        format!("{what}, `{text}` at {}", program.place(self.pc))
    }
}

/// Returns the first instruction that a wave may execute from `entry_pc` on by which its workgroup can observe others,
/// in the order of addresses; `None` if workgroups are independent.
pub fn sharing(program: &Program, entry_pc: u64) -> Option<Sharing> {
    let mut seen = vec![false; program.insts.len()];
    let mut open: Vec<usize> = program.inst_at(entry_pc).into_iter().collect();
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let next = successors(program, at);
        let flags = program.insts[at].instruction(program.arch.table()).flags();
        if flags.branch && next[1].is_none() {
            // A jump to an address in registers: all instructions may follow.
            seen.fill(true);
            break;
        }
        open.extend(next.into_iter().flatten());
    }
    let reached = (0..seen.len()).filter(|at| seen[*at]);
    reached.filter_map(|at| means(program, at).map(|means| Sharing { pc: program.pcs[at], means })).next()
}

fn means(program: &Program, index: usize) -> Option<Means> {
    let inst = &program.insts[index];
    let facts = |entry| program.facts(entry, program.wave_size);
    if program.replaced_semantics(program.pcs[index]).is_some()
        || program.semantics(program.pcs[index]).is_none()
    {
        return Some(Means::Unknown);
    }
    let effects = effects::effects(program.arch, inst, program.wave_size, facts);
    let immediate = || inst.field(program.arch.table(), "SIMM16").unwrap_or(0);
    for call in &effects.calls {
        match call {
            // The message that frees registers has no effect on others.
            Control::SendMsg if program.arch.facts().dealloc_message == Some(immediate() & 0xff) => {}
            Control::SendMsg | Control::SendMsgRtn => return Some(Means::Message),
            call if call.meets() => return Some(Means::Message),
            Control::GetReg if hwreg::is_clock(program.arch, immediate() & 0x3f) => {
                return Some(Means::Clock);
            }
            _ => {}
        }
    }
    match is_shared(&effects) {
        true if effects.atomic => Some(Means::Atomic),
        true if effects.coherent && effects.returns => Some(Means::CoherentLoad),
        _ => None,
    }
}

/// Returns whether an instruction accesses memory that workgroups share.
fn is_shared(effects: &Effects) -> bool {
    let private = |space| matches!(space, Space::Lds | Space::Scratch);
    effects.class.is_memory()
        && effects.class != Class::Scratch
        && !effects.memory.iter().all(|m| private(m.space))
}

/// Results of [`sharing`], by program and entry.
#[derive(Debug, Default)]
pub struct SharingCache(Mutex<HashMap<(u64, u64), Option<Sharing>>>);

/// Maximum number of kernels in the cache.
const MAX_CACHED: usize = 1 << 14;

impl SharingCache {
    /// Returns the result of [`sharing`], determined once for each entry of a program.
    pub fn get(&self, program: &Program, entry_pc: u64) -> Option<Sharing> {
        let key = (program.lowered().id(), entry_pc);
        let locked = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(&key) {
            return *known;
        }
        let found = sharing(program, entry_pc);
        let mut all = locked();
        if all.len() >= MAX_CACHED {
            all.clear();
        }
        all.insert(key, found);
        found
    }
}
