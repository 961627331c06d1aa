//! The interpreter: a match on the operation's number, in a loop.

use super::lower::Lowered;
use super::machine_ops::Event;
use super::op::Op;
use super::program::Program;
use super::reference::{self, Context};
use super::rt::{Cx, Flow, Stage};
use crate::arch::Arch;
use crate::fault::FaultKind;
use crate::inst::Inst;
use crate::isa::{self, handlers};
use crate::machine::{Row, Wave};

/// Whether the host has what the fast handlers are compiled for.
pub fn host_is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("avx2")
            && has!("fma")
            && has!("bmi1")
            && has!("bmi2")
            && has!("f16c")
            && has!("lzcnt")
            && has!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl<'a> Cx<'a> {
    pub fn new(
        arch: Arch,
        wave: &'a mut Wave,
        context: &'a mut Context<'_>,
        consts: &'a [Row],
        exts: &'a [super::op::Ext],
    ) -> Cx<'a> {
        let mut cx = Cx {
            wave,
            memory: context.memory,
            lds: context.lds,
            scratch: context.scratch,
            scratch_stride: context.scratch_stride,
            workgroup: context.workgroup,
            arch,
            consts,
            exts,
            stage: Box::new(Stage([[Row::ZERO; 4]; 4])),
            mode_kind: 0,
            general: super::rt::General(isa_spec::arith::FloatEnv::KEEP),
            jump: 0,
            event: None,
            op_pc: 0,
            instructions: context.instructions,
            watch: None,
        };
        cx.refresh_mode();
        cx
    }

    /// `name` is the instruction's.
    #[cold]
    pub(super) fn take_event(&mut self, op: &Op, name: Option<&str>) -> Event {
        match self.event.take() {
            Some(event) => event,
            None => unknown(op, name),
        }
    }
}

fn unknown(op: &Op, name: Option<&str>) -> Event {
    if op.flags & Op::HOLE != 0 {
        return Event::fault(FaultKind::IllegalInstruction, "the bytes here are no instruction");
    }
    let name = name.unwrap_or("this instruction");
    let reason = isa::unsupported_reason(name).map_or(String::new(), |reason| format!(" ({reason})"));
    Event::fault(FaultKind::Unimplemented, format!("{} is not supported{reason}", name.to_lowercase()))
}

/// Executes one instruction by compiled handlers; `None` if it has none. The PC moves on, or jumps.
pub fn step(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    let mut lowered = Lowered::default();
    lowered.push(arch, inst);
    if lowered.ops.iter().any(|op| op.code == u16::MAX) {
        return None;
    }
    let fast = host_is_fast();
    let pc = wave.pc;
    let mut cx = Cx::new(arch, wave, context, &lowered.consts, &lowered.exts);
    cx.op_pc = pc;
    let mut next = pc + inst.size as u64;
    let mut result = Ok(());
    for op in &lowered.ops {
        // SAFETY: the host's features were asked for; the operation was lowered just now for this wave.
        let flow = unsafe {
            if fast { handlers::dispatch_fast(&mut cx, op) } else { handlers::dispatch_base(&mut cx, op) }
        };
        match flow {
            Flow::NEXT => {}
            Flow::JUMP => next = cx.jump,
            _ => {
                result = Err(cx.take_event(op, None));
                break;
            }
        }
    }
    cx.wave.pc = next;
    Some(result)
}

/// Runs a wave until it stops for an event or has executed `budget` instructions (`Ok`). The PC is behind the last one executed,
/// or at the faulting one. `executed` counts.
pub fn run(
    program: &Program,
    wave: &mut Wave,
    context: &mut Context<'_>,
    budget: u64,
    executed: &mut u64,
) -> Result<(), Event> {
    let mut cx = Cx::new(program.arch, wave, context, &program.lowered.consts, &program.lowered.exts);
    if host_is_fast() {
        // SAFETY: the features were asked for; the program's operations were lowered with its tables.
        run_loop(program, &mut cx, budget, executed, |cx, op| unsafe { handlers::dispatch_fast(cx, op) })
    } else {
        // SAFETY: the program's operations were lowered with its tables.
        run_loop(program, &mut cx, budget, executed, |cx, op| unsafe { handlers::dispatch_base(cx, op) })
    }
}

/// Runs the instruction at `op_pc` through the evaluator if its meaning was replaced at run time. The wave's PC is then behind it, or
/// at it after a fault.
#[cold]
pub(super) fn evaluate(program: &Program, cx: &mut Cx<'_>) -> Option<Result<(), Event>> {
    let (inst, sem, sem_y) = program.replaced(cx.op_pc)?;
    cx.wave.pc = cx.op_pc;
    let (workgroup, instructions) = (&mut *cx.workgroup, cx.instructions);
    // An observed run keeps the memories to itself.
    let mut context = match &mut cx.watch {
        Some(w) => Context {
            memory: w.memory,
            lds: &mut *w.lds,
            scratch: &mut *w.scratch,
            scratch_stride: w.scratch_stride,
            workgroup,
            instructions,
        },
        None => Context {
            memory: cx.memory,
            lds: &mut *cx.lds,
            scratch: &mut *cx.scratch,
            scratch_stride: cx.scratch_stride,
            workgroup,
            instructions,
        },
    };
    let result = reference::step(cx.arch, inst, sem, sem_y, cx.wave, &mut context);
    cx.refresh_mode();
    if matches!(result, Err(Event::Fault { .. })) {
        cx.wave.pc = cx.op_pc;
    }
    Some(result)
}

#[inline(always)]
fn run_loop(
    program: &Program,
    cx: &mut Cx<'_>,
    budget: u64,
    executed: &mut u64,
    dispatch: impl Fn(&mut Cx<'_>, &Op) -> Flow,
) -> Result<(), Event> {
    let outside = || Event::fault(FaultKind::PcOutOfRange, "the program counter left the program");
    let Some(mut at) = program.op_at(cx.wave.pc) else { return Err(outside()) };
    let ops = &program.lowered.ops[..];
    let mut left = budget;
    loop {
        if left == 0 {
            cx.wave.pc = program.op_pcs.get(at).copied().unwrap_or(program.end());
            return Ok(());
        }
        let Some(op) = ops.get(at) else {
            cx.wave.pc = program.end();
            return Err(outside());
        };
        cx.op_pc = program.op_pcs[at];
        let more = (op.flags & Op::MORE != 0) as u64;
        left -= 1 - more;
        *executed += 1 - more;
        cx.instructions += 1;
        match dispatch(cx, op) {
            Flow::NEXT => at += 1,
            Flow::JUMP => match program.op_at(cx.jump) {
                Some(next) => at = next,
                None => {
                    cx.wave.pc = cx.jump;
                    return Err(outside());
                }
            },
            flow => {
                if flow == Flow::UNKNOWN
                    && let Some(result) = evaluate(program, cx)
                {
                    result?;
                    match program.op_at(cx.wave.pc) {
                        Some(next) => at = next,
                        None => return Err(outside()),
                    }
                    continue;
                }
                let name = program.name_at(cx.op_pc);
                let event = cx.take_event(op, name);
                let fault = matches!(event, Event::Fault { .. });
                cx.wave.pc = if fault {
                    cx.op_pc
                } else {
                    program.op_pcs.get(at + 1).copied().unwrap_or(program.end())
                };
                return Err(event);
            }
        }
    }
}
