//! The index by which pseudocode is loaded on demand: it finds every definition that a parsed file has.

use isa_spec::data;
use isa_spec::on_demand::headers::Headers;
use isa_spec::pcode::ast::Item;
use isa_spec::pcode::parse::parse_file;
use std::path::Path;

/// Adds the functions and instructions that a file defines, templates expanded.
fn collect(items: &[Item], functions: &mut Vec<String>, instructions: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Template(template) => collect(&template.items, functions, instructions),
            Item::Function(function) => functions.push(function.name.text.clone()),
            Item::Instruction(block) => {
                instructions.extend(block.names.iter().map(|name| name.text.to_uppercase()));
            }
        }
    }
}

#[test]
fn the_index_has_every_definition_of_the_pseudocode() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let none = root.join("none");
    let loaded = data::load(&[], &none, &none, &root.join("pseudocode"), root);
    let texts = loaded.pcode.iter().map(|file| loaded.sources.file(*file).text.as_str());
    let headers = Headers::of(texts);
    let mut count = 0;
    for (at, file) in loaded.pcode.iter().enumerate() {
        let (mut functions, mut instructions) = (Vec::new(), Vec::new());
        collect(&parse_file(&loaded.sources, *file).0.items, &mut functions, &mut instructions);
        count += functions.len() + instructions.len();
        for (names, index) in [(functions, &headers.functions), (instructions, &headers.instructions)] {
            for name in names {
                assert!(index.files(&name).any(|found| found == at), "{name}");
            }
        }
    }
    assert!(count > 1000, "{count}");
    // A builtin is no function of a file, and no file is parsed in search of it.
    for builtin in ["fma", "isNAN", "select_bytes"] {
        assert_eq!(headers.functions.files(builtin).count(), 0, "{builtin}");
    }
}

#[test]
fn headers_are_found_in_any_layout() {
    let files = [
        "function plain(x) {\n}\n// function comment(x)\nfunction\n  late (a, b) {}",
        "template T in u32, i32 {\n  function ${T}_sum(x) { }\n  function of$T(x) { }\n instruction S_ADD_$T, s_old { } }",
        "instruction V_A, V_B for cdna3 { D0.u32 = 1U; } functionless() instruction V_C{ }",
    ];
    let headers = Headers::of(files.into_iter());
    let functions = |name| headers.functions.files(name).collect::<Vec<_>>();
    let instructions = |name| headers.instructions.files(name).collect::<Vec<_>>();
    assert_eq!(functions("plain"), [0]);
    assert_eq!(functions("late"), [0]);
    assert_eq!(functions("comment"), [0; 0]);
    assert_eq!(functions("u32_sum"), [1]);
    assert_eq!(functions("ofu32"), [1]);
    assert_eq!(functions("sum"), [0; 0]);
    assert_eq!(functions("less"), [0; 0]);
    assert_eq!(instructions("S_ADD_U32"), [1]);
    assert_eq!(instructions("S_OLD"), [1]);
    assert_eq!(instructions("V_B"), [2]);
    assert_eq!(instructions("V_C"), [2]);
    assert_eq!(instructions("V_D"), [0; 0]);
}
