//! Windows: ranges of host memory that contain the elements of all active lanes, checked with a single bounds
//! check.

// A lane number indexes several lane vectors at once.
#![allow(clippy::needless_range_loop)]

use crate::context::Cx;
use isa_spec::pcode::ir::Space;
use wavesim_state::LaneVec;
use wavesim_state::memory::{HostRange, Place};

/// Addresses of the lanes of a half.
pub type Addresses = [u64; 32];

/// A range of host memory that contains the elements of all active lanes.
pub(super) struct Window {
    /// Host address of the lowest element.
    pub host: *mut u8,
    /// Every lane is active, and each element directly follows the previous lane's.
    pub coalesced: bool,
    /// Offsets from the lowest address, by lane; 0 for inactive lanes.
    pub offsets: LaneVec,
}

/// Finds the window of an access, if there is one. Out of line, so that the accesses of a handler stay small
/// enough to be optimised together.
#[inline(always)]
pub(super) fn window<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    write: bool,
) -> Option<Window> {
    // Scratch is swizzled: each lane has its own address space. Elements are whole dwords, or parts of one:
    // see `element`. Lanes out of a buffer's range are too far away for a window.
    let odd = BYTES > 2 && !BYTES.is_multiple_of(4);
    if space == Space::Scratch || odd {
        return None;
    }
    address_window::<BYTES>(cx, space, addresses, exec, write)
}

/// Compiles a function twice, for AVX2 and for any host, both out of line. The body is `inline(always)`.
macro_rules! for_host {
    ($(#[$doc:meta])* $vis:vis ($($unsafe:tt)?) fn $name:ident = $body:ident ($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $(#[$doc])*
        #[inline(always)]
        $vis $($unsafe)? fn $name<const BYTES: usize>(cx: &mut Cx<'_>, $($arg: $ty),*) -> $result {
            #[inline(never)]
            $($unsafe)? fn anywhere<const BYTES: usize>(cx: &mut Cx<'_>, $($arg: $ty),*) -> $result {
                // SAFETY: the caller upholds the contract of the body, if it has one.
                #[allow(unused_unsafe)]
                unsafe { $body::<BYTES>(cx, $($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            #[inline(never)]
            $($unsafe)? fn avx2<const BYTES: usize>(cx: &mut Cx<'_>, $($arg: $ty),*) -> $result {
                // SAFETY: the caller upholds the contract of the body, if it has one.
                #[allow(unused_unsafe)]
                unsafe { $body::<BYTES>(cx, $($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            if cx.fast.is_some() {
                // SAFETY: `cx.fast` proves AVX2 (H1); the caller upholds the contract of the body, if it has
                // one.
                return unsafe { avx2::<BYTES>(cx, $($arg),*) };
            }
            // SAFETY: the caller upholds the contract of the body, if it has one.
            #[allow(unused_unsafe)]
            unsafe { anywhere::<BYTES>(cx, $($arg),*) }
        }
    };
}

for_host! {
    () fn address_window =
        address_window_of(space: Space, addresses: &Addresses, exec: u32, write: bool) -> Option<Window>
}

/// Returns all ones for active lanes, else zero.
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
    // Offsets from an active lane's address, as signed 32-bit numbers: lanes further apart have no window.
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
        // Inactive lanes get the lowest address, so that they stay in bounds too.
        offsets.0[l] = relative[l].wrapping_sub(low) as u32 & active[l];
    }
    Some(Window { host, coalesced: false, offsets })
}

for_host! {
    /// As [`window`], for global memory at a base and an offset per lane.
    ///
    /// # Safety
    /// As for [`load_offsets`].
    pub(super) (unsafe) fn offset_window =
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
    // SAFETY: the caller guarantees that `offsets` is a vector of the wave's file; nothing below writes
    // registers.
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
    // Offsets from the lowest one must stay below 2^31, because copies compare them modulo 2^32.
    if high - low >= 1 << 31 {
        return None;
    }
    let size = (high - low) as u64 + BYTES as u64;
    // Nothing is mapped beyond the last address.
    base.checked_add(high as u64 + BYTES as u64)?;
    let host = global(cx, base + low as u64, size, write)?;
    let mut at = LaneVec::ZERO;
    for l in 0..32 {
        // Inactive lanes get the lowest address, so that they stay in bounds too.
        at.0[l] = lanes.0[l].wrapping_sub(low) & active[l];
    }
    Some(Window { host, coalesced: false, offsets: at })
}

/// Returns whether elements of `bytes` bytes at these offsets are consecutive, without a carry out of 32
/// bits.
#[inline(always)]
pub(crate) fn are_coalesced(offsets: &LaneVec, bytes: usize) -> bool {
    let first = offsets.0[0];
    let mut gaps = 0;
    for l in 0..32 {
        gaps |= offsets.0[l].wrapping_sub(first) ^ (l * bytes) as u32;
    }
    gaps == 0 && first <= u32::MAX - 32 * bytes as u32
}

/// Prefetches the data that the same instruction will access two iterations of its loop later, if its address
/// keeps advancing by the same step. Kernels step through memory with strides that the host's own prefetcher
/// does not follow.
#[inline(always)]
pub(crate) fn prefetch(cx: &mut Cx<'_>, host: *const u8, address: u64, len: usize) {
    let step = cx.tuning.step(cx.op.number as usize, address);
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

/// Returns the range that the running instruction last accessed; most instructions stay in one range.
#[inline(always)]
pub(crate) fn last_range<'c>(cx: &'c Cx<'_>) -> &'c HostRange {
    cx.wave.last_range(cx.op.number as usize)
}

/// Returns the host address of `len` bytes of global memory, if they are all in one range.
#[inline(always)]
pub(super) fn global(cx: &mut Cx<'_>, address: u64, len: u64, write: bool) -> Option<*mut u8> {
    match last_range(cx).host_of(address, len, write) {
        Some(host) => Some(host),
        None => global_elsewhere(cx, address, len, write),
    }
}

#[inline(never)]
fn global_elsewhere(cx: &mut Cx<'_>, address: u64, len: u64, write: bool) -> Option<*mut u8> {
    let range = cx.memory.range_of(address)?;
    // SAFETY: the range is one of this memory, which the wave was given when the context was created; an
    // observed run, whose memory is another one, stores none.
    unsafe { cx.wave.set_last_range(cx.op.number as usize, cx.memory.id(), range) };
    range.host_of(address, len, write)
}

/// Returns the host address of `len` bytes, if they are all in one space.
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
            // If the end is in an aperture, it belongs to another space.
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
