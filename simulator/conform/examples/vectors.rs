//! Runs conformance vectors: `wavesim conform` without the rest of the command, for processors that this machine only
//! emulates (`cargo xtask test-processors`).
//!
//! usage: vectors [--jit] FOLDER..., with compiled code or the interpreter, of files `*.jsonl` and `*.jsonl.gz`, with a list `disputed.md` of records that do not count

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wavesim_conform::{Engine, Outcome, disputed, read_file, run};
use wavesim_jit::Jit;

fn main() -> ExitCode {
    let (mut files, mut disputes) = (Vec::new(), BTreeSet::new());
    let mut folders: Vec<String> = std::env::args().skip(1).collect();
    let compiles = folders.first().is_some_and(|first| first == "--jit");
    let engine = match compiles {
        true => Engine::Compiled(|program| Some(Box::new(Jit::with_threshold(program, 0).ok()?))),
        false => Engine::Interpreter,
    };
    for folder in folders.drain(usize::from(compiles)..) {
        if let Err(error) = collect(Path::new(&folder), &mut files, &mut disputes) {
            eprintln!("error: {folder}: {error}");
            return ExitCode::from(2);
        }
    }
    files.sort();
    let (mut passed, mut failed, mut unsupported) = (0, 0, 0);
    for file in &files {
        let records = match read_file(file) {
            Ok(records) => records,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        };
        for record in records.iter().filter(|record| !disputes.contains(&record.id)) {
            let outcome = match record.architecture() {
                Some(arch) => run(record, arch, engine, &BTreeMap::new()),
                None => Outcome::Unsupported(record.op.clone()),
            };
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Unsupported(_) => unsupported += 1,
                Outcome::Failed(differences) => {
                    failed += 1;
                    let asm = record.asm.as_deref().unwrap_or_default();
                    println!("{} {asm}\n    {}", record.id, differences.join("\n    "));
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed, {unsupported} unsupported on {}", std::env::consts::ARCH);
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Collects the files of vectors below a folder, and the names in its lists of disputed records.
fn collect(folder: &Path, files: &mut Vec<PathBuf>, disputes: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            collect(&path, files, disputes)?;
        } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            files.push(path);
        } else if name == "disputed.md" {
            disputes.extend(disputed(&std::fs::read_to_string(&path)?).map(str::to_string));
        }
    }
    Ok(())
}
