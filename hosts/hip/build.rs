//! Generates the exports of the library: for each function of the table, a versioned symbol that jumps to the
//! implementation or to a stub that reports that the function is not supported.

use std::fmt::Write;
use std::path::Path;
use wavesim_hip_api::{FUNCTIONS, PROFILING, PROFILING_VERSIONS, State, VERSIONS};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&folder);

    let mut script = String::new();
    let mut previous = String::new();
    for version in VERSIONS {
        let names = FUNCTIONS.iter().filter(|f| f.version == *version);
        let names: String = names.map(|f| format!(" {};", f.name)).collect();
        let names = if names.is_empty() { names } else { format!(" global:{names}") };
        let _ = writeln!(script, "{version} {{{names} }}{previous};");
        previous = format!(" {version}");
    }
    for version in PROFILING_VERSIONS {
        let names = PROFILING.iter().filter(|f| f.version == version);
        let names: String = names.map(|f| format!(" {};", f.name)).collect();
        let _ = writeln!(script, "{version} {{ global:{names} }};");
    }
    let map = folder.join("amdhip64.map");
    write(&map, &script);

    let mut exports = String::new();
    for function in FUNCTIONS.iter().chain(PROFILING) {
        let name = function.name;
        let target = match function.state {
            State::Implemented => format!("crate::functions::{name}"),
            State::Alias(other) => format!("crate::functions::{other}"),
            State::Unsupported(_) => unsupported_stub(&mut exports, name, "core::ffi::c_int", "unsupported"),
            State::UnsupportedText(_) => {
                unsupported_stub(&mut exports, name, "*const core::ffi::c_char", "unsupported_text")
            }
        };
        let _ = writeln!(exports, "export!({name:?}, {target});");
    }
    write(&folder.join("exports.rs"), &exports);

    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", map.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so.6");
    }
}

/// Emits a stub for an unsupported function with the given return type. Returns the stub's name.
fn unsupported_stub(exports: &mut String, name: &str, returns: &str, body: &str) -> String {
    let _ = writeln!(
        exports,
        "extern \"C\" fn unsupported_{name}() -> {returns} {{ crate::status::{body}({name:?}) }}"
    );
    format!("unsupported_{name}")
}

fn write(path: &Path, text: &str) {
    if let Err(e) = std::fs::write(path, text) {
        println!("cargo::error={}: {e}", path.display());
    }
}
