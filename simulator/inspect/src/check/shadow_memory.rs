//! The race check's shadow memory of LDS and global memory: who accessed which bytes last.
//!
//! A dword has a shadow cell with its last two writers and two readers. Neighbouring dwords share one cell for as long as every access
//! covers all of them, which is how waves use memory: one cell is then compared for 32 dwords, or for those of a part ([`SIZES`]).

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
    /// `u8::MAX` for scalar memory and for several lanes. Of several dwords: the lane of the first byte.
    pub lane: u8,
    /// Of several dwords: bytes of a lane, the lanes being consecutive; 0 if it is all one lane's.
    pub lane_bytes: u8,
}

impl Record {
    /// The record of a part, from byte `offset` on. A dword is one lane's.
    #[inline]
    fn of_part(self, offset: u64, size: u64) -> Record {
        match self.lane_bytes {
            0 => self,
            bytes => Record {
                lane: self.lane + (offset / bytes as u64) as u8,
                lane_bytes: if size == DWORD { 0 } else { bytes },
                ..self
            },
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

    /// Whether no other wave has a record here, and there is one store at most.
    #[inline(always)]
    fn is_of(&self, wave: u32) -> bool {
        let mine = |r: &Record| (r.wave == 0) | (r.wave == wave);
        let [write, second] = &self.writes;
        (second.wave == 0) & mine(write) & mine(&self.reads[0]) & mine(&self.reads[1])
    }

    /// Records an access to all bytes of a cell without other waves.
    #[inline(always)]
    fn replace(&mut self, me: Record, write: bool) {
        if write {
            self.reads[0].wave = 0;
            self.reads[1].wave = 0;
            self.writes[0] = me;
        } else {
            self.reads[0] = me;
        }
    }

    /// Compares and records an access to all bytes, where all that it could race with happened before. False, and nothing recorded, if it
    /// is not so simple.
    #[inline(always)]
    fn pass(
        &mut self,
        me: &Record,
        write: bool,
        ordered: &impl Fn(&Record) -> bool,
        superseded: impl FnOnce([Record; 2]),
    ) -> bool {
        let mine = |r: &Record| r.wave == 0 || r.wave == me.wave;
        if self.writes[1].wave != 0 || !(mine(&self.writes[0]) || ordered(&self.writes[0])) {
            return false;
        }
        if !write {
            let slot = match &self.reads {
                [first, _] if mine(first) => 0,
                [_, second] if mine(second) => 1,
                [first, _] if ordered(first) => 0,
                [_, second] if ordered(second) => 1,
                _ => {
                    self.reads[0] = self.reads[1];
                    1
                }
            };
            self.reads[slot] = *me;
            return true;
        }
        let [first, second] = self.reads;
        if !(mine(&first) && mine(&second)) {
            if !((mine(&first) || ordered(&first)) && (mine(&second) || ordered(&second))) {
                return false;
            }
            superseded(self.reads);
        }
        self.reads[0].wave = 0;
        self.reads[1].wave = 0;
        self.writes[0] = *me;
        true
    }

    #[inline]
    fn of_part(&self, offset: u64, size: u64) -> Cell {
        // (`map` stays a call.)
        let ([w, w2], [r, r2]) = (self.writes, self.reads);
        let part = |r: Record| r.of_part(offset, size);
        Cell { writes: [part(w), part(w2)], reads: [part(r), part(r2)] }
    }
}

/// Bytes that one cell may stand for: a dword of 32 lanes, a row of a tile of 16 lanes, four dwords of a lane.
const SIZES: [u64; 3] = [BLOCK, 64, 16];
/// Logarithms of the sizes of parts.
const PART_BITS: [u32; 3] = [6, 4, 2];
const BLOCK: u64 = 128;
const DWORD: u64 = 4;
const ALL_BYTES: u8 = 0b1111;

/// Dwords with one cell, or parts of their own.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Of all dwords, unless it is split.
    cell: Cell,
    split: bool,
    /// How often it was split, up to [`OFTEN`].
    splits: u8,
    /// Kept when they are joined.
    parts: Parts,
}

#[derive(Debug, Clone, Default)]
enum Parts {
    #[default]
    None,
    Nodes(Box<[Node]>),
    Dwords(Box<[Cell; 4]>),
}

/// Size of the parts of a node of some level.
fn part_size(level: usize) -> u64 {
    SIZES.get(level + 1).copied().unwrap_or(DWORD)
}

impl Node {
    /// Gives each part the cell that all had.
    #[inline(never)]
    fn split(&mut self, level: usize) {
        self.split = true;
        self.splits = (self.splits + 1).min(OFTEN);
        let size = part_size(level);
        if let Parts::None = self.parts {
            self.parts = match size {
                DWORD => Parts::Dwords(Box::default()),
                _ => Parts::Nodes((0..SIZES[level] / size).map(|_| Node::default()).collect()),
            };
        }
        let cell = self.cell;
        match &mut self.parts {
            Parts::None => {}
            Parts::Nodes(nodes) => {
                for (k, node) in (0..).zip(nodes.iter_mut()) {
                    node.cell = cell.of_part(k * size, size);
                    node.split = false;
                }
            }
            Parts::Dwords(cells) => {
                for (k, part) in (0..).zip(cells.iter_mut()) {
                    *part = cell.of_part(k * size, size);
                }
            }
        }
    }

    /// The cells, each with its place and its size; until `f` is false.
    fn all(&self, level: usize, start: u64, f: &mut impl FnMut(&Cell, u64, u64) -> bool) -> bool {
        let size = part_size(level);
        match &self.parts {
            Parts::Nodes(nodes) if self.split => {
                (0..).zip(nodes.iter()).all(|(k, node)| node.all(level + 1, start + k * size, f))
            }
            Parts::Dwords(cells) if self.split => {
                (0..).zip(cells.iter()).all(|(k, cell)| f(cell, start + k * size, size))
            }
            _ => f(&self.cell, start, SIZES[level]),
        }
    }

    /// The cell of the dword at an offset in the node.
    fn dword(&self, level: usize, offset: u64) -> Cell {
        let size = part_size(level);
        match &self.parts {
            Parts::Nodes(nodes) if self.split => {
                nodes[(offset / size) as usize].dword(level + 1, offset % size)
            }
            Parts::Dwords(cells) if self.split => cells[(offset / size) as usize],
            _ => self.cell.of_part(offset & !(DWORD - 1), DWORD),
        }
    }
}

/// What has been split so often stays so: a tile is stored as a whole and loaded in parts again and again.
const OFTEN: u8 = 3;

/// Blocks of a page.
const PAGE: usize = 32;

/// Pages that are found without the index.
pub const RECENT: usize = 512;

/// Where a page is among the recent ones: buffers of one size are not to meet there.
#[inline(always)]
pub fn slot(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
}

/// Blocks by number; made where they are touched. The addresses of a host are far from each other.
pub struct ShadowMemory {
    pages: Vec<Box<[Node]>>,
    /// Index in `pages` by number of the page.
    index: foldhash::HashMap<u64, usize>,
    /// Pages of recent accesses, with their index: most accesses are near one of these.
    recent: Box<[(u64, usize); RECENT]>,
    /// Whether [`ShadowMemory::superseded`] is wanted.
    follows: bool,
    /// Loads of other waves that stores have taken the place of, by dword.
    pub superseded: Vec<Superseded>,
}

/// A dword, and its last readers.
pub type Superseded = (u64, [Record; 2]);

/// A race: the access, of one lane, and the earlier one with whether it was a store.
pub type Hit = (Access, Record, bool);

impl Default for ShadowMemory {
    fn default() -> ShadowMemory {
        ShadowMemory {
            pages: Vec::new(),
            index: Default::default(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
            follows: false,
            superseded: Vec::new(),
        }
    }
}

impl ShadowMemory {
    /// That keeps loads which stores have taken the place of.
    pub fn following() -> ShadowMemory {
        ShadowMemory { follows: true, ..ShadowMemory::default() }
    }

    /// Forgets all accesses.
    pub fn clear(&mut self) {
        for node in self.pages.iter_mut().flat_map(|page| page.iter_mut()) {
            node.cell = Cell::default();
            node.split = false;
        }
    }

    /// The index of a page.
    #[inline]
    fn page(&mut self, page: u64) -> usize {
        match self.recent[slot(page)] {
            (recent, at) if recent == page => at,
            _ => self.find_or_make(page),
        }
    }

    #[inline(never)]
    fn find_or_make(&mut self, page: u64) -> usize {
        let pages = &mut self.pages;
        let at = *self.index.entry(page).or_insert_with(|| {
            pages.push((0..PAGE).map(|_| Node::default()).collect());
            pages.len() - 1
        });
        self.recent[slot(page)] = (page, at);
        at
    }

    /// The state of the dword at an offset.
    pub fn cell(&self, offset: u64) -> Cell {
        let number = offset / BLOCK;
        let page = self.index.get(&(number / PAGE as u64)).map(|&at| &self.pages[at]);
        page.map_or_else(Cell::default, |page| page[number as usize % PAGE].dword(0, offset % BLOCK))
    }

    /// Records an access to whole blocks that no other wave has accessed, as most are in global memory. False if it is not so; what is
    /// recorded of it then is recorded once more by [`ShadowMemory::access`].
    #[inline(always)]
    pub fn is_alone(&mut self, a: &Access, me: Record) -> bool {
        let (len, stride) = (a.len_bytes(), a.stride);
        if (a.address | len) & (BLOCK - 1) != 0 || !stride.is_power_of_two() || a.lane.is_none() {
            return false;
        }
        let first = a.lane.unwrap_or_default();
        let mut me = Record { mask: ALL_BYTES, lane_bytes: stride, ..me };
        let bits = stride.trailing_zeros();
        let mut byte = 0;
        while byte < len {
            let number = (a.address + byte) / BLOCK;
            let page = self.page(number / PAGE as u64);
            let node = &mut self.pages[page][number as usize % PAGE];
            if node.split || !node.cell.is_of(me.wave) {
                return false;
            }
            me.lane = first + (byte >> bits) as u8;
            node.cell.replace(me, a.write);
            byte += BLOCK;
        }
        true
    }

    /// Records a load of the bytes of one cell, if those that it could race with happened before. False, and nothing recorded, if it is not so
    /// simple.
    #[inline(always)]
    pub fn passes(&mut self, a: &Access, me: Record, ordered: impl Fn(&Record) -> bool) -> bool {
        let Some(cell) = self.cell_of(a.address, a.len_bytes()) else { return false };
        let me = if a.len_bytes() == DWORD {
            Record { mask: ALL_BYTES, lane: a.lane.unwrap_or(u8::MAX), ..me }
        } else {
            of_whole(a, me, 0)
        };
        cell.pass(&me, false, &ordered, |_| {})
    }

    /// The cell of these bytes, if they have one that is not that of others too.
    #[inline(always)]
    fn cell_of(&mut self, address: u64, len: u64) -> Option<&mut Cell> {
        if !len.is_power_of_two() || address & (len - 1) != 0 {
            return None;
        }
        let number = address / BLOCK;
        let page = self.page(number / PAGE as u64);
        let mut node = &mut self.pages[page][number as usize % PAGE];
        for (level, size) in SIZES.into_iter().enumerate() {
            if !node.split {
                return (len == size).then_some(&mut node.cell);
            }
            let part = (address & (size - 1)) >> PART_BITS[level];
            match &mut node.parts {
                Parts::Nodes(nodes) => node = &mut nodes[part as usize],
                Parts::Dwords(cells) => return (len == DWORD).then_some(&mut cells[part as usize]),
                Parts::None => return None,
            }
        }
        None
    }

    /// Records an access at `offset`; `me` is its record but for bytes and lane, `ordered` whether a record happened before. Races go to `hits`.
    #[inline]
    pub fn access(
        &mut self,
        offset: u64,
        a: &Access,
        me: Record,
        ordered: impl Fn(&Record) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        let end = offset + a.len_bytes();
        let mut start = offset & !(BLOCK - 1);
        while start < end {
            let number = start / BLOCK;
            let page = self.page(number / PAGE as u64);
            let node = &mut self.pages[page][number as usize % PAGE];
            let superseded = self.follows.then_some(&mut self.superseded);
            Visit { offset, end, a, me, ordered: &ordered, hits, superseded }.node(node, 0, start);
            start += BLOCK;
        }
    }
}

/// An access on its way through the nodes that it touches.
struct Visit<'v, F> {
    offset: u64,
    end: u64,
    a: &'v Access,
    me: Record,
    ordered: &'v F,
    hits: &'v mut Vec<Hit>,
    superseded: Option<&'v mut Vec<Superseded>>,
}

impl<F: Fn(&Record) -> bool> Visit<'_, F> {
    /// Compares and records the part of the access that is in a node, which begins at `start`.
    #[inline]
    fn node(&mut self, mut node: &mut Node, mut level: usize, mut start: u64) {
        loop {
            let size = SIZES[level];
            let whole = start >= self.offset && self.end - start >= size;
            let stride = self.a.stride as u64;
            let lanes_fit = stride == 0
                || stride.is_power_of_two() && (start.wrapping_sub(self.offset)) & (stride - 1) == 0;
            if whole && lanes_fit && self.whole(node, level, start) {
                return;
            }
            if !node.split {
                node.split(level);
            }
            let bits = PART_BITS[level];
            let first = (self.offset.max(start) - start) >> bits;
            let last = (self.end.min(start + size) - start - 1) >> bits;
            let parts = &mut node.parts;
            if first < last {
                for k in first..=last {
                    match parts {
                        Parts::None => {}
                        Parts::Nodes(nodes) => {
                            self.part(&mut nodes[k as usize], level + 1, start + (k << bits));
                        }
                        Parts::Dwords(cells) => self.dword(&mut cells[k as usize], start + (k << bits)),
                    }
                }
                return;
            }
            start += first << bits;
            match parts {
                Parts::None => return,
                Parts::Nodes(nodes) => node = &mut nodes[first as usize],
                Parts::Dwords(cells) => return self.dword(&mut cells[first as usize], start),
            }
            level += 1;
        }
    }

    #[inline(never)]
    fn part(&mut self, node: &mut Node, level: usize, start: u64) {
        self.node(node, level, start);
    }

    fn dword(&mut self, cell: &mut Cell, dword: u64) {
        let (offset, a) = (self.offset, self.a);
        let (from, to) = (offset.max(dword) - dword, self.end.min(dword + DWORD) - dword);
        let mask = (((1u32 << to) - 1) & !((1u32 << from) - 1)) as u8;
        let nth = lane_of(a, dword.max(offset) - offset);
        let me = Record { mask, lane: a.lane.map_or(u8::MAX, |lane| lane + nth), ..self.me };
        let superseded = &mut self.superseded;
        let one = |reads| {
            if let Some(list) = superseded {
                list.push((dword, reads));
            }
        };
        if mask == ALL_BYTES && cell.pass(&me, a.write, self.ordered, one) {
            return;
        }
        if let Some((other, was_write)) = cell.race(&me, a.write, self.ordered) {
            let one = a.each().nth(nth as usize).unwrap_or(*a);
            self.hits.push((one, other, was_write));
        }
        let superseded = &mut self.superseded;
        cell.note(me, a.write, self.ordered, |reads| {
            if let Some(list) = superseded {
                list.push((dword, reads));
            }
        });
    }

    /// An access to all of a node. False, and nothing recorded, if its parts have cells of their own or one races: each is compared then.
    #[inline]
    fn whole(&mut self, node: &mut Node, level: usize, start: u64) -> bool {
        let a = self.a;
        let me = of_whole(a, self.me, start - self.offset);
        if node.split {
            return a.write && node.splits < OFTEN && self.join(node, level, start, me);
        }
        let superseded = &mut self.superseded;
        let all = |reads| {
            if let Some(list) = superseded {
                list.extend((start..start + SIZES[level]).step_by(4).map(|dword| (dword, reads)));
            }
        };
        if node.cell.pass(&me, a.write, self.ordered, all) {
            return true;
        }
        if node.cell.race(&me, a.write, self.ordered).is_some() {
            return false;
        }
        let superseded = &mut self.superseded;
        node.cell.note(me, a.write, self.ordered, |reads| {
            if let Some(list) = superseded {
                list.extend((start..start + SIZES[level]).step_by(4).map(|dword| (dword, reads)));
            }
        });
        true
    }

    /// A store that all else happened before makes the dwords equal again.
    fn join(&mut self, node: &mut Node, level: usize, start: u64, me: Record) -> bool {
        let before = |r: &Record| r.wave == 0 || r.wave == me.wave || (self.ordered)(r);
        if !node.all(level, start, &mut |cell, _, _| cell.writes.iter().chain(&cell.reads).all(before)) {
            return false;
        }
        if let Some(list) = &mut self.superseded {
            node.all(level, start, &mut |cell, at, size| {
                if cell.reads.iter().any(|r| r.wave != 0 && r.wave != me.wave) {
                    list.extend((at..at + size).step_by(4).map(|dword| (dword, cell.reads)));
                }
                true
            });
        }
        node.split = false;
        node.cell = Cell { writes: [me, Record::default()], reads: Default::default() };
        true
    }
}

/// The record of an access for all dwords of a node, from one of its bytes on.
#[inline(always)]
fn of_whole(a: &Access, me: Record, byte: u64) -> Record {
    let lane = a.lane.map_or(u8::MAX, |lane| lane + lane_of(a, byte));
    let lane_bytes = if a.lane.is_some() { a.stride } else { 0 };
    Record { mask: ALL_BYTES, lane, lane_bytes, ..me }
}

/// Which of the access's lanes a byte belongs to.
#[inline(always)]
fn lane_of(a: &Access, byte: u64) -> u8 {
    match a.stride {
        0 => 0,
        // Without a division.
        stride if stride.is_power_of_two() => (byte >> stride.trailing_zeros()) as u8,
        stride => (byte / stride as u64) as u8,
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

        /// Blocks and their parts find what dwords one by one find.
        #[test]
        fn blocks_are_their_dwords(list in proptest::collection::vec(access(), 1..24)) {
            let (mut blocks, mut dwords) = (ShadowMemory::default(), ShadowMemory::default());
            for (epoch, (wave, a, seen)) in (1..).zip(list) {
                let me = Record { wave, epoch, pc: epoch, ..Record::default() };
                let ordered = |r: &Record| seen >> r.wave & 1 == 1;
                let (mut all, mut each) = (Vec::new(), Vec::new());
                blocks.access(a.address, &a, me, ordered, &mut all);
                // A dword at a time never shares a cell.
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
