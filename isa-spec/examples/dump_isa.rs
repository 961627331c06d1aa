//! Loads ISA documents and prints their counts: `cargo run -p isa-spec --example dump_isa data/*.xml`.
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).expect("readable file");
        let start = std::time::Instant::now();
        match isa_spec::xml::load(&path, &text) {
            Ok(spec) => {
                let table = isa_spec::xml::to_tables(&spec, &path);
                println!(
                    "{path}: {} instructions, {} entries, {} signatures, {} encodings, {:?}",
                    table.instructions.len(),
                    table.entries.len(),
                    table.signatures.len(),
                    table.encodings.len(),
                    start.elapsed()
                );
            }
            Err((sources, errors)) => {
                for e in &errors {
                    println!("{}", isa_spec::diag::render(&sources, e));
                }
            }
        }
    }
}
