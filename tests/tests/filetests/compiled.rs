//! `compiled/x.cl`: compiled by clang for several targets and optimisation levels, then checked. The first
//! line `// args: …` has the launch arguments. A second line `// finds: …` lists checks, at least one of
//! which must report a finding in every build (or a note, if the list has the word `note`); without it, there
//! must be no findings or notes. A second line `// notes: …` instead has the text of a note, the only
//! one. A second line `// orders: …` lists orders of workgroups and waves in which a kernel without findings
//! runs. A third line `// level: …` has the optimisation level of the only builds that count.

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
    let note = second.strip_prefix("// notes: ");
    let level = lines.next().and_then(|line| line.strip_prefix("// level: "));
    let orders = second.strip_prefix("// orders: ").unwrap_or("ascending");
    let folder = std::env::temp_dir().join(format!("wavesim-compiled-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let mut failures = String::new();
    for build in BUILDS.into_iter().filter(|build| level.is_none_or(|level| build.contains(&level))) {
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
                None if note.is_some() => {
                    let notes: Vec<&str> = text.lines().filter(|line| line.starts_with("note:")).collect();
                    code == 0 && matches!(notes[..], [one] if note.is_some_and(|note| one.contains(note)))
                }
                None => code == 0 && text.starts_with("clean") && !text.contains("note"),
                Some(checks) => {
                    let notes = checks.split(' ').any(|word| word == "note");
                    let of = |line: &str| {
                        let line = if notes { line.strip_prefix("note: ").unwrap_or(line) } else { line };
                        checks.split(' ').any(|check| line.starts_with(&format!("{check}:")))
                    };
                    (code == 1 || notes) && text.lines().any(of)
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
        .args(["-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-w", "-g"])
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
