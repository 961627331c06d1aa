//! `waits`: registers used while a memory operation that writes them is outstanding. A scoreboard a wave.
//!
//! Every operation that returns later counts in one or two counters, as the manuals have it (RDNA 3 and 3.5: VMCNT, VSCNT, LGKMCNT;
//! CDNA: VMCNT, LGKMCNT; RDNA 4: LOADCNT, STORECNT, DSCNT, KMCNT). A wait for N lets at most N operations of the counter be outstanding: the oldest are then
//! complete if the operations return in order (vector memory, LDS), none counts as complete before N = 0 if they do not (scalar
//! memory). FLAT counts as vector memory and as LDS, and takes its place in both orders (as LLVM's waits assume). The registers of an incomplete operation may be neither read nor written.
//!
//! Sources of stores need no wait: from RDNA 1 on the hardware keeps them until they are read. Without this check results arrive at
//! once, and a kernel that lacks a wait works in the simulator and fails on the machine.

mod counter;
mod registers;
mod wave;

pub use counter::{Counter, Counters};
pub use registers::{Registers, Summary};

use super::report::Report;
use isa_spec::pcode::builtins::Control;
use wave::Wave;
use wavesim_engine::observe::{Done, Step};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{Class, Effects};
use wavesim_machine::exec::program::Program;

/// Operations that a counter can count: it has six bits, and the hardware waits before it issues more.
pub const MOST: usize = 64;

/// What an instruction issues.
#[derive(Clone, Copy)]
struct Issue {
    counters: Counters,
    order: Order,
}

/// What the scoreboard compares of an instruction, in one place because it is read each time.
#[derive(Clone, Copy)]
struct Brief {
    issue: Option<Issue>,
    /// Waits for everything.
    idle: bool,
    /// Of what it reads or writes.
    touched: Summary,
    /// Of what an operation that it issues writes.
    writes: Summary,
}

/// How operations of a kind come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// After those of the kind that were issued before.
    Vector,
    Lds,
    /// Among both of these: FLAT counts twice.
    Both,
    Any,
}

#[derive(Clone, Copy)]
struct Pending {
    /// Index of the instruction, and its byte offset.
    at: u32,
    pc: u32,
    counters: Counters,
    order: Order,
    writes: Summary,
    /// An access to memory that waves share, by its epoch in the race check: others may meet it until it is complete.
    access: Option<Retired>,
}

/// An access of a wave: its epoch and PC of the race check, and whether it is a store.
#[derive(Debug, Clone, Copy)]
pub struct Retired {
    /// The race check's epoch of the wave.
    pub epoch: u32,
    /// Byte offset of the instruction.
    pub pc: u32,
    /// Memory was written, perhaps beside being read.
    pub store: bool,
}

/// What is outstanding in the waves of a workgroup.
#[derive(Default)]
pub struct Group(Vec<Wave>);

/// Outstanding operations of every wave of the workgroup, and what each instruction issues and touches.
pub struct Scoreboard {
    waves: Vec<Wave>,
    /// By instruction.
    briefs: Vec<Brief>,
    /// By instruction: what it reads or writes.
    touched: Vec<Registers>,
    /// By instruction: what an operation that it issues writes.
    writes: Vec<Registers>,
}

impl Scoreboard {
    /// What each instruction issues and touches; `effects` are theirs.
    pub fn new(program: &Program, effects: &[Effects]) -> Scoreboard {
        let touched: Vec<Registers> = effects.iter().map(Registers::of).collect();
        let writes: Vec<Registers> = effects.iter().map(Registers::written).collect();
        let brief = |((e, touched), writes): ((&Effects, &Registers), &Registers)| {
            let idle = e.calls.contains(&Control::WaitIdle);
            let issue = issue(program.arch, e);
            Brief { issue, idle, touched: touched.summary(), writes: writes.summary() }
        };
        let briefs = effects.iter().zip(&touched).zip(&writes).map(brief).collect();
        Scoreboard { waves: Vec::new(), briefs, touched, writes }
    }

    /// Whether nothing of a wave is outstanding.
    #[inline]
    pub fn is_idle(&self, wave: u32) -> bool {
        let wave = &self.waves[wave as usize];
        wave.pending.is_empty() && wave.stores.is_empty()
    }

    /// Whether a wave has nothing outstanding that writes one of these.
    #[inline]
    pub fn is_clear_of(&self, wave: u32, summary: Summary, registers: &Registers) -> bool {
        let wave = &self.waves[wave as usize];
        !wave.writes.meets(summary) || !self.meets(wave, registers)
    }

    /// Whether an outstanding operation writes one of these registers.
    #[inline(never)]
    fn meets(&self, wave: &Wave, registers: &Registers) -> bool {
        wave.pending.iter().any(|p| self.writes[p.at as usize].meets(registers))
    }

    /// What an instruction reads or writes.
    pub fn touched(&self, index: usize) -> &Registers {
        &self.touched[index]
    }

    /// What an operation that an instruction issues writes.
    pub fn written(&self, index: usize) -> &Registers {
        &self.writes[index]
    }

    /// Counters of what an instruction issues.
    pub fn issued(&self, index: usize) -> Counters {
        self.briefs[index].issue.map_or(Counters::default(), |issue| issue.counters)
    }

    /// Whether the instruction issues something, or waits for everything.
    #[inline]
    pub fn must_observe(&self, index: usize) -> bool {
        let brief = &self.briefs[index];
        brief.issue.is_some() || brief.idle
    }

    /// A workgroup of so many waves begins, with nothing outstanding; `released` as for [`Scoreboard::release`].
    pub fn start(&mut self, waves: usize, released: u32) {
        self.waves.resize_with(waves, Wave::default);
        self.waves.iter_mut().for_each(|wave| wave.clear(released));
    }

    /// The race check wants to know when accesses are complete that are older than this epoch.
    #[inline]
    pub fn release(&mut self, wave: u32, released: u32) {
        self.waves[wave as usize].released = released;
    }

    /// Whether an outstanding operation of a wave may access LDS.
    #[inline]
    pub fn may_access_lds(&self, wave: u32) -> bool {
        self.waves[wave as usize].all().any(|p| matches!(p.order, Order::Lds | Order::Both))
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    pub fn end(&mut self, step: &Step<'_>) {
        self.waves[step.wave.id as usize].clear(0);
    }

    /// PCs of a wave's operations that a counter counts, oldest first.
    pub fn outstanding(&self, wave: u32, counter: Counter) -> Vec<u64> {
        let pending = self.waves.get(wave as usize).into_iter().flat_map(Wave::all);
        pending.filter(|p| p.counters.contains(counter)).map(|p| p.pc as u64).collect()
    }

    /// Whether an access of the race check may be incomplete.
    pub fn is_outstanding(&self, wave: u32, epoch: u32, pc: u32) -> bool {
        let wave = &self.waves[wave as usize];
        // Most are older than all that is outstanding.
        let older = |first: Option<&Pending>| {
            first.is_none_or(|p| p.access.is_some_and(|access| epoch < access.epoch))
        };
        if older(wave.pending.first()) && older(wave.stores.front()) {
            return false;
        }
        let is = |a: Retired| a.epoch == epoch && a.pc == pc;
        wave.all().any(|p| p.access.is_some_and(is))
    }

    /// Whether accesses are complete that [`Scoreboard::take_retired`] has not given yet.
    #[inline]
    pub fn has_retired(&self, wave: u32) -> bool {
        !self.waves[wave as usize].retired.is_empty()
    }

    /// Gives `f` the accesses that are complete since the last call.
    #[inline]
    pub fn take_retired(&mut self, wave: u32, mut f: impl FnMut(Retired)) {
        let retired = &mut self.waves[wave as usize].retired;
        retired.iter().for_each(|access| f(*access));
        retired.clear();
    }

    /// Accesses that are not complete.
    pub fn outstanding_accesses(&self, wave: u32) -> impl Iterator<Item = Retired> {
        self.waves[wave as usize].all().filter_map(|p| p.access)
    }

    /// The waits that complete all that an instruction issues.
    pub fn wait_for(&self, index: usize) -> String {
        let counters = self.briefs[index].issue.iter().flat_map(|issue| issue.counters.iter());
        counters.map(|counter| counter.wait(0)).collect::<Vec<_>>().join("` and `")
    }

    /// Whether an outstanding operation of the wave writes a register that an instruction uses.
    #[inline]
    pub fn is_early(&self, wave: u32, index: usize) -> bool {
        let wave = &self.waves[wave as usize];
        wave.writes.meets(self.briefs[index].touched) && self.meets(wave, &self.touched[index])
    }

    /// Reports registers that an outstanding operation writes and the instruction uses, and takes these operations for complete.
    #[cold]
    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let wave = &mut self.waves[step.wave.id as usize];
        let order = self.briefs[step.index].issue.map(|issue| issue.order);
        for (used, write) in
            effects.reads.iter().map(|u| (u, false)).chain(effects.writes.iter().map(|u| (u, true)))
        {
            let start = used.start(step.wave);
            let mut registers = Registers::default();
            registers.insert(used.file, start, used.count);
            // Operations that return in order write in order.
            let in_order = |p: &Pending| order == Some(p.order) && p.order != Order::Any;
            let meets = |p: &Pending| self.writes[p.at as usize].meets(&registers);
            // The youngest: a wait for it covers the others.
            let hit = wave.pending.iter().rposition(|p| meets(p) && !(write && in_order(p)));
            let Some(at) = hit else { continue };
            wave.report_use(step, used, start, write, at, report);
            wave.retire(|n, p| n <= at && meets(p));
        }
    }

    /// Takes in what the instruction issues, and what its waits complete.
    #[inline]
    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>) {
        let brief = &self.briefs[step.index];
        let wave = &mut self.waves[step.wave.id as usize];
        if let Some(Issue { counters, order }) = brief.issue {
            let (at, pc) = (step.index as u32, step.pc as u32);
            wave.push(Pending { at, pc, counters, order, writes: brief.writes, access: None });
        }
        for (bi, n) in done.calls {
            if let Some(counter) = Counter::of(*bi) {
                wave.wait(counter, *n as usize);
            }
        }
        if brief.idle {
            wave.retire(|_, _| true);
            wave.retire_stores(0);
        }
    }

    /// Whether the instruction issues something that is not FLAT.
    pub fn issues(&self, index: usize) -> bool {
        self.briefs[index].issue.is_some_and(|issue| issue.order != Order::Both)
    }

    /// Takes in what an instruction without waits issues; `access` has its epoch in the race check.
    #[inline]
    pub fn issue(&mut self, wave: u32, index: usize, pc: u64, access: Retired) {
        let brief = &self.briefs[index];
        if let Some(Issue { counters, order }) = brief.issue {
            let (at, pc, writes) = (index as u32, pc as u32, brief.writes);
            self.waves[wave as usize].push(Pending { at, pc, counters, order, writes, access: Some(access) });
        }
    }

    /// A wave waits until at most so many operations of counters are outstanding.
    #[inline]
    pub fn wait(&mut self, wave: u32, waits: &[(Counter, u32)]) {
        let wave = &mut self.waves[wave as usize];
        waits.iter().for_each(|(counter, n)| wave.wait(*counter, *n as usize));
    }

    /// The operation just issued has this epoch in the race check.
    pub fn stamp(&mut self, wave: u32, access: Retired) {
        let wave = &mut self.waves[wave as usize];
        let last = if wave.stored_last { wave.stores.back_mut() } else { wave.pending.last_mut() };
        if let Some(last) = last {
            last.access = Some(access);
        }
    }
}

/// What an instruction issues: its counters, and the order that it comes back in.
fn issue(arch: Arch, effects: &Effects) -> Option<Issue> {
    use Counter::{Ds, Km, Lgkm, Load, Store, Vm, Vs};
    let (load, store, lds, scalar) = match arch {
        Arch::Rdna4 => (Load, Store, Ds, Km),
        Arch::Cdna3 | Arch::Cdna4 => (Vm, Vm, Lgkm, Lgkm),
        Arch::Rdna3 | Arch::Rdna35 | Arch::RiscvGpu => (Vm, Vs, Lgkm, Lgkm),
    };
    let calls = |bi| effects.calls.contains(&bi);
    let one = Counters::one;
    // Cache maintenance counts on RDNA 4 (RDNA4 manual, *Memory Scopes*) and CDNA: invalidation as a load, write-back as a store.
    let counts = !matches!(arch, Arch::Rdna3 | Arch::Rdna35);
    let (order, counters) = match effects.class {
        Class::Vmem if counts && calls(Control::WriteBackCaches) => (Order::Vector, one(store)),
        Class::Vmem if counts && calls(Control::InvalidateCaches) => (Order::Vector, one(load)),
        // Uncounted elsewhere.
        Class::Vmem if calls(Control::InvalidateCaches) => return None,
        // Uncounted.
        Class::Vmem if calls(Control::Nop) => return None,
        Class::Vmem | Class::Scratch => (Order::Vector, one(if effects.returns { load } else { store })),
        Class::Flat => {
            let first = if effects.returns { load } else { store };
            (Order::Both, one(first).with(lds))
        }
        Class::Lds => (Order::Lds, one(lds)),
        Class::Smem if effects.returns => (Order::Any, one(scalar)),
        // Messages that answer.
        _ if calls(Control::SendMsgRtn) => (Order::Any, one(scalar)),
        _ => return None,
    };
    Some(Issue { counters, order })
}
