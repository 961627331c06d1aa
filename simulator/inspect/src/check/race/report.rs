//! Findings for races and for accesses that are not visible in time.

use super::super::Check;
use super::super::report::{Finding, Report, Site, access_name, describe};
use super::super::shadow_memory::Record;
use super::super::waits::Scoreboard;
use super::cluster::Clusters;
use super::ordering::Caches;
use super::{Missing, Shadow};
use wavesim_asm::dialect::advice;
use wavesim_engine::observe::Step;
use wavesim_loader::prepared::Prepared;
use wavesim_machine::exec::watch::{Access, Place};

/// Explains why the race of a plain load with a compare-and-swap is a note.
pub const CAS_EXPLANATION: &str = "the value is only the expected value of a compare-and-swap of this wave: if it is stale, the swap fails and the load is repeated";

/// Two conflicting accesses of different waves.
pub struct Race<'r> {
    /// The later access.
    pub a: &'r Access,
    /// The earlier one.
    pub other: &'r Record,
    /// Whether the earlier access is a store.
    pub was_write: bool,
    /// The ordering that is missing.
    pub missing: Missing,
    /// Whether both store the same value.
    pub same: bool,
    /// Whether the load's wave has invalidated some caches, but not those between workgroups.
    pub narrow: bool,
    /// The load that left stale bytes in a cache.
    pub copy: Option<Record>,
}

/// Returns the verb form for one or two quoted instructions.
fn verb(instructions: &str) -> &'static str {
    if instructions.contains("` and `") { "are" } else { "is" }
}

impl Shadow {
    /// Returns the description of a wave, given by its number, relative to the running workgroup.
    pub(super) fn wave_name(&self, step: &Step<'_>, wave: u32) -> String {
        let ([x, y, z], index) = self.coordinates(wave);
        match [x, y, z] == step.wave.workgroup {
            true => format!("wave {index}"),
            false => format!("workgroup ({x},{y},{z})"),
        }
    }

    /// Returns whether a wave, given by its number, is in the running workgroup's cluster.
    fn shares_cluster(&self, wave: u32) -> bool {
        Clusters::of(self.cluster_size, &self.groups, self.waves_per_group, self.first)
            .is_some_and(|clusters| clusters.has(wave))
    }

    /// Returns the workgroup of a wave, and the wave's index in it.
    pub(super) fn coordinates(&self, wave: u32) -> ([u32; 3], u32) {
        (self.groups[((wave - 1) / self.waves_per_group) as usize], (wave - 1) % self.waves_per_group)
    }

    /// Reports a scalar load that may miss a store of its own wave.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn report_own_store(
        &self,
        step: &Step<'_>,
        dword: u64,
        store: &Record,
        waited: bool,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let kind = "own store, scalar load";
        if !report.is_new(Check::Race, kind, step.pc, Some(store.pc as u64)) {
            return;
        }
        let what = describe(prepared, Place::Global, dword, 4);
        let mut other = Site::at(step, store.pc as u64, step.wave.workgroup, step.wave.id);
        other.lane = (store.lane != u8::MAX).then_some(store.lane as u32);
        let message = format!(
            "load of {what} may see the bytes from before a store of the same wave: stores do not reach the scalar cache"
        );
        let wait =
            step.program.inst_at(store.pc as u64).map(|at| scoreboard.wait_for(at)).unwrap_or_default();
        let hint = match waited {
            true => format!("`{}` is needed between the two", advice::SCALAR_CACHE),
            false => format!("`{wait}` and then `{}` are needed between the two", advice::SCALAR_CACHE),
        };
        report.add(
            Finding::new(Check::Race, kind, message, Site::new(step, None))
                .other("earlier store", other)
                .address(dword)
                .hint(hint),
        );
    }

    /// Reports an access to bytes of LDS that an outstanding load of the same wave writes.
    pub(super) fn report_own_load_to_lds(
        &self,
        step: &Step<'_>,
        a: &Access,
        load: &Record,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) {
        let kind = "load to LDS not complete";
        if !report.is_new(Check::Waits, kind, step.pc, Some(load.pc as u64)) {
            return;
        }
        let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
        let name = access_name(a, self.orderings[step.index].atomic);
        let sees = if a.write { "may be overwritten by" } else { "may see the bytes from before" };
        let issued = Site::at(step, load.pc as u64, step.wave.workgroup, step.wave.id);
        let wait = step.program.inst_at(load.pc as u64).map(|at| scoreboard.wait_for(at)).unwrap_or_default();
        let message =
            format!("{name} of {what} {sees} a load to LDS of the same wave, which was not waited for");
        let hint = format!("`{wait}` is needed between the two");
        report.add(
            Finding::new(Check::Waits, kind, message, Site::new(step, a.lane.map(u32::from)))
                .other("issued by", issued)
                .address(a.address)
                .hint(hint),
        );
    }

    /// Reports a race. Returns the number of a new finding that a compare-and-swap could explain.
    pub(super) fn report(
        &self,
        step: &Step<'_>,
        race: &Race<'_>,
        scoreboard: &Scoreboard,
        prepared: &Prepared,
        report: &mut Report,
    ) -> Option<usize> {
        let Race { a, other, was_write, missing, same, narrow, copy } = *race;
        let (group, index) = self.coordinates(other.wave);
        let local = group == step.wave.workgroup;
        // Only a load of a flag can have ordered the two: the wave consumes data that it has not acquired.
        let unacquired =
            !local && !self.shares_cluster(other.wave) && missing == Missing::Invalidate && copy.is_none();
        let (check, kind) = match (missing, was_write) {
            (Missing::Order, _) if same => (Check::Race, "same value"),
            (Missing::Order, _) => (Check::Race, "data race"),
            (Missing::Wait, true) => (Check::Waits, "store not complete at the barrier"),
            (Missing::Wait, false) => (Check::Waits, "load under way at the barrier"),
            (Missing::WriteBack, _) => (Check::Race, "no write-back"),
            (Missing::WriteBackWait, _) => (Check::Race, "write-back under way"),
            (Missing::Invalidate, _) if narrow => (Check::Race, "scope too narrow"),
            (Missing::Invalidate, _) if copy.is_some() => (Check::Race, "stale cache"),
            (Missing::Invalidate, _) if unacquired => (Check::Race, "no acquire"),
            (Missing::Invalidate, _) => (Check::Race, "cache not invalidated"),
        };
        if !report.is_new(check, kind, step.pc, Some(other.pc as u64)) {
            return None;
        }
        let what = describe(prepared, a.place, a.address, a.size_bytes as u32);
        let name = access_name(a, self.orderings[step.index].atomic);
        let other_index = step.program.inst_at(other.pc as u64);
        let other_atomic = other_index.is_some_and(|at| self.orderings[at].atomic);
        let role = match (other_atomic, was_write) {
            (true, _) => "earlier atomic",
            (false, true) => "earlier store",
            (false, false) => "earlier load",
        };
        let mut other_site = Site::at(step, other.pc as u64, group, index);
        other_site.lane = (other.lane != u8::MAX).then_some(other.lane as u32);
        let whose = self.wave_name(step, other.wave);
        let release = match (local, self.synchronises) {
            (true, false) => "the barrier",
            (true, true) => "the barrier, or the store or atomic that orders the two",
            (false, _) if self.shares_cluster(other.wave) => {
                "the cluster's barrier, or the store or atomic that orders the two"
            }
            (false, _) => "the store or atomic that orders the two",
        };
        let wait = other_index.map(|at| scoreboard.wait_for(at)).unwrap_or_default();
        let (message, hint) = match missing {
            Missing::Order if same => (
                format!(
                    "{name} of {what} stores the same value as an {role} of {whose}: the result does not depend on the order"
                ),
                None,
            ),
            Missing::Order => {
                let order = match local {
                    true => format!("no barrier between waves {} and {index}", step.wave.id),
                    false => format!("nothing orders this workgroup and {whose}"),
                };
                let hint = match local {
                    true => "a barrier between the two, or atomics, would order them",
                    false if self.shares_cluster(other.wave) => {
                        "the workgroups of a cluster run in any order: its barrier, or atomics, order them"
                    }
                    false => "workgroups run in any order: only atomics order them",
                };
                (format!("{name} of {what} races with the {role}: {order}"), Some(hint.to_string()))
            }
            Missing::Wait => {
                let was = if was_write { "store" } else { "load" };
                let sees = match (a.write, was_write) {
                    (false, _) => format!("may see the bytes from before a {was} of {whose}"),
                    (true, true) => format!("may be overwritten by an earlier {was} of {whose}"),
                    (true, false) => format!("may be seen by an earlier {was} of {whose}"),
                };
                (
                    format!("{name} of {what} {sees}: the {was} was not waited for before {release}"),
                    Some(match self.synchronises {
                        false => format!("`{wait}` {} needed between the {was} and the barrier", verb(&wait)),
                        true => format!("`{wait}` {} needed before {release}", verb(&wait)),
                    }),
                )
            }
            Missing::WriteBack | Missing::WriteBackWait => {
                let sees = match a.write {
                    false => "may see the bytes from before",
                    true => "may be overwritten by",
                };
                let needed = advice::write_back(step.program.arch);
                match missing {
                    Missing::WriteBack => (
                        format!(
                            "{name} of {what} {sees} a store of {whose}, which was not written back before {release}"
                        ),
                        Some(format!("`{needed}`, and a wait for it, are needed before {release}")),
                    ),
                    _ => (
                        format!(
                            "{name} of {what} {sees} a store of {whose}, whose write-back was not waited for before {release}"
                        ),
                        Some(format!(
                            "`{wait}` {} needed between `{needed}` and {release}; LLVM 19 omits it if nothing else is outstanding",
                            verb(&wait)
                        )),
                    ),
                }
            }
            Missing::Invalidate => {
                let scalar = !self.orderings[step.index].hits.and(Caches::SCALAR).is_empty();
                let near = local || self.shares_cluster(other.wave);
                let caches = advice::cache_invalidations(step.program.arch, scalar, near);
                let needed = caches.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(" and ");
                let acquire = match local {
                    true => "the barrier",
                    false if self.shares_cluster(other.wave) => "the cluster's barrier",
                    false => "the load of the flag that orders the two",
                };
                let which = match (scalar, local) {
                    (true, _) => "the scalar cache",
                    (false, true) => "the L0 cache, which in WGP mode not all waves of the workgroup share,",
                    (false, false) if near => "the cache of the workgroup",
                    (false, false) => "a cache that not all workgroups share",
                };
                let message = match copy {
                    _ if narrow => format!(
                        "{name} of {what} follows a store of {whose}, but the wave has only invalidated the caches of its workgroup since then: the scope of the acquire is too narrow"
                    ),
                    Some(load) => {
                        let by = match load.wave == self.first + step.wave.id {
                            true => "this wave".to_string(),
                            false => self.wave_name(step, load.wave),
                        };
                        let place = step.program.place(load.pc as u64);
                        format!(
                            "{name} of {what} may see the bytes from before a store of {whose}: {which} may hold them since {by} loaded them at {place}"
                        )
                    }
                    None if unacquired => format!(
                        "{name} of {what} consumes a store of {whose} without an acquire: {which} is not invalidated after the load of the flag"
                    ),
                    None => format!(
                        "{name} of {what} follows a store of {whose}, and {which} is not invalidated between them"
                    ),
                };
                let hint = format!("{needed} {} needed between {acquire} and the load", verb(&needed));
                let hint = match copy {
                    _ if narrow => hint,
                    Some(_) => hint,
                    None if unacquired => hint,
                    None => format!("no wave has loaded these bytes before the store; if one does, {hint}"),
                };
                (message, Some(hint))
            }
        };
        let lane = a.lane.map(u32::from);
        let mut finding = Finding::new(check, kind, message, Site::new(step, lane))
            .other(role, other_site)
            .address(a.address);
        finding.hint = hint;
        let note = same || missing == Missing::Invalidate && copy.is_none() && !narrow && !unacquired;
        let finding = if note { finding.note() } else { finding };
        let number = report.add(finding);
        // A compare-and-swap can explain the race of a plain load with an atomic.
        let mine = self.orderings[step.index].atomic;
        let plain_load = if a.write { !was_write && !other.atomic } else { !mine };
        let atomic = if a.write { mine } else { other_atomic };
        (missing == Missing::Order && plain_load && atomic).then_some(number)
    }
}
