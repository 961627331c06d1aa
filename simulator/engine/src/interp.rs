//! The interpreter: runs the handler of each operation, taken from the handler table of the current float
//! mode.

use crate::reference::{self, Observe};
pub use crate::sched::barrier::BarrierScheduler;
use std::sync::atomic::{AtomicU16, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::lower::Lowered;
use wavesim_machine::exec::machine_ops::{Event, MACHINE_OPS};
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{self, Cx, Flow, Handlers, Numbered, Tables};
use wavesim_machine::fault::FaultKind;
use wavesim_machine::isa;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::{VGPRS, Wave};

/// Returns whether the host has the vector instructions that the fast handlers are compiled for.
pub fn host_is_fast() -> bool {
    Avx2::detect().is_some()
}

/// Returns the event that stopped the wave at `op`, whose handler returned an event or [`Flow::UNKNOWN`].
#[cold]
pub(crate) fn take_event(cx: &mut Cx<'_>, op: &Op, program: &Program) -> Event {
    match cx.event.take() {
        Some(event) => event,
        None => fault_without_handler(op, program.name_at(cx.pc())),
    }
}

/// Returns the fault of an operation that has no handler.
pub(crate) fn fault_without_handler(op: &Op, name: Option<&str>) -> Event {
    match op.code {
        Op::END => Event::fault(FaultKind::PcOutOfRange, "the program counter left the program"),
        Op::HOLE => Event::fault(FaultKind::IllegalInstruction, "the bytes at the PC are not an instruction"),
        Op::OUT_OF_RANGE => {
            let name = name.unwrap_or("this instruction").to_lowercase();
            let message = format!("an operand of {name} extends beyond v{}, the last VGPR", VGPRS - 1);
            Event::fault(FaultKind::IllegalInstruction, message)
        }
        Op::DPP_UNSUPPORTED => dpp_unsupported(name),
        Op::UNLISTED_CODE => unlisted_code(name, op.imm),
        _ => {
            let name = name.unwrap_or("this instruction");
            let reason = isa::unsupported_reason(name).map_or(String::new(), |reason| format!(" ({reason})"));
            Event::fault(
                FaultKind::Unimplemented,
                format!("{} is not supported{reason}", name.to_lowercase()),
            )
        }
    }
}

/// Returns the fault of an instruction with DPP whose pseudocode selects lanes itself: DPP is undefined for
/// it.
pub(crate) fn dpp_unsupported(name: Option<&str>) -> Event {
    let name = name.unwrap_or("this instruction").to_lowercase();
    let message = format!("{name} with DPP is not supported (its pseudocode selects the lanes itself)");
    Event::fault(FaultKind::Unimplemented, message)
}

/// Returns the fault of an instruction with an operand code that the operand does not accept.
pub(crate) fn unlisted_code(name: Option<&str>, code: u32) -> Event {
    let name = name.unwrap_or("this instruction").to_lowercase();
    let message = format!("an operand of {name} has the code {code}, which is none that it accepts");
    Event::fault(FaultKind::IllegalInstruction, message)
}

/// Stands in for the current operation where the PC is outside the program.
static END: Op = Op::end();

/// The handler tables of this build.
pub(crate) static HANDLERS: Handlers = {
    let tables = Tables {
        keep: wavesim_handlers::KEEP,
        keep_64: wavesim_handlers::KEEP_64,
        flush: wavesim_handlers::FLUSH,
        flush_64: wavesim_handlers::FLUSH_64,
        #[cfg(not(target_family = "wasm"))]
        base: wavesim_handlers_portable::BASE,
        #[cfg(target_family = "wasm")]
        base: EVALUATED,
        by_mode: BY_MODE,
        mixed: cfg!(not(target_family = "wasm")),
        machine: MACHINE_OPS,
    };
    // SAFETY: each crate's macro invocation generates the handlers together with their numbers, for the float
    // modes and hosts that the crate serves. The evaluator and `by_mode` run any operation.
    unsafe { Handlers::new(tables) }
};

/// Handlers for use while MODE skips vector instructions or offsets their VGPRs.
const BY_MODE: Numbered = Numbered::only(&[rt::by_mode]);

/// Runs every instruction through the evaluator. The WebAssembly module uses this for rare float modes,
/// because the portable handlers are a quarter of all code.
#[cfg(any(test, target_family = "wasm"))]
pub(crate) const EVALUATED: Numbered = Numbered::only(&[evaluated]);

/// # Safety
/// As for any handler; this one relies on nothing.
#[cfg(any(test, target_family = "wasm"))]
unsafe fn evaluated(_: &mut Cx<'_>, _: &Op) -> Flow {
    Flow::UNKNOWN
}

/// Runs one operation in the current float mode.
///
/// # Safety
/// `op` belongs to the program that `cx` was created for.
#[inline(always)]
pub(crate) unsafe fn dispatch<'a>(cx: &mut Cx<'a>, op: &'a Op) -> Flow {
    cx.op = op;
    // SAFETY: the caller guarantees that `op` belongs to the program of `cx`, so that invariants O1 to O7 and
    // H1 of lowered code (`exec::validate`) hold.
    unsafe { cx.handlers[op.code as usize](cx, op) }
}

/// Executes one instruction with compiled handlers and advances the PC. Returns `None` if the instruction is not
/// supported.
pub fn step(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    step_with(Avx2::detect(), arch, inst, wave, context)
}

/// [`step`] with the fast handlers if `fast` is given, else with the portable ones, whatever the host supports.
pub fn step_with(
    fast: Option<Avx2>,
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    let mut lowered = Lowered::default();
    // A single instruction exceeds no limit.
    lowered.push(arch, inst, 0, 0).ok()?;
    if let Some(op) = lowered.ops().iter().find(|op| op.only_stops()) {
        let name = inst.instruction(arch.table()).name;
        let supported = !matches!(op.code, Op::UNKNOWN | Op::DPP_UNSUPPORTED);
        return supported.then(|| Err(fault_without_handler(op, Some(name))));
    }
    let pc = wave.pc;
    let mut cx = Cx::new(&HANDLERS, fast, arch, wave, context, lowered.pools(), pc);
    let mut next = pc + inst.size as u64;
    let mut result = Ok(());
    for op in lowered.ops() {
        // SAFETY: `op` belongs to `lowered`, which `cx` was created for.
        match unsafe { dispatch(&mut cx, op) } {
            Flow::NEXT | Flow::MODE => {}
            Flow::JUMP => next = cx.jump,
            _ => {
                result = Err(cx.event.take().unwrap_or_else(|| fault_without_handler(op, None)));
                break;
            }
        }
    }
    cx.wave.pc = next;
    Some(result)
}

/// Compiled code, which runs in place of handlers.
///
/// # Safety
/// The run loop continues, unchecked, at the operation that [`Compiled::enter`] returns. That operation must
/// belong to `program` and be one that the interpreter could have reached by executing the same instructions.
/// The wave, its memories and the rest of `cx` must be in a state that handlers may leave (`exec::validate`).
/// The wave in `cx` may be replaced through [`Waves`] only, and [`EnterResult::Switched`] must be returned if it
/// was. [`EnterResult::Stopped`] must carry an operation and a flow that its handler can return: [`Flow::JUMP`]
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
    fn should_enter(self, program: &Program, op: &Op) -> bool {
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
struct NoCode;

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

/// Turns shorter than this end exactly after their last instruction; longer ones end at the next jump.
const EXACT_TURN: u64 = 1024;

/// Runs a wave until an event stops it, or until it has executed about `budget` instructions (`Ok`): a long
/// turn ends only at a jump. On return, the PC is after the last instruction executed, or at the faulting
/// one, and `executed` has grown by the number of instructions. Inlined, because turns between barriers are
/// short.
#[inline(always)]
pub fn run(
    program: &Program,
    wave: &mut Wave,
    context: &mut Context<'_>,
    budget: u64,
    executed: &mut u64,
) -> Result<(), Event> {
    turn(&HANDLERS, program, wave, context, budget, executed, &NoCode, &mut SingleWave)
}

/// As [`run`], but uses compiled code where it exists, and continues with other waves where an event stops
/// one.
#[inline(always)]
pub fn run_waves<'a, W: Waves<'a>>(
    program: &'a Program,
    wave: &'a mut Wave,
    context: &'a mut Context<'_>,
    budget: u64,
    executed: &mut u64,
    compiled: Option<&dyn Compiled>,
    waves: &mut W,
) -> Result<(), Event> {
    match compiled {
        None => turn(&HANDLERS, program, wave, context, budget, executed, &NoCode, waves),
        Some(compiled) => turn(&HANDLERS, program, wave, context, budget, executed, compiled, waves),
    }
}

/// As [`run`], with the evaluator for all instructions.
#[cfg(test)]
pub(crate) fn run_evaluated(
    program: &Program,
    wave: &mut Wave,
    context: &mut Context<'_>,
    budget: u64,
    executed: &mut u64,
) -> Result<(), Event> {
    let tables = Tables {
        keep: EVALUATED,
        keep_64: EVALUATED,
        flush: EVALUATED,
        flush_64: EVALUATED,
        base: EVALUATED,
        by_mode: BY_MODE,
        mixed: false,
        machine: MACHINE_OPS,
    };
    // SAFETY: the evaluator and `by_mode` run any operation on any host.
    let handlers = unsafe { Handlers::new(tables) };
    turn(Box::leak(Box::new(handlers)), program, wave, context, budget, executed, &NoCode, &mut SingleWave)
}

#[inline(always)]
#[expect(clippy::too_many_arguments)]
fn turn<'a, C: Compiled + ?Sized, W: Waves<'a>>(
    tables: &'static Handlers,
    program: &'a Program,
    wave: &'a mut Wave,
    context: &'a mut Context<'_>,
    budget: u64,
    executed: &mut u64,
    compiled: &C,
    waves: &mut W,
) -> Result<(), Event> {
    let before = context.instructions;
    let mut cx = Cx::new(tables, Avx2::detect(), program.arch, wave, context, program.lowered().pools(), 0);
    let mut turn = Turn { program, end: before.saturating_add(budget), compiled, waves };
    let result = turn.run(&mut cx);
    *executed += cx.instructions - before;
    result
}

/// Runs the current instruction through the evaluator if its semantics were replaced at run time, or if this
/// build has no handler for an operation that has one elsewhere (`EVALUATED`). The wave's PC is then after
/// it, or at it after a fault.
#[cold]
pub(crate) fn evaluate(program: &Program, cx: &mut Cx<'_>) -> Option<Result<(), Event>> {
    let pc = cx.pc();
    let has_handlers = (cx.op.code as usize / Op::VARIANTS) < isa::OPERATIONS.len();
    let evaluated = cfg!(any(test, target_family = "wasm")) && has_handlers;
    let (inst, sem, sem_y) = if evaluated { program.semantics(pc) } else { program.replaced_semantics(pc) }?;
    cx.wave.pc = pc;
    let (workgroup, instructions) = (&mut *cx.workgroup, cx.instructions);
    let mut context = Context {
        memory: cx.memory,
        lds: &mut *cx.lds,
        scratch: &mut *cx.scratch,
        scratch_stride: cx.scratch_stride,
        workgroup,
        instructions,
        cancel: cx.cancel,
    };
    let observe = match &mut cx.watch {
        // In an observed run, only the watch has access to memory.
        Some(watch) => Observe::Accesses(watch),
        None => Observe::Nothing,
    };
    let result = reference::step_observed(cx.arch, inst, sem, sem_y, cx.wave, &mut context, observe);
    cx.refresh_mode();
    if matches!(result, Err(Event::Fault(_))) {
        cx.wave.pc = pc;
    }
    Some(result)
}

/// The reason why a loop ended. `Cx::op` is the next operation to run, or the one that raised the event.
enum Stop {
    /// The turn is over.
    Turn,
    /// The float mode, and with it the handlers, has changed.
    Mode,
    /// `Cx::jump` is outside the program.
    OutOfRange,
    /// The operation has no handler: its semantics were replaced at run time, or it has none.
    Unknown,
    Event,
    /// Compiled code has switched to another wave, which continues at its PC.
    Switched,
    /// Compiled code has switched waves, and [`Waves::next`] returned [`Next::None`].
    NoWaveReady,
}

/// A wave's turn.
struct Turn<'a, 'c, C: ?Sized, W> {
    program: &'a Program,
    compiled: &'c C,
    waves: &'c mut W,
    /// The turn ends when [`Cx::instructions`] reaches this number.
    end: u64,
}

impl<'a, C: Compiled + ?Sized, W: Waves<'a>> Turn<'a, '_, C, W> {
    #[inline(always)]
    fn run(&mut self, cx: &mut Cx<'a>) -> Result<(), Event> {
        let program = self.program;
        self.begin(cx)?;
        loop {
            let stop = if self.end.saturating_sub(cx.instructions) < EXACT_TURN {
                self.run_exact(cx)
            } else {
                self.run_regions(cx)
            };
            match stop {
                Stop::Mode if cx.instructions < self.end => {}
                Stop::Mode | Stop::Turn => {
                    cx.wave.pc = cx.pc();
                    return Ok(());
                }
                Stop::OutOfRange => {
                    cx.wave.pc = cx.jump;
                    return Err(fault_without_handler(&END, None));
                }
                Stop::Unknown => {
                    let first_of_several = cx.op.flags & Op::MORE != 0;
                    if let Some(result) = evaluate(program, cx) {
                        // The evaluator ran all operations of the instruction, of which the last would have
                        // counted.
                        cx.instructions += first_of_several as u64;
                        result?;
                        cx.jump = cx.wave.pc;
                        match program.op_at(cx.jump) {
                            Some(next) => cx.op = next,
                            None => return Err(fault_without_handler(&END, None)),
                        }
                        if cx.instructions >= self.end {
                            return Ok(());
                        }
                        continue;
                    }
                    cx.wave.pc = cx.pc();
                    return Err(fault_without_handler(cx.op, program.name_at(cx.pc())));
                }
                Stop::Event => {
                    let event = take_event(cx, cx.op, program);
                    if matches!(event, Event::Fault(_)) {
                        cx.wave.pc = cx.pc();
                        return Err(event);
                    }
                    match switch_wave(cx, program, event, self.waves) {
                        Next::Wave(end) => self.end = end,
                        Next::None => return Ok(()),
                        Next::Event(event) => return Err(event),
                    }
                    self.begin(cx)?;
                }
                Stop::Switched => self.begin(cx)?,
                Stop::NoWaveReady => return Ok(()),
            }
        }
    }

    /// Sets `Cx::op` to the operation at the wave's PC.
    #[inline(always)]
    fn begin(&self, cx: &mut Cx<'a>) -> Result<(), Event> {
        cx.op = self.program.op_at(cx.wave.pc).ok_or_else(|| fault_without_handler(&END, None))?;
        Ok(())
    }

    /// The main loop: runs the handlers of one float mode. Instructions are counted at the end of each
    /// straight-line region.
    fn run_regions(&mut self, cx: &mut Cx<'a>) -> Stop {
        let handlers = cx.handlers;
        let hotness = self.compiled.hotness(cx, self.program);
        let mut start = cx.op.number;
        loop {
            let entered = match hotness.should_enter(self.program, cx.op) {
                true => self.compiled.enter(cx, self.program, start, &mut self.end, self.waves),
                false => EnterResult::NoCode,
            };
            let flow = match entered {
                EnterResult::Next { op, start: from } => {
                    (cx.op, start) = (op, from);
                    continue;
                }
                EnterResult::Stopped { op, start: from, flow } => {
                    (cx.op, start) = (op, from);
                    flow
                }
                EnterResult::Switched => return Stop::Switched,
                EnterResult::NoWaveReady => return Stop::NoWaveReady,
                none => {
                    if let EnterResult::Interpret { op, start: from } = none {
                        (cx.op, start) = (op, from);
                    }
                    let mut next = std::ptr::from_ref(cx.op);
                    loop {
                        // SAFETY: `next` points to an operation of the program, by invariants P1 and P2 of
                        // lowered code (`exec::validate`).
                        let op = unsafe { &*next };
                        next = next.wrapping_add(1);
                        cx.op = op;
                        // SAFETY: by invariants O1 to O7 and H1 of lowered code.
                        let flow = unsafe { handlers.get_unchecked(op.code as usize)(cx, op) };
                        if flow != Flow::NEXT {
                            break flow;
                        }
                    }
                }
            };
            cx.instructions += (cx.op.complete() - start) as u64;
            match flow {
                Flow::JUMP => {
                    match self.program.op_at(cx.jump) {
                        Some(target) => cx.op = target,
                        None => return Stop::OutOfRange,
                    }
                    start = cx.op.number;
                    if cx.instructions >= self.end {
                        return Stop::Turn;
                    }
                }
                Flow::MODE => {
                    cx.op = self.program.op_after(cx.op);
                    return Stop::Mode;
                }
                Flow::UNKNOWN => return Stop::Unknown,
                _ => return Stop::Event,
            }
        }
    }

    /// Runs and counts one instruction at a time, for short turns: schedules depend on exactly where they
    /// end.
    fn run_exact(&self, cx: &mut Cx<'a>) -> Stop {
        while cx.instructions < self.end {
            let op = cx.op;
            // SAFETY: `op` belongs to the program of `cx`.
            let flow = unsafe { dispatch(cx, op) };
            cx.instructions += (op.complete() - op.number) as u64;
            match flow {
                Flow::NEXT | Flow::MODE => cx.op = self.program.op_after(op),
                Flow::JUMP => match self.program.op_at(cx.jump) {
                    Some(target) => cx.op = target,
                    None => return Stop::OutOfRange,
                },
                Flow::UNKNOWN => return Stop::Unknown,
                _ => return Stop::Event,
            }
        }
        Stop::Turn
    }
}
