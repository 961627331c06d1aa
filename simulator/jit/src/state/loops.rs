//! Loops that may have versioned iterations.

use crate::arith::val::Val;
use crate::state::access::{Access, LaneOffsets, ResolvedAccesses};
use crate::state::packet::DenormalFree;
use std::collections::BTreeSet;
use wavesim_x64::inst::{Label, V};

/// A block that jumps to itself, while its general code is emitted.
pub struct LoopBlock {
    /// Its first operation.
    pub first: u32,
    /// The scalar state that the addresses of its accesses depend on, by operand code.
    pub inputs: BTreeSet<usize>,
    /// The scalar state that it writes, likewise.
    pub written: BTreeSet<usize>,
    /// Addresses are being emitted: what is read now is an input of them.
    pub in_address: bool,
    pub runs: usize,
    /// The run, if it has accesses.
    pub run: Option<FastRun>,
    /// The versioned iterations, once the general code has a jump to them.
    pub versioned: Option<Versioned>,
}

/// A run on its fast path.
pub struct FastRun {
    pub resolved: ResolvedAccesses,
    /// For each source of offsets that the run writes, what is added to it.
    pub steps: Vec<OffsetStep>,
    pub denormal_free: DenormalFree,
    /// 1 if the last iteration took the fast path.
    pub taken: V,
}

/// What a run adds to the register of some offsets, and the bounds of the offsets before that.
pub struct OffsetStep {
    pub offsets: LaneOffsets,
    pub step: Val,
    pub min: V,
    pub max: V,
}

/// Versioned iterations.
pub struct Versioned {
    pub head: Label,
    pub run: FastRun,
    pub offsets: Vec<VersionedOffsets>,
}

/// Offsets that advance.
#[derive(Clone, Copy)]
pub struct VersionedOffsets {
    pub offsets: LaneOffsets,
    /// What is added in each iteration, sign-extended and shifted.
    pub step: V,
    /// The lowest offset.
    pub low: V,
    /// The highest value of `low` with all lanes inside memory.
    pub room: V,
}

/// What the emission of versioned iterations needs.
pub struct VersionedCode {
    pub versioned: Versioned,
    /// The loop's first operation.
    pub first: u32,
    /// The general code runs the iteration.
    pub leave: Label,
    /// The iteration has been emitted.
    pub done: bool,
}

impl FastRun {
    /// Returns what is added to the register of some offsets, and their shift.
    fn step(&self, offsets: LaneOffsets) -> Option<(Val, u8)> {
        self.steps.iter().find(|step| step.offsets == offsets).map(|step| (step.step, offsets.shift))
    }

    /// Returns whether each store keeps its distance from the other accesses of the same memory.
    pub fn stores_keep_distance(&self) -> bool {
        let all = || self.resolved.accesses.iter().map(|location| &location.access);
        let alike = |a: &Access, b: &Access| {
            a.is_in_lds() != b.is_in_lds() || self.step(a.offsets()) == self.step(b.offsets())
        };
        all().filter(|access| access.store).all(|store| all().all(|other| alike(store, other)))
    }
}

impl LoopBlock {
    /// Records a run.
    pub fn record_run(&mut self, run: Option<FastRun>) {
        self.runs += 1;
        self.run = run;
    }
}

/// The loop that is being emitted.
#[derive(Default)]
pub struct Loops {
    /// The block that is being emitted, if it may have versioned iterations.
    pub block: Option<LoopBlock>,
    /// The versioned iterations, while they are emitted.
    pub versioned: Option<VersionedCode>,
}
