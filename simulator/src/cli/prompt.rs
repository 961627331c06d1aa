//! The prompt of `wavesim debug`: reads commands from a terminal, with line editing, history and completion, or from a
//! script.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::io::{self, Write};
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

/// Runs a script. Writes each command after the prompt, then its output. Returns false if a command failed.
pub fn script(debugger: &mut Debugger<'_>, text: &str, out: &mut dyn Write) -> io::Result<(bool, Flow)> {
    let mut succeeded = true;
    for line in text.lines() {
        writeln!(out, "(wavesim) {line}")?;
        let (result, flow) = debugger.execute(line);
        match result {
            Ok(text) => write!(out, "{text}")?,
            Err(message) => {
                writeln!(out, "error: {message}")?;
                succeeded = false;
            }
        }
        if flow == Flow::Quit {
            return Ok((succeeded, flow));
        }
        // Ctrl-C ends the script, not only the present command.
        if debugger.was_interrupted() {
            return Ok((false, Flow::More));
        }
    }
    Ok((succeeded, Flow::More))
}

/// Reads commands from the terminal until `quit` or the end of input.
pub fn interact(debugger: &mut Debugger<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut history = DefaultHistory::default();
    loop {
        out.flush()?;
        // A new editor for each line: an editor handles Ctrl-C as long as it exists, and while a command runs
        // Ctrl-C must interrupt the command.
        let mut editor: Editor<Completions<'_, '_>, DefaultHistory> =
            Editor::with_history(Config::default(), history)?;
        editor.set_helper(Some(Completions(debugger)));
        let read = editor.readline("(wavesim) ");
        if let Ok(line) = &read {
            // A line that the history refuses is not an error.
            let _ = editor.add_history_entry(line);
        }
        history = std::mem::take(editor.history_mut());
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
