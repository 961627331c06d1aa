//! `wavesim dap`: serves editors through the Debug Adapter Protocol.

use super::input::InputArgs;
use super::{OK, output};
use anyhow::Context as _;
use clap::Parser;
use serde_json::Value;
use std::cell::RefCell;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use wavesim_dap::protocol::{LaunchArguments, Request};
use wavesim_dap::{Host, Launch, wire};

/// Serve an editor that speaks the Debug Adapter Protocol, on standard input and output
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DapArgs {
    /// Serve clients that connect to this port instead, or to this address and port
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub listen: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  wavesim dap
  wavesim dap --listen 4711

editors/ has an extension for Visual Studio Code and a configuration for Neovim;
docs/debugging.md describes the attributes of a launch.";

pub fn run(args: &DapArgs) -> anyhow::Result<u8> {
    let Some(listen) = &args.listen else {
        wavesim_dap::serve(&Client::new(io::stdin(), output::protocol()));
        return Ok(OK);
    };
    let address = if listen.contains(':') { listen.clone() } else { format!("127.0.0.1:{listen}") };
    let listener = TcpListener::bind(&address).with_context(|| address.clone())?;
    output::emit(format!("listening on {}", listener.local_addr()?));
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || {
            if let Err(e) = connected(stream) {
                output::emit(format!("error: {e}"));
            }
        });
    }
    Ok(OK)
}

/// Serves a connected client.
fn connected(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (from, to) = (stream.try_clone()?, stream.try_clone()?);
    wavesim_dap::serve(&Client::new(from, to));
    // This also ends the reader thread.
    stream.shutdown(std::net::Shutdown::Both)
}

type Message = Result<Request, String>;

/// A client. A separate thread reads its messages.
struct Client<W> {
    messages: Receiver<Message>,
    /// Number of waiting messages.
    waiting: Arc<AtomicUsize>,
    to: RefCell<W>,
}

impl<W: Write> Client<W> {
    fn new(from: impl Read + Send + 'static, to: W) -> Client<W> {
        let (sender, messages) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = waiting.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            // A read error is treated as a disconnected client.
            while let Ok(Some(bytes)) = wire::read(&mut from) {
                count.fetch_add(1, Ordering::Release);
                if sender.send(wire::parse(&bytes)).is_err() {
                    return;
                }
            }
            // The end of the stream interrupts a run, like a message.
            count.fetch_add(1, Ordering::Release);
        });
        Client { messages, waiting, to: RefCell::new(to) }
    }
}

impl<W: Write> Host for Client<W> {
    fn receive(&self) -> Option<Message> {
        let message = self.messages.recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        Some(message)
    }

    fn waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    fn send(&self, message: &Value) {
        // A disconnected client reads nothing; the next `receive` ends the session.
        let _ = wire::write(&mut *self.to.borrow_mut(), message);
    }

    fn load(&self, launch: &LaunchArguments) -> Result<Launch, String> {
        load(launch).map_err(|e| match e.downcast_ref::<super::Diagnostics>() {
            Some(diagnostics) => diagnostics.to_string(),
            None => super::with_causes(&e),
        })
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
    Ok(Launch { prepared, schedule, order, max_instructions: input.max_instructions })
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
