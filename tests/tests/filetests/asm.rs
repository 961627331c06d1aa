//! Assembly files.
//!
//! - `asm/ok/x.s`: macros, conditionals, labels, data, descriptors. Assembles to the bytes in `x.expected`,
//!   which come from LLVM's assembler (`BLESS=1` rewrites the file if `llvm-mc-19` is installed); `..` are
//!   bytes that a linker fills in.
//! - `asm/fail/x.s`: reports the errors in `x.expected`.
//! - `asm/compiled/x.cl`: compiled by clang 19 at every optimisation level, the assembly yields the same
//!   bytes as with LLVM's assembler.
//! - The same for the sources in `code_objects`, and for compiled and handwritten kernels outside the
//!   repository.

use crate::{expect, files};
use isa_spec::data::files_below;
use libtest_mimic::{Failed, Trial};
use object::{Object, ObjectSection, RelocationFlags};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use wavesim::arch::Arch;
use wavesim::loader::assembly::AssemblyOptions;
use wavesim_golden::blessing;
use wavesim_tests::shared;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    trials.extend(files("asm/ok", "s", ok));
    trials.extend(files("asm/fail", "s", fail));
    trials.extend(files("asm/compiled", "cl", compiled_at_every_level));
    let own = ["collatz", "dynlds", "struct_arg", "vadd"];
    let own = own.map(|k| Path::new("tests/filetests/code_objects").join(k));
    // The kernels of the larger set that cover most of the language.
    let more = ["calls", "switchvm", "flat_generic", "wmma_f16", "atomics_float", "subdword", "permlane"];
    let more = shared("kernels").map(|folder| more.map(|k| folder.join(k)));
    for folder in own.into_iter().chain(more.into_iter().flatten()) {
        for path in files_below(&folder, "cl") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            trials.push(Trial::test(format!("asm::kernel::{name}"), move || compiled_kernel(&path)));
        }
    }
    for path in shared("bench").map(|folder| files_below(&folder, "s")).unwrap_or_default() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        trials.push(Trial::test(format!("asm::handwritten::{name}"), move || handwritten(&path)));
    }
    trials
}

fn ok(path: &Path) -> Result<(), Failed> {
    let mcpu = mcpu_of(path);
    let llvm = llvm(path, &mcpu, "");
    let golden = path.with_extension("expected");
    if let (true, Some(llvm)) = (blessing(), &llvm) {
        std::fs::write(&golden, hex(llvm))?;
    }
    let expected = unhex(&std::fs::read_to_string(&golden)?);
    same(&ours(path, &mcpu)?, &expected, "the file's")?;
    match llvm {
        Some(llvm) if llvm != expected => {
            Err("llvm-mc-19 emits different bytes than the file expects".into())
        }
        _ => Ok(()),
    }
}

fn fail(path: &Path) -> Result<(), Failed> {
    match ours(path, &mcpu_of(path)) {
        Ok(_) => Err("there is no error in this file".into()),
        Err(report) => expect(path, &report),
    }
}

fn handwritten(path: &Path) -> Result<(), Failed> {
    match llvm(path, "gfx1100", "") {
        Some(llvm) => same(&ours(path, "gfx1100")?, &llvm, "LLVM's"),
        None => {
            println!("skipped: llvm-mc-19 is not installed");
            Ok(())
        }
    }
}

fn compiled_kernel(source: &Path) -> Result<(), Failed> {
    let w64 = source.parent().is_some_and(|folder| folder.join("w64").exists());
    for (mcpu, flags, features) in [
        ("gfx1100", &["-g"][..], ""),
        ("gfx1100", &["-mwavefrontsize64"], "+wavefrontsize64"),
        ("gfx1150", &[], ""),
        ("gfx1201", &[], ""),
        ("gfx942", &["-g"], ""),
    ] {
        if features.is_empty() || w64 {
            compiled(source, mcpu, flags, features)?;
        }
    }
    Ok(())
}

fn compiled_at_every_level(source: &Path) -> Result<(), Failed> {
    for mcpu in ["gfx1100", "gfx1150", "gfx1201", "gfx942"] {
        for (flags, features) in [
            (&["-O0", "-g"][..], ""),
            (&["-O1", "-mcode-object-version=6"], ""),
            (&["-O2", "-mwavefrontsize64"], "+wavefrontsize64"),
            (&["-O3", "-mcode-object-version=4"], ""),
        ] {
            compiled(source, mcpu, flags, features)?;
        }
    }
    Ok(())
}

/// Compiles to assembly, compares the assembled bytes with LLVM's, and checks that a code object can be
/// written.
fn compiled(source: &Path, mcpu: &str, flags: &[&str], features: &str) -> Result<(), Failed> {
    let Some(path) = compile(source, mcpu, flags) else {
        println!("skipped: clang-19 is not installed, or cannot compile {}", source.display());
        return Ok(());
    };
    let what = |e: String| format!("{mcpu} {flags:?}: {e}");
    let llvm = llvm(&path, mcpu, features).ok_or("clang-19 is installed, but llvm-mc-19 is not")?;
    same(&ours(&path, mcpu).map_err(what)?, &llvm, "LLVM's")
        .map_err(|e| what(e.message().unwrap_or("").into()))?;
    let text = std::fs::read_to_string(&path)?;
    let object =
        reading(&path, mcpu).assemble("compiled.s", &text).map_err(|e| what(e[0].to_string()))?.object;
    if wavesim::loader::code_object::kernels(&object).map_err(|e| what(e.to_string()))?.is_empty() {
        return Err(what("there is no kernel in the code object".to_string()).into());
    }
    std::fs::remove_file(path)?;
    Ok(())
}

fn same(ours: &Sections, expected: &Sections, whose: &str) -> Result<(), Failed> {
    difference(ours, expected, whose).map_or(Ok(()), |difference| Err(difference.into()))
}

/// Loaded sections by name. `None` is a byte that a linker fills in.
type Sections = BTreeMap<String, Vec<Option<u8>>>;

fn reading(path: &Path, mcpu: &str) -> AssemblyOptions {
    let folders = path.parent().map(Path::to_path_buf).into_iter().collect();
    AssemblyOptions { arch: Arch::from_mcpu(mcpu), folders, ..AssemblyOptions::default() }
}

/// Assembles a file with our assembler, with all sections at address 0.
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

/// Assembles a file with LLVM, omitting fields with relocations. Returns `None` if LLVM is not installed.
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

/// Returns a description of the first difference between sections.
fn difference(ours: &Sections, other: &Sections, whose: &str) -> Option<String> {
    for name in ours.keys().chain(other.keys()) {
        let (Some(a), Some(b)) = (ours.get(name), other.get(name)) else {
            return Some(format!("section {name} is in only one of the files"));
        };
        if a.len() != b.len() {
            return Some(format!("{name} has {} bytes, {whose} {}", a.len(), b.len()));
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
            return Some(format!("{name}+0x{at:x}: ours {}, {whose} {}", word(a), word(b)));
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

/// Compiles a file to assembly. Returns `None` without clang.
fn compile(source: &Path, mcpu: &str, more: &[&str]) -> Option<PathBuf> {
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
