//! What caches hold, where it is not what memory holds.
//!
//! Memory always has the newest value of each byte. A line that is in a cache is an entry here, without a copy of its
//! bytes as long as these are those of memory: the store that makes the line stale makes the copy. Where stores stay in
//! the L1 cache of their wave until that is written back, the bytes that others still see are kept.

use super::placement::{Cache, Placement};
use super::policy::{Caches, Policy};
use foldhash::HashMap;
use smallvec::SmallVec;
use std::collections::HashSet;
use wavesim_machine::exec::watch::{Access, Logs, Place};
use wavesim_machine::memory::{MapError, Memory};

/// Bytes of a line (RDNA 3, RDNA 4 and CDNA 3 manuals, vector caches). Those of scalar caches have half as many; what
/// shares a line there also does here.
pub const LINE: u64 = 128;
/// Lines, at most. With more, all caches are emptied: they have evicted what they held.
const MOST_LINES: usize = 1 << 16;

type Bytes = Box<[u8; LINE as usize]>;

/// An operation that has accessed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The workgroup's coordinates, and the wave's index there.
    pub wave: ([u32; 3], u32),
    /// Index of the instruction.
    pub index: usize,
}

/// An access that did not see the newest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// The access.
    pub load: Source,
    /// Address and number of the bytes that it accessed in the line.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Why.
    pub reason: Reason,
}

/// Why an access did not see the newest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It hit in this cache, into which another access had brought the line.
    Hit(Caches, Source),
    /// A store in this operation has not been written back.
    NotWrittenBack(Source),
}

/// A use of the state of caches, which conflicts with others of the same lines if one of them changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The cache.
    pub cache: Cache,
    /// The first line, and the one after the last.
    pub lines: (u64, u64),
    /// The state changes.
    pub changes: bool,
    /// The line was read from memory.
    pub fills: bool,
}

/// The lines of memory that an access sees as they were: number and contents.
pub type Seen = SmallVec<[(u64, Bytes); 2]>;

/// What caches hold.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    lines: HashMap<u64, Line>,
    /// By cache: how often it was invalidated.
    epochs: HashMap<Cache, u32>,
    /// By L1 cache: lines with stores that were not written back.
    dirty: HashMap<Cache, HashSet<u64>>,
    /// The accesses since [`Contents::stale`] was last cleared that did not see the newest value.
    pub stale: Vec<Stale>,
    /// The uses of caches since this was last cleared, if they are recorded.
    pub touched: Option<Vec<Touch>>,
}

#[derive(Debug, Clone, Default)]
struct Line {
    copies: SmallVec<[Held; 2]>,
    /// Oldest first.
    unwritten: SmallVec<[Unwritten; 1]>,
}

/// A line in a cache.
#[derive(Debug, Clone)]
struct Held {
    cache: Cache,
    epoch: u32,
    filled: Source,
    /// Its contents, if they may be other than those of memory.
    old: Option<Bytes>,
}

/// Bytes of a line that an L1 cache holds and no other wave sees.
#[derive(Debug, Clone)]
struct Unwritten {
    cache: Cache,
    mask: u128,
    /// What the others see.
    old: Bytes,
    stored: Source,
}

impl Line {
    /// Returns what a wave behind an L1 cache sees of a line in memory.
    fn view(&self, l1: Cache, number: u64, memory: &Memory) -> Bytes {
        let mut bytes = read(memory, number);
        self.hide(l1, &mut bytes);
        bytes
    }

    /// Takes back the stores that a wave behind an L1 cache does not see.
    fn hide(&self, l1: Cache, bytes: &mut Bytes) {
        for unwritten in self.unwritten.iter().rev().filter(|unwritten| unwritten.cache != l1) {
            each(unwritten.mask, |at| bytes[at] = unwritten.old[at]);
        }
    }

    fn foreign(&self, l1: Cache) -> Option<&Unwritten> {
        self.unwritten.iter().find(|unwritten| unwritten.cache != l1)
    }
}

/// Reads a line. Bytes outside all memory are zero.
fn read(memory: &Memory, line: u64) -> Bytes {
    let mut bytes = Box::new([0; LINE as usize]);
    let base = line * LINE;
    if memory.read(base, &mut bytes[..]).is_err() {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = memory.load::<1>(base + at as u64).map_or(0, |[byte]| byte);
        }
    }
    bytes
}

fn each(mut mask: u128, mut f: impl FnMut(usize)) {
    while mask != 0 {
        f(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

/// The stores that an L1 cache holds and that were not written back, as an object of their own.
fn dirty_of(l1: Cache) -> Cache {
    Cache(l1.0 | 8 << 28)
}

/// Returns memory that has the lines that an instruction loads, as it sees them, and what owns their bytes.
///
/// # Errors
/// Lines cannot be mapped.
pub fn overlay(logs: &Logs, seen: &Seen, memory: &Memory) -> Result<Overlay, MapError> {
    let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
    for (line, _) in parts(&logs.accesses, false) {
        let old = seen.iter().find(|(known, _)| *known == line);
        let bytes = old.map_or_else(|| read(memory, line), |(_, old)| old.clone());
        match runs.last_mut() {
            Some((first, run)) if *first + run.len() as u64 / LINE == line => {
                run.extend_from_slice(&bytes[..])
            }
            _ => runs.push((line, bytes.to_vec())),
        }
    }
    let mut overlay = Overlay { memory: Memory::empty(), _bytes: Vec::new() };
    for (line, mut bytes) in runs {
        // SAFETY: the bytes live as long as the memory, in `_bytes`, since the memory is only lent, and nobody else has a
        // reference to them. A vector may move, which does not move what it points to; its pointer is not unique, as
        // that of a box is.
        unsafe { overlay.memory.map_host(line * LINE, bytes.as_mut_ptr(), bytes.len() as u64, false)? };
        overlay._bytes.push(bytes);
    }
    Ok(overlay)
}

/// Memory with the lines of one instruction.
pub struct Overlay {
    /// It is only lent, so that it does not outlive its bytes.
    memory: Memory,
    _bytes: Vec<Vec<u8>>,
}

impl Overlay {
    /// Returns the memory. Other addresses are outside it.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// The bytes of a line that an instruction accesses.
type Parts = SmallVec<[(u64, u128); 8]>;

/// Returns the lines of global accesses, each with the bytes that are accessed.
fn parts(accesses: &[Access], write: bool) -> Parts {
    let mut out = Parts::new();
    let mut add = |address: u64, len: u64| {
        let end = address.saturating_add(len);
        let mut from = address;
        while from < end {
            let line = from / LINE;
            let to = end.min((line + 1).saturating_mul(LINE));
            let bits = to - from;
            let ones = if bits >= 128 { u128::MAX } else { (1u128 << bits) - 1 };
            let mask = ones << (from % LINE);
            match out.iter_mut().rev().take(4).find(|(known, _)| *known == line) {
                Some((_, known)) => *known |= mask,
                None => out.push((line, mask)),
            }
            from = to;
        }
    };
    for access in accesses {
        if access.place != Place::Global || access.outside || access.write != write {
            continue;
        }
        match access.stride {
            stride if stride == access.size_bytes || stride == 0 => add(access.address, access.len_bytes()),
            _ => access.each().for_each(|one| add(one.address, one.size_bytes.into())),
        }
    }
    if out.len() > 1 {
        out.sort_unstable_by_key(|(line, _)| *line);
        out.dedup_by(|next, last| {
            let same = next.0 == last.0;
            if same {
                last.1 |= next.1;
            }
            same
        });
    }
    out
}

impl Contents {
    /// Empties all caches, for a dispatch that starts.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.epochs.clear();
        self.dirty.clear();
        self.stale.clear();
        self.touched.iter_mut().for_each(Vec::clear);
    }

    /// Writes all caches back and empties them.
    pub fn flush(&mut self) {
        let Contents { lines, dirty, .. } = self;
        lines.clear();
        dirty.clear();
        self.touch(Cache(u32::MAX), (0, u64::MAX), true, false);
    }

    /// Records what an instruction has accessed. Returns the lines that it must see otherwise than memory holds them.
    pub fn access(
        &mut self,
        placement: &Placement,
        policy: Policy,
        index: usize,
        logs: &Logs,
        memory: &Memory,
    ) -> Seen {
        let source = Source { wave: placement.wave, index };
        if self.lines.len() > MOST_LINES {
            self.flush();
        }
        let mut seen = Seen::new();
        let stores = parts(&logs.accesses, true);
        if policy.atomic {
            for (line, mask) in stores.iter().chain(&parts(&logs.accesses, false)) {
                self.atomic(placement, *line, *mask);
            }
        } else {
            for (line, mask) in parts(&logs.accesses, false) {
                self.load(placement, policy, source, (line, mask), memory, &mut seen);
            }
        }
        for (line, mask) in stores {
            self.store(placement, policy, source, (line, mask), logs, memory);
        }
        seen
    }

    fn touch(&mut self, cache: Cache, lines: (u64, u64), changes: bool, fills: bool) {
        if let Some(touched) = &mut self.touched {
            touched.push(Touch { cache, lines, changes, fills });
        }
    }

    fn epoch(&self, cache: Cache) -> u32 {
        self.epochs.get(&cache).copied().unwrap_or(0)
    }

    fn held(&self, cache: Cache, line: u64) -> Option<&Held> {
        let held = self.lines.get(&line)?.copies.iter().find(|held| held.cache == cache)?;
        (held.epoch == self.epoch(cache)).then_some(held)
    }

    fn load(
        &mut self,
        placement: &Placement,
        policy: Policy,
        source: Source,
        (line, mask): (u64, u128),
        memory: &Memory,
        seen: &mut Seen,
    ) {
        let l1 = placement.caches[1];
        // A scalar load that misses goes to the L1 cache.
        let hits = match policy.hits.meets(Caches::SCALAR) {
            true => policy.hits.or(Caches::L1),
            false => policy.hits,
        };
        let order = [2, 0, 1].into_iter().filter(|n| hits.0 >> n & 1 == 1);
        let found = order
            .clone()
            .find_map(|n| Some((n, self.held(placement.caches[n], line)?)))
            .map(|(n, held)| (n, held.filled, held.old.clone()));
        let (old, reason, first) = match found {
            Some((n, filled, old)) => (old, Some(Reason::Hit(Caches(1 << n), filled)), Some(n)),
            None => match self.lines.get(&line).and_then(|known| Some((known.foreign(l1)?, known))) {
                Some((foreign, known)) => {
                    let (cache, reason) = (foreign.cache, Reason::NotWrittenBack(foreign.stored));
                    let view = known.view(l1, line, memory);
                    self.touch(dirty_of(cache), (line, line + 1), false, false);
                    (Some(view), Some(reason), None)
                }
                None => (None, None, None),
            },
        };
        // The line is now in the caches that were asked first.
        for n in order {
            let cache = placement.caches[n];
            if Some(n) == first {
                self.touch(cache, (line, line + 1), false, false);
                break;
            }
            let epoch = self.epoch(cache);
            let known = self.lines.entry(line).or_default();
            let filled = match reason {
                Some(Reason::Hit(_, filled)) => filled,
                _ => source,
            };
            let held = Held { cache, epoch, filled, old: old.clone() };
            match known.copies.iter_mut().find(|held| held.cache == cache) {
                Some(before) => *before = held,
                None => known.copies.push(held),
            }
            self.touch(cache, (line, line + 1), true, true);
        }
        if let (Some(old), Some(reason)) = (old, reason) {
            let now = read(memory, line);
            let mut differs = 0u128;
            each(mask, |at| differs |= u128::from(old[at] != now[at]) << at);
            if differs != 0 {
                let first = u64::from(differs.trailing_zeros());
                let bytes = 128 - u64::from(differs.leading_zeros()) - first;
                self.stale.push(Stale { load: source, address: line * LINE + first, bytes, reason });
                seen.push((line, old));
            }
        }
    }

    fn store(
        &mut self,
        placement: &Placement,
        policy: Policy,
        source: Source,
        (line, mask): (u64, u128),
        logs: &Logs,
        memory: &Memory,
    ) {
        let [l0, l1, _] = placement.caches;
        let own = |cache: Cache| cache == l0 || cache == l1;
        if policy.stays {
            self.lines.entry(line).or_default();
            self.dirty.entry(l1).or_default().insert(line);
            self.touch(dirty_of(l1), (line, line + 1), true, false);
        }
        let Contents { lines, epochs, .. } = self;
        let Some(known) = lines.get_mut(&line) else { return };
        known.copies.retain(|held| epochs.get(&held.cache).copied().unwrap_or(0) == held.epoch);
        let now = read(memory, line);
        let mut before = now.clone();
        let base = line * LINE;
        each(mask, |at| {
            before[at] = logs.replaced.byte(Place::Global, base + at as u64).unwrap_or(now[at]);
        });
        for held in &mut known.copies {
            match &mut held.old {
                Some(old) if own(held.cache) => each(mask, |at| old[at] = now[at]),
                None if !own(held.cache) => held.old = Some(before.clone()),
                _ => {}
            }
        }
        if policy.stays {
            // The newest come last.
            let mut unwritten = match known.unwritten.iter().position(|u| u.cache == l1) {
                Some(at) => known.unwritten.remove(at),
                None => Unwritten { cache: l1, mask: 0, old: before.clone(), stored: source },
            };
            each(mask & !unwritten.mask, |at| unwritten.old[at] = before[at]);
            unwritten.mask |= mask;
            unwritten.stored = source;
            known.unwritten.push(unwritten);
        } else if !policy.atomic {
            known.unwritten.iter_mut().filter(|u| u.cache == l1).for_each(|u| u.mask &= !mask);
            known.unwritten.retain(|u| u.mask != 0);
        }
    }

    /// An atomic takes the line out of the wave's caches, and acts on what all waves have stored.
    fn atomic(&mut self, placement: &Placement, line: u64, mask: u128) {
        let [l0, l1, _] = placement.caches;
        let Some(known) = self.lines.get_mut(&line) else { return };
        known.copies.retain(|held| held.cache != l0 && held.cache != l1);
        known.unwritten.iter_mut().for_each(|unwritten| unwritten.mask &= !mask);
        known.unwritten.retain(|unwritten| unwritten.mask != 0);
        self.touch(l0, (line, line + 1), true, false);
        self.touch(l1, (line, line + 1), true, false);
    }

    /// Discards the contents of some caches of a wave.
    pub fn invalidate(&mut self, placement: &Placement, caches: Caches) {
        for n in caches.numbers() {
            let cache = placement.caches[n];
            *self.epochs.entry(cache).or_default() += 1;
            self.touch(cache, (0, u64::MAX), true, false);
        }
    }

    /// Makes what the L1 cache of a wave holds visible to all. Returns the lines.
    pub fn write_back(&mut self, placement: &Placement) {
        let l1 = placement.caches[1];
        for line in self.dirty.remove(&l1).unwrap_or_default() {
            if let Some(known) = self.lines.get_mut(&line) {
                known.unwritten.retain(|unwritten| unwritten.cache != l1);
            }
        }
        self.touch(dirty_of(l1), (0, u64::MAX), true, false);
    }
}
