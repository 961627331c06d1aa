//! The scoreboard of a wave.

use super::super::Check;
use super::super::report::{Finding, Report, Site};
use super::counter::wait_instruction;
use super::{Counter, IssuedAccess, MAX_OUTSTANDING, Order, Pending, Summary};
use std::collections::VecDeque;
use wavesim_engine::observe::Step;
use wavesim_machine::exec::effects::{Use, register_name};
use wavesim_machine::exec::issue::{Counters, Outstanding, apply_wait};

#[derive(Default)]
pub(super) struct Wave {
    /// Outstanding operations, oldest first.
    pub pending: Vec<Pending>,
    /// Outstanding operations that only the store counter counts, unless `mixed`. Kept separately, since a
    /// wave may never wait for them.
    pub stores: VecDeque<Pending>,
    /// Whether stores are in `pending`: FLAT stores, which two counters count, are ordered with them.
    pub mixed: bool,
    /// Whether the youngest operation is in `stores`.
    pub last_is_store: bool,
    /// Summary of the registers that outstanding operations write; compared first.
    pub writes: Summary,
    /// Completed accesses of epochs before `release_epoch`, for the race check to take.
    pub retired: Vec<IssuedAccess>,
    /// An epoch of the race check.
    pub release_epoch: u32,
}

/// How an instruction uses a register that an outstanding operation writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    Read,
    Write,
    /// It writes the other half of the register, and merges the result into the register.
    OtherHalf,
}

impl Outstanding for Pending {
    fn order(&self) -> Order {
        self.order
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }
}

impl Wave {
    /// Returns the outstanding operations; those of each counter are oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &Pending> {
        self.pending.iter().chain(&self.stores)
    }

    #[inline(always)]
    pub fn push(&mut self, pending: Pending) {
        let counters = pending.counters;
        if counters.contains(Counter::Vs) || counters.contains(Counter::Store) {
            return self.push_store(pending);
        }
        self.last_is_store = false;
        self.push_pending(pending);
    }

    #[inline(always)]
    fn push_pending(&mut self, pending: Pending) {
        self.writes = self.writes.union(pending.writes);
        self.pending.push(pending);
        // Two counters can count this many.
        if self.pending.len() > 2 * MAX_OUTSTANDING {
            self.retire(|n, _| n == 0);
        }
    }

    #[inline(never)]
    fn push_store(&mut self, pending: Pending) {
        let store = pending.counters.contains(Counter::Vs) || pending.counters.contains(Counter::Store);
        let only = store && pending.order == Order::Vector;
        if store && !only && !self.mixed {
            self.mixed = true;
            self.pending.extend(self.stores.drain(..));
        }
        self.last_is_store = only && !self.mixed;
        if self.last_is_store {
            self.stores.push_back(pending);
            self.retire_stores(MAX_OUTSTANDING);
            return;
        }
        self.push_pending(pending);
    }

    /// Completes an access.
    #[inline(always)]
    fn complete(&mut self, access: Option<IssuedAccess>) {
        if let Some(access) = access
            && access.epoch < self.release_epoch
        {
            self.retired.push(access);
        }
    }

    /// Retires all stores but the `left` youngest.
    #[inline]
    pub fn retire_stores(&mut self, left: usize) {
        while self.stores.len() > left {
            let store = self.stores.pop_front();
            self.complete(store.and_then(|p| p.access));
        }
    }

    /// Retires the operations for which the predicate, given position and operation, holds.
    #[inline]
    pub fn retire(&mut self, mut complete: impl FnMut(usize, &Pending) -> bool) {
        let mut kept = 0;
        let mut writes = Summary::default();
        for at in 0..self.pending.len() {
            let p = self.pending[at];
            if complete(at, &p) {
                self.complete(p.access);
                continue;
            }
            writes = writes.union(p.writes);
            if kept != at {
                self.pending[kept] = p;
            }
            kept += 1;
        }
        self.pending.truncate(kept);
        self.mixed &= kept > 0;
        self.writes = writes;
    }

    /// Clears the scoreboard; `epoch` is as in
    /// [`Scoreboard::set_release_epoch`](super::Scoreboard::set_release_epoch).
    pub fn clear(&mut self, epoch: u32) {
        self.pending.clear();
        self.stores.clear();
        self.retired.clear();
        (self.mixed, self.last_is_store) = (false, false);
        self.writes = Summary::default();
        self.release_epoch = epoch;
    }

    /// Retires the `count` oldest operations of `pending`.
    #[inline]
    fn complete_first(&mut self, count: usize) {
        if self.pending[..count].iter().any(|p| p.access.is_some_and(|a| a.epoch < self.release_epoch)) {
            for at in 0..count {
                self.complete(self.pending[at].access);
            }
        }
        if count == self.pending.len() {
            self.pending.clear();
            (self.writes, self.mixed) = (Summary::default(), false);
            return;
        }
        self.pending.drain(..count);
        self.writes = self.pending.iter().fold(Summary::default(), |all, p| all.union(p.writes));
        self.mixed &= !self.pending.is_empty();
    }

    /// Applies a wait until at most `n` operations of the counter are outstanding.
    pub fn wait(&mut self, counter: Counter, n: usize) {
        if matches!(counter, Counter::Vs | Counter::Store) {
            self.retire_stores(n);
        }
        if self.pending.len() <= n {
            return;
        }
        let first = self.pending[0];
        let same_kind = |p: &Pending| (p.order, p.counters) == (first.order, first.counters);
        if matches!(first.order, Order::Vector | Order::Lds) && self.pending.iter().all(same_kind) {
            if first.counters.contains(counter) {
                self.complete_first(self.pending.len() - n);
            }
            return;
        }
        if n == 0 {
            let (mut any, mut left) = (false, 0);
            for p in &mut self.pending {
                any |= p.counters.contains(counter);
                p.counters.remove(counter);
                left += !p.counters.is_empty() as usize;
            }
            if !any {
                return;
            }
            if left == 0 {
                self.complete_first(self.pending.len());
                return;
            }
        } else if self.pending.iter().all(|p| p.order != Order::Both) {
            // Each operation is in one order and has one counter.
            let mut returned = [0usize; 2];
            for p in self.pending.iter().filter(|p| p.counters.contains(counter)) {
                match p.order {
                    Order::Vector => returned[0] += 1,
                    Order::Lds => returned[1] += 1,
                    Order::Both | Order::Unordered => {}
                }
            }
            returned = returned.map(|count| count.saturating_sub(n));
            if returned != [0; 2] {
                self.retire(|_, p| {
                    let returned = match p.order {
                        Order::Vector => &mut returned[0],
                        Order::Lds => &mut returned[1],
                        Order::Both | Order::Unordered => return false,
                    };
                    let complete = *returned > 0 && p.counters.contains(counter);
                    *returned -= complete as usize;
                    complete
                });
            }
            return;
        } else {
            apply_wait(&mut self.pending, counter, n);
        }
        self.retire(|_, p| p.counters.is_empty());
    }

    pub fn report_use(
        &self,
        step: &Step<'_>,
        used: &Use,
        start: u16,
        conflict: Conflict,
        index: usize,
        report: &mut Report,
    ) {
        let p = &self.pending[index];
        let kind = match conflict {
            Conflict::Read => "missing wait",
            Conflict::Write => "overwritten before its wait",
            Conflict::OtherHalf => "other half overwritten before its wait",
        };
        if !report.is_new(Check::Waits, kind, step.pc, Some(p.pc as u64)) {
            return;
        }
        let name = register_name(step.program.arch, used.file, start, used.count);
        let message = match conflict {
            Conflict::Read => format!("{name} is read before the wait for the operation that writes it"),
            Conflict::Write => format!(
                "{name} is written while an outstanding operation also writes it: the final value is undefined"
            ),
            Conflict::OtherHalf => format!(
                "a half of {name} is written while an outstanding operation writes the other half, which this \
                 instruction writes back: its final value is undefined"
            ),
        };
        let waits: Vec<String> = p.counters.iter().map(|c| self.weakest_wait(c, index)).collect();
        let site = Site::new(step, None);
        let hint = format!("`{}` is needed before {}", waits.join("` and `"), step.program.place(step.pc));
        let issued = Site::at(step, p.pc as u64, step.wave.workgroup, step.wave.id);
        report.add(Finding::new(Check::Waits, kind, message, site).other("issued by", issued).hint(hint));
    }

    /// Returns the weakest wait that completes the operation at a position.
    fn weakest_wait(&self, counter: Counter, index: usize) -> String {
        let younger = self.pending.iter().skip(index + 1).filter(|p| p.counters.contains(counter));
        let mixed = self.pending.iter().any(|p| p.counters.contains(counter) && p.order == Order::Unordered);
        wait_instruction(counter, if mixed { 0 } else { younger.count() })
    }
}
