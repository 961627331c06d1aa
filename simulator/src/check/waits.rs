//! `waits`: registers used while a memory operation that writes them is still under way.
//!
//! Every operation that returns later counts in one or two counters, as the manuals have it (RDNA 3 and 3.5: VMCNT, VSCNT, LGKMCNT;
//! RDNA 4: LOADCNT, STORECNT, DSCNT, KMCNT). A wait for N lets at most N operations of the counter be outstanding: the oldest are then
//! complete if the operations return in order (vector memory, LDS), none is known to be complete before N = 0 if they do not (scalar
//! memory). FLAT counts as vector memory and as LDS, and takes its place in both orders (as LLVM's waits assume). The registers of an incomplete operation may be neither read nor written.
//!
//! Sources of stores need no wait: from RDNA 1 on the hardware keeps them until they are read. Without this check results arrive at
//! once, and a kernel that lacks a wait works in the simulator and fails on the machine.

use super::Check;
use super::report::{Finding, Report, Site};
use crate::arch::Arch;
use crate::exec::effects::{Class, Effects, File, Use, register_name};
use crate::exec::observe::{Done, Step};
use crate::exec::program::Program;
use isa_spec::pcode::builtins::Bi;
use std::collections::VecDeque;

/// What an outstanding operation is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counter {
    Vm,
    Vs,
    Lgkm,
    Load,
    Store,
    Ds,
    Km,
}

impl Counter {
    /// The instruction that waits until at most `n` are outstanding.
    fn wait(self, n: usize) -> String {
        match self {
            Counter::Vm => format!("s_waitcnt vmcnt({n})"),
            Counter::Vs => format!("s_waitcnt_vscnt null, 0x{n:x}"),
            Counter::Lgkm => format!("s_waitcnt lgkmcnt({n})"),
            Counter::Load => format!("s_wait_loadcnt 0x{n:x}"),
            Counter::Store => format!("s_wait_storecnt 0x{n:x}"),
            Counter::Ds => format!("s_wait_dscnt 0x{n:x}"),
            Counter::Km => format!("s_wait_kmcnt 0x{n:x}"),
        }
    }

    fn of(bi: Bi) -> Option<Counter> {
        Some(match bi {
            Bi::WaitVmcnt => Counter::Vm,
            Bi::WaitVscnt => Counter::Vs,
            Bi::WaitLgkmcnt => Counter::Lgkm,
            Bi::WaitLoadcnt => Counter::Load,
            Bi::WaitStorecnt => Counter::Store,
            Bi::WaitDscnt => Counter::Ds,
            Bi::WaitKmcnt => Counter::Km,
            _ => return None,
        })
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

struct Pending {
    pc: u64,
    counters: Vec<Counter>,
    order: Order,
    writes: Vec<(File, u16, u16)>,
    /// A store to LDS: others see it when it is complete. The value is the race check's time of it.
    lds_store: Option<u32>,
}

#[derive(Default)]
struct Wave {
    /// Oldest first.
    pending: VecDeque<Pending>,
    /// VGPRs and SGPRs that some pending operation writes: asked first.
    vgprs: [u64; 4],
    sgprs: u128,
}

/// Outstanding operations of every wave of the workgroup.
pub struct Shadow {
    waves: Vec<Wave>,
    arch: Arch,
    /// By instruction: waits for everything.
    idle: Vec<bool>,
    /// Invalidates or writes back caches.
    caches: Vec<Option<&'static str>>,
}

impl Shadow {
    pub fn new(program: &Program) -> Shadow {
        let table = program.arch.table();
        let all = program.insts.iter().map(|inst| inst.instruction(table));
        let cache = |i: &isa_spec::tables::Instruction| i.group == "VMEM" && i.subgroup == "NOT_ASSIGNED";
        Shadow {
            waves: Vec::new(),
            arch: program.arch,
            idle: all.clone().map(|i| i.name == "S_WAIT_IDLE").collect(),
            caches: all.map(|i| cache(i).then_some(i.name)).collect(),
        }
    }

    pub fn start(&mut self, waves: usize) {
        self.waves.clear();
        self.waves.resize_with(waves, Wave::default);
    }

    pub fn end(&mut self, step: &Step<'_>) {
        self.waves[step.wave.id as usize] = Wave::default();
    }

    /// Time of the oldest LDS store that is not known to be complete.
    pub fn oldest_lds_store(&self, wave: u32) -> Option<(u32, u64)> {
        self.waves[wave as usize].pending.iter().find_map(|p| Some((p.lds_store?, p.pc)))
    }

    pub fn before(&mut self, step: &Step<'_>, effects: &Effects, report: &mut Report) {
        let id = step.wave.id;
        let wave = &mut self.waves[id as usize];
        if wave.pending.is_empty() {
            return;
        }
        let order = self.order(step, effects);
        let wave = &mut self.waves[id as usize];
        for (used, write) in
            effects.reads.iter().map(|u| (u, false)).chain(effects.writes.iter().map(|u| (u, true)))
        {
            let start = used.start(step.wave);
            if !wave.touches(used.file, start, used.count) {
                continue;
            }
            let hit = wave.pending.iter().position(|p| p.overlaps(used.file, start, used.count));
            let Some(at) = hit else { continue };
            // Operations that return in order write in order.
            if write && order.is_some() && order == Some(wave.pending[at].order) && order != Some(Order::Any)
            {
                continue;
            }
            wave.tell(step, used, start, write, at, report);
            wave.complete(|n, _| n == at);
        }
    }

    pub fn after(&mut self, step: &Step<'_>, done: &Done<'_>, effects: &Effects) {
        let counters = self.counters(step, effects);
        let order = self.order(step, effects);
        let idle = self.idle[step.index];
        let wave = &mut self.waves[step.wave.id as usize];
        if let (false, Some(order)) = (counters.is_empty(), order) {
            let writes = effects
                .writes
                .iter()
                .filter(|w| w.file != File::Scc)
                .map(|w| (w.file, w.start(step.wave), w.count))
                .collect();
            wave.push(Pending { pc: step.pc, counters, order, writes, lds_store: None });
        }
        for (bi, n) in done.calls {
            if let Some(counter) = Counter::of(*bi) {
                wave.wait(counter, *n as usize);
            }
        }
        if idle {
            wave.complete(|_, _| true);
        }
    }

    /// The LDS store just issued happened at `time` of the race check.
    pub fn stamp_lds_store(&mut self, wave: u32, time: u32) {
        if let Some(last) = self.waves[wave as usize].pending.back_mut() {
            last.lds_store = Some(time);
        }
    }

    fn order(&self, step: &Step<'_>, effects: &Effects) -> Option<Order> {
        Some(match effects.class {
            Class::Vmem | Class::Scratch => Order::Vector,
            Class::Flat => Order::Both,
            Class::Smem => Order::Any,
            Class::Lds => Order::Lds,
            // Messages that answer.
            Class::Control if !effects.writes.is_empty() && is_message(step) => Order::Any,
            _ => return None,
        })
    }

    fn counters(&self, step: &Step<'_>, effects: &Effects) -> Vec<Counter> {
        use Counter::{Ds, Km, Lgkm, Load, Store, Vm, Vs};
        let new = self.arch == Arch::Rdna4;
        let (load, store, lds, scalar) = if new { (Load, Store, Ds, Km) } else { (Vm, Vs, Lgkm, Lgkm) };
        match effects.class {
            // Cache maintenance counts on RDNA 4: invalidation as a load, write-back as a store (RDNA4 manual, *Memory Scopes*).
            Class::Vmem if self.caches[step.index].is_some() => match self.caches[step.index] {
                Some("GLOBAL_INV") => vec![load],
                Some("GLOBAL_WB" | "GLOBAL_WBINV") => vec![store],
                _ => vec![],
            },
            Class::Vmem | Class::Scratch if effects.returns => vec![load],
            Class::Vmem | Class::Scratch => vec![store],
            Class::Flat if effects.returns => vec![load, lds],
            Class::Flat => vec![store, lds],
            Class::Lds => vec![lds],
            Class::Smem if effects.returns => vec![scalar],
            Class::Control if !effects.writes.is_empty() && is_message(step) => vec![scalar],
            _ => vec![],
        }
    }
}

fn is_message(step: &Step<'_>) -> bool {
    step.program.insts[step.index].instruction(step.program.arch.table()).group == "MESSAGE"
}

fn bits(start: u16, count: u16) -> u128 {
    let all = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    all << (start & 127)
}

impl Pending {
    fn overlaps(&self, file: File, start: u16, count: u16) -> bool {
        self.writes.iter().any(|w| w.0 == file && w.1 < start + count && start < w.1 + w.2)
    }
}

impl Wave {
    fn push(&mut self, pending: Pending) {
        for &(file, start, count) in &pending.writes {
            self.mark(file, start, count);
        }
        self.pending.push_back(pending);
    }

    fn mark(&mut self, file: File, start: u16, count: u16) {
        match file {
            File::Sgpr => self.sgprs |= bits(start, count),
            File::Vgpr => {
                for r in start..(start + count).min(256) {
                    self.vgprs[(r / 64) as usize] |= 1 << (r % 64);
                }
            }
            File::Scc => {}
        }
    }

    fn touches(&self, file: File, start: u16, count: u16) -> bool {
        match file {
            File::Sgpr => self.sgprs & bits(start, count) != 0,
            File::Vgpr => {
                (start..(start + count).min(256)).any(|r| self.vgprs[(r / 64) as usize] >> (r % 64) & 1 == 1)
            }
            File::Scc => false,
        }
    }

    /// Drops what is complete; the predicate gets the position.
    fn complete(&mut self, mut complete: impl FnMut(usize, &Pending) -> bool) {
        let mut at = 0;
        let before = self.pending.len();
        self.pending.retain(|p| {
            at += 1;
            !complete(at - 1, p)
        });
        if self.pending.len() == before {
            return;
        }
        (self.vgprs, self.sgprs) = ([0; 4], 0);
        let all: Vec<(File, u16, u16)> = self.pending.iter().flat_map(|p| p.writes.iter().copied()).collect();
        all.into_iter().for_each(|(file, start, count)| self.mark(file, start, count));
    }

    /// At most `n` operations of the counter are outstanding now.
    fn wait(&mut self, counter: Counter, n: usize) {
        let counted = self.pending.iter().filter(|p| p.counters.contains(&counter)).count();
        if counted <= n && n != 0 || counted == 0 {
            return;
        }
        if n == 0 {
            for p in &mut self.pending {
                p.counters.retain(|c| *c != counter);
            }
        } else {
            // Of each kind that returns in order, all but the youngest `n` are back.
            for order in [Order::Vector, Order::Lds] {
                let of = |p: &Pending| {
                    (p.order == order || p.order == Order::Both) && p.counters.contains(&counter)
                };
                let total = self.pending.iter().filter(|p| of(p)).count();
                let mut back = total.saturating_sub(n);
                for p in self.pending.iter_mut().filter(|p| of(p)) {
                    if back == 0 {
                        break;
                    }
                    back -= 1;
                    p.counters.retain(|c| *c != counter);
                }
            }
        }
        self.complete(|_, p| p.counters.is_empty());
    }

    fn tell(&self, step: &Step<'_>, used: &Use, start: u16, write: bool, at: usize, report: &mut Report) {
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
        let waits: Vec<String> = p.counters.iter().map(|c| self.needed(*c, at)).collect();
        let site = Site::new(step, None);
        let hint = format!("`{}` is needed before {}", waits.join("` and `"), step.program.place(step.pc));
        let issued = Site::at(step, p.pc, step.wave.workgroup, step.wave.id);
        report.add(Finding::new(Check::Waits, kind, message, site).other("issued by", issued).hint(hint));
    }

    /// The weakest wait that completes the operation at a place.
    fn needed(&self, counter: Counter, at: usize) -> String {
        let younger = self.pending.iter().skip(at + 1).filter(|p| p.counters.contains(&counter));
        let mixed = self.pending.iter().any(|p| p.counters.contains(&counter) && p.order == Order::Any);
        counter.wait(if mixed { 0 } else { younger.count() })
    }
}
