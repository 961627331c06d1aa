//! The index by which pseudocode is loaded on demand: it finds every definition that a parsed file has.

use isa_spec::data;
use isa_spec::on_demand::headers::Headers;
use isa_spec::pcode::ast::Item;
use isa_spec::pcode::parse::{parse_file, parse_instruction, parse_items_in};
use isa_spec::pcode::token::lex;
use std::path::Path;

/// Adds the functions, records and instructions that a file defines, templates expanded.
fn collect(
    items: &[Item],
    functions: &mut Vec<String>,
    records: &mut Vec<String>,
    instructions: &mut Vec<String>,
) {
    for item in items {
        match item {
            Item::Template(template) => collect(&template.items, functions, records, instructions),
            Item::Function(function) => functions.push(function.name.text.clone()),
            Item::Record(record) => records.push(record.name.text.clone()),
            Item::Instruction(block) => {
                instructions.extend(block.names.iter().map(|name| name.text.to_uppercase()));
            }
        }
    }
}

/// Returns the blocks of an instruction, with the number of blocks in total.
fn blocks(items: &[Item], name: &str, found: &mut Vec<String>) -> usize {
    let mut count = 0;
    for item in items {
        match item {
            Item::Template(template) => count += blocks(&template.items, name, found),
            Item::Function(_) | Item::Record(_) => {}
            Item::Instruction(block) => {
                count += 1;
                if block.names.iter().any(|own| own.text.to_uppercase() == name) {
                    found.push(format!("{block:?}"));
                }
            }
        }
    }
    count
}

#[test]
fn the_index_has_every_definition_of_the_pseudocode() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let none = root.join("none");
    let loaded = data::load(&[], &none, &none, &root.join("pseudocode"), root);
    let texts = loaded.pcode.iter().map(|file| loaded.sources.file(*file).text.as_str());
    let headers = Headers::of(texts);
    let (mut count, mut expanded, mut expected_blocks) = (0, 0, 0);
    for (at, file) in loaded.pcode.iter().enumerate() {
        let parsed = parse_file(&loaded.sources, *file).0.items;
        let in_file: Vec<usize> =
            (0..headers.items.len()).filter(|item| headers.items[*item].file == at).collect();
        assert_eq!(in_file.len(), parsed.len(), "{}", loaded.sources.file(*file).name);
        for (item, expected) in in_file.into_iter().zip(parsed) {
            let range = headers.items[item].range.clone();
            let (alone, errors) = parse_items_in(&loaded.sources, *file, range.clone());
            assert!(errors.is_empty());
            assert_eq!(format!("{alone:?}"), format!("{:?}", [&expected]));
            let [mut functions, mut records, mut instructions] = [(); 3].map(|()| Vec::new());
            collect(std::slice::from_ref(&expected), &mut functions, &mut records, &mut instructions);
            count += functions.len() + records.len() + instructions.len();
            let text = &loaded.sources.file(*file).text[range.clone()];
            let tokens = lex(*file, text, range.start).0;
            // For one instruction, the rows of templates that do not define it are left out.
            for name in &instructions {
                let one = parse_instruction(&loaded.sources, *file, &tokens, name);
                let [mut found, mut all] = [(); 2].map(|()| Vec::new());
                expanded += blocks(&one, name, &mut found);
                expected_blocks += blocks(std::slice::from_ref(&expected), name, &mut all);
                assert_eq!(found, all, "{name}");
            }
            for (names, index) in [
                (functions, &headers.functions),
                (records, &headers.records),
                (instructions, &headers.instructions),
            ] {
                for name in names {
                    assert!(index.items(&name).any(|found| found == item), "{name}");
                }
            }
        }
    }
    assert!(count > 1000, "{count}");
    assert!(expanded < expected_blocks / 4, "{expanded} of {expected_blocks}");
    // A builtin is no function of a file, and nothing is parsed in search of it.
    for builtin in ["fma", "isNAN", "select_bytes"] {
        assert_eq!(headers.functions.items(builtin).count(), 0, "{builtin}");
    }
}

#[test]
fn headers_are_found_in_any_layout() {
    let files = [
        "function plain(x) {\n}\n// function comment(x) {\nfunction\n  late (a, b) {}",
        "template T in u32, (\"}\") {\n  function ${T}_sum(x) { }\n  function of$T(x) { }\n instruction S_ADD_$T, s_old { } }",
        "instruction V_A, V_B for cdna3 { D0.u32 = {1U, 2U}; } // {\n function functionless() {} instruction V_C{ }",
    ];
    let headers = Headers::of(files.into_iter());
    let texts: Vec<&str> = headers.items.iter().map(|item| &files[item.file][item.range.clone()]).collect();
    assert_eq!(texts[0], "function plain(x) {\n}");
    assert_eq!(texts[1], "function\n  late (a, b) {}");
    assert_eq!(texts[2], files[1]);
    assert_eq!(texts[3], "instruction V_A, V_B for cdna3 { D0.u32 = {1U, 2U}; }");
    assert_eq!(texts[4..], ["function functionless() {}", "instruction V_C{ }"]);
    let functions = |name| headers.functions.items(name).collect::<Vec<_>>();
    let instructions = |name| headers.instructions.items(name).collect::<Vec<_>>();
    assert_eq!(functions("plain"), [0]);
    assert_eq!(functions("late"), [1]);
    assert_eq!(functions("comment"), [0; 0]);
    assert_eq!(functions("u32_sum"), [2]);
    assert_eq!(functions("ofu32"), [2]);
    assert_eq!(functions("sum"), [0; 0]);
    assert_eq!(functions("less"), [0; 0]);
    assert_eq!(instructions("S_ADD_U32"), [2]);
    assert_eq!(instructions("S_OLD"), [2]);
    assert_eq!(instructions("V_B"), [3]);
    assert_eq!(instructions("V_C"), [5]);
    assert_eq!(instructions("V_D"), [0; 0]);
}
