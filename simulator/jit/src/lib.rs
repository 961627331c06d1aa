//! The compiled engine: blocks of a program that run often become code of the host.
//!
//! The interpreter stays in charge: it runs what is not compiled, and everything that ends a turn. Where a straight
//! line of instructions begins, it asks [`Jit`] for code ([`wavesim_engine::interp::Compiled`]). Code runs until the turn
//! is over, or something is not compiled.
//!
//! - [`plan`]: what becomes of an operation, by its lane-loop representation; no instruction is named
//! - [`relative`]: jumps to known places
//! - [`unit`]: what is compiled together
//! - [`emit`]: code for a unit
//! - [`unrolled`]: counted loops and loads of code that runs once a wave
//! - [`mod@frame`]: what code is called with, and calls
//! - [`access`]: where the lanes of a load or store are in the host's memory
//! - [`kept`]: what code knows of waves while it runs
//! - [`mode`]: what code knows of MODE
//! - [`pairs`]: stores of one instruction to several places
//! - [`parts`]: loads and stores of parts of words
//! - [`scratch`]: loads and stores of each lane's own memory
//! - [`lanes`]: functions that code calls for the lanes of a packet
//! - [`sums`]: sums of 128 bits
//! - [`prefetch`]: prefetches for the waves that follow
//! - [`rare`]: what code calls for lanes whose results are not certain
//! - [`host`]: code memory
//! - [`source`]: the program, as the compiler has it
//! - [`background`]: the thread that compiles while kernels run
//!
//! # What is exact
//!
//! Results are those of the interpreter, bit for bit (of an operation on two NaNs, either may be the result, as is the
//! case for the interpreter's own handlers). All state is in the wave where anything may see it: at every jump, and
//! whenever a handler runs. Whatever can fault is a handler, so faults are the interpreter's own. Turns end where the
//! interpreter would end them, so schedules are the same.

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
mod prefetch;
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
use wavesim_engine::interp::{Compiled, EnterResult, HotnessCounters, Waves};
use wavesim_isa::relative::{GPR_IDX_EN, VSKIP};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};

/// How often straight lines begin at a place before it is compiled.
const OFTEN: u16 = 16;

/// The same where another thread compiles. As long as there is no code, one time in sixteen counts: some milliseconds of one place, so that
/// small launches cause no work.
const VERY_OFTEN: u16 = 1000;

/// A program's code, which is made while it runs. Threads may share it.
#[derive(Clone)]
pub struct Jit(Arc<Inner>);

struct Inner {
    source: Source,
    /// How often a place is interpreted first.
    often: u16,
    /// Another thread compiles: no launch waits for that.
    background: bool,
    /// By [`Form`].
    tables: [OnceLock<Table>; Form::COUNT],
    maker: Mutex<Maker>,
    /// There is a place where code begins.
    has_code: AtomicBool,
    units: AtomicU32,
    failed: AtomicU32,
    operations: AtomicU32,
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
}

/// What compiling has taken so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Made {
    /// Units compiled.
    pub units: u32,
    /// Units that the code generator refused, and the interpreter runs.
    pub failed: u32,
    /// Operations in them.
    pub operations: u32,
    /// Time it took. The pseudocode of an operation is read when a process compiles it first.
    pub seconds: f64,
    /// Bytes of code.
    pub bytes: u64,
}

/// Where code begins, for each operation of the program.
struct Table {
    heat: Box<[AtomicU16]>,
    places: Box<[Place]>,
}

/// In [`Table::heat`]: no code begins here, however often it is asked for.
const NEVER: u16 = 0;
/// In [`Table::heat`]: it is time to ask.
const NOW: u16 = 1;

#[derive(Default)]
struct Place {
    /// The function, or null.
    code: AtomicPtr<()>,
    /// Which entry of the function it is. Written before the code, and never again.
    entry: AtomicU32,
    /// How often code that was entered here ended at something that it is not made for.
    refusals: AtomicU32,
}

impl Place {
    /// The code, if there is some, and which of its entries it is.
    #[inline(always)]
    fn code(&self) -> Option<(Code, u32)> {
        let code = self.code.load(Ordering::Acquire);
        if code.is_null() {
            return None;
        }
        // SAFETY: what is stored there is a function of this type, that `Host` keeps.
        let code = unsafe { std::mem::transmute::<*mut (), Code>(code) };
        Some((code, self.entry.load(Ordering::Relaxed)))
    }

    /// [`Place::code`], unless the place is left to the interpreter.
    #[inline(always)]
    fn trusted_code(&self) -> Option<(Code, u32)> {
        self.code().filter(|_| self.refusals.load(Ordering::Relaxed) < REFUSALS)
    }
}

/// How often code that was entered at a place may refuse to go on before the place is left to the interpreter: a kernel that always
/// meets what code is not made for would be slower by it.
const REFUSALS: u32 = 1000;

struct Maker {
    host: Host,
    operations: Operations,
    /// Operations that have been compiled, by table.
    taken: [HashSet<u32>; Form::COUNT],
}

/// Which of the tables, by [`Inner::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// Denormals of f32 are flushed.
    flush: bool,
    /// Waves of 64.
    wide: bool,
    /// [`IEEE`] is set.
    ieee: bool,
}

impl Form {
    /// How many there are.
    const COUNT: usize = 8;

    /// Of a wave; `None`, if code is not made for its mode.
    #[inline]
    fn of(cx: &Cx<'_>) -> Option<Form> {
        // Nearest even, all denormals kept or those of f32 flushed: the modes that handlers are made for. Vector instructions run as they
        // stand.
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
    /// For a program, on a host that code can be made for: what has run some times is compiled before it runs again.
    pub fn new(program: &Program) -> Result<Jit, Refused> {
        Jit::after(program, OFTEN)
    }

    /// As [`Jit::new`], with the number of times that a place is interpreted before it is compiled.
    pub fn after(program: &Program, often: u16) -> Result<Jit, Refused> {
        Jit::made_by(program, often, false)
    }

    /// As [`Jit::new`], but a thread of its own compiles what runs very often, while the interpreter goes on.
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

    /// There is a place where code begins. Units may have been compiled that none begins at: those that are not worth it.
    pub fn has_code(&self) -> bool {
        self.0.has_code.load(Ordering::Relaxed)
    }

    /// What has been compiled.
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

    /// The place is worth code. There is some afterwards, or will be.
    #[cold]
    fn wanted(&self, form: Form, first: u32) {
        let inner = &self.0;
        if inner.background {
            // Meanwhile it is not asked for.
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

    /// Compiles the unit that begins at an operation. What cannot be compiled is not asked for again.
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
        // Each operation is tried once.
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
    /// Code that was entered at a place has left what follows to the interpreter.
    #[cold]
    fn refused(&self, at: usize) {
        if self.places[at].refusals.fetch_add(1, Ordering::Relaxed) >= REFUSALS {
            self.heat[at].store(NEVER, Ordering::Relaxed);
        }
    }
}

// SAFETY: code is entered only for the program that it was made from, whose operations are where they were, in the float mode and for the
// wave size that it was made for. It names operations of this program alone, computes what their handlers do, and calls handlers for
// the rest.
unsafe impl Compiled for Jit {
    fn is_ready(&self) -> bool {
        !self.0.background || self.0.has_code.load(Ordering::Relaxed)
    }

    fn hotness(&self, cx: &Cx<'_>, program: &Program) -> HotnessCounters<'_> {
        match Form::of(cx) {
            Some(form) if cx.fast.is_some() && cx.watch.is_none() && self.0.source.is_of(program) => {
                HotnessCounters(&self.0.table(form).heat)
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
        let Some(form) = Form::of(cx) else { return EnterResult::NoCode };
        if !self.0.source.is_of(program) || cx.fast.is_none() || cx.watch.is_some() {
            return EnterResult::NoCode;
        }
        let first = program.index_of(cx.op);
        let table = self.0.table(form);
        let Some(place) = table.places.get(first) else { return EnterResult::NoCode };
        let mut found = place.code();
        if found.is_none() {
            self.wanted(form, first as u32);
            found = place.code();
        }
        let Some((code, entry)) = found else { return EnterResult::NoCode };
        let start = frame::Start { code, entry, start, form, program, places: &table.places };
        // SAFETY: the code was made for this program, mode and wave size; the entry belongs to it.
        let ended = unsafe { frame::enter(cx, start, end, waves) };
        // SAFETY: an operation of the program: compiled code names no others.
        let op: &'a Op = unsafe { &*ended.op };
        match ended.flow {
            frame::SWITCHED => EnterResult::Switched,
            frame::OVER => EnterResult::NoWaveReady,
            frame::REFUSED => {
                table.refused(ended.begin);
                EnterResult::Interpret { op, start: ended.start }
            }
            Flow::NEXT => EnterResult::Next { op, start: ended.start },
            flow => EnterResult::Stopped { op, start: ended.start, flow },
        }
    }
}
