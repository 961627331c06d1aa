//! The debugger's commands: [`Debugger::execute`] runs a line, [`COMMANDS`] is the table of all commands.
//!
//! `table` has the names, help, completion and function of each command. The functions are methods of
//! [`Debugger`]: `run` has the commands that go forward, `back` those that go back, `breakpoints` those for
//! breakpoints and watchpoints, `show` those that display state, and `set` those that change it. Commands
//! return text; they never write to a terminal.

mod back;
mod breakpoints;
mod cause;
mod complete;
mod descriptor;
mod frame;
mod help;
mod parse;
mod run;
mod session;
mod set;
pub(crate) use set::encoded;
mod show;
mod step;
mod table;
mod why;

pub use session::Files;
pub use table::{COMMANDS, Command, Completion};

use super::breakpoint::{Breakpoint, Watched, Watchpoint};
use super::expr::{self, Focus};
use super::frames::source_place;
use super::stop::Stop;
use super::timeline::Timeline;
use super::view;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use wavesim_engine::sched::dispatch::INTERRUPT;
use wavesim_engine::sched::group::Status;
use wavesim_inspect::check::Check;
use wavesim_isa::arch::Arch;
use wavesim_machine::exec::effects::{self, Effects, File, Use};
use wavesim_machine::memory::word_address;

/// Whether the session continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Read the next command.
    Continue,
    /// The user has requested to leave.
    Quit,
}

/// A debugging session: a run, the selected wave and lane, and the conditions for stopping.
pub struct Debugger<'a> {
    /// The run.
    pub timeline: Timeline<'a>,
    /// The selected wave and lane.
    pub focus: Focus,
    /// Breakpoints, in the order in which they were set.
    pub breakpoints: Vec<Breakpoint>,
    /// Watchpoints, in the order in which they were set.
    pub watchpoints: Vec<Watchpoint>,
    /// The reasons for the last stop; never empty after a command that runs.
    pub stops: Vec<Stop>,
    /// Messages logged by breakpoints in the last run.
    pub log: Vec<String>,
    /// The checks whose findings stop the run; `None` for all enabled checks.
    pub stop_at: Option<Vec<Check>>,
    /// Values to show after each stop, as arguments of `print`, each with its number.
    pub displays: Vec<(u32, String)>,
    /// Messages of a command in addition to the reasons for stopping.
    notes: Vec<String>,
    /// The value of the last `last-write`, and the time of the write.
    last_write: Option<(Watched, u64)>,
    files: Option<Box<dyn Files + 'a>>,
    /// Source files by path, as far as they have been shown.
    sources: RefCell<BTreeMap<String, Option<Rc<str>>>>,
    effects: Vec<Effects>,
    next_number: u32,
    /// The command that an empty line repeats.
    repeated: String,
    /// Returns whether the user wants to interrupt; polled by long commands.
    poll_interrupt: Rc<dyn Fn() -> bool + 'a>,
    was_interrupted: Cell<bool>,
    /// Set by `quit`.
    quit: bool,
}

/// Returns whether Ctrl-C was pressed since the last call.
pub fn ctrl_c() -> bool {
    INTERRUPT.swap(false, Ordering::Relaxed)
}

type CommandResult = Result<(), String>;

impl<'a> Debugger<'a> {
    /// Creates a session at the start of a run. Long commands poll `poll_interrupt` and stop when it returns
    /// true.
    pub fn new(mut timeline: Timeline<'a>, poll_interrupt: impl Fn() -> bool + 'a) -> Debugger<'a> {
        let prepared = timeline.prepared;
        let poll_interrupt: Rc<dyn Fn() -> bool + 'a> = Rc::new(poll_interrupt);
        timeline.set_poll(poll_interrupt.clone());
        Debugger {
            effects: effects::table(&prepared.program, prepared.shape.wave_size),
            focus: Focus { wave: timeline.next_wave().unwrap_or(0), lane: 0 },
            timeline,
            breakpoints: Vec::new(),
            watchpoints: Vec::new(),
            stops: vec![Stop::Start],
            log: Vec::new(),
            stop_at: None,
            displays: Vec::new(),
            notes: Vec::new(),
            last_write: None,
            files: None,
            sources: RefCell::default(),
            next_number: 1,
            repeated: String::new(),
            poll_interrupt,
            was_interrupted: Cell::new(false),
            quit: false,
        }
    }

    /// Ends the session, and returns the run.
    pub fn into_timeline(self) -> Timeline<'a> {
        let mut timeline = self.timeline;
        // The session polls on behalf of its client.
        timeline.set_poll(Rc::new(|| false));
        timeline
    }

    /// Returns whether findings of a check stop the run.
    fn stops_at(&self, check: Check) -> bool {
        self.stop_at.as_ref().is_none_or(|list| list.contains(&check))
    }

    /// Returns whether any instruction of the program names a register.
    pub fn uses(&self, file: File, register: u16) -> bool {
        let names = |u: &Use| u.file == file && (u.first..u.first + u.count).contains(&register);
        self.effects.iter().any(|e| e.reads.iter().chain(&e.writes).any(names))
    }

    /// Returns whether the user has interrupted a command.
    pub fn was_interrupted(&self) -> bool {
        self.was_interrupted.get()
    }

    /// Runs a command line. Returns its output or an error message. An empty line repeats the previous
    /// command if that was a step.
    pub fn execute(&mut self, line: &str) -> (Result<String, String>, Flow) {
        let line = line.trim();
        if line.starts_with('#') {
            return (Ok(String::new()), Flow::Continue);
        }
        let line = if line.is_empty() { std::mem::take(&mut self.repeated) } else { line.to_string() };
        let (name, args) = parse::split_command(&line);
        if name.is_empty() {
            return (Ok(String::new()), Flow::Continue);
        }
        let Some(command) = Command::find(name) else {
            let names: Vec<&str> = COMMANDS.iter().flat_map(Command::names).collect();
            let near =
                expr::nearest(name, &names).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return (Err(format!("there is no command `{name}`{near} (`help` lists them)")), Flow::Continue);
        };
        self.repeated = if command.repeats { line.clone() } else { String::new() };
        let mut out = String::new();
        self.timeline.take_cancelled();
        let done = (command.run)(self, args.trim(), &mut out);
        if self.timeline.take_cancelled() {
            self.was_interrupted.set(true);
            return (Err(format!("`{name}` was interrupted before its end")), Flow::Continue);
        }
        match done {
            Ok(()) if self.quit => (Ok(out), Flow::Quit),
            Ok(()) => (Ok(out), Flow::Continue),
            Err(message) => (Err(message), Flow::Continue),
        }
    }

    fn quit(&mut self) -> CommandResult {
        self.quit = true;
        Ok(())
    }

    fn arch(&self) -> Arch {
        self.timeline.prepared.program.arch
    }

    /// Converts an address in the architecture's unit to bytes.
    fn byte_address(&self, address: u64) -> u64 {
        if self.timeline.memory().is_word_addressed() { word_address(address) } else { address }
    }

    /// Writes the fault, if any, the position of the selected wave, and the displayed values.
    fn show_position(&mut self, out: &mut String) {
        if let Some(fault) = self.timeline.fault() {
            let _ = writeln!(out, "{fault}");
        }
        let _ = writeln!(out, "{}", view::position(&self.timeline, self.focus.wave));
        if self.timeline.status(self.focus.wave) != Status::Ended
            && let Some(place) = source_place(self.timeline.prepared, self.timeline.wave(self.focus.wave).pc)
            && let Some(line) = self.source_line(&place)
        {
            let _ = writeln!(out, "{line}");
        }
        self.show_displays(out);
    }
}
