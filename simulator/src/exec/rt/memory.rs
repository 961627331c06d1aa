//! Loads and stores of one lane (or of the wave, for scalar memory), and of 32 lanes at once.

// A lane number indexes several rows at once.
#![allow(clippy::needless_range_loop)]

use super::context::{Cx, Flow};
use super::watch;
use crate::exec::machine_ops::Event;
use crate::machine::Row;
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

// Rows: the loads or stores of 32 lanes at once.

/// Addresses of a half's lanes.
pub type Addresses = [u64; 32];

/// What 32 lanes load, `DWORDS` registers of each. One bounds check where the lanes' addresses are close together; lane by lane, with
/// the exact fault, where they are not.
#[inline(always)]
pub fn load_rows<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
) -> Result<[Row; DWORDS], Flow> {
    let mut rows = [Row::ZERO; DWORDS];
    let at = match near(cx, space, addresses, exec, BYTES, false) {
        Some(near) => near,
        None => {
            far_load::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, &mut rows)?;
            return Ok(rows);
        }
    };
    if at.in_order {
        // SAFETY: `near` has checked that 32 elements from here on are inside one space.
        let all = unsafe { at.host.cast::<[[u8; BYTES]; 32]>().read_unaligned() };
        for (l, element) in all.iter().enumerate() {
            for (k, row) in rows.iter_mut().enumerate() {
                row.0[l] = dword(element, k);
            }
        }
        return Ok(rows);
    }
    for l in 0..32 {
        // SAFETY: `near` has checked the lowest and the highest address; inactive lanes read at the lowest.
        let element = unsafe { at.host.add(at.offsets.0[l] as usize).cast::<[u8; BYTES]>().read_unaligned() };
        for (k, row) in rows.iter_mut().enumerate() {
            row.0[l] = dword(&element, k);
        }
    }
    Ok(rows)
}

/// Stores what 32 lanes hold, lanes in order: of several at one address the last stays.
#[inline(always)]
pub fn store_rows<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    rows: &[Row; DWORDS],
) -> Result<(), Flow> {
    let Some(at) = near(cx, space, addresses, exec, BYTES, true) else {
        return far_store::<BYTES, DWORDS>(cx, space, addresses, exec, lane_base, rows);
    };
    if at.in_order {
        let mut all = [[0u8; BYTES]; 32];
        for (l, element) in all.iter_mut().enumerate() {
            *element = gathered(rows, l);
        }
        // SAFETY: `near` has checked that 32 elements from here on are inside one writable space.
        unsafe { at.host.cast::<[[u8; BYTES]; 32]>().write_unaligned(all) };
        return Ok(());
    }
    for l in 0..32 {
        if exec >> l & 1 == 1 {
            // SAFETY: `near` has checked the lowest and the highest address of active lanes.
            unsafe {
                at.host.add(at.offsets.0[l] as usize).cast::<[u8; BYTES]>().write_unaligned(gathered(rows, l))
            };
        }
    }
    Ok(())
}

/// Dword `k` of an element, zeros beyond its end.
#[inline(always)]
fn dword<const BYTES: usize>(element: &[u8; BYTES], k: usize) -> u32 {
    let mut out = [0; 4];
    let from = (4 * k).min(BYTES);
    let to = (4 * k + 4).min(BYTES);
    out[..to - from].copy_from_slice(&element[from..to]);
    u32::from_le_bytes(out)
}

/// A lane's element.
#[inline(always)]
fn gathered<const BYTES: usize, const DWORDS: usize>(rows: &[Row; DWORDS], l: usize) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    for (k, row) in rows.iter().enumerate() {
        let from = (4 * k).min(BYTES);
        let to = (4 * k + 4).min(BYTES);
        out[from..to].copy_from_slice(&row.0[l].to_le_bytes()[..to - from]);
    }
    out
}

/// Lanes whose elements lie in one space, not far apart.
struct Near {
    /// Of the lowest address.
    host: *mut u8,
    /// Every lane active and each element right behind the last lane's.
    in_order: bool,
    /// From the lowest address, by lane; 0 for inactive ones.
    offsets: Row,
}

#[inline(always)]
fn near(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    bytes: usize,
    write: bool,
) -> Option<Near> {
    // Scratch is swizzled: lanes have a space each.
    if space == Space::Scratch || space == Space::Buffer || exec == 0 {
        return None;
    }
    let first = addresses[0];
    if exec == u32::MAX {
        let gaps = (0..32).fold(0, |gaps, l| gaps | addresses[l].wrapping_sub(first) ^ (l * bytes) as u64);
        if gaps == 0 {
            let host = locate(cx, space, first, 32 * bytes as u64, write)?;
            return Some(Near { host, in_order: true, offsets: Row::ZERO });
        }
    }
    // Offsets from an active lane's address, as signed 32-bit numbers: farther apart is not near.
    let pivot = addresses[exec.trailing_zeros() as usize & 31];
    let mut offsets = Row::ZERO;
    let (mut low, mut high, mut far) = (0i32, 0i32, 0u64);
    for l in 0..32 {
        let active = 0u64.wrapping_sub((exec >> l & 1) as u64);
        let offset = addresses[l].wrapping_sub(pivot) & active;
        far |= offset.wrapping_add(1 << 30);
        low = low.min(offset as i32);
        high = high.max(offset as i32);
        offsets.0[l] = offset as u32;
    }
    if far >> 31 != 0 {
        return None;
    }
    let host =
        locate(cx, space, pivot.wrapping_add(low as i64 as u64), (high - low) as u64 + bytes as u64, write)?;
    for offset in &mut offsets.0 {
        *offset = offset.wrapping_sub(low as u32);
    }
    // Inactive lanes must stay inside too.
    for l in 0..32 {
        offsets.0[l] &= 0u32.wrapping_sub(exec >> l & 1);
    }
    Some(Near { host, in_order: false, offsets })
}

/// Host address of `len` bytes, all in one space.
#[inline(always)]
fn locate(cx: &mut Cx<'_>, space: Space, address: u64, len: u64, write: bool) -> Option<*mut u8> {
    let within_lds = |at: u64| {
        let room = cx.lds.len() as u64;
        (at <= room && len <= room - at).then_some(at as usize)
    };
    match place(space, address) {
        Place::Lds(at) => {
            let at = within_lds(at)?;
            // SAFETY: `at` is inside LDS.
            Some(unsafe { cx.lds.as_mut_ptr().add(at) })
        }
        Place::Global => {
            // An end in an aperture is another space.
            if space == Space::Flat && !matches!(place(space, address.wrapping_add(len - 1)), Place::Global) {
                return None;
            }
            cx.memory.host(address, len, write)
        }
        Place::Scratch(_) | Place::Nowhere => None,
    }
}

#[inline(never)]
fn far_load<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    rows: &mut [Row; DWORDS],
) -> Result<(), Flow> {
    for l in (0..32).filter(|l| exec >> l & 1 == 1) {
        let value = load::<BYTES>(cx, space, addresses[l], Some(lane_base + l as u32))?;
        for (k, row) in rows.iter_mut().enumerate() {
            row.0[l] = (value >> (32 * k)) as u32;
        }
    }
    Ok(())
}

#[inline(never)]
fn far_store<const BYTES: usize, const DWORDS: usize>(
    cx: &mut Cx<'_>,
    space: Space,
    addresses: &Addresses,
    exec: u32,
    lane_base: u32,
    rows: &[Row; DWORDS],
) -> Result<(), Flow> {
    for l in (0..32).filter(|l| exec >> l & 1 == 1) {
        let value = rows.iter().enumerate().fold(0, |v, (k, row)| v | (row.0[l] as u128) << (32 * k));
        store::<BYTES>(cx, space, addresses[l], value, Some(lane_base + l as u32))?;
    }
    Ok(())
}
