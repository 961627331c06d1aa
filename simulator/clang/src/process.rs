//! Child processes that can be ended together with the processes that they start.

use crate::platform;
use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at a running process.
const POLL: Duration = Duration::from_millis(5);

/// Runs a process with its standard input to its end and returns its output, or `None` if `stop` was set first: then the process has been
/// killed, on Unix with all its children.
pub fn output_until(command: &mut Command, stop: &AtomicBool) -> io::Result<Option<Output>> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // The driver of clang starts the compiler and the linker as processes of their own.
    platform::own_group(command);
    let mut child = command.spawn()?;
    let _watch = platform::Watch::start(&child);
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if stop.load(Ordering::Relaxed) {
            platform::kill(&mut child)?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(POLL);
    };
    let text = |reader: std::thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (text(stdout), text(stderr));
    Ok(status.map(|status| Output { status, stdout, stderr }))
}

/// Reads a pipe on a thread, so that the process never waits for a full one.
fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read before an error is kept.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_stop_ends_the_children_too() {
        let stop = AtomicBool::new(false);
        let done = output_until(Command::new("sh").args(["-c", "echo out; echo err >&2"]), &stop).unwrap();
        let done = done.unwrap();
        assert_eq!((&done.stdout[..], &done.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        let started = Instant::now();
        let stopped = std::thread::scope(|scope| {
            // The child holds the pipes open: the call returns only after it has ended.
            let running =
                scope.spawn(|| output_until(Command::new("sh").args(["-c", "sleep 60; true"]), &stop));
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap()
        });
        assert!(stopped.is_none() && started.elapsed() < Duration::from_secs(30));
    }
}
