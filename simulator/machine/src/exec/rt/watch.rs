//! Watched memory: what an observed run puts in the place of global memory, LDS and scratch, to see every access.
//!
//! An observed wave runs with empty memory, LDS and scratch, so each access takes the slow path of those that are out of bounds. There,
//! and nowhere else, [`super::load`] and [`super::store`], and those of 32 lanes, test for a watch. Runs without an observer pay nothing.

use super::context::{Cx, Flow};
use crate::exec::machine_ops::Event;
use crate::memory::{self, MemError, Memory, access};
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
    unsafe fn keep_block(&mut self, address: u64, host: *const u8, rows: usize) {
        let (len, first) = (128 * rows as u32, self.rows.len() as u32);
        self.parts.push(Part { place: Place::Global, address, len, first, in_rows: true });
        for row in 0..rows {
            // SAFETY: by the contract.
            self.rows.push(LaneVec(unsafe { access::load_lane_vec(host.add(128 * row)) }));
        }
    }

    fn keep(&mut self, place: Place, address: u64, bytes: &[u8]) {
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

/// Neighbouring lanes whose offsets have one stride, or none.
#[derive(Clone, Copy, Default)]
struct Run {
    first: u8,
    lanes: u8,
    stride: Option<u8>,
}

/// 32 lanes as at most four runs; `patterns` are those of eight lanes each.
#[inline(always)]
fn runs(offsets: &LaneVec, patterns: [Option<u8>; 4]) -> ([Run; 4], usize) {
    let (mut runs, mut count) = ([Run::default(); 4], 0);
    for (at, stride) in patterns.into_iter().enumerate() {
        let goes_on = at > 0
            && stride.is_some()
            && stride == patterns[at - 1]
            && offsets.0[8 * at].wrapping_sub(offsets.0[8 * at - 8]) == 8 * stride.unwrap_or(0) as u32;
        if goes_on {
            runs[(count - 1) % 4].lanes += 8;
        } else {
            runs[count % 4] = Run { first: 8 * at as u8, lanes: 8, stride };
            count += 1;
        }
    }
    (runs, count.min(4))
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

/// By eight lanes, because kernels have tiles of 8 and 16 lanes as well as of 32: the step from one address to the next, if it is
/// the size of an element or nothing.
fn patterns(addresses: &[u64; 32], size_bytes: u64) -> [Option<u8>; 4] {
    #[cfg(target_arch = "x86_64")]
    if crate::state::host::Avx2::detect().is_some() {
        // SAFETY: the host has AVX2.
        return unsafe { patterns_avx2(addresses, size_bytes) };
    }
    patterns_anywhere(addresses, size_bytes)
}

/// [`patterns`] of offsets, and the largest of them.
fn patterns_of(offsets: &LaneVec, size_bytes: u32) -> ([Option<u8>; 4], u32) {
    #[cfg(target_arch = "x86_64")]
    if crate::state::host::Avx2::detect().is_some() {
        // SAFETY: the host has AVX2.
        return unsafe { patterns_of_avx2(offsets, size_bytes) };
    }
    let farthest = offsets.0.iter().fold(0, |all, offset| all.max(*offset));
    (patterns_anywhere(&offsets.0.map(u64::from), size_bytes as u64), farthest)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn patterns_of_avx2(offsets: &LaneVec, size_bytes: u32) -> ([Option<u8>; 4], u32) {
    use super::lds::simd_vectors;
    use std::arch::x86_64::*;
    let size = _mm256_set1_epi32(size_bytes as i32);
    let steps = _mm256_mullo_epi32(size, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    let mut out = [None; 4];
    let mut farthest = _mm256_setzero_si256();
    for (at, eight) in simd_vectors(offsets).into_iter().enumerate() {
        let differences = _mm256_sub_epi32(eight, _mm256_set1_epi32(offsets.0[8 * at] as i32));
        let gaps = _mm256_xor_si256(differences, steps);
        farthest = _mm256_max_epu32(farthest, eight);
        if _mm256_testz_si256(differences, differences) == 1 {
            out[at] = Some(0);
        } else if _mm256_testz_si256(gaps, gaps) == 1 {
            out[at] = Some(size_bytes as u8);
        }
    }
    let halves = _mm_max_epu32(_mm256_castsi256_si128(farthest), _mm256_extracti128_si256::<1>(farthest));
    let pairs = _mm_max_epu32(halves, _mm_shuffle_epi32::<0b00_00_11_10>(halves));
    let one = _mm_max_epu32(pairs, _mm_shuffle_epi32::<0b01>(pairs));
    (out, _mm_cvtsi128_si32(one) as u32)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn patterns_avx2(addresses: &[u64; 32], size_bytes: u64) -> [Option<u8>; 4] {
    use std::arch::x86_64::*;
    let size = size_bytes as i64;
    let steps = [
        _mm256_setr_epi64x(0, size, 2 * size, 3 * size),
        _mm256_setr_epi64x(4 * size, 5 * size, 6 * size, 7 * size),
    ];
    let mut out = [None; 4];
    for (at, pattern) in out.iter_mut().enumerate() {
        let first = _mm256_set1_epi64x(addresses[8 * at] as i64);
        // SAFETY: four of the 32 addresses.
        let four = |n: usize| unsafe {
            _mm256_sub_epi64(_mm256_loadu_si256(addresses[n..n + 4].as_ptr().cast()), first)
        };
        let (low, high) = (four(8 * at), four(8 * at + 4));
        let differences = _mm256_or_si256(low, high);
        let gaps = _mm256_or_si256(_mm256_xor_si256(low, steps[0]), _mm256_xor_si256(high, steps[1]));
        *pattern = if _mm256_testz_si256(differences, differences) == 1 {
            Some(0)
        } else if _mm256_testz_si256(gaps, gaps) == 1 {
            Some(size_bytes as u8)
        } else {
            None
        };
    }
    out
}

fn patterns_anywhere(addresses: &[u64; 32], size_bytes: u64) -> [Option<u8>; 4] {
    std::array::from_fn(|at| {
        let lanes = &addresses[8 * at..8 * at + 8];
        let all = |step: u64| {
            (0..).zip(lanes).all(|(k, address)| address.wrapping_sub(lanes[0]) == step.wrapping_mul(k))
        };
        if all(0) { Some(0) } else { all(size_bytes).then_some(size_bytes as u8) }
    })
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

    #[test]
    fn patterns_of_eights() {
        let mut addresses = [0; 32];
        for l in 0..8 {
            addresses[l] = 1000;
            addresses[8 + l] = (u64::MAX - 15).wrapping_add(4 * l as u64);
            addresses[16 + l] = 4 * l as u64 + (l == 7) as u64;
            addresses[24 + l] = 64 - 4 * l as u64;
        }
        let expected = [Some(0), None, None, None];
        let wrapping = [Some(0), Some(4), None, None];
        assert_eq!(patterns_anywhere(&addresses, 8), expected);
        // An address space has no end here: what lies where is another matter.
        assert_eq!(patterns_anywhere(&addresses, 4), wrapping);
        assert_eq!(patterns(&addresses, 8), expected);
        assert_eq!(patterns(&addresses, 4), wrapping);
    }
}
