//! Checks that hardware does not make: a run with shadow state for every register and byte, which reports each mistake once.
//!
//! [`Checker`] is an observer; each check is a module with its own shadow: `init` (reads of registers that nothing wrote),
//! `mem` (bounds, alignment, bytes that nothing wrote), `race` (accesses that no barrier or atomic orders), `waits` (results used
//! before their counter was waited for), `barrier` (waves that do not meet), `hazard` (uses that the architecture forbids).

mod barrier;
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
mod wait_states;
mod waits;

pub use init::initial as initial_registers;
pub use outstanding::Outstanding;
pub use report::{Finding, Other, Report, Severity, Site};

use std::collections::HashMap;
use std::ops::ControlFlow;
use waits::{Retired, Scoreboard};
use wavesim_engine::observe::{Done, Observer, Skip, Step};
use wavesim_engine::sched::dispatch::{self, Dispatch, DispatchError, RunStats};
use wavesim_isa::arch::Arch;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::{self, Class, Effects};
use wavesim_machine::exec::machine_ops::Event;
use wavesim_machine::exec::watch::{Access, LdsLoads, Place};
use wavesim_machine::fault::{Fault, FaultKind};

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Accesses out of bounds or misaligned, and loads of bytes of LDS and scratch that nothing wrote.
    Mem,
    /// Uses of registers that nothing wrote.
    Init,
    /// Accesses of two waves that nothing orders.
    Race,
    /// Results used before their counter was waited for.
    Waits,
    /// Waves that come to different barriers, without some of their lanes, or not at all.
    Barrier,
    /// Uses that the architecture forbids.
    Hazard,
}

impl Check {
    /// All of them, in the order of reports.
    pub const ALL: [Check; 6] =
        [Check::Mem, Check::Init, Check::Race, Check::Waits, Check::Barrier, Check::Hazard];

    /// As on the command line and in reports.
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

    /// The reverse of [`Check::name`].
    pub fn from_name(name: &str) -> Option<Check> {
        Check::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Checks that apply to an architecture. Registers, waits, barriers and hazards are checked by AMD's rules only.
    pub fn of(arch: Arch) -> &'static [Check] {
        if arch.machine().is_none() { &Check::ALL } else { &[Check::Mem] }
    }
}

/// Bytes left free between allocations of a checked run, so that an access beyond one does not land in the next.
pub const GUARD_BYTES: u64 = 4096;

/// Which checks run.
#[derive(Debug, Clone, Copy)]
struct On {
    mem: bool,
    init: bool,
    race: bool,
    waits: bool,
    barrier: bool,
    hazard: bool,
}

/// Runs the chosen checks over an observed run. Most instructions of a run need no check: those are skipped (`skip`).
pub struct Checker<'a> {
    prepared: &'a Prepared,
    effects: Vec<Effects>,
    on: On,
    report: Report,
    init: init::Shadow,
    mem: mem::Shadow,
    race: race::Shadow,
    waits: Scoreboard,
    barrier: barrier::Shadow,
    hazard: hazard::Shadow,
    skip: skip::SkipCache,
    /// By wave: its last jump, from where to where.
    jumps: Vec<(u64, u64)>,
    parked: HashMap<[u32; 3], Parked>,
    /// LDS may be accessed unaligned.
    unaligned_lds: bool,
    /// What [`Observer::accept_fast`] has just seen is in bounds, and of bytes that have been written.
    fine: bool,
}

/// State of a workgroup that has begun and does not run.
struct Parked {
    init: init::Group,
    mem: mem::Group,
    race: race::Group,
    waits: waits::Group,
    barrier: barrier::Group,
    hazard: hazard::Group,
    skip: skip::Group,
    jumps: Vec<(u64, u64)>,
}

impl<'a> Checker<'a> {
    /// # Errors
    /// A launch that cannot run.
    pub fn new(prepared: &'a Prepared, checks: &[Check]) -> Result<Checker<'a>, DispatchError> {
        // The shadows are as large as the launch says.
        prepared.dispatch(0).check()?;
        let shape = &prepared.shape;
        let effects = effects::table(&prepared.program, shape.wave_size);
        let chosen = |check| checks.contains(&check);
        let on = On {
            mem: chosen(Check::Mem),
            init: chosen(Check::Init),
            // It finds the accesses that are not waited for before a barrier or a flag, too.
            race: chosen(Check::Race) || chosen(Check::Waits),
            waits: chosen(Check::Waits),
            barrier: chosen(Check::Barrier),
            hazard: chosen(Check::Hazard),
        };
        let all = on.mem && on.init && on.race && on.waits;
        let waits = Scoreboard::new(&prepared.program, &effects);
        let hazard = hazard::Shadow::new(&prepared.program, &effects, shape);
        let race = race::Shadow::new(prepared, &effects, on.race);
        let plain = |at: usize| {
            let hazard = on.hazard && hazard.must_observe(at);
            all && !hazard && race.is_plain(at, &effects[at]) && waits.issues(at)
        };
        let observed = |at| waits.must_observe(at) || on.hazard && hazard.must_observe(at);
        Ok(Checker {
            prepared,
            skip: skip::SkipCache::new(&prepared.program, &effects, observed, plain),
            init: init::Shadow::new(&effects, shape),
            mem: mem::Shadow::new(shape),
            race,
            waits,
            barrier: barrier::Shadow::new(&effects),
            hazard,
            effects,
            on,
            report: Report::new(checks),
            jumps: Vec::new(),
            parked: HashMap::new(),
            unaligned_lds: prepared.modes.unaligned_lds,
            fine: false,
        })
    }

    /// Runs a dispatch of the launch that it was made for. The count of instructions is given on a fault too.
    // Not generic, so that it is compiled here: this crate is optimised for it.
    #[inline(never)]
    pub fn run(&mut self, dispatch: &Dispatch<'_>) -> (RunStats, Result<(), Box<Fault>>) {
        let memory = &self.prepared.memory;
        dispatch::run_observed(dispatch, memory, self)
    }

    /// What has been found so far, with places as byte offsets.
    pub fn found(&self) -> &[Finding] {
        self.report.found()
    }

    /// Everything found; `fault` is what ended the run, if something did.
    pub fn finish(mut self, fault: Option<&Fault>) -> Vec<Finding> {
        if let Some(fault) = fault {
            self.fault(fault);
        }
        self.report.finish(self.prepared)
    }

    /// Passes what of a wave is complete to the race check, and to the scoreboard the epoch of the operation just issued.
    #[inline]
    fn follow(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let shared = |a: &&Access| matches!(a.place, Place::Lds | Place::Global);
        if self.waits.must_observe(step.index) && done.accesses.iter().any(|a| shared(&a)) {
            let store = done.accesses.iter().filter(shared).any(|a| a.write);
            let access = Retired { epoch: self.race.accessed(wave), pc: step.pc as u32, store };
            self.waits.stamp(wave, access);
        }
        self.retire(wave);
    }

    /// The fast path of plain loads and stores with defined registers: in bounds, of bytes that have been written.
    fn plain_access(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let wave = step.wave.id;
        let access = self.race.plain(step, done, &self.waits, self.prepared, &mut self.report);
        self.waits.issue(wave, step.index, step.pc, access);
        self.retire(wave);
    }

    /// Behind an instruction without accesses: whether it only waits, which is noted.
    #[inline]
    fn waited(&mut self, wave: u32, index: usize) -> bool {
        self.fine = false;
        let Some(waits) = self.skip.waits(index) else { return false };
        self.waits.wait(wave, waits);
        self.retire(wave);
        true
    }

    /// Passes what of a wave is complete to the race check.
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

    /// Exchanges what is swapped in all checks.
    fn swap(&mut self, group: &mut Parked) {
        self.init.swap(&mut group.init);
        self.mem.swap(&mut group.mem);
        self.waits.swap(&mut group.waits);
        self.barrier.swap(&mut group.barrier);
        self.hazard.swap(&mut group.hazard);
        self.skip.swap(&mut group.skip);
        std::mem::swap(&mut self.jumps, &mut group.jumps);
    }

    /// A deadlock is the barrier check's, accesses out of bounds have been reported already; everything else stays a fault.
    fn fault(&mut self, fault: &Fault) {
        if fault.kind == FaultKind::BarrierDeadlock && self.on.barrier {
            let site = Site::of_fault(fault, &self.prepared.program);
            self.report.add(Finding::new(Check::Barrier, "deadlock", fault.message.clone(), site));
        }
        if self.on.hazard && self.is_wild_jump(fault) {
            self.wild_jump(fault);
        }
    }

    /// Whether the fault is that a wave has jumped to where no instruction begins: a finding then says so.
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
        self.waits.start(waves, self.race.released(0));
        self.barrier.start(waves);
        self.hazard.start(waves);
        self.skip.start(waves);
        self.jumps.clear();
        self.jumps.resize(waves, (u64::MAX, u64::MAX));
    }

    fn group_parked(&mut self, workgroup: [u32; 3]) {
        let mut group = Parked {
            init: init::Group::default(),
            mem: self.mem.group(),
            race: self.race.park(),
            waits: waits::Group::default(),
            barrier: barrier::Group::default(),
            hazard: hazard::Group::default(),
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
        // Here and not in `before`, which is not called for skipped instructions.
        if self.on.race && self.race.resume(step, &self.waits) {
            self.mem.meet();
        }
        if self.on.barrier {
            self.barrier.before(step);
        }
        let mut idle = 0;
        if let Some(waits) = self.skip.waits(step.index) {
            idle = 1;
            if self.on.waits || self.on.race {
                self.waits.wait(wave, waits);
                if self.on.race {
                    self.retire(wave);
                }
            }
        }
        let init = (self.on.init || self.on.mem).then_some(&mut self.init);
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
        if self.on.waits && self.waits.is_early(wave, step.index) {
            self.waits.before(step, effects, &mut self.report);
        }
        if (self.on.init || self.on.mem) && self.init.prove(step.wave, step.index).is_none() {
            self.init.before(step, effects, &mut self.report);
        }
        if self.on.hazard && self.hazard.must_observe(step.index) {
            self.hazard.before(step, effects, &mut self.report);
        }
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn accept_fast(&mut self, wave: u32, index: usize, pc: u64, accesses: &[Access]) -> bool {
        let unaligned = self.unaligned_lds;
        self.fine = match accesses {
            [] => return self.waited(wave, index),
            [a] => self.mem.is_fine(a, unaligned),
            all => all.iter().all(|a| self.mem.is_fine(a, unaligned)),
        };
        if !self.fine {
            return false;
        }
        let Some(access) = self.race.alone(wave, pc as u32, accesses) else { return false };
        self.waits.issue(wave, index, pc, access);
        self.retire(wave);
        true
    }

    fn accessed(&mut self, step: &Step<'_>, done: &Done<'_>) -> bool {
        match self.fine {
            true => self.plain_access(step, done),
            false => self.observed(step, done),
        }
        self.fine
    }

    #[inline(always)]
    fn keeps_loads(&self) -> bool {
        self.mem.is_lds_full() && self.race.keeps_loads()
    }

    #[inline(always)]
    fn accept_loads(&mut self, wave: u32, index: usize, pc: u64, loads: &mut LdsLoads) {
        let access = self.race.keep(wave, pc as u32, loads);
        self.waits.issue(wave, index, pc, access);
        self.retire(wave);
    }

    #[inline]
    fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        self.observed(step, done);
    }

    fn keeps_going(&self) -> bool {
        self.on.mem
    }
}

impl Checker<'_> {
    /// An instruction has run.
    #[inline]
    fn observed(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let effects = &self.effects[step.index];
        if done.jumped {
            self.jumps[step.wave.id as usize] = (step.pc, step.wave.pc);
        }
        if !done.accesses.is_empty() {
            self.mem.before();
            if self.on.mem {
                self.mem.after(step, done, effects, self.prepared, &mut self.report);
            }
            if self.on.race {
                self.race.after(step, done, effects, &self.waits, self.prepared, &mut self.report);
            }
        }
        if (self.on.init || self.on.mem)
            && (!done.accesses.is_empty() || !self.init.is_proven_now(step.wave.id, step.index))
            && self.init.after(step, done, effects, &mut self.mem)
        {
            self.skip.invalidate(step.wave.id);
        }
        self.skip.after(step, done, effects);
        let control = !done.calls.is_empty() || done.event.is_some();
        let waits = effects.class == Class::Wait;
        if (self.on.waits || self.on.race) && (control || self.waits.must_observe(step.index)) {
            self.waits.after(step, done);
            if self.on.race {
                self.follow(step, done);
            }
        }
        // A wait is the scoreboard's alone.
        if !control || waits && done.event.is_none() {
            return;
        }
        if self.on.barrier {
            self.barrier.after(step, done, &mut self.report);
        }
        self.race.calls(step, done);
        if self.on.race {
            self.waits.release(step.wave.id, self.race.released(step.wave.id));
        }
        if matches!(done.event, Some(Event::EndPgm)) {
            if self.on.race {
                self.race.end(step.wave.id, self.waits.outstanding_accesses(step.wave.id));
            }
            self.waits.end(step);
        }
    }
}
