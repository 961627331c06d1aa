//! `wavesim debug`: runs the debugger on a terminal, or on a script of commands.

use super::input::InputArgs;
use super::{FAILED, INTERRUPTED, OK, prompt};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use wavesim_debug::command::{self, Debugger, Flow};
use wavesim_debug::timeline::Timeline;
use wavesim_debug::view;
use wavesim_files as files;

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
}

const EXAMPLES: &str = "\
Examples:
  wavesim debug kernel.rdna
  wavesim debug kernel.rdna --batch -e 'break 12 if v3[5] > 10' \\
      -e continue -e 'p v3 as f32'
  wavesim debug vadd/launch.json --target gfx1201 -x session.txt --batch

In the debugger, `help` lists the commands. docs/debugging.md finds the errors of
five broken kernels.";

pub fn run(args: &DebugArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let prepared = args.input.prepare(0)?;
    super::progress::catch_interrupts();
    let dispatch = args.input.dispatch(&prepared)?;
    let timeline = Timeline::new(&prepared, &dispatch)?;
    let mut debugger = Debugger::new(timeline, command::ctrl_c);
    writeln!(out, "{}", view::place(&debugger.timeline, 0))?;
    out.flush()?;
    let mut text = String::new();
    if let Some(path) = &args.commands {
        text = files::read_text(path)?;
    }
    for command in &args.execute {
        text.push_str(command);
        text.push('\n');
    }
    let (good, flow) = prompt::script(&mut debugger, &text, out)?;
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
    // Commands from a pipe are a script.
    let text = files::read_text(Path::new("-"))?;
    let (good, _) = prompt::script(&mut debugger, &text, out)?;
    Ok(code(&debugger, good))
}
