//! `cargo xtask test-dap`: drives `wavesim dap` with the client library of Visual Studio Code's debug adapters.

use crate::shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Test the debug adapter with the client library of Visual Studio Code, which comes from npm, once
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The binary
    #[arg(long, value_name = "FILE", default_value = "target/release/wavesim")]
    wavesim: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    for tool in ["node", "npm"] {
        if !shell::is_installed(tool) {
            return shell::skipped(&format!("sessions of the debug adapter need {tool}"));
        }
    }
    let folder = shell::target().join("dap-client");
    shell::create(&folder)?;
    for file in ["package.json", "session.test.js"] {
        shell::copy(&shell::root().join("tests/dap").join(file), &folder.join(file))?;
    }
    if !folder.join("node_modules/@vscode/debugadapter-testsupport").is_dir() {
        let mut npm = shell::command("npm");
        npm.arg("install").arg("--prefix").arg(&folder).args(["--no-audit", "--no-fund", "--silent"]);
        if !npm.status().is_ok_and(|status| status.success()) {
            return shell::skipped("@vscode/debugadapter-testsupport could not be installed");
        }
    }
    let mut node = shell::command("node");
    node.args(["--test", "--test-timeout=120000"]).arg(folder.join("session.test.js"));
    shell::run(node.env("WAVESIM", args.wavesim.canonicalize()?).env("ROOT", shell::root()))?;
    Ok(ExitCode::SUCCESS)
}
