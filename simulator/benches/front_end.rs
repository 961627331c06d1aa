//! `cargo bench --bench front_end`: the time from a file to its first instruction. `wavesim bench` measures
//! the interpreter.
//!
//! Throughputs are instructions (decoder) and lines (readers) per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use isa_spec::source::SourceMap;
use std::hint::black_box;
use std::process::Command;
use wavesim::arch::Arch;
use wavesim::bench::WORKLOADS;
use wavesim::codec;
use wavesim::exec::program::Program;
use wavesim::loader::code_object;
use wavesim::text;
use wavesim::{asm, assembler};

/// Lines of a kernel, in a syntax that both parsers accept.
const LINES: [&str; 10] = [
    "  v_fma_f32 v1, v2, v3, v1",
    "  v_add_nc_u32_e32 v4, 4, v4",
    "  global_load_b32 v5, v4, s[6:7] offset:16",
    "  v_mul_f32_e64 v6, |v1|, -v5",
    "  s_waitcnt vmcnt(0)",
    "  ds_store_b32 v4, v6 offset:64",
    "  v_cmp_lt_f32_e32 vcc_lo, 0x42280000, v6",
    "  s_and_saveexec_b32 s10, vcc_lo",
    "  v_cndmask_b32_e64 v7, 0, 1.0, s10",
    "  s_cbranch_execz end",
];
const COUNT: usize = 10_000;

fn lines() -> String {
    let mut text: String = LINES.iter().cycle().take(COUNT).flat_map(|line| [line, "\n"]).collect();
    text.push_str("end:\n  s_endpgm\n");
    text
}

/// Returns the words of a compiled kernel.
fn words() -> Vec<u32> {
    let workload = &WORKLOADS[0];
    let kernel =
        code_object::load(workload.code[0].expect("a code object"), workload.kernel).expect("a code object");
    codec::words(&kernel.text.1)
}

fn readers(c: &mut Criterion) {
    let text = lines();
    let kernel = format!("---\nlocal = 1, 1, 1\nglobal = 1, 1, 1\n---\n{text}");
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Elements(COUNT as u64));
    group.bench_function("text", |b| {
        b.iter(|| {
            let mut sources = SourceMap::default();
            let file = sources.add("kernel.rdna", &kernel);
            text::parse(&sources, file, &text::Options::default()).expect("a kernel")
        })
    });
    let options = asm::Options::new(Arch::Rdna3);
    group.bench_function("assembly", |b| {
        b.iter(|| {
            let (program, errors) = assembler::read(&text, &options);
            assert!(errors.is_empty(), "{}", errors.len());
            program
        })
    });
    let words = words();
    let instructions = {
        let mut at = 0;
        let sizes = std::iter::from_fn(|| {
            let inst = codec::decode(Arch::Rdna3, words.get(at..)?).ok()?;
            at += inst.size as usize / 4;
            Some(inst)
        });
        sizes.count()
    };
    group.throughput(Throughput::Elements(instructions as u64));
    group.bench_function("decode", |b| {
        b.iter(|| {
            let mut at = 0;
            while let Ok(inst) = codec::decode(Arch::Rdna3, black_box(&words[at..])) {
                at += inst.size as usize / 4;
            }
            at
        })
    });
    group.bench_function("decode and lower", |b| {
        b.iter(|| Program::from_words(Arch::Rdna3, black_box(&words)))
    });
    group.finish();
}

/// The whole command on a small kernel.
fn command(c: &mut Criterion) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/vector_add.rdna");
    let mut group = c.benchmark_group("command");
    group.sample_size(20);
    group.bench_function("run vector_add", |b| {
        b.iter(|| {
            let output = Command::new(env!("CARGO_BIN_EXE_wavesim")).args(["run", example]).output();
            assert!(output.is_ok_and(|o| o.status.success()));
        })
    });
    group.finish();
}

criterion_group!(benches, readers, command);
criterion_main!(benches);
