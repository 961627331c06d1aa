//! The macro that turns the ISA documents and the pseudocode into Rust. A shell: loading, parsing and checking are `isa-spec`'s;
//! this crate lowers typed semantics to tokens.

mod emit;
mod report;

use proc_macro::TokenStream;
use std::path::{Path, PathBuf};

/// `isa!()`: tables, operation enum, handlers and dispatch of every architecture, from `data/` and `pseudocode/` of the workspace.
/// `WAVESIM_ISA_DIR`, at compile time, names another directory of XML files.
#[proc_macro]
pub fn isa(_input: TokenStream) -> TokenStream {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
    let isa_dir = std::env::var_os("WAVESIM_ISA_DIR").map_or_else(|| root.join("data"), PathBuf::from);
    let loaded = isa_spec::data::load(
        isa_spec::data::ALL,
        &isa_dir,
        &root.join("data/overlay"),
        &root.join("pseudocode"),
        &root,
    );
    let (set, mut diagnostics) =
        isa_spec::canonical::load_set(&loaded.sources, &loaded.pcode, &loaded.tables);
    diagnostics.splice(0..0, loaded.diagnostics.iter().cloned());
    let errors = report::errors(&loaded.sources, &diagnostics);
    let body = emit::module(&loaded, &set);
    let tokens = quote::quote! { #errors #body };
    tokens.into()
}
