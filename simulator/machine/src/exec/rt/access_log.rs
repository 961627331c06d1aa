//! What an observed instruction did: its accesses to memory, those of consecutive lanes together.

use super::patterns::{patterns_of, runs};
use super::replaced::Replaced;
use crate::state::LaneVec;
use isa_spec::pcode::builtins::Control;

/// Which memory an access reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Memory of the device, at its address.
    Global,
    /// Memory of the workgroup.
    Lds,
    /// The lane's private memory.
    Scratch,
    /// A buffer access beyond the descriptor's range, which does nothing.
    Nowhere,
}

impl Place {
    /// As in messages.
    pub fn name(self) -> &'static str {
        match self {
            Place::Global => "global memory",
            Place::Lds => "LDS",
            Place::Scratch => "scratch",
            Place::Nowhere => "out of the buffer's range",
        }
    }
}

/// One lane's access, or that of several consecutive lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Which memory; FLAT accesses have the one that their address leads to.
    pub place: Place,
    /// Global address, or offset in LDS or in the lane's scratch; the first lane's.
    pub address: u64,
    /// Of one lane.
    pub size_bytes: u8,
    /// Lanes from `lane` on that do the same.
    pub lanes: u8,
    /// From a lane's address to the next one's: `size_bytes`, or 0 where all have one address.
    pub stride: u8,
    /// A store. An atomic has a load and a store.
    pub write: bool,
    /// Outside of what there is: nothing was moved.
    pub outside: bool,
    /// `None` for scalar memory.
    pub lane: Option<u8>,
}

impl Access {
    /// Bytes from the first to after the last.
    pub fn len_bytes(&self) -> u64 {
        self.size_bytes as u64 + self.stride as u64 * (self.lanes as u64 - 1)
    }

    /// The lanes' accesses one by one.
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

/// What the running instruction did.
#[derive(Debug, Default)]
pub struct Logs {
    /// Accesses, in order.
    pub accesses: Vec<Access>,
    /// Loads of LDS that came before those.
    pub loads: LdsLoads,
    /// Control builtins that it called, with the first argument.
    pub calls: Vec<(Control, u32)>,
    /// What its stores have replaced.
    pub replaced: Replaced,
}

impl Logs {
    /// Forgets the instruction.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.accesses.clear();
        self.calls.clear();
        self.replaced.clear();
    }

    /// Puts the loads that were only kept among the accesses.
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

/// Loads of LDS by 32 lanes, all of them inside and aligned, as they are: most need no closer look.
#[derive(Debug, Default)]
pub struct LdsLoads {
    what: Vec<LdsLoad>,
    /// Of each.
    offsets: Vec<LaneVec>,
}

/// A load of LDS by 32 lanes, but for their offsets.
#[derive(Debug, Clone, Copy)]
pub(super) struct LdsLoad {
    /// Each lane loads at its offset plus this, `count` times.
    pub plus: [u32; 2],
    pub count: u8,
    pub size_bytes: u8,
    /// The first lane.
    pub lane: u8,
}

impl LdsLoads {
    /// How many.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.what.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.what.is_empty()
    }

    /// Forgets them.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.what.clear();
        self.offsets.clear();
    }

    /// Adds one.
    #[inline(always)]
    pub(super) fn push(&mut self, what: LdsLoad, offsets: &LaneVec) {
        self.what.push(what);
        self.offsets.push(*offsets);
    }

    /// Moves all of them here from another list.
    #[inline(always)]
    pub fn append(&mut self, other: &mut LdsLoads) {
        for (what, offsets) in other.what.iter().zip(&other.offsets) {
            self.push(*what, offsets);
        }
        other.clear();
    }

    /// The accesses of each, as they are logged.
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

/// A load of one lane in LDS.
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

/// Accesses to LDS of 32 lanes, at their offsets plus `plus`: those of lanes with one stride together.
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

/// Appends an access to a log, or joins it to the last one, or to the one before where a lane does two at a time.
pub(super) fn append(log: &mut Vec<Access>, next: Access) {
    if next.lanes >= 16 {
        return log.push(next);
    }
    if let [.., last] = &mut log[..]
        && last.absorbs(&next)
    {
        return;
    }
    // A store between two loads is an atomic's: those stay in their order.
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
    /// Joins the next lane's or lanes' access to this if it goes on where this ends, or is at the same address as all of this.
    #[inline(always)]
    fn absorbs(&mut self, next: &Access) -> bool {
        let lane = self.lane.map(|lane| lane + self.lanes);
        let same = (self.place, self.size_bytes, self.write, self.outside, lane)
            == (next.place, next.size_bytes, next.write, next.outside, next.lane);
        // A lane's scratch is its own, and what is not done is not described.
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

    /// What is only kept has the accesses of its lanes, each once, and goes before what is logged.
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
