//! Loads and stores of whole registers with all 32 lanes of the context's half active: coalesced in global
//! memory (each element directly follows the previous lane's), and at any offsets in LDS. All other accesses
//! take the general loads and stores. `WATCHED` variants access the memory of a watch, which logs them.

// A lane number indexes several lane vectors at once.
#![allow(clippy::needless_range_loop)]

use super::context::Cx;
use super::flush::written;
use super::lds::{is_below, last_offset, load_words_inline, store_words};
use super::memory::{are_coalesced, last_range, prefetch};
use super::operands::fast_source;
use super::transpose::{load_quads, store_quads};
use super::watched;
use crate::op::Source;
use wavesim_state::host::Avx2;
use wavesim_state::memory::access::{self, Own};

/// Loads the elements of 32 lanes, at a base and an offset per lane, to the registers from `d` on. Returns
/// false, without having done anything, if the fast path does not apply. With `WIDE`, offsets have 64 bits,
/// the upper halves in the next vector. If `scaled`, offsets of 32 bits are multiplied by `FACTOR`.
///
/// # Safety
/// As for [`fast_source`] (O7) for `offsets` and for the `DWORDS` vectors from `d` on (O3); the host has AVX2
/// (H1).
#[inline(always)]
pub unsafe fn load_block<const WATCHED: bool, const WIDE: bool, const FACTOR: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: Source,
    scaled: bool,
    d: u16,
) -> bool {
    // SAFETY: the caller upholds the same contract.
    let from = unsafe { block::<WATCHED, WIDE, FACTOR, DWORDS>(cx, base, offsets, scaled, false) };
    let Some(from) = from else { return false };
    // SAFETY: O3, O7, W1 and H1 hold by the caller's guarantee. `block` has checked the bounds, and the
    // wave's memory does not overlap its registers.
    unsafe {
        let vecs = cx.file.at(d as usize);
        match DWORDS {
            1 => (*vecs).0 = access::load_lane_vec(from),
            4 => load_quads(Some(Avx2::assume()), from, &mut *vecs.cast()),
            _ => {
                let mut block = [[0; 32]; DWORDS];
                for n in 0..DWORDS {
                    block[n] = access::load_lane_vec(from.add(128 * n));
                }
                let dwords = block.as_flattened();
                for l in 0..32 {
                    for k in 0..DWORDS {
                        (*vecs.add(k)).0[l] = dwords[l * DWORDS + k];
                    }
                }
            }
        }
        written::<DWORDS>(cx.file, d);
    }
    true
}

/// Stores the elements of 32 lanes from the registers from `data` on. Returns false, without having done
/// anything, if the fast path does not apply.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
pub unsafe fn store_block<const WATCHED: bool, const WIDE: bool, const FACTOR: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: Source,
    scaled: bool,
    data: Source,
) -> bool {
    // SAFETY: the caller upholds the same contract.
    let to = unsafe { block::<WATCHED, WIDE, FACTOR, DWORDS>(cx, base, offsets, scaled, true) };
    let Some(to) = to else { return false };
    // SAFETY: as in `load_block`.
    unsafe {
        let vecs = fast_source(cx.file, data);
        match DWORDS {
            1 => access::store_lane_vec(to, &(*vecs).0),
            4 => store_quads(Some(Avx2::assume()), to, &*vecs.cast()),
            _ => {
                let mut block = [[0; 32]; DWORDS];
                let dwords = block.as_flattened_mut();
                for l in 0..32 {
                    for k in 0..DWORDS {
                        dwords[l * DWORDS + k] = (*vecs.add(k)).0[l];
                    }
                }
                for n in 0..DWORDS {
                    access::store_lane_vec(to.add(128 * n), &block[n]);
                }
            }
        }
    }
    true
}

/// Returns the host address of the block and prefetches the next one; `None` if the fast path does not apply.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn block<const WATCHED: bool, const WIDE: bool, const FACTOR: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: Source,
    scaled: bool,
    write: bool,
) -> Option<*mut u8> {
    let size = 128 * DWORDS;
    // SAFETY: the caller guarantees that `offsets` is a vector of the wave's file (O7).
    let at = unsafe { fast_source(cx.file, offsets) };
    // SAFETY: as above; nothing below writes registers.
    let offsets = unsafe { &*at };
    let mut address = base.wrapping_add(offsets.0[0] as u64);
    // SAFETY: the file belongs to the wave.
    if unsafe { cx.file.exec() } != u32::MAX {
        return None;
    }
    if FACTOR > 1 && scaled {
        if !(4 * DWORDS).is_multiple_of(FACTOR) || !are_coalesced(offsets, 4 * DWORDS / FACTOR) {
            return None;
        }
        address = base.wrapping_add(offsets.0[0] as u64 * FACTOR as u64);
    } else if !are_coalesced(offsets, 4 * DWORDS) {
        return None;
    }
    if WIDE {
        // SAFETY: a source vector is followed by more vectors (O2).
        let high = unsafe { &*at.add(1) };
        let (first, mut other) = (high.0[0], 0);
        for l in 0..32 {
            other |= high.0[l] ^ first;
        }
        if other != 0 {
            return None;
        }
        address = address.wrapping_add((first as u64) << 32);
    }
    let host = match WATCHED {
        // SAFETY: the caller guarantees that the host has AVX2 (H1).
        true => unsafe { watched::block(cx, address, 4 * DWORDS, write)? },
        false => last_range(cx).host_of(address, size as u64, write)?,
    };
    prefetch(cx, host, address, size);
    Some(host)
}

/// Loads elements from LDS, each lane's at its offset plus `plus`, to the registers from `d` on, one load
/// after the other. Returns false, without having done anything, if the fast path does not apply.
///
/// # Safety
/// As for [`load_block`], with `lanes` as offsets and `LOADS * DWORDS` vectors from `d` on.
#[inline(always)]
pub unsafe fn load_lds_block<const WATCHED: bool, const LOADS: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    lanes: Source,
    plus: [u32; LOADS],
    d: u16,
) -> bool {
    // SAFETY: the caller upholds the same contract.
    let Some(lds) = (unsafe { inside::<WATCHED, _>(cx, 4 * DWORDS, lanes, plus, false) }) else {
        return false;
    };
    let lds = lds.cast_const();
    // SAFETY: O3, O7, W1 and H1 hold by the caller's guarantee. `inside` has checked the bounds of every
    // element.
    unsafe {
        let vecs = cx.file.at(d as usize);
        let (mut from, mut to) = ([lds; LOADS], [vecs; LOADS]);
        for n in 0..LOADS {
            from[n] = lds.wrapping_add(plus[n] as usize);
            to[n] = vecs.add(n * DWORDS);
        }
        if DWORDS == 1 {
            load_words_inline::<Own, LOADS>(from, fast_source(cx.file, lanes), to);
        } else {
            // The destination may overlap the address register.
            let at = *fast_source(cx.file, lanes);
            for n in 0..LOADS {
                for l in 0..32 {
                    let element =
                        from[n].wrapping_add(at.0[l] as usize).cast::<[u32; DWORDS]>().read_unaligned();
                    for k in 0..DWORDS {
                        (*to[n].add(k)).0[l] = element[k];
                    }
                }
            }
        }
        for n in 0..LOADS {
            written::<DWORDS>(cx.file, d + (n * DWORDS) as u16);
        }
    }
    true
}

/// Stores the elements of 32 lanes from the registers from `data` on to LDS, each at its lane's offset plus
/// `plus`. If several lanes have the same address, the last one wins. Returns false, without having done
/// anything, if the fast path does not apply.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
pub unsafe fn store_lds_block<const WATCHED: bool, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    lanes: Source,
    plus: u32,
    data: Source,
) -> bool {
    // SAFETY: the caller upholds the same contract.
    let Some(lds) = (unsafe { inside::<WATCHED, _>(cx, 4 * DWORDS, lanes, [plus], true) }) else {
        return false;
    };
    let to = lds.wrapping_add(plus as usize);
    // SAFETY: O3, O7, W1 and H1 hold by the caller's guarantee. `inside` has checked the bounds of every
    // element.
    unsafe {
        let (at, vecs) = (&*fast_source(cx.file, lanes), fast_source(cx.file, data));
        if DWORDS == 1 {
            store_words(Some(Avx2::assume()), to, at, &*vecs);
        } else {
            for l in 0..32 {
                let mut element = [0; DWORDS];
                for k in 0..DWORDS {
                    element[k] = (*vecs.add(k)).0[l];
                }
                to.wrapping_add(at.0[l] as usize).cast::<[u32; DWORDS]>().write_unaligned(element);
            }
        }
    }
    true
}

/// Returns a pointer to LDS if all lanes are active and their elements, at each of `plus`, are in bounds.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn inside<const WATCHED: bool, const N: usize>(
    cx: &mut Cx<'_>,
    bytes: usize,
    lanes: Source,
    plus: [u32; N],
    write: bool,
) -> Option<*mut u8> {
    // SAFETY: the file belongs to the wave.
    if unsafe { cx.file.exec() } != u32::MAX {
        return None;
    }
    // SAFETY: the caller guarantees that `lanes` is a vector of the wave's file (O7).
    let offsets = unsafe { &*fast_source(cx.file, lanes) };
    if WATCHED {
        // SAFETY: the caller guarantees that the host has AVX2 (H1).
        return unsafe { watched::lds(cx, offsets, &plus, bytes, write) };
    }
    // Loops rather than iterators, here and above: closures are compiled without the host's features and stay
    // calls.
    let mut farthest = 0;
    for n in 0..N {
        farthest = farthest.max(plus[n]);
    }
    let last = last_offset(cx, bytes)?.checked_sub(farthest)?;
    // SAFETY: the caller guarantees that the host has AVX2 (H1).
    unsafe { is_below(offsets, last) }.then_some(cx.lds.as_mut_ptr())
}
