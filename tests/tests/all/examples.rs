//! Compares the outputs of every file in `examples/` with results computed in Rust, on RDNA and CDNA 5.

use std::collections::BTreeMap;
use wavesim::arch::Arch;
use wavesim::array::Array;
use wavesim_tests::{Setup, f32s, root, run, wavesim, words};

fn example(name: &str, setup: &Setup) -> BTreeMap<String, Array> {
    let path = root().join("examples").join(name);
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    run(&source, setup).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// Runs an example, and checks each output.
fn on_all(name: &str, defines: &[&str], check: impl Fn(&BTreeMap<String, Array>)) {
    // Those with the names of RDNA's instructions.
    for arch in Arch::RDNA.into_iter().chain([Arch::Cdna5]) {
        let defines = defines.iter().map(|d| d.to_string()).collect();
        check(&example(name, &Setup { arch, defines, ..Setup::default() }));
    }
}

#[test]
fn arange() {
    on_all("arange.rdna", &[], |out| {
        assert_eq!(f32s(&out["out_y"]), (0..16).map(|i| i as f32 + 1.0).collect::<Vec<_>>());
    });
}

/// Independent implementation of `rand()`: SplitMix64, with the top 24 bits as a fraction.
fn rand_f32(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    };
    (0..count).map(|_| (next() >> 40) as f32 / 16777216.0).collect()
}

#[test]
fn header() {
    for seed in [0, 7] {
        let setup = Setup { seed, defines: vec!["N=16".to_string()], ..Setup::default() };
        let out = example("header.rdna", &setup);
        let expected: Vec<f32> =
            rand_f32(seed, 16).iter().enumerate().map(|(i, w)| (i as f32).mul_add(3.0, *w)).collect();
        assert_eq!((f32s(&out["out_y"]), &out["out_y"].shape[..]), (expected, &[4, 4][..]));
    }
}

#[test]
fn vector_add() {
    for n in [1, 63, 64, 100, 1000] {
        on_all("vector_add.rdna", &[&format!("N={n}")], |out| {
            assert_eq!(f32s(&out["out_c"]), (0..n).map(|i| i as f32 + 0.5).collect::<Vec<_>>());
        });
    }
}

#[test]
fn saxpy() {
    on_all("saxpy.rdna", &[], |out| {
        let expected: Vec<f32> =
            (0..256).map(|i| 2.5f32.mul_add(i as f32 * 0.25, (256 - i) as f32)).collect();
        assert_eq!(f32s(&out["out_y"]), expected);
    });
}

#[test]
fn matmul() {
    on_all("matmul.rdna", &[], |out| {
        let a = |row: usize, k: usize| (row * 16 + k) as u64;
        let b = |k: usize, column: usize| 256 - (k * 16 + column) as u64;
        let element = |at: usize| (0..16).map(|k| a(at / 16, k) * b(k, at % 16)).sum::<u64>() as f32;
        assert_eq!(f32s(&out["out_c"]), (0..256).map(element).collect::<Vec<_>>());
    });
}

fn mandelbrot_iterations(column: usize, row: usize) -> u32 {
    let (cx, cy) = (column as f32 * 0.09375 - 2.0, row as f32 * 0.125 - 1.0);
    let (mut x, mut y) = (0f32, 0f32);
    let mut iterations = 0;
    while iterations < 50 && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + cx, 2.0 * (x * y) + cy);
        iterations += 1;
    }
    iterations
}

#[test]
fn mandelbrot() {
    on_all("mandelbrot.rdna", &[], |out| {
        let expected: Vec<u32> =
            (0..16).flat_map(|row| (0..32).map(move |column| mandelbrot_iterations(column, row))).collect();
        assert_eq!(words(&out["out_iterations"]), expected);
    });
}

#[test]
fn collatz() {
    let steps = |mut n: u64| {
        let mut steps = 0;
        while n != 1 {
            n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    };
    on_all("collatz.rdna", &[], |out| {
        assert_eq!(words(&out["out_steps"]), (1..=64).map(steps).collect::<Vec<u32>>());
    });
}

#[test]
fn every_example_has_a_test_and_a_comment() {
    let tests = include_str!("examples.rs");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("examples")).expect("examples/") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "rdna") {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("readable");
            let comment = text.lines().take_while(|line| line.starts_with("; ")).count();
            assert!(comment >= 2, "{name}: the comment does not say what the example shows");
            assert!(tests.contains(&format!("\"{name}\"")), "{name} has no test");
            names.push(name);
        }
    }
    assert!(names.len() >= 7, "{names:?}");
}

#[test]
fn readme_shows_the_command_output() {
    let path = root().join("examples/broken/missing_wait.rdna");
    let (code, text) = wavesim(&["check", &path.to_string_lossy()]);
    assert_eq!(code, 1, "the kernel has an error");
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let indented = |line: &str| if line.is_empty() { "\n".to_string() } else { format!("    {line}\n") };
    let shown: String = text.lines().map(indented).collect();
    assert!(readme.contains(&shown), "README.md does not show:\n{shown}");
}
