//! The tasks of `cargo xtask` that link the engine, a crate of its own so that the others do not wait for its build.

mod dist;
mod installers;
mod package;
mod program_fuzz;

use clap::Parser;

/// Tasks of developers that link the engine
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask")]
enum Task {
    Dist(dist::Args),
    Installers(installers::Args),
    Package(package::Args),
    ProgramFuzz(program_fuzz::Args),
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    match Task::parse() {
        Task::Dist(args) => dist::run(&args),
        Task::Package(args) => package::run(&args),
        Task::Installers(args) => installers::run(&args),
        Task::ProgramFuzz(args) => program_fuzz::run(&args),
    }
}
