//! Tests of the two steps from typed bodies to Rust: lowering and emission.

use isa_spec::canonical::{self, SemanticsSet};
use isa_spec::data::{self, Loaded};
use std::path::Path;
use std::sync::LazyLock;

mod divided;
mod golden;
mod passes;
mod wave_passes;

static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    data::load(data::ALL, &root.join("data"), &root.join("data/overlay"), &root.join("pseudocode"), &root)
});

static SET: LazyLock<SemanticsSet> =
    LazyLock::new(|| canonical::load_set(&LOADED.sources, &LOADED.pcode, &LOADED.tables).0);

/// The files of the records and functions that memory instructions use.
fn shared_functions() -> impl Iterator<Item = isa_spec::source::FileId> {
    let shared =
        |name: &str| name.ends_with("memory/address.pcode") || name.ends_with("memory/descriptor.pcode");
    LOADED.pcode.iter().copied().filter(move |file| shared(&LOADED.sources.file(*file).name))
}
