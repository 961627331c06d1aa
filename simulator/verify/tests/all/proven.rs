//! Operations whose passes were proven before: `tests/proven/passes.txt` has digests of what was compared, so that only what a
//! change touches is proven again.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is known of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// All passes are proven, or have something that proofs do not know.
    Proven,
    /// No solver has decided some of them.
    Undecided,
}

/// Digests with what is known.
pub type List = BTreeMap<u64, Known>;

/// The first line.
const HEADER: &str = "# Digests of operations whose passes are proven. See docs/testing.md.";

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "proven", "passes.txt"].iter().collect()
}

/// Reads the list. A line that is no digest counts for nothing: what it stood for is proven again.
pub fn read() -> List {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let line = |line: &str| {
        let (digest, known) = match line.split_once(' ') {
            None => (line, Known::Proven),
            Some((digest, _)) => (digest, Known::Undecided),
        };
        Some((u64::from_str_radix(digest, 16).ok()?, known))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

/// Writes the list.
pub fn write(list: &List) {
    let line = |(digest, known): (&u64, &Known)| match known {
        Known::Proven => format!("{digest:016x}\n"),
        Known::Undecided => format!("{digest:016x} undecided\n"),
    };
    let lines: String = list.iter().map(line).collect();
    wavesim_golden::write(&path(), &format!("{HEADER}\n{lines}")).expect("written");
}
