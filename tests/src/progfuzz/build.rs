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

/// Targets: two processors of most architectures, and the generic processors that LLVM 19 has.
pub const TARGETS: [&str; 10] = [
    "gfx1100",
    "gfx1103",
    "gfx11-generic",
    "gfx1150",
    "gfx1151",
    "gfx1200",
    "gfx1201",
    "gfx12-generic",
    "gfx942",
    "gfx950",
];

/// What the results must be equal to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oracle {
    /// The results of the host.
    Host,
    /// Those of the interpreter: the options permit other results than the host's, or the compiler is known to
    /// be wrong.
    Interpreter,
}

/// How a program is compiled for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub target: &'static str,
    pub wave: u32,
    pub options: Vec<String>,
    pub oracle: Oracle,
}

/// Options that select other instructions for the same results. Each is used in one of so many programs.
const CODE_GENERATION: [(u64, &[&str]); 13] = [
    (6, &["-Xclang", "-target-feature", "-Xclang", "-unaligned-access-mode"]),
    (8, &["-mllvm", "-amdgpu-scalarize-global-loads=false"]),
    (10, &["-mllvm", "-amdgpu-atomic-optimizer-strategy=DPP"]),
    (12, &["-mllvm", "-amdgpu-atomic-optimizer-strategy=None"]),
    (10, &["-mllvm", "-amdgpu-use-divergent-register-indexing"]),
    (12, &["-mllvm", "-amdgpu-load-store-vectorizer=0"]),
    (16, &["-mllvm", "-amdgpu-dpp-combine=0"]),
    (16, &["-mllvm", "-enable-misched=0"]),
    (16, &["-mllvm", "-amdgpu-stress-function-calls"]),
    (16, &["-mllvm", "-amdgpu-bypass-slow-div=0"]),
    (12, &["-fno-unroll-loops"]),
    (12, &["-munsafe-fp-atomics"]),
    (12, &["-mcode-object-version=4"]),
];

/// Options with which the interpreter is the oracle: other float results are permitted, or LLVM 19 is known to
/// compile incorrectly.
const OTHER_RESULTS: [&[&str]; 9] = [
    &["-cl-denorms-are-zero"],
    &["-cl-fast-relaxed-math"],
    &["-cl-denorms-are-zero", "-cl-fast-relaxed-math"],
    &["-cl-no-signed-zeros", "-cl-mad-enable", "-ffp-contract=fast"],
    &["-mno-amdgpu-ieee", "-fno-honor-nans"],
    &["-DFEW_REGISTERS"],
    &["-DFEW_REGISTERS"],
    // With optimisation, it often takes minutes.
    &["-O0", "-mllvm", "-global-isel", "-mllvm", "-global-isel-abort=2"],
    &["-O0", "-mllvm", "-global-isel", "-mllvm", "-global-isel-abort=2", "-cl-denorms-are-zero"],
];

impl Configuration {
    /// A random configuration of a target.
    pub fn random(rng: &mut Rng, target: &'static str) -> Configuration {
        let rdna = !target.starts_with("gfx9");
        let wave = if rdna && !rng.chance(3) { 32 } else { 64 };
        let level = rng.pick(&["-O0", "-O1", "-O2", "-O2", "-O3", "-Os"]);
        // LLVM 19 does not know gfx950, which executes gfx942's instructions.
        let processor = if target == "gfx950" { "gfx942" } else { target };
        let mut options = vec![format!("-mcpu={processor}"), level.to_string()];
        let mut option = |words: &[&str]| options.extend(words.iter().map(|w| w.to_string()));
        if target.ends_with("generic") {
            option(&["-mcode-object-version=6"]);
        }
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
        if !rdna && rng.chance(4) {
            option(&["-mllvm", "-amdgpu-sdwa-peephole=0"]);
        }
        for (one_in, words) in CODE_GENERATION {
            if rng.chance(one_in) && !(target.ends_with("generic") && words[0].contains("object-version")) {
                option(words);
            }
        }
        // Spilling of scalar registers to lanes of vector registers overwrites registers (LLVM 19).
        if level != "-O0" && rng.chance(8) {
            option(&["-DFEW_REGISTERS", "-mllvm", "-amdgpu-spill-sgpr-to-vgpr=0"]);
        }
        let oracle = if rng.chance(5) { Oracle::Interpreter } else { Oracle::Host };
        if oracle == Oracle::Interpreter {
            option(rng.pick(&OTHER_RESULTS));
        }
        Configuration { target, wave, options, oracle }
    }
}

impl Configuration {
    /// Whether the checks must report nothing: not for code that may be wrong, nor in TgSplit mode, which they do
    /// not model.
    pub fn is_checkable(&self) -> bool {
        self.oracle == Oracle::Host && !self.options.iter().any(|o| o == "-mtgsplit")
    }
}

impl std::fmt::Display for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.target, self.options.join(" "))?;
        if self.oracle == Oracle::Interpreter {
            f.write_str(" (compared with the interpreter)")
        } else {
            Ok(())
        }
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

/// Compiles a code object. Compilers that do not finish within two minutes are stopped.
pub fn for_target(source: &Path, configuration: &Configuration, object: &Path) -> Result<(), String> {
    let mut command = Command::new("timeout");
    command.args(["120", CLANG]).args(LANGUAGE);
    command.args(["--target=amdgcn-amd-amdhsa", "-mcode-object-version=5"]).args(&configuration.options);
    run(command.arg(source).arg("-o").arg(object))?;
    if configuration.target == "gfx950" { relabel(object).map_err(|e| e.to_string()) } else { Ok(()) }
}

/// Makes a code object of gfx942 one of gfx950: the processor is the low byte of `e_flags` in the ELF header
/// (LLVM's AMDGPUUsage, *ELF e_flags V4*).
fn relabel(object: &Path) -> std::io::Result<()> {
    const E_FLAGS: usize = 48;
    const GFX950: u8 = 0x4f;
    let mut bytes = std::fs::read(object)?;
    bytes[E_FLAGS] = GFX950;
    std::fs::write(object, bytes)
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
