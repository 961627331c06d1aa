//! Bytes of memory as they were before the stores of an observed instruction.

use super::watch::Place;
use crate::memory::access;
use crate::state::LaneVec;

/// What the stores of an instruction have replaced.
#[derive(Debug, Default)]
pub struct Replaced {
    /// In the order of the stores.
    parts: Vec<Part>,
    /// The bytes of each part, from a new word on.
    words: Vec<u32>,
    /// Those of parts that are blocks.
    rows: Vec<LaneVec>,
}

/// Consecutive bytes that were replaced.
#[derive(Debug)]
struct Part {
    place: Place,
    address: u64,
    len: u32,
    /// Index of the first word, or of the first row.
    first: u32,
    in_rows: bool,
}

impl Replaced {
    /// What a byte was before the instruction; `None` if none of its stores went there.
    pub fn byte(&self, place: Place, address: u64) -> Option<u8> {
        let holds = |part: &&Part| {
            part.place == place && address >= part.address && address - part.address < part.len as u64
        };
        let part = self.parts.iter().find(holds)?;
        let (at, first) = ((address - part.address) as usize, part.first as usize);
        let word = match part.in_rows {
            true => self.rows.get(first + at / 128)?.0[at % 128 / 4],
            false => *self.words.get(first + at / 4)?,
        };
        Some(word.to_le_bytes()[at % 4])
    }

    /// Forgets the instruction.
    #[inline]
    pub fn clear(&mut self) {
        self.parts.clear();
        self.words.clear();
        self.rows.clear();
    }

    /// Keeps so many lane vectors of global memory.
    ///
    /// # Safety
    /// They can be read from `host` on, and the host has AVX2 (H1).
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn keep_block(&mut self, address: u64, host: *const u8, rows: usize) {
        let (len, first) = (128 * rows as u32, self.rows.len() as u32);
        self.parts.push(Part { place: Place::Global, address, len, first, in_rows: true });
        self.rows.reserve(rows);
        // (`push` makes each vector elsewhere and copies it.)
        let to = self.rows.as_mut_ptr().wrapping_add(first as usize);
        for row in 0..rows {
            // SAFETY: there is room for as many behind the last one; by the contract.
            unsafe { to.add(row).write(LaneVec(access::load_lane_vec(host.add(128 * row)))) };
        }
        // SAFETY: they have been written.
        unsafe { self.rows.set_len(first as usize + rows) };
    }

    /// Keeps bytes.
    pub(super) fn keep(&mut self, place: Place, address: u64, bytes: &[u8]) {
        let (len, first) = (bytes.len() as u32, self.words.len() as u32);
        self.parts.push(Part { place, address, len, first, in_rows: false });
        let (whole, rest) = bytes.as_chunks::<4>();
        self.words.extend(whole.iter().map(|word| u32::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(u32::from_le_bytes(last));
        }
    }
}
