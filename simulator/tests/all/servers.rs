//! Tests of `wavesim dap --listen` and `wavesim serve` with hostile clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server, which is ended when the test ends.
struct Server {
    process: Child,
    /// The words of its first line of messages.
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a server with at most `files` open files. `before` is the text before its address.
fn server(args: &str, files: u32, before: &str) -> Server {
    let script = format!("ulimit -n {files}; exec {} {args}", env!("CARGO_BIN_EXE_wavesim"));
    let mut process = Command::new("sh").args(["-c", &script]).stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    // A warning may come first.
    while !line.contains(before) && messages.read_line(&mut line).unwrap() > 0 {}
    let address = line.split(before).nth(1).unwrap_or_else(|| panic!("{line}"));
    let address = address.split_whitespace().next().unwrap().to_string();
    // Later messages must not block the server.
    std::thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
    Server { process, address }
}

/// Waits for a condition.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn send(stream: &mut TcpStream, message: &str) {
    write!(stream, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
}

/// Reads until the text has arrived or the server ends the connection; returns everything.
fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(text) {
        match stream.read(&mut part) {
            Ok(n) if n > 0 => all.extend(&part[..n]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

const INITIALIZE: &str = r#"{"seq":1,"type":"request","command":"initialize","arguments":{}}"#;

fn dap(files: u32) -> (Server, String, String) {
    let server = server("dap --listen 0", files, "listening on ");
    let (address, token) = server.address.split_once('/').unwrap();
    let (address, token) = (address.to_string(), token.to_string());
    (server, address, token)
}

fn launch(token: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/saxpy.rdna");
    let arguments = serde_json::json!({"program": program, "token": token});
    serde_json::json!({"seq": 2, "type": "request", "command": "launch", "arguments": arguments}).to_string()
}

#[test]
fn a_debugger_is_for_those_who_know_the_token() {
    let (_server, address, token) = dap(1000);
    assert_eq!(token.len(), 32);
    for wrong in ["", "0", &token[1..]] {
        let mut stranger = connect(&address);
        send(&mut stranger, &launch(wrong));
        let answer = read_until(&mut stranger, "never");
        assert!(answer.contains("`token`") && !answer.contains("initialized"), "{answer}");
    }
    let mut client = connect(&address);
    send(&mut client, INITIALIZE);
    send(&mut client, &launch(&token));
    let answer = read_until(&mut client, "\"initialized\"");
    assert!(answer.contains("\"initialized\""), "{answer}");
}

/// The text of a POST that a page of any site can send without asking.
#[test]
fn a_debugger_ignores_requests_of_browsers() {
    let (_server, address, token) = dap(1000);
    let body = launch(&token);
    let mut browser = connect(&address);
    write!(
        browser,
        "POST / HTTP/1.1\r\nHost: {address}\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    assert_eq!(read_until(&mut browser, "never"), "");
}

/// Silent connections, more than there can be files.
#[test]
fn a_debugger_survives_many_connections() {
    let (mut server, address, token) = dap(12);
    let silent: Vec<_> = (0..60).map(|_| TcpStream::connect(&address).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(500));
    until("a client is served", || {
        let mut client = connect(&address);
        // While files are short, the server may answer that it cannot open the program: the client tries again.
        client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        send(&mut client, &launch(&token));
        read_until(&mut client, "\"initialized\"").contains("\"initialized\"")
    });
    assert!(server.process.try_wait().unwrap().is_none());
    drop(silent);
}

/// A client that sends and does not read.
#[test]
fn messages_that_wait_are_bounded() {
    let (server, address, token) = dap(1000);
    let mut client = connect(&address);
    send(&mut client, &launch(&token));
    assert!(read_until(&mut client, "\"initialized\"").contains("\"initialized\""));
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    // A run that does not end is interrupted by each message, so the session itself must be blocked: its answers are
    // not read.
    let message = format!(
        r#"{{"seq":3,"type":"request","command":"evaluate","arguments":{{"expression":"{}"}}}}"#,
        "x".repeat(4 << 20)
    );
    let text = format!("Content-Length: {}\r\n\r\n{message}", message.len());
    let mut sent = 0;
    while sent < 100 && client.write_all(text.as_bytes()).is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "400 MB have been taken");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = kilobytes.and_then(|n| n.split_whitespace().next()?.parse::<u64>().ok());
    assert!(kilobytes.is_none_or(|n| n < 300_000), "{kilobytes:?} kB");
}

fn playground(name: &str, files: u32) -> Server {
    playground_with(name, files, "")
}

fn playground_with(name: &str, files: u32, args: &str) -> Server {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}"));
    std::fs::create_dir_all(&page).unwrap();
    std::fs::write(page.join("index.html"), "<html><head></head></html>").unwrap();
    server(&format!("serve --page '{}' --port 0 {args}", page.display()), files, "http://").trimmed()
}

impl Server {
    fn trimmed(mut self) -> Server {
        self.address = self.address.trim_end_matches('/').to_string();
        self
    }

    /// Sends a request of the page and returns the whole answer.
    fn request(&self, session: &str, body: &str) -> String {
        self.http(&format!("POST /api?session={session}&request=1&limit=3000"), body)
    }

    /// Sends a request of HTTP and returns the whole answer.
    fn http(&self, first: &str, body: &str) -> String {
        let mut stream = connect(&self.address);
        let (host, length) = (&self.address, body.len());
        let sent =
            write!(stream, "{first} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}");
        // The server may refuse a request before it has been sent.
        let _ = sent;
        read_until(&mut stream, "never")
    }
}

const NAMES: &str = r#"{"op":"names","arch":"rdna4"}"#;

#[test]
fn silent_connections_do_not_shut_others_out() {
    for files in [40, 1000] {
        let server = playground(&format!("silent-{files}"), files);
        let silent: Vec<_> = (0..120)
            .map(|n| {
                let mut stream = TcpStream::connect(&server.address).unwrap();
                // Some are slow rather than silent.
                let _ = if n % 2 == 0 { stream.write_all(b"POST /api HTTP/1.1\r\nHost: ") } else { Ok(()) };
                stream
            })
            .collect();
        until("a request is answered", || server.request("a", NAMES).contains("v_add_f32"));
        drop(silent);
    }
}

/// Many small requests for much memory.
#[test]
fn requests_share_a_bound_of_memory() {
    let server = playground("memory", 1000);
    let text = "---\nlocal = 1024, 1, 1\nglobal = 999, 1, 1\nscratch = 60000\nx: u8[60000000]\n---\nl:\n\
                scratch_store_b32 v1, v2, off\nv_add_u32 v1, 64, v1\nv_and_b32 v1, 0x7fff, v1\ns_branch l\n";
    let body = serde_json::json!({"op": "run", "max_instructions": 1u64 << 50, "program": {"text": text}})
        .to_string();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let (server, body) = (&server, &body);
        let all: Vec<_> =
            (0..60).map(|n| scope.spawn(move || server.request(&format!("s{n}"), body))).collect();
        all.into_iter().map(|request| request.join().unwrap()).collect()
    });
    // Each has an answer, if only that there is no place.
    assert!(answers.iter().all(|a| a.contains("HTTP/1.1 200") || a.contains("HTTP/1.1 503")), "{answers:?}");
    assert!(answers.iter().any(|a| a.contains("interrupted")), "{answers:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|n| n.split_whitespace().next()?.parse::<u64>().ok());
    assert!(peak.is_none_or(|n| n < 1_200_000), "{peak:?} kB");
    assert!(server.request("later", NAMES).contains("v_add_f32"));
}

#[test]
fn short_links_name_programs_by_their_hash() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("short-links");
    let _ = std::fs::remove_dir_all(&folder);
    let server = playground_with("links", 1000, &format!("--links '{}'", folder.display()));
    let kept = server.http("POST /links", "AAAA");
    assert!(kept.ends_with("\r\n\r\n63c1dd951ffedf6f7fd9"), "{kept}");
    assert!(server.http("GET /links/63c1dd951ffedf6f7fd9", "").ends_with("\r\n\r\nAAAA"));
    // A host of static files can serve the folder, too.
    assert_eq!(std::fs::read(folder.join("63c1dd951ffedf6f7fd9")).unwrap(), b"AAAA");
    std::fs::write(folder.join("secret"), "no").unwrap();
    for name in ["secret", "../short-links/secret", "00000000000000000000", ""] {
        assert!(server.http(&format!("GET /links/{name}"), "").contains(" 404 "), "{name}");
    }
    for body in ["", "<script>", &"A".repeat(300 << 10)] {
        let answer = server.http("POST /links", body);
        assert!(answer.contains(" 400 ") || answer.contains(" 413 "), "{answer}");
    }
    assert!(playground("no-links", 1000).http("POST /links", "AAAA").contains(" 404 "));
}

/// The page compiles source code on this machine, but not for others unless it is allowed.
#[test]
fn source_code_is_compiled_with_safe_options() {
    let text = include_str!("../../../examples/axpy.cl");
    let compile = |options: &str| {
        let source =
            serde_json::json!({"language": "opencl", "text": text, "arch": "rdna3", "options": options});
        serde_json::json!({"op": "compile", "source": source}).to_string()
    };
    let refused = playground_with("others", 1000, "--listen 0.0.0.0").request("a", &compile(""));
    assert!(refused.contains("compiling needs a server"), "{refused}");
    let open = playground_with("open", 1000, "--listen 0.0.0.0 --compile");
    if wavesim_clang::Clang::for_processor("gfx1100").is_err() {
        eprintln!("skipped: no clang for gfx1100 is installed");
        return;
    }
    let answer = open.request("a", &compile("-O1"));
    let answer: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let compiled = &answer["ok"];
    assert_eq!(compiled["disassembly"]["kernels"][0]["name"], "axpy", "{answer}");
    // The line of the addition, in the source.
    let rows = compiled["disassembly"]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row[1] == 4), "{rows:?}");
    for options in ["-fplugin=x.so", "-o /tmp/x", "-Wl,-x", "@file", "-mllvm -debug"] {
        let refused = open.request("a", &compile(options));
        assert!(refused.contains("is not supported"), "{options}: {refused}");
    }
    let named = compile("").replace("\"options\":\"\"", "\"compiler\":\"sh\"");
    assert!(open.request("a", &named).contains("no compiler `sh`"));
    let listed = open.request("a", r#"{"op":"compilers","arch":"rdna4"}"#);
    assert!(listed.contains("clang version"), "{listed}");
}

/// A binary that was built without the page says how to build it.
#[test]
fn a_missing_page_is_explained() {
    if option_env!("WAVESIM_PAGE").is_some_and(|page| !page.is_empty()) {
        eprintln!("skipped: the binary has the page");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_wavesim")).args(["serve", "--port", "0"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for step in [
        "cargo xtask build-web",
        "wavesim serve --page web/page/dist",
        "WAVESIM_PAGE=web/page/dist cargo build",
    ] {
        assert!(text.contains(step), "{text}");
    }
}
