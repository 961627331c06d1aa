//! The full-screen debugger: source, waves, registers by lane and memory, on a terminal of at least 80x24 characters.
//!
//! [`app`] has the state and the keys, [`panes`] the panes and number formats, [`draw`] the screen. Every
//! change of the run goes through [`wavesim_debug::command::Debugger`], so that a key does the same as the
//! command of that name.

pub mod app;
pub mod draw;
pub mod panes;

use app::App;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use wavesim_debug::command::Flow;

/// Keys pressed while a command runs. They are handled afterwards.
static TYPED_AHEAD: Mutex<VecDeque<KeyEvent>> = Mutex::new(VecDeque::new());

fn typed_ahead() -> MutexGuard<'static, VecDeque<KeyEvent>> {
    TYPED_AHEAD.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs until the user leaves.
pub fn run(app: &mut App<'_>, terminal: &mut DefaultTerminal) -> std::io::Result<()> {
    loop {
        terminal.draw(|frame| draw::screen(frame, app))?;
        if app.pending.is_some() {
            // The screen shows that the kernel runs.
            if app.run_pending() == Flow::Quit {
                return Ok(());
            }
            continue;
        }
        let ahead = typed_ahead().pop_front();
        let event = ahead.map_or_else(event::read, |key| Ok(Event::Key(key)))?;
        if let Event::Key(key) = event
            && key.kind != KeyEventKind::Release
            && app.key(key) == Flow::Quit
        {
            return Ok(());
        }
    }
}

/// Returns whether Esc or Ctrl-C was pressed; polled while a command runs.
pub fn poll_interrupt() -> bool {
    // If the terminal is gone, `read` fails, and the command is interrupted.
    while event::poll(Duration::ZERO).unwrap_or(true) {
        match event::read() {
            Ok(Event::Key(key)) => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                if key.code == KeyCode::Esc || control && key.code == KeyCode::Char('c') {
                    // This also cancels keys typed before it.
                    typed_ahead().clear();
                    return true;
                }
                typed_ahead().push_back(key);
            }
            Ok(_) => {}
            Err(_) => return true,
        }
    }
    false
}
