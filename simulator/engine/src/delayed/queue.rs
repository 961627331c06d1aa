//! The outstanding operations of a wave, and the order in which they are performed and return.

use super::pending::{Failure, Machine, Pending};
use super::{DelayedMemory, Delays, Operation};
use crate::observe::{Done, Observer, Step};
use crate::sched::order::splitmix64;
use wavesim_isa::arch::facts::Counter;
use wavesim_machine::exec::issue::{self, Counters, Issue, Order};
use wavesim_machine::state::Wave;

/// A random delay is at most this many instructions of the workgroup. A wave that polls for a store then sees it, even
/// if no wait demands it.
const LATEST: u64 = 1 << 14;

/// The issue of an operation.
pub(super) struct When {
    /// Instructions that the workgroup has executed.
    pub now: u64,
    /// It is delayed, if that is chosen.
    pub late: bool,
    /// It uses caches.
    pub cached: bool,
    /// Nobody sees the difference if it takes effect at once.
    pub is_private: bool,
}

/// An operation that has taken effect at once because nobody sees the difference, though it was to be delayed.
#[derive(Debug, Clone, Copy)]
struct Quick {
    order: Order,
    counters: Counters,
    /// The instruction count at which it would have returned: later operations in its order do not return before.
    due: u64,
}

/// The outstanding operations of a wave.
#[derive(Default)]
pub struct Queue {
    /// Oldest first. An operation that is complete stays until those before it in its order are, so that waits count
    /// right.
    #[expect(
        clippy::vec_box,
        reason = "operations are removed in the middle, and are some hundred bytes long"
    )]
    operations: Vec<Box<Pending>>,
    /// Operations whose memory is used again.
    #[expect(clippy::vec_box, reason = "as above")]
    spare: Vec<Box<Pending>>,
    /// Operations that have taken effect at once, up to the wait that demands them.
    quick: Vec<Quick>,
    /// The source of random numbers.
    seed: u64,
    /// Number of operations issued.
    issued: u64,
    /// One of them was chosen to be delayed.
    late: bool,
}

impl Clone for Queue {
    fn clone(&self) -> Queue {
        Queue {
            operations: self.operations.clone(),
            spare: Vec::new(),
            quick: self.quick.clone(),
            seed: self.seed,
            issued: self.issued,
            late: self.late,
        }
    }
}

/// An outstanding operation, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    /// Index of its instruction.
    pub index: usize,
    /// The counters that count it.
    pub counters: Counters,
    /// The order in which it returns.
    pub order: Order,
    /// It has accessed memory.
    pub performed: bool,
    /// Its results are in the registers of the wave.
    pub returned: bool,
    /// Its number among the operations of its wave, from 0.
    pub number: u64,
    /// It was chosen to be delayed.
    pub late: bool,
    /// No other operation has to be performed, or return, before its next step.
    pub ready: bool,
}

impl Queue {
    /// Empties the queue for a wave that starts.
    pub fn start(&mut self, seed: u64) {
        self.spare.append(&mut self.operations);
        self.quick.clear();
        (self.seed, self.issued, self.late) = (seed, 0, false);
    }

    /// Returns whether no operation is outstanding.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the outstanding operations, oldest first. Complete ones are among them until those before are.
    pub fn outstanding(&self) -> impl Iterator<Item = Outstanding> {
        self.operations.iter().enumerate().map(|(at, p)| Outstanding {
            index: p.index,
            counters: p.issued,
            order: p.order,
            performed: p.performed,
            returned: p.returned,
            number: p.number,
            late: p.late,
            ready: !p.returned && self.is_ready(at),
        })
    }

    fn is_ready(&self, index: usize) -> bool {
        let (earlier, p) = (&self.operations[..index], &self.operations[index]);
        match p.performed {
            false => earlier.iter().all(|other| other.performed || !p.after.contains(&other.number)),
            true => earlier.iter().all(|other| other.returned || !other.returns_before(p)),
        }
    }

    /// The operations, oldest first.
    pub(super) fn operations(&self) -> &[Box<Pending>] {
        &self.operations
    }

    pub(super) fn operations_mut(&mut self) -> &mut [Box<Pending>] {
        &mut self.operations
    }

    /// Returns whether an operation of the wave was chosen to be delayed, outstanding or not.
    pub fn has_late(&self) -> bool {
        self.late
    }

    /// Number of operations issued so far.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Finds out which operations must be performed before the one that was issued last.
    pub(super) fn order_last(&mut self, machine: &Machine<'_>, shadow: &mut Wave, wave: &Wave) {
        let Some((last, earlier)) = self.operations.split_last_mut() else { return };
        for other in earlier.iter_mut().filter(|other| !other.performed) {
            if last.follows(other, shadow, wave, machine) {
                last.after.push(other.number);
            }
        }
    }

    /// Returns those operations that have only waited for the return of others, and are not delayed themselves.
    pub(crate) fn return_followers(&mut self, wave: &mut Wave) {
        for at in 0..self.operations.len() {
            let p = &self.operations[at];
            if p.performed && !p.returned && !p.late && self.is_ready(at) {
                self.operations[at].write_back(wave);
            }
        }
        self.retire();
    }

    /// Returns the place of an operation among the outstanding ones.
    pub fn position(&self, number: u64) -> Option<usize> {
        self.operations.iter().position(|p| p.number == number)
    }

    /// Returns the next instruction count at which an operation is due; of the running wave, those that return, too.
    pub fn next_due(&self, runs: bool) -> u64 {
        let due = |p: &Pending| match (p.performed, p.returned) {
            (false, _) => p.due[0],
            (true, false) if runs => p.due[1],
            _ => u64::MAX,
        };
        self.operations.iter().map(|p| due(p)).min().unwrap_or(u64::MAX)
    }

    /// Chooses when an operation that is issued at `now` is performed and returns.
    fn choose(&mut self, delays: Delays, now: u64, late: bool) -> [u64; 2] {
        self.issued += 1;
        let Delays::Random(_) = delays else { return [if late { u64::MAX } else { now }; 2] };
        let random = splitmix64(self.seed ^ self.issued.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Of 1 to 128 instructions, a quarter of them of one.
        let short = |random: u64| 1 + (random >> 3) % (1 << (random & 7));
        let (late, performed) = (now + LATEST, now + short(random >> 8));
        match random & 15 {
            0..4 => [now; 2],
            4..7 => [now, late],
            7..10 => [late; 2],
            10 | 11 => [now, now + short(random >> 32)],
            12 | 13 => [performed, late],
            _ => [performed, performed + short(random >> 32)],
        }
    }

    /// Issues an operation of a wave. Returns false if it uses no caches, and is performed and returns at once, or may do so
    /// because nobody sees the difference: that is left to the caller.
    pub(super) fn issue(
        &mut self,
        model: &DelayedMemory,
        operation: &Operation,
        index: usize,
        wave: &Wave,
        When { now, late, cached, is_private }: When,
    ) -> bool {
        let number = self.issued;
        let mut due = self.choose(model.delays, now, late);
        // Operations return in order.
        let issue = &operation.issue;
        let joins = |order: Order, counters: Counters| {
            order.joins(issue.order) && counters.intersects(issue.counters)
        };
        for earlier in self.operations.iter().filter(|p| !p.returned && joins(p.order, p.issued)) {
            due[1] = due[1].max(earlier.due[1]);
        }
        for earlier in self.quick.iter().filter(|quick| quick.due > now && joins(quick.order, quick.counters))
        {
            due[1] = due[1].max(earlier.due);
        }
        if due == [now; 2] && self.operations.is_empty() && !cached {
            return false;
        }
        let Issue { order, counters, .. } = *issue;
        if is_private && !self.operations.iter().any(|p| p.hinders(operation, wave)) {
            self.quick.push(Quick { order, counters, due: due[1] });
            return false;
        }
        let mut pending = self.spare.pop().unwrap_or_else(|| Box::new(Pending::new()));
        pending.issue(operation, index, number, wave, due);
        pending.late = late && due[0] == u64::MAX;
        self.late |= pending.late;
        self.operations.push(pending);
        true
    }

    /// Forgets the operations that have taken effect at once and for which a wait waits; all without waits.
    pub fn forget_quick(&mut self, waits: Option<&[(Counter, u32)]>) {
        match waits {
            None => self.quick.clear(),
            Some(waits) => {
                let drained = Counters::drained_by(waits);
                self.quick.retain(|quick| !drained.is_superset(quick.counters));
            }
        }
    }

    /// Returns whether a wave has as many outstanding operations as the counters can count.
    pub fn is_full(&self) -> bool {
        self.operations.len() > issue::MAX_OUTSTANDING
    }

    /// Performs the operations that are due, and returns those of the running wave.
    pub fn advance<O: Observer + ?Sized>(
        &mut self,
        now: u64,
        machine: &mut Machine<'_>,
        shadow: &mut Wave,
        wave: &mut Wave,
        observer: &mut Option<&mut O>,
        runs: bool,
    ) -> Result<(), Failure> {
        for at in 0..self.operations.len() {
            let p = &self.operations[at];
            if !p.performed && p.due[0] <= now {
                self.perform(at, machine, shadow, wave, observer)?;
            }
            let p = &self.operations[at];
            if runs && p.performed && !p.returned && p.due[1] <= now {
                self.complete(at, machine, shadow, wave, observer)?;
            }
        }
        self.retire();
        Ok(())
    }

    /// Performs all operations.
    pub fn perform_all<O: Observer + ?Sized>(
        &mut self,
        machine: &mut Machine<'_>,
        shadow: &mut Wave,
        wave: &Wave,
        observer: &mut Option<&mut O>,
    ) -> Result<(), Failure> {
        (0..self.operations.len()).try_for_each(|at| self.perform(at, machine, shadow, wave, observer))
    }

    /// Performs an operation, after those that must come first.
    pub fn perform<O: Observer + ?Sized>(
        &mut self,
        position: usize,
        machine: &mut Machine<'_>,
        shadow: &mut Wave,
        wave: &Wave,
        observer: &mut Option<&mut O>,
    ) -> Result<(), Failure> {
        if self.operations[position].performed {
            return Ok(());
        }
        for earlier in 0..position {
            let (before, after) = self.operations.split_at_mut(position);
            let earlier_op = &mut before[earlier];
            if !earlier_op.performed && after[0].follows(earlier_op, shadow, wave, machine) {
                self.perform(earlier, machine, shadow, wave, observer)?;
            }
        }
        let operation = &mut self.operations[position];
        let result = operation.perform(shadow, wave, machine);
        if let Some(observer) = observer {
            let (program, index) = (machine.program, operation.index);
            let pc = program.pcs[index];
            let (time, group) = (machine.instructions, &*machine.workgroup);
            let step = Step { program, index, pc, wave: shadow, group, time };
            machine.logs.log_loads();
            observer.performed(&step, &Done::of(machine.logs, machine.lds, result.as_ref().err(), false));
            machine.logs.clear();
        }
        let pc = machine.program.pcs[operation.index];
        result.map_err(|event| Failure { wave: wave.id as usize, pc, event })
    }

    /// Performs an operation and writes its results to the wave, after those of the operations before it in its order.
    pub fn complete<O: Observer + ?Sized>(
        &mut self,
        index: usize,
        machine: &mut Machine<'_>,
        shadow: &mut Wave,
        wave: &mut Wave,
        observer: &mut Option<&mut O>,
    ) -> Result<(), Failure> {
        for earlier in 0..=index {
            let p = &self.operations[earlier];
            let first = earlier == index || p.returns_before(&self.operations[index]);
            if !first || p.returned {
                continue;
            }
            self.perform(earlier, machine, shadow, wave, observer)?;
            let operation = &mut self.operations[earlier];
            if !operation.returned {
                operation.write_back(wave);
            }
        }
        Ok(())
    }

    /// Completes all operations that these waits show to be complete; all operations without waits.
    pub fn wait<O: Observer + ?Sized>(
        &mut self,
        waits: Option<&[(Counter, u32)]>,
        machine: &mut Machine<'_>,
        shadow: &mut Wave,
        wave: &mut Wave,
        observer: &mut Option<&mut O>,
    ) -> Result<(), Failure> {
        for (counter, n) in waits.into_iter().flatten() {
            issue::apply_wait(&mut self.operations, *counter, *n as usize);
        }
        for at in 0..self.operations.len() {
            if waits.is_none() || self.operations[at].counters.is_empty() {
                self.complete(at, machine, shadow, wave, observer)?;
            }
        }
        self.retire();
        Ok(())
    }

    /// Removes the operations that are complete, and before which none in the same order is outstanding.
    pub fn retire(&mut self) {
        if self.operations.iter().all(|p| p.returned) {
            self.spare.append(&mut self.operations);
            return;
        }
        let mut at = 0;
        while at < self.operations.len() {
            let (before, rest) = self.operations.split_at(at);
            let p = &rest[0];
            let is_behind = before.iter().any(|earlier| earlier.order.joins(p.order));
            if p.returned && !is_behind {
                let retired = self.operations.remove(at);
                self.spare.push(retired);
            } else {
                at += 1;
            }
        }
    }
}
