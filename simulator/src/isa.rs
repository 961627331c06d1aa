//! The generated boundary: everything the macro makes of the XML and the pseudocode enters the crate here.

use crate::arch::Arch;
use isa_spec::canonical::{self, SemanticsSet};
use isa_spec::data::{self, Loaded};
use isa_spec::diag;
use isa_spec::tables::ArchTable;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

isa_macros::isa!();

/// The architecture's tables.
pub fn table(arch: Arch) -> &'static ArchTable {
    TABLES[arch as usize]
}

/// Everything wrong with the ISA's files (`WAVESIM_ISA_DIR` or the project's `data/`), as shown to a user; `None` if nothing is.
pub fn problems() -> Option<String> {
    let list = &LOADED.diagnostics;
    // A file that is wrong all over says so in a screenful.
    let shown: Vec<String> = list.iter().take(20).map(|d| diag::render(&LOADED.sources, d)).collect();
    let more = list.len().saturating_sub(shown.len());
    let rest = if more > 0 { format!("\nand {more} more") } else { String::new() };
    (!list.is_empty()).then(|| format!("{}{rest}", shown.join("\n")))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let root = root();
    let isa = std::env::var_os("WAVESIM_ISA_DIR").map_or(root.join("data"), PathBuf::from);
    data::load(data::ALL, &isa, &root.join("data/overlay"), &root.join("pseudocode"), &root)
});

/// Everything that was read, with its sources.
pub fn loaded() -> &'static Loaded {
    &LOADED
}

/// The checked semantics, for the reference executor and the listing commands.
pub static SEMANTICS: LazyLock<SemanticsSet> = LazyLock::new(|| {
    let (set, diagnostics) = canonical::load_set(&LOADED.sources, &LOADED.pcode, &LOADED.tables);
    for d in &diagnostics {
        eprintln!("{}", diag::render(&LOADED.sources, d));
    }
    set
});

/// Name and text of every pseudocode file of the project.
pub fn pseudocode() -> Vec<(String, String)> {
    let file = |&id| LOADED.sources.file(id);
    LOADED.pcode.iter().map(file).map(|f| (f.name.clone(), f.text.clone())).collect()
}

/// Lines of `pseudocode/unsupported.txt`: name, or prefix with `*`, and reason.
fn unsupported() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../pseudocode/unsupported.txt"));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(':')).map(|(name, reason)| (name.trim(), reason.trim()))
}

/// Why an instruction has no semantics.
pub fn unsupported_reason(name: &str) -> Option<&'static str> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    unsupported().find(|(pattern, _)| matches(pattern)).map(|(_, reason)| reason)
}

/// `file:line` of a place in the pseudocode.
pub fn place(span: isa_spec::source::Span) -> String {
    let (line, _) = LOADED.sources.line_col(span.file, span.start);
    format!("{}:{line}", LOADED.sources.file(span.file).name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Instructions without semantics have a reason, and every reason is needed.
    #[test]
    fn what_is_unsupported_says_why() {
        let mut used = BTreeSet::new();
        for arch in Arch::ALL {
            for (inst, code) in table(arch).instructions.iter().zip(BY_ARCH[arch as usize]) {
                let reason = unsupported_reason(inst.name);
                assert_eq!(*code == u16::MAX, reason.is_some(), "{}: {}: {reason:?}", arch.name(), inst.name);
                used.extend(reason);
            }
        }
        let unused: Vec<_> = unsupported().filter(|(_, reason)| !used.contains(reason)).collect();
        assert_eq!(unused, [], "lines of unsupported.txt that nothing needs");
    }
}
