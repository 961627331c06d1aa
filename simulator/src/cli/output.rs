//! Standard output and standard error of commands.
//!
//! - Names and text from untrusted files cannot control the terminal: control characters are written as
//!   `\\u001b`, which denotes the same character in JSON.
//! - If the reader of standard output closes it (`| head`), the rest of the output is dropped, and the
//!   command keeps its exit code.

use std::fmt::Display;
use std::io::{self, Write};
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
    let _ = stderr().write_all(text.as_bytes());
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
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{9b}\x1b": "\u{202e}\x7f"});
        let escaped = wavesim_files::escape::escape(&value.to_string());
        let read: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, value);
    }
}
