//! The debugger's commands: [`help`] lists them, [`Debugger::execute`] runs a line.
//!
//! [`run`] goes forward, [`past`] back; [`points`] are breakpoints and watchpoints; [`look`] shows, [`set`] changes state.

mod help;
mod look;
mod parse;
mod past;
mod points;
mod run;
mod set;

pub use help::{COMMANDS, Help};

use super::expr::{self, Focus};
use super::machine::Machine;
use super::stops::{Breakpoint, Watchpoint};
use super::view;
use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use wavesim_engine::sched::dispatch::INTERRUPT;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{self, Effects};
use wavesim_machine::memory::word_address;

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
    /// Asked now and then by a command that runs long: whether the user wants it to stop.
    stop: fn() -> bool,
    /// It has been stopped so.
    stopped: Cell<bool>,
}

/// Whether Ctrl-C has come since the last time this was asked.
pub fn ctrl_c() -> bool {
    INTERRUPT.swap(false, Ordering::Relaxed)
}

type Done = Result<(), String>;

impl<'a> Debugger<'a> {
    pub fn new(machine: Machine<'a>, stop: fn() -> bool) -> Debugger<'a> {
        let prepared = machine.prepared;
        Debugger {
            effects: effects::table(&prepared.program, prepared.shape.wave_size),
            machine,
            focus: Focus { wave: 0, lane: 0 },
            breakpoints: Vec::new(),
            watchpoints: Vec::new(),
            next_number: 1,
            last: String::new(),
            stop,
            stopped: Cell::new(false),
        }
    }

    /// Whether the user has stopped a command.
    pub fn was_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Runs a command line; its output, or the reason it cannot be done. An empty line repeats the last step.
    pub fn execute(&mut self, line: &str) -> (Result<String, String>, Flow) {
        let line = line.trim();
        if line.starts_with('#') {
            return (Ok(String::new()), Flow::More);
        }
        let line = if line.is_empty() { std::mem::take(&mut self.last) } else { line.to_string() };
        let mut out = String::new();
        let (word, rest) = parse::split_command(&line);
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
            "step" => self.step(parse::count(rest)?, out),
            "stepall" => self.step_all(parse::count(rest)?, out),
            "next" => self.next(out),
            "continue" => self.go_on(out),
            "until" => self.until(rest, out),
            "finish" => self.finish(out),
            "back" => self.back(parse::count(rest)?, out),
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
            "explain" => self.explain(rest, out),
            _ => help::help(rest, out),
        }
    }

    fn arch(&self) -> Arch {
        self.machine.prepared.program.arch
    }

    /// The byte address behind an address as the machine counts it.
    fn byte_address(&self, address: u64) -> u64 {
        if self.machine.memory().counts_words() { word_address(address) } else { address }
    }

    fn here(&self, out: &mut String) {
        if let Some(fault) = self.machine.fault() {
            let _ = writeln!(out, "{fault}");
        }
        let _ = writeln!(out, "{}", view::place(&self.machine, self.focus.wave));
    }
}
