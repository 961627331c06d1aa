//! Tests of the commands by their output.

use super::*;
use clap::Parser;
use serde_json::Value;

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    args: IsaArgs,
}

/// Returns the output of `isa ARGS`, and the exit code.
fn isa(args: &str) -> (String, u8) {
    let cli = Cli::try_parse_from(std::iter::once("isa").chain(args.split(' '))).unwrap();
    let mut out = Vec::new();
    let code = run(&cli.args, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), code)
}

fn refused(args: &str) -> String {
    match Cli::try_parse_from(std::iter::once("isa").chain(args.split(' '))) {
        Ok(_) => panic!("accepted: {args}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn list_has_one_line_an_instruction() {
    for (arch, count) in [("rdna3", 1150), ("rdna3.5", 1228), ("rdna4", 1269)] {
        assert_eq!(isa(&format!("list --arch {arch}")).0.lines().count(), count);
        let (json, _) = isa(&format!("list --arch {arch} --json"));
        for line in json.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(["pseudocode", "builtin", "none"].contains(&value["semantics"].as_str().unwrap()));
            assert!(!value["encodings"].as_array().unwrap().is_empty());
        }
        assert_eq!(json.lines().count(), count);
    }
    let (json, _) = isa("list --mcpu gfx1100 --json");
    let line = json.lines().find(|l| l.contains("\"v_add_f32\"")).unwrap();
    let value: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&value["encodings"][0], &value["group"]), (&json!("ENC_VOP2"), &json!("VALU")));
    assert_eq!(value["semantics"], "pseudocode");
}

#[test]
fn list_by_group() {
    let (text, _) = isa("list --arch rdna3 --group smem");
    assert_eq!(text.lines().count(), 12);
    assert_eq!(isa("list --arch rdna3 --group valve").1, 2);
}

#[test]
fn show_in_any_case_and_with_suffix() {
    let (text, code) = isa("show v_cndmask_b32 --arch rdna3");
    assert_eq!(code, 0);
    for part in ["opcode 257 (0x101)", "S0      SRC0[40:32]", "Vcc     SRC2[58:50]", "D0.u32 ="] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert_eq!(isa("show V_CNDMASK_B32_e64 --arch rdna3").0, text);
    assert_eq!(isa("show v_cndmask_b32_e64_dpp --arch rdna3").0, text);
    let (json, _) = isa("show s_load_b64 --json");
    let value: Value = serde_json::from_str(&json).unwrap();
    let archs: Vec<&String> = value["archs"].as_object().unwrap().keys().collect();
    assert_eq!(archs, ["rdna3", "rdna3.5", "rdna4", "cdna5"]);
    assert_eq!(value["archs"]["rdna3"]["encodings"][0]["operands"][1]["role"], "SAddr");
}

#[cfg(feature = "lowering")]
#[test]
fn lane_loops_and_handlers_are_shown() {
    let (ir, code) = isa("ir v_add_f32_e64 --arch rdna3");
    assert_eq!(code, 0);
    for part in ["// rdna3 (pseudocode/vector/", "V_ADD_F32 (Lane)", "d0 = add.f32(s0, s1)", "modify exec"] {
        assert!(ir.contains(part), "no `{part}` in\n{ir}");
    }
    let (rust, _) = isa("rust v_add_f32 --arch rdna3");
    for part in ["rt::add_f32(m, s0, s1)", "_keep(cx", "_flush(cx", "_flush_slow(cx"] {
        assert!(rust.contains(part), "no `{part}` in\n{rust}");
    }
    let (scalar, _) = isa("rust s_add_u32 --arch rdna3");
    assert!(scalar.contains("_keep_general(cx"), "{scalar}");
    let (portable, _) = isa("rust v_add_f32 --arch rdna3 --portable");
    assert!(portable.contains("_base(cx") && !portable.contains("_keep(cx"), "{portable}");
    // An operation appears once, however many architectures share it.
    assert_eq!(isa("ir v_add_f32").0.matches("V_ADD_F32").count(), 1);
    assert_eq!(isa("rust v_ad_f32").1, 2);
}

#[test]
fn unknown_names() {
    assert_eq!(isa("show v_ad_f32").1, 2);
    let message = show(&Arch::ALL, "v_ad_f32", false).unwrap_err();
    assert!(message.contains("did you mean `v_add_f32`?"), "{message}");
    let message = show(&[Arch::Rdna3], "v_minimum_f32", false).unwrap_err();
    assert!(message.contains("(rdna4 and cdna5 have it)"), "{message}");
    assert!(refused("list --arch rdna5").contains("rdna3, rdna3.5, rdna4"));
    assert!(refused("list --mcpu gfx900").contains("gfx1200"));
    assert!(refused("list --arch rdna3 --mcpu gfx1100").contains("cannot be used with"));
}

#[test]
fn coverage_counts_every_instruction() {
    let (json, _) = isa("coverage --json");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "wavesim-coverage-1");
    for (arch, count) in [("rdna3", 1150), ("rdna3.5", 1228), ("rdna4", 1269)] {
        let groups = value["archs"][arch].as_object().unwrap();
        let sum: u64 = groups.values().map(|g| g["total"].as_u64().unwrap()).sum();
        assert_eq!(sum, count);
        for group in groups.values() {
            let missing = group["missing"].as_array().unwrap().len() as u64;
            assert_eq!(group["semantics"].as_u64().unwrap() + missing, group["total"].as_u64().unwrap());
        }
    }
    #[cfg(feature = "jit")]
    {
        let (text, _) = isa("coverage --arch rdna4 --engine jit");
        assert!(text.starts_with("rdna4") && text.contains("compiled") && text.contains("VALU"), "{text}");
    }
    let (text, _) = isa("coverage --arch rdna4");
    assert!(text.starts_with("rdna4") && text.contains("VALU") && !text.contains("rdna3"), "{text}");
}

#[test]
fn bodies_are_shown_without_their_indentation() {
    assert_eq!(
        describe::unindented("\n  if a then\n    b = 1;\n\n  endif\n"),
        ["if a then", "  b = 1;", "", "endif"]
    );
    assert_eq!(describe::unindented(" nop(); "), ["nop();"]);
    assert_eq!(describe::unindented(""), [""; 0]);
}

/// `isa jit` knows every instruction of an example, and shows the code of those that are compiled.
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
#[test]
fn compiled_instructions_of_an_example_are_shown() {
    let text = include_str!("../../../../examples/saxpy.rdna");
    let code = text.rsplit("---").next().unwrap_or_default();
    let names: BTreeSet<&str> = code
        .lines()
        .filter_map(|line| line.split([';', '#']).next()?.split_whitespace().next())
        .filter(|word| !word.ends_with(':') && ["s_", "v_", "global_"].iter().any(|p| word.starts_with(p)))
        .collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let (shown, code) = isa(&format!("jit {name} --arch rdna3"));
        assert_eq!(code, 0, "{name}: {shown}");
        let way = shown.lines().nth(2).unwrap_or_default();
        let is_shown = shown.contains("== function") && shown.contains("== host code");
        assert!(way == "nop" || way.starts_with("call: ") || is_shown, "{name}: {shown}");
    }
    assert_eq!(isa("jit v_nonsense --arch rdna3").1, 2);
}
