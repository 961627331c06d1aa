//! Merges recorded accesses into an equivalent, shorter list.

use super::walk::LaneOf;
use super::{Access, Condition, Lanes, RegisterRange, Resource};
use crate::tables::Role;
use std::collections::{BTreeMap, BTreeSet};

/// Everything about an access except its lanes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    write: bool,
    resource: Resource,
    bits: u128,
    conditions: Vec<Condition>,
    always: bool,
    /// The access happens on the condition that another lane is active.
    needs_active_lane: bool,
}

/// The lanes of an access, grouped by how the body selects them.
#[derive(Debug, Default)]
struct AccessedLanes {
    once: bool,
    own: bool,
    lowest: bool,
    any: bool,
    selected: BTreeSet<Role>,
    /// Numbered lanes, whatever EXEC is.
    numbered: u64,
    /// Numbered lanes, each accessed only if it is active.
    active: u64,
    /// Lanes each of which, if active, causes the access.
    causes: u64,
}

/// Upper bound on the conditional accesses of a body. Further ones lose their conditions and count as
/// possible for every instruction.
pub const MAX_CONDITIONAL: usize = 1000;

/// The accesses recorded so far.
#[derive(Debug, Default)]
pub struct AccessSet {
    accesses: BTreeMap<Key, AccessedLanes>,
    conditional: usize,
}

impl AccessSet {
    /// Adds an access. `lane` is a lane's number with whether the access requires that lane to be active, or
    /// another choice of lanes. `cause` is the lane that is known to be active.
    #[allow(clippy::too_many_arguments)]
    pub fn add(
        &mut self,
        write: bool,
        resource: Resource,
        bits: u128,
        conditions: Vec<Condition>,
        always: bool,
        lane: Result<(u32, bool), LaneOf>,
        cause: Option<u64>,
    ) {
        let cause = cause.filter(|_| lane.is_err());
        let mut key = Key { write, resource, bits, conditions, always, needs_active_lane: cause.is_some() };
        if !key.conditions.is_empty() && !self.accesses.contains_key(&key) {
            if self.conditional >= MAX_CONDITIONAL {
                key = Key { conditions: Vec::new(), always: false, ..key };
            } else {
                self.conditional += 1;
            }
        }
        let lanes = self.accesses.entry(key).or_default();
        lanes.causes |= cause.unwrap_or(0);
        match lane {
            Ok((n, true)) => lanes.active |= 1 << (n & 63),
            Ok((n, false)) => lanes.numbered |= 1 << (n & 63),
            Err(LaneOf::Once) => lanes.once = true,
            Err(LaneOf::Own) => lanes.own = true,
            Err(LaneOf::LowestActive) => lanes.lowest = true,
            Err(LaneOf::Selected(role)) => {
                lanes.selected.insert(role);
            }
            Err(LaneOf::Any | LaneOf::Number(_)) => lanes.any = true,
        }
    }
}

impl AccessedLanes {
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

/// Merges accesses that differ only in bits, in the outcome of one condition, or in consecutive register
/// numbers, and drops accesses that another one covers.
pub fn merge(set: AccessSet, wave_size: u32) -> Vec<Access> {
    let mut list = Vec::new();
    for (key, lanes) in set.accesses {
        let Key { write, resource, bits, conditions, always, needs_active_lane } = key;
        // The access is unconditional if each lane of the wave causes it: some lane is always active.
        let always = always && (!needs_active_lane || lanes.causes == u64::MAX >> (64 - wave_size));
        for lanes in lanes.list() {
            list.push(Access { write, resource, bits, lanes, conditions: conditions.clone().into(), always });
        }
    }
    list = merge_bits(list);
    while let Some(shorter) = merge_outcomes(&list) {
        list = merge_bits(shorter);
    }
    // The list is sorted: an access and those that can cover it are adjacent.
    let identity = |t: &Access| (t.write, t.resource, t.lanes);
    let remaining = list
        .chunk_by(|a, b| identity(a) == identity(b))
        .flat_map(|chunk| chunk.iter().filter(|t| !chunk.iter().any(|other| covers(other, t))).cloned());
    merge_consecutive(remaining.collect())
}

/// Whether `other` implies `t`, given that registers and lanes are the same.
fn covers(other: &Access, t: &Access) -> bool {
    other != t
        && (other.always || !t.always)
        && t.bits & !other.bits == 0
        && other.conditions.iter().all(|c| t.conditions.contains(c))
        && (other.conditions.len(), other.always, other.bits) != (t.conditions.len(), t.always, t.bits)
}

/// Merges accesses that differ in their bits only. The result is sorted, ignoring bits.
fn merge_bits(list: Vec<Access>) -> Vec<Access> {
    let mut out: BTreeMap<Access, u128> = BTreeMap::new();
    for access in list {
        let bits = access.bits;
        *out.entry(Access { bits: 0, ..access }).or_insert(0) |= bits;
    }
    out.into_iter().map(|(access, bits)| Access { bits, ..access }).collect()
}

/// Merges two accesses that differ in the outcome of one condition into one without that condition.
fn merge_outcomes(list: &[Access]) -> Option<Vec<Access>> {
    for (at, a) in list.iter().enumerate() {
        for (k, condition) in a.conditions.iter().enumerate() {
            let mut conditions = a.conditions.to_vec();
            conditions[k] = Condition { negated: !condition.negated, ..*condition };
            conditions.sort();
            let other = Access { bits: 0, conditions: conditions.into(), ..a.clone() };
            let found = list.binary_search_by(|t| Access { bits: 0, ..t.clone() }.cmp(&other));
            let Some(twin) = found.ok().filter(|twin| list[*twin].bits == a.bits) else { continue };
            let mut out: Vec<Access> = list
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != at && *i != twin)
                .map(|(_, t)| t.clone())
                .collect();
            let mut conditions = a.conditions.to_vec();
            conditions.remove(k);
            out.push(Access { conditions: conditions.into(), ..a.clone() });
            return Some(out);
        }
    }
    None
}

/// Merges accesses to consecutive registers.
fn merge_consecutive(list: Vec<Access>) -> Vec<Access> {
    let mut out = Vec::new();
    let mut runs: BTreeMap<Access, Vec<u32>> = BTreeMap::new();
    for access in list {
        match first_register(access.resource) {
            Some(number) => runs
                .entry(Access { resource: with_registers(access.resource, 0, 1), ..access })
                .or_default()
                .push(number),
            None => out.push(access),
        }
    }
    for (access, mut list) in runs {
        list.sort_unstable();
        for run in list.chunk_by(|a, b| a + 1 == *b) {
            out.push(Access {
                resource: with_registers(access.resource, run[0], run.len() as u32),
                ..access.clone()
            });
        }
    }
    out.sort();
    out
}

fn first_register(resource: Resource) -> Option<u32> {
    match resource {
        Resource::Vgpr(n) | Resource::Sgpr(n) => Some(n.first),
        Resource::Dwords { first, .. } => Some(first),
        _ => None,
    }
}

/// Returns `resource` with its registers starting at `first`. The number used when out of range shifts by the
/// same amount.
fn with_registers(resource: Resource, first: u32, count: u32) -> Resource {
    let shifted = |n: RegisterRange| {
        let fallback = n.fallback.map(|o| o.wrapping_sub(n.first).wrapping_add(first));
        RegisterRange { first, count, fallback, ..n }
    };
    match resource {
        Resource::Vgpr(n) => Resource::Vgpr(shifted(n)),
        Resource::Sgpr(n) => Resource::Sgpr(shifted(n)),
        Resource::Dwords { role, .. } => Resource::Dwords { role, first, count },
        other => other,
    }
}
