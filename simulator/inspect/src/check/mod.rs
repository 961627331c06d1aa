//! Checks that hardware does not make. A checked run keeps shadow state for every register and byte, and
//! reports each distinct error once.
//!
//! [`Checker`] is an observer. Each check is a module with its own shadow state: `init` (uses of undefined
//! registers), `mem` (bounds, alignment, and loads of undefined bytes), `race` (accesses that happens-before
//! does not order), `waits` (results used before the wait for their counter), `barrier` (barrier divergence),
//! `hazard` (uses that the architecture forbids).

mod barrier;
mod bitmap;
mod frames;
mod hazard;
mod init;
mod mem;
mod outstanding;
mod race;
mod report;
pub mod sarif;
mod shadow_memory;
mod skip;
pub mod suppress;
mod vgpr_msbs;
mod wait_states;
mod waits;
mod written;

pub use init::initial as initial_registers;
pub use outstanding::Outstanding;
pub use report::{Finding, Other, Report, Severity, Site};
pub use written::Written;

use isa_spec::pcode::builtins::Control;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use waits::{IssuedAccess, Scoreboard};
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_engine::sched::dispatch::{self, Dispatch, DispatchError, RunStats};
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, LdsLoads, Place};
use wavesim_machine::fault::{Fault, FaultKind};

/// A kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Accesses that are out of bounds or misaligned, and loads of undefined bytes of LDS and scratch.
    Mem,
    /// Uses of undefined registers.
    Init,
    /// Conflicting accesses of two waves that happens-before does not order.
    Race,
    /// Results used before the wait for their counter.
    Waits,
    /// Barrier divergence: waves that arrive at different barriers, with lanes missing, or not at all.
    Barrier,
    /// Uses that the architecture forbids.
    Hazard,
}

impl Check {
    /// All checks, in the order of reports.
    pub const ALL: [Check; 6] =
        [Check::Mem, Check::Init, Check::Race, Check::Waits, Check::Barrier, Check::Hazard];

    /// Returns the name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Check::Mem => "mem",
            Check::Init => "init",
            Check::Race => "race",
            Check::Waits => "waits",
            Check::Barrier => "barrier",
            Check::Hazard => "hazard",
        }
    }

    /// Returns the check with the given name; the inverse of [`Check::name`].
    pub fn from_name(name: &str) -> Option<Check> {
        Check::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Returns the checks that apply to an architecture. All checks but `mem` implement rules of AMD's
    /// architectures only.
    pub fn of(arch: Arch) -> &'static [Check] {
        if arch.machine().is_none() { &Check::ALL } else { &[Check::Mem] }
    }
}

/// Bytes left unallocated between the allocations of a checked run. An access just past one allocation
/// therefore does not fall into the next.
pub const GUARD_BYTES: u64 = 4096;

/// The enabled checks.
#[derive(Debug, Clone, Copy)]
struct EnabledChecks {
    mem: bool,
    init: bool,
    race: bool,
    waits: bool,
    barrier: bool,
    hazard: bool,
}

/// Runs the enabled checks over an observed run. Most executed instructions need no check and are skipped
/// (see `skip`).
pub struct Checker<'a> {
    prepared: &'a Prepared,
    effects: Vec<Effects>,
    enabled: EnabledChecks,
    report: Report,
    init: init::Shadow,
    mem: mem::Shadow,
    race: race::Shadow,
    waits: Scoreboard,
    barrier: barrier::Shadow,
    hazard: hazard::Shadow,
    frames: frames::Frames,
    skip: skip::SkipCache,
    /// By wave: the source and target PC of its last jump.
    jumps: Vec<(u64, u64)>,
    parked: HashMap<[u32; 3], Parked>,
    /// Whether LDS may be accessed unaligned.
    unaligned_lds: bool,
    /// Whether the accesses last seen by [`Observer::accept_fast`] are in bounds and touch only defined bytes.
    accesses_valid: bool,
}

/// State of a workgroup that has started but is not running now.
struct Parked {
    init: init::Group,
    mem: mem::Group,
    race: race::Group,
    waits: waits::Group,
    barrier: barrier::Group,
    hazard: hazard::Group,
    frames: frames::Group,
    skip: skip::Group,
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
        let chosen = |check| checks.contains(&check);
        let enabled = EnabledChecks {
            mem: chosen(Check::Mem),
            init: chosen(Check::Init),
            // The race check also finds accesses that are outstanding at a barrier or at the store of a flag.
            race: chosen(Check::Race) || chosen(Check::Waits),
            waits: chosen(Check::Waits),
            barrier: chosen(Check::Barrier),
            hazard: chosen(Check::Hazard),
        };
        let all = enabled.mem && enabled.init && enabled.race && enabled.waits;
        let waits = Scoreboard::new(&prepared.program, &effects);
        let hazard = hazard::Shadow::new(&prepared.program, &effects, shape);
        let race = race::Shadow::new(prepared, &effects, enabled.race);
        let plain = |at: usize| {
            let hazard = enabled.hazard && hazard.must_observe(at);
            all && !hazard && race.is_plain(at, &effects[at]) && waits.issues_ordered(at)
        };
        let frames = frames::Frames::new(&effects);
        let observed = |at| {
            waits.must_observe(at)
                || enabled.hazard && hazard.must_observe(at)
                || enabled.mem && frames.must_observe(at)
        };
        let mut mem = mem::Shadow::new(shape);
        mem.set_constant(&prepared.constant);
        if !prepared.padding.is_empty() {
            let mut written = Written::default();
            prepared.padding.iter().for_each(|bytes| written.track(bytes.start, bytes.end - bytes.start));
            mem.set_written(Arc::new(Mutex::new(written)));
        }
        Ok(Checker {
            prepared,
            skip: skip::SkipCache::new(&prepared.program, &effects, observed, plain),
            init: init::Shadow::new(&effects, shape),
            mem,
            race,
            waits,
            barrier: barrier::Shadow::new(&effects),
            hazard,
            frames,
            effects,
            enabled,
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
        self.mem.set_written(written);
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
        self.mem.forget(&self.prepared.padding);
        if let Some(fault) = fault {
            self.fault(fault);
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
                IssuedAccess { epoch: self.race.access_epoch(wave), pc: step.pc as u32, store: false };
            self.waits.stamp(wave, access);
        }
        if self.waits.must_observe(step.index) && done.accesses.iter().any(|a| shared(&a)) {
            let store = done.accesses.iter().filter(shared).any(|a| a.write);
            let access = IssuedAccess { epoch: self.race.access_epoch(wave), pc: step.pc as u32, store };
            self.waits.stamp(wave, access);
        }
        self.retire(wave);
    }

    /// Fast path of plain loads and stores with defined operands, whose accesses are in bounds and touch only
    /// defined bytes.
    fn plain_access(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let access = self.race.record_plain(step, done, &self.waits, self.prepared, &mut self.report);
        self.waits.issue(wave, step.index, step.pc, access);
        self.retire(wave);
    }

    /// Handles an instruction without accesses. Returns whether it is a pure wait, which is then recorded.
    #[inline]
    fn record_wait(&mut self, wave: u32, index: usize) -> bool {
        self.accesses_valid = false;
        let Some(waits) = self.skip.waits(index) else { return false };
        self.waits.wait(wave, waits);
        self.retire(wave);
        true
    }

    /// Passes the wave's retired operations to the race check.
    #[inline(always)]
    fn retire(&mut self, wave: u32) {
        if self.waits.has_retired(wave) {
            self.take_retired(wave);
        }
    }

    #[inline(never)]
    fn take_retired(&mut self, wave: u32) {
        let race = &mut self.race;
        self.waits.take_retired(wave, |access| race.retire(wave, access));
    }

    /// Swaps the state of all checks with that of a workgroup.
    fn swap(&mut self, group: &mut Parked) {
        self.init.swap(&mut group.init);
        self.mem.swap(&mut group.mem);
        self.waits.swap(&mut group.waits);
        self.barrier.swap(&mut group.barrier);
        self.hazard.swap(&mut group.hazard);
        self.frames.swap(&mut group.frames);
        self.skip.swap(&mut group.skip);
        std::mem::swap(&mut self.jumps, &mut group.jumps);
    }

    /// Turns a fault into findings: a deadlock belongs to the barrier check, a wild jump to the hazard check.
    /// Accesses out of bounds are reported already; any other fault stays a fault.
    fn fault(&mut self, fault: &Fault) {
        if fault.kind == FaultKind::BarrierDeadlock && self.enabled.barrier {
            let site = Site::of_fault(fault, &self.prepared.program);
            self.report.add(Finding::new(Check::Barrier, "deadlock", fault.message.clone(), site));
        }
        if self.enabled.hazard && self.is_wild_jump(fault) {
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
        self.init.start(waves);
        self.mem.start();
        self.race.start(workgroup, waves);
        self.waits.start(waves, self.race.release_epoch(0));
        self.barrier.start(waves);
        self.hazard.start(waves);
        self.frames.start(waves);
        self.skip.start(waves);
        self.jumps.clear();
        self.jumps.resize(waves, (u64::MAX, u64::MAX));
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        let mut group = Parked {
            init: init::Group::default(),
            mem: self.mem.empty_group(),
            race: self.race.park(),
            waits: waits::Group::default(),
            barrier: barrier::Group::default(),
            hazard: hazard::Group::default(),
            frames: frames::Group::default(),
            skip: skip::Group::default(),
            jumps: Vec::new(),
        };
        self.swap(&mut group);
        self.parked.insert(workgroup, group);
    }

    fn group_resumed(&mut self, workgroup: [u32; 3]) {
        if let Some(mut group) = self.parked.remove(&workgroup) {
            self.swap(&mut group);
            self.race.unpark(group.race);
        }
    }

    #[inline]
    fn skip(&mut self, step: &Step<'_>) -> Skip {
        let wave = step.wave.id;
        // This belongs here and not in `before`, which is not called for skipped instructions.
        if self.enabled.race && self.race.resume(step, &self.waits) {
            self.mem.update_lds_full();
        }
        if self.enabled.barrier {
            self.barrier.before(step);
        }
        let mut idle = 0;
        if let Some(waits) = self.skip.waits(step.index) {
            idle = 1;
            if self.enabled.waits || self.enabled.race {
                self.waits.wait(wave, waits);
                if self.enabled.race {
                    self.retire(wave);
                }
            }
        }
        let init = (self.enabled.init || self.enabled.mem).then_some(&mut self.init);
        let (count, accesses) =
            self.skip.skippable(step, &self.waits, skip::Prover { init, wave: step.wave });
        Skip { count, accesses, idle }
    }

    fn jumped(&mut self, wave: u32, from: u64, to: u64) {
        self.jumps[wave as usize] = (from, to);
    }

    #[inline]
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        let effects = &self.effects[step.index];
        let wave = step.wave.id;
        if self.enabled.waits && self.waits.uses_outstanding(wave, step.index) {
            self.waits.before(step, effects, &mut self.report);
        }
        if (self.enabled.init || self.enabled.mem) && self.init.prove(step.wave, step.index).is_none() {
            self.init.before(step, effects, &mut self.report);
        }
        if self.enabled.hazard && self.hazard.must_observe(step.index) {
            self.hazard.before(step, effects, &mut self.report);
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn accept_fast(&mut self, wave: u32, index: usize, pc: u64, accesses: &[Access]) -> bool {
        let unaligned = self.unaligned_lds;
        self.accesses_valid = match accesses {
            [] => return self.record_wait(wave, index),
            [a] => self.mem.is_valid_access(a, unaligned),
            all => all.iter().all(|a| self.mem.is_valid_access(a, unaligned)),
        };
        if !self.accesses_valid {
            return false;
        }
        let Some(access) = self.race.record_exclusive(wave, pc as u32, accesses) else { return false };
        self.waits.issue(wave, index, pc, access);
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
        self.mem.is_lds_full() && self.race.can_defer_loads()
    }

    #[inline(always)]
    fn accept_loads(&mut self, wave: u32, index: usize, pc: u64, loads: &mut LdsLoads) {
        let access = self.race.defer_loads(wave, pc as u32, loads);
        self.waits.issue(wave, index, pc, access);
        self.retire(wave);
    }

    #[inline]
    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.observed(step, done);
    }

    fn keeps_going(&self) -> bool {
        self.enabled.mem
    }
}

impl Checker<'_> {
    /// Runs the checks after an executed instruction.
    #[inline]
    fn observed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let effects = &self.effects[step.index];
        if done.jumped {
            self.jumps[step.wave.id as usize] = (step.pc, step.wave.pc);
            if self.enabled.mem
                && self.frames.must_observe(step.index)
                && let Some(from) = self.frames.jumped(step)
            {
                self.mem.leave_frame(step.wave.id as usize, from, step.pc);
            }
        }
        if !done.accesses.is_empty() {
            self.mem.begin_instruction();
            if self.enabled.mem {
                self.mem.after(step, done, effects, self.prepared, &mut self.report);
            }
            if self.enabled.race {
                self.race.after(step, done, effects, &self.waits, self.prepared, &mut self.report);
            }
        }
        if (self.enabled.init || self.enabled.mem)
            && (!done.accesses.is_empty() || !self.init.is_proven(step.wave.id, step.index))
            && self.init.after(step, done, effects, &mut self.mem)
        {
            self.skip.invalidate(step.wave.id);
        }
        self.skip.after(step, done, effects);
        let control = !done.calls.is_empty() || done.event.is_some();
        let waits = effects.class == Class::Wait;
        if (self.enabled.waits || self.enabled.race) && (control || self.waits.must_observe(step.index)) {
            self.waits.after(step, done);
            if self.enabled.race {
                self.stamp_and_retire(step, done);
            }
        }
        // Waits concern only the scoreboard.
        if !control || waits && done.event.is_none() {
            return;
        }
        if self.enabled.barrier {
            self.barrier.after(step, done, &mut self.report);
        }
        self.race.record_calls(step, done);
        if self.enabled.race {
            self.waits.set_release_epoch(step.wave.id, self.race.release_epoch(step.wave.id));
        }
        if matches!(done.event, Some(Event::EndPgm)) {
            if self.enabled.race {
                self.race.end(step.wave.id, self.waits.outstanding_accesses(step.wave.id));
            }
            self.waits.end(step);
        }
    }
}
