//! Small inputs that would require excessive resources.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Small inputs that would require excessive resources are rejected promptly.
#[test]
fn resource_bombs_are_rejected() {
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
    let sum = format!("p {}1", "1 + ".repeat(20_000));
    let condition = format!("break 5 if {}1", "1 && ".repeat(20_000));
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
        &["debug", &nothing, "--batch", "-e", &sum],
        &["debug", &nothing, "--batch", "-e", &condition],
        &["debug", &nothing, "--batch", "-e", &format!("break 5 if {deep}1")],
    ] {
        let e = bounded(args);
        assert!(e.code == 2 || args[0] == "debug" && e.code == 1, "{}: {}", args[..2].join(" "), e.err);
    }
}

/// Pseudocode and assembly that expand exponentially, and tens of thousands of errors.
#[test]
fn text_bombs_are_rejected() {
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
    let nothing = write(&dir, "nothing.rdna", NOTHING);
    for (name, text) in pcode {
        let path = write(&dir, &format!("{name}.pcode"), text);
        let e = bounded(&["pcode", "check", &path]);
        assert_eq!(e.code, 1, "{name}: {}", e.err);
        let e = bounded(&["run", &nothing, "--semantics", &path]);
        assert_eq!(e.code, 2, "{name}: {}", e.err);
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
        (
            "sums",
            (0..60).map(|n| format!(".set a{}, a{n} + a{n}\n", n + 1)).collect::<String>()
                + ".long a60\n.set a0, c\nc:\n",
        ),
        (
            "numbers",
            (0..60).map(|n| format!(".set a{}, a{n} + a{n}\n", n + 1)).collect::<String>()
                + ".long a60\n.set a0, 1\n",
        ),
        ("zeros", ".space 1000000000000\n".to_string()),
        ("parentheses", format!("  s_mov_b32 s0, {}1\n", "(".repeat(20_000))),
    ];
    for (name, body) in assemblies {
        let path = write(&dir, &format!("{name}.s"), assembly(&body, 8, ""));
        let e = bounded(&["asm", &path, "-o", "/dev/null"]);
        // Names that are no registers are symbols, which another object may define.
        let code = if name == "registers" { 0 } else { 2 };
        assert_eq!(e.code, code, "{name}: {}", e.err);
        if name == "registers" {
            assert!(e.err.len() < 1000, "the note is short: {} bytes", e.err.len());
        }
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

/// A file that replaces the semantics of every instruction, and the same with an error in each body. The tests of
/// `exec::overrides` count the work.
#[test]
fn every_instruction_can_be_replaced() {
    let dir = folder("every_instruction");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pseudocode");
    let mut all = String::new();
    for family in ["control", "matrix", "memory", "scalar", "vector"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(family)).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        files.iter().for_each(|file| all += &std::fs::read_to_string(file).unwrap());
    }
    let nothing = write(&dir, "nothing.rdna", NOTHING);
    let good = write(&dir, "good.pcode", &all);
    let e = wavesim(&["run", &nothing, "--semantics", &good]);
    assert_eq!(e.code, 0, "{}", e.err);
    let bad = write(&dir, "bad.pcode", all.replace("S0.", "S9."));
    let e = wavesim(&["run", &nothing, "--semantics", &bad]);
    assert!(e.code == 2 && e.err.contains("more"), "{}", e.err);
}

/// Limits of processor time and memory for a small bad input; a megabyte of messages costs little more.
const SECONDS: f64 = 2.0;
const PEAK_KIB: u64 = 200 << 10;

/// Runs the command and checks the limits of processor time (the host may be busy otherwise) and peak memory,
/// where `/proc` provides them.
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
    // Until the process has ended; its entry exists until it is waited for.
    while let Ok(stat) = std::fs::read_to_string(process.join("stat")) {
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        // User and system time, in hundredths of a second.
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
