//! Commands for the session as a whole: `display`, `restart`, `save`, `resume`.
//!
//! A saved session is text: a line that identifies the launch, commands that set breakpoints, and the journal of
//! the run, which is replayed.

use super::{CommandResult, Debugger};
use crate::breakpoint::{Access, Breakpoint, Watchpoint};
use crate::timeline::{Edit, Journal};
use std::fmt::Write as _;
use wavesim_loader::debug_info::SourcePlace;

/// The first line of a saved session.
const HEADER: &str = "wavesim session 1";

/// Files, which the debugger itself does not access.
pub trait Files {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, path: &str) -> Result<String, String>;

    /// Writes a file.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, path: &str, text: &str) -> Result<(), String>;

    /// Returns the text of a source file that debug information names; `None` if it is not found.
    fn source(&self, path: &str) -> Option<String>;
}

impl Files for Box<dyn Files> {
    fn read(&self, path: &str) -> Result<String, String> {
        (**self).read(path)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        (**self).write(path, text)
    }

    fn source(&self, path: &str) -> Option<String> {
        (**self).source(path)
    }
}

impl<'a> Debugger<'a> {
    /// Gives the debugger access to files, for sources and saved sessions.
    pub fn set_files(&mut self, files: impl Files + 'a) {
        self.files = Some(Box::new(files));
    }

    fn files(&self) -> Result<&dyn Files, String> {
        self.files.as_deref().ok_or_else(|| "files are not accessible here".to_string())
    }

    /// Returns the text of a source file, if it is found.
    pub fn source_text(&self, path: &str) -> Option<std::rc::Rc<str>> {
        let files = self.files.as_deref()?;
        let mut texts = self.sources.borrow_mut();
        let text = texts.entry(path.to_string()).or_insert_with(|| files.source(path).map(Into::into));
        text.clone()
    }

    /// Returns a line of the source with its number, if the file is found.
    pub(super) fn source_line(&self, place: &SourcePlace) -> Option<String> {
        let text = self.source_text(&place.path)?;
        let line = text.lines().nth(place.line.checked_sub(1)? as usize)?;
        Some(format!("{:>4}  {line}", place.line))
    }

    pub(super) fn add_display(&mut self, text: &str, out: &mut String) -> CommandResult {
        if text.is_empty() {
            self.show_displays(out);
            return Ok(());
        }
        let mut shown = String::new();
        self.print(text, &mut shown)?;
        let number = self.displays.last().map_or(1, |d| d.0 + 1);
        self.displays.push((number, text.to_string()));
        let _ = write!(out, "{number}: {shown}");
        Ok(())
    }

    /// Writes the displayed values.
    pub(super) fn show_displays(&mut self, out: &mut String) {
        for (number, text) in self.displays.clone() {
            let mut shown = String::new();
            match self.print(&text, &mut shown) {
                Ok(()) => {
                    let _ = write!(out, "{number}: {shown}");
                }
                Err(message) => {
                    let _ = writeln!(out, "{number}: {text}: {message}");
                }
            }
        }
    }

    pub(super) fn undisplay(&mut self, text: &str) -> CommandResult {
        if text.is_empty() {
            self.displays.clear();
            return Ok(());
        }
        let number: u32 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
        let before = self.displays.len();
        self.displays.retain(|d| d.0 != number);
        if self.displays.len() == before { Err(format!("there is no display {number}")) } else { Ok(()) }
    }

    pub(super) fn restart(&mut self, out: &mut String) -> CommandResult {
        self.begin();
        self.timeline.restart();
        self.breakpoints.iter_mut().for_each(|b| b.hits = 0);
        self.watchpoints.iter_mut().for_each(|w| w.hits = 0);
        self.travel(0);
        self.focus.wave = self.timeline.next_wave().unwrap_or(0);
        self.stops.push(crate::stop::Stop::Start);
        self.show_position(out);
        Ok(())
    }

    pub(super) fn save(&mut self, path: &str, out: &mut String) -> CommandResult {
        if path.is_empty() {
            return Err("expected `save FILE`".to_string());
        }
        let text = self.saved();
        self.files()?.write(path, &text)?;
        let _ = writeln!(out, "saved {path}");
        Ok(())
    }

    /// Returns the session as text.
    pub fn saved(&mut self) -> String {
        let now = self.timeline.time();
        let frame = self.timeline.selected_frame(self.focus.wave);
        let mut out = format!("{HEADER}\nlaunch {:016x}\n", self.launch());
        for b in &self.breakpoints {
            let _ = writeln!(out, "{}", breakpoint_command(b));
        }
        for w in &self.watchpoints {
            let _ = writeln!(out, "{}", watchpoint_command(w));
        }
        for (_, text) in &self.displays {
            let _ = writeln!(out, "display {text}");
        }
        let journal = self.timeline.journal();
        let mut start = 0;
        for (wave, end) in &journal.steps {
            let _ = writeln!(out, "run {wave} {}", end - start);
            start = *end;
        }
        for time in &journal.switches {
            let _ = writeln!(out, "switch {time}");
        }
        for (time, edit) in &journal.edits {
            let _ = writeln!(out, "edit {time} {}", edit_text(*edit));
        }
        let _ = writeln!(out, "at {now} {} {} {frame}", self.focus.wave, self.focus.lane);
        out
    }

    pub(super) fn resume_saved(&mut self, path: &str, out: &mut String) -> CommandResult {
        if path.is_empty() {
            return Err("expected `resume FILE`".to_string());
        }
        let text = self.files()?.read(path)?;
        self.restore_saved(&text).map_err(|message| format!("{path}: {message}"))?;
        self.show_stop(out);
        Ok(())
    }

    /// Returns to a saved session.
    ///
    /// # Errors
    /// The text is not a saved session, or belongs to another launch.
    pub fn restore_saved(&mut self, text: &str) -> Result<(), String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err("not a saved session".to_string());
        }
        let launch = format!("launch {:016x}", self.launch());
        if lines.next() != Some(&launch) {
            return Err("the session is one of another kernel, or of other arguments".to_string());
        }
        let mut journal = Journal::default();
        let mut at = None;
        let mut commands = Vec::new();
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let numbers: Vec<u64> = rest.split(' ').filter_map(|n| n.parse().ok()).collect();
            match (word, &numbers[..]) {
                ("run", [wave, count]) => {
                    let before = journal.steps.last().map_or(0, |run| run.1);
                    journal.steps.push((*wave as u32, before.saturating_add(*count)));
                }
                ("switch", [time]) => journal.switches.push(*time),
                ("at", [time, wave, lane, frame]) => at = Some((*time, *wave, *lane, *frame)),
                ("edit", [time, ..]) => {
                    let words: Vec<&str> = rest.split(' ').skip(1).collect();
                    let edit = parse_edit(&words).ok_or_else(|| format!("`{line}` is not valid"))?;
                    journal.edits.push((*time, edit));
                }
                ("break" | "tbreak" | "watch" | "rwatch" | "awatch" | "display", _) => commands.push(line),
                _ => return Err(format!("`{line}` is not valid")),
            }
        }
        let (time, wave, lane, frame) = at.ok_or("the end of the session is missing")?;
        self.begin();
        self.breakpoints.clear();
        self.watchpoints.clear();
        self.displays.clear();
        self.next_number = 1;
        self.timeline.replay_journal(journal, time)?;
        let wave = usize::try_from(wave).ok().filter(|w| *w < self.timeline.waves());
        self.focus.wave = wave.ok_or("the workgroup does not have this wave")?;
        let size = self.timeline.wave(self.focus.wave).size();
        self.focus.lane = u32::try_from(lane).ok().filter(|l| *l < size).unwrap_or(0);
        for command in commands {
            self.execute(command).0?;
        }
        self.select_frame(usize::try_from(frame).unwrap_or(0))?;
        self.stops = vec![crate::stop::Stop::Done];
        Ok(())
    }

    /// Returns the number that identifies the launch.
    fn launch(&mut self) -> u64 {
        self.timeline.at_start(|timeline| timeline.prepared.identity())
    }
}

fn breakpoint_command(b: &Breakpoint) -> String {
    let mut out = format!("{} {}", if b.temporary { "tbreak" } else { "break" }, b.place);
    if let Some(wave) = b.wave {
        let _ = write!(out, " wave {wave}");
    }
    if let Some(count) = b.count {
        let _ = write!(out, " hits {count}");
    }
    if let Some(condition) = &b.condition {
        let _ = write!(out, " if {condition}");
    }
    if let Some(message) = &b.message {
        let _ = write!(out, " log {message}");
    }
    out
}

fn watchpoint_command(w: &Watchpoint) -> String {
    let kind = match w.access {
        Access::Change => "watch",
        Access::Read => "rwatch",
        Access::Any => "awatch",
    };
    // The text has the condition.
    format!("{kind} {}", w.text)
}

fn edit_text(edit: Edit) -> String {
    match edit {
        Edit::Sgpr { wave, code, value } => format!("sgpr {wave} {code} {value}"),
        Edit::Vgpr { wave, lane, register, value } => format!("vgpr {wave} {lane} {register} {value}"),
        Edit::Scc { wave, value } => format!("scc {wave} {value}"),
        Edit::Pc { wave, value } => format!("pc {wave} {value}"),
        Edit::Memory { address, value } => format!("memory {address} {value}"),
        Edit::Lds { offset, value } => format!("lds {offset} {value}"),
        Edit::Scratch { offset, value } => format!("scratch {offset} {value}"),
    }
}

fn parse_edit(words: &[&str]) -> Option<Edit> {
    fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
        text.parse().ok()
    }
    Some(match words {
        ["sgpr", wave, code, value] => {
            Edit::Sgpr { wave: number(wave)?, code: number(code)?, value: number(value)? }
        }
        ["vgpr", wave, lane, register, value] => Edit::Vgpr {
            wave: number(wave)?,
            lane: number(lane)?,
            register: number(register)?,
            value: number(value)?,
        },
        ["scc", wave, value] => Edit::Scc { wave: number(wave)?, value: number(value)? },
        ["pc", wave, value] => Edit::Pc { wave: number(wave)?, value: number(value)? },
        ["memory", address, value] => Edit::Memory { address: number(address)?, value: number(value)? },
        ["lds", offset, value] => Edit::Lds { offset: number(offset)?, value: number(value)? },
        ["scratch", offset, value] => Edit::Scratch { offset: number(offset)?, value: number(value)? },
        _ => return None,
    })
}
