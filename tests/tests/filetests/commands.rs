//! Output of commands.
//!
//! - `check/x.rdna`: `wavesim check` prints `x.expected`; a first line `; args: …` adds arguments;
//! - `check/x.args`: the same for a code object; the first line has all arguments;
//! - `observe/x.rdna`: `wavesim run` with the arguments in the first line prints `x.expected`;
//! - `debug/x.txt`: a debugger script, with the arguments in the first line `# args: …`, prints `x.expected`;
//! - `explore/x.rdna`: `wavesim explore` with the arguments in the first line prints `x.expected`;
//! - `docs/cdna5.md`, `docs/cost.md`, `docs/coverage.md`, `docs/debugger.md`, `docs/debugging.md`,
//!   `docs/delayed-memory.md`, `docs/exploring.md`, `docs/fidelity.md`, `docs/riscv-gpu.md`: each `$ wavesim …` in a `console` block prints the lines below it;
//! - `examples/x.rdna` is clean under `wavesim check`.

use crate::{expect, files, files_in};
use libtest_mimic::{Failed, Trial};
use std::fmt::Write as _;
use std::path::Path;
use wavesim::cli::BAD_INPUT;
use wavesim_golden::compare;
use wavesim_tests::wavesim;

pub fn trials() -> Vec<Trial> {
    let documents = [
        "cdna5",
        "cost",
        "coverage",
        "debugger",
        "debugging",
        "delayed-memory",
        "exploring",
        "fidelity",
        "riscv-gpu",
    ]
    .map(|name| {
        let path = format!("docs/{name}.md");
        Trial::test(format!("docs::{name}"), move || transcripts(Path::new(&path)))
    });
    [
        files("check", "rdna", |path| golden(path, &["check", &name(path)], "; args: ", &[])),
        files("check", "args", |path| golden(path, &["check"], "; args: ", &[])),
        files("explore", "rdna", |path| {
            let name = name(path);
            // Whoever wants the schedule names its file.
            let save = format!("target/{}.sched", path.file_stem().unwrap_or_default().display());
            golden(path, &["explore", &name], "; args: ", &["--save", &save])
        }),
        files("observe", "rdna", |path| golden(path, &["run", &name(path)], "; args: ", &[])),
        files("debug", "txt", |path| golden(path, &["debug"], "# args: ", &["--batch", "-x", &name(path)])),
        documents.into(),
        files_in("examples", "example", "rdna", example),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Compares the output of a command. Its arguments are `first`, those in the file's first line after `mark`,
/// and `last`.
fn golden(path: &Path, first: &[&str], mark: &str, last: &[&str]) -> Result<(), Failed> {
    let source = std::fs::read_to_string(path)?;
    let line = source.lines().next().and_then(|l| l.strip_prefix(mark)).unwrap_or("");
    let own: Vec<&str> = line.split_whitespace().collect();
    let (code, mut text) = wavesim(&[first, &own, last].concat());
    if code == BAD_INPUT && text.contains("error: --engine jit: ") {
        eprintln!("skipped: {text}");
        return Ok(());
    }
    let _ = writeln!(text, "exit {code}");
    expect(path, &text)
}

fn example(path: &Path) -> Result<(), Failed> {
    // Defines the size N for kernels that leave it open.
    let text = std::fs::read_to_string(path)?;
    let open =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "N") && !text.contains("const N");
    let name = name(path);
    let mut arguments = vec!["check", &name];
    arguments.extend(open.then_some(["-D", "N=16"]).into_iter().flatten());
    let (code, text) = wavesim(&arguments);
    if code == 0 { Ok(()) } else { Err(text.into()) }
}

/// Checks the transcripts in a document: commands after `$ `, followed by their output up to the next command
/// or the end of the block.
fn transcripts(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    let mut inside = false;
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        let Some(command) = line.strip_prefix("$ wavesim ").filter(|_| inside) else { continue };
        commands += 1;
        let arguments = shell_words(command);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        out.push_str(&wavesim(&arguments).1);
        while lines.peek().is_some_and(|l| !l.starts_with("```") && !l.starts_with("$ ")) {
            lines.next();
        }
    }
    if commands == 0 {
        return Err("no commands found".into());
    }
    Ok(compare(path, &out)?)
}

/// Splits a command line like a shell; single quotes preserve spaces.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|w| w.push(c)),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}
