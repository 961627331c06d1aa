//! Commands and what they print: one named test a file, `cargo test -p wavesim-tests --test sessions -- NAME`.
//!
//! - `check/x.rdna`: `wavesim check` prints `x.out`; a first line `; args: …` adds arguments;
//! - `debug/x.txt`: a script of the debugger, whose first line `# args: …` says what it runs, prints `x.out`;
//! - `observe/x.rdna`: `wavesim run` with the arguments of its first line prints `x.out`;
//! - `docs/debugging.md` and `docs/riscv-gpu.md`: each `$ wavesim …` of a `console` block prints the lines below it;
//! - every example, and every kernel of the shared set if it is there, is clean under `wavesim check`.
//!
//! `BLESS=1` rewrites the expectations; read the diff.

use clap::Parser;
use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wavesim::cli::{self, Cli};

fn main() {
    let args = Arguments::from_args();
    // Paths in expectations are relative to the workspace.
    std::env::set_current_dir(root()).unwrap_or_else(|e| panic!("{e}"));
    let mut trials = Vec::new();
    for path in files("tests/check", "rdna") {
        trials.push(trial("check", path, |path| golden(path, &check_arguments(path)?)));
    }
    for path in files("tests/debug", "txt") {
        trials.push(trial("debug", path, |path| golden(path, &debug_arguments(path)?)));
    }
    for path in files("tests/observe", "rdna") {
        trials.push(trial("observe", path, |path| golden(path, &run_arguments(path)?)));
    }
    for document in ["docs/debugging.md", "docs/riscv-gpu.md"] {
        trials.push(trial("docs", PathBuf::from(document), transcripts));
    }
    for path in files("examples", "rdna") {
        trials.push(trial("example", path, |path| {
            // A size for those that leave it open.
            let text = std::fs::read_to_string(path)?;
            let open = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "N")
                && !text.contains("const N");
            let path = path.display().to_string();
            let mut arguments = vec!["check", &path];
            arguments.extend(open.then_some(["-D", "N=16"]).into_iter().flatten());
            clean(&arguments)
        }));
    }
    match shared() {
        Some(kernels) => trials.extend(kernel_trials(&kernels)),
        None => println!("skipped: shared kernels are not there (WAVESIM_SHARED names their folder)"),
    }
    libtest_mimic::run(&args, trials).exit();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap_or_default()
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == extension));
    let mut list: Vec<PathBuf> = paths.collect();
    list.sort();
    list
}

fn trial(kind: &str, path: PathBuf, run: fn(&Path) -> Result<(), Failed>) -> Trial {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Trial::test(format!("{kind}::{name}"), move || run(&path))
}

/// What a command prints, and its exit code.
fn wavesim(arguments: &[&str]) -> Result<(String, u8), Failed> {
    let all = std::iter::once("wavesim").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(all).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    let code = cli::dispatch(&cli.command, &mut out).map_err(|e| format!("{e:#}"))?;
    Ok((String::from_utf8(out).map_err(|e| e.to_string())?, code))
}

/// The first line's arguments behind `mark`.
fn first_line(path: &Path, mark: &str) -> Result<Vec<String>, Failed> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().next().and_then(|l| l.strip_prefix(mark)).unwrap_or("");
    Ok(line.split_whitespace().map(String::from).collect())
}

fn check_arguments(path: &Path) -> Result<Vec<String>, Failed> {
    let mut list = vec!["check".to_string(), path.display().to_string()];
    list.extend(first_line(path, "; args: ")?);
    Ok(list)
}

fn run_arguments(path: &Path) -> Result<Vec<String>, Failed> {
    let mut list = vec!["run".to_string(), path.display().to_string()];
    list.extend(first_line(path, "; args: ")?);
    Ok(list)
}

fn debug_arguments(path: &Path) -> Result<Vec<String>, Failed> {
    let mut list = vec!["debug".to_string()];
    list.extend(first_line(path, "# args: ")?);
    list.extend(["--batch".to_string(), "-x".to_string(), path.display().to_string()]);
    Ok(list)
}

fn golden(path: &Path, arguments: &[String]) -> Result<(), Failed> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut text, code) = wavesim(&arguments)?;
    let _ = writeln!(text, "exit {code}");
    same(&path.with_extension("out"), &text)
}

/// Compares with a file, or writes it.
fn same(expected: &Path, text: &str) -> Result<(), Failed> {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(expected, text)?;
        return Ok(());
    }
    let wanted = std::fs::read_to_string(expected).unwrap_or_default();
    if wanted == text {
        return Ok(());
    }
    Err(format!("differs from {}\n--- expected\n{wanted}\n--- got\n{text}", expected.display()).into())
}

/// The transcripts of a document: commands behind `$ `, then what they print, to the block's end or the next command.
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
        let (printed, _) = wavesim(&arguments)?;
        out.push_str(&printed);
        while lines.peek().is_some_and(|l| !l.starts_with("```") && !l.starts_with("$ ")) {
            lines.next();
        }
    }
    if commands == 0 {
        return Err("no commands found".into());
    }
    same(path, &out)
}

/// Words as a shell takes them: single quotes keep spaces.
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

fn clean(arguments: &[&str]) -> Result<(), Failed> {
    let (text, code) = wavesim(arguments)?;
    if code == 0 { Ok(()) } else { Err(text.into()) }
}

fn shared() -> Option<PathBuf> {
    let given = std::env::var_os("WAVESIM_SHARED").map(PathBuf::from);
    let kernels = given.unwrap_or(root().join("../shared")).join("kernels");
    kernels.is_dir().then_some(kernels)
}

fn kernel_trials(kernels: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    let folders = std::fs::read_dir(kernels).into_iter().flatten().flatten();
    let mut launches: Vec<PathBuf> = folders.map(|e| e.path().join("launch.json")).collect();
    launches.sort();
    for launch in launches.into_iter().filter(|p| p.is_file()) {
        let text = std::fs::read_to_string(&launch).unwrap_or_default();
        let name =
            launch.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        for target in ["gfx1100", "gfx1150", "gfx1201", "gfx1100.w64"] {
            if !text.contains(&format!("\"{target}\"")) {
                continue;
            }
            let path = launch.display().to_string();
            trials.push(Trial::test(format!("kernel::{name}.{target}"), move || {
                clean(&["check", &path, "--target", target])
            }));
        }
    }
    trials
}
