//! What the run loop, compiled code and the scheduler know of each other: the loop asks [`Compiled`] for code
//! where a straight-line region begins, and both ask [`Waves`] for another wave where one stops.

use crate::sched::barrier::BarrierScheduler;
use std::sync::atomic::{AtomicU16, Ordering};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};

/// Compiled code, which runs in place of handlers.
///
/// # Safety
/// The run loop continues, unchecked, at the operation that [`Compiled::enter`] returns. That operation must
/// belong to `program` and be one that the interpreter could have reached by executing the same instructions.
/// The wave, its memories and the rest of `cx` must be in a state that handlers may leave (`exec::validate`).
/// The wave in `cx` may be replaced through [`Waves`] only, and [`EnterResult::Switched`] must be returned if it
/// was. MODE may only have changed in the bits that extend VGPR numbers, unless [`Flow::MODE`] is returned, and the
/// handlers in `cx` must be those of the wave's mode. [`EnterResult::Stopped`] must carry an operation and a flow that its handler can return: [`Flow::JUMP`]
/// with [`Cx::jump`] set, [`Flow::MODE`] with the handlers of the wave's mode in `cx`.
pub unsafe trait Compiled {
    /// Returns whether compiled code exists, or is compiled on demand as soon as a wave reaches it.
    fn is_ready(&self) -> bool;

    /// Returns the hotness counters of the program's operations in the wave's present state; valid until MODE
    /// changes.
    fn hotness(&self, cx: &Cx<'_>, program: &Program) -> HotnessCounters<'_>;

    /// Runs the compiled code that begins at `Cx::op`, if there is any. `start` is the number of the
    /// operation at which the current straight-line region began. The turn ends at the first jump at which
    /// [`Cx::instructions`] reaches `end`. Compiled code may continue with other waves ([`Waves`]); `end` is
    /// then that of the last one.
    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> EnterResult<'a>;
}

/// The other waves of a workgroup, as the run loop sees them. When a wave waits at a barrier or ends, another
/// one continues in the same context.
///
/// # Safety
/// [`Waves::next`] receives the context that handlers run with. It may change the counters and barriers in
/// it, and may replace its wave through [`Cx::switch`] only, which keeps the rest of the context consistent
/// with the wave.
pub unsafe trait Waves<'a> {
    /// Handles an event that stopped the wave of `cx`, whose PC is already past the instruction, and switches
    /// `cx` to another wave that is ready.
    fn next(&mut self, cx: &mut Cx<'a>, event: Event) -> Next;

    /// Returns the waves for code that schedules them at barriers without updating the context, if this is
    /// supported. Valid until the next call of [`Waves::next`].
    fn barrier_scheduler(&mut self) -> Option<BarrierScheduler>;

    /// Switches the context to the wave at index `turn`, which the [`BarrierScheduler`] has scheduled.
    fn sync_context(&mut self, cx: &mut Cx<'a>, turn: usize);
}

/// The outcome of [`Waves::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Another wave runs from its PC until [`Cx::instructions`] reaches this number.
    Wave(u64),
    /// As [`Next::Wave`], and the wave is the first of another workgroup, which has started in place of one that has
    /// ended: all waves and memories of the workgroup have changed.
    Workgroup(u64),
    /// No wave is ready, or the scheduler has to check its budget first. The event has been applied.
    None,
    /// The scheduler must handle the event; nothing has changed.
    Event(Event),
}

/// No other waves: events go to the scheduler.
pub struct SingleWave;

// SAFETY: the context is left unchanged.
unsafe impl<'a> Waves<'a> for SingleWave {
    #[inline(always)]
    fn next(&mut self, _: &mut Cx<'a>, event: Event) -> Next {
        Next::Event(event)
    }

    fn barrier_scheduler(&mut self) -> Option<BarrierScheduler> {
        None
    }

    fn sync_context(&mut self, _: &mut Cx<'a>, _: usize) {}
}

/// Applies an event of `Cx::op` that is not a fault and has been counted, and switches to the next wave.
#[inline(always)]
pub fn switch_wave<'a>(
    cx: &mut Cx<'a>,
    program: &Program,
    event: Event,
    waves: &mut (impl Waves<'a> + ?Sized),
) -> Next {
    cx.wave.pc = program.op_after(cx.op).pc as u64;
    waves.next(cx, event)
}

/// Counters of how often a straight-line region may still begin at each operation before [`Compiled::enter`]
/// is called there: 0 means never, 1 means now. The loop counts down, so that operations without compiled
/// code cost next to nothing. Threads share the counters without synchronisation; a lost update is harmless.
#[derive(Clone, Copy)]
pub struct HotnessCounters<'h>(pub &'h [AtomicU16]);

impl HotnessCounters<'_> {
    /// Counts the start of a straight-line region at `op`. Returns whether [`Compiled::enter`] should be
    /// called there.
    #[inline(always)]
    pub(crate) fn should_enter(self, program: &Program, op: &Op) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Some(count) = self.0.get(program.index_of(op)) else { return false };
        match count.load(Ordering::Relaxed) {
            0 => false,
            1 => true,
            more => {
                count.store(more - 1, Ordering::Relaxed);
                false
            }
        }
    }
}

/// The outcome of [`Compiled::enter`].
pub enum EnterResult<'a> {
    /// There is no compiled code here; nothing has happened.
    NoCode,
    /// Compiled code ended before this operation, at which the straight-line region continues.
    Next {
        /// The next operation.
        op: &'a Op,
        /// The new `start`, as in [`Compiled::enter`].
        start: u32,
    },
    /// Compiled code ended before this operation, as for [`EnterResult::Next`], but handlers must run the
    /// operations up to the next jump.
    Interpret {
        /// The next operation.
        op: &'a Op,
        /// The new `start`, as in [`Compiled::enter`].
        start: u32,
    },
    /// This operation returned a flow other than [`Flow::NEXT`], as its handler would have.
    Stopped {
        /// The last operation executed.
        op: &'a Op,
        /// The new `start`, as in [`Compiled::enter`].
        start: u32,
        /// The flow that it returned.
        flow: Flow,
    },
    /// Compiled code has switched waves. The wave in the context continues at its PC.
    Switched,
    /// Compiled code has switched waves, and no wave was ready after the last one ([`Next::None`]).
    NoWaveReady,
}

/// An engine without compiled code.
pub(crate) struct NoCode;

// SAFETY: `enter` returns no operation.
unsafe impl Compiled for NoCode {
    #[inline(always)]
    fn is_ready(&self) -> bool {
        false
    }

    #[inline(always)]
    fn hotness(&self, _: &Cx<'_>, _: &Program) -> HotnessCounters<'_> {
        HotnessCounters(&[])
    }

    #[inline(always)]
    fn enter<'a>(
        &self,
        _: &mut Cx<'a>,
        _: &'a Program,
        _: u32,
        _: &mut u64,
        _: &mut dyn Waves<'a>,
    ) -> EnterResult<'a> {
        EnterResult::NoCode
    }
}
