//! Commands on assembly files and code objects: running, checking, and debugging by source line. The output
//! and the diagnostics of the assembler are tested with files (`tests/tests/filetests/asm.rs`).

use std::process::Command;
use wavesim_tests::{command_words, root, wavesim};

fn kernel() -> String {
    root().join("examples/scale.s").to_string_lossy().into_owned()
}

const ARGS: [&str; 10] = [
    "--grid",
    "2",
    "--block",
    "32",
    "--arg",
    "x: f32[50]=arange(50)",
    "--arg",
    "out_y: f32[50]",
    "--arg",
    "2.5",
];

fn command(name: &str, more: &[&str]) -> (u8, String) {
    let kernel = kernel();
    let mut args = vec![name, &kernel];
    args.extend(ARGS);
    args.extend(["--arg", "i32=50"]);
    args.extend(more);
    wavesim(&args)
}

#[test]
fn assembly_files_run() {
    for arch in ["rdna3", "rdna3.5"] {
        let (code, out) = command("run", &["--arch", arch, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
        assert_eq!(code, 0, "{out}");
        let y = json["outputs"]["out_y"]["data"].as_array().unwrap();
        assert!((0..50).all(|i| y[i] == 2.5 * i as f64), "{out}");
    }
    let (code, out) = command("launch", &["--stats"]);
    assert!(code == 0 && out.contains("out_y: f32[50] ="), "{out}");
    let (code, out) = command("run", &["--profile-lines"]);
    assert!(code == 0 && out.contains("global_store_b32"), "{out}");
    let (code, out) = command("run", &["--arch", "rdna4"]);
    assert!(code == 2, "its waits are RDNA 3's: {out}");
}

#[test]
fn assembly_files_are_checked_and_debugged() {
    let (code, out) = command("check", &["-q"]);
    assert!(code == 0 && out.starts_with("clean"), "{out}");
    let line = std::fs::read_to_string(kernel()).unwrap();
    let line = line.lines().position(|l| l.contains("v_mul_f32")).unwrap() + 1;
    let stop = format!("break {line}");
    let (code, out) =
        command("debug", &["--batch", "-e", &stop, "-e", "continue", "-e", "list", "-e", "p s2 as f32"]);
    assert!(code == 0 && out.contains(&format!("line {line}")), "{out}");
    assert!(out.contains("v_mul_f32"), "{out}");
    // Breakpoint on a label.
    let (code, out) = command("debug", &["--batch", "-e", "break done", "-e", "continue"]);
    assert!(code == 0 && out.contains("s_endpgm"), "{out}");
}

#[test]
fn faults_of_assembly_files_name_their_line() {
    let dir = std::env::temp_dir().join(format!("wavesim-fault-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let text = std::fs::read_to_string(kernel()).unwrap();
    let line = text.lines().position(|l| l.contains("global_store_b32")).unwrap() + 1;
    // Without its bounds check the kernel writes past the end.
    let path = dir.join("beyond.s");
    std::fs::write(&path, text.replace("s_and_saveexec_b32", "s_mov_b32")).unwrap();
    let path = path.to_string_lossy();
    let mut args = vec!["check", &path, "--json", "-q"];
    args.extend(ARGS);
    args.extend(["--arg", "i32=50"]);
    let (code, out) = wavesim(&args);
    assert!(code == 1 && out.contains("\"line\":"), "{out}");
    assert!(out.contains(&format!("\"line\":{line}")) || out.contains("global_load"), "{out}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn code_objects_are_run_checked_and_debugged() {
    let object = root().join("tests/filetests/code_objects/vadd/vadd.gfx1201.co");
    let object = object.to_string_lossy();
    let args = ["a: f32[4]=arange(4)", "b: f32[4]=repeat(0.5)", "out_c: f32[4]", "3"];
    let mut launch = vec!["--grid", "1", "--block", "64"];
    args.iter().for_each(|arg| launch.extend(["--arg", arg]));
    for (command, more, expected) in [
        ("run", &[][..], "out_c: f32[4] =\n[0.5 1.5 2.5 0. ]\n"),
        ("check", &["-q"], "clean"),
        ("debug", &["--batch", "-e", "break vadd", "-e", "continue"], "pc 0x"),
    ] {
        let mut all = vec![command, &object];
        all.extend(&launch);
        all.extend(more);
        let (code, out) = wavesim(&all);
        assert!(code == 0 && out.contains(expected), "{command}: {out}");
    }
}

/// Runs the command lines of `docs/commands.md` verbatim.
#[test]
fn documented_commands_run() {
    let page = std::fs::read_to_string(root().join("docs/commands.md")).unwrap();
    let object = std::env::temp_dir().join(format!("wavesim-axpy-{}.co", std::process::id()));
    // An OpenCL C file needs the functions of the language, too.
    let (mut compiled, mut run, mut skipped) = (false, 0, 0);
    for line in page.lines().filter_map(|l| l.strip_prefix("    ")) {
        let resolve = |word: String| match word.as_str() {
            "axpy.co" => object.to_string_lossy().into_owned(),
            word if word.starts_with("examples/") => root().join(word).to_string_lossy().into_owned(),
            _ => word,
        };
        let words: Vec<String> = command_words(line).into_iter().map(resolve).collect();
        if line.starts_with("clang-19 ") {
            let Ok(status) = Command::new(&words[0]).args(&words[1..]).status() else {
                println!("skipped: clang-19 is not installed");
                continue;
            };
            assert!(status.success(), "{line}");
            compiled = true;
        } else if line.starts_with("wavesim run examples/axpy.cl")
            || line.starts_with("wavesim run axpy.co") && compiled
        {
            let words: Vec<&str> = words[1..].iter().map(String::as_str).chain(["--json"]).collect();
            let (code, out) = wavesim(&words);
            if code == 2 && line.contains("axpy.cl") && out.contains("installed") {
                println!("skipped: {line}: {out}");
                skipped += 1;
                continue;
            }
            let json: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
            let y = json["outputs"]["out_y"]["data"].as_array().unwrap();
            assert!(code == 0 && y.len() == 100, "{out}");
            assert!((0..100).all(|i| y[i] == 1.0 + 0.5 * i as f64), "{out}");
            run += 1;
        } else if line.starts_with("wavesim run examples/scale.s") {
            let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let (code, out) = wavesim(&words);
            assert!(code == 0 && out.contains("122.5"), "{out}");
            run += 1;
        }
    }
    let _ = std::fs::remove_file(object);
    assert_eq!(run + skipped, 2 + usize::from(compiled), "docs/commands.md has no such lines");
}
