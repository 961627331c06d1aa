//! The examples in C and Python say what is written here. Without `cc` or `python3` there is nothing to say.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder of `libwavesim_capi.so`: this test's own.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.parent().expect("a folder").to_path_buf()
}

fn have(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("started");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}{err}");
    assert!(err.is_empty(), "{command:?}: {err}");
    out.into_owned()
}

/// What an example of `examples/c` prints.
fn c(name: &str) -> Option<String> {
    if !have("cc") {
        return None;
    }
    let program = std::env::temp_dir().join(format!("wavesim-example-{}-{name}", std::process::id()));
    let library = library();
    succeed(
        Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .arg(format!("-I{}", root().join("capi/include").display()))
            .arg(root().join("examples/c").join(name).with_extension("c"))
            .arg(format!("-L{}", library.display()))
            .arg(format!("-Wl,-rpath,{}", library.display()))
            .args(["-lwavesim_capi", "-lpthread", "-o"])
            .arg(&program),
    );
    let out = succeed(&mut Command::new(&program));
    std::fs::remove_file(&program).expect("removed");
    Some(out)
}

#[test]
fn run_asm() {
    let Some(out) = c("run_asm") else { return };
    let expected = "c[0] = 0.5, c[255] = 255.5\n\
                    status 1: out-of-bounds: load of 4 bytes at 0x10 is outside every buffer; the pointer is null\n";
    assert_eq!(out, expected);
}

#[test]
fn device() {
    let Some(out) = c("device") else { return };
    let expected = "88 instructions in 8 waves, c[255] = 255.5\n\
                    status 1, out-of-bounds at address 0x100400, workgroup 4, lane 0\n\
                    out-of-bounds: load of 4 bytes at 0x100400 is outside every buffer\n  \
                    at pc 0x20: global_load_b32 v1, v0, s[6:7]\n  \
                    workgroup (4,0,0), wave 0, lane 0\n  \
                    address 0x100400\n";
    assert_eq!(out, expected);
}

#[test]
fn threads() {
    let Some(out) = c("threads") else { return };
    let expected = "first: 0 failures, c[1] = 20.25\n\
                    second: 20 failures: out-of-bounds: load of 4 bytes at 0x1000 is outside every buffer\n";
    assert_eq!(out, expected);
}

#[test]
fn python() {
    if !have("python3") {
        return;
    }
    let root = root();
    let out = succeed(
        Command::new("python3")
            .arg("-B")
            .arg(root.join("examples/python/vector_add.py"))
            .arg(root.join("tests/code_objects/vadd/vadd.gfx1100.co"))
            .env("WAVESIM_LIBRARY", library().join("libwavesim_capi.so")),
    );
    let expected = "run_asm: 0.5 127.5\n\
                    device: 0.5 127.5\n\
                    code object: 0.5 127.5 in 4 waves\n\
                    error: out-of-bounds: load of 4 bytes\n\
                    threads: (0.5, 127.5) (0.5, 127.5)\n";
    assert_eq!(out, expected);
}

/// The comments beside the examples' words are what the words mean.
#[test]
fn words_are_what_the_comments_say() {
    use wavesim::arch::Arch;
    use wavesim::asm::{self, NoSymbols, Options};
    let text = std::fs::read_to_string(root().join("examples/c/kernel.h")).expect("readable");
    let lines = text.lines().filter_map(|line| line.trim().strip_suffix(" */")?.split_once("/* "));
    let mut count = 0;
    for (words, instruction) in lines.filter(|(words, _)| words.starts_with("0x")) {
        let words: Vec<u32> = words
            .split(',')
            .filter_map(|w| u32::from_str_radix(w.trim().strip_prefix("0x")?, 16).ok())
            .collect();
        let parsed = asm::parse(instruction, &Options::new(Arch::Rdna3), &NoSymbols).expect(instruction);
        let expected = wavesim::codec::encode(Arch::Rdna3, &parsed.inst).expect(instruction);
        assert_eq!(expected[..], words[..], "{instruction}");
        count += 1;
    }
    assert_eq!(count, 11);
}
