//! Commands that go back: `back`, `goto`, `reverse-continue`, `last-write`; and `why`, which searches back.

use super::{Debugger, Done, parse};
use crate::breakpoint::Watched;
use crate::expr::{self, Register};
use crate::search::{ChangeSearch, StopSearch, WriteSearch};
use crate::view;
use std::fmt::Write as _;
use wavesim_machine::exec::effects::{File, register_name};

impl Debugger<'_> {
    pub(super) fn back(&mut self, args: &str, out: &mut String) -> Done {
        let n = parse::count(args)?;
        if self.timeline.time() == 0 {
            return Err("the run is at its start".to_string());
        }
        self.travel(self.timeline.time().saturating_sub(n));
        self.show_position(out);
        Ok(())
    }

    /// Goes to a time, and reads the watched values there.
    pub(super) fn travel(&mut self, time: u64) {
        self.timeline.go_to(time);
        for watch in &mut self.watchpoints {
            watch.last = watch.what.content(&self.timeline);
        }
    }

    pub(super) fn go_to(&mut self, text: &str, out: &mut String) -> Done {
        let time = text.parse().map_err(|_| format!("`{text}` is not a step number"))?;
        self.travel(time);
        if self.timeline.time() < time {
            let _ = writeln!(out, "only {} steps have been run", self.timeline.time());
        }
        self.show_position(out);
        Ok(())
    }

    pub(super) fn reverse_continue(&mut self, out: &mut String) -> Done {
        let changes = self.watchpoints.iter();
        let changes = changes.map(|w| ChangeSearch { what: w.what.clone(), last: Vec::new() }).collect();
        let breakpoints = self.breakpoints.clone();
        let mut search = StopSearch { breakpoints: &breakpoints, changes, lane: self.focus.lane };
        match self.timeline.find_back(&mut search) {
            Some(time) => {
                let wave = self.timeline.wave_of_step(time);
                self.travel(time);
                self.focus.wave = wave.unwrap_or(self.focus.wave);
            }
            None => {
                out.push_str("back at the start\n");
                self.travel(0);
            }
        }
        self.show_position(out);
        Ok(())
    }

    pub(super) fn why(&mut self, text: &str, out: &mut String) -> Done {
        let (what, depth) = match text.rsplit_once(' ') {
            Some((what, depth)) if depth.parse::<u32>().is_ok() => (what.trim(), depth.parse().unwrap_or(1)),
            _ => (text, 1u32),
        };
        let wide = self.timeline.wave(self.focus.wave).size == 64;
        let (file, register) = match expr::register(what, wide, self.arch()) {
            Some(Register::Sgpr(first, _)) => (File::Sgpr, first),
            Some(Register::Vgpr(first, _)) => (File::Vgpr, first),
            Some(Register::Scc) => (File::Scc, 0),
            _ => return Err(format!("`{what}` is not a register whose writes are recorded")),
        };
        let now = self.timeline.time();
        self.trace_back(file, register, depth.min(8), 0, out);
        self.timeline.go_to(now);
        Ok(())
    }

    /// Lists the last write of a register and, `depth` levels deep, of its sources. Leaves the timeline in the past.
    pub(super) fn trace_back(
        &mut self,
        file: File,
        register: u16,
        depth: u32,
        indent: usize,
        out: &mut String,
    ) {
        let (wave, lane) = (self.focus.wave, self.focus.lane);
        let name = register_name(self.arch(), file, register, 1);
        let pad = "  ".repeat(indent);
        let lane_text = if file == File::Vgpr { format!(" (lane {lane})") } else { String::new() };
        let effects = std::mem::take(&mut self.effects);
        let found = self.timeline.find_back(&mut WriteSearch {
            effects: &effects,
            workgroup: self.timeline.workgroup(),
            wave,
            file,
            register,
            lane: (file == File::Vgpr).then_some(lane),
        });
        self.effects = effects;
        let Some(time) = found else {
            let _ = writeln!(out, "{pad}{name}{lane_text}: not written since the wave's start");
            return;
        };
        self.timeline.go_to(time);
        let pc = self.timeline.wave(wave).pc;
        let _ =
            writeln!(out, "{pad}{name}{lane_text}: step {time}, {}", view::instruction(&self.timeline, pc));
        if depth <= 1 {
            return;
        }
        let Some(at) = self.timeline.prepared.program.inst_at(pc) else { return };
        let sources: Vec<(File, u16)> =
            self.effects[at].reads.iter().map(|r| (r.file, r.start(self.timeline.wave(wave)))).collect();
        for (file, register) in sources {
            self.trace_back(file, register, depth - 1, indent + 1, out);
            self.timeline.go_to(time);
        }
    }

    pub(super) fn last_write(&mut self, text: &str, out: &mut String) -> Done {
        let what = self.watched(text)?;
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
                let mut search = WriteSearch { effects: &effects, workgroup, wave, file, register, lane };
                let found = self.timeline.find_back(&mut search);
                self.effects = effects;
                found
            }
            what => self.timeline.find_back(&mut ChangeSearch { what, last: Vec::new() }),
        };
        let time = found.ok_or_else(|| format!("nothing before this step wrote {text}"))?;
        if let Some(wave) = self.timeline.wave_of_step(time) {
            self.focus.wave = wave;
        }
        self.travel(time);
        self.show_position(out);
        Ok(())
    }
}
