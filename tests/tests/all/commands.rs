//! Tests of `conform`, `pcode check` and `pcode eval` as scripts use them: arguments, output, exit code.

use clap::Parser;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wavesim::cli::{self, Cli};

/// Runs a command. Returns its output and exit code, or the error message if the command is rejected.
fn run(args: &[&str]) -> Result<(String, u8), String> {
    let cli = Cli::try_parse_from(std::iter::once("wavesim").chain(args.iter().copied()))
        .map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    let code = cli::dispatch(&cli.command, &mut out).map_err(|e| format!("{e:#}"))?;
    Ok((String::from_utf8(out).unwrap(), code))
}

fn json(args: &[&str]) -> (Value, u8) {
    let (text, code) = run(args).unwrap();
    (serde_json::from_str(&text).unwrap(), code)
}

fn vectors() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/vectors").display().to_string()
}

/// Writes a temporary file.
fn file(name: &str, text: &str) -> PathBuf {
    let path = crate::temporary(module_path!(), name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn conform_takes_a_folder_an_architecture_and_a_filter() {
    let folder = vectors();
    let (all, _) = json(&["conform", &folder, "--arch", "rdna4", "--filter", "^v_(add|mul)_f32$", "--json"]);
    assert_eq!(all["schema"], "wavesim-conform-1");
    assert!(all["passed"].as_u64().unwrap() > 5, "{all}");
    assert_eq!((&all["failed"], &all["unsupported"]), (&0.into(), &0.into()));
    let families: Vec<&String> = all["families"].as_object().unwrap().keys().collect();
    assert!(families.iter().any(|f| *f == "rdna4/vop2"), "{families:?}");
    let passed = |arch: &str| {
        json(&["conform", &folder, "--arch", arch, "--filter", "v_add_f32", "--jobs", "1", "--json"]).0["passed"].clone()
    };
    assert_eq!(passed("rdna3"), passed("rdna3.5"), "RDNA 3's serve RDNA 3.5");
}

#[test]
fn conform_reports_failures_and_counts_disputed_vectors_separately() {
    let folder = vectors();
    let swap = ["conform", &folder, "--filter", "s_cmov_b64"];
    let (text, code) = run(&[&swap[..], &["--no-disputed"]].concat()).unwrap();
    assert_eq!(code, 1);
    assert!(text.contains("expected 00000000 (0e0), got"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("rdna3/sop1 ")), "{text}");
    // The list in the folder of the vectors is used; families without failures have nothing to say.
    let (text, code) = run(&swap).unwrap();
    assert_eq!((code, text.lines().count()), (0, 2), "{text}");
    assert!(text.contains(" passed, 0 failed, 0 unsupported\n") && text.contains("disputed"), "{text}");
    assert!(run(&[&swap[..], &["--families"]].concat()).unwrap().0.contains("rdna3/sop1 "));
    // So it is for a single file.
    assert_eq!(run(&["conform", &format!("{folder}/rdna3/sop1.jsonl.gz")]).unwrap().1, 0);
    let list = format!("{folder}/disputed.md");
    let (value, code) = json(&[&swap[..], &["--disputed", &list, "--json"]].concat());
    assert_eq!((code, &value["failed"]), (0, &0.into()), "{value}");
    assert!(!value["disputed"].as_array().unwrap().is_empty());
    // A vector that passes must not be in the list of disputed ones.
    let ids = value["disputed"].as_array().unwrap();
    let other = file("other.md", "```disputed\nrdna3-vop2-101-0-00000\n```\n");
    let (value, code) = json(&["conform", &folder, "--disputed", other.to_str().unwrap(), "--json"]);
    assert_eq!(code, 1);
    assert!(value["failures"].as_array().unwrap().contains(&ids[0]));
}

#[test]
fn conform_rejects_invalid_input() {
    let folder = vectors();
    assert!(run(&["conform", &folder, "--arch", "rdna5"]).unwrap_err().contains("rdna3, rdna3.5, rdna4"));
    assert!(run(&["conform", &folder, "--filter", "v_("]).unwrap_err().contains("v_("));
    assert!(run(&["conform", &folder, "--jobs", "0"]).is_err());
    let broken = file("broken.jsonl", "{\"id\": 1}\n");
    assert!(run(&["conform", broken.to_str().unwrap()]).unwrap_err().contains("broken.jsonl:1"));
}

#[test]
fn pcode_check_reports_one_line_per_instruction() {
    let path = file(
        "check.pcode",
        "instruction V_ADD_F32 { D0.f32 = S0.f32 + S1.f32; }\n\
         instruction V_SUB_F32 { D0.f32 = S0.f32 - S7.f32; }\n\
         instruction MY_OWN { D0.u32 = S0.u32; }\n",
    );
    let (text, code) = run(&["pcode", "check", path.to_str().unwrap(), "--json"]).unwrap();
    assert_eq!(code, 1);
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let by_name =
        |name: &str| lines.iter().find(|l| l["instruction"] == name).unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&by_name("V_ADD_F32")["ok"], &by_name("V_ADD_F32")["shape"]), (&true.into(), &"lane".into()));
    assert_eq!(by_name("MY_OWN")["ok"], true);
    let wrong = by_name("V_SUB_F32");
    assert_eq!(wrong["ok"], false);
    let error = &wrong["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&2.into(), &43.into()), "{error}");
    assert!(error["file"].as_str().unwrap().ends_with("check.pcode"));
}

#[test]
fn pcode_eval_runs_a_body_on_vectors() {
    let folder = vectors();
    let vector = format!("{folder}/rdna3/vop2.jsonl.gz");
    let eval = |name: &str, body: &str| {
        let path = file(&format!("{name}.pcode"), body);
        let args = ["pcode", "eval", "--instruction", "v_add_f32", "--vector", &vector, "--json", "--file"];
        json(&[&args[..], &[path.to_str().unwrap()]].concat())
    };
    let (right, code) = eval("right", "instruction V_ADD_F32 { D0.f32 = S0.f32 + S1.f32; }");
    assert_eq!((code, &right["failed"]), (0, &0.into()), "{right}");
    assert!(right["passed"].as_u64().unwrap() > 0);
    let (wrong, code) = eval("wrong", "instruction V_ADD_F32 { D0.f32 = S0.f32 - S1.f32; }");
    assert_eq!(code, 1);
    assert!(wrong["failed"].as_u64().unwrap() > 0, "{wrong}");
    assert_eq!(wrong["schema"], "wavesim-conform-1");
}
