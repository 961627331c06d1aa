//! `cargo xtask mutants`: mutation testing of source files with cargo-mutants detects changes of the code that no test
//! notices.

use crate::shell;
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Test each mutant of source files; the tree is changed in place, so do not edit it meanwhile
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each mutant is compiled and tested with the tests of the file's package, and, below simulator/, with those of the
package wavesim-tests. The lists of caught and missed mutants are in target/mutants.out.
It needs cargo-mutants: cargo install cargo-mutants")]
pub struct Args {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Only list the mutants
    #[arg(long)]
    list: bool,
    /// Further packages whose tests run
    #[arg(long, value_delimiter = ',')]
    tests: Vec<String>,
    /// The profile of the build; dev is the unoptimised one
    #[arg(long, default_value = "release")]
    profile: String,
    /// Seconds that the tests of one mutant may take
    #[arg(long, default_value_t = 600)]
    timeout: u32,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = shell::root().canonicalize()?;
    let (mut files, mut packages, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    for file in &args.files {
        let (file, package) = locate(&root, file)?;
        tests.push(package.clone());
        if file.starts_with("simulator") {
            tests.push("wavesim-tests".to_string());
        }
        files.push(file);
        packages.push(package);
    }
    tests.extend(args.tests.iter().cloned());
    tests.sort();
    tests.dedup();
    if !shell::succeeds(shell::cargo_in_root().args(["mutants", "--version"])) {
        bail!("cargo-mutants is not installed: cargo install cargo-mutants");
    }
    let mut mutants = shell::cargo_in_root();
    mutants.arg("mutants");
    for (file, package) in files.iter().zip(&packages) {
        mutants.arg("--package").arg(package).arg("--file").arg(file);
    }
    if args.list {
        shell::run(mutants.arg("--list"))?;
        return Ok(ExitCode::SUCCESS);
    }
    // A mutant left by an interrupted run can then be reverted without losing changes.
    let unchanged =
        || shell::succeeds(shell::command("git").args(["diff", "--quiet", "HEAD", "--"]).args(&files));
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    if !unchanged() {
        bail!("commit the changes of {} first: mutants are made in place", names.join(" "));
    }
    shell::create(&shell::target())?;
    mutants
        .args(["--in-place", "--profile", &args.profile, "--timeout", &args.timeout.to_string(), "--output"])
        .arg(shell::target());
    for package in &tests {
        mutants.args(["--test-package", package]);
    }
    // Random tests use the same seed for each mutant, and do not store its failures in the tree; expectations are not
    // rewritten.
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        mutants.env("PROPTEST_RNG_SEED", "1");
    }
    mutants.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true").env_remove("BLESS");
    let status = mutants.status().context("cargo mutants")?;
    if !unchanged() {
        eprintln!("a mutant is left in the tree: git checkout HEAD -- {}", names.join(" "));
    }
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a file relative to the root, and its package.
fn locate(root: &Path, file: &Path) -> anyhow::Result<(PathBuf, String)> {
    let absolute = file.canonicalize().with_context(|| format!("there is no file {}", file.display()))?;
    let own = match absolute.strip_prefix(root) {
        Ok(own) if own.extension().is_some_and(|extension| extension == "rs") => own,
        _ => bail!("{} is not a Rust file of this workspace", absolute.display()),
    };
    if own.starts_with("fuzz") || own.starts_with("web") {
        bail!("{} is in a workspace of its own, which this does not test", own.display());
    }
    let manifests = absolute.ancestors().skip(1).take_while(|folder| *folder != root);
    let mut manifests = manifests.map(|folder| folder.join("Cargo.toml"));
    let manifest = manifests.find(|manifest| manifest.is_file());
    let manifest = manifest.with_context(|| format!("{} is in no package", own.display()))?;
    let text = shell::read(&manifest)?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let name = name.with_context(|| format!("{} has no name", manifest.display()))?;
    Ok((own.to_path_buf(), name.to_string()))
}
