//! Pages of shadow memory. Most blocks of global memory are accessed by one wave, and as a whole: those have only that.

use super::cell::{Cell, Record};
use super::{ALL_BYTES, Node};

/// Blocks of a page.
pub(super) const PAGE: usize = 64;

/// No wave's, or not known to be one's: the block has a node.
const MANY: u32 = u32::MAX;

/// Plain accesses of one wave to a whole block.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
struct Alone {
    /// The wave that all accesses are of. 0: there are none; or [`MANY`].
    wave: u32,
    store: Last,
    /// Since the store.
    load: Last,
}

/// The last access of a kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Last {
    /// 0: there is none.
    epoch: u32,
    pc: u32,
    /// The lane of the first byte, and from the eighth bit on the bytes of a lane.
    lanes: u32,
}

impl Last {
    /// An access of consecutive lanes, as `me` has it.
    #[inline(always)]
    pub fn new(me: &Record) -> Last {
        Last { epoch: me.epoch, pc: me.pc, lanes: me.lane as u32 | (me.lane_bytes as u32) << 8 }
    }

    fn record(self, wave: u32) -> Record {
        let Last { epoch, pc, lanes } = self;
        if epoch == 0 {
            return Record::default();
        }
        let (lane, lane_bytes) = (lanes as u8, (lanes >> 8) as u8);
        Record { wave, epoch, pc, mask: ALL_BYTES, atomic: false, lane, lane_bytes }
    }
}

/// Consecutive blocks.
pub(super) struct Page {
    alone: Box<[Alone]>,
    /// Made for the first block that needs one.
    nodes: Vec<Node>,
}

impl Page {
    /// Without accesses.
    pub fn new() -> Page {
        Page { alone: vec![Alone::default(); PAGE].into_boxed_slice(), nodes: Vec::new() }
    }

    /// Forgets all accesses.
    pub fn clear(&mut self) {
        self.alone.iter_mut().for_each(|block| block.wave = 0);
    }

    /// The node of a block, with what is known of it.
    #[inline(always)]
    pub fn node(&mut self, at: usize) -> &mut Node {
        if self.alone[at].wave != MANY {
            self.open(at);
        }
        &mut self.nodes[at]
    }

    #[inline(never)]
    fn open(&mut self, at: usize) {
        if self.nodes.is_empty() {
            self.nodes.resize_with(PAGE, Node::default);
        }
        let cell = self.alone_cell(at);
        self.alone[at].wave = MANY;
        self.nodes[at].cell = cell;
        self.nodes[at].split = false;
    }

    /// What is known of a block that has no node.
    fn alone_cell(&self, at: usize) -> Cell {
        let Alone { wave, store, load } = self.alone[at];
        if wave == 0 {
            return Cell::default();
        }
        let none = Record::default();
        Cell { writes: [store.record(wave), none], reads: [load.record(wave), none] }
    }

    /// The state of the dword at an offset in a block.
    pub fn dword(&self, at: usize, offset: u64) -> Cell {
        match self.alone[at].wave {
            MANY => self.nodes[at].dword(0, offset),
            _ => self.alone_cell(at).of_part(offset & !3, 4),
        }
    }

    /// Records an access of wave `me` to blocks `from..to`: `last` in the first of them, each with so many of its lanes. False if another wave
    /// has accessed one; what is recorded of the access then is to be recorded once more.
    #[inline(always)]
    pub fn is_alone(
        &mut self,
        (from, to): (usize, usize),
        me: u32,
        last: &mut Last,
        lanes: u32,
        write: bool,
    ) -> bool {
        let none = Last::default();
        let (store, load) = if write { (*last, none) } else { (none, *last) };
        let mut first = Alone { wave: me, store, load };
        let mut others = 0;
        for block in &mut self.alone[from..to] {
            if block.wave == 0 {
                *block = first;
            } else if block.wave != me {
                others += 1;
            } else if write {
                (block.store, block.load) = (first.store, none);
            } else {
                block.load = first.load;
            }
            // Of the one that is none, nobody reads them.
            first.store.lanes += lanes;
            first.load.lanes += lanes;
        }
        let before = *last;
        last.lanes += lanes * (to - from) as u32;
        others == 0 || self.is_alone_in_nodes((from, to), me, before, lanes, write)
    }

    /// As [`Page::is_alone`], of blocks that have nodes, whose accesses may all be of one wave.
    #[inline(never)]
    fn is_alone_in_nodes(
        &mut self,
        (from, to): (usize, usize),
        me: u32,
        mut last: Last,
        lanes: u32,
        write: bool,
    ) -> bool {
        for at in from..to {
            let block = &mut self.alone[at];
            if block.wave != me {
                if block.wave != MANY || !self.nodes[at].is_alone(last.record(me), write) {
                    return false;
                }
                // A load leaves what the node has.
                if write {
                    *block = Alone { wave: me, store: last, load: Last::default() };
                }
            }
            last.lanes += lanes;
        }
        true
    }
}
