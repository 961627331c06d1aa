//! `wavesim debug`: runs the debugger on a terminal, or on a script of commands.

use super::check::{Checks, parse_checks};
use super::input::InputArgs;
use super::memory::MemoryArgs;
use super::{FAILED, INTERRUPTED, OK, prompt};
use anyhow::Context as _;
use clap::Parser as _;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use wavesim_debug::command::{self, Debugger, Flow};
use wavesim_debug::timeline::Timeline;
use wavesim_debug::view;
use wavesim_files as files;
use wavesim_inspect::check::{Check, GUARD_BYTES};
use wavesim_loader::prepared::Prepared;

/// Debug a kernel: step forward and backward, show and change registers and memory
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DebugArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// First run the commands in this file
    #[arg(short = 'x', long, value_name = "FILE")]
    pub commands: Option<PathBuf>,
    /// First run this command (repeatable; after those of --commands)
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    pub execute: Vec<String>,
    /// Exit after these commands, with 1 if one of them failed
    #[arg(long)]
    pub batch: bool,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub checks: ChecksArgs,
}

/// Debug a launch of a HIP, OpenCL or Python program that runs with wavesim's libraries
#[derive(Debug, clap::Parser)]
#[command(name = "wavesim debug", override_usage = "wavesim debug [OPTIONS] -- PROGRAM [ARGUMENTS]")]
struct ProgramArgs {
    /// The kernel to stop at, and the number of the launch; `*` for any kernel
    #[arg(long, value_name = "KERNEL[:LAUNCH]", default_value = "*:1")]
    launch: String,
    /// Let an editor attach to the launch, on this port, in place of the terminal
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    listen: Option<String>,
    /// First run the commands in this file
    #[arg(short = 'x', long, value_name = "FILE")]
    commands: Option<PathBuf>,
    /// First run this command (repeatable; after those of --commands)
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    execute: Vec<String>,
    /// Go on with the program after these commands
    #[arg(long)]
    batch: bool,
    #[command(flatten)]
    checks: ChecksArgs,
}

/// Checks, and going back
#[derive(Debug, Clone, clap::Args)]
pub struct ChecksArgs {
    /// Stop where `wavesim check` reports an error, with memory laid out as there. Without a value: all checks
    #[arg(long = "check", value_name = "NAME[,NAME]", num_args = 0..=1, require_equals = true, value_delimiter = ',',
        default_missing_value = "all", value_parser = parse_checks)]
    pub checks: Vec<Checks>,
    /// Megabytes that checkpoints for going back may take
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub history_memory: u64,
}

impl ChecksArgs {
    /// Loads the kernel, with memory laid out for the checks.
    pub fn prepare(&self, input: &InputArgs) -> anyhow::Result<Prepared> {
        input.prepare(if self.checks.is_empty() { 0 } else { GUARD_BYTES })
    }

    /// Enables the checks, and limits the checkpoints.
    pub fn start(&self, timeline: &mut Timeline<'_>) -> anyhow::Result<()> {
        let possible = Check::of(timeline.prepared.program.arch);
        let chosen: Vec<Check> = self.checks.iter().flat_map(|c| &c.0).copied().collect();
        let chosen: Vec<Check> = possible.iter().copied().filter(|c| chosen.contains(c)).collect();
        timeline.check(&chosen)?;
        timeline.limit_checkpoints((self.history_memory as usize) << 20);
        Ok(())
    }
}

/// The files of this machine, for the debugger.
pub struct LocalFiles {
    /// The folder of the kernel.
    folder: PathBuf,
}

impl LocalFiles {
    /// Searches sources also in the folder of a kernel's file.
    pub fn near(file: &Path) -> LocalFiles {
        LocalFiles { folder: file.parent().unwrap_or(Path::new("")).to_path_buf() }
    }
}

impl command::Files for LocalFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        files::read_text(Path::new(path)).map_err(|e| e.to_string())
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        files::write(Path::new(path), |out| out.write_all(text.as_bytes())).map_err(|e| e.to_string())
    }

    /// Reads a file that debug information names: from the compiler's path, or next to the code object.
    fn source(&self, path: &str) -> Option<String> {
        let last = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let name = path.trim_start_matches("./");
        let places = [PathBuf::from(path), self.folder.join(name), self.folder.join(last)];
        places.iter().find_map(|path| files::read_text(path).ok())
    }
}

const EXAMPLES: &str = "\
Examples:
  wavesim debug kernel.rdna
  wavesim debug kernel.rdna --check -e continue
  wavesim debug kernel.rdna --batch -e 'break 12 if v3[5] > 10' \\
      -e continue -e 'p v3 as f32'
  wavesim debug vadd/launch.json --target gfx1201 -x session.txt --batch
  wavesim debug --launch axpy:3 -- ./program 1000

In the debugger, `help` lists the commands. docs/debugging.md finds the errors of
six broken kernels.";

/// Maximum length of a command in a script.
const MAX_COMMAND_LEN: u64 = 1 << 20;

/// Returns the lines of a script as they are read.
fn commands(mut from: impl BufRead) -> impl Iterator<Item = io::Result<String>> {
    std::iter::from_fn(move || {
        let mut line = String::new();
        match io::Read::take(&mut from, MAX_COMMAND_LEN).read_line(&mut line) {
            Ok(0) => None,
            Ok(n) if n as u64 == MAX_COMMAND_LEN && !line.ends_with('\n') => Some(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "standard input: a command of over 1 MiB",
            ))),
            Ok(_) => Some(Ok(line.trim_end_matches(['\n', '\r']).to_string())),
            Err(e) => Some(Err(e)),
        }
    })
}

/// Runs `wavesim debug [OPTIONS] -- PROGRAM [ARGUMENTS]`; returns `None` for other command lines.
pub fn program(words: &[OsString]) -> Option<anyhow::Result<u8>> {
    let [own, command, rest @ ..] = words else { return None };
    let end = rest.iter().position(|word| word == "--").filter(|_| command == "debug")?;
    let args = ProgramArgs::parse_from(std::iter::once(own).chain(&rest[..end]));
    Some(run_program(&args, &rest[end + 1..]))
}

/// Runs a program whose libraries are those of wavesim, and lets it debug one of its launches.
fn run_program(args: &ProgramArgs, program: &[OsString]) -> anyhow::Result<u8> {
    let mut text = match &args.commands {
        Some(path) => files::read_text(path)?,
        None => String::new(),
    };
    for command in &args.execute {
        text.push_str(command);
        text.push('\n');
    }
    if args.batch {
        text.push_str("quit\n");
    }
    let [program, arguments @ ..] = program else { anyhow::bail!("no program is given after `--`") };
    let mut command = std::process::Command::new(program);
    command.args(arguments).env("WAVESIM_DEBUG", &args.launch);
    let checks: Vec<&str> = args.checks.checks.iter().flat_map(|c| &c.0).map(|c| c.name()).collect();
    if !checks.is_empty() {
        command.env("WAVESIM_CHECK", checks.join(","));
    }
    if let Some(listen) = &args.listen {
        command.env("WAVESIM_DEBUG_LISTEN", listen);
    }
    let script = std::env::temp_dir().join(format!("wavesim-debug-{}.txt", std::process::id()));
    if !text.is_empty() {
        files::write(&script, |out| out.write_all(text.as_bytes()))
            .with_context(|| script.display().to_string())?;
        command.env("WAVESIM_DEBUG_COMMANDS", &script);
    }
    let status = command.status().with_context(|| program.to_string_lossy().into_owned());
    if !text.is_empty() {
        let _ = std::fs::remove_file(&script);
    }
    Ok(status?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

pub fn run(args: &DebugArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let prepared = args.checks.prepare(&args.input)?;
    super::progress::catch_interrupts();
    let model = args.memory.model(&prepared, &args.input.schedule)?;
    let mut dispatch = args.input.dispatch(&prepared)?;
    args.memory.apply(&mut dispatch, model.as_ref());
    if model.is_some() && !args.checks.checks.is_empty() {
        anyhow::bail!("the checks need immediate memory; leave out --memory or --check");
    }
    let mut timeline = Timeline::new(&prepared, &dispatch)?;
    args.checks.start(&mut timeline)?;
    let mut debugger = Debugger::new(timeline, command::ctrl_c);
    debugger.set_files(LocalFiles::near(&args.input.file));
    writeln!(out, "{}", view::position(&debugger.timeline, debugger.focus.wave))?;
    out.flush()?;
    let mut text = String::new();
    if let Some(path) = &args.commands {
        text = files::read_text(path)?;
    }
    for command in &args.execute {
        text.push_str(command);
        text.push('\n');
    }
    let mut lines = text.lines().map(|line| Ok(line.to_string()));
    let (good, flow) = prompt::script(&mut debugger, &mut lines, out)?;
    let code = |debugger: &Debugger<'_>, good| match good {
        true => OK,
        false if debugger.was_interrupted() => INTERRUPTED,
        false => FAILED,
    };
    if flow == Flow::Quit || args.batch {
        return Ok(code(&debugger, good));
    }
    if std::io::stdin().is_terminal() {
        prompt::interact(&mut debugger, out)?;
        return Ok(OK);
    }
    // Commands from a pipe are a script; a program may write it while it reads the answers.
    let (good, _) = prompt::script(&mut debugger, &mut commands(std::io::stdin().lock()), out)?;
    Ok(code(&debugger, good))
}
