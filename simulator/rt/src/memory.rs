//! Loads and stores of one lane, or of the wave for scalar memory. [`lanes`] has those of 32 lanes at once,
//! and [`window`] finds the host memory range that such an access covers.

mod lanes;
mod window;

pub(super) use lanes::{element, load_fallback, set_element, store_fallback, sums};
pub use lanes::{
    load_buffer, load_offsets, load_scaled_offsets, load_vecs, store_buffer, store_offsets,
    store_scaled_offsets, store_vecs,
};
use window::global;
pub(super) use window::{are_coalesced, last_range, prefetch};

use super::context::{Cx, Flow};
use super::watched;
use isa_spec::pcode::ir::Space;
use wavesim_state::event::Event;
use wavesim_state::memory::{MemError, Place, access};
use wavesim_state::scratch;

/// Returns whether the access of one lane, or of the wave, is inlined into handlers. Others are calls,
/// because hundreds of handlers contain them.
#[inline(always)]
const fn is_inline(space: Space, bytes: usize) -> bool {
    matches!(space, Space::Lds) || matches!(space, Space::Scalar) && bytes <= 8
}

/// Defines an access of one lane, or of the wave, which is inlined or called according to [`is_inline`].
macro_rules! one_access {
    ($(#[$doc:meta])* fn $name:ident = $here:ident ($($arg:ident: $ty:ty),*) -> $result:ty) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<const BYTES: usize>(cx: &mut Cx<'_>, space: Space, addr: u64, $($arg: $ty),*) -> $result {
            #[inline(never)]
            fn apart<const BYTES: usize>(cx: &mut Cx<'_>, space: Space, addr: u64, $($arg: $ty),*) -> $result {
                $here::<BYTES>(cx, space, addr, $($arg),*)
            }
            if is_inline(space, BYTES) {
                $here::<BYTES>(cx, space, addr, $($arg),*)
            } else {
                apart::<BYTES>(cx, space, addr, $($arg),*)
            }
        }
    };
}

one_access! {
    /// Loads `BYTES` bytes as a number. The space is a constant in each handler.
    fn load = load_here(lane: Option<u32>) -> Result<u128, Flow>
}

#[inline(always)]
fn load_here<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
) -> Result<u128, Flow> {
    let bytes: [u8; BYTES] = match Place::of(space, addr) {
        Place::Global(_) => match global(cx, addr, BYTES as u64, false) {
            // SAFETY: `global` has checked that the bytes are inside a range.
            Some(at) => unsafe { access::load(at) },
            None => {
                let e = MemError { address: addr, size_bytes: BYTES as u32, write: false };
                missed_load(cx, space, addr, lane, |cx| Err(cx.memory_fault(e, lane)))?
            }
        },
        Place::Lds(at) => match lds(cx, at, BYTES) {
            Some(s) => s.try_into().unwrap_or([0; BYTES]),
            // LDS reads beyond the allocation return zero.
            None => missed_load(cx, Space::Lds, at, lane, |_| Ok([0; BYTES]))?,
        },
        Place::Scratch(at) => {
            let mut bytes = [0; BYTES];
            match scratch::read(cx.scratch, cx.scratch_stride, lane.unwrap_or(0), at, &mut bytes) {
                Some(()) => bytes,
                None => {
                    let fault = |cx: &mut Cx<'_>| Err(scratch_fault(cx, at, BYTES, lane, false));
                    missed_load(cx, Space::Scratch, at, lane, fault)?
                }
            }
        }
        Place::Nowhere => return Ok(0),
    };
    // Here and below, no `copy_from_slice`: it would stay a call.
    let mut wide = [0; 16];
    if let Some(low) = wide.first_chunk_mut() {
        *low = bytes;
    }
    Ok(u128::from_le_bytes(wide))
}

one_access! {
    /// Stores the low `BYTES` bytes of a value for a lane (`None` for scalar memory). Does nothing beyond LDS
    /// and outside a buffer's range.
    fn store = store_here(value: u128, lane: Option<u32>) -> Result<(), Flow>
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
            let Some(at) = global(cx, addr, BYTES as u64, true) else {
                let e = MemError { address: addr, size_bytes: BYTES as u32, write: true };
                return missed_store(cx, space, e, lane, &bytes);
            };
            // SAFETY: `global` has checked that the bytes are inside a writable range.
            unsafe { access::store(at, bytes) };
            if space == Space::Word {
                cx.memory.touch(addr, 1);
            }
        }
        Place::Lds(at) => match lds(cx, at, BYTES).and_then(|s| s.first_chunk_mut()) {
            Some(s) => *s = bytes,
            None => return missed_lds_store(cx, at, lane, &bytes),
        },
        Place::Scratch(at) => {
            match scratch::write(cx.scratch, cx.scratch_stride, lane.unwrap_or(0), at, &bytes) {
                Some(()) => {}
                None => return missed_scratch_store(cx, at, lane, &bytes),
            }
        }
        Place::Nowhere => {}
    }
    Ok(())
}

one_access! {
    /// Stores the result of an atomic that loaded `old`. Returns false, and stores nothing, if another host
    /// thread has changed the value since.
    fn exchange = exchange_here(old: u128, value: u128, lane: Option<u32>) -> Result<bool, Flow>
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
    let at = global(cx, addr, bytes as u64, true).filter(|at| (*at as usize).is_multiple_of(bytes));
    let Some(at) = at else {
        let e = MemError { address: addr, size_bytes: bytes as u32, write: true };
        return Err(cx.memory_fault(e, lane));
    };
    // SAFETY: `global` has checked that the bytes are inside a writable range; the pointer is aligned.
    Ok(unsafe {
        match bytes {
            8 => access::exchange_u64(at, old as u64, value as u64),
            _ => access::exchange_u32(at, old as u32, value as u32),
        }
    })
}

#[inline(always)]
fn lds<'c>(cx: &'c mut Cx<'_>, address: u64, len: usize) -> Option<&'c mut [u8]> {
    let address = address as usize;
    cx.lds.get_mut(address..address.wrapping_add(len))
}

// Slow paths for accesses that are out of bounds or watched, kept out of line so that the fast paths stay
// short.

/// Loads through the watch in an observed run; without a watch, calls `missed` for the result of an
/// out-of-bounds load.
#[cold]
fn missed_load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    address: u64,
    lane: Option<u32>,
    missed: impl FnOnce(&mut Cx<'_>) -> Result<[u8; BYTES], Flow>,
) -> Result<[u8; BYTES], Flow> {
    let mut bytes = [0; BYTES];
    match watched::load(cx, space, address, lane, &mut bytes) {
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
    watched::store(cx, space, e.address, lane, bytes).unwrap_or_else(|| Err(cx.memory_fault(e, lane)))
}

/// LDS stores beyond the allocation are dropped.
#[cold]
fn missed_lds_store(cx: &mut Cx<'_>, address: u64, lane: Option<u32>, bytes: &[u8]) -> Result<(), Flow> {
    watched::store(cx, Space::Lds, address, lane, bytes).unwrap_or(Ok(()))
}

#[cold]
fn missed_scratch_store(cx: &mut Cx<'_>, address: u64, lane: Option<u32>, bytes: &[u8]) -> Result<(), Flow> {
    let missed = watched::store(cx, Space::Scratch, address, lane, bytes);
    missed.unwrap_or_else(|| Err(scratch_fault(cx, address, bytes.len(), lane, true)))
}

#[cold]
fn scratch_fault(cx: &mut Cx<'_>, offset: u64, len: usize, lane: Option<u32>, write: bool) -> Flow {
    let e = MemError { address: offset, size_bytes: len as u32, write };
    cx.fault(Event::scratch_overflow(e, cx.scratch_stride, lane))
}
