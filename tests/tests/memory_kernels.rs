//! Kernels of `tests/kernels` against references in Rust: LDS, atomics, lane movement, barriers, scratch, typed buffers; in waves of 32
//! and 64, every order of waves, one and two threads, on every architecture that has the instructions.

use wavesim::arch::Arch;
use wavesim::array::Array;
use wavesim::sched::dispatch::Schedule;
use wavesim_tests::{Setup, f32s, parse, root, run, words};

/// The kernel's only output in every setting; checks each against `expected`. Inputs that the reference needs: by name, from the header.
fn everywhere<T: PartialEq + std::fmt::Debug>(
    name: &str,
    archs: &[Arch],
    read: impl Fn(&Array) -> Vec<T>,
    reference: impl Fn(&dyn Fn(&str) -> Array) -> Vec<T>,
) {
    let path = root().join("tests/kernels").join(name);
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let schedules = [Schedule::RoundRobin, Schedule::Reverse, Schedule::Random(1), Schedule::Random(2)];
    for &arch in archs {
        for wave in [32, 64] {
            let setup = Setup { arch, wave: Some(wave), seed: 5, ..Setup::default() };
            let kernel = parse(&source, &setup).unwrap_or_else(|e| panic!("{e}"));
            let input = |wanted: &str| {
                let found = kernel.header.args.iter().find(|a| a.name == wanted);
                found.unwrap_or_else(|| panic!("no argument {wanted}")).array.clone()
            };
            let expected = reference(&input);
            for schedule in schedules {
                for threads in [1, 2] {
                    let setup = Setup { schedule, threads, ..setup.clone() };
                    let what = format!("{name} {} wave{wave} {schedule:?} {threads} threads", arch.name());
                    let out = run(&source, &setup).unwrap_or_else(|fault| panic!("{what}: {fault}"));
                    let actual: Vec<T> = out.values().flat_map(&read).collect();
                    assert!(actual == expected, "{what}\n{actual:?}\n{expected:?}");
                }
            }
        }
    }
}

#[test]
fn matmul_lds() {
    everywhere("matmul_lds.rdna", &Arch::RDNA, f32s, |input| {
        let (a, b) = (f32s(&input("arg_a")), f32s(&input("arg_b")));
        let element =
            |at: usize| (0..32).fold(0f32, |sum, k| a[at / 32 * 32 + k].mul_add(b[k * 32 + at % 32], sum));
        (0..1024).map(element).collect()
    });
}

#[test]
fn histogram() {
    everywhere("histogram.rdna", &Arch::RDNA, words, |input| {
        let mut bins = vec![0; 128];
        words(&input("arg_data")).into_iter().for_each(|v| bins[v as usize] += 1);
        bins
    });
}

#[test]
fn reduction_by_dpp_and_bpermute() {
    everywhere("reduce.rdna", &Arch::RDNA, words, |input| {
        words(&input("arg_x")).chunks(32).map(|c| c.iter().sum()).collect()
    });
}

#[test]
fn prefix_scan() {
    everywhere("scan.rdna", &Arch::RDNA, words, |input| {
        let mut sum = 0;
        words(&input("arg_x"))
            .into_iter()
            .map(|v| {
                sum += v;
                sum
            })
            .collect()
    });
}

#[test]
fn bitonic_sort() {
    everywhere("bitonic.rdna", &Arch::RDNA, words, |input| {
        let mut sorted = words(&input("arg_x"));
        sorted.sort_unstable();
        sorted
    });
}

#[test]
fn transpose() {
    everywhere("transpose.rdna", &Arch::RDNA, words, |_| {
        (0..48).flat_map(|column| (0..32).map(move |row| row * 48 + column)).collect()
    });
}

#[test]
fn spill_to_scratch() {
    everywhere("spill.rdna", &Arch::RDNA, words, |input| {
        (0..).zip(words(&input("arg_x"))).map(|(t, x)| ((x & 7) + 1) * x + t).collect()
    });
}

#[test]
fn split_barriers() {
    everywhere("split_barrier.rdna", &[Arch::Rdna4], words, |_| {
        (0..128).map(|t| if t < 64 { 1000 + t } else { (127 - t) * 3 }).collect()
    });
}

#[test]
fn typed_buffer_loads() {
    everywhere("typed_buffer.rdna", &Arch::RDNA, f32s, |input| {
        let pixels = input("arg_pixels").bytes;
        (0..256).map(|at| if at < 48 * 4 { f32::from(pixels[at]) / 255.0 } else { 0.0 }).collect()
    });
}
