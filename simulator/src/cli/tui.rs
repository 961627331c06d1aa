//! `wavesim tui`: runs the full-screen debugger.

use super::OK;
use super::debug::{ChecksArgs, LocalFiles};
use super::input::InputArgs;
use super::memory::MemoryArgs;
use crate::tui::{self, app::App};
use std::io::{IsTerminal, Write};
use wavesim_debug::command::Debugger;
use wavesim_debug::timeline::Timeline;
use wavesim_machine::exec::location::SourceFile;

/// Debug a kernel on the full screen, with source, waves, registers by lane, and memory
#[derive(Debug, clap::Args)]
pub struct TuiArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    #[command(flatten)]
    pub checks: ChecksArgs,
}

impl TuiArgs {
    /// Opens the kernel, and passes the full-screen debugger at the start of the run to `body`. Long commands
    /// poll `interrupt`.
    ///
    /// # Errors
    /// The kernel or the launch is invalid.
    pub fn with_app<R>(
        &self,
        interrupt: fn() -> bool,
        body: impl FnOnce(&mut App<'_>) -> R,
    ) -> anyhow::Result<R> {
        let prepared = self.checks.prepare(&self.input)?;
        let model = self.memory.model(&prepared, &self.input.schedule)?;
        let mut dispatch = self.input.dispatch(&prepared)?;
        self.memory.apply(&mut dispatch, model.as_ref());
        if model.is_some() && !self.checks.checks.is_empty() {
            anyhow::bail!("the checks need immediate memory; leave out --memory or --check");
        }
        let mut timeline = Timeline::new(&prepared, &dispatch)?;
        self.checks.start(&mut timeline)?;
        let mut debugger = Debugger::new(timeline, interrupt);
        debugger.set_files(LocalFiles::near(&self.input.file));
        let mut app = App::new(debugger);
        let text = |file: &SourceFile| app.debugger.source_text(&file.path).map(|text| text.to_string());
        app.sources = prepared.program.source_files().iter().map(text).collect();
        Ok(body(&mut app))
    }
}

pub fn run(args: &TuiArgs, _out: &mut dyn Write) -> anyhow::Result<u8> {
    if !std::io::stdout().is_terminal() {
        anyhow::bail!("standard output is not a terminal; `wavesim debug` works without one");
    }
    args.with_app(tui::poll_interrupt, |app| {
        let mut terminal = ratatui::try_init()?;
        let result = tui::run(app, &mut terminal);
        // Restore the terminal even after an error.
        ratatui::try_restore()?;
        result?;
        Ok(OK)
    })?
}
