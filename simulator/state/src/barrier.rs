//! Barriers of a workgroup (RDNA3 manual, *Work-groups and Barriers*; RDNA4 manual, *Work-groups and
//! Barriers*, where arrival and wait are separate instructions).
//!
//! A barrier counts its completions, and a wave remembers the count that it has passed
//! ([`crate::Wave::passed`]). If the two differ, the barrier has completed since: the manual calls
//! this the wave's barrierComplete bit.

use crate::gws::{self, Gws};

/// Number of named barriers of a workgroup, which are numbered from 1.
pub const NAMED_BARRIERS: usize = 16;

/// The number by which instructions refer to the workgroup's own barrier.
pub const WORKGROUP_BARRIER: i32 = -1;

/// The number by which instructions refer to the barrier of the cluster (CDNA5 manual, *Cluster Barriers*).
pub const CLUSTER_BARRIER: i32 = -3;

/// The [`Workgroup::index`] of the cluster's barrier.
pub const CLUSTER_INDEX: usize = NAMED_BARRIERS + 1;

/// Number of barriers that a wave can wait for.
pub const BARRIERS: usize = NAMED_BARRIERS + 2;

// What is not the index of a barrier is that of a resource of global wave sync.
const _: () = assert!(gws::FIRST == BARRIERS);

/// Number of entries of [`Wave::passed`](crate::Wave::passed): one for each barrier, and one for global wave sync.
pub const WAITS: usize = BARRIERS + 1;

/// State that the waves of a workgroup share besides LDS.
#[derive(Debug, Clone, Default)]
pub struct Workgroup {
    /// The workgroup's own at index 0, then the named ones, then the cluster's. Of the workgroups of a cluster,
    /// only the one that runs has the present state of the cluster's: it is passed on when another one runs
    /// ([`Workgroup::take_common`]).
    barriers: [Barrier; BARRIERS],
    /// Number of waves at the start.
    waves: u32,
    /// Number of waves that have not ended.
    live: u32,
    /// Number of named barriers.
    named: u32,
    /// A wave waits only for the named barrier that it has joined.
    joins: bool,
    /// Where the workgroup is in its cluster; `None` if it is in none.
    cluster: Option<ClusterPlace>,
    /// Global wave sync, if the program uses it. It is passed on as the cluster's barrier is.
    gws: Option<Box<Gws>>,
}

/// What workgroups that run in turns share, and pass on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Common {
    /// The barrier of the cluster.
    pub cluster: Barrier,
    /// Global wave sync.
    pub gws: Option<Box<Gws>>,
}

/// The place of a workgroup in a cluster of several (CDNA5 manual, *Cluster State*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterPlace {
    /// The hardware's number of the cluster, 1 to 15.
    pub id: u32,
    /// The coordinates of the cluster, in clusters.
    pub position: [u32; 3],
    /// The coordinates of the workgroup in the cluster.
    pub workgroup: [u32; 3],
    /// Workgroups of the cluster per dimension.
    pub size: [u32; 3],
}

impl ClusterPlace {
    /// Number of workgroups of the cluster.
    pub fn count(&self) -> u32 {
        self.size.iter().product()
    }

    /// The workgroup's number in the cluster, x fastest.
    pub fn index(&self) -> u32 {
        let ([x, y, z], [nx, ny, _]) = (self.workgroup, self.size);
        x + nx * (y + ny * z)
    }
}

/// One barrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Barrier {
    /// Number of waves that must signal. For the workgroup's own barrier, the number of live waves is used
    /// instead.
    pub members: u32,
    /// Number of signals since the last completion.
    pub signals: u32,
    /// Number of completions so far.
    pub completed: u32,
}

impl Workgroup {
    /// Creates the state of a workgroup that starts with this many waves, with all named barriers, in no
    /// cluster.
    pub fn new(waves: u32) -> Workgroup {
        Workgroup { waves, live: waves, named: NAMED_BARRIERS as u32, ..Workgroup::default() }
    }

    /// Sets the number of named barriers, and whether a wave waits only for the one that it has joined.
    pub fn set_named_barriers(&mut self, count: u32, joins: bool) {
        (self.named, self.joins) = (count.min(NAMED_BARRIERS as u32), joins);
    }

    /// Whether a wave waits only for the named barrier that it has joined.
    pub fn joins(&self) -> bool {
        self.joins
    }

    /// Number of named barriers.
    pub fn named_barriers(&self) -> u32 {
        self.named
    }

    /// Puts a workgroup that starts into a cluster, none of whose workgroups has ended.
    pub fn set_cluster(&mut self, place: ClusterPlace) {
        self.barriers[CLUSTER_INDEX].members = place.count();
        self.cluster = Some(place);
    }

    /// Where the workgroup is in its cluster; `None` if it is in none.
    pub fn cluster(&self) -> Option<&ClusterPlace> {
        self.cluster.as_ref()
    }

    /// The state that the workgroup shares with others, as it knows it.
    pub fn common(&self) -> Common {
        Common { cluster: self.barriers[CLUSTER_INDEX], gws: self.gws.clone() }
    }

    /// Takes over the state that the workgroup shares with others from the one that ran before.
    pub fn take_common(&mut self, state: &Common) {
        self.barriers[CLUSTER_INDEX] = state.cluster;
        self.gws.clone_from(&state.gws);
    }

    /// Global wave sync.
    pub fn gws(&mut self) -> &mut Gws {
        self.gws.get_or_insert_default()
    }

    /// Whether a wave that waits can go on, given its [`Wave::passed`](crate::Wave::passed). `index` is that of a barrier,
    /// or one of [`gws::FIRST`] and above.
    #[inline]
    pub fn has_released(&self, index: usize, passed: &[u32; WAITS]) -> bool {
        match index {
            gws::FIRST.. => self.gws.as_ref().is_some_and(|gws| gws.has_released(index, passed[gws::TICKET])),
            _ => passed[index] != self.barrier(index).completed,
        }
    }

    /// As [`Workgroup::has_released`]; if so, the wave has passed the barrier.
    #[inline(always)]
    pub fn release(&self, index: usize, passed: &mut [u32; WAITS]) -> bool {
        let released = self.has_released(index, passed);
        if released && index < gws::FIRST {
            passed[index] = self.barrier(index).completed;
        }
        released
    }

    /// Returns the index of a barrier; `None` for numbers without effect: 0, and -2 and -4, the trap handler's.
    #[inline]
    pub fn index(barrier: i32) -> Option<usize> {
        match barrier {
            WORKGROUP_BARRIER => Some(0),
            CLUSTER_BARRIER => Some(CLUSTER_INDEX),
            1.. if barrier as usize <= NAMED_BARRIERS => Some(barrier as usize),
            _ => None,
        }
    }

    /// Number of waves that have not ended.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Returns whether the workgroup has barriers: in a workgroup of one wave, barrier instructions are
    /// no-ops.
    #[inline]
    pub fn is_multi_wave(&self) -> bool {
        self.waves > 1
    }

    /// Returns the index of a barrier that this workgroup has; `None` for numbers without effect. A workgroup of
    /// one wave has no barriers but its cluster's.
    #[inline]
    pub fn own_index(&self, barrier: i32) -> Option<usize> {
        let index = Workgroup::index(barrier)?;
        let has = match index {
            CLUSTER_INDEX => self.cluster.is_some(),
            named => self.is_multi_wave() && named <= self.named as usize,
        };
        has.then_some(index)
    }

    /// Returns the state of the barrier at a [`Workgroup::index`]. For the workgroup's own, `members` is the
    /// number of live waves.
    #[inline]
    pub fn barrier(&self, index: usize) -> Barrier {
        let mut barrier = self.barriers[index];
        if index == 0 {
            barrier.members = self.live;
        }
        barrier
    }

    /// Signals a barrier; returns true if this is the first signal since its last completion.
    #[inline]
    pub fn signal(&mut self, index: usize) -> bool {
        let first = self.barriers[index].signals == 0;
        self.barriers[index].signals += 1;
        self.complete_if_reached(index);
        first
    }

    /// Clears the signals of a named barrier.
    pub fn init(&mut self, index: usize) {
        self.barriers[index].signals = 0;
    }

    /// Sets the number of members of a named barrier.
    pub fn set_members(&mut self, index: usize, members: u32) {
        self.barriers[index].members = members;
    }

    /// Removes a wave from the members of a named barrier.
    pub fn leave(&mut self, index: usize) {
        self.barriers[index].members = self.barriers[index].members.saturating_sub(1);
        self.complete_waiting(index);
    }

    /// Removes a wave that has ended, so that it does not hold up the others.
    pub fn end_wave(&mut self, joined: u32) {
        self.live = self.live.saturating_sub(1);
        self.complete_waiting(0);
        if self.live == 0 && self.cluster.is_some() {
            self.leave(CLUSTER_INDEX);
        }
        if joined != 0 && joined as usize <= NAMED_BARRIERS {
            self.leave(joined as usize);
        }
    }

    /// Completes the barrier if all remaining members have signalled.
    fn complete_waiting(&mut self, index: usize) {
        if self.barriers[index].signals > 0 {
            self.complete_if_reached(index);
        }
    }

    #[inline]
    fn complete_if_reached(&mut self, index: usize) {
        if self.barriers[index].signals >= self.barrier(index).members {
            self.barriers[index].signals = 0;
            self.barriers[index].completed = self.barriers[index].completed.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(Workgroup::index(-1), Some(0));
        assert_eq!(Workgroup::index(16), Some(16));
        assert_eq!(Workgroup::index(-3), Some(CLUSTER_INDEX));
        for none in [0, -2, -4, 17, i32::MIN, i32::MAX] {
            assert_eq!(Workgroup::index(none), None);
        }
    }

    #[test]
    fn the_last_signal_completes() {
        let mut group = Workgroup::new(3);
        assert!(group.signal(0));
        assert!(!group.signal(0));
        assert_eq!(group.barrier(0), Barrier { members: 3, signals: 2, completed: 0 });
        assert!(!group.signal(0));
        assert_eq!(group.barrier(0), Barrier { members: 3, signals: 0, completed: 1 });
        assert!(group.signal(0), "the first again after a completion");
    }

    #[test]
    fn ended_waves_do_not_block_others() {
        let mut group = Workgroup::new(3);
        group.signal(0);
        group.end_wave(0);
        assert_eq!(group.barrier(0).completed, 0);
        group.end_wave(0);
        assert_eq!(group.barrier(0).completed, 1);
        group.end_wave(0);
        assert_eq!(group.barrier(0).completed, 1, "nobody waits: nothing completes");
    }

    #[test]
    fn named_barriers_have_their_own_members() {
        let mut group = Workgroup::new(8);
        group.set_members(2, 2);
        group.signal(2);
        assert_eq!(group.barrier(2).completed, 0);
        group.leave(2);
        assert_eq!(group.barrier(2), Barrier { members: 1, signals: 0, completed: 1 });
        assert_eq!(group.barrier(0).completed, 0);
    }

    #[test]
    fn a_workgroup_has_only_some_barriers() {
        let mut group = Workgroup::new(2);
        assert_eq!(group.own_index(CLUSTER_BARRIER), None);
        group.set_named_barriers(4, true);
        assert_eq!((group.own_index(4), group.own_index(5)), (Some(4), None));
        let mut single = Workgroup::new(1);
        single.set_cluster(place(1));
        assert_eq!(single.own_index(WORKGROUP_BARRIER), None);
        assert_eq!(single.own_index(CLUSTER_BARRIER), Some(CLUSTER_INDEX));
    }

    fn place(x: u32) -> ClusterPlace {
        ClusterPlace { id: 1, position: [0; 3], workgroup: [x, 0, 0], size: [2, 1, 1] }
    }

    #[test]
    fn a_cluster_barrier_counts_workgroups() {
        let [mut a, mut b] = [0, 1].map(|x| {
            let mut group = Workgroup::new(1);
            group.set_cluster(place(x));
            group
        });
        assert!(a.signal(CLUSTER_INDEX));
        b.take_common(&a.common());
        assert_eq!(b.barrier(CLUSTER_INDEX), Barrier { members: 2, signals: 1, completed: 0 });
        b.end_wave(0);
        assert_eq!(b.barrier(CLUSTER_INDEX), Barrier { members: 1, signals: 0, completed: 1 });
    }

    #[test]
    fn places_are_numbered_x_first() {
        let place = ClusterPlace { id: 1, position: [0; 3], workgroup: [1, 2, 1], size: [2, 3, 2] };
        assert_eq!((place.index(), place.count()), (11, 12));
    }
}
