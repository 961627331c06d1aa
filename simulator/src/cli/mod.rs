//! The command line: one file a subcommand, each with its arguments and a `run` that gives the exit code.
//!
//! [`main`] parses, dispatches, and turns errors into the exit codes that scripts rely on: 0 success, 1 the thing
//! examined failed, 2 bad usage or input.

pub mod asm;
pub mod bench;
pub mod check;
pub mod completions;
pub mod conform;
pub mod debug;
pub mod disasm;
pub mod execute;
pub mod input;
pub mod isa;
pub mod launch;
pub mod observe;
pub mod pcode;
pub mod progress;
pub mod run;
pub mod target;
pub mod tui;
pub mod words;

use clap::{Parser, Subcommand};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Success.
pub const OK: u8 = 0;
/// The thing examined failed: kernel fault, mismatch, findings, failed vectors.
pub const FAILED: u8 = 1;
/// Bad usage or bad input.
pub const BAD_INPUT: u8 = 2;

/// Functional simulator for AMD RDNA 3, 3.5 and 4 GPUs
#[derive(Debug, Parser)]
#[command(name = "wavesim", version, arg_required_else_help = true, after_long_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  wavesim run examples/vector_add.rdna -D N=64
  wavesim launch vadd/launch.json --target gfx1201 --check
  wavesim isa show v_add_f32 --arch rdna4
  wavesim completions bash > ~/.local/share/bash-completion/completions/wavesim

Exit codes: 0 success; 1 the kernel faulted, outputs differ or vectors failed; 2 bad usage or input.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::RunArgs),
    Launch(launch::LaunchArgs),
    Check(check::CheckArgs),
    Debug(debug::DebugArgs),
    Tui(tui::TuiArgs),
    Asm(asm::AsmArgs),
    Disasm(disasm::DisasmArgs),
    /// What the ISA description and the pseudocode say about instructions
    Isa(isa::IsaArgs),
    Pcode(pcode::PcodeArgs),
    Conform(conform::ConformArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
}

/// The process's whole run.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::new(io::stdout().lock());
    let result = dispatch(&cli.command, &mut out);
    let flushed = out.flush().map_err(anyhow::Error::from);
    match result.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        // `wavesim isa list | head`: the reader has what it wanted.
        Err(e) if is_broken_pipe(&e) => ExitCode::from(OK),
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// One command, its results to `out`, its messages to stderr. An error is bad usage or input.
pub fn dispatch(command: &Command, out: &mut dyn Write) -> anyhow::Result<u8> {
    match command {
        Command::Run(args) => run::run(args, out),
        Command::Launch(args) => launch::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Debug(args) => debug::run(args, out),
        Command::Tui(args) => tui::run(args, out),
        Command::Asm(args) => asm::run(args, out),
        Command::Disasm(args) => disasm::run(args, out),
        Command::Isa(args) => Ok(isa::run(args, out)?),
        Command::Pcode(args) => pcode::run(args, out),
        Command::Conform(args) => conform::run(args, out),
        Command::Bench(args) => bench::run(args, out),
        Command::Completions(args) => completions::run(args, out),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Bytes of a file, or of standard input where the path is `-`.
pub fn read_input(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    use anyhow::Context as _;
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::stdin().lock(), &mut bytes).context("standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// As messages name an input.
pub fn input_name(path: &std::path::Path) -> String {
    if path.as_os_str() == "-" { "<stdin>".to_string() } else { path.display().to_string() }
}
