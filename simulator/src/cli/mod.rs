//! The command line. Each subcommand has a file with its arguments and a `run` function that returns the exit code.
//!
//! [`main`] parses, dispatches, and maps errors to exit codes: 0 success, 1 the thing examined failed, 2 bad usage
//! or bad input, 130 interrupted. Shared by several subcommands: `input` (opening kernels), `execute` (running
//! them), `observe` (traces and statistics), `target` (architectures), `output` (standard output and error).
//!
//! Simulation is not done here: every subcommand calls the library crates.

mod asm;
#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "prove")]
mod bodies;
#[cfg(feature = "campaigns")]
mod campaign;
mod check;
#[cfg(feature = "jit")]
mod compiled_stats;
mod completions;
mod conform;
mod connections;
mod coverage;
mod dap;
mod debug;
mod device;
mod diff;
mod disasm;
#[cfg(feature = "jit")]
mod dump_jit;
mod engine;
mod execute;
mod explore;
mod hip;
mod input;
mod isa;
mod launch;
mod lint;
#[cfg(feature = "lsp")]
mod lsp;
mod memory;
mod mutate;
mod observe;
mod opencl;
mod output;
mod page;
mod pcode;
mod profile;
mod progress;
mod prompt;
#[cfg(feature = "prove")]
mod prove;
mod run;
mod schedule;
#[cfg(feature = "serve")]
mod serve;
mod source;
mod target;
#[cfg(feature = "tui")]
mod tui;
mod words;

use crate::environment;
use clap::{Parser, Subcommand};
use output::emit;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use wavesim_isa::arch::Arch;

/// Success.
pub const OK: u8 = 0;
/// The thing examined failed: kernel fault, mismatch, findings, failed vectors.
pub const FAILED: u8 = 1;
/// Bad usage or bad input.
pub const BAD_INPUT: u8 = 2;
/// Ended by Ctrl-C: 128 + SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// Functional simulator for AMD GPUs
#[derive(Debug, Parser)]
#[command(name = "wavesim", version, about = about(), arg_required_else_help = true, after_long_help = EXAMPLES)]
pub struct Cli {
    // Not a doc comment, which clap would print.
    #[expect(missing_docs)]
    #[command(subcommand)]
    pub command: Command,
}

/// The description of the command, with the architectures that it simulates.
fn about() -> String {
    let titles = Arch::AMD.map(|arch| arch.facts().title);
    format!("Functional simulator for AMD GPUs: {}", target::list(&titles, "and"))
}

const EXAMPLES: &str = "\
Examples:
  wavesim run examples/vector_add.rdna -D N=64
  wavesim launch vadd/launch.json --target gfx1201 --check
  wavesim isa show v_add_f32 --arch rdna4
  wavesim completions bash > ~/.local/share/bash-completion/completions/wavesim

Exit codes: 0 success; 1 the kernel faulted, outputs differ, vectors failed, or
there are findings; 2 bad usage or bad input; 130 interrupted.";

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "help texts are at the arguments of each subcommand")]
pub enum Command {
    Run(run::RunArgs),
    Launch(launch::LaunchArgs),
    Check(check::CheckArgs),
    Explore(explore::ExploreArgs),
    Mutate(mutate::MutateArgs),
    Diff(diff::DiffArgs),
    Lint(lint::LintArgs),
    Profile(profile::ProfileArgs),
    Coverage(coverage::CoverageArgs),
    Debug(debug::DebugArgs),
    Dap(dap::DapArgs),
    #[cfg(feature = "lsp")]
    Lsp(lsp::LspArgs),
    #[cfg(feature = "tui")]
    Tui(tui::TuiArgs),
    Asm(asm::AsmArgs),
    Disasm(disasm::DisasmArgs),
    /// Show what the ISA description and the pseudocode define
    Isa(isa::IsaArgs),
    Pcode(pcode::PcodeArgs),
    Conform(conform::ConformArgs),
    #[cfg(feature = "campaigns")]
    Campaign(campaign::CampaignArgs),
    #[cfg(feature = "bench")]
    Bench(bench::BenchArgs),
    #[cfg(feature = "prove")]
    Prove(prove::ProveArgs),
    Hip(hip::HipArgs),
    Opencl(opencl::OpenclArgs),
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    Completions(completions::CompletionsArgs),
}

/// The `wavesim` command with the arguments of the process.
pub fn main() -> ExitCode {
    ExitCode::from(command(std::env::args_os()))
}

/// The `wavesim` command with these arguments, of which the first is the name of the program: parses them, runs the
/// subcommand, and returns the exit code. Help ends the process, and so do wrong arguments.
pub fn command(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(feature = "campaigns")]
    let special = campaign::template(&words);
    #[cfg(not(feature = "campaigns"))]
    let special = None;
    match special.or_else(|| debug::program(&words)) {
        Some(result) => exit_code(|_| result),
        None => parsed(&Cli::parse_from(&words)),
    }
}

/// The `wavesim` command with parsed arguments.
fn parsed(cli: &Cli) -> u8 {
    progress::exit_on_interrupt();
    for warning in environment::misspelt(environment::names()) {
        emit(format!("warning: {warning}"));
    }
    exit_code(|out| dispatch(&cli.command, out))
}

/// Runs a command with standard output, reports its error, and returns the exit code.
fn exit_code(run: impl FnOnce(&mut dyn Write) -> anyhow::Result<u8>) -> u8 {
    let mut out = output::stdout();
    let result = run(&mut out);
    let flushed = out.flush().map_err(|e| anyhow::Error::new(e).context("standard output"));
    let code = result.and_then(|code| flushed.map(|()| code));
    code.unwrap_or_else(|e| {
        match e.downcast_ref::<Diagnostics>() {
            Some(diagnostics) => emit(diagnostics),
            None => emit(format!("error: {}", with_causes(&e))),
        }
        BAD_INPUT
    })
}

/// Formats an error with its causes, without repeating text that the preceding message already contains.
fn with_causes(error: &anyhow::Error) -> String {
    let mut out: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        match out.last_mut() {
            Some(last) if last.ends_with(&cause) => {}
            Some(last) if cause.starts_with(&format!("{last}: ")) => *last = cause,
            _ => out.push(cause),
        }
    }
    out.join(": ")
}

/// Rendered diagnostics of bad input, each with a position and the prefix `error:`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Diagnostics(pub String);

/// Runs a command. Results go to `out`, messages to standard error. An error means bad usage or bad input.
pub fn dispatch(command: &Command, out: &mut dyn Write) -> anyhow::Result<u8> {
    match command {
        Command::Run(args) => run::run(args, out),
        Command::Launch(args) => launch::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Explore(args) => explore::run(args, out),
        Command::Mutate(args) => mutate::run(args, out),
        Command::Diff(args) => diff::run(args, out),
        Command::Lint(args) => lint::run(args, out),
        Command::Profile(args) => profile::run(args, out),
        Command::Coverage(args) => coverage::run(args, out),
        Command::Debug(args) => debug::run(args, out),
        Command::Dap(args) => dap::run(args),
        #[cfg(feature = "lsp")]
        Command::Lsp(args) => lsp::run(args),
        #[cfg(feature = "tui")]
        Command::Tui(args) => tui::run(args, out),
        Command::Asm(args) => asm::run(args, out),
        Command::Disasm(args) => disasm::run(args, out),
        Command::Isa(args) => isa::run(args, out),
        Command::Pcode(args) => pcode::run(args, out),
        Command::Conform(args) => conform::run(args, out),
        #[cfg(feature = "campaigns")]
        Command::Campaign(args) => campaign::run(args, out),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::run(args, out),
        #[cfg(feature = "prove")]
        Command::Prove(args) => prove::run(args, out),
        Command::Hip(args) => hip::run(args, out),
        Command::Opencl(args) => opencl::run(args, out),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args, out),
        Command::Completions(args) => completions::run(args, out),
    }
}

/// Returns the name of an input in messages.
pub fn input_name(path: &std::path::Path) -> String {
    if path.as_os_str() == "-" { "<stdin>".to_string() } else { path.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_not_repeated() {
        let inner = || anyhow::Error::new(std::io::Error::other("denied"));
        assert_eq!(with_causes(&inner().context("a.json: denied")), "a.json: denied");
        assert_eq!(with_causes(&inner().context("a.json: denied").context("a.json")), "a.json: denied");
        assert_eq!(with_causes(&inner().context("code x").context("in a.json")), "in a.json: code x: denied");
    }
}
