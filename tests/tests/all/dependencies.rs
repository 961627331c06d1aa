//! Dependencies of the library, and what packages need besides them.

use crate::names_in_rust;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Crates that only the command line needs.
const COMMAND_LINE: [&str; 10] = [
    "clap",
    "clap_complete",
    "crossterm",
    "ctrlc",
    "iced-x86",
    "indicatif",
    "ratatui",
    "rayon",
    "rustyline",
    "terminal_size",
];

/// Returns the names of the crates that a package adds, itself included.
fn crates(package: &str, features: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let out = Command::new(cargo)
        .current_dir(wavesim_tests::root())
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--package", package])
        .args(features)
        .output()
        .expect("cargo");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    text.lines().filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
}

#[test]
fn the_library_depends_on_no_terminal_or_thread_crates() {
    let library = crates("wavesim", &["--no-default-features"]);
    assert!(library.contains(&"wavesim-engine".to_string()), "{library:?}");
    let extra: Vec<_> =
        COMMAND_LINE.iter().filter(|name| library.iter().any(|found| found == *name)).collect();
    assert!(extra.is_empty(), "{extra:?} without features");
    // Guards against misspelt names: the command line depends on all of them.
    let binary = crates("wavesim", &[]);
    let missing: Vec<_> =
        COMMAND_LINE.iter().filter(|name| !binary.iter().any(|found| found == *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Handlers take minutes to compile: they depend on what they call only, so that an edit of lowering, of
/// effects, of hardware registers or of the scheduler compiles none again.
#[test]
fn handlers_depend_on_what_they_call_only() {
    for package in ["wavesim-handlers", "wavesim-handlers-portable"] {
        let mut own: Vec<_> = crates(package, &[]);
        own.retain(|name| name.starts_with("wavesim") && name != package);
        own.sort();
        own.dedup();
        assert_eq!(own, ["wavesim-isa", "wavesim-rt", "wavesim-state"], "{package}");
    }
}

/// Resolves `..` without a look at links: a link in a crate is a folder of its package.
fn resolved(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

/// The folders of the crates that are published, below `root`.
fn published_crates(root: &Path) -> Vec<PathBuf> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let folders = members.split('"').skip(1).step_by(2).map(|member| root.join(member));
    let published = |folder: &PathBuf| {
        !std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().contains("publish = false")
    };
    folders.filter(published).collect()
}

/// A package has the files of its crate only: what code includes from other folders is missing there.
#[test]
fn published_crates_include_files_of_their_own() {
    let root = std::fs::canonicalize(wavesim_tests::root()).unwrap();
    let (mut found, mut elsewhere) = (0, Vec::new());
    for package in published_crates(&root) {
        names_in_rust::walk(&package.join("src"), &mut |file, text| {
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let macros = ["include!(\"", "include_str!(\"", "include_bytes!(\""];
                let included = macros.iter().filter_map(|name| line.split(name).nth(1)?.split('"').next());
                for name in included {
                    found += 1;
                    let path = resolved(&file.with_file_name(name));
                    if !path.starts_with(&package) {
                        elsewhere.push(format!("{}: {name}", file.display()));
                    }
                }
            }
        });
    }
    assert!(found > 20, "{found} files");
    assert!(elsewhere.is_empty(), "{}", elsewhere.join("\n"));
}

/// Both licences require that each copy has their text. A crate's package is such a copy, and so are the wheel and
/// the source distribution.
#[test]
fn published_packages_have_the_texts_of_the_licences() {
    let root = std::fs::canonicalize(wavesim_tests::root()).unwrap();
    let mut packages = published_crates(&root);
    assert!(packages.len() > 40, "{packages:?}");
    packages.push(root.join("hosts/python"));
    let mut missing = Vec::new();
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        for package in &packages {
            let copy = package.join(name);
            if std::fs::read_to_string(&copy).ok().as_ref() != Some(&text) {
                missing.push(copy.display().to_string());
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
