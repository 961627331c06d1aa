//! Tests of the messages of `wavesim launch`. The outputs of kernels are tested with files (`code_objects`).

use std::path::PathBuf;
use wavesim_tests::{root, wavesim};

fn vadd() -> PathBuf {
    root().join("tests/filetests/code_objects/vadd")
}

#[test]
fn arguments_on_the_command_line() {
    let object = vadd().join("vadd.gfx1201.co");
    let object = object.to_string_lossy();
    let args = ["a: f32[4]=arange(4)", "b: f32[4]=repeat(0.5)", "out_c: f32[4]", "3"];
    let mut command = vec!["launch", &object, "--grid", "1", "--block", "64"];
    args.iter().for_each(|arg| command.extend(["--arg", arg]));
    // The kernel's n is 3, so the last element is unchanged.
    assert_eq!(wavesim(&command), (0, "out_c: f32[4] =\n[0.5 1.5 2.5 0. ]\n".to_string()));
    let (code, text) = wavesim(&["launch", &object, "--arg", "1"]);
    assert!(code == 2 && text.contains("arguments given: 1, but the kernel has 4 (--arg"), "{text}");
    // Names, types and a line to copy.
    assert!(text.contains("\n  arg2  float*  such as arg2: f32[64]\n"), "{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("on the command line: ")).unwrap();
    let copied = line.split('\'').filter(|part| part.contains(": ")).collect::<Vec<_>>();
    assert_eq!(copied.len(), 4, "{text}");
    let mut command = vec!["launch", &*object, "--grid", "1", "--block", "64"];
    copied.iter().for_each(|arg| command.extend(["--arg", arg]));
    let (code, text) = wavesim(&command);
    assert_eq!(code, 0, "{text}");
    let (code, text) = wavesim(&["launch", &object, "--arch", "rdna3"]);
    assert!(code == 2 && text.contains("is for rdna4"), "{text}");
    let (code, text) = wavesim(&["launch", &object, "--kernel", "sub"]);
    assert!(code == 2 && text.contains("has `vadd`"), "{text}");
}

/// Without names and types in the metadata, they are those of the debug information (`-g`).
#[test]
fn parameters_of_the_debug_information() {
    let object = root().join("examples/debugger/smooth.co");
    let object = object.to_string_lossy();
    let (code, text) = wavesim(&["launch", &object, "--grid", "1", "--block", "64"]);
    assert!(code == 2 && text.contains("\n  x         float*  such as x: f32[64]\n"), "{text}");
    assert!(text.contains(" --arg 'out_pair: f16[64]' --arg 'radius: i32=1'"), "{text}");
}

/// A number is converted to the type of its parameter.
#[test]
fn numbers_have_the_type_of_their_parameter() {
    let object = root().join("examples/debugger/smooth.co");
    let object = object.to_string_lossy();
    let launch = |n: &str| {
        let args = ["x: f32[64]=arange(64)", "out_y: f32[64]", "out_pair: f16[128]", n];
        let mut command = vec!["launch", &*object, "--grid", "1", "--block", "64"];
        args.iter().for_each(|arg| command.extend(["--arg", arg]));
        wavesim(&command)
    };
    assert_eq!(launch("1.0"), launch("1"));
    assert_eq!(launch("1").0, 0);
    let (code, text) = launch("1.5");
    assert!(code == 2 && text.contains("1.5 for `int`, which is an integer"), "{text}");
}

#[test]
fn mismatches_are_reported() {
    let dir = std::env::temp_dir().join(format!("wavesim-launch-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for entry in std::fs::read_dir(vadd()).unwrap().flatten() {
        std::fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    // Changes the last element of the expected array.
    let expected = dir.join("c.expected.npy");
    let mut bytes = std::fs::read(&expected).unwrap();
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&1000f32.to_le_bytes());
    std::fs::write(&expected, bytes).unwrap();
    let path = dir.join("launch.json");
    let path = path.to_string_lossy();
    let (code, out) = wavesim(&["launch", &path, "--check", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    let mismatch = &result["check"]["mismatches"][0];
    assert_eq!(
        (code, &result["check"]["passed"], &mismatch["index"]),
        (1, &false.into(), &999.into()),
        "{out}"
    );
    assert_eq!((&mismatch["output"], &mismatch["expected"]), (&"c".into(), &1000.0.into()), "{out}");
    let (code, out) = wavesim(&["launch", &path, "--check"]);
    assert!(
        code == 1 && out.contains("c: 1 of 1000 elements differ\n  [999]: expected 1000.0, got "),
        "{out}"
    );
    // Without --check, the expectation is ignored.
    let (code, out) =
        wavesim(&["launch", &path, "--mcpu", "gfx1201", "--schedule", "reverse", "--threads", "2"]);
    assert!(code == 0 && out.starts_with("c: f32[1000] =\n["), "{out}");
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A code object in a bundle, with arguments on the command line.
#[test]
fn bundles_on_the_command_line() {
    let bundle = root().join("tests/filetests/code_objects/relocated/relocated.bundle");
    let bundle = bundle.to_string_lossy();
    let run = |more: &[&str]| {
        let mut command =
            vec!["launch", &*bundle, "--kernel", "relocated", "--arg", "out: i32[4]=arange(4)", "--arg", "0"];
        command.extend(["--grid", "1", "--block", "1"]);
        command.extend(more);
        wavesim(&command)
    };
    for target in [&["--target", "gfx1150"][..], &["--mcpu", "gfx1201"], &["--arch", "rdna3"], &[]] {
        assert_eq!(run(target), (0, "out: i32[4] =\n[ 7  6  2 40]\n".to_string()), "{target:?}");
    }
    let (code, text) = run(&["--target", "gfx1200"]);
    let expected = "no code object for gfx1200 in the bundle; it has gfx1100, gfx1150, gfx1201";
    assert!(code == 2 && text.contains(expected), "{text}");
    let (code, text) = run(&["--target", "gfx9"]);
    assert!(code == 2 && text.contains("processors are gfx1100"), "{text}");
    let (code, text) = wavesim(&["launch", &bundle, "--arg", "i32[4]"]);
    assert!(code == 2 && text.contains("select a kernel with --kernel: other, relocated"), "{text}");
}

/// Arguments that do not match their parameters.
#[test]
fn invalid_arguments() {
    let object = vadd().join("vadd.gfx1100.co");
    let object = object.to_string_lossy();
    let run = |args: [&str; 4]| {
        let mut command = vec!["launch", &*object];
        args.iter().for_each(|arg| command.extend(["--arg", arg]));
        wavesim(&command)
    };
    let (a, c) = ("a: f32[4]", "c: f32[4]");
    for (args, expected) in [
        ([a, a, c, "n: i32[4]"], "argument n: a buffer for a parameter of 4 bytes that is not a pointer"),
        ([a, a, c, "n: i64=1"], "argument n: 8 bytes for a parameter of 4 bytes"),
        ([a, a, c, "n: 5000000000"], "argument n: 5000000000 does not fit a parameter of 4 bytes"),
        (
            [a, "b: local:64", c, "4"],
            "argument b: memory of a workgroup (`local`) for a parameter that is not a pointer to it",
        ),
    ] {
        let (code, text) = run(args);
        assert!(code == 2 && text.contains(expected), "{text}");
    }
}

/// Output of the installed clang and its bundler, in every supported version of the code object format.
#[test]
fn fresh_code_objects() {
    use std::process::Command;
    if !Command::new("clang-19").arg("--version").output().is_ok_and(|o| o.status.success()) {
        println!("skipped: clang-19 is not installed");
        return;
    }
    let dir = std::env::temp_dir().join(format!("wavesim-fresh-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let run = |command: &mut Command| {
        let done = command.current_dir(&dir).output().expect("started");
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let clang = |version: &str, target: &str, name: &str, more: &[&str]| {
        run(Command::new("clang-19")
            .args(["-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-O1"])
            .args(["-Xclang", "-finclude-default-header", "-o", name])
            .args([&format!("-mcpu={target}"), &format!("-mcode-object-version={version}")])
            .args(more)
            .arg(format!("-I{}", root().join("tests/filetests/code_objects").display()))
            .arg(vadd().join("vadd.cl")));
    };
    let check = |file: &str, target: &[&str]| {
        let file = dir.join(file);
        let mut command = vec!["launch", file.to_str().unwrap(), "--grid", "1", "--block", "4"];
        for arg in ["a: f32[4]=arange(4)", "b: f32[4]=repeat(0.5)", "out_c: f32[4]", "4"] {
            command.extend(["--arg", arg]);
        }
        command.extend(target);
        assert_eq!(wavesim(&command), (0, "out_c: f32[4] =\n[0.5 1.5 2.5 3.5]\n".to_string()), "{command:?}");
    };
    for version in ["4", "5", "6"] {
        for target in ["gfx1100", "gfx1201"] {
            let name = format!("{target}.v{version}.co");
            clang(version, target, &name, &[]);
            check(&name, &["--target", target]);
        }
    }
    clang("6", "gfx11-generic", "generic.co", &[]);
    check("generic.co", &[]);
    clang("5", "gfx1100", "unlinked.o", &["-c"]);
    let (code, text) = wavesim(&["launch", dir.join("unlinked.o").to_str().unwrap()]);
    assert!(code == 2 && text.contains("not linked"), "{text}");
    if Command::new("clang-offload-bundler-19").arg("--version").output().is_ok_and(|o| o.status.success()) {
        std::fs::write(dir.join("host"), "").unwrap();
        for (name, more) in [("plain.bundle", None), ("compressed.bundle", Some("--compress"))] {
            run(Command::new("clang-offload-bundler-19")
                .args(["--type=o", "--bundle-align=4096", &format!("--output={name}")])
                .arg("--targets=host-x86_64-unknown-linux--,hipv4-amdgcn-amd-amdhsa--gfx1100,hipv4-amdgcn-amd-amdhsa--gfx1201")
                .args(["--input=host", "--input=gfx1100.v5.co", "--input=gfx1201.v6.co"])
                .args(more));
            check(name, &["--mcpu", "gfx1100"]);
            check(name, &["--target", "gfx1201"]);
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
