//! Searches backward through a run: the last write of a register, the last change of a value, the last stop.

use super::breakpoint::{Breakpoint, Watched};
use super::expr::Focus;
use super::timeline::Timeline;
use wavesim_machine::exec::effects::{Effects, File};

/// What [`Timeline::find_back`] looks for. Steps are shown in the order they were taken.
pub trait Search {
    /// A wave is about to take a step.
    fn before(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }

    /// It has taken it.
    fn after(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }
}

/// Looks for the last write of a register.
pub struct WriteSearch<'e> {
    pub effects: &'e [Effects],
    pub workgroup: [u32; 3],
    pub wave: usize,
    pub file: File,
    pub register: u16,
    pub lane: Option<u32>,
}

impl Search for WriteSearch<'_> {
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

/// Looks for the last change of something watched.
pub struct ChangeSearch {
    pub what: Watched,
    pub last: Vec<u8>,
}

impl Search for ChangeSearch {
    fn before(&mut self, timeline: &Timeline<'_>, _wave: usize) -> bool {
        self.last = self.what.content(timeline);
        false
    }

    fn after(&mut self, timeline: &Timeline<'_>, _wave: usize) -> bool {
        self.what.content(timeline) != self.last
    }
}

/// Looks for the last stop that going backwards would make.
pub struct StopSearch<'s> {
    pub breakpoints: &'s [Breakpoint],
    pub changes: Vec<ChangeSearch>,
    pub lane: u32,
}

impl Search for StopSearch<'_> {
    fn before(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        for change in &mut self.changes {
            change.before(timeline, wave);
        }
        let focus = Focus { wave, lane: self.lane };
        self.breakpoints.iter().any(|b| b.hit(timeline, focus).unwrap_or(true))
    }

    fn after(&mut self, timeline: &Timeline<'_>, wave: usize) -> bool {
        self.changes.iter_mut().any(|c| c.after(timeline, wave))
    }
}
