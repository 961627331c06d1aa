//! `cargo xtask package`: the packages of crates.io.

use anyhow::{Context as _, bail};
use std::process::{Command, ExitCode};

/// Package all published crates and build each from its package alone, or publish them
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Do not build the packages
    #[arg(long)]
    no_verify: bool,
    /// Package a work tree with changes
    #[arg(long)]
    allow_dirty: bool,
    /// Publish the packages
    #[arg(long)]
    publish: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.arg(if args.publish { "publish" } else { "package" });
    command.args(args.no_verify.then_some("--no-verify"));
    command.args(args.allow_dirty.then_some("--allow-dirty"));
    let mut metadata = Command::new(&cargo);
    let output = metadata
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!("{metadata:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    // `publish` is a list of registries, of which `publish = false` leaves none.
    let published =
        packages.iter().filter(|package| package["publish"].as_array().is_none_or(|list| !list.is_empty()));
    for package in published {
        command.arg("--package").arg(package["name"].as_str().context("a package has no name")?);
    }
    let status = command.status().context("cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
