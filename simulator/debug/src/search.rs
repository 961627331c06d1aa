//! Searches backward through a run: the last write of a register, the last change of a value, the last stop.

use super::breakpoint::{Access, Breakpoint, Watched, Watchpoint};
use super::expr::{Focus, Scope};
use super::stop::Stop;
use super::stop_points::StopPoints;
use super::timeline::Timeline;
use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::exec::watch::Place;

/// A predicate over the steps of a run, for [`Timeline::find_back`], which replays steps in their original
/// order.
pub trait Search {
    /// Returns the stop points: [`Search::before`] and [`Search::after`] are called only around the runs
    /// between them.
    fn stop_points(&self) -> &StopPoints;

    /// Returns whether [`Search::after`] needs the memory accesses.
    fn records(&self) -> bool {
        false
    }

    /// Called before a run of one or more steps; returns whether the first one matches.
    fn before(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }

    /// Called after the run; returns whether the last step matches.
    fn after(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }
}

/// Finds the last write of a register.
pub struct WriteSearch<'e> {
    /// The effects of each instruction of the program.
    pub effects: &'e [Effects],
    /// The workgroup of the wave.
    pub workgroup: [u32; 3],
    /// The wave that owns the register.
    pub wave: usize,
    /// The register file.
    pub file: File,
    /// Number in the register file.
    pub register: u16,
    /// The only lane of a VGPR to consider; `None` for any lane.
    pub lane: Option<u32>,
    /// Stop points at the instructions that write the register.
    pub stop_points: StopPoints,
}

impl<'e> WriteSearch<'e> {
    /// Creates a search for the last write of a register by a wave of the running workgroup.
    pub fn new(
        effects: &'e [Effects],
        workgroup: [u32; 3],
        wave: usize,
        (file, register): (File, u16),
        lane: Option<u32>,
    ) -> WriteSearch<'e> {
        let writes = |at: usize| {
            effects[at].writes.iter().any(|used| {
                let named = (used.first..used.first + used.count).contains(&register);
                used.file == file && (named || used.relative.is_some())
            })
        };
        let stop_points = StopPoints::new(effects, writes, std::iter::empty());
        WriteSearch { effects, workgroup, wave, file, register, lane, stop_points }
    }
}

impl Search for WriteSearch<'_> {
    fn stop_points(&self) -> &StopPoints {
        &self.stop_points
    }

    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        if wave != self.wave || timeline.workgroup() != self.workgroup {
            return false;
        }
        let w = timeline.wave(wave);
        let Some(index) = timeline.prepared.program.inst_at(w.pc) else { return false };
        self.effects[index].writes.iter().any(|used| {
            let start = used.start(w);
            used.file == self.file
                && (start..start + used.count).contains(&self.register)
                && (self.file != File::Vgpr || self.lane.is_none_or(|l| used.lane_mask(w) >> l & 1 == 1))
        })
    }
}

/// Finds the last store to any byte of a range of memory, and its lane.
pub struct StoreSearch {
    /// The address space.
    pub place: Place,
    /// The first byte.
    pub address: u64,
    /// Number of bytes.
    pub len: u64,
    /// The owning workgroup, for LDS and scratch.
    pub workgroup: Option<[u32; 3]>,
    /// The owning wave and lane, for scratch.
    pub owner: Option<(usize, u32)>,
    /// The lane of the last match.
    pub lane: Option<u8>,
    /// Stop points after accesses to the bytes.
    pub stop_points: StopPoints,
    /// Whether the current steps belong to another workgroup.
    foreign: bool,
}

impl StoreSearch {
    /// Creates a search for the last store to `len` bytes at an address, in LDS of the running workgroup, or
    /// in scratch of a wave and lane.
    pub fn new(
        timeline: &Timeline<'_>,
        effects: &[Effects],
        (place, address, len): (Place, u64, u64),
        owner: Option<(usize, u32)>,
    ) -> StoreSearch {
        let workgroup = (place != Place::Global).then(|| timeline.workgroup());
        let stop_points = StopPoints::memory(effects, place, address, len);
        StoreSearch { place, address, len, workgroup, owner, lane: None, stop_points, foreign: false }
    }
}

impl Search for StoreSearch {
    fn stop_points(&self) -> &StopPoints {
        &self.stop_points
    }

    fn records(&self) -> bool {
        true
    }

    fn before(&mut self, timeline: &Timeline<'_>, _wave: usize) -> bool {
        self.foreign = self.workgroup.is_some_and(|own| own != timeline.workgroup());
        false
    }

    fn after(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        if self.foreign {
            return false;
        }
        let stores = timeline.accesses().iter().filter(|a| a.write && !a.outside && a.place == self.place);
        let hit = stores.flat_map(|a| a.each()).filter(|a| {
            a.address < self.address + self.len
                && self.address < a.address + a.len_bytes()
                && self.owner.is_none_or(|(w, lane)| w == wave && a.lane == Some(lane as u8))
        });
        // If several lanes store, the last one's data remains.
        let Some(hit) = hit.last() else { return false };
        self.lane = hit.lane;
        true
    }
}

/// Finds the last change of a value, or the last hit of a watchpoint.
pub struct ChangeSearch {
    /// The watched value, and the condition for a stop.
    pub watch: Watchpoint,
    read: bool,
    /// Index of the running workgroup.
    group: u64,
    /// The only workgroup whose steps are considered.
    only: Option<u64>,
    stop_points: StopPoints,
}

impl ChangeSearch {
    /// Creates a search for the last hit of a watchpoint.
    pub fn of(watch: Watchpoint, effects: &[Effects]) -> ChangeSearch {
        let stop_points = StopPoints::new(effects, |_| false, std::iter::once(&watch.target));
        ChangeSearch { watch, read: false, group: 0, only: None, stop_points }
    }

    /// Creates a search for the last change of a value; in LDS, by the running workgroup.
    pub fn value(what: Watched, timeline: &Timeline<'_>, effects: &[Effects]) -> ChangeSearch {
        let only = (!matches!(what, Watched::Memory { .. })).then(|| timeline.position().0);
        let watch = Watchpoint {
            number: 0,
            text: String::new(),
            target: what,
            last: Vec::new(),
            access: Access::Change,
            condition: None,
            hits: 0,
            count: None,
        };
        ChangeSearch { only, ..ChangeSearch::of(watch, effects) }
    }

    fn start(&mut self, timeline: &Timeline<'_>, wave: usize, effects: &[Effects]) {
        self.watch.last = self.watch.target.read(timeline);
        self.group = timeline.position().0;
        self.read = false;
        if self.watch.access != Access::Change {
            let w = timeline.wave(wave);
            let at = timeline.prepared.program.inst_at(w.pc);
            self.read = at.is_some_and(|at| self.watch.target.is_read_by(&effects[at], wave, w));
        }
    }
}

impl Search for ChangeSearch {
    fn stop_points(&self) -> &StopPoints {
        &self.stop_points
    }

    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        self.start(timeline, wave, &[]);
        false
    }

    fn after(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        if self.only.is_some_and(|only| only != self.group) {
            return false;
        }
        let changed = self.watch.target.has_changed(timeline, self.group, &self.watch.last);
        let read = self.read || self.watch.target.is_read_in(timeline.accesses(), wave);
        let stops = match self.watch.access {
            Access::Change => changed,
            Access::Read => read,
            Access::Any => changed || read,
        };
        let scope = Scope::new(timeline, Focus { wave, lane: 0 });
        let condition = self.watch.condition.as_ref();
        stops && condition.is_none_or(|c| c.evaluate(&scope).is_ok_and(|v| v.truth()))
    }
}

/// Finds the last breakpoint or watchpoint hit.
pub struct StopSearch<'s> {
    /// All breakpoints.
    pub breakpoints: &'s [Breakpoint],
    /// All watchpoints.
    pub changes: Vec<ChangeSearch>,
    /// The lane that conditions read.
    pub lane: u32,
    /// The effects of each instruction of the program.
    pub effects: &'s [Effects],
    /// The reason for the last match.
    pub reason: Option<Stop>,
    /// Stop points at breakpoints, and at instructions that may access watched values.
    pub stop_points: StopPoints,
}

impl Search for StopSearch<'_> {
    fn stop_points(&self) -> &StopPoints {
        &self.stop_points
    }

    fn records(&self) -> bool {
        self.changes.iter().any(|c| c.watch.access != Access::Change)
    }

    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        for change in &mut self.changes {
            change.start(timeline, wave, self.effects);
        }
        let focus = Focus { wave, lane: self.lane };
        let hit = self
            .breakpoints
            .iter()
            .find(|b| b.message.is_none() && b.is_hit(timeline, focus).unwrap_or(true));
        let Some(b) = hit else { return false };
        let (number, location, temporary) = (b.number, b.location.clone(), b.temporary);
        self.reason = Some(Stop::Breakpoint { number, location, temporary });
        true
    }

    fn after(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        let mut hit = None;
        for change in &mut self.changes {
            if change.after(timeline, wave) && hit.is_none() {
                hit = Some(&change.watch);
            }
        }
        let Some(watch) = hit else { return false };
        let what = if watch.access == Access::Read { "was read" } else { "changed" };
        let (number, text) = (watch.number, watch.text.clone());
        self.reason = Some(Stop::Watchpoint { number, text, what, change: None });
        true
    }
}
