//! Checks that hardware does not make. A checked run keeps shadow state for every register and byte, and
//! reports each distinct error once.
//!
//! [`Checker`] is an observer. Each check is a row of `rows` and a module with its own shadow state: `init` (uses
//! of undefined registers), `mem` (bounds, alignment, and loads of undefined bytes), `race` (accesses that
//! happens-before does not order), `waits` (results used before the wait for their counter), `barrier` (barrier
//! divergence), `hazard` (uses that the architecture forbids), and on demand `lanes` (races between lanes) and
//! `arith` (arithmetic whose result is rarely intended).

mod arith;
mod barrier;
mod bitmap;
mod by_instruction;
mod frames;
mod hazard;
pub mod heap;
mod init;
mod kind;
mod lanes;
mod mem;
mod objects;
mod outstanding;
mod race;
mod report;
mod rows;
pub mod sarif;
mod shadow_memory;
mod skip;
mod states;
pub mod suppress;
mod vgpr_msbs;
mod wait_states;
mod waits;
mod written;

pub use hazard::clause::{Clause, clause};
pub use init::initial as initial_registers;

/// The floats among the operands of an instruction.
pub mod arith_rules {
    pub use super::arith::rules::{Part, Rules, Shift, Signed, is_nan, is_non_finite};
}

/// Which bits of the results of an instruction depend on which bits of its sources: found by running it with other
/// values.
pub mod dependence {
    pub use super::init::{
        Outcome, RegisterLane, Trials, Undefined, computes, copy_touched, is_partial_write, lanes,
    };
}

pub use kind::Check;
pub use outstanding::Outstanding;
pub use report::{Finding, Other, Report, Severity, Site, fault_as_finding, fault_json};
pub use wait_states::{Successors, successors};
pub use waits::{Counters, Scoreboard, wait_instruction};
pub use written::Written;

use isa_spec::pcode::builtins::Control;
use kind::{CheckState, Chosen, Setup};
use states::{Groups, States};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use waits::IssuedAccess;
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_engine::sched::dispatch::{self, Dispatch, DispatchError, RunStats};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, LdsLoads, Place};
use wavesim_machine::fault::{Fault, FaultKind};

/// Bytes left unallocated between the allocations of a checked run. An access just past one allocation
/// therefore does not fall into the next.
pub const GUARD_BYTES: u64 = 4096;

/// Runs the enabled checks over an observed run. Most executed instructions need no check and are skipped
/// (see `skip`).
pub struct Checker<'a> {
    prepared: &'a Prepared,
    effects: Vec<Effects>,
    chosen: Chosen,
    /// The checks whose states are kept up to date.
    running: Chosen,
    report: Report,
    states: States,
    frames: frames::Frames,
    skip: skip::SkipCache,
    /// By wave: the source and target PC of its last jump.
    jumps: Vec<(u64, u64)>,
    parked: HashMap<[u32; 3], Preempted>,
    /// Whether LDS may be accessed unaligned.
    unaligned_lds: bool,
    /// Whether the accesses last seen by [`Observer::accept_fast`] are in bounds and touch only defined bytes.
    accesses_valid: bool,
}

/// State of a workgroup that has started but is not running now.
struct Preempted {
    states: Groups,
    frames: frames::FrameGroup,
    skip: skip::SkipGroup,
    jumps: Vec<(u64, u64)>,
}

impl<'a> Checker<'a> {
    /// Creates a checker for a prepared launch.
    ///
    /// # Errors
    /// The launch cannot run.
    pub fn new(prepared: &'a Prepared, checks: &[Check]) -> Result<Checker<'a>, DispatchError> {
        // The shadow state is sized by the launch, which is therefore validated first.
        prepared.dispatch(0).check()?;
        let shape = &prepared.shape;
        let mut effects = effects::table(&prepared.program, shape.wave_size);
        vgpr_msbs::resolve(&prepared.program, &mut effects);
        let chosen = Chosen::of(checks);
        let mut running = chosen.running();
        let all = chosen.mem && chosen.init && chosen.waits;
        let states = States::new(&Setup { prepared, effects: &effects, chosen });
        // It knows which code and which blocks are the allocator's.
        running.mem |= states.mem.has_allocator();
        let plain = |at: usize| {
            let hazard = running.hazard && states.hazard.observes(at);
            let on_demand = chosen.arith || chosen.lanes && effects[at].class == Class::Lds;
            all && !hazard
                && !on_demand
                && !states.mem.watches(at)
                && !states.mem.observes(at)
                && states.race.is_plain(at, &effects[at])
                && states.waits.issues_ordered(at)
        };
        let frames = frames::Frames::new(&effects);
        let observed = |at| {
            states.waits.must_observe(at)
                || states.observes(running, at)
                || running.mem && frames.must_observe(at)
        };
        Ok(Checker {
            prepared,
            skip: skip::SkipCache::new(&prepared.program, &effects, observed, plain),
            states,
            frames,
            effects,
            chosen,
            running,
            report: Report::new(checks),
            jumps: Vec::new(),
            parked: HashMap::new(),
            unaligned_lds: prepared.modes.unaligned_lds,
            accesses_valid: false,
        })
    }

    /// Tracks which bytes of global memory have been written; others than those of `written` count as written. The
    /// state is that of a host program, which records its own writes.
    pub fn set_written(&mut self, written: Arc<Mutex<Written>>) {
        let mut own = written.lock().unwrap_or_else(PoisonError::into_inner);
        for bytes in &self.prepared.padding {
            own.track(bytes.start, bytes.end - bytes.start);
        }
        drop(own);
        self.states.mem.set_written(written);
    }

    /// Follows the blocks of device `malloc` that the launches of a host program share.
    pub fn set_blocks(&mut self, blocks: Arc<Mutex<heap::Blocks>>) {
        self.states.mem.set_blocks(blocks);
    }

    /// Runs a dispatch of the launch that the checker was made for. The statistics are returned on a fault,
    /// too.
    // Not generic: the code is thus compiled in this crate, which is optimised for it.
    #[inline(never)]
    pub fn run(&mut self, dispatch: &Dispatch<'_>) -> (RunStats, Result<(), Box<Fault>>) {
        let memory = &self.prepared.memory;
        dispatch::run_observed(dispatch, memory, self)
    }

    /// Returns the findings so far, with program points as byte offsets.
    pub fn findings(&self) -> &[Finding] {
        self.report.findings()
    }

    /// Returns all findings; `fault` is the fault that ended the run, if any.
    pub fn finish(mut self, fault: Option<&Fault>) -> Vec<Finding> {
        self.states.mem.forget(&self.prepared.padding);
        match fault {
            Some(fault) => self.fault(fault),
            None if self.chosen.mem => self.states.mem.report_leaks(&mut self.report),
            None => {}
        }
        self.report.finish(self.prepared)
    }

    /// Stamps the operation just issued with its epoch, and passes the wave's retired operations to the race
    /// check.
    #[inline]
    fn stamp_and_retire(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let shared = |a: &&Access| matches!(a.place, Place::Lds | Place::Global);
        if done.calls.iter().any(|(bi, _)| *bi == Control::WriteBackCaches) {
            let access =
                IssuedAccess { epoch: self.states.race.access_epoch(wave), pc: step.pc as u32, store: false };
            self.states.waits.stamp(wave, access);
        }
        if self.states.waits.must_observe(step.index) && done.accesses.iter().any(|a| shared(&a)) {
            let store = done.accesses.iter().filter(shared).any(|a| a.write);
            let access =
                IssuedAccess { epoch: self.states.race.access_epoch(wave), pc: step.pc as u32, store };
            self.states.waits.stamp(wave, access);
        }
        self.retire(wave);
    }

    /// Fast path of plain loads and stores with defined operands, whose accesses are in bounds and touch only
    /// defined bytes.
    fn plain_access(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let access =
            self.states.race.record_plain(step, done, &self.states.waits, self.prepared, &mut self.report);
        self.states.waits.issue(wave, step.index, step.pc, access);
        self.retire(wave);
    }

    /// Handles an instruction without accesses. Returns whether it is a pure wait, which is then recorded.
    #[inline]
    fn record_wait(&mut self, wave: u32, index: usize) -> bool {
        self.accesses_valid = false;
        let Some(waits) = self.skip.waits(index) else { return false };
        self.states.waits.wait(wave, waits);
        self.retire(wave);
        true
    }

    /// Passes the wave's retired operations to the race check.
    #[inline(always)]
    fn retire(&mut self, wave: u32) {
        if self.states.waits.has_retired(wave) {
            self.take_retired(wave);
        }
    }

    #[inline(never)]
    fn take_retired(&mut self, wave: u32) {
        let race = &mut self.states.race;
        self.states.waits.take_retired(wave, |access| race.retire(wave, access));
    }

    /// Turns a fault into findings: a deadlock belongs to the barrier check, a wild jump to the hazard check.
    /// Accesses out of bounds are reported already; any other fault stays a fault.
    fn fault(&mut self, fault: &Fault) {
        if fault.kind == FaultKind::BarrierDeadlock && self.chosen.barrier {
            let site = Site::of_fault(fault, &self.prepared.program);
            self.report.add(Finding::new(Check::Barrier, "deadlock", fault.message.clone(), site));
        }
        if self.chosen.hazard && self.is_wild_jump(fault) {
            self.wild_jump(fault);
        }
    }

    /// Returns whether the fault is a wave's jump to an address at which no instruction begins. A finding
    /// reports such a jump.
    pub fn is_wild_jump(&self, fault: &Fault) -> bool {
        let target = self.prepared.program.pc_at(fault.pc);
        let jump = self.jumps.get(fault.wave as usize);
        matches!(fault.kind, FaultKind::PcOutOfRange | FaultKind::IllegalInstruction)
            && jump.is_some_and(|(from, to)| *to == target && *from != u64::MAX)
    }

    fn wild_jump(&mut self, fault: &Fault) {
        let program = &self.prepared.program;
        let (from, to) = self.jumps[fault.wave as usize];
        let address = program.address(to);
        let within = program.pcs.partition_point(|pc| *pc < to).checked_sub(1);
        let within = within.filter(|&at| to < program.pcs[at] + program.insts[at].size as u64);
        let message = match within {
            Some(at) => {
                let middle = (program.place(program.pcs[at]), program.text(at));
                format!(
                    "jump to 0x{address:x}, into the middle of the instruction at {}: {}",
                    middle.0, middle.1
                )
            }
            None if to >= program.end() => {
                format!(
                    "jump to 0x{address:x}, outside of the program, which ends at 0x{:x}",
                    program.address(program.end())
                )
            }
            None => format!("jump to 0x{address:x}, where there is no instruction"),
        };
        let site = Site {
            pc: from,
            text: program.inst_at(from).map_or_else(String::new, |at| program.text(at)),
            ..Site::of_fault(fault, program)
        };
        let location = program.location(from).unwrap_or_default();
        let site = Site { line: location.line, file: location.file, ..site };
        self.report.add(Finding::new(Check::Hazard, "wild jump", message, site));
    }
}

impl Observer for Checker<'_> {
    fn group_started(&mut self, workgroup: [u32; 3], waves: usize) {
        self.states.start(workgroup, waves);
        for wave in 0..waves as u32 {
            self.states.waits.set_release_epoch(wave, self.states.race.release_epoch(0));
        }
        self.frames.start(waves);
        self.skip.start(waves);
        self.jumps.clear();
        self.jumps.resize(waves, (u64::MAX, u64::MAX));
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        let first = self.states.race.first_of_cluster();
        let waves = if first.is_some() { self.jumps.len() as u32 } else { 0 };
        let outstanding: Vec<Vec<IssuedAccess>> =
            (0..waves).map(|wave| self.states.waits.outstanding_accesses(wave).collect()).collect();
        let mut group = Preempted {
            states: self.states.park(),
            frames: frames::FrameGroup::default(),
            skip: skip::SkipGroup::default(),
            jumps: std::mem::take(&mut self.jumps),
        };
        self.frames.swap(&mut group.frames);
        self.skip.swap(&mut group.skip);
        self.parked.insert(workgroup, group);
        for (number, outstanding) in (first.unwrap_or(0)..).zip(&outstanding) {
            self.states.race.park_outstanding(number, outstanding);
        }
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        if let Some(mut group) = self.parked.remove(&workgroup) {
            self.states.unpark(group.states);
            self.frames.swap(&mut group.frames);
            self.skip.swap(&mut group.skip);
            self.jumps = group.jumps;
        }
    }

    #[inline]
    fn skip(&mut self, step: &Step<'_>) -> Skip {
        let wave = step.wave.id;
        // This belongs here and not in `before`, which is not called for skipped instructions.
        if self.running.race && self.states.race.resume(step, &self.states.waits) {
            self.states.mem.update_lds_full();
        }
        self.states.arrive(self.running, step);
        let mut idle = 0;
        if let Some(waits) = self.skip.waits(step.index) {
            idle = 1;
            if self.running.waits {
                self.states.waits.wait(wave, waits);
                if self.running.race {
                    self.retire(wave);
                }
            }
        }
        let init = self.running.init.then_some(&mut self.states.init);
        let (count, accesses) =
            self.skip.skippable(step, &self.states.waits, skip::Prover { init, wave: step.wave });
        Skip { count, accesses, idle }
    }

    fn jumped(&mut self, wave: u32, from: u64, to: u64) {
        self.jumps[wave as usize] = (from, to);
    }

    #[inline]
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        self.states.before(self.running, step, &self.effects[step.index], &mut self.report);
        if let Some(fresh) = self.states.mem.take_fresh() {
            let ranges = fresh.into_iter().map(|(address, len)| address..address.saturating_add(len));
            ranges.for_each(|bytes| self.states.race.forget(&bytes));
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn accept_fast(&mut self, wave: u32, index: usize, pc: u64, accesses: &[Access]) -> bool {
        let unaligned = self.unaligned_lds;
        self.accesses_valid = match accesses {
            [] => return self.record_wait(wave, index),
            [a] => self.states.mem.is_valid_access(a, unaligned),
            all => all.iter().all(|a| self.states.mem.is_valid_access(a, unaligned)),
        };
        // Most accesses are loads.
        self.accesses_valid &= !accesses[0].write || !self.states.lanes.suspects(index, accesses);
        if !self.accesses_valid {
            return false;
        }
        let Some(access) = self.states.race.record_exclusive(wave, pc as u32, accesses) else { return false };
        self.states.waits.issue(wave, index, pc, access);
        self.retire(wave);
        true
    }

    fn accessed(&mut self, step: &Step<'_>, done: &Done<'_>) -> bool {
        match self.accesses_valid {
            true => self.plain_access(step, done),
            false => self.observed(step, done),
        }
        self.accesses_valid
    }

    #[inline(always)]
    fn keeps_loads(&self) -> bool {
        self.states.mem.is_lds_full() && !self.states.mem.watches_lds() && self.states.race.can_defer_loads()
    }

    #[inline(always)]
    fn accept_loads(&mut self, wave: u32, index: usize, pc: u64, loads: &mut LdsLoads) {
        let access = self.states.race.defer_loads(wave, pc as u32, loads);
        self.states.waits.issue(wave, index, pc, access);
        self.retire(wave);
    }

    #[inline]
    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.observed(step, done);
    }

    fn keeps_going(&self) -> bool {
        self.chosen.mem
    }
}

impl Checker<'_> {
    /// Runs the checks after an executed instruction.
    #[inline]
    fn observed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let effects = &self.effects[step.index];
        if done.jumped {
            self.jumps[step.wave.id as usize] = (step.pc, step.wave.pc);
            if self.running.mem
                && self.frames.must_observe(step.index)
                && let Some(from) = self.frames.jumped(step)
            {
                self.states.mem.leave_frame(step.wave.id as usize, from, step.pc);
            }
        }
        if !done.accesses.is_empty() {
            self.states.mem.begin_instruction();
            if self.running.mem {
                self.states.mem.after(step, done, effects, self.prepared, &mut self.report);
            }
            if self.running.race {
                self.states.race.after(
                    step,
                    done,
                    effects,
                    &self.states.waits,
                    self.prepared,
                    &mut self.report,
                );
            }
        }
        if self.running.init
            && (!done.accesses.is_empty() || !self.states.init.is_proven(step.wave.id, step.index))
            && self.states.init.after(step, done, effects, &mut self.states.mem)
        {
            self.skip.invalidate(step.wave.id);
        }
        self.skip.after(step, done, effects);
        self.states.after(self.running, step, done, effects, self.prepared, &mut self.report);
        let control = !done.calls.is_empty() || done.event.is_some();
        let waits = effects.class == Class::Wait;
        if self.running.waits && (control || self.states.waits.must_observe(step.index)) {
            self.states.waits.after(step, done);
            if self.running.race {
                self.stamp_and_retire(step, done);
            }
        }
        // Waits concern only the scoreboard.
        if !control || waits && done.event.is_none() {
            return;
        }
        self.states.after_control(self.running, step, done, &mut self.report);
        self.states.race.record_calls(step, done);
        if self.running.race {
            self.states.waits.set_release_epoch(step.wave.id, self.states.race.release_epoch(step.wave.id));
        }
        if matches!(done.event, Some(Event::EndPgm)) {
            if self.running.race {
                self.states.race.end(step.wave.id, self.states.waits.outstanding_accesses(step.wave.id));
            }
            self.states.waits.end(step);
        }
    }
}
