//! Barriers of a workgroup (RDNA3 manual, *Work-groups and Barriers*; RDNA4 manual, *Work-groups and Barriers*, whose arrival and wait
//! are separate instructions).
//!
//! A barrier counts its completions. A wave remembers the count it has passed ([`crate::state::Wave::passed`]); where the two
//! differ, the barrier has completed since: what the manual calls the wave's barrierComplete bit.

/// Named barriers that a workgroup has; numbers from 1.
pub const NAMED: usize = 16;

/// The workgroup's own barrier, as instructions number it.
pub const WORKGROUP: i32 = -1;

/// What the waves of a workgroup share besides LDS.
#[derive(Debug, Clone, Default)]
pub struct Workgroup {
    /// The workgroup's own at index 0, then the named ones.
    barriers: [Barrier; NAMED + 1],
    /// Waves at the start.
    waves: u32,
    /// Waves that have not ended.
    live: u32,
}

/// One barrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Barrier {
    /// Waves that must signal. The workgroup's own barrier takes the live waves instead.
    pub members: u32,
    /// Signals since the last completion.
    pub signals: u32,
    /// Completions so far.
    pub completed: u32,
}

impl Workgroup {
    /// Of a workgroup that starts with so many waves.
    pub fn new(waves: u32) -> Workgroup {
        Workgroup { waves, live: waves, ..Workgroup::default() }
    }

    /// Index of a barrier; `None` for numbers that do nothing: 0, and -2, which is the trap handler's.
    #[inline]
    pub fn index(barrier: i32) -> Option<usize> {
        match barrier {
            WORKGROUP => Some(0),
            1.. if barrier as usize <= NAMED => Some(barrier as usize),
            _ => None,
        }
    }

    /// Waves that have not ended.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// A workgroup of one wave has no barrier: every barrier instruction is a no-op.
    #[inline]
    pub fn in_group(&self) -> bool {
        self.waves > 1
    }

    /// The state of a barrier, by its [`Workgroup::index`]; of the workgroup's own, `members` are the waves that have not ended.
    #[inline]
    pub fn barrier(&self, index: usize) -> Barrier {
        let mut barrier = self.barriers[index];
        if index == 0 {
            barrier.members = self.live;
        }
        barrier
    }

    /// One arrival; true for the first since the last completion.
    #[inline]
    pub fn signal(&mut self, index: usize) -> bool {
        let first = self.barriers[index].signals == 0;
        self.barriers[index].signals += 1;
        self.check(index);
        first
    }

    /// Sets up a named barrier.
    pub fn init(&mut self, index: usize, members: u32) {
        self.barriers[index].members = members;
        self.barriers[index].signals = 0;
    }

    /// A wave stops being a member of a named barrier.
    pub fn leave(&mut self, index: usize) {
        self.barriers[index].members = self.barriers[index].members.saturating_sub(1);
        self.complete_waiting(index);
    }

    /// A wave ended. It does not hold up the others.
    pub fn end_wave(&mut self, joined: u32) {
        self.live = self.live.saturating_sub(1);
        self.complete_waiting(0);
        if joined != 0 && joined as usize <= NAMED {
            self.leave(joined as usize);
        }
    }

    /// After a member is gone: waves that have signalled may be all that are left.
    fn complete_waiting(&mut self, index: usize) {
        if self.barriers[index].signals > 0 {
            self.check(index);
        }
    }

    #[inline]
    fn check(&mut self, index: usize) {
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
    fn finished_waves_hold_nobody_up() {
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
