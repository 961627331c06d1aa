//! `wavesim lsp`: serves editors through the Language Server Protocol.

use super::OK;
use anyhow::Context as _;
use wavesim_lsp::Connection;

/// Serve an editor that speaks the Language Server Protocol, on standard input and output
///
/// The server knows text kernels (`.rdna`), assembly for AMD GPUs (`.s`), assembly programs (`.as`) and pseudocode
/// (`.pcode`).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim lsp

editors/ has an extension for Visual Studio Code and configurations for Neovim,
Helix, Emacs and Zed.")]
pub struct LspArgs {
    /// Accepted, as editors pass it: standard input and output are the only transport
    #[arg(long, hide = true)]
    pub stdio: bool,
}

pub fn run(_args: &LspArgs) -> anyhow::Result<u8> {
    // The only thread that writes to standard output is the connection's.
    let (connection, threads) = Connection::stdio();
    let served = wavesim_lsp::serve(&connection);
    // The threads end when the channels of the connection are closed.
    drop(connection);
    served?;
    threads.join().context("standard input or output")?;
    Ok(OK)
}
