//! Watched memory: what an observed run puts in the place of global memory, LDS and scratch, to see every access.
//!
//! An observed wave runs with empty memory, LDS and scratch, so each access takes the slow path of those that are out of bounds. There,
//! and nowhere else, [`super::load`] and [`super::store`], and those of 32 lanes, test for a watch. Runs without an observer pay nothing.

pub use super::access_log::{Access, LdsLoads, Logs, Place};
use super::access_log::{IN_LDS, LdsLoad, append, for_runs};
use super::context::{Cx, Flow};
use super::patterns::{extent, one_stride, patterns};
pub use super::replaced::Replaced;
use crate::exec::machine_ops::Event;
use crate::memory::{self, MemError, Memory};
use crate::state::LaneVec;
use isa_spec::pcode::ir::Space;

/// The real memory of an observed run and what happened to it.
pub struct Watch<'a> {
    /// Global memory.
    pub memory: &'a Memory,
    /// LDS of the workgroup.
    pub lds: &'a mut [u8],
    /// Private memory of the wave's lanes.
    pub scratch: &'a mut [u8],
    /// Bytes of private memory a lane.
    pub scratch_stride: u32,
    /// What has happened.
    pub logs: &'a mut Logs,
    /// Waits and hints need not be among them.
    pub quiet: bool,
    /// Accesses outside of everything load zero and store nothing instead of ending the run.
    pub keep_going: bool,
    /// Loads of LDS need not be logged, and are put into [`Logs::loads`] instead.
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

/// Bytes of `len` at `at` in LDS or in a lane's scratch.
fn local<'w>(watch: &'w mut Watch<'_>, place: Place, at: u64, len: usize, lane: u32) -> Option<&'w mut [u8]> {
    if place == Place::Lds {
        let end = at.checked_add(len as u64)?;
        return watch.lds.get_mut(at as usize..usize::try_from(end).ok()?);
    }
    let stride = watch.scratch_stride as u64;
    if at > stride || len as u64 > stride - at {
        return None;
    }
    let at = (lane as u64 * stride + at) as usize;
    watch.scratch.get_mut(at..at + len)
}

/// A load of `bytes.len()` bytes by the watch, if there is one.
#[cold]
#[inline(never)]
pub fn load(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
    bytes: &mut [u8],
) -> Option<Result<(), Flow>> {
    let loaded = cx.watch.as_mut()?.load(space, addr, lane, bytes);
    Some(loaded.map_err(|event| cx.fault(event)))
}

/// What there is of a scalar load that goes beyond the end: compilers fetch more arguments than a kernel has.
fn read_words(memory: &Memory, address: u64, bytes: &mut [u8]) {
    for (at, word) in (address..).step_by(4).zip(bytes.chunks_mut(4)) {
        if memory.read(at, word).is_err() {
            return;
        }
    }
}

/// As [`load`].
#[cold]
#[inline(never)]
pub fn store(
    cx: &mut Cx<'_>,
    space: Space,
    addr: u64,
    lane: Option<u32>,
    bytes: &[u8],
) -> Option<Result<(), Flow>> {
    let stored = cx.watch.as_mut()?.store(space, addr, lane, bytes);
    Some(stored.map_err(|event| cx.fault(event)))
}

impl Watch<'_> {
    /// Loads `bytes.len()` bytes of real memory from an address in bytes, which are logged.
    ///
    /// # Errors
    /// The fault of an access outside of everything, unless the run goes on.
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
            _ => match local(self, place, address, bytes.len(), lane.unwrap_or(0)) {
                Some(from) => {
                    copy(bytes, from);
                    true
                }
                None => false,
            },
        };
        self.finish((place, address), bytes.len(), lane, false, done)
    }

    /// Stores bytes in real memory, which are logged.
    ///
    /// # Errors
    /// As [`Watch::load`].
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
            _ => match local(self, place, address, bytes.len(), lane.unwrap_or(0)) {
                Some(to) => {
                    copy(to, bytes);
                    true
                }
                None => false,
            },
        };
        self.finish((place, address), bytes.len(), lane, true, done)
    }

    /// Logs an access; one that failed ends the run unless it is to go on.
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
        // LDS beyond its end reads zero and drops stores, without a fault.
        if done || self.keep_going || place == Place::Lds {
            return Ok(());
        }
        let e = MemError { address, size_bytes: len as u32, write };
        Err(match place {
            Place::Scratch => Event::scratch_overflow(e, self.scratch_stride, lane),
            _ => Event::out_of_bounds(self.memory, e, lane),
        })
    }
}

/// Copies between slices of one length: most are a dword or two.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    match (to.len(), from.len()) {
        (4, 4) => to[..4].copy_from_slice(&from[..4]),
        (8, 8) => to[..8].copy_from_slice(&from[..8]),
        _ => to.copy_from_slice(from),
    }
}

/// Puts the real memory in place of the empty one, and back.
fn exchange<'a>(cx: &mut Cx<'a>, watch: &mut Watch<'a>) {
    std::mem::swap(&mut cx.memory, &mut watch.memory);
    std::mem::swap(&mut cx.lds, &mut watch.lds);
    std::mem::swap(&mut cx.scratch, &mut watch.scratch);
    std::mem::swap(&mut cx.scratch_stride, &mut watch.scratch_stride);
}

/// Runs `access`, the loads or stores of 32 lanes, on the real memory and logs them. `None`: there is no watch, or a lane's access
/// failed, and nothing is logged. What was stored before the failure is stored again by the slow path, which goes lane by lane.
pub fn lane_vecs<'a, R>(
    cx: &mut Cx<'a>,
    space: Space,
    (addresses, size_bytes): (&[u64; 32], usize),
    (exec, lane_base): (u32, u32),
    write: bool,
    access: impl FnOnce(&mut Cx<'a>) -> Result<R, Flow>,
) -> Option<R> {
    let watch = cx.watch.take()?;
    if write {
        watch.keep_rows(space, addresses, size_bytes, exec);
    }
    exchange(cx, watch);
    let result = access(cx);
    exchange(cx, watch);
    match result {
        Ok(result) => {
            watch.log_vecs(space, addresses, size_bytes as u8, exec, lane_base as u8, write);
            cx.watch = Some(watch);
            Some(result)
        }
        Err(_) => {
            cx.event = None;
            cx.watch = Some(watch);
            None
        }
    }
}

/// Where the real memory has a block of 32 consecutive elements of `size_bytes` from an address on, which is logged. `None`: there is
/// no watch, or not all of the block is in one place.
///
/// # Safety
/// The host has AVX2 (H1).
#[cold]
#[inline(never)]
pub unsafe fn block(cx: &mut Cx<'_>, address: u64, size_bytes: usize, write: bool) -> Option<*mut u8> {
    let first = 32 * cx.half() as u8;
    let watch = cx.watch.as_mut()?;
    let host = watch.memory.host(address, 32 * size_bytes as u64, write)?;
    let place = Place::Global;
    if write {
        // SAFETY: the block is as many lane vectors from `host` on as a lane has dwords; by the contract.
        unsafe { watch.logs.replaced.keep_block(address, host, size_bytes / 4) };
    }
    let size_bytes = size_bytes as u8;
    let (lanes, stride) = (32, size_bytes);
    watch.logs.accesses.push(Access {
        place,
        address,
        size_bytes,
        lanes,
        stride,
        write,
        outside: false,
        lane: Some(first),
    });
    Some(host)
}

/// The real LDS, for elements of 32 lanes at their offsets plus each of `plus`, which are logged, or kept as they are. `None`: there is no
/// watch, or one is beyond its end.
///
/// # Safety
/// The host has AVX2 (H1).
#[cold]
#[inline(never)]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
pub unsafe fn lds(
    cx: &mut Cx<'_>,
    offsets: &LaneVec,
    plus: &[u32],
    size_bytes: usize,
    write: bool,
) -> Option<*mut u8> {
    let lane = 32 * cx.half() as u8;
    let watch = cx.watch.as_mut()?;
    let last = u32::try_from(watch.lds.len().checked_sub(size_bytes)?).ok()?;
    let last = plus.iter().try_fold(last, |least, plus| Some(least.min(last.checked_sub(*plus)?)))?;
    let size_bytes = size_bytes as u8;
    let (farthest, together) = extent(offsets);
    if farthest > last {
        return None;
    }
    if watch.keeps_loads && !write {
        let (plus, count) = match plus {
            [one] => ([*one; 2], 1),
            [one, other] => ([*one, *other], 2),
            _ => ([1; 2], 0),
        };
        if (together | plus[0] | plus[1]).is_multiple_of(4) {
            watch.logs.loads.push(LdsLoad { plus, count, size_bytes, lane }, offsets);
            return Some(watch.lds.as_mut_ptr());
        }
    }
    watch.logs.log_loads();
    let any = Access { size_bytes, write, lane: Some(lane), ..IN_LDS };
    for plus in plus {
        if let Some(stride) = one_stride(offsets, size_bytes as u32) {
            let address = offsets.0[0] as u64 + *plus as u64;
            watch.logs.accesses.push(Access { address, lanes: 32, stride, ..any });
            if write {
                watch.keep(Place::Lds, address, size_bytes as usize + 31 * stride as usize);
            }
            continue;
        }
        for_runs(any, offsets, *plus, |run| {
            append(&mut watch.logs.accesses, run);
            if write {
                watch.keep(Place::Lds, run.address, run.len_bytes() as usize);
            }
        });
    }
    Some(watch.lds.as_mut_ptr())
}

impl Watch<'_> {
    /// Keeps what a store is about to replace. Whether there are so many bytes.
    #[inline(never)]
    fn keep(&mut self, place: Place, address: u64, len: usize) -> bool {
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
                // Eight lanes of four dwords at most.
                let mut bytes = [0; 128];
                let Some(bytes) = bytes.get_mut(..len) else { return false };
                let read = self.memory.read(address, bytes).is_ok();
                if read {
                    replaced.keep(place, address, bytes);
                }
                read
            }
            // What others cannot store to.
            Place::Scratch | Place::Nowhere => true,
        }
    }

    /// [`Watch::keep`] of 32 lanes.
    fn keep_rows(&mut self, space: Space, addresses: &[u64; 32], size_bytes: usize, exec: u32) {
        let patterns = patterns(addresses, size_bytes as u64);
        for (at, pattern) in patterns.into_iter().enumerate() {
            let full = exec >> (8 * at) & 0xff == 0xff;
            let (first, last) = (place(space, addresses[8 * at]), place(space, addresses[8 * at + 7]));
            let together = full && pattern == Some(size_bytes as u8) && first.0 == last.0;
            // Where only some of the eight are inside, they are kept one by one.
            if together && self.keep(first.0, first.1, 8 * size_bytes) {
                continue;
            }
            for lane in (8 * at..8 * at + 8).filter(|lane| exec >> lane & 1 == 1) {
                let (place, address) = place(space, addresses[lane]);
                self.keep(place, address, size_bytes);
            }
        }
    }

    /// Accesses of 32 lanes, consecutive ones together. Only ones to LDS can be outside: others would have failed.
    fn log_vecs(
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

    /// 32 lanes' accesses, each of which is `one`. Groups of eight lanes with one stride are logged together.
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

/// Consecutive lanes, from the accesses of the first and the last: not where they end in another place, in an aperture of flat addresses
/// or beyond LDS. A lane's scratch is its own.
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

    /// Addresses of eight lanes: all the same, ascending, descending, or anywhere.
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
        /// Accesses logged together are those of the lanes, each once; whether it is beyond LDS is logged of each.
        #[test]
        fn rows_are_their_lanes(
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
