//! Commands, files and folders of tasks.

use anyhow::{Context as _, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The root of the tree.
pub fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.parent().unwrap_or(folder).to_path_buf()
}

/// Returns a command that runs in the root of the tree.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Returns cargo, to run in the folder of the caller.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns cargo, to run in the root of the tree.
pub fn cargo_in_root() -> Command {
    let mut cargo = cargo();
    cargo.current_dir(root());
    cargo
}

/// The folder of cargo's results.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns the folder of the results of a profile.
pub fn built(profile: &str) -> PathBuf {
    target().join(if profile == "dev" { "debug" } else { profile })
}

/// Returns whether a program is on the search path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a command, which must succeed.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| shown(command))?;
    if !status.success() {
        bail!("{}: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command without output. Returns whether it succeeds.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs a command, which must succeed, and returns its standard output.
pub fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| shown(command))?;
    if !output.status.success() {
        bail!("{}: {}", shown(command), output.status);
    }
    Ok(output.stdout)
}

/// Returns the program of a command and its arguments.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Prints that the task is skipped, which is a success.
pub fn skipped(why: &str) -> anyhow::Result<ExitCode> {
    println!("skipped: {why}");
    Ok(ExitCode::SUCCESS)
}

/// A temporary folder.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder of this process.
    pub fn new(task: &str) -> anyhow::Result<Scratch> {
        let folder = std::env::temp_dir().join(format!("wavesim-{task}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Scratch(folder))
    }

    /// Returns the path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads a file.
pub fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// Copies a file.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Creates a folder and the folders above it.
pub fn create(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Returns the files of a folder whose names match, sorted.
pub fn files(folder: &Path, matches: impl Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if matches(&entry.file_name().to_string_lossy()) {
            out.push(entry.path());
        }
    }
    out.sort();
    Ok(out)
}

/// Calls `each` for all items, on as many threads as there are CPUs.
pub fn in_parallel<T: Sync>(items: &[T], each: impl Fn(usize, &T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    items.get(at).map(|item| (at, item))
                } {
                    each(at, item);
                }
            });
        }
    });
}
