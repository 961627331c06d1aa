//! Execution of an instruction of a program, outside the interpreter's loop.

use crate::faults::take_event;
use crate::handlers::dispatch;
use crate::interp::evaluate;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::{Cx, Flow};

/// Runs the rest of the instruction of a program whose operation is `cx.op`, given the flow of that operation if it
/// has already run. Returns the PC of the next instruction, and the event that stopped the wave. The wave's PC
/// must be that of the instruction, and is left to the caller.
#[inline(always)]
pub(crate) fn execute<'a>(
    cx: &mut Cx<'a>,
    program: &'a Program,
    index: usize,
    mut ran: Option<Flow>,
) -> (u64, Option<Event>) {
    let mut next = program.pcs[index] + program.insts[index].size as u64;
    loop {
        let op = cx.op;
        // SAFETY: the operation belongs to the program of `cx`.
        let flow = ran.take().unwrap_or_else(|| unsafe { dispatch(cx, op) });
        match flow {
            Flow::NEXT | Flow::MODE => {}
            Flow::JUMP => next = cx.jump,
            flow => {
                let replaced = if flow == Flow::UNKNOWN { evaluate(program, cx) } else { None };
                let event = match replaced {
                    Some(result) => {
                        next = cx.wave.pc;
                        result.err()
                    }
                    None => Some(take_event(cx, op, program)),
                };
                return (next, event);
            }
        }
        if op.flags & Op::MORE == 0 {
            return (next, None);
        }
        cx.op = program.op_after(op);
    }
}
