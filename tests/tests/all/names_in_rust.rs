//! Instruction names occur in the ISA descriptions, in the pseudocode and in the assembler's dialect tables.
//! No other Rust code outside tests may depend on the name of an instruction; messages may mention names.
//! The names of architectures occur where their facts are.

use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use wavesim::arch::Arch;
use wavesim_tests::root;

/// Directories to skip: tests, generated files, and the assembler's dialect.
const SKIPPED: [&str; 7] = ["tests", "benches", "bench", "examples", "target", "node_modules", "dialect"];

/// Converts an instruction name to an enum variant: `V_ADD3_U32` to `VAdd3U32`.
fn variant(name: &str) -> String {
    let word = |word: &str| word[..1].to_string() + &word[1..].to_lowercase();
    name.split('_').filter(|part| !part.is_empty()).map(word).collect()
}

/// Returns a line of Rust without its comment.
fn code(line: &str) -> &str {
    match line.trim_start().starts_with("//") {
        true => "",
        false => line.split(" // ").next().unwrap_or_default(),
    }
}

/// Calls `visit` with every Rust file below a directory, without its unit tests.
pub fn walk(folder: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !SKIPPED.contains(&&*name) {
            walk(&path, visit);
        } else if name.ends_with(".rs") && !["test.rs", "tests.rs"].contains(&&*name) {
            let text = std::fs::read_to_string(&path).unwrap();
            // Unit tests are at the end of a file.
            let end =
                ["\n#[cfg(test)]\nmod tests {", "\n#[cfg(all(test"].iter().filter_map(|t| text.find(t)).min();
            visit(&path, &text[..end.unwrap_or(text.len())]);
        }
    }
}

/// Architectures are named where their facts are: code elsewhere asks for a fact (`isa::arch::facts`).
#[test]
fn only_facts_and_the_dialect_name_architectures() {
    let names: Vec<String> = Arch::ALL.iter().map(|arch| format!("Arch::{arch:?}")).collect();
    // The last one is a list of architectures in a message.
    let branches = ["is_cdna(", "Arch::RDNA", "Arch::CDNA", "rdna3, rdna3.5"];
    let (mut found, mut lines) = (Vec::new(), 0);
    for folder in ["capi/src", "hosts", "isa-macros", "isa-spec/src", "simulator"] {
        walk(&root().join(folder), &mut |path, text| {
            if path.starts_with(root().join("simulator/isa/src/arch")) {
                return;
            }
            for (number, line) in (1..).zip(text.lines()) {
                lines += 1;
                let line = code(line);
                // `Arch::Rdna3` is a prefix of `Arch::Rdna35`, which is as much a name.
                let named = names.iter().map(String::as_str).chain(branches).any(|name| line.contains(name));
                if named {
                    found.push(format!("{}:{number}: {}", path.display(), line.trim()));
                }
            }
        });
    }
    assert!(lines > 50_000, "{lines} lines were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Lists that files outside of Rust must repeat.
#[test]
fn the_editor_lists_the_architectures() {
    let manifest = std::fs::read_to_string(root().join("editors/vscode/package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let list: Vec<&str> = Arch::AMD.iter().map(|arch| arch.name()).collect();
    let mut found = 0;
    each_value(&manifest, &mut |value| {
        if let Some(listed) = value.get("arch").and_then(|arch| arch.get("enum")) {
            assert_eq!(*listed, serde_json::json!(list), "editors/vscode/package.json");
            found += 1;
        }
    });
    assert!(found > 0, "editors/vscode/package.json lists no architectures");
}

/// Visits a value and those inside it.
fn each_value(value: &Value, visit: &mut impl FnMut(&Value)) {
    visit(value);
    match value {
        Value::Array(list) => list.iter().for_each(|value| each_value(value, visit)),
        Value::Object(members) => members.values().for_each(|value| each_value(value, visit)),
        _ => {}
    }
}

#[test]
fn only_the_dialect_names_instructions() {
    let mut names: HashSet<String> = HashSet::new();
    for instruction in Arch::AMD.iter().flat_map(|arch| arch.table().instructions) {
        let all = [instruction.name].into_iter().chain(instruction.aliases().iter().copied());
        for name in all.filter(|name| name.contains('_')) {
            names.insert(name.to_uppercase());
            names.insert(variant(name));
        }
    }
    let (mut found, mut lines) = (Vec::new(), 0);
    for folder in ["capi/src", "hosts", "isa-macros", "isa-spec/src", "simulator"] {
        walk(&root().join(folder), &mut |path, text| {
            for (number, line) in (1..).zip(text.lines()) {
                lines += 1;
                let line = code(line);
                // String literals that are exactly a name. Messages contain spaces and never match.
                let literals = line.split('"').skip(1).step_by(2).map(|literal| {
                    let plain = literal.to_uppercase();
                    let suffixes = ["_DPP", "_SDWA", "_E64", "_E32"];
                    suffixes
                        .iter()
                        .fold(plain.clone(), |s, end| s.strip_suffix(end).unwrap_or(&s).to_string())
                });
                let variants = line.split(|c: char| !c.is_alphanumeric()).map(str::to_string);
                if let Some(name) = literals.chain(variants).find(|word| names.contains(word)) {
                    found.push(format!("{}:{number}: {name}", path.display()));
                }
            }
        });
    }
    assert!(lines > 50_000, "{lines} lines were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
