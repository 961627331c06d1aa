//! Commands that go back in time: `back`, `goto`, `reverse-continue`, `last-write`. `why` is in the module
//! `why`.

use super::{CommandResult, Debugger, parse};
use crate::breakpoint::Watched;
use crate::expr::{Focus, Register};
use crate::search::{ChangeSearch, StopSearch, WriteSearch};
use crate::stop::Stop;
use std::fmt::Write as _;
use wavesim_machine::exec::effects::File;

impl Debugger<'_> {
    pub(super) fn back(&mut self, args: &str, out: &mut String) -> CommandResult {
        let n = parse::count(args)?;
        if self.timeline.time() == 0 {
            return Err("the run is at its start".to_string());
        }
        self.begin();
        self.travel(self.timeline.time().saturating_sub(n));
        self.stops.push(if self.timeline.time() == 0 { Stop::Start } else { Stop::Done });
        self.show_position(out);
        Ok(())
    }

    /// Undoes the last instruction of the selected wave, and all steps of other waves after it.
    ///
    /// # Errors
    /// The wave has not executed any instruction.
    pub fn step_back(&mut self) -> Result<(), String> {
        let wave = self.focus.wave;
        let time = self.timeline.last_step_of(wave);
        let time = time.ok_or_else(|| format!("wave {wave} has not executed an instruction yet"))?;
        self.begin();
        self.travel(time);
        self.stops.push(Stop::Done);
        Ok(())
    }

    /// Goes to a time, and updates the watched values.
    pub fn travel(&mut self, time: u64) {
        self.timeline.leave_frame();
        self.timeline.travel(time);
        for watch in &mut self.watchpoints {
            watch.last = watch.target.read(&self.timeline);
        }
    }

    pub(super) fn go_to(&mut self, text: &str, out: &mut String) -> CommandResult {
        let time = text.parse().map_err(|_| format!("`{text}` is not a step number"))?;
        self.begin();
        self.travel(time);
        self.stops.push(Stop::Done);
        if self.timeline.time() < time {
            let _ = writeln!(out, "only {} steps have been run", self.timeline.time());
        }
        self.show_position(out);
        Ok(())
    }

    pub(super) fn reverse_continue(&mut self, out: &mut String) -> CommandResult {
        self.run_back();
        self.show_stop(out);
        Ok(())
    }

    /// Goes back to the last breakpoint, watchpoint, or finding of a check.
    pub fn run_back(&mut self) {
        self.begin();
        let now = self.timeline.time();
        let changes = self.watchpoints.iter().map(|w| ChangeSearch::of(w.clone(), &self.effects)).collect();
        let stop_points = self.stop_points(&[]);
        let effects = std::mem::take(&mut self.effects);
        let breakpoints = self.breakpoints.clone();
        let lane = self.focus.lane;
        let finding = self.timeline.findings().filter(|(at, f)| *at < now && self.stops_at(f.check)).last();
        let finding = finding.cloned();
        let mut search = StopSearch {
            breakpoints: &breakpoints,
            changes,
            lane,
            effects: &effects,
            reason: None,
            stop_points,
        };
        let earliest = finding.as_ref().map_or(0, |f| f.0);
        let found = self.timeline.find_back(earliest, &mut search);
        let reason = search.reason.take();
        self.effects = effects;
        if self.timeline.take_cancelled() {
            self.was_interrupted.set(true);
            self.stops.push(Stop::Interrupted);
            return;
        }
        let (time, stop) = match (found, finding) {
            (Some(time), _) => (time, reason),
            (None, Some((time, finding))) => (time, Some(Stop::Finding(Box::new(finding)))),
            (None, None) => (0, Some(Stop::Start)),
        };
        let wave = self.timeline.wave_of_step(time);
        self.travel(time);
        if found.is_some() || matches!(stop, Some(Stop::Finding(_))) {
            self.focus.wave = wave.unwrap_or(self.focus.wave);
        }
        self.stops.push(stop.unwrap_or(Stop::Done));
        // If several breakpoints are at this location, all of them are reasons.
        let focus = Focus { wave: self.focus.wave, lane };
        for b in &self.breakpoints {
            let stop =
                Stop::Breakpoint { number: b.number, location: b.location.clone(), temporary: b.temporary };
            if found.is_some()
                && !self.stops.contains(&stop)
                && b.message.is_none()
                && b.is_hit(&self.timeline, focus).unwrap_or(false)
            {
                self.stops.push(stop);
            }
        }
    }

    pub(super) fn last_write(&mut self, text: &str, out: &mut String) -> CommandResult {
        let what = self.watched(text)?;
        let target = what.clone();
        self.begin();
        let found = match what {
            Watched::Register { wave, register, lane } => {
                let (file, register) = match register {
                    Register::Sgpr(first, _) => (File::Sgpr, first),
                    Register::Vgpr(first, _) => (File::Vgpr, first),
                    Register::Scc => (File::Scc, 0),
                    _ => return Err(format!("`{text}` is not a register whose writes are recorded")),
                };
                let effects = std::mem::take(&mut self.effects);
                let workgroup = self.timeline.workgroup();
                let mut search = WriteSearch::new(&effects, workgroup, wave, (file, register), lane);
                let start = self.timeline.group_start(self.timeline.position().0).unwrap_or(0);
                let found = self.timeline.find_back(start, &mut search);
                self.effects = effects;
                found
            }
            what => {
                let mut search = ChangeSearch::value(what, &self.timeline, &self.effects);
                self.timeline.find_back(0, &mut search)
            }
        };
        let time = found.ok_or_else(|| format!("nothing before this step wrote {text}"))?;
        if let Some(wave) = self.timeline.wave_of_step(time) {
            self.focus.wave = wave;
        }
        self.travel(time);
        self.last_write = Some((target, time));
        self.stops.push(Stop::Done);
        self.show_position(out);
        Ok(())
    }
}
