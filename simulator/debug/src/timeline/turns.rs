//! Scheduling of the waves of the running workgroup in turns.

use super::Timeline;
use wavesim_engine::sched::order::splitmix64;

/// Number of steps in a wave's turn, as in a run without the debugger.
const TURN: u64 = 4096;

impl Timeline<'_> {
    /// Returns the wave that runs next in the order of the launch.
    pub fn next_wave(&self) -> Option<usize> {
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
        let schedule = self.dispatch.schedule;
        let random = schedule.seed().map(|seed| splitmix64(seed ^ (self.time - self.turn.1)));
        random.and_then(|random| schedule.turn(random)).unwrap_or(TURN)
    }

    /// Returns the first turn of a workgroup.
    pub(super) fn first_turn(&self) -> (usize, u64) {
        match self.dispatch.schedule.seed() {
            Some(seed) => ((splitmix64(!seed ^ self.time) % self.waves() as u64) as usize, 0),
            None => (self.order[0], 0),
        }
    }

    /// Starts a turn of this wave.
    pub fn begin_turn(&mut self, wave: usize) {
        self.turn = (wave, 0);
    }
}
