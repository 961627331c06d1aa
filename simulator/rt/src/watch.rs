//! Watched memory: replaces global memory, LDS and scratch in an observed run, so that every access is seen.
//!
//! An observed wave runs with empty memory, LDS and scratch, so each access takes the slow path for
//! out-of-bounds accesses. Only there do [`super::load`], [`super::store`] and the accesses of 32 lanes test
//! for a watch (`watched`). Runs without an observer pay nothing.

use super::access_log::append;
pub use super::access_log::{Access, LdsLoads, Logs};
use super::patterns::patterns;
pub use super::place::Place;
pub use super::replaced::Replaced;
use isa_spec::pcode::ir::Space;
use wavesim_state::event::Event;
use wavesim_state::memory::{self, MemError, Memory};
use wavesim_state::scratch;

/// The real memory of an observed run, and the logs of its accesses.
pub struct Watch<'a> {
    /// Global memory.
    pub memory: &'a Memory,
    /// LDS of the workgroup.
    pub lds: &'a mut [u8],
    /// Scratch of the wave's lanes.
    pub scratch: &'a mut [u8],
    /// Bytes of scratch per lane.
    pub scratch_stride: u32,
    /// The logs of the running instruction.
    pub logs: &'a mut Logs,
    /// Waits and hints need not be logged.
    pub quiet: bool,
    /// Accesses outside all memory load zero and store nothing instead of ending the run.
    pub keep_going: bool,
    /// LDS loads need not be logged; they are appended to [`Logs::loads`] instead.
    pub keeps_loads: bool,
}

fn place(space: Space, addr: u64) -> (Place, u64) {
    match memory::Place::of(space, addr) {
        memory::Place::Global(at) => (Place::Global, at),
        memory::Place::Lds(at) => (Place::Lds, at),
        memory::Place::Scratch(at) => (Place::Scratch, at),
        memory::Place::Nowhere => (Place::Nowhere, addr),
    }
}

/// Returns `len` bytes of LDS.
fn in_lds(lds: &mut [u8], address: u64, len: usize) -> Option<&mut [u8]> {
    let end = address.checked_add(len as u64)?;
    lds.get_mut(address as usize..usize::try_from(end).ok()?)
}

/// Loads the words in bounds of a scalar load that exceeds the end: compilers fetch more arguments than a
/// kernel has.
fn read_words(memory: &Memory, address: u64, bytes: &mut [u8]) {
    for (at, word) in (address..).step_by(4).zip(bytes.chunks_mut(4)) {
        if memory.read(at, word).is_err() {
            return;
        }
    }
}

impl Watch<'_> {
    /// Loads `bytes.len()` bytes of real memory at a byte address, and logs the access.
    ///
    /// # Errors
    /// Returns the fault of an access outside all memory, unless the run continues after those.
    pub fn load(
        &mut self,
        space: Space,
        addr: u64,
        lane: Option<u32>,
        bytes: &mut [u8],
    ) -> Result<(), Event> {
        let (place, address) = place(space, addr);
        let done = match place {
            Place::Nowhere => true,
            Place::Global => {
                let done = self.memory.read(address, bytes).is_ok();
                if !done && lane.is_none() {
                    read_words(self.memory, address, bytes);
                }
                done
            }
            Place::Scratch => {
                let lane = lane.unwrap_or(0);
                scratch::read(self.scratch, self.scratch_stride, lane, address, bytes).is_some()
            }
            Place::Lds => match in_lds(self.lds, address, bytes.len()) {
                Some(from) => {
                    copy(bytes, from);
                    true
                }
                None => false,
            },
        };
        self.finish((place, address), bytes.len(), lane, false, done)
    }

    /// Stores bytes in real memory, and logs the access.
    ///
    /// # Errors
    /// As for [`Watch::load`].
    pub fn store(&mut self, space: Space, addr: u64, lane: Option<u32>, bytes: &[u8]) -> Result<(), Event> {
        let (place, address) = place(space, addr);
        self.keep(place, address, bytes.len());
        let done = match place {
            Place::Nowhere => true,
            Place::Global => {
                let done = self.memory.write(address, bytes).is_ok();
                if done && space == Space::Word {
                    self.memory.touch(address, 1);
                }
                done
            }
            Place::Scratch => {
                let lane = lane.unwrap_or(0);
                scratch::write(self.scratch, self.scratch_stride, lane, address, bytes).is_some()
            }
            Place::Lds => match in_lds(self.lds, address, bytes.len()) {
                Some(to) => {
                    copy(to, bytes);
                    true
                }
                None => false,
            },
        };
        self.finish((place, address), bytes.len(), lane, true, done)
    }

    /// Logs an access; if it failed, returns its fault unless the run continues after faults.
    #[inline(always)]
    fn finish(
        &mut self,
        (place, address): (Place, u64),
        len: usize,
        lane: Option<u32>,
        write: bool,
        done: bool,
    ) -> Result<(), Event> {
        self.log(Access {
            place,
            address,
            size_bytes: len as u8,
            lanes: 1,
            stride: 0,
            write,
            outside: !done,
            lane: lane.map(|l| l as u8),
        });
        // LDS accesses beyond its end read zero and drop stores, without a fault.
        // A store beyond scratch ends the run in any case: the return addresses of a stack that has overflowed are
        // lost.
        let overflows = place == Place::Scratch && write;
        if done || self.keep_going && !overflows || place == Place::Lds {
            return Ok(());
        }
        let e = MemError { address, size_bytes: len as u32, write };
        Err(match place {
            Place::Scratch => Event::scratch_overflow(e, self.scratch_stride, lane),
            _ => Event::out_of_bounds(self.memory, e, lane),
        })
    }
}

/// Copies between slices of equal length, which is mostly a dword or two.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    match (to.len(), from.len()) {
        (4, 4) => to[..4].copy_from_slice(&from[..4]),
        (8, 8) => to[..8].copy_from_slice(&from[..8]),
        _ => to.copy_from_slice(from),
    }
}

impl Watch<'_> {
    /// Records the bytes that a store is about to replace. Returns false if they are not all in bounds.
    #[inline(never)]
    pub(super) fn keep(&mut self, place: Place, address: u64, len: usize) -> bool {
        let replaced = &mut self.logs.replaced;
        match place {
            Place::Lds => {
                let bytes = self.lds.get(address as usize..).and_then(|rest| rest.get(..len));
                if let Some(bytes) = bytes {
                    replaced.keep(place, address, bytes);
                }
                bytes.is_some()
            }
            Place::Global => {
                // At most eight lanes of four dwords.
                let mut bytes = [0; 128];
                let Some(bytes) = bytes.get_mut(..len) else { return false };
                let read = self.memory.read(address, bytes).is_ok();
                if read {
                    replaced.keep(place, address, bytes);
                }
                read
            }
            // Other waves cannot store to scratch.
            Place::Scratch | Place::Nowhere => true,
        }
    }

    /// [`Watch::keep`] for 32 lanes.
    pub(super) fn keep_vecs(&mut self, space: Space, addresses: &[u64; 32], size_bytes: usize, exec: u32) {
        let patterns = patterns(addresses, size_bytes as u64);
        for (at, pattern) in patterns.into_iter().enumerate() {
            let full = exec >> (8 * at) & 0xff == 0xff;
            let (first, last) = (place(space, addresses[8 * at]), place(space, addresses[8 * at + 7]));
            let together = full && pattern == Some(size_bytes as u8) && first.0 == last.0;
            // If only some of the eight are in bounds, they are recorded one by one.
            if together && self.keep(first.0, first.1, 8 * size_bytes) {
                continue;
            }
            for lane in (8 * at..8 * at + 8).filter(|lane| exec >> lane & 1 == 1) {
                let (place, address) = place(space, addresses[lane]);
                self.keep(place, address, size_bytes);
            }
        }
    }

    /// Logs the accesses of 32 lanes, merging those of consecutive lanes. Only LDS accesses can be out of
    /// bounds here: others would have failed.
    pub(super) fn log_vecs(
        &mut self,
        space: Space,
        addresses: &[u64; 32],
        size_bytes: u8,
        exec: u32,
        lane_base: u8,
        write: bool,
    ) {
        let room = self.lds.len() as u64;
        let patterns = patterns(addresses, size_bytes as u64);
        self.log_by_8(patterns, exec, |lane| {
            let (place, address) = place(space, addresses[lane]);
            let end = address.checked_add(size_bytes as u64);
            Access {
                place,
                address,
                size_bytes,
                lanes: 1,
                stride: 0,
                write,
                outside: place == Place::Lds && end.is_none_or(|end| end > room),
                lane: Some(lane_base + lane as u8),
            }
        });
    }

    /// Logs the accesses of 32 lanes, given by `one`. Groups of eight lanes with a common stride are logged
    /// as one access.
    #[inline(always)]
    fn log_by_8(&mut self, patterns: [Option<u8>; 4], exec: u32, one: impl Fn(usize) -> Access) {
        let mut at = 0;
        while at < 4 {
            let mut end = at + 1;
            if let Some(stride) = patterns[at]
                && exec >> (8 * at) & 0xff == 0xff
            {
                let step = 8 * stride as u64;
                while end < 4
                    && exec >> (8 * end) & 0xff == 0xff
                    && patterns[end] == Some(stride)
                    && one(8 * end).address == one(8 * end - 8).address.wrapping_add(step)
                {
                    end += 1;
                }
                if let Some(run) = regular(one(8 * at), &one(8 * end - 1), stride) {
                    self.log(run);
                    at = end;
                    continue;
                }
            }
            for lane in (8 * at..8 * end).filter(|l| exec >> l & 1 == 1) {
                self.log(one(lane));
            }
            at = end;
        }
    }

    fn log(&mut self, next: Access) {
        append(&mut self.logs.accesses, next);
    }
}

/// Merges the accesses of consecutive lanes, given the first and the last. Returns `None` if they are in
/// different memories (in an aperture of flat addresses), if one is beyond LDS, or for scratch, which each
/// lane has its own of.
#[inline(always)]
fn regular(first: Access, last: &Access, stride: u8) -> Option<Access> {
    let same = first.place == last.place && !first.outside && !last.outside;
    let lanes = last.lane? - first.lane? + 1;
    (same && first.place != Place::Scratch).then_some(Access { lanes, stride, ..first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Addresses of eight lanes: uniform, ascending, descending, or random.
    fn eight() -> impl Strategy<Value = [u64; 8]> {
        let first = prop_oneof![Just(0u64), Just(32), Just(64), 0..300u64];
        (first, 0..4u8, any::<[u8; 8]>()).prop_map(|(first, kind, random)| {
            std::array::from_fn(|k| match kind {
                0 => first,
                1 => first + 4 * k as u64,
                2 => first + 28 - 4 * k as u64,
                _ => random[k] as u64,
            })
        })
    }

    proptest! {
        /// Merged accesses cover each lane exactly once, and each lane is marked if it is beyond LDS.
        #[test]
        fn merged_accesses_are_their_lanes(
            eights in [eight(), eight(), eight(), eight()],
            exec in prop_oneof![Just(u32::MAX), Just(0xffff_0000), any::<u32>()],
        ) {
            let addresses: [u64; 32] = std::array::from_fn(|l| eights[l / 8][l % 8]);
            let memory = Memory::empty();
            let mut logs = Logs::default();
            let mut watch = Watch {
                memory: &memory,
                lds: &mut [0; 256],
                scratch: &mut [],
                scratch_stride: 0,
                logs: &mut logs,
                quiet: false,
                keep_going: false,
                keeps_loads: false,
            };
            watch.log_vecs(Space::Lds, &addresses, 4, exec, 32, false);
            let mut each: Vec<Access> = logs.accesses.iter().flat_map(|a| a.each()).collect();
            each.sort_by_key(|a| a.lane);
            let lanes = (0..32usize).filter(|l| exec >> l & 1 == 1);
            let expected = lanes.map(|l| (Some(32 + l as u8), addresses[l], addresses[l] + 4 > 256));
            prop_assert!(each.iter().map(|a| (a.lane, a.address, a.outside)).eq(expected), "{:?}", logs.accesses);
            prop_assert!(each.iter().all(|a| a.place == Place::Lds && a.size_bytes == 4 && !a.write));
        }
    }
}
