//! Messages on a stream: a header with the length in bytes, and JSON.

use super::protocol::Request;
use serde_json::Value;
use std::io::{self, BufRead, Read, Write};

/// Maximum message size in bytes. The largest messages of editors are writes to memory.
pub const LIMIT: usize = 64 << 20;

/// The headers of the protocol: its specification, *Base protocol*, and the Language Server Protocol, which shares it.
const HEADERS: [&str; 2] = ["content-length", "content-type"];

/// Maximum number of header lines of a message.
const MAX_HEADERS: usize = 8;

/// Reads a message of at most `limit` bytes; returns `None` at the end of the stream.
///
/// # Errors
/// The stream fails, the message has no valid length or exceeds the limit, or its header has a line that is not of the
/// protocol: any web page can make a browser send an HTTP request whose body is a message, but not without other
/// headers. Reading cannot continue after that.
pub fn read(from: &mut dyn BufRead, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_string());
    let mut len = None;
    for lines in 0.. {
        let mut line = String::new();
        // Header lines are short; a longer line is invalid.
        if Read::take(&mut *from, 4096).read_line(&mut line)? == 0 {
            return match lines {
                0 => Ok(None),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let header = line.split_once(':').filter(|h| HEADERS.iter().any(|own| h.0.eq_ignore_ascii_case(own)));
        let Some((name, value)) = header.filter(|_| lines < MAX_HEADERS) else {
            return Err(wrong("a message has the headers Content-Length and Content-Type only"));
        };
        if name.eq_ignore_ascii_case(HEADERS[0]) {
            len = value.trim().parse::<usize>().ok().filter(|len| *len <= limit);
        }
    }
    let len = len.ok_or_else(|| wrong("a message without a valid Content-Length"))?;
    // The buffer grows with what arrives, not with what is declared.
    let mut bytes = Vec::new();
    match Read::take(from, len as u64).read_to_end(&mut bytes)? == len {
        true => Ok(Some(bytes)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
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
