//! `wavesim dap`: serves editors through the Debug Adapter Protocol.

use super::connections::{Connection, Connections};
use super::debug::LocalFiles;
use super::input::InputArgs;
use super::{OK, output};
use anyhow::Context as _;
use clap::Parser;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use wavesim_dap::protocol::{LaunchArguments, Request};
use wavesim_dap::{Host, Launch, wire};
use wavesim_debug::command::Files;

/// Serve an editor that speaks the Debug Adapter Protocol, on standard input and output
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DapArgs {
    /// Serve clients that connect to this port instead, or to this address and port. Their launches must have the
    /// attribute `token` that this command prints
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub listen: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  wavesim dap
  wavesim dap --listen 4711

editors/ has an extension for Visual Studio Code and a configuration for Neovim;
docs/debugging.md describes the attributes of a launch.";

/// Maximum number of connections of `--listen`.
const MAX_CONNECTIONS: usize = 16;
/// Maximum number of messages that wait, and of their bytes; the client's next message waits in its connection.
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: usize = wire::LIMIT;
/// Maximum size of a message of a client that has not given the token, and of its messages that wait, in bytes.
const UNKNOWN_LIMIT: usize = 1 << 20;
/// Maximum time until a client that has connected gives the token, and for which it may leave messages unread.
const TIMEOUT: Duration = Duration::from_secs(60);

pub fn run(args: &DapArgs) -> anyhow::Result<u8> {
    let Some(listen) = &args.listen else {
        wavesim_dap::serve(&Client::new(io::stdin(), output::protocol(), None));
        return Ok(OK);
    };
    let address = if listen.contains(':') { listen.clone() } else { format!("127.0.0.1:{listen}") };
    let listener = TcpListener::bind(&address).with_context(|| address.clone())?;
    let token = token();
    output::emit(format!(
        "listening on {}/{token}\nLaunches need the attribute \"token\": \"{token}\".",
        listener.local_addr()?
    ));
    Connections::new(MAX_CONNECTIONS).serve(&listener, drop, move |connection| {
        if let Err(e) = connected(Arc::new(connection), &token) {
            output::emit(format!("error: {e}"));
        }
    })
}

/// Returns 128 random bits. Other users and web pages can connect to a port of this machine, but do not know them.
fn token() -> String {
    // The state of a hash is random, as its purpose is that others cannot predict the hashes.
    let word = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", word(), word())
}

/// Serves a connected client.
fn connected(connection: Arc<Connection>, token: &str) -> io::Result<()> {
    let stream = connection.stream();
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let access =
        Access { token: token.to_string(), connection: connection.clone(), refused: Cell::new(false) };
    wavesim_dap::serve(&Client::new(Shared(connection.clone()), stream, Some(access)));
    // This also ends the reader thread.
    stream.shutdown(std::net::Shutdown::Both)
}

/// A connection that a thread reads.
struct Shared(Arc<Connection>);

impl Read for Shared {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.stream().read(bytes)
    }
}

/// What a client of a port must know.
struct Access {
    token: String,
    connection: Arc<Connection>,
    /// Whether the client has given another token: it is not served any more.
    refused: Cell<bool>,
}

impl Access {
    fn check(&self, given: Option<&str>) -> Result<(), String> {
        if given != Some(self.token.as_str()) {
            self.refused.set(true);
            return Err(
                "the launch needs the attribute `token` that `wavesim dap --listen` has printed".to_string()
            );
        }
        // Debugging may take any time from here on.
        self.connection.set_waiting(false);
        self.connection.stream().set_read_timeout(None).map_err(|e| e.to_string())
    }
}

/// Messages that wait to be handled.
#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The client sends no more messages.
    ended: bool,
    /// Nobody handles messages any more.
    closed: bool,
    /// Whether the client has given the token.
    known: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Changes the state.
    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Blocks while a condition holds.
    fn wait_while(&self, condition: impl Fn(&Waiting) -> bool) -> MutexGuard<'_, Waiting> {
        let waited = self.changed.wait_while(self.lock(), |state| condition(state));
        waited.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reads messages until the stream ends or fails, which is treated as a disconnected client.
    fn fill(&self, from: impl Read) {
        let mut from = BufReader::new(from);
        loop {
            let limit = if self.lock().known { wire::LIMIT } else { UNKNOWN_LIMIT };
            let Ok(Some(message)) = wire::read(&mut from, limit) else { break };
            let full = |state: &Waiting| {
                let most = if state.known { MAX_WAITING_BYTES } else { UNKNOWN_LIMIT };
                let many = state.messages.len() >= MAX_WAITING;
                !state.closed && (many || state.bytes > 0 && state.bytes + message.len() > most)
            };
            let closed = self.wait_while(full).closed;
            if closed {
                return;
            }
            self.change(|state| {
                state.bytes += message.len();
                state.messages.push_back(message);
            });
        }
        self.change(|state| state.ended = true);
    }

    /// Waits for the next message.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.wait_while(|state| state.messages.is_empty() && !state.ended);
        let message = state.messages.pop_front()?;
        state.bytes -= message.len();
        drop(state);
        self.changed.notify_all();
        Some(message)
    }
}

/// A client. A separate thread reads its messages.
struct Client<W> {
    messages: Arc<Queue>,
    to: RefCell<W>,
    access: Option<Access>,
}

impl<W: Write> Client<W> {
    fn new(from: impl Read + Send + 'static, to: W, access: Option<Access>) -> Client<W> {
        let messages = Arc::new(Queue::default());
        messages.change(|state| state.known = access.is_none());
        let queue = messages.clone();
        let reader = std::thread::Builder::new().spawn(move || queue.fill(from));
        if reader.is_err() {
            messages.change(|state| state.ended = true);
        }
        Client { messages, to: RefCell::new(to), access }
    }
}

impl<W> Drop for Client<W> {
    fn drop(&mut self) {
        self.messages.change(|state| state.closed = true);
    }
}

impl<W: Write> Host for Client<W> {
    fn receive(&self) -> Option<Result<Request, String>> {
        if self.access.as_ref().is_some_and(|access| access.refused.get()) {
            return None;
        }
        Some(wire::parse(&self.messages.next()?))
    }

    fn waiting(&self) -> bool {
        // The end of the stream interrupts a run, like a message.
        let state = self.messages.lock();
        state.ended || !state.messages.is_empty()
    }

    fn send(&self, message: &Value) {
        // A disconnected client reads nothing; the next `receive` ends the session.
        let _ = wire::write(&mut *self.to.borrow_mut(), message);
    }

    fn load(&self, launch: &LaunchArguments) -> Result<Launch, String> {
        if let Some(access) = &self.access {
            access.check(launch.token.as_deref())?;
            self.messages.change(|state| state.known = true);
        }
        load(launch).map_err(|e| match e.downcast_ref::<super::Diagnostics>() {
            Some(diagnostics) => diagnostics.to_string(),
            None => super::with_causes(&e),
        })
    }

    fn files(&self, launch: &LaunchArguments) -> Option<Box<dyn Files>> {
        Some(Box::new(LocalFiles::near(Path::new(&launch.program))))
    }

    fn path(&self, name: &str) -> Option<String> {
        Path::new(name).canonicalize().ok().map(|path| path.display().to_string())
    }
}

/// The command line that is equivalent to a launch.
#[derive(Debug, Parser)]
#[command(name = "launch", no_binary_name = true, disable_help_flag = true)]
struct Configuration {
    #[command(flatten)]
    input: InputArgs,
}

fn load(launch: &LaunchArguments) -> anyhow::Result<Launch> {
    if launch.program.is_empty() {
        anyhow::bail!(
            "`program` is missing: a text kernel, an assembly file, a code object or a launch.json"
        );
    }
    let configuration = Configuration::try_parse_from(options(launch)).map_err(|e| {
        let text = e.to_string();
        // The usage text that follows applies to command lines only.
        let end = text.find("\n\nUsage").unwrap_or(text.len());
        anyhow::anyhow!("{}", text[..end].trim_start_matches("error: ").trim())
    })?;
    let input = configuration.input;
    let prepared = input.prepare(wavesim_inspect::check::GUARD_BYTES)?;
    input.dispatch(&prepared)?;
    let (schedule, order) = input.orders();
    let recorded = input.schedule.recorded(&prepared)?;
    Ok(Launch { prepared, schedule, order, recorded, max_instructions: input.max_instructions })
}

/// Converts the attributes of a launch to command-line options.
fn options(launch: &LaunchArguments) -> Vec<String> {
    let mut out = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        // One word, so that a value that begins with a dash is not parsed as an option.
        out.extend(value.map(|value| format!("--{name}={value}")));
    };
    let dimensions =
        |d: &Option<Vec<u32>>| d.as_ref().map(|d| d.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    option("arch", launch.arch.clone());
    option("mcpu", launch.mcpu.clone());
    option("target", launch.target.clone());
    option("wave", launch.wave.map(|w| w.to_string()));
    option("kernel", launch.kernel.clone());
    option("grid", dimensions(&launch.grid));
    option("block", dimensions(&launch.block));
    option("schedule", launch.schedule.clone());
    launch.order.iter().for_each(|order| option("order", Some(order.clone())));
    option("semantics", launch.semantics.clone());
    option("seed", launch.seed.map(|s| s.to_string()));
    option("global-memsize", launch.global_memsize.map(|s| s.to_string()));
    option("max-instructions", launch.max_instructions.map(|n| n.to_string()));
    option("files-below", launch.files_below.clone());
    launch.args.iter().for_each(|arg| option("arg", Some(arg.clone())));
    for (name, value) in &launch.define {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        out.push(format!("-D{name}={value}"));
    }
    out.extend(launch.include.iter().map(|folder| format!("-I{folder}")));
    out.push("--".to_string());
    out.push(launch.program.clone());
    out.extend(launch.data.clone());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of a client that has not given the token take at most `UNKNOWN_LIMIT` bytes while they wait.
    #[test]
    fn the_queue_of_an_unknown_client_is_short() {
        let body = "x".repeat(600_000);
        let stream = format!("Content-Length: {}\r\n\r\n{body}", body.len()).repeat(5);
        let queue = Queue::default();
        std::thread::scope(|scope| {
            scope.spawn(|| queue.fill(stream.as_bytes()));
            for _ in 0..5 {
                drop(queue.wait_while(|state| state.messages.is_empty()));
                // Time for more than may wait.
                std::thread::sleep(Duration::from_millis(50));
                assert!(queue.lock().bytes <= UNKNOWN_LIMIT);
                assert_eq!(queue.next().map(|message| message.len()), Some(body.len()));
            }
            assert_eq!(queue.next(), None);
        });
    }
}
