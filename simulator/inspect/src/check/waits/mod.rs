//! `waits`: uses of a register while an outstanding memory operation writes it. Each wave has a scoreboard.
//!
//! [`wavesim_machine::exec::issue`] has the counters, and what a wait shows. The registers of an outstanding
//! operation may be neither read nor written.
//!
//! Sources of stores need no wait: from RDNA 1 on, the hardware holds them until they are read. The simulator
//! itself completes operations at once. Without this check, a kernel that lacks a wait works in the simulator
//! and fails on hardware.

mod counter;
mod registers;
mod wave;

pub use counter::wait_instruction;
pub use registers::{Registers, Summary};
pub use wavesim_isa::arch::facts::Counter;
pub use wavesim_machine::exec::issue::{Counters, MAX_OUTSTANDING};

use super::kind::{CheckState, Setup};
use super::report::Report;
use isa_spec::pcode::builtins::Control;
use wave::{Conflict, Wave};
use wavesim_engine::observe::{Done, Step};
use wavesim_isa::arch::facts::Facts;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::issue::{Issue, Order};
use wavesim_machine::exec::program::Program;

/// The hot part of an instruction's issue properties, kept in one struct because it is read at each
/// execution.
#[derive(Clone, Copy)]
struct InstSummary {
    issue: Option<Issue>,
    /// Whether the instruction waits for all counters.
    idle: bool,
    /// Summary of the registers that the instruction reads or writes.
    touched: Summary,
    /// Summary of the registers that the issued operation writes.
    writes: Summary,
}

#[derive(Clone, Copy)]
struct Pending {
    /// Index of the instruction, and its byte offset.
    at: u32,
    pc: u32,
    counters: Counters,
    order: Order,
    /// Whether it may access LDS.
    lds: bool,
    writes: Summary,
    /// The access, if it is to memory that waves share: until it completes, other waves' accesses may
    /// conflict with it.
    access: Option<IssuedAccess>,
}

/// A wave's access to shared memory, as the race check identifies it.
#[derive(Debug, Clone, Copy)]
pub struct IssuedAccess {
    /// The wave's epoch in the race check.
    pub epoch: u32,
    /// Byte offset of the instruction.
    pub pc: u32,
    /// Whether memory was written, even if it was also read.
    pub store: bool,
}

/// Scoreboards of the waves of a workgroup.
#[derive(Default)]
pub struct WaitGroup(Vec<Wave>);

/// Scoreboards of all waves of the running workgroup, and the issue properties and registers of each
/// instruction.
pub struct Scoreboard {
    /// As for [`Scoreboard::of`].
    reports: bool,
    facts: &'static Facts,
    waves: Vec<Wave>,
    /// By instruction.
    summaries: Vec<InstSummary>,
    /// By instruction: the registers that it reads or writes.
    touched: Vec<Registers>,
    /// By instruction: the registers that its operation writes.
    writes: Vec<Registers>,
}

impl CheckState for Scoreboard {
    type WorkgroupState = WaitGroup;

    fn new(setup: &Setup<'_>) -> Scoreboard {
        Scoreboard::of(&setup.prepared.program, setup.effects, setup.chosen.waits)
    }

    fn start(&mut self, _workgroup: [u32; 3], waves: usize) {
        self.waves.resize_with(waves, Wave::default);
        self.waves.iter_mut().for_each(|wave| wave.clear(0));
    }

    fn swap(&mut self, group: &mut WaitGroup) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    #[inline(always)]
    fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        if self.reports && self.uses_outstanding(step.wave.id, step.index) {
            self.report_outstanding(step, effects, report);
        }
    }
}

impl Scoreboard {
    /// Creates the scoreboards of a program; `effects` are its instructions' effects. `reports`
    /// states whether uses of outstanding results are reported; if not, the scoreboard serves the race check
    /// only.
    pub fn of(program: &Program, effects: &[Effects], reports: bool) -> Scoreboard {
        let facts = program.arch.facts();
        let touched: Vec<Registers> = effects.iter().map(|e| Registers::of(e, facts)).collect();
        let writes: Vec<Registers> = effects.iter().map(|e| Registers::written(e, facts)).collect();
        let summary = |((e, touched), writes): ((&Effects, &Registers), &Registers)| {
            let idle = e.calls.contains(&Control::WaitIdle);
            let issue = Issue::of(&facts.counters, e);
            InstSummary { issue, idle, touched: touched.summary(), writes: writes.summary() }
        };
        let summaries = effects.iter().zip(&touched).zip(&writes).map(summary).collect();
        Scoreboard { reports, facts, waves: Vec::new(), summaries, touched, writes }
    }

    /// Returns whether a wave has nothing outstanding.
    #[inline]
    pub fn is_idle(&self, wave: u32) -> bool {
        let wave = &self.waves[wave as usize];
        wave.pending.is_empty() && wave.stores.is_empty()
    }

    /// Returns whether none of a wave's outstanding operations writes one of these registers.
    #[inline]
    pub fn is_free_of_writes_to(&self, wave: u32, summary: Summary, registers: &Registers) -> bool {
        let wave = &self.waves[wave as usize];
        !wave.writes.intersects(summary) || !self.intersects(wave, registers)
    }

    /// Returns whether an outstanding operation writes one of these registers.
    #[inline(never)]
    fn intersects(&self, wave: &Wave, registers: &Registers) -> bool {
        wave.pending.iter().any(|p| self.writes[p.at as usize].intersects(registers))
    }

    /// Returns the registers that an instruction reads or writes.
    pub fn touched(&self, index: usize) -> &Registers {
        &self.touched[index]
    }

    /// Returns the registers that an instruction's operation writes.
    pub fn written(&self, index: usize) -> &Registers {
        &self.writes[index]
    }

    /// Returns the counters of an instruction's operation.
    pub fn issued(&self, index: usize) -> Counters {
        self.summaries[index].issue.map_or(Counters::default(), |issue| issue.counters)
    }

    /// Returns whether the instruction issues an operation, or waits for all counters.
    #[inline]
    pub fn must_observe(&self, index: usize) -> bool {
        let summary = &self.summaries[index];
        summary.issue.is_some() || summary.idle
    }

    /// Sets the epoch before which completed accesses must be reported to the race check.
    #[inline]
    pub fn set_release_epoch(&mut self, wave: u32, epoch: u32) {
        self.waves[wave as usize].release_epoch = epoch;
    }

    /// Returns whether an outstanding operation of a wave may access LDS.
    #[inline]
    pub fn may_access_lds(&self, wave: u32) -> bool {
        self.waves[wave as usize].outstanding().any(|p| p.lds)
    }

    /// The wave has ended.
    pub fn end(&mut self, step: &Step<'_>) {
        self.waves[step.wave.id as usize].clear(0);
    }

    /// Returns the PCs of a wave's operations that a counter counts, oldest first.
    pub fn outstanding(&self, wave: u32, counter: Counter) -> Vec<u64> {
        let pending = self.waves.get(wave as usize).into_iter().flat_map(Wave::outstanding);
        pending.filter(|p| p.counters.contains(counter)).map(|p| p.pc as u64).collect()
    }

    /// Returns whether an access, identified as in the race check, may be incomplete.
    pub fn is_outstanding(&self, wave: u32, epoch: u32, pc: u32) -> bool {
        let wave = &self.waves[wave as usize];
        // Most accesses are older than everything outstanding.
        let older = |first: Option<&Pending>| {
            first.is_none_or(|p| p.access.is_some_and(|access| epoch < access.epoch))
        };
        if older(wave.pending.first()) && older(wave.stores.front()) {
            return false;
        }
        let is = |a: IssuedAccess| a.epoch == epoch && a.pc == pc;
        wave.outstanding().any(|p| p.access.is_some_and(is))
    }

    /// Returns whether [`Scoreboard::take_retired`] has accesses to return.
    #[inline]
    pub fn has_retired(&self, wave: u32) -> bool {
        !self.waves[wave as usize].retired.is_empty()
    }

    /// Passes the accesses that have completed since the last call to `f`.
    #[inline]
    pub fn take_retired(&mut self, wave: u32, mut f: impl FnMut(IssuedAccess)) {
        let retired = &mut self.waves[wave as usize].retired;
        retired.iter().for_each(|access| f(*access));
        retired.clear();
    }

    /// Returns the accesses that have not completed.
    pub fn outstanding_accesses(&self, wave: u32) -> impl Iterator<Item = IssuedAccess> {
        self.waves[wave as usize].outstanding().filter_map(|p| p.access)
    }

    /// Returns the waits that complete an instruction's operation.
    pub fn wait_for(&self, index: usize) -> String {
        let counters = self.summaries[index].issue.iter().flat_map(|issue| issue.counters.iter());
        counters.map(|counter| wait_instruction(counter, 0)).collect::<Vec<_>>().join("` and `")
    }

    /// Returns whether an outstanding operation of the wave writes a register that an instruction uses.
    #[inline]
    pub fn uses_outstanding(&self, wave: u32, index: usize) -> bool {
        let wave = &self.waves[wave as usize];
        wave.writes.intersects(self.summaries[index].touched) && self.intersects(wave, &self.touched[index])
    }

    /// Reports registers that the instruction uses and an outstanding operation writes, and retires those
    /// operations.
    #[cold]
    fn report_outstanding(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let wave = &mut self.waves[step.wave.id as usize];
        let issue = self.summaries[step.index].issue;
        for (used, write) in
            effects.reads.iter().map(|u| (u, false)).chain(effects.writes.iter().map(|u| (u, true)))
        {
            let start = used.start(step.wave);
            let set = |bits| {
                let mut registers = Registers::default();
                registers.insert(used.file, start, used.count, bits);
                registers
            };
            // A use of one half of a register conflicts with a write of the other half only if it writes back
            // the whole register.
            let touched = if write { registers::touched_bits(effects, used, self.facts) } else { used.bits };
            let (exact, touched) = (set(used.bits), set(touched));
            // Operations that return in order also write in order.
            let in_order = |p: &Pending| {
                issue.is_some_and(|new| match (new.order, p.order) {
                    (Order::Unordered, _) => false,
                    // After a wait for one of its counters, FLAT returns as operations of the other.
                    (Order::Vector | Order::Lds, Order::Both) => new.counters.is_superset(p.counters),
                    (new, pending) => new == pending,
                })
            };
            let intersects = |p: &Pending| self.writes[p.at as usize].intersects(&touched);
            // The youngest such operation: a wait for it also completes the others.
            let hit = wave.pending.iter().rposition(|p| intersects(p) && !(write && in_order(p)));
            let Some(at) = hit else { continue };
            let conflict = match write {
                false => Conflict::Read,
                true if self.writes[wave.pending[at].at as usize].intersects(&exact) => Conflict::Write,
                true => Conflict::OtherHalf,
            };
            wave.report_use(step, used, start, conflict, at, report);
            wave.retire(|n, p| n <= at && intersects(p));
        }
    }

    /// Issues the instruction's operation, and applies its waits.
    #[inline]
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let summary = &self.summaries[step.index];
        let wave = &mut self.waves[step.wave.id as usize];
        if let Some(Issue { counters, order, lds }) = summary.issue {
            let (at, pc) = (step.index as u32, step.pc as u32);
            wave.push(Pending { at, pc, counters, order, lds, writes: summary.writes, access: None });
        }
        for (bi, n) in done.calls {
            if let Some(counter) = Counter::of(*bi) {
                wave.wait(counter, *n as usize);
            }
        }
        if summary.idle {
            wave.retire(|_, _| true);
            wave.retire_stores(0);
        }
    }

    /// Returns whether the instruction issues an operation other than FLAT.
    pub fn issues_ordered(&self, index: usize) -> bool {
        self.summaries[index].issue.is_some_and(|issue| issue.order != Order::Both)
    }

    /// Issues the operation of an instruction without waits; `access` identifies it in the race check.
    #[inline]
    pub fn issue(&mut self, wave: u32, index: usize, pc: u64, access: IssuedAccess) {
        let summary = &self.summaries[index];
        if let Some(Issue { counters, order, lds }) = summary.issue {
            let (at, pc, writes) = (index as u32, pc as u32, summary.writes);
            let access = Some(access);
            self.waves[wave as usize].push(Pending { at, pc, counters, order, lds, writes, access });
        }
    }

    /// Applies waits until at most the given number of operations of each counter are outstanding.
    #[inline]
    pub fn wait(&mut self, wave: u32, waits: &[(Counter, u32)]) {
        let wave = &mut self.waves[wave as usize];
        waits.iter().for_each(|(counter, n)| wave.wait(*counter, *n as usize));
    }

    /// Sets the access of the operation just issued.
    pub fn stamp(&mut self, wave: u32, access: IssuedAccess) {
        let wave = &mut self.waves[wave as usize];
        let last = if wave.last_is_store { wave.stores.back_mut() } else { wave.pending.last_mut() };
        if let Some(last) = last {
            last.access = Some(access);
        }
    }
}
