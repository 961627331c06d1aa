//! The compiled engine: blocks of a program that run often become code of the host.
//!
//! The interpreter stays in charge: it runs what is not compiled, and everything that ends a turn. Where a straight
//! line of instructions begins, it asks [`Jit`] for code ([`wavesim_engine::interp::Compiled`]). Code runs until the turn
//! is over, or something is not compiled.
//!
//! - [`plan`]: what becomes of an operation, by its lane-loop representation; no instruction is named
//! - [`unit`]: what is compiled together
//! - [`emit`]: code for a unit
//! - [`mod@frame`]: what code is called with, and calls
//! - [`access`]: where the lanes of a load or store are in the host's memory
//! - [`host`]: code memory
//!
//! # What is exact
//!
//! Results are those of the interpreter, bit for bit (of an operation on two NaNs, either may be the result, as is the
//! case for the interpreter's own handlers). All state is in the wave where anything may see it: at every jump, and
//! whenever a handler runs. Whatever can fault is a handler, so faults are the interpreter's own. Turns end where the
//! interpreter would end them, so schedules are the same.

mod access;
mod emit;
mod frame;
mod host;
mod plan;
mod unit;

pub use host::Refused;
pub use plan::is_compiled;

use emit::Machine;
use frame::Code;
use host::{CompileError, Host};
use plan::Operations;
use std::collections::HashSet;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use wavesim_engine::interp::{Compiled, Entered};
use wavesim_isa::relative::{GPR_IDX_EN, VSKIP};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};
use wavesim_machine::isa::SEMANTICS;

/// How often straight lines begin at a place before it is compiled.
const OFTEN: u32 = 16;

/// A program's code, which is made while it runs. Threads may share it.
pub struct Jit<'p> {
    program: &'p Program,
    often: u32,
    /// By float mode and wave size.
    tables: [OnceLock<Table>; 4],
    maker: Mutex<Maker>,
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
    /// Time it took, without reading the pseudocode once a process.
    pub seconds: f64,
    /// Bytes of code.
    pub bytes: u64,
}

/// Where code begins, for each operation of the program.
struct Table(Box<[Place]>);

#[derive(Default)]
struct Place {
    /// The function, or null.
    code: AtomicPtr<()>,
    /// Which entry of the function it is. Written before the code, and never again: not in `count`, which other threads
    /// may still be writing.
    entry: AtomicU32,
    /// Without code: how often a straight line began here, or [`NEVER`].
    count: AtomicU32,
    /// How often code that was entered here ended at something that it is not made for.
    refusals: AtomicU32,
}

/// No code begins here, however often it is asked for.
const NEVER: u32 = u32::MAX;

/// How often code that was entered at a place may refuse to go on before the place is left to the interpreter: a kernel that always
/// meets what code is not made for would be slower by it.
const REFUSALS: u32 = 1000;

impl Place {
    /// Code that was entered here has left what follows to the interpreter.
    #[cold]
    fn refused(&self) {
        let before = self.refusals.fetch_add(1, Ordering::Relaxed);
        if before >= REFUSALS {
            self.count.store(NEVER, Ordering::Relaxed);
            self.code.store(std::ptr::null_mut(), Ordering::Release);
        }
    }
}

struct Maker {
    host: Host,
    operations: Operations,
    /// Operations that have been compiled, by table.
    taken: [HashSet<u32>; 4],
}

impl<'p> Jit<'p> {
    /// For a program, on a host that code can be made for.
    pub fn new(program: &'p Program) -> Result<Jit<'p>, Refused> {
        Jit::after(program, OFTEN)
    }

    /// As [`Jit::new`], with the number of times that a place is interpreted before it is compiled.
    pub fn after(program: &'p Program, often: u32) -> Result<Jit<'p>, Refused> {
        let maker =
            Maker { host: Host::new()?, operations: Operations::default(), taken: Default::default() };
        Ok(Jit {
            program,
            often: often.min(NEVER - 1),
            tables: Default::default(),
            maker: Mutex::new(maker),
            units: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            operations: AtomicU32::new(0),
            nanoseconds: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// What has been compiled.
    pub fn made(&self) -> Made {
        Made {
            units: self.units.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
            seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9,
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn table(&self, at: usize) -> &Table {
        self.tables[at]
            .get_or_init(|| Table(self.program.lowered().ops().iter().map(|_| Place::default()).collect()))
    }

    /// Compiles the unit that begins at an operation. What cannot be compiled is not asked for again.
    #[cold]
    fn compile(&self, at: usize, first: u32, cx: &Cx<'_>, flush: bool, wide: bool) {
        let mut maker = self.maker.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table(at);
        let place = &table.0[first as usize];
        if !place.code.load(Ordering::Acquire).is_null() {
            return;
        }
        // Once a process: the pseudocode is read, which takes longer than compiling a kernel.
        LazyLock::force(&SEMANTICS);
        let begun = Instant::now();
        let Maker { host, operations, taken } = &mut *maker;
        let machine = Machine { program: self.program, exts: cx.exts, consts: cx.consts, wide, flush };
        let unit = unit::discover(first, &machine, operations, |op| taken[at].contains(&op));
        place.count.store(NEVER, Ordering::Relaxed);
        if unit.blocks.is_empty() {
            return;
        }
        let made = host.compile(&unit, machine, operations);
        self.nanoseconds.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        match made {
            Ok(code) => {
                for (entry, block) in unit.blocks.iter().enumerate() {
                    taken[at].extend(block.first..block.end);
                    if block.entry || self.often == 0 {
                        let place = &table.0[block.first as usize];
                        place.entry.store(entry as u32, Ordering::Relaxed);
                        place.code.store(code as *mut (), Ordering::Release);
                    }
                    self.operations.fetch_add(block.end - block.first, Ordering::Relaxed);
                }
                self.units.fetch_add(1, Ordering::Relaxed);
                self.bytes.store(host.bytes() as u64, Ordering::Relaxed);
            }
            Err(e) => {
                // Each operation is tried once.
                taken[at].extend(unit.blocks.iter().flat_map(|block| block.first..block.end));
                if !matches!(e, CompileError::Full) {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

// SAFETY: code is entered only for the program that it was made from, in the float mode and for the wave size that it was made for. It
// names operations of this program alone, computes what their handlers do, and calls handlers for the rest.
unsafe impl Compiled for Jit<'_> {
    fn enter<'a>(&self, cx: &mut Cx<'a>, program: &'a Program, start: u32, end: u64) -> Entered<'a> {
        // Nearest even, all denormals kept or those of f32 flushed: the modes that handlers are made for. Vector instructions run as they
        // stand.
        let flush = match cx.wave.mode & (0x80_00ff | GPR_IDX_EN | VSKIP) {
            0xf0 => false,
            0xc0 => true,
            _ => return Entered::No,
        };
        if !std::ptr::eq(program, self.program) || cx.fast.is_none() || cx.watch.is_some() {
            return Entered::No;
        }
        let wide = cx.wave.size() == 64;
        let at = flush as usize | (wide as usize) << 1;
        let ops = program.lowered().ops();
        let first = unit::index_of(ops, cx.op);
        let Some(place) = self.table(at).0.get(first as usize) else { return Entered::No };
        let mut code = place.code.load(Ordering::Acquire);
        if code.is_null() {
            let count = place.count.load(Ordering::Relaxed);
            if count == NEVER {
                return Entered::No;
            }
            if count < self.often {
                place.count.store(count + 1, Ordering::Relaxed);
                return Entered::No;
            }
            self.compile(at, first, cx, flush, wide);
            code = place.code.load(Ordering::Acquire);
            if code.is_null() {
                return Entered::No;
            }
        }
        let entry = place.entry.load(Ordering::Relaxed);
        // SAFETY: what is stored there is a function of this type, that `Host` keeps.
        let code = unsafe { std::mem::transmute::<*mut (), Code>(code) };
        // SAFETY: the code was made for this program, mode and wave size; the entry belongs to it.
        let ended = unsafe { frame::enter(cx, code, entry, start, end) };
        // SAFETY: an operation of the program: compiled code names no others.
        let op: &'a Op = unsafe { &*ended.op };
        match ended.flow {
            frame::REFUSED => {
                place.refused();
                Entered::Refused { op, start: ended.start }
            }
            Flow::NEXT => Entered::Next { op, start: ended.start },
            flow => Entered::Stopped { op, start: ended.start, flow },
        }
    }
}

#[cfg(test)]
mod tests;
