//! Queries of the journal: the wave that took each step, and the start times of workgroups.

use super::Timeline;

impl Timeline<'_> {
    /// Returns the number of next steps that are recorded as those of this wave, without an edit in between.
    pub(super) fn recorded(&self, wave: usize) -> Option<u64> {
        let at = self.log.partition_point(|l| l.1 <= self.time);
        let run = self.log.get(at).filter(|run| run.0 as usize == wave)?;
        self.edits.last().is_none_or(|e| e.0 <= self.time).then_some(run.1 - self.time)
    }

    /// Returns whether the next step repeats a recorded one.
    pub(super) fn is_replay(&self) -> bool {
        self.log.last().is_some_and(|last| last.1 > self.time)
    }

    /// Returns the last step before the current time that this wave took.
    pub fn last_step_of(&self, wave: usize) -> Option<u64> {
        let now = self.time;
        let at = self.log.partition_point(|l| l.1 < now);
        let runs = self.log.get(..=at.min(self.log.len().checked_sub(1)?))?;
        let last = runs.iter().rposition(|l| l.0 as usize == wave)?;
        let begin = if last == 0 { 0 } else { runs[last - 1].1 };
        if begin < now { Some(runs[last].1.min(now) - 1) } else { None }
    }

    /// Returns the wave that took the next step, if that step is recorded.
    pub(super) fn logged_wave(&self) -> Option<usize> {
        self.wave_of_step(self.time)
    }

    /// Returns the wave that took a step, if that step is recorded.
    pub fn wave_of_step(&self, time: u64) -> Option<usize> {
        let at = self.log.partition_point(|l| l.1 <= time);
        self.log.get(at).map(|l| l.0 as usize)
    }

    /// Returns the time at which a workgroup started, if it has.
    pub fn group_start(&self, index: u64) -> Option<u64> {
        self.group_starts.get(index as usize).copied()
    }

    /// Returns the time at which the workgroup with these coordinates started, if it has started by now.
    pub fn start_of(&self, workgroup: [u32; 3]) -> Option<u64> {
        let started = (0..).zip(&self.group_starts).take_while(|(_, start)| **start <= self.time);
        started.into_iter().find(|(index, _)| self.dispatch.workgroup(*index) == workgroup).map(|(_, at)| *at)
    }
}
