//! The `wavesim` command: see [`wavesim::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    wavesim::cli::main()
}
