//! The ranges of global memory that compiled code accessed last, with their host addresses.

use crate::frame::{Frame, called};
use std::mem::{MaybeUninit, offset_of};
use wavesim_machine::memory::HostRange;

/// The number of cached ranges for vector loads, and for vector stores. Which one an access uses is fixed at
/// compile time.
pub const RANGES: usize = 8;

/// The number of cached ranges for scalar loads.
pub const WAVE_RANGES: usize = 4;
/// The index of the first of them.
pub const WAVE_FIRST: usize = 2 * RANGES;
/// The number of all cached ranges.
const COUNT: usize = WAVE_FIRST + WAVE_RANGES;

/// Cached ranges of global memory: those for vector loads, then those for vector stores, then those for
/// scalar loads.
#[repr(C)]
pub struct Ranges {
    /// Sizes in bytes; 0 for an empty entry.
    len: [u64; COUNT],
    /// The other fields of valid entries. Since every entry to compiled code creates a cache, only the sizes
    /// are initialised then.
    found: [MaybeUninit<Found>; COUNT],
}

/// The address of a range, in the guest and in the host.
#[repr(C)]
pub struct Found {
    base: u64,
    host: *mut u8,
}

impl Ranges {
    /// Returns an empty cache.
    #[inline(always)]
    pub fn none() -> Ranges {
        Ranges { len: [0; COUNT], found: [const { MaybeUninit::uninit() }; COUNT] }
    }

    /// Returns the offset of an entry's size.
    pub const fn len_at(place: usize) -> usize {
        offset_of!(Ranges, len) + 8 * place
    }

    /// Returns the offset of an entry's guest address.
    pub const fn base_at(place: usize) -> usize {
        offset_of!(Ranges, found) + size_of::<Found>() * place + offset_of!(Found, base)
    }

    /// Returns the offset of an entry's host address.
    pub const fn host_at(place: usize) -> usize {
        offset_of!(Ranges, found) + size_of::<Found>() * place + offset_of!(Found, host)
    }
}

/// The index of [`find_range`]'s result in [`Frame::lane_buffer`], after its arguments.
pub const FOUND: usize = 3;

called! {
    /// Finds the range that contains some bytes, and caches it in an entry of [`Frame::ranges`]; for the
    /// entries of stores, it must be writable. [`Frame::lane_buffer`] has the address, the entry's index and
    /// the number of bytes; the result is 0 if there is no such range.
    ///
    /// # Safety
    /// Must be called by compiled code with its frame, and with the index of an entry.
    pub unsafe fn find(frame: *mut Frame) -> () {
        // SAFETY: the contract guarantees a valid frame, whose buffer has the arguments.
        let [address, place, bytes] = unsafe { (&raw const (*frame).room).cast::<[u64; 3]>().read() };
        // SAFETY: the contract guarantees a valid frame; no other reference to the context exists during the
        // call.
        let cx = unsafe { Frame::cx(frame) };
        let place = place as usize;
        let found = cx.memory.range_of(address).filter(|range| {
            range.host_of(address, bytes, (RANGES..WAVE_FIRST).contains(&place)).is_some()
        });
        // SAFETY: the contract guarantees that the index is valid; the buffer is longer than the arguments
        // and the result.
        unsafe {
            if let Some(HostRange { base, len, host, .. }) = &found {
                (*frame).ranges.len[place] = *len;
                (*frame).ranges.found[place].write(Found { base: *base, host: *host });
            }
            (&raw mut (*frame).room).cast::<u64>().add(FOUND).write(found.is_some() as u64);
        }
    }
}
