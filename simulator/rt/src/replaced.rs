//! The contents of memory before the stores of an observed instruction.

use super::place::Place;
use wavesim_state::LaneVec;
use wavesim_state::memory::access;

/// The bytes that the stores of an instruction have replaced.
#[derive(Debug, Default)]
pub struct Replaced {
    /// Replaced ranges in the order of the stores.
    parts: Vec<Part>,
    /// Bytes of each range, starting at a new word.
    words: Vec<u32>,
    /// Bytes of ranges that are whole blocks.
    vecs: Vec<LaneVec>,
}

/// A replaced range of bytes.
#[derive(Debug)]
struct Part {
    place: Place,
    address: u64,
    len: u32,
    /// Index of the first word, or of the first lane vector.
    first: u32,
    in_vecs: bool,
}

impl Replaced {
    /// Returns the value of a byte before the instruction; `None` if no store replaced it.
    pub fn byte(&self, place: Place, address: u64) -> Option<u8> {
        let holds = |part: &&Part| {
            part.place == place && address >= part.address && address - part.address < part.len as u64
        };
        let part = self.parts.iter().find(holds)?;
        let (at, first) = ((address - part.address) as usize, part.first as usize);
        let word = match part.in_vecs {
            true => self.vecs.get(first + at / 128)?.0[at % 128 / 4],
            false => *self.words.get(first + at / 4)?,
        };
        Some(word.to_le_bytes()[at % 4])
    }

    /// Clears the record for the next instruction.
    #[inline]
    pub fn clear(&mut self) {
        self.parts.clear();
        self.words.clear();
        self.vecs.clear();
    }

    /// Records `vecs` lane vectors of global memory.
    ///
    /// # Safety
    /// The vectors can be read at `host`, and the host has AVX2 (H1).
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    pub(super) unsafe fn keep_block(&mut self, address: u64, host: *const u8, vecs: usize) {
        let (len, first) = (128 * vecs as u32, self.vecs.len() as u32);
        self.parts.push(Part { place: Place::Global, address, len, first, in_vecs: true });
        self.vecs.reserve(vecs);
        // (`push` would build each vector elsewhere and copy it.)
        let to = self.vecs.as_mut_ptr().wrapping_add(first as usize);
        for row in 0..vecs {
            // SAFETY: `reserve` has made room for `vecs` vectors, and the caller guarantees that they can be
            // read.
            unsafe { to.add(row).write(LaneVec(access::load_lane_vec(host.add(128 * row)))) };
        }
        // SAFETY: the loop has initialised these vectors.
        unsafe { self.vecs.set_len(first as usize + vecs) };
    }

    /// Records bytes.
    pub(super) fn keep(&mut self, place: Place, address: u64, bytes: &[u8]) {
        let (len, first) = (bytes.len() as u32, self.words.len() as u32);
        self.parts.push(Part { place, address, len, first, in_vecs: false });
        let (whole, rest) = bytes.as_chunks::<4>();
        self.words.extend(whole.iter().map(|word| u32::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(u32::from_le_bytes(last));
        }
    }
}
