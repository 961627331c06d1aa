//! Tests of the command with bad and hostile inputs, and of its messages.
//!
//! - [`bad_files`]: bad files for every command, and names that point outside of a folder
//! - [`bombs`]: small inputs that would require excessive resources
//! - [`relocatable`]: files that refer to symbols of each other
//! - [`reports`]: several files in one command, reports for build servers, campaigns
//! - [`source`]: source files, which clang compiles
//! - [`outcome`]: exit codes, outputs, filters that match nothing, and the binary in a different location
//!   than where it was built

mod bad_files;
mod bombs;
mod outcome;
mod relocatable;
mod reports;
mod source;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const WAVESIM: &str = env!("CARGO_BIN_EXE_wavesim");

/// Creates a new folder for one test.
fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command_line").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn write(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

fn workspace(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).canonicalize().unwrap().display().to_string()
}

/// Exit code, standard output, standard error.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn ended(output: Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    Ended { code: output.status.code().unwrap_or_else(|| panic!("{:?}: {err}", output.status)), out, err }
}

fn wavesim(args: &[&str]) -> Ended {
    ended(Command::new(WAVESIM).args(args).stdin(Stdio::null()).output().unwrap())
}

/// Asserts exit code 2 and a message that contains all of `parts`.
fn refused(args: &[&str], parts: &[&str]) {
    let e = wavesim(args);
    assert_eq!(e.code, 2, "{args:?}: {}{}", e.out, e.err);
    for part in parts {
        assert!(e.err.contains(part), "{args:?}: no `{part}` in: {}", e.err);
    }
    assert!(!e.err.contains("error: error"), "{}", e.err);
}

const ADD: &str = "\
---
local = 32, 1, 1
x: f32[32] = arange(32)
out_y: f32[32]
---
  v_lshlrev_b32 v1, 2, v0
  global_load_b32 v2, v1, s[3:4]
  s_waitcnt vmcnt(0)
  s_endpgm
";

/// A kernel that reads and writes nothing.
const NOTHING: &str =
    "---\nlocal = 32, 1, 1\nout_y: u32[4] = arange(4)\n---\n  v_add_f32 v1, v2, v3\n  s_endpgm\n";

/// Returns an assembly file with one kernel, with this `kernarg` size and this metadata.
fn assembly(body: &str, kernarg: u32, metadata: &str) -> String {
    format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{body}\n  s_endpgm\n\
         .rodata\n.p2align 6\n.amdhsa_kernel k\n  .amdhsa_next_free_vgpr 8\n  .amdhsa_next_free_sgpr 16\n\
         .amdhsa_kernarg_size {kernarg}\n  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n.end_amdhsa_kernel\n{metadata}\n"
    )
}

/// Returns metadata of kernel `k` with one buffer of this name.
fn metadata(argument: &str) -> String {
    format!(
        ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n    .args:\n      - .name: \"{argument}\"\n        \
         .offset: 0\n        .size: 8\n        .value_kind: global_buffer\n        .address_space: global\n    .kernarg_segment_size: 8\n    \
         .kernarg_segment_align: 8\n    .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    \
         .sgpr_count: 16\n    .vgpr_count: 8\n    .max_flat_workgroup_size: 1024\n...\n.end_amdgpu_metadata\n"
    )
}
