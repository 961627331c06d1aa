//! Golden files, which make changes of lowered and generated code visible in review: the lowered form and the
//! Rust emitted for hosts with vectors, of a dozen operations; and the lowered form of the small bodies in
//! `golden/bodies`, for constructs and limits that few operations have. `BLESS=1` rewrites the files of
//! `golden/`.

use crate::{LOADED, SET, shared_functions};
use isa_emit::Host;
use isa_lower::ir::Fast;
use isa_spec::canonical;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/golden")
}

fn compare(file: &str, text: &str) {
    wavesim_golden::check(&folder().join(file), text);
}

fn golden(name: &str) {
    let at = SET.operations.iter().position(|op| op.name == name).unwrap_or_else(|| panic!("no {name}"));
    let handlers = isa_lower::lower(&SET.operations[at]);
    let file = name.to_lowercase();
    compare(&format!("{file}.ir"), &handlers.to_string());
    // The number 0 keeps the output independent of instructions added before this one.
    let rust = syn::parse2(isa_emit::emit(0, &handlers, Host::Avx2)).expect("what is emitted parses");
    compare(&format!("{file}.rs"), &prettyplease::unparse(&rust));
}

/// The printed text parses to the emitted tokens.
#[test]
fn text_is_what_was_emitted() {
    for (number, op) in SET.operations.iter().enumerate() {
        let tokens = isa_emit::emit(number, &isa_lower::lower(op), Host::Avx2);
        let text = isa_emit::text(tokens.clone());
        let again: proc_macro2::TokenStream =
            text.parse().unwrap_or_else(|e| panic!("{}: {e}\n{text}", op.name));
        let same = syn::parse2::<syn::File>(again).ok() == syn::parse2::<syn::File>(tokens).ok();
        assert!(same, "{}\n{text}", op.name);
    }
}

/// Each `.pcode` file has bodies of RDNA 3 instructions; the `.ir` file next to it has their general handlers.
#[test]
fn small_bodies() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder().join("bodies")).expect("the folder of bodies") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "pcode") {
            names.push(path);
        }
    }
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a file of bodies");
        let mut sources = LOADED.sources.clone();
        let file = sources.add("bodies.pcode", text);
        let files: Vec<_> = shared_functions().chain([file]).collect();
        let (set, diagnostics) = canonical::load_set(&sources, &files, &LOADED.tables[..1]);
        let messages: Vec<String> = diagnostics.iter().map(|d| isa_spec::diag::render(&sources, d)).collect();
        assert!(messages.is_empty(), "{}: {}", path.display(), messages.concat());
        let lowered = |op| isa_lower::ir::Handlers { fast: Fast::None, ..isa_lower::lower(op) }.to_string();
        let lowered: Vec<String> = set.operations.iter().map(lowered).collect();
        wavesim_golden::check(&path.with_extension("ir"), &lowered.join("\n"));
    }
}

macro_rules! goldens {
    ($($(#[$what:meta])* $test:ident $name:literal;)*) => {
        $($(#[$what])* #[test] fn $test() { golden($name); })*
    };
}

goldens! {
    /// Scalar, with a fast handler for the scalar file.
    scalar "S_ADD_U32";
    /// Reads other lanes, once per wave.
    wave "V_READLANE_B32";
    /// Moves values between lanes, once per wave.
    lane_moves "DS_BPERMUTE_B32";
    /// Executed by the machine.
    control "S_BARRIER";
    /// Integer arithmetic per lane.
    lane "V_ADD3_U32";
    /// One flushing f32 operation.
    flushing "V_ADD_F32";
    /// A 16-bit result.
    half "V_ADD_F16";
    /// Two results in one register.
    packed "V_PK_ADD_F16";
    /// Packed operands whose halves fields select.
    chosen_dwords "V_PK_MUL_F32";
    /// Masks in and out.
    carry "V_ADD_CO_CI_U32";
    /// A mask as result.
    compare_mask "V_CMP_LT_I32";
    /// A builtin for which hosts have an instruction on eight lanes.
    byte_permute "V_PERM_B32";
    /// Coalesced, at a uniform base.
    global_load "GLOBAL_LOAD_B32";
    global_store "GLOBAL_STORE_B64";
    /// Computed addresses.
    flat_load "FLAT_LOAD_U8";
    /// Two accesses.
    lds_load_pair "DS_LOAD_2ADDR_B32";
    lds_store "DS_STORE_B8";
    /// A compare-exchange, lane by lane.
    atomic "GLOBAL_ATOMIC_ADD_U32";
    /// A loop.
    matrix "V_DOT4_I32_IU8";
}
