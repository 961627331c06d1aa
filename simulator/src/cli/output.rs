//! Standard output and standard error of commands.
//!
//! - Names and text from untrusted files cannot control the terminal: control characters are written as
//!   `\\u001b`, which denotes the same character in JSON.
//! - On terminals, the words that begin messages and findings are in colour, unless `NO_COLOR` is set.
//! - If the reader of standard output closes it (`| head`), the rest of the output is dropped, and the
//!   command keeps its exit code.

use anstyle::AnsiColor;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use wavesim_files::escape::Escaped;
use wavesim_inspect::check::Check;
use wavesim_services::hostcall::Stream;
use wavesim_services::launch::Printed;

/// Whether the reader has closed standard output.
static CLOSED: AtomicBool = AtomicBool::new(false);

fn closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Returns standard output.
pub fn stdout() -> impl Write {
    let coloured = colours(io::stdout().is_terminal());
    io::BufWriter::new(Escaped::new(Painted { inner: Out(io::stdout().lock()), coloured, line: Vec::new() }))
}

/// Colours the words that begin lines, if the text is for a terminal. Control characters have been escaped before.
struct Painted<W: Write> {
    inner: W,
    coloured: bool,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl<W: Write> Write for Painted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.coloured {
            return self.inner.write(bytes);
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match std::str::from_utf8(&line) {
                    Ok(text) => self.inner.write_all(paint(text).as_bytes())?,
                    Err(_) => self.inner.write_all(&line)?,
                }
            }
        }
        Ok(bytes.len())
    }

    /// Writes an incomplete line as it is: prompts have no line break.
    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.inner.write_all(&line)?;
        self.inner.flush()
    }
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

/// Returns the colour of a word that begins a message or a finding, with its colon.
fn colour(word: &str) -> Option<AnsiColor> {
    let severity = SEVERITIES.iter().find(|(name, _)| *name == word).map(|(_, colour)| *colour);
    let check = || Check::from_name(word.strip_suffix(':')?).map(|_| AnsiColor::BrightRed);
    severity.or_else(check)
}

/// Colours the words that begin messages and findings. The text has no control characters.
fn paint(text: &str) -> String {
    let line = |line: &str| {
        let (word, rest) = line.split_at(line.find(':').map_or(0, |colon| colon + 1));
        colour(word).map_or(line.to_string(), |colour| {
            let style = colour.on_default().bold();
            format!("{style}{word}{style:#}{rest}")
        })
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Writes what a kernel has printed to `out`, and to standard error what it has printed there.
pub fn show_printed(printed: &Printed, out: &mut dyn Write) -> io::Result<()> {
    for (stream, text) in &printed.parts {
        match stream {
            Stream::Output => out.write_all(text)?,
            Stream::Error => stderr().write_all(text)?,
        }
    }
    if printed.dropped > 0 {
        emit(format!("note: {} further bytes that the kernel has printed are not shown", printed.dropped));
    }
    Ok(())
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
    fn findings_are_coloured_on_terminals_only() {
        use std::io::Write as _;
        let written = |coloured| {
            let mut painted = super::Painted { inner: Vec::new(), coloured, line: Vec::new() };
            // Writers cut the text anywhere.
            for part in ["ra", "ce: v2\n  at li", "ne 3\nmem", "ory: x\n> "] {
                painted.write_all(part.as_bytes()).unwrap();
            }
            painted.flush().unwrap();
            String::from_utf8(painted.inner).unwrap()
        };
        assert_eq!(written(false), "race: v2\n  at line 3\nmemory: x\n> ");
        assert_eq!(written(true), "\x1b[1m\x1b[91mrace:\x1b[0m v2\n  at line 3\nmemory: x\n> ");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{9b}\x1b": "\u{202e}\x7f"});
        let escaped = wavesim_files::escape::escape(&value.to_string());
        let read: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, value);
    }
}
