//! Commands that go forward: `step`, `stepall`, `next`, `continue`, `until`, `finish`; and what stops them.

use super::{Debugger, Done, parse};
use crate::expr::Focus;
use crate::timeline::{Outcome, Timeline};
use crate::{breakpoint, view};
use std::fmt::Write as _;
use wavesim_engine::sched::group::Status;

impl Debugger<'_> {
    pub(super) fn step(&mut self, args: &str, out: &mut String) -> Done {
        self.steps(parse::count(args)?, out)
    }

    fn steps(&mut self, n: u64, out: &mut String) -> Done {
        self.timeline.prefer(self.focus.wave);
        let group = self.timeline.position().0;
        for k in 0..n {
            if !self.unblock(out)? {
                break;
            }
            let wave = self.focus.wave;
            if k > 0 && self.stops_before(wave, out)? {
                break;
            }
            let outcome = self.timeline.step(wave);
            if self.stops_after(&outcome, out) || self.interrupted(out) {
                break;
            }
            // That was the last instruction of the workgroup.
            if self.timeline.position().0 != group {
                break;
            }
        }
        self.end(out);
        self.show_position(out);
        Ok(())
    }

    pub(super) fn step_all(&mut self, args: &str, out: &mut String) -> Done {
        let n = parse::count(args)?;
        'all: for _ in 0..n {
            let group = self.timeline.position().0;
            for wave in 0..self.timeline.waves() {
                if !self.timeline.can_run(wave) {
                    continue;
                }
                let outcome = self.timeline.step(wave);
                if self.stops_after(&outcome, out) || self.timeline.position().0 != group {
                    break 'all;
                }
            }
            if self.interrupted(out) {
                break;
            }
        }
        self.end(out);
        out.push_str(&view::waves(&self.timeline, self.focus));
        Ok(())
    }

    pub(super) fn resume(&mut self, out: &mut String) -> Done {
        self.run(out, &mut |_, _| false)
    }

    pub(super) fn next(&mut self, out: &mut String) -> Done {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        let pc = self.timeline.wave(wave).pc;
        let program = &self.timeline.prepared.program;
        let Some(at) = program.inst_at(pc) else { return self.steps(1, out) };
        let following = pc + program.insts[at].size as u64;
        self.run(out, &mut move |m, w| m.position().0 != group || w == wave && m.wave(w).pc == following)
    }

    pub(super) fn until(&mut self, place: &str, out: &mut String) -> Done {
        let pc = breakpoint::locate(place, &self.timeline)?;
        let wave = self.focus.wave;
        self.run(out, &mut move |m, w| w == wave && m.wave(w).pc == pc)
    }

    pub(super) fn finish(&mut self, out: &mut String) -> Done {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        self.run(out, &mut move |m, _| m.position().0 != group || m.status(wave) == Status::Ended)
    }

    /// Whether to stop after a step. Writes the reason to `out`.
    pub(super) fn stops_after(&mut self, outcome: &Outcome, out: &mut String) -> bool {
        match outcome {
            Outcome::Fault(fault) => {
                self.focus.wave = fault.wave as usize;
                if let Some(lane) = fault.lane {
                    self.focus.lane = lane;
                }
                return true;
            }
            Outcome::Blocked | Outcome::Finished => return true,
            Outcome::Stepped => {}
        }
        let mut stop = false;
        for watch in &mut self.watchpoints {
            let now = watch.what.content(&self.timeline);
            if now != watch.last {
                let _ = writeln!(out, "watchpoint {}: {} changed", watch.number, watch.text);
                let (old, new) = (hex(&watch.last), hex(&now));
                if old.len() <= 40 {
                    let _ = writeln!(out, "  {old} -> {new}");
                }
                watch.last = now;
                stop = true;
            }
        }
        stop
    }

    /// Whether a wave that is about to run is at a breakpoint. Writes which one to `out`.
    pub(super) fn stops_before(&mut self, wave: usize, out: &mut String) -> Result<bool, String> {
        let focus = Focus { wave, lane: self.focus.lane };
        for at in 0..self.breakpoints.len() {
            if !self.breakpoints[at].hit(&self.timeline, focus)? {
                continue;
            }
            let b = &mut self.breakpoints[at];
            b.hits += 1;
            if b.temporary {
                self.breakpoints.remove(at);
            } else {
                let _ = writeln!(out, "breakpoint {} ({})", b.number, b.place);
            }
            self.focus.wave = wave;
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) fn interrupted(&self, out: &mut String) -> bool {
        let yes = (self.poll_interrupt)();
        if yes {
            self.was_interrupted.set(true);
            out.push_str("interrupted\n");
        }
        yes
    }

    /// Runs other waves until the selected one can run. False if it never can.
    pub(super) fn unblock(&mut self, out: &mut String) -> Result<bool, String> {
        let wave = self.focus.wave;
        let from = self.timeline.time();
        while !self.timeline.can_run(wave) {
            if self.timeline.status(wave) == Status::Ended || self.timeline.fault().is_some() {
                return Ok(false);
            }
            let Some(other) = self.timeline.next_wave() else { return Ok(false) };
            if self.stops_before(other, out)? {
                return Ok(false);
            }
            let outcome = self.timeline.step(other);
            if self.stops_after(&outcome, out) || self.interrupted(out) {
                return Ok(false);
            }
        }
        let steps = self.timeline.time() - from;
        if steps > 0 {
            let _ = writeln!(out, "other waves ran {steps} steps to the barrier");
        }
        Ok(true)
    }

    /// Runs all waves until something stops them. The first step ignores breakpoints, to leave the present one.
    pub(super) fn run(
        &mut self,
        out: &mut String,
        reached: &mut dyn FnMut(&Timeline<'_>, usize) -> bool,
    ) -> Done {
        self.timeline.prefer(self.focus.wave);
        let mut first = true;
        while let Some(wave) = self.timeline.next_wave() {
            if !first {
                if reached(&self.timeline, wave) {
                    break;
                }
                if self.stops_before(wave, out)? {
                    break;
                }
            }
            first = false;
            let outcome = self.timeline.step(wave);
            if self.stops_after(&outcome, out) {
                if !matches!(outcome, Outcome::Fault(_)) {
                    self.focus.wave = wave;
                }
                break;
            }
            if self.timeline.time().is_multiple_of(256) && self.interrupted(out) {
                break;
            }
        }
        self.end(out);
        self.show_position(out);
        Ok(())
    }

    /// Writes that the run has ended or is deadlocked, if so.
    pub(super) fn end(&self, out: &mut String) {
        if self.timeline.fault().is_some() {
            return;
        }
        if self.timeline.finished() {
            let _ = writeln!(out, "the run has ended after {} steps", self.timeline.time());
        } else if self.timeline.next_wave().is_none() {
            out.push_str("deadlock: no wave can run\n");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    // Written as one number, highest byte first.
    bytes.iter().rev().fold("0x".to_string(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
