//! Compares the output of the C and Python examples. Skipped if `cc` or `python3` is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the directory of `libwavesim_capi.so`, which is also that of the test executable.
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

/// Builds an example in `examples/c`, and returns its output.
fn c(name: &str) -> Option<String> {
    c_with(name, &[])
}

/// Builds an example like [`c`], and runs it with arguments.
fn c_with(name: &str, arguments: &[&str]) -> Option<String> {
    let library = library().display().to_string();
    let include = format!("-I{}", root().join("capi/include").display());
    built(name, &[include, format!("-L{library}"), "-lwavesim_capi".to_string()], &library, arguments)
}

/// Builds an example with these flags against the library in a directory, and returns its output.
fn built(name: &str, flags: &[String], library: &str, arguments: &[&str]) -> Option<String> {
    if !have("cc") {
        return None;
    }
    let unique = std::thread::current().name().unwrap_or_default().to_string();
    let program = format!("wavesim-example-{}-{unique}-{name}", std::process::id());
    let program = std::env::temp_dir().join(program);
    succeed(
        Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .arg(root().join("examples/c").join(name).with_extension("c"))
            .args(flags)
            .arg(format!("-Wl,-rpath,{library}"))
            .args(["-lpthread", "-o"])
            .arg(&program),
    );
    let out = succeed(Command::new(&program).args(arguments));
    std::fs::remove_file(&program).expect("removed");
    Some(out)
}

const RUN_ASM: &str = "c[0] = 0.5, c[255] = 255.5\n\
                       status 1: out-of-bounds: load of 4 bytes at 0x10 is outside every buffer; the pointer is null\n";

#[test]
fn run_asm() {
    let Some(out) = c("run_asm") else { return };
    assert_eq!(out, RUN_ASM);
}

#[test]
fn device() {
    let Some(out) = c("device") else { return };
    let expected = "88 instructions in 8 waves, c[255] = 255.5\n\
                    status 1, out-of-bounds at address 0x100400, workgroup 4, lane 0\n\
                    out-of-bounds: load of 4 bytes at 0x100400 (just beyond the end of mapped memory) is outside every buffer\n  \
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
fn kernels() {
    let object = root().join("tests/filetests/code_objects/vadd/vadd.gfx1100.co").display().to_string();
    let Some(out) = c_with("kernels", &["gfx1100", &object]) else { return };
    let expected = "vadd: wave32, 6 VGPRs, 0 bytes of LDS, at most 256 work-items, 288 bytes of arguments\n    \
                    0: 8 bytes, global_buffer \n    \
                    8: 8 bytes, global_buffer \n   \
                    16: 8 bytes, global_buffer \n   \
                    24: 4 bytes, by_value \n\
                    __oclc_ABI_version: 4 bytes\n\
                    there is no kernel 1: the count is 1\n";
    assert_eq!(out, expected);
}

#[test]
fn python() {
    python_example(&library().join("libwavesim_capi.so"));
}

/// The library installed by `scripts/install-c-library.sh` is found by pkg-config.
#[test]
fn an_installed_library() {
    let prefix = std::env::temp_dir().join(format!("wavesim-prefix-{}", std::process::id()));
    let script = || {
        let mut script = Command::new(root().join("scripts/install-c-library.sh"));
        script.arg(&prefix).env_remove("DESTDIR");
        script
    };
    let out = succeed(script().arg("--library").arg(library().join("libwavesim_capi.so")));
    for file in ["include/wavesim.h", "lib/libwavesim_capi.so", "lib/pkgconfig/wavesim.pc"] {
        assert!(prefix.join(file).is_file() && out.contains(file), "{file}: {out}");
    }
    if have("pkg-config") {
        let flags = succeed(
            Command::new("pkg-config")
                .args(["--cflags", "--libs", "wavesim"])
                .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
        );
        let flags: Vec<String> = flags.split_whitespace().map(str::to_string).collect();
        assert!(flags.len() >= 3, "{flags:?}");
        if let Some(out) = built("run_asm", &flags, &prefix.join("lib").display().to_string(), &[]) {
            assert_eq!(out, RUN_ASM);
        }
    }
    python_example(&prefix.join("lib/libwavesim_capi.so"));
    // A package is staged in one directory and used from another.
    let staged = std::env::temp_dir().join(format!("wavesim-staged-{}", std::process::id()));
    succeed(script().arg("--library").arg(prefix.join("lib/libwavesim_capi.so")).env("DESTDIR", &staged));
    let inside = staged.join(prefix.strip_prefix("/").expect("absolute"));
    let described = std::fs::read_to_string(inside.join("lib/pkgconfig/wavesim.pc")).expect("readable");
    assert!(described.starts_with(&format!("prefix={}\n", prefix.display())), "{described}");
    let missing = script().args(["--library", "/nowhere.so"]).output().expect("started");
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no library /nowhere.so"));
    std::fs::remove_dir_all(&prefix).expect("removed");
    std::fs::remove_dir_all(&staged).expect("removed");
}

fn python_example(library: &Path) {
    if !have("python3") {
        return;
    }
    let root = root();
    let out = succeed(
        Command::new("python3")
            .arg("-B")
            .arg(root.join("examples/python/vector_add.py"))
            .arg(root.join("tests/filetests/code_objects/vadd/vadd.gfx1100.co"))
            .env("WAVESIM_LIBRARY", library),
    );
    let expected = "run_asm: 0.5 127.5\n\
                    device: 0.5 127.5\n\
                    code object: 0.5 127.5 in 4 waves\n\
                    error: out-of-bounds: load of 4 bytes\n\
                    threads: (0.5, 127.5) (0.5, 127.5)\n";
    assert_eq!(out, expected);
}

/// The comments next to the machine words in the examples are their disassembly.
#[test]
fn machine_words_match_their_comments() {
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
