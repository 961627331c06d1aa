//! Commands of cargo in the documents name packages, tasks, targets and tests that exist.

use super::links::pages;
use super::root;
use isa_spec::data;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wavesim_tests::command_words;

/// The packages of the workspace, with their folders.
fn packages() -> BTreeMap<String, PathBuf> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let folders = members.split('"').skip(1).step_by(2).map(|member| root().join(member));
    folders.map(|folder| (quoted(&manifest_of(&folder), "\nname = ").unwrap(), folder)).collect()
}

fn manifest_of(package: &Path) -> String {
    std::fs::read_to_string(package.join("Cargo.toml")).unwrap()
}

/// Returns the text in quotes after `before`.
fn quoted(text: &str, before: &str) -> Option<String> {
    let rest = text.split(before).nth(1)?;
    rest.split('"').nth(1).map(String::from)
}

/// The tasks of `cargo xtask`: the variants of its enumeration, in clap's spelling.
fn tasks() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    let body = text.split("enum Task {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let variants = body.lines().filter_map(|line| line.trim().split_once('(')).map(|(name, _)| name);
    let spelling = |name: &str| {
        let mut out = String::new();
        for c in name.chars() {
            if c.is_uppercase() && !out.is_empty() {
                out.push('-');
            }
            out.extend(c.to_lowercase());
        }
        out
    };
    variants.filter(|name| name.chars().all(char::is_alphanumeric)).map(spelling).collect()
}

/// Returns whether a package has a target below the folder `kind`: tests, examples or benches.
fn has_target(package: &Path, kind: &str, name: &str) -> bool {
    let folder = package.join(kind);
    folder.join(format!("{name}.rs")).is_file()
        || folder.join(name).join("main.rs").is_file()
        || manifest_of(package).contains(&format!("name = \"{name}\"\npath = \"{kind}/"))
}

/// Returns whether a function, a module or a file among the tests of a package has the filter's last part in its name.
fn has_test(package: &Path, filter: &str) -> bool {
    let part = filter.trim_end_matches("::").rsplit("::").next().unwrap_or_default();
    let mut files = files_below(&package.join("filetests"));
    let sources = ["src", "tests"].iter().flat_map(|folder| data::files_below(&package.join(folder), "rs"));
    let declares = |text: &str| {
        let names = text.split("fn ").skip(1).chain(text.split("mod ").skip(1));
        names
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
            .any(|n| n.contains(part))
    };
    files.extend(sources);
    let source = |file: &Path| file.extension().is_some_and(|e| e == "rs");
    files.iter().any(|file| {
        file.strip_prefix(package).unwrap().to_string_lossy().contains(part)
            || source(file) && declares(&std::fs::read_to_string(file).unwrap())
    })
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Returns what a command names that does not exist. The first word is `cargo`.
fn missing(words: &[String], packages: &BTreeMap<String, PathBuf>) -> Option<String> {
    let mut words = words.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('+')).peekable();
    let subcommand = words.next()?;
    if subcommand == "xtask" {
        let task = words.next().filter(|task| task.starts_with(char::is_lowercase))?;
        return (!tasks().iter().any(|t| t == task)).then(|| format!("task {task}"));
    }
    let (mut named, mut targets, mut filters) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        match word {
            "-p" | "--package" => named.extend(words.next()),
            "--test" | "--example" | "--bench" => targets.extend(words.next().map(|name| (word, name))),
            // Of the command that is run: `cargo run … --`.
            "--" if subcommand != "test" => break,
            "--features" | "--target" | "--baseline-rev" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => filters.push(word),
        }
    }
    let mut folders = Vec::new();
    for name in named {
        match packages.get(name) {
            Some(folder) => folders.push(folder),
            None => return Some(format!("package {name}")),
        }
    }
    if folders.is_empty() {
        return None;
    }
    for (option, name) in targets {
        let kind = format!("{}s", option.trim_start_matches('-')).replace("benchs", "benches");
        if !folders.iter().any(|folder| has_target(folder, &kind, name)) {
            return Some(format!("{option} {name}"));
        }
    }
    filters.retain(|_| subcommand == "test");
    let lacks = filters.into_iter().find(|filter| !folders.iter().any(|folder| has_test(folder, filter)));
    lacks.map(|filter| format!("test {filter}"))
}

/// Returns the commands in code blocks and code spans of a page. In the page on tests, `…` stands for a beginning.
fn commands(text: &str) -> Vec<String> {
    let text =
        text.replace("\\\n", " ").replace("`… --test", "`cargo test --release -p wavesim-tests --test");
    let (mut fenced, mut found) = (false, Vec::new());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            found.push(line.to_string());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(String::from));
        }
    }
    found
}

#[test]
fn commands_of_cargo_name_what_exists() {
    let packages = packages();
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages() {
        for line in commands(&std::fs::read_to_string(&page).unwrap()) {
            let line = line.split("  #").next().unwrap_or_default();
            let mut words = command_words(line);
            let first = words.iter().position(|word| word == "cargo");
            words.drain(..first.unwrap_or(words.len()));
            words.retain(|word| word != "…");
            checked += usize::from(!words.is_empty());
            wrong.extend(
                missing(&words, &packages).map(|what| format!("{}: {line}: no {what}", page.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 100, "{checked} commands");
}

#[test]
fn missing_names_are_found() {
    let packages = packages();
    let missing = |line: &str| missing(&command_words(line), &packages).unwrap_or_default();
    assert_eq!(missing("cargo test -p wavesim-tests --test all docs::links"), "");
    assert_eq!(missing("cargo +nightly miri test -p wavesim-state --lib"), "");
    assert_eq!(missing("cargo xtask test-web --native"), "");
    assert_eq!(missing("cargo xtask test-page"), "task test-page");
    assert_eq!(missing("cargo build -p wavesim-engines"), "package wavesim-engines");
    assert_eq!(missing("cargo test -p wavesim-tests --test every"), "--test every");
    assert_eq!(missing("cargo test -p wavesim-tests --test all -- no_such_thing"), "test no_such_thing");
}
