//! The observed run: the same operations and handlers, one instruction at a time, with an [`Observer`] called
//! before and after each. It has a loop of its own, so that the plain loop ([`crate::interp::run`]) pays
//! nothing for observers.

use crate::execute::execute;
use crate::faults::fault_without_handler;
use crate::handlers::{self, HANDLERS};
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
    /// The program that all waves of the dispatch run.
    pub program: &'s Program,
    /// Index of the instruction in `Program::insts`.
    pub index: usize,
    /// Byte offset of the instruction in the program; listings show [`Program::address`] of it.
    pub pc: u64,
    /// The wave, before or after the instruction. `wave.id` is its index, `wave.workgroup` its workgroup.
    pub wave: &'s Wave,
    /// Barriers of the workgroup.
    pub group: &'s Workgroup,
    /// Wave-instructions that the dispatch has executed so far.
    pub time: u64,
}

/// The effects of an instruction other than on registers.
pub struct Done<'s> {
    /// Memory accesses in the order in which the handler made them; contiguous lanes share one entry.
    pub accesses: &'s [Access],
    /// LDS of the workgroup, after the instruction.
    pub lds: &'s [u8],
    /// Control builtins that were called, each with its first argument.
    pub calls: &'s [(Control, u32)],
    /// The memory contents that the stores replaced.
    pub replaced: &'s Replaced,
    /// The event that stops the wave here, if any.
    pub event: Option<&'s Event>,
    /// The instruction jumped.
    pub jumped: bool,
}

impl<'s> Done<'s> {
    /// Returns the logged effects of an instruction.
    #[inline(always)]
    pub(crate) fn of(logs: &'s Logs, lds: &'s [u8], event: Option<&'s Event>, jumped: bool) -> Done<'s> {
        Done { accesses: &logs.accesses, lds, calls: &logs.calls, replaced: &logs.replaced, event, jumped }
    }
}

/// A run of instructions that the observer skips: [`Observer::before`] and [`Observer::after`] are not called
/// for them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skip {
    /// Number of instructions. They must be consecutive and access no memory; only the last may jump.
    pub count: usize,
    /// Bit mask of the instructions that access memory nevertheless. [`Observer::accept_fast`] is called
    /// after each.
    pub accesses: u64,
    /// Number of leading instructions that have no effect, such as waits, and need not run at all.
    pub idle: usize,
}

/// Receives the events of a run. Every method has an empty default.
pub trait Observer {
    /// A workgroup starts; its waves are in their initial state.
    fn group_started(&mut self, _workgroup: [u32; 3], _waves: usize) {}

    /// Returns how many instructions of a workgroup's turn are observed before the others run at full speed, on
    /// compiled code where there is some. Asked before each turn, and after [`Observer::unobserved_instructions`].
    fn observed_instructions(&mut self, _workgroup: [u32; 3]) -> u64 {
        u64::MAX
    }

    /// Returns how many instructions of a workgroup run at full speed before [`Observer::observed_instructions`] is asked
    /// again. Asked after the observed ones.
    fn unobserved_instructions(&mut self, _workgroup: [u32; 3]) -> u64 {
        u64::MAX
    }

    /// Returns the number, x fastest, of the first workgroup that runs, from a given one on: those before it do not run
    /// at all. Asked before each start of a workgroup, but not of clusters.
    fn next_workgroup(&mut self, number: u64) -> u64 {
        number
    }

    /// Receives the number of instructions that a workgroup has executed unobserved, and whether it has ended.
    fn ran_unobserved(&mut self, _workgroup: [u32; 3], _executed: u64, _ended: bool) {}

    /// Returns the instructions to skip, beginning with this one. Called before every instruction that is not
    /// part of a skipped run.
    fn skip(&mut self, _step: &Step<'_>) -> Skip {
        Skip::default()
    }

    /// Checks the accesses of an instruction of [`Skip::accesses`]. If this returns false,
    /// [`Observer::accessed`] is called too.
    fn accept_fast(&mut self, _wave: u32, _index: usize, _pc: u64, _accesses: &[Access]) -> bool {
        false
    }

    /// Returns whether LDS loads among [`Skip::accesses`] need not be logged and may instead be passed to
    /// [`Observer::accept_loads`] unconverted. Called again after [`Observer::accessed`].
    fn keeps_loads(&self) -> bool {
        false
    }

    /// Receives the kept LDS loads of an instruction of [`Skip::accesses`] that accessed nothing else.
    fn accept_loads(&mut self, _wave: u32, _index: usize, _pc: u64, loads: &mut LdsLoads) {
        loads.clear();
    }

    /// Receives an instruction of [`Skip::accesses`]; the wave's PC is not up to date. Returns false to stop
    /// skipping after it.
    fn accessed(&mut self, step: &Step<'_>, done: &Done<'_>) -> bool {
        self.after(step, done);
        true
    }

    /// Called before an instruction; `Break` ends the wave's turn before it.
    fn before(&mut self, _step: &Step<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called after the last instruction of a skipped run has jumped.
    fn jumped(&mut self, _wave: u32, _from: u64, _to: u64) {}

    /// Called after an instruction that has run or faulted, but not for one that `before` rejected.
    fn after(&mut self, _step: &Step<'_>, _done: &Done<'_>) {}

    /// Called after a delayed memory operation, issued by the instruction of `step`, has accessed memory. `step.wave`
    /// has the registers of the time of issue.
    fn performed(&mut self, _step: &Step<'_>, _done: &Done<'_>) {}

    /// The workgroup is suspended while others run.
    fn group_parked(&mut self, _workgroup: [u32; 3]) {}

    /// A suspended workgroup resumes.
    fn group_resumed(&mut self, _workgroup: [u32; 3]) {}

    /// All waves of the workgroup have ended.
    fn group_ended(&mut self, _workgroup: [u32; 3]) {}

    /// Returns whether accesses outside all memory are reported and ignored instead of ending the run.
    fn keeps_going(&self) -> bool {
        false
    }
}

/// An observer that observes nothing.
pub struct NoObserver;
impl Observer for NoObserver {}

/// Several observers combined.
#[derive(Default)]
pub struct Observers<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for Observers<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.0.iter_mut().for_each(|o| o.group_started(workgroup, waves));
    }

    fn observed_instructions(&mut self, workgroup: [u32; 3]) -> u64 {
        let all = self.0.iter_mut().map(|o| o.observed_instructions(workgroup));
        all.max().unwrap_or(u64::MAX)
    }

    fn unobserved_instructions(&mut self, workgroup: [u32; 3]) -> u64 {
        let all = self.0.iter_mut().map(|o| o.unobserved_instructions(workgroup));
        all.min().unwrap_or(u64::MAX)
    }

    fn next_workgroup(&mut self, number: u64) -> u64 {
        self.0.iter_mut().map(|o| o.next_workgroup(number)).min().unwrap_or(number)
    }

    fn ran_unobserved(&mut self, workgroup: [u32; 3], executed: u64, ended: bool) {
        self.0.iter_mut().for_each(|o| o.ran_unobserved(workgroup, executed, ended));
    }

    fn skip(&mut self, step: &Step<'_>) -> Skip {
        let all = self.0.iter_mut().map(|o| o.skip(step));
        let both = |a: Skip, b: Skip| Skip {
            count: a.count.min(b.count),
            accesses: a.accesses | b.accesses,
            idle: a.idle.min(b.idle),
        };
        let skip = all.reduce(both).unwrap_or_default();
        // Another observer may need to see what one would pass.
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

    fn performed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.0.iter_mut().for_each(|o| o.performed(step, done));
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

/// The empty global memory that handlers get, because accesses go through [`Watch`].
pub(crate) static NO_MEMORY: LazyLock<Memory> = LazyLock::new(Memory::empty);

/// Runs operations from `Cx::op` up to instruction `end`, stopping early at one that does not continue with
/// the next. `Cx::op` is then the next operation, or the one that stopped.
#[inline(always)]
fn run_straight<'a>(cx: &mut Cx<'a>, program: &'a Program, end: usize) -> Result<(), Flow> {
    while (cx.op.number as usize) < end {
        // SAFETY: the operation belongs to the program of `cx`.
        match unsafe { handlers::dispatch(cx, cx.op) } {
            Flow::NEXT | Flow::MODE => cx.op = program.op_after(cx.op),
            flow => return Err(flow),
        }
    }
    Ok(())
}

/// As [`run_straight`], for the instructions from `index` to `end` (exclusive), and passes the accesses of
/// `skip` to the observer.
#[inline(always)]
fn run_with_accesses<'a, O: Observer + ?Sized>(
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
        run_straight(cx, program, at)?;
        let op = cx.op;
        // SAFETY: the operation belongs to the program of `cx`.
        match unsafe { handlers::dispatch(cx, op) } {
            Flow::NEXT if op.flags & Op::MORE == 0 => cx.op = program.op_after(op),
            flow => return Err(flow),
        }
        let wave = cx.wave.id;
        if let Some(watch) = &mut cx.watch
            && !watch.logs.loads.is_empty()
        {
            if watch.logs.accesses.is_empty() {
                observer.accept_loads(wave, at, op.pc as u64, &mut watch.logs.loads);
                continue;
            }
            watch.logs.log_loads();
        }
        let log = cx.watch.as_ref().map_or(&[][..], |watch| &watch.logs.accesses[..]);
        let accepted = observer.accept_fast(wave, at, op.pc as u64, log);
        if !accepted
            && !report_access(cx, program, at, op.pc as u64, time + (at - index) as u64 + 1, observer)
        {
            return Ok(());
        }
        if let Some(watch) = &mut cx.watch {
            watch.logs.clear();
        }
    }
    run_straight(cx, program, end)
}

/// Reports an access to the observer; returns whether to continue skipping.
#[inline(never)]
fn report_access<O: Observer + ?Sized>(
    cx: &mut Cx<'_>,
    program: &Program,
    index: usize,
    pc: u64,
    time: u64,
    observer: &mut O,
) -> bool {
    let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time };
    let continues = observer.accessed(&step, &done(&cx.watch, None, false));
    if let Some(watch) = &mut cx.watch {
        watch.logs.clear();
        watch.keeps_loads = observer.keeps_loads();
    }
    continues
}

thread_local! {
    /// Unused logs, kept from turn to turn because turns between barriers are short.
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
    let mut handler_context = Context {
        memory: &NO_MEMORY,
        lds: &mut nothing.0,
        scratch: &mut nothing.1,
        scratch_stride: 0,
        workgroup: &mut *context.workgroup,
        instructions: context.instructions,
        cancel: context.cancel,
    };
    let mut cx = Cx::new(
        &HANDLERS,
        Avx2::detect(),
        program.arch,
        wave,
        &mut handler_context,
        program.lowered().pools(),
        0,
    );
    cx.watch = Some(&mut watch);
    let result = turn(program, &mut cx, budget, executed, observer);
    logs.clear();
    LOGS.set(Some(logs));
    result
}

/// Stands for the replaced contents where there is no watch.
static NOTHING: LazyLock<Replaced> = LazyLock::new(Replaced::default);

/// Returns the effects of the instruction that has just run.
#[inline(always)]
pub(crate) fn done<'s>(
    watch: &'s Option<&mut Watch<'_>>,
    event: Option<&'s Event>,
    jumped: bool,
) -> Done<'s> {
    match watch {
        Some(watch) => Done::of(watch.logs, watch.lds, event, jumped),
        None => Done { accesses: &[], lds: &[], calls: &[], replaced: &NOTHING, event, jumped },
    }
}

/// Runs one turn of an observed wave.
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
        let Some(first) = program.any_op_at(pc) else {
            return Err(fault_without_handler(&Op::end(), None));
        };
        cx.op = first;
        let mut index = first.number as usize;
        // `any_op_at` maps a hole to the instruction after it.
        if program.pcs.get(index) != Some(&pc) {
            return Err(fault_without_handler(first, None));
        }
        let step = Step { program, index, pc, wave: cx.wave, group: cx.workgroup, time: *executed };
        let skip = observer.skip(&step);
        let count = skip.count.min((end - *executed) as usize);
        let mut stopped = None;
        if count > 0 {
            if (1..count).contains(&skip.idle)
                && let Some(next) = program.pcs.get(index + skip.idle).and_then(|pc| program.any_op_at(*pc))
            {
                cx.op = next;
            }
            if let Some(watch) = &mut cx.watch {
                watch.quiet = true;
                watch.keeps_loads = skip.accesses != 0 && observer.keeps_loads();
            }
            stopped = match skip.accesses {
                0 => run_straight(cx, program, index + count).err(),
                _ => run_with_accesses(cx, program, (index, index + count), skip, *executed, observer).err(),
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
                    let from = cx.wave.pc;
                    program.jump(cx.wave, cx.jump);
                    observer.jumped(cx.wave.id, from, cx.wave.pc);
                    continue;
                }
                Some(_) => {}
            }
            // An operation in the middle did not continue: from here on, treat the instruction as observed.
            (pc, index) = (cx.wave.pc, index + ran);
        } else if observer.before(&step).is_break() {
            return Ok(());
        }
        *executed += 1;
        cx.instructions += 1;
        let (next, event) = execute(cx, program, index, stopped.take());
        let jumped = next != pc + program.insts[index].size as u64;
        // After a fault, the PC stays at the faulting instruction.
        match event {
            Some(Event::Fault(_)) => cx.wave.pc = pc,
            _ => program.jump(cx.wave, next),
        }
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
