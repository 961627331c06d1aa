//! The layout of a wave's scratch in host memory: dwords at one address of 32 consecutive lanes are adjacent, as GPUs
//! swizzle it (LLVM AMDGPUUsage, *Private*: dwords of the lanes are interleaved). A spill, whose address is the same in all
//! lanes, is thus a lane vector.

/// Lanes whose dwords at one address are adjacent: those of a register file.
const LANES: u64 = 32;
const DWORD: u64 = 4;
/// The distance of a lane's consecutive dwords in bytes.
pub const DWORD_DISTANCE: u64 = LANES * DWORD;

/// Returns the bytes that the scratch of `lanes` lanes takes, a multiple of 32, with `per_lane` bytes for each.
pub fn size(per_lane: u32, lanes: u32) -> usize {
    per_lane as usize * lanes as usize + padding(per_lane) as usize * lanes as usize
}

/// Returns the bytes by which the last dword of a lane exceeds its scratch.
fn padding(per_lane: u32) -> u64 {
    (per_lane as u64).next_multiple_of(DWORD) - per_lane as u64
}

/// Returns the position of the byte at an address in a lane's scratch of `per_lane` bytes.
#[inline(always)]
pub fn position(per_lane: u32, lane: u32, address: u64) -> u64 {
    let (files, lane) = (lane as u64 / LANES, lane as u64 % LANES);
    let file = (per_lane as u64 + padding(per_lane)) * LANES;
    files * file + address / DWORD * DWORD_DISTANCE + lane * DWORD + address % DWORD
}

/// Returns whether the bytes at an address are in a lane's scratch.
#[inline(always)]
fn is_inside(per_lane: u32, address: u64, len: usize) -> bool {
    address <= per_lane as u64 && len as u64 <= per_lane as u64 - address
}

/// Reads bytes of a lane's scratch. Returns `None`, and reads nothing that counts, if they are not all inside.
#[inline(always)]
pub fn read(scratch: &[u8], per_lane: u32, lane: u32, address: u64, to: &mut [u8]) -> Option<()> {
    if !is_inside(per_lane, address, to.len()) {
        return None;
    }
    let first = position(per_lane, lane, address) as usize;
    if address.is_multiple_of(DWORD) && to.len().is_multiple_of(DWORD as usize) {
        for (word, at) in to.as_chunks_mut().0.iter_mut().zip((first..).step_by(DWORD_DISTANCE as usize)) {
            *word = *scratch.get(at..)?.first_chunk::<4>()?;
        }
        return Some(());
    }
    for (byte, address) in to.iter_mut().zip(address..) {
        *byte = *scratch.get(position(per_lane, lane, address) as usize)?;
    }
    Some(())
}

/// Writes bytes of a lane's scratch. Returns `None`, and writes nothing, if they are not all inside.
#[inline(always)]
pub fn write(scratch: &mut [u8], per_lane: u32, lane: u32, address: u64, from: &[u8]) -> Option<()> {
    // The last byte is the one at the highest position.
    let last = address.wrapping_add(from.len().saturating_sub(1) as u64);
    if !is_inside(per_lane, address, from.len()) || position(per_lane, lane, last) >= scratch.len() as u64 {
        return None;
    }
    let first = position(per_lane, lane, address) as usize;
    if address.is_multiple_of(DWORD) && from.len().is_multiple_of(DWORD as usize) {
        for (word, at) in from.as_chunks().0.iter().zip((first..).step_by(DWORD_DISTANCE as usize)) {
            *scratch.get_mut(at..)?.first_chunk_mut::<4>()? = *word;
        }
        return Some(());
    }
    for (byte, address) in from.iter().zip(address..) {
        *scratch.get_mut(position(per_lane, lane, address) as usize)? = *byte;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of every lane has a position of its own, whatever the size, and what was written is read.
    #[test]
    fn lanes_have_bytes_of_their_own() {
        for (per_lane, lanes) in [(4, 32), (6, 64), (16, 64), (21, 32)] {
            let mut positions: Vec<u64> = (0..lanes)
                .flat_map(|l| (0..per_lane).map(move |a| position(per_lane, l, a as u64)))
                .collect();
            positions.sort_unstable();
            positions.dedup();
            assert_eq!(positions.len(), (per_lane * lanes) as usize);
            let mut scratch = vec![0; size(per_lane, lanes)];
            assert!(positions.last().is_some_and(|last| *last < scratch.len() as u64));
            for lane in 0..lanes {
                let own: Vec<u8> = (0..per_lane).map(|a| (lane * 31 + a * 7) as u8).collect();
                // In pieces of three and four bytes.
                for (at, piece) in own.chunks(if lane % 2 == 0 { 3 } else { 4 }).scan(0, |at, piece| {
                    *at += piece.len();
                    Some((*at - piece.len(), piece))
                }) {
                    assert_eq!(write(&mut scratch, per_lane, lane, at as u64, piece), Some(()));
                }
            }
            for lane in 0..lanes {
                let expected: Vec<u8> = (0..per_lane).map(|a| (lane * 31 + a * 7) as u8).collect();
                let mut own = vec![0; per_lane as usize];
                assert_eq!(read(&scratch, per_lane, lane, 0, &mut own), Some(()));
                assert_eq!(own, expected);
                let (len, mut two) = (per_lane as u64, [0; 2]);
                assert_eq!(read(&scratch, per_lane, lane, len - 1, &mut two), None);
                assert_eq!(write(&mut scratch, per_lane, lane, u64::MAX, &two), None);
            }
        }
    }
}
