//! The observed run: the same operations by the same handlers, one instruction at a time, with an [`Observer`] called before and
//! after each. A loop of its own, so that the plain one ([`crate::interp::run`]) knows nothing of it.

use crate::interp;
use isa_spec::pcode::builtins::Control;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use wavesim_machine::exec::context::Context;
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::op::Op;
use wavesim_machine::exec::program::Program;
use wavesim_machine::exec::rt::watch::{Access, LdsLoads, Logs, Replaced, Watch};
use wavesim_machine::exec::rt::{Cx, Flow};
use wavesim_machine::memory::Memory;
use wavesim_machine::state::host::Avx2;
use wavesim_machine::state::{Wave, Workgroup};

/// An instruction about to run, or just run, on a wave.
pub struct Step<'s> {
    /// What all waves of the dispatch run.
    pub program: &'s Program,
    /// Of the instruction, in `Program::insts`.
    pub index: usize,
    /// Byte offset of the instruction in the program; [`Program::address`] is what listings show.
    pub pc: u64,
    /// Its registers: before the instruction, or after it. Index and workgroup are `wave.id` and `wave.workgroup`.
    pub wave: &'s Wave,
    /// Barriers of its workgroup.
    pub group: &'s Workgroup,
    /// Wave-instructions of the dispatch so far.
    pub time: u64,
}

/// What an instruction did beside registers.
pub struct Done<'s> {
    /// Memory accesses in the order in which the handler made them; of lanes that lie in a row, one for all of them.
    pub accesses: &'s [Access],
    /// LDS of the workgroup, after the instruction.
    pub lds: &'s [u8],
    /// Control builtins called, each with its first argument.
    pub calls: &'s [(Control, u32)],
    /// What its stores replaced.
    pub replaced: &'s Replaced,
    /// Why the wave stops here, if it does.
    pub event: Option<&'s Event>,
    /// The PC goes on elsewhere than after the instruction.
    pub jumped: bool,
}

/// Instructions that run without [`Observer::before`] and [`Observer::after`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Skip {
    /// How many. They are to lie consecutively, and not to access memory; only the last may jump.
    pub count: usize,
    /// By the bit of its number, which of them access memory nevertheless. Behind each, [`Observer::passes`] is called.
    pub accesses: u64,
    /// So many of the first ones change nothing, and need not run at all: waits.
    pub idle: usize,
}

/// Is called for everything that happens. Every method has an empty default.
pub trait Observer {
    /// A workgroup starts; its waves are in their initial state.
    fn group_started(&mut self, _workgroup: [u32; 3], _waves: usize) {}

    /// Which instructions from this one on the observer skips. Asked in front of every instruction that is not among such ones.
    fn unobserved(&mut self, _step: &Step<'_>) -> Skip {
        Skip::default()
    }

    /// Behind an instruction of [`Skip::accesses`]: whether that is all. Otherwise [`Observer::accessed`] is called too.
    fn passes(&mut self, _wave: u32, _index: usize, _pc: u64, _accesses: &[Access]) -> bool {
        false
    }

    /// Whether loads of LDS among [`Skip::accesses`] need not be logged: they may then come by [`Observer::kept`] as they are. Asked again after
    /// [`Observer::accessed`].
    fn keeps_loads(&self) -> bool {
        false
    }

    /// Behind an instruction of [`Skip::accesses`] whose loads of LDS were kept: those are all that it did.
    fn kept(&mut self, _wave: u32, _index: usize, _pc: u64, loads: &mut LdsLoads) {
        loads.clear();
    }

    /// Behind an instruction of [`Skip::accesses`], without the PC of the wave. False: those after it are not to be skipped.
    fn accessed(&mut self, step: &Step<'_>, done: &Done<'_>) -> bool {
        self.after(step, done);
        true
    }

    /// Before an instruction; `Break` ends the wave's turn in front of it.
    fn before(&mut self, _step: &Step<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The last of the instructions that nobody wants to hear of has jumped.
    fn jumped(&mut self, _wave: u32, _from: u64, _to: u64) {}

    /// Behind an instruction that has run or faulted; not called for one that `before` has refused.
    fn after(&mut self, _step: &Step<'_>, _done: &Done<'_>) {}

    /// The workgroup has not ended, and others run in its place.
    fn group_parked(&mut self, _workgroup: [u32; 3]) {}

    /// A workgroup that was parked goes on.
    fn group_resumed(&mut self, _workgroup: [u32; 3]) {}

    /// The workgroup's waves have all ended.
    fn group_ended(&mut self, _workgroup: [u32; 3]) {}

    /// Whether accesses outside of all memory are to be seen and passed over instead of ending the run.
    fn keeps_going(&self) -> bool {
        false
    }
}

/// Looks at nothing.
pub struct Unobserved;
impl Observer for Unobserved {}

/// Several observers at once.
#[derive(Default)]
pub struct Many<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for Many<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.0.iter_mut().for_each(|o| o.group_started(workgroup, waves));
    }

    fn unobserved(&mut self, step: &Step<'_>) -> Skip {
        let all = self.0.iter_mut().map(|o| o.unobserved(step));
        let both = |a: Skip, b: Skip| Skip {
            count: a.count.min(b.count),
            accesses: a.accesses | b.accesses,
            idle: a.idle.min(b.idle),
        };
        let skip = all.reduce(both).unwrap_or_default();
        // What one passes over another may want to see.
        let first = skip.accesses.trailing_zeros() as usize;
        Skip { count: skip.count.min(first), accesses: 0, ..skip }
    }

    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for observer in &mut self.0 {
            if observer.before(step).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    fn jumped(&mut self, wave: u32, from: u64, to: u64) {
        self.0.iter_mut().for_each(|o| o.jumped(wave, from, to));
    }

    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.0.iter_mut().for_each(|o| o.after(step, done));
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        self.0.iter_mut().for_each(|o| o.group_parked(workgroup));
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        self.0.iter_mut().for_each(|o| o.group_resumed(workgroup));
    }

    fn group_ended(&mut self, workgroup: [u32; 3]) {
        self.0.iter_mut().for_each(|o| o.group_ended(workgroup));
    }

    fn keeps_going(&self) -> bool {
        self.0.iter().any(|o| o.keeps_going())
    }
}

/// What waves see in the place of global memory; see [`super::rt::watch`].
static NO_MEMORY: LazyLock<Memory> = LazyLock::new(Memory::empty);

/// Runs operations from `Cx::op` up to instruction `end`, all of which only go on. `Cx::op` is then the next one, or the one that did not.
#[inline(always)]
fn straight<'a>(cx: &mut Cx<'a>, program: &'a Program, end: usize) -> Result<(), Flow> {
    while (cx.op.number as usize) < end {
        // SAFETY: the operation is the program's.
        match unsafe { interp::dispatch(cx, cx.op) } {
            Flow::NEXT | Flow::MODE => cx.op = program.op_after(cx.op),
            flow => return Err(flow),
        }
    }
    Ok(())
}

/// As [`straight`], with the accesses of `skip` among the instructions from `index` on, of which `end` is not one.
#[inline(always)]
fn accessing<'a, O: Observer + ?Sized>(
    cx: &mut Cx<'a>,
    program: &'a Program,
    (index, end): (usize, usize),
    skip: Skip,
    time: u64,
    observer: &mut O,
) -> Result<(), Flow> {
    let mut accesses = skip.accesses;
    while accesses != 0 {
        let at = index + accesses.trailing_zeros() as usize;
        accesses &= accesses - 1;
        if at >= end {
            break;
        }
        straight(cx, program, at)?;
        let op = cx.op;
        // SAFETY: the operation is the program's.
        match unsafe { interp::dispatch(cx, op) } {
            Flow::NEXT if op.flags & Op::MORE == 0 => cx.op = program.op_after(op),
            flow => return Err(flow),
        }
        let wave = cx.wave.id;
        if let Some(watch) = &mut cx.watch
            && !watch.logs.loads.is_empty()
        {
            if watch.logs.accesses.is_empty() {
                observer.kept(wave, at, op.pc as u64, &mut watch.logs.loads);
                continue;
            }
            watch.logs.log_loads();
        }
        let log = cx.watch.as_ref().map_or(&[][..], |watch| &watch.logs.accesses[..]);
        let passes = observer.passes(wave, at, op.pc as u64, log);
        if !passes && !accessed(cx, program, at, op.pc as u64, time + (at - index) as u64 + 1, observer) {
            return Ok(());
        }
        if let Some(watch) = &mut cx.watch {
            watch.logs.clear();
        }
    }
    straight(cx, program, end)
}

/// Shows the observer an access; whether it goes on.
#[inline(never)]
fn accessed<O: Observer + ?Sized>(
    cx: &mut Cx<'_>,
    program: &Program,
    index: usize,
    pc: u64,
    time: u64,
    observer: &mut O,
) -> bool {
    let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time };
    let goes_on = observer.accessed(&step, &done(&cx.watch, None, false));
    if let Some(watch) = &mut cx.watch {
        watch.logs.clear();
        watch.keeps_loads = observer.keeps_loads();
    }
    goes_on
}

thread_local! {
    /// Logs without an owner, kept from turn to turn: turns between barriers are short.
    static LOGS: Cell<Option<Box<Logs>>> = const { Cell::new(None) };
}

/// As [`crate::interp::run`], observed.
pub fn run<O: Observer + ?Sized>(
    program: &Program,
    wave: &mut Wave,
    context: &mut Context<'_>,
    budget: u64,
    executed: &mut u64,
    observer: &mut O,
) -> Result<(), Event> {
    let mut nothing = ([0u8; 0], [0u8; 0]);
    let mut logs = LOGS.take().unwrap_or_default();
    let mut watch = Watch {
        memory: context.memory,
        lds: &mut *context.lds,
        scratch: &mut *context.scratch,
        scratch_stride: context.scratch_stride,
        logs: &mut logs,
        quiet: false,
        keep_going: observer.keeps_going(),
        keeps_loads: false,
    };
    let mut blind = Context {
        memory: &NO_MEMORY,
        lds: &mut nothing.0,
        scratch: &mut nothing.1,
        scratch_stride: 0,
        workgroup: &mut *context.workgroup,
        instructions: context.instructions,
        cancel: context.cancel,
    };
    let mut cx =
        Cx::new(&interp::HANDLERS, Avx2::detect(), program.arch, wave, &mut blind, program.lowered(), 0);
    cx.watch = Some(&mut watch);
    let result = turn(program, &mut cx, budget, executed, observer);
    logs.clear();
    LOGS.set(Some(logs));
    result
}

/// What an instruction did that is not known of: nothing.
static NOTHING: LazyLock<Replaced> = LazyLock::new(Replaced::default);

/// What the instruction that has just run did.
#[inline(always)]
fn done<'s>(watch: &'s Option<&mut Watch<'_>>, event: Option<&'s Event>, jumped: bool) -> Done<'s> {
    match watch {
        Some(watch) => Done {
            accesses: &watch.logs.accesses,
            lds: watch.lds,
            calls: &watch.logs.calls,
            replaced: &watch.logs.replaced,
            event,
            jumped,
        },
        None => Done { accesses: &[], lds: &[], calls: &[], replaced: &NOTHING, event, jumped },
    }
}

/// A turn of an observed wave.
#[inline(always)]
fn turn<'a, O: Observer + ?Sized>(
    program: &'a Program,
    cx: &mut Cx<'a>,
    budget: u64,
    executed: &mut u64,
    observer: &mut O,
) -> Result<(), Event> {
    let end = executed.saturating_add(budget);
    while *executed < end {
        let mut pc = cx.wave.pc;
        let Some(first) = program.op_at(pc) else { return Err(interp::unknown(&Op::end(), None)) };
        cx.op = first;
        let mut index = first.number as usize;
        // A hole counts as the instruction after it.
        if program.pcs.get(index) != Some(&pc) {
            return Err(interp::unknown(first, None));
        }
        let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time: *executed };
        let skip = observer.unobserved(&step);
        let count = skip.count.min((end - *executed) as usize);
        let mut stopped = None;
        if count > 0 {
            if (1..count).contains(&skip.idle)
                && let Some(next) = program.pcs.get(index + skip.idle).and_then(|pc| program.op_at(*pc))
            {
                cx.op = next;
            }
            if let Some(watch) = &mut cx.watch {
                watch.quiet = true;
                watch.keeps_loads = skip.accesses != 0 && observer.keeps_loads();
            }
            stopped = match skip.accesses {
                0 => straight(cx, program, index + count).err(),
                _ => accessing(cx, program, (index, index + count), skip, *executed, observer).err(),
            };
            let ran = cx.op.number as usize - index;
            *executed += ran as u64;
            cx.instructions += ran as u64;
            if let Some(watch) = &mut cx.watch {
                watch.quiet = false;
                watch.logs.calls.clear();
                watch.keeps_loads = false;
                watch.logs.log_loads();
            }
            cx.wave.pc = cx.pc();
            match stopped {
                None => continue,
                Some(Flow::JUMP) if ran + 1 == count => {
                    *executed += 1;
                    cx.instructions += 1;
                    let from = std::mem::replace(&mut cx.wave.pc, cx.jump);
                    observer.jumped(cx.wave.id, from, cx.jump);
                    continue;
                }
                Some(_) => {}
            }
            // In the middle of what should have gone on: from here as if it had been observed.
            (pc, index) = (cx.wave.pc, index + ran);
        } else if observer.before(&step).is_break() {
            return Ok(());
        }
        *executed += 1;
        cx.instructions += 1;
        let mut next = pc + program.insts[index].size as u64;
        let mut event = None;
        loop {
            let op = cx.op;
            // SAFETY: the operation is the program's.
            let flow = stopped.take().unwrap_or_else(|| unsafe { interp::dispatch(cx, op) });
            match flow {
                Flow::NEXT | Flow::MODE => {}
                Flow::JUMP => next = cx.jump,
                flow => {
                    let unknown = flow == Flow::UNKNOWN;
                    let replaced = if unknown { interp::evaluate(program, cx) } else { None };
                    event = match replaced {
                        Some(result) => {
                            next = cx.wave.pc;
                            result.err()
                        }
                        None => Some(interp::take_event(cx, op, program)),
                    };
                    break;
                }
            }
            if op.flags & Op::MORE == 0 {
                break;
            }
            cx.op = program.op_after(op);
        }
        let jumped = next != pc + program.insts[index].size as u64;
        // A faulting instruction is where the wave stays.
        cx.wave.pc = if matches!(event, Some(Event::Fault(_))) { pc } else { next };
        let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time: *executed };
        observer.after(&step, &done(&cx.watch, event.as_ref(), jumped));
        if let Some(watch) = &mut cx.watch {
            watch.logs.clear();
        }
        if let Some(event) = event {
            return Err(event);
        }
    }
    Ok(())
}
