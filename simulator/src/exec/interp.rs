//! The interpreter: the handler of each operation in turn, out of the table for the float mode.

use super::lower::Lowered;
use super::machine_ops::Event;
use super::op::Op;
use super::program::Program;
use super::reference::{self, Context};
use super::rt::{Cx, Flow};
use crate::arch::Arch;
use crate::fault::FaultKind;
use crate::inst::Inst;
use crate::isa;
use crate::isa::handlers::{self, Handler};
use crate::machine::Wave;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Whether the host has what the fast handlers are compiled for.
#[cfg(target_arch = "x86_64")]
pub fn host_is_fast() -> bool {
    use std::arch::is_x86_feature_detected as has;
    // Asked for at each turn of a wave.
    static FAST: LazyLock<bool> = LazyLock::new(|| {
        has!("avx2")
            && has!("fma")
            && has!("bmi1")
            && has!("bmi2")
            && has!("f16c")
            && has!("lzcnt")
            && has!("popcnt")
    });
    *FAST
}

/// They are compiled for whatever every host of the kind has.
#[cfg(not(target_arch = "x86_64"))]
pub fn host_is_fast() -> bool {
    true
}

impl<'a> Cx<'a> {
    pub fn new(
        arch: Arch,
        wave: &'a mut Wave,
        context: &'a mut Context<'_>,
        lowered: &'a Lowered,
        op_pcs: &'a [u64],
    ) -> Cx<'a> {
        wave.install(lowered.id, &lowered.consts);
        let slow = if wave.size == 64 { Op::ALWAYS } else { Op::SLOW };
        let mut cx = Cx {
            wave,
            memory: context.memory,
            lds: context.lds,
            scratch: context.scratch,
            scratch_stride: context.scratch_stride,
            workgroup: context.workgroup,
            arch,
            consts: &lowered.consts,
            exts: &lowered.exts,
            fast: host_is_fast(),
            slow,
            mode_kind: 0,
            general: super::rt::General(isa_spec::arith::FloatEnv::KEEP),
            jump: 0,
            event: None,
            at: 0,
            op_pcs,
            instructions: context.instructions,
            watch: None,
        };
        cx.refresh_mode();
        cx
    }

    #[cold]
    pub(super) fn take_event(&mut self, op: &Op, program: &Program) -> Event {
        match self.event.take() {
            Some(event) => event,
            None => unknown(op, program.name_at(self.pc())),
        }
    }
}

/// Why an operation that no handler runs stops the wave.
pub(super) fn unknown(op: &Op, name: Option<&str>) -> Event {
    match op.code {
        Op::END => Event::fault(FaultKind::PcOutOfRange, "the program counter left the program"),
        Op::HOLE => Event::fault(FaultKind::IllegalInstruction, "the bytes here are no instruction"),
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

/// Runs one operation in the present float mode.
///
/// # Safety
/// `op` was lowered for the program and wave that `cx` holds; `fast` is [`host_is_fast`].
#[inline(always)]
pub unsafe fn dispatch(cx: &mut Cx<'_>, op: &Op, fast: bool) -> Flow {
    let table = match (fast, cx.mode_kind) {
        (true, Cx::KEEP) => &handlers::KEEP,
        (true, Cx::FLUSH) => &handlers::FLUSH,
        _ => &handlers::BASE,
    };
    // SAFETY: by the contract.
    unsafe { table[op.code as usize](cx, op) }
}

/// Executes one instruction by compiled handlers; `None` if it has none. The PC moves on, or jumps.
pub fn step(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    step_by(host_is_fast(), arch, inst, wave, context)
}

/// [`step`] by the handlers for hosts without vector instructions, whatever this host has.
pub fn step_portably(
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    step_by(false, arch, inst, wave, context)
}

/// `fast` is [`host_is_fast`], or false.
fn step_by(
    fast: bool,
    arch: Arch,
    inst: &Inst,
    wave: &mut Wave,
    context: &mut Context<'_>,
) -> Option<Result<(), Event>> {
    let mut lowered = Lowered::default();
    lowered.push(arch, inst);
    if lowered.ops.iter().any(|op| op.code == Op::UNKNOWN) {
        return None;
    }
    let pc = wave.pc;
    let pcs = [pc; 4];
    let mut cx = Cx::new(arch, wave, context, &lowered, &pcs);
    let mut next = pc + inst.size as u64;
    let mut result = Ok(());
    for op in &lowered.ops {
        // SAFETY: the host's features were asked for; the operation was lowered just now for this wave.
        match unsafe { dispatch(&mut cx, op, fast) } {
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

/// Below this many instructions a wave's turn ends exactly where it should; larger ones end at the next jump.
const EXACT: u64 = 1024;

/// Runs a wave until it stops for an event or has executed about `budget` instructions (`Ok`): a long turn ends only at a jump. The PC
/// is behind the last one executed, or at the faulting one. `executed` counts.
pub fn run(
    program: &Program,
    wave: &mut Wave,
    context: &mut Context<'_>,
    budget: u64,
    executed: &mut u64,
) -> Result<(), Event> {
    let pc = wave.pc;
    let mut cx = Cx::new(program.arch, wave, context, &program.lowered, &program.op_pcs);
    let Some(at) = program.op_at(pc) else { return Err(unknown(&Op::end(), None)) };
    cx.at = at;
    let mut turn = Turn { program, left: budget, executed };
    let fast = host_is_fast();
    loop {
        // SAFETY: the features were asked for; the program's operations were lowered with its tables.
        let stop = unsafe {
            match (fast, cx.mode_kind) {
                _ if turn.left < EXACT => turn.exactly(&mut cx, fast),
                (true, Cx::KEEP) => turn.straight(&mut cx, &handlers::KEEP),
                (true, Cx::FLUSH) => turn.straight(&mut cx, &handlers::FLUSH),
                _ => turn.straight(&mut cx, &handlers::BASE),
            }
        };
        match stop {
            Stop::Mode if turn.left > 0 => {}
            Stop::Mode | Stop::Turn => {
                cx.wave.pc = cx.pc();
                return Ok(());
            }
            Stop::Outside => {
                cx.wave.pc = cx.jump;
                return Err(unknown(&Op::end(), None));
            }
            Stop::Event => {
                if let Some(result) = evaluate(program, &mut cx) {
                    result?;
                    cx.jump = cx.wave.pc;
                    match program.op_at(cx.jump) {
                        Some(next) => cx.at = next,
                        None => return Err(unknown(&Op::end(), None)),
                    }
                    if turn.left == 0 {
                        return Ok(());
                    }
                    continue;
                }
                let event = cx.take_event(&program.lowered.ops[cx.at], program);
                let fault = matches!(event, Event::Fault { .. });
                let next = cx.at + !fault as usize;
                cx.wave.pc = program.op_pcs[next];
                return Err(event);
            }
        }
    }
}

/// Runs the instruction under way through the evaluator if its meaning was replaced at run time. The wave's PC is then behind it,
/// or at it after a fault.
#[cold]
pub(super) fn evaluate(program: &Program, cx: &mut Cx<'_>) -> Option<Result<(), Event>> {
    let pc = cx.pc();
    let (inst, sem, sem_y) = program.replaced(pc)?;
    cx.wave.pc = pc;
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
        cx.wave.pc = pc;
    }
    Some(result)
}

/// Why a loop ended. `Cx::at` is the operation to go on with, or the one that gave the event.
enum Stop {
    /// The turn is over.
    Turn,
    /// Another float mode, another loop.
    Mode,
    /// `Cx::jump` is outside the program.
    Outside,
    Event,
}

/// A wave's turn.
struct Turn<'a> {
    program: &'a Program,
    /// Instructions left.
    left: u64,
    executed: &'a mut u64,
}

impl Turn<'_> {
    /// Counts a straight line of operations; true if the turn is over.
    #[inline(always)]
    fn count(&mut self, cx: &mut Cx<'_>, from: usize, to: usize) -> bool {
        let counts = &self.program.op_counts;
        let done = (counts[to] - counts[from]) as u64;
        *self.executed += done;
        cx.instructions += done;
        self.left = self.left.saturating_sub(done);
        self.left == 0
    }

    /// The loop: handlers of one float mode, one after the other. Instructions are counted where the straight line ends.
    ///
    /// # Safety
    /// The handlers are for this host and MODE; the operations were lowered for the program and wave of `cx`.
    unsafe fn straight(&mut self, cx: &mut Cx<'_>, handlers: &[Handler; Op::CODES]) -> Stop {
        let program = self.program;
        let ops = program.lowered.ops.as_ptr();
        let mut at = cx.at;
        let mut start = at;
        // SAFETY: `at` is an operation of the program, here and below: jumps are looked up, and END, which never goes on, is the last.
        let mut op = unsafe { ops.add(at) };
        loop {
            cx.at = at;
            // SAFETY: as above; lowering gives no code beyond `CODES`.
            let (handler, running) = unsafe { (handlers.get_unchecked((*op).code as usize), &*op) };
            // SAFETY: as the caller says; the operation is the program's.
            match unsafe { handler(cx, running) } {
                Flow::NEXT => {
                    at += 1;
                    // SAFETY: as above.
                    op = unsafe { op.add(1) };
                }
                Flow::JUMP => {
                    let ended = self.count(cx, start, at + 1);
                    match program.op_at(cx.jump) {
                        Some(next) => at = next,
                        None => return Stop::Outside,
                    }
                    // SAFETY: as above.
                    op = unsafe { ops.add(at) };
                    start = at;
                    if ended {
                        cx.at = at;
                        return Stop::Turn;
                    }
                }
                Flow::MODE => {
                    self.count(cx, start, at + 1);
                    cx.at = at + 1;
                    return Stop::Mode;
                }
                _ => {
                    self.count(cx, start, at + 1);
                    return Stop::Event;
                }
            }
        }
    }

    /// Instruction by instruction: for short turns, whose ends are what a schedule is about.
    ///
    /// # Safety
    /// `fast` is [`host_is_fast`].
    unsafe fn exactly(&mut self, cx: &mut Cx<'_>, fast: bool) -> Stop {
        while self.left > 0 {
            let at = cx.at;
            let op = &self.program.lowered.ops[at];
            // SAFETY: the operation is the program's.
            let flow = unsafe { dispatch(cx, op, fast) };
            self.count(cx, at, at + 1);
            match flow {
                Flow::NEXT | Flow::MODE => cx.at = at + 1,
                Flow::JUMP => match self.program.op_at(cx.jump) {
                    Some(next) => cx.at = next,
                    None => return Stop::Outside,
                },
                _ => return Stop::Event,
            }
        }
        Stop::Turn
    }
}
