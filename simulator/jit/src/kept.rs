//! What compiled code knows of the offsets of a wave's lanes, as long as it runs: of registers that have not been written since.

use std::mem::{MaybeUninit, offset_of};
use wavesim_engine::sched::dispatch::MAX_WAVES;
use wavesim_machine::state::Wave;

/// Registers that something is known of, at most.
pub const MOST: usize = 8;

/// Of one wave.
#[repr(C)]
pub struct Kept {
    /// A bit for each place of which something is known. The top bit: [`Kept::resources`] are.
    valid: u64,
    resources: MaybeUninit<Resources>,
    of: [MaybeUninit<Offsets>; MOST],
}

/// Offsets of lanes, all of which are active.
#[repr(C)]
struct Offsets {
    /// The highest.
    farthest: u64,
    /// The lowest.
    lowest: u64,
    /// Those of each packet follow each other.
    together: u32,
    /// Those of each packet are the same.
    same: u32,
}

/// Resources of a wave.
#[repr(C)]
pub struct Resources {
    /// Scratch of its lanes.
    pub scratch: *mut u8,
    /// Bytes of each lane; 0 where there is less than that for all lanes.
    pub stride: u64,
    /// How many registers there are.
    pub vgprs: u32,
}

impl Kept {
    /// Caches the wave's resources.
    pub fn set_resources(&mut self, resources: Resources) {
        self.resources.write(resources);
        self.valid |= 1 << 63;
    }

    /// Offset of the wave's scratch.
    pub const SCRATCH: i32 = (offset_of!(Kept, resources) + offset_of!(Resources, scratch)) as i32;
    /// Offset of the bytes of each lane.
    pub const STRIDE: i32 = (offset_of!(Kept, resources) + offset_of!(Resources, stride)) as i32;
    /// Offset of the number of registers.
    pub const VGPRS: i32 = (offset_of!(Kept, resources) + offset_of!(Resources, vgprs)) as i32;

    /// Offset of the bits that say what is known.
    pub const VALID: i32 = offset_of!(Kept, valid) as i32;

    const fn at(place: usize, part: usize) -> i32 {
        (offset_of!(Kept, of) + size_of::<Offsets>() * place + part) as i32
    }

    /// Offset of the highest one.
    pub const fn farthest(place: usize) -> i32 {
        Kept::at(place, offset_of!(Offsets, farthest))
    }

    /// Offset of the lowest one.
    pub const fn lowest(place: usize) -> i32 {
        Kept::at(place, offset_of!(Offsets, lowest))
    }

    /// Offset of whether they follow each other.
    pub const fn together(place: usize) -> i32 {
        Kept::at(place, offset_of!(Offsets, together))
    }

    /// Offset of whether they are the same.
    pub const fn same(place: usize) -> i32 {
        Kept::at(place, offset_of!(Offsets, same))
    }
}

/// Of all waves that take turns in code, with something else of each.
pub struct OfWaves<T> {
    /// Places that are used, a bit each: every entry to compiled code makes a table, and no more is set then.
    used: u32,
    owners: [MaybeUninit<*const Wave>; MAX_WAVES],
    waves: [MaybeUninit<(T, Kept)>; MAX_WAVES],
}

impl<T: Copy> OfWaves<T> {
    /// Nothing is known.
    #[inline(always)]
    pub fn none() -> OfWaves<T> {
        const { assert!(MAX_WAVES <= u32::BITS as usize) };
        OfWaves {
            used: 0,
            owners: [const { MaybeUninit::uninit() }; MAX_WAVES],
            waves: [const { MaybeUninit::uninit() }; MAX_WAVES],
        }
    }

    /// Of a wave, whose number tells where, what [`OfWaves::insert`] was given, unless another wave was inserted there meanwhile; and what is
    /// known of it.
    ///
    /// # Safety
    /// `all` points to such a table. The result is valid as long as it.
    #[inline(always)]
    pub unsafe fn get(all: *mut Self, wave: *const Wave, number: u32) -> Option<(T, *mut Kept)> {
        let place = number as usize % MAX_WAVES;
        // SAFETY: by the contract; what is used has been written.
        unsafe {
            if (*all).used & 1 << place == 0 || (*all).owners[place].assume_init() != wave {
                return None;
            }
            let of = (&raw mut (*all).waves[place]).cast::<(T, Kept)>();
            Some(((*of).0, &raw mut (*of).1))
        }
    }

    /// A wave, of which nothing is known.
    ///
    /// # Safety
    /// As for [`OfWaves::get`].
    #[inline(always)]
    pub unsafe fn insert(all: *mut Self, wave: *const Wave, number: u32, of: T) -> *mut Kept {
        let place = number as usize % MAX_WAVES;
        // SAFETY: by the contract; `valid` is the only part that is read before it is written.
        unsafe {
            (*all).used |= 1 << place;
            (*all).owners[place].write(wave);
            let to = (&raw mut (*all).waves[place]).cast::<(T, Kept)>();
            (&raw mut (*to).0).write(of);
            (*to).1.valid = 0;
            &raw mut (*to).1
        }
    }
}
