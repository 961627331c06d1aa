//! Tasks of developers: `cargo xtask TASK`.

mod install;
mod launch_overhead;
mod leaks;
mod memory_errors;
mod mutants;
mod processors;
mod programs;
mod shell;
mod test_dap;
mod test_hip;
mod test_python;
mod wasm;
mod web;

use anyhow::Context as _;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Tasks of developers
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
enum Task {
    BuildWasm(wasm::Args),
    BuildWeb(web::BuildArgs),
    InstallCLibrary(install::CArgs),
    InstallHipLibrary(install::HostArgs),
    InstallOpenclLibrary(install::HostArgs),
    LaunchOverhead(launch_overhead::Args),
    Leaks(leaks::Args),
    MemoryErrors(memory_errors::Args),
    Mutants(mutants::Args),
    Programs(programs::Args),
    TestDap(test_dap::Args),
    TestHip(test_hip::Args),
    TestProcessors(processors::Args),
    TestPython(test_python::Args),
    TestWeb(web::TestArgs),
    /// Build the archive, the Debian package and the checksums of a release
    #[command(disable_help_flag = true)]
    Dist(Forwarded),
    /// Write install.sh and wavesim.rb for the archives of a release
    #[command(disable_help_flag = true)]
    Installers(Forwarded),
    /// Package all published crates, or publish them
    #[command(disable_help_flag = true)]
    Package(Forwarded),
    /// Compile and run random programs on all engines, and compare the results with the host's
    #[command(disable_help_flag = true)]
    ProgramFuzz(Forwarded),
}

/// The arguments of a task of the package xtask-engine.
#[derive(Debug, clap::Args)]
struct Forwarded {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    run(Task::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::BuildWasm(args) => wasm::run(&args),
        Task::BuildWeb(_) => web::build(),
        Task::InstallCLibrary(args) => install::c_library(&args),
        Task::InstallHipLibrary(args) => install::hip_library(&args),
        Task::InstallOpenclLibrary(args) => install::opencl_library(&args),
        Task::LaunchOverhead(args) => launch_overhead::run(&args),
        Task::Leaks(args) => leaks::run(&args),
        Task::MemoryErrors(args) => memory_errors::run(&args),
        Task::Mutants(args) => mutants::run(&args),
        Task::Programs(args) => programs::run(&args),
        Task::TestDap(args) => test_dap::run(&args),
        Task::TestHip(args) => test_hip::run(&args),
        Task::TestProcessors(args) => processors::run(&args),
        Task::TestPython(args) => test_python::run(&args),
        Task::TestWeb(args) => web::test(&args),
        Task::Dist(args) => forward("dist", &args),
        Task::Installers(args) => forward("installers", &args),
        Task::Package(args) => forward("package", &args),
        Task::ProgramFuzz(args) => forward("program-fuzz", &args),
    }
}

fn forward(task: &str, args: &Forwarded) -> anyhow::Result<ExitCode> {
    let mut cargo = shell::cargo();
    cargo.args(["run", "--release", "--package", "xtask-engine", "--", task]).args(&args.arguments);
    let status = cargo.status().context("cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
