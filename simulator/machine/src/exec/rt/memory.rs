//! Loads and stores of one lane (or of the wave, for scalar memory), and of 32 lanes at once.

// A lane number indexes several lane vectors at once.
#![allow(clippy::needless_range_loop)]

use super::context::{Cx, Flow};
use super::lds::load_words;
use super::transpose::{load_quads, store_quads};
use super::watch;
use crate::exec::machine_ops::Event;
use crate::memory::access::{Access, Shared};
use crate::memory::{HostRange, MemError, Place};
use crate::state::LaneVec;
use crate::state::host::Avx2;
use crate::state::wave::LAST_ADDRESSES;
use isa_spec::pcode::ir::Space;

/// Whether the access of one lane, or of the wave, is part of the handler. Others are calls: there are hundreds of handlers that have one.
#[inline(always)]
const fn is_inline(space: Space, bytes: usize) -> bool {
    matches!(space, Space::Lds) || matches!(space, Space::Scalar) && bytes <= 8
}

/// `BYTES` bytes as a number. The space is a constant of the handler.
#[inline(always)]
pub fn load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
) -> Result<u128, Flow> {
    if is_inline(space, BYTES) {
        load_here::<BYTES>(cx, space, addr, lane)
    } else {
        load_apart::<BYTES>(cx, space, addr, lane)
    }
}

#[inline(never)]
fn load_apart<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
) -> Result<u128, Flow> {
    load_here::<BYTES>(cx, space, addr, lane)
}

#[inline(always)]
fn load_here<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
) -> Result<u128, Flow> {
    let bytes: [u8; BYTES] = match Place::of(space, addr) {
        Place::Global(_) => match cx.memory.load::<BYTES>(addr) {
            Ok(bytes) => bytes,
            Err(e) => missed_load(cx, space, addr, lane, |cx| Err(cx.memory_fault(e, lane)))?,
        },
        Place::Lds(at) => match lds(cx, at, BYTES) {
            Some(s) => s.try_into().unwrap_or([0; BYTES]),
            // Beyond the allocation LDS reads zero.
            None => missed_load(cx, Space::Lds, at, lane, |_| Ok([0; BYTES]))?,
        },
        Place::Scratch(at) => match scratch(cx, at, BYTES, lane) {
            Some(s) => s.try_into().unwrap_or([0; BYTES]),
            None => {
                let fault = |cx: &mut Cx<'_>| Err(scratch_fault(cx, at, BYTES, lane, false));
                missed_load(cx, Space::Scratch, at, lane, fault)?
            }
        },
        Place::Nowhere => return Ok(0),
    };
    // Here and below, no `copy_from_slice`: it would stay a call.
    let mut wide = [0; 16];
    if let Some(low) = wide.first_chunk_mut() {
        *low = bytes;
    }
    Ok(u128::from_le_bytes(wide))
}

/// The low `BYTES` bytes of a value, for the lane given (`None`: scalar memory). Beyond LDS and out of a buffer's range, it does nothing.
#[inline(always)]
pub fn store<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    value: u128,
    lane: Option<u32>,
) -> Result<(), Flow> {
    if is_inline(space, BYTES) {
        store_here::<BYTES>(cx, space, addr, value, lane)
    } else {
        store_apart::<BYTES>(cx, space, addr, value, lane)
    }
}

#[inline(never)]
fn store_apart<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    value: u128,
    lane: Option<u32>,
) -> Result<(), Flow> {
    store_here::<BYTES>(cx, space, addr, value, lane)
}

#[inline(always)]
fn store_here<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    value: u128,
    lane: Option<u32>,
) -> Result<(), Flow> {
    let wide = value.to_le_bytes();
    let bytes = *wide.first_chunk::<BYTES>().unwrap_or(&[0; BYTES]);
    match Place::of(space, addr) {
        Place::Global(_) => {
            if let Err(e) = cx.memory.store(addr, bytes) {
                return missed_store(cx, space, e, lane, &bytes);
            }
            if space == Space::Word {
                cx.memory.touch(addr, 1);
            }
        }
        Place::Lds(at) => match lds(cx, at, BYTES).and_then(|s| s.first_chunk_mut()) {
            Some(s) => *s = bytes,
            None => return missed_lds_store(cx, at, lane, &bytes),
        },
        Place::Scratch(at) => match scratch(cx, at, BYTES, lane).and_then(|s| s.first_chunk_mut()) {
            Some(s) => *s = bytes,
            None => return missed_scratch_store(cx, at, lane, &bytes),
        },
        Place::Nowhere => {}
    }
    Ok(())
}

/// The store of an atomic that loaded `old`. `false`: another host thread was faster, and nothing is stored.
#[inline(always)]
pub fn exchange<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    old: u128,
    value: u128,
    lane: Option<u32>,
) -> Result<bool, Flow> {
    if is_inline(space, BYTES) {
        exchange_here::<BYTES>(cx, space, addr, old, value, lane)
    } else {
        exchange_apart::<BYTES>(cx, space, addr, old, value, lane)
    }
}

#[inline(never)]
fn exchange_apart<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    old: u128,
    value: u128,
    lane: Option<u32>,
) -> Result<bool, Flow> {
    exchange_here::<BYTES>(cx, space, addr, old, value, lane)
}

#[inline(always)]
fn exchange_here<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    old: u128,
    value: u128,
    lane: Option<u32>,
) -> Result<bool, Flow> {
    if let Place::Global(_) = Place::of(space, addr) {
        if !addr.is_multiple_of(BYTES as u64) {
            let e = MemError { address: addr, size_bytes: BYTES as u32, write: true };
            return Err(cx.fault(Event::misaligned(e, lane)));
        }
        if cx.memory.is_shared() {
            return exchange_shared(cx, addr, BYTES, old, value, lane);
        }
    }
    store_here::<BYTES>(cx, space, addr, value, lane).map(|()| true)
}

#[inline(never)]
fn exchange_shared(
    cx: &mut Cx<'_>,
    addr: u64,
    bytes: usize,
    old: u128,
    value: u128,
    lane: Option<u32>,
) -> Result<bool, Flow> {
    let exchanged = match bytes {
        8 => cx.memory.cas64(addr, old as u64, value as u64).map(|r| r.is_ok()),
        _ => cx.memory.cas32(addr, old as u32, value as u32).map(|r| r.is_ok()),
    };
    exchanged.map_err(|e| cx.memory_fault(e, lane))
}

#[inline(always)]
fn lds<'c>(cx: &'c mut Cx<'_>, at: u64, len: usize) -> Option<&'c mut [u8]> {
    let at = at as usize;
    cx.lds.get_mut(at..at.wrapping_add(len))
}

#[inline(always)]
fn scratch<'c>(cx: &'c mut Cx<'_>, at: u64, len: usize, lane: Option<u32>) -> Option<&'c mut [u8]> {
    let stride = cx.scratch_stride as u64;
    if at > stride || len as u64 > stride - at {
        return None;
    }
    let at = (lane.unwrap_or(0) as u64 * stride + at) as usize;
    cx.scratch.get_mut(at..at + len)
}

// Accesses that are out of bounds, or watched: out of line, so that the others stay short.

/// A load in an observed run; without an observer, `missed` gives the result of a load from nowhere.
#[cold]
fn missed_load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    at: u64,
    lane: Option<u32>,
    missed: impl FnOnce(&mut Cx<'_>) -> Result<[u8; BYTES], Flow>,
) -> Result<[u8; BYTES], Flow> {
    let mut bytes = [0; BYTES];
    match watch::load(cx, space, at, lane, &mut bytes) {
        Some(result) => result.map(|()| bytes),
        None => missed(cx),
    }
}

#[cold]
fn missed_store(
    cx: &mut Cx<'_>,
    space: Space,
    e: MemError,
    lane: Option<u32>,
    bytes: &[u8],
) -> Result<(), Flow> {
    watch::store(cx, space, e.address, lane, bytes).unwrap_or_else(|| Err(cx.memory_fault(e, lane)))
}

/// Beyond the allocation LDS drops stores.
#[cold]
fn missed_lds_store(cx: &mut Cx<'_>, at: u64, lane: Option<u32>, bytes: &[u8]) -> Result<(), Flow> {
    watch::store(cx, Space::Lds, at, lane, bytes).unwrap_or(Ok(()))
}

#[cold]
fn missed_scratch_store(cx: &mut Cx<'_>, at: u64, lane: Option<u32>, bytes: &[u8]) -> Result<(), Flow> {
    let missed = watch::store(cx, Space::Scratch, at, lane, bytes);
    missed.unwrap_or_else(|| Err(scratch_fault(cx, at, bytes.len(), lane, true)))
}

#[cold]
fn scratch_fault(cx: &mut Cx<'_>, at: u64, len: usize, lane: Option<u32>, write: bool) -> Flow {
    let e = MemError { address: at, size_bytes: len as u32, write };
    cx.fault(Event::scratch_overflow(e, cx.scratch_stride, lane))
}

// The loads or stores of 32 lanes at once.

/// Addresses of a half's lanes.
pub type Addresses = [u64; 32];

/// What 32 lanes load, `DWORDS` registers of each. One bounds check where the lanes' addresses are close together; lane by lane, with
/// the exact fault, where they are not.
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

/// [`load_vecs`] from global memory at a base and an offset for each lane.
///
/// # Safety
/// `offsets` is a lane vector of the wave's file (O7).
#[inline(always)]
pub unsafe fn load_offsets<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    // SAFETY: by the contract.
    if let Some(at) = unsafe { offset_window::<BYTES>(cx, base, offsets, exec, false) } {
        return Ok(load_window::<BYTES, DWORDS>(cx, &at));
    }
    // SAFETY: likewise.
    let addresses = sums(base, unsafe { &*offsets });
    load_fallback::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, |cx| {
        load_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base)
    })
}

#[inline(always)]
fn load_window<const BYTES: usize, const DWORDS: usize>(cx: &Cx<'_>, at: &Window) -> [LaneVec; DWORDS] {
    let mut rows = [LaneVec::ZERO; DWORDS];
    if BYTES == 4 && !at.coalesced {
        // SAFETY: as below; H1 for `fast`.
        unsafe { load_words::<Shared, 1>(cx.fast, [at.host.cast_const()], &at.offsets, [&mut rows[0]]) };
        return rows;
    }
    if BYTES == 16 && DWORDS == 4 && at.coalesced {
        // SAFETY: as below; an array of four has room for four; H1 for `fast`.
        unsafe { load_quads(cx.fast, at.host, &mut *rows.as_mut_ptr().cast()) };
        return rows;
    }
    for l in 0..32 {
        let offset = if at.coalesced { l * BYTES } else { at.offsets.0[l] as usize };
        // SAFETY: the window was checked from its lowest to its highest address; inactive lanes read at the lowest.
        let element = unsafe { element::<Shared, BYTES, DWORDS>(at.host, offset) };
        for k in 0..DWORDS {
            rows[k].0[l] = element[k];
        }
    }
    rows
}

/// Stores what 32 lanes hold, lanes in order: of several at one address the last stays.
#[inline(always)]
pub fn store_vecs<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    rows: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    let Some(at) = window::<BYTES>(cx, space, addresses, exec, true) else {
        return store_fallback::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, rows, |cx| {
            store_vecs::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, rows)
        });
    };
    store_window::<BYTES, DWORDS>(cx.fast, &at, exec, rows);
    if space == Space::Word {
        if at.coalesced {
            cx.memory.touch(addresses[0], 32);
        } else {
            (0..32).filter(|l| exec >> l & 1 == 1).for_each(|l| cx.memory.touch(addresses[l], 1));
        }
    }
    Ok(())
}

/// [`store_vecs`] to global memory at a base and an offset for each lane.
///
/// # Safety
/// `offsets` is a lane vector of the wave's file (O7).
#[inline(always)]
pub unsafe fn store_offsets<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    exec: u32,
    lane_base: u32,
    rows: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    // SAFETY: by the contract.
    let Some(at) = (unsafe { offset_window::<BYTES>(cx, base, offsets, exec, true) }) else {
        // SAFETY: likewise.
        let addresses = sums(base, unsafe { &*offsets });
        return store_fallback::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, rows, |cx| {
            store_vecs::<BYTES, DWORDS>(cx, Space::Global, &addresses, exec, lane_base, rows)
        });
    };
    store_window::<BYTES, DWORDS>(cx.fast, &at, exec, rows);
    Ok(())
}

#[inline(always)]
fn store_window<const BYTES: usize, const DWORDS: usize>(
    fast: Option<Avx2>,
    at: &Window,
    exec: u32,
    rows: &[LaneVec; DWORDS],
) {
    if BYTES == 16 && DWORDS == 4 && at.coalesced {
        // SAFETY: as below; an array of four has room for four; H1 for `fast`.
        unsafe { store_quads(fast, at.host, &*rows.as_ptr().cast()) };
        return;
    }
    if at.coalesced {
        for l in 0..32 {
            // SAFETY: the window has 32 elements, inside one writable space.
            unsafe { set_element::<Shared, BYTES, DWORDS>(at.host, l * BYTES, rows, l) };
        }
        return;
    }
    for l in 0..32 {
        if exec >> l & 1 == 1 {
            // SAFETY: the window was checked from the lowest to the highest address of active lanes.
            unsafe { set_element::<Shared, BYTES, DWORDS>(at.host, at.offsets.0[l] as usize, rows, l) };
        }
    }
}

/// The addresses of base and offsets.
#[inline(never)]
pub(super) fn sums(base: u64, offsets: &LaneVec) -> Addresses {
    let mut addresses = [0; 32];
    for l in 0..32 {
        addresses[l] = base.wrapping_add(offsets.0[l] as u64);
    }
    addresses
}

/// `BYTES` bytes at `base + offset` as registers, zeros beyond their end. Sizes are 1, 2, or whole dwords.
///
/// # Safety
/// The bytes can be read.
#[inline(always)]
pub(super) unsafe fn element<A: Access, const BYTES: usize, const DWORDS: usize>(
    base: *const u8,
    offset: usize,
) -> [u32; DWORDS] {
    // SAFETY: by the contract.
    unsafe {
        match BYTES {
            1 => [A::load_u8(base, offset) as u32; DWORDS],
            2 => [A::load_u16(base, offset) as u32; DWORDS],
            _ => {
                let mut element = [0; DWORDS];
                // Pairs are one access: those of a lane's 64 bits are not torn where they are aligned.
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

/// Writes a lane's `BYTES` bytes to `base + offset`.
///
/// # Safety
/// The bytes can be written.
#[inline(always)]
pub(super) unsafe fn set_element<A: Access, const BYTES: usize, const DWORDS: usize>(
    base: *mut u8,
    offset: usize,
    rows: &[LaneVec; DWORDS],
    l: usize,
) {
    // SAFETY: by the contract.
    unsafe {
        match BYTES {
            1 => A::store_u8(base, offset, rows[0].0[l] as u8),
            2 => A::store_u16(base, offset, rows[0].0[l] as u16),
            _ => {
                for k in (0..DWORDS - DWORDS % 2).step_by(2) {
                    let pair = rows[k].0[l] as u64 | (rows[k + 1].0[l] as u64) << 32;
                    A::store_u64(base, offset + 4 * k, pair);
                }
                if DWORDS % 2 == 1 {
                    A::store_u32(base, offset + 4 * (DWORDS - 1), rows[DWORDS - 1].0[l]);
                }
            }
        }
    }
}

/// A piece of host memory that holds the elements of all active lanes.
struct Window {
    /// Of the lowest address.
    host: *mut u8,
    /// Every lane is active and each element is directly after the previous lane's.
    coalesced: bool,
    /// From the lowest address, by lane; 0 for inactive ones.
    offsets: LaneVec,
}

/// Out of line, so that a body's accesses stay small enough to be optimised together.
#[inline(always)]
fn window<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    write: bool,
) -> Option<Window> {
    // Scratch is swizzled: lanes have a space each. And elements are whole words of registers, or parts of one: see `element`.
    let odd = BYTES > 2 && !BYTES.is_multiple_of(4);
    if space == Space::Scratch || space == Space::Buffer || odd {
        return None;
    }
    address_window::<BYTES>(cx, space, addresses, exec, write)
}

/// A function of a body that is compiled twice, for AVX2 and for any host, both out of line. The body is `inline(always)`.
macro_rules! for_host {
    ($(#[$doc:meta])* ($($unsafe:tt)?) fn $name:ident = $body:ident ($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $(#[$doc])*
        #[inline(always)]
        $($unsafe)? fn $name<const BYTES: usize>(cx: &mut Cx<'_>, $($arg: $ty),*) -> $result {
            #[inline(never)]
            $($unsafe)? fn anywhere<const BYTES: usize>(cx: &mut Cx<'_>, $($arg: $ty),*) -> $result {
                // SAFETY: by the contract, if there is one.
                #[allow(unused_unsafe)]
                unsafe { $body::<BYTES>(cx, $($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            #[inline(never)]
            $($unsafe)? fn avx2<const BYTES: usize>(cx: &mut Cx<'_>, $($arg: $ty),*) -> $result {
                // SAFETY: by the contract, if there is one.
                #[allow(unused_unsafe)]
                unsafe { $body::<BYTES>(cx, $($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            if cx.fast.is_some() {
                // SAFETY: H1, and by the contract, if there is one.
                return unsafe { avx2::<BYTES>(cx, $($arg),*) };
            }
            // SAFETY: by the contract, if there is one.
            #[allow(unused_unsafe)]
            unsafe { anywhere::<BYTES>(cx, $($arg),*) }
        }
    };
}

for_host! {
    () fn address_window =
        address_window_of(space: Space, addresses: &Addresses, exec: u32, write: bool) -> Option<Window>
}

/// Ones for active lanes.
#[inline(always)]
fn active_lanes(exec: u32) -> [u32; 32] {
    let mut active = [u32::MAX; 32];
    if exec != u32::MAX {
        for l in 0..32 {
            active[l] = 0u32.wrapping_sub(exec >> l & 1);
        }
    }
    active
}

#[inline(always)]
fn address_window_of<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    write: bool,
) -> Option<Window> {
    if exec == 0 {
        return None;
    }
    if exec == u32::MAX {
        let first = addresses[0];
        let mut gaps = 0;
        for l in 0..32 {
            gaps |= addresses[l].wrapping_sub(first) ^ (l * BYTES) as u64;
        }
        if gaps == 0 {
            let host = locate(cx, space, first, 32 * BYTES as u64, write)?;
            prefetch(cx, host, first, 32 * BYTES);
            return Some(Window { host, coalesced: true, offsets: LaneVec::ZERO });
        }
    }
    // Offsets from an active lane's address, as signed 32-bit numbers: what is farther apart has no window.
    let pivot = addresses[exec.trailing_zeros() as usize & 31];
    let active = active_lanes(exec);
    let mut relative = [0i32; 32];
    let mut far = 0u64;
    for l in 0..32 {
        let offset = addresses[l].wrapping_sub(pivot) & (active[l] as i32 as i64 as u64);
        far |= offset.wrapping_add(1 << 30);
        relative[l] = offset as i32;
    }
    if far >> 31 != 0 {
        return None;
    }
    let (mut low, mut high) = (0, 0);
    for l in 0..32 {
        low = relative[l].min(low);
        high = relative[l].max(high);
    }
    let size = (high - low) as u64 + BYTES as u64;
    let host = locate(cx, space, pivot.wrapping_add(low as i64 as u64), size, write)?;
    let mut offsets = LaneVec::ZERO;
    for l in 0..32 {
        // Inactive lanes at the lowest address: they must stay inside too.
        offsets.0[l] = relative[l].wrapping_sub(low) as u32 & active[l];
    }
    Some(Window { host, coalesced: false, offsets })
}

for_host! {
    /// As [`window`], of global memory at a base and an offset for each lane.
    ///
    /// # Safety
    /// As for [`load_offsets`].
    (unsafe) fn offset_window =
        offset_window_of(base: u64, offsets: *const LaneVec, exec: u32, write: bool) -> Option<Window>
}

/// # Safety
/// As for [`load_offsets`].
#[inline(always)]
unsafe fn offset_window_of<const BYTES: usize>(
    cx: &mut Cx<'_>,
    base: u64,
    offsets: *const LaneVec,
    exec: u32,
    write: bool,
) -> Option<Window> {
    if BYTES > 2 && !BYTES.is_multiple_of(4) {
        return None;
    }
    // SAFETY: by the contract; nothing below writes registers.
    let lanes = unsafe { &*offsets };
    if exec == u32::MAX && are_coalesced(lanes, BYTES) {
        let address = base.wrapping_add(lanes.0[0] as u64);
        let host = global(cx, address, 32 * BYTES as u64, write)?;
        prefetch(cx, host, address, 32 * BYTES);
        return Some(Window { host, coalesced: true, offsets: LaneVec::ZERO });
    }
    if exec == 0 {
        return None;
    }
    let active = active_lanes(exec);
    let (mut low, mut high) = (u32::MAX, 0);
    for l in 0..32 {
        low = low.min(lanes.0[l] | !active[l]);
        high = high.max(lanes.0[l] & active[l]);
    }
    // Offsets from the lowest stay below 2^31: they are compared modulo 2^32 where they are copied.
    if high - low >= 1 << 31 {
        return None;
    }
    let size = (high - low) as u64 + BYTES as u64;
    // Bytes after the last address belong to nothing.
    base.checked_add(high as u64 + BYTES as u64)?;
    let host = global(cx, base + low as u64, size, write)?;
    let mut at = LaneVec::ZERO;
    for l in 0..32 {
        // Inactive lanes at the lowest address: they must stay inside too.
        at.0[l] = lanes.0[l].wrapping_sub(low) & active[l];
    }
    Some(Window { host, coalesced: false, offsets: at })
}

/// Whether elements of so many bytes at these offsets are consecutive, without a carry out of 32 bits in between.
#[inline(always)]
pub(super) fn are_coalesced(offsets: &LaneVec, bytes: usize) -> bool {
    let first = offsets.0[0];
    let mut gaps = 0;
    for l in 0..32 {
        gaps |= offsets.0[l].wrapping_sub(first) ^ (l * bytes) as u32;
    }
    gaps == 0 && first <= u32::MAX - 32 * bytes as u32
}

/// Prefetches what the same instruction will access two iterations of its loop from now, if its address moves on as it did. Kernels step
/// through memory in strides that the host's own prefetcher does not follow.
#[inline(always)]
pub(super) fn prefetch(cx: &mut Cx<'_>, host: *const u8, address: u64, len: usize) {
    let last = &mut cx.wave.last_addresses[cx.op.number as usize % LAST_ADDRESSES];
    let step = address.wrapping_sub(*last);
    *last = address;
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if step != 0 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let next = host.wrapping_add(step.wrapping_mul(2) as usize);
        for line in (0..len).step_by(64) {
            // SAFETY: a prefetch reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(line).cast()) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (host, len, step);
}

/// The range that the running instruction last accessed: most stay in one.
#[inline(always)]
pub(super) fn last_range<'c>(cx: &'c Cx<'_>) -> &'c HostRange {
    cx.wave.last_range(cx.op.number as usize)
}

/// Host address of `len` bytes of global memory that are all in one range.
#[inline(always)]
fn global(cx: &mut Cx<'_>, address: u64, len: u64, write: bool) -> Option<*mut u8> {
    match last_range(cx).host_of(address, len, write) {
        Some(host) => Some(host),
        None => global_elsewhere(cx, address, len, write),
    }
}

#[inline(never)]
fn global_elsewhere(cx: &mut Cx<'_>, address: u64, len: u64, write: bool) -> Option<*mut u8> {
    let range = cx.memory.range_of(address)?;
    cx.wave.set_last_range(cx.op.number as usize, cx.memory.id(), range);
    range.host_of(address, len, write)
}

/// Host address of `len` bytes, all in one space.
#[inline(always)]
fn locate(cx: &mut Cx<'_>, space: Space, address: u64, len: u64, write: bool) -> Option<*mut u8> {
    let within_lds = |at: u64| {
        let room = cx.lds.len() as u64;
        (at <= room && len <= room - at).then_some(at as usize)
    };
    match Place::of(space, address) {
        Place::Lds(at) => {
            let at = within_lds(at)?;
            // SAFETY: `at` is inside LDS.
            Some(unsafe { cx.lds.as_mut_ptr().add(at) })
        }
        Place::Global(_) => {
            // An end in an aperture is another space.
            if space == Space::Flat
                && !matches!(Place::of(space, address.wrapping_add(len - 1)), Place::Global(_))
            {
                return None;
            }
            global(cx, address, len, write)
        }
        Place::Scratch(_) | Place::Nowhere => None,
    }
}

/// The slow path, for lanes without a window. In an observed run it repeats the access `again` on the real memory; otherwise lane by lane.
#[inline(never)]
pub(super) fn load_fallback<'a, const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'a>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    again: impl FnOnce(&mut Cx<'a>) -> Result<[LaneVec; DWORDS], Flow>,
) -> Result<[LaneVec; DWORDS], Flow> {
    if cx.watch.is_some() {
        let watched = watch::rows(cx, space, (addresses, BYTES), (exec, lane_base), false, again);
        if let Some(rows) = watched {
            return Ok(rows);
        }
    }
    load_lanes::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base)
}

/// Lane by lane: scratch, and whatever is out of bounds somewhere.
#[inline(never)]
fn load_lanes<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
) -> Result<[LaneVec; DWORDS], Flow> {
    let mut rows = [LaneVec::ZERO; DWORDS];
    for l in (0..32).filter(|l| exec >> l & 1 == 1) {
        let value = load_here::<BYTES>(cx, space, addresses[l], Some(lane_base + l as u32))?;
        for (k, row) in rows.iter_mut().enumerate() {
            row.0[l] = (value >> (32 * k)) as u32;
        }
    }
    Ok(rows)
}

/// As [`load_fallback`].
#[inline(never)]
pub(super) fn store_fallback<'a, const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'a>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    rows: &[LaneVec; DWORDS],
    again: impl FnOnce(&mut Cx<'a>) -> Result<(), Flow>,
) -> Result<(), Flow> {
    if cx.watch.is_some() {
        let watched = watch::rows(cx, space, (addresses, BYTES), (exec, lane_base), true, again);
        if watched.is_some() {
            return Ok(());
        }
    }
    store_lanes::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, rows)
}

/// As [`load_lanes`].
#[inline(never)]
fn store_lanes<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    rows: &[LaneVec; DWORDS],
) -> Result<(), Flow> {
    for l in (0..32).filter(|l| exec >> l & 1 == 1) {
        let value = rows.iter().enumerate().fold(0, |v, (k, row)| v | (row.0[l] as u128) << (32 * k));
        store_here::<BYTES>(cx, space, addresses[l], value, Some(lane_base + l as u32))?;
    }
    Ok(())
}
