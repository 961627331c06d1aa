//! Where loads and stores of compiled code are in the host's memory: ranges of global memory that were found last.

use crate::frame::{Frame, called};
use wavesim_machine::memory::HostRange;

/// Ranges that a frame keeps for loads, and as many for stores. Which one an access uses is known when it is compiled.
pub const RANGES: usize = 8;

/// A range of global memory, or none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Range {
    pub base: u64,
    pub len: u64,
    pub host: *mut u8,
}

impl Range {
    /// No memory.
    pub const EMPTY: Range = Range { base: 0, len: 0, host: std::ptr::null_mut() };
}

called! {
    /// Finds the range with some bytes and keeps it at a place of [`Frame::ranges`]: from [`RANGES`] on, one that may be written. 0: there is none.
    ///
    /// # Safety
    /// Called by compiled code with its frame, and with a place in `ranges`.
    pub unsafe fn find(frame: *mut Frame, place: u32, address: u64, bytes: u64) -> u32 {
        // SAFETY: by the contract, here and below.
        let cx = unsafe { Frame::cx(frame) };
        let write = place as usize >= RANGES;
        let Some(range) = cx.memory.range_of(address) else { return 0 };
        if range.host_of(address, bytes, write).is_none() {
            return 0;
        }
        let HostRange { base, len, host, .. } = range;
        // SAFETY: the place is one of the frame.
        unsafe { (*frame).ranges[place as usize] = Range { base, len, host } };
        1
    }
}
