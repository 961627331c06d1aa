//! A case as a process, with limits of time and memory.

use crate::plan::Limits;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of bytes of an output that are kept; the rest is read and dropped.
pub(crate) const MAX_OUTPUT: usize = 1 << 20;

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

    /// Returns whether the processes have been ended.
    #[cfg(unix)]
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn add(&self, deadline: Instant, process: u32) -> u64 {
        let mut watched = self.lock();
        if watched.closed {
            kill(process);
        }
        watched.next += 1;
        let number = watched.next;
        watched.running.push((number, deadline, process));
        drop(watched);
        self.0.1.notify_all();
        number
    }

    /// Returns whether the process was ended.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let mut watched = self.lock();
        watched.running.retain(|r| r.0 != number);
        let before = watched.ended.len();
        watched.ended.retain(|ended| *ended != number);
        before != watched.ended.len()
    }
}

/// The argument with which the command is a template.
pub const TEMPLATE: &str = "campaign-template";

/// The program whose command lines are cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The arguments before those of a case, such as `-m wavesim`.
    pub first: Vec<String>,
    /// The argument in place of those of a case with which the program is a template (`template::serve`), if it can be one.
    pub template: Option<String>,
}

/// Starts the processes of cases, one after another: by a template if the program can be one, else as new processes.
#[derive(Debug)]
pub struct Starter {
    program: Program,
    #[cfg(unix)]
    template: Option<Template>,
    /// Whether a template has run a case; `None` before the first.
    #[cfg(unix)]
    has_worked: Option<bool>,
}

/// How many templates may end before their case is started without one. A template ends with its case if the system kills
/// both, for instance.
#[cfg(unix)]
const TEMPLATES: usize = 3;

impl Starter {
    /// Returns a starter. A template is started for the first case.
    pub fn new(program: Program) -> Starter {
        Starter {
            program,
            #[cfg(unix)]
            template: None,
            #[cfg(unix)]
            has_worked: None,
        }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs a case to its end.
    ///
    /// # Errors
    /// The program cannot be started.
    #[cfg(unix)]
    pub fn run(
        &mut self,
        arguments: &[String],
        limits: Limits,
        watchdog: &Watchdog,
    ) -> std::io::Result<Ended> {
        for _ in 0..TEMPLATES {
            if watchdog.is_closed() {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            if self.program.template.is_none() || self.has_worked == Some(false) {
                break;
            }
            let template = match self.template.take() {
                Some(template) => Ok(template),
                None => Template::start(&self.program),
            };
            // Without a template, or if the template has ended, the case has no result yet.
            if let Ok(mut template) = template
                && let Ok(ended) = template.run(arguments, limits, watchdog)
            {
                (self.template, self.has_worked) = (Some(template), Some(true));
                return Ok(ended);
            }
        }
        // A program that is no template is not tried again.
        self.has_worked.get_or_insert(false);
        run(&self.program, arguments, limits, watchdog)
    }

    /// Runs a case to its end.
    ///
    /// # Errors
    /// The program cannot be started.
    #[cfg(not(unix))]
    pub fn run(
        &mut self,
        arguments: &[String],
        limits: Limits,
        watchdog: &Watchdog,
    ) -> std::io::Result<Ended> {
        run(&self.program, arguments, limits, watchdog)
    }
}

/// Runs a program with arguments to its end.
///
/// # Errors
/// It cannot be started.
fn run(
    program: &Program,
    arguments: &[String],
    limits: Limits,
    watchdog: &Watchdog,
) -> std::io::Result<Ended> {
    let mut command = Command::new(&program.path);
    command.args(&program.first).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
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
    use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};
    use std::io;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, ExitStatus};

    /// Sets the limit of memory, and makes the process the first of a group.
    pub fn limit(command: &mut Command, limits: Limits) {
        command.process_group(0);
        // SAFETY: between fork and exec, the closure only calls setrlimit, which is a system call without locks, and
        // reads errno; it does not allocate.
        unsafe { command.pre_exec(move || limit_memory(limits)) };
    }

    /// Limits the memory of this process.
    pub fn limit_memory(limits: Limits) -> io::Result<()> {
        let bytes = limits.memory_mb << 20;
        if bytes == 0 {
            return Ok(());
        }
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        Ok(rustix::process::setrlimit(Resource::As, limit)?)
    }

    /// Ends a process that is the first of a group, and those that it has started. It must not have been waited for.
    pub fn kill(process: u32) {
        if let Some(process) = Pid::from_raw(process as i32) {
            // If all have just ended, there is nothing to end.
            let _ = rustix::process::kill_process_group(process, Signal::KILL);
        }
    }

    /// Waits for a process. `over` is called when it has ended, before its number can be given to another process.
    pub fn wait(child: &mut Child, over: impl FnOnce() -> bool) -> io::Result<(End, u64, bool)> {
        reap(child.id(), over)
    }

    /// As [`wait`], for a child of this process that nothing else waits for.
    pub fn reap(process: u32, over: impl FnOnce() -> bool) -> io::Result<(End, u64, bool)> {
        let process = Pid::from_raw(process as i32).ok_or(io::ErrorKind::InvalidInput)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(process), options))?;
        let ended = over();
        let mut status = 0;
        // SAFETY: a structure of integers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to values that live during the call. The process is not waited for elsewhere.
        let done = unsafe { libc::wait4(process.as_raw_pid(), &mut status, 0, &mut usage) };
        if done != process.as_raw_pid() {
            return Err(io::Error::last_os_error());
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

#[cfg(unix)]
use crate::template::Template;
pub(crate) use system::kill;
use system::{limit, wait};
#[cfg(unix)]
pub(crate) use system::{limit_memory, reap};
