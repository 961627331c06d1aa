//! The compiled engine: compiles frequently executed blocks of a program to host code.
//!
//! The interpreter stays in charge: it executes whatever is not compiled, and everything that ends a turn.
//! Where a straight-line region begins, it asks [`Jit`] for code ([`wavesim_engine::interp::Compiled`]). Code
//! runs until the turn ends or it reaches something that is not compiled.
//!
//! - [`plan`]: how each operation is executed, decided by its lane-loop representation; no instruction is
//! named
//! - [`branch_target`]: statically known jump targets
//! - [`unit`]: the unit of compilation
//! - [`emit`]: code for a unit
//! - [`unroll`]: counted loops, arrays and loads in scalar code
//! - [`mod@frame`]: the interface of compiled code: its argument, and the functions that it calls
//! - [`ranges`]: cached ranges of global memory
//! - [`wave_cache`]: facts about waves that are cached while code runs
//! - [`mode`]: the part of MODE that code is specialised for
//! - [`multi_store`]: stores of one instruction to several addresses
//! - [`subword`]: loads and stores of bytes and 16-bit halves
//! - [`scratch`]: loads and stores of each lane's own memory
//! - [`lane_calls`]: functions that code calls for the lanes of a packet
//! - [`wide_sums`]: sums of 128 bits
//! - [`exact`]: functions that code calls where the host's arithmetic might not be exact
//! - [`host`]: code memory
//! - [`snapshot`]: the compiler's copy of the program
//! - [`background`]: the thread that compiles while kernels run
//!
//! # Guarantees
//!
//! Results are bit-identical to the interpreter's, except that of two NaN operands either may be the result,
//! as in the interpreter's own handlers. All state is in the wave wherever it can be observed: at every jump,
//! and whenever a handler runs. Everything that can fault is executed by a handler, so that faults are the
//! interpreter's own. Turns end where the interpreter would end them, so that schedules are identical.

mod access;
mod background;
mod emit;
mod frame;
mod host;
mod kept;
mod lanes;
mod mode;
mod pairs;
mod parts;
mod plan;
mod rare;
mod relative;
mod scratch;
mod source;
mod sums;
mod unit;
mod unrolled;

pub use host::Refused;
pub use plan::{calls, is_compiled};

use emit::Machine;
use frame::Code;
use host::{CompileError, Host};
use mode::IEEE;
use plan::Operations;
use source::Source;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use wavesim_engine::interp::{Compiled, Entered, Heat, Waves};
use wavesim_isa::relative::{GPR_IDX_EN, VSKIP};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};

/// The number of times that a straight-line region must begin at an operation before it is compiled.
const OFTEN: u16 = 16;

/// The same for background compilation. While there is no code, only one in sixteen executions counts. The
/// threshold corresponds to a few milliseconds at one operation, so that small launches cause no compilation.
const VERY_OFTEN: u16 = 1000;

/// A program's code, which is compiled while the program runs. Threads may share it.
#[derive(Clone)]
pub struct Jit(Arc<Inner>);

struct Inner {
    source: Source,
    /// The number of times that an operation is interpreted before it is compiled.
    often: u16,
    /// A background thread compiles, so that no launch waits for it.
    background: bool,
    /// Indexed by [`CodeMode::index`].
    tables: [OnceLock<Table>; Form::COUNT],
    maker: Mutex<Maker>,
    /// Some entry point has code.
    has_code: AtomicBool,
    units: AtomicU32,
    failed: AtomicU32,
    operations: AtomicU32,
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
}

/// Statistics about compilation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Made {
    /// The number of compiled units.
    pub units: u32,
    /// The number of units that the code generator rejected, and that are interpreted.
    pub failed: u32,
    /// The number of operations in the compiled units.
    pub operations: u32,
    /// The time that compilation took. It includes reading the pseudocode of an operation when a process
    /// first compiles it.
    pub seconds: f64,
    /// The size of the code in bytes.
    pub bytes: u64,
}

/// The entry points and counters of all operations of the program.
struct Table {
    heat: Box<[AtomicU16]>,
    places: Box<[Place]>,
}

/// In [`EntryTable::heat`]: the operation is not an entry point and never requests compilation.
const NEVER: u16 = 0;
/// In [`EntryTable::heat`]: the engine is called at the next execution.
const NOW: u16 = 1;

#[derive(Default)]
struct Place {
    /// The function, or null.
    code: AtomicPtr<()>,
    /// The number of the function's entry. It is written once, before `code`.
    entry: AtomicU32,
    /// The number of bailouts of code that was entered here.
    refusals: AtomicU32,
}

impl Place {
    /// Returns the code and the number of its entry, if there is code.
    #[inline(always)]
    fn code(&self) -> Option<(Code, u32)> {
        let code = self.code.load(Ordering::Acquire);
        if code.is_null() {
            return None;
        }
        // SAFETY: the only non-null pointers stored here are functions of this type, whose code `Host` keeps
        // alive.
        let code = unsafe { std::mem::transmute::<*mut (), Code>(code) };
        Some((code, self.entry.load(Ordering::Relaxed)))
    }

    /// As [`EntryPoint::code`], but returns `None` if the entry point bails out too often.
    #[inline(always)]
    fn trusted_code(&self) -> Option<(Code, u32)> {
        self.code().filter(|_| self.refusals.load(Ordering::Relaxed) < REFUSALS)
    }
}

/// The number of bailouts after which an entry point is left to the interpreter: a kernel that always reaches
/// code that bails out would be slowed down.
const REFUSALS: u32 = 1000;

struct Maker {
    host: Host,
    operations: Operations,
    /// Operations that have been compiled, by mode.
    taken: [HashSet<u32>; Form::COUNT],
}

/// The mode of a wave that code is specialised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// f32 denormals are flushed.
    flush: bool,
    /// Wave64.
    wide: bool,
    /// [`IEEE`] is set.
    ieee: bool,
}

impl Form {
    /// The number of modes.
    const COUNT: usize = 8;

    /// Returns the mode of a wave, or `None` if there is no code for it.
    #[inline]
    fn of(cx: &Cx<'_>) -> Option<Form> {
        // Round to nearest even, with all denormals kept or those of f32 flushed: the modes that handlers are
        // specialised for. Modes that change how instructions address registers, or skip them, are excluded.
        let flush = match cx.wave.mode & (0x80_00ff | GPR_IDX_EN | VSKIP) {
            0xf0 => false,
            0xc0 => true,
            _ => return None,
        };
        Some(Form { flush, wide: cx.wave.size() == 64, ieee: cx.wave.mode & IEEE != 0 })
    }

    fn number(self) -> usize {
        self.flush as usize | (self.wide as usize) << 1 | (self.ieee as usize) << 2
    }
}

impl Jit {
    /// Creates an engine for a program, if the host is supported. Operations are compiled after a few
    /// executions, before they run again.
    pub fn new(program: &Program) -> Result<Jit, Refused> {
        Jit::after(program, OFTEN)
    }

    /// As [`Jit::new`], with the number of times that an operation is interpreted before it is compiled.
    pub fn after(program: &Program, often: u16) -> Result<Jit, Refused> {
        Jit::made_by(program, often, false)
    }

    /// As [`Jit::new`], but a background thread compiles only what runs very often, while the interpreter
    /// continues.
    pub fn in_background(program: &Program) -> Result<Jit, Refused> {
        Jit::made_by(program, VERY_OFTEN, true)
    }

    fn made_by(program: &Program, often: u16, background: bool) -> Result<Jit, Refused> {
        let maker =
            Maker { host: Host::new()?, operations: Operations::default(), taken: Default::default() };
        Ok(Jit(Arc::new(Inner {
            source: Source::of(program),
            often: often.min(u16::MAX - NOW),
            background,
            tables: Default::default(),
            maker: Mutex::new(maker),
            has_code: AtomicBool::new(false),
            units: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            operations: AtomicU32::new(0),
            nanoseconds: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })))
    }

    /// Returns whether any entry point has code. Compiled units may have no entry points that are worth
    /// entering.
    pub fn has_code(&self) -> bool {
        self.0.has_code.load(Ordering::Relaxed)
    }

    /// Returns statistics about compilation.
    pub fn made(&self) -> Made {
        let inner = &self.0;
        Made {
            units: inner.units.load(Ordering::Relaxed),
            failed: inner.failed.load(Ordering::Relaxed),
            operations: inner.operations.load(Ordering::Relaxed),
            seconds: inner.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9,
            bytes: inner.bytes.load(Ordering::Relaxed),
        }
    }

    /// Requests code for an operation. Unless compilation is in the background, it is compiled on return.
    #[cold]
    fn wanted(&self, form: Form, first: u32) {
        let inner = &self.0;
        if inner.background {
            // Do not ask again while the request is pending.
            inner.table(form).heat[first as usize].store(VERY_OFTEN, Ordering::Relaxed);
            background::compile(&self.0, form, first);
        } else {
            inner.compile(form, first);
        }
    }
}

impl Inner {
    fn table(&self, form: Form) -> &Table {
        self.tables[form.number()].get_or_init(|| {
            let ops = &self.source.ops;
            Table {
                heat: ops.iter().map(|_| AtomicU16::new(NOW + self.often)).collect(),
                places: ops.iter().map(|_| Place::default()).collect(),
            }
        })
    }

    /// Compiles the unit that begins at an operation. If that fails, it is not tried again.
    fn compile(&self, form: Form, first: u32) {
        let mut maker = self.maker.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table(form);
        if !table.places[first as usize].code.load(Ordering::Acquire).is_null() {
            return;
        }
        let begun = Instant::now();
        let Maker { host, operations, taken } = &mut *maker;
        let taken = &mut taken[form.number()];
        let machine = Machine { source: &self.source, wide: form.wide, flush: form.flush, ieee: form.ieee };
        let unit = unit::discover(first, &machine, operations, |op| taken.contains(&op));
        table.heat[first as usize].store(NEVER, Ordering::Relaxed);
        if unit.blocks.is_empty() {
            return;
        }
        let made = host.compile(&unit, machine, operations);
        self.nanoseconds.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        // Each operation is compiled at most once.
        taken.extend(unit.blocks.iter().flat_map(|block| block.first..block.end));
        match made {
            Ok(code) => {
                for (entry, block) in (0..).zip(&unit.blocks) {
                    let at = block.first as usize;
                    table.places[at].entry.store(entry, Ordering::Relaxed);
                    table.places[at].code.store(code as *mut (), Ordering::Release);
                    if block.entry || self.often == 0 {
                        table.heat[at].store(NOW, Ordering::Relaxed);
                        self.has_code.store(true, Ordering::Relaxed);
                    } else {
                        table.heat[at].store(NEVER, Ordering::Relaxed);
                    }
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

impl Table {
    /// Counts a bailout of code that was entered at an operation.
    #[cold]
    fn refused(&self, at: usize) {
        if self.places[at].refusals.fetch_add(1, Ordering::Relaxed) >= REFUSALS {
            self.heat[at].store(NEVER, Ordering::Relaxed);
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

    fn heat(&self, cx: &Cx<'_>, program: &Program) -> Heat<'_> {
        match Form::of(cx) {
            Some(form) if cx.fast.is_some() && cx.watch.is_none() && self.0.source.is_of(program) => {
                Heat(&self.0.table(form).heat)
            }
            _ => Heat(&[]),
        }
    }

    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> Entered<'a> {
        let Some(form) = Form::of(cx) else { return Entered::No };
        if !self.0.source.is_of(program) || cx.fast.is_none() || cx.watch.is_some() {
            return Entered::No;
        }
        let first = program.index_of(cx.op);
        let table = self.0.table(form);
        let Some(place) = table.places.get(first) else { return Entered::No };
        let mut found = place.code();
        if found.is_none() {
            self.wanted(form, first as u32);
            found = place.code();
        }
        let Some((code, entry)) = found else { return Entered::No };
        let start = frame::Start { code, entry, start, form, program, places: &table.places };
        // SAFETY: the code was compiled for this program, mode and wave size, and the entry belongs to it.
        let ended = unsafe { frame::enter(cx, start, end, waves) };
        // SAFETY: compiled code only returns pointers to operations of the program, which outlives `'a`.
        let op: &'a Op = unsafe { &*ended.op };
        match ended.flow {
            frame::SWITCHED => Entered::Switched,
            frame::OVER => Entered::Over,
            frame::REFUSED => {
                table.refused(ended.begin);
                Entered::Refused { op, start: ended.start }
            }
            Flow::NEXT => Entered::Next { op, start: ended.start },
            flow => Entered::Stopped { op, start: ended.start, flow },
        }
    }
}
