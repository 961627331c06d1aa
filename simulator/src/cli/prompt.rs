//! The prompt of `wavesim debug`: reads commands from a terminal, with line editing, history and completion, or from a
//! script.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, History as _};
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::io::{self, Write};
use std::path::PathBuf;
use wavesim_debug::command::{Debugger, Flow};

/// Completes with the names that the debugger offers.
struct Completions<'d, 'a>(&'d Debugger<'a>);

impl Completer for Completions<'_, '_> {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.0.complete(line, pos))
    }
}

impl Hinter for Completions<'_, '_> {
    type Hint = String;
}
impl Highlighter for Completions<'_, '_> {}
impl Validator for Completions<'_, '_> {}
impl Helper for Completions<'_, '_> {}

/// Runs a script, and answers its commands as they are read. Writes each command after the prompt, then its
/// output. Returns false if a command failed.
pub fn script(
    debugger: &mut Debugger<'_>,
    lines: &mut dyn Iterator<Item = io::Result<String>>,
    out: &mut dyn Write,
) -> io::Result<(bool, Flow)> {
    let mut succeeded = true;
    for line in lines {
        let line = line?;
        writeln!(out, "(wavesim) {line}")?;
        let (result, flow) = debugger.execute(&line);
        match result {
            Ok(text) => write!(out, "{text}")?,
            Err(message) => {
                writeln!(out, "error: {message}")?;
                succeeded = false;
            }
        }
        out.flush()?;
        if flow == Flow::Quit {
            return Ok((succeeded, flow));
        }
        // Ctrl-C ends the script, not only the current command.
        if debugger.was_interrupted() {
            return Ok((false, Flow::Continue));
        }
    }
    Ok((succeeded, Flow::Continue))
}

/// Returns the file that keeps the commands of earlier sessions, according to the XDG specification.
fn history_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("wavesim").join("debug_history"))
}

/// Reads commands from the terminal until `quit` or the end of input.
pub fn interact(debugger: &mut Debugger<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut history = DefaultHistory::default();
    let file = history_file();
    if let Some(file) = &file {
        // The file does not exist in the first session.
        let _ = history.load(file);
    }
    let result = prompt(debugger, &mut history, out);
    if let Some(file) = &file {
        // A folder that is not writable must not cause a failure.
        let folder = file.parent().map(std::fs::create_dir_all);
        let _ = folder.map(|_| history.save(file));
    }
    result
}

fn prompt(debugger: &mut Debugger<'_>, kept: &mut DefaultHistory, out: &mut dyn Write) -> anyhow::Result<()> {
    loop {
        let history = std::mem::take(kept);
        out.flush()?;
        // Create a new editor for each line: an editor handles Ctrl-C while it exists, and while a command
        // runs Ctrl-C must interrupt the command.
        let mut editor: Editor<Completions<'_, '_>, DefaultHistory> =
            Editor::with_history(Config::default(), history)?;
        editor.set_helper(Some(Completions(debugger)));
        let read = editor.readline("(wavesim) ");
        if let Ok(line) = &read {
            // A line that the history rejects is not an error.
            let _ = editor.add_history_entry(line);
        }
        *kept = std::mem::take(editor.history_mut());
        drop(editor);
        let line = match read {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let (result, flow) = debugger.execute(&line);
        match result {
            Ok(text) => write!(out, "{text}")?,
            Err(message) => writeln!(out, "error: {message}")?,
        }
        if flow == Flow::Quit {
            return Ok(());
        }
    }
}
