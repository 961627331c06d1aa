//! Listings of compiled code.
//!
//! `jit/x.rdna` is a text kernel, and `x.expected` what `--dump-jit` writes for it: for each unit its instructions, the
//! code generator's function, the locations of values, and host code. `jit/x.args` has the arguments of `wavesim isa
//! jit`, one a line, and `x.expected` its output. The listings do not depend on the host, as long as it has AVX2; on
//! other hosts, the tests are skipped.

use crate::{expect, files};
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use wavesim::cli::BAD_INPUT;
use wavesim_tests::wavesim;

pub fn trials() -> Vec<Trial> {
    [files("jit", "rdna", listing), files("jit", "args", selection)].into_iter().flatten().collect()
}

fn selection(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let args: Vec<&str> = ["isa", "jit"].into_iter().chain(text.lines()).collect();
    let (code, out) = wavesim(&args);
    match code {
        0 if !out.contains("error: ") => expect(path, &out),
        _ if out.contains("error: --engine jit: ") => {
            eprintln!("skipped: {out}");
            Ok(())
        }
        _ => Err(format!("exit code {code}: {out}").into()),
    }
}

fn listing(path: &Path) -> Result<(), Failed> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = std::env::temp_dir().join(format!("wavesim-jit-{}-{name}", std::process::id()));
    let found = units(path, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    match found? {
        Some(text) => expect(path, &text),
        None => Ok(()),
    }
}

/// Returns the text of all units; `None` if the host has no compiled engine.
fn units(path: &Path, folder: &Path) -> Result<Option<String>, Failed> {
    let (kernel, dir) = (path.to_string_lossy(), folder.to_string_lossy());
    let (code, out) = wavesim(&["run", &kernel, "--quiet", "--dump-jit", &dir]);
    if code == BAD_INPUT && out.contains("error: --engine jit: ") {
        eprintln!("skipped: {out}");
        return Ok(None);
    }
    if code != 0 {
        return Err(format!("exit code {code}: {out}").into());
    }
    let mut units: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    units.sort_by_key(|unit| unit.file_name());
    let texts: Result<Vec<String>, _> =
        units.iter().map(|unit| std::fs::read_to_string(unit.path())).collect();
    Ok(Some(texts?.join("\n")))
}
