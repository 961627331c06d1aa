//! Clusters: the barrier of a cluster orders the waves of its workgroups (CDNA5 manual, *Cluster Barriers*). A
//! workgroup that signals it releases the clock of the wave that signals, and a wave that has waited for it acquires
//! those of all workgroups.

use super::super::waits::IssuedAccess;
use super::Shadow;
use isa_spec::pcode::ir::Control;
use std::collections::{BTreeMap, HashMap};
use wavesim_engine::observe::Step;
use wavesim_machine::state::barrier::CLUSTER_INDEX;

/// Epochs by wave number.
type Epochs = BTreeMap<u32, u32>;

/// What has been released at the barrier of a cluster.
#[derive(Default)]
struct Releases {
    /// At the completions so far.
    merged: Epochs,
    /// At later ones, by the number of completions before.
    pending: BTreeMap<u32, Epochs>,
}

/// The releases of all clusters, by the cluster's position, and those of global wave sync, by the resource.
#[derive(Default)]
pub(super) struct ClusterReleases(HashMap<[u32; 3], Releases>, HashMap<u32, Epochs>);

fn join(into: &mut Epochs, from: &Epochs) {
    for (&wave, &epoch) in from {
        let entry = into.entry(wave).or_default();
        *entry = epoch.max(*entry);
    }
}

/// The workgroups of a launch in clusters.
#[derive(Clone, Copy)]
pub(super) struct Clusters<'v> {
    size: [u32; 3],
    groups: &'v [[u32; 3]],
    waves_per_group: u32,
    /// The position of the running workgroup's cluster.
    position: [u32; 3],
}

impl<'v> Clusters<'v> {
    /// Returns the clusters of a launch that has them; `first` is the number of the running workgroup's first wave.
    #[inline(always)]
    pub fn of(
        size: Option<[u32; 3]>,
        groups: &'v [[u32; 3]],
        waves_per_group: u32,
        first: u32,
    ) -> Option<Clusters<'v>> {
        let size = size?;
        let mut clusters = Clusters { size, groups, waves_per_group, position: [0; 3] };
        clusters.position = clusters.position_of(first)?;
        Some(clusters)
    }

    fn position_of(&self, wave: u32) -> Option<[u32; 3]> {
        let group = self.groups.get(((wave - 1) / self.waves_per_group) as usize)?;
        Some(std::array::from_fn(|dim| group[dim] / self.size[dim]))
    }

    /// Returns whether a wave is in the running workgroup's cluster.
    pub fn has(&self, wave: u32) -> bool {
        self.position_of(wave) == Some(self.position)
    }
}

impl Shadow {
    /// Releases the clock of a wave that signals the cluster's barrier.
    pub(super) fn arrive_at_cluster(&mut self, step: &Step<'_>, wave_index: usize) {
        let Some(place) = step.group.cluster() else { return };
        let state = step.group.barrier(CLUSTER_INDEX);
        // `completed` already counts the arrival that completes the barrier.
        let phase = if state.signals == 0 { state.completed.wrapping_sub(1) } else { state.completed };
        let wave = &mut self.waves[wave_index];
        wave.epoch += 1;
        let mut released = wave.vector.by_wave_number(self.first);
        released.insert(self.first + wave_index as u32, wave.epoch);
        wave.epoch += 1;
        wave.released = wave.epoch;
        let releases = self.cluster_releases.0.entry(place.position).or_default();
        join(releases.pending.entry(phase).or_default(), &released);
    }

    /// Acquires the clocks that were released at the completions of the cluster's barrier so far.
    pub(super) fn acquire_cluster(&mut self, step: &Step<'_>, wave_index: usize) {
        let Some(place) = step.group.cluster() else { return };
        let completed = step.group.barrier(CLUSTER_INDEX).completed;
        let releases = self.cluster_releases.0.entry(place.position).or_default();
        let is_complete = |phase: &u32| (phase.wrapping_sub(completed) as i32) < 0;
        for (_, epochs) in releases.pending.extract_if(.., |phase, _| is_complete(phase)) {
            join(&mut releases.merged, &epochs);
        }
        let (first, waves) = (self.first, self.waves.len() as u32);
        let wave = &mut self.waves[wave_index];
        if wave.acquire(&releases.merged, first, waves, wave_index, true) {
            wave.record_clock();
        }
    }

    /// Global wave sync: a wave that arrives at a resource, or releases others, releases its clock there, and one that goes
    /// on acquires what has been released. Waves that do not wait for each other are ordered too: no false findings.
    pub(super) fn meet(&mut self, call: Control, resource: u32, waits: bool, wave_index: usize) {
        if matches!(call, Control::GwsBarrier | Control::GwsSemaBr | Control::GwsSemaReleaseAll) {
            let wave = &mut self.waves[wave_index];
            wave.epoch += 1;
            let mut released = wave.vector.by_wave_number(self.first);
            released.insert(self.first + wave_index as u32, wave.epoch);
            wave.epoch += 1;
            wave.released = wave.epoch;
            join(self.cluster_releases.1.entry(resource).or_default(), &released);
        }
        if !waits && matches!(call, Control::GwsBarrier | Control::GwsSemaP) {
            self.acquire_gws(resource, wave_index);
        }
    }

    /// Acquires the clocks that were released at a resource of global wave sync.
    pub(super) fn acquire_gws(&mut self, resource: u32, wave_index: usize) {
        let releases = self.cluster_releases.1.entry(resource).or_default();
        let (first, waves) = (self.first, self.waves.len() as u32);
        let wave = &mut self.waves[wave_index];
        if wave.acquire(releases, first, waves, wave_index, true) {
            wave.record_clock();
        }
    }

    /// Records accesses of a wave that are outstanding when its workgroup is parked: other workgroups of its cluster
    /// may acquire what it has released before they completed.
    pub fn park_outstanding(&mut self, number: u32, outstanding: &[IssuedAccess]) {
        let Some(wave) = self.ended.get_mut(&number) else { return };
        for access in outstanding {
            wave.late.retire(access.epoch, access.pc, access.store, u32::MAX);
        }
    }

    /// Returns the number of the running workgroup's first wave if there are clusters.
    pub fn first_of_cluster(&self) -> Option<u32> {
        self.cluster_size.map(|_| self.first)
    }
}
