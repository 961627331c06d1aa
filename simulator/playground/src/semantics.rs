//! User-defined pseudocode, which replaces the built-in semantics of instructions.

use crate::diagnose::Text;
use crate::program::check_size;
use isa_spec::canonical;
use isa_spec::diag::Severity;
use serde_json::{Value, json};
use wavesim_machine::exec::overrides::{OverrideError, Overrides};
use wavesim_machine::isa;

/// The file name in messages.
const NAME: &str = "changes.pcode";

/// Parses pseudocode to run with.
pub fn parse(text: &str) -> Result<Overrides, String> {
    check_size(text)?;
    match Overrides::parse(NAME.to_string(), text.to_string()) {
        Ok((overrides, _)) => Ok(overrides),
        Err(OverrideError::Wrong(message)) => Err(message),
    }
}

/// Returns the diagnostics of pseudocode, and the instructions that it defines.
pub fn diagnose(text: &str) -> Result<Value, String> {
    check_size(text)?;
    let loaded = isa::loaded();
    let mut sources = loaded.sources.clone();
    let file = sources.add(NAME, text);
    let canonical::Replacements { by_arch, diagnostics, .. } =
        canonical::replacements(&sources, &loaded.pcode, file, &loaded.tables);
    let mut names: Vec<String> = by_arch.iter().flat_map(|names| names.keys().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    let place = Text::new(text);
    let list: Vec<Value> = diagnostics
        .iter()
        .map(|d| {
            let (from, to) = match d.span.file == file {
                true => (d.span.start as usize, d.span.end as usize),
                false => (0, 0),
            };
            let message = match d.label.is_empty() {
                true => d.message.clone(),
                false => format!("{}: {}", d.message, d.label),
            };
            let severity = if d.severity == Severity::Error { "error" } else { "warning" };
            place.message(from, to, severity, &message, d.help.as_deref())
        })
        .collect();
    Ok(json!({ "diagnostics": list, "names": names }))
}
