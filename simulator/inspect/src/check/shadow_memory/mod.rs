//! The race check's shadow memory of LDS and global memory: who accessed which bytes last.
//!
//! A dword has a shadow cell with its last two writers and two readers. Consecutive dwords share one cell for as long as every access
//! covers all of them, which is how waves use memory: one cell is then compared for 32 dwords, or for those of a part ([`SIZES`]).

mod cell;
mod page;
#[cfg(test)]
mod tests;
mod visit;

use cell::Cell;
pub use cell::Record;
use page::{Last, PAGE, Page};
use visit::{Visit, of_whole};
use wavesim_machine::exec::watch::Access;

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

    /// Records an access to all of it, if no other wave has a record here.
    fn is_alone(&mut self, me: Record, write: bool) -> bool {
        let alone = !self.split && self.cell.is_of(me.wave);
        if alone {
            self.cell.replace(me, write);
        }
        alone
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

/// Pages that are found without the index.
pub const RECENT: usize = 512;

/// Where a page is among the recent ones: buffers of one size are not to meet there.
#[inline(always)]
pub fn slot(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
}

/// Blocks by number; made where they are touched. The addresses of a host are far from each other.
pub struct ShadowMemory {
    pages: Vec<Page>,
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
        self.pages.iter_mut().for_each(Page::clear);
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
            pages.push(Page::new());
            pages.len() - 1
        });
        self.recent[slot(page)] = (page, at);
        at
    }

    /// The state of the dword at an offset.
    pub fn cell(&self, offset: u64) -> Cell {
        let number = offset / BLOCK;
        let page = self.index.get(&(number / PAGE as u64)).map(|&at| &self.pages[at]);
        page.map_or_else(Cell::default, |page| page.dword(number as usize % PAGE, offset % BLOCK))
    }

    /// Records an access to whole blocks that no other wave has accessed, as most are in global memory. False if it is not so; what is
    /// recorded of it then is recorded once more by [`ShadowMemory::access`].
    #[inline(always)]
    pub fn is_alone(&mut self, a: &Access, me: Record) -> bool {
        let (len, stride) = (a.len_bytes(), a.stride);
        if (a.address | len) & (BLOCK - 1) != 0 || !stride.is_power_of_two() || a.lane.is_none() {
            return false;
        }
        let mut last = Last::new(&Record { lane: a.lane.unwrap_or_default(), lane_bytes: stride, ..me });
        let lanes = BLOCK as u32 >> stride.trailing_zeros();
        let (mut number, end) = (a.address / BLOCK, (a.address + len) / BLOCK);
        while number < end {
            let page = self.page(number / PAGE as u64);
            let from = number as usize % PAGE;
            let to = PAGE.min(from + (end - number) as usize);
            if !self.pages[page].is_alone((from, to), me.wave, &mut last, lanes, a.write) {
                return false;
            }
            number += (to - from) as u64;
        }
        true
    }

    /// Records an access to the bytes of one cell, if those that it could race with happened before; a store only in memory that is not
    /// [`following`](ShadowMemory::following). False, and nothing recorded, if it is not so
    /// simple.
    #[inline(always)]
    pub fn passes(&mut self, a: &Access, me: Record, ordered: impl Fn(&Record) -> bool) -> bool {
        let Some(cell) = self.cell_of(a.address, a.len_bytes()) else { return false };
        let me = if a.len_bytes() == DWORD {
            Record { mask: ALL_BYTES, lane: a.lane.unwrap_or(u8::MAX), ..me }
        } else {
            of_whole(a, me, 0)
        };
        cell.pass(&me, a.write, &ordered, |_| {})
    }

    /// The cell of these bytes, if they have one that is not that of others too.
    #[inline(always)]
    fn cell_of(&mut self, address: u64, len: u64) -> Option<&mut Cell> {
        if !len.is_power_of_two() || address & (len - 1) != 0 {
            return None;
        }
        let number = address / BLOCK;
        let page = self.page(number / PAGE as u64);
        let mut node = self.pages[page].node(number as usize % PAGE);
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
            let node = self.pages[page].node(number as usize % PAGE);
            let superseded = self.follows.then_some(&mut self.superseded);
            Visit { offset, end, a, me, ordered: &ordered, hits, superseded }.node(node, 0, start);
            start += BLOCK;
        }
    }
}
