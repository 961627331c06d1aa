//! `compiled/x.cl`: compiled by clang for several targets and optimisation levels, then checked. The first
//! line `// args: …` has the launch arguments. A second line `// finds: …` lists checks, at least one of
//! which must report a finding in every build; without it, there must be no findings or notes. A second line
//! `// orders: …` lists orders of workgroups and waves in which a kernel without findings runs.

use libtest_mimic::{Failed, Trial};
use std::path::Path;
use std::process::Command;
use wavesim_tests::wavesim;

/// Compiler options of each build.
const BUILDS: [&[&str]; 8] = [
    &["-mcpu=gfx1100", "-O0"],
    &["-mcpu=gfx1100", "-O1"],
    &["-mcpu=gfx1100", "-O3"],
    &["-mcpu=gfx1100", "-mwavefrontsize64", "-O2"],
    &["-mcpu=gfx1201", "-O0"],
    &["-mcpu=gfx1201", "-O2"],
    &["-mcpu=gfx942", "-O0"],
    &["-mcpu=gfx942", "-O2"],
];

pub fn trials() -> Vec<Trial> {
    super::files("compiled", "cl", check)
}

fn check(source: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(source)?;
    let mut lines = text.lines();
    let args = lines.next().and_then(|line| line.strip_prefix("// args: ")).ok_or("no `// args:` line")?;
    let second = lines.next().unwrap_or_default();
    let finds = second.strip_prefix("// finds: ");
    let orders = second.strip_prefix("// orders: ").unwrap_or("ascending");
    let folder = std::env::temp_dir().join(format!("wavesim-compiled-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let mut failures = String::new();
    for build in BUILDS {
        let object = folder.join(format!("{name}{}.co", build.concat()));
        if !compile(source, build, &object)? {
            println!("skipped: clang-19 is not installed, or cannot compile {}", source.display());
            return Ok(());
        }
        let file = object.to_string_lossy();
        let limit = ["--max-instructions", "20000000"];
        for order in orders.split(' ') {
            let words = ["check", &file].into_iter().chain(args.split(' ')).chain(limit);
            let words: Vec<&str> = words.chain(["--order", order]).collect();
            let (code, text) = wavesim(&words);
            let as_expected = match finds {
                None => code == 0 && text.starts_with("clean") && !text.contains("note"),
                Some(checks) => {
                    let of =
                        |line: &str| checks.split(' ').any(|check| line.starts_with(&format!("{check}:")));
                    code == 1 && text.lines().any(of)
                }
            };
            if !as_expected {
                failures += &format!("{} --order {order}:\n{text}\n", build.join(" "));
            }
        }
        let _ = std::fs::remove_file(&object);
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.into()) }
}

/// Compiles a code object. Returns false if clang is not installed.
fn compile(source: &Path, build: &[&str], object: &Path) -> Result<bool, Failed> {
    let output = Command::new("clang-19")
        .args(["-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-w"])
        .args(["-mcode-object-version=5", "-Xclang", "-finclude-default-header"])
        .args(build)
        .arg(source)
        .arg("-o")
        .arg(object)
        .output();
    match output {
        Err(_) => Ok(false),
        Ok(output) if output.status.success() => Ok(true),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}
