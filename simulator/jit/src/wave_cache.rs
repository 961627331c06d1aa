//! Per-wave caches of compiled code: the classification of lane offsets in registers that have not been
//! written since, and the wave's resources.

use std::mem::{MaybeUninit, offset_of};
use wavesim_engine::sched::dispatch::MAX_WAVES;
use wavesim_machine::state::Wave;

/// The maximum number of cached classifications.
pub const MAX_CACHED_OFFSETS: usize = 8;

/// The bit of [`WaveCache::resources`] in [`WaveCache::valid`].
const RESOURCES: u64 = 1 << 63;

/// The cache of a wave.
#[repr(C)]
pub struct WaveCache {
    /// A bit for each valid slot. The top bit is for [`WaveCache::resources`].
    valid: u64,
    /// The address of the code whose slots these are. Each unit numbers its slots itself, and invalidates
    /// only its own ones when it writes registers.
    unit: usize,
    resources: MaybeUninit<Resources>,
    slots: [MaybeUninit<OffsetSummary>; MAX_CACHED_OFFSETS],
}

/// The classification of the offsets in a register, with all lanes active.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetSummary {
    /// The largest offset, sign-extended: offsets from 2 GiB on are invalid.
    pub max_offset: u64,
    /// The smallest offset.
    pub min_offset: u64,
    /// The addresses of each packet are contiguous.
    pub contiguous: u32,
    /// The addresses of each packet are uniform.
    pub uniform: u32,
}

/// Resources of a wave.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// The scratch memory of its lanes, with the layout of [`wavesim_machine::state::scratch`].
    pub scratch: *mut u8,
    /// Scratch bytes per lane, in dwords; 0 if the memory is too small for all lanes.
    pub stride: u64,
    /// The number of VGPRs.
    pub vgprs: u32,
}

impl WaveCache {
    /// Caches the wave's resources.
    pub fn set_resources(&mut self, resources: Resources) {
        self.resources.write(resources);
        self.valid |= RESOURCES;
    }

    /// Prepares the cache for code that the wave is about to run: if that is another unit than before, the
    /// slots are invalid. Everything that changes the code of a wave calls this.
    #[inline(always)]
    pub fn enter_unit(&mut self, code: usize) {
        if self.unit != code {
            self.unit = code;
            self.valid &= RESOURCES;
        }
    }

    /// Returns whether the slots are those of a unit.
    pub fn belongs_to(&self, code: usize) -> bool {
        self.unit == code
    }

    /// Returns the contents of a slot, if it is valid.
    pub fn summary(&self, slot: usize) -> Option<OffsetSummary> {
        // SAFETY: compiled code writes slots before it marks them as valid.
        (self.valid & 1 << slot != 0).then(|| unsafe { self.slots[slot].assume_init() })
    }

    /// Returns the cached resources.
    pub fn resources(&self) -> Option<Resources> {
        // SAFETY: `set_resources` writes them before it marks them as valid.
        (self.valid & RESOURCES != 0).then(|| unsafe { self.resources.assume_init() })
    }

    /// The offset of the wave's scratch.
    pub const SCRATCH: i32 = (offset_of!(WaveCache, resources) + offset_of!(Resources, scratch)) as i32;
    /// The offset of the scratch size per lane.
    pub const STRIDE: i32 = (offset_of!(WaveCache, resources) + offset_of!(Resources, stride)) as i32;
    /// The offset of the number of VGPRs.
    pub const VGPRS: i32 = (offset_of!(WaveCache, resources) + offset_of!(Resources, vgprs)) as i32;

    /// The offset of the valid bits.
    pub const VALID: i32 = offset_of!(WaveCache, valid) as i32;

    const fn at(slot: usize, field: usize) -> i32 {
        (offset_of!(WaveCache, slots) + size_of::<OffsetSummary>() * slot + field) as i32
    }

    /// Returns the offset of a slot's largest offset.
    pub const fn max_offset(slot: usize) -> i32 {
        WaveCache::at(slot, offset_of!(OffsetSummary, max_offset))
    }

    /// Returns the offset of a slot's smallest offset.
    pub const fn min_offset(slot: usize) -> i32 {
        WaveCache::at(slot, offset_of!(OffsetSummary, min_offset))
    }

    /// Returns the offset of a slot's `contiguous` flag.
    pub const fn contiguous(slot: usize) -> i32 {
        WaveCache::at(slot, offset_of!(OffsetSummary, contiguous))
    }

    /// Returns the offset of a slot's `uniform` flag.
    pub const fn uniform(slot: usize) -> i32 {
        WaveCache::at(slot, offset_of!(OffsetSummary, uniform))
    }
}

/// The caches of all waves that run in a frame, with data of type `T` for each.
pub struct WaveCaches<T> {
    /// The slots in use, a bit each: every entry to compiled code creates a table, and initialises nothing
    /// else.
    used: u32,
    owners: [MaybeUninit<*const Wave>; MAX_WAVES],
    waves: [MaybeUninit<(T, WaveCache)>; MAX_WAVES],
}

impl<T: Copy> WaveCaches<T> {
    /// Returns an empty table.
    #[inline(always)]
    pub fn empty() -> WaveCaches<T> {
        const { assert!(MAX_WAVES <= u32::BITS as usize) };
        WaveCaches {
            used: 0,
            owners: [const { MaybeUninit::uninit() }; MAX_WAVES],
            waves: [const { MaybeUninit::uninit() }; MAX_WAVES],
        }
    }

    /// Returns the data and the cache of a wave. The slot depends on the wave's number; returns `None` if the
    /// slot is empty or has another wave.
    ///
    /// # Safety
    /// `all` must point to a valid table. The result is valid as long as the table.
    #[inline(always)]
    pub unsafe fn get(all: *mut Self, wave: *const Wave, number: u32) -> Option<(T, *mut WaveCache)> {
        let slot = number as usize % MAX_WAVES;
        // SAFETY: the contract guarantees a valid table; slots in use have been written by `insert`.
        unsafe {
            if (*all).used & 1 << slot == 0 || (*all).owners[slot].assume_init() != wave {
                return None;
            }
            let found = (&raw mut (*all).waves[slot]).cast::<(T, WaveCache)>();
            Some(((*found).0, &raw mut (*found).1))
        }
    }

    /// Empties the caches of all waves.
    ///
    /// # Safety
    /// As for [`WaveCaches::get`].
    pub unsafe fn forget_facts(all: *mut Self) {
        // SAFETY: the contract guarantees a valid table; slots in use have been written by `insert`.
        unsafe {
            let mut used = (*all).used;
            while used != 0 {
                let found = (&raw mut (*all).waves[used.trailing_zeros() as usize]).cast::<(T, WaveCache)>();
                (*found).1.valid = 0;
                used &= used - 1;
            }
        }
    }

    /// Inserts a wave that runs this code, with an empty cache.
    ///
    /// # Safety
    /// As for [`WaveCaches::get`].
    #[inline(always)]
    pub unsafe fn insert(
        all: *mut Self,
        wave: *const Wave,
        number: u32,
        code: usize,
        data: T,
    ) -> *mut WaveCache {
        let slot = number as usize % MAX_WAVES;
        // SAFETY: the contract guarantees a valid table; of the cache, only `valid` and `unit` are read before
        // they are written.
        unsafe {
            (*all).used |= 1 << slot;
            (*all).owners[slot].write(wave);
            let to = (&raw mut (*all).waves[slot]).cast::<(T, WaveCache)>();
            (&raw mut (*to).0).write(data);
            ((*to).1.valid, (*to).1.unit) = (0, code);
            &raw mut (*to).1
        }
    }
}
