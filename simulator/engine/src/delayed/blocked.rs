//! What a wave's next instruction waits for, and which registers it shares with outstanding operations.

use super::pending::Pending;
use super::queue::Queue;
use super::{DelayedMemory, Inst};
use smallvec::SmallVec;
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::effects::Use;
use wavesim_machine::exec::issue::{self, Counters, Order, Outstanding};
use wavesim_machine::exec::program::Program;
use wavesim_machine::state::Wave;

/// What a wait looks at.
struct Counted {
    order: Order,
    counters: Counters,
    returned: bool,
}

impl Outstanding for Counted {
    fn order(&self) -> Order {
        self.order
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }
}

impl Queue {
    /// Returns whether these waits demand an operation that has not returned; without waits, whether there is one.
    fn demands(&self, waits: Option<&[(Counter, u32)]>) -> bool {
        let Some(waits) = waits else { return self.operations().iter().any(|p| !p.returned) };
        let mut counted: SmallVec<[Counted; 16]> = self
            .operations()
            .iter()
            .map(|p| Counted { order: p.order, counters: p.counters, returned: p.returned })
            .collect();
        for (counter, n) in waits {
            issue::apply_wait(&mut counted, *counter, *n as usize);
        }
        counted.iter().any(|c| c.counters.is_empty() && !c.returned)
    }

    /// Returns whether an instruction of the wave waits for an operation that has not returned.
    pub fn blocks(&self, model: &DelayedMemory, program: &Program, index: usize, wave: &Wave) -> bool {
        if self.is_empty() {
            return false;
        }
        match &model.insts[index] {
            Inst::Plain | Inst::Merge(_) | Inst::Invalidate(_) => false,
            Inst::Wait(waits) => self.demands(Some(waits)),
            Inst::ComputedWait => self.demands(Some(&computed_waits(program, index, wave))),
            Inst::WaitAll | Inst::Serial => self.demands(None),
            Inst::Operation(_) => self.is_full() && self.operations().first().is_some_and(|p| !p.returned),
        }
    }

    /// Before an instruction that merges results into halves of registers: outstanding operations that write the other
    /// halves lose them, as the instruction writes back what it has read.
    pub(super) fn lose_halves(&mut self, merged: &[Use], wave: &Wave) {
        for p in self.operations_mut().iter_mut().filter(|p| !p.returned) {
            merged.iter().for_each(|used| p.lose_half(used, wave));
        }
    }

    /// Returns the operations that have not returned and are going to write registers that an instruction of the wave
    /// accesses.
    pub fn touched<'q>(
        &'q self,
        model: &'q DelayedMemory,
        index: usize,
        wave: &'q Wave,
    ) -> impl Iterator<Item = &'q Pending> {
        let [reads, writes] = &model.uses[index];
        let uses = move || {
            let reads = reads.iter().map(move |used| (used.file, used.registers(wave, false)));
            reads.chain(writes.iter().map(move |used| (used.file, used.registers(wave, true))))
        };
        self.operations()
            .iter()
            .map(|p| &**p)
            .filter(move |p| !p.returned && uses().any(|(file, registers)| p.writes_any(file, &registers)))
    }
}

impl DelayedMemory {
    /// Returns whether an instruction waits for operations.
    pub(super) fn waits(&self, index: usize) -> bool {
        matches!(self.insts[index], Inst::Wait(_) | Inst::ComputedWait | Inst::WaitAll | Inst::Serial)
    }

    /// Removes the counters from operations, oldest first, as an instruction of the wave does that waits.
    pub(crate) fn apply_wait<O: Outstanding>(
        &self,
        program: &Program,
        index: usize,
        wave: &Wave,
        operations: &mut [O],
    ) {
        let mut apply = |waits: &[(Counter, u32)]| {
            waits.iter().for_each(|(counter, n)| issue::apply_wait(operations, *counter, *n as usize));
        };
        match &self.insts[index] {
            Inst::Plain | Inst::Merge(_) | Inst::Invalidate(_) | Inst::Operation(_) => {}
            Inst::Wait(waits) => apply(waits),
            Inst::ComputedWait => apply(&computed_waits(program, index, wave)),
            Inst::WaitAll | Inst::Serial => {
                operations.iter_mut().for_each(|operation| *operation.counters() = Counters::default());
            }
        }
    }
}

/// Returns what a wait with computed operands waits for.
pub(super) fn computed_waits(program: &Program, index: usize, wave: &Wave) -> Vec<(Counter, u32)> {
    let waits = super::waits_of(program, index, &mut wave.clone());
    // A wait that does anything else waits for everything.
    waits.unwrap_or_else(|| program.arch.facts().counters.all.iter().map(|counter| (*counter, 0)).collect())
}
