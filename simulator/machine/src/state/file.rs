//! The vector registers of a wave: a file for each 32 lanes, with everything in it that a lane handler needs, so that a handler with a
//! pointer to one file runs 32 lanes, whichever half of the wave they are.

use super::wave::{LaneVec, ROWS};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Lane vectors of each 32 lanes: [`ROWS`] that operations can number, then what the machine knows of the half.
pub const LANE_VECS: usize = ROWS + 2 + CODES / size_of::<LaneVec>();
/// EXEC of the half as a lane mask: all ones or zero.
const MASK: usize = ROWS;
/// EXEC of the half, in the first word.
const EXEC: usize = ROWS + 1;
/// Flags of each lane vector, a byte each: [`NO_DENORMALS`], [`UNWRITTEN`].
const FLAGS: usize = ROWS + 2;
/// Lane vectors that a source's code can number: a table of so many needs no bounds check.
const CODES: usize = 1024;
const _: () = assert!(ROWS <= CODES);

/// No f32 denormal in any lane: handlers that flush denormals need not search for them.
pub const NO_DENORMALS: u8 = 1;
/// A VGPR that nothing has written since the wave began: zero.
pub(super) const UNWRITTEN: u8 = 2;

/// The files of a wave. Its own allocation, and no `Box`: pointers to a half stay valid while the lane vectors are used in other ways.
pub(crate) struct Files(NonNull<[LaneVec]>);

// SAFETY: it owns its lane vectors, which are plain data.
unsafe impl Send for Files {}
// SAFETY: likewise.
unsafe impl Sync for Files {}

impl Files {
    /// Zeros, for 32 lanes each.
    pub fn new(halves: usize) -> Files {
        // From the allocator, which need not write them.
        // SAFETY: lane vectors are numbers, which may be zero.
        let zeros = unsafe { Box::new_zeroed_slice(LANE_VECS * halves).assume_init() };
        Files(NonNull::from(Box::leak(zeros)))
    }

    /// The file of a half, or the first one if there are not so many.
    #[inline(always)]
    pub fn half(&self, half: usize) -> Half {
        let at = if half * LANE_VECS < self.0.len() { half * LANE_VECS } else { 0 };
        Half(self.0.as_ptr().cast::<LaneVec>().wrapping_add(at))
    }

    /// The lane vectors of a half that operations can number, and their flags.
    pub(super) fn parts(&mut self, half: usize) -> (&mut [LaneVec], &mut [u8; CODES]) {
        let (vecs, state) = self[half * LANE_VECS..][..LANE_VECS].split_at_mut(FLAGS);
        debug_assert!(size_of_val(state) == CODES);
        // SAFETY: the slice has as many bytes, any of which are numbers.
        (&mut vecs[..ROWS], unsafe { &mut *state.as_mut_ptr().cast() })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Clone for Files {
    fn clone(&self) -> Files {
        Files(NonNull::from(Box::leak(Box::<[LaneVec]>::from(&self[..]))))
    }
}

impl Deref for Files {
    type Target = [LaneVec];

    #[inline(always)]
    fn deref(&self) -> &[LaneVec] {
        // SAFETY: the allocation lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for Files {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [LaneVec] {
        // SAFETY: likewise, and it is borrowed mutably.
        unsafe { self.0.as_mut() }
    }
}

/// A pointer to the file of 32 lanes, [`LANE_VECS`] lane vectors. Using it is unsafe: the wave must be alive, and nothing else must be
/// using what is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half(*mut LaneVec);

impl Half {
    /// The file after this one.
    #[inline(always)]
    pub fn next(self) -> Half {
        Half(self.0.wrapping_add(LANE_VECS))
    }

    /// A lane vector, or where it would be.
    #[inline(always)]
    pub fn at(self, vec: usize) -> *mut LaneVec {
        self.0.wrapping_add(vec)
    }

    /// EXEC of these lanes.
    ///
    /// # Safety
    /// The file is a live wave's.
    #[inline(always)]
    pub unsafe fn exec(self) -> u32 {
        // SAFETY: by the contract, W1.
        unsafe { (*self.at(EXEC)).0[0] }
    }

    /// EXEC as a lane mask.
    ///
    /// # Safety
    /// As for [`Half::exec`].
    #[inline(always)]
    pub unsafe fn mask(self) -> LaneVec {
        // SAFETY: by the contract, W1.
        unsafe { *self.at(MASK) }
    }

    /// Where the mask is.
    #[inline(always)]
    pub(crate) fn mask_at(self) -> *const LaneVec {
        self.at(MASK)
    }

    /// Sets both. Outside of `state`, for the time of one handler: the EXEC registers stay as they are.
    ///
    /// # Safety
    /// As for [`Half::exec`].
    #[inline(always)]
    pub(crate) unsafe fn set_exec(self, bits: u32) {
        // SAFETY: by the contract, W1.
        unsafe {
            (*self.at(EXEC)).0[0] = bits;
            let mask = &mut *self.at(MASK);
            for lane in 0..32 {
                mask.0[lane] = if bits & 1 << lane != 0 { u32::MAX } else { 0 };
            }
        }
    }

    /// Where the flags of the lane vectors begin, a byte each, for compiled code. What it writes has at most [`NO_DENORMALS`] set, and that
    /// only where no lane has an f32 denormal.
    pub fn all_flags(self) -> *mut u8 {
        self.flag(0)
    }

    #[inline(always)]
    fn flag(self, vec: usize) -> *mut u8 {
        debug_assert!(vec < CODES);
        self.at(FLAGS).cast::<u8>().wrapping_add(vec)
    }

    /// The flags of a lane vector: the lowest bit is set if it has no f32 denormal.
    ///
    /// # Safety
    /// As for [`Half::exec`]; `vec` is below [`ROWS`].
    #[inline(always)]
    pub unsafe fn flags(self, vec: usize) -> u8 {
        // SAFETY: by the contract.
        unsafe { *self.flag(vec) }
    }

    /// Sets the flags after a lane vector was written or searched.
    ///
    /// # Safety
    /// As for [`Half::flags`].
    #[inline(always)]
    pub unsafe fn set_no_denormals(self, vec: usize, clean: bool) {
        // SAFETY: by the contract.
        unsafe { *self.flag(vec) = clean as u8 };
    }

    /// Some lanes were written with values that are not f32 denormals: the flag for denormals stays as it was.
    ///
    /// # Safety
    /// As for [`Half::flags`].
    #[inline(always)]
    pub unsafe fn mark_written(self, vec: usize) {
        // SAFETY: by the contract.
        unsafe { *self.flag(vec) &= NO_DENORMALS };
    }
}
