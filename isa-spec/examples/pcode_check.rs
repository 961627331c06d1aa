//! Checks `pseudocode/` against the ISA documents in `data/`: `cargo run -p isa-spec --example pcode_check [-- --missing]`.
use isa_spec::{canonical, data, diag};

fn main() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace").to_path_buf();
    let loaded = data::load(
        data::ALL,
        &root.join("data"),
        &root.join("data/overlay"),
        &root.join("pseudocode"),
        &root,
    );
    let start = std::time::Instant::now();
    let (set, mut diagnostics) = canonical::load_set(&loaded.sources, &loaded.pcode, &loaded.tables);
    diagnostics.splice(0..0, loaded.diagnostics.clone());
    for d in diagnostics.iter().take(40) {
        println!("{}\n", diag::render(&loaded.sources, d));
    }
    println!("{} operations, {} diagnostics, {:?}", set.operations.len(), diagnostics.len(), start.elapsed());
    for (table, ops) in loaded.tables.iter().zip(&set.by_arch) {
        let missing: Vec<&str> =
            table.instructions.iter().zip(ops).filter(|(_, o)| o.is_none()).map(|(i, _)| i.name).collect();
        println!("{}: {} of {} instructions", table.name, ops.len() - missing.len(), ops.len());
        if std::env::args().any(|a| a == "--missing") {
            println!("{}", missing.join(" "));
        }
    }
}
