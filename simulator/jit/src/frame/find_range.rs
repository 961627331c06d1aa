//! The search for ranges of global memory.

use super::{Frame, called};
use crate::ranges::{FIRST_SCALAR_RANGE, RANGES};
use wavesim_machine::memory::HostRange;

/// The index of [`find_range`]'s result in [`Frame::lane_buffer`], after its arguments.
pub const FOUND_SLOT: usize = 3;

called! {
    /// Finds the range that contains some bytes, and caches it in an entry of [`Frame::ranges`]; for the
    /// entries of stores, it must be writable. [`Frame::lane_buffer`] has the address, the entry's index and
    /// the number of bytes; the result is 0 if there is no such range.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, and with the index of an entry.
    pub unsafe fn find_range(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments.
        let [address, entry, bytes] = unsafe { (&raw const (*frame).lane_buffer).cast::<[u64; 3]>().read() };
        // SAFETY: the contract guarantees a valid frame; no other reference to the context exists during the
        // call.
        let cx = unsafe { Frame::cx(frame) };
        let entry = entry as usize;
        let found = cx.memory.range_of(address).filter(|range| {
            range.host_of(address, bytes, (RANGES..FIRST_SCALAR_RANGE).contains(&entry)).is_some()
        });
        // SAFETY: the contract guarantees that the index is valid; the buffer is longer than the arguments
        // and the result.
        unsafe {
            if let Some(HostRange { base, len, host, .. }) = &found {
                (*frame).ranges.set(entry, *base, *len, *host);
            }
            (&raw mut (*frame).lane_buffer).cast::<u64>().add(FOUND_SLOT).write(found.is_some() as u64);
        }
    }
}
