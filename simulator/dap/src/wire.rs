//! Messages on a stream: a header with the length in bytes, and JSON.

use super::protocol::Request;
use serde_json::Value;
use std::io::{self, BufRead, Write};

/// Maximum message size. The largest messages of editors are writes to memory.
const LIMIT: usize = 64 << 20;

/// Reads a message; returns `None` at the end of the stream.
///
/// # Errors
/// The stream fails, or the message has no valid length or exceeds 64 MB. Reading cannot continue after that.
pub fn read(from: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut len = None;
    loop {
        let mut line = String::new();
        // Header lines are short; a longer line is invalid.
        if io::Read::take(&mut *from, 4096).read_line(&mut line)? == 0 {
            return match len {
                None => Ok(None),
                Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            len = value.trim().parse::<usize>().ok().filter(|len| *len <= LIMIT);
        }
    }
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a message without a valid Content-Length");
    let mut bytes = vec![0; len.ok_or_else(wrong)?];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// Parses a request.
///
/// # Errors
/// The message is not JSON, or not a request.
pub fn parse(bytes: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("a message that is not a request of the protocol: {e}"))
}

/// Writes a message.
///
/// # Errors
/// The stream fails.
pub fn write(to: &mut dyn Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(to, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    to.flush()
}
