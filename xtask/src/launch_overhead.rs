//! `cargo xtask launch-overhead`: launches of kernels that end at once, by the host layer alone, HIP, OpenCL and Python.
//! The times are CPU times of all threads, which depend little on other load of the host.

use crate::{install, shell};
use std::path::PathBuf;
use std::process::ExitCode;

const PROGRAMS: &str = "hosts/hip/tests/programs";

/// Measure the overhead of launches; components that are not installed are skipped
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An interpreter with the package
    #[arg(long, value_name = "FILE", default_value = "target/python/bin/python")]
    python: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let scratch = shell::Scratch::new("launches")?;
    let example = ["run", "--quiet", "--release", "-p", "wavesim-runtime", "--example", "launch_overhead"];
    shell::run(shell::cargo_in_root().args(example))?;
    if shell::is_installed("clang-19") {
        let (object, program, folder) = (scratch.file("hip.o"), scratch.file("hip"), scratch.file("lib"));
        install::hip_library(&install::HostArgs::into_folder(folder.clone(), None))?;
        shell::run(
            shell::command("clang-19")
                .args(["-x", "hip", "-O2", "--offload-arch=gfx1100", "-std=c++17", "-fdeclspec"])
                .args(["-nogpuinc", "-nogpulib", "-include", &format!("{PROGRAMS}/small_hip.h"), "-c"])
                .arg(format!("{PROGRAMS}/launches.hip"))
                .arg("-o")
                .arg(&object),
        )?;
        let mut link = shell::command("c++");
        link.arg(&object).arg("-L").arg(&folder).args(["-lamdhip64", "-o"]).arg(&program);
        shell::run(&mut link)?;
        shell::run(shell::command(&program).env("LD_LIBRARY_PATH", &folder))?;
    } else {
        println!("skipped: HIP: clang-19 is not installed");
    }
    let program = scratch.file("opencl");
    let mut compile = shell::command("cc");
    compile.args(["hosts/opencl/tests/programs/launches.c", "-lOpenCL", "-o"]).arg(&program);
    if shell::succeeds(&mut compile) {
        let folder = scratch.file("opencl-library");
        install::opencl_library(&install::HostArgs::into_folder(folder.clone(), None))?;
        shell::run(shell::command(&program).env("OCL_ICD_VENDORS", &folder))?;
    } else {
        println!("skipped: OpenCL: libOpenCL or its headers are not installed");
    }
    let python = shell::root().join(&args.python);
    if shell::succeeds(shell::command(&python).args(["-c", "import numpy, wavesim"])) {
        shell::run(shell::command(&python).args(["-c", include_str!("launch_overhead.py")]))?;
    } else {
        let python = args.python.display();
        println!("skipped: Python: no package in {python} (cargo xtask test-python installs it)");
    }
    Ok(ExitCode::SUCCESS)
}
