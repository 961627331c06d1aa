//! Memory that counts words, as a run's result: the words that the data file or the program stored to, by address.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use wavesim_machine::memory::Memory;

/// Lines of the usual output.
const SHOWN: usize = 100;

/// `Memory[addr]: value`, the first of them, or all.
pub fn show(memory: &Memory, full: bool, out: &mut dyn Write) -> io::Result<()> {
    let most = if full { usize::MAX } else { SHOWN };
    for (address, value) in memory.touched().take(most) {
        writeln!(out, "Memory[{address}]: {value}")?;
    }
    let rest = memory.touched().skip(most).count();
    if rest > 0 {
        super::output::emit(format!("and {rest} more words (--full shows all, --dump FILE writes them)"));
    }
    Ok(())
}

/// All of them: `data[i]` is the word at `addresses[i]`.
pub fn json(memory: &Memory) -> Value {
    let (addresses, data): (Vec<u32>, Vec<u32>) = memory.touched().unzip();
    json!({ "dtype": "u32", "shape": [data.len()], "addresses": addresses, "data": data })
}

/// All of them as a data file; if it ends in `.bin`, the words from address 0 to the last. The file appears whole or not at all.
pub fn dump(memory: &Memory, path: &Path) -> io::Result<()> {
    let bytes = if path.extension().is_some_and(|e| e == "bin") {
        let mut words = Vec::new();
        for (address, value) in memory.touched() {
            words.resize(address as usize, 0);
            words.push(value);
        }
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    } else {
        let mut text = String::new();
        for (address, value) in memory.touched() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{address}: {value}");
        }
        text.into_bytes()
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, path).inspect_err(|_| {
        // Best effort: the error that matters is that of the renaming.
        let _ = std::fs::remove_file(&beside);
    })
}
