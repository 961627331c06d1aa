//! What compiled code knows of the offsets of a wave's lanes, as long as it runs: of registers that have not been written since.

use std::mem::{MaybeUninit, offset_of};
use wavesim_machine::state::Wave;

/// Registers that something is known of, at most.
pub const MOST: usize = 8;

/// Waves of a workgroup.
const WAVES: usize = 32;

/// Of one wave.
#[repr(C)]
pub struct Kept {
    /// Whether something is known, by place: a bit each.
    valid: u64,
    of: [MaybeUninit<Offsets>; MOST],
}

/// Offsets of lanes, all of which are active.
#[repr(C)]
struct Offsets {
    /// The highest.
    farthest: u64,
    /// Those of each packet follow each other.
    together: u32,
    /// Those of each packet are the same.
    same: u32,
}

impl Kept {
    /// Offset of the bits that say what is known.
    pub const VALID: i32 = offset_of!(Kept, valid) as i32;

    const fn at(place: usize, part: usize) -> i32 {
        (offset_of!(Kept, of) + size_of::<Offsets>() * place + part) as i32
    }

    /// Offset of the highest one.
    pub const fn farthest(place: usize) -> i32 {
        Kept::at(place, offset_of!(Offsets, farthest))
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

/// Of all waves that take turns in code.
pub struct OfWaves {
    /// Places that are used, a bit each: every entry to compiled code makes a table, and no more is set then.
    used: u32,
    owners: [MaybeUninit<*const Wave>; WAVES],
    kept: [MaybeUninit<Kept>; WAVES],
}

impl OfWaves {
    /// Nothing is known.
    #[inline(always)]
    pub fn none() -> OfWaves {
        OfWaves {
            used: 0,
            owners: [const { MaybeUninit::uninit() }; WAVES],
            kept: [const { MaybeUninit::uninit() }; WAVES],
        }
    }

    /// Of a wave, whose number tells where: nothing, unless this was asked for before, and not for another one meanwhile.
    ///
    /// # Safety
    /// `all` points to such a table. The result is valid as long as it.
    #[inline(always)]
    pub unsafe fn of(all: *mut OfWaves, wave: *const Wave, number: u32) -> *mut Kept {
        let place = number as usize % WAVES;
        // SAFETY: by the contract; what is used has been written.
        unsafe {
            let (owner, kept) = (&raw mut (*all).owners[place], (&raw mut (*all).kept[place]).cast::<Kept>());
            let bit = 1 << place;
            if (*all).used & bit == 0 || (*owner).assume_init() != wave {
                (*all).used |= bit;
                (*owner).write(wave);
                (*kept).valid = 0;
            }
            kept
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_of_one_wave() {
        let waves = [1, 1, 2].map(|_| Wave::new(32));
        let mut all = OfWaves::none();
        let all = &raw mut all;
        // SAFETY: the table outlives this.
        let valid = |n: usize, number| unsafe { &mut (*OfWaves::of(all, &waves[n], number)).valid };
        assert_eq!(*valid(0, 3), 0);
        *valid(0, 3) = 5;
        assert_eq!(*valid(1, 4), 0);
        *valid(1, 4) = 6;
        assert_eq!((*valid(0, 3), *valid(1, 4)), (5, 6));
        assert_eq!(*valid(2, 3 + WAVES as u32), 0, "the place of another wave");
        assert_eq!(*valid(0, 3), 0, "that one was there meanwhile");
    }
}
