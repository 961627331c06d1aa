//! The address streams of memory instructions, as hints for prefetching.

/// The number of streams of a register file.
pub const STREAMS: usize = 64;

/// Maximum distance between the start addresses of successive loops in bytes.
const MAX_DISTANCE: u64 = 1 << 20;

/// The address stream of a memory instruction: a wave steps through memory in a loop, and the next loop,
/// mostly of the next wave in this register file, starts at another address. Not part of the machine's state,
/// so that [`Wave::reset`](super::Wave::reset) keeps it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Stream {
    /// The host address of the last access.
    pub last: u64,
    /// The distance between successive accesses.
    pub stride: u64,
    /// How many successive accesses had this distance.
    pub repeats: u64,
    /// The host address at which the current loop began.
    start: u64,
    /// The number of accesses of the loop before it, which the current one is expected to have, too.
    pub accesses: u64,
    /// The distance from the access that would follow the loop's last one to the first one of the next loop,
    /// as expected.
    pub to_next: u64,
}

impl Stream {
    /// Starts a loop. It is expected to have as many accesses as the one before, and the next one is expected
    /// to start as far from this one as this one starts from the one before.
    pub fn start_loop(&mut self, start: u64) {
        let distance = start.wrapping_sub(self.start);
        self.accesses = self.repeats.wrapping_add(1);
        // If the next loop is not near, as if this one went on.
        let near = (distance as i64).unsigned_abs() <= MAX_DISTANCE;
        let length = self.accesses.wrapping_mul(self.stride);
        self.to_next = if near { distance.wrapping_sub(length) } else { 0 };
        (self.start, self.repeats) = (start, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a loop's last access, [`Stream::to_next`] leads to the next loop.
    #[test]
    fn loops_lead_to_the_next_ones() {
        const BASE: u64 = 0x1000_0000;
        for (stride, accesses, distance) in
            [(1 << 18, 32, 512), (4096, 9, -512i64 as u64), (0u64.wrapping_sub(64), 10, 640)]
        {
            let mut stream = Stream::default();
            let mut starts = (0..4u64).map(|n| BASE.wrapping_add(distance.wrapping_mul(n)));
            for start in starts.by_ref().take(3) {
                stream.start_loop(start);
                (stream.stride, stream.repeats) = (stride, accesses - 1);
                stream.last = start.wrapping_add(stride.wrapping_mul(accesses - 1));
            }
            assert_eq!(stream.accesses, accesses);
            assert_eq!(Some(stream.last.wrapping_add(stride).wrapping_add(stream.to_next)), starts.next());
        }
        let mut stream = Stream::default();
        (stream.stride, stream.repeats) = (64, 9);
        stream.start_loop(BASE);
        assert_eq!((stream.accesses, stream.to_next), (10, 0), "the loop before was elsewhere");
    }
}
