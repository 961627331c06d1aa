//! How an access is compared with the cells of its bytes.

use super::cell::{Cell, Record};
use super::{ALL_BYTES, DWORD, Hit, Node, OFTEN, PART_BITS, Parts, SIZES, Superseded};
use wavesim_machine::exec::watch::Access;

/// An access on its way through the nodes that it touches.
pub(super) struct Visit<'v, F> {
    pub offset: u64,
    pub end: u64,
    pub a: &'v Access,
    pub me: Record,
    pub ordered: &'v F,
    pub hits: &'v mut Vec<Hit>,
    pub superseded: Option<&'v mut Vec<Superseded>>,
}

impl<F: Fn(&Record) -> bool> Visit<'_, F> {
    /// Compares and records the part of the access that is in a node, which begins at `start`.
    #[inline]
    pub fn node(&mut self, mut node: &mut Node, mut level: usize, mut start: u64) {
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
pub(super) fn of_whole(a: &Access, me: Record, byte: u64) -> Record {
    let lane = a.lane.map_or(u8::MAX, |lane| lane + lane_of(a, byte));
    let lane_bytes = if a.lane.is_some() { a.stride } else { 0 };
    Record { mask: ALL_BYTES, lane, lane_bytes, ..me }
}

/// Which of the access's lanes a byte belongs to.
#[inline(always)]
pub(super) fn lane_of(a: &Access, byte: u64) -> u8 {
    match a.stride {
        0 => 0,
        // Without a division.
        stride if stride.is_power_of_two() => (byte >> stride.trailing_zeros()) as u8,
        stride => (byte / stride as u64) as u8,
    }
}
