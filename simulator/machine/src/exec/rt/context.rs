//! What a handler sees of the machine.

use super::float::General;
use super::operands::{fast_broadcast, fast_broadcast_both};
use super::tables::{Arithmetic, Handlers, Table};
use super::watch::Watch;
use crate::exec::context::Context;
use crate::exec::hwreg;
use crate::exec::lower::Lowered;
use crate::exec::machine_ops::{self, Event};
use crate::exec::op::{Ext, Op, Variant};
use crate::fault::FaultKind;
use crate::memory::{MemError, Memory};
use crate::state::host::Avx2;
use crate::state::{Half, Wave, Workgroup};
use isa_spec::arith::FloatEnv;
use isa_spec::pcode::builtins::Control;
use std::sync::atomic::AtomicBool;
use wavesim_isa::arch::Arch;
use wavesim_isa::relative::{GPR_IDX_EN, VSKIP};

/// How the run loop goes on after a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow(pub u32);

impl Flow {
    /// Go on with the next operation.
    pub const NEXT: Flow = Flow(0);
    /// `Cx::jump` holds the new PC.
    pub const JUMP: Flow = Flow(1);
    /// `Cx::event` says what happened.
    pub const EVENT: Flow = Flow(2);
    /// No semantics; also what the places that are not instructions give.
    pub const UNKNOWN: Flow = Flow(3);
    /// MODE changed: go on in the loop for it.
    pub const MODE: Flow = Flow(4);
}

/// Runs one operation.
///
/// # Safety
/// The operation is of the program that the context was made for, and keeps to the invariants of lowered code (`exec::validate`). The
/// context is as [`Cx::new`] or [`Cx::switch`] made it: the wave has changed its state, but no other wave has taken its place. But for
/// tables of portable handlers, the host has AVX2 and what comes with it.
pub type Handler = unsafe fn(&mut Cx<'_>, &Op) -> Flow;

/// What MODE chooses.
struct Chosen {
    narrow: &'static Table,
    handlers: &'static Table,
    general: General,
}

impl Handlers {
    /// For a MODE, on waves of so many lanes.
    #[inline(always)]
    fn choose(&'static self, fast: Option<Avx2>, arch: Arch, mode: u32, lanes: u32) -> Chosen {
        // Rounding, denormals and FP16_OVFL; and what CDNA does to vector instructions.
        let (fast, arithmetic) = match (fast, mode & (ARITHMETIC | GPR_IDX_EN | VSKIP)) {
            (Some(fast), 0xf0) => (fast, Arithmetic::KEEP),
            (Some(fast), 0xc0) => (fast, Arithmetic::FLUSH),
            _ => return self.choose_rare(fast, arch, mode, lanes),
        };
        let narrow = self.fast(fast, arithmetic, false);
        let handlers = if lanes == 64 { self.fast(fast, arithmetic, true) } else { narrow };
        Chosen { narrow, handlers, general: General(FloatEnv::KEEP) }
    }

    #[cold]
    fn choose_rare(&'static self, fast: Option<Avx2>, arch: Arch, mode: u32, lanes: u32) -> Chosen {
        let special = arch.is_cdna() && mode & (GPR_IDX_EN | VSKIP) != 0;
        let plain = self.by_arithmetic(fast, mode, lanes == 64);
        Chosen {
            narrow: self.by_arithmetic(fast, mode, false),
            handlers: if special { self.by_mode() } else { plain },
            general: General(FloatEnv::from_mode(mode)),
        }
    }

    /// The handlers for what MODE says of arithmetic, for waves of 64 or of 32.
    fn by_arithmetic(&'static self, fast: Option<Avx2>, mode: u32, wide: bool) -> &'static Table {
        match fast {
            None => self.base(),
            Some(fast) => self.fast(fast, Arithmetic::of(mode), wide),
        }
    }
}

/// The machine as a handler sees it.
pub struct Cx<'a> {
    /// The wave that runs.
    pub wave: &'a mut Wave,
    /// Global memory. Empty in an observed run, as LDS and scratch are: see [`Watch`].
    pub memory: &'a Memory,
    /// LDS of the workgroup, in bytes.
    pub lds: &'a mut [u8],
    /// Private memory: lane `l` owns the bytes from `l * scratch_stride` on.
    pub scratch: &'a mut [u8],
    /// Bytes of private memory a lane.
    pub scratch_stride: u32,
    /// The workgroup's barriers.
    pub workgroup: &'a mut Workgroup,
    /// Whose rules apply where architectures differ.
    pub arch: Arch,
    /// The program's pool.
    pub consts: &'a [u32],
    /// The program's modifiers, by [`Op::ext`].
    pub exts: &'a [Ext],
    /// The host has what the fast handlers are compiled for.
    pub fast: Option<Avx2>,
    /// The handlers for this host, MODE and wave size.
    pub handlers: &'static Table,
    /// Those for 32 lanes, which [`both_halves`] calls.
    pub(super) narrow: &'static Table,
    /// The file of the half that a handler for 32 lanes runs on. In waves of 64, only [`both_halves`] and its like set it.
    pub file: Half,
    /// The file of the first half.
    first: Half,
    /// Where they are chosen from.
    tables: &'static Handlers,
    /// For `BASE` handlers.
    pub general: General,
    /// The new PC, with [`Flow::JUMP`].
    pub jump: u64,
    /// What happened, with [`Flow::EVENT`].
    pub event: Option<Event>,
    /// The operation that runs.
    pub op: &'a Op,
    /// PC of the code's first byte.
    pub origin: u64,
    /// Executed so far, for the clock; the run loop brings it up to date at jumps.
    pub instructions: u64,
    /// For instructions that are evaluated.
    pub cancel: Option<&'a AtomicBool>,
    /// Of an observed run.
    pub watch: Option<&'a mut Watch<'a>>,
}

/// Bits of MODE that choose among the handlers of arithmetic.
const ARITHMETIC: u32 = 0x80_00ff;

/// The operation before the first one has run.
static NONE: Op = Op::end();

impl<'a> Cx<'a> {
    /// With the fast handlers for a host that has what they need; `origin` is the PC of the code's first byte. Inlined, because every
    /// turn of a wave makes one.
    #[inline(always)]
    pub fn new(
        tables: &'static Handlers,
        fast: Option<Avx2>,
        arch: Arch,
        wave: &'a mut Wave,
        context: &'a mut Context<'_>,
        lowered: &'a Lowered,
        origin: u64,
    ) -> Cx<'a> {
        wave.install(lowered.id, &lowered.consts);
        wave.use_memory(context.memory.id());
        let first = wave.half(0);
        let Chosen { narrow, handlers, general } = tables.choose(fast, arch, wave.mode, wave.size());
        // Nothing is changed in it afterwards: it would be made elsewhere, and copied.
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
            consts: &lowered.consts,
            exts: &lowered.exts,
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
        }
    }

    /// Another wave of the workgroup takes the place of the one that ran, with its scratch. Gives those of the last one back. `lowered`
    /// is the program's, as in [`Cx::new`].
    #[inline(always)]
    pub fn switch(
        &mut self,
        wave: &'a mut Wave,
        scratch: &'a mut [u8],
        lowered: &Lowered,
    ) -> (&'a mut Wave, &'a mut [u8]) {
        wave.install(lowered.id, &lowered.consts);
        wave.use_memory(self.memory.id());
        (self.first, self.file) = (wave.half(0), wave.half(0));
        let same = (wave.mode, wave.size()) == (self.wave.mode, self.wave.size());
        let before = (std::mem::replace(&mut self.wave, wave), std::mem::replace(&mut self.scratch, scratch));
        if !same {
            self.refresh_mode();
        }
        before
    }

    /// After MODE changed.
    #[inline(never)]
    pub fn refresh_mode(&mut self) {
        let Chosen { narrow, handlers, general } =
            self.tables.choose(self.fast, self.arch, self.wave.mode, self.wave.size());
        (self.narrow, self.handlers, self.general) = (narrow, handlers, general);
    }

    /// The handlers for what MODE says of arithmetic, for waves of 64 or of 32.
    pub(super) fn by_arithmetic(&self, wide: bool) -> &'static Table {
        self.tables.by_arithmetic(self.fast, self.wave.mode, wide)
    }

    /// The half that a handler for 32 lanes runs on.
    #[inline(always)]
    pub fn half(&self) -> usize {
        (self.file != self.first) as usize
    }

    /// The files of a wave of 64.
    #[inline(always)]
    pub(super) fn both(&self) -> [Half; 2] {
        [self.first, self.first.next()]
    }

    /// PC of the running operation.
    #[inline(always)]
    pub fn pc(&self) -> u64 {
        self.origin + self.op.pc as u64
    }

    /// The modifiers and raw fields of an operation.
    #[inline(always)]
    pub fn raw(&self, op: &Op) -> &'a Ext {
        &self.exts[op.ext as usize]
    }

    /// Stops the wave with this event.
    pub fn fault(&mut self, event: Event) -> Flow {
        self.event = Some(event);
        Flow::EVENT
    }

    /// A fault of global memory; `lane` is `None` for scalar memory.
    #[cold]
    pub fn memory_fault(&mut self, e: MemError, lane: Option<u32>) -> Flow {
        let event = Event::out_of_bounds(self.memory, e, lane);
        self.fault(event)
    }
}

/// Runs [`Cx::op`] in a wave of 64 as two halves of 32, one after the other: for what reaches no lane of the other half, and
/// cannot stop the wave. The second call is a jump, and nothing is kept in registers for it but the context.
///
/// # Safety
/// As for [`Handler`], in a wave of 64, of the operation that is [`Cx::op`]. The handler for one half gives [`Flow::NEXT`].
pub unsafe fn both_halves(cx: &mut Cx<'_>, op: &Op) -> Flow {
    debug_assert!(std::ptr::eq(cx.op, op));
    cx.file = cx.first;
    // SAFETY: O1; by the contract.
    let flow = unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) };
    debug_assert!(flow == Flow::NEXT);
    let (op, [_, second]) = (cx.op, cx.both());
    cx.file = second;
    // SAFETY: O1; by the contract.
    unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) }
}

/// [`both_halves`] for [`Variant::FastBroadcast`]: SGPRs are copied before a mask result of the first half can change one.
///
/// # Safety
/// As for [`both_halves`]; the operation lists SGPRs (O5), and the host has AVX2 (H1).
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn both_halves_broadcast(cx: &mut Cx<'_>, op: &Op) -> Flow {
    // SAFETY: by the contract.
    unsafe {
        fast_broadcast_both(cx, op);
        both_halves_copied(cx, op)
    }
}

/// The rest of [`both_halves_broadcast`]: a function of its own, so that the copies need no registers that calls keep.
///
/// # Safety
/// As for [`both_halves_broadcast`].
#[inline(never)]
unsafe fn both_halves_copied(cx: &mut Cx<'_>, op: &Op) -> Flow {
    debug_assert!(std::ptr::eq(cx.op, op));
    cx.file = cx.first;
    // SAFETY: O1; by the contract.
    let flow = unsafe { cx.narrow.get_unchecked(op.code as usize - COPIED)(cx, op) };
    debug_assert!(flow == Flow::NEXT);
    let (op, [_, second]) = (cx.op, cx.both());
    cx.file = second;
    // SAFETY: O1; by the contract.
    unsafe { cx.narrow.get_unchecked(op.code as usize - COPIED)(cx, op) }
}

/// [`Variant::FastBroadcast`] in a wave of 32: copies the SGPRs, and goes on as [`Variant::Fast`]. One function for all operations: the
/// code of each stands once.
///
/// # Safety
/// As for [`Handler`], in a wave of 32; the operation lists SGPRs (O5), and the host has AVX2 (H1).
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn broadcast_first(cx: &mut Cx<'_>, op: &Op) -> Flow {
    // SAFETY: O1; by the contract.
    unsafe {
        fast_broadcast(cx, op, cx.file);
        cx.narrow.get_unchecked(op.code as usize - COPIED)(cx, op)
    }
}

/// From an operation's handler that copies SGPRs to the one that finds them copied.
const COPIED: usize = Variant::FastBroadcast as usize - Variant::Fast as usize;

/// [`both_halves`] of what may stop the wave, which the second half then does not run for.
///
/// # Safety
/// As for [`Handler`], in a wave of 64.
pub unsafe fn each_half(cx: &mut Cx<'_>, op: &Op) -> Flow {
    cx.file = cx.first;
    // SAFETY: O1; by the contract.
    let flow = unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) };
    if flow != Flow::NEXT {
        return flow;
    }
    [_, cx.file] = cx.both();
    // SAFETY: O1; by the contract.
    unsafe { cx.narrow.get_unchecked(op.code as usize)(cx, op) }
}

/// A control builtin.
#[inline(always)]
pub fn control(cx: &mut Cx<'_>, builtin: Control, args: &[u128]) -> Result<u128, Flow> {
    // Most of what a kernel executes of these are hints and waits: only an observer needs to see them.
    if machine_ops::does_nothing(builtin) && cx.watch.as_ref().is_none_or(|watch| watch.quiet) {
        return Ok(0);
    }
    // The end of nearly every turn, where a workgroup has several waves.
    if machine_ops::is_barrier(builtin) && cx.watch.is_none() {
        let number = args.first().map_or(0, |a| *a as u32);
        return match machine_ops::barrier(cx.wave, cx.workgroup, builtin, number) {
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
    match machine_ops::control(cx.arch, cx.wave, cx.workgroup, cx.instructions, builtin, args) {
        Ok(value) => {
            if builtin == Control::SetReg {
                cx.refresh_mode();
            }
            Ok(value)
        }
        Err(event) => Err(cx.fault(event)),
    }
}

/// The fault of a body that writes what only the machine writes.
pub fn read_only(cx: &mut Cx<'_>) -> Flow {
    cx.fault(Event::fault(FaultKind::Other, "the pseudocode writes state that is read-only"))
}

/// The STATUS register, put together from the state that it shows.
pub fn status(cx: &Cx<'_>) -> u32 {
    hwreg::status(cx.arch, cx.wave, cx.workgroup)
}
