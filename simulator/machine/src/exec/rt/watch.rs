//! Watched memory: what an observed run puts in the place of global memory, LDS and scratch, to see every access.
//!
//! An observed wave runs with empty memory, LDS and scratch, so each access takes the slow path of those that are out of bounds. There,
//! and nowhere else, [`super::load`] and [`super::store`], and those of 32 lanes, test for a watch. Runs without an observer pay nothing.

use super::context::{Cx, Flow};
use super::patterns::{patterns, patterns_of, runs};
pub use super::replaced::Replaced;
use crate::exec::machine_ops::Event;
use crate::memory::{self, MemError, Memory};
use crate::state::LaneVec;
use isa_spec::pcode::builtins::Control;
use isa_spec::pcode::ir::Space;

/// Which memory an access reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Memory of the device, at its address.
    Global,
    /// Memory of the workgroup.
    Lds,
    /// The lane's private memory.
    Scratch,
    /// A buffer access beyond the descriptor's range, which does nothing.
    Nowhere,
}

impl Place {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Place::Global => "global memory",
            Place::Lds => "LDS",
            Place::Scratch => "scratch",
            Place::Nowhere => "out of the buffer's range",
        }
    }
}

/// One lane's access, or that of several consecutive lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Which memory; FLAT accesses have the one that their address leads to.
    pub place: Place,
    /// Global address, or offset in LDS or in the lane's scratch; the first lane's.
    pub address: u64,
    /// Of one lane.
    pub size_bytes: u8,
    /// Lanes from `lane` on that do the same.
    pub lanes: u8,
    /// From a lane's address to the next one's: `size_bytes`, or 0 where all have one address.
    pub stride: u8,
    /// A store. An atomic has a load and a store.
    pub write: bool,
    /// Outside of what there is: nothing was moved.
    pub outside: bool,
    /// `None` for scalar memory.
    pub lane: Option<u8>,
}

impl Access {
    /// Bytes from the first to after the last.
    pub fn len_bytes(&self) -> u64 {
        self.size_bytes as u64 + self.stride as u64 * (self.lanes as u64 - 1)
    }

    /// The lanes' accesses one by one.
    pub fn each(self) -> impl Iterator<Item = Access> {
        (0..self.lanes).map(move |k| Access {
            address: self.address.wrapping_add(k as u64 * self.stride as u64),
            lanes: 1,
            stride: 0,
            lane: self.lane.map(|lane| lane + k),
            ..self
        })
    }
}

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
    /// Accesses of the running instruction, in order.
    pub log: Vec<Access>,
    /// Control builtins that it called, with the first argument.
    pub calls: Vec<(Control, u32)>,
    /// Waits and hints need not be among them.
    pub quiet: bool,
    /// Accesses outside of everything load zero and store nothing instead of ending the run.
    pub keep_going: bool,
    /// What the stores of the running instruction have replaced, if that is wanted.
    pub replaced: Option<Replaced>,
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
    let watch = cx.watch.as_deref_mut()?;
    let (place, address) = place(space, addr);
    let done = match place {
        Place::Nowhere => true,
        Place::Global => watch.memory.read(address, bytes).is_ok(),
        _ => match local(watch, place, address, bytes.len(), lane.unwrap_or(0)) {
            Some(from) => {
                copy(bytes, from);
                true
            }
            None => false,
        },
    };
    Some(finish(cx, (place, address), bytes.len(), lane, false, done))
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
    let watch = cx.watch.as_deref_mut()?;
    let (place, address) = place(space, addr);
    watch.keep(place, address, bytes.len());
    let done = match place {
        Place::Nowhere => true,
        Place::Global => {
            let done = watch.memory.write(address, bytes).is_ok();
            if done && space == Space::Word {
                watch.memory.touch(address, 1);
            }
            done
        }
        _ => match local(watch, place, address, bytes.len(), lane.unwrap_or(0)) {
            Some(to) => {
                copy(to, bytes);
                true
            }
            None => false,
        },
    };
    Some(finish(cx, (place, address), bytes.len(), lane, true, done))
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

/// Logs an access; one that failed ends the run unless it is to go on.
#[inline(always)]
fn finish(
    cx: &mut Cx<'_>,
    (place, address): (Place, u64),
    len: usize,
    lane: Option<u32>,
    write: bool,
    done: bool,
) -> Result<(), Flow> {
    let Some(watch) = cx.watch.as_deref_mut() else { return Ok(()) };
    watch.log(Access {
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
    if done || watch.keep_going || place == Place::Lds {
        return Ok(());
    }
    let e = MemError { address, size_bytes: len as u32, write };
    let event = match place {
        Place::Scratch => Event::scratch_overflow(e, watch.scratch_stride, lane),
        _ => Event::out_of_bounds(watch.memory, e, lane),
    };
    Err(cx.fault(event))
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
pub fn rows<'a, R>(
    cx: &mut Cx<'a>,
    space: Space,
    (addresses, size_bytes): (&[u64; 32], usize),
    (exec, lane_base): (u32, u32),
    write: bool,
    access: impl FnOnce(&mut Cx<'a>) -> Result<R, Flow>,
) -> Option<R> {
    let mut watch = cx.watch.take()?;
    if write {
        watch.keep_rows(space, addresses, size_bytes, exec);
    }
    exchange(cx, &mut watch);
    let result = access(cx);
    exchange(cx, &mut watch);
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

/// Where the real memory has a block of neighbours, 32 elements of `size_bytes` from an address on, which is logged. `None`: there is
/// no watch, or not all of the block is in one place.
///
/// # Safety
/// The host has AVX2 (H1).
#[cold]
#[inline(never)]
pub unsafe fn block(cx: &mut Cx<'_>, address: u64, size_bytes: usize, write: bool) -> Option<*mut u8> {
    let first = 32 * cx.half() as u8;
    let watch = cx.watch.as_deref_mut()?;
    let host = watch.memory.host(address, 32 * size_bytes as u64, write)?;
    let place = Place::Global;
    if write && let Some(replaced) = &mut watch.replaced {
        // SAFETY: the block is as many lane vectors from `host` on as a lane has dwords; by the contract.
        unsafe { replaced.keep_block(address, host, size_bytes / 4) };
    }
    let size_bytes = size_bytes as u8;
    let (lanes, stride) = (32, size_bytes);
    watch.log.push(Access {
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

/// The real LDS, for elements of 32 lanes at their offsets plus each of `plus`, which are logged. `None`: there is no watch, or one is
/// beyond its end.
#[cold]
#[inline(never)]
pub fn lds(
    cx: &mut Cx<'_>,
    offsets: &LaneVec,
    plus: &[u32],
    size_bytes: usize,
    write: bool,
) -> Option<*mut u8> {
    let first = 32 * cx.half() as u8;
    let watch = cx.watch.as_deref_mut()?;
    let last = u32::try_from(watch.lds.len().checked_sub(size_bytes)?).ok()?;
    let last = plus.iter().try_fold(last, |least, plus| Some(least.min(last.checked_sub(*plus)?)))?;
    let size_bytes = size_bytes as u8;
    let (patterns, farthest) = patterns_of(offsets, size_bytes as u32);
    if farthest > last {
        return None;
    }
    let (runs, count) = runs(offsets, patterns);
    let (place, lane) = (Place::Lds, Some(first));
    let any = Access { place, address: 0, size_bytes, lanes: 1, stride: 0, write, outside: false, lane };
    for plus in plus {
        for run in &runs[..count] {
            let address = |lane: u8| offsets.0[lane as usize % 32] as u64 + *plus as u64;
            let one = |lane: u8| Access { address: address(lane), lane: Some(first + lane), ..any };
            match run.stride {
                Some(stride) => {
                    watch.log_run(
                        any,
                        |all| {
                            all.address = address(run.first);
                            all.lane = Some(first + run.first);
                            all.lanes = run.lanes;
                            all.stride = stride;
                        },
                        run.lanes,
                    );
                    if write {
                        let len = size_bytes as usize + stride as usize * (run.lanes as usize - 1);
                        watch.keep(Place::Lds, address(run.first), len);
                    }
                }
                None => {
                    for lane in run.first..run.first + run.lanes {
                        watch.log(one(lane));
                        if write {
                            watch.keep(Place::Lds, one(lane).address, size_bytes as usize);
                        }
                    }
                }
            }
        }
    }
    Some(watch.lds.as_mut_ptr())
}

impl Watch<'_> {
    /// Keeps what a store is about to replace.
    #[inline(never)]
    fn keep(&mut self, place: Place, address: u64, len: usize) {
        let Some(replaced) = &mut self.replaced else { return };
        match place {
            Place::Lds => {
                let bytes = self.lds.get(address as usize..).and_then(|rest| rest.get(..len));
                if let Some(bytes) = bytes {
                    replaced.keep(place, address, bytes);
                }
            }
            Place::Global => {
                // Eight lanes of four dwords at most.
                let mut bytes = [0; 128];
                if let Some(bytes) = bytes.get_mut(..len)
                    && self.memory.read(address, bytes).is_ok()
                {
                    replaced.keep(place, address, bytes);
                }
            }
            // What others cannot store to.
            Place::Scratch | Place::Nowhere => {}
        }
    }

    /// [`Watch::keep`] of 32 lanes.
    fn keep_rows(&mut self, space: Space, addresses: &[u64; 32], size_bytes: usize, exec: u32) {
        if self.replaced.is_none() {
            return;
        }
        let patterns = patterns(addresses, size_bytes as u64);
        for (at, pattern) in patterns.into_iter().enumerate() {
            let full = exec >> (8 * at) & 0xff == 0xff;
            let (first, last) = (place(space, addresses[8 * at]), place(space, addresses[8 * at + 7]));
            if full && pattern == Some(size_bytes as u8) && first.0 == last.0 {
                self.keep(first.0, first.1, 8 * size_bytes);
                continue;
            }
            for lane in (8 * at..8 * at + 8).filter(|lane| exec >> lane & 1 == 1) {
                let (place, address) = place(space, addresses[lane]);
                self.keep(place, address, size_bytes);
            }
        }
    }

    /// Appends an access of several lanes; a short one may continue the previous group, or continue in the next.
    #[inline(always)]
    fn log_run(&mut self, mut run: Access, set: impl FnOnce(&mut Access), lanes: u8) {
        if lanes < 16 {
            set(&mut run);
            return self.log_short(run);
        }
        // Changed in its place: it is copied faster than it is put together.
        self.log.push(run);
        if let Some(last) = self.log.last_mut() {
            set(last);
        }
    }

    #[inline(never)]
    fn log_short(&mut self, run: Access) {
        self.log(run);
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
                    self.log_run(run, |_| {}, run.lanes);
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

    /// Appends an access, or joins it to the last one, or to the one before where a lane does two at a time.
    fn log(&mut self, next: Access) {
        if let [.., last] = &mut self.log[..]
            && last.absorbs(&next)
        {
            return;
        }
        // A store between two loads is an atomic's: those stay in their order.
        if let [.., before, last] = &mut self.log[..]
            && last.write == next.write
            && last.lanes <= before.lanes
            && before.absorbs(&next)
        {
            return;
        }
        self.log.push(next);
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

impl Access {
    /// Joins the next lane's or lanes' access to this if it goes on where this ends, or is at the same address as all of this.
    #[inline(always)]
    fn absorbs(&mut self, next: &Access) -> bool {
        let lane = self.lane.map(|lane| lane + self.lanes);
        let same = (self.place, self.size_bytes, self.write, self.outside, lane)
            == (next.place, next.size_bytes, next.write, next.outside, next.lane);
        // A lane's scratch is its own, and what is not done is not described.
        if !same || lane.is_none() || matches!(self.place, Place::Scratch | Place::Nowhere) {
            return false;
        }
        let distance = next.address.wrapping_sub(self.address);
        // After a single lane, the next one determines the stride.
        let stride = match (self.lanes, next.lanes) {
            (1, 1) if distance == 0 || distance == self.size_bytes as u64 => distance as u8,
            (1, _) => next.stride,
            (_, 1) => self.stride,
            _ if self.stride == next.stride => self.stride,
            _ => return false,
        };
        if distance != self.lanes as u64 * stride as u64 {
            return false;
        }
        self.stride = stride;
        self.lanes += next.lanes;
        true
    }
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
            let row = LaneVec(addresses.map(|address| address as u32));
            let farthest = row.0.iter().max().copied().unwrap_or(0);
            prop_assert_eq!(patterns_of(&row, 4), (patterns(&addresses, 4), farthest));
            let memory = Memory::empty();
            let mut watch = Watch {
                memory: &memory,
                lds: &mut [0; 256],
                scratch: &mut [],
                scratch_stride: 0,
                log: Vec::new(),
                calls: Vec::new(),
                quiet: false,
                keep_going: false,
                replaced: None,
            };
            watch.log_vecs(Space::Lds, &addresses, 4, exec, 32, false);
            let mut each: Vec<Access> = watch.log.iter().flat_map(|a| a.each()).collect();
            each.sort_by_key(|a| a.lane);
            let lanes = (0..32usize).filter(|l| exec >> l & 1 == 1);
            let expected = lanes.map(|l| (Some(32 + l as u8), addresses[l], addresses[l] + 4 > 256));
            prop_assert!(each.iter().map(|a| (a.lane, a.address, a.outside)).eq(expected), "{:?}", watch.log);
            prop_assert!(each.iter().all(|a| a.place == Place::Lds && a.size_bytes == 4 && !a.write));
        }
    }
}
