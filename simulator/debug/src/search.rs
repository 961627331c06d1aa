//! Searches backward through a run: the last write of a register, the last change of a value, the last stop.

use super::breakpoint::{Breakpoint, Watched};
use super::expr::Focus;
use super::timeline::Timeline;
use wavesim_machine::exec::effects::{Effects, File};

/// What [`Timeline::find_back`] looks for. It replays steps in the order they were taken.
pub trait Search {
    /// Called before a step; true if the step is a match.
    fn before(&mut self, _machine: &Timeline<'_>, _wave: usize) -> bool {
        false
    }

    /// Called after the step; true if the step is a match.
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

/// Finds the last change of a value.
pub struct ChangeSearch {
    /// What is compared.
    pub what: Watched,
    /// The value before the step.
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

/// Finds the last breakpoint or watchpoint hit.
pub struct StopSearch<'s> {
    /// All breakpoints.
    pub breakpoints: &'s [Breakpoint],
    /// All watchpoints.
    pub changes: Vec<ChangeSearch>,
    /// The lane that conditions read.
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
