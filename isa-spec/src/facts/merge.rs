//! Merges touches into the fewest equivalent facts.

use super::walk::LaneOf;
use super::{Condition, Lanes, Number, Touch, What};
use crate::tables::Role;
use std::collections::{BTreeMap, BTreeSet};

/// Everything about a touch but its lanes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    write: bool,
    what: What,
    bits: u128,
    when: Vec<Condition>,
    always: bool,
    /// The touch happens while another lane is active.
    under: bool,
}

/// Lanes of a touch, by how they come to be touched.
#[derive(Debug, Default)]
struct SeenLanes {
    once: bool,
    own: bool,
    lowest: bool,
    any: bool,
    selected: BTreeSet<Role>,
    /// Numbered lanes, whatever EXEC is.
    numbered: u64,
    /// Numbered lanes if they are active.
    active: u64,
    /// Lanes where one of them being active is enough.
    under: u64,
}

/// Conditional touches that keep their conditions. Those of a body that has more are possible, whatever the
/// instruction is.
pub const MOST_CONDITIONAL: usize = 1000;

/// Touches as they come.
#[derive(Debug, Default)]
pub struct Seen {
    touches: BTreeMap<Key, SeenLanes>,
    conditional: usize,
}

impl Seen {
    /// `lane`: a lane's number and whether it is touched only if it is active, or another lane. `under`: the
    /// lane that is active here.
    #[allow(clippy::too_many_arguments)]
    pub fn add(
        &mut self,
        write: bool,
        what: What,
        bits: u128,
        when: Vec<Condition>,
        always: bool,
        lane: Result<(u32, bool), LaneOf>,
        under: Option<u64>,
    ) {
        let under = under.filter(|_| lane.is_err());
        let mut key = Key { write, what, bits, when, always, under: under.is_some() };
        if !key.when.is_empty() && !self.touches.contains_key(&key) {
            if self.conditional >= MOST_CONDITIONAL {
                key = Key { when: Vec::new(), always: false, ..key };
            } else {
                self.conditional += 1;
            }
        }
        let lanes = self.touches.entry(key).or_default();
        lanes.under |= under.unwrap_or(0);
        match lane {
            Ok((n, true)) => lanes.active |= 1 << (n & 63),
            Ok((n, false)) => lanes.numbered |= 1 << (n & 63),
            Err(LaneOf::Once) => lanes.once = true,
            Err(LaneOf::Own) => lanes.own = true,
            Err(LaneOf::Lowest) => lanes.lowest = true,
            Err(LaneOf::Selected(role)) => {
                lanes.selected.insert(role);
            }
            Err(LaneOf::Any | LaneOf::Number(_)) => lanes.any = true,
        }
    }
}

impl SeenLanes {
    fn list(&self) -> Vec<Lanes> {
        let mut out: Vec<Lanes> = self.selected.iter().map(|role| Lanes::Selected(*role)).collect();
        let mut push = |on: bool, lanes| out.extend(on.then_some(lanes));
        push(self.once, Lanes::Once);
        push(self.own, Lanes::Own);
        push(self.active != 0, Lanes::Active);
        push(self.lowest, Lanes::LowestActive);
        push(self.any, Lanes::Any);
        match self.numbered.count_ones() {
            0 => {}
            1 => push(true, Lanes::Lane(self.numbered.trailing_zeros())),
            _ => push(true, Lanes::All),
        }
        out
    }
}

/// Joins what differs in bits, in the side of a condition, or in consecutive numbers only, and drops what
/// another covers.
pub fn merge(seen: Seen, wave_size: u32) -> Vec<Touch> {
    let mut list = Vec::new();
    for (key, lanes) in seen.touches {
        let Key { write, what, bits, when, always, under } = key;
        // Under each lane is whenever one is active.
        let always = always && (!under || lanes.under == u64::MAX >> (64 - wave_size));
        for lanes in lanes.list() {
            list.push(Touch { write, what, bits, lanes, when: when.clone().into(), always });
        }
    }
    list = bits(list);
    while let Some(shorter) = sides(&list) {
        list = bits(shorter);
    }
    // The list is sorted, so that a touch that can cover another is adjacent to it.
    let concern = |t: &Touch| (t.write, t.what, t.lanes);
    let kept = list
        .chunk_by(|a, b| concern(a) == concern(b))
        .flat_map(|chunk| chunk.iter().filter(|t| !chunk.iter().any(|other| covers(other, t))).cloned());
    numbers(kept.collect())
}

/// Whether `other` covers `t`: the same registers and lanes, and everything that `t` states.
fn covers(other: &Touch, t: &Touch) -> bool {
    other != t
        && (other.always || !t.always)
        && t.bits & !other.bits == 0
        && other.when.iter().all(|c| t.when.contains(c))
        && (other.when.len(), other.always, other.bits) != (t.when.len(), t.always, t.bits)
}

/// Joins what differs in bits only; in order but for the bits.
fn bits(list: Vec<Touch>) -> Vec<Touch> {
    let mut out: BTreeMap<Touch, u128> = BTreeMap::new();
    for touch in list {
        let bits = touch.bits;
        *out.entry(Touch { bits: 0, ..touch }).or_insert(0) |= bits;
    }
    out.into_iter().map(|(touch, bits)| Touch { bits, ..touch }).collect()
}

/// Two that differ in the side of one condition are one without it.
fn sides(list: &[Touch]) -> Option<Vec<Touch>> {
    for (at, a) in list.iter().enumerate() {
        for (k, condition) in a.when.iter().enumerate() {
            let mut when = a.when.to_vec();
            when[k] = Condition { not: !condition.not, ..*condition };
            when.sort();
            let other = Touch { bits: 0, when: when.into(), ..a.clone() };
            let found = list.binary_search_by(|t| Touch { bits: 0, ..t.clone() }.cmp(&other));
            let Some(twin) = found.ok().filter(|twin| list[*twin].bits == a.bits) else { continue };
            let mut out: Vec<Touch> = list
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != at && *i != twin)
                .map(|(_, t)| t.clone())
                .collect();
            let mut when = a.when.to_vec();
            when.remove(k);
            out.push(Touch { when: when.into(), ..a.clone() });
            return Some(out);
        }
    }
    None
}

/// Consecutive registers are one.
fn numbers(list: Vec<Touch>) -> Vec<Touch> {
    let mut out = Vec::new();
    let mut runs: BTreeMap<Touch, Vec<u32>> = BTreeMap::new();
    for touch in list {
        match first(touch.what) {
            Some(number) => {
                runs.entry(Touch { what: with(touch.what, 0, 1), ..touch }).or_default().push(number)
            }
            None => out.push(touch),
        }
    }
    for (touch, mut list) in runs {
        list.sort_unstable();
        for run in list.chunk_by(|a, b| a + 1 == *b) {
            out.push(Touch { what: with(touch.what, run[0], run.len() as u32), ..touch.clone() });
        }
    }
    out.sort();
    out
}

fn first(what: What) -> Option<u32> {
    match what {
        What::Vgpr(n) | What::Sgpr(n) => Some(n.first),
        What::Dwords { first, .. } => Some(first),
        _ => None,
    }
}

/// `what` with its registers counted from `first` on. The number for the case out of range moves along.
fn with(what: What, first: u32, count: u32) -> What {
    let moved = |n: Number| {
        let otherwise = n.otherwise.map(|o| o.wrapping_sub(n.first).wrapping_add(first));
        Number { first, count, otherwise, ..n }
    };
    match what {
        What::Vgpr(n) => What::Vgpr(moved(n)),
        What::Sgpr(n) => What::Sgpr(moved(n)),
        What::Dwords { role, .. } => What::Dwords { role, first, count },
        other => other,
    }
}
