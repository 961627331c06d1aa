//! `wavesim hip`: lists the supported functions of HIP. The library itself is a separate package
//! (`hosts/hip`).

use super::{BAD_INPUT, OK};
use std::io::Write;
use wavesim_hip_api::{FUNCTIONS, State};

/// List the functions of HIP, and which of them are supported
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim hip --coverage
  wavesim hip --coverage --json

A program runs with `LD_LIBRARY_PATH` set to the folder of wavesim's libamdhip64
(docs/hip.md). A function that is not supported returns hipErrorNotSupported.")]
pub struct HipArgs {
    /// Print the state of every function
    #[arg(long)]
    pub coverage: bool,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// Returns whether a function is supported, and a note about it.
fn state(state: State) -> (bool, String) {
    match state {
        State::Implemented => (true, String::new()),
        State::Alias(other) => (true, format!("as {other}")),
        State::Unsupported(why) | State::UnsupportedText(why) => (false, why.to_string()),
    }
}

pub fn run(args: &HipArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if !args.coverage {
        super::emit(
            "error: `wavesim hip --coverage` lists the functions; programs need no command (docs/hip.md)",
        );
        return Ok(BAD_INPUT);
    }
    let mut supported = 0;
    for function in FUNCTIONS {
        let (yes, note) = state(function.state);
        supported += u32::from(yes);
        if args.json {
            let line = serde_json::json!({
                "name": function.name, "version": function.version, "supported": yes, "note": note,
            });
            writeln!(out, "{line}")?;
        } else {
            let mark = if yes { "yes" } else { "no" };
            let line = format!("{mark:3}  {:8} {:52} {note}", function.version, function.name);
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    if !args.json {
        writeln!(out, "{supported} of {} functions are supported", FUNCTIONS.len())?;
    }
    Ok(OK)
}
