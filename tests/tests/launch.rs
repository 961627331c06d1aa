//! Compiled kernels: every code object of `tests/code_objects`, and of the bigger set beside the repository where it is there, gives the
//! outputs that its launch description expects; and what the command says.

use std::path::{Path, PathBuf};
use wavesim_tests::{root, shared, wavesim};

/// Launch descriptions one level below a folder.
fn launches(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path().join("launch.json"))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found
}

/// Runs every target of a description that we can run; gives their number.
fn check(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).expect("readable");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut count = 0;
    for target in json["code"].as_object().expect("code").keys().filter(|t| t.starts_with("gfx1")) {
        let (code, out) =
            wavesim(&["launch", &path.to_string_lossy(), "--target", target, "--check", "--json"]);
        let result: serde_json::Value =
            serde_json::from_str(&out).unwrap_or_else(|e| panic!("{}: {e}: {out}", path.display()));
        assert!(
            code == 0 && result["check"]["passed"] == true,
            "{} {target}: {}",
            path.display(),
            result["check"]
        );
        count += 1;
    }
    count
}

#[test]
fn code_objects_of_the_repository() {
    let count: usize = launches(&root().join("tests/code_objects")).iter().map(|path| check(path)).sum();
    assert!(count >= 13, "{count}");
}

#[test]
fn code_objects_of_the_shared_set() {
    let Some(folder) = shared("kernels") else {
        println!("skipped: no kernels below WAVESIM_SHARED or ../shared");
        return;
    };
    let count: usize = launches(&folder).iter().map(|path| check(path)).sum();
    println!("{count} code objects");
}

fn vadd() -> PathBuf {
    root().join("tests/code_objects/vadd")
}

#[test]
fn arguments_on_the_command_line() {
    let object = vadd().join("vadd.gfx1201.co");
    let object = object.to_string_lossy();
    let args = ["a: f32[4]=arange(4)", "b: f32[4]=repeat(0.5)", "out_c: f32[4]", "3"];
    let mut command = vec!["launch", &object, "--block", "64"];
    args.iter().for_each(|arg| command.extend(["--arg", arg]));
    // The kernel's n is 3: the last element stays.
    assert_eq!(wavesim(&command), (0, "out_c: f32[4] =\n[0.5 1.5 2.5 0. ]\n".to_string()));
    let (code, text) = wavesim(&["launch", &object, "--arg", "1"]);
    assert!(code == 2 && text.contains("the kernel has 4 arguments, 1 are given"), "{text}");
    let (code, text) = wavesim(&["launch", &object, "--arch", "rdna3"]);
    assert!(code == 2 && text.contains("is for rdna4"), "{text}");
    let (code, text) = wavesim(&["launch", &object, "--kernel", "sub"]);
    assert!(code == 2 && text.contains("has `vadd`"), "{text}");
}

#[test]
fn a_wrong_expectation_is_told() {
    let dir = std::env::temp_dir().join(format!("wavesim-launch-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for entry in std::fs::read_dir(vadd()).unwrap().flatten() {
        std::fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    // The last element of the expected array.
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
    // Without --check it is a run like any other.
    let (code, out) =
        wavesim(&["launch", &path, "--mcpu", "gfx1201", "--schedule", "reverse", "--threads", "2"]);
    assert!(code == 0 && out.starts_with("c: f32[1000] =\n["), "{out}");
    std::fs::remove_dir_all(&dir).unwrap();
}
