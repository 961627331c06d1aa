//! The vector registers of a wave: one file per 32 lanes. A file contains everything that a lane handler
//! needs, so that a handler can run on either half of a wave given a pointer to its file.

use super::layout::{ALL_VGPRS, LaneVec, OPERAND_VECS};
use memmap2::MmapMut;
use std::alloc::Layout;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Lane vectors of a file: [`OPERAND_VECS`] that operations can number, then EXEC and flags.
pub const LANE_VECS: usize = OPERAND_VECS + 2 + CODES / size_of::<LaneVec>();
/// EXEC of the half as a lane mask: all ones or zero per lane.
const MASK: usize = OPERAND_VECS;
/// EXEC of the half as bits, in the first word.
const EXEC: usize = OPERAND_VECS + 1;
/// Flags of each lane vector, one byte each: [`NO_DENORMALS`], [`UNWRITTEN`].
const FLAGS: usize = OPERAND_VECS + 2;
/// Number of lane vectors that a source's code can name: a table of this length needs no bounds check.
const CODES: usize = 2048;
const _: () = assert!(OPERAND_VECS <= CODES);

/// No lane holds an f32 denormal: handlers that flush denormals need not search for them.
pub const NO_DENORMALS: u8 = 1;
/// Nothing has written this VGPR since the wave started: it is zero.
pub(super) const UNWRITTEN: u8 = 2;

/// The register files of a wave. A raw allocation instead of a `Box`: pointers to a half must stay valid
/// while the lane vectors are accessed in other ways.
pub(crate) struct Files(ManuallyDrop<Region>);

/// The memory of register files.
struct Region {
    vecs: NonNull<[LaneVec]>,
    backing: Backing,
}

/// The memory of the lane vectors. Most waves touch a tenth of it: the pages of a mapping are zero without being written,
/// and exist from their first use.
enum Backing {
    #[expect(dead_code, reason = "held until it is dropped")]
    Map(MmapMut),
    /// Of hosts that cannot map memory.
    Heap(NonNull<u8>, Layout),
}

/// Regions that a thread keeps for its next copies. Who runs one wave from many states copies and drops one at a time, and
/// a new mapping costs more than such a run: a fault for each page.
const SPARE: usize = 4;

thread_local! {
    static SPARES: RefCell<Vec<Region>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: the type owns its lane vectors, which are plain data.
unsafe impl Send for Files {}
// SAFETY: as above.
unsafe impl Sync for Files {}

impl Region {
    fn zeroed(count: usize) -> Region {
        let layout = Layout::array::<LaneVec>(count).expect("a few hundred KB");
        let (first, backing) = match MmapMut::map_anon(layout.size()) {
            // Pages are aligned more strictly than lane vectors.
            Ok(mut map) if map.as_ptr().cast::<LaneVec>().is_aligned() => {
                (NonNull::new(map.as_mut_ptr()), Backing::Map(map))
            }
            _ => {
                // SAFETY: the size is not zero.
                let first = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) });
                let Some(first) = first else { std::alloc::handle_alloc_error(layout) };
                (Some(first), Backing::Heap(first, layout))
            }
        };
        let first = first.expect("a mapping is not at address 0");
        Region { vecs: NonNull::slice_from_raw_parts(first.cast(), count), backing }
    }

    /// Returns a region that this thread has dropped, with what it held.
    fn spare(count: usize) -> Option<Region> {
        let take = |spares: &RefCell<Vec<Region>>| {
            let mut spares = spares.borrow_mut();
            let index = spares.iter().position(|spare| spare.vecs.len() == count)?;
            Some(spares.swap_remove(index))
        };
        SPARES.try_with(take).ok().flatten()
    }

    /// Keeps the region for this thread's next copy, or frees it.
    fn keep(self) {
        let keep = |spares: &RefCell<Vec<Region>>| {
            let mut spares = spares.borrow_mut();
            if spares.len() == SPARE {
                // The one that nobody has asked for the longest.
                spares.remove(0);
            }
            spares.push(self);
        };
        // While a thread ends, its list is gone.
        let _ = SPARES.try_with(keep);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Backing::Heap(first, layout) = self.backing {
            // SAFETY: `zeroed` allocated it with this layout, and nothing else frees it.
            unsafe { std::alloc::dealloc(first.as_ptr(), layout) };
        }
    }
}

impl Files {
    /// Allocates zeroed files.
    pub fn new(halves: usize) -> Files {
        Files(ManuallyDrop::new(Region::zeroed(LANE_VECS * halves)))
    }

    /// Returns the file of a half; the first one if the wave has no such half.
    #[inline(always)]
    pub fn half(&self, half: usize) -> Half {
        let at = if half * LANE_VECS < self.0.vecs.len() { half * LANE_VECS } else { 0 };
        Half(self.0.vecs.as_ptr().cast::<LaneVec>().wrapping_add(at))
    }

    /// Returns the lane vectors of a half that operations can number, and their flags.
    pub(super) fn vecs_and_flags(&mut self, half: usize) -> (&mut [LaneVec], &mut [u8; CODES]) {
        let (vecs, state) = self[half * LANE_VECS..][..LANE_VECS].split_at_mut(FLAGS);
        debug_assert!(size_of_val(state) == CODES);
        // SAFETY: the slice has `CODES` bytes, and every bit pattern is a valid flag byte.
        (&mut vecs[..OPERAND_VECS], unsafe { &mut *state.as_mut_ptr().cast() })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: the files are dropped once, and nothing uses the field afterwards.
        unsafe { ManuallyDrop::take(&mut self.0) }.keep();
    }
}

impl Clone for Files {
    fn clone(&self) -> Files {
        let count = self.0.vecs.len();
        let (region, used) = match Region::spare(count) {
            Some(region) => (region, true),
            None => (Region::zeroed(count), false),
        };
        let mut copy = Files(ManuallyDrop::new(region));
        // Vectors that nothing has written are zero: most of them.
        for half in 0..count / LANE_VECS {
            let start = half * LANE_VECS;
            let (flags, old) = (self.half(half), copy.half(half));
            let from = &self[start..][..LANE_VECS];
            for (vec, value) in from[..ALL_VGPRS].iter().enumerate() {
                // SAFETY: both files are alive, the vector is a VGPR, and no reference to the copy's vectors exists.
                unsafe {
                    if flags.flags(vec) & UNWRITTEN == 0 {
                        *old.at(vec) = *value;
                    } else {
                        debug_assert!(*value == LaneVec::ZERO);
                        // A new region is zero, although its flags do not say so.
                        if used && old.flags(vec) & UNWRITTEN == 0 {
                            *old.at(vec) = LaneVec::ZERO;
                        }
                    }
                }
            }
            copy[start..][ALL_VGPRS..LANE_VECS].copy_from_slice(&from[ALL_VGPRS..]);
        }
        copy
    }
}

impl Deref for Files {
    type Target = [LaneVec];

    #[inline(always)]
    fn deref(&self) -> &[LaneVec] {
        // SAFETY: the allocation lives as long as `self`, and all of it is initialised: zero is a valid lane vector.
        unsafe { self.0.vecs.as_ref() }
    }
}

impl DerefMut for Files {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [LaneVec] {
        // SAFETY: as above; `self` is borrowed mutably.
        unsafe { self.0.vecs.as_mut() }
    }
}

/// A pointer to a register file of 32 lanes, [`LANE_VECS`] lane vectors long. Accesses through it are unsafe:
/// the wave must be alive, and nothing else may access the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half(*mut LaneVec);

impl Half {
    /// Returns the file after this one.
    #[inline(always)]
    pub fn next(self) -> Half {
        Half(self.0.wrapping_add(LANE_VECS))
    }

    /// Returns a pointer to a lane vector; it may be out of bounds.
    #[inline(always)]
    pub fn at(self, vec: usize) -> *mut LaneVec {
        self.0.wrapping_add(vec)
    }

    /// Returns EXEC of these lanes.
    ///
    /// # Safety
    /// The file belongs to a live wave.
    #[inline(always)]
    pub unsafe fn exec(self) -> u32 {
        // SAFETY: the caller guarantees that the file belongs to a live wave, so it has [`LANE_VECS`] vectors
        // (W1).
        unsafe { (*self.at(EXEC)).0[0] }
    }

    /// Returns EXEC as a lane mask.
    ///
    /// # Safety
    /// As for [`Half::exec`].
    #[inline(always)]
    pub unsafe fn mask(self) -> LaneVec {
        // SAFETY: the caller guarantees that the file belongs to a live wave, so it has [`LANE_VECS`] vectors
        // (W1).
        unsafe { *self.at(MASK) }
    }

    /// Returns a pointer to the lane mask.
    #[inline(always)]
    pub fn mask_ptr(self) -> *const LaneVec {
        self.at(MASK)
    }

    /// Sets EXEC and its lane mask. Outside this crate, this is used for the duration of one handler only: the
    /// EXEC registers do not change.
    ///
    /// # Safety
    /// As for [`Half::exec`].
    #[inline(always)]
    pub unsafe fn set_exec(self, bits: u32) {
        // SAFETY: the caller guarantees that the file belongs to a live wave, so it has [`LANE_VECS`] vectors
        // (W1).
        unsafe {
            (*self.at(EXEC)).0[0] = bits;
            let mask = &mut *self.at(MASK);
            // Most waves have all lanes, most of the time.
            if bits == u32::MAX {
                *mask = LaneVec([u32::MAX; 32]);
                return;
            }
            for lane in 0..32 {
                mask.0[lane] = if bits & 1 << lane != 0 { u32::MAX } else { 0 };
            }
        }
    }

    /// Returns a pointer to the flags of the lane vectors, one byte each, for compiled code. Compiled code
    /// may set no flag but [`NO_DENORMALS`], and only if no lane holds an f32 denormal.
    pub fn all_flags(self) -> *mut u8 {
        self.flag(0)
    }

    #[inline(always)]
    fn flag(self, vec: usize) -> *mut u8 {
        debug_assert!(vec < CODES);
        self.at(FLAGS).cast::<u8>().wrapping_add(vec)
    }

    /// Returns the flags of a lane vector; the lowest bit is set if it holds no f32 denormal.
    ///
    /// # Safety
    /// As for [`Half::exec`]; `vec` is below [`OPERAND_VECS`].
    #[inline(always)]
    pub unsafe fn flags(self, vec: usize) -> u8 {
        // SAFETY: the caller guarantees a live wave's file and that `vec` is below [`OPERAND_VECS`].
        unsafe { *self.flag(vec) }
    }

    /// Sets the flags after a lane vector has been written, or searched for denormals.
    ///
    /// # Safety
    /// As for [`Half::flags`].
    #[inline(always)]
    pub unsafe fn set_no_denormals(self, vec: usize, clean: bool) {
        // SAFETY: the caller guarantees a live wave's file and that `vec` is below [`OPERAND_VECS`].
        unsafe { *self.flag(vec) = clean as u8 };
    }

    /// Records that some lanes were written with values that are not f32 denormals: [`NO_DENORMALS`] is kept.
    ///
    /// # Safety
    /// As for [`Half::flags`].
    #[inline(always)]
    pub unsafe fn mark_written(self, vec: usize) {
        // SAFETY: the caller guarantees a live wave's file and that `vec` is below [`OPERAND_VECS`].
        unsafe { *self.flag(vec) &= NO_DENORMALS };
    }
}
