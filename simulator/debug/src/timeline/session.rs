//! The journal as a value, for saved sessions; and a new start of the run.

use super::{Edit, Timeline};

/// What determines a run, apart from the launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    /// The wave of each step, run-length encoded: the wave, and the time after its last step.
    pub steps: Vec<(u32, u64)>,
    /// The times at which workgroups were suspended.
    pub switches: Vec<u64>,
    /// Changes of state by the user, each with its time.
    pub edits: Vec<(u64, Edit)>,
}

impl Timeline<'_> {
    /// Returns the journal of the recorded run, which may go beyond the current time.
    pub fn journal(&self) -> Journal {
        Journal { steps: self.log.clone(), switches: self.switches.clone(), edits: self.edits.clone() }
    }

    /// Goes to the start of the run and forgets the recorded one, with all edits.
    pub fn restart(&mut self) {
        self.edits.clear();
        self.restore(0);
        self.truncate();
    }

    /// Evaluates a function in the initial state, without edits. The current time does not change.
    pub fn at_start<T>(&mut self, of: impl FnOnce(&Self) -> T) -> T {
        let now = self.time;
        let edits = std::mem::take(&mut self.edits);
        self.restore(0);
        let result = of(self);
        self.edits = edits;
        self.restore(self.checkpoints.before(now).time);
        self.go_to(now);
        result
    }

    /// Replaces the run by a recorded one, and goes to a time in it.
    ///
    /// # Errors
    /// The launch does not run like this; the run is then at its start.
    pub fn replay_journal(&mut self, journal: Journal, time: u64) -> Result<(), String> {
        let wrong = "the launch does not run like the saved session";
        let waves = self.waves();
        let size = self.prepared.shape.wave_size;
        let is_wave = |wave: usize| wave < waves;
        let valid = journal.steps.iter().all(|run| is_wave(run.0 as usize))
            && journal.edits.is_sorted_by_key(|edit| edit.0)
            && journal.edits.iter().all(|(_, edit)| match *edit {
                Edit::Vgpr { wave, lane, .. } => is_wave(wave) && lane < size,
                Edit::Sgpr { wave, .. } | Edit::Scc { wave, .. } | Edit::Pc { wave, .. } => is_wave(wave),
                Edit::Memory { .. } | Edit::Lds { .. } | Edit::Scratch { .. } => true,
            });
        if !valid {
            return Err(wrong.to_string());
        }
        self.restart();
        self.replays_foreign = true;
        (self.log, self.switches, self.edits) = (journal.steps, journal.switches, journal.edits);
        // The edits at the start.
        self.restore(0);
        self.travel(time);
        self.replays_foreign = false;
        if self.time != time {
            self.restart();
            return Err(wrong.to_string());
        }
        Ok(())
    }
}
