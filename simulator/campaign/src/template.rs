//! A template: a process that has started, and forks a process for each case.
//!
//! Most of the time of a short case is the start of its process: the system maps the program, the program reads its tables.
//! A template has done this. It has one thread and one connection, its standard input, over which a campaign sends it one
//! case at a time: arguments, limits, and the pipes of its outputs. Each case still is a process of its own, so that one
//! that crashes, or that exceeds its limits, changes nothing for others.
//!
//! Whichever of the processes ends first, the others notice:
//! - The case: the template sees the end of a pipe that only the case holds.
//! - The template: the connection ends, and the campaign ends the case, whose number it knows: a case sends it before all
//!   else. The case runs again with another template.
//! - The campaign: the connection ends, and the template ends its case and itself.

use crate::plan::Limits;
use crate::process::{End, Ended, MAX_OUTPUT, Program, Watchdog, kill, limit_memory, reap};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, setpgid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time after that of the case in which a template must have ended it; else the campaign ends the template.
const GRACE: Duration = Duration::from_secs(10);

/// The exit code of Rust programs that panic.
const PANIC: i32 = 101;

/// What a template gets: a message of this in JSON, whose length comes first, as 4 bytes with the least significant first.
/// With the length come standard output and standard error.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    arguments: Vec<String>,
    seconds: f64,
    memory_mb: u64,
}

/// What a template sends: three numbers of 8 bytes.
#[derive(Debug, Clone, Copy)]
enum Reply {
    /// The number of the process of the case, which it sends itself.
    Started(u32),
    /// How it has ended, and its memory in kilobytes.
    Ended(End, u64),
}

impl Reply {
    const BYTES: usize = 24;

    fn send(self, mut to: &UnixStream) -> io::Result<()> {
        let words = match self {
            Reply::Started(process) => [0, process.into(), 0],
            Reply::Ended(End::Code(code), memory) => [1, i64::from(code), memory as i64],
            Reply::Ended(End::Signal(signal), memory) => [2, i64::from(signal), memory as i64],
            Reply::Ended(End::Timeout, memory) => [3, 0, memory as i64],
        };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        to.write_all(&bytes)
    }

    fn receive(mut from: &UnixStream) -> io::Result<Reply> {
        let mut bytes = [0; Reply::BYTES];
        from.read_exact(&mut bytes)?;
        let word = |index: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[8 * index..8 * index + 8]);
            i64::from_le_bytes(word)
        };
        let (value, memory) = (word(1), word(2) as u64);
        match word(0) {
            0 => Ok(Reply::Started(value as u32)),
            1 => Ok(Reply::Ended(End::Code(value as i32), memory)),
            2 => Ok(Reply::Ended(End::Signal(value as i32), memory)),
            3 => Ok(Reply::Ended(End::Timeout, memory)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A template that a campaign has started.
#[derive(Debug)]
pub(crate) struct Template {
    process: Child,
    socket: UnixStream,
}

impl Template {
    /// Starts a program as a template.
    pub(crate) fn start(program: &Program) -> io::Result<Template> {
        let (socket, other) = UnixStream::pair()?;
        let process = Command::new(&program.path)
            .args(&program.first)
            .args(&program.template)
            .stdin(OwnedFd::from(other))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Template { process, socket })
    }

    /// Runs a case to its end. An error means that the template has ended, or cannot go on; the case has not run, or its
    /// process has ended.
    pub(crate) fn run(
        &mut self,
        arguments: &[String],
        limits: Limits,
        watchdog: &Watchdog,
    ) -> io::Result<Ended> {
        let started = Instant::now();
        let ((stdout, to_stdout), (stderr, to_stderr)) = (io::pipe()?, io::pipe()?);
        let Limits { seconds, memory_mb } = limits;
        let request = Request { arguments: arguments.to_vec(), seconds, memory_mb };
        let deadline = started + Duration::from_secs_f64(seconds) + GRACE;
        let number = watchdog.add(deadline, self.process.id());
        let done = send(&self.socket, &request, [to_stdout, to_stderr]);
        let done = done.and_then(|()| self.follow(stdout, stderr));
        watchdog.remove(number);
        let (end, memory_kb, [output, messages]) = done?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Ended { end, output, messages, seconds, memory_kb })
    }

    /// Reads the outputs of a case and the replies of the template, until all have ended.
    fn follow(&self, stdout: PipeReader, stderr: PipeReader) -> io::Result<(End, u64, [String; 2])> {
        let mut outputs = [Output::new(stdout), Output::new(stderr)];
        let (mut case, mut ended) = (None, None);
        let mut lost = None;
        loop {
            let is_open = outputs.iter().any(|output| output.from.is_some());
            if lost.is_some() {
                // While a process of the group holds the pipes, no other group has its number.
                case.take().filter(|_| is_open).into_iter().for_each(kill);
            }
            if !is_open && (lost.is_some() || ended.is_some()) {
                break;
            }
            let mut events: Vec<(Option<usize>, PollFd<'_>)> = Vec::with_capacity(3);
            if lost.is_none() && ended.is_none() {
                events.push((None, PollFd::new(&self.socket, PollFlags::IN)));
            }
            for (index, output) in outputs.iter().enumerate() {
                let Some(from) = &output.from else { continue };
                events.push((Some(index), PollFd::new(from, PollFlags::IN)));
            }
            let ready = ready(&mut events, None)?;
            for source in ready {
                match source {
                    Some(index) => outputs[index].read(),
                    None => match Reply::receive(&self.socket) {
                        Ok(Reply::Started(process)) => case = Some(process),
                        Ok(Reply::Ended(end, memory)) => ended = Some((end, memory)),
                        Err(error) => lost = Some(error),
                    },
                }
            }
        }
        match (ended, lost) {
            (Some((end, memory)), _) => Ok((end, memory, outputs.map(Output::text))),
            (None, error) => Err(error.unwrap_or(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        kill(self.process.id());
        // It has been killed: this returns.
        let _ = self.process.wait();
    }
}

/// Waits until one of the files has data or has ended, and returns the names of those; none after the time.
fn ready<T: Copy>(events: &mut [(T, PollFd<'_>)], time: Option<Duration>) -> io::Result<Vec<T>> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    let mut files: Vec<PollFd<'_>> = events.iter().map(|(_, file)| file.clone()).collect();
    match poll(&mut files, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(e.into()),
    }
    let ready = events.iter().zip(&files).filter(|(_, file)| !file.revents().is_empty());
    Ok(ready.map(|((name, _), _)| *name).collect())
}

/// An output of a case.
struct Output {
    /// Until its end.
    from: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl Output {
    fn new(from: PipeReader) -> Output {
        Output { from: Some(from), bytes: Vec::new() }
    }

    /// Reads what is there, and keeps the beginning of the whole.
    fn read(&mut self) {
        let mut bytes = [0; 16384];
        match self.from.as_mut().map(|from| from.read(&mut bytes)) {
            Some(Ok(count @ 1..)) => {
                let room = MAX_OUTPUT - self.bytes.len();
                self.bytes.extend_from_slice(&bytes[..count.min(room)]);
            }
            Some(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
            _ => self.from = None,
        }
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

fn send(mut socket: &UnixStream, request: &Request, outputs: [PipeWriter; 2]) -> io::Result<()> {
    let text = serde_json::to_vec(request)?;
    let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidInput)?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [outputs[0].as_fd(), outputs[1].as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    let sent = retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&length)], &mut control, SendFlags::empty()))?;
    socket.write_all(&length[sent..])?;
    socket.write_all(&text)
}

/// Returns a request with the files of its outputs; `None` if the campaign has ended.
fn receive(mut socket: &UnixStream) -> io::Result<Option<(Request, [OwnedFd; 2])>> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut length)], &mut control, RecvFlags::empty())
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    socket.read_exact(&mut length[received.bytes..])?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let mut files = files.next().into_iter().flatten();
    let (Some(stdout), Some(stderr)) = (files.next(), files.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut text = vec![0; u32::from_le_bytes(length) as usize];
    socket.read_exact(&mut text)?;
    Ok(Some((serde_json::from_slice(&text)?, [stdout, stderr])))
}

/// Makes this process a template, until the campaign ends: each case is a fork that calls `command` with its arguments and
/// exits with its result. `prepare` is called with the arguments before, in this process: `command` gets its result, and what
/// it leaves is there for all cases from then on. The process must have one thread, and standard input must be the connection.
///
/// # Errors
/// The connection fails, or the system refuses another process: the campaign starts another template. On Linux, the
/// process has several threads.
pub fn serve<T>(
    mut prepare: impl FnMut(&[String]) -> T,
    command: impl Fn(Vec<String>, T) -> u8,
) -> io::Result<()> {
    keep_heap_quiet();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    while let Some((request, outputs)) = receive(&socket)? {
        let prepared = prepare(&request.arguments);
        check_threads()?;
        let (alive, held) = io::pipe()?;
        // SAFETY: fork copies this process, which has one thread, as checked above on Linux and demanded elsewhere: no
        // lock is held by a thread that the copy lacks.
        match unsafe { libc::fork() } {
            0 => {
                drop(alive);
                let Request { arguments, seconds, memory_mb } = request;
                let limits = Limits { seconds, memory_mb };
                let code = case(socket, limits, outputs, || command(arguments, prepared));
                // Until here, the template sees the pipe open.
                let _held = held;
                std::process::exit(code);
            }
            process @ 1.. => {
                drop((outputs, held));
                // Both do this, so that it is done for both. It fails if the case has ended.
                let own = Pid::from_raw(process);
                let _ = setpgid(own, own);
                let ended = watch(&socket, process as u32, &alive, request.seconds)?;
                ended.send(&socket)?;
            }
            _ => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// Returns an error if the process has several threads, where that can be found out: a fork has only the calling one, and
/// locks of the others would be held for ever.
fn check_threads() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        return Err(io::Error::other("a template must have one thread"));
    }
    Ok(())
}

/// Makes the allocator join free blocks at once. Else a case would join those of the template: each page with one would be
/// copied.
fn keep_heap_quiet() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call has two numbers, and sets an option of the allocator.
    let _ = unsafe { libc::mallopt(libc::M_MXFAST, 0) };
}

/// Runs a case in its process, and returns the exit code.
fn case(
    socket: UnixStream,
    limits: Limits,
    [stdout, stderr]: [OwnedFd; 2],
    command: impl FnOnce() -> u8,
) -> i32 {
    let prepare = || {
        setpgid(None, None)?;
        rustix::stdio::dup2_stdout(stdout)?;
        rustix::stdio::dup2_stderr(stderr)?;
        Reply::Started(std::process::id()).send(&socket)?;
        drop(socket);
        limit_memory(limits)
    };
    let run = || match prepare() {
        Ok(()) => command().into(),
        Err(e) => {
            eprintln!("error: the process of a case: {e}");
            PANIC
        }
    };
    // A panic must not return to the loop of the template, of which this process is a copy.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(PANIC)
}

/// Waits for the end of a case, and ends it after its time, or if the campaign ends.
fn watch(socket: &UnixStream, process: u32, alive: &PipeReader, seconds: f64) -> io::Result<Reply> {
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut timeout, mut closed) = (false, false);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut events = vec![(true, PollFd::new(alive, PollFlags::IN))];
        if !closed && !timeout {
            events.push((false, PollFd::new(socket, PollFlags::IN)));
        }
        let ready = ready(&mut events, (!closed && !timeout).then_some(left))?;
        if ready.contains(&true) {
            break;
        }
        closed |= ready.contains(&false);
        timeout |= !closed && deadline <= Instant::now();
        if closed || timeout {
            kill(process);
        }
    }
    // Processes that the case has started, too.
    let (end, memory, _) = reap(process, || {
        kill(process);
        timeout
    })?;
    if closed {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(Reply::Ended(if timeout { End::Timeout } else { end }, memory))
}
