//! Golden files of a dozen operations: the lowered form and the Rust emitted for hosts with vectors, which
//! make changes of either visible in review. `BLESS=1` rewrites the files of `golden/`.

use crate::SET;
use isa_emit::Host;
use std::path::Path;

fn compare(file: &str, text: &str) {
    wavesim_golden::check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/golden").join(file), text);
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
