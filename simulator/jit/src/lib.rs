//! The compiled engine: compiles frequently executed blocks of a program to host code.
//!
//! The interpreter stays in charge: it executes whatever is not compiled, and everything that ends a turn.
//! Where a straight-line region begins, it asks [`Jit`] for code ([`wavesim_engine::interp::Compiled`]). Code
//! runs until the turn ends or it reaches something that is not compiled.
//!
//! - [`lowering`]: the only list of what is compiled
//! - [`select`], [`selected`]: how each operation is executed
//! - [`effects`]: what operations do besides computing
//! - [`branch_target`]: statically known jump targets
//! - [`unit`]: the unit of compilation
//! - [`emit`]: code for a unit; [`arith`], [`state`], [`scalar`], [`lanes`], [`access`], [`tune`]: its parts
//! - [`wide_sums`]: sums of 128 bits
//! - [`mode`], [`context`]: the mode that code is specialised for
//! - [`mod@frame`]: the interface of compiled code: its argument, and the functions that it calls; its
//!   `check` has the checks of cached facts, in debug builds and tests
//! - [`ranges`]: cached ranges of global memory
//! - [`wave_cache`]: facts about waves that are cached while code runs
//! - [`host`]: code memory
//! - [`snapshot`]: the compiler's copy of the program
//! - [`background`]: the thread that compiles while kernels run
//! - [`names`]: names of functions, for listings
//! - [`stats`]: statistics about compilation
//!
//! # Guarantees
//!
//! Results are bit-identical to the interpreter's, except that of two NaN operands either may be the result,
//! as in the interpreter's own handlers. All state is in the wave wherever it can be observed: at every jump,
//! and whenever a handler runs. Everything that can fault is executed by a handler, so that faults are the
//! interpreter's own. Turns end where the interpreter would end them, so that schedules are identical.

mod access;
mod arith;
mod background;
mod branch_target;
mod context;
mod effects;
mod emit;
mod frame;
mod host;
mod lanes;
mod lowering;
mod mode;
mod names;
mod ranges;
mod scalar;
mod select;
mod selected;
mod snapshot;
mod state;
mod stats;
mod tune;
mod unit;
mod wave_cache;
mod wide_sums;

pub use host::UnsupportedHost;
pub use lowering::Why;
pub use select::is_compiled;
pub use stats::{CompileStats, CompiledPaths};
pub use wavesim_x64::Listing;

use context::CompileContext;
use frame::EntryPoint;
use host::{CompileError, Host};
use mode::CodeMode;
use select::Selector;
use selected::{Selected, Selection, Selections};
use snapshot::ProgramSnapshot;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use wavesim_engine::interp::{Compiled, EnterResult, HotnessCounters, Waves};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};

/// The number of times that a straight-line region must begin at an operation before it is compiled.
const HOT_COUNT: u16 = 16;

/// The same for background compilation. While there is no code, only one in sixteen turns counts, so that an operation of
/// short turns has run some 2,000 times, and one in a loop 128 times. Compiling an operation takes as long as interpreting it
/// 600 times, which is in between: a launch that is shorter wastes no more time than it takes.
const BACKGROUND_HOT_COUNT: u16 = 128;

/// A program's code, which is compiled while the program runs. Threads may share it.
#[derive(Clone)]
pub struct Jit(Arc<Inner>);

struct Inner {
    snapshot: ProgramSnapshot,
    /// The number of times that an operation is interpreted before it is compiled.
    threshold: u16,
    /// A background thread compiles, so that no launch waits for it.
    background: bool,
    /// Code checks the cached facts that it uses: see [`frame::find_violation`].
    checked: bool,
    /// Indexed by [`CodeMode::index`].
    tables: [OnceLock<EntryTable>; CodeMode::COUNT],
    compiler: Mutex<Compiler>,
    /// Some entry point has code.
    has_code: AtomicBool,
    units: AtomicU32,
    failed: AtomicU32,
    operations: AtomicU32,
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
    rests: AtomicU32,
    look: OnceLock<Box<Look>>,
    paths: Mutex<CompiledPaths>,
}

/// Receives compiled units as text.
type Look = dyn Fn(&UnitText) + Send + Sync;

/// A compiled unit as text.
#[derive(Debug, Clone)]
pub struct UnitText {
    /// The operations of each block, by their indices in the program; the unit was compiled for the first one.
    pub blocks: Vec<Range<u32>>,
    /// How each operation of the blocks is executed.
    pub operations: Vec<OperationSelection>,
    /// The mode that the code is for.
    pub mode: String,
    /// The special paths of the code.
    pub paths: CompiledPaths,
    /// The code generator's function, the same with locations, and host code.
    pub listing: Listing,
}

/// How the compiled engine executes an operation of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationSelection {
    /// The index of its instruction. An instruction may consist of several operations.
    pub instruction: usize,
    /// The way: `scalar`, `lanes`, `access of words` …
    pub how: &'static str,
    /// Why its handler is called, if it is.
    pub call: Option<Why>,
}

impl OperationSelection {
    fn of(op: &Op, selection: &Selection) -> OperationSelection {
        let call = match &selection.how {
            Selected::Call(why) => Some(*why),
            _ => None,
        };
        OperationSelection { instruction: op.number as usize, how: selection.how.name(), call }
    }
}

impl std::fmt::Display for OperationSelection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.call {
            Some(why) => write!(f, "{}: {why}", self.how),
            None => f.write_str(self.how),
        }
    }
}

/// Compiles the unit that begins at a program's first operation, for waves of `lanes` lanes with IEEE rules that
/// keep denormals, and returns it as text; `None` if it is left to the interpreter.
///
/// # Errors
/// The host has no compiled engine.
pub fn list(program: &Program, lanes: u32) -> Result<Option<UnitText>, UnsupportedHost> {
    let jit = Jit::build(program, 0, false, false)?;
    let found = Arc::new(Mutex::new(None));
    let to = Arc::clone(&found);
    jit.look_at_units(move |unit| {
        to.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| unit.clone());
    });
    jit.0.compile(CodeMode::ieee(lanes), 0);
    let unit = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(unit)
}

/// Selects how each operation of a program is executed.
pub fn selections(program: &Program) -> Vec<OperationSelection> {
    let (mut selector, mut selections) = (Selector::default(), Selections::default());
    let snapshot = ProgramSnapshot::of(program);
    let all = (0..).zip(&snapshot.ops);
    all.map(|(at, op)| OperationSelection::of(op, selector.of(at, &snapshot, &mut selections))).collect()
}

/// The entry points and counters of all operations of the program.
struct EntryTable {
    heat: Box<[AtomicU16]>,
    entries: Box<[EntryPoint]>,
}

/// In [`EntryTable::heat`]: the operation is not an entry point and never requests compilation.
const NEVER_COMPILE: u16 = 0;
/// In [`EntryTable::heat`]: the engine is called at the next execution.
const CALL_NOW: u16 = 1;
/// In [`EntryTable::heat`]: the operation's code has not been worth entering ([`frame::EntryPoint::count_visit`]), and is
/// tried again much later: what a wave executes may depend on where it is in the grid.
const RESTING: u16 = u16::MAX;

struct Compiler {
    host: Host,
    selector: Selector,
    selections: Selections,
    /// Operations that have been compiled, by mode.
    compiled: [HashSet<u32>; CodeMode::COUNT],
}

impl Jit {
    /// Creates an engine for a program, if the host is supported. Operations are compiled after a few
    /// executions, before they run again.
    pub fn new(program: &Program) -> Result<Jit, UnsupportedHost> {
        Jit::with_threshold(program, HOT_COUNT)
    }

    /// As [`Jit::new`], with the number of times that an operation is interpreted before it is compiled.
    pub fn with_threshold(program: &Program, threshold: u16) -> Result<Jit, UnsupportedHost> {
        Jit::build(program, threshold, false, cfg!(debug_assertions))
    }

    /// As [`Jit::new`], but a background thread compiles only what runs very often, while the interpreter
    /// continues.
    pub fn in_background(program: &Program) -> Result<Jit, UnsupportedHost> {
        Jit::build(program, BACKGROUND_HOT_COUNT, true, cfg!(debug_assertions))
    }

    /// As [`Jit::with_threshold`], for tests: code checks each cached fact that it uses, as code of debug builds
    /// always does, and panics where one does not hold.
    pub fn checked(program: &Program, threshold: u16) -> Result<Jit, UnsupportedHost> {
        Jit::build(program, threshold, false, true)
    }

    fn build(
        program: &Program,
        threshold: u16,
        background: bool,
        checked: bool,
    ) -> Result<Jit, UnsupportedHost> {
        let compiler = Compiler {
            host: Host::new()?,
            selector: Selector::default(),
            selections: Selections::default(),
            compiled: Default::default(),
        };
        Ok(Jit(Arc::new(Inner {
            snapshot: ProgramSnapshot::of(program),
            threshold: threshold.min(u16::MAX - CALL_NOW),
            background,
            checked,
            tables: Default::default(),
            compiler: Mutex::new(compiler),
            has_code: AtomicBool::new(false),
            units: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            operations: AtomicU32::new(0),
            nanoseconds: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            rests: AtomicU32::new(0),
            look: OnceLock::new(),
            paths: Mutex::default(),
        })))
    }

    /// Calls `look` with each unit that is compiled from now on, as text. Only the first call has an effect. The host
    /// code is the same as without it.
    pub fn look_at_units(&self, look: impl Fn(&UnitText) + Send + Sync + 'static) {
        let _ = self.0.look.set(Box::new(look));
    }

    /// Returns whether any entry point has code.
    pub fn has_code(&self) -> bool {
        self.0.has_code.load(Ordering::Relaxed)
    }

    /// Compiles what a run would have compiled that executed each operation as often as `executions` returns, in waves
    /// of `lanes` lanes with this value of MODE: for a run that was observed, and hence interpreted.
    pub fn compile_executed(&self, mode: u32, lanes: u32, executions: impl Fn(&Op) -> u64) {
        let inner = &self.0;
        let Some(mode) = CodeMode::of_wave(inner.snapshot.arch, mode, lanes, inner.snapshot.tracks_msbs())
        else {
            return;
        };
        let hot = |op: &Op| op.code != Op::END && executions(op) >= inner.threshold.max(1).into();
        for (at, _) in (0..).zip(&inner.snapshot.ops).filter(|(_, op)| hot(op)) {
            let compiled = inner.compiler.lock().unwrap_or_else(PoisonError::into_inner).compiled
                [mode.index()]
            .contains(&at);
            if !compiled {
                inner.compile(mode, at);
            }
        }
    }

    /// Returns statistics about compilation.
    pub fn stats(&self) -> CompileStats {
        let inner = &self.0;
        CompileStats {
            units: inner.units.load(Ordering::Relaxed),
            failed: inner.failed.load(Ordering::Relaxed),
            operations: inner.operations.load(Ordering::Relaxed),
            seconds: inner.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9,
            bytes: inner.bytes.load(Ordering::Relaxed),
            rests: inner.rests.load(Ordering::Relaxed),
            paths: *inner.paths.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Requests code for an operation. Unless compilation is in the background, it is compiled on return.
    #[cold]
    fn request(&self, mode: CodeMode, first: u32) {
        let inner = &self.0;
        if inner.background {
            // Do not ask again while the request is pending.
            inner.table(mode).heat[first as usize].store(BACKGROUND_HOT_COUNT, Ordering::Relaxed);
            background::compile(&self.0, mode, first);
        } else {
            inner.compile(mode, first);
        }
    }
}

impl Inner {
    fn table(&self, mode: CodeMode) -> &EntryTable {
        self.tables[mode.index()].get_or_init(|| {
            let ops = &self.snapshot.ops;
            EntryTable {
                heat: ops.iter().map(|_| AtomicU16::new(CALL_NOW + self.threshold)).collect(),
                entries: ops.iter().map(|_| EntryPoint::default()).collect(),
            }
        })
    }

    /// Compiles the unit that begins at an operation. If that fails, it is not tried again.
    fn compile(&self, mode: CodeMode, first: u32) {
        let mut compiler = self.compiler.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table(mode);
        if !table.entries[first as usize].code.load(Ordering::Acquire).is_null() {
            return;
        }
        let begun = Instant::now();
        let Compiler { host, selector, selections, compiled } = &mut *compiler;
        let compiled = &mut compiled[mode.index()];
        let context = CompileContext {
            program: &self.snapshot,
            wave64: mode.wave64,
            flush: mode.flush,
            ieee: mode.ieee,
            checked: self.checked,
        };
        let unit =
            unit::discover(first, mode.msbs(), &context, selector, selections, |op| compiled.contains(&op));
        table.heat[first as usize].store(NEVER_COMPILE, Ordering::Relaxed);
        if unit.blocks.is_empty() {
            return;
        }
        let mut listing = None;
        let look = self.look.get();
        let extended = unit.msbs.values().any(|msbs| *msbs != 0);
        let extended =
            extended.then(|| self.snapshot.with_extended(unit.msbs.iter().map(|(at, msbs)| (*at, *msbs))));
        let context = CompileContext { program: extended.as_ref().unwrap_or(&self.snapshot), ..context };
        let made = host.compile(&unit, context, selections, look.map(|_| &mut listing));
        if let (Some(look), Some(listing)) = (look, listing) {
            let blocks = unit.blocks.iter().map(|block| block.first..block.end).collect();
            let of = |at: u32| OperationSelection::of(&self.snapshot.ops[at as usize], selections.of(at));
            let operations = unit.blocks.iter().flat_map(|block| block.first..block.end).map(of).collect();
            let paths = made.as_ref().map(|(_, paths)| *paths).unwrap_or_default();
            look(&UnitText { blocks, operations, mode: mode.to_string(), paths, listing });
        }
        self.nanoseconds.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        // Each operation is compiled at most once.
        compiled.extend(unit.blocks.iter().flat_map(|block| block.first..block.end));
        match made {
            Ok((code, paths)) => {
                self.paths.lock().unwrap_or_else(PoisonError::into_inner).add(paths);
                for (entry, block) in (0..).zip(&unit.blocks) {
                    let at = block.first as usize;
                    table.entries[at].set(code, entry, unit.msbs_before(block.first));
                    table.heat[at].store(CALL_NOW, Ordering::Relaxed);
                    self.has_code.store(true, Ordering::Relaxed);
                    self.operations.fetch_add(block.end - block.first, Ordering::Relaxed);
                }
                self.units.fetch_add(1, Ordering::Relaxed);
                self.bytes.store(host.bytes() as u64, Ordering::Relaxed);
            }
            Err(e) => {
                if !matches!(e, CompileError::Full) {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

// SAFETY: code is entered only for the program that it was compiled from, whose operations have not moved,
// and only in the float mode and for the wave size that it was compiled for. It refers to operations of this
// program only, computes what their handlers compute, and calls handlers for the rest.
unsafe impl Compiled for Jit {
    fn is_ready(&self) -> bool {
        !self.0.background || self.0.has_code.load(Ordering::Relaxed)
    }

    fn hotness(&self, cx: &Cx<'_>, program: &Program) -> HotnessCounters<'_> {
        match CodeMode::of(cx, self.0.snapshot.tracks_msbs()) {
            Some(mode) if cx.fast.is_some() && cx.watch.is_none() && self.0.snapshot.matches(program) => {
                HotnessCounters(&self.0.table(mode).heat)
            }
            _ => HotnessCounters(&[]),
        }
    }

    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> EnterResult<'a> {
        let tracks_msbs = self.0.snapshot.tracks_msbs();
        let Some(mode) = CodeMode::of(cx, tracks_msbs) else { return EnterResult::NoCode };
        if !self.0.snapshot.matches(program) || cx.fast.is_none() || cx.watch.is_some() {
            return EnterResult::NoCode;
        }
        let first = program.index_of(cx.op);
        let table = self.0.table(mode);
        let Some(slot) = table.entries.get(first) else { return EnterResult::NoCode };
        let mut found = slot.code();
        if found.is_none() {
            self.request(mode, first as u32);
            found = slot.code();
        }
        let Some((code, entry)) = found.filter(|_| slot.has_msbs(mode.msbs())) else {
            return EnterResult::NoCode;
        };
        let start =
            frame::EntryArgs { code, entry, start, mode, program, entries: &table.entries, tracks_msbs };
        // SAFETY: the code was compiled for this program, mode and wave size, and the entry belongs to it.
        let ended = unsafe { frame::enter(cx, start, end, waves) };
        if self.0.checked
            && let Some(violation) = frame::find_violation(cx)
        {
            panic!("compiled code relies on a false fact: {violation}");
        }
        if slot.count_visit(ended.executed) && self.0.threshold > 0 {
            table.heat[first].store(RESTING, Ordering::Relaxed);
            self.0.rests.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: compiled code only returns pointers to operations of the program, which outlives `'a`.
        let op: &'a Op = unsafe { &*ended.op };
        match ended.flow {
            frame::SWITCHED => EnterResult::Switched,
            frame::OVER => EnterResult::NoWaveReady,
            frame::BAILOUT => EnterResult::Interpret { op, start: ended.start },
            Flow::NEXT => EnterResult::Next { op, start: ended.start },
            flow => EnterResult::Stopped { op, start: ended.start, flow },
        }
    }
}
