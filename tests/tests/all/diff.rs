//! `wavesim diff` with compiled kernels: variables of both sides, from debug information, and the compiler's passes.

use clap::Parser;
use std::path::{Path, PathBuf};
use wavesim::cli::{self, Cli};

/// Adds up products. With another `FACTOR`, it is a kernel with an error.
const SUM: &str = "\
#ifndef FACTOR
#define FACTOR 3
#endif
kernel void sum(global const int *x, global int *out_y, int n) {
  int i = get_global_id(0);
  int sum = 0;
  for (int k = 0; k < n; k++) {
    int term = x[(i + k) & 63] * FACTOR;
    sum += term;
  }
  int shifted = sum << 1;
  out_y[i] = shifted + i;
}
";

/// Overflows in one lane, which is undefined behaviour.
const OVERFLOW: &str = "\
kernel void overflow(global const int *x, global int *out_y) {
  int i = get_global_id(0);
  int v = x[i] + 2147483616;
  out_y[i] = v + 1 > v ? 1 : 2;
}
";

const LAUNCH: [&str; 10] = [
    "--grid",
    "2",
    "--block",
    "32",
    "--arg",
    "i32[64]=arange(64)",
    "--arg",
    "out_y:i32[64]",
    "--arg",
    "i32=5",
];

fn file(name: &str, text: &str) -> PathBuf {
    let path = crate::temporary(module_path!(), name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs `wavesim diff`. Returns its output and exit code; `None` without clang.
fn diff(a: &Path, b: &Path, options: &[&str]) -> Option<(String, u8)> {
    let (a, b) = (a.display().to_string(), b.display().to_string());
    let words = ["wavesim", "diff", &a, &b].into_iter().chain(options.iter().copied());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{e}"));
    let mut out = Vec::new();
    match cli::dispatch(&cli.command, &mut out) {
        Ok(code) => Some((String::from_utf8(out).unwrap(), code)),
        Err(e) if ["compiler", "libclc"].iter().any(|tool| format!("{e:#}").contains(tool)) => {
            println!("skipped: {e:#}");
            None
        }
        Err(e) => panic!("{e:#}"),
    }
}

/// Of a kernel that is compiled at two levels, with an error in one of them, the variable is shown that is wrong first.
#[test]
fn variables_part_where_the_error_is() {
    let path = file("sum.cl", SUM);
    let with = |options: &[&str]| {
        diff(&path, &path, &[&LAUNCH, &["--clang=-O0", "--clang=-g", "--clang-b=-g"][..], options].concat())
    };
    for level in ["--clang-b=-O0", "--clang-b=-O1", "--clang-b=-O3"] {
        let Some((text, code)) = with(&[level]) else { return };
        assert_eq!((&*text, code), ("equal: 1 output\n", 0), "{level}");
        let (text, code) = with(&[level, "--clang-b=-DFACTOR=4"]).unwrap();
        assert_eq!(code, 1);
        assert!(text.contains("  [0]: 60 in A, 80 in B\n"), "{text}");
        // At level 0, `term` is there, and wrong first. Otherwise, the product is part of an addition.
        let expected = if level.ends_with("O0") { ("term", 8) } else { ("sum", 9) };
        let variable = format!("the first variable with another value: {} of sum\n", expected.0);
        assert!(text.contains(&variable), "{level}: {text}");
        for (side, value) in [("A", 3), ("B", 4)] {
            let line = format!("  {side}: {value}, set at ");
            let line =
                text.lines().find(|known| known.starts_with(&line)).unwrap_or_else(|| panic!("{text}"));
            assert!(line.contains(&format!("sum.cl:{}: ", expected.1)), "{level}: {line}");
        }
        assert!(
            text.contains("  the same in both before: n = 5, i = 0, k = 0\n") || level.ends_with("O0"),
            "{text}"
        );
        assert!(text.contains(&format!("where {} comes from in A:", expected.0)), "{text}");
        assert!(text.contains("where out_y[0] comes from in A:"), "{text}");
    }
    // Without debug information, the stores are compared only.
    let (text, _) = diff(
        &path,
        &path,
        &[&LAUNCH[..], &["--clang=-g0", "--clang-b=-g0", "--clang-b=-DFACTOR=4"]].concat(),
    )
    .unwrap();
    assert!(
        !text.contains("variable") && text.contains("the first store with another value: out_y[0]\n"),
        "{text}"
    );
}

#[test]
fn two_architectures_are_compared() {
    let path = file("sum.cl", SUM);
    let archs = [
        "--arch",
        "rdna3",
        "--arch-b",
        "cdna3",
        "--clang=-O1",
        "--clang=-g",
        "--clang-b=-O1",
        "--clang-b=-g",
    ];
    let Some((text, code)) = diff(&path, &path, &[&LAUNCH[..], &archs].concat()) else { return };
    assert_eq!((&*text, code), ("equal: 1 output\n", 0));
    let (text, code) =
        diff(&path, &path, &[&LAUNCH[..], &archs, &["--clang-b=-DFACTOR=4", "--json"]].concat()).unwrap();
    assert_eq!(code, 1);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let variable = &json["first_variable"];
    assert_eq!(
        (&variable["variable"], &variable["a"]["value"], &variable["b"]["value"]),
        (&"sum".into(), &"3".into(), &"4".into())
    );
}

/// A text kernel has a launch of its own; the options are those of the compiled one.
#[test]
fn hand_written_and_compiled_kernels_are_compared() {
    let hand = file(
        "overflow.rdna",
        "---\nx: i32[32] = arange(32)\nout_y: i32[32]\nlocal = 32, 1, 1\nglobal = 1, 1, 1\nwave = 32\n---\n  \
         s_load_b64 s[4:5], s[3:4], 8\n  v_lshlrev_b32 v1, 2, v0\n  v_mov_b32 v2, 1\n  s_waitcnt lgkmcnt(0)\n  \
         global_store_b32 v1, v2, s[4:5]\n  s_endpgm\n",
    );
    let compiled = file("overflow.cl", OVERFLOW);
    let launch = ["--grid", "1", "--block", "32", "--arg", "x:i32[32]=arange(32)", "--arg", "out_y:i32[32]"];
    for (level, code) in [("--clang=-O3", 0), ("--clang=-O0", 1)] {
        let Some((text, found)) = diff(&hand, &compiled, &[&launch[..], &[level]].concat()) else { return };
        assert_eq!(found, code, "{text}");
        if code == 1 {
            assert!(text.contains("out_y: 1 of 32 elements differ\n  [31]: 1 in A, 2 in B\n"), "{text}");
            assert!(text.contains("  A: 1, stored at line 12: "), "{text}");
            assert!(text.contains("overflow.cl:4: "), "{text}");
        }
    }
}

/// The pass that makes use of undefined behaviour is found.
#[test]
fn passes_are_bisected() {
    let path = file("overflow.cl", OVERFLOW);
    let launch = ["--grid", "1", "--block", "32", "--arg", "i32[32]=arange(32)", "--arg", "out_y:i32[32]"];
    let options = ["--clang=-O0", "--clang-b=-O3", "--bisect-passes"];
    let Some((text, code)) = diff(&path, &path, &[&launch[..], &options].concat()) else { return };
    assert_eq!(code, 1, "{text}");
    let first = text.lines().find_map(|line| line.strip_prefix("first pass after which they differ: "));
    let (number, pass) = first.and_then(|first| first.split_once(", ")).unwrap_or_else(|| panic!("{text}"));
    let number: usize = number.parse().unwrap();
    assert!(pass.ends_with("on overflow"), "{pass}");
    // One pass fewer leaves the results as they are.
    let limit = format!("--clang-b=-opt-bisect-limit={}", number - 1);
    let one_fewer = ["--clang=-O0", "--clang-b=-O3", "--clang-b=-mllvm", &limit];
    let (text, _) = diff(&path, &path, &[&launch[..], &one_fewer].concat()).unwrap();
    assert_eq!(text, "equal: 1 output\n");
    // A code object has no passes.
    let hand = file("none.rdna", "---\nout_y: i32[32]\n---\n  s_endpgm\n");
    let cli = Cli::try_parse_from([
        "wavesim",
        "diff",
        &hand.display().to_string(),
        &hand.display().to_string(),
        "--bisect-passes",
    ]);
    let error = cli::dispatch(&cli.unwrap().command, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("--bisect-passes needs a source file"), "{error:#}");
}
