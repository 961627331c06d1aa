//! `kernels/x.rdna`: LDS, atomics, lane movement, barriers, scratch and typed buffers, in wave32 and wave64,
//! with every schedule, on one and two threads, on every architecture that has the instructions. The expected
//! output comes from the Rust references below.

use crate::files;
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use wavesim::arch::Arch;
use wavesim::array::Array;
use wavesim::sched::dispatch::Schedule;
use wavesim_tests::{Setup, f32s, parse, run, words};

/// Computes the words of the kernel's only output from its inputs.
type Reference = fn(&dyn Fn(&str) -> Array) -> Vec<u32>;

const REFERENCES: &[(&str, &[Arch], Reference)] = &[
    ("bitonic", &Arch::RDNA, bitonic_sort),
    ("histogram", &Arch::RDNA, histogram),
    ("lds_mask", &[Arch::Cdna5], |_| (0..32).map(|t| if t < 16 { t } else { 7 }).collect()),
    ("matmul_lds", &Arch::RDNA, matmul),
    ("reduce", &Arch::RDNA, |input| words(&input("arg_x")).chunks(32).map(|c| c.iter().sum()).collect()),
    ("scan", &Arch::RDNA, prefix_sums),
    ("spill", &Arch::RDNA, |input| {
        (0..).zip(words(&input("arg_x"))).map(|(t, x)| ((x & 7) + 1) * x + t).collect()
    }),
    ("split_barrier", &[Arch::Rdna4], |_| {
        (0..128).map(|t| if t < 64 { 1000 + t } else { (127 - t) * 3 }).collect()
    }),
    ("transpose", &Arch::RDNA, |_| {
        (0..48).flat_map(|column| (0..32).map(move |row| row * 48 + column)).collect()
    }),
    ("typed_buffer", &Arch::RDNA, typed_buffer_loads),
];

pub fn trials() -> Vec<Trial> {
    let trials = files("kernels", "rdna", everywhere);
    assert_eq!(trials.len(), REFERENCES.len(), "a reference without a kernel");
    trials
}

/// Compares the kernel's output with the reference in every configuration.
fn everywhere(path: &Path) -> Result<(), Failed> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let found = REFERENCES.iter().find(|r| r.0 == name);
    let &(_, archs, reference) =
        found.ok_or("a kernel without a reference (tests/tests/filetests/kernels.rs)")?;
    let source = std::fs::read_to_string(path)?;
    let schedules = [Schedule::RoundRobin, Schedule::Reverse, Schedule::Random(1), Schedule::Fine(2)];
    for &arch in archs {
        for &wave in arch.wave_sizes() {
            let setup = Setup { arch, wave: Some(wave), seed: 5, ..Setup::default() };
            let kernel = parse(&source, &setup)?;
            let input = |name: &str| {
                let found = kernel.header.args.iter().find(|a| a.name == name);
                found.unwrap_or_else(|| panic!("no argument {name}")).array.clone()
            };
            let expected = reference(&input);
            for schedule in schedules {
                for threads in [1, 2] {
                    let setup = Setup { schedule, threads, ..setup.clone() };
                    let what = format!("{} wave{wave} {schedule:?} {threads} threads", arch.name());
                    let out = run(&source, &setup).map_err(|fault| format!("{what}: {fault}"))?;
                    let actual: Vec<u32> = out.values().flat_map(words).collect();
                    if actual != expected {
                        return Err(format!("{what}\n{actual:x?}\n{expected:x?}").into());
                    }
                }
            }
        }
    }
    Ok(())
}

fn bits(values: impl Iterator<Item = f32>) -> Vec<u32> {
    values.map(f32::to_bits).collect()
}

fn matmul(input: &dyn Fn(&str) -> Array) -> Vec<u32> {
    let (a, b) = (f32s(&input("arg_a")), f32s(&input("arg_b")));
    let element =
        |at: usize| (0..32).fold(0f32, |sum, k| a[at / 32 * 32 + k].mul_add(b[k * 32 + at % 32], sum));
    bits((0..1024).map(element))
}

fn histogram(input: &dyn Fn(&str) -> Array) -> Vec<u32> {
    let mut bins = vec![0; 128];
    words(&input("arg_data")).into_iter().for_each(|v| bins[v as usize] += 1);
    bins
}

fn prefix_sums(input: &dyn Fn(&str) -> Array) -> Vec<u32> {
    let mut sum = 0;
    words(&input("arg_x"))
        .into_iter()
        .map(|v| {
            sum += v;
            sum
        })
        .collect()
}

fn bitonic_sort(input: &dyn Fn(&str) -> Array) -> Vec<u32> {
    let mut sorted = words(&input("arg_x"));
    sorted.sort_unstable();
    sorted
}

fn typed_buffer_loads(input: &dyn Fn(&str) -> Array) -> Vec<u32> {
    let pixels = input("arg_pixels").bytes;
    bits((0..256).map(|at| if at < 48 * 4 { f32::from(pixels[at]) / 255.0 } else { 0.0 }))
}
