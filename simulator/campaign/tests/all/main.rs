//! Tests of campaigns, whose program is a shell script: exit codes and outputs stand for those of `wavesim`.
#![cfg(unix)]

mod formats;
mod kill;
mod plans;
mod runs;
mod templates;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use wavesim_campaign::plan::{Campaign, Shard};
use wavesim_campaign::process::Program;
use wavesim_campaign::runner::{self, Options, Progress};
use wavesim_campaign::store::{Record, Store};

/// Creates an empty folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("campaign-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Writes a script that stands for `wavesim`.
fn script(folder: &Path, text: &str) -> Program {
    let path = folder.join("program");
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Program { path, first: Vec::new(), template: None }
}

fn campaign(folder: &Path, text: &str) -> Campaign {
    Campaign::parse("plan.toml", text.to_string(), folder).unwrap()
}

fn run_shard(
    folder: &Path,
    campaign: &Campaign,
    program: &Program,
    database: &str,
    shard: Shard,
) -> Progress {
    let mut store = Store::open(&folder.join(database)).unwrap();
    let options = Options {
        program,
        jobs: 2,
        shard,
        scratch: &folder.join(format!("{database}-work")),
        interrupted: &|| false,
        progress: &|_| {},
    };
    runner::run(campaign, &mut store, &options).unwrap()
}

fn run(folder: &Path, campaign: &Campaign, program: &Program) -> Progress {
    run_shard(folder, campaign, program, "results.db", Shard::WHOLE)
}

fn records(path: &Path) -> Vec<Record> {
    let mut out = Vec::new();
    Store::existing(path).unwrap().each(|record| out.push(record)).unwrap();
    out
}
