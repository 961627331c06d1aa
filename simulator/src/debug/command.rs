//! The debugger's commands.

use super::expr::{self, Focus, Register, Value};
use super::machine::{Edit, Machine, Outcome};
use super::stops::{self, Breakpoint, ChangeSearch, StopSearch, Watched, Watchpoint, WriteSearch};
use super::view;
use crate::arch::Arch;
use crate::array::DType;
use crate::exec::effects::{self, Effects, File, register_name};
use crate::memory::{WORD, word_address};
use crate::sched::group::Status;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

/// A command's names, arguments and meaning. The first name is the long one.
pub struct Help {
    pub names: &'static [&'static str],
    pub arguments: &'static str,
    pub text: &'static str,
}

/// Every command, as `help` lists them.
pub const COMMANDS: &[Help] = &[
    Help {
        names: &["step", "s"],
        arguments: "[N]",
        text: "run N instructions of this wave (default 1); at a barrier let the other waves come first",
    },
    Help { names: &["stepall", "sa"], arguments: "[N]", text: "run one instruction of every wave, N times" },
    Help {
        names: &["next", "n"],
        arguments: "",
        text: "run to the instruction behind this one: over a call, or out of a loop's last branch",
    },
    Help {
        names: &["continue", "c"],
        arguments: "",
        text: "run all waves to the next breakpoint, change of something watched, fault, or the end",
    },
    Help {
        names: &["until", "u"],
        arguments: "PLACE",
        text: "run until this wave comes to a line, label or address",
    },
    Help { names: &["finish", "fin"], arguments: "", text: "run until this wave has ended" },
    Help {
        names: &["back", "bs"],
        arguments: "[N]",
        text: "undo the last N instructions, whichever waves ran them",
    },
    Help {
        names: &["reverse-continue", "rc"],
        arguments: "",
        text: "go back to the last breakpoint or change of something watched, or to the start",
    },
    Help {
        names: &["goto", "go"],
        arguments: "STEP",
        text: "go to a step of the past, or forward again to one already run",
    },
    Help {
        names: &["break", "b"],
        arguments: "PLACE [wave N] [if CONDITION]",
        text: "stop at a line, label or address (0x…); without a place: here",
    },
    Help { names: &["tbreak", "tb"], arguments: "PLACE [wave N] [if CONDITION]", text: "stop there once" },
    Help {
        names: &["watch"],
        arguments: "WHAT",
        text: "stop when it changes: a register (v3: any lane, v3[5]: one), out_y[3], mem ADDRESS BYTES, lds OFFSET BYTES",
    },
    Help { names: &["delete", "d"], arguments: "[N]", text: "delete a breakpoint or watchpoint, or all" },
    Help {
        names: &["info", "i"],
        arguments: "[waves|breakpoints|args|registers]",
        text: "show them; without an argument: where this wave stands",
    },
    Help { names: &["wave", "w"], arguments: "N", text: "choose a wave of the workgroup" },
    Help {
        names: &["group", "g"],
        arguments: "X[,Y[,Z]]",
        text: "run to the start of a workgroup, or go back to it",
    },
    Help { names: &["lane", "l"], arguments: "N", text: "choose the lane that expressions read" },
    Help {
        names: &["print", "p"],
        arguments: "WHAT [as TYPE] [lanes A..B]",
        text: "show registers (v3, v[0:3], s[2:3], exec), an argument (out_y, out_y[3]) or an expression",
    },
    Help {
        names: &["x"],
        arguments: "/COUNT TYPE ADDRESS",
        text: "show memory: x/8f32 out_y, x/16u8 lds 0x40, x/4u32 scratch 0",
    },
    Help {
        names: &["set"],
        arguments: "PLACE = VALUE",
        text: "change a register (s2, v3[5], v3 in all active lanes, scc, pc) or an argument's element (a[3])",
    },
    Help {
        names: &["list", "ls"],
        arguments: "[PLACE]",
        text: "show the source, or the instructions, around the PC or a place",
    },
    Help {
        names: &["registers", "r"],
        arguments: "",
        text: "show the wave's state: PC, masks, registers that are not 0",
    },
    Help {
        names: &["why", "bt"],
        arguments: "REGISTER [DEPTH]",
        text: "show which instruction wrote a register last, and what wrote its sources",
    },
    Help {
        names: &["last-write", "lw"],
        arguments: "WHAT",
        text: "go back to just before the last write of a register, out_y[3], mem ADDRESS BYTES or lds OFFSET BYTES",
    },
    Help {
        names: &["explain", "e"],
        arguments: "",
        text: "show the pseudocode of the instruction at the PC with its operands' values in this lane",
    },
    Help { names: &["help", "h"], arguments: "[COMMAND]", text: "show the commands, or one" },
    Help { names: &["quit", "q"], arguments: "", text: "leave" },
];

/// Whether to go on reading commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    More,
    Quit,
}

/// A debugging session.
pub struct Debugger<'a> {
    pub machine: Machine<'a>,
    pub focus: Focus,
    pub breakpoints: Vec<Breakpoint>,
    pub watchpoints: Vec<Watchpoint>,
    effects: Vec<Effects>,
    next_number: u32,
    /// Repeated by an empty line.
    last: String,
    /// Set from outside to stop a command that runs long.
    interrupt: &'static AtomicBool,
}

type Done = Result<(), String>;

impl<'a> Debugger<'a> {
    pub fn new(machine: Machine<'a>, interrupt: &'static AtomicBool) -> Debugger<'a> {
        let prepared = machine.prepared;
        Debugger {
            effects: effects::table(&prepared.program, prepared.shape.wave_size),
            machine,
            focus: Focus { wave: 0, lane: 0 },
            breakpoints: Vec::new(),
            watchpoints: Vec::new(),
            next_number: 1,
            last: String::new(),
            interrupt,
        }
    }

    /// Runs a command line; its output, or the reason it cannot be done. An empty line repeats the last step.
    pub fn execute(&mut self, line: &str) -> (Result<String, String>, Flow) {
        let line = line.trim();
        if line.starts_with('#') {
            return (Ok(String::new()), Flow::More);
        }
        let line = if line.is_empty() { std::mem::take(&mut self.last) } else { line.to_string() };
        let mut out = String::new();
        let (word, rest) = split_command(&line);
        if word.is_empty() {
            return (Ok(out), Flow::More);
        }
        let Some(help) = COMMANDS.iter().find(|c| c.names.contains(&word)) else {
            let names: Vec<&str> = COMMANDS.iter().flat_map(|c| c.names.iter().copied()).collect();
            let near =
                expr::nearest(word, &names).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return (Err(format!("there is no command `{word}`{near} (`help` lists them)")), Flow::More);
        };
        // Repeating these is what one wants of an empty line.
        if matches!(help.names[0], "step" | "stepall" | "next" | "continue" | "back" | "reverse-continue") {
            self.last = line.clone();
        }
        if help.names[0] == "quit" {
            return (Ok(out), Flow::Quit);
        }
        let result = self.command(help.names[0], rest.trim(), &mut out);
        (result.map(|()| out), Flow::More)
    }

    fn command(&mut self, name: &str, rest: &str, out: &mut String) -> Done {
        match name {
            "step" => self.step(count(rest)?, out),
            "stepall" => self.step_all(count(rest)?, out),
            "next" => self.next(out),
            "continue" => self.go_on(out),
            "until" => self.until(rest, out),
            "finish" => self.finish(out),
            "back" => self.back(count(rest)?, out),
            "reverse-continue" => self.reverse_continue(out),
            "goto" => self.go_to(rest, out),
            "break" => self.set_break(rest, false, out),
            "tbreak" => self.set_break(rest, true, out),
            "watch" => self.watch(rest, out),
            "delete" => self.delete(rest, out),
            "info" => self.info(rest, out),
            "wave" => self.choose_wave(rest, out),
            "group" => self.choose_group(rest, out),
            "lane" => self.choose_lane(rest, out),
            "print" => self.print(rest, out),
            "x" => self.examine(rest, out),
            "set" => self.set(rest),
            "list" => self.list(rest, out),
            "registers" => {
                out.push_str(&view::registers(&self.machine, self.focus));
                Ok(())
            }
            "why" => self.why(rest, out),
            "last-write" => self.last_write(rest, out),
            "explain" => {
                out.push_str(&view::explain(&self.machine, self.focus));
                Ok(())
            }
            _ => help(rest, out),
        }
    }

    fn here(&self, out: &mut String) {
        if let Some(fault) = self.machine.fault() {
            let _ = writeln!(out, "{fault}");
        }
        let _ = writeln!(out, "{}", view::place(&self.machine, self.focus.wave));
    }

    /// After a step of some wave: whether to stop. Says why.
    fn stops_after(&mut self, outcome: &Outcome, out: &mut String) -> bool {
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
            let now = watch.what.content(&self.machine);
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

    /// Whether a wave that is about to run is at a breakpoint.
    fn stops_before(&mut self, wave: usize, out: &mut String) -> Result<bool, String> {
        let focus = Focus { wave, lane: self.focus.lane };
        for at in 0..self.breakpoints.len() {
            if !self.breakpoints[at].hit(&self.machine, focus)? {
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

    fn interrupted(&self, out: &mut String) -> bool {
        let yes = self.interrupt.swap(false, Ordering::Relaxed);
        if yes {
            out.push_str("interrupted\n");
        }
        yes
    }

    /// Runs other waves until this one can go on. False if it never can.
    fn unblock(&mut self, out: &mut String) -> Result<bool, String> {
        let wave = self.focus.wave;
        let from = self.machine.time();
        while !self.machine.can_run(wave) {
            if self.machine.status(wave) == Status::Ended || self.machine.fault().is_some() {
                return Ok(false);
            }
            let Some(other) = self.machine.next_wave() else { return Ok(false) };
            if self.stops_before(other, out)? {
                return Ok(false);
            }
            let outcome = self.machine.step(other);
            if self.stops_after(&outcome, out) || self.interrupted(out) {
                return Ok(false);
            }
        }
        let steps = self.machine.time() - from;
        if steps > 0 {
            let _ = writeln!(out, "other waves ran {steps} steps to the barrier");
        }
        Ok(true)
    }

    fn step(&mut self, n: u64, out: &mut String) -> Done {
        self.machine.prefer(self.focus.wave);
        let group = self.machine.position().0;
        for k in 0..n {
            if !self.unblock(out)? {
                break;
            }
            let wave = self.focus.wave;
            if k > 0 && self.stops_before(wave, out)? {
                break;
            }
            let outcome = self.machine.step(wave);
            if self.stops_after(&outcome, out) || self.interrupted(out) {
                break;
            }
            // The wave was the workgroup's last.
            if self.machine.position().0 != group {
                break;
            }
        }
        self.end(out);
        self.here(out);
        Ok(())
    }

    fn step_all(&mut self, n: u64, out: &mut String) -> Done {
        'all: for _ in 0..n {
            let group = self.machine.position().0;
            for wave in 0..self.machine.waves() {
                if !self.machine.can_run(wave) {
                    continue;
                }
                let outcome = self.machine.step(wave);
                if self.stops_after(&outcome, out) || self.machine.position().0 != group {
                    break 'all;
                }
            }
            if self.interrupted(out) {
                break;
            }
        }
        self.end(out);
        out.push_str(&view::waves(&self.machine, self.focus));
        Ok(())
    }

    /// Runs everything until something stops it; the first step is taken without looking for breakpoints.
    fn run(&mut self, out: &mut String, wanted: &mut dyn FnMut(&Machine<'_>, usize) -> bool) -> Done {
        self.machine.prefer(self.focus.wave);
        let mut first = true;
        while let Some(wave) = self.machine.next_wave() {
            if !first {
                if wanted(&self.machine, wave) {
                    self.focus.wave = wave;
                    break;
                }
                if self.stops_before(wave, out)? {
                    break;
                }
            }
            first = false;
            let outcome = self.machine.step(wave);
            if self.stops_after(&outcome, out) {
                if !matches!(outcome, Outcome::Fault(_)) {
                    self.focus.wave = wave;
                }
                break;
            }
            if self.machine.time().is_multiple_of(256) && self.interrupted(out) {
                break;
            }
        }
        self.end(out);
        self.here(out);
        Ok(())
    }

    /// Says that the run is over, if it is.
    fn end(&self, out: &mut String) {
        if self.machine.fault().is_some() {
            return;
        }
        if self.machine.finished() {
            let _ = writeln!(out, "the run has ended after {} steps", self.machine.time());
        } else if self.machine.next_wave().is_none() {
            out.push_str("deadlock: no wave can go on\n");
        }
    }

    fn go_on(&mut self, out: &mut String) -> Done {
        self.run(out, &mut |_, _| false)
    }

    fn next(&mut self, out: &mut String) -> Done {
        let wave = self.focus.wave;
        let group = self.machine.position().0;
        let pc = self.machine.wave(wave).pc;
        let program = &self.machine.prepared.program;
        let Some(at) = program.inst_at(pc) else { return self.step(1, out) };
        let behind = pc + program.insts[at].size as u64;
        self.run(out, &mut move |m, w| m.position().0 != group || w == wave && m.wave(w).pc == behind)
    }

    fn until(&mut self, place: &str, out: &mut String) -> Done {
        let pc = stops::locate(place, &self.machine)?;
        let wave = self.focus.wave;
        self.run(out, &mut move |m, w| w == wave && m.wave(w).pc == pc)
    }

    fn finish(&mut self, out: &mut String) -> Done {
        let wave = self.focus.wave;
        let group = self.machine.position().0;
        self.run(out, &mut move |m, _| m.position().0 != group || m.status(wave) == Status::Ended)?;
        self.focus.wave = wave;
        Ok(())
    }

    fn back(&mut self, n: u64, out: &mut String) -> Done {
        if self.machine.time() == 0 {
            return Err("this is the start".to_string());
        }
        self.travel(self.machine.time().saturating_sub(n));
        self.here(out);
        Ok(())
    }

    /// To a step of the past or future; watchpoints look anew.
    fn travel(&mut self, time: u64) {
        self.machine.go_to(time);
        for watch in &mut self.watchpoints {
            watch.last = watch.what.content(&self.machine);
        }
    }

    fn go_to(&mut self, text: &str, out: &mut String) -> Done {
        let time = text.parse().map_err(|_| format!("`{text}` is no step: a number is"))?;
        self.travel(time);
        if self.machine.time() < time {
            let _ = writeln!(out, "no more steps than {} have been run", self.machine.time());
        }
        self.here(out);
        Ok(())
    }

    fn reverse_continue(&mut self, out: &mut String) -> Done {
        let changes = self.watchpoints.iter();
        let changes = changes.map(|w| ChangeSearch { what: w.what.clone(), last: Vec::new() }).collect();
        let breakpoints = self.breakpoints.clone();
        let mut search = StopSearch { breakpoints: &breakpoints, changes, lane: self.focus.lane };
        match self.machine.find_back(&mut search) {
            Some(time) => {
                let wave = self.machine.wave_of_step(time);
                self.travel(time);
                self.focus.wave = wave.unwrap_or(self.focus.wave);
            }
            None => {
                out.push_str("back at the start\n");
                self.travel(0);
            }
        }
        self.here(out);
        Ok(())
    }

    fn set_break(&mut self, rest: &str, temporary: bool, out: &mut String) -> Done {
        let (head, condition) = match rest.split_once("if ") {
            Some((head, condition)) => (head.trim(), Some(condition.trim().to_string())),
            None => (rest, None),
        };
        let (place, wave) = match head.split_once("wave ") {
            Some((place, wave)) => {
                let wave = wave.trim().parse::<usize>().ok().filter(|w| *w < self.machine.waves());
                (place.trim(), Some(wave.ok_or("there is no such wave")?))
            }
            None => (head, None),
        };
        let pc = match place {
            "" => self.machine.wave(self.focus.wave).pc,
            place => stops::locate(place, &self.machine)?,
        };
        if let Some(text) = &condition {
            // Wrong conditions are told now, not at the first hit.
            expr::evaluate(text, &self.machine, self.focus)?;
        }
        let number = self.number();
        let mut text = self.machine.prepared.program.place(pc);
        if let Some(condition) = &condition {
            let _ = write!(text, " if {condition}");
        }
        let kind = if temporary { "temporary breakpoint" } else { "breakpoint" };
        let _ = writeln!(out, "{kind} {number} at {}", view::instruction(&self.machine, pc));
        self.breakpoints.push(Breakpoint { number, pc, place: text, condition, wave, temporary, hits: 0 });
        Ok(())
    }

    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn watched(&self, text: &str) -> Result<Watched, String> {
        let int = |text: &str| match expr::evaluate(text, &self.machine, self.focus)? {
            Value::Int(v) => u64::try_from(v).map_err(|_| format!("{v} is no address")),
            Value::Float(_) => Err("an integer is expected".to_string()),
        };
        for (word, lds) in [("mem ", false), ("lds ", true)] {
            if let Some(rest) = text.strip_prefix(word) {
                let (address, len) = rest.trim().rsplit_once(' ').unwrap_or((rest, "4"));
                let (at, len) = (int(address)?, int(len)?.clamp(1, 1 << 20));
                return Ok(if lds {
                    Watched::Lds { offset: at, len }
                } else {
                    Watched::Memory { address: self.byte_address(at), len }
                });
            }
        }
        let wave = self.focus.wave;
        let wide = self.machine.wave(wave).size == 64;
        if let Some(register) = expr::register(text, wide, self.arch()) {
            return Ok(Watched::Register { wave, register, lane: None });
        }
        let (name, index) = text.strip_suffix(']').and_then(|t| t.rsplit_once('[')).ok_or_else(|| {
            format!(
                "`{text}` can't be watched: a register, NAME[i], mem ADDRESS BYTES or lds OFFSET BYTES can"
            )
        })?;
        if let Some(register @ Register::Vgpr(..)) = expr::register(name, wide, self.arch()) {
            let lane = int(index)? as u32;
            return Ok(Watched::Register { wave, register, lane: Some(lane) });
        }
        let buffer =
            self.machine.prepared.buffer(name).ok_or_else(|| format!("there is no argument `{name}`"))?;
        let (size, address) = (buffer.dtype.size() as u64, buffer.address);
        Ok(Watched::Memory { address: address.wrapping_add(int(index)?.wrapping_mul(size)), len: size })
    }

    fn arch(&self) -> Arch {
        self.machine.prepared.program.arch
    }

    /// The byte address behind an address as the machine counts it.
    fn byte_address(&self, address: u64) -> u64 {
        if self.machine.memory().counts_words() { word_address(address) } else { address }
    }

    fn watch(&mut self, text: &str, out: &mut String) -> Done {
        let what = self.watched(text)?;
        let last = what.content(&self.machine);
        let number = self.number();
        let _ = writeln!(out, "watchpoint {number}: {text}");
        self.watchpoints.push(Watchpoint { number, text: text.to_string(), what, last });
        Ok(())
    }

    fn delete(&mut self, text: &str, out: &mut String) -> Done {
        if text.is_empty() {
            self.breakpoints.clear();
            self.watchpoints.clear();
            out.push_str("all breakpoints and watchpoints deleted\n");
            return Ok(());
        }
        let number: u32 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
        let before = self.breakpoints.len() + self.watchpoints.len();
        self.breakpoints.retain(|b| b.number != number);
        self.watchpoints.retain(|w| w.number != number);
        if self.breakpoints.len() + self.watchpoints.len() == before {
            return Err(format!("there is no breakpoint or watchpoint {number}"));
        }
        Ok(())
    }

    fn info(&mut self, what: &str, out: &mut String) -> Done {
        match what {
            "" => self.here(out),
            "w" | "waves" => out.push_str(&view::waves(&self.machine, self.focus)),
            "r" | "registers" => out.push_str(&view::registers(&self.machine, self.focus)),
            "b" | "breakpoints" => {
                for b in &self.breakpoints {
                    let _ = writeln!(out, "{}: {}, hit {} times", b.number, b.place, b.hits);
                }
                for w in &self.watchpoints {
                    let _ = writeln!(out, "{}: watch {}", w.number, w.text);
                }
                if self.breakpoints.is_empty() && self.watchpoints.is_empty() {
                    out.push_str("no breakpoints\n");
                }
            }
            "a" | "args" => {
                for b in &self.machine.prepared.buffers {
                    let shape: Vec<String> = b.shape.iter().map(u64::to_string).collect();
                    let _ = writeln!(
                        out,
                        "{}: {}[{}] at 0x{:x}",
                        b.name,
                        b.dtype.name(),
                        shape.join(","),
                        self.machine.memory().own_address(b.address)
                    );
                }
            }
            other => return Err(format!("info waves, breakpoints, args or registers, not `{other}`")),
        }
        Ok(())
    }

    fn choose_wave(&mut self, text: &str, out: &mut String) -> Done {
        let n = self.machine.waves();
        let wave = text.parse::<usize>().ok().filter(|w| *w < n);
        self.focus.wave = wave.ok_or_else(|| format!("the workgroup has waves 0 to {}", n - 1))?;
        self.here(out);
        Ok(())
    }

    fn choose_lane(&mut self, text: &str, out: &mut String) -> Done {
        let size = self.machine.wave(self.focus.wave).size;
        let lane = text.parse::<u32>().ok().filter(|l| *l < size);
        self.focus.lane = lane.ok_or_else(|| format!("the wave has lanes 0 to {}", size - 1))?;
        let on = self.machine.wave(self.focus.wave).exec() >> self.focus.lane & 1 == 1;
        let _ = writeln!(out, "lane {}{}", self.focus.lane, if on { "" } else { " (switched off by EXEC)" });
        Ok(())
    }

    fn choose_group(&mut self, text: &str, out: &mut String) -> Done {
        let wanted = crate::cli::observe::parse_group(text)?;
        let dims = self.machine.prepared.shape.grid;
        if (0..3).any(|d| wanted[d] >= dims[d]) {
            let [x, y, z] = dims;
            return Err(format!("the grid has {x} x {y} x {z} workgroups"));
        }
        let index = |g: [u32; 3]| g[0] as u64 + dims[0] as u64 * (g[1] as u64 + dims[1] as u64 * g[2] as u64);
        // Workgroups run one after another: an earlier one is in the past.
        if index(wanted) <= self.machine.position().0 {
            let start = self.machine.group_start(index(wanted)).unwrap_or(0);
            self.travel(start);
        } else {
            while self.machine.position().0 < index(wanted) {
                let Some(wave) = self.machine.next_wave() else { break };
                let outcome = self.machine.step(wave);
                if self.stops_after(&outcome, out) || self.interrupted(out) {
                    break;
                }
            }
        }
        self.focus.wave = 0;
        self.here(out);
        Ok(())
    }

    fn print(&mut self, text: &str, out: &mut String) -> Done {
        let (text, lanes) = match text.split_once(" lanes ") {
            Some((head, range)) => (head.trim(), Some(lane_range(range)?)),
            None => (text, None),
        };
        let (what, dtype) = match text.rsplit_once(" as ") {
            Some((head, ty)) => {
                let dtype = DType::from_name(ty.trim());
                (
                    head.trim(),
                    Some(dtype.ok_or_else(|| format!("`{ty}` is no type: {} are", DType::names()))?),
                )
            }
            None => (text, None),
        };
        let wide = self.machine.wave(self.focus.wave).size == 64;
        if let Some(register) = expr::register(what, wide, self.arch()) {
            out.push_str(&view::register(&self.machine, self.focus, register, dtype, lanes)?);
            return Ok(());
        }
        if let Some(buffer) = self.machine.prepared.buffer(what) {
            let array = buffer.read(self.machine.memory()).map_err(|e| e.to_string())?;
            let _ = writeln!(out, "{what} = {}", crate::array::show::show(&array, false));
            return Ok(());
        }
        let mut value = expr::evaluate(what, &self.machine, self.focus)?;
        if let (Some(dtype), Value::Int(bits)) = (dtype, value) {
            value = expr::read_as(bits as u64, dtype);
        }
        let hex = match value {
            Value::Int(v) if !(-9..=9).contains(&v) && dtype.is_none() => format!(" (0x{:x})", v as u64),
            _ => String::new(),
        };
        let _ = writeln!(out, "{what} = {value}{hex}");
        Ok(())
    }

    fn examine(&mut self, text: &str, out: &mut String) -> Done {
        let usage = "x/COUNT TYPE ADDRESS, as in x/8f32 out_y";
        let text = text.strip_prefix('/').ok_or(usage)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let n: u64 = if digits == 0 { 1 } else { text[..digits].parse().map_err(|_| usage)? };
        let rest = text[digits..].trim_start();
        let (ty, address) = rest.split_once(' ').ok_or(usage)?;
        let dtype =
            DType::from_name(ty).ok_or_else(|| format!("`{ty}` is no type: {} are", DType::names()))?;
        let len = (n.min(1 << 16) as usize) * dtype.size();
        let (space, address) = match address.trim().split_once(' ') {
            Some((space @ ("lds" | "scratch"), address)) => (space, address.trim()),
            _ => ("", address.trim()),
        };
        let at = match expr::evaluate(address, &self.machine, self.focus)? {
            Value::Int(v) => v as u64,
            Value::Float(_) => return Err("an address is an integer".to_string()),
        };
        let mut bytes = vec![0; len];
        match space {
            "" => {
                let memory = self.machine.memory();
                let read = memory.read(self.byte_address(at), &mut bytes);
                read.map_err(|e| memory.explain(&e))?;
            }
            _ => {
                let shape = &self.machine.prepared.shape;
                let (memory, start, size) = if space == "lds" {
                    (&self.machine.group.lds, 0, shape.lds_bytes as u64)
                } else {
                    let lane = self.focus.wave as u64 * shape.wave_size as u64 + self.focus.lane as u64;
                    (
                        &self.machine.group.scratch,
                        lane * shape.scratch_bytes as u64,
                        shape.scratch_bytes as u64,
                    )
                };
                let end = at.checked_add(len as u64).filter(|end| *end <= size);
                let end = end.ok_or_else(|| format!("{space} has {size} bytes"))?;
                bytes.copy_from_slice(&memory[(start + at) as usize..(start + end) as usize]);
            }
        }
        let unit = if space.is_empty() && self.machine.memory().counts_words() { WORD } else { 1 };
        out.push_str(&view::memory(&bytes, at, unit, dtype));
        Ok(())
    }

    fn set(&mut self, text: &str) -> Done {
        let (place, value) = text.split_once('=').ok_or("set PLACE = VALUE")?;
        let place = place.trim();
        let value = expr::evaluate(value, &self.machine, self.focus)?;
        let wave = self.focus.wave;
        let wide = self.machine.wave(wave).size == 64;
        let (name, index) = match place.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
            Some((name, index)) if expr::register(place, wide, self.arch()).is_none() => {
                match expr::evaluate(index, &self.machine, self.focus)? {
                    Value::Int(v) => (name, Some(v as u64)),
                    Value::Float(_) => return Err("an index is an integer".to_string()),
                }
            }
            _ => (place, None),
        };
        let edits: Vec<Edit> = match expr::register(name, wide, self.arch()) {
            Some(Register::Sgpr(first, n)) => (0..n.min(2))
                .map(|k| Edit::Sgpr { wave, code: first + k, value: (value.bits() >> (32 * k)) as u32 })
                .collect(),
            Some(Register::Vgpr(register, _)) => {
                let w = self.machine.wave(wave);
                let lanes: Vec<u32> = match index {
                    Some(lane) if lane < w.size as u64 => vec![lane as u32],
                    Some(lane) => return Err(format!("there is no lane {lane}")),
                    None => (0..w.size).filter(|l| w.exec() >> l & 1 == 1).collect(),
                };
                let value = value.bits() as u32;
                lanes.into_iter().map(|lane| Edit::Vgpr { wave, lane, register, value }).collect()
            }
            Some(Register::Scc) => vec![Edit::Scc { wave, value: value.bits() as u32 }],
            Some(Register::Pc) => {
                let pc = self.arch().byte_pc(value.bits());
                if self.machine.prepared.program.inst_at(pc).is_none() {
                    return Err(format!("no instruction begins at 0x{:x}", value.bits()));
                }
                vec![Edit::Pc { wave, value: pc }]
            }
            Some(_) => return Err(format!("{name} can't be set")),
            None => self.memory_edits(name, index, value)?,
        };
        for edit in edits {
            self.machine.edit(edit).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn memory_edits(&self, name: &str, index: Option<u64>, value: Value) -> Result<Vec<Edit>, String> {
        let buffer =
            self.machine.prepared.buffer(name).ok_or_else(|| format!("there is no `{name}` to set"))?;
        let index = index.ok_or_else(|| format!("which element? {name}[i]"))?;
        let size = buffer.dtype.size() as u64;
        if index.saturating_mul(size) >= buffer.len_bytes {
            return Err(format!("{name} has {} elements", buffer.len_bytes / size));
        }
        let mut bytes = Vec::new();
        let number = match value {
            Value::Int(v) => crate::array::Num::Int(v),
            Value::Float(v) => crate::array::Num::Float(v),
        };
        buffer.dtype.encode(number, &mut bytes).map_err(|e| e.to_string())?;
        let at = buffer.address + index * size;
        Ok((at..).zip(bytes).map(|(address, value)| Edit::Memory { address, value }).collect())
    }

    fn list(&mut self, place: &str, out: &mut String) -> Done {
        let pc = match place {
            "" => self.machine.wave(self.focus.wave).pc,
            place => stops::locate(place, &self.machine)?,
        };
        out.push_str(&view::listing(&self.machine, pc, 5, &self.breakpoints));
        Ok(())
    }

    fn why(&mut self, text: &str, out: &mut String) -> Done {
        let (what, depth) = match text.rsplit_once(' ') {
            Some((what, depth)) if depth.parse::<u32>().is_ok() => (what.trim(), depth.parse().unwrap_or(1)),
            _ => (text, 1u32),
        };
        let wide = self.machine.wave(self.focus.wave).size == 64;
        let (file, register) = match expr::register(what, wide, self.arch()) {
            Some(Register::Sgpr(first, _)) => (File::Sgpr, first),
            Some(Register::Vgpr(first, _)) => (File::Vgpr, first),
            Some(Register::Scc) => (File::Scc, 0),
            _ => return Err(format!("`{what}` is no register with a history")),
        };
        let now = self.machine.time();
        self.trace_back(file, register, depth.min(8), 0, out);
        self.machine.go_to(now);
        Ok(())
    }

    /// Who wrote a register, and, so many levels deep, who wrote what that was made of. Leaves the machine in the past.
    fn trace_back(&mut self, file: File, register: u16, depth: u32, indent: usize, out: &mut String) {
        let (wave, lane) = (self.focus.wave, self.focus.lane);
        let name = register_name(self.arch(), file, register, 1);
        let pad = "  ".repeat(indent);
        let whose = if file == File::Vgpr { format!(" (lane {lane})") } else { String::new() };
        let effects = std::mem::take(&mut self.effects);
        let found = self.machine.find_back(&mut WriteSearch {
            effects: &effects,
            workgroup: self.machine.workgroup(),
            wave,
            file,
            register,
            lane: (file == File::Vgpr).then_some(lane),
        });
        self.effects = effects;
        let Some(time) = found else {
            let _ = writeln!(out, "{pad}{name}{whose}: not written since the wave's start");
            return;
        };
        self.machine.go_to(time);
        let pc = self.machine.wave(wave).pc;
        let _ = writeln!(out, "{pad}{name}{whose}: step {time}, {}", view::instruction(&self.machine, pc));
        if depth <= 1 {
            return;
        }
        let Some(at) = self.machine.prepared.program.inst_at(pc) else { return };
        let sources: Vec<(File, u16)> =
            self.effects[at].reads.iter().map(|r| (r.file, r.start(self.machine.wave(wave)))).collect();
        for (file, register) in sources {
            self.trace_back(file, register, depth - 1, indent + 1, out);
            self.machine.go_to(time);
        }
    }

    fn last_write(&mut self, text: &str, out: &mut String) -> Done {
        let what = self.watched(text)?;
        let found = match what {
            Watched::Register { wave, register, lane } => {
                let (file, register) = match register {
                    Register::Sgpr(first, _) => (File::Sgpr, first),
                    Register::Vgpr(first, _) => (File::Vgpr, first),
                    Register::Scc => (File::Scc, 0),
                    _ => return Err(format!("`{text}` is no register with a history")),
                };
                let effects = std::mem::take(&mut self.effects);
                let workgroup = self.machine.workgroup();
                let mut search = WriteSearch { effects: &effects, workgroup, wave, file, register, lane };
                let found = self.machine.find_back(&mut search);
                self.effects = effects;
                found
            }
            what => self.machine.find_back(&mut ChangeSearch { what, last: Vec::new() }),
        };
        let time = found.ok_or_else(|| format!("nothing before this step wrote {text}"))?;
        if let Some(wave) = self.machine.wave_of_step(time) {
            self.focus.wave = wave;
        }
        self.travel(time);
        self.here(out);
        Ok(())
    }
}

/// The first word, which ends at a space or, for `x/8f32`, at a slash.
fn split_command(line: &str) -> (&str, &str) {
    let end = line.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(line.len());
    line.split_at(end)
}

fn count(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(1);
    }
    text.parse().map_err(|_| format!("`{text}` is no count"))
}

fn lane_range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |t: &str| t.trim().parse::<u32>().map_err(|_| format!("`{t}` is no lane"));
    let (first, last) = match text.split_once("..") {
        Some((a, b)) => (number(a)?, number(b.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(format!("lanes {first}..{last} are none"));
    }
    Ok(first..=last)
}

fn hex(bytes: &[u8]) -> String {
    // As a number: highest byte first.
    bytes.iter().rev().fold("0x".to_string(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

fn help(name: &str, out: &mut String) -> Done {
    let list: Vec<&Help> = match name {
        "" => COMMANDS.iter().collect(),
        name => vec![
            COMMANDS
                .iter()
                .find(|c| c.names.contains(&name))
                .ok_or_else(|| format!("there is no command `{name}`"))?,
        ],
    };
    for c in list {
        let head = format!("{} {}", c.names.join(", "), c.arguments);
        let _ = writeln!(out, "{}\n    {}", head.trim_end(), c.text);
    }
    if name.is_empty() {
        out.push_str("An empty line repeats the last step. Expressions: v3[5] > 10, s[2:3] + 8, out_y[3], exec, $step; `.f32` or `as f32` reads bits as a type.\n");
    }
    Ok(())
}
