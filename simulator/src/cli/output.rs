//! Standard output and standard error of commands.
//!
//! - Names and text from untrusted files cannot control the terminal: control characters are written as
//!   `\\u001b`, which denotes the same character in JSON.
//! - If the reader of standard output closes it (`| head`), the rest of the output is dropped, and the
//!   command keeps its exit code.

use anstyle::AnsiColor;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use wavesim_files::escape::Escaped;

/// Whether the reader has closed standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

fn closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Returns standard output.
pub fn stdout() -> impl Write {
    io::BufWriter::new(Escaped::new(Out(io::stdout().lock())))
}

/// Returns standard output for a protocol that a program reads and in which each message begins with its
/// length.
pub fn protocol() -> impl Write {
    Out(io::stdout().lock())
}

struct Out(io::StdoutLock<'static>);

impl Out {
    fn done<T>(&self, result: io::Result<T>, dropped: T) -> io::Result<T> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                CLOSED.store(true, Ordering::Relaxed);
                Ok(dropped)
            }
            result => result,
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if closed() {
            return Ok(bytes.len());
        }
        let result = self.0.write(bytes);
        self.done(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if closed() {
            return Ok(());
        }
        let result = self.0.flush();
        self.done(result, ())
    }
}

/// Writes a message to standard error, with a line break at its end. Failures are ignored.
pub fn emit(message: impl Display) {
    let mut text = message.to_string();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match colours(io::stderr().is_terminal()) {
        true => {
            let _ = Sink(io::stderr()).write_all(paint(&wavesim_files::escape::escape(&text)).as_bytes());
        }
        false => {
            let _ = stderr().write_all(text.as_bytes());
        }
    }
}

/// Whether text for a stream is in colour: on terminals that support it, unless the user has set `NO_COLOR`
/// (no-color.org).
fn colours(terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// The words at the starts of messages, in the colours of compilers.
const SEVERITIES: [(&str, AnsiColor); 4] = [
    ("error:", AnsiColor::BrightRed),
    ("warning:", AnsiColor::BrightYellow),
    ("note:", AnsiColor::BrightCyan),
    ("fault:", AnsiColor::BrightRed),
];

/// Colours the words that begin messages. The text has no control characters.
fn paint(text: &str) -> String {
    let line = |line: &str| {
        let found =
            SEVERITIES.iter().find_map(|(word, colour)| Some((word, colour, line.strip_prefix(word)?)));
        found.map_or(line.to_string(), |(word, colour, rest)| {
            let style = colour.on_default().bold();
            format!("{style}{word}{style:#}{rest}")
        })
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Returns standard error. Writing to it never fails.
pub fn stderr() -> impl Write {
    Escaped::new(Sink(io::stderr()))
}

struct Sink(io::Stderr);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn severities_are_coloured() {
        let painted = super::paint("error: a\n  error: b\nwarning: c");
        assert_eq!(painted, "\x1b[1m\x1b[91merror:\x1b[0m a\n  error: b\n\x1b[1m\x1b[93mwarning:\x1b[0m c");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{9b}\x1b": "\u{202e}\x7f"});
        let escaped = wavesim_files::escape::escape(&value.to_string());
        let read: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, value);
    }
}
