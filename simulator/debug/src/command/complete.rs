//! Completion of command lines, from the table of commands and the names of the kernel.

use super::{COMMANDS, Command, Completion, Debugger, parse};

impl Debugger<'_> {
    /// Returns the start of the word before the cursor, and its possible completions in alphabetical order.
    pub fn complete(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let line = &line[..line.floor_char_boundary(cursor)];
        let start = line
            .char_indices()
            .rev()
            .find(|(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
            .map_or(0, |(at, c)| at + c.len_utf8());
        let (before, word) = line.split_at(start);
        let (command, arguments) = parse::split_command(before.trim_start());
        let mut names = match command {
            "" => command_names(),
            name => self.argument_names(name, arguments.trim()),
        };
        names.retain(|name| name.starts_with(word));
        names.sort();
        (start, names)
    }

    /// Returns the names that can follow the arguments given so far.
    fn argument_names(&self, command: &str, before: &str) -> Vec<String> {
        let completion = Command::find(command).map_or(Completion::Nothing, |c| c.completion);
        let prepared = self.timeline.prepared;
        let mut names: Vec<String> = match completion {
            Completion::Nothing => Vec::new(),
            Completion::Command => command_names(),
            Completion::Word(words) => words.iter().map(|w| (*w).to_string()).collect(),
            Completion::Place if before.is_empty() => {
                let labels = prepared.labels.iter().map(|l| l.0.clone());
                labels.chain(prepared.debug.function_names().map(str::to_string)).collect()
            }
            Completion::Place | Completion::Value => {
                let registers: &[&str] = match self.arch().machine() {
                    None => &["exec", "vcc", "scc", "m0", "pc", "mode", "status"],
                    Some(_) => &["exec", "pc"],
                };
                let arguments = prepared.buffers.iter().map(|b| b.name.clone());
                let variables = prepared.debug.names().map(str::to_string);
                arguments.chain(variables).chain(registers.iter().map(|r| (*r).to_string())).collect()
            }
        };
        names.sort();
        names.dedup();
        // Names come from the kernel's file, and completions are written to the terminal verbatim.
        names.retain(|name| !name.contains(char::is_control));
        names
    }
}

fn command_names() -> Vec<String> {
    COMMANDS.iter().map(|c| c.name.to_string()).collect()
}
