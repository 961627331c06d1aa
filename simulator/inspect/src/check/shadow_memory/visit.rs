//! The walk of an access through the shadow cells of its bytes.

use super::cell::{Cell, Record};
use super::{ALL_BYTES, DWORD, Hit, KEEP_SPLIT, Node, PART_BITS, Parts, SIZES, Superseded};
use wavesim_machine::exec::watch::Access;

/// An access and its context during the walk through the nodes that it touches.
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
    /// Compares and records the portion of the access that falls into a node, which begins at `start`.
    #[inline]
    pub fn visit_node(&mut self, mut node: &mut Node, mut level: usize, mut start: u64) {
        loop {
            let size = SIZES[level];
            let whole = start >= self.offset && self.end - start >= size;
            let stride = self.a.stride as u64;
            let lanes_fit = stride == 0
                || stride.is_power_of_two() && (start.wrapping_sub(self.offset)) & (stride - 1) == 0;
            if whole && lanes_fit && self.record_whole(node, level, start) {
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
                            self.visit_part(&mut nodes[k as usize], level + 1, start + (k << bits));
                        }
                        Parts::Dwords(cells) => self.visit_dword(&mut cells[k as usize], start + (k << bits)),
                    }
                }
                return;
            }
            start += first << bits;
            match parts {
                Parts::None => return,
                Parts::Nodes(nodes) => node = &mut nodes[first as usize],
                Parts::Dwords(cells) => return self.visit_dword(&mut cells[first as usize], start),
            }
            level += 1;
        }
    }

    #[inline(never)]
    fn visit_part(&mut self, node: &mut Node, level: usize, start: u64) {
        self.visit_node(node, level, start);
    }

    fn visit_dword(&mut self, cell: &mut Cell, dword: u64) {
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
        if mask == ALL_BYTES && cell.record_if_ordered(&me, a.write, self.ordered, one) {
            return;
        }
        if let Some((other, was_write)) = cell.find_race(&me, a.write, self.ordered) {
            let one = a.each().nth(nth as usize).unwrap_or(*a);
            self.hits.push((one, other, was_write));
        }
        let superseded = &mut self.superseded;
        cell.record(me, a.write, self.ordered, |reads| {
            if let Some(list) = superseded {
                list.push((dword, reads));
            }
        });
    }

    /// Handles an access to all of a node. Returns false and records nothing if the parts have cells of their
    /// own or if one races; each part is then compared.
    #[inline]
    fn record_whole(&mut self, node: &mut Node, level: usize, start: u64) -> bool {
        let a = self.a;
        let me = whole_record(a, self.me, start - self.offset);
        if node.split {
            return a.write && node.splits < KEEP_SPLIT && self.join(node, level, start, me);
        }
        let superseded = &mut self.superseded;
        let all = |reads| {
            if let Some(list) = superseded {
                list.extend((start..start + SIZES[level]).step_by(4).map(|dword| (dword, reads)));
            }
        };
        if node.cell.record_if_ordered(&me, a.write, self.ordered, all) {
            return true;
        }
        if node.cell.find_race(&me, a.write, self.ordered).is_some() {
            return false;
        }
        let superseded = &mut self.superseded;
        node.cell.record(me, a.write, self.ordered, |reads| {
            if let Some(list) = superseded {
                list.extend((start..start + SIZES[level]).step_by(4).map(|dword| (dword, reads)));
            }
        });
        true
    }

    /// Joins the parts of a node at a store to all of it, if every recorded access happened before the store.
    fn join(&mut self, node: &mut Node, level: usize, start: u64, me: Record) -> bool {
        let before =
            |r: &Record| r.wave == 0 || if r.wave == me.wave { !r.outlasts(&me) } else { (self.ordered)(r) };
        if !node.all_cells(level, start, &mut |cell, _, _| cell.writes.iter().chain(&cell.reads).all(before))
        {
            return false;
        }
        if let Some(list) = &mut self.superseded {
            node.all_cells(level, start, &mut |cell, at, size| {
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

/// Returns an access's record for all dwords of a node that begins at one of its bytes.
#[inline(always)]
pub(super) fn whole_record(a: &Access, me: Record, byte: u64) -> Record {
    let lane = a.lane.map_or(u8::MAX, |lane| lane + lane_of(a, byte));
    let lane_bytes = if a.lane.is_some() { a.stride } else { 0 };
    Record { mask: ALL_BYTES, lane, lane_bytes, ..me }
}

/// Returns the lane, relative to the access's first, to which a byte belongs.
#[inline(always)]
pub(super) fn lane_of(a: &Access, byte: u64) -> u8 {
    match a.stride {
        0 => 0,
        // Avoids the division.
        stride if stride.is_power_of_two() => (byte >> stride.trailing_zeros()) as u8,
        stride => (byte / stride as u64) as u8,
    }
}
