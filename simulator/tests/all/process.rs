//! Tests of the command as a process: Ctrl-C, the progress bar, standard streams.

use crate::terminal::{Terminal, file, workspace};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Two waves: one spins, the other waits for it.
const ENDLESS: &str = "\
---
local = 64, 1, 1
---
  print wave=1, thread=all, s5
  v_readfirstlane_b32 s4, v0
  s_cmp_eq_u32 s4, 0
  s_cbranch_scc0 behind
again:
  s_add_u32 s5, s5, 1
  s_branch again
behind:
  s_barrier
  s_endpgm
";

fn wavesim(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wavesim"));
    command.args(args).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

fn interrupt(id: u32) {
    assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
}

/// Starts an endless kernel with a trace to standard output, waits for the first line, and interrupts it.
fn interrupted(command: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let file = file(&format!("{command}{}.rdna", more.len()), ENDLESS);
    let mut child = wavesim(&[&[command, &file], more].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    interrupt(child.id());
    // Keep reading the pipe; otherwise the process would block.
    let rest = std::io::read_to_string(out).unwrap();
    let output = child.wait_with_output().unwrap();
    text.push_str(&rest);
    (output.status.code(), text, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn misspelt_variables_are_named() {
    let kernel = workspace("examples/vector_add.rdna");
    let output = wavesim(&["run", &kernel, "-q"]).env("WAVESIM_THREDS", "2").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let warning = "the environment variable WAVESIM_THREDS has no meaning; did you mean WAVESIM_THREADS?";
    assert_eq!((output.status.code(), &*errors), (Some(0), &*format!("warning: {warning}\n")));
}

#[test]
fn ctrl_c_reports_the_position_of_every_wave() {
    let (code, out, errors) = interrupted("run", &["--trace", "-", "--trace-wave", "0"]);
    assert_eq!(code, Some(130), "{errors}");
    assert!(errors.contains("stopped after") && errors.contains("wave 0 at line "), "{errors}");
    // The last line is complete.
    assert!(out.lines().all(|l| l.starts_with("{\"step\"") && l.ends_with('}')), "{:?}", out.lines().last());
}

#[test]
fn ctrl_c_in_machine_output_is_a_fault() {
    let path = file("machine.rdna", ENDLESS);
    let mut child = wavesim(&["run", &path, "--json", "--stats"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // With JSON output, `print` writes to standard error. Its line shows that the second wave has started.
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("wave 1"), "{line}");
    interrupt(child.id());
    let rest = std::io::read_to_string(errors).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(rest.contains("wave 0 at line 9") || rest.contains("wave 0 at line 10"), "{rest}");
    assert!(rest.contains("wave 1 waiting at line 12"), "{rest}");
    let text = String::from_utf8(output.stdout).unwrap();
    let json = text.lines().find(|l| l.contains("wavesim-run-1")).unwrap();
    assert!(json.contains("\"kind\":\"interrupted\""), "{json}");
}

/// Returns whether a process has installed its handler for Ctrl-C.
#[cfg(target_os = "linux")]
fn catches_interrupts(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_commands_that_run_no_kernel() {
    let mut child = wavesim(&["asm", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    // Keep the pipe open, so that the process waits for more input.
    let input = child.stdin.take();
    let started = std::time::Instant::now();
    while !catches_interrupts(child.id()) {
        assert!(started.elapsed().as_secs() < 30);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    interrupt(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
}

#[test]
fn ctrl_c_ends_a_script_of_the_debugger() {
    let path = file("script.rdna", ENDLESS);
    let mut child = wavesim(&["debug", &path, "--batch", "-e", "continue", "-e", "continue"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line precedes the first command, which does not end; by then Ctrl-C is caught.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    interrupt(child.id());
    let out = std::io::read_to_string(stdout).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{out}");
    assert!(out.contains("interrupted") && out.matches("(wavesim) continue").count() == 1, "{out}");
}

/// Many slow workgroups: the run is long enough for the bar to appear.
const LONG: &str = "\
---
local = 32, 1, 1
global = 4000, 1, 1
---
  s_mov_b32 s5, 300000
again:
  s_sub_u32 s5, s5, 1
  s_cmp_lg_u32 s5, 0
  s_cbranch_scc1 again
  s_endpgm
";

#[test]
fn progress_is_shown_on_a_terminal() {
    let file = file("long.rdna", LONG);
    let t = Terminal::start(&["run", &file], &[]);
    t.shows("instructions, ");
    t.shows("/4000 waves");
    t.press("\x03");
    let (status, sent) = t.end();
    assert_eq!(status.code(), Some(130));
    // The bar is cleared before the message appears.
    let bar = sent.rfind("/4000 waves").unwrap();
    assert!(sent[bar..].contains("stopped after"), "{sent}");
}

#[test]
fn progress_can_be_disabled() {
    let path = file("quiet.rdna", LONG);
    for flag in ["--quiet", "--json"] {
        let t = Terminal::start(&["run", &path, flag, "--max-instructions", "60000000"], &[]);
        let (status, sent) = t.end();
        assert_eq!(status.code(), Some(1), "{sent}");
        assert!(!sent.contains(" waves") && sent.contains("60000000 instructions"), "{sent}");
    }
    // Not a terminal.
    let output = wavesim(&["run", &path, "--max-instructions", "60000000"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!errors.contains(" waves") && errors.contains("60000000 instructions"), "{errors}");
    assert!(errors.contains("a larger --max-instructions"), "{errors}");
}

/// Commands other than `tui` print plain text with NO_COLOR, on a terminal too.
#[test]
fn plain_text_without_colours() {
    for args in
        [&["check", "examples/broken/race.rdna"][..], &["run", "no_such_file.rdna"], &["check", "--nonsense"]]
    {
        let mut args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
        if args[1].starts_with("examples") {
            args[1] = workspace(&args[1]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (_, sent) = Terminal::start(&args, &[("NO_COLOR", "1")]).end();
        assert!(!sent.contains("\x1b[3") && !sent.contains("\x1b[1;3"), "{sent:?}");
    }
}

#[test]
fn errors_are_in_colour_on_a_terminal() {
    let (_, sent) = Terminal::start(&["run", "no_such_file.rdna"], &[]).end();
    assert!(sent.contains("\x1b[91merror:\x1b[0m"), "{sent:?}");
    let (_, sent) = Terminal::start(&["run", "no_such_file.rdna"], &[("TERM", "dumb")]).end();
    assert!(sent.contains("error: ") && !sent.contains('\x1b'), "{sent:?}");
    let output = wavesim(&["run", "no_such_file.rdna"]).output().unwrap();
    assert!(!output.stderr.contains(&0x1b));
}

/// A program that drives the debugger through pipes reads each answer before it sends the next command.
#[test]
fn piped_commands_are_answered_as_they_come() {
    let path = file("piped.rdna", "---\nlocal = 32, 1, 1\n---\n  s_mov_b32 s5, 7\n  s_endpgm\n");
    let mut child = wavesim(&["debug", &path]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("[step 0]"));
    for (command, answer) in [("step", "[step 1]"), ("p s5", "s5 = 0x00000007"), ("back", "[step 0]")] {
        writeln!(to, "{command}").unwrap();
        assert_eq!(lines.next().unwrap(), format!("(wavesim) {command}"));
        assert!(lines.next().unwrap().starts_with(answer));
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

/// Sends an HTTP request. Returns the status and the body.
#[cfg(feature = "serve")]
fn http(address: &str, head: &str, headers: &str, body: &str) -> (u16, String) {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{head} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    (status, text.split_once("\r\n\r\n").unwrap_or_default().1.to_string())
}

#[cfg(feature = "serve")]
#[test]
fn serve_answers_its_own_pages_only_and_stops_runs() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("page/assets");
    std::fs::create_dir_all(folder).unwrap();
    let index = file("page/index.html", "<html><head></head></html>");
    let page = std::path::Path::new(&index).parent().unwrap().to_str().unwrap();
    file("page/assets/x.js", "1");
    let secret = file("secret.txt", "secret");
    let mut child =
        wavesim(&["serve", "--port", "0", "--page", page]).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address =
        line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line).to_string();
    let host = format!("Host: {address}\r\n");
    let ask = |head: &str, headers: &str, body: &str| http(&address, head, headers, body);

    let (status, body) = ask("GET /", &host, "");
    assert!(status == 200 && body.contains("content=\"native\""), "{body}");
    assert_eq!(ask("GET /assets/x.js", &host, ""), (200, "1".to_string()));
    let name = std::path::Path::new(&secret).file_name().unwrap().to_str().unwrap();
    for path in [format!("/../{name}"), format!("/%2e%2e/{name}"), secret.clone(), "/no".to_string()] {
        assert_eq!(ask(&format!("GET {path}"), &host, "").0, 404, "{path}");
    }
    let names = r#"{"op":"names","arch":"rdna4"}"#;
    let (status, body) = ask("POST /api", &host, names);
    assert!(status == 200 && body.contains("v_add_f32"), "{status}");
    // Another site in the same browser, identified by its origin or by a host name that resolves to this
    // server.
    let foreign = format!("{host}Origin: http://evil.example\r\n");
    assert_eq!(ask("POST /api", &foreign, names).0, 403);
    assert_eq!(ask("POST /api", "Host: evil.example\r\n", names).0, 403);
    assert_eq!(ask("PUT /api", &host, names).0, 405);

    // A run that only /stop ends.
    let text = "---\\nlocal = 32, 1, 1\\n---\\nloop:\\n  s_branch loop\\n";
    let run = format!(r#"{{"op":"run","program":{{"text":"{text}"}},"max_instructions":1000000000000000}}"#);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| ask("POST /api?session=one&request=1", &host, &run));
        let others: Vec<_> = (2..8)
            .map(|n| {
                scope.spawn({
                    let (host, run, ask) = (&host, &run, &ask);
                    move || ask(&format!("POST /api?session={n}&limit=3000"), host, run)
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(!running.is_finished());
        assert_eq!(ask("POST /stop?session=one&request=1", &host, "").0, 200);
        let (status, body) = running.join().unwrap();
        assert!(status == 200 && body.contains("interrupted"), "{status} {body}");
        // Runs of other pages continue until their own limit, and the server answers other requests
        // meanwhile.
        assert!(others.iter().all(|other| !other.is_finished()));
        assert_eq!(ask("GET /assets/x.js", &host, "").0, 200);
        for other in others {
            assert!(other.join().unwrap().1.contains("interrupted"));
        }
    });
    // A length that exceeds any memory.
    for head in ["POST /api", "POST /stop", "PUT /api", "GET /no"] {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "{head} HTTP/1.1\r\n{host}Content-Length: 18446744073709551615\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 "), "{head}: {text}");
    }
    // A stopped session can run again.
    let (status, body) =
        ask("POST /api?session=one&request=2", &host, &run.replace("1000000000000000", "1000"));
    assert!(status == 200 && body.contains("instruction-limit"), "{status} {body}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The language server on pipes: the answer to `initialize`, and the end of the process after `exit` and when the client
/// closes the pipe.
#[test]
fn the_language_server_answers_and_ends() {
    for exits in [true, false] {
        let mut child = wavesim(&["lsp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let mut send = |body: &str| write!(to, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = || {
            let mut header = String::new();
            from.read_line(&mut header).unwrap();
            let length: usize = header.trim_start_matches("Content-Length: ").trim().parse().unwrap();
            from.read_line(&mut header).unwrap();
            let mut body = vec![0; length];
            std::io::Read::read_exact(&mut from, &mut body).unwrap();
            serde_json::from_slice::<serde_json::Value>(&body).unwrap()
        };
        send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#);
        assert_eq!(answer()["result"]["serverInfo"]["name"], "wavesim");
        send(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
        if exits {
            send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#);
            assert_eq!(answer()["id"], 2);
            send(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        }
        drop(to);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{exits}");
    }
}
