//! Bad files for every command, and names that point outside of a folder.

use super::*;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

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
                // An endless file.
                let started = Instant::now();
                check("/dev/zero");
                assert!(started.elapsed() < Duration::from_secs(20), "{args:?}");
            });
        }
    });
}

/// A file of an unexpected kind: the message gives advice.
#[test]
fn files_of_other_kinds() {
    refused(&["asm", &workspace("examples/vector_add.rdna")], &["this is a text kernel", "`wavesim run`"]);
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
    // A symbol with a name that no linker produces.
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
    // Without the option, any file can be named, but files that are not assembly are not quoted.
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
