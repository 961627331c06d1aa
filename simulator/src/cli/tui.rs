//! `wavesim tui`: runs the full-screen debugger.

use super::OK;
use super::debug::ChecksArgs;
use super::input::InputArgs;
use crate::tui::{self, app::App};
use std::io::{IsTerminal, Write};
use wavesim_debug::command::Debugger;
use wavesim_debug::timeline::Timeline;

/// Debug a kernel on the full screen, with source, waves, registers by lane, and memory
#[derive(Debug, clap::Args)]
pub struct TuiArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub checks: ChecksArgs,
}

pub fn run(args: &TuiArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    if !std::io::stdout().is_terminal() {
        anyhow::bail!("standard output is not a terminal; `wavesim debug` works without one");
    }
    let prepared = args.checks.prepare(&args.input)?;
    let dispatch = args.input.dispatch(&prepared)?;
    let mut timeline = Timeline::new(&prepared, &dispatch)?;
    args.checks.start(&mut timeline)?;
    let mut app = App::new(Debugger::new(timeline, tui::poll_interrupt));
    let mut terminal = ratatui::try_init()?;
    let result = tui::run(&mut app, &mut terminal);
    // The terminal is restored even after an error.
    ratatui::try_restore()?;
    result?;
    Ok(OK)
}
