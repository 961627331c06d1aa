//! Conformance vectors. `vectors/ARCH/x.jsonl.gz` is a subset for every operation and encoding and runs on
//! all engines. The complete set, if available (`$WAVESIM_SHARED/vectors`, or `../shared/vectors` next to the
//! workspace), runs in the interpreter. The vectors of RDNA 3 are also used for RDNA 3.5, which has the same
//! operations and encodings. Records listed in `vectors/disputed.md` must fail: one that passes is no longer
//! disputed.

use isa_spec::data::files_below;
use libtest_mimic::{Failed, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use wavesim::arch::Arch;
use wavesim::codec::decode;
use wavesim::conform::{self, Engine, Outcome, Record};
use wavesim_tests::{c_export, shared, wavesim};

const OWN: &str = "tests/filetests/vectors";

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let own = ["rdna3", "rdna4", "cdna4", "cdna5"];
    of("vectors", Path::new(OWN), &own, &[Engine::Interpreter, Engine::Reference, COMPILED], &mut trials);
    trials.push(Trial::test("vectors::compiled_code_is_entered", compiled_code_is_entered));
    for arch in own {
        trials.push(Trial::test(format!("vectors::c_export::{arch}"), move || c_export(arch)));
    }
    match shared("vectors") {
        Some(folder) => {
            of("shared::vectors", &folder, &["rdna3", "rdna4", "cdna4"], &[Engine::Interpreter], &mut trials);
        }
        None => eprintln!("skipped: no conformance vectors below WAVESIM_SHARED or ../shared"),
    }
    trials
}

/// The compiled engine, with code for every supported operation.
const COMPILED: Engine = Engine::Compiled(wavesim_tests::compiled);

/// Checks that records of VOP2 instructions without DPP run in compiled code, not in handlers.
fn compiled_code_is_entered() -> Result<(), Failed> {
    let records =
        conform::read_file(&Path::new(OWN).join("rdna3/vop2.jsonl.gz")).map_err(|e| format!("{e:#}"))?;
    let before = wavesim_tests::entered();
    run(&records, COMPILED)?;
    let entered = wavesim_tests::entered() - before;
    let hosts_have_it = wavesim::exec::interp::host_is_fast();
    if hosts_have_it && (entered as usize) < records.len() {
        return Err(format!("{entered} of {} records", records.len()).into());
    }
    Ok(())
}

/// Compiles the exported C header without warnings, and runs all records of an architecture with its functions.
fn c_export(arch: &str) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("wavesim-c-{arch}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (header, source, library) = (folder.join("isa.h"), folder.join("isa.c"), folder.join("libisa.so"));
    let path = |path: &Path| path.display().to_string();
    let (code, message) = wavesim(&["isa", "export", "--format", "c", "--arch", arch, "-o", &path(&header)]);
    if code != 0 {
        return Err(message.into());
    }
    let arch = Arch::from_name(arch).ok_or("no such architecture")?;
    std::fs::write(&source, c_export::source(arch, "isa.h"))?;
    let mut compiled = None;
    for compiler in c_export::COMPILERS {
        // One of the libraries is used; the other compiler says only whether it accepts the header.
        let output = if compiled.is_none() { &["-O0", "-shared", "-fPIC"][..] } else { &["-fsyntax-only"] };
        let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o", &path(&library), &path(&source), "-lm"];
        let flags = flags.iter().filter(|flag| compiled.is_none() || !["-lm"].contains(flag));
        match Command::new(compiler).args(output).args(flags).output() {
            Ok(done) if done.status.success() => compiled = compiled.or(Some(compiler)),
            Ok(done) => return Err(format!("{compiler}: {}", String::from_utf8_lossy(&done.stderr)).into()),
            Err(_) => println!("skipped: {compiler} is not installed"),
        }
    }
    if compiled.is_none() {
        return Ok(());
    }
    let count = c_export::load_library(arch, &library)?;
    assert!(count > 900, "{count} instructions");
    let mut failures = Vec::new();
    let own = files_below(&Path::new(OWN).join(arch.name()), "gz");
    let shared = shared("vectors").map(|folder| files_below(&folder.join(arch.name()), "gz"));
    for file in own.iter().chain(shared.iter().flatten()) {
        let mut records = conform::read_file(file).map_err(|e| format!("{e:#}"))?;
        // Those for another processor have functions of another name.
        records.retain(|record| record.architecture() == Some(arch));
        failures.extend(run(&records, Engine::Evaluator(c_export::evaluate))?);
    }
    std::fs::remove_dir_all(&folder)?;
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} findings:\n{}", failures.len(), failures[..failures.len().min(20)].join("\n")).into())
}

/// The tests of the files below a folder.
fn of(kind: &str, folder: &Path, archs: &[&str], engines: &'static [Engine], trials: &mut Vec<Trial>) {
    for arch in archs {
        let paths = files_below(&folder.join(arch), "gz");
        assert!(!paths.is_empty(), "no vectors in {}/{arch}", folder.display());
        for path in paths {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{kind}::{arch}::{}", file.trim_end_matches(".jsonl.gz"));
            trials.push(Trial::test(name, move || check(&path, engines)));
        }
    }
}

fn check(path: &Path, engines: &[Engine]) -> Result<(), Failed> {
    let mut records = conform::read_file(path).map_err(|e| format!("{e:#}"))?;
    if records.is_empty() {
        return Err("there are no records in this file".into());
    }
    let mut failures: Vec<String> = records.iter().filter_map(mnemonic).collect();
    for engine in engines {
        failures.extend(run(&records, *engine)?);
    }
    records.retain_mut(|r| [Arch::Rdna35, Arch::Cdna3].into_iter().any(|arch| r.retarget(arch)));
    failures.extend(run(&records, Engine::Interpreter)?);
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} findings:\n{}", failures.len(), failures[..failures.len().min(20)].join("\n")).into())
}

/// Runs all records. Returns a list of unexpected results.
fn run(records: &[Record], engine: Engine) -> Result<Vec<String>, Failed> {
    let text = std::fs::read_to_string(Path::new(OWN).join("disputed.md"))?;
    let disputed: BTreeSet<&str> = conform::disputed(&text).collect();
    let none = BTreeMap::new();
    let mut out = Vec::new();
    for record in records {
        let id = record.id.as_str();
        let Some(arch) = record.architecture() else {
            out.push(format!("{id}: unknown architecture {}", record.arch));
            continue;
        };
        match (conform::run(record, arch, engine, &none), disputed.contains(id)) {
            (Outcome::Passed, false) | (Outcome::Failed(_), true) => {}
            (Outcome::Passed, true) => out.push(format!("{id}: listed as disputed, but passes")),
            (Outcome::Failed(diff), false) => out.push(format!("{id} {}: {}", record.op, diff.join("; "))),
            (Outcome::Unsupported(op), _) => out.push(format!("{id}: {op} has no semantics")),
        }
    }
    Ok(out)
}

/// Returns an error message if the decoder's instruction differs from the one that LLVM printed for the
/// record.
fn mnemonic(record: &Record) -> Option<String> {
    let (arch, asm) = (record.architecture()?, record.asm.as_ref()?);
    let words: Result<Vec<u32>, _> = record.words.iter().map(|w| u32::from_str_radix(w, 16)).collect();
    let Ok(words) = words else { return Some(format!("{}: its words are not numbers", record.id)) };
    let printed = without_suffix(asm.split_whitespace().next().unwrap_or_default());
    match decode(arch, &words) {
        Ok(inst) => {
            let instruction = inst.instruction(arch.table());
            let mut names = std::iter::once(&instruction.name).chain(instruction.aliases());
            let same = names.any(|name| without_suffix(&name.to_lowercase()) == printed);
            (!same).then(|| format!("{}: {} is {asm}", record.id, instruction.name))
        }
        Err(e) => Some(format!("{}: {asm}: {e}", record.id)),
    }
}

/// Removes the encoding suffix of a mnemonic.
fn without_suffix(name: &str) -> &str {
    ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name)
}
