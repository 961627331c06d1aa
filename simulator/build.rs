//! Packs the relocations of the binary. Its tables of instructions and handlers have some 60,000 relocations,
//! of 24 bytes each, or a few bits if packed. Binaries with packed relocations need glibc 2.36; the host must
//! have that version and be the target of the binary.
//!
//! Folds identical functions, if the linker supports it.
//!
//! Embeds the page of the playground, if WAVESIM_PAGE names the folder of a built one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_native = variable("HOST") == variable("TARGET") && variable("TARGET").ends_with("-linux-gnu");
    if is_native && glibc() >= Some((2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // Merge identical functions: instances of generic code from many crates, and instructions that differ
    // only in name.
    let folding = "-Wl,--icf=all";
    if is_native && links_with(folding) {
        println!("cargo::rustc-link-arg-bins={folding}");
    }
    println!("cargo::rerun-if-env-changed=WAVESIM_PAGE");
    let page = match variable("WAVESIM_PAGE") {
        folder if folder.is_empty() => String::new(),
        // Relative to the workspace, in which cargo is invoked.
        folder => page(&Path::new(&variable("CARGO_MANIFEST_DIR")).join("..").join(folder)),
    };
    let table = format!("/// Names and contents.\npub static PAGE: &[(&str, &[u8])] = &[\n{page}];\n");
    let out = PathBuf::from(variable("OUT_DIR")).join("page.rs");
    std::fs::write(&out, table).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
}

/// Returns the files of the page as rows of a table, without the WebAssembly module, which the native engine
/// replaces.
fn page(root: &Path) -> String {
    println!("cargo::rerun-if-changed={}", root.display());
    let mut rows = String::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder);
        let entries = entries.unwrap_or_else(|e| panic!("WAVESIM_PAGE: {}: {e}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|e| e != "zst") {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                // Writing to a string does not fail.
                let _ = writeln!(rows, "    ({name:?}, include_bytes!({:?})),", path);
            }
        }
    }
    rows
}

/// Returns whether a program can be linked with a linker option; the available linker and its options depend
/// on the host.
fn links_with(option: &str) -> bool {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(out), Some(rustc)) = (variable("OUT_DIR"), variable("RUSTC")) else { return false };
    let (source, program) = (format!("{out}/links.rs"), format!("{out}/links"));
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linker = variable("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let mut command = Command::new(rustc);
    command.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty())).args(linker);
    command.args(["-C", &format!("link-arg={option}"), "-o", &program, &source]);
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns the version of the host's C library.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
