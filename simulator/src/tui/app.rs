//! The state of the full-screen debugger, and its keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wavesim_debug::command::{Debugger, Flow};
use wavesim_debug::timeline::Timeline;

/// What the lower right pane shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    /// VGPRs by lane.
    Vgprs,
    /// Global memory.
    Memory,
    /// The output of the last command.
    Output,
}

/// Everything the screen shows.
pub struct App<'a> {
    /// The debugging session.
    pub debugger: Debugger<'a>,
    /// The output of the last command.
    pub output: String,
    /// The command that is being typed after `:`.
    pub input: Option<String>,
    /// What the lower part shows.
    pub pane: Pane,
    /// The first visible line of the output.
    pub output_at: u16,
    /// The first visible VGPR.
    pub first_vgpr: u32,
    /// The first visible lane.
    pub first_lane: u32,
    /// Whether VGPRs are shown as f32.
    pub floats: bool,
    /// The first visible address of memory.
    pub memory_at: u64,
    /// Index of the argument that it belongs to.
    pub argument: usize,
    /// The registers before the last command, to show what changed.
    pub before: Before,
}

/// The registers of a wave at an earlier time.
#[derive(Default)]
pub struct Before {
    /// The wave.
    pub wave: usize,
    /// SGPRs by operand code.
    pub sgprs: Vec<u32>,
    /// VGPRs, the lanes of each together.
    pub vgprs: Vec<u32>,
}

impl Before {
    /// The present registers of a wave.
    fn of(timeline: &Timeline<'_>, wave: usize) -> Before {
        let w = timeline.wave(wave);
        let vgprs = (0..256).flat_map(|r| (0..w.size).map(move |l| (l, r))).map(|(l, r)| w.vgpr(l, r));
        Before { wave, sgprs: w.sgprs.to_vec(), vgprs: vgprs.collect() }
    }

    /// A VGPR in a lane of a wave of `size` lanes.
    pub fn vgpr(&self, size: u32, lane: u32, register: u32) -> Option<u32> {
        self.vgprs.get((register * size + lane) as usize).copied()
    }
}

/// The help on keys in the last two lines of the screen, at most 80 columns wide.
pub const KEYS: [&str; 2] = [
    "s step  a all waves  n next  c continue  b back  r reverse  Esc stop  B break",
    "w wave  ←→ lane  ↑↓ rows  v VGPRs  f f32  m memory  e explain  : cmd  ? help  q",
];

impl<'a> App<'a> {
    /// The screen at the start of a session.
    pub fn new(debugger: Debugger<'a>) -> App<'a> {
        let memory_at = debugger.timeline.prepared.buffers.first().map_or(0, |b| b.address);
        let before = Before::of(&debugger.timeline, 0);
        App {
            debugger,
            output: String::new(),
            input: None,
            pane: Pane::Vgprs,
            output_at: 0,
            first_vgpr: 0,
            first_lane: 0,
            floats: false,
            memory_at,
            argument: 0,
            before,
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Flow {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Flow::Quit;
        }
        if self.input.is_some() {
            return self.typed(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Flow::Quit,
            KeyCode::Char(':') => self.input = Some(String::new()),
            KeyCode::Char('s') => return self.command("step"),
            KeyCode::Char('a') => return self.command("stepall"),
            KeyCode::Char('n') => return self.command("next"),
            KeyCode::Char('c') => return self.command("continue"),
            KeyCode::Char('b') => return self.command("back"),
            KeyCode::Char('r') => return self.command("reverse-continue"),
            KeyCode::Char('B') => self.toggle_breakpoint(),
            KeyCode::Char('w') => {
                let next = (self.debugger.focus.wave + 1) % self.debugger.timeline.waves();
                return self.command(&format!("wave {next}"));
            }
            KeyCode::Char('f') => self.floats = !self.floats,
            KeyCode::Char('m') => self.next_memory(),
            KeyCode::Char('v') => self.pane = Pane::Vgprs,
            KeyCode::Char('e') => {
                self.pane = Pane::Output;
                return self.command("explain");
            }
            KeyCode::Char('?') => {
                self.pane = Pane::Output;
                return self.command("help");
            }
            KeyCode::Right => self.move_lane(1),
            KeyCode::Left => self.move_lane(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::Up => self.scroll(-1),
            KeyCode::PageDown => self.scroll(8),
            KeyCode::PageUp => self.scroll(-8),
            _ => {}
        }
        Flow::More
    }

    /// Handles a key while a command is typed.
    fn typed(&mut self, code: KeyCode) -> Flow {
        let Some(text) = &mut self.input else { return Flow::More };
        match code {
            KeyCode::Esc => self.input = None,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) => text.push(c),
            KeyCode::Enter => {
                let line = std::mem::take(text);
                self.input = None;
                self.pane = Pane::Output;
                return self.command(&line);
            }
            _ => {}
        }
        Flow::More
    }

    /// Executes a command of the debugger.
    pub fn command(&mut self, line: &str) -> Flow {
        let wave = self.debugger.focus.wave;
        let before = Before::of(&self.debugger.timeline, wave);
        let (result, flow) = self.debugger.execute(line);
        self.before = before;
        self.output_at = 0;
        self.output = result.unwrap_or_else(|message| format!("error: {message}"));
        flow
    }

    fn toggle_breakpoint(&mut self) {
        let pc = self.debugger.timeline.wave(self.debugger.focus.wave).pc;
        let here = self.debugger.breakpoints.iter().find(|b| b.pc == pc).map(|b| b.number);
        match here {
            Some(number) => self.command(&format!("delete {number}")),
            None => self.command("break"),
        };
    }

    /// Shows memory; if it is shown already, that of the next argument.
    fn next_memory(&mut self) {
        let buffers = &self.debugger.timeline.prepared.buffers;
        if self.pane == Pane::Memory && !buffers.is_empty() {
            self.argument = (self.argument + 1) % buffers.len();
        }
        self.memory_at = buffers.get(self.argument).map_or(self.memory_at, |b| b.address);
        self.pane = Pane::Memory;
    }

    fn move_lane(&mut self, by: i32) {
        let size = self.debugger.timeline.wave(self.debugger.focus.wave).size as i32;
        let lane = (self.debugger.focus.lane as i32 + by).rem_euclid(size) as u32;
        self.debugger.focus.lane = lane;
        // Keep the selected lane visible.
        self.first_lane = self.first_lane.min(lane);
        if lane >= self.first_lane + 4 {
            self.first_lane = lane - 3;
        }
    }

    fn scroll(&mut self, by: i32) {
        match self.pane {
            Pane::Memory => self.memory_at = self.memory_at.wrapping_add_signed(16 * by as i64),
            Pane::Output => {
                let last = self.output.lines().count().saturating_sub(1) as u16;
                self.output_at = self.output_at.saturating_add_signed(by as i16).min(last);
            }
            Pane::Vgprs => self.first_vgpr = (self.first_vgpr as i32 + by).clamp(0, 255) as u32,
        }
    }
}
