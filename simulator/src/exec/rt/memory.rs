//! Loads and stores of one lane (or of the wave, for scalar memory).

use super::context::{Cx, Flow};
use super::watch;
use crate::exec::machine_ops::Event;
use crate::memory::{MemError, PRIVATE_BASE, SHARED_BASE};
use isa_spec::pcode::ir::Space;

enum Place {
    Global,
    Lds(u64),
    Scratch(u64),
    Nowhere,
}

#[inline(always)]
fn place(space: Space, addr: u64) -> Place {
    match space {
        Space::Lds => Place::Lds(addr),
        Space::Scratch => Place::Scratch(addr),
        Space::Flat if addr >> 32 == SHARED_BASE >> 32 => Place::Lds(addr & 0xffff_ffff),
        Space::Flat if addr >> 32 == PRIVATE_BASE >> 32 => Place::Scratch(addr & 0xffff_ffff),
        Space::Buffer if addr == u64::MAX => Place::Nowhere,
        _ => Place::Global,
    }
}

/// `BYTES` bytes as a number.
#[inline(always)]
pub fn load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
) -> Result<u128, Flow> {
    let bytes: [u8; BYTES] = match place(space, addr) {
        Place::Global => match cx.memory.load::<BYTES>(addr) {
            Ok(bytes) => bytes,
            Err(e) => missed_load(cx, space, e, addr, lane)?,
        },
        Place::Lds(at) => match lds(cx, at, BYTES) {
            Some(s) => s.try_into().unwrap_or([0; BYTES]),
            None => missed_lds_load(cx, at, lane)?,
        },
        Place::Scratch(at) => match scratch(cx, at, BYTES, lane) {
            Some(s) => s.try_into().unwrap_or([0; BYTES]),
            None => missed_scratch_load(cx, at, lane)?,
        },
        Place::Nowhere => return Ok(0),
    };
    let mut wide = [0; 16];
    wide[..BYTES].copy_from_slice(&bytes);
    Ok(u128::from_le_bytes(wide))
}

#[inline(always)]
pub fn store<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    value: u128,
    lane: Option<u32>,
) -> Result<(), Flow> {
    let wide = value.to_le_bytes();
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(&wide[..BYTES]);
    match place(space, addr) {
        Place::Global => {
            if let Err(e) = cx.memory.store(addr, bytes) {
                return missed_store(cx, space, e, lane, &bytes);
            }
        }
        Place::Lds(at) => match lds(cx, at, BYTES) {
            Some(s) => s.copy_from_slice(&bytes),
            None => return missed_lds_store(cx, at, lane, &bytes),
        },
        Place::Scratch(at) => match scratch(cx, at, BYTES, lane) {
            Some(s) => s.copy_from_slice(&bytes),
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
    if let Place::Global = place(space, addr) {
        if !addr.is_multiple_of(BYTES as u64) {
            let e = MemError { address: addr, size_bytes: BYTES as u32, write: true };
            return Err(cx.fault(Event::misaligned(e, lane)));
        }
        if cx.memory.is_shared() {
            return exchange_shared(cx, addr, BYTES, old, value, lane);
        }
    }
    store::<BYTES>(cx, space, addr, value, lane).map(|()| true)
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

#[cold]
fn missed_load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    e: MemError,
    addr: u64,
    lane: Option<u32>,
) -> Result<[u8; BYTES], Flow> {
    let mut bytes = [0; BYTES];
    match watch::load(cx, space, addr, lane, &mut bytes) {
        Some(result) => result.map(|()| bytes),
        None => Err(cx.memory_fault(e, lane)),
    }
}

/// Beyond the allocation LDS reads zero.
#[cold]
fn missed_lds_load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    at: u64,
    lane: Option<u32>,
) -> Result<[u8; BYTES], Flow> {
    let mut bytes = [0; BYTES];
    match watch::load(cx, Space::Lds, at, lane, &mut bytes) {
        Some(result) => result.map(|()| bytes),
        None => Ok(bytes),
    }
}

#[cold]
fn missed_scratch_load<const BYTES: usize>(
    cx: &mut Cx<'_>,
    at: u64,
    lane: Option<u32>,
) -> Result<[u8; BYTES], Flow> {
    let mut bytes = [0; BYTES];
    match watch::load(cx, Space::Scratch, at, lane, &mut bytes) {
        Some(result) => result.map(|()| bytes),
        None => Err(scratch_fault(cx, at, BYTES, lane, false)),
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
