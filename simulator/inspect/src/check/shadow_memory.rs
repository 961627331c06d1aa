//! The race check's shadow memory of LDS and global memory: who accessed which bytes last.
//!
//! A dword has a shadow cell with its last two writers and two readers. The dwords of a line of 64 bytes share one cell for as long as
//! every access covers the whole line, which is how waves use memory: one cell is then compared for sixteen dwords.

use wavesim_machine::exec::watch::Access;

/// One access to a dword.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the wave from 1; 0: none.
    pub wave: u32,
    /// The wave's epoch at the access.
    pub epoch: u32,
    /// Byte offset of the instruction.
    pub pc: u32,
    /// Bytes of the dword.
    pub mask: u8,
    /// Atomics do not race with each other.
    pub atomic: bool,
    /// `u8::MAX` for scalar memory and for several lanes. Of a line: the lane of its first byte.
    pub lane: u8,
    /// Of a line: bytes of a lane, the lanes lying in a row; 0 if it is all one lane's.
    pub lane_bytes: u8,
}

impl Record {
    /// The record of dword `k` of a line.
    #[inline]
    fn of_dword(self, k: usize) -> Record {
        match self.lane_bytes {
            0 => self,
            bytes => Record { lane: self.lane + (4 * k / bytes as usize) as u8, lane_bytes: 0, ..self },
        }
    }
}

/// Last writers and readers, the older one first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cell {
    /// The last two stores, zeroed where there were fewer.
    pub writes: [Record; 2],
    /// The last two loads, likewise.
    pub reads: [Record; 2],
}

impl Cell {
    /// An earlier access that races with this one, and whether it was a store.
    #[inline(always)]
    fn race(&self, me: &Record, write: bool, ordered: &impl Fn(&Record) -> bool) -> Option<(Record, bool)> {
        let races = |r: &Record| {
            r.wave != 0
                && r.wave != me.wave
                && r.mask & me.mask != 0
                && !(r.atomic && me.atomic)
                && !ordered(r)
        };
        let found = self.writes.iter().find(|r| races(r)).map(|r| (*r, true));
        if !write {
            return found;
        }
        found.or_else(|| self.reads.iter().find(|r| races(r)).map(|r| (*r, false)))
    }

    #[inline(always)]
    fn note(
        &mut self,
        me: Record,
        write: bool,
        ordered: &impl Fn(&Record) -> bool,
        superseded: impl FnOnce([Record; 2]),
    ) {
        // A record of this wave, or one that happened before, is superseded.
        let over = |r: &Record| r.wave == 0 || (r.wave == me.wave || ordered(r)) && r.mask & !me.mask == 0;
        if write && self.reads.iter().all(over) {
            // Every access that races with those reads races with this store too.
            if self.reads.iter().any(|r| r.wave != 0 && r.wave != me.wave) {
                superseded(self.reads);
            }
            self.reads = Default::default();
            if self.writes.iter().all(over) {
                self.writes = [me, Record::default()];
                return;
            }
        }
        let list = if write { &mut self.writes } else { &mut self.reads };
        // Lanes of one instruction may access the dword byte by byte.
        let mut me = me;
        let same =
            |r: &&Record| (r.wave, r.epoch, r.pc) == (me.wave, me.epoch, me.pc) && r.mask & !me.mask != 0;
        if let Some(r) = list.iter().find(same).copied() {
            me.mask |= r.mask;
            me.lane = if me.lane == r.lane { me.lane } else { u8::MAX };
        }
        // A record of other bytes stays if there is room.
        let over = |r: &Record| r.wave == 0 || (r.wave == me.wave || ordered(r)) && r.mask & !me.mask == 0;
        let slot = list.iter().position(over);
        match slot.or_else(|| list.iter().position(|r| r.wave == me.wave)) {
            Some(slot) => list[slot] = me,
            None => {
                list[0] = list[1];
                list[1] = me;
            }
        }
    }

    #[inline]
    fn of_dword(self, k: usize) -> Cell {
        // (`map` stays a call.)
        let ([w, w2], [r, r2]) = (self.writes, self.reads);
        Cell { writes: [w.of_dword(k), w2.of_dword(k)], reads: [r.of_dword(k), r2.of_dword(k)] }
    }
}

/// Bytes that one cell may stand for.
pub const LINE_BYTES: u64 = 64;
const DWORDS: usize = 16;
const ALL_BYTES: u8 = 0b1111;

/// Sixteen dwords.
#[derive(Debug, Clone)]
enum Line {
    Uniform(Cell),
    PerDword(Box<[Cell; DWORDS]>),
}

impl Default for Line {
    fn default() -> Line {
        Line::Uniform(Cell::default())
    }
}

impl Line {
    fn per_dword(&mut self) -> &mut [Cell; DWORDS] {
        if let Line::Uniform(cell) = self {
            let cell = *cell;
            let mut cells = Box::new([Cell::default(); DWORDS]);
            cells.iter_mut().enumerate().for_each(|(k, c)| *c = cell.of_dword(k));
            *self = Line::PerDword(cells);
        }
        match self {
            Line::PerDword(cells) => cells,
            Line::Uniform(_) => unreachable!("it has just been split"),
        }
    }
}

/// Lines of a page.
const PAGE: usize = 64;

/// Lines by number; made where they are touched. The addresses of a host are far from each other.
#[derive(Default)]
pub struct ShadowMemory {
    pages: Vec<Box<[Line; PAGE]>>,
    /// Index in `pages` by number of the page.
    index: foldhash::HashMap<u64, usize>,
    /// The page of the last access, and its index: most accesses are near the one before.
    last: Option<(u64, usize)>,
    /// Loads of other waves that stores have taken the place of, by dword.
    pub superseded: Vec<Superseded>,
}

/// A dword, and its last readers.
pub type Superseded = (u64, [Record; 2]);

/// A race: the access, of one lane, and the earlier one with whether it was a store.
pub type Hit = (Access, Record, bool);

impl ShadowMemory {
    /// Forgets all accesses.
    pub fn clear(&mut self) {
        for line in self.pages.iter_mut().flat_map(|page| page.iter_mut()) {
            *line = Line::default();
        }
    }

    #[inline]
    fn line(&mut self, number: u64) -> (&mut Line, &mut Vec<Superseded>) {
        let page = number / PAGE as u64;
        let at = match self.last {
            Some((last, at)) if last == page => at,
            _ => self.find_or_make(page),
        };
        (&mut self.pages[at][number as usize % PAGE], &mut self.superseded)
    }

    #[inline(never)]
    fn find_or_make(&mut self, page: u64) -> usize {
        let pages = &mut self.pages;
        let at = *self.index.entry(page).or_insert_with(|| {
            pages.push(Box::new(std::array::from_fn(|_| Line::default())));
            pages.len() - 1
        });
        self.last = Some((page, at));
        at
    }

    /// The state of the dword at an offset.
    pub fn cell(&self, offset: u64) -> Cell {
        let number = offset / LINE_BYTES;
        let k = (offset % LINE_BYTES / 4) as usize;
        let page = self.index.get(&(number / PAGE as u64)).map(|&at| &self.pages[at]);
        match page.map(|page| &page[number as usize % PAGE]) {
            Some(Line::Uniform(cell)) => cell.of_dword(k),
            Some(Line::PerDword(cells)) => cells[k],
            None => Cell::default(),
        }
    }

    /// Records an access at `offset`; `me` is its record but for bytes and lane, `ordered` whether a record happened before. Races go to `hits`.
    pub fn access(
        &mut self,
        offset: u64,
        a: &Access,
        me: Record,
        ordered: impl Fn(&Record) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        let end = offset + a.len_bytes();
        let mut start = offset & !(LINE_BYTES - 1);
        while start < end {
            let (line, superseded) = self.line(start / LINE_BYTES);
            let into = start.wrapping_sub(offset);
            let whole = start >= offset && end - start >= LINE_BYTES;
            let lanes_fit = a.stride == 0 || into.is_multiple_of(a.stride as u64);
            if whole && lanes_fit && whole_line(line, a, start, into, me, &ordered, superseded) {
                start += LINE_BYTES;
                continue;
            }
            let cells = line.per_dword();
            let (first, last) = (offset.max(start), end.min(start + LINE_BYTES));
            let mut dword = first & !3;
            while dword < last {
                let (from, to) = (first.max(dword) - dword, last.min(dword + 4) - dword);
                let mask = (((1u32 << to) - 1) & !((1u32 << from) - 1)) as u8;
                let nth = lane_of(a, dword.max(offset) - offset);
                let me = Record { mask, lane: a.lane.map_or(u8::MAX, |lane| lane + nth), ..me };
                let cell = &mut cells[((dword - start) / 4) as usize];
                if let Some((other, was_write)) = cell.race(&me, a.write, &ordered) {
                    let one = a.each().nth(nth as usize).unwrap_or(*a);
                    hits.push((one, other, was_write));
                }
                cell.note(me, a.write, &ordered, |reads| superseded.push((dword, reads)));
                dword += 4;
            }
            start += LINE_BYTES;
        }
    }
}

/// Which of the access's lanes a byte belongs to.
fn lane_of(a: &Access, byte: u64) -> u8 {
    if a.stride == 0 { 0 } else { (byte / a.stride as u64) as u8 }
}

/// Records an access to all of a line, from `start` on, whose first byte is the access's byte `into`. False, and nothing recorded, if its dwords have
/// cells of their own or one races: each dword is compared then.
fn whole_line(
    line: &mut Line,
    a: &Access,
    start: u64,
    into: u64,
    me: Record,
    ordered: &impl Fn(&Record) -> bool,
    superseded: &mut Vec<Superseded>,
) -> bool {
    let lane = a.lane.map_or(u8::MAX, |lane| lane + lane_of(a, into));
    let lane_bytes = if a.lane.is_some() { a.stride } else { 0 };
    let me = Record { mask: ALL_BYTES, lane, lane_bytes, ..me };
    match line {
        Line::Uniform(cell) => {
            if cell.race(&me, a.write, ordered).is_some() {
                return false;
            }
            cell.note(me, a.write, ordered, |reads| {
                superseded.extend((0..DWORDS as u64).map(|k| (start + 4 * k, reads)));
            });
            true
        }
        Line::PerDword(cells) => {
            // A store that all else happened before makes the dwords equal again.
            let before = |r: &Record| r.wave == 0 || r.wave == me.wave || ordered(r);
            let all = |cell: &Cell| cell.writes.iter().chain(&cell.reads).all(before);
            if !a.write || !cells.iter().all(all) {
                return false;
            }
            let foreign = |cell: &Cell| cell.reads.iter().any(|r| r.wave != 0 && r.wave != me.wave);
            let read = (0..).zip(cells.iter()).filter(|(_, cell)| foreign(cell));
            superseded.extend(read.map(|(k, cell)| (start + 4 * k as u64, cell.reads)));
            *line = Line::Uniform(Cell { writes: [me, Record::default()], reads: Default::default() });
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wavesim_machine::exec::watch::Place;

    /// A wave's access of up to 32 lanes, and which waves' earlier accesses happened before it, as a mask.
    fn access() -> impl Strategy<Value = (u32, Access, u8)> {
        let sizes = prop_oneof![Just(1u8), Just(2), Just(4), Just(8), Just(16)];
        let lanes = prop_oneof![Just(1u8), Just(16), Just(32), 1..33u8];
        let start = prop_oneof![Just(0u64), Just(64), Just(128), 0..64u64];
        (1..4u32, sizes, lanes, start, any::<bool>(), any::<bool>(), any::<u8>()).prop_map(
            |(wave, size_bytes, lanes, start, same, write, seen)| {
                let address = start / size_bytes as u64 * size_bytes as u64;
                let stride = if same { 0 } else { size_bytes };
                let lane = Some(0);
                let a = Access {
                    place: Place::Lds,
                    address,
                    size_bytes,
                    lanes,
                    stride,
                    write,
                    outside: false,
                    lane,
                };
                (wave, a, seen)
            },
        )
    }

    proptest! {
        /// Of two waves with an instruction each, every race on a byte is found, whatever bytes lanes access in whatever order.
        #[test]
        fn bytes_one_by_one(
            first in proptest::collection::vec(0..8u64, 1..9),
            second in proptest::collection::vec(0..8u64, 1..9),
            (first_writes, second_writes) in any::<(bool, bool)>(),
        ) {
            let (mut shadow, mut hits) = (ShadowMemory::default(), Vec::new());
            for (wave, bytes, write) in [(1, &first, first_writes), (2, &second, second_writes)] {
                let me = Record { wave, epoch: wave, pc: wave, ..Record::default() };
                for (lane, &address) in (0..).zip(bytes) {
                    let (place, lane) = (Place::Lds, Some(lane));
                    let a = Access { place, address, size_bytes: 1, lanes: 1, stride: 0, write, outside: false, lane };
                    shadow.access(address, &a, me, |_| false, &mut hits);
                }
            }
            let races = |byte: &u64| (first_writes || second_writes) && first.contains(byte);
            let expected: Vec<u64> = second.iter().copied().filter(races).collect();
            prop_assert_eq!(hits.iter().map(|hit| hit.0.address).collect::<Vec<_>>(), expected);
        }

        /// Whole lines find what dwords one by one find.
        #[test]
        fn lines_are_their_dwords(list in proptest::collection::vec(access(), 1..24)) {
            let (mut lines, mut dwords) = (ShadowMemory::default(), ShadowMemory::default());
            for (epoch, (wave, a, seen)) in (1..).zip(list) {
                let me = Record { wave, epoch, pc: epoch, ..Record::default() };
                let ordered = |r: &Record| seen >> r.wave & 1 == 1;
                let (mut all, mut each) = (Vec::new(), Vec::new());
                lines.access(a.address, &a, me, ordered, &mut all);
                // A part of a line at a time never shares a cell.
                let mut at = a.address;
                while at < a.address + a.len_bytes() {
                    let end = ((at & !3) + 4).min(a.address + a.len_bytes());
                    let nth = lane_of(&a, at - a.address);
                    let part = Access { address: at, size_bytes: (end - at) as u8, lanes: 1, stride: 0, lane: Some(nth), ..a };
                    dwords.access(at, &part, me, ordered, &mut each);
                    at = end;
                }
                let key = |h: &Hit| (h.0.lane, h.1.wave, h.1.pc, h.1.lane, h.2);
                prop_assert_eq!(all.iter().map(key).collect::<Vec<_>>(), each.iter().map(key).collect::<Vec<_>>());
            }
        }
    }
}
