//! The built-in workloads: code, launch, arguments, and verification of the results.

use super::{BenchError, Prepared};
use isa_spec::arith::{FloatEnv, convert};
use isa_spec::pcode::ir::Ty;
use wavesim_isa::arch::Arch;
use wavesim_native as native;

/// A kernel argument.
pub enum Arg {
    /// A pointer to these dwords.
    Buffer(Vec<u32>),
    /// A dword by value.
    Word(u32),
}

/// The computation of a workload on the host.
pub type Native = Box<dyn FnMut()>;

/// The target for which a workload was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// RDNA 3, waves of 32: the default. A workload that exists only for another architecture has that code
    /// here.
    Wave32,
    /// RDNA 3, waves of 64.
    Wave64,
    /// CDNA 3, whose waves have 64 lanes.
    Cdna3,
    /// RDNA 4, waves of 32.
    Rdna4,
    /// CDNA 5, whose waves have 32 lanes.
    Cdna5,
}

impl Form {
    /// The architectures for which the workloads are compiled.
    pub const ARCHS: [Arch; 4] = [Arch::Rdna3, Arch::Rdna4, Arch::Cdna3, Arch::Cdna5];

    /// Returns the form for an architecture and a wave size.
    pub fn of(arch: Arch, wave_size: u32) -> Option<Form> {
        match (arch, wave_size) {
            (Arch::Rdna3, 32) => Some(Form::Wave32),
            (Arch::Rdna3, 64) => Some(Form::Wave64),
            (Arch::Cdna3, 64) => Some(Form::Cdna3),
            (Arch::Rdna4, 32) => Some(Form::Rdna4),
            (Arch::Cdna5, 32) => Some(Form::Cdna5),
            _ => None,
        }
    }

    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Form::Wave32 => "waves of 32",
            Form::Wave64 => "waves of 64",
            Form::Cdna3 => "cdna3",
            Form::Rdna4 => "rdna4",
            Form::Cdna5 => "cdna5",
        }
    }

    /// Returns the options of `wavesim bench` that select the form.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Form::Wave32 => &[],
            Form::Wave64 => &["--wave", "64"],
            Form::Cdna3 => &["--arch", "cdna3"],
            Form::Rdna4 => &["--arch", "rdna4"],
            Form::Cdna5 => &["--arch", "cdna5"],
        }
    }
}

/// A workload. The sources are in `simulator/bench/`.
pub struct Workload {
    /// The name on the command line.
    pub name: &'static str,
    /// A description of the measured operations.
    pub what: &'static str,
    /// The code objects, by [`Form`]; `None` if the kernel does not support the form.
    pub code: [Option<&'static [u8]>; 5],
    /// The name of the kernel in the code object.
    pub kernel: &'static str,
    /// Workgroups in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// The arguments, in order.
    pub args: fn() -> Vec<Arg>,
    /// Verifies the result of a launch.
    pub check: fn(&Prepared) -> Result<(), BenchError>,
    /// The same computation on the host.
    pub native: Option<fn(&Prepared) -> Native>,
    /// Number of matrix multiplications and additions, if the workload is a matrix product.
    pub operations: Option<f64>,
}

impl Workload {
    /// Returns the code object of a form.
    pub fn code(&self, form: Form) -> Option<&'static [u8]> {
        self.code[form as usize]
    }
}

macro_rules! code {
    (one $file:literal) => {
        Some(include_bytes!(concat!("../../bench/", $file, ".co")).as_slice())
    };
    ($file:literal) => {
        [
            code!(one $file),
            code!(one concat $file, ".wave64"),
            code!(one concat $file, ".cdna3"),
            code!(one concat $file, ".rdna4"),
            code!(one concat $file, ".cdna5"),
        ]
    };
    (one concat $file:literal, $form:literal) => {
        Some(include_bytes!(concat!("../../bench/", $file, $form, ".co")).as_slice())
    };
}

const ALU_ITERS: u32 = 2000;
const SALU_ITERS: u32 = 2000;
const LDS_ITERS: u32 = 200;
const STREAM_GROUPS: u32 = 64;
const STREAM_ITERS: u32 = 64;
const STREAM_ITEMS: u32 = STREAM_GROUPS * 256;
const MATMUL_N: usize = 128;
const BODIES: usize = 512;
const MATMUL_F16_N: usize = 256;
const MATMUL_F16_OPERATIONS: f64 = 2.0 * (MATMUL_F16_N * MATMUL_F16_N * MATMUL_F16_N) as f64;
const PATHTRACE_WIDTH: u32 = 64;
const LOG2_WIDTH: u32 = 6;
const ESCAPE: u32 = 256;

const BLOCK: [u32; 3] = [256, 1, 1];

/// All workloads, in the order of the table that `wavesim bench` prints.
pub static WORKLOADS: &[Workload] = &[
    Workload {
        name: "alu_f32",
        what: "f32 fma, mul, add; all lanes",
        code: code!("alu_f32"),
        kernel: "alu_f32",
        grid: [4, 1, 1],
        block: BLOCK,
        args: || out(1024, ALU_ITERS),
        check: |p| expect_equal(p, 0, (0..1024).map(|gid| native::alu_f32(gid, ALU_ITERS).to_bits())),
        native: None,
        operations: None,
    },
    Workload {
        name: "alu_int",
        what: "32-bit integers: mul_lo, xor, shifts, perm",
        code: code!("alu_int"),
        kernel: "alu_int",
        grid: [4, 1, 1],
        block: BLOCK,
        args: || out(1024, ALU_ITERS),
        check: |p| expect_varied(p, 0),
        native: None,
        operations: None,
    },
    Workload {
        name: "salu",
        what: "scalar loop with branches",
        code: code!("salu"),
        kernel: "salu",
        grid: [16, 1, 1],
        block: BLOCK,
        args: || out(4096, SALU_ITERS),
        check: |p| expect_equal(p, 0, (0..4096).map(|gid| native::salu(gid, SALU_ITERS))),
        native: None,
        operations: None,
    },
    Workload {
        name: "divergent",
        what: "branches by lane: EXEC half empty",
        code: code!("divergent"),
        kernel: "divergent",
        grid: [8, 1, 1],
        block: BLOCK,
        args: || out(2048, ALU_ITERS),
        check: |p| expect_varied(p, 0),
        native: None,
        operations: None,
    },
    Workload {
        name: "saxpy_b32",
        what: "coalesced loads and stores, 4 bytes a lane",
        code: code!("saxpy_b32"),
        kernel: "saxpy_b32",
        grid: [STREAM_GROUPS, 1, 1],
        block: BLOCK,
        args: || {
            let count = (STREAM_ITEMS * STREAM_ITERS) as usize;
            vec![
                Arg::Buffer(floats(count, 3)),
                Arg::Buffer(floats(count, 5)),
                Arg::Word(STREAM_ITERS),
                Arg::Word(1.5f32.to_bits()),
                Arg::Word(STREAM_ITEMS * 4),
                Arg::Word(0),
            ]
        },
        check: |p| {
            let (x, mut y) = (as_f32(&p.buffers[0].initial), as_f32(&p.buffers[1].initial));
            native::saxpy(1.5, &x, &mut y);
            expect_equal(p, 1, y.iter().map(|v| v.to_bits()))
        },
        native: Some(|p| {
            let (x, mut y) = (as_f32(&p.buffers[0].initial), as_f32(&p.buffers[1].initial));
            Box::new(move || {
                native::saxpy(1.5, &x, &mut y);
                std::hint::black_box(&mut y);
            })
        }),
        operations: None,
    },
    Workload {
        name: "copy_b128",
        what: "coalesced loads and stores, 16 bytes a lane",
        code: code!("copy_b128"),
        kernel: "copy_b128",
        grid: [STREAM_GROUPS, 1, 1],
        block: BLOCK,
        args: || {
            let count = (STREAM_ITEMS * 4 * 32) as usize;
            vec![
                Arg::Buffer(floats(count, 7)),
                Arg::Buffer(vec![0; count]),
                Arg::Word(32),
                Arg::Word(0),
                Arg::Word(STREAM_ITEMS * 16),
                Arg::Word(0),
            ]
        },
        check: |p| expect_equal(p, 1, p.buffers[0].initial.iter().copied()),
        native: Some(|p| {
            let x = p.buffers[0].initial.clone();
            let mut y = vec![0; x.len()];
            Box::new(move || {
                y.copy_from_slice(&x);
                std::hint::black_box(&mut y);
            })
        }),
        operations: None,
    },
    Workload {
        name: "lds",
        what: "LDS exchange between waves, barriers",
        code: code!("lds"),
        kernel: "lds",
        grid: [8, 1, 1],
        block: BLOCK,
        args: || out(2048, LDS_ITERS),
        check: |p| expect_equal(p, 0, (0..8).flat_map(|group| native::lds(group, LDS_ITERS))),
        native: None,
        operations: None,
    },
    Workload {
        name: "matmul",
        what: "f32 matrix product through LDS tiles, n = 128",
        code: code!("kernels"),
        kernel: "matmul",
        grid: [(MATMUL_N / 16) as u32, (MATMUL_N / 16) as u32, 1],
        block: [16, 16, 1],
        args: || {
            let count = MATMUL_N * MATMUL_N;
            vec![
                Arg::Buffer(floats(count, 11)),
                Arg::Buffer(floats(count, 13)),
                Arg::Buffer(vec![0; count]),
                Arg::Word(MATMUL_N as u32),
            ]
        },
        check: |p| {
            let (a, b) = (as_f32(&p.buffers[0].initial), as_f32(&p.buffers[1].initial));
            let mut c = vec![0.0; a.len()];
            native::matmul(&a, &b, &mut c, MATMUL_N);
            expect_equal(p, 2, c.iter().map(|v| v.to_bits()))
        },
        native: Some(|p| {
            let (a, b) = (as_f32(&p.buffers[0].initial), as_f32(&p.buffers[1].initial));
            let mut c = vec![0.0; a.len()];
            Box::new(move || {
                native::matmul(&a, &b, &mut c, MATMUL_N);
                std::hint::black_box(&mut c);
            })
        }),
        operations: Some(2.0 * (MATMUL_N * MATMUL_N * MATMUL_N) as f64),
    },
    Workload {
        name: "nbody",
        what: "rsqrt-heavy f32, 512 bodies",
        code: code!("kernels"),
        kernel: "nbody",
        grid: [(BODIES / 256) as u32, 1, 1],
        block: BLOCK,
        args: || {
            vec![
                Arg::Buffer(floats(BODIES * 4, 17)),
                Arg::Buffer(vec![0; BODIES * 4]),
                Arg::Word(BODIES as u32),
            ]
        },
        check: |p| {
            let pos = as_f32(&p.buffers[0].initial);
            let mut acc = vec![0.0; pos.len()];
            native::nbody(&pos, &mut acc);
            // The host divides by a rounded square root; the kernel multiplies by a rounded reciprocal.
            expect_near(p, 1, &acc, 1e-3)
        },
        native: Some(|p| {
            let pos = as_f32(&p.buffers[0].initial);
            let mut acc = vec![0.0; pos.len()];
            Box::new(move || {
                native::nbody(&pos, &mut acc);
                std::hint::black_box(&mut acc);
            })
        }),
        operations: None,
    },
    Workload {
        name: "mandelbrot",
        what: "divergent loop, 64 x 64 pixels, 256 iterations",
        code: code!("kernels"),
        kernel: "mandelbrot",
        grid: [(1 << (2 * LOG2_WIDTH)) / 256, 1, 1],
        block: BLOCK,
        args: || {
            let count = 1 << (2 * LOG2_WIDTH);
            vec![
                Arg::Buffer(vec![0; count]),
                Arg::Word(LOG2_WIDTH),
                Arg::Word(ESCAPE),
                Arg::Word(step().to_bits()),
            ]
        },
        check: |p| {
            let mut out = vec![0; p.buffers[0].initial.len()];
            native::mandelbrot(&mut out, LOG2_WIDTH, ESCAPE, step());
            expect_equal(p, 0, out.into_iter())
        },
        native: Some(|p| {
            let mut out = vec![0; p.buffers[0].initial.len()];
            Box::new(move || {
                native::mandelbrot(&mut out, LOG2_WIDTH, ESCAPE, step());
                std::hint::black_box(&mut out);
            })
        }),
        operations: None,
    },
    Workload {
        name: "matmul_f16",
        what: "WMMA: f32 matrix product of f16, n = 256",
        code: [code!(one "wide"), None, None, None, None],
        kernel: "matmul_f16",
        grid: [(MATMUL_F16_N / 64) as u32, (MATMUL_F16_N / 64) as u32, 1],
        block: [32, 1, 1],
        args: args_f16,
        check: |p| expect_equal(p, 2, product_f16(p).iter().map(|v| v.to_bits())),
        native: Some(native_f16),
        operations: Some(MATMUL_F16_OPERATIONS),
    },
    Workload {
        name: "matmul_mfma",
        what: "MFMA of CDNA 3: f32 matrix product of f16, n = 256",
        code: [code!(one "wide.cdna3"), None, code!(one "wide.cdna3"), None, None],
        kernel: "matmul_mfma",
        grid: [(MATMUL_F16_N / 64) as u32, (MATMUL_F16_N / 64) as u32, 1],
        block: [64, 1, 1],
        args: args_f16,
        // The sums are in a different order.
        check: |p| expect_near(p, 2, &product_f16(p), 1e-5),
        native: Some(native_f16),
        operations: Some(MATMUL_F16_OPERATIONS),
    },
    Workload {
        name: "pathtrace_f64",
        what: "f64 path tracer, 64 x 64 pixels, 6 reflections",
        code: code!("wide"),
        kernel: "pathtrace",
        grid: [PATHTRACE_WIDTH * PATHTRACE_WIDTH / 256, 1, 1],
        block: BLOCK,
        args: || {
            let count = (PATHTRACE_WIDTH * PATHTRACE_WIDTH) as usize;
            vec![
                Arg::Buffer(vec![0; 6 * count]),
                Arg::Buffer(SPHERES.as_flattened().iter().flat_map(|v| words(*v)).collect()),
                Arg::Word(SPHERES.len() as u32),
                Arg::Word(PATHTRACE_WIDTH),
            ]
        },
        check: |p| {
            let mut out = vec![0.0; p.buffers[0].initial.len() / 2];
            native::pathtrace(&mut out, SPHERES.as_flattened(), PATHTRACE_WIDTH);
            expect_equal(p, 0, out.into_iter().flat_map(words))
        },
        native: Some(|p| {
            let mut out = vec![0.0; p.buffers[0].initial.len() / 2];
            Box::new(move || {
                native::pathtrace(&mut out, SPHERES.as_flattened(), PATHTRACE_WIDTH);
                std::hint::black_box(&mut out);
            })
        }),
        operations: None,
    },
];

/// A box of large spheres with two spheres inside, and a lamp: center, radius, emission, colour.
const SPHERES: [[f64; 8]; 8] = [
    [-1001.5, 0.0, 0.0, 1000.0, 0.0, 0.75, 0.25, 0.25],
    [1001.5, 0.0, 0.0, 1000.0, 0.0, 0.25, 0.25, 0.75],
    [0.0, -1001.5, 0.0, 1000.0, 0.0, 0.75, 0.75, 0.75],
    [0.0, 1001.5, 0.0, 1000.0, 0.0, 0.75, 0.75, 0.75],
    [0.0, 0.0, 1002.5, 1000.0, 0.0, 0.75, 0.75, 0.75],
    [-0.6, -0.9, 1.2, 0.6, 0.0, 0.9, 0.9, 0.9],
    [0.7, -0.9, 0.6, 0.6, 0.0, 0.5, 0.9, 0.6],
    [0.0, 1.5, 1.0, 0.5, 12.0, 0.0, 0.0, 0.0],
];

/// Returns the dwords of an f64.
fn words(value: f64) -> [u32; 2] {
    [value.to_bits() as u32, (value.to_bits() >> 32) as u32]
}

/// Returns pairs of pseudo-random f16 values in 0..1.
fn halves(count: usize, seed: u32) -> Vec<u32> {
    let half = |single: u32| convert(single as u128, Ty::F32, Ty::F16, &FloatEnv::KEEP) as u32;
    floats(count, seed).chunks_exact(2).map(|pair| half(pair[0]) | half(pair[1]) << 16).collect()
}

/// Returns two f16 matrices, space for their product, and the size.
fn args_f16() -> Vec<Arg> {
    let count = MATMUL_F16_N * MATMUL_F16_N;
    vec![
        Arg::Buffer(halves(count, 19)),
        Arg::Buffer(halves(count, 23)),
        Arg::Buffer(vec![0; count]),
        Arg::Word(MATMUL_F16_N as u32),
    ]
}

/// Returns the product as the host computes it.
fn product_f16(p: &Prepared) -> Vec<f32> {
    let (a, b, mut c) = matrices_f16(p);
    native::matmul(&a, &b, &mut c, MATMUL_F16_N);
    c
}

/// Returns a closure that computes the product.
fn native_f16(p: &Prepared) -> Native {
    let (a, b, mut c) = matrices_f16(p);
    Box::new(move || {
        native::matmul(&a, &b, &mut c, MATMUL_F16_N);
        std::hint::black_box(&mut c);
    })
}

/// Returns the f16 matrices as f32, the second one transposed to row-major order, and space for the product.
fn matrices_f16(p: &Prepared) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let single =
        |half: u32| f32::from_bits(convert(half as u16 as u128, Ty::F16, Ty::F32, &FloatEnv::KEEP) as u32);
    let matrix = |buffer: usize| -> Vec<f32> {
        let words = p.buffers[buffer].initial.iter();
        words.flat_map(|word| [single(word & 0xffff), single(word >> 16)]).collect()
    };
    let (a, columns) = (matrix(0), matrix(1));
    let mut b = vec![0.0; columns.len()];
    for (at, b) in b.iter_mut().enumerate() {
        *b = columns[at % MATMUL_F16_N * MATMUL_F16_N + at / MATMUL_F16_N];
    }
    let c = vec![0.0; a.len()];
    (a, b, c)
}

fn step() -> f32 {
    3.0 / (1 << LOG2_WIDTH) as f32
}

/// Returns an output buffer, an iteration count and padding.
fn out(items: usize, iters: u32) -> Vec<Arg> {
    vec![Arg::Buffer(vec![0; items]), Arg::Word(iters), Arg::Word(0)]
}

/// Returns pseudo-random values in 0..1, the same in every run (linear congruential generator).
fn floats(count: usize, seed: u32) -> Vec<u32> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 24) as f32).to_bits()
    })
    .take(count)
    .collect()
}

fn as_f32(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&w| f32::from_bits(w)).collect()
}

fn mismatch(p: &Prepared, what: String) -> BenchError {
    BenchError::Wrong { workload: p.workload.name, what }
}

fn expect_equal(p: &Prepared, buffer: usize, expected: impl Iterator<Item = u32>) -> Result<(), BenchError> {
    let mut actual = p.read(buffer)?.into_iter().enumerate();
    for want in expected {
        match actual.next() {
            Some((_, got)) if got == want => {}
            Some((at, got)) => return Err(mismatch(p, format!("[{at}] is {got:08x}, not {want:08x}"))),
            None => return Err(mismatch(p, "too short".to_string())),
        }
    }
    Ok(())
}

fn expect_near(p: &Prepared, buffer: usize, expected: &[f32], relative: f32) -> Result<(), BenchError> {
    for (at, (got, want)) in as_f32(&p.read(buffer)?).into_iter().zip(expected).enumerate() {
        let close = (got - want).abs() <= relative * want.abs().max(1.0);
        if !close {
            return Err(mismatch(p, format!("[{at}] is {got}, not {want}")));
        }
    }
    Ok(())
}

/// Only checks that the work-items wrote different values; conformance tests verify these instructions.
fn expect_varied(p: &Prepared, buffer: usize) -> Result<(), BenchError> {
    let values = p.read(buffer)?;
    if values.iter().all(|v| *v == values[0]) {
        return Err(mismatch(p, format!("every work-item has {:08x}", values[0])));
    }
    Ok(())
}
