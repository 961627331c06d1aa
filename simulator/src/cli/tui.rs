//! `wavesim tui`: runs the full-screen debugger.

use super::OK;
use super::debug::ChecksArgs;
use super::input::InputArgs;
use crate::tui::{self, app::App};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use wavesim_debug::command::Debugger;
use wavesim_debug::timeline::Timeline;
use wavesim_machine::exec::location::SourceFile;

/// Debug a kernel on the full screen, with source, waves, registers by lane, and memory
#[derive(Debug, clap::Args)]
pub struct TuiArgs {
    #[command(flatten)]
    pub input: InputArgs,
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
        let dispatch = self.input.dispatch(&prepared)?;
        let mut timeline = Timeline::new(&prepared, &dispatch)?;
        self.checks.start(&mut timeline)?;
        let mut app = App::new(Debugger::new(timeline, interrupt));
        let folder = self.input.file.parent().unwrap_or(Path::new(""));
        app.sources = prepared.program.source_files().iter().map(|file| text_of(file, folder)).collect();
        Ok(body(&mut app))
    }
}

/// Reads a file that debug information names, from the compiler's path or next to the code object.
fn text_of(file: &SourceFile, folder: &Path) -> Option<String> {
    let last = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
    let places = [PathBuf::from(&file.path), folder.join(&*file.name), folder.join(last)];
    places.iter().find_map(|path| wavesim_files::read_text(path).ok())
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
