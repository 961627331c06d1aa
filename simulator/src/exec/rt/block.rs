//! Loads and stores of neighbours: all lanes active, whole registers, each lane's element right behind the last one's. What is not so is
//! left to the loads and stores of any rows.

use super::context::Cx;
use super::memory::prefetch;
use super::operands::{file, plain_stage, written};
use super::transpose::{load_quads, store_quads};
use crate::machine::Row;
use crate::machine::wave::EXEC_LO;

/// Moves the elements of 32 lanes, at a base and an offset for each lane, to the registers from `d` on; or does nothing, and says so.
///
/// # Safety
/// As for [`plain_stage`], with `offsets` a code and `d` a row of `DWORDS`; on x86-64 the caller has AVX2.
#[inline(always)]
pub unsafe fn load_block<const DWORDS: usize>(cx: &mut Cx<'_>, base: u64, offsets: u16, d: u16) -> bool {
    // SAFETY: by the contract.
    let Some(from) = (unsafe { block::<DWORDS>(cx, base, offsets, false) }) else { return false };
    // SAFETY: the registers are the file's, and the wave's memory is none of its registers.
    unsafe {
        let rows = file(cx).add(d as usize);
        match DWORDS {
            1 => *rows = from.cast::<Row>().read_unaligned(),
            4 => load_quads(true, from, &mut *rows.cast()),
            _ => {
                for l in 0..32 {
                    for k in 0..DWORDS {
                        (*rows.add(k)).0[l] = from.cast::<u32>().add(l * DWORDS + k).read_unaligned();
                    }
                }
            }
        }
        written::<DWORDS>(cx, d);
    }
    true
}

/// Moves the elements of 32 lanes from the registers of a code on to memory; or does nothing, and says so.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
pub unsafe fn store_block<const DWORDS: usize>(cx: &mut Cx<'_>, base: u64, offsets: u16, data: u16) -> bool {
    // SAFETY: by the contract.
    let Some(to) = (unsafe { block::<DWORDS>(cx, base, offsets, true) }) else { return false };
    // SAFETY: as in `load_block`.
    unsafe {
        let rows = plain_stage(file(cx), data);
        match DWORDS {
            1 => to.cast::<Row>().write_unaligned(*rows),
            4 => store_quads(true, to, &*rows.cast()),
            _ => {
                for l in 0..32 {
                    for k in 0..DWORDS {
                        to.cast::<u32>().add(l * DWORDS + k).write_unaligned((*rows.add(k)).0[l]);
                    }
                }
            }
        }
    }
    true
}

/// Where the block is on the host.
///
/// # Safety
/// As for [`load_block`].
#[inline(always)]
unsafe fn block<const DWORDS: usize>(cx: &mut Cx<'_>, base: u64, offsets: u16, write: bool) -> Option<*mut u8> {
    let size = 128 * DWORDS as u32;
    // SAFETY: by the contract.
    let offsets = unsafe { &*plain_stage(file(cx), offsets) };
    let first = offsets.0[0];
    // No carry out of the 32 bits within the row.
    if cx.wave.sgprs[EXEC_LO] != u32::MAX || first > u32::MAX - size {
        return None;
    }
    let mut gaps = 0;
    for (l, offset) in offsets.0.iter().enumerate() {
        gaps |= offset.wrapping_sub(first) ^ (4 * DWORDS * l) as u32;
    }
    if gaps != 0 {
        return None;
    }
    let address = base.wrapping_add(first as u64);
    let host = cx.memory.host_of_first(address, size as u64, write)?;
    prefetch(cx, host, address, size as usize);
    Some(host)
}
