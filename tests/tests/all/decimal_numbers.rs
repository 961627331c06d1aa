//! Decimal numbers are the nearest values of their types in every front end. The references are Rust's parser
//! and `rustc_apfloat`.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustc_apfloat::ieee::{BFloat, Half};
use rustc_apfloat::{Float, Round};
use wavesim::arch::Arch;
use wavesim::array::{DType, fill};
use wavesim::asm::Options;
use wavesim::assembler::read;
use wavesim::debug::command::Debugger;
use wavesim::debug::timeline::Timeline;
use wavesim::loader::launch::{self, ArgumentKind, Init, TargetSelection};
use wavesim::loader::request::{ArgumentValue, argument};
use wavesim::loader::text_kernel;

/// The bits of the f32, f64, f16 and bf16 nearest to a number.
struct Nearest {
    f32: u32,
    f64: u64,
    f16: u16,
    bf16: u16,
}

impl Nearest {
    fn to(text: &str) -> Nearest {
        let half = Half::from_str_r(text, Round::NearestTiesToEven).unwrap().value.to_bits() as u16;
        let brain = BFloat::from_str_r(text, Round::NearestTiesToEven).unwrap().value.to_bits() as u16;
        let (f32, f64): (f32, f64) = (text.parse().unwrap(), text.parse().unwrap());
        Nearest { f32: f32.to_bits(), f64: f64.to_bits(), f16: half, bf16: brain }
    }
}

/// Texts that are within the range of f16, often close to the middle between two f32 or f16.
fn numbers() -> impl Strategy<Value = String> {
    let near = |middle: f64, above: bool| {
        let digits = format!("{middle:.60}");
        if above { format!("{digits}1") } else { digits }
    };
    prop_oneof![
        "-?[1-9][0-9]{0,3}\\.[0-9]{1,30}",
        "-?0\\.[0-9]{0,4}[1-9][0-9]{0,25}",
        (0x3f80_0000_u32..0x4700_0000, any::<bool>()).prop_map(move |(bits, above)| {
            let value = f32::from_bits(bits) as f64;
            near((value + f32::from_bits(bits + 1) as f64) / 2.0, above)
        }),
        (0x1400_u16..0x7800, any::<bool>()).prop_map(move |(bits, above)| {
            let value = |bits| half::f16::from_bits(bits).to_f64();
            near((value(bits) + value(bits + 1)) / 2.0, above)
        }),
    ]
}

/// The types and the bytes that a number becomes in each.
fn bytes(nearest: &Nearest) -> [(DType, Vec<u8>); 4] {
    [
        (DType::F32, nearest.f32.to_le_bytes().to_vec()),
        (DType::F64, nearest.f64.to_le_bytes().to_vec()),
        (DType::F16, nearest.f16.to_le_bytes().to_vec()),
        (DType::BF16, nearest.bf16.to_le_bytes().to_vec()),
    ]
}

/// Calls `test` with the same random numbers in each run.
fn for_numbers(count: u32, test: impl Fn(&str)) {
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let run = runner.run(&numbers(), |text| {
        test(&text);
        Ok(())
    });
    run.unwrap_or_else(|e| panic!("{e}"));
}

/// Lists in headers of text kernels, whose syntax is that of `--arg`, and constants.
#[test]
fn headers_of_text_kernels() {
    for_numbers(200, |number| {
        for (dtype, bytes) in bytes(&Nearest::to(number)) {
            let name = dtype.name();
            let kernel = format!("---\nconst C = {number}\nx: {name}[2] = {number}, C\n---\n  s_endpgm\n");
            let options = text_kernel::Options { global_bytes: 1 << 20, ..Default::default() };
            let prepared =
                text_kernel::prepare("k.rdna", &kernel, &options, 0).unwrap_or_else(|_| panic!("{kernel}"));
            let data = prepared.buffers[0].read(&prepared.memory).unwrap().bytes;
            assert_eq!(data[..2 * bytes.len()], [&bytes[..], &bytes[..]].concat(), "{number} as {name}");
        }
    });
}

/// Scalars, elements and plain numbers of `--arg`; a parameter's type gives a plain number its size.
#[test]
fn arguments_of_the_command_line() {
    let options = text_kernel::Options { global_bytes: 1 << 20, ..Default::default() };
    let value = |text: &str| argument(text, 0, &options).unwrap_or_else(|e| panic!("{text}: {e}")).1;
    for_numbers(500, |number| {
        let ArgumentValue::Number(plain) = value(&format!("x: {number}")) else { panic!("{number}") };
        for (dtype, bytes) in bytes(&Nearest::to(number)) {
            let name = dtype.name();
            assert_eq!(
                value(&format!("{name}={number}")),
                ArgumentValue::Bytes(bytes.clone()),
                "{number} as {name}"
            );
            let ArgumentValue::Buffer(array) = value(&format!("x: {name}[2] = {number}, {number}")) else {
                panic!("{number}")
            };
            assert_eq!(array.bytes, bytes.repeat(2), "{number} as {name}");
            let mut encoded = Vec::new();
            dtype.encode(plain, &mut encoded).unwrap();
            assert_eq!(encoded, bytes, "{number} as {name}");
        }
    });
}

/// Scalars and contents of buffers of launch descriptions.
#[test]
fn launch_descriptions() {
    for_numbers(200, |number| {
        for (dtype, bytes) in bytes(&Nearest::to(number)) {
            let name = dtype.name();
            let description = format!(
                r#"{{"schema": "wavesim-launch-1", "kernel": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "code": {{"gfx1100": "k.co"}},
                "args": [{{"name": "x", "kind": "scalar", "dtype": "{name}", "value": {number}}},
                {{"name": "y", "kind": "buffer", "dtype": "{name}", "shape": [2], "init": {{"fill": {number}}}}},
                {{"name": "z", "kind": "buffer", "dtype": "{name}", "shape": [2], "init": {{"arange": {{"start": {number}, "step": 0.5}}}}}}]}}"#
            );
            let (launch, _) = launch::parse(&description, &TargetSelection::default()).unwrap();
            for argument in &launch.args {
                let encoded = match &argument.kind {
                    ArgumentKind::Scalar { value, .. } => {
                        let mut out = Vec::new();
                        dtype.encode(value.0, &mut out).unwrap();
                        out
                    }
                    ArgumentKind::Buffer { init: Init::Fill(value), .. } => {
                        fill::repeat(dtype, &[1], value.0).unwrap().bytes
                    }
                    ArgumentKind::Buffer { init: Init::Arange { start, step }, .. } => {
                        fill::progression(dtype, &[1], start.0, step.0).unwrap().bytes
                    }
                    _ => unreachable!(),
                };
                assert_eq!(encoded, bytes, "{number} as {name}");
            }
        }
    });
}

/// Data and operands of assembly files.
#[test]
fn assembly_files() {
    for_numbers(500, |number| {
        let nearest = Nearest::to(number);
        let source = format!(
            ".text\n.float {number}\n.double {number}\nv_mul_f32 v0, lit({number}), v1\nv_mul_f16 v0, lit({number}), v1\n\
             v_mul_f64 v[0:1], lit({number}), v[2:3]\nv_pk_mul_f16 v0, lit({number}), v1\n\
             v_dot2_f32_bf16 v0, lit({number}), v1, v2\ns_mov_b32 s0, lit({number})\n"
        );
        let (mut program, errors) = read(&source, &Options::new(Arch::Rdna4));
        assert!(errors.is_empty(), "{number}: {errors:?}");
        assert!(program.link(&Options::new(Arch::Rdna4)).is_empty());
        let text = &program.sections.iter().find(|s| s.name == ".text").unwrap().bytes;
        let word = |at: usize| u32::from_le_bytes(text[at..][..4].try_into().unwrap());
        assert_eq!(word(0), nearest.f32, "{number}");
        assert_eq!((word(8) as u64) << 32 | word(4) as u64, nearest.f64, "{number}");
        assert_eq!(word(16), nearest.f32, "{number}");
        assert_eq!(word(24), nearest.f16 as u32, "{number}");
        // A literal holds the upper half of an f64; the lower half is zero (RDNA 4 manual, *Literal Constants*).
        assert_eq!(word(32), (nearest.f64 >> 32) as u32, "{number}");
        assert_eq!(word(44), nearest.f16 as u32, "{number}");
        assert_eq!(word(56), nearest.bf16 as u32, "{number}");
        assert_eq!(word(64), nearest.f32, "{number}");
    });
}

/// Values that the debugger writes to registers.
#[test]
fn values_in_the_debugger() {
    let options = text_kernel::Options { global_bytes: 1 << 20, ..Default::default() };
    let kernel = "---\nout_y: i32[32]\nlocal = 32, 1, 1\nwave = 32\n---\n  s_nop 0\n  s_endpgm\n";
    let prepared = text_kernel::prepare("k.rdna", kernel, &options, 0).unwrap();
    let dispatch = prepared.dispatch(1000);
    for_numbers(100, |number| {
        let mut debugger = Debugger::new(Timeline::new(&prepared, &dispatch).unwrap(), || false);
        for (dtype, mut bytes) in bytes(&Nearest::to(number)) {
            bytes.resize(8, 0);
            for edit in ["set s[4:5] = 0".to_string(), format!("set s[4:5].{} = {number}", dtype.name())] {
                debugger.execute(&edit).0.unwrap_or_else(|e| panic!("{edit}: {e}"));
            }
            let printed = debugger.execute("print s[4:5]").0.unwrap();
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let expected = format!("s4 = 0x{:08x}\ns5 = 0x{:08x}\n", word(0), word(4));
            assert_eq!(printed, expected, "{number} as {}", dtype.name());
        }
    });
}
