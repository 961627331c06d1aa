//! Screens of the full-screen debugger.
//!
//! `screens/x.txt`: the first line `# args: …` has the arguments, and the other lines are keys, with names in
//! angle brackets (`ss<Tab>`). `<Running>` at the end of a line captures the screen while the command of the
//! last key is still pending. `x.expected` has the screen after each line, at 80x24, 120x40 and 200x60
//! characters.

use crate::{expect, files};
use clap::Parser;
use libtest_mimic::{Failed, Trial};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt::Write as _;
use std::path::Path;
use wavesim::cli::{Cli, Command};
use wavesim::debug::command::Flow;
use wavesim::tui::app::App;
use wavesim::tui::draw::screen;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

pub fn trials() -> Vec<Trial> {
    files("screens", "txt", screens)
}

fn screens(path: &Path) -> Result<(), Failed> {
    let script = std::fs::read_to_string(path)?;
    let mut lines = script.lines();
    let arguments =
        lines.next().and_then(|l| l.strip_prefix("# args: ")).ok_or("the first line is `# args: …`")?;
    let cli = Cli::try_parse_from(["wavesim", "tui"].into_iter().chain(arguments.split_whitespace()))?;
    let Command::Tui(args) = &cli.command else {
        return Err("these are not arguments of `wavesim tui`".into());
    };
    let mut out = String::new();
    for line in lines {
        let (typed, running) = match line.strip_suffix("<Running>") {
            Some(typed) => (typed, true),
            None => (line, false),
        };
        let keys = keys(typed)?;
        let _ = writeln!(out, "== {line}");
        // Each size has a separate session, because the visible part of the state depends on the size.
        for (width, height) in SIZES {
            let before: Vec<KeyCode> = script
                .lines()
                .skip(1)
                .take_while(|l| !std::ptr::eq(*l, line))
                .map(|line| self::keys(line.strip_suffix("<Running>").unwrap_or(line)))
                .collect::<Result<Vec<_>, _>>()?
                .concat();
            let shown = args.with_app(
                || false,
                |app| {
                    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal");
                    press(app, &mut terminal, before.iter().chain(&keys[..keys.len() - running as usize]));
                    if let Some(last) = keys.last().filter(|_| running) {
                        app.key(KeyEvent::new(*last, KeyModifiers::NONE));
                    }
                    terminal.draw(|frame| screen(frame, app)).expect("no terminal");
                    text(terminal.backend())
                },
            )?;
            let _ = writeln!(out, "-- {width}x{height}\n{shown}");
        }
    }
    expect(path, &out)
}

fn press<'k>(
    app: &mut App<'_>,
    terminal: &mut Terminal<TestBackend>,
    keys: impl Iterator<Item = &'k KeyCode>,
) {
    for key in keys {
        // Keys act on the visible part of the state, which drawing determines.
        terminal.draw(|frame| screen(frame, app)).expect("no terminal");
        assert!(app.key(KeyEvent::new(*key, KeyModifiers::NONE)) == Flow::Continue, "the session has ended");
        assert!(app.run_pending() == Flow::Continue, "the session has ended");
    }
}

/// Parses the keys of a line.
fn keys(line: &str) -> Result<Vec<KeyCode>, String> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|r| r.split_once('>'));
        let (key, after) = match named {
            Some((name, after)) => {
                let key = match name {
                    "Tab" => KeyCode::Tab,
                    "Enter" => KeyCode::Enter,
                    "Left" => KeyCode::Left,
                    "Right" => KeyCode::Right,
                    "Up" => KeyCode::Up,
                    "Down" => KeyCode::Down,
                    "PgUp" => KeyCode::PageUp,
                    "PgDn" => KeyCode::PageDown,
                    "Home" => KeyCode::Home,
                    other => return Err(format!("`{other}` is not a key")),
                };
                (key, after)
            }
            None => (KeyCode::Char(c), &rest[c.len_utf8()..]),
        };
        out.push(key);
        rest = after;
    }
    Ok(out)
}

/// Returns the characters of a screen without trailing spaces.
fn text(backend: &TestBackend) -> String {
    let buffer = backend.buffer();
    let rows = buffer.content.chunks(buffer.area.width as usize);
    let mut out = String::new();
    for row in rows {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
