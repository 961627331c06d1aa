//! Commands that go forward: `stepall`, `continue`, `until`; and the conditions that stop them. Steps by line and
//! by frame are in the module `step`.
//!
//! The public methods ([`Debugger::run_while`] and its callers) produce no text and leave the reasons for
//! stopping in [`Debugger::stops`]. The command functions write these reasons.

use super::{CommandResult, Debugger, parse};
use crate::breakpoint::{Access, Breakpoint, Watched};
use crate::expr::{Expression, Focus, Scope};
use crate::stop::Stop;
use crate::stop_points::{Condition, StopPoints};
use crate::timeline::{Outcome, Timeline};
use crate::{breakpoint, view};
use std::fmt::Write as _;
use wavesim_engine::sched::group::Status;
use wavesim_machine::exec::effects::Effects;
use wavesim_machine::exec::machine_ops::is_barrier;

/// Maximum number of steps that other waves take before a command that steps one wave gives up.
const MAX_WAIT_STEPS: u64 = 1 << 20;

/// An additional condition that ends a run. It is evaluated before each step but the first, for the wave that
/// is about to run.
pub type Until<'u> = &'u mut dyn FnMut(&Timeline<'_>, usize) -> bool;

impl Debugger<'_> {
    /// Executes `n` instructions of the selected wave.
    ///
    /// # Errors
    /// The condition of a breakpoint cannot be evaluated.
    pub fn step_wave(&mut self, n: u64) -> Result<(), String> {
        self.begin();
        self.timeline.begin_turn(self.focus.wave);
        let group = self.timeline.position().0;
        for k in 0..n {
            let wave = self.focus.wave;
            if !self.unblock()? || (k > 0 && self.stops_before(wave)?) || self.stops_after_step(wave) {
                break;
            }
            if k % 256 == 255 && self.interrupted() {
                break;
            }
            if self.timeline.position().0 != group {
                if k + 1 < n {
                    self.stops.push(Stop::Early("the next workgroup has started".to_string()));
                }
                break;
            }
        }
        self.end();
        Ok(())
    }

    pub(super) fn step_all(&mut self, args: &str, out: &mut String) -> CommandResult {
        let n = parse::count(args)?;
        self.begin();
        'all: for _ in 0..n {
            let group = self.timeline.position().0;
            for wave in 0..self.timeline.waves() {
                if self.timeline.can_run(wave)
                    && (self.stops_after_step(wave) || self.timeline.position().0 != group)
                {
                    break 'all;
                }
            }
            if self.interrupted() {
                break;
            }
        }
        self.end();
        self.write_stops(out);
        out.push_str(&view::waves(&self.timeline, self.focus));
        Ok(())
    }

    pub(super) fn resume(&mut self, out: &mut String) -> CommandResult {
        self.begin();
        self.run_while(true, &[], &mut |_, _| false)?;
        self.show_stop(out);
        Ok(())
    }

    /// Runs the rest of the launch, without breakpoints and watchpoints.
    ///
    /// # Errors
    /// The run has been interrupted, or cannot end.
    pub fn run_to_end(&mut self) -> Result<(), String> {
        self.breakpoints.clear();
        self.watchpoints.clear();
        self.stop_at = Some(Vec::new());
        self.begin();
        self.run_while(true, &[], &mut |_, _| false)?;
        if self.timeline.finished() {
            return Ok(());
        }
        Err(self.stops.iter().map(Stop::title).collect::<Vec<_>>().join("; "))
    }

    pub(super) fn until(&mut self, place: &str, out: &mut String) -> CommandResult {
        let pcs = match place {
            "barrier" => self.barriers()?,
            place => breakpoint::locate_all(place, &self.timeline)?,
        };
        let wave = self.focus.wave;
        self.begin();
        self.run_while(true, &pcs, &mut |m, w| w == wave && pcs.contains(&m.wave(w).pc))?;
        self.show_stop(out);
        Ok(())
    }

    /// Returns the byte offsets of the barriers of the program.
    fn barriers(&self) -> Result<Vec<u64>, String> {
        let pcs = &self.timeline.prepared.program.pcs;
        let at_barrier = |e: &&Effects| e.calls.iter().any(|call| is_barrier(*call));
        let found = self.effects.iter().zip(pcs).filter(|(e, _)| at_barrier(e)).map(|(_, pc)| *pc);
        let found: Vec<u64> = found.collect();
        if found.is_empty() { Err("the kernel has no barrier".to_string()) } else { Ok(found) }
    }

    /// Clears the reasons for the previous stop.
    pub fn begin(&mut self) {
        self.stops.clear();
        self.log.clear();
        self.timeline.leave_frame();
        self.timeline.take_cancelled();
        self.timeline.record_accesses = self.watchpoints.iter().any(|w| w.access != Access::Change);
    }

    /// Returns the points at which a run must return to the debugger: those of breakpoints and watchpoints,
    /// and others, given by their byte offsets.
    pub(super) fn stop_points(&self, stop_pcs: &[u64]) -> StopPoints {
        let pcs = &self.timeline.prepared.program.pcs;
        let stops: Vec<u64> =
            self.breakpoints.iter().flat_map(Breakpoint::pcs).chain(stop_pcs.iter().copied()).collect();
        let stop_points = StopPoints::new(
            &self.effects,
            |at| stops.contains(&pcs[at]),
            self.watchpoints.iter().map(|w| &w.target),
        );
        // A point may be passed without returning only if nothing but wave-local conditions can stop there.
        let needs_return = |pc| {
            let local = |b: &Breakpoint| b.condition.as_ref().is_some_and(Expression::is_wave_local);
            stop_pcs.contains(&pc) || self.breakpoints.iter().any(|b| b.is_at(pc) && !local(b))
        };
        if self.watchpoints.iter().any(|w| matches!(w.target, Watched::Register { .. })) {
            return stop_points;
        }
        let lane = self.focus.lane;
        let all = self.breakpoints.iter().flat_map(|b| b.pcs().map(move |pc| (pc, b)));
        let conditions = all.filter(|(pc, _)| !needs_return(*pc)).filter_map(|(pc, b)| {
            let at = self.timeline.prepared.program.inst_at(pc)?;
            Some((at, Condition { wave: b.wave, lane, expression: b.condition.clone()? }))
        });
        stop_points.only_if(conditions.collect())
    }

    /// Executes one instruction. Returns whether the run stops after it; the reasons are added to
    /// [`Debugger::stops`].
    fn stops_after_step(&mut self, wave: usize) -> bool {
        self.stops_after_run(wave, 1, None)
    }

    /// Executes at most `n` instructions, up to a stop point.
    fn stops_after_run(&mut self, wave: usize, n: u64, stop_points: Option<&StopPoints>) -> bool {
        let read: Vec<bool> = self.watchpoints.iter().map(|w| self.reads_next(w, wave)).collect();
        let group = self.timeline.position().0;
        let outcome = self.timeline.run(wave, n, stop_points);
        let step = self.timeline.time().saturating_sub(1);
        let stop = self.stops_after(&outcome, (group, wave), &read, step);
        if stop && !matches!(outcome, Outcome::Blocked | Outcome::Finished) {
            self.focus.wave = wave.min(self.timeline.waves() - 1);
        }
        stop
    }

    /// Returns whether the instruction that the wave is about to execute reads a watched register.
    fn reads_next(&self, watch: &breakpoint::Watchpoint, wave: usize) -> bool {
        let w = self.timeline.wave(wave);
        let at = self.timeline.prepared.program.inst_at(w.pc);
        watch.access != Access::Change
            && at.is_some_and(|at| watch.target.is_read_by(&self.effects[at], wave, w))
    }

    fn stops_after(
        &mut self,
        outcome: &Outcome,
        (group, wave): (u64, usize),
        read: &[bool],
        step: u64,
    ) -> bool {
        match outcome {
            Outcome::Fault(fault) => {
                self.focus.wave = fault.wave as usize;
                if let Some(lane) = fault.lane {
                    self.focus.lane = lane;
                }
                self.stops.push(Stop::Fault(fault.clone()));
                return true;
            }
            Outcome::Limit => {
                self.stops.push(Stop::Limit(self.timeline.time()));
                return true;
            }
            Outcome::Blocked | Outcome::Finished => return true,
            Outcome::Stepped => {}
        }
        let before = self.stops.len();
        let new = self.timeline.findings().filter(|(at, f)| *at == step && self.stops_at(f.check));
        let new: Vec<Stop> = new.map(|(_, finding)| Stop::Finding(Box::new(finding.clone()))).collect();
        if let Some(Stop::Finding(finding)) = new.first()
            && let Some(lane) = finding.site.lane
        {
            self.focus.lane = lane;
        }
        self.stops.extend(new);
        let focus = Focus { wave, lane: self.focus.lane };
        for (watch, read_register) in self.watchpoints.iter_mut().zip(read) {
            let now = watch.target.read(&self.timeline);
            let changed = watch.target.has_changed(&self.timeline, group, &watch.last);
            let read = *read_register
                || watch.access != Access::Change && watch.target.is_read_in(self.timeline.accesses(), wave);
            let what = match watch.access {
                Access::Change | Access::Any if changed => "changed",
                Access::Read | Access::Any if read => "was read",
                _ => {
                    watch.last = now;
                    continue;
                }
            };
            let last = std::mem::replace(&mut watch.last, now);
            let scope = Scope::new(&self.timeline, focus);
            // A condition that cannot be evaluated stops the run, as at a breakpoint.
            if watch.condition.as_ref().is_some_and(|c| c.evaluate(&scope).is_ok_and(|v| !v.truth())) {
                continue;
            }
            watch.hits += 1;
            if watch.count.is_some_and(|count| !count.stops(watch.hits)) {
                continue;
            }
            let (old, new) = (hex(&last), hex(&watch.last));
            let change = (what == "changed" && old.len() <= 40).then_some((old, new));
            let (number, text) = (watch.number, watch.text.clone());
            self.stops.push(Stop::Watchpoint { number, text, what, change });
        }
        self.stops.len() > before
    }

    /// Returns whether a wave that is about to run is at a breakpoint. The reasons are added to
    /// [`Debugger::stops`].
    fn stops_before(&mut self, wave: usize) -> Result<bool, String> {
        let focus = Focus { wave, lane: self.focus.lane };
        let before = self.stops.len();
        let mut at = 0;
        while at < self.breakpoints.len() {
            at += 1;
            if !self.breakpoints[at - 1].is_hit(&self.timeline, focus)? {
                continue;
            }
            let b = &mut self.breakpoints[at - 1];
            b.hits += 1;
            if b.count.is_some_and(|count| !count.stops(b.hits)) {
                continue;
            }
            if let Some(message) = b.format_message(&self.timeline, focus) {
                self.log.push(message);
                continue;
            }
            let (number, location, temporary) = (b.number, b.location.clone(), b.temporary);
            if temporary {
                at -= 1;
                self.breakpoints.remove(at);
            }
            self.stops.push(Stop::Breakpoint { number, location, temporary });
            self.focus.wave = wave;
        }
        Ok(self.stops.len() > before)
    }

    pub(super) fn interrupted(&mut self) -> bool {
        let yes = (self.poll_interrupt)();
        if yes {
            self.was_interrupted.set(true);
            self.stops.push(Stop::Interrupted);
        }
        yes
    }

    /// Runs other waves until the selected one can run. Returns false if it never can, or if something stops
    /// the others.
    fn unblock(&mut self) -> Result<bool, String> {
        let wave = self.focus.wave;
        let from = self.timeline.time();
        while !self.timeline.can_run(wave) {
            if self.timeline.fault().is_some() {
                return Ok(false);
            }
            if self.timeline.status(wave) == Status::Ended {
                if !self.timeline.finished() {
                    self.stops.push(Stop::Early(format!("wave {wave} has ended; `wave N` selects another")));
                }
                return Ok(false);
            }
            let Some(other) = self.timeline.next_wave() else { return Ok(false) };
            if self.stops_before(other)? || self.stops_after_step(other) || self.interrupted() {
                return Ok(false);
            }
            if self.timeline.time() - from >= MAX_WAIT_STEPS {
                let why = format!(
                    "wave {wave} waits; others have run {MAX_WAIT_STEPS} steps, perhaps for a workgroup that has not started: \
                     `continue` lets workgroups take turns"
                );
                self.stops.push(Stop::Early(why));
                return Ok(false);
            }
        }
        let steps = self.timeline.time() - from;
        if steps > 0 {
            self.notes.push(format!("other waves ran {steps} steps to the barrier"));
        }
        Ok(true)
    }

    /// Runs all waves until something stops them. With `leave`, the first step ignores breakpoints, so that
    /// the run can leave the current one. `reached` is evaluated at the instructions of `stop_pcs`, and
    /// whenever another wave runs.
    ///
    /// # Errors
    /// The condition of a breakpoint cannot be evaluated.
    pub fn run_while(&mut self, leave: bool, stop_pcs: &[u64], reached: Until<'_>) -> Result<(), String> {
        let stop_points = self.stop_points(stop_pcs);
        if leave {
            self.timeline.begin_turn(self.focus.wave);
        }
        let mut first = leave;
        let mut polled = self.timeline.time();
        while let Some(wave) = self.timeline.next_wave() {
            if !first {
                if reached(&self.timeline, wave) {
                    self.stops.push(Stop::Done);
                    break;
                }
                if self.stops_before(wave)? {
                    break;
                }
            }
            first = false;
            if self.stops_after_run(wave, u64::MAX, Some(&stop_points)) {
                break;
            }
            if self.timeline.time() - polled >= 256 {
                polled = self.timeline.time();
                if self.interrupted() {
                    // A wave that runs is of more interest than one that has ended.
                    if self.timeline.status(self.focus.wave) == Status::Ended {
                        self.focus.wave = wave;
                    }
                    break;
                }
            }
        }
        self.end();
        Ok(())
    }

    /// Adds the final reason: the end of the run, a deadlock, or the completion of the command.
    fn end(&mut self) {
        if self.timeline.fault().is_none() {
            if self.timeline.finished() {
                self.stops.push(Stop::Ended { steps: self.timeline.time() });
            } else if self.timeline.next_wave().is_none() {
                self.stops.push(Stop::Deadlock);
            }
        }
        if self.stops.is_empty() {
            self.stops.push(match self.timeline.fault() {
                Some(fault) => Stop::Fault(Box::new(fault.clone())),
                None => Stop::Done,
            });
        }
    }

    /// Writes the messages of the run and the reasons for stopping.
    pub(super) fn write_stops(&mut self, out: &mut String) {
        for line in self.log.iter().chain(&self.notes) {
            let _ = writeln!(out, "{line}");
        }
        self.notes.clear();
        for stop in &self.stops {
            let _ = write!(out, "{stop}");
        }
        if self.stops.contains(&Stop::Deadlock) {
            out.push_str(&view::waves(&self.timeline, self.focus));
        }
    }

    /// Writes the reasons for stopping, and the position.
    pub(super) fn show_stop(&mut self, out: &mut String) {
        self.write_stops(out);
        self.show_position(out);
    }
}

fn hex(bytes: &[u8]) -> String {
    // Written as one number, highest byte first.
    bytes.iter().rev().fold("0x".to_string(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
