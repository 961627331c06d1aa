//! Conformance vectors: a subset of every operation and encoding that lives here, by both engines; and all of them where they
//! are (`$WAVESIM_SHARED/vectors`, or `../shared/vectors` beside the workspace). The records of `vectors/disputed.md` must fail:
//! one that passes is no longer disputed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wavesim::arch::Arch;
use wavesim::codec::decode;
use wavesim::conform::{self, Engine, Outcome, Record};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The full set, if it is there.
fn full() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let root = std::env::var_os("WAVESIM_SHARED").map_or_else(beside, PathBuf::from).join("vectors");
    if !root.is_dir() {
        println!("skipped: no conformance vectors at {}", root.display());
        return None;
    }
    Some(root)
}

fn records(root: &Path) -> Vec<Record> {
    let mut out = Vec::new();
    for arch in ["rdna3", "rdna4"] {
        for path in isa_spec::data::files_below(&root.join(arch), "gz") {
            out.extend(conform::read_file(&path).unwrap());
        }
    }
    assert!(out.len() > 10_000, "only {} records below {}", out.len(), root.display());
    out
}

/// Runs all records; what is wrong with them, a line each.
fn wrong(records: &[Record], engine: Engine) -> Vec<String> {
    let text = std::fs::read_to_string(here().join("disputed.md")).unwrap();
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
    out
}

fn check(records: &[Record], engine: Engine) {
    let wrong = wrong(records, engine);
    let first: Vec<&str> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {} records:\n{}", wrong.len(), records.len(), first.join("\n"));
}

#[test]
fn subset_by_the_interpreter() {
    check(&records(&here()), Engine::Interpreter);
}

#[test]
fn subset_by_the_evaluator() {
    check(&records(&here()), Engine::Reference);
}

#[test]
fn full_set() {
    if let Some(root) = full() {
        check(&records(&root), Engine::Interpreter);
    }
}

/// The set for RDNA 3 serves RDNA 3.5: the same operations under the same encodings.
#[test]
fn rdna3_vectors_on_rdna35() {
    let mut records = records(&full().unwrap_or_else(here));
    records.retain_mut(|r| r.choose(Arch::Rdna35));
    assert!(records.len() > 5_000);
    check(&records, Engine::Interpreter);
}

/// The decoder names the instruction that LLVM printed for the record.
#[test]
fn mnemonics_are_llvms() {
    let mut wrong = Vec::new();
    for record in records(&full().unwrap_or_else(here)) {
        let (Some(arch), Some(asm)) = (record.architecture(), &record.asm) else { continue };
        let words: Vec<u32> = record.words.iter().map(|w| u32::from_str_radix(w, 16).unwrap()).collect();
        let printed = plain(asm.split_whitespace().next().unwrap_or_default());
        match decode(arch, &words) {
            Ok(inst) => {
                let instruction = inst.instruction(arch.table());
                let names = std::iter::once(&instruction.name).chain(instruction.aliases);
                if !names.clone().any(|name| plain(&name.to_lowercase()) == printed) {
                    wrong.push(format!("{}: {} is {asm}", record.id, instruction.name));
                }
            }
            Err(e) => wrong.push(format!("{}: {asm}: {e}", record.id)),
        }
    }
    assert!(wrong.is_empty(), "{} records:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// Without the suffix that names an encoding.
fn plain(name: &str) -> &str {
    ["_e64_dpp", "_e32", "_e64", "_dpp"].iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name)
}
