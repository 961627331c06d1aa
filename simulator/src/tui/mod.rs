//! The full-screen debugger: source, waves, registers by lane and memory on one screen of 80x24 or more.
//!
//! [`app`] is the state and what keys do, [`draw`] the screen. Everything that changes the run goes through
//! [`crate::debug::command::Debugger`], so that a key does what the command of that name does.

pub mod app;
pub mod draw;

use app::{App, Next};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

/// Runs until the user leaves.
pub fn run(app: &mut App<'_>, terminal: &mut DefaultTerminal) -> std::io::Result<()> {
    loop {
        terminal.draw(|frame| draw::screen(frame, app))?;
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && app.key(key) == Next::Quit
        {
            return Ok(());
        }
    }
}
