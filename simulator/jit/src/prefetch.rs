//! Prefetches that compiled code requests for the waves that follow.

use crate::frame::{Frame, called};
use wavesim_machine::state::wave::STREAMS;

/// Number of successive accesses with one stride from which on the next wave is expected to take it, too.
pub const MIN_REPEATS: i32 = 8;
/// The maximum number of loop iterations that memory is prefetched ahead.
pub const MAX_AHEAD: usize = 4;
/// Maximum distance between the start addresses of successive waves.
const MAX_DISTANCE: u64 = 1 << 20;

called! {
    /// Called when a wave starts a loop that the previous wave in its register file has run: prefetches the
    /// first iterations of the wave after it, which nothing else would prefetch. That wave is expected to
    /// start as far from this one as this one started from the previous one, and to use the same stride.
    /// [`Frame::lane_buffer`] has the host address of the access, the index of its stream, the displacement,
    /// the number of cache lines of an iteration, and how many iterations ahead memory is prefetched, at most
    /// [`MAX_AHEAD`].
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn prefetch_next_wave(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments.
        let [start, stream, disp, lines, ahead] =
            unsafe { (&raw const (*frame).lane_buffer).cast::<[u64; 5]>().read() };
        // SAFETY: the frame has a valid wave, to which no other reference exists while compiled code runs.
        let stream = unsafe { &mut (*(*frame).wave_ptr()).streams[stream as usize % STREAMS] };
        let (distance, stride) = (start.wrapping_sub(stream.start), stream.stride);
        (stream.start, stream.repeats) = (start, 0);
        // Without a next wave that is near, only the own iteration.
        let near = (distance as i64).unsigned_abs() <= MAX_DISTANCE;
        let own = start.wrapping_add(stride.wrapping_mul(ahead));
        let next = start.wrapping_add(distance);
        let mut addresses = [own; 1 + MAX_AHEAD];
        let used = 1 + if near { (ahead as usize).min(MAX_AHEAD) } else { 0 };
        for (address, iteration) in addresses[1..used].iter_mut().zip(0..) {
            *address = next.wrapping_add(stride.wrapping_mul(iteration));
        }
        for line in 0..lines {
            let at = |address: u64| address.wrapping_add(disp).wrapping_add(64 * line);
            addresses[..used].iter().for_each(|address| prefetch(at(*address)));
        }
    }
}

/// Prefetches a cache line to the second-level cache; the address need not be valid.
fn prefetch(address: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect on the program, and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address as usize));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
