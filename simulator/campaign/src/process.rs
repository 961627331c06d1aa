//! A case as a process, with limits of time and memory.

use crate::plan::Limits;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of bytes of an output that are kept; the rest is read and dropped.
const MAX_OUTPUT: usize = 1 << 20;

/// How a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was ended after its time.
    Timeout,
}

/// A process that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub messages: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// The largest amount of resident memory in kilobytes; 0 if it is not known.
    pub memory_kb: u64,
}

/// The processes that run, each with the time at which it is ended.
#[derive(Clone, Default)]
pub struct Watchdog(Arc<(Mutex<Watched>, Condvar)>);

#[derive(Default)]
struct Watched {
    /// Number, deadline and process.
    running: Vec<(u64, Instant, u32)>,
    /// The numbers of those that were ended.
    ended: Vec<u64>,
    next: u64,
    closed: bool,
}

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Ends processes in time, until [`Watchdog::close`].
    pub fn watch(&self) {
        let mut watched = self.lock();
        while !watched.closed {
            let now = Instant::now();
            let late: Vec<(u64, Instant, u32)> =
                watched.running.iter().copied().filter(|r| r.1 <= now).collect();
            for (number, _, process) in late {
                kill(process);
                watched.running.retain(|r| r.0 != number);
                watched.ended.push(number);
            }
            let next = watched.running.iter().map(|r| r.1).min();
            let wait = next.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(now));
            let waited = self.0.1.wait_timeout(watched, wait);
            watched = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Makes [`Watchdog::watch`] return, and ends all processes.
    pub fn close(&self) {
        let mut watched = self.lock();
        watched.closed = true;
        watched.running.iter().for_each(|r| kill(r.2));
        drop(watched);
        self.0.1.notify_all();
    }

    fn add(&self, deadline: Instant, process: u32) -> u64 {
        let mut watched = self.lock();
        watched.next += 1;
        let number = watched.next;
        watched.running.push((number, deadline, process));
        drop(watched);
        self.0.1.notify_all();
        number
    }

    /// Returns whether the process was ended.
    fn remove(&self, number: u64) -> bool {
        let mut watched = self.lock();
        watched.running.retain(|r| r.0 != number);
        let before = watched.ended.len();
        watched.ended.retain(|ended| *ended != number);
        before != watched.ended.len()
    }
}

/// Runs a program with arguments to its end.
///
/// # Errors
/// It cannot be started.
pub fn run(
    program: &Path,
    arguments: &[String],
    limits: Limits,
    watchdog: &Watchdog,
) -> std::io::Result<Ended> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    limit(&mut command, limits);
    let started = Instant::now();
    let mut child = command.spawn()?;
    let number = watchdog.add(started + Duration::from_secs_f64(limits.seconds), child.id());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (output, messages) = std::thread::scope(|scope| {
        let messages = scope.spawn(|| stderr.map(read).unwrap_or_default());
        (stdout.map(read).unwrap_or_default(), messages.join().unwrap_or_default())
    });
    let (end, memory_kb, timeout) = wait(&mut child, || watchdog.remove(number))?;
    let end = if timeout { End::Timeout } else { end };
    Ok(Ended { end, output, messages, seconds: started.elapsed().as_secs_f64(), memory_kb })
}

/// Reads a stream to its end, and keeps its beginning.
fn read(mut from: impl Read) -> String {
    let mut out = Vec::new();
    let mut bytes = [0; 16384];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let room = MAX_OUTPUT - out.len();
        out.extend_from_slice(&bytes[..count.min(room)]);
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(unix)]
mod system {
    use super::{End, Limits};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, ExitStatus};

    /// Sets the limit of memory, and makes the process the first of a group.
    pub fn limit(command: &mut Command, limits: Limits) {
        command.process_group(0);
        let bytes = limits.memory_mb << 20;
        if bytes == 0 {
            return;
        }
        let set = move || {
            let limit = libc::rlimit { rlim_cur: bytes as _, rlim_max: bytes as _ };
            // SAFETY: `limit` is a valid structure, which the call only reads.
            match unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec, the closure only calls setrlimit, which is a system call without locks, and
        // reads errno; it does not allocate.
        unsafe { command.pre_exec(set) };
    }

    /// Ends a process and those that it has started.
    pub fn kill(process: u32) {
        // SAFETY: kill takes numbers. The process has not been waited for while it is registered, so its group is its
        // own.
        unsafe { libc::kill(-(process as libc::pid_t), libc::SIGKILL) };
    }

    /// Waits for a process. `over` is called when it has ended, before its number can be given to another process.
    pub fn wait(child: &mut Child, over: impl FnOnce() -> bool) -> std::io::Result<(End, u64, bool)> {
        let process = child.id() as libc::pid_t;
        loop {
            // SAFETY: a structure of integers, for which zeros are valid; the call writes it.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let flags = libc::WEXITED | libc::WNOWAIT;
            // SAFETY: `info` is a valid structure, and lives during the call.
            match unsafe { libc::waitid(libc::P_PID, process as libc::id_t, &mut info, flags) } {
                0 => break,
                _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Err(std::io::Error::last_os_error()),
            }
        }
        let ended = over();
        let mut status = 0;
        // SAFETY: a structure of integers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to values that live during the call. `child` is not waited for elsewhere.
        if unsafe { libc::wait4(process, &mut status, 0, &mut usage) } != process {
            return Err(std::io::Error::last_os_error());
        }
        let status = ExitStatus::from_raw(status);
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Signal(signal.unwrap_or(0)),
        };
        // Kilobytes, but bytes on macOS (getrusage(2) of each).
        let memory_kb = usage.ru_maxrss as u64 / if cfg!(target_vendor = "apple") { 1024 } else { 1 };
        Ok((end, memory_kb, ended))
    }
}

#[cfg(not(unix))]
mod system {
    use super::{End, Limits};
    use std::process::{Child, Command};

    /// There is no limit of memory.
    pub fn limit(_command: &mut Command, _limits: Limits) {}

    /// Ends a process and those that it has started.
    pub fn kill(process: u32) {
        // If the process has just ended, there is nothing to end.
        let _ = Command::new("taskkill").args(["/F", "/T", "/PID", &process.to_string()]).output();
    }

    /// Waits for a process.
    pub fn wait(child: &mut Child, over: impl FnOnce() -> bool) -> std::io::Result<(End, u64, bool)> {
        let status = child.wait()?;
        Ok((End::Code(status.code().unwrap_or(-1)), 0, over()))
    }
}

use system::{kill, limit, wait};
