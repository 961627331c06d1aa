//! Locks that two work-items acquire in opposite orders: they may wait for each other for ever.
//!
//! A lock is a dword of memory that an atomic which returns a value changes from 0. It is held by the lane that did so
//! until the dword is 0 again, or another lane acquires it. An acquisition while another lock is held orders the two.
//! Where all acquisitions of two locks are under a third one, their order does not matter.

use super::super::Check;
use super::super::report::{Finding, Report, Site, describe};
use super::Shadow;
use super::values::present;
use std::collections::HashMap;
use wavesim_engine::observe::{Done, Step};
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::watch::{Access, Place};

/// The first wave of the workgroup, for LDS, or else 0; and the address.
type Lock = (u32, u64);
/// The number of a wave, and a lane.
type Holder = (u32, u8);

/// An acquisition of a lock while another one was held.
struct Nested {
    holder: Holder,
    pc: u32,
    /// Other locks that were held.
    gates: Vec<Lock>,
}

/// The locks of a dispatch.
#[derive(Default)]
pub struct Locks {
    held: HashMap<Holder, Vec<Lock>>,
    /// By the lock that was held and the one that was acquired.
    nested: HashMap<(Lock, Lock), Nested>,
}

/// Returns the value of a dword.
fn dword(address: u64, byte: impl Fn(u64) -> Option<u8>) -> Option<u32> {
    let mut bytes = [0; 4];
    for (k, to) in bytes.iter_mut().enumerate() {
        *to = byte(address.wrapping_add(k as u64))?;
    }
    Some(u32::from_le_bytes(bytes))
}

impl Shadow {
    /// Records the acquisition of a lock, and reports it if another lane acquires the locks in the opposite order.
    #[cold]
    pub(super) fn track_locks(
        &mut self,
        step: &Step<'_>,
        done: &Done<'_>,
        effects: &Effects,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        // Lanes that execute together do not wait for each other's locks.
        let mut stores = done.accesses.iter().filter(|a| a.write);
        let (Some(a), None) = (stores.next(), stores.next()) else { return };
        if !effects.returns || a.outside || a.lanes > 1 || a.size_bytes != 4 {
            return;
        }
        let now = |place, address| dword(address, |at| present(place, at, done, &prepared.memory));
        let before = dword(a.address, |at| done.replaced.byte(a.place, at));
        if before != Some(0) || now(a.place, a.address).is_none_or(|value| value == 0) {
            return;
        }
        let first = self.first;
        let holder = (first + step.wave.id, a.lane.unwrap_or(0));
        let lock = (if a.place == Place::Lds { first } else { 0 }, a.address);
        self.locks.held.values_mut().for_each(|held| held.retain(|known| *known != lock));
        let held = self.locks.held.entry(holder).or_default();
        held.retain(|(group, address)| {
            let place = if *group == 0 { Place::Global } else { Place::Lds };
            now(place, *address).is_some_and(|value| value != 0)
        });
        let outer = held.clone();
        held.push(lock);
        for known in &outer {
            let gates: Vec<Lock> = outer.iter().copied().filter(|other| other != known).collect();
            let opposite = self.locks.nested.get(&(lock, *known)).filter(|opposite| {
                opposite.holder != holder && !opposite.gates.iter().any(|gate| gates.contains(gate))
            });
            if let Some(opposite) = opposite {
                self.report_lock_order(step, a, *known, opposite, prepared, report);
            }
            let nested = Nested { holder, pc: step.pc as u32, gates };
            self.locks.nested.entry((*known, lock)).or_insert(nested);
        }
    }

    fn report_lock_order(
        &self,
        step: &Step<'_>,
        a: &Access,
        held: Lock,
        opposite: &Nested,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let kind = "lock order";
        if !report.is_new(Check::Race, kind, step.pc, Some(opposite.pc.into())) {
            return;
        }
        let (wave, lane) = opposite.holder;
        let (group, index) = self.coordinates(wave);
        let place = if held.0 == 0 { Place::Global } else { Place::Lds };
        let (what, holds) = (describe(prepared, a.place, a.address, 4), describe(prepared, place, held.1, 4));
        let message = format!(
            "the lock of {what} is acquired while that of {holds} is held, and {} acquires them in the opposite order: the two may wait for each other",
            self.wave_name(step, wave)
        );
        let mut other = Site::at(step, opposite.pc.into(), group, index);
        other.lane = Some(lane.into());
        report.add(
            Finding::new(Check::Race, kind, message, Site::new(step, a.lane.map(u32::from)))
                .other("opposite order", other)
                .address(a.address)
                .hint("acquire locks in the same order everywhere"),
        );
    }
}
