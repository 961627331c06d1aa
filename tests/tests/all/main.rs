//! Tests of the whole workspace, except for file tests (`filetests`). A single binary, because linking takes
//! longer than running most of the tests.

mod allocations;
mod assembly;
mod assembly_files;
mod buffers;
mod checks_alone;
mod clusters;
mod commands;
mod compiled;
mod counting;
mod decimal_numbers;
mod delayed;
mod dependencies;
mod diff;
mod disassembly;
mod docs;
mod effects;
mod engines;
mod exactness;
mod examples;
mod explore;
mod explore_caches;
mod explore_delays;
mod explore_figure;
mod front_end_fuzz;
mod gws;
mod images;
mod isa_export;
mod launch;
mod launch_format;
mod llvm;
mod manual;
mod matrices;
mod module_circles;
mod names_in_rust;
mod observe;
mod program_fuzz;
mod program_scale;
mod proofs;
mod properties;
mod rays;
mod relocations;
mod resources;
mod reverse;
mod riscv_gpu;
mod rounding;
mod small_floats;
mod smt_export;
mod text_format;
mod threads;
mod tui;
mod whole_runs;
mod writers;

use std::path::{Path, PathBuf};

/// Returns the path of a temporary file for a module, after creating its directory.
fn temporary(module: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(module.replace("::", "."));
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder.join(name)
}
