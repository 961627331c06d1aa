//! Searches backward through a run: the last write of a register, the last change of a value, the last stop.

use super::breakpoint::{Access, Breakpoint, Watched, Watchpoint};
use super::expr::{Focus, Scope};
use super::gate::Gate;
use super::stop::Stop;
use super::timeline::Timeline;
use wavesim_machine::exec::effects::{Effects, File};
use wavesim_machine::exec::watch::Place;

/// What [`Timeline::find_back`] looks for. It replays steps in the order they were taken.
pub trait Search {
    /// Where to look. Between these places, [`Search::before`] and [`Search::after`] stand around many steps.
    fn gate(&self) -> &Gate;

    /// Whether [`Search::after`] looks at the accesses to memory.
    fn records(&self) -> bool {
        false
    }

    /// Called before one step or more; true if the first one is a match.
    fn before(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }

    /// Called after them; true if the last one is a match.
    fn after(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }
}

/// Finds the last write of a register.
pub struct WriteSearch<'e> {
    /// What each instruction of the program writes.
    pub effects: &'e [Effects],
    /// The workgroup of the wave.
    pub workgroup: [u32; 3],
    /// The wave whose register it is.
    pub wave: usize,
    /// The register file.
    pub file: File,
    /// Number in the file.
    pub register: u16,
    /// Of a VGPR the only lane that counts; `None`: any.
    pub lane: Option<u32>,
    /// The instructions that write it.
    pub gate: Gate,
}

impl<'e> WriteSearch<'e> {
    /// The last write of a register of a wave in the workgroup that runs.
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
        let gate = Gate::new(effects, writes, std::iter::empty());
        WriteSearch { effects, workgroup, wave, file, register, lane, gate }
    }
}

impl Search for WriteSearch<'_> {
    fn gate(&self) -> &Gate {
        &self.gate
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

/// Finds the last step that wrote some of the bytes of a range of memory, and in which lane.
pub struct StoreSearch {
    /// Which memory.
    pub place: Place,
    /// The first byte.
    pub address: u64,
    /// Number of bytes.
    pub len: u64,
    /// LDS and scratch belong to a workgroup.
    pub workgroup: Option<[u32; 3]>,
    /// Scratch belongs to a wave and a lane.
    pub owner: Option<(usize, u32)>,
    /// The lane of the last match.
    pub lane: Option<u8>,
    /// Stops after accesses to the bytes.
    pub gate: Gate,
    /// Whether the steps are of another workgroup.
    foreign: bool,
}

impl StoreSearch {
    /// The last store to `len` bytes at an address of the workgroup that runs, in scratch of a wave and a lane.
    pub fn new(
        timeline: &Timeline<'_>,
        effects: &[Effects],
        (place, address, len): (Place, u64, u64),
        owner: Option<(usize, u32)>,
    ) -> StoreSearch {
        let workgroup = (place != Place::Global).then(|| timeline.workgroup());
        let gate = Gate::memory(effects, place, address, len);
        StoreSearch { place, address, len, workgroup, owner, lane: None, gate, foreign: false }
    }
}

impl Search for StoreSearch {
    fn gate(&self) -> &Gate {
        &self.gate
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
        // Of several lanes, the last one's store remains.
        let Some(hit) = hit.last() else { return false };
        self.lane = hit.lane;
        true
    }
}

/// Finds the last change of a value, or the last stop of a watchpoint.
pub struct ChangeSearch {
    /// What is compared, and when it stops.
    pub watch: Watchpoint,
    read: bool,
    /// The workgroup that runs, by its number.
    group: u64,
    /// The only one whose steps count.
    only: Option<u64>,
    gate: Gate,
}

impl ChangeSearch {
    /// Stops as a watchpoint does.
    pub fn of(watch: Watchpoint, effects: &[Effects]) -> ChangeSearch {
        let gate = Gate::new(effects, |_| false, std::iter::once(&watch.what));
        ChangeSearch { watch, read: false, group: 0, only: None, gate }
    }

    /// The last change of a value; in LDS, by the workgroup that runs.
    pub fn value(what: Watched, timeline: &Timeline<'_>, effects: &[Effects]) -> ChangeSearch {
        let only = (!matches!(what, Watched::Memory { .. })).then(|| timeline.position().0);
        let watch = Watchpoint {
            number: 0,
            text: String::new(),
            what,
            last: Vec::new(),
            access: Access::Change,
            condition: None,
            hits: 0,
            count: None,
        };
        ChangeSearch { only, ..ChangeSearch::of(watch, effects) }
    }

    fn start(&mut self, timeline: &Timeline<'_>, wave: usize, effects: &[Effects]) {
        self.watch.last = self.watch.what.content(timeline);
        self.group = timeline.position().0;
        self.read = false;
        if self.watch.access != Access::Change {
            let w = timeline.wave(wave);
            let at = timeline.prepared.program.inst_at(w.pc);
            self.read = at.is_some_and(|at| self.watch.what.is_read_by(&effects[at], wave, w));
        }
    }
}

impl Search for ChangeSearch {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        self.start(timeline, wave, &[]);
        false
    }

    fn after(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        if self.only.is_some_and(|only| only != self.group) {
            return false;
        }
        let changed = self.watch.what.has_changed(timeline, self.group, &self.watch.last);
        let read = self.read || self.watch.what.is_read_in(timeline.accesses());
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
    /// What each instruction of the program reads.
    pub effects: &'s [Effects],
    /// Why the last match is one.
    pub reason: Option<Stop>,
    /// Where breakpoints are, and what may reach watched values.
    pub gate: Gate,
}

impl Search for StopSearch<'_> {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn records(&self) -> bool {
        self.changes.iter().any(|c| c.watch.access != Access::Change)
    }

    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        for change in &mut self.changes {
            change.start(timeline, wave, self.effects);
        }
        let focus = Focus { wave, lane: self.lane };
        let hit =
            self.breakpoints.iter().find(|b| b.message.is_none() && b.hit(timeline, focus).unwrap_or(true));
        let Some(b) = hit else { return false };
        let (number, place, temporary) = (b.number, b.place.clone(), b.temporary);
        self.reason = Some(Stop::Breakpoint { number, place, temporary });
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
