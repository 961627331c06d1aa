//! What compiled code calls for stores past the host's caches: see [`StoreTimes`].

use crate::frame::{Frame, called};
use wavesim_machine::state::store_times::StoreTimes;
use wavesim_machine::state::wave::STORE_TIMES;

called! {
    /// Called before the steady iterations of a loop that is measured. [`Frame::lane_buffer`] has the index
    /// of the measurements.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn begin_stores(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the argument.
        let index = unsafe { (&raw const (*frame).lane_buffer).cast::<u64>().read() };
        // SAFETY: the frame has a valid wave, to which no other reference exists while compiled code runs.
        let times = unsafe { &mut (*(*frame).wave_ptr()).store_times[index as usize % STORE_TIMES] };
        times.start = ticks();
    }
}

called! {
    /// Called after the steady iterations of a loop that was measured, or steps through much memory.
    /// [`Frame::lane_buffer`] has the index of the measurements, the number of iterations, and the distance
    /// from the first to the last one in bytes, which may be negative.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame.
    pub unsafe fn end_stores(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments.
        let [index, iterations, span] =
            unsafe { (&raw const (*frame).lane_buffer).cast::<[u64; 3]>().read() };
        // SAFETY: the frame has a valid wave, to which no other reference exists while compiled code runs.
        let times = unsafe { &mut (*(*frame).wave_ptr()).store_times[index as usize % STORE_TIMES] };
        if times.choice == StoreTimes::STREAMING {
            order_stores();
        }
        let ticks = ticks().wrapping_sub(times.start);
        times.record(ticks, iterations, (span as i64).unsigned_abs());
    }
}

/// Returns the host's time, in ticks of a constant length.
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Makes stores past the caches visible to other threads before the stores that follow.
fn order_stores() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
