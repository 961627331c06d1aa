//! The race check's shadow memory of LDS and global memory: the last accesses to each byte.
//!
//! The shadow cell of a dword holds its last two writers and two readers. Consecutive dwords share one cell
//! until an access covers only some of them. Since waves mostly access contiguous memory, one comparison
//! usually covers 32 dwords, or those of a smaller part ([`SIZES`]).

mod cell;
mod page;
#[cfg(test)]
mod tests;
mod visit;

use cell::Cell;
pub use cell::Record;
use page::{LastAccess, PAGE, Page};
use std::ops::Range;
use visit::{Visit, whole_record};
use wavesim_machine::exec::watch::Access;

/// Numbers of bytes that one cell may cover: a dword of 32 lanes, a row of a tile of 16 lanes, four dwords of
/// a lane.
const SIZES: [u64; 3] = [BLOCK, 64, 16];
/// Base-2 logarithms of the sizes of the parts.
const PART_BITS: [u32; 3] = [6, 4, 2];
const BLOCK: u64 = 128;
const DWORD: u64 = 4;
const ALL_BYTES: u8 = 0b1111;

/// Dwords that share one cell, or are split into parts with cells of their own.
#[derive(Debug, Clone, Default)]
struct Node {
    /// The cell of all dwords, unless the node is split.
    cell: Cell,
    split: bool,
    /// Number of splits, saturating at [`KEEP_SPLIT`].
    splits: u8,
    /// The parts; retained, for reuse, when they are joined.
    parts: Parts,
}

#[derive(Debug, Clone, Default)]
enum Parts {
    #[default]
    None,
    Nodes(Box<[Node]>),
    Dwords(Box<[Cell; 4]>),
}

/// Returns the size of the parts of a node at a level.
fn part_size(level: usize) -> u64 {
    SIZES.get(level + 1).copied().unwrap_or(DWORD)
}

impl Node {
    /// Splits the node; each part inherits a copy of the common cell.
    #[inline(never)]
    fn split(&mut self, level: usize) {
        self.split = true;
        self.splits = (self.splits + 1).min(KEEP_SPLIT);
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
                    node.cell = cell.for_part(k * size, size);
                    node.split = false;
                }
            }
            Parts::Dwords(cells) => {
                for (k, part) in (0..).zip(cells.iter_mut()) {
                    *part = cell.for_part(k * size, size);
                }
            }
        }
    }

    /// Records an access to the whole node, if no other wave has a record here. Returns whether it did.
    fn record_exclusive(&mut self, me: Record, write: bool) -> bool {
        let exclusive = !self.split && self.cell.is_exclusive_to(me.wave);
        if exclusive {
            self.cell.replace(me, write);
        }
        exclusive
    }

    /// Calls `f` with each cell, its offset and its size until `f` returns false. Returns whether all calls
    /// returned true.
    fn all_cells(&self, level: usize, start: u64, f: &mut impl FnMut(&Cell, u64, u64) -> bool) -> bool {
        let size = part_size(level);
        match &self.parts {
            Parts::Nodes(nodes) if self.split => {
                (0..).zip(nodes.iter()).all(|(k, node)| node.all_cells(level + 1, start + k * size, f))
            }
            Parts::Dwords(cells) if self.split => {
                (0..).zip(cells.iter()).all(|(k, cell)| f(cell, start + k * size, size))
            }
            _ => f(&self.cell, start, SIZES[level]),
        }
    }

    /// Drops the records of a range of bytes. The node starts at `start`.
    fn forget(&mut self, level: usize, start: u64, bytes: &Range<u64>) {
        if bytes.start <= start && start + SIZES[level] <= bytes.end {
            (self.cell, self.split) = (Cell::default(), false);
            return;
        }
        if !self.split {
            self.split(level);
        }
        let size = part_size(level);
        let inside = |at: u64| at < bytes.end && bytes.start < at + size;
        let starts = (start..).step_by(size as usize);
        match &mut self.parts {
            Parts::None => {}
            Parts::Nodes(nodes) => {
                let parts = starts.zip(nodes.iter_mut()).filter(|(at, _)| inside(*at));
                parts.for_each(|(at, node)| node.forget(level + 1, at, bytes));
            }
            Parts::Dwords(cells) => {
                let parts = starts.zip(cells.iter_mut()).filter(|(at, _)| inside(*at));
                parts.for_each(|(_, cell)| *cell = Cell::default());
            }
        }
    }

    /// Returns the cell of the dword at an offset in the node.
    fn dword(&self, level: usize, offset: u64) -> Cell {
        let size = part_size(level);
        match &self.parts {
            Parts::Nodes(nodes) if self.split => {
                nodes[(offset / size) as usize].dword(level + 1, offset % size)
            }
            Parts::Dwords(cells) if self.split => cells[(offset / size) as usize],
            _ => self.cell.for_part(offset & !(DWORD - 1), DWORD),
        }
    }
}

/// A node split this often is not joined again: code often stores a tile as a whole and loads it in parts,
/// repeatedly.
const KEEP_SPLIT: u8 = 3;

/// Number of entries of the cache of recent pages.
pub const RECENT: usize = 512;

/// Returns a page's slot in the cache of recent pages. The hash avoids conflicts between buffers of equal
/// size.
#[inline(always)]
pub fn slot(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
}

/// Shadow memory as a sparse set of pages, allocated on first access, since the addresses of a host are far
/// apart.
pub struct ShadowMemory {
    pages: Vec<Page>,
    /// Index in `pages` by page number.
    index: foldhash::HashMap<u64, usize>,
    /// Direct-mapped cache of recently accessed pages and their indices; most accesses hit it.
    recent: Box<[(u64, usize); RECENT]>,
    /// Whether to record [`ShadowMemory::superseded`].
    tracks_superseded: bool,
    /// Loads of other waves that stores have superseded, by dword.
    pub superseded: Vec<Superseded>,
}

/// A dword, and its last readers.
pub type Superseded = (u64, [Record; 2]);

/// A race: the access of one lane, the earlier access, and whether that was a store.
pub type Hit = (Access, Record, bool);

impl Default for ShadowMemory {
    fn default() -> ShadowMemory {
        ShadowMemory {
            pages: Vec::new(),
            index: Default::default(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
            tracks_superseded: false,
            superseded: Vec::new(),
        }
    }
}

impl ShadowMemory {
    /// Creates shadow memory that keeps superseded loads.
    pub fn tracking_superseded() -> ShadowMemory {
        ShadowMemory { tracks_superseded: true, ..ShadowMemory::default() }
    }

    /// Drops all records.
    pub fn clear(&mut self) {
        self.pages.iter_mut().for_each(Page::clear);
    }

    /// Drops the records of a range of bytes, and of the rest of the dwords at its ends.
    pub fn forget(&mut self, bytes: &Range<u64>) {
        let size = BLOCK * PAGE as u64;
        for number in bytes.start / size..bytes.end.div_ceil(size) {
            let Some(&page) = self.index.get(&number) else { continue };
            let start = bytes.start.saturating_sub(number * size) / BLOCK;
            let end = bytes.end.saturating_sub(number * size).div_ceil(BLOCK).min(PAGE as u64);
            for at in start..end {
                self.pages[page].forget(at as usize, number * size + at * BLOCK, bytes);
            }
        }
    }

    /// Returns the index of a page.
    #[inline]
    fn page(&mut self, page: u64) -> usize {
        match self.recent[slot(page)] {
            (recent, at) if recent == page => at,
            _ => self.find_or_insert(page),
        }
    }

    #[inline(never)]
    fn find_or_insert(&mut self, page: u64) -> usize {
        let pages = &mut self.pages;
        let at = *self.index.entry(page).or_insert_with(|| {
            pages.push(Page::new());
            pages.len() - 1
        });
        self.recent[slot(page)] = (page, at);
        at
    }

    /// Returns the cell of the dword at an offset.
    pub fn cell(&self, offset: u64) -> Cell {
        let number = offset / BLOCK;
        let page = self.index.get(&(number / PAGE as u64)).map(|&at| &self.pages[at]);
        page.map_or_else(Cell::default, |page| page.dword(number as usize % PAGE, offset % BLOCK))
    }

    /// Records an access to whole blocks that no other wave has accessed, the most frequent case in global
    /// memory. Returns false otherwise; [`ShadowMemory::access`] then records the access again.
    #[inline(always)]
    pub fn record_exclusive(&mut self, a: &Access, me: Record) -> bool {
        let (len, stride) = (a.len_bytes(), a.stride);
        if (a.address | len) & (BLOCK - 1) != 0 || !stride.is_power_of_two() || a.lane.is_none() {
            return false;
        }
        let mut last =
            LastAccess::new(&Record { lane: a.lane.unwrap_or_default(), lane_bytes: stride, ..me });
        let lanes = BLOCK as u32 >> stride.trailing_zeros();
        let (mut number, end) = (a.address / BLOCK, (a.address + len) / BLOCK);
        while number < end {
            let page = self.page(number / PAGE as u64);
            let from = number as usize % PAGE;
            let to = PAGE.min(from + (end - number) as usize);
            if !self.pages[page].record_exclusive((from, to), me.wave, &mut last, lanes, a.write) {
                return false;
            }
            number += (to - from) as u64;
        }
        true
    }

    /// Records an access to exactly the bytes of one cell, if it races with none. Otherwise returns false and
    /// records nothing; [`ShadowMemory::access`] then finds what it races with.
    #[inline(always)]
    fn record_in_cell(&mut self, a: &Access, me: Record, ordered: impl Fn(&Record) -> bool) -> bool {
        let len = a.len_bytes();
        if !len.is_power_of_two() || a.address & (len - 1) != 0 {
            return false;
        }
        let number = a.address / BLOCK;
        let page = self.page(number / PAGE as u64);
        let node = self.pages[page].node(number as usize % PAGE);
        let Some(cell) = cell_of(node, a.address, len) else { return false };
        let me = if len == DWORD {
            Record { mask: ALL_BYTES, lane: a.lane.unwrap_or(u8::MAX), ..me }
        } else {
            whole_record(a, me, 0)
        };
        let mut list = self.tracks_superseded.then_some(&mut self.superseded);
        let mut superseded = |reads| {
            if let Some(list) = &mut list {
                list.extend((a.address..a.address + len).step_by(DWORD as usize).map(|dword| (dword, reads)));
            }
        };
        if cell.record_if_ordered(&me, a.write, &ordered, &mut superseded) {
            return true;
        }
        if cell.find_race(&me, a.write, &ordered).is_some() {
            return false;
        }
        cell.record(me, a.write, &ordered, superseded);
        true
    }

    /// Records an atomic's access to a dword, its load and its store, if only atomics have accessed the dword before, which
    /// race with none. Otherwise returns false and records nothing. `load` is the load.
    #[inline(always)]
    pub fn record_atomic(&mut self, load: &Access, me: Record, ordered: impl Fn(&Record) -> bool) -> bool {
        if load.size_bytes as u64 != DWORD || load.lanes != 1 || load.address & (DWORD - 1) != 0 {
            return false;
        }
        let number = load.address / BLOCK;
        let page = self.page(number / PAGE as u64);
        let node = self.pages[page].node(number as usize % PAGE);
        let Some(cell) = cell_of(node, load.address, DWORD) else { return false };
        let me = Record { mask: ALL_BYTES, lane: load.lane.unwrap_or(u8::MAX), ..me };
        cell.record_atomic(&me, &ordered, self.tracks_superseded)
    }

    /// Records an access to memory and appends what it races with to `hits`, as [`ShadowMemory::access`] does, but first
    /// tries to record it in one cell.
    #[inline(always)]
    pub fn compare(
        &mut self,
        a: &Access,
        me: Record,
        ordered: impl Fn(&Record) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        if !self.record_in_cell(a, me, &ordered) {
            self.access(a.address, a, me, ordered, hits);
        }
    }

    /// Records an access at `offset`. `me` is its record without bytes and lane; `ordered` returns whether a
    /// record happened before. Races are appended to `hits`.
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
            let superseded = self.tracks_superseded.then_some(&mut self.superseded);
            Visit { offset, end, a, me, ordered: &ordered, hits, superseded }.visit_node(node, 0, start);
            start += BLOCK;
        }
    }
}

/// Returns the cell of a node that covers exactly these bytes, if there is one.
#[inline(always)]
fn cell_of(mut node: &mut Node, address: u64, len: u64) -> Option<&mut Cell> {
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
