//! The choice between stores through the host's caches and past them (non-temporal stores).
//!
//! A store into a cache first loads the line that it overwrites, and later the line is written to memory.
//! Where a loop stores more than the caches hold, stores past them take two thirds of the time. Where they
//! hold it, such stores take longer, and so does what reads the memory next. Hence loops that step through
//! much memory are measured both ways.

/// Measurements of loops that store whole cache lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct StoreTimes {
    /// How the next loop stores: [`StoreTimes::UNMEASURED`], [`StoreTimes::CACHED`] or
    /// [`StoreTimes::STREAMING`].
    pub choice: u64,
    /// The time at which the current loop started, in ticks of the host.
    pub start: u64,
    /// The number of loops measured.
    loops: u64,
    /// The shortest time of an iteration, through the caches and past them.
    shortest: [u64; 2],
}

impl StoreTimes {
    /// Through the caches. The loop is only measured if it turns out to step through much memory.
    pub const UNMEASURED: u64 = 0;
    /// Through the caches.
    pub const CACHED: u64 = 1;
    /// Past the caches.
    pub const STREAMING: u64 = 2;

    /// Loops that step through fewer bytes store through the caches in any case. Second-level caches of
    /// current hosts have less, third-level caches several times more.
    pub const MIN_SPAN: u64 = 4 << 20;
    /// The minimum number of iterations of a loop that is measured.
    const MIN_ITERATIONS: u64 = 8;
    /// The number of loops until both ways are measured again.
    const PERIOD: u64 = 256;
    /// The number of loops of a period in which each way is measured.
    const SAMPLES: u64 = 2;
    /// The number of loops of a period that are measured.
    const MEASURED: u64 = 2 * StoreTimes::SAMPLES;

    /// Records a loop with the distance from its first to its last iteration in bytes, and chooses how the
    /// next one stores. Stores go past the caches only if that is at least an eighth faster.
    pub fn record(&mut self, ticks: u64, iterations: u64, span: u64) {
        if iterations < StoreTimes::MIN_ITERATIONS || span < StoreTimes::MIN_SPAN {
            *self = StoreTimes::default();
            return;
        }
        if self.choice != StoreTimes::UNMEASURED {
            let shortest = &mut self.shortest[(self.choice == StoreTimes::STREAMING) as usize];
            *shortest = (*shortest).min(ticks / iterations);
            self.loops += 1;
        }
        let at = self.loops % StoreTimes::PERIOD;
        if at == 0 {
            self.shortest = [u64::MAX; 2];
        }
        let [cached, streaming] = self.shortest;
        let stream = match at {
            0..StoreTimes::SAMPLES => false,
            StoreTimes::SAMPLES..StoreTimes::MEASURED => true,
            _ => streaming < cached - cached / 8,
        };
        self.choice = if stream { StoreTimes::STREAMING } else { StoreTimes::CACHED };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 8 << 20;

    /// Runs loops whose iterations take these ticks through the caches and past them; returns how often the
    /// stores went past them.
    fn streamed(times: &mut StoreTimes, loops: u64, ticks: [u64; 2]) -> u64 {
        let mut count = 0;
        for _ in 0..loops {
            let streaming = times.choice == StoreTimes::STREAMING;
            count += streaming as u64;
            times.record(30 * ticks[streaming as usize], 30, SPAN);
        }
        count
    }

    #[test]
    fn the_faster_way_is_chosen() {
        const PERIOD: u64 = StoreTimes::PERIOD;
        const SAMPLES: u64 = StoreTimes::SAMPLES;
        let mut times = StoreTimes::default();
        // The first loop is not measured.
        assert_eq!(streamed(&mut times, 1, [100, 80]), 0);
        assert_eq!(streamed(&mut times, PERIOD, [100, 80]), PERIOD - SAMPLES);
        // Both ways are measured again in each period.
        assert_eq!(streamed(&mut times, PERIOD, [100, 120]), SAMPLES);
        assert_eq!(streamed(&mut times, PERIOD, [100, 90]), SAMPLES, "hardly faster");
        assert_eq!(streamed(&mut times, PERIOD, [100, 80]), PERIOD - SAMPLES);
    }

    /// A loop that was interrupted does not decide.
    #[test]
    fn the_shortest_time_counts() {
        let mut times = StoreTimes::default();
        streamed(&mut times, 1, [0, 0]);
        for ticks in [[900, 0], [100, 0], [0, 700], [0, 80]] {
            assert_ne!(times.choice, StoreTimes::UNMEASURED);
            streamed(&mut times, 1, ticks);
        }
        assert_eq!(times.choice, StoreTimes::STREAMING);
    }

    #[test]
    fn small_loops_are_not_measured() {
        let mut times = StoreTimes::default();
        for (iterations, span) in [(30, StoreTimes::MIN_SPAN - 1), (StoreTimes::MIN_ITERATIONS - 1, SPAN)] {
            streamed(&mut times, 10, [100, 80]);
            assert_eq!(times.choice, StoreTimes::STREAMING);
            times.record(1000, iterations, span);
            assert_eq!(times, StoreTimes::default());
        }
    }
}
