//! Messages on a stream.

use serde_json::json;
use wavesim_dap::wire::{self, parse, write};

fn read(from: &mut &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    wire::read(from, 100)
}

#[test]
fn messages_round_trip() {
    let mut stream = Vec::new();
    let sent = json!({"seq": 1, "type": "request", "command": "threads", "arguments": {"ä": "\u{1f600}"}});
    write(&mut stream, &sent).unwrap();
    write(&mut stream, &json!({"seq": 2, "type": "request", "command": "pause"})).unwrap();
    let mut from = &stream[..];
    let first = parse(&read(&mut from).unwrap().unwrap()).unwrap();
    assert_eq!((first.seq, first.command.as_str()), (1, "threads"));
    assert_eq!(first.arguments["ä"], "\u{1f600}");
    assert_eq!(parse(&read(&mut from).unwrap().unwrap()).unwrap().command, "pause");
    assert!(read(&mut from).unwrap().is_none());
}

#[test]
fn invalid_streams_are_errors() {
    for text in [
        "Content-Length: x\r\n\r\n{}",
        "\r\n{}",
        "Content-Length: 101\r\n\r\n{}",
        "Content-Length: 2\r\n",
        "Content-Length: 99999999999\r\n\r\n",
        "Content-Length: 5\r\n\r\n{}",
    ] {
        assert!(read(&mut text.as_bytes()).is_err(), "{text}");
    }
    assert!(parse(b"[]").is_err());
    assert!(parse(b"{\"seq\":1,\"type\":\"response\"}").is_err());
}

#[test]
fn headers_are_bounded() {
    assert!(read(&mut "Content-Type: x\r\n".repeat(100).as_bytes()).is_err());
    assert!(read(&mut "content-type: x\r\ncontent-length:2\r\n\r\n{}".as_bytes()).is_ok());
}

/// A web page can make the browser send a message in the body of a request.
#[test]
fn requests_of_browsers_are_no_messages() {
    let body = r#"{"seq":1,"type":"request","command":"launch"}"#;
    let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    assert!(read(&mut message.as_bytes()).is_ok());
    for before in
        ["POST / HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n", "Host: 127.0.0.1:4711\r\n", "POST / HTTP/1.1\r\n"]
    {
        assert!(read(&mut format!("{before}{message}").as_bytes()).is_err(), "{before}");
    }
}
