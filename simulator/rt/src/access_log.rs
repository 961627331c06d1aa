//! The log of an observed instruction: its memory accesses, merged for consecutive lanes.

use super::patterns::{patterns_of, runs};
use super::place::Place;
use super::replaced::Replaced;
use isa_spec::pcode::builtins::Control;
use wavesim_state::LaneVec;

/// The access of one lane, or of several consecutive lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The memory; for FLAT accesses, the one that the address resolves to.
    pub place: Place,
    /// Global address, or offset in LDS or in the lane's scratch, of the first lane.
    pub address: u64,
    /// Size of one lane's access.
    pub size_bytes: u8,
    /// Number of lanes, beginning at `lane`.
    pub lanes: u8,
    /// Distance between the addresses of consecutive lanes: `size_bytes`, or 0 if they are uniform.
    pub stride: u8,
    /// The access is a store. An atomic has a load and a store.
    pub write: bool,
    /// The access is out of bounds: no data was transferred.
    pub outside: bool,
    /// The first lane; `None` for scalar memory.
    pub lane: Option<u8>,
}

impl Access {
    /// Returns the number of bytes from the first byte to the end of the last access.
    pub fn len_bytes(&self) -> u64 {
        self.size_bytes as u64 + self.stride as u64 * (self.lanes as u64 - 1)
    }

    /// Returns the accesses of the individual lanes.
    pub fn each(self) -> impl Iterator<Item = Access> {
        (0..self.lanes).map(move |k| Access {
            address: self.address.wrapping_add(k as u64 * self.stride as u64),
            lanes: 1,
            stride: 0,
            lane: self.lane.map(|lane| lane + k),
            ..self
        })
    }
}

/// The log of the running instruction.
#[derive(Debug, Default)]
pub struct Logs {
    /// Accesses in order.
    pub accesses: Vec<Access>,
    /// Loads of LDS that came before `accesses`.
    pub loads: LdsLoads,
    /// Control builtins that were called, with their first argument.
    pub calls: Vec<(Control, u32)>,
    /// The bytes that stores have replaced.
    pub replaced: Replaced,
}

impl Logs {
    /// Clears the log for the next instruction.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.accesses.clear();
        self.calls.clear();
        self.replaced.clear();
    }

    /// Converts the loads that were kept unconverted to logged accesses.
    #[inline]
    pub fn log_loads(&mut self) {
        if !self.loads.is_empty() {
            self.log_kept();
        }
    }

    #[cold]
    fn log_kept(&mut self) {
        let loads = std::mem::take(&mut self.loads);
        let after = std::mem::take(&mut self.accesses);
        self.accesses.extend(loads.accesses().flatten());
        self.accesses.extend(after);
    }
}

/// Loads of LDS by 32 lanes, all in bounds and aligned, kept unconverted because most need no further checks.
#[derive(Debug, Default)]
pub struct LdsLoads {
    what: Vec<LdsLoad>,
    /// Offsets of each load.
    offsets: Vec<LaneVec>,
}

/// A load of LDS by 32 lanes, without their offsets.
#[derive(Debug, Clone, Copy)]
pub(super) struct LdsLoad {
    /// Each lane loads at its offset plus each of the first `count` of these.
    pub plus: [u32; 2],
    pub count: u8,
    pub size_bytes: u8,
    /// The first lane.
    pub lane: u8,
}

impl LdsLoads {
    /// Number of loads.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.what.len()
    }

    /// Returns whether there are no loads.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.what.is_empty()
    }

    /// Removes all loads.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.what.clear();
        self.offsets.clear();
    }

    /// Appends a load.
    #[inline(always)]
    pub(super) fn push(&mut self, what: LdsLoad, offsets: &LaneVec) {
        self.what.push(what);
        self.offsets.push(*offsets);
    }

    /// Moves all loads of another list to the end of this one.
    #[inline(always)]
    pub fn append(&mut self, other: &mut LdsLoads) {
        for (what, offsets) in other.what.iter().zip(&other.offsets) {
            self.push(*what, offsets);
        }
        other.clear();
    }

    /// Returns the accesses of each load, as they would be logged.
    pub fn accesses(&self) -> impl Iterator<Item = Vec<Access>> {
        self.what.iter().zip(&self.offsets).map(|(what, offsets)| {
            let LdsLoad { plus, count, size_bytes, lane } = *what;
            let any = Access { size_bytes, lane: Some(lane), ..IN_LDS };
            let mut log = Vec::new();
            for plus in plus.into_iter().take(count as usize) {
                for_runs(any, offsets, plus, |run| append(&mut log, run));
            }
            log
        })
    }
}

/// The LDS load of a single lane.
pub(super) const IN_LDS: Access = Access {
    place: Place::Lds,
    address: 0,
    size_bytes: 4,
    lanes: 1,
    stride: 0,
    write: false,
    outside: false,
    lane: None,
};

/// Calls `f` with the LDS accesses of 32 lanes at their offsets plus `plus`, merging lanes with a common
/// stride.
pub(super) fn for_runs(any: Access, offsets: &LaneVec, plus: u32, mut f: impl FnMut(Access)) {
    let (runs, count) = runs(offsets, patterns_of(offsets, any.size_bytes as u32));
    let first = any.lane.unwrap_or_default();
    let address = |lane: u8| offsets.0[lane as usize % 32] as u64 + plus as u64;
    let one = |lane: u8| Access { address: address(lane), lane: Some(first + lane), ..any };
    for run in &runs[..count] {
        match run.stride {
            Some(stride) => f(Access { lanes: run.lanes, stride, ..one(run.first) }),
            None => (run.first..run.first + run.lanes).for_each(|lane| f(one(lane))),
        }
    }
}

/// Appends an access to a log, or merges it with the last one, or with the one before if each lane makes two
/// accesses.
pub(super) fn append(log: &mut Vec<Access>, next: Access) {
    if next.lanes >= 16 {
        return log.push(next);
    }
    if let [.., last] = &mut log[..]
        && last.absorbs(&next)
    {
        return;
    }
    // A store between two loads belongs to an atomic, whose accesses stay in order.
    if let [.., before, last] = &mut log[..]
        && last.write == next.write
        && last.lanes <= before.lanes
        && before.absorbs(&next)
    {
        return;
    }
    log.push(next);
}

impl Access {
    /// Merges the access of the next lane or lanes into this one if they continue its stride, or are uniform
    /// with it.
    #[inline(always)]
    fn absorbs(&mut self, next: &Access) -> bool {
        let lane = self.lane.map(|lane| lane + self.lanes);
        let same = (self.place, self.size_bytes, self.write, self.outside, lane)
            == (next.place, next.size_bytes, next.write, next.outside, next.lane);
        // Each lane has its own scratch, and accesses outside a buffer's range transfer nothing.
        if !same || lane.is_none() || matches!(self.place, Place::Scratch | Place::Nowhere) {
            return false;
        }
        let distance = next.address.wrapping_sub(self.address);
        // After a single lane, the next one determines the stride.
        let stride = match (self.lanes, next.lanes) {
            (1, 1) if distance == 0 || distance == self.size_bytes as u64 => distance as u8,
            (1, _) => next.stride,
            (_, 1) => self.stride,
            _ if self.stride == next.stride => self.stride,
            _ => return false,
        };
        if distance != self.lanes as u64 * stride as u64 {
            return false;
        }
        self.stride = stride;
        self.lanes += next.lanes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kept loads cover each lane exactly once, and precede logged accesses.
    #[test]
    fn loads_are_kept_whole() {
        let offsets = LaneVec(std::array::from_fn(|l| if l < 16 { 64 } else { 4 * l as u32 }));
        let mut logs = Logs::default();
        logs.loads.push(LdsLoad { plus: [0, 128], count: 2, size_bytes: 4, lane: 32 }, &offsets);
        let stored = Access { write: true, lane: Some(3), ..IN_LDS };
        logs.accesses.push(stored);
        logs.log_loads();
        assert!(logs.loads.is_empty());
        assert_eq!(logs.accesses.pop(), Some(stored));
        let each: Vec<_> = logs.accesses.iter().flat_map(|a| a.each()).map(|a| (a.lane, a.address)).collect();
        let at = |plus| (0..32).map(move |l| (Some(32 + l as u8), (offsets.0[l] + plus) as u64));
        let mut expected: Vec<_> = at(0).chain(at(128)).collect();
        let mut found = each.clone();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        assert!(logs.accesses.len() < 8, "{:?}", logs.accesses);
    }
}
