//! Going back: checkpoints, and the replay of recorded steps from one of them.

use super::*;

impl Timeline<'_> {
    /// Goes to the state before step `time` (counted from 0): backward, or forward by replaying recorded
    /// steps.
    pub fn go_to(&mut self, time: u64) {
        self.go(time, false);
    }

    /// As [`Timeline::go_to`], but may be cancelled; the time is then earlier.
    pub fn travel(&mut self, time: u64) {
        self.go(time, true);
    }

    fn go(&mut self, time: u64, cancellable: bool) {
        let end = self.log.last().map_or(0, |l| l.1);
        let time = time.min(end);
        let near = self.checkpoints.before(time).time;
        if time < self.time || near > self.time {
            self.restore(near);
        }
        while self.time < time && !(cancellable && self.cancelled) {
            // Take checkpoints on the way, each halving the remaining distance, so that later moves near the
            // target are short.
            let left = time - self.time;
            let far = left > 2 * self.interval();
            self.replay(if far { self.time + left / 2 } else { time }, cancellable);
            if far {
                self.checkpoint();
            }
        }
    }

    /// Replays recorded steps up to a time.
    pub(super) fn replay(&mut self, until: u64, cancellable: bool) {
        let until = until.min(self.log.last().map_or(0, |l| l.1));
        let mut steps = 0;
        while self.time < until {
            let before = self.time;
            self.replay_run(until.min(before + POLL_STEPS), None);
            if self.time == before {
                let interrupted = self.fault.as_ref().is_some_and(|f| f.kind == FaultKind::Interrupted);
                debug_assert!(interrupted || self.replays_foreign, "a replay repeats steps that succeeded");
                self.cancelled = true;
                return;
            }
            steps += self.time - before;
            if cancellable && steps >= POLL_STEPS {
                steps = 0;
                if self.poll() {
                    return;
                }
            }
        }
    }

    /// Replays recorded steps of one wave, up to a time, an edit, or a stop point. Returns the wave.
    fn replay_run(&mut self, until: u64, stop_points: Option<&StopPoints>) -> Option<usize> {
        let at = self.log.partition_point(|l| l.1 <= self.time);
        let (wave, end) = self.log.get(at).copied()?;
        let edit = self.edits.partition_point(|e| e.0 <= self.time);
        let edit = self.edits.get(edit).map_or(u64::MAX, |e| e.0);
        let n = until.min(end).min(edit) - self.time;
        self.run_forward(wave as usize, n, stop_points);
        self.repeat_edits();
        Some(wave as usize)
    }

    /// Returns the last step before the current time, and not before `earliest`, that `search` accepts. The
    /// current time does not change. Also returns `None` after cancellation; see
    /// [`Timeline::take_cancelled`].
    pub fn find_back(&mut self, earliest: u64, search: &mut dyn Search) -> Option<u64> {
        let now = self.time;
        // Cancellation applies to all searches of a command.
        if self.cancelled {
            return None;
        }
        let mut steps = 0;
        let recorded = std::mem::replace(&mut self.record_accesses, search.records());
        let mut until = now;
        let mut found = None;
        while until > earliest && found.is_none() && !self.cancelled {
            let from = self.checkpoints.before(until - 1).time;
            self.restore(from);
            self.replay(earliest.min(until), true);
            while self.time < until && !self.cancelled {
                let Some(wave) = self.logged_wave() else { break };
                let before = self.time;
                let mut hit = search.before(self, wave);
                if hit {
                    found = Some(before);
                }
                self.replay_run(until.min(before + POLL_STEPS), Some(search.stop_points()));
                if self.time == before {
                    break;
                }
                steps += self.time - before;
                if steps >= POLL_STEPS {
                    steps = 0;
                    self.poll();
                }
                hit = search.after(self, wave);
                if hit {
                    found = Some(self.time - 1);
                }
            }
            until = from;
        }
        self.record_accesses = recorded;
        self.go_to(now);
        // A match found before cancellation need not be the last one.
        found.filter(|_| !self.cancelled)
    }

    /// Replays the steps of the running workgroup under an observer. The current time does not change.
    pub fn replay_group(&mut self, observer: &mut dyn Observer) {
        let now = self.time;
        let start = self.group_start(self.group_index).unwrap_or(0);
        self.go_to(start);
        observer.group_started(self.workgroup(), self.waves());
        let index = self.group_index;
        while self.time < now {
            // Other workgroups may have run in between.
            let observer = if self.group_index == index { &mut *observer } else { &mut NoObserver };
            self.replay_step(observer);
        }
    }

    /// Returns the number of checkpoints, and their total size in bytes.
    pub fn checkpoints(&self) -> (usize, usize) {
        self.checkpoints.size()
    }

    /// Limits the total size of the checkpoints. A lower limit makes it slower to go far back.
    pub fn limit_checkpoints(&mut self, bytes: usize) {
        self.checkpoints.limit = bytes;
    }

    /// Repeats the recorded step at the current time, if there is one.
    pub fn repeat(&mut self) {
        self.replay_step(&mut NoObserver);
    }

    /// Repeats the step that was taken at the current time.
    pub(super) fn replay_step(&mut self, observer: &mut dyn Observer) {
        let Some(wave) = self.logged_wave() else { return };
        let before = self.time;
        self.step_observed(wave, observer);
        debug_assert_eq!(self.time, before + 1, "a replay repeats steps that succeeded");
        self.repeat_edits();
    }

    /// Repeats the edits that were made at the current time.
    fn repeat_edits(&mut self) {
        let time = self.time;
        let now: Vec<Edit> = self.edits.iter().filter(|e| e.0 == time).map(|e| e.1).collect();
        for edit in now {
            // It succeeded when it was recorded.
            let _ = self.apply(edit);
        }
    }

    /// Drops recorded steps, edits and checkpoints after the current time, since the run diverges from here.
    pub(super) fn truncate(&mut self) {
        let time = self.time;
        while self.log.len() > 1 && self.log[self.log.len() - 2].1 >= time {
            self.log.pop();
        }
        if let Some(last) = self.log.last_mut() {
            last.1 = last.1.min(time);
        }
        if time == 0 {
            self.log.clear();
        }
        self.edits.retain(|e| e.0 <= time);
        self.switches.retain(|at| *at <= time);
        self.checkpoints.truncate(time);
        self.last_checkpoint = self.last_checkpoint.min(self.checkpoints.before(time).time);
        if let Some(checks) = &mut self.checks {
            checks.truncate(time);
        }
    }

    pub(super) fn checkpoint(&mut self) {
        let pages = self.pages.take(&self.prepared.memory);
        self.checkpoints.insert(Checkpoint {
            time: self.time,
            group: self.group.clone(),
            index: self.group_index,
            groups: self.groups.clone(),
            turn: self.turn,
            tracked: self.tracked.clone(),
            pages,
            caches: self.dispatch.caches.save(),
        });
        self.last_checkpoint = self.time;
    }

    /// Restores the last checkpoint at or before a time.
    pub(super) fn restore(&mut self, time: u64) {
        let c = self.checkpoints.before(time);
        self.group = c.group.clone();
        self.group_index = c.index;
        self.groups = c.groups.clone();
        self.time = c.time;
        self.turn = c.turn;
        self.tracked.clone_from(&c.tracked);
        self.last_checkpoint = c.time;
        self.fault = None;
        self.pages.restore(&c.pages, &self.prepared.memory);
        self.dispatch.caches.restore(&c.caches);
        // A checkpoint is taken directly after its step, before any edit.
        self.repeat_edits();
    }
}
