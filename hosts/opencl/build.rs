//! Makes the ICD's table out of the list of functions: an address for each, or that of a function that says that it is not supported.

use std::fmt::Write;
use std::path::Path;
use wavesim_opencl_api::{FUNCTIONS, State};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").unwrap_or_default();
    let (mut absent, mut table) = (String::new(), String::new());
    for function in FUNCTIONS {
        let name = function.name;
        match function.state {
            State::Done => {
                let _ = writeln!(table, "({name:?}, Some(Entry(functions::{name} as *const ()))),");
            }
            State::Absent(_) => {
                let _ = writeln!(
                    absent,
                    "extern \"C\" fn absent_{name}() -> core::ffi::c_int {{ crate::status::absent({name:?}) }}"
                );
                let _ = writeln!(table, "({name:?}, Some(Entry(absent_{name} as *const ()))),");
            }
            State::AbsentObject(status, _) => {
                let arguments = "_: usize, ".repeat(status);
                let _ = writeln!(
                    absent,
                    "#[allow(clippy::too_many_arguments, reason = \"the C API's\")]\nextern \"C\" fn \
                     absent_{name}({arguments}status: crate::ffi::Out<core::ffi::c_int>) -> usize {{ \
                     crate::status::absent_object({name:?}, &status) }}"
                );
                let _ = writeln!(table, "({name:?}, Some(Entry(absent_{name} as *const ()))),");
            }
            State::Other => {
                let _ = writeln!(table, "({name:?}, None),");
            }
        }
    }
    let count = FUNCTIONS.len();
    let text = format!("{absent}\nconst NAMED: [(&str, Option<Entry>); {count}] = [\n{table}];\n");
    let path = Path::new(&folder).join("table.rs");
    if let Err(e) = std::fs::write(&path, text) {
        println!("cargo::error={}: {e}", path.display());
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwavesim_opencl.so");
    }
}
