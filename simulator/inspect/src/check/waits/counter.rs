//! The counters of outstanding operations.

use isa_spec::pcode::builtins::Control;
use wavesim_asm::dialect::advice;
use wavesim_isa::arch::Arch;

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
    pub(super) fn wait(self, n: usize) -> String {
        advice::wait_instruction(self.name(), n)
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

/// Counters, a bit each: an operation counts in one or two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters(u8);

impl Counters {
    pub(super) fn one(counter: Counter) -> Counters {
        Counters(1 << counter as u8)
    }

    pub(super) fn with(self, counter: Counter) -> Counters {
        Counters(self.0 | 1 << counter as u8)
    }

    /// Those that waits leave with nothing outstanding.
    pub fn emptied(waits: &[(Counter, u32)]) -> Counters {
        Counters(waits.iter().filter(|wait| wait.1 == 0).fold(0, |all, wait| all | 1 << wait.0 as u8))
    }

    /// Whether all of others are among these.
    pub fn covers(self, others: Counters) -> bool {
        others.0 & !self.0 == 0
    }

    /// These and others.
    pub fn or(self, others: Counters) -> Counters {
        Counters(self.0 | others.0)
    }

    pub(super) fn contains(self, counter: Counter) -> bool {
        self.0 >> counter as u8 & 1 == 1
    }

    pub(super) fn remove(&mut self, counter: Counter) {
        self.0 &= !(1 << counter as u8);
    }

    /// Whether it is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Counter> {
        Counter::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}
