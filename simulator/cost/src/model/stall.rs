//! Why waves do not issue, and what each instruction has cost.

use super::code::Code;
use crate::data::UnitKind;
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::effects::Class;

/// Why a wave does not issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// It does.
    None,
    /// The instruction is not in the cache of the processor.
    Fetch,
    /// A result of arithmetic is not available.
    Dependency,
    /// A wait for vector memory loads.
    Memory,
    /// A wait for stores.
    Store,
    /// A wait for LDS.
    Lds,
    /// A wait for scalar memory.
    Scalar,
    /// A wait at a barrier.
    Barrier,
    /// The unit is busy.
    Unit(UnitKind),
    /// The processor has as many lines outstanding as it can.
    Outstanding,
    /// A taken branch.
    Branch,
}

impl Stall {
    /// The reasons in the order of tables; units are together.
    pub const NAMES: [&'static str; 10] = [
        "memory",
        "store",
        "LDS",
        "scalar",
        "barrier",
        "dependency",
        "unit busy",
        "outstanding",
        "branch",
        "fetch",
    ];

    /// Returns the position in [`Stall::NAMES`].
    pub fn index(self) -> Option<usize> {
        Some(match self {
            Stall::None => return None,
            Stall::Memory => 0,
            Stall::Store => 1,
            Stall::Lds => 2,
            Stall::Scalar => 3,
            Stall::Barrier => 4,
            Stall::Dependency => 5,
            Stall::Unit(_) => 6,
            Stall::Outstanding => 7,
            Stall::Branch => 8,
            Stall::Fetch => 9,
        })
    }

    /// Returns the reason of a wait for a counter. Where LDS and scalar memory share one, the program tells which of
    /// them the instruction before the wait belongs to.
    pub fn of_counter(counter: Counter, code: &Code, wait: u32) -> Stall {
        match counter {
            Counter::Vm
            | Counter::Load
            | Counter::Sample
            | Counter::Bvh
            | Counter::Async
            | Counter::Tensor => Stall::Memory,
            Counter::Vs | Counter::Store => Stall::Store,
            Counter::Ds => Stall::Lds,
            Counter::Km => Stall::Scalar,
            Counter::Lgkm => {
                let before = code.insts[..wait as usize].iter().rev().map(|inst| inst.group);
                match before.clone().find(|group| matches!(group, Class::Lds | Class::Smem)) {
                    Some(Class::Lds) => Stall::Lds,
                    _ => Stall::Scalar,
                }
            }
        }
    }
}

/// What an instruction has cost, over all waves that were simulated. Times are in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Executions.
    pub executed: u64,
    /// Active lanes of all executions.
    pub lanes: u64,
    /// Lines of memory.
    pub lines: u64,
    /// Executions that accessed memory.
    pub memory: u64,
    /// Passes of LDS.
    pub passes: u64,
    /// Ticks of issue.
    pub issue: u64,
    /// Ticks of stalls by reason, in the order of [`Stall::NAMES`].
    pub stalls: [u64; Stall::NAMES.len()],
}

impl Counts {
    /// Adds a stall.
    pub fn add_stall(&mut self, stall: Stall, ticks: u64) {
        if let Some(index) = stall.index() {
            self.stalls[index] += ticks;
        }
    }

    /// Returns the ticks of all stalls.
    pub fn stalled(&self) -> u64 {
        self.stalls.iter().sum()
    }
}

/// By recorded part of a workgroup's run: the ticks that its waves took, in all.
#[derive(Debug, Clone, Default)]
pub struct WindowTicks(pub Vec<u64>);

/// A part of a wave's time in which it did not issue.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// The processor.
    pub processor: usize,
    /// The SIMD.
    pub simd: usize,
    /// The number of the wave, in order of starts.
    pub wave: usize,
    /// Begin, in ticks.
    pub from: u64,
    /// End, in ticks.
    pub to: u64,
    /// The instruction that could not issue.
    pub inst: u32,
    /// Why.
    pub stall: Stall,
}
