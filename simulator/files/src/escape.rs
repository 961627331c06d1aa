//! Escapes text from foreign files for printing, so that names and contents cannot control the reader's
//! terminal.

use std::io::{self, Write};

/// A writer that escapes control characters in UTF-8: C0 except line breaks and tabs, DEL, C1, and the marks
/// that change the direction of text.
pub struct Escaped<W> {
    out: W,
    /// The first bytes of a character that the previous write split.
    partial: Vec<u8>,
}

impl<W: Write> Escaped<W> {
    /// Creates a writer that passes the escaped text on to `out`.
    pub fn new(out: W) -> Escaped<W> {
        Escaped { out, partial: Vec::new() }
    }

    /// Returns the inner writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn write_escaped(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|b| may_need_escape(*b)) {
            let (before, from) = rest.split_at(at);
            self.out.write_all(before)?;
            let (len, code) = match from {
                [0xc2] | [0xe2] | [0xe2, 0x80 | 0x81] => {
                    self.partial = from.to_vec();
                    return Ok(());
                }
                [0xc2, second @ 0x80..=0x9f, ..] => (2, Some(*second as u32)),
                [0xe2, 0x80, third @ (0x8e | 0x8f | 0xaa..=0xae), ..] => (3, Some(0x1f80 + *third as u32)),
                [0xe2, 0x81, third @ 0xa6..=0xa9, ..] => (3, Some(0x1fc0 + *third as u32)),
                [0xc2 | 0xe2, ..] => (1, None),
                [control, ..] => (1, Some(*control as u32)),
                [] => return Ok(()),
            };
            match code {
                Some(code) => write!(self.out, "\\u{code:04x}")?,
                None => self.out.write_all(&from[..len])?,
            }
            rest = &from[len..];
        }
        self.out.write_all(rest)
    }
}

/// Returns whether a byte is, or can start, a character to escape.
fn may_need_escape(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b..=0x1f | 0x7f | 0xc2 | 0xe2)
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.partial.is_empty() {
            self.write_escaped(bytes)?;
        } else {
            let mut whole = std::mem::take(&mut self.partial);
            whole.extend_from_slice(bytes);
            self.write_escaped(&whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns `text` with control characters as `\u001b`, as [`Escaped`] writes it.
pub fn escape(text: &str) -> String {
    let mut out = Escaped::new(Vec::with_capacity(text.len()));
    // Writing to a vector cannot fail, and the input consists of complete characters.
    let _ = out.write_all(text.as_bytes());
    String::from_utf8_lossy(&out.into_inner()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, step: usize) -> String {
        let mut out = Escaped::new(Vec::new());
        for part in text.as_bytes().chunks(step) {
            out.write_all(part).unwrap();
        }
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "plain µ → \u{e9} \u{2028}|\x1b[2J\r\x07\0\x7f\u{9b}1m|\u{202e}\u{200f}\u{2066}|\ta\n“é”";
        let wanted = "plain µ → é \u{2028}|\\u001b[2J\\u000d\\u0007\\u0000\\u007f\\u009b1m|\
                      \\u202e\\u200f\\u2066|\ta\n“é”";
        for step in 1..9 {
            assert_eq!(escaped(text, step), wanted, "{step} bytes at a time");
        }
    }
}
