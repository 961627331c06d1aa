//! Generates the ICD's dispatch table from the list of functions: for each function, the address of the
//! implementation or of a stub that reports that the function is not supported.

use std::fmt::Write;
use std::path::Path;
use wavesim_opencl_api::{FUNCTIONS, State};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").unwrap_or_default();
    let (mut stubs, mut table) = (String::new(), String::new());
    for function in FUNCTIONS {
        let name = function.name;
        match function.state {
            State::Implemented => {
                let _ = writeln!(table, "({name:?}, Some(Entry(functions::{name} as *const ()))),");
            }
            State::Unsupported(_) => {
                let _ = writeln!(
                    stubs,
                    "extern \"C\" fn unsupported_{name}() -> core::ffi::c_int {{ crate::status::unsupported({name:?}) }}"
                );
                let _ = writeln!(table, "({name:?}, Some(Entry(unsupported_{name} as *const ()))),");
            }
            State::UnsupportedObject(status, _) => {
                let arguments = "_: usize, ".repeat(status);
                let _ = writeln!(
                    stubs,
                    "#[allow(clippy::too_many_arguments, reason = \"the C API's\")]\nextern \"C\" fn \
                     unsupported_{name}({arguments}status: crate::ffi::Out<core::ffi::c_int>) -> usize {{ \
                     crate::status::unsupported_object({name:?}, &status) }}"
                );
                let _ = writeln!(table, "({name:?}, Some(Entry(unsupported_{name} as *const ()))),");
            }
            State::OtherSystem => {
                let _ = writeln!(table, "({name:?}, None),");
            }
        }
    }
    let count = FUNCTIONS.len();
    let text = format!("{stubs}\nconst NAMED: [(&str, Option<Entry>); {count}] = [\n{table}];\n");
    let path = Path::new(&folder).join("table.rs");
    if let Err(e) = std::fs::write(&path, text) {
        println!("cargo::error={}: {e}", path.display());
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwavesim_opencl.so");
    }
}
