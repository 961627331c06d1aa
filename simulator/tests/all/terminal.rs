//! The command in a pseudo-terminal: sends keys and reads the screen.

use pty_process::blocking::{Command, Pty};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The size of a standard terminal.
pub const ROWS: u16 = 24;
pub const COLUMNS: u16 = 80;

/// Much longer than any step takes, even on a busy machine; ends tests that would otherwise wait forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the path of a file of the workspace.
pub fn workspace(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join(name).display().to_string()
}

/// Creates a temporary file, and returns its path.
pub fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The screen, and everything sent to the terminal.
struct Shown {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

/// A running command.
pub struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

impl Terminal {
    /// Starts `wavesim` with these arguments; `set` are environment variables.
    pub fn start(args: &[&str], set: &[(&str, &str)]) -> Terminal {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(ROWS, COLUMNS)).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_wavesim"))
            .args(args)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .env("HOME", env!("CARGO_TARGET_TMPDIR"))
            .envs(set.iter().copied());
        let child = command.spawn(pts).unwrap();
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        let parser = vt100::Parser::new(size(ROWS), size(COLUMNS), 0);
        let shown = Arc::new((Mutex::new(Shown { parser, bytes: Vec::new(), ended: false }), Condvar::new()));
        let pty = Arc::new(pty);
        let (from, to) = (pty.clone(), shown.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // An error means that the last process on the other side has ended.
                let read = (&*from).read(&mut buffer).unwrap_or(0);
                // A failing test poisons the lock.
                let Ok(mut shown) = to.0.lock() else { return };
                shown.parser.process(&buffer[..read]);
                shown.bytes.extend(&buffer[..read]);
                shown.ended = read == 0;
                to.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Terminal { pty, child, shown }
    }

    pub fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen satisfies `wanted`, and returns it.
    pub fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let (there, screen) = self.within(PATIENCE, wanted);
        assert!(there, "waited in vain for {what}:\n{screen}");
        screen
    }

    /// Waits for at most `patience`. Returns whether the screen satisfies `wanted`, and the screen.
    pub fn within(&self, patience: Duration, wanted: impl Fn(&str) -> bool) -> (bool, String) {
        let (lock, changed) = &*self.shown;
        let start = Instant::now();
        let mut shown = lock.lock().unwrap();
        loop {
            let screen = shown.parser.screen().contents();
            let there = wanted(&screen);
            let left = patience.saturating_sub(start.elapsed());
            if there || left.is_zero() || shown.ended {
                return (there, screen);
            }
            shown = changed.wait_timeout(shown, left).unwrap().0;
        }
    }

    /// Waits until the screen shows a text, and returns it.
    pub fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Everything sent to the terminal so far.
    pub fn sent(&self) -> String {
        String::from_utf8_lossy(&self.shown.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the command ends. Returns its status and everything that it has sent.
    pub fn end(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let (lock, changed) = &*self.shown;
        let mut shown = lock.lock().unwrap();
        while !shown.ended {
            let left = PATIENCE.saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "no end:\n{}", shown.parser.screen().contents());
            shown = changed.wait_timeout(shown, left).unwrap().0;
        }
        drop(shown);
        let status = self.child.wait().unwrap();
        (status, self.sent())
    }

    /// Returns the cell at a position, to test its attributes.
    pub fn cell(&self, row: u16, column: u16) -> vt100::Cell {
        let shown = self.shown.0.lock().unwrap();
        shown.parser.screen().cell(row, column).unwrap().clone()
    }

    pub fn rows(&self) -> Vec<String> {
        let shown = self.shown.0.lock().unwrap();
        shown.parser.screen().rows(0, COLUMNS).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test, the process may still run. If it has ended, the error is ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
