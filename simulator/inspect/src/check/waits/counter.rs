//! The counters of outstanding memory operations.

use isa_spec::pcode::builtins::Control;
use wavesim_asm::dialect::advice;
use wavesim_isa::arch::Arch;

/// A counter of outstanding operations.
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

    /// Returns the counters of an architecture.
    pub fn of_arch(arch: Arch) -> &'static [Counter] {
        match arch {
            Arch::Rdna4 => &[Counter::Load, Counter::Store, Counter::Ds, Counter::Km],
            // One counter for loads and stores.
            Arch::Cdna3 | Arch::Cdna4 => &[Counter::Vm, Counter::Lgkm],
            _ => &[Counter::Vm, Counter::Vs, Counter::Lgkm],
        }
    }

    /// Returns the counter's name in listings.
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

    /// Returns the instruction that waits until at most `n` operations are outstanding.
    pub(super) fn wait(self, n: usize) -> String {
        advice::wait_instruction(self.name(), n)
    }

    /// Returns the counter that a builtin waits for.
    pub fn of(bi: Control) -> Option<Counter> {
        Some(match bi {
            Control::WaitVmcnt => Counter::Vm,
            Control::WaitVscnt => Counter::Vs,
            Control::WaitLgkmcnt => Counter::Lgkm,
            Control::WaitLoadcnt => Counter::Load,
            Control::WaitStorecnt => Counter::Store,
            Control::WaitDscnt => Counter::Ds,
            Control::WaitKmcnt => Counter::Km,
            // Exports, images and the vector ALU are not tracked; `WaitIdle` waits for all counters.
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

/// A set of counters. An operation is counted in one or two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters(u8);

impl Counters {
    pub(super) fn one(counter: Counter) -> Counters {
        Counters(1 << counter as u8)
    }

    pub(super) fn with(self, counter: Counter) -> Counters {
        Counters(self.0 | 1 << counter as u8)
    }

    /// Returns the counters that have nothing outstanding after these waits.
    pub fn drained_by(waits: &[(Counter, u32)]) -> Counters {
        Counters(waits.iter().filter(|wait| wait.1 == 0).fold(0, |all, wait| all | 1 << wait.0 as u8))
    }

    /// Returns whether the set is a superset of another.
    pub fn is_superset(self, others: Counters) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns the union of two sets.
    pub fn union(self, others: Counters) -> Counters {
        Counters(self.0 | others.0)
    }

    pub(super) fn contains(self, counter: Counter) -> bool {
        self.0 >> counter as u8 & 1 == 1
    }

    pub(super) fn remove(&mut self, counter: Counter) {
        self.0 &= !(1 << counter as u8);
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Counter> {
        Counter::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}
