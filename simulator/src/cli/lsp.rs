//! `wavesim lsp`: serves editors through the Language Server Protocol.

use super::{OK, output};
use anyhow::Context as _;
use std::io::{self, BufReader};
use wavesim_lsp::{Connection, Message};

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
    let (server, Connection { sender, receiver }) = Connection::memory();
    // The command holds the lock of standard output, so this thread writes.
    let served = std::thread::spawn(move || wavesim_lsp::serve(&server));
    // Ends with the client, or with the process.
    std::thread::spawn(move || {
        let mut from = BufReader::new(io::stdin());
        while let Ok(Some(message)) = Message::read(&mut from) {
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    let mut to = output::protocol();
    for message in receiver {
        message.write(&mut to).context("standard output")?;
    }
    match served.join() {
        Ok(result) => result?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    Ok(OK)
}
