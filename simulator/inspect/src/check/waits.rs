//! `waits`: registers used while a memory operation that writes them is outstanding. A scoreboard a wave.
//!
//! Every operation that returns later counts in one or two counters, as the manuals have it (RDNA 3 and 3.5: VMCNT, VSCNT, LGKMCNT;
//! CDNA: VMCNT, LGKMCNT; RDNA 4: LOADCNT, STORECNT, DSCNT, KMCNT). A wait for N lets at most N operations of the counter be outstanding: the oldest are then
//! complete if the operations return in order (vector memory, LDS), none counts as complete before N = 0 if they do not (scalar
//! memory). FLAT counts as vector memory and as LDS, and takes its place in both orders (as LLVM's waits assume). The registers of an incomplete operation may be neither read nor written.
//!
//! Sources of stores need no wait: from RDNA 1 on the hardware keeps them until they are read. Without this check results arrive at
//! once, and a kernel that lacks a wait works in the simulator and fails on the machine.

use super::Check;
use super::report::{Finding, Report, Site};
use isa_spec::pcode::builtins::Control;
use std::collections::VecDeque;
use wavesim_asm::dialect::advice;
use wavesim_engine::observe::{Done, Step};
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{Class, Effects, File, Use, register_name};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::ALL_VGPRS;

/// Operations that a counter can count: it has six bits, and the hardware waits before it issues more.
const MOST: usize = 64;

/// What an outstanding operation is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// VMCNT: vector loads and atomics that return (RDNA 3 and 3.5).
    Vm,
    /// VSCNT: vector stores and atomics that do not return (RDNA 3 and 3.5).
    Vs,
    /// LGKMCNT: LDS, scalar memory and messages (RDNA 3 and 3.5).
    Lgkm,
    /// LOADCNT: vector loads and atomics that return (RDNA 4).
    Load,
    /// STORECNT: vector stores and atomics that do not return (RDNA 4).
    Store,
    /// DSCNT: LDS (RDNA 4).
    Ds,
    /// KMCNT: scalar memory and messages (RDNA 4).
    Km,
}

impl Counter {
    const ALL: [Counter; 7] =
        [Counter::Vm, Counter::Vs, Counter::Lgkm, Counter::Load, Counter::Store, Counter::Ds, Counter::Km];

    /// Those that an architecture has.
    pub fn of_arch(arch: Arch) -> &'static [Counter] {
        match arch {
            Arch::Rdna4 => &[Counter::Load, Counter::Store, Counter::Ds, Counter::Km],
            // One for loads and stores.
            Arch::Cdna3 | Arch::Cdna4 => &[Counter::Vm, Counter::Lgkm],
            _ => &[Counter::Vm, Counter::Vs, Counter::Lgkm],
        }
    }

    /// The counter's name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Vm => "vmcnt",
            Counter::Vs => "vscnt",
            Counter::Lgkm => "lgkmcnt",
            Counter::Load => "loadcnt",
            Counter::Store => "storecnt",
            Counter::Ds => "dscnt",
            Counter::Km => "kmcnt",
        }
    }

    /// The instruction that waits until at most `n` are outstanding.
    fn wait(self, n: usize) -> String {
        advice::wait(self.name(), n)
    }

    /// What a builtin waits for.
    pub fn of(bi: Control) -> Option<Counter> {
        Some(match bi {
            Control::WaitVmcnt => Counter::Vm,
            Control::WaitVscnt => Counter::Vs,
            Control::WaitLgkmcnt => Counter::Lgkm,
            Control::WaitLoadcnt => Counter::Load,
            Control::WaitStorecnt => Counter::Store,
            Control::WaitDscnt => Counter::Ds,
            Control::WaitKmcnt => Counter::Km,
            // Of exports, images and the vector unit nothing is tracked; `WaitIdle` waits for all counters.
            Control::WaitExpcnt
            | Control::WaitSamplecnt
            | Control::WaitBvhcnt
            | Control::WaitIdle
            | Control::WaitAlu
            | Control::Nop
            | Control::EndPgm
            | Control::Illegal
            | Control::Trap
            | Control::Halt
            | Control::SendMsg
            | Control::SendMsgRtn
            | Control::InvalidateCaches
            | Control::WriteBackCaches
            | Control::Barrier
            | Control::BarrierSignal
            | Control::BarrierSignalIsFirst
            | Control::BarrierWait
            | Control::BarrierLeave
            | Control::BarrierInit
            | Control::BarrierJoin
            | Control::BarrierState
            | Control::GetReg
            | Control::SetReg
            | Control::GwsUnsupported => return None,
        })
    }
}

/// The one or two counters that an operation counts in, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters(u8);

impl Counters {
    fn one(counter: Counter) -> Counters {
        Counters(1 << counter as u8)
    }

    fn with(self, counter: Counter) -> Counters {
        Counters(self.0 | 1 << counter as u8)
    }

    fn contains(self, counter: Counter) -> bool {
        self.0 >> counter as u8 & 1 == 1
    }

    fn remove(&mut self, counter: Counter) {
        self.0 &= !(1 << counter as u8);
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn iter(self) -> impl Iterator<Item = Counter> {
        Counter::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}

/// What an instruction issues.
#[derive(Clone, Copy)]
struct Issue {
    counters: Counters,
    order: Order,
    writes: Registers,
}

/// A set of VGPRs and SGPRs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Accumulation VGPRs follow the others.
    vgprs: [u64; ALL_VGPRS / 64],
    sgprs: u128,
}

impl Registers {
    /// All that an instruction reads or writes. Relative addressing may reach any VGPR or SGPR.
    pub fn of(effects: &Effects) -> Registers {
        let mut out = Registers::default();
        for used in effects.reads.iter().chain(&effects.writes) {
            match used.relative {
                None => out.insert(used.file, used.first, used.count),
                Some(_) => out = Registers { vgprs: [u64::MAX; ALL_VGPRS / 64], sgprs: u128::MAX },
            }
        }
        out
    }

    fn insert(&mut self, file: File, start: u16, count: u16) {
        match file {
            File::Sgpr => self.sgprs |= bits(start, count),
            File::Vgpr => {
                for r in start..(start + count).min(ALL_VGPRS as u16) {
                    self.vgprs[(r / 64) as usize] |= 1 << (r % 64);
                }
            }
            File::Scc => {}
        }
    }

    /// Adds those of another set.
    #[inline]
    pub fn join(&mut self, other: &Registers) {
        for (a, b) in self.vgprs.iter_mut().zip(other.vgprs) {
            *a |= b;
        }
        self.sgprs |= other.sgprs;
    }

    #[inline]
    fn meets(&self, other: &Registers) -> bool {
        // Without a branch a word.
        let vgprs = self.vgprs.iter().zip(other.vgprs).fold(0, |all, (a, b)| all | a & b);
        vgprs != 0 || self.sgprs & other.sgprs != 0
    }
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
    pc: u64,
    counters: Counters,
    order: Order,
    writes: Registers,
    /// An access to memory that waves share, as the race check knows it: others may meet it until it is complete.
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

#[derive(Default)]
struct Wave {
    /// Oldest first.
    pending: Vec<Pending>,
    /// Those that only the counter of stores counts, unless `mixed`: a wave may never wait for them.
    stores: VecDeque<Pending>,
    /// Stores are among `pending`, as FLAT ones, which two counters count, are in order with them.
    mixed: bool,
    /// The youngest one is in `stores`.
    stored_last: bool,
    /// Registers that some outstanding operation writes: compared first.
    writes: Registers,
    /// Accesses that are complete, for the race check to take.
    retired: Vec<Retired>,
}

/// What is outstanding in the waves of a workgroup.
#[derive(Default)]
pub struct Group(Vec<Wave>);

/// Outstanding operations of every wave of the workgroup, and what each instruction issues and touches.
pub struct Scoreboard {
    waves: Vec<Wave>,
    /// By instruction: what it issues.
    issues: Vec<Option<Issue>>,
    /// By instruction: what it reads or writes.
    touched: Vec<Registers>,
    /// By instruction: waits for everything.
    idle: Vec<bool>,
}

impl Scoreboard {
    /// What each instruction issues and touches; `effects` are theirs.
    pub fn new(program: &Program, effects: &[Effects]) -> Scoreboard {
        let issues = effects.iter().map(|e| issue(program.arch, e));
        Scoreboard {
            waves: Vec::new(),
            issues: issues.collect(),
            touched: effects.iter().map(Registers::of).collect(),
            idle: effects.iter().map(|e| e.calls.contains(&Control::WaitIdle)).collect(),
        }
    }

    /// Whether nothing of a wave is outstanding.
    #[inline]
    pub fn is_idle(&self, wave: u32) -> bool {
        let wave = &self.waves[wave as usize];
        wave.pending.is_empty() && wave.stores.is_empty()
    }

    /// Whether a wave has nothing outstanding that writes one of these.
    #[inline]
    pub fn is_clear_of(&self, wave: u32, registers: &Registers) -> bool {
        !self.waves[wave as usize].writes.meets(registers)
    }

    /// What an instruction reads or writes.
    #[inline]
    pub fn touched(&self, index: usize) -> &Registers {
        &self.touched[index]
    }

    /// Whether the instruction issues something, or waits for everything.
    #[inline]
    pub fn must_observe(&self, index: usize) -> bool {
        self.issues[index].is_some() || self.idle[index]
    }

    /// A workgroup of so many waves begins, with nothing outstanding.
    pub fn start(&mut self, waves: usize) {
        self.waves.clear();
        self.waves.resize_with(waves, Wave::default);
    }

    /// Exchanges the workgroup that it follows.
    pub fn swap(&mut self, group: &mut Group) {
        std::mem::swap(&mut self.waves, &mut group.0);
    }

    pub fn end(&mut self, step: &Step<'_>) {
        self.waves[step.wave.id as usize] = Wave::default();
    }

    /// PCs of a wave's operations that a counter counts, oldest first.
    pub fn outstanding(&self, wave: u32, counter: Counter) -> Vec<u64> {
        let pending = self.waves.get(wave as usize).into_iter().flat_map(Wave::all);
        pending.filter(|p| p.counters.contains(counter)).map(|p| p.pc).collect()
    }

    /// Whether an access of the race check may be incomplete.
    pub fn is_outstanding(&self, wave: u32, epoch: u32, pc: u32) -> bool {
        let is = |a: Retired| a.epoch == epoch && a.pc == pc;
        self.waves[wave as usize].all().any(|p| p.access.is_some_and(is))
    }

    /// Whether accesses are complete that [`Scoreboard::take_retired`] has not given yet.
    #[inline]
    pub fn has_retired(&self, wave: u32) -> bool {
        !self.waves[wave as usize].retired.is_empty()
    }

    /// Accesses that are complete since the last call.
    pub fn take_retired(&mut self, wave: u32) -> impl Iterator<Item = Retired> {
        self.waves[wave as usize].retired.drain(..)
    }

    /// Accesses that are not complete.
    pub fn outstanding_accesses(&self, wave: u32) -> impl Iterator<Item = Retired> {
        self.waves[wave as usize].all().filter_map(|p| p.access)
    }

    /// The waits that complete all that an instruction issues.
    pub fn wait_for(&self, index: usize) -> String {
        let counters = self.issues[index].iter().flat_map(|issue| issue.counters.iter());
        counters.map(|counter| counter.wait(0)).collect::<Vec<_>>().join("` and `")
    }

    /// Whether an outstanding operation of the wave writes a register that an instruction uses.
    #[inline]
    pub fn is_early(&self, wave: u32, index: usize) -> bool {
        self.waves[wave as usize].writes.meets(&self.touched[index])
    }

    /// Reports registers that an outstanding operation writes and the instruction uses, and takes these operations for complete.
    #[cold]
    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let wave = &mut self.waves[step.wave.id as usize];
        let order = self.issues[step.index].as_ref().map(|issue| issue.order);
        for (used, write) in
            effects.reads.iter().map(|u| (u, false)).chain(effects.writes.iter().map(|u| (u, true)))
        {
            let start = used.start(step.wave);
            let mut registers = Registers::default();
            registers.insert(used.file, start, used.count);
            // Operations that return in order write in order.
            let in_order = |p: &Pending| order == Some(p.order) && p.order != Order::Any;
            let meets = |p: &Pending| p.writes.meets(&registers);
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
        let idle = self.idle[step.index];
        let wave = &mut self.waves[step.wave.id as usize];
        if let Some(Issue { counters, order, writes }) = self.issues[step.index] {
            wave.push(Pending { pc: step.pc, counters, order, writes, access: None });
        }
        for (bi, n) in done.calls {
            if let Some(counter) = Counter::of(*bi) {
                wave.wait(counter, *n as usize);
            }
        }
        if idle {
            wave.retire(|_, _| true);
            wave.retire_stores(0);
        }
    }

    /// The race check knows the operation just issued as this access.
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
    // No memory instruction has relative registers.
    let mut writes = Registers::default();
    effects.writes.iter().for_each(|w| writes.insert(w.file, w.first, w.count));
    Some(Issue { counters, order, writes })
}

fn bits(start: u16, count: u16) -> u128 {
    let all = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    all << (start & 127)
}

impl Wave {
    /// Outstanding operations: those of each counter oldest first.
    fn all(&self) -> impl Iterator<Item = &Pending> {
        self.pending.iter().chain(&self.stores)
    }

    #[inline]
    fn push(&mut self, pending: Pending) {
        let store = pending.counters.contains(Counter::Vs) || pending.counters.contains(Counter::Store);
        let only = store && pending.order == Order::Vector;
        if store && !only && !self.mixed {
            self.mixed = true;
            self.pending.extend(self.stores.drain(..));
        }
        self.stored_last = only && !self.mixed;
        if self.stored_last {
            self.stores.push_back(pending);
            self.retire_stores(MOST);
            return;
        }
        self.writes.join(&pending.writes);
        self.pending.push(pending);
        // Of two counters.
        if self.pending.len() > 2 * MOST {
            self.retire(|n, _| n == 0);
        }
    }

    /// Retires stores, but for the youngest.
    #[inline]
    fn retire_stores(&mut self, left: usize) {
        while self.stores.len() > left {
            self.retired.extend(self.stores.pop_front().and_then(|p| p.access));
        }
    }

    /// Retires what is complete; the predicate gets the position.
    #[inline]
    fn retire(&mut self, mut complete: impl FnMut(usize, &Pending) -> bool) {
        let mut kept = 0;
        let mut writes = Registers::default();
        for at in 0..self.pending.len() {
            let p = self.pending[at];
            if complete(at, &p) {
                self.retired.extend(p.access);
                continue;
            }
            writes.join(&p.writes);
            if kept != at {
                self.pending[kept] = p;
            }
            kept += 1;
        }
        self.pending.truncate(kept);
        self.mixed &= kept > 0;
        self.writes = writes;
    }

    /// At most `n` operations of the counter are outstanding now.
    fn wait(&mut self, counter: Counter, n: usize) {
        if matches!(counter, Counter::Vs | Counter::Store) {
            self.retire_stores(n);
        }
        if self.pending.len() <= n {
            return;
        }
        if n == 0 {
            let (mut any, mut complete) = (false, true);
            for p in &mut self.pending {
                any |= p.counters.contains(counter);
                p.counters.remove(counter);
                complete &= p.counters.is_empty();
            }
            if !any {
                return;
            }
            if complete {
                self.retired.extend(self.pending.drain(..).filter_map(|p| p.access));
                self.writes = Registers::default();
                self.mixed = false;
                return;
            }
        } else {
            // Of each kind that returns in order, all but the youngest `n` are back.
            for order in [Order::Vector, Order::Lds] {
                let of = |p: &Pending| {
                    (p.order == order || p.order == Order::Both) && p.counters.contains(counter)
                };
                let total = self.pending.iter().filter(|p| of(p)).count();
                let mut back = total.saturating_sub(n);
                for p in self.pending.iter_mut().filter(|p| of(p)) {
                    if back == 0 {
                        break;
                    }
                    back -= 1;
                    p.counters.remove(counter);
                }
            }
        }
        self.retire(|_, p| p.counters.is_empty());
    }

    fn report_use(
        &self,
        step: &Step<'_>,
        used: &Use,
        start: u16,
        write: bool,
        at: usize,
        report: &mut Report,
    ) {
        let p = &self.pending[at];
        let kind = if write { "overwritten before its wait" } else { "missing wait" };
        if !report.is_new(Check::Waits, kind, step.pc, Some(p.pc)) {
            return;
        }
        let name = register_name(step.program.arch, used.file, start, used.count);
        let message = if write {
            format!(
                "{name} is written while an operation that writes it has not been waited for: which of the two comes last is open"
            )
        } else {
            format!("{name} is read before the operation that writes it has been waited for")
        };
        let waits: Vec<String> = p.counters.iter().map(|c| self.needed(c, at)).collect();
        let site = Site::new(step, None);
        let hint = format!("`{}` is needed before {}", waits.join("` and `"), step.program.place(step.pc));
        let issued = Site::at(step, p.pc, step.wave.workgroup, step.wave.id);
        report.add(Finding::new(Check::Waits, kind, message, site).other("issued by", issued).hint(hint));
    }

    /// The weakest wait that completes the operation at a place.
    fn needed(&self, counter: Counter, at: usize) -> String {
        let younger = self.pending.iter().skip(at + 1).filter(|p| p.counters.contains(counter));
        let mixed = self.pending.iter().any(|p| p.counters.contains(counter) && p.order == Order::Any);
        counter.wait(if mixed { 0 } else { younger.count() })
    }
}
