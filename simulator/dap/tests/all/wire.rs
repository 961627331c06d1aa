//! Messages on a stream.

use serde_json::json;
use wavesim_dap::wire::{parse, read, write};

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
        "Content-Length: 99999999999\r\n\r\n",
        "Content-Length: 5\r\n\r\n{}",
    ] {
        assert!(read(&mut text.as_bytes()).is_err(), "{text}");
    }
    assert!(parse(b"[]").is_err());
    assert!(parse(b"{\"seq\":1,\"type\":\"response\"}").is_err());
}
