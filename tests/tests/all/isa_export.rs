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
    // The page tells the size, to a tenth of it.
    let page = std::fs::read_to_string(root().join("docs/isa-export.md")).unwrap();
    let size =
        page.split("The document of all architectures has ").nth(1).and_then(|rest| rest.split(' ').next());
    let size: f64 = size.unwrap().parse().unwrap();
    assert!((text.len() as f64 / 1e6 / size - 1.0).abs() < 0.1, "{} bytes", text.len());
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
    let folder = root().join("tests/filetests/export");
    let text = export(&[&["--arch", "rdna3"], &names[..]].concat());
    wavesim_golden::check(&folder.join("rdna3.expected"), &text);
    // Of the C header, what the instructions themselves are.
    let text = export(&[&["--arch", "rdna3", "--format", "c"], &names[..]].concat());
    let at = text.find("\n// pseudocode").unwrap();
    wavesim_golden::check(&folder.join("rdna3.c.expected"), &text[at + 1..]);
}

/// The Python program agrees with conformance vectors.
#[test]
fn python_evaluates_the_export() {
    let file = std::env::temp_dir().join(format!("wavesim-isa-{}.json", std::process::id()));
    export(&["--arch", "rdna3", "-o", &file.to_string_lossy()]);
    let run = |program: &str, arguments: &[&str]| {
        let program: PathBuf = root().join("examples/python").join(program);
        Command::new("python3")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(program)
            .arg(&file)
            .args(arguments)
            .output()
    };
    let Ok(output) = run("isa_export.py", &["V_BFE_U32", "0x12345678", "8", "8"]) else {
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
    let output = run("isa_vectors.py", &[&vectors.to_string_lossy()]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let agree: Option<u32> = text.split(' ').next().and_then(|count| count.parse().ok());
    assert!(agree.is_some_and(|count| count >= 50), "{text}{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(file).unwrap();
}

/// The fenced blocks of a kind in `docs/exports.md`.
fn blocks(kind: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/exports.md")).unwrap();
    let fence = format!("```{kind}\n");
    page.split(&fence).skip(1).filter_map(|rest| Some(rest.split("```").next()?.to_string())).collect()
}

/// The commands of `docs/exports.md` print what the page says, and its example in C what it computes.
#[test]
fn documented_exports() {
    let sessions = blocks("text");
    let session = |start: &str| sessions.iter().find_map(|text| text.strip_prefix(start)?.split_once('\n'));
    let (arguments, expected) = session("$ wavesim isa export ").unwrap();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    assert_eq!(export(&arguments), expected);
    let folder = std::env::temp_dir().join(format!("wavesim-exports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    export(&["--format", "c", "--arch", "rdna3", "-o", &folder.join("rdna3.h").to_string_lossy()]);
    std::fs::write(folder.join("example.c"), &blocks("c")[0]).unwrap();
    match Command::new("cc").args(["example.c", "-lm"]).current_dir(&folder).output() {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let (_, expected) = session("$ cc example.c ").unwrap();
            let output = Command::new(folder.join("a.out")).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        }
        Err(_) => println!("skipped: cc is not installed"),
    }
    // The question in SMT-LIB has an answer.
    let question = sessions.iter().find(|text| text.starts_with("(declare-const")).unwrap();
    let file = folder.join("question.smt2");
    let functions = export(&["--format", "smtlib", "--arch", "rdna3", "v_mul_f32"]);
    std::fs::write(&file, functions + question).unwrap();
    match Command::new("z3").arg(&file).output() {
        Ok(done) => assert_eq!(String::from_utf8_lossy(&done.stdout), "sat\n"),
        Err(_) => println!("skipped: z3 is not installed"),
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
