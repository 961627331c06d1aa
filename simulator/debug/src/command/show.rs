//! Commands that select and display: `info`, `wave`, `lane`, `group`, `print`, `x`, `list`, `registers`, `explain`.

use super::{CommandResult, Debugger, parse};
use crate::breakpoint::{Access, Watched};
use crate::expr::{self, Focus, Value};
use crate::format::Format;
use crate::frames::source_place;
use crate::stop::Stop;
use crate::{breakpoint, explain, variables, view};
use std::fmt::Write as _;
use wavesim_array::DType;
use wavesim_inspect::check::Outstanding;
use wavesim_machine::memory::WORD;

impl Debugger<'_> {
    pub(super) fn info(&mut self, what: &str, out: &mut String) -> CommandResult {
        match what {
            "" => {
                let reported = self.stops.iter().filter(|stop| **stop != Stop::Start);
                reported.for_each(|stop| out.push_str(&stop.to_string()));
                self.show_position(out);
            }
            "checks" => self.findings(out),
            "l" | "locals" => return self.locals(out),
            "display" => {
                for (number, text) in &self.displays {
                    let _ = writeln!(out, "{number}: {text}");
                }
            }
            "w" | "waves" => out.push_str(&view::waves(&self.timeline, self.focus)),
            "r" | "registers" => return self.registers(out),
            "c" | "counters" => self.counters(out),
            "b" | "breakpoints" => {
                for b in &self.breakpoints {
                    let times = if b.hits == 1 { "time" } else { "times" };
                    let _ = write!(out, "{}: {}", b.number, b.location);
                    if let Some(wave) = b.wave {
                        let _ = write!(out, ", wave {wave}");
                    }
                    if let Some(count) = b.count {
                        let _ = write!(out, ", hits {count}");
                    }
                    if b.temporary {
                        out.push_str(", temporary");
                    }
                    let _ = write!(out, ", hit {} {times}", b.hits);
                    if let Some(message) = &b.message {
                        let _ = write!(out, ", log {message}");
                    }
                    out.push('\n');
                }
                for w in &self.watchpoints {
                    let times = if w.hits == 1 { "time" } else { "times" };
                    let kind = match w.access {
                        Access::Change => "watch",
                        Access::Read => "rwatch",
                        Access::Any => "awatch",
                    };
                    let _ = write!(out, "{}: {kind} {}", w.number, w.text);
                    if let Watched::Register { wave, .. } | Watched::Scratch { wave, .. } = w.target {
                        let _ = write!(out, ", wave {wave}");
                    }
                    let _ = writeln!(out, ", hit {} {times}", w.hits);
                }
                if self.breakpoints.is_empty() && self.watchpoints.is_empty() {
                    out.push_str("no breakpoints\n");
                }
            }
            "a" | "args" => {
                for b in &self.timeline.prepared.buffers {
                    let shape: Vec<String> = b.shape.iter().map(u64::to_string).collect();
                    let _ = writeln!(
                        out,
                        "{}: {}[{}] at 0x{:x}",
                        b.name,
                        b.dtype.name(),
                        shape.join(","),
                        self.timeline.memory().own_address(b.address)
                    );
                }
            }
            other => {
                return Err(format!(
                    "there is no `info {other}`; there are waves, breakpoints, args, locals, registers, counters, checks and display"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn registers(&self, out: &mut String) -> CommandResult {
        out.push_str(&view::registers(&self.timeline, self.focus));
        Ok(())
    }

    /// Lists the findings of the checks so far.
    fn findings(&self, out: &mut String) {
        if self.timeline.checks().is_empty() {
            out.push_str("no checks run (start with --check)\n");
            return;
        }
        let mut any = false;
        for (step, finding) in self.timeline.findings() {
            let _ = writeln!(out, "step {step}: {finding}");
            any = true;
        }
        if !any {
            out.push_str("no findings so far\n");
        }
    }

    /// Lists the wait counters that hardware would have, with the operations that they count.
    fn counters(&mut self, out: &mut String) {
        let prepared = self.timeline.prepared;
        let mut outstanding = Outstanding::new(&prepared.program, prepared.shape.wave_size);
        self.timeline.replay_group(&mut outstanding);
        for (name, pcs) in outstanding.of_wave(self.focus.wave as u32) {
            let _ = writeln!(out, "{name} {}", pcs.len());
            for pc in pcs {
                let _ = writeln!(out, "  {}", view::instruction(&self.timeline, pc));
            }
        }
    }

    pub(super) fn select_wave(&mut self, text: &str, out: &mut String) -> CommandResult {
        let n = self.timeline.waves();
        let wave = text.parse::<usize>().ok().filter(|w| *w < n);
        self.focus.wave = wave.ok_or_else(|| format!("the workgroup has waves 0 to {}", n - 1))?;
        self.show_position(out);
        Ok(())
    }

    pub(super) fn select_lane(&mut self, text: &str, out: &mut String) -> CommandResult {
        let size = self.timeline.wave(self.focus.wave).size();
        let lane = text.parse::<u32>().ok().filter(|l| *l < size);
        self.focus.lane = lane.ok_or_else(|| format!("the wave has lanes 0 to {}", size - 1))?;
        let on = self.timeline.wave(self.focus.wave).exec() >> self.focus.lane & 1 == 1;
        let _ = writeln!(out, "lane {}{}", self.focus.lane, if on { "" } else { " (inactive)" });
        Ok(())
    }

    pub(super) fn select_group(&mut self, text: &str, out: &mut String) -> CommandResult {
        let wanted = wavesim_engine::sched::dispatch::parse_group(text)?;
        let dims = self.timeline.prepared.shape.grid;
        if (0..3).any(|d| wanted[d] >= dims[d]) {
            let [x, y, z] = dims;
            return Err(format!("the grid has {x} x {y} x {z} workgroups"));
        }
        if let Some(start) = self.timeline.start_of(wanted) {
            self.travel(start);
        } else {
            self.begin();
            self.focus.wave = self.timeline.next_wave().unwrap_or(0);
            // Breakpoints of the workgroups on the way do not stop the run.
            let breakpoints = std::mem::take(&mut self.breakpoints);
            let watchpoints = std::mem::take(&mut self.watchpoints);
            let result = self.run_while(true, &[], &mut |m, _| m.start_of(wanted).is_some());
            (self.breakpoints, self.watchpoints) = (breakpoints, watchpoints);
            for watch in &mut self.watchpoints {
                watch.last = watch.target.read(&self.timeline);
            }
            result?;
            if self.timeline.workgroup() != wanted {
                self.show_stop(out);
                return Ok(());
            }
        }
        self.focus.wave = 0;
        self.show_position(out);
        Ok(())
    }

    pub(super) fn print(&mut self, text: &str, out: &mut String) -> CommandResult {
        let (text, letter) = match text.strip_prefix('/') {
            Some(rest) => {
                let (letter, rest) = rest.split_once(' ').ok_or("expected `print /x WHAT`")?;
                (rest.trim(), Some(Format::of_letter(letter)?))
            }
            None => (text, None),
        };
        let (text, lanes) = match text.split_once(" lanes ") {
            Some((head, range)) => (head.trim(), Some(parse::lane_range(range)?)),
            None => (text, None),
        };
        let (what, format) = match text.rsplit_once(" as ") {
            Some((head, ty)) => (head.trim(), Some(Format::parse(ty.trim())?)),
            None => (text, letter),
        };
        if self.print_descriptor(what, out)? || self.print_texel(what, out)? {
            return Ok(());
        }
        let wide = self.timeline.wave(self.focus.wave).size() == 64;
        if let Some(register) = expr::register(what, wide, self.arch()) {
            out.push_str(&view::register(&self.timeline, self.focus, register, format, lanes)?);
            return Ok(());
        }
        let hidden = variables::hides_argument(&self.timeline, self.focus.wave, what);
        if let Some(buffer) = self.timeline.prepared.buffer(what).filter(|_| !hidden) {
            let array = buffer.read(self.timeline.memory()).map_err(|e| e.to_string())?;
            let _ = writeln!(out, "{what} = {}", wavesim_array::show::show(&array, false));
            return Ok(());
        }
        if let Some(lanes) = lanes {
            return self.print_lanes(what, lanes, format, out);
        }
        if let Some(slice) = expr::slice(what) {
            return self.print_slice(what, &slice, format, out);
        }
        if let Some(object) = self.object(what, self.focus)?
            && (format.is_none() || object.has_parts())
        {
            let mark = if object.of_start { "@start" } else { "" };
            let _ = writeln!(out, "{what}{mark} = {}", object.show(&self.timeline, self.focus, format)?);
            return Ok(());
        }
        let value = expr::evaluate(what, &self.timeline, self.focus)?;
        let hex = match value {
            Value::Int(v) if !(-9..=9).contains(&v) && format.is_none() => format!(" (0x{:x})", v as u64),
            _ => String::new(),
        };
        let _ = writeln!(out, "{what} = {}{hex}", Format::value(format, value));
        Ok(())
    }

    /// Prints an expression in each lane.
    fn print_lanes(
        &mut self,
        what: &str,
        lanes: std::ops::RangeInclusive<u32>,
        format: Option<Format>,
        out: &mut String,
    ) -> CommandResult {
        let w = self.timeline.wave(self.focus.wave);
        if *lanes.end() >= w.size() {
            return Err(format!(
                "there is no lane {}; the wave has lanes 0 to {}",
                lanes.end(),
                w.size() - 1
            ));
        }
        let mut list = Vec::new();
        for lane in lanes {
            let focus = Focus { lane, ..self.focus };
            let object = self.object(what, focus)?.filter(|o| format.is_none() || o.has_parts());
            list.push(match object {
                Some(object) => (lane, object.show(&self.timeline, focus, format)?),
                None => (lane, Format::value(format, expr::evaluate(what, &self.timeline, focus)?)),
            });
        }
        let _ = writeln!(out, "{what}");
        out.push_str(&wavesim_array::show::lanes(&list, w.exec()));
        Ok(())
    }

    /// Prints elements, lanes or bytes from one index to another.
    fn print_slice(
        &mut self,
        what: &str,
        slice: &expr::Slice<'_>,
        format: Option<Format>,
        out: &mut String,
    ) -> CommandResult {
        let int = |text: &str| match expr::evaluate(text, &self.timeline, self.focus)? {
            Value::Int(v) => u64::try_from(v).map_err(|_| format!("{v} is not an index")),
            Value::Float(_) => Err("an index must be an integer".to_string()),
        };
        let (first, last) = (int(slice.first)?, int(slice.last)?);
        if last < first {
            return Err(format!("{first}..{last} is an empty slice"));
        }
        let step = expr::step_of(slice.name, slice.tail);
        let mut values = Vec::new();
        for at in (first..=last).step_by(step).take(4096) {
            let one = format!("{}[{at}]{}", slice.name, slice.tail);
            let value = expr::evaluate(&one, &self.timeline, self.focus)?;
            values.push(Format::value(format, value));
        }
        let width = values.iter().map(String::len).max().unwrap_or(1);
        let columns = [16, 8, 4, 2].into_iter().find(|c| c * (width + 1) <= 64).unwrap_or(1);
        let _ = writeln!(out, "{what} =");
        for (row, cells) in values.chunks(columns).enumerate() {
            let _ = write!(out, "  {:>4}:", first + (row * columns * step) as u64);
            for cell in cells {
                let _ = write!(out, " {cell:>width$}");
            }
            out.push('\n');
        }
        Ok(())
    }

    pub(super) fn examine(&mut self, text: &str, out: &mut String) -> CommandResult {
        let usage = "expected x/COUNT TYPE ADDRESS, as in x/8f32 out_y";
        let text = text.strip_prefix('/').ok_or(usage)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let n: u64 = if digits == 0 { 1 } else { text[..digits].parse().map_err(|_| usage)? };
        let rest = text[digits..].trim_start();
        let (ty, address) = rest.split_once(' ').ok_or(usage)?;
        let dtype = DType::from_name(ty)
            .ok_or_else(|| format!("`{ty}` is not a type; types are {}", DType::names()))?;
        let len = (n.min(1 << 16) as usize) * dtype.size();
        let (space, address) = match address.trim().split_once(' ') {
            Some((space @ ("lds" | "scratch"), address)) => (space, address.trim()),
            _ => ("", address.trim()),
        };
        let at = match expr::evaluate(address, &self.timeline, self.focus)? {
            Value::Int(v) => v as u64,
            Value::Float(_) => return Err("an address must be an integer".to_string()),
        };
        let mut bytes = vec![0; len];
        let memory = expr::Space::named(space).unwrap_or(expr::Space::Global);
        memory.read(&self.timeline, self.focus, at, &mut bytes)?;
        let unit = if space.is_empty() && self.timeline.memory().is_word_addressed() { WORD } else { 1 };
        out.push_str(&view::memory(&bytes, at, unit, dtype));
        Ok(())
    }

    pub(super) fn explain(&mut self, text: &str, out: &mut String) -> CommandResult {
        let lanes = match text.strip_prefix("lanes ").or(text.strip_prefix("lane ")) {
            Some(range) => Some(parse::lane_range(range)?),
            None if text == "all" => Some(0..=self.timeline.wave(self.focus.wave).size() - 1),
            None if text.is_empty() => None,
            None => return Err("expected `explain [lanes A..B|all]`".to_string()),
        };
        out.push_str(&explain::explain(&self.timeline, self.focus, lanes)?);
        Ok(())
    }

    pub(super) fn list(&mut self, place: &str, out: &mut String) -> CommandResult {
        let pc = match place {
            "" => self.timeline.wave(self.focus.wave).pc,
            place => breakpoint::locate(place, &self.timeline)?,
        };
        let pc = if place.is_empty() { self.timeline.frame_pc(self.focus.wave) } else { pc };
        let source = source_place(self.timeline.prepared, pc);
        let source = source.and_then(|place| Some((self.source_text(&place.path)?, place)));
        match source {
            Some((text, place)) => {
                out.push_str(&view::source(&self.timeline, &text, &place, 5, &self.breakpoints));
            }
            None => out.push_str(&view::listing(&self.timeline, pc, 5, &self.breakpoints)),
        }
        Ok(())
    }
}
