//! The subset of HTTP/1.1 that the page needs: one request per connection, bodies with a length. The size of a request
//! and the time that it takes are bounded as a whole.
//!
//! No allocation depends on a header: a length is only compared with the caller's limit.

use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Maximum size of a request before its body, in bytes.
const MAX_HEAD: u64 = 32 << 10;
/// Maximum number of headers.
const MAX_HEADERS: usize = 100;
/// Maximum time that a client takes for the head of a request, for its body, and for reading the answer.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
pub const BODY_TIME: Duration = Duration::from_secs(60);
pub const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Maximum time for draining the connection after the answer: a client may not see the answer while data that
/// it sent is unread.
const LINGER: Duration = Duration::from_secs(2);

/// A request without its body.
#[derive(Debug)]
pub struct Head {
    pub method: String,
    /// Without the leading slash.
    pub path: String,
    query: String,
    headers: Vec<(String, String)>,
}

/// An answer. The other headers are the same for every answer of this server.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
}

impl Answer {
    pub fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, kind, body: body.into() }
    }

    /// Creates a plain-text answer.
    pub fn text(status: u16, message: impl Into<Vec<u8>>) -> Answer {
        Answer::new(status, "text/plain; charset=utf-8", message)
    }

    fn reason(&self) -> &'static str {
        match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            411 => "Length Required",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        }
    }

    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; frame-ancestors 'self'";
        let (status, kind, length) = (self.status, self.kind, self.body.len());
        write!(
            out,
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: {policy}\r\n\r\n",
            self.reason()
        )?;
        out.write_all(&self.body)?;
        out.flush()
    }
}

impl Head {
    /// Reads a request up to its body. Returns `Err` with the answer to an invalid request, or `Ok(None)` if
    /// the client has disconnected.
    pub fn read(reader: &mut impl BufRead) -> Result<Option<Head>, Answer> {
        let mut left = MAX_HEAD;
        let mut line = || -> Result<Option<String>, Answer> {
            let mut bytes = Vec::new();
            match reader.by_ref().take(left).read_until(b'\n', &mut bytes) {
                Ok(0) if left > 0 => return Ok(None),
                Err(_) => return Ok(None),
                Ok(n) => left -= n as u64,
            }
            if !bytes.ends_with(b"\n") {
                return Err(Answer::text(431, "the head of this request is too long"));
            }
            let text = String::from_utf8(bytes).map_err(|_| Answer::text(400, "headers are text"))?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_string()))
        };
        let Some(first) = line()? else { return Ok(None) };
        let mut parts = first.split(' ');
        let (Some(method), Some(url), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Answer::text(400, "this is not a request of HTTP/1.1"));
        };
        let url = url.split('#').next().unwrap_or_default();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let mut head = Head {
            method: method.to_string(),
            path: path.trim_start_matches('/').to_string(),
            query: query.to_string(),
            headers: Vec::new(),
        };
        loop {
            let Some(text) = line()? else { return Ok(None) };
            if text.is_empty() {
                return Ok(Some(head));
            }
            if head.headers.len() >= MAX_HEADERS {
                return Err(Answer::text(431, "this request has too many headers"));
            }
            let Some((name, value)) = text.split_once(':') else {
                return Err(Answer::text(400, "a header has a name and a value"));
            };
            head.headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        }
    }

    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|h| h.0 == name).map(|h| h.1.as_str())
    }

    /// Returns a query parameter. Escapes are not decoded, as the page needs none.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|p| p.0 == name).map(|p| p.1)
    }

    /// Returns the length of the body, if it is at most `most` bytes.
    pub fn length(&self, most: u64) -> Result<u64, Answer> {
        if self.header("transfer-encoding").is_some() {
            return Err(Answer::text(411, "a request gives the length of its body"));
        }
        let length = self.header("content-length").map_or(Ok(0), str::parse::<u64>);
        let length = length.map_err(|_| Answer::text(400, "Content-Length is a number"))?;
        if length > most {
            return Err(Answer::text(413, format!("a request has at most {} MB", most >> 20)));
        }
        Ok(length)
    }

    /// Reads the body, a text of this length.
    pub fn body(&self, reader: &mut impl Read, out: &mut impl Write, length: u64) -> Result<String, Answer> {
        if self.header("expect").is_some_and(|e| e.eq_ignore_ascii_case("100-continue")) {
            // If the client has disconnected, reading fails, too.
            let _ = out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let mut text = String::new();
        match reader.take(length).read_to_string(&mut text) {
            Ok(n) if n as u64 == length => Ok(text),
            _ => Err(Answer::text(400, "a request is text, as long as it says")),
        }
    }
}

/// A connection on which everything ends at a time, however slowly the client sends or reads.
pub struct Timed<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl<'a> Timed<'a> {
    pub fn new(stream: &'a TcpStream, time: Duration) -> Timed<'a> {
        Timed { stream, end: Instant::now() + time }
    }

    /// Gives the client this much time from now on.
    pub fn restart(&mut self, time: Duration) {
        self.end = Instant::now() + time;
    }

    fn left(&self) -> std::io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Closes a connection after its answer.
pub fn finish(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let (end, mut unread) = (Instant::now() + LINGER, [0; 16 << 10]);
    while Instant::now() < end && matches!(stream.read(&mut unread), Ok(n) if n > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Head>, Answer> {
        Head::read(&mut text.as_bytes())
    }

    fn refused(text: &str) -> u16 {
        read(text).unwrap_err().status
    }

    #[test]
    fn a_request_is_read() {
        let text = "POST /api?session=1-a&request=7 HTTP/1.1\r\nHost: x\r\nContent-LENGTH: 2\r\n\r\nab";
        let mut reader = text.as_bytes();
        let head = Head::read(&mut reader).unwrap().unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "api"));
        assert_eq!((head.parameter("session"), head.parameter("request")), (Some("1-a"), Some("7")));
        assert_eq!((head.parameter("no"), head.header("host")), (None, Some("x")));
        let length = head.length(10).unwrap();
        assert_eq!(head.body(&mut reader, &mut Vec::new(), length).unwrap(), "ab");
    }

    /// Another site cannot show the page in a frame of its own and lure its user to click there.
    #[test]
    fn other_sites_cannot_frame_the_page() {
        let mut out = Vec::new();
        Answer::text(200, "x").write(&mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("frame-ancestors 'self'"));
    }

    /// A client that sends a byte now and then does not keep the connection.
    #[test]
    fn the_time_of_a_whole_head_is_bounded() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let slow = std::thread::spawn(move || {
            client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            while client.write_all(b"a: b\r\n").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut reader = std::io::BufReader::new(Timed::new(&server, Duration::from_millis(300)));
        assert!(Head::read(&mut reader).unwrap().is_none());
        server.shutdown(Shutdown::Both).unwrap();
        slow.join().unwrap();
    }

    #[test]
    fn invalid_requests_are_rejected() {
        assert_eq!(refused("hello\r\n\r\n"), 400);
        assert_eq!(refused("GET / HTTP/2\r\n\r\n"), 400);
        assert_eq!(refused("GET / HTTP/1.1\r\nno header\r\n\r\n"), 400);
        assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 16))), 431);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(1 << 14))), 431);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101))), 431);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\na: {}\r\n", "b".repeat(32 << 10))), 431);
        assert!(read("").unwrap().is_none());
        assert!(read("GET / HTTP/1.1\r\nHost: x\r\n").unwrap().is_none());
    }

    /// A declared length must not cause an allocation.
    #[test]
    fn lengths_are_bounded() {
        let body = |headers: &str| {
            let text = format!("POST / HTTP/1.1\r\n{headers}\r\n\r\nab");
            let mut reader = text.as_bytes();
            let head = Head::read(&mut reader).unwrap().unwrap();
            let length = head.length(1 << 20);
            length.and_then(|n| head.body(&mut reader, &mut Vec::new(), n)).map_err(|a| a.status)
        };
        assert_eq!(body("Content-Length: 18446744073709551615"), Err(413));
        assert_eq!(body("Content-Length: 99999999999999999999999"), Err(400));
        assert_eq!(body("Content-Length: 1048577"), Err(413));
        assert_eq!(body("Content-Length: 3"), Err(400));
        assert_eq!(body("Transfer-Encoding: chunked"), Err(411));
        assert_eq!(body("Content-Length: 2"), Ok("ab".to_string()));
    }
}
