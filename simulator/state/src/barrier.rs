//! Barriers of a workgroup (RDNA3 manual, *Work-groups and Barriers*; RDNA4 manual, *Work-groups and
//! Barriers*, where arrival and wait are separate instructions).
//!
//! A barrier counts its completions, and a wave remembers the count that it has passed
//! ([`crate::Wave::passed`]). If the two differ, the barrier has completed since: the manual calls
//! this the wave's barrierComplete bit.

/// Number of named barriers of a workgroup, which are numbered from 1.
pub const NAMED_BARRIERS: usize = 16;

/// The number by which instructions refer to the workgroup's own barrier.
pub const WORKGROUP_BARRIER: i32 = -1;

/// State that the waves of a workgroup share besides LDS.
#[derive(Debug, Clone, Default)]
pub struct Workgroup {
    /// The workgroup's own at index 0, then the named ones.
    barriers: [Barrier; NAMED_BARRIERS + 1],
    /// Number of waves at the start.
    waves: u32,
    /// Number of waves that have not ended.
    live: u32,
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
    /// Creates the state of a workgroup that starts with this many waves.
    pub fn new(waves: u32) -> Workgroup {
        Workgroup { waves, live: waves, ..Workgroup::default() }
    }

    /// Returns the index of a barrier; `None` for numbers without effect: 0, and -2, the trap handler's.
    #[inline]
    pub fn index(barrier: i32) -> Option<usize> {
        match barrier {
            WORKGROUP_BARRIER => Some(0),
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

    /// Initialises a named barrier.
    pub fn init(&mut self, index: usize, members: u32) {
        self.barriers[index].members = members;
        self.barriers[index].signals = 0;
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
        for none in [0, -2, 17, i32::MIN, i32::MAX] {
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
        group.init(2, 2);
        group.signal(2);
        assert_eq!(group.barrier(2).completed, 0);
        group.leave(2);
        assert_eq!(group.barrier(2), Barrier { members: 1, signals: 0, completed: 1 });
        assert_eq!(group.barrier(0).completed, 0);
    }
}
