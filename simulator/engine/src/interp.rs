//! The interpreter: the handler of each operation in turn, out of the table for the float mode.

use crate::reference::{self, Observe};
pub use crate::sched::ring::Ring;
use std::sync::atomic::{AtomicU16, Ordering};
use wavesim_isa::arch::Arch;
use wavesim_isa::inst::Inst;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::lower::Lowered;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{self, Cx, Flow, Handlers, Numbered, Tables};
use wavesim_machine::fault::FaultKind;
use wavesim_machine::isa;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::{VGPRS, Wave};

/// Whether the host has what the fast handlers are compiled for.
pub fn host_is_fast() -> bool {
    Avx2::detect().is_some()
}

/// What stopped the wave at an operation whose handler said that something did.
#[cold]
pub(crate) fn take_event(cx: &mut Cx<'_>, op: &Op, program: &Program) -> Event {
    match cx.event.take() {
        Some(event) => event,
        None => unknown(op, program.name_at(cx.pc())),
    }
}

/// Why an operation that no handler runs stops the wave.
pub(crate) fn unknown(op: &Op, name: Option<&str>) -> Event {
    match op.code {
        Op::END => Event::fault(FaultKind::PcOutOfRange, "the program counter left the program"),
        Op::HOLE => Event::fault(FaultKind::IllegalInstruction, "the bytes here are not an instruction"),
        Op::BEYOND => {
            let name = name.unwrap_or("this instruction").to_lowercase();
            let message = format!("an operand of {name} goes beyond v{}, the last VGPR", VGPRS - 1);
            Event::fault(FaultKind::IllegalInstruction, message)
        }
        Op::LANES => no_dpp(name),
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

/// A body that reaches into lanes itself leaves open what DPP would move.
pub(crate) fn no_dpp(name: Option<&str>) -> Event {
    let name = name.unwrap_or("this instruction").to_lowercase();
    let message = format!("{name} with DPP is not supported (its pseudocode selects the lanes itself)");
    Event::fault(FaultKind::Unimplemented, message)
}

/// The operation before the first one has run.
static END: Op = Op::end();

/// The handlers there are.
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
    };
    // SAFETY: each crate's macro invocation generates both the handlers and their numbers, for the modes and hosts that the crate is for;
    // the evaluator and `by_mode` run any operation.
    unsafe { Handlers::new(tables) }
};

/// While MODE skips vector instructions or offsets their VGPRs.
const BY_MODE: Numbered = Numbered::only(&[rt::by_mode]);

/// Every instruction by the evaluator. A module that is downloaded has this for rare float modes: the portable handlers are a quarter of
/// all code.
#[cfg(any(test, target_family = "wasm"))]
pub(crate) const EVALUATED: Numbered = Numbered::only(&[evaluated]);

/// # Safety
/// None: the contract is that of all handlers.
#[cfg(any(test, target_family = "wasm"))]
unsafe fn evaluated(_: &mut Cx<'_>, _: &Op) -> Flow {
    Flow::UNKNOWN
}

/// Runs one operation in the present float mode.
///
/// # Safety
/// `op` is of the program that `cx` was made for.
#[inline(always)]
pub(crate) unsafe fn dispatch<'a>(cx: &mut Cx<'a>, op: &'a Op) -> Flow {
    cx.op = op;
    // SAFETY: by the contract, and the invariants of lowered code (`exec::validate`): O1 to O7 and H1.
    unsafe { cx.handlers[op.code as usize](cx, op) }
}

/// Executes one instruction by compiled handlers; `None` if it has none. The PC moves on, or jumps.
pub fn step(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    step_by(Avx2::detect(), arch, inst, wave, context)
}

/// [`step`] by the handlers for hosts without vector instructions, whatever this host has.
pub fn step_portably(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    step_by(None, arch, inst, wave, context)
}

/// By the fast handlers, or by those for any host.
fn step_by(
    fast: Option<Avx2>,
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    let mut lowered = Lowered::default();
    // One instruction is within every limit.
    lowered.push(arch, inst, 0, 0).ok()?;
    if lowered.ops().iter().any(|op| matches!(op.code, Op::UNKNOWN | Op::BEYOND | Op::LANES)) {
        return None;
    }
    let pc = wave.pc;
    let mut cx = Cx::new(&HANDLERS, fast, arch, wave, context, &lowered, pc);
    let mut next = pc + inst.size as u64;
    let mut result = Ok(());
    for op in lowered.ops() {
        // SAFETY: the operation was lowered just now.
        match unsafe { dispatch(&mut cx, op) } {
            Flow::NEXT | Flow::MODE => {}
            Flow::JUMP => next = cx.jump,
            _ => {
                result = Err(cx.event.take().unwrap_or_else(|| unknown(op, None)));
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
/// What [`Compiled::enter`] gives is run without a check. `op` must be an operation of `program`, and be where its wave is: an
/// operation that the interpreter could have come to by the same instructions. The wave, its memories and the rest of `cx` must be as
/// handlers may leave them (`exec::validate`). The wave in `cx` may only be replaced by [`Waves`], and [`Entered::Switched`] says that it
/// was. [`Entered::Stopped`] must give an operation with a flow that its handler can give:
/// [`Flow::JUMP`] with [`Cx::jump`] set, [`Flow::MODE`] with the handlers of the wave's mode in `cx`.
pub unsafe trait Compiled {
    /// Whether there is code, or it is compiled where a wave comes to it.
    fn is_ready(&self) -> bool;

    /// For each operation of the program, whether code may begin there, as the wave is now: valid until MODE changes.
    fn heat(&self, cx: &Cx<'_>, program: &Program) -> Heat<'_>;

    /// Runs code that begins at `Cx::op`, if there is any. `start`: the number of the operation that the straight line
    /// began with; the turn is over at the first jump at which [`Cx::instructions`] comes to `end`. Code may go on with other waves
    /// ([`Waves`]): `end` is that of the last one then.
    fn enter<'a>(
        &self,
        cx: &mut Cx<'a>,
        program: &'a Program,
        start: u32,
        end: &mut u64,
        waves: &mut dyn Waves<'a>,
    ) -> Entered<'a>;
}

/// The waves of a workgroup, as the run loop sees them: when one waits at a barrier or has ended, another one runs on without a new
/// context.
///
/// # Safety
/// [`Waves::next`] is given the context that handlers run with. It may change the counts and barriers in it, and replace its wave by
/// [`Cx::switch`] alone, which keeps the rest of the context in step with the wave.
pub unsafe trait Waves<'a> {
    /// The wave of `cx` has stopped for an event; its PC is after the instruction. Another wave takes its place in `cx`, if one is ready.
    fn next(&mut self, cx: &mut Cx<'a>, event: Event) -> Next;

    /// The waves, for who gives turns at barriers without the context, if that can be done. Valid up to the next call of [`Waves::next`].
    fn ring(&mut self) -> Option<Ring>;

    /// Puts the wave into the context whose turn it is by [`Waves::ring`].
    fn catch_up(&mut self, cx: &mut Cx<'a>, turn: usize);
}

/// What follows a wave's event.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Another wave runs, from its PC on, until [`Cx::instructions`] comes to this.
    Wave(u64),
    /// No wave is ready, or the scheduler has to look at its budget first. What the event changes has been changed.
    None,
    /// It is for the scheduler: nothing has changed.
    Event(Event),
}

/// No other waves.
pub struct Alone;

// SAFETY: the context is left as it is.
unsafe impl<'a> Waves<'a> for Alone {
    #[inline(always)]
    fn next(&mut self, _: &mut Cx<'a>, event: Event) -> Next {
        Next::Event(event)
    }

    fn ring(&mut self) -> Option<Ring> {
        None
    }

    fn catch_up(&mut self, _: &mut Cx<'a>, _: usize) {}
}

/// After `Cx::op` has given an event that is not a fault, and was counted: another wave's turn.
#[inline(always)]
pub fn give_turn<'a>(
    cx: &mut Cx<'a>,
    program: &Program,
    event: Event,
    waves: &mut (impl Waves<'a> + ?Sized),
) -> Next {
    cx.wave.pc = program.op_after(cx.op).pc as u64;
    waves.next(cx, event)
}

/// How often a straight line begins at each operation of a program before [`Compiled::enter`] is asked for code there: 0 is never, 1 is
/// now. The loop counts down, so that what has no code costs next to nothing. Threads share the counts; one that is lost does no harm.
#[derive(Clone, Copy)]
pub struct Heat<'h>(pub &'h [AtomicU16]);

impl Heat<'_> {
    /// A straight line begins: whether to ask for code.
    #[inline(always)]
    fn asks(self, program: &Program, op: &Op) -> bool {
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

/// What compiled code did.
pub enum Entered<'a> {
    /// There is none: nothing has happened.
    No,
    /// It ended before this operation, which the straight line goes on with.
    Next {
        /// The next operation.
        op: &'a Op,
        /// As `start` of [`Compiled::enter`], for it.
        start: u32,
    },
    /// It ended before this operation, as [`Entered::Next`]; up to the next jump, operations are left to their handlers.
    Refused {
        /// The next operation.
        op: &'a Op,
        /// As `start` of [`Compiled::enter`], for it.
        start: u32,
    },
    /// This operation gave another flow than [`Flow::NEXT`], as its handler would have.
    Stopped {
        /// The last operation.
        op: &'a Op,
        /// As `start` of [`Compiled::enter`], for it.
        start: u32,
        /// What it gave.
        flow: Flow,
    },
    /// Code has given other waves their turns. The wave in the context goes on from its PC.
    Switched,
    /// Code has given other waves their turns, and there was none for the last one ([`Next::None`]).
    Over,
}

/// No compiled code.
struct Nothing;

// SAFETY: it gives no operation.
unsafe impl Compiled for Nothing {
    #[inline(always)]
    fn is_ready(&self) -> bool {
        false
    }

    #[inline(always)]
    fn heat(&self, _: &Cx<'_>, _: &Program) -> Heat<'_> {
        Heat(&[])
    }

    #[inline(always)]
    fn enter<'a>(
        &self,
        _: &mut Cx<'a>,
        _: &'a Program,
        _: u32,
        _: &mut u64,
        _: &mut dyn Waves<'a>,
    ) -> Entered<'a> {
        Entered::No
    }
}

/// Below this many instructions a wave's turn ends exactly where it should; larger ones end at the next jump.
const EXACT: u64 = 1024;

/// Runs a wave until it stops for an event or has executed about `budget` instructions (`Ok`): a long turn ends only at a jump. The PC
/// is after the last one executed, or at the faulting one. `executed` counts. Inlined, because turns between barriers are short.
#[inline(always)]
pub fn run(
    program: &Program,
    wave: &mut Wave,
    context: &mut Context<'_>,
    budget: u64,
    executed: &mut u64,
) -> Result<(), Event> {
    turn(&HANDLERS, program, wave, context, budget, executed, &Nothing, &mut Alone)
}

/// As [`run`], with compiled code where there is some, and goes on with other waves where one stops for an event.
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
        None => turn(&HANDLERS, program, wave, context, budget, executed, &Nothing, waves),
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
    };
    // SAFETY: the evaluator and `by_mode` run any operation on any host.
    let handlers = unsafe { Handlers::new(tables) };
    turn(Box::leak(Box::new(handlers)), program, wave, context, budget, executed, &Nothing, &mut Alone)
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
    let mut cx = Cx::new(tables, Avx2::detect(), program.arch, wave, context, program.lowered(), 0);
    let mut turn = Turn { program, end: before.saturating_add(budget), compiled, waves };
    let result = turn.run(&mut cx);
    *executed += cx.instructions - before;
    result
}

/// Runs the current instruction through the evaluator if its meaning was replaced at run time, or if an operation that has handlers is
/// not run by one ([`EVALUATED`]). The wave's PC is then after it, or at it after a fault.
#[cold]
pub(crate) fn evaluate(program: &Program, cx: &mut Cx<'_>) -> Option<Result<(), Event>> {
    let pc = cx.pc();
    let has_handlers = (cx.op.code as usize / Op::VARIANTS) < isa::OPERATIONS.len();
    let evaluated = cfg!(any(test, target_family = "wasm")) && has_handlers;
    let (inst, sem, sem_y) = if evaluated { program.meaning(pc) } else { program.replaced(pc) }?;
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
        // An observed run keeps the memories to itself.
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

/// Why a loop ended. `Cx::op` is the operation to go on with, or the one that gave the event.
enum Stop {
    /// The turn is over.
    Turn,
    /// Another float mode, other handlers.
    Mode,
    /// `Cx::jump` is outside the program.
    Outside,
    /// No handler: a meaning replaced at run time, or none.
    Unknown,
    Event,
    /// Compiled code has given another wave its turn, which goes on from its PC.
    Switched,
    /// Compiled code has had [`Next::None`].
    Over,
}

/// A wave's turn.
struct Turn<'a, 'c, C: ?Sized, W> {
    program: &'a Program,
    compiled: &'c C,
    waves: &'c mut W,
    /// What [`Cx::instructions`] comes to when it is over.
    end: u64,
}

impl<'a, C: Compiled + ?Sized, W: Waves<'a>> Turn<'a, '_, C, W> {
    #[inline(always)]
    fn run(&mut self, cx: &mut Cx<'a>) -> Result<(), Event> {
        let program = self.program;
        self.begin(cx)?;
        loop {
            let stop = if self.end.saturating_sub(cx.instructions) < EXACT {
                self.exactly(cx)
            } else {
                self.straight(cx)
            };
            match stop {
                Stop::Mode if cx.instructions < self.end => {}
                Stop::Mode | Stop::Turn => {
                    cx.wave.pc = cx.pc();
                    return Ok(());
                }
                Stop::Outside => {
                    cx.wave.pc = cx.jump;
                    return Err(unknown(&END, None));
                }
                Stop::Unknown => {
                    let first_of_several = cx.op.flags & Op::MORE != 0;
                    if let Some(result) = evaluate(program, cx) {
                        // All of them were run, of which the last would have counted.
                        cx.instructions += first_of_several as u64;
                        result?;
                        cx.jump = cx.wave.pc;
                        match program.op_at(cx.jump) {
                            Some(next) => cx.op = next,
                            None => return Err(unknown(&END, None)),
                        }
                        if cx.instructions >= self.end {
                            return Ok(());
                        }
                        continue;
                    }
                    cx.wave.pc = cx.pc();
                    return Err(unknown(cx.op, program.name_at(cx.pc())));
                }
                Stop::Event => {
                    let event = take_event(cx, cx.op, program);
                    if matches!(event, Event::Fault(_)) {
                        cx.wave.pc = cx.pc();
                        return Err(event);
                    }
                    match give_turn(cx, program, event, self.waves) {
                        Next::Wave(end) => self.end = end,
                        Next::None => return Ok(()),
                        Next::Event(event) => return Err(event),
                    }
                    self.begin(cx)?;
                }
                Stop::Switched => self.begin(cx)?,
                Stop::Over => return Ok(()),
            }
        }
    }

    /// The wave's first operation.
    #[inline(always)]
    fn begin(&self, cx: &mut Cx<'a>) -> Result<(), Event> {
        cx.op = self.program.op_at(cx.wave.pc).ok_or_else(|| unknown(&END, None))?;
        Ok(())
    }

    /// The loop: handlers of one float mode, one after the other. Instructions are counted where the straight line ends.
    fn straight(&mut self, cx: &mut Cx<'a>) -> Stop {
        let handlers = cx.handlers;
        let heat = self.compiled.heat(cx, self.program);
        let mut start = cx.op.number;
        loop {
            let entered = match heat.asks(self.program, cx.op) {
                true => self.compiled.enter(cx, self.program, start, &mut self.end, self.waves),
                false => Entered::No,
            };
            let flow = match entered {
                Entered::Next { op, start: from } => {
                    (cx.op, start) = (op, from);
                    continue;
                }
                Entered::Stopped { op, start: from, flow } => {
                    (cx.op, start) = (op, from);
                    flow
                }
                Entered::Switched => return Stop::Switched,
                Entered::Over => return Stop::Over,
                none => {
                    if let Entered::Refused { op, start: from } = none {
                        (cx.op, start) = (op, from);
                    }
                    let mut next = std::ptr::from_ref(cx.op);
                    loop {
                        // SAFETY: an operation of the program, by P1 and P2 of the invariants of lowered code (`exec::validate`).
                        let op = unsafe { &*next };
                        next = next.wrapping_add(1);
                        cx.op = op;
                        // SAFETY: by O1 to O7 and H1 of the same invariants.
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
                        None => return Stop::Outside,
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

    /// Instruction by instruction: for short turns, whose ends are what a schedule is about.
    fn exactly(&self, cx: &mut Cx<'a>) -> Stop {
        while cx.instructions < self.end {
            let op = cx.op;
            // SAFETY: the operation is the program's.
            let flow = unsafe { dispatch(cx, op) };
            cx.instructions += (op.complete() - op.number) as u64;
            match flow {
                Flow::NEXT | Flow::MODE => cx.op = self.program.op_after(op),
                Flow::JUMP => match self.program.op_at(cx.jump) {
                    Some(target) => cx.op = target,
                    None => return Stop::Outside,
                },
                Flow::UNKNOWN => return Stop::Unknown,
                _ => return Stop::Event,
            }
        }
        Stop::Turn
    }
}
