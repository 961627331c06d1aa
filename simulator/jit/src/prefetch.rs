//! What compiled code calls to prefetch memory for waves that follow.

use crate::frame::{Frame, called};
use wavesim_machine::state::wave::STREAMS;

/// Iterations of a loop that its memory is prefetched ahead, as a power of two.
pub const AHEAD_SHIFT: i32 = 2;
/// Iterations of a loop from which on its strides are worth knowing when the next wave runs it.
pub const LONG: i32 = 8;
/// The distance within which a wave continues where another one began.
const NEAR: i64 = 1 << 20;

called! {
    /// A wave has begun a loop that another one has run for many iterations: prefetches the first iterations of the wave after it, which
    /// begins as far from this one as this one began from the last, and takes the same strides. Nothing else would prefetch them.
    /// In [`Frame::room`] are the host address of the access, the number of its stream, the displacement, and the cache lines of an
    /// iteration.
    ///
    /// # Safety
    /// Called by compiled code with its frame.
    pub unsafe fn next_wave(frame: *mut Frame) -> () {
        // SAFETY: by the contract; the room is longer.
        let [host, stream, disp, lines] = unsafe { (&raw const (*frame).room).cast::<[u64; 4]>().read() };
        // SAFETY: the frame has a wave, which nothing else refers to while code runs.
        let stream = unsafe { &mut (*(*frame).wave_ptr()).streams[stream as usize % STREAMS] };
        let (distance, stride) = (host.wrapping_sub(stream.start), stream.stride);
        (stream.start, stream.repeats) = (host, 0);
        if (distance as i64).abs() > NEAR {
            return;
        }
        let own = host.wrapping_add(stride << AHEAD_SHIFT);
        let next = (0..1 << AHEAD_SHIFT)
            .map(|iteration| host.wrapping_add(distance).wrapping_add(stride.wrapping_mul(iteration)));
        for start in std::iter::once(own).chain(next) {
            (0..lines).for_each(|line| prefetch(start.wrapping_add(disp).wrapping_add(64 * line)));
        }
    }
}

/// Prefetches a cache line to the second-level cache, at any address.
fn prefetch(address: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accesses nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address as usize));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
