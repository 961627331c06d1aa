//! The command with bad and hostile inputs: bad files for every command, names that leave a folder, closed streams, filters
//! that match nothing, and the binary in another place than where it was built.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const WAVESIM: &str = env!("CARGO_BIN_EXE_wavesim");

/// A new folder for one test.
fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command_line").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn write(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

fn workspace(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).canonicalize().unwrap().display().to_string()
}

/// Exit code, standard output, standard error.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn ended(output: Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    Ended { code: output.status.code().unwrap_or_else(|| panic!("{:?}: {err}", output.status)), out, err }
}

fn wavesim(args: &[&str]) -> Ended {
    ended(Command::new(WAVESIM).args(args).stdin(Stdio::null()).output().unwrap())
}

/// Exit code 2 and a message with all of `parts`.
fn refused(args: &[&str], parts: &[&str]) {
    let e = wavesim(args);
    assert_eq!(e.code, 2, "{args:?}: {}{}", e.out, e.err);
    for part in parts {
        assert!(e.err.contains(part), "{args:?}: no `{part}` in: {}", e.err);
    }
    assert!(!e.err.contains("error: error"), "{}", e.err);
}

const ADD: &str = "\
---
local = 32, 1, 1
x: f32[32] = arange(32)
out_y: f32[32]
---
  v_lshlrev_b32 v1, 2, v0
  global_load_b32 v2, v1, s[3:4]
  s_waitcnt vmcnt(0)
  s_endpgm
";

/// A kernel that reads and writes nothing.
const NOTHING: &str =
    "---\nlocal = 32, 1, 1\nout_y: u32[4] = arange(4)\n---\n  v_add_f32 v1, v2, v3\n  s_endpgm\n";

/// An assembly file with one kernel, with this `kernarg` size and this metadata.
fn assembly(body: &str, kernarg: u32, metadata: &str) -> String {
    format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{body}\n  s_endpgm\n\
         .rodata\n.p2align 6\n.amdhsa_kernel k\n  .amdhsa_next_free_vgpr 8\n  .amdhsa_next_free_sgpr 16\n\
         .amdhsa_kernarg_size {kernarg}\n  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n.end_amdhsa_kernel\n{metadata}\n"
    )
}

/// Metadata of kernel `k` with one buffer of this name.
fn metadata(argument: &str) -> String {
    format!(
        ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n    .args:\n      - .name: \"{argument}\"\n        \
         .offset: 0\n        .size: 8\n        .value_kind: global_buffer\n        .address_space: global\n    .kernarg_segment_size: 8\n    \
         .kernarg_segment_align: 8\n    .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    \
         .sgpr_count: 16\n    .vgpr_count: 8\n    .max_flat_workgroup_size: 1024\n...\n.end_amdgpu_metadata\n"
    )
}

/// Every command with every kind of bad file: exit code 2, a message that names the file, no panic.
#[test]
fn bad_files_are_errors_in_every_command() {
    let dir = folder("bad_files");
    std::fs::create_dir(dir.join("directory")).unwrap();
    let vectors = workspace("tests/filetests/vectors/rdna3/vop2.jsonl.gz");
    let good = write(&dir, "good.rdna", NOTHING);
    let commands: Vec<(&str, Vec<&str>)> = vec![
        ("rdna", vec!["run", "FILE"]),
        ("json", vec!["launch", "FILE"]),
        ("co", vec!["launch", "FILE", "--grid", "1", "--block", "1"]),
        ("s", vec!["check", "FILE", "--grid", "1", "--block", "1"]),
        ("rdna", vec!["debug", "--batch", "FILE"]),
        ("s", vec!["asm", "FILE"]),
        ("as", vec!["run", "FILE"]),
        ("hex", vec!["disasm", "--hex", "FILE"]),
        ("jsonl", vec!["conform", "FILE"]),
        ("pcode", vec!["pcode", "check", "FILE"]),
        (
            "pcode",
            vec!["pcode", "eval", "--instruction", "v_add_f32", "--file", "FILE", "--vector", &vectors],
        ),
        ("pcode", vec!["run", &good, "--semantics", "FILE"]),
        ("txt", vec!["debug", &good, "--batch", "-x", "FILE"]),
    ];
    let contents: [(&str, &[u8]); 3] =
        [("bytes", &[0xff; 4096]), ("truncated", b"\x7fELF\x02\x01\x01"), ("packed", b"CCOB\x03\x00")];
    std::thread::scope(|scope| {
        for (extension, args) in &commands {
            let dir = &dir;
            scope.spawn(move || {
                let with = |path: &str| -> Ended {
                    wavesim(&args.iter().map(|a| if *a == "FILE" { path } else { a }).collect::<Vec<_>>())
                };
                let check = |path: &str| {
                    let e = with(path);
                    // `pcode check` examines text: errors in it are findings.
                    let findings =
                        args[1] == "check" && (path.contains("truncated") || path.contains("packed"));
                    assert_eq!(e.code, if findings { 1 } else { 2 }, "{args:?} {path}: {}{}", e.out, e.err);
                    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
                    assert!(e.err.contains(name), "{args:?}: {name} is not in: {}", e.err);
                    assert!(!e.err.contains("error: error"), "{}", e.err);
                };
                check(&format!("{}/missing.{extension}", dir.display()));
                check(&dir.join("directory").display().to_string());
                // Text is a debugger script, whose commands fail.
                let is_script = *extension == "txt";
                for (name, content) in contents.iter().take(if is_script { 1 } else { contents.len() }) {
                    check(&write(dir, &format!("{name}-{}-{}.{extension}", args[0], args.len()), content));
                }
                // A file without an end.
                let started = Instant::now();
                check("/dev/zero");
                assert!(started.elapsed() < Duration::from_secs(20), "{args:?}");
            });
        }
    });
}

/// A file of another kind: the message says what to do with it.
#[test]
fn files_of_other_kinds() {
    refused(&["asm", &workspace("examples/vector_add.rdna")], &["this is a text kernel", "`wavesim run`"]);
    refused(&["run", &workspace("examples/axpy.cl")], &["this is source code", "clang"]);
    refused(&["check", &workspace("pseudocode/vector/logic.pcode")], &["`wavesim pcode check`"]);
    refused(&["disasm", &workspace("examples/scale.s")], &["this is text", "`wavesim asm`"]);
}

/// Commands that read kernels reject empty files.
#[test]
fn empty_files() {
    let dir = folder("empty");
    for (name, args) in [
        ("empty.rdna", &["run"][..]),
        ("empty.json", &["launch"]),
        ("empty.s", &["run", "--grid", "1", "--block", "1"]),
        ("empty.co", &["launch", "--grid", "1", "--block", "1"]),
        ("empty.jsonl", &["conform"]),
    ] {
        let path = write(&dir, name, "");
        refused(&[args, &[&path]].concat(), &[]);
    }
}

#[test]
fn names_of_outputs_stay_in_the_folder() {
    let dir = folder("traversal");
    std::fs::create_dir(dir.join("out")).unwrap();
    let out = dir.join("out").display().to_string();
    let source = write(&dir, "k.s", assembly("", 8, &metadata("./../evil")));
    let object = dir.join("k.co").display().to_string();
    assert_eq!(wavesim(&["asm", &source, "-o", &object]).code, 0);
    let launch = write(
        &dir,
        "launch.json",
        r#"{"schema":"wavesim-launch-1","kernel":"k","grid":[1,1,1],"block":[1,1,1],"code":{"gfx1100":"k.co"},
            "args":[{"name":"./../evil","kind":"buffer","dtype":"u32","shape":[4],"init":{"zeros":true}}]}"#,
    );
    for args in [
        &["launch", &launch, "--out-dir", &out][..],
        &["launch", &object, "--grid", "1", "--block", "1", "--arg", "u32[4]", "--out-dir", &out],
    ] {
        let e = wavesim(args);
        assert_eq!(e.code, 0, "{}", e.err);
        let names = |dir: &Path| -> Vec<String> {
            let mut names: Vec<String> = std::fs::read_dir(dir)
                .unwrap()
                .map(|f| f.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(&dir), ["k.co", "k.s", "launch.json", "out"]);
        assert_eq!(names(&dir.join("out")), ["%2e%2f..%2fevil.npy"]);
    }
}

/// Names in a foreign file cannot control the terminal.
#[test]
fn control_characters_are_escaped() {
    let dir = folder("escapes");
    let source = write(&dir, "k.s", assembly("", 8, &metadata("a\\x1b[2Jb\\u009b")));
    let object = dir.join("k.co").display().to_string();
    let e = wavesim(&["asm", &source, "-o", &object]);
    assert_eq!(e.code, 0, "{}", e.err);
    // A symbol with a name that no linker writes.
    let mut bytes = std::fs::read(&object).unwrap();
    let positions: Vec<usize> = (0..bytes.len() - 4).filter(|&at| &bytes[at..at + 3] == b"\0k\0").collect();
    assert!(!positions.is_empty());
    for at in positions {
        bytes[at + 1] = 0x1b;
    }
    let named = write(&dir, "named.co", bytes);
    let weird = write(&dir, "weird\x1b[31m.rdna", "---\nx y\x1b]0;title\x07\n---\n");
    let launch = ["--grid", "1", "--block", "1", "--arg", "u32[4]"];
    for args in [
        &[&["launch", &object][..], &launch].concat()[..],
        &[&["launch", &object, "--json"][..], &launch].concat(),
        &["disasm", &named],
        &["disasm", &named, "--json"],
        &["run", &weird],
        &["pcode", "check", &weird],
        &["disasm", "--hex", &weird],
    ] {
        let e = wavesim(args);
        let text = e.out + &e.err;
        let raw = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(raw, None, "{args:?}: {text:?}");
    }
    let e = wavesim(&[&["launch", &object, "--json"][..], &launch].concat());
    let value: serde_json::Value = serde_json::from_str(&e.out).unwrap();
    assert!(value["outputs"].get("a\u{1b}[2Jb\u{9b}").is_some(), "{value}");
}

#[test]
fn files_below_a_folder() {
    let dir = folder("below");
    let inside = dir.join("in");
    std::fs::create_dir(&inside).unwrap();
    let secret = write(&dir, "secret", "root:x:0:0:hunter2\n");
    write(&inside, "own.inc", "v_mov_b32 v0, v1\n");
    symlink(&secret, inside.join("link.inc")).unwrap();
    let below = inside.display().to_string();
    let asm = |name: &str, line: &str| write(&inside, name, format!("{line}\n"));
    let confined = |path: &str| wavesim(&["asm", "--files-below", &below, path]);
    assert_eq!(confined(&asm("own.s", ".include \"own.inc\"")).code, 0);
    for line in [
        ".include \"../secret\"".to_string(),
        ".include \"link.inc\"".to_string(),
        format!(".include \"{secret}\""),
        format!(".incbin \"{secret}\""),
        ".incbin \"/etc/passwd\"".to_string(),
        ".incbin \"/no/such/file\"".to_string(),
    ] {
        let e = confined(&asm("reach.s", &line));
        assert!(e.code == 2 && e.err.contains("not below"), "{line}: {}", e.err);
        assert!(!e.err.contains("hunter2"), "{}", e.err);
    }
    // Without the option any file can be named, but files that are not assembly are not quoted.
    let e = wavesim(&["asm", &asm("reach.s", ".include \"../secret\"")]);
    assert!(e.code == 2 && e.err.contains("secret:1") && !e.err.contains("hunter2"), "{}", e.err);
    let text = |init: &str| {
        write(&inside, "k.rdna", format!("---\nlocal = 32, 1, 1\nx: u8[4] = {init}\n---\n  s_endpgm\n"))
    };
    for init in ["file(\"../secret\", u8)", "npy(\"../secret\")", "npy(\"/etc/passwd\")"] {
        refused(&["run", "--files-below", &below, &text(init)], &["not below"]);
        let e = wavesim(&["run", &text(init)]);
        assert!(e.code == 2 && !e.err.contains("hunter2") && !e.err.contains("root:"), "{}", e.err);
    }
    let launch = write(
        &inside,
        "launch.json",
        r#"{"schema":"wavesim-launch-1","kernel":"k","grid":[1,1,1],"block":[1,1,1],"code":{"gfx1100":"../secret"},"args":[]}"#,
    );
    refused(&["launch", "--files-below", &below, &launch], &["not below"]);
    let e = wavesim(&["launch", &launch]);
    assert!(e.code == 2 && e.err.contains("secret") && !e.err.contains("hunter2"), "{}", e.err);
    refused(&["run", "--files-below", &secret, &text("repeat(1)")], &["secret"]);
}

/// Small inputs that need large resources are errors, without delay.
#[test]
fn bombs_end_at_once() {
    let dir = folder("bombs");
    let deep = "(".repeat(20_000);
    let shape = vec!["1"; 20_000].join(",");
    let nothing = write(&dir, "nothing.rdna", NOTHING);
    let text = |name: &str, line: &str| {
        write(&dir, name, format!("---\nlocal = 32, 1, 1\n{line}\n---\n  s_endpgm\n"))
    };
    let launch = |name: &str, shape: &str, more: &str| {
        write(
            &dir,
            name,
            format!(
                r#"{{"schema":"wavesim-launch-1","kernel":"k","grid":[1,1,1],"block":[1,1,1],"code":{{"gfx1100":"k.co"}},
                "args":[{{"name":"x","kind":"buffer","dtype":"u8","shape":[{shape}],"init":{{"zeros":true}}}}]{more}}}"#
            ),
        )
    };
    let metadata = |name: &str, yaml: &str| {
        write(&dir, name, assembly("", 8, &format!(".amdgpu_metadata\n{yaml}\n.end_amdgpu_metadata\n")))
    };
    let source = write(&dir, "k.s", assembly("", 8, &self::metadata("x")));
    let object = dir.join("k.co").display().to_string();
    assert_eq!(wavesim(&["asm", &source, "-o", &object]).code, 0);
    let aliases: String = (1..40).map(|k| format!("a{k}: &a{k} [*a{0}, *a{0}]\n", k - 1)).collect();
    let expression = format!("p {deep}1");
    let minus = format!("p {}1", "-".repeat(20_000));
    let argument = format!("x: f32[{shape}]");
    let parentheses = format!("x: f32[{deep}1]");
    let call = ["--grid", "1", "--block", "1"];
    let [a, b, c, d] = [
        text("dims.rdna", &format!("x: u8[{shape}]")),
        text("deep.rdna", &format!("x: u8[{deep}1]")),
        launch("dims.json", &shape, ""),
        launch("deep.json", "1", &format!(",\"notes\":{}1", "[".repeat(20_000))),
    ];
    let [e, f] = [
        metadata("aliases.s", &format!("a0: &a0 [x, x]\n{aliases}")),
        metadata("nested.s", &format!("x: {}", "[".repeat(20_000))),
    ];
    for args in [
        &["run", &a][..],
        &["run", &b],
        &["launch", &c],
        &["launch", &d],
        &["launch", &write(&dir, "large.json", "[".repeat(5 << 20))],
        &[&["run", &e][..], &call].concat(),
        &[&["run", &f][..], &call].concat(),
        &[&["run", &object, "--arg", &argument][..], &call].concat(),
        &[&["run", &object, "--arg", &parentheses][..], &call].concat(),
        &["debug", &nothing, "--batch", "-e", &expression],
        &["debug", &nothing, "--batch", "-e", &minus],
        &["debug", &nothing, "--batch", "-e", &format!("break 5 if {deep}1")],
    ] {
        let e = bounded(args);
        assert!(e.code == 2 || args[0] == "debug" && e.code == 1, "{}: {}", args[..2].join(" "), e.err);
    }
}

/// Pseudocode and assembly that multiply, and errors by the ten thousand.
#[test]
fn bombs_of_text_end_at_once() {
    let dir = folder("text_bombs");
    let lines = |count: usize, line: fn(usize) -> String| (0..count).map(line).collect::<String>();
    let mov = |body: &str| format!("instruction V_MOV_B32 {{\n{body}\n}}\n");
    let doubling =
        |first: &str, next: fn(usize) -> String| first.to_string() + &(1..40).map(next).collect::<String>();
    let functions = doubling("function f0(x) { return x; }\n", |k| {
        format!("function f{k}(x) {{ return f{0}(x) + f{0}(x); }}\n", k - 1)
    });
    let lambdas =
        doubling("l0 = lambda(x) (x + 1U);\n", |k| format!("l{k} = lambda(x) (l{0}(x) + l{0}(x));\n", k - 1));
    let rows = (0..1000).map(|n| format!("({n})")).collect::<Vec<_>>().join(",");
    let templates = format!(
        "template (A) in {rows} {{ template (B) in {rows} {{ template (C) in {rows} {{\n\
         instruction V_FOO${{A}}_${{B}}_$C {{ D0.u32 = S0.u32; }}\n}} }} }}"
    );
    let pcode = [
        ("functions", functions + &mov("D0.u32 = f39(S0.u32);")),
        ("lambdas", mov(&format!("{lambdas} D0.u32 = l39(S0.u32);"))),
        ("parentheses", mov(&format!("D0.u32 = {}S0.u32;", "(".repeat(20_000)))),
        ("templates", templates),
        ("nested templates", format!("{}{}", "template (A) in (1) {".repeat(20_000), "}".repeat(20_000))),
        ("unknown names", mov(&lines(33_000, |n| format!("D0.u32 = zq{n};\n")))),
        ("statements", mov(&"D0.u32 = S0.u32;\n".repeat(100_000))),
        ("a sum", mov(&format!("D0.u32 = {}1U;", "S0.u32 + ".repeat(100_000)))),
    ];
    for (name, text) in pcode {
        let e = bounded(&["pcode", "check", &write(&dir, &format!("{name}.pcode"), text)]);
        assert_eq!(e.code, 1, "{name}: {}", e.err);
    }
    let unknown = lines(33_000, |n| format!("instruction V_FOO{n} {{ D0.u32 = S0.u32; }}\n"));
    assert_eq!(bounded(&["pcode", "check", &write(&dir, "unknown.pcode", unknown)]).code, 0, "warnings");
    let macros =
        doubling(".macro m0\n s_nop 0\n.endm\n", |k| format!(".macro m{k}\n m{0}\n m{0}\n.endm\n", k - 1));
    let assemblies = [
        ("mnemonics", lines(33_000, |n| format!("  v_foo{n} v0, v1\n"))),
        ("registers", lines(33_000, |n| format!("  v_add_f32 v0, vx{n}, v1\n"))),
        ("symbols", lines(33_000, |n| format!("  s_branch q{n}\n"))),
        ("repetition", ".rept 1000000000\n s_nop 0\n.endr\n".to_string()),
        ("macros", macros + " m39\n"),
        ("zeros", ".space 1000000000000\n".to_string()),
        ("parentheses", format!("  s_mov_b32 s0, {}1\n", "(".repeat(20_000))),
    ];
    for (name, body) in assemblies {
        let path = write(&dir, &format!("{name}.s"), assembly(&body, 8, ""));
        let e = bounded(&["asm", &path, "-o", "/dev/null"]);
        assert_eq!(e.code, 2, "{name}: {}", e.err);
    }
    let sections = lines(33_000, |n| format!(".section .s{n}\n.long 1\n"));
    let path = write(&dir, "sections.s", assembly("", 8, &sections));
    assert_eq!(bounded(&["asm", &path, "-o", "/dev/null"]).code, 0, "sections");
    let body = lines(33_000, |n| format!("  v_foo{n} v0, v1\n"));
    let kernel = write(&dir, "k.rdna", format!("---\nlocal = 32, 1, 1\n---\n{body}  s_endpgm\n"));
    assert_eq!(bounded(&["run", &kernel]).code, 2, "mnemonics of a text kernel");
    let arguments = lines(33_000, |n| format!("a{n}: u32[4]\n"));
    let kernel = write(&dir, "a.rdna", format!("---\nlocal = 32, 1, 1\n{arguments}---\n  s_endpgm\n"));
    assert_eq!(bounded(&["run", &kernel]).code, 0, "arguments");
}

/// Processor time and memory that a small bad input may cost; a megabyte of messages is not much more.
const SECONDS: f64 = 2.0;
const PEAK_KIB: u64 = 200 << 10;

/// Runs the command; its processor time (others may keep the host busy) and its peak memory are bounded, where `/proc` has them.
fn bounded(args: &[&str]) -> Ended {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let name: String = args.join(" ").chars().take(200).collect();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let paths = ["out", "err"].map(|stream| dir.join(format!("bounded{run}.{stream}")));
    let [out, err] = paths.each_ref().map(|path| std::fs::File::create(path).unwrap());
    let mut command = Command::new(WAVESIM);
    let mut child = command.args(args).stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap();
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let (mut seconds, mut peak) = (0.0, 0u64);
    // Until the process has ended: it is there as long as nobody waits for it.
    while let Ok(stat) = std::fs::read_to_string(process.join("stat")) {
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        // User and system time, in hundredths.
        seconds = (ticks(11) + ticks(12)) / 100.0;
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        if fields[0] == "Z" {
            break;
        }
        if seconds > 5.0 * SECONDS {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let status = child.wait().unwrap();
    assert!(seconds < SECONDS, "{name}: {seconds} s");
    assert!(peak < PEAK_KIB, "{name}: {peak} KiB");
    let [stdout, stderr] = paths.each_ref().map(|path| std::fs::read(path).unwrap());
    ended(Output { status, stdout, stderr })
}

/// Metadata with a hundred million elements in half a kilobyte, and deep nesting.
#[test]
fn hostile_message_pack() {
    let dir = folder("message_pack");
    let source = write(&dir, "k.s", assembly("", 8, &metadata(&"x".repeat(400))));
    let object = dir.join("k.co").display().to_string();
    assert_eq!(wavesim(&["asm", &source, "-o", &object]).code, 0);
    let good = std::fs::read(&object).unwrap();
    let at = good.windows(14).position(|w| w == b"amdhsa.version").unwrap();
    for (name, filler) in
        [("nested", &[0x91][..]), ("lists", &[0xdd, 0x7f, 0xff, 0xff, 0xff]), ("maps", &[0xde, 0xff, 0xff])]
    {
        let mut bytes = good.clone();
        // The bytes after the version.
        for (k, byte) in bytes[at + 14..at + 400].iter_mut().enumerate() {
            *byte = filler[k % filler.len()];
        }
        let path = write(&dir, &format!("{name}.co"), bytes);
        refused(&["launch", &path, "--grid", "1", "--block", "1", "--arg", "u32[4]"], &["metadata"]);
    }
}

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
        // A reader that has ended before the first write.
        let e = shell("\"$0\" \"$@\" > >(exec true); code=$?; sleep 0.1; exit $code", args);
        assert_eq!(e.code, code, "{args:?}");
    }
    // A write that fails is an error.
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
fn what_matches_nothing_is_an_error() {
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
fn launches_say_everything() {
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

/// The binary needs no other files: it runs away from the source tree, with an empty environment.
#[test]
fn the_binary_is_whole() {
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

/// Examples in help can be copied: none is wider than a terminal, and the files that they name exist.
#[test]
fn examples_in_help_can_be_copied() {
    for command in [
        &[][..],
        &["run"],
        &["launch"],
        &["check"],
        &["debug"],
        &["dap"],
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
