//! Scheduling of the waves of the running workgroup in turns.

use super::Timeline;
use wavesim_engine::observe::Observer;
use wavesim_engine::sched::order::splitmix64;
use wavesim_engine::sched::recorded::{Recorded, Turn};
use wavesim_machine::fault::Fault;

/// Number of steps in a wave's turn, as in a run without the debugger.
const TURN: u64 = 4096;

impl Timeline<'_> {
    /// Returns the wave that runs next in the order of the launch.
    pub fn next_wave(&self) -> Option<usize> {
        if let Some((turn, _)) = self.scheduled_turn().filter(|(turn, _)| self.can_run(turn.wave as usize)) {
            return Some(turn.wave as usize);
        }
        let (wave, taken) = self.turn;
        if taken < self.turn_length() && self.can_run(wave) {
            return Some(wave);
        }
        if let Some(seed) = self.dispatch.schedule.seed() {
            let able = || (0..self.waves()).filter(|at| self.can_run(*at));
            let count = able().count() as u64;
            return able().nth((splitmix64(!seed ^ self.time) % count.max(1)) as usize);
        }
        let n = self.waves();
        let last = self.order.iter().position(|at| *at == wave).unwrap_or(0);
        (1..=n).map(|k| self.order[(last + k) % n]).find(|&at| self.can_run(at))
    }

    /// Returns the total number of steps of the current turn.
    pub(super) fn turn_length(&self) -> u64 {
        if let Some((_, end)) = self.scheduled_turn() {
            return self.turn.1 + (end - self.time);
        }
        let schedule = self.dispatch.schedule;
        let random = schedule.seed().map(|seed| splitmix64(seed ^ (self.time - self.turn.1)));
        random.and_then(|random| schedule.turn(random)).unwrap_or(TURN)
    }

    /// Returns the first turn of a workgroup.
    pub(super) fn first_turn(&self) -> (usize, u64) {
        if let Some((turn, _)) = self.scheduled_turn() {
            return (turn.wave as usize, 0);
        }
        match self.dispatch.schedule.seed() {
            Some(seed) => ((splitmix64(!seed ^ self.time) % self.waves() as u64) as usize, 0),
            None => (self.order[0], 0),
        }
    }

    /// Returns the recorded schedule, as long as the run follows it.
    fn followed(&self) -> Option<&Recorded> {
        match self.deviates.is_some_and(|from| from <= self.time) {
            true => None,
            false => self.dispatch.recorded.as_deref(),
        }
    }

    /// Returns the number of steps before a delayed operation does something that is recorded.
    pub(super) fn steps_until_action(&self) -> u64 {
        self.followed().map_or(u64::MAX, |recorded| recorded.next_action(self.time) - self.time)
    }

    /// Lets delayed operations do what is recorded for the present time.
    pub(super) fn act(&mut self, observer: &mut dyn Observer) -> Result<(), Box<Fault>> {
        let Some(recorded) = self.followed() else { return Ok(()) };
        for action in recorded.actions_at(self.time).to_vec() {
            let (id, act) = (action.operation, action.act);
            if let Some(group) = self.group_of(id.group) {
                group.act(id.wave as usize, id.number, act, observer)?;
            }
        }
        Ok(())
    }

    /// Returns the present turn of the recorded schedule that the launch follows, and the time of its end.
    pub(super) fn scheduled_turn(&self) -> Option<(Turn, u64)> {
        if self.deviates.is_some_and(|from| from <= self.time) {
            return None;
        }
        let turn = self.dispatch.recorded.as_ref()?.turn_at(self.time);
        turn.filter(|(turn, _)| {
            (turn.wave as usize) < self.waves() && turn.group < self.dispatch.workgroups()
        })
    }

    /// Notes that this wave takes the next step, which may not be the one of the recorded schedule.
    pub(super) fn note_deviation(&mut self, wave: usize) {
        if self.deviates.is_some_and(|from| from >= self.time) {
            self.deviates = None;
        }
        if let Some((turn, _)) = self.scheduled_turn()
            && (turn.group, turn.wave as usize) != (self.group_index, wave)
        {
            self.deviates = Some(self.time);
        }
    }

    /// Starts a turn of this wave.
    pub fn begin_turn(&mut self, wave: usize) {
        self.turn = (wave, 0);
    }
}
