//! Exit codes and outputs.

use super::*;
use std::io::Write;

fn shell(script: &str, args: &[&str]) -> Ended {
    ended(
        Command::new("bash").args(["-c", script, WAVESIM]).args(args).stdin(Stdio::null()).output().unwrap(),
    )
}

/// A closed stream does not change the exit code.
#[test]
fn closed_streams_do_not_change_exit_codes() {
    let race = workspace("examples/broken/race.rdna");
    let collatz = workspace("examples/collatz.rdna");
    for (args, code) in [
        (&["check", &race][..], 1),
        (&["check", &race, "--json"], 1),
        (&["run", &collatz], 0),
        (&["isa", "list"], 0),
        (&["run", "no-such-file.rdna"], 2),
    ] {
        for script in [
            "\"$0\" \"$@\" | head -0; exit ${PIPESTATUS[0]}",
            "\"$0\" \"$@\" >&-",
            "\"$0\" \"$@\" 2>&-",
            "\"$0\" \"$@\" 2>&1 >/dev/null | head -c 0; exit ${PIPESTATUS[0]}",
            "\"$0\" \"$@\" >&- 2>&-",
        ] {
            assert_eq!(shell(script, args).code, code, "{script} {args:?}");
        }
        // A reader that ends before the first write.
        let e = shell("\"$0\" \"$@\" > >(exec true); code=$?; sleep 0.1; exit $code", args);
        assert_eq!(e.code, code, "{args:?}");
    }
    // A failing write is an error.
    let e = shell("\"$0\" \"$@\" > /dev/full", &["run", &collatz]);
    assert!(e.code == 2 && e.err.contains("standard output"), "{}: {}", e.code, e.err);
    assert_eq!(shell("\"$0\" \"$@\" 2> /dev/full", &["check", "no-such-file.rdna"]).code, 2);
}

#[test]
fn instructions_are_timed_by_name() {
    let e = wavesim(&["bench", "--operations=v_mov_b32", "--json"]);
    assert_eq!(e.code, 0, "{}", e.err);
    let json: serde_json::Value = serde_json::from_str(&e.out).unwrap();
    let found = json["operations"].as_array().unwrap();
    assert!(found.iter().any(|o| o["name"] == "v_mov_b32" && o["ratio"].as_f64().unwrap() > 0.0), "{json}");
    assert!(found.iter().all(|o| o["name"].as_str().unwrap().starts_with("v_mov_b32")), "{json}");
    let text = wavesim(&["bench", "--operations=s_endpgm"]).out;
    assert!(text.contains("s_endpgm") && text.contains("not run"), "{text}");
}

#[test]
fn filters_that_match_nothing_are_errors() {
    let dir = folder("nothing");
    let vectors = workspace("tests/filetests/vectors/rdna3");
    refused(&["conform", &vectors, "--filter", "v_no_such"], &["v_no_such", "none of"]);
    refused(&["conform", &vectors, "--arch", "rdna4"], &["rdna4"]);
    let vop2 = format!("{vectors}/vop2.jsonl.gz");
    let own = write(&dir, "own.pcode", "instruction V_NO_SUCH { D0.u32 = S0.u32; }");
    refused(
        &["pcode", "eval", "--instruction", "v_no_such", "--file", &own, "--vector", &vop2],
        &["V_NO_SUCH", "no record"],
    );
    refused(&["bench", "no_such"], &["no_such"]);
    refused(&["bench", "--operations=no_such", "--arch", "rdna3"], &["rdna3", "no_such"]);
    refused(&["bench", "--instructions", "--baseline", &own], &["own.pcode", "no counts"]);
    refused(&["conform", &vectors, "--disputed", &own], &["own.pcode", "```disputed"]);
    refused(&["isa", "show", "v_no_such"], &["v_no_such"]);
    let kernel = write(&dir, "add.rdna", ADD);
    refused(&["run", &kernel, "-D", "M=3"], &["`M`"]);
    let sized = write(
        &dir,
        "sized.rdna",
        ADD.replace("f32[32]", "f32[COUNT]").replace("---\nlocal", "---\nconst COUNT = 32\nlocal"),
    );
    refused(&["run", &sized, "-D", "COUMT=32"], &["`COUMT`", "did you mean `COUNT`?"]);
    assert_eq!(wavesim(&["run", &sized, "-D", "COUNT=64"]).code, 2, "arange has another length");
    let source = write(&dir, "k.s", assembly("v_mov_b32 v0, SIZE", 0, ""));
    let call = ["--grid", "1", "--block", "1"];
    assert_eq!(wavesim(&[&["run", &source, "-D", "SIZE=3"][..], &call].concat()).code, 0);
    refused(&[&["run", &source, "-D", "SIZE=3", "-D", "SISE=3"][..], &call].concat(), &["SISE"]);
    for (option, value) in [("--trace-wave", "1"), ("--trace-group", "0,1,0"), ("--trace-pc", "ff00..ff04")] {
        refused(&["run", &kernel, "--trace", "/dev/null", option, value], &[option]);
        // A filter without a trace.
        refused(&["run", &kernel, option, value], &["--trace"]);
    }
    let warps = workspace("examples/riscv_gpu/vector_add.as");
    refused(&["check", &warps, "--check", "race"], &["race", "mem"]);
}

#[test]
fn incomplete_launches_are_rejected() {
    let dir = folder("launches");
    let source = write(&dir, "k.s", assembly("", 16, ""));
    let run = |args: &[&str]| {
        [&["run", &source][..], args].concat().iter().map(|a| a.to_string()).collect::<Vec<_>>()
    };
    let refuse = |args: &[&str], parts: &[&str]| {
        refused(&run(args).iter().map(String::as_str).collect::<Vec<_>>(), parts);
    };
    refuse(&["--block", "32", "--arg", "u32[4]", "--arg", "u32[4]"], &["--grid"]);
    refuse(&["--grid", "1", "--arg", "u32[4]", "--arg", "u32[4]"], &["--block"]);
    refuse(&["--grid", "0", "--block", "1", "--arg", "u32[4]", "--arg", "u32[4]"], &["--grid", "positive"]);
    refuse(&["--grid", "1", "--block", "32"], &["arguments are missing", "16"]);
    refuse(&["--grid", "1", "--block", "32", "--arg", "u32[4]"], &["arguments are missing", "8"]);
    refuse(&["--grid", "1", "--block", "32", "--arg", "x: u32[4]", "--arg", "x: u32[4]"], &["two arguments"]);
    let full = run(&["--grid", "1", "--block", "32", "--arg", "u32[4]", "--arg", "u32[4]"]);
    assert_eq!(wavesim(&full.iter().map(String::as_str).collect::<Vec<_>>()).code, 0);
    let source = write(&dir, "m.s", assembly("", 8, &metadata("x")));
    let object = dir.join("k.co").display().to_string();
    assert_eq!(wavesim(&["asm", &source, "-o", &object]).code, 0);
    let launch = |grid: &str, more: &str| {
        write(
            &dir,
            "launch.json",
            format!(
                r#"{{"schema":"wavesim-launch-1","kernel":"k","grid":{grid},"block":[1,1,1],"code":{{"gfx1100":"k.co"}},"notes":["any"],
                "args":[{{"name":"x","kind":"buffer","dtype":"u8","shape":[4],"init":{{"zeros":true}}}}]{more}}}"#
            ),
        )
    };
    assert_eq!(wavesim(&["launch", &launch("[1,1,1]", "")]).code, 0);
    for command in ["launch", "check", "run"] {
        refused(&[command, &launch("[0,1,1]", "")], &["grid"]);
    }
    refused(&["launch", &launch("[1,1,1]", ",\"dynamic_lsd\":64")], &["dynamic_lsd", "`dynamic_lds`"]);
    let expected = r#","expected":[{"arg":"out","file":"no.npy","rtol":0,"atol":0}]"#;
    refused(&["launch", &launch("[1,1,1]", expected)], &["`out`"]);
    refused(&["launch", &launch("[1,1,1]", ",\"per_target\":{\"gfx1101\":{}}")], &["per_target gfx1101"]);
}

/// JSON output is one JSON value.
#[test]
fn json_with_statistics_is_one_value() {
    let collatz = workspace("examples/collatz.rdna");
    for more in [&["--stats"][..], &["--stats", "json"], &["--stats", "table", "--profile-lines"]] {
        let e = wavesim(&[&["run", &collatz, "--json"][..], more].concat());
        let value: serde_json::Value = serde_json::from_str(&e.out).unwrap_or_else(|_| panic!("{}", e.out));
        assert!(value["stats"].is_object() && value["outputs"].is_object(), "{value}");
    }
    refused(&["run", &collatz, "--json", "--trace", "-"], &["--trace"]);
}

#[test]
fn semantics_that_replace_nothing_are_an_error() {
    let dir = folder("semantics");
    let kernel = write(&dir, "nothing.rdna", NOTHING);
    let own = |text: &str| write(&dir, "own.pcode", text);
    let body = "{ D0.f32 = S0.f32 - S1.f32; }";
    refused(&["run", &kernel, "--semantics", &own("")], &["own.pcode", "defines no instruction of rdna3"]);
    refused(&["run", &kernel, "--semantics", &own(&format!("instruction V_NO_SUCH {body}"))], &["V_NO_SUCH"]);
    let other = own(&format!("instruction V_ADD_F32 for rdna4 {body}"));
    refused(&["run", &kernel, "--semantics", &other], &["defines no instruction of rdna3"]);
    refused(
        &["run", &kernel, "--semantics", &own("instruction V_ADD_F32 { D0.f32 = S9.f32; }")],
        &["error: ", "S9"],
    );
    let e = wavesim(&["run", &kernel, "--semantics", &own(&format!("instruction V_MUL_F32 {body}"))]);
    assert!(e.code == 0 && e.err.contains("note: "), "{}", e.err);
}

/// The binary needs no other files: it runs outside of the source tree, with an empty environment.
#[test]
fn the_binary_is_self_contained() {
    let dir = std::env::temp_dir().join(format!("wavesim-moved-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let binary = dir.join("wavesim");
    std::fs::copy(WAVESIM, &binary).unwrap();
    let kernel = "---\nlocal = 32, 1, 1\nout_y: f32[32]\n---\n  v_mov_b32 v1, 3.0\n  v_mov_b32 v2, 1.0\n  v_add_f32 v1, v1, v2\n  \
                  v_lshlrev_b32 v0, 2, v0\n  s_load_b64 s[6:7], s[3:4], 0\n  s_waitcnt lgkmcnt(0)\n  global_store_b32 v0, v1, s[6:7]\n  s_endpgm\n";
    write(&dir, "k.rdna", kernel);
    write(&dir, "own.pcode", "instruction V_ADD_F32 { D0.f32 = S0.f32 - S1.f32; }");
    // Namespaces hide the source tree. Without them, the binary is only run in another folder.
    let root = workspace("");
    let own_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, &root]);
        command
    };
    let hidden = "mount -t tmpfs none \"$0\"";
    let can_hide =
        !dir.starts_with(&root) && own_namespace(hidden).output().is_ok_and(|o| o.status.success());
    if !can_hide {
        println!("the source tree cannot be hidden here: no mount namespaces");
    }
    let run = |args: &[&str]| {
        let mut command = if can_hide {
            let mut command = own_namespace(&format!("{hidden} && exec env -i \"$@\""));
            command.arg(&binary);
            command
        } else {
            let mut command = Command::new(&binary);
            command.env_clear();
            command
        };
        ended(command.args(args).current_dir(&dir).output().unwrap())
    };
    assert!(run(&["run", "k.rdna"]).out.contains("4. 4. 4."));
    let e = run(&["run", "k.rdna", "--semantics", "own.pcode"]);
    assert!(e.code == 0 && e.out.contains("2. 2. 2.") && e.err.is_empty(), "{}{}", e.out, e.err);
    assert!(run(&["isa", "show", "v_add_f32"]).out.contains("D0.f32 = S0.f32 + S1.f32"));
    assert_eq!(run(&["pcode", "check", "own.pcode"]).code, 0);
    // Other tables have no effect at run time.
    let listed = |dir: &str| {
        let mut command = Command::new(&binary);
        ended(command.args(["isa", "list", "--arch", "rdna3"]).env("WAVESIM_ISA_DIR", dir).output().unwrap())
            .out
    };
    assert_eq!(listed("/no/such/folder"), listed(""));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// `wavesim hip --coverage` lists each function once, as text and as JSON.
#[test]
fn coverage_of_hip() {
    let text = wavesim(&["hip", "--coverage"]);
    assert_eq!(text.code, 0);
    let lines = |mark: &str| text.out.lines().filter(|l| l.starts_with(mark)).count();
    let (yes, no) = (lines("yes "), lines("no "));
    assert!(text.out.ends_with(&format!("{yes} of {} functions are supported\n", yes + no)), "{}", text.out);
    assert!(text.out.contains("yes  hip_4.2  hipMalloc\n"), "{}", text.out);
    let json = wavesim(&["hip", "--coverage", "--json"]);
    let first = json.out.lines().next().unwrap_or_default();
    assert!(first.starts_with("{\"name\":\"") && json.out.lines().count() == yes + no, "{first}");
    refused(&["hip"], &["wavesim hip --coverage"]);
}

/// Examples in the help can be copied: none is wider than a terminal, and the files that they name exist.
#[test]
fn examples_in_help_can_be_copied() {
    for command in [
        &[][..],
        &["run"],
        &["launch"],
        &["check"],
        &["debug"],
        &["dap"],
        &["lsp"],
        &["campaign"],
        &["tui"],
        &["asm"],
        &["disasm"],
        &["isa"],
        &["isa", "list"],
        &["isa", "show"],
        &["isa", "coverage"],
        &["pcode"],
        &["pcode", "check"],
        &["pcode", "eval"],
        &["conform"],
        &["bench"],
        &["hip"],
        &["completions"],
    ] {
        let e = wavesim(&[command, &["--help"]].concat());
        assert_eq!(e.code, 0);
        let examples = e.out.split_once("Example").map_or("", |(_, examples)| examples);
        let lines = examples.lines().filter(|l| l.starts_with("  wavesim "));
        for line in lines {
            assert!(line.len() <= 80, "{line}");
            for word in
                line.split_whitespace().filter(|w| w.starts_with("examples/") || w.starts_with("tests/"))
            {
                assert!(Path::new(&workspace("")).join(word).exists(), "{line}");
            }
        }
        let script = examples.lines().filter(|l| l.trim_start().starts_with("--")).collect::<Vec<_>>();
        assert!(script.iter().all(|l| l.len() <= 80), "{script:?}");
    }
}

#[test]
fn standard_input_is_bounded_and_read() {
    let mut child = Command::new(WAVESIM)
        .args(["run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(NOTHING.as_bytes()).unwrap();
    assert_eq!(ended(child.wait_with_output().unwrap()).code, 0);
    let e = shell("\"$0\" run - < /dev/zero", &[]);
    assert!(e.code == 2 && e.err.contains("standard input") && e.err.contains("128 MiB"), "{}", e.err);
    let good = write(&folder("piped"), "good.rdna", NOTHING);
    let e = shell("\"$0\" debug \"$1\" < /dev/zero", &[&good]);
    assert!(e.code == 2 && e.err.contains("standard input") && e.err.contains("1 MiB"), "{}", e.err);
}

/// A write that fails, or a process that ends while it writes, leaves the file that there was.
#[test]
fn failed_and_interrupted_writes_leave_the_old_file() {
    let dir = folder("failed_writes");
    let source = write(&dir, "k.s", assembly("s_endpgm", 8, ""));
    let collatz = workspace("examples/collatz.rdna");
    let race = workspace("examples/broken/race.rdna");
    let (program, data) =
        (workspace("examples/riscv_gpu/vector_add.as"), workspace("examples/riscv_gpu/vector_add.data"));
    let folder = dir.join("out");
    std::fs::create_dir_all(&folder).unwrap();
    let name = |name: &str| folder.join(name).display().to_string();
    let [object, trace, chrome, log, dump] =
        ["k.co", "trace.jsonl", "trace.json", "log.sarif", "dump.data"].map(name);
    let outputs = wavesim(&["run", &collatz, "--out-dir", &folder.display().to_string()]);
    assert_eq!(outputs.code, 0, "{}", outputs.err);
    let output = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path().display().to_string();
    let commands: [(&str, &[&str]); 6] = [
        (&object, &["asm", &source, "--mcpu", "gfx1100", "-o", &object]),
        (&trace, &["run", &collatz, "--trace", &trace]),
        (&chrome, &["run", &collatz, "--trace", &chrome, "--trace-format", "chrome"]),
        (&log, &["check", &race, "--sarif", &log]),
        (&dump, &["run", &program, &data, "--dump", &dump]),
        (&output, &["run", &collatz, "--out-dir", &folder.display().to_string()]),
    ];
    for (file, args) in commands {
        std::fs::write(file, "old").unwrap();
        let files = || std::fs::read_dir(&folder).unwrap().count();
        let before = files();
        // No file may have any bytes.
        let failed = shell("trap '' XFSZ; ulimit -f 0; \"$0\" \"$@\"", args);
        assert_eq!(failed.code, 2, "{args:?}: {}", failed.err);
        assert_eq!(std::fs::read(file).unwrap(), b"old", "{args:?}");
        assert_eq!(files(), before, "{args:?}: an incomplete file is left");
        // The signal of the limit ends the process.
        let ended = Command::new("bash")
            .args(["-c", "ulimit -c 0 -f 0; exec \"$0\" \"$@\"", WAVESIM])
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ended.status.code().is_none(), "{args:?}: {:?}", ended.status);
        assert_eq!(std::fs::read(file).unwrap(), b"old", "{args:?}");
        // Without the limit, the file is replaced.
        assert!(wavesim(args).code < 2, "{args:?}");
        assert_ne!(std::fs::read(file).unwrap(), b"old", "{args:?}");
    }
}

/// A report for programs is alone on standard output; `-q` also silences the outputs.
#[test]
fn reports_do_not_mix_with_outputs() {
    // A profile shows the source, which declares `out_y`, too.
    const OUTPUT: &str = "out_y: f32[256] =";
    let kernel = workspace("examples/saxpy.rdna");
    let is_json = |text: &str| {
        !text.is_empty() && text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    };
    for report in [&["--trace", "-"][..], &["--stats", "json"], &["--stats=json", "--profile-lines"]] {
        let e = wavesim(&[&["run", &kernel][..], report].concat());
        assert!(e.code == 0 && is_json(&e.out), "{report:?}: {}", e.out);
        assert!(e.err.contains(OUTPUT), "{report:?}: {}", e.err);
        let e = wavesim(&[&["run", &kernel, "-q"][..], report].concat());
        assert!(e.code == 0 && is_json(&e.out) && !e.err.contains(OUTPUT), "{report:?}: {}", e.err);
    }
    let e = wavesim(&["run", &kernel]);
    assert!(e.out.contains(OUTPUT) && e.err.is_empty(), "{}", e.err);
    let e = wavesim(&["run", &kernel, "-q"]);
    assert_eq!((e.code, e.out.as_str(), e.err.as_str()), (0, "", ""));
    refused(&["run", &kernel, "--trace", "-", "--stats", "json"], &["--stats json and --trace -"]);
    refused(&["run", &kernel, "--trace", "-", "--json"], &["--json and --trace -"]);
}

#[test]
fn misspelt_files_are_suggested() {
    let dir = folder("misspelt");
    write(&dir, "kernel.rdna", NOTHING);
    write(&dir, "launch.json", "{}");
    let path = |name: &str| dir.join(name).display().to_string();
    refused(&["run", &path("kernal.rdna")], &["did you mean", "kernel.rdna"]);
    refused(&["launch", &path("lunch.json")], &["did you mean", "launch.json"]);
    let far = wavesim(&["run", &path("something_else.co")]);
    assert!(far.code == 2 && !far.err.contains("did you mean"), "{}", far.err);
}
