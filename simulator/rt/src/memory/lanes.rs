//! Loads and stores of 32 lanes at once: in one window of host memory if the lanes' addresses are close
//! together, else lane by lane.

// A lane number indexes several lane vectors at once.
#![allow(clippy::needless_range_loop)]

use super::window::{Addresses, Window, offset_window, window};
use super::{load_here, store_here};
use crate::context::{Cx, Flow};
use crate::lds::load_words;
use crate::transpose::{load_quads, store_quads};
use crate::watched;
use isa_spec::pcode::ir::Space;
use wavesim_state::LaneVec;
use wavesim_state::host::Avx2;
use wavesim_state::memory::access::{Access, Shared};
use wavesim_state::scratch;

/// Loads `DWORDS` registers for 32 lanes: with a single bounds check if the lanes' addresses are close
/// together, else lane by lane, with the exact fault.
#[inline(always)]
pub fn load_vecs<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    match window::<BYTES>(cx, space, addresses, exec, false) {
        Some(at) => Ok(load_window::<BYTES, DWORDS>(cx, &at)),
        None => load_fallback::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, |cx| {
            load_vecs::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base)
        }),
    }
}

/// [`load_vecs`] from a buffer. Out of line: an instruction has up to four such accesses, which take less time than
/// their addresses.
#[inline(never)]
pub fn load_buffer<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    load_vecs::<BYTES, DWORDS>(cx, Space::Buffer, addresses, exec, lane_base)
}

/// [`load_vecs`] from global memory at a base and an offset per lane.
///
/// # Safety
/// `offsets` points to a lane vector that is not written meanwhile, such as one of the wave's file (O7).
#[inline(always)]
pub unsafe fn load_offsets<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    // SAFETY: the caller upholds the same contract.
    if let Some(at) = unsafe { offset_window::<BYTES>(cx, base, offsets, exec, false) } {
        return Ok(load_window::<BYTES, DWORDS>(cx, &at));
    }
    // SAFETY: the caller guarantees that `offsets` is a vector of the wave's file.
    let addresses = sums(base, unsafe { &*offsets });
    load_fallback::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, |cx| {
        load_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base)
    })
}

/// [`load_offsets`], with offsets that are multiplied by `scale`.
///
/// # Safety
/// As for [`load_offsets`].
#[inline(always)]
pub unsafe fn load_scaled_offsets<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    scale: u32,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    let mut room = LaneVec::ZERO;
    // SAFETY: the caller guarantees that `offsets` is a vector of the wave's file.
    match unsafe { scaled(offsets, scale, exec, &mut room) } {
        // SAFETY: it is `offsets` or `room`.
        Some(scaled) => unsafe { load_offsets::<BYTES, DWORDS>(cx, base, scaled, exec, lane_base) },
        None => {
            // SAFETY: as above.
            let addresses = products(base, unsafe { &*offsets }, scale);
            load_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base)
        }
    }
}

#[inline(always)]
fn load_window<const BYTES: usize, const DWORDS: usize>(cx: &Cx<'_>, at: &Window) -> [LaneVec; DWORDS] {
    let mut vecs = [LaneVec::ZERO; DWORDS];
    if BYTES == 4 && !at.coalesced {
        // SAFETY: as below; `fast` proves AVX2 (H1).
        unsafe { load_words::<Shared, 1>(cx.fast, [at.host.cast_const()], &at.offsets, [&mut vecs[0]]) };
        return vecs;
    }
    if BYTES == 16 && DWORDS == 4 && at.coalesced {
        // SAFETY: as below; the array has four vectors; `fast` proves AVX2 (H1).
        unsafe { load_quads(cx.fast, at.host, &mut *vecs.as_mut_ptr().cast()) };
        return vecs;
    }
    for l in 0..32 {
        let offset = if at.coalesced { l * BYTES } else { at.offsets.0[l] as usize };
        // SAFETY: the window has been checked from its lowest to its highest address; inactive lanes read at
        // the lowest.
        let element = unsafe { element::<Shared, BYTES, DWORDS>(at.host, offset) };
        for k in 0..DWORDS {
            vecs[k].0[l] = element[k];
        }
    }
    vecs
}

/// Stores the registers of 32 lanes in lane order: if several lanes have the same address, the last one wins.
#[inline(always)]
pub fn store_vecs<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    let Some(at) = window::<BYTES>(cx, space, addresses, exec, true) else {
        return store_fallback::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, vecs, |cx| {
            store_vecs::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, vecs)
        });
    };
    store_window::<BYTES, DWORDS>(cx.fast, &at, exec, vecs);
    if space == Space::Word {
        if at.coalesced {
            cx.memory.touch(addresses[0], 32);
        } else {
            (0..32).filter(|l| exec >> l & 1 == 1).for_each(|l| cx.memory.touch(addresses[l], 1));
        }
    }
    Ok(())
}

/// [`store_vecs`] to a buffer, out of line as [`load_buffer`].
#[inline(never)]
pub fn store_buffer<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    store_vecs::<BYTES, DWORDS>(cx, Space::Buffer, addresses, exec, lane_base, vecs)
}

/// [`store_vecs`] to global memory at a base and an offset per lane.
///
/// # Safety
/// As for [`load_offsets`].
#[inline(always)]
pub unsafe fn store_offsets<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    // SAFETY: the caller upholds the same contract.
    let Some(at) = (unsafe { offset_window::<BYTES>(cx, base, offsets, exec, true) }) else {
        // SAFETY: the caller guarantees that `offsets` is a vector of the wave's file.
        let addresses = sums(base, unsafe { &*offsets });
        return store_fallback::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, vecs, |cx| {
            store_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, vecs)
        });
    };
    store_window::<BYTES, DWORDS>(cx.fast, &at, exec, vecs);
    Ok(())
}

/// [`store_offsets`], with offsets that are multiplied by `scale`.
///
/// # Safety
/// As for [`store_offsets`].
#[inline(always)]
pub unsafe fn store_scaled_offsets<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    scale: u32,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    let mut room = LaneVec::ZERO;
    // SAFETY: the caller guarantees that `offsets` is a vector of the wave's file.
    match unsafe { scaled(offsets, scale, exec, &mut room) } {
        // SAFETY: it is `offsets` or `room`.
        Some(scaled) => unsafe { store_offsets::<BYTES, DWORDS>(cx, base, scaled, exec, lane_base, vecs) },
        None => {
            // SAFETY: as above.
            let addresses = products(base, unsafe { &*offsets }, scale);
            store_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, vecs)
        }
    }
}

/// Returns offsets multiplied by `scale`, in `room` unless they are the same; `None` if one of an active lane
/// does not fit in 32 bits.
///
/// # Safety
/// `offsets` points to a lane vector.
#[inline(always)]
unsafe fn scaled(
    offsets: *const LaneVec,
    scale: u32,
    exec: u32,
    room: &mut LaneVec,
) -> Option<*const LaneVec> {
    if scale == 1 {
        return Some(offsets);
    }
    // SAFETY: the caller guarantees a lane vector, which nothing below writes.
    let lanes = unsafe { &*offsets };
    let (largest, mut far) = (u32::MAX / scale, 0);
    for l in 0..32 {
        far |= ((lanes.0[l] > largest) as u32) << l;
        room.0[l] = lanes.0[l].wrapping_mul(scale);
    }
    (far & exec == 0).then_some(&raw const *room)
}

/// Returns the sums of a base and scaled offsets.
#[inline(never)]
fn products(base: u64, offsets: &LaneVec, scale: u32) -> Addresses {
    let mut addresses = [0; 32];
    for l in 0..32 {
        addresses[l] = base.wrapping_add(offsets.0[l] as u64 * scale as u64);
    }
    addresses
}

#[inline(always)]
fn store_window<const BYTES: usize, const DWORDS: usize>(
    fast: Option<Avx2>,
    at: &Window,
    exec: u32,
    vecs: &[LaneVec; DWORDS],
) {
    if BYTES == 16 && DWORDS == 4 && at.coalesced {
        // SAFETY: as below; the array has four vectors; `fast` proves AVX2 (H1).
        unsafe { store_quads(fast, at.host, &*vecs.as_ptr().cast()) };
        return;
    }
    if at.coalesced {
        for l in 0..32 {
            // SAFETY: the window has 32 elements, inside one writable range.
            unsafe { set_element::<Shared, BYTES, DWORDS>(at.host, l * BYTES, vecs, l) };
        }
        return;
    }
    for l in 0..32 {
        if exec >> l & 1 == 1 {
            // SAFETY: the window has been checked from the lowest to the highest address of active lanes.
            unsafe { set_element::<Shared, BYTES, DWORDS>(at.host, at.offsets.0[l] as usize, vecs, l) };
        }
    }
}

/// Returns the sums of base and offsets.
#[inline(never)]
pub(crate) fn sums(base: u64, offsets: &LaneVec) -> Addresses {
    let mut addresses = [0; 32];
    for l in 0..32 {
        addresses[l] = base.wrapping_add(offsets.0[l] as u64);
    }
    addresses
}

/// Loads `BYTES` bytes at `base + offset` as registers, extended with zeros. Sizes are 1, 2, or whole dwords.
///
/// # Safety
/// The bytes can be read.
#[inline(always)]
pub(crate) unsafe fn element<A: Access, const BYTES: usize, const DWORDS: usize>(
    base: *const u8,
    offset: usize,
) -> [u32; DWORDS] {
    // SAFETY: the caller guarantees that the bytes can be read.
    unsafe {
        match BYTES {
            1 => [A::load_u8(base, offset) as u32; DWORDS],
            2 => [A::load_u16(base, offset) as u32; DWORDS],
            _ => {
                let mut element = [0; DWORDS];
                // Pairs are loaded at once, so that aligned 64-bit accesses of a lane are not torn.
                for k in (0..DWORDS - DWORDS % 2).step_by(2) {
                    let pair = A::load_u64(base, offset + 4 * k);
                    (element[k], element[k + 1]) = (pair as u32, (pair >> 32) as u32);
                }
                if DWORDS % 2 == 1 {
                    element[DWORDS - 1] = A::load_u32(base, offset + 4 * (DWORDS - 1));
                }
                element
            }
        }
    }
}

/// Stores a lane's `BYTES` bytes at `base + offset`.
///
/// # Safety
/// The bytes can be written.
#[inline(always)]
pub(crate) unsafe fn set_element<A: Access, const BYTES: usize, const DWORDS: usize>(
    base: *mut u8,
    offset: usize,
    vecs: &[LaneVec; DWORDS],
    l: usize,
) {
    // SAFETY: the caller guarantees that the bytes can be written.
    unsafe {
        match BYTES {
            1 => A::store_u8(base, offset, vecs[0].0[l] as u8),
            2 => A::store_u16(base, offset, vecs[0].0[l] as u16),
            _ => {
                for k in (0..DWORDS - DWORDS % 2).step_by(2) {
                    let pair = vecs[k].0[l] as u64 | (vecs[k + 1].0[l] as u64) << 32;
                    A::store_u64(base, offset + 4 * k, pair);
                }
                if DWORDS % 2 == 1 {
                    A::store_u32(base, offset + 4 * (DWORDS - 1), vecs[DWORDS - 1].0[l]);
                }
            }
        }
    }
}

/// Slow path for lanes without a window: in an observed run, repeats the access `again` on the real memory;
/// otherwise goes lane by lane.
#[inline(never)]
pub(crate) fn load_fallback<'a, const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'a>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    again: impl FnOnce(&mut Cx<'a>) -> Result<[LaneVec; DWORDS], Flow>,
) -> Result<[LaneVec; DWORDS], Flow> {
    if cx.watch.is_some() {
        let watched = watched::lane_vecs(cx, space, (addresses, BYTES), (exec, lane_base), false, again);
        if let Some(vecs) = watched {
            return Ok(vecs);
        }
    }
    if let Some(dwords) = scratch_dwords::<BYTES>(cx, space, addresses, exec, lane_base) {
        let mut vecs = [LaneVec::ZERO; DWORDS];
        for (vec, from) in vecs.iter_mut().zip(dwords) {
            for l in 0..32 {
                vec.0[l] = if exec >> l & 1 == 1 { u32::from_le_bytes(from[l]) } else { 0 };
            }
        }
        return Ok(vecs);
    }
    load_lanes::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base)
}

/// Returns the dwords of 32 lanes of an aligned access of scratch at the same address in all active lanes, as spills have
/// it: they are adjacent ([`scratch`]). Returns `None` for other accesses, and if one is outside.
#[inline(always)]
fn scratch_dwords<'c, const BYTES: usize>(
    cx: &'c mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
) -> Option<&'c mut [[[u8; 4]; 32]]> {
    if space != Space::Scratch || !BYTES.is_multiple_of(4) || exec == 0 {
        return None;
    }
    let first = addresses[exec.trailing_zeros() as usize];
    let differ = match exec {
        u32::MAX => addresses.iter().fold(0, |differ, address| differ | (address ^ first)) != 0,
        _ => (0..32).any(|l| exec >> l & 1 == 1 && addresses[l] != first),
    };
    let per_lane = cx.scratch_stride;
    if differ || !first.is_multiple_of(4) || first.checked_add(BYTES as u64)? > per_lane as u64 {
        return None;
    }
    let at = scratch::position(per_lane, lane_base, first) as usize;
    let bytes = cx.scratch.get_mut(at..at + BYTES / 4 * scratch::DWORD_DISTANCE as usize)?;
    Some(bytes.as_chunks_mut().0.as_chunks_mut().0)
}

/// Loads lane by lane: for scratch, and if any lane is out of bounds.
#[inline(never)]
fn load_lanes<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    let mut vecs = [LaneVec::ZERO; DWORDS];
    for l in (0..32).filter(|l| exec >> l & 1 == 1) {
        let value = load_here::<BYTES>(cx, space, addresses[l], Some(lane_base + l as u32))?;
        for (k, vec) in vecs.iter_mut().enumerate() {
            vec.0[l] = (value >> (32 * k)) as u32;
        }
    }
    Ok(vecs)
}

/// Slow path of stores, as [`load_fallback`].
#[inline(never)]
pub(crate) fn store_fallback<'a, const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'a>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
    again: impl FnOnce(&mut Cx<'a>) -> Result<(), Flow>,
) -> Result<(), Flow> {
    if cx.watch.is_some() {
        let watched = watched::lane_vecs(cx, space, (addresses, BYTES), (exec, lane_base), true, again);
        if watched.is_some() {
            return Ok(());
        }
    }
    if let Some(dwords) = scratch_dwords::<BYTES>(cx, space, addresses, exec, lane_base) {
        for (to, vec) in dwords.iter_mut().zip(vecs) {
            for l in (0..32).filter(|l| exec >> l & 1 == 1) {
                to[l] = vec.0[l].to_le_bytes();
            }
        }
        return Ok(());
    }
    store_lanes::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, vecs)
}

/// Stores lane by lane, as [`load_lanes`].
#[inline(never)]
fn store_lanes<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    vecs: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    for l in (0..32).filter(|l| exec >> l & 1 == 1) {
        let value = vecs.iter().enumerate().fold(0, |v, (k, vec)| v | (vec.0[l] as u128) << (32 * k));
        store_here::<BYTES>(cx, space, addresses[l], value, Some(lane_base + l as u32))?;
    }
    Ok(())
}
