//! Pages of shadow memory. Most blocks of global memory are accessed by a single wave and as a whole; such a
//! block has a compact record and no node.

use super::cell::{Cell, Record};
use super::{ALL_BYTES, BLOCK, Node};
use std::ops::Range;

/// Blocks per page.
pub(super) const PAGE: usize = 64;

/// Marks a block as possibly accessed by several waves: it has a node.
const SHARED: u32 = u32::MAX;

/// Plain accesses of a single wave to a whole block.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
struct ExclusiveBlock {
    /// The only wave that has accessed the block; 0 if there is none, or [`SHARED`].
    wave: u32,
    store: LastAccess,
    /// The last load since the store.
    load: LastAccess,
}

/// The last load, or the last store.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastAccess {
    /// The epoch; 0 if there is no access.
    epoch: u32,
    pc: u32,
    /// The lane of the first byte; from bit 8 on, the bytes per lane.
    lanes: u32,
}

impl LastAccess {
    /// Returns the access of consecutive lanes that `me` records.
    #[inline(always)]
    pub fn new(me: &Record) -> LastAccess {
        LastAccess { epoch: me.epoch, pc: me.pc, lanes: me.lane as u32 | (me.lane_bytes as u32) << 8 }
    }

    fn record(self, wave: u32) -> Record {
        let LastAccess { epoch, pc, lanes } = self;
        if epoch == 0 {
            return Record::default();
        }
        let (lane, lane_bytes) = (lanes as u8, (lanes >> 8) as u8);
        Record { wave, epoch, pc, mask: ALL_BYTES, atomic: false, lane, lane_bytes }
    }
}

/// Consecutive blocks.
pub(super) struct Page {
    exclusive: Box<[ExclusiveBlock]>,
    /// Made for the first block that needs one.
    nodes: Vec<Node>,
}

impl Page {
    /// Creates a page without records.
    pub fn new() -> Page {
        Page { exclusive: vec![ExclusiveBlock::default(); PAGE].into_boxed_slice(), nodes: Vec::new() }
    }

    /// Drops all records.
    pub fn clear(&mut self) {
        self.exclusive.iter_mut().for_each(|block| block.wave = 0);
    }

    /// Drops the records of a range of bytes in a block, which starts at `start`.
    pub fn forget(&mut self, index: usize, start: u64, bytes: &Range<u64>) {
        if bytes.start <= start && start + BLOCK <= bytes.end {
            self.exclusive[index].wave = 0;
        } else if self.exclusive[index].wave != 0 {
            self.node(index).forget(0, start, bytes);
        }
    }

    /// Returns the node of a block, created from the compact record if necessary.
    #[inline(always)]
    pub fn node(&mut self, index: usize) -> &mut Node {
        if self.exclusive[index].wave != SHARED {
            self.create_node(index);
        }
        &mut self.nodes[index]
    }

    #[inline(never)]
    fn create_node(&mut self, index: usize) {
        if self.nodes.is_empty() {
            self.nodes.resize_with(PAGE, Node::default);
        }
        let cell = self.exclusive_cell(index);
        self.exclusive[index].wave = SHARED;
        self.nodes[index].cell = cell;
        self.nodes[index].split = false;
    }

    /// Returns the cell of a block that has no node.
    fn exclusive_cell(&self, index: usize) -> Cell {
        let ExclusiveBlock { wave, store, load } = self.exclusive[index];
        if wave == 0 {
            return Cell::default();
        }
        let none = Record::default();
        Cell { writes: [store.record(wave), none], reads: [load.record(wave), none] }
    }

    /// Returns the cell of the dword at an offset in a block.
    pub fn dword(&self, index: usize, offset: u64) -> Cell {
        match self.exclusive[index].wave {
            SHARED => self.nodes[index].dword(0, offset),
            _ => self.exclusive_cell(index).for_part(offset & !3, 4),
        }
    }

    /// Records an access of wave `me` to blocks `from..to`. `last` is the access's record in the first block;
    /// each block covers `lanes` lanes. Returns false if another wave has accessed one of the blocks; the
    /// access must then be recorded again.
    #[inline(always)]
    pub fn record_exclusive(
        &mut self,
        (from, to): (usize, usize),
        me: u32,
        last: &mut LastAccess,
        lanes: u32,
        write: bool,
    ) -> bool {
        let none = LastAccess::default();
        let (store, load) = if write { (*last, none) } else { (none, *last) };
        let mut first = ExclusiveBlock { wave: me, store, load };
        let mut others = 0;
        for block in &mut self.exclusive[from..to] {
            if block.wave == 0 {
                *block = first;
            } else if block.wave != me {
                others += 1;
            } else if write {
                (block.store, block.load) = (first.store, none);
            } else {
                block.load = first.load;
            }
            // The lanes of an empty record are never read.
            first.store.lanes += lanes;
            first.load.lanes += lanes;
        }
        let before = *last;
        last.lanes += lanes * (to - from) as u32;
        others == 0 || self.record_exclusive_in_nodes((from, to), me, before, lanes, write)
    }

    /// Does the work of [`Page::record_exclusive`] for blocks that have nodes, all of whose accesses may be
    /// of one wave.
    #[inline(never)]
    fn record_exclusive_in_nodes(
        &mut self,
        (from, to): (usize, usize),
        me: u32,
        mut last: LastAccess,
        lanes: u32,
        write: bool,
    ) -> bool {
        for at in from..to {
            let block = &mut self.exclusive[at];
            if block.wave != me {
                if block.wave != SHARED || !self.nodes[at].record_exclusive(last.record(me), write) {
                    return false;
                }
                // A load leaves the node's records in place.
                if write {
                    *block = ExclusiveBlock { wave: me, store: last, load: LastAccess::default() };
                }
            }
            last.lanes += lanes;
        }
        true
    }
}
