//! Long-running tasks of developers: `cargo xtask TASK`.

mod dist;
mod installers;
mod package;
mod program_fuzz;

use clap::Parser;

/// Long-running tasks of developers
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
