//! The interpreter: runs the handler of each operation, taken from the handler table of the current float
//! mode.

use crate::compiled::NoCode;
pub use crate::compiled::{Compiled, EnterResult, HotnessCounters, Next, SingleWave, Waves, switch_wave};
use crate::faults::{fault_without_handler, take_event};
pub use crate::handlers::host_is_fast;
use crate::handlers::{HANDLERS, dispatch};
use crate::reference::{self, Observe};
pub use crate::sched::barrier::BarrierScheduler;
pub use crate::step::{step, step_with};
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow, Handlers};
use wavesim_machine::isa;
use wavesim_machine::state::Wave;
use wavesim_machine::state::host::Avx2;

/// Stands in for the current operation where the PC is outside the program.
static END: Op = Op::end();

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
    use crate::handlers::{BY_MODE, EVALUATED};
    use wavesim_machine::exec::machine_ops::MACHINE_OPS;
    let tables = wavesim_machine::exec::rt::Tables {
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
    let mut turn = Turn { program, end: before.saturating_add(budget), compiled, waves, is_away: false };
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
    /// `Cx::jump` is outside the program's own code.
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
    /// Whether the wave executes code of another code object.
    is_away: bool,
}

impl<'a, C: Compiled + ?Sized, W: Waves<'a>> Turn<'a, '_, C, W> {
    #[inline(always)]
    fn run(&mut self, cx: &mut Cx<'a>) -> Result<(), Event> {
        let program = self.program;
        self.begin(cx)?;
        loop {
            let stop = if self.is_away || self.end.saturating_sub(cx.instructions) < EXACT_TURN {
                self.run_exact(cx)
            } else {
                self.run_regions(cx)
            };
            match stop {
                Stop::Turn => {
                    cx.wave.pc = cx.pc();
                    return Ok(());
                }
                Stop::OutOfRange => {
                    program.jump(cx.wave, cx.jump);
                    self.begin(cx)?;
                    if cx.instructions >= self.end {
                        return Ok(());
                    }
                }
                Stop::Unknown => {
                    let first_of_several = cx.op.flags & Op::MORE != 0;
                    if let Some(result) = evaluate(program, cx) {
                        // The evaluator ran all operations of the instruction, of which the last would have
                        // counted.
                        cx.instructions += first_of_several as u64;
                        result?;
                        let next = cx.wave.pc;
                        program.jump(cx.wave, next);
                        self.begin(cx)?;
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
                        Next::Wave(end) | Next::Workgroup(end) => self.end = end,
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
    fn begin(&mut self, cx: &mut Cx<'a>) -> Result<(), Event> {
        let own = self.program.op_at(cx.wave.pc);
        self.is_away = own.is_none();
        cx.op = match own {
            Some(op) => op,
            None => self.program.any_op_at(cx.wave.pc).ok_or_else(|| fault_without_handler(&END, None))?,
        };
        Ok(())
    }

    /// The main loop: runs handlers, those of the present float mode. Instructions are counted at the end of each
    /// straight-line region.
    fn run_regions(&mut self, cx: &mut Cx<'a>) -> Stop {
        let mut handlers = cx.handlers;
        let mut hotness = self.compiled.hotness(cx, self.program);
        let mut start = cx.op.number;
        loop {
            let entered = match hotness.should_enter(self.program, cx.op) {
                true => self.compiled.enter(cx, self.program, start, &mut self.end, self.waves),
                false => EnterResult::NoCode,
            };
            let flow = match entered {
                // Compiled code may have extended other VGPR numbers, for which there are other handlers.
                EnterResult::Next { op, start: from } => {
                    (cx.op, start, handlers) = (op, from, cx.handlers);
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
                        (cx.op, start, handlers) = (op, from, cx.handlers);
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
                    // Forks change MODE, too.
                    (start, handlers) = (cx.op.number, cx.handlers);
                    if cx.instructions >= self.end {
                        return Stop::Turn;
                    }
                }
                Flow::MODE => {
                    cx.op = self.program.op_after(cx.op);
                    // This ends no turn: compiled code does not execute the instructions that only extend VGPR
                    // numbers.
                    (start, handlers) = (cx.op.number, cx.handlers);
                    hotness = self.compiled.hotness(cx, self.program);
                }
                Flow::UNKNOWN => return Stop::Unknown,
                _ => return Stop::Event,
            }
        }
    }

    /// Runs and counts one instruction at a time, for short turns: schedules depend on exactly where they
    /// end. Also for code of other code objects, where every jump may leave it ([`Stop::OutOfRange`]).
    fn run_exact(&self, cx: &mut Cx<'a>) -> Stop {
        while cx.instructions < self.end {
            let op = cx.op;
            // SAFETY: `op` belongs to the program of `cx`.
            let flow = unsafe { dispatch(cx, op) };
            cx.instructions += (op.complete() - op.number) as u64;
            match flow {
                Flow::NEXT | Flow::MODE => cx.op = self.program.op_after(op),
                Flow::JUMP => match self.program.op_at(cx.jump) {
                    Some(target) if !self.is_away => cx.op = target,
                    _ => return Stop::OutOfRange,
                },
                Flow::UNKNOWN => return Stop::Unknown,
                _ => return Stop::Event,
            }
        }
        Stop::Turn
    }
}
