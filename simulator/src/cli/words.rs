//! The result of an assembly program whose memory is addressed in words: the words that its data file or the program
//! wrote, by address.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use wavesim_machine::memory::Memory;

/// Maximum number of words shown without `--full`.
const SHOWN: usize = 100;

/// Prints `Memory[addr]: value` for the first [`SHOWN`] words, or for all.
pub fn show(memory: &Memory, full: bool, out: &mut dyn Write) -> io::Result<()> {
    let most = if full { usize::MAX } else { SHOWN };
    for (address, value) in memory.touched().take(most) {
        writeln!(out, "Memory[{address}]: {value}")?;
    }
    let rest = memory.touched().skip(most).count();
    if rest > 0 {
        super::output::emit(format!("and {rest} more words (--full shows them, --dump FILE writes them)"));
    }
    Ok(())
}

/// Returns all words as JSON: `data[i]` is the word at `addresses[i]`.
pub fn json(memory: &Memory) -> Value {
    let (addresses, data): (Vec<u32>, Vec<u32>) = memory.touched().unzip();
    json!({ "dtype": "u32", "shape": [data.len()], "addresses": addresses, "data": data })
}

/// Writes all words as a data file or, if its name ends in `.bin`, as raw words from address 0.
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
    wavesim_files::write(path, |out| out.write_all(&bytes))
}
