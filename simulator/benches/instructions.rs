//! `cargo bench --bench instructions`: `wavesim bench --instructions`, with the arguments after `--`.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let status =
        Command::new(env!("CARGO_BIN_EXE_wavesim")).args(["bench", "--instructions"]).args(args).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("wavesim: {e}");
            ExitCode::FAILURE
        }
    }
}
