//! `wavesim completions`: prints completion scripts for shells.

use super::{Cli, OK};
use clap::CommandFactory as _;
use std::io::Write;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim completions bash > ~/.local/share/bash-completion/completions/wavesim
  wavesim completions zsh > ~/.zfunc/_wavesim
  wavesim completions fish > ~/.config/fish/completions/wavesim.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

pub fn run(args: &CompletionsArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wavesim", &mut script);
    out.write_all(&script)?;
    Ok(OK)
}
