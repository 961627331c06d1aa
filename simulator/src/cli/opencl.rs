//! `wavesim opencl`: lists the supported functions of OpenCL. The library itself is a separate package
//! (`hosts/opencl`).

use super::{BAD_INPUT, OK};
use std::io::Write;
use wavesim_opencl_api::{FUNCTIONS, State};

/// List the functions of OpenCL, and which of them are supported
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wavesim opencl --coverage
  wavesim opencl --coverage --json

A program runs with `OCL_ICD_VENDORS` set to a folder with wavesim.icd
(docs/opencl.md). A function that is not supported returns
CL_INVALID_OPERATION.")]
pub struct OpenclArgs {
    /// Print the state of every function
    #[arg(long)]
    pub coverage: bool,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &OpenclArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    if !args.coverage {
        super::emit(
            "error: `wavesim opencl --coverage` lists the functions; programs need no command (docs/opencl.md)",
        );
        return Ok(BAD_INPUT);
    }
    let (mut supported, mut all) = (0, 0);
    for function in FUNCTIONS {
        let (yes, note) = match function.state {
            State::Implemented => (true, ""),
            State::Unsupported(why) | State::UnsupportedObject(_, why) => (false, why),
            State::OtherSystem => continue,
        };
        supported += u32::from(yes);
        all += 1;
        if args.json {
            let line = serde_json::json!({ "name": function.name, "supported": yes, "note": note });
            writeln!(out, "{line}")?;
        } else {
            let line = format!("{:3}  {:42} {note}", if yes { "yes" } else { "no" }, function.name);
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    if !args.json {
        writeln!(out, "{supported} of {all} functions are supported")?;
    }
    Ok(OK)
}
