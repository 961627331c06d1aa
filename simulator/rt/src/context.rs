//! The context of a handler: the wave, its memories and its handler tables.

use super::control::{barrier, does_nothing, is_barrier};
use super::float::General;
use super::float_mode::FloatMode;
use super::tables;
use super::tuning::Tuning;
use super::watch::Watch;
use crate::op::Pools;
use crate::op::{Ext, Op};
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::builtins::Control;
use std::sync::atomic::AtomicBool;
use wavesim_isa::arch::Arch;
use wavesim_isa::relative::{GPR_IDX_EN, VGPR_MSBS, VSKIP};
use wavesim_state::context::Context;
use wavesim_state::event::Event;
use wavesim_state::fault::FaultKind;
use wavesim_state::host::Avx2;
use wavesim_state::memory::{MemError, Memory};
use wavesim_state::{Half, Wave, Workgroup};

/// Tells the run loop how to continue after a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow(pub u32);

impl Flow {
    /// Continue with the next operation.
    pub const NEXT: Flow = Flow(0);
    /// `Cx::jump` holds the new PC.
    pub const JUMP: Flow = Flow(1);
    /// `Cx::event` holds the event that stops the wave.
    pub const EVENT: Flow = Flow(2);
    /// The operation has no semantics or is not an instruction.
    pub const UNKNOWN: Flow = Flow(3);
    /// MODE has changed: continue with the handlers of the new mode.
    pub const MODE: Flow = Flow(4);
}

/// A handler, which runs one operation.
///
/// # Safety
/// The operation belongs to the program that the context was created for, and satisfies the invariants of
/// lowered code (`wavesim_program::validate`). The context is the result of [`Cx::new`] or [`Cx::switch`]: the wave may
/// have changed its state, but no other wave has taken its place. Except for portable handlers, the host has
/// AVX2 and related features.
pub type Handler = unsafe fn(&mut Cx<'_>, &Op) -> Flow;

/// A handler table, indexed by the code of an operation.
pub type Table = tables::Table<Handler>;
/// A handler table in compact form.
pub type Numbered = tables::Numbered<Handler>;
/// The tables to select from, by float mode and wave size.
pub type Tables = tables::Tables<Handler>;
/// [`Tables`], and the tables built from them.
pub type Handlers = tables::Handlers<Handler>;

/// The tables and the float environment that MODE selects.
struct Chosen {
    narrow: &'static Table,
    handlers: &'static Table,
    general: General,
}

impl Handlers {
    /// Selects the tables for a MODE and a wave size.
    #[inline(always)]
    fn choose(&'static self, fast: Option<Avx2>, arch: Arch, mode: u32, lanes: u32) -> Chosen {
        // Where MODE does not extend VGPR numbers, its bits for that enable exceptions, which kernels do not.
        let (Some(fast), Some(float)) = (fast, FloatMode::fast(mode, GPR_IDX_EN | VSKIP | VGPR_MSBS)) else {
            return self.choose_rare(fast, arch, mode, lanes);
        };
        let narrow = self.fast(fast, float, false);
        let handlers = if lanes == 64 { self.fast(fast, float, true) } else { narrow };
        Chosen { narrow, handlers, general: General(FloatEnv::KEEP) }
    }

    #[cold]
    fn choose_rare(&'static self, fast: Option<Avx2>, arch: Arch, mode: u32, lanes: u32) -> Chosen {
        let facts = arch.facts();
        let special = facts.instruction_modes && mode & (GPR_IDX_EN | VSKIP) != 0
            || facts.vgprs.msbs && mode & VGPR_MSBS != 0;
        let plain = self.by_arithmetic(fast, mode, lanes == 64);
        Chosen {
            narrow: self.by_arithmetic(fast, mode, false),
            handlers: if special { self.by_mode() } else { plain },
            general: General(FloatEnv::from_mode(mode)),
        }
    }

    /// Returns the handlers for the arithmetic modes in MODE, for waves of 64 lanes (`wave64`) or of 32.
    fn by_arithmetic(&'static self, fast: Option<Avx2>, mode: u32, wave64: bool) -> &'static Table {
        match fast {
            None => self.base(),
            Some(fast) => self.fast(fast, FloatMode::of(mode), wave64),
        }
    }
}

/// The context of a handler.
pub struct Cx<'a> {
    /// The running wave.
    pub wave: &'a mut Wave,
    /// Global memory. In an observed run it is empty, as are LDS and scratch: see [`Watch`].
    pub memory: &'a Memory,
    /// LDS of the workgroup, in bytes.
    pub lds: &'a mut [u8],
    /// Scratch of the wave, with the layout of [`scratch`](wavesim_state::scratch).
    pub scratch: &'a mut [u8],
    /// Bytes of scratch per lane.
    pub scratch_stride: u32,
    /// The workgroup's barriers.
    pub workgroup: &'a mut Workgroup,
    /// Selects the rules where architectures differ.
    pub arch: Arch,
    /// The program's constant pool.
    pub consts: &'a [u32],
    /// The program's modifiers, indexed by [`Op::ext`].
    pub exts: &'a [Ext],
    /// Proof that the host has the features that fast handlers are compiled for.
    pub fast: Option<Avx2>,
    /// The handlers for this host, MODE and wave size.
    pub handlers: &'static Table,
    /// The handlers for 32 lanes, which [`both_halves`](super::both_halves) calls.
    pub(super) narrow: &'static Table,
    /// The file of the half that a handler for 32 lanes runs on. In waves of 64 lanes, only [`both_halves`](super::both_halves)
    /// and related functions set it.
    pub file: Half,
    /// The file of the first half.
    pub(super) first: Half,
    /// The tables to select from.
    tables: &'static Handlers,
    /// The float environment of `BASE` handlers.
    pub general: General,
    /// The new PC, with [`Flow::JUMP`].
    pub jump: u64,
    /// The event, with [`Flow::EVENT`].
    pub event: Option<Event>,
    /// The running operation.
    pub op: &'a Op,
    /// PC of the code's first byte.
    pub origin: u64,
    /// Instructions executed so far, which is the value of the clock; the run loop updates it at jumps.
    pub instructions: u64,
    /// Cancels instructions that the evaluator runs.
    pub cancel: Option<&'a AtomicBool>,
    /// The watch of an observed run.
    pub watch: Option<&'a mut Watch<'a>>,
    /// Hints for the host.
    pub(super) tuning: Tuning,
}

/// Stands in for the current operation before the first one has run.
static NONE: Op = Op::end();

impl<'a> Cx<'a> {
    /// Creates a context, with fast handlers if `fast` is given; `origin` is the PC of the code's first byte.
    /// Inlined, because every turn of a wave creates a context.
    #[inline(always)]
    pub fn new(
        tables: &'static Handlers,
        fast: Option<Avx2>,
        arch: Arch,
        wave: &'a mut Wave,
        context: &'a mut Context<'_>,
        pools: &'a Pools,
        origin: u64,
    ) -> Cx<'a> {
        wave.install(pools.id, &pools.consts);
        wave.use_memory(context.memory.id());
        let first = wave.half(0);
        let Chosen { narrow, handlers, general } = tables.choose(fast, arch, wave.mode, wave.size());
        // Built in place: if it were changed afterwards, the compiler would build it elsewhere and copy it.
        Cx {
            file: first,
            first,
            wave,
            memory: context.memory,
            lds: context.lds,
            scratch: context.scratch,
            scratch_stride: context.scratch_stride,
            cancel: context.cancel,
            workgroup: context.workgroup,
            arch,
            consts: &pools.consts,
            exts: &pools.exts,
            tables,
            fast,
            handlers,
            narrow,
            general,
            jump: 0,
            event: None,
            op: &NONE,
            origin,
            instructions: context.instructions,
            watch: None,
            tuning: Tuning::new(),
        }
    }

    /// Replaces the running wave and its scratch with another wave of the workgroup, and returns the old
    /// ones. `pools` are the program's, as for [`Cx::new`].
    #[inline(always)]
    pub fn switch(
        &mut self,
        wave: &'a mut Wave,
        scratch: &'a mut [u8],
        pools: &Pools,
    ) -> (&'a mut Wave, &'a mut [u8]) {
        wave.install(pools.id, &pools.consts);
        wave.use_memory(self.memory.id());
        (self.first, self.file) = (wave.half(0), wave.half(0));
        let same = (wave.mode, wave.size()) == (self.wave.mode, self.wave.size());
        let before = (std::mem::replace(&mut self.wave, wave), std::mem::replace(&mut self.scratch, scratch));
        if !same {
            self.refresh_mode();
        }
        before
    }

    /// Selects handlers again after MODE has changed.
    #[inline(never)]
    pub fn refresh_mode(&mut self) {
        let Chosen { narrow, handlers, general } =
            self.tables.choose(self.fast, self.arch, self.wave.mode, self.wave.size());
        (self.narrow, self.handlers, self.general) = (narrow, handlers, general);
    }

    /// Returns the handlers for the arithmetic modes in MODE, for waves of 64 lanes (`wave64`) or of 32.
    pub(super) fn by_arithmetic(&self, wave64: bool) -> &'static Table {
        self.tables.by_arithmetic(self.fast, self.wave.mode, wave64)
    }

    /// Returns the half that a handler for 32 lanes runs on.
    #[inline(always)]
    pub fn half(&self) -> usize {
        (self.file != self.first) as usize
    }

    /// Returns the files of a wave of 64 lanes.
    #[inline(always)]
    pub(super) fn both(&self) -> [Half; 2] {
        [self.first, self.first.next()]
    }

    /// Returns the PC of the running operation.
    #[inline(always)]
    pub fn pc(&self) -> u64 {
        self.origin + self.op.pc as u64
    }

    /// Returns the modifiers and raw fields of an operation.
    #[inline(always)]
    pub fn raw(&self, op: &Op) -> &'a Ext {
        &self.exts[op.ext as usize]
    }

    /// Stops the wave with an event.
    pub fn fault(&mut self, event: Event) -> Flow {
        self.event = Some(event);
        Flow::EVENT
    }

    /// Raises a fault of global memory; `lane` is `None` for scalar memory.
    #[cold]
    pub fn memory_fault(&mut self, e: MemError, lane: Option<u32>) -> Flow {
        let event = Event::out_of_bounds(self.memory, e, lane);
        self.fault(event)
    }
}

/// Runs a control builtin.
#[inline(always)]
pub fn control(cx: &mut Cx<'_>, builtin: Control, args: &[u128]) -> Result<u128, Flow> {
    // Most control builtins that a kernel executes are hints and waits, which only an observer needs to see.
    if does_nothing(builtin) && cx.watch.as_ref().is_none_or(|watch| watch.quiet) {
        return Ok(0);
    }
    // Nearly every turn ends here if a workgroup has several waves.
    if is_barrier(builtin) && cx.watch.is_none() {
        let number = args.first().map_or(0, |a| *a as u32);
        return match barrier(cx.wave, cx.workgroup, builtin, number) {
            Ok(value) => Ok(value as u128),
            Err(event) => Err(cx.fault(event)),
        };
    }
    control_call(cx, builtin, args)
}

#[inline(never)]
fn control_call(cx: &mut Cx<'_>, builtin: Control, args: &[u128]) -> Result<u128, Flow> {
    if let Some(watch) = &mut cx.watch {
        watch.logs.calls.push((builtin, args.first().map_or(0, |a| *a as u32)));
    }
    match (cx.tables.machine().control)(cx.arch, cx.wave, cx.workgroup, cx.instructions, builtin, args) {
        Ok(value) => {
            if builtin == Control::SetReg {
                cx.refresh_mode();
            }
            Ok(value)
        }
        Err(event) => Err(cx.fault(event)),
    }
}

/// Raises the fault of semantics that write read-only state.
pub fn read_only(cx: &mut Cx<'_>) -> Flow {
    cx.fault(Event::fault(FaultKind::Other, "the pseudocode writes state that is read-only"))
}

/// Returns the STATUS register.
pub fn status(cx: &Cx<'_>) -> u32 {
    (cx.tables.machine().status)(cx.arch, cx.wave, cx.workgroup)
}
