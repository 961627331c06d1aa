//! Compilation of programs by clang, for the host and for targets.

use crate::random::Rng;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// The compiler; the host's code comes from the same front end.
pub const CLANG: &str = "clang-19";

const LANGUAGE: [&str; 10] = [
    "-x",
    "cl",
    "-cl-std=CL2.0",
    "-cl-no-stdinc",
    "-Wno-everything",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-cl-fp32-correctly-rounded-divide-sqrt",
    "-nogpulib",
    "-Werror=unknown-warning-option",
];

/// Targets with their wave sizes and options for the code that they generate.
pub const TARGETS: [&str; 4] = ["gfx1100", "gfx1150", "gfx1201", "gfx942"];

/// How a program is compiled for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub target: &'static str,
    pub wave: u32,
    pub options: Vec<String>,
}

impl Configuration {
    /// A random configuration of a target.
    pub fn random(rng: &mut Rng, target: &'static str) -> Configuration {
        let rdna = target != "gfx942";
        let wave = if rdna && !rng.chance(3) { 32 } else { 64 };
        let mut options =
            vec![format!("-mcpu={target}"), rng.pick(&["-O0", "-O1", "-O2", "-O2", "-O3"]).to_string()];
        let mut option = |words: &[&str]| options.extend(words.iter().map(|w| w.to_string()));
        if rdna && wave == 64 {
            option(&["-mwavefrontsize64"]);
        }
        if rdna && rng.chance(4) {
            option(&["-mcumode"]);
        }
        if !rdna && rng.chance(6) {
            option(&["-mtgsplit"]);
        }
        if rdna && rng.chance(6) {
            option(&["-mllvm", "-amdgpu-enable-vopd=0"]);
        }
        if rng.chance(6) {
            option(&["-Xclang", "-target-feature", "-Xclang", "-unaligned-access-mode"]);
        }
        if rng.chance(8) {
            option(&["-mllvm", "-amdgpu-scalarize-global-loads=false"]);
        }
        Configuration { target, wave, options }
    }
}

impl std::fmt::Display for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.options.join(" "))
    }
}

/// A directory of temporary files, which is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> std::io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("wavesim-programs-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Scratch(folder))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns whether clang is installed.
pub fn installed() -> bool {
    Command::new(CLANG).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// Compiles a code object. Compilers that do not finish within half a minute are stopped.
pub fn for_target(source: &Path, configuration: &Configuration, object: &Path) -> Result<(), String> {
    let mut command = Command::new("timeout");
    command.args(["30", CLANG]).args(LANGUAGE);
    command.args(["--target=amdgcn-amd-amdhsa", "-mcode-object-version=5"]).args(&configuration.options);
    run(command.arg(source).arg("-o").arg(object)).map(|_| ())
}

/// Compiles a program for the host, with the driver `host.c`. If `sanitize`, undefined behaviour ends it.
pub fn for_host(source: &Path, scratch: &Scratch, sanitize: bool) -> Result<PathBuf, String> {
    let driver = scratch.path("host.o");
    if !driver.exists() {
        let text = scratch.path("host.c");
        std::fs::write(&text, include_str!("host.c")).map_err(|e| e.to_string())?;
        run(Command::new(CLANG).args(["-O1", "-c"]).arg(&text).arg("-o").arg(&driver))?;
    }
    // Checks take long to optimise.
    let checks: &[&str] = match sanitize {
        true => &["-O0", "-fsanitize=undefined,float-cast-overflow", "-fsanitize-trap=all"],
        false => &["-O1"],
    };
    let (object, program) = (source.with_extension("o"), source.with_extension("host"));
    let mut command = Command::new(CLANG);
    command.args(LANGUAGE).args(["-DHOST", "--target=x86_64-linux-gnu", "-c"]).args(checks);
    run(command.arg(source).arg("-o").arg(&object))?;
    run(Command::new(CLANG).args(checks).arg(&object).arg(&driver).arg("-lm").arg("-o").arg(&program))?;
    Ok(program)
}

/// Runs a host program with these buffers. Returns their contents afterwards, for waves of 32 and of 64.
pub fn run_host(program: &Path, buffers: &[Vec<u8>]) -> Result<[Vec<Vec<u8>>; 2], String> {
    let input = program.with_extension("input");
    std::fs::write(&input, buffers.concat()).map_err(|e| e.to_string())?;
    let file = std::fs::File::open(&input).map_err(|e| e.to_string())?;
    let sizes = buffers.iter().map(|b| b.len().to_string());
    let output = run(Command::new("timeout").arg("20").arg(program).args(sizes).stdin(file))?;
    let mut rest = output.stdout.as_slice();
    let mut contents = || {
        let mut one = Vec::new();
        for buffer in buffers {
            let (bytes, after) =
                rest.split_at_checked(buffer.len()).ok_or("the host's output is too short")?;
            one.push(bytes.to_vec());
            rest = after;
        }
        Ok::<_, String>(one)
    };
    Ok([contents()?, contents()?])
}
