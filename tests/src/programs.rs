//! Assembly programs for non-AMD machines, with their data and expected memory in files.

use isa_spec::data::files_below;
use std::path::{Path, PathBuf};
use wavesim::arch::Arch;
use wavesim::assembler::generic;
use wavesim::assembler::program::LineError;
use wavesim::loader::generic::{self as loader, Data};
use wavesim::loader::prepared::{Prepared, Source};

/// Default memory size of a run in bytes.
const MEMORY: u64 = 32 << 20;

/// Returns the program files below a directory of the workspace.
pub fn programs(folder: &str, arch: Arch) -> Vec<PathBuf> {
    let extension = arch.machine().map_or("", |m| m.assembly.extension);
    files_below(&crate::root().join(folder), extension)
}

fn lines(errors: &[LineError]) -> String {
    errors.iter().map(|e| format!("{}:{}: {}\n", e.line, e.column, e.error)).collect()
}

/// Prepares a program, with its `.data` file if it has one. The error lists the diagnostics, one per line.
pub fn prepare(path: &Path, arch: Arch) -> Result<Prepared, String> {
    let machine = arch.machine().ok_or("no machine of its own")?;
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let (unit, errors) = generic::read(&text, arch, machine);
    if !errors.is_empty() {
        return Err(lines(&errors));
    }
    let data = match path.with_extension("data") {
        file if file.exists() => read_data(&file)?,
        _ => Data::new(),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    loader::prepare(unit, arch, machine, Source { name, text }, &data, MEMORY).map_err(|e| e.to_string())
}

/// Reads a file of `address: value` lines.
pub fn read_data(path: &Path) -> Result<Data, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    loader::data(&text).map_err(|errors| format!("{}:\n{}", path.display(), lines(&errors)))
}
