//! Where loads and stores of compiled code are in the host's memory: ranges of global memory that were found last.

use crate::frame::{Frame, called};
use std::mem::{MaybeUninit, offset_of};
use wavesim_machine::memory::HostRange;

/// Ranges that a frame keeps for loads, and as many for stores. Which one an access uses is known when it is compiled.
pub const RANGES: usize = 8;

/// Ranges of global memory by place: those for loads, then those for stores.
#[repr(C)]
pub struct Ranges {
    /// Bytes of each; 0 where there is none.
    len: [u64; 2 * RANGES],
    /// The rest, where there is one. Every entry to compiled code makes a table: only the lengths are set then.
    found: [MaybeUninit<Found>; 2 * RANGES],
}

/// Where a range is.
#[repr(C)]
pub struct Found {
    base: u64,
    host: *mut u8,
}

impl Ranges {
    /// No ranges.
    #[inline(always)]
    pub fn none() -> Ranges {
        Ranges { len: [0; 2 * RANGES], found: [const { MaybeUninit::uninit() }; 2 * RANGES] }
    }

    /// Offset of the length of a range.
    pub const fn len_at(place: usize) -> usize {
        offset_of!(Ranges, len) + 8 * place
    }

    /// Offset of its address.
    pub const fn base_at(place: usize) -> usize {
        offset_of!(Ranges, found) + size_of::<Found>() * place + offset_of!(Found, base)
    }

    /// Offset of its address in the host's memory.
    pub const fn host_at(place: usize) -> usize {
        offset_of!(Ranges, found) + size_of::<Found>() * place + offset_of!(Found, host)
    }
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
        unsafe {
            (*frame).ranges.len[place as usize] = len;
            (*frame).ranges.found[place as usize].write(Found { base, host });
        }
        1
    }
}
