//! The state of the full-screen debugger, and its keys.

use super::panes::{Numbers, Pane};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wavesim_debug::command::{Debugger, Flow};
use wavesim_debug::stop::Stop;
use wavesim_debug::timeline::Timeline;

/// The state of the screen.
pub struct App<'a> {
    /// The debugging session.
    pub debugger: Debugger<'a>,
    /// The output of the last command.
    pub output: String,
    /// The command being typed after `:`.
    pub input: Option<String>,
    /// A command that will run the kernel once the screen has been redrawn.
    pub pending: Option<String>,
    /// The pane in the lower right part.
    pub pane: Pane,
    /// The first visible line of the output, or of the help on keys.
    pub output_at: u16,
    /// The texts of the files that debug information names, as far as they were found.
    pub sources: Vec<Option<String>>,
    /// Whether the instructions are shown even if source is available.
    pub disassembly: bool,
    /// The selected line of the source, if it differs from the line of the wave.
    pub cursor: Option<usize>,
    /// The first visible VGPR.
    pub first_vgpr: u32,
    /// The first visible lane. Drawing scrolls it to keep the selected lane visible.
    pub first_lane: u32,
    /// The number format of registers and memory.
    pub numbers: Numbers,
    /// The VGPR of the heat map.
    pub heat: Option<u32>,
    /// The first visible address of memory.
    pub memory_at: u64,
    /// Index of the argument that contains it.
    pub argument: usize,
    /// The first visible offset of LDS and of scratch.
    pub local_at: u64,
    /// The registers before the last command, to highlight changes.
    pub previous: PreviousRegisters,
}

/// The contents of the upper left part.
pub enum Listing<'l> {
    /// The source of a text kernel or an assembly file.
    Kernel {
        /// Name of the file.
        name: &'l str,
        /// The full text.
        text: &'l str,
    },
    /// A file that debug information names.
    File {
        /// Index in the program's list.
        file: usize,
        /// The name in debug information.
        name: &'l str,
        /// The full text.
        text: &'l str,
    },
    /// The instructions.
    Instructions,
}

impl Listing<'_> {
    /// Returns the first and the last line, for a program of `instructions` instructions.
    pub fn lines(&self, instructions: usize) -> (usize, usize) {
        match self {
            Listing::Kernel { text, .. } | Listing::File { text, .. } => (1, text.lines().count().max(1)),
            Listing::Instructions => (0, instructions.saturating_sub(1)),
        }
    }
}

/// The registers of a wave at an earlier time.
#[derive(Default)]
pub struct PreviousRegisters {
    /// The wave.
    pub wave: usize,
    /// SGPRs by operand code.
    pub sgprs: Vec<u32>,
    /// VGPRs, with the lanes of each one contiguous.
    pub vgprs: Vec<u32>,
}

impl PreviousRegisters {
    /// Captures the current registers of a wave.
    fn of(timeline: &Timeline<'_>, wave: usize) -> PreviousRegisters {
        let w = timeline.wave(wave);
        let vgprs = (0..256).flat_map(|r| (0..w.size()).map(move |l| (l, r))).map(|(l, r)| w.vgpr(l, r));
        PreviousRegisters { wave, sgprs: w.sgprs.to_vec(), vgprs: vgprs.collect() }
    }

    /// Returns a VGPR in a lane of a wave of `size` lanes.
    pub fn vgpr(&self, size: u32, lane: u32, register: u32) -> Option<u32> {
        self.vgprs.get((register * size + lane) as usize).copied()
    }
}

/// The most important keys, shown in the last two lines of the screen; at most 80 columns wide.
pub const KEYS: [&str; 2] = [
    "s step  a all waves  n next  c continue  b back  r reverse  Esc stop  B break",
    "Tab pane  ←→ lane  ↑↓ scroll  t type  y why  PgUp source  : command  ? keys  q",
];

/// The help on all keys.
pub const HELP: &str = "\
s        step: one line of this wave, into calls; one instruction where the pane shows them
a        one instruction of every wave
n        next: over calls, or out of a loop
F        finish: out of this function
K        the calls of this wave
[ ]      the caller's frame, and back
i        variables of this function
c        continue to the next stop
b        back one instruction
r        reverse: back to the previous stop
Esc      stop a kernel that runs
B        set or delete a breakpoint in the selected line
w        select the next wave
← →      select a lane
↑ ↓      scroll the pane below
PgUp     select a line further up in the source
PgDn     select a line further down
Home     back to the line of this wave
Tab      the next pane: VGPRs, Memory, LDS, Scratch, Output
v m l x  VGPRs, Memory (again: the next argument), LDS, Scratch
o        Output: what the last command printed
t f      type of the numbers; f32
h        heat map of the topmost VGPR, where there is room
d        instructions in place of the source
e        explain this instruction
y        why: the origin of the error that a check has reported
:        a command of the debugger; `:help` lists them
?        these keys
q        quit
";

impl<'a> App<'a> {
    /// Creates the screen at the start of a session.
    pub fn new(debugger: Debugger<'a>) -> App<'a> {
        let memory_at = debugger.timeline.prepared.buffers.first().map_or(0, |b| b.address);
        let before = PreviousRegisters::of(&debugger.timeline, 0);
        App {
            debugger,
            output: String::new(),
            input: None,
            pending: None,
            pane: Pane::Vgprs,
            output_at: 0,
            sources: Vec::new(),
            disassembly: false,
            cursor: None,
            first_vgpr: 0,
            first_lane: 0,
            numbers: Numbers::Hex,
            heat: None,
            memory_at,
            argument: 0,
            local_at: 0,
            previous: before,
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Flow {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Flow::Quit;
        }
        if self.input.is_some() {
            return self.edit_command(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Flow::Quit,
            KeyCode::Char(':') => self.input = Some(String::new()),
            KeyCode::Char('s') => return self.command(if self.disassembly { "stepi" } else { "step" }),
            KeyCode::Char('a') => return self.command("stepall"),
            KeyCode::Char('n') => {
                self.pending = Some(if self.disassembly { "nexti" } else { "next" }.to_string());
            }
            KeyCode::Char('F') => self.pending = Some("finish".to_string()),
            KeyCode::Char('K') => return self.command("backtrace"),
            KeyCode::Char('[') => return self.command("up"),
            KeyCode::Char(']') => return self.command("down"),
            KeyCode::Char('i') => return self.command("info locals"),
            KeyCode::Char('c') => self.pending = Some("continue".to_string()),
            KeyCode::Char('b') => return self.command("back"),
            KeyCode::Char('r') => self.pending = Some("reverse-continue".to_string()),
            KeyCode::Char('B') => self.toggle_breakpoint(),
            KeyCode::Char('w') => {
                let next = (self.debugger.focus.wave + 1) % self.debugger.timeline.waves();
                return self.command(&format!("wave {next}"));
            }
            KeyCode::Char('f') => {
                self.numbers = if self.numbers == Numbers::F32 { Numbers::Hex } else { Numbers::F32 };
            }
            KeyCode::Char('t') => self.numbers = self.numbers.next(),
            KeyCode::Char('h') => {
                self.heat = if self.heat == Some(self.first_vgpr) { None } else { Some(self.first_vgpr) };
            }
            KeyCode::Char('m') => self.next_memory(),
            KeyCode::Char('v') => self.pane = Pane::Vgprs,
            KeyCode::Char('l') => self.pane = Pane::Lds,
            KeyCode::Char('x') => self.pane = Pane::Scratch,
            KeyCode::Char('o') => self.show(Pane::Output),
            KeyCode::Tab => self.show(self.pane.next()),
            KeyCode::BackTab => self.show(self.pane.previous()),
            KeyCode::Char('e') => {
                self.show(Pane::Output);
                return self.command("explain");
            }
            KeyCode::Char('y') => {
                self.show(Pane::Output);
                self.pending = Some("why".to_string());
            }
            KeyCode::Char('d') => {
                self.disassembly = !self.disassembly;
                self.cursor = None;
            }
            KeyCode::Char('?') => self.show(Pane::Keys),
            KeyCode::Right => self.move_lane(1),
            KeyCode::Left => self.move_lane(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::Up => self.scroll(-1),
            KeyCode::PageDown => self.move_cursor(4),
            KeyCode::PageUp => self.move_cursor(-4),
            KeyCode::Char('j') => self.move_cursor(1),
            KeyCode::Char('k') => self.move_cursor(-1),
            KeyCode::Home => self.cursor = None,
            _ => {}
        }
        Flow::Continue
    }

    fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.output_at = 0;
    }

    /// Handles a key while a command is typed.
    fn edit_command(&mut self, code: KeyCode) -> Flow {
        let Some(text) = &mut self.input else { return Flow::Continue };
        match code {
            KeyCode::Esc => self.input = None,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) => text.push(c),
            KeyCode::Enter => {
                let line = std::mem::take(text);
                self.input = None;
                self.pending = Some(line);
                self.show(Pane::Output);
            }
            KeyCode::Tab => {
                let (start, names) = self.debugger.complete(text, text.len());
                let common = names.iter().skip(1).fold(names.first().cloned(), |common, name| {
                    let common = common?;
                    let same = common.chars().zip(name.chars()).take_while(|(a, b)| a == b);
                    Some(same.map(|(a, _)| a).collect())
                });
                if let Some(common) = common {
                    text.replace_range(start.., &common);
                }
            }
            _ => {}
        }
        Flow::Continue
    }

    /// Executes the pending command, if there is one.
    pub fn run_pending(&mut self) -> Flow {
        match self.pending.take() {
            Some(line) => self.command(&line),
            None => Flow::Continue,
        }
    }

    /// Executes a command of the debugger.
    pub fn command(&mut self, line: &str) -> Flow {
        let wave = self.debugger.focus.wave;
        let before = PreviousRegisters::of(&self.debugger.timeline, wave);
        let time = self.debugger.timeline.time();
        let (result, flow) = self.debugger.execute(line);
        self.previous = before;
        self.output_at = 0;
        if self.debugger.timeline.time() != time || self.debugger.focus.wave != wave {
            self.cursor = None;
        }
        self.output = result.unwrap_or_else(|message| format!("error: {message}"));
        flow
    }

    /// Returns the reason for the last stop in one line.
    pub fn reason(&self) -> String {
        if self.pending.is_some() {
            return "running… (Esc stops)".to_string();
        }
        let titles: Vec<String> =
            self.debugger.stops.iter().map(Stop::title).filter(|t| !t.is_empty()).collect();
        match (&titles[..], self.output.strip_prefix("error: ")) {
            (_, Some(error)) => format!("error: {}", error.lines().next().unwrap_or("")),
            ([], _) => "stepped".to_string(),
            (titles, _) => titles.join("; "),
        }
    }

    /// Returns the contents of the upper left part: the kernel's source, the source file of the wave's
    /// instruction, or the instructions.
    pub fn listing(&self) -> Listing<'_> {
        let prepared = self.debugger.timeline.prepared;
        if self.disassembly {
            return Listing::Instructions;
        }
        if let Some(source) = &prepared.source {
            return Listing::Kernel { name: &source.name, text: &source.text };
        }
        let program = &prepared.program;
        // Code without a line belongs to the line before it.
        let line = (0..=self.instruction()).rev().find_map(|at| program.source_line(at));
        match line.map(|line| line.file as usize) {
            Some(file) if self.sources.get(file).is_some_and(Option::is_some) => Listing::File {
                file,
                name: &program.source_files()[file].name,
                text: self.sources[file].as_deref().unwrap_or(""),
            },
            _ => Listing::Instructions,
        }
    }

    /// Returns the index of the current or last instruction of the selected wave.
    fn instruction(&self) -> usize {
        let program = &self.debugger.timeline.prepared.program;
        let pc = self.debugger.timeline.frame_pc(self.debugger.focus.wave);
        program.pcs.partition_point(|p| *p < pc).min(program.pcs.len().saturating_sub(1))
    }

    /// Returns the line of an instruction in a listing, counted from 1, or its index among the instructions,
    /// counted from 0.
    pub fn line_of(&self, listing: &Listing<'_>, index: usize) -> Option<usize> {
        let program = &self.debugger.timeline.prepared.program;
        match listing {
            Listing::Instructions => Some(index),
            Listing::Kernel { .. } => program.lines.get(index).map(|line| *line as usize),
            Listing::File { file, .. } => {
                let line = program.source_line(index).filter(|line| line.file as usize == *file)?;
                Some(line.line as usize)
            }
        }
    }

    /// Returns the line or instruction to which `B` applies.
    pub fn selected_line(&self) -> usize {
        self.cursor.unwrap_or_else(|| self.line_of_wave())
    }

    /// Returns the line or instruction of the selected wave.
    pub fn line_of_wave(&self) -> usize {
        let listing = self.listing();
        (0..=self.instruction()).rev().find_map(|at| self.line_of(&listing, at)).unwrap_or(0)
    }

    fn move_cursor(&mut self, by: i64) {
        let (first, last) = self.listing().lines(self.debugger.timeline.prepared.program.pcs.len());
        let to = (self.selected_line() as i64 + by).clamp(first as i64, last as i64);
        self.cursor = Some(to as usize);
    }

    fn toggle_breakpoint(&mut self) {
        let program = &self.debugger.timeline.prepared.program;
        let (line, listing) = (self.selected_line(), self.listing());
        let place = match self.cursor {
            None => Some(self.debugger.timeline.wave(self.debugger.focus.wave).pc),
            Some(_) => {
                let lines = (0..program.pcs.len()).filter_map(|at| Some((self.line_of(&listing, at)?, at)));
                let next = lines.filter(|(l, _)| *l >= line).min();
                next.map(|(_, at)| program.pcs[at])
            }
        };
        let Some(pc) = place else {
            self.output = "error: there is no instruction in this line or below".to_string();
            return;
        };
        let here = self.debugger.breakpoints.iter().find(|b| b.pc == pc).map(|b| b.number);
        match here {
            Some(number) => self.command(&format!("delete {number}")),
            None => self.command(&format!("break 0x{:x}", program.address(pc))),
        };
    }

    /// Shows memory; if memory is shown already, that of the next argument.
    fn next_memory(&mut self) {
        let buffers = &self.debugger.timeline.prepared.buffers;
        if self.pane == Pane::Memory && !buffers.is_empty() {
            self.argument = (self.argument + 1) % buffers.len();
        }
        self.memory_at = buffers.get(self.argument).map_or(self.memory_at, |b| b.address);
        self.pane = Pane::Memory;
    }

    fn move_lane(&mut self, by: i32) {
        let size = self.debugger.timeline.wave(self.debugger.focus.wave).size() as i32;
        self.debugger.focus.lane = (self.debugger.focus.lane as i32 + by).rem_euclid(size) as u32;
    }

    fn scroll(&mut self, by: i32) {
        let shape = &self.debugger.timeline.prepared.shape;
        let local = |at: u64, len: u32| {
            at.saturating_add_signed(16 * by as i64).min(len.saturating_sub(4) as u64 & !15)
        };
        match self.pane {
            Pane::Memory => self.memory_at = self.memory_at.wrapping_add_signed(16 * by as i64),
            Pane::Lds => self.local_at = local(self.local_at, shape.lds_bytes),
            Pane::Scratch => self.local_at = local(self.local_at, shape.scratch_bytes),
            Pane::Output | Pane::Keys => {
                let text = if self.pane == Pane::Keys { HELP } else { &self.output };
                let last = text.lines().count().saturating_sub(1) as u16;
                self.output_at = self.output_at.saturating_add_signed(by as i16).min(last);
            }
            Pane::Vgprs => self.first_vgpr = (self.first_vgpr as i32 + by).clamp(0, 255) as u32,
        }
    }
}
