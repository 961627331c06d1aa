//! Commands that step: `step`, `next`, `finish` by source line and by instruction. A step over a call ends in
//! the frame in which it began, or in a frame around it; so does a step out of a function.

use super::{CommandResult, Debugger, parse};
use crate::breakpoint;
use crate::frames::{Frame, frames};
use crate::timeline::Timeline;
use std::fmt::Write as _;
use wavesim_engine::sched::group::Status;
use wavesim_inspect::calls::{Jump, jumps};
use wavesim_inspect::check::successors;
use wavesim_machine::exec::effects::Class;

/// Where a wave is in the source.
#[derive(PartialEq, Eq)]
struct Position {
    /// Number of calls that have not returned.
    depth: usize,
    /// The functions inlined here, outermost first: the name, and the place of the call.
    inlined: Vec<(String, Option<String>)>,
    /// The file and the line, if the instruction has one.
    line: Option<(u32, u32)>,
}

impl Debugger<'_> {
    pub(super) fn step(&mut self, args: &str, out: &mut String) -> CommandResult {
        self.step_lines(args, false, out)
    }

    pub(super) fn next(&mut self, args: &str, out: &mut String) -> CommandResult {
        self.step_lines(args, true, out)
    }

    /// Executes lines where debug information has them, else instructions.
    fn step_lines(&mut self, args: &str, over: bool, out: &mut String) -> CommandResult {
        let n = parse::count(args)?;
        let (before, wave) = (self.timeline.workgroup(), self.focus.wave);
        if self.has_line() {
            let group = self.timeline.position().0;
            for _ in 0..n {
                self.step_line(over)?;
                if !self.completed() || self.timeline.position().0 != group {
                    break;
                }
            }
        } else if over {
            return self.next_instruction(args, out);
        } else {
            self.step_wave(n)?;
        }
        self.show_end(before, wave, out);
        self.show_stop(out);
        Ok(())
    }

    /// Tells that the wave that was stepped has ended, and with it its workgroup, so that the next one has begun.
    fn show_end(&self, [x, y, z]: [u32; 3], wave: usize, out: &mut String) {
        if self.timeline.workgroup() != [x, y, z] && self.completed() {
            let _ = writeln!(out, "wave {wave} of workgroup ({x},{y},{z}) has ended");
        }
    }

    pub(super) fn step_instruction(&mut self, args: &str, out: &mut String) -> CommandResult {
        let (before, wave) = (self.timeline.workgroup(), self.focus.wave);
        self.step_wave(parse::count(args)?)?;
        self.show_end(before, wave, out);
        self.show_stop(out);
        Ok(())
    }

    pub(super) fn next_instruction(&mut self, args: &str, out: &mut String) -> CommandResult {
        let (before, wave) = (self.timeline.workgroup(), self.focus.wave);
        for _ in 0..parse::count(args)? {
            self.step_over()?;
            if !self.completed() {
                break;
            }
        }
        self.show_end(before, wave, out);
        self.show_stop(out);
        Ok(())
    }

    pub(super) fn finish(&mut self, out: &mut String) -> CommandResult {
        let (before, wave) = (self.timeline.workgroup(), self.focus.wave);
        self.finish_frame()?;
        self.show_end(before, wave, out);
        self.show_stop(out);
        Ok(())
    }

    /// Returns whether the instruction of the selected wave has a line in a source file.
    pub fn has_line(&self) -> bool {
        let program = &self.timeline.prepared.program;
        let at = program.inst_at(self.timeline.wave(self.focus.wave).pc);
        at.is_some_and(|at| program.source_line(at).is_some())
    }

    /// Returns whether the last command has stopped for no other reason than its end.
    fn completed(&self) -> bool {
        self.stops[..] == [crate::stop::Stop::Done]
    }

    /// Executes the current instruction: over a call, and out of a loop at a branch back.
    ///
    /// # Errors
    /// The condition of a breakpoint cannot be evaluated.
    pub fn step_over(&mut self) -> Result<(), String> {
        let wave = self.focus.wave;
        let pc = self.timeline.wave(wave).pc;
        let program = &self.timeline.prepared.program;
        let Some(at) = program.inst_at(pc) else { return self.step_wave(1) };
        let following = pc + program.insts[at].size as u64;
        if self.calls(pc) {
            return self.run_in_frame(vec![following], 0..0);
        }
        let target = successors(program, at).into_iter().flatten().map(|at| program.pcs[at]).min();
        match target {
            // A loop ends wherever its code ends: there, or at a branch out of it.
            Some(target) if self.effects[at].class == Class::Branch && target <= pc => {
                let mut exits = vec![following];
                let inside = program.pcs.iter().enumerate().filter(|(_, p)| (target..=pc).contains(p));
                for (index, _) in inside {
                    let next = successors(program, index).into_iter().flatten().map(|at| program.pcs[at]);
                    exits.extend(next.filter(|p| !(target..=pc).contains(p)));
                }
                self.run_in_frame(exits, target..following)
            }
            // Other waves run while this one waits at a barrier.
            _ if self.effects[at].class != Class::Branch => self.run_in_frame(vec![following], 0..0),
            _ => self.step_wave(1),
        }
    }

    /// Runs until the selected wave is at an instruction outside of `inside`, in the present frame or in one
    /// around it. `stop_pcs` has the instructions of the present frame at which that may be.
    fn run_in_frame(&mut self, mut stop_pcs: Vec<u64>, inside: std::ops::Range<u64>) -> Result<(), String> {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        let depth = self.timeline.calls(wave).len();
        stop_pcs.extend(self.timeline.calls(wave).iter().map(|call| call.after));
        self.begin();
        self.run_while(true, &stop_pcs, &mut move |m, w| {
            let outside = |m: &Timeline<'_>| {
                m.calls(wave).len() < depth
                    || m.calls(wave).len() == depth && !inside.contains(&m.wave(wave).pc)
            };
            left(m, group, wave) || m.position().0 == group && w == wave && outside(m)
        })
    }

    /// Executes the rest of the source line at which the selected wave is, with the functions that it calls if
    /// `over`.
    ///
    /// # Errors
    /// The condition of a breakpoint cannot be evaluated.
    pub fn step_line(&mut self, over: bool) -> Result<(), String> {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        let from = self.source_position(wave);
        loop {
            let pc = self.timeline.wave(wave).pc;
            let into_unknown = !over && self.calls(pc) && !self.calls_with_lines(pc);
            if over && self.calls(pc) || into_unknown {
                self.step_over()?;
            } else {
                self.step_wave(1)?;
            }
            let moved = self.timeline.position().0 != group || self.focus.wave != wave;
            if from.line.is_none() || moved || !self.completed() || self.interrupted() {
                return Ok(());
            }
            let here = self.source_position(wave);
            let done = match here.depth.cmp(&from.depth) {
                std::cmp::Ordering::Less => here.line.is_some(),
                // A called function, once it has a line and its frame.
                std::cmp::Ordering::Greater => {
                    let pc = self.timeline.wave(wave).pc;
                    here.line.is_some() && !breakpoint::is_in_prologue(pc, &self.timeline)
                }
                std::cmp::Ordering::Equal => {
                    let deeper = here.inlined.len() > from.inlined.len()
                        && here.inlined[..from.inlined.len()] == from.inlined[..];
                    // Code without a line belongs to the line before it.
                    here.line.is_some()
                        && !(over && deeper)
                        && (here.line != from.line || here.inlined != from.inlined)
                }
            };
            if done {
                return Ok(());
            }
        }
    }

    /// Executes one instruction of the selected wave; for a call, everything up to the return from it.
    ///
    /// # Errors
    /// The condition of a breakpoint cannot be evaluated.
    pub fn step_over_call(&mut self) -> Result<(), String> {
        if self.calls(self.timeline.wave(self.focus.wave).pc) { self.step_over() } else { self.step_wave(1) }
    }

    /// Runs until the selected frame has returned; from the kernel, until the wave has ended.
    ///
    /// # Errors
    /// The condition of a breakpoint cannot be evaluated.
    pub fn finish_frame(&mut self) -> Result<(), String> {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        let all = frames(&self.timeline, wave);
        let selected = self.timeline.selected_frame(wave);
        let Some(frame) = all.get(selected).filter(|_| selected + 1 < all.len()) else {
            self.begin();
            return self.run_while(true, &[], &mut move |m, _| left(m, group, wave));
        };
        if frame.inlined {
            return self.finish_inlined(frame);
        }
        // The number of calls that remain after the return.
        let calls = self.timeline.calls(wave);
        let rest = calls.len() - frame.level - 1;
        let stop_pcs: Vec<u64> = calls[..=rest].iter().map(|call| call.after).collect();
        self.begin();
        self.run_while(true, &stop_pcs, &mut move |m, w| {
            left(m, group, wave) || m.position().0 == group && w == wave && m.calls(wave).len() <= rest
        })
    }

    /// Executes instructions until the wave has left an inlined function.
    fn finish_inlined(&mut self, frame: &Frame) -> Result<(), String> {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        let depth = self.timeline.calls(wave).len() - frame.level;
        loop {
            match self.timeline.calls(wave).len() > depth {
                true => self.finish_call(depth)?,
                false => self.step_over_call()?,
            }
            let moved = self.timeline.position().0 != group || self.focus.wave != wave;
            if moved || !self.completed() || self.interrupted() {
                return Ok(());
            }
            let here = frames(&self.timeline, wave);
            let inside = here.iter().any(|f| f.level == 0 && f.function == frame.function);
            if self.timeline.calls(wave).len() < depth || !inside {
                return Ok(());
            }
        }
    }

    /// Runs until at most `depth` calls of the selected wave have not returned.
    fn finish_call(&mut self, depth: usize) -> Result<(), String> {
        let wave = self.focus.wave;
        let group = self.timeline.position().0;
        let stop_pcs: Vec<u64> = self.timeline.calls(wave).iter().map(|call| call.after).collect();
        self.begin();
        self.run_while(true, &stop_pcs, &mut move |m, w| {
            left(m, group, wave) || m.position().0 == group && w == wave && m.calls(wave).len() <= depth
        })
    }

    fn source_position(&self, wave: usize) -> Position {
        let program = &self.timeline.prepared.program;
        let line = program.inst_at(self.timeline.wave(wave).pc).and_then(|at| self.line_of(at));
        let functions = self.timeline.prepared.debug.functions(program.address(self.timeline.wave(wave).pc));
        let inlined = functions.into_iter().rev().filter(|f| f.inlined);
        let inlined = inlined.map(|f| (f.name, f.call.map(|call| call.to_string()))).collect();
        Position { depth: self.timeline.calls(wave).len(), inlined, line }
    }

    /// Returns whether the instruction at a PC is a call.
    pub(super) fn calls(&self, pc: u64) -> bool {
        let at = self.timeline.prepared.program.inst_at(pc);
        at.is_some_and(|at| jumps(std::slice::from_ref(&self.effects[at])) == [Some(Jump::Call)])
    }

    /// Returns whether the call at a PC, which the selected wave is about to execute, is of code with lines.
    fn calls_with_lines(&self, pc: u64) -> bool {
        let program = &self.timeline.prepared.program;
        let Some(at) = program.inst_at(pc) else { return false };
        let wave = self.timeline.wave(self.focus.wave);
        let direct = successors(program, at)[1];
        let target = direct.or_else(|| {
            // The target of an indirect call is in a pair of SGPRs.
            let pair = self.effects[at].reads.iter().find(|r| r.count == 2)?;
            let [low, high] = [0, 1].map(|k| wave.sgpr((pair.first + k) as u32) as u64);
            program.inst_at((low | high << 32).wrapping_sub(wave.code_base))
        });
        // The first instructions of a function may have no line.
        target.is_none_or(|at| (at..program.insts.len()).take(8).any(|at| self.line_of(at).is_some()))
    }

    /// Returns the file and the line of an instruction: in the files that debug information names, or in the
    /// kernel's own text.
    fn line_of(&self, index: usize) -> Option<(u32, u32)> {
        let program = &self.timeline.prepared.program;
        let file = program.source_line(index).map_or(0, |line| line.file);
        Some((file, program.lines[index])).filter(|(_, line)| *line != 0)
    }
}

/// Returns whether a wave of a workgroup has ended.
fn left(timeline: &Timeline<'_>, group: u64, wave: usize) -> bool {
    timeline.has_ended(group) || timeline.position().0 == group && timeline.status(wave) == Status::Ended
}
