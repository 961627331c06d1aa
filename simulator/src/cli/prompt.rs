//! Commands from a person, with line editing, history and completion, or from a script.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::io::{self, Write};
use wavesim_debug::command::{COMMANDS, Debugger, Flow};

/// Completes commands, registers' and arguments' names.
struct Words {
    words: Vec<String>,
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let start = line[..pos]
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
            .map_or(0, |at| at + 1);
        let word = &line[start..pos];
        let first = line[..start].trim().is_empty();
        let commands = COMMANDS.iter().map(|c| c.names[0].to_string()).filter(|_| first);
        let others = self.words.iter().filter(|_| !first).cloned();
        let mut found: Vec<String> = commands.chain(others).filter(|w| w.starts_with(word)).collect();
        found.sort();
        Ok((start, found))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

/// Runs a script: each command is shown behind the prompt, then what it printed. False if a command failed.
pub fn script(debugger: &mut Debugger<'_>, text: &str, out: &mut dyn Write) -> io::Result<(bool, Flow)> {
    let mut good = true;
    for line in text.lines() {
        writeln!(out, "(wavesim) {line}")?;
        let (result, flow) = debugger.execute(line);
        match result {
            Ok(text) => write!(out, "{text}")?,
            Err(message) => {
                writeln!(out, "error: {message}")?;
                good = false;
            }
        }
        if flow == Flow::Quit {
            return Ok((good, flow));
        }
        // Ctrl-C is meant for the script, not for one of its commands.
        if debugger.was_stopped() {
            return Ok((false, Flow::More));
        }
    }
    Ok((good, Flow::More))
}

/// Reads commands from the terminal until the end.
pub fn interact(debugger: &mut Debugger<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let prepared = debugger.machine.prepared;
    let mut words: Vec<String> = prepared.buffers.iter().map(|b| b.name.clone()).collect();
    words.extend(prepared.labels.iter().map(|l| l.0.clone()));
    words.extend(
        ["exec", "vcc", "scc", "m0", "pc", "mode", "waves", "breakpoints", "args", "registers", "counters"]
            .map(String::from),
    );
    // Completion writes to the terminal itself.
    words.retain(|word| !word.contains(char::is_control));
    let mut history = DefaultHistory::default();
    loop {
        out.flush()?;
        // An editor a line: one takes Ctrl-C for itself as long as it lives, and while a command runs that is to stop the command.
        let mut editor: Editor<Words, DefaultHistory> = Editor::with_history(Config::default(), history)?;
        editor.set_helper(Some(Words { words: words.clone() }));
        let read = editor.readline("(wavesim) ");
        if let Ok(line) = &read {
            // History is a comfort: a line it refuses is no error.
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
