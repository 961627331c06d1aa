//! User-defined pseudocode, which replaces the built-in semantics of instructions.

use crate::diagnose::{Message, Text};
use crate::program::{SEMANTICS, check_size};
use isa_spec::canonical;
use isa_spec::diag::Diagnostic;
use serde_json::{Value, json};
use wavesim_machine::isa;

/// The messages of pseudocode, and the instructions that it defines.
pub struct Definitions {
    /// Errors and warnings.
    pub messages: Vec<Message>,
    /// The names of instructions, in upper case and in order.
    pub names: Vec<String>,
}

/// Checks pseudocode against the tables and the built-in functions.
pub fn definitions(text: &str) -> Definitions {
    let loaded = isa::loaded();
    let mut sources = loaded.sources.clone();
    let file = sources.add(SEMANTICS, text);
    let canonical::Replacements { by_arch, diagnostics, .. } =
        canonical::replacements(&sources, &loaded.pcode, file, &loaded.tables);
    let mut names: Vec<String> = by_arch.iter().flat_map(|names| names.keys().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    let message = |d: &Diagnostic| {
        let (from, to) = match d.span.file == file {
            true => (d.span.start as usize, d.span.end as usize),
            false => (0, 0),
        };
        let text = match d.label.is_empty() {
            true => d.message.clone(),
            false => format!("{}: {}", d.message, d.label),
        };
        Message { from, to, severity: d.severity, text, help: d.help.clone() }
    };
    Definitions { messages: diagnostics.iter().map(message).collect(), names }
}

/// Returns the diagnostics of pseudocode, and the instructions that it defines.
pub fn diagnose(text: &str) -> Result<Value, String> {
    check_size(text)?;
    let place = Text::new(text);
    let Definitions { messages, names } = definitions(text);
    let list: Vec<Value> = messages.iter().map(|message| place.json(message)).collect();
    Ok(json!({ "diagnostics": list, "names": names }))
}
