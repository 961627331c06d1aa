//! What compiled code calls for prefetches.

use crate::frame::{Frame, called};
use wavesim_machine::state::stream::STREAMS;

/// Number of successive accesses with one stride from which on the next loop is expected to have it, too.
pub const MIN_REPEATS: i32 = 8;

called! {
    /// Called when a loop starts that has run before, mostly in the wave that this register file had before:
    /// [`Stream::start_loop`](wavesim_machine::state::stream::Stream::start_loop). [`Frame::lane_buffer`] has
    /// the host address of the access and the index of its stream.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn start_loop(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments.
        let [start, stream] = unsafe { (&raw const (*frame).lane_buffer).cast::<[u64; 2]>().read() };
        // SAFETY: the frame has a valid wave, to which no other reference exists while compiled code runs.
        let stream = unsafe { &mut (*(*frame).wave_ptr()).streams[stream as usize % STREAMS] };
        stream.start_loop(start);
    }
}
