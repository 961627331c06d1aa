//! Parses pseudocode files and prints what is wrong: `cargo run -p isa-spec --example pcode_parse FILE…`.
use isa_spec::{diag, pcode::parse, source::SourceMap};

fn main() {
    for path in std::env::args().skip(1) {
        let mut sources = SourceMap::default();
        let file = sources.add(&path, std::fs::read_to_string(&path).expect("readable file"));
        let (tree, errors) = parse::parse_file(&sources, file);
        for e in errors.iter().take(5) {
            println!("{}", diag::render(&sources, e));
        }
        println!("{path}: {} items, {} errors", tree.items.len(), errors.len());
    }
}
