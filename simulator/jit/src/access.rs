//! Where loads and stores of compiled code are in the host's memory: ranges of global memory that were found last.

use crate::frame::{Frame, called};
use std::mem::{MaybeUninit, offset_of};
use wavesim_machine::memory::HostRange;

/// Ranges that a frame keeps for loads, and as many for stores. Which one an access uses is known when it is compiled.
pub const RANGES: usize = 8;

/// Ranges for loads of the wave.
pub const WAVE_RANGES: usize = 4;
/// The first of them.
pub const WAVE_FIRST: usize = 2 * RANGES;
/// All of them.
const COUNT: usize = WAVE_FIRST + WAVE_RANGES;

/// Ranges of global memory by place: those for loads, then those for stores, and those for loads of the wave.
#[repr(C)]
pub struct Ranges {
    /// Bytes of each; 0 where there is none.
    len: [u64; COUNT],
    /// The rest, where there is one. Every entry to compiled code makes a table: only the lengths are set then.
    found: [MaybeUninit<Found>; COUNT],
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
        Ranges { len: [0; COUNT], found: [const { MaybeUninit::uninit() }; COUNT] }
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

/// Where [`find`] puts its result in [`Frame::room`], after its arguments.
pub const FOUND: usize = 3;

called! {
    /// Finds the range with some bytes and keeps it at a place of [`Frame::ranges`]: at those for stores, one that may be written. In
    /// [`Frame::room`] are the address, the place and the bytes; the result is 0 if there is none.
    ///
    /// # Safety
    /// Called by compiled code with its frame, and with a place in `ranges`.
    pub unsafe fn find(frame: *mut Frame) -> () {
        // SAFETY: by the contract, here and below.
        let [address, place, bytes] = unsafe { (&raw const (*frame).room).cast::<[u64; 3]>().read() };
        // SAFETY: likewise.
        let cx = unsafe { Frame::cx(frame) };
        let place = place as usize;
        let found = cx.memory.range_of(address).filter(|range| {
            range.host_of(address, bytes, (RANGES..WAVE_FIRST).contains(&place)).is_some()
        });
        // SAFETY: the place is one of the frame, and the room is longer.
        unsafe {
            if let Some(HostRange { base, len, host, .. }) = &found {
                (*frame).ranges.len[place] = *len;
                (*frame).ranges.found[place].write(Found { base: *base, host: *host });
            }
            (&raw mut (*frame).room).cast::<u64>().add(FOUND).write(found.is_some() as u64);
        }
    }
}
