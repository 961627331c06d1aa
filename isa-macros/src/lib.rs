//! Procedural macros that generate Rust from the ISA documents and the pseudocode. This crate is a shell
//! around libraries that ordinary tests and the command line also use: `isa-spec` loads, parses and checks,
//! `isa-emit` emits tokens. It finds the files and is the only crate that uses `proc_macro`. The macros take
//! no arguments, so nothing here parses Rust.

use isa_emit::{Host, report};
use isa_spec::data::{self, Loaded};
use proc_macro::TokenStream;
use std::path::{Path, PathBuf};

/// `tables!()` generates every architecture's tables and opcodes from `data/` of the workspace.
/// `WAVESIM_ISA_DIR`, at compile time, names another directory of XML files.
#[proc_macro]
pub fn tables(_input: TokenStream) -> TokenStream {
    let loaded = load();
    let errors = report::errors(&loaded.sources, &loaded.diagnostics);
    let body = isa_emit::tables(&loaded);
    quote::quote! { #errors #body }.into()
}

/// `operations!()` generates the enum of the operations that the workspace's pseudocode defines, and a table
/// of facts about each. Only this macro reports errors in pseudocode.
#[proc_macro]
pub fn operations(_input: TokenStream) -> TokenStream {
    let loaded = load();
    let (set, diagnostics) = isa_spec::canonical::load_set(&loaded.sources, &loaded.pcode, &loaded.tables);
    let errors = report::errors(&loaded.sources, &diagnostics);
    let body = isa_emit::operations(&loaded, &set);
    let unsupported = root().join("pseudocode/unsupported.txt").display().to_string();
    quote::quote! {
        #errors
        #body
        /// The contents of `pseudocode/unsupported.txt`.
        pub const UNSUPPORTED: &str = ::core::include_str!(#unsupported);
    }
    .into()
}

/// `handlers!()` generates the handlers of every operation for hosts with AVX2, and their tables.
#[proc_macro]
pub fn handlers(_input: TokenStream) -> TokenStream {
    handlers_for(Host::Avx2)
}

/// `portable_handlers!()` generates the handlers for any host and any float mode.
#[proc_macro]
pub fn portable_handlers(_input: TokenStream) -> TokenStream {
    handlers_for(Host::Any)
}

fn handlers_for(host: Host) -> TokenStream {
    let loaded = load();
    let (set, _) = isa_spec::canonical::load_set(&loaded.sources, &loaded.pcode, &loaded.tables);
    isa_emit::handlers(&loaded, &set, host).into()
}

/// The folder of `data/` and `pseudocode/`: the nearest ancestor of the invoking crate that has them, which is the
/// workspace. In a published package of this crate, they are part of it; in the workspace, links.
fn root() -> PathBuf {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let has_both =
        |folder: &&Path| folder.join("pseudocode/manual.pcode").is_file() && folder.join("data").is_dir();
    manifest.ancestors().find(has_both).unwrap_or(Path::new(env!("CARGO_MANIFEST_DIR"))).to_path_buf()
}

/// Loads the ISA's files.
fn load() -> Loaded {
    let root = root();
    let isa_dir = std::env::var_os("WAVESIM_ISA_DIR").map_or_else(|| root.join("data"), PathBuf::from);
    data::load(data::ALL, &isa_dir, &root.join("data/overlay"), &root.join("pseudocode"), &root)
}
