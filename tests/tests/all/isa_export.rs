//! `wavesim isa export`: its schema, its text for ten instructions, and the Python program that evaluates it.

use clap::Parser as _;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use wavesim::cli::{Cli, dispatch};
use wavesim_tests::root;
use wavesim_tests::schema::check;

fn export(arguments: &[&str]) -> String {
    let words = ["wavesim", "isa", "export"].iter().chain(arguments);
    let mut out = Vec::new();
    assert_eq!(dispatch(&Cli::parse_from(words).command, &mut out).unwrap(), 0, "{arguments:?}");
    String::from_utf8(out).unwrap()
}

#[test]
fn the_export_follows_its_schema() {
    let text = export(&[]);
    assert!(text.len() < 30_000_000, "{} bytes", text.len());
    let document: Value = serde_json::from_str(&text).unwrap();
    let schema = std::fs::read_to_string(root().join("docs/isa-export.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    check(&schema, &schema, &document).unwrap();
    // Every operation belongs to an instruction, and the numbers are those of the list.
    let operations = document["operations"].as_array().unwrap();
    let mut used = vec![false; operations.len()];
    for architecture in document["architectures"].as_array().unwrap() {
        for instruction in architecture["instructions"].as_array().unwrap() {
            match instruction["operation"].as_u64() {
                Some(number) => used[number as usize] = true,
                None => assert!(instruction["reason"].is_string(), "{instruction}"),
            }
        }
    }
    assert!(operations.len() > 2000 && used.iter().all(|used| *used), "{} operations", operations.len());
}

#[test]
fn ten_instructions() {
    let names = [
        "v_bfe_u32",
        "v_add_co_ci_u32",
        "v_fma_f32",
        "v_cmp_lt_i32",
        "v_readlane_b32",
        "s_add_u32",
        "s_cbranch_scc1",
        "ds_add_rtn_u32",
        "global_load_b64",
        "v_wmma_f32_16x16x16_f16",
    ];
    let text = export(&[&["--arch", "rdna3"], &names[..]].concat());
    wavesim_golden::check(&root().join("tests/filetests/export/rdna3.expected"), &text);
}

/// The Python program agrees with conformance vectors.
#[test]
fn python_evaluates_the_export() {
    let file = std::env::temp_dir().join(format!("wavesim-isa-{}.json", std::process::id()));
    export(&["--arch", "rdna3", "-o", &file.to_string_lossy()]);
    let run = |arguments: &[&str]| {
        let program: PathBuf = root().join("examples/python/isa_export.py");
        Command::new("python3").arg(program).arg(&file).args(arguments).output()
    };
    let Ok(output) = run(&["V_BFE_U32", "0x12345678", "8", "8"]) else {
        println!("skipped: python3 is not installed");
        return;
    };
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "0x56\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let vectors = root().join("tests/filetests/vectors/rdna3/vop3.jsonl.gz");
    let output = run(&["--vectors", &vectors.to_string_lossy()]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let agree: Option<u32> = text.split(' ').next().and_then(|count| count.parse().ok());
    assert!(agree.is_some_and(|count| count >= 50), "{text}{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(file).unwrap();
}
