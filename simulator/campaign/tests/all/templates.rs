//! Templates: each case is a fork of a process that has started before.

use crate::{campaign, folder, records, run};
use std::collections::HashMap;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wavesim_campaign::process::{Program, TEMPLATE};
use wavesim_campaign::store::{Record, Status};

/// A file beside the kernel that makes cases kill their template, and the extension of files that say which have.
pub const KILLING: &str = "killing";
pub const MARKER: &str = "killed";

/// The program of templates: `examples/template.rs`.
pub fn program() -> Program {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().with_file_name("examples").join("template");
    assert!(path.exists(), "{}: cargo builds the examples with the tests", path.display());
    Program { path, first: Vec::new(), template: Some(TEMPLATE.to_string()) }
}

const PLAN: &str = "
[limits]
seconds = 1.5
memory-mb = 700
[[cases]]
kernels = ['*.rdna']
seeds = [1]
";

#[test]
fn a_template_ends_no_case_but_its_own() {
    let folder = folder("template");
    let names =
        ["pass", "fail", "wrong", "late", "crash", "panic", "large", "loud", "parent", "lost", "deadly"];
    for name in names {
        std::fs::write(folder.join(format!("{name}.rdna")), name).unwrap();
    }
    let started = Instant::now();
    let progress = run(&folder, &campaign(&folder, PLAN), &program());
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!((progress.total, progress.done, progress.failed), (11, 11, 10));
    let records = records(&folder.join("results.db"));
    let by_name: HashMap<&str, &Record> =
        records.iter().map(|r| (r.name.split(['/', ' ', '.']).nth(1).unwrap(), r)).collect();
    let status = |name: &str| (by_name[name].status, by_name[name].code);
    assert_eq!(status("pass"), (Status::Passed, 0));
    assert_eq!(status("fail"), (Status::Failed, 1));
    assert_eq!(status("wrong"), (Status::Invalid, 2));
    assert_eq!(status("late"), (Status::Timeout, 0));
    assert_eq!(status("crash"), (Status::Crashed, -4));
    assert_eq!(status("panic"), (Status::Crashed, 101));
    assert_eq!(status("large"), (Status::Crashed, -6));
    assert_eq!((status("loud"), by_name["loud"].output.len()), ((Status::Failed, 1), 1 << 20));
    assert_eq!(status("parent"), (Status::Failed, 1));
    assert_eq!((status("lost"), by_name["lost"].output.as_str()), ((Status::Failed, 1), ""));
    // In the end, it was a process of its own.
    assert_eq!(status("deadly"), (Status::Failed, 1));
    assert_eq!(by_name["fail"].output, "{\"message\": \"a race\"}\n");
    assert_eq!(by_name["wrong"].messages, "error: no such thing\n");
    assert!(by_name["panic"].messages.contains("at the disco"));
    assert!(by_name["late"].seconds < 20.0 && by_name["parent"].seconds < 20.0);
}

/// A template without a campaign, whose connection is dropped, ends.
#[test]
fn a_template_ends_with_its_campaign() {
    let (mut socket, other) = UnixStream::pair().unwrap();
    let program = program();
    let mut template = Command::new(&program.path)
        .args(&program.first)
        .args(&program.template)
        .stdin(OwnedFd::from(other))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(socket.read(&mut [0]).is_err(), "it waits");
    drop(socket);
    assert!(template.wait().unwrap().success());
}

/// A program that is no template runs each case as a process.
#[test]
fn a_program_that_is_no_template_runs_all_cases() {
    let folder = folder("no-template");
    std::fs::write(folder.join("k.rdna"), "x").unwrap();
    let mut program = crate::script(&folder, "case \"$*\" in *campaign-template*) exit 3 ;; esac\nexit 1\n");
    program.template = Some("campaign-template".to_string());
    let progress = run(&folder, &campaign(&folder, &PLAN.replace("[1]", "[1, 2, 3]")), &program);
    assert_eq!((progress.done, progress.failed), (3, 3));
    let codes: Vec<i32> = records(&folder.join("results.db")).iter().map(|r| r.code).collect();
    assert_eq!(codes, [1, 1, 1]);
}
