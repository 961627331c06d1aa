//! Modules of a crate that use one another in a circle cannot be read, tested or changed one at a time. The
//! crates below have none.

use super::names_in_rust::walk;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wavesim_tests::root;

/// Crates without circles.
const ACYCLIC: [&str; 19] = [
    "hosts/python",
    "isa-macros/lower",
    "simulator/array",
    "simulator/asm",
    "simulator/assembler",
    "simulator/clang",
    "simulator/conform",
    "simulator/engine",
    "simulator/files",
    "simulator/inspect",
    "simulator/isa",
    "simulator/jit",
    "simulator/loader",
    "simulator/playground",
    "simulator/program",
    "simulator/rt",
    "simulator/state",
    "simulator/text",
    "simulator/x64",
];

/// For each module, the modules whose items its code names.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Splits Rust code into names, `::`, and single characters. Comments and string literals are skipped.
fn tokens(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        } else if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            found.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    found
}

/// Calls `visit` with each path that begins at `prefix`; `at` is the position behind it.
fn paths<'a>(
    tokens: &[&'a str],
    position: &mut usize,
    prefix: &[&'a str],
    visit: &mut dyn FnMut(&[&'a str]),
) {
    let mut path = prefix.to_vec();
    while tokens.get(*position) == Some(&"::") {
        *position += 1;
        match tokens.get(*position) {
            Some(&"{") => {
                while !matches!(tokens.get(*position), None | Some(&"}")) {
                    *position += 1;
                    if let Some(name) =
                        tokens.get(*position).filter(|name| !["}", ",", "self"].contains(*name))
                    {
                        *position += 1;
                        paths(tokens, position, &[&path[..], &[name]].concat(), visit);
                        // An alias: `as name`.
                        while !matches!(tokens.get(*position), None | Some(&"}" | &",")) {
                            *position += 1;
                        }
                    } else if tokens.get(*position) == Some(&"self") {
                        visit(&path);
                    }
                }
                *position += 1;
                return;
            }
            Some(name) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(name);
                *position += 1;
            }
            _ => break,
        }
    }
    visit(&path);
}

/// Returns the module of a file below `src`: `emit::val` for `emit/val.rs`, and an empty string for the root.
fn module(src: &Path, file: &Path) -> String {
    let path = file.strip_prefix(src).unwrap().with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    match parts.split_last() {
        Some((last, [])) if last == "lib" || last == "main" => String::new(),
        Some((last, parents)) if last == "mod" => parents.join("::"),
        _ => parts.join("::"),
    }
}

/// Returns the uses among the modules of a crate.
fn uses(src: &Path) -> Uses {
    let mut files = BTreeMap::new();
    walk(src, &mut |path, text| {
        files.insert(module(src, path), text.to_string());
    });
    let mut uses = Uses::new();
    for (name, text) in &files {
        let tokens = tokens(text);
        let mut used = BTreeSet::new();
        let mut at = 0;
        while at < tokens.len() {
            let is_path = tokens.get(at + 1) == Some(&"::") && (at == 0 || tokens[at - 1] != "::");
            // `pub(crate)` is not followed by `::`.
            let mut base: Vec<&str> = match tokens[at] {
                "crate" if is_path => Vec::new(),
                "self" if is_path => name.split("::").filter(|part| !part.is_empty()).collect(),
                "super" if is_path => {
                    let mut parts: Vec<&str> = name.split("::").collect();
                    parts.pop();
                    parts
                }
                _ => {
                    at += 1;
                    continue;
                }
            };
            at += 1;
            while tokens.get(at + 1) == Some(&"super") {
                base.pop();
                at += 2;
            }
            let start = base.len();
            paths(&tokens, &mut at, &base, &mut |path| {
                // The longest prefix of the path that is a module; what follows is an item of it. With a glob or an
                // item of the base itself, nothing follows.
                let found = (start..=path.len()).rev().map(|n| path[..n].join("::"));
                used.extend(found.into_iter().find(|module| files.contains_key(module)));
            });
        }
        used.remove(name);
        uses.insert(name.clone(), used);
    }
    uses
}

/// Returns the largest sets of modules that use one another, directly or not.
fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut rest) = (BTreeSet::new(), vec![from]);
        while let Some(module) = rest.pop() {
            rest.extend(uses[module].iter().filter(|used| seen.insert((*used).clone())));
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|name| (name, reach(name))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (name, reached) in &all {
        if reached.contains(*name) && !found.iter().any(|circle| circle.contains(*name)) {
            found.push(reached.iter().filter(|other| all[*other].contains(*name)).cloned().collect());
        }
    }
    found
}

#[test]
fn no_module_is_in_a_circle() {
    let mut total = 0;
    for folder in ACYCLIC {
        let uses = uses(&root().join(folder).join("src"));
        assert!(uses.len() > 2, "{folder}: no modules found");
        total += uses.values().map(|used| used.len()).sum::<usize>();
        let circles = circles(&uses);
        assert!(circles.is_empty(), "modules of {folder} use one another: {circles:?}");
    }
    assert!(total > 500, "{total} uses found");
}

/// Prints the circles of all crates: `cargo test -p wavesim-tests --test all print_circles -- --ignored --nocapture`.
#[test]
#[ignore = "prints only"]
fn print_circles() {
    for entry in std::fs::read_dir(root().join("simulator")).unwrap() {
        let src = entry.unwrap().path().join("src");
        if src.is_dir() {
            let uses = uses(&src);
            let sizes: Vec<usize> = circles(&uses).iter().map(BTreeSet::len).collect();
            println!("{}: {} modules, circles of {sizes:?}", src.display(), uses.len());
        }
    }
}

#[test]
fn circles_are_found() {
    let text = "use crate::{a::{B, c}, d as e};\n// use crate::no;\nfn f() -> super::x::Y { crate::g::h() }";
    let tokens = tokens(text);
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|&at| tokens[at] == "crate") {
        paths(&tokens, &mut (at + 1), &[], &mut |path| found.push(path.join("::")));
    }
    assert_eq!(found, ["a::B", "a::c", "d", "g::h"]);
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    let uses = Uses::from([
        ("a".into(), set(&["b"])),
        ("b".into(), set(&["c", "d"])),
        ("c".into(), set(&["a"])),
        ("d".into(), set(&[])),
    ]);
    assert_eq!(circles(&uses), [set(&["a", "b", "c"])]);
}
