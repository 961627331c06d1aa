//! Whole assembly files.
//!
//! - `asm/*.s`: macros, conditionals, labels, data, descriptors. Their bytes are in `asm/*.hex`, as LLVM's assembler gives them
//!   (`BLESS=1` writes them anew, where `llvm-mc-19` is installed); `..` is what a linker fills in.
//! - `asm/fail/*.s`: what a user is told, in `asm/fail/*.err` (`BLESS=1`).
//! - What clang 19 compiles (`asm/compiled/*.cl` among it), and the hand-written kernels beside the repository: the same bytes as LLVM's.
//! - The commands: assembly files run, are checked and are debugged by their lines.

use object::{Object, ObjectSection, RelocationFlags};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use wavesim::arch::Arch;
use wavesim::loader::assembly::Reading;
use wavesim_tests::{root, shared, wavesim};

/// Loaded sections by name; `None` is a byte that a linker fills in.
type Sections = BTreeMap<String, Vec<Option<u8>>>;

fn files(folder: &Path, ext: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|d| d.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == ext)).collect())
        .unwrap_or_default();
    found.sort();
    found
}

fn reading(path: &Path, mcpu: &str) -> Reading {
    let folders = path.parent().map(Path::to_path_buf).into_iter().collect();
    Reading { arch: Arch::from_mcpu(mcpu), folders, ..Reading::default() }
}

/// What we make of a file; all sections at address 0.
fn ours(path: &Path, mcpu: &str) -> Result<Sections, String> {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let (mut program, options, mut errors) = reading(path, mcpu).read(&name, &text);
    if errors.is_empty() {
        errors = program.link(&options);
    }
    if !errors.is_empty() {
        return Err(errors.iter().map(|e| format!("{e}\n")).collect());
    }
    let sections = program.sections.iter().filter(|s| !s.bytes.is_empty() && loaded(&s.name));
    Ok(sections.map(|s| (s.name.clone(), s.bytes.iter().copied().map(Some).collect())).collect())
}

fn loaded(name: &str) -> bool {
    [".text", ".rodata", ".data"].iter().any(|s| name.starts_with(s))
}

/// What LLVM's assembler makes of it, fields with relocations left out. `None` if it is not installed.
fn llvm(path: &Path, mcpu: &str, features: &str) -> Option<Sections> {
    let stem = path.file_stem()?.to_string_lossy();
    let out = std::env::temp_dir().join(format!("wavesim-asm-{}-{stem}-{mcpu}.o", std::process::id()));
    let status = Command::new("llvm-mc-19")
        .args(["-triple=amdgcn-amd-amdhsa", "-filetype=obj", &format!("-mcpu={mcpu}")])
        .arg(format!("-mattr={features}"))
        .args([Path::new("-I"), path.parent()?, Path::new("-o"), &out, path])
        .stderr(std::process::Stdio::null())
        .status()
        .ok()?;
    assert!(status.success(), "llvm-mc-19 refuses {}", path.display());
    let bytes = std::fs::read(&out).ok()?;
    let _ = std::fs::remove_file(&out);
    let file = object::File::parse(&*bytes).ok()?;
    let mut sections = Sections::new();
    for section in file.sections() {
        let name = section.name().ok()?.to_string();
        let data = section.data().ok()?;
        if data.is_empty() || !loaded(&name) {
            continue;
        }
        let mut own: Vec<Option<u8>> = data.iter().copied().map(Some).collect();
        for (at, relocation) in section.relocations() {
            // R_AMDGPU_ABS64 and REL64 have eight bytes, the others four.
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let len = if matches!(r_type, 3 | 5) { 8 } else { 4 };
            own[at as usize..at as usize + len].fill(None);
        }
        sections.insert(name, own);
    }
    Some(sections)
}

/// The first place where sections differ.
fn difference(ours: &Sections, llvm: &Sections) -> Option<String> {
    for name in ours.keys().chain(llvm.keys()) {
        let (Some(a), Some(b)) = (ours.get(name), llvm.get(name)) else {
            return Some(format!("section {name} is in one alone"));
        };
        if a.len() != b.len() {
            return Some(format!("{name} has {} bytes, LLVM's {}", a.len(), b.len()));
        }
        let same = |(a, b): (&Option<u8>, &Option<u8>)| a.is_none() || b.is_none() || a == b;
        if let Some(at) = a.iter().zip(b).position(|pair| !same(pair)) {
            let word = |s: &[Option<u8>]| -> String {
                s[at / 4 * 4..]
                    .iter()
                    .take(4)
                    .map(|b| b.map_or("..".into(), |b| format!("{b:02x}")))
                    .collect()
            };
            return Some(format!("{name}+0x{at:x}: ours {}, LLVM's {}", word(a), word(b)));
        }
    }
    None
}

fn hex(sections: &Sections) -> String {
    let mut out = String::new();
    for (name, bytes) in sections {
        writeln!(out, "{name}").unwrap();
        for line in bytes.chunks(16) {
            let line: Vec<String> =
                line.iter().map(|b| b.map_or("..".to_string(), |b| format!("{b:02x}"))).collect();
            writeln!(out, "  {}", line.join(" ")).unwrap();
        }
    }
    out
}

fn unhex(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current = String::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            Some(bytes) => {
                let bytes = bytes.split(' ').map(|b| u8::from_str_radix(b, 16).ok());
                sections.entry(current.clone()).or_default().extend(bytes);
            }
            None => current = line.to_string(),
        }
    }
    sections
}

fn mcpu_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().next().and_then(|l| l.split_once("mcpu: ")).map_or("gfx1100", |m| m.1).trim().to_string()
}

fn bless() -> bool {
    std::env::var_os("BLESS").is_some()
}

#[test]
fn files_of_the_repository() {
    let folder = root().join("tests/asm");
    let mut count = 0;
    for path in files(&folder, "s") {
        let mcpu = mcpu_of(&path);
        let llvm = llvm(&path, &mcpu, "");
        let golden = path.with_extension("hex");
        if let (true, Some(llvm)) = (bless(), &llvm) {
            std::fs::write(&golden, hex(llvm)).unwrap();
        }
        let ours = ours(&path, &mcpu).unwrap_or_else(|e| panic!("{e}"));
        let expected = unhex(&std::fs::read_to_string(&golden).expect("BLESS=1 writes it"));
        assert_eq!(difference(&ours, &expected), None, "{}", path.display());
        if let Some(llvm) = llvm {
            assert_eq!(expected, llvm, "{}: LLVM says otherwise now", golden.display());
        }
        count += 1;
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn faults_are_told_where_they_are() {
    let folder = root().join("tests/asm/fail");
    let mut count = 0;
    for path in files(&folder, "s") {
        let told = ours(&path, &mcpu_of(&path)).expect_err("it is wrong");
        let golden = path.with_extension("err");
        if bless() {
            std::fs::write(&golden, &told).unwrap();
        }
        let expected = std::fs::read_to_string(&golden).expect("BLESS=1 writes it");
        assert_eq!(told, expected, "{}", path.display());
        count += 1;
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn handwritten_kernels_assemble_as_llvm_has_them() {
    let Some(folder) = shared("bench") else {
        println!("skipped: no kernels below WAVESIM_SHARED or ../shared");
        return;
    };
    for path in files(&folder, "s") {
        let Some(llvm) = llvm(&path, "gfx1100", "") else {
            println!("skipped: llvm-mc-19 is not installed");
            return;
        };
        let ours = ours(&path, "gfx1100").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(difference(&ours, &llvm), None, "{}", path.display());
    }
}

/// A file compiled to assembly. `None` without clang.
fn compiled(source: &Path, mcpu: &str, more: &[&str]) -> Option<PathBuf> {
    let name = source.file_stem()?.to_string_lossy();
    let flags = more.concat();
    let out = std::env::temp_dir().join(format!("wavesim-cl-{}-{name}-{mcpu}{flags}.s", std::process::id()));
    let include = source.parent()?.parent()?;
    let status = Command::new("clang-19")
        .args(["-S", "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-O2"])
        .args(["-Xclang", "-finclude-default-header", &format!("-mcpu={mcpu}"), "-w"])
        .args(more)
        .args([Path::new("-I"), include, Path::new("-o"), &out, source])
        .status()
        .ok()?;
    status.success().then_some(out)
}

#[test]
fn compiled_kernels_assemble_as_llvm_has_them() {
    // The repository's, and of the bigger set what has most of the language.
    let own = ["collatz", "dynlds", "struct_arg", "vadd"].map(|k| root().join("tests/code_objects").join(k));
    let more = ["calls", "switchvm", "flat_generic", "wmma_f16", "atomics_float", "subdword", "permlane"];
    let more = shared("kernels").map(|folder| more.map(|k| folder.join(k)));
    let (mut count, mut instructions) = (0, 0);
    for folder in own.into_iter().chain(more.into_iter().flatten()) {
        let Some(source) = files(&folder, "cl").pop() else { continue };
        for (mcpu, flags, features) in [
            ("gfx1100", &["-g"][..], ""),
            ("gfx1100", &["-mwavefrontsize64"], "+wavefrontsize64"),
            ("gfx1150", &[], ""),
            ("gfx1201", &[], ""),
        ] {
            if !features.is_empty() && std::fs::metadata(folder.join("w64")).is_err() {
                continue;
            }
            let Some(path) = compiled(&source, mcpu, flags) else {
                println!("skipped: clang-19 is not installed, or cannot compile {}", source.display());
                continue;
            };
            let ours = ours(&path, mcpu).unwrap_or_else(|e| panic!("{} {mcpu}: {e}", source.display()));
            let llvm = llvm(&path, mcpu, features).expect("llvm-mc-19 beside clang-19");
            assert_eq!(difference(&ours, &llvm), None, "{} {mcpu} {flags:?}", source.display());
            instructions += ours[".text"].len() / 4;
            let _ = std::fs::remove_file(path);
            count += 1;
        }
    }
    println!("{count} compiled files, {instructions} words as LLVM has them");
}

/// `asm/compiled/*.cl`: what compilers write at every level of optimisation.
#[test]
fn compiled_files_assemble_as_llvm_has_them() {
    let sources = files(&root().join("tests/asm/compiled"), "cl");
    assert!(sources.len() >= 7, "{sources:?}");
    let (mut count, mut instructions) = (0, 0);
    for source in sources {
        for mcpu in ["gfx1100", "gfx1150", "gfx1201"] {
            for (flags, features) in [
                (&["-O0", "-g"][..], ""),
                (&["-O1", "-mcode-object-version=6"], ""),
                (&["-O2", "-mwavefrontsize64"], "+wavefrontsize64"),
                (&["-O3", "-mcode-object-version=4"], ""),
            ] {
                let Some(path) = compiled(&source, mcpu, flags) else {
                    println!("skipped: clang-19 is not installed, or cannot compile {}", source.display());
                    return;
                };
                let told = format!("{} {mcpu} {flags:?}", source.display());
                let ours = ours(&path, mcpu).unwrap_or_else(|e| panic!("{told}: {e}"));
                let llvm = llvm(&path, mcpu, features).expect("llvm-mc-19 beside clang-19");
                assert_eq!(difference(&ours, &llvm), None, "{told}");
                // As a code object too.
                let text = std::fs::read_to_string(&path).unwrap();
                let object = reading(&path, mcpu).assemble("compiled.s", &text);
                let object = object.unwrap_or_else(|e| panic!("{told}: {}", e[0])).object;
                assert!(!wavesim::loader::code_object::kernels(&object).unwrap().is_empty(), "{told}");
                instructions += ours[".text"].len() / 4;
                let _ = std::fs::remove_file(path);
                count += 1;
            }
        }
    }
    println!("{count} compiled files, {instructions} words as LLVM has them");
}

// The commands.

fn kernel() -> String {
    root().join("examples/scale.s").to_string_lossy().into_owned()
}

const ARGS: [&str; 10] = [
    "--grid",
    "2",
    "--block",
    "32",
    "--arg",
    "x: f32[50]=arange(50)",
    "--arg",
    "out_y: f32[50]",
    "--arg",
    "2.5",
];

fn command(name: &str, more: &[&str]) -> (u8, String) {
    let kernel = kernel();
    let mut args = vec![name, &kernel];
    args.extend(ARGS);
    args.extend(["--arg", "i32=50"]);
    args.extend(more);
    wavesim(&args)
}

#[test]
fn assembly_files_run() {
    for arch in ["rdna3", "rdna3.5"] {
        let (code, out) = command("run", &["--arch", arch, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
        assert_eq!(code, 0, "{out}");
        let y = json["outputs"]["out_y"]["data"].as_array().unwrap();
        assert!((0..50).all(|i| y[i] == 2.5 * i as f64), "{out}");
    }
    let (code, out) = command("launch", &["--stats"]);
    assert!(code == 0 && out.contains("out_y: f32[50] ="), "{out}");
    let (code, out) = command("run", &["--profile-lines"]);
    assert!(code == 0 && out.contains("global_store_b32"), "{out}");
    let (code, out) = command("run", &["--arch", "rdna4"]);
    assert!(code == 2, "its waits are RDNA 3's: {out}");
}

#[test]
fn assembly_files_are_checked_and_debugged() {
    let (code, out) = command("check", &["-q"]);
    assert!(code == 0 && out.starts_with("clean"), "{out}");
    let line = std::fs::read_to_string(kernel()).unwrap();
    let line = line.lines().position(|l| l.contains("v_mul_f32")).unwrap() + 1;
    let stop = format!("break {line}");
    let (code, out) =
        command("debug", &["--batch", "-e", &stop, "-e", "continue", "-e", "list", "-e", "p s2 as f32"]);
    assert!(code == 0 && out.contains(&format!("line {line}")), "{out}");
    assert!(out.contains("v_mul_f32"), "{out}");
    // A label by its name.
    let (code, out) = command("debug", &["--batch", "-e", "break done", "-e", "continue"]);
    assert!(code == 0 && out.contains("s_endpgm"), "{out}");
}

#[test]
fn faults_of_assembly_files_name_their_line() {
    let dir = std::env::temp_dir().join(format!("wavesim-fault-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let text = std::fs::read_to_string(kernel()).unwrap();
    let line = text.lines().position(|l| l.contains("global_store_b32")).unwrap() + 1;
    // Without its comparison the kernel writes beyond the end.
    let path = dir.join("beyond.s");
    std::fs::write(&path, text.replace("s_and_saveexec_b32", "s_mov_b32")).unwrap();
    let path = path.to_string_lossy();
    let mut args = vec!["check", &path, "--json", "-q"];
    args.extend(ARGS);
    args.extend(["--arg", "i32=50"]);
    let (code, out) = wavesim(&args);
    assert!(code == 1 && out.contains("\"line\":"), "{out}");
    assert!(out.contains(&format!("\"line\":{line}")) || out.contains("global_load"), "{out}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn code_objects_are_debugged_too() {
    let object = root().join("tests/code_objects/vadd/vadd.gfx1201.co");
    let object = object.to_string_lossy();
    let args = ["a: f32[4]=arange(4)", "b: f32[4]=repeat(0.5)", "out_c: f32[4]", "3"];
    let mut launch = vec!["--grid", "1", "--block", "64"];
    args.iter().for_each(|arg| launch.extend(["--arg", arg]));
    for (command, more, told) in [
        ("run", &[][..], "out_c: f32[4] =\n[0.5 1.5 2.5 0. ]\n"),
        ("check", &["-q"], "clean"),
        ("debug", &["--batch", "-e", "break vadd", "-e", "continue"], "pc 0x"),
    ] {
        let mut all = vec![command, &object];
        all.extend(&launch);
        all.extend(more);
        let (code, out) = wavesim(&all);
        assert!(code == 0 && out.contains(told), "{command}: {out}");
    }
}

/// Words of a command line, quotes undone.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_string)),
            _ => words.push(part.to_string()),
        }
    }
    words
}

/// The README's lines, as they stand there.
#[test]
fn the_readme_runs_compiled_kernels() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let object = std::env::temp_dir().join(format!("wavesim-axpy-{}.co", std::process::id()));
    let (mut compiled, mut run) = (false, 0);
    for line in readme.lines().filter_map(|l| l.strip_prefix("    ")) {
        let place = |word: String| match word.as_str() {
            "axpy.co" => object.to_string_lossy().into_owned(),
            word if word.starts_with("examples/") => root().join(word).to_string_lossy().into_owned(),
            _ => word,
        };
        let words: Vec<String> = split(line).into_iter().map(place).collect();
        if line.starts_with("clang-19 ") {
            let Ok(status) = Command::new(&words[0]).args(&words[1..]).status() else {
                println!("skipped: clang-19 is not installed");
                continue;
            };
            assert!(status.success(), "{line}");
            compiled = true;
        } else if line.starts_with("wavesim launch axpy.co") && compiled {
            let words: Vec<&str> = words[1..].iter().map(String::as_str).chain(["--json"]).collect();
            let (code, out) = wavesim(&words);
            let json: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
            let y = json["outputs"]["out_y"]["data"].as_array().unwrap();
            assert!(code == 0 && y.len() == 100, "{out}");
            assert!((0..100).all(|i| y[i] == 1.0 + 0.5 * i as f64), "{out}");
            run += 1;
        } else if line.starts_with("wavesim run examples/scale.s") {
            let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let (code, out) = wavesim(&words);
            assert!(code == 0 && out.contains("122.5"), "{out}");
            run += 1;
        }
    }
    let _ = std::fs::remove_file(object);
    assert_eq!(run, 1 + usize::from(compiled), "README.md has no such lines");
}
