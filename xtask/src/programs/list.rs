//! The programs, as data: what to fetch, and what to run.

use super::outcome::{self, Count};

/// A program.
pub struct Program {
    pub name: &'static str,
    /// Packages of Debian.
    pub packages: &'static [&'static str],
    /// Packages of Debian for another version of HIP than the suite has now, whose dependencies apt cannot fulfil.
    pub alone: &'static [&'static str],
    /// Packages of PyPI.
    pub python: &'static [&'static str],
    /// Whether it compiles kernels while it runs.
    pub compiles: bool,
    /// A file of test data of which the runs use a selection, and the selection's name in the root directory.
    pub data: Option<(&'static str, &'static str)>,
    /// A project's checkout and the folder in it that has the tests, which become `/opt/PROJECT`.
    pub source: Option<(&'static str, &'static str)>,
    /// Variables of the environment.
    pub environment: &'static [(&'static str, &'static str)],
    pub runs: &'static [Run],
}

/// One command of a program.
pub struct Run {
    pub name: &'static str,
    /// The program and its arguments. The program's name may have a `*`: each that matches runs.
    pub command: &'static [&'static str],
    /// Whether it belongs to the bounded sample.
    pub sample: bool,
    /// Whether it needs the program's checkout.
    pub source: bool,
    /// Runs only every n-th of GoogleTest's tests.
    pub every: u32,
    /// Time limit of each program in seconds, several times what the run took on two cores.
    pub seconds: u32,
    pub count: Count,
}

const fn run(name: &'static str, seconds: u32, count: Count, command: &'static [&'static str]) -> Run {
    Run { name, command, sample: true, source: false, every: 1, seconds, count }
}

const fn long(name: &'static str, seconds: u32, count: Count, command: &'static [&'static str]) -> Run {
    Run { name, command, sample: false, source: false, every: 1, seconds, count }
}

const fn from_source(run: Run) -> Run {
    Run { source: true, ..run }
}

/// A run of every n-th test only.
const fn some(name: &'static str, every: u32, seconds: u32, command: &'static [&'static str]) -> Run {
    Run { name, command, sample: true, source: false, every, seconds, count: outcome::gtest }
}

const PROGRAM: Program = Program {
    name: "",
    packages: &[],
    alone: &[],
    python: &[],
    compiles: false,
    data: None,
    source: None,
    environment: &[],
    runs: &[],
};

macro_rules! ggml {
    ($($operators:literal),*) => {
        &["/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-backend-ops", "test", "-b", "ROCm0", $("-o", $operators),*]
    };
}

macro_rules! rocm {
    ($package:literal, $program:literal $(, $argument:literal)*) => {
        &[concat!("/usr/libexec/rocm/", $package, "/", $program) $(, $argument)*]
    };
}

macro_rules! cupy {
    ($most:literal, $folder:literal) => {
        &["/usr/bin/python3", "-c", CUPY_TESTS, $most, concat!("/opt/cupy/cupy_tests/", $folder, "_tests")]
    };
}

/// Tests of a folder, at most so many, drawn by chance, the same ones each time.
const CUPY_TESTS: &str = "
import pytest, random, sys
class Draw:
    def pytest_collection_modifyitems(self, items):
        order = list(range(len(items)))
        random.Random(1).shuffle(order)
        items[:] = [items[index] for index in sorted(order[:int(sys.argv[1])])]
options = ['-v', '-W', 'ignore', '-p', 'no:cacheprovider', '--rootdir=/opt/cupy']
sys.exit(pytest.main([*options, sys.argv[2]], plugins=[Draw()]))
";

/// Kernels that CuPy compiles, and those of rocBLAS, hipCUB, rocRAND and rocFFT, compared with NumPy.
const CUPY: &str = "
import cupy, numpy
x, y = cupy.arange(1000, dtype=cupy.float32), numpy.arange(1000, dtype=numpy.float32)
near = lambda a, b: numpy.testing.assert_allclose(cupy.asnumpy(a), b, rtol=1e-4, atol=1e-3)
near((x * 2 + 1).sum(), (y * 2 + 1).sum())
near(x.reshape(10, 100) @ x.reshape(100, 10), y.reshape(10, 100) @ y.reshape(100, 10))
near(cupy.sort(x[::-1]), y)
near(cupy.fft.fft(x[:8]), numpy.fft.fft(y[:8]))
assert 0 < cupy.random.rand(1000).mean() < 1
print('equal to NumPy')
";

/// A matrix product, a sum, rectification and softmax, compared with NumPy's.
const ONNX: &str = "
import numpy, onnx, onnxruntime
from onnx import TensorProto, helper
numbers = lambda seed, *shape: numpy.random.RandomState(seed).rand(*shape).astype('f')
x, w, b = numbers(0, 4, 16), numbers(1, 16, 8), numbers(2, 8)
steps = [('MatMul', 'x w', 'y'), ('Add', 'y b', 'z'), ('Relu', 'z', 'r'), ('Softmax', 'r', 'o')]
nodes = [helper.make_node(name, inputs.split(), [output]) for name, inputs, output in steps]
value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
weights = [onnx.numpy_helper.from_array(w, 'w'), onnx.numpy_helper.from_array(b, 'b')]
graph = helper.make_graph(nodes, 'small', [value('x', x.shape)], [value('o', [4, 8])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['ROCMExecutionProvider'])
found = session.run(None, {'x': x})[0]
e = numpy.exp(numpy.maximum(x @ w + b, 0))
numpy.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-4)
print('equal to NumPy')
";

/// A kernel that hiprtc compiles, launched from Python.
const HIP_PYTHON: &str = "
import array, ctypes
from rocm.bindings import hip, hiprtc
def check(result):
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) > 1 else None
source = b'extern \"C\" __global__ void scale(float f, float *v) { v[threadIdx.x] *= f; }'
program = check(hiprtc.hiprtcCreateProgram(source, b'scale', 0, None, None))
check(hiprtc.hiprtcCompileProgram(program, 1, [b'--offload-arch=gfx1100']))
code = bytearray(check(hiprtc.hiprtcGetCodeSize(program)))
check(hiprtc.hiprtcGetCode(program, code))
kernel = check(hip.hipModuleGetFunction(check(hip.hipModuleLoadData(code)), b'scale'))
numbers = array.array('f', range(64))
memory = check(hip.hipMalloc(256))
check(hip.hipMemcpy(memory, numbers, 256, hip.hipMemcpyKind.hipMemcpyHostToDevice))
check(hip.hipModuleLaunchKernel(kernel, gridDimX=1, gridDimY=1, gridDimZ=1, blockDimX=64, blockDimY=1, blockDimZ=1,
    sharedMemBytes=0, stream=None, kernelParams=None, extra=(ctypes.c_float(3), memory)))
check(hip.hipMemcpy(numbers, memory, 256, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
assert list(numbers) == [3 * i for i in range(64)]
print('as expected')
";

/// Small models with random weights, whose texts on the GPU and on the CPU are compared.
const LANGUAGE_MODELS: &str = include_str!("../../../scripts/language-models.py");
/// The self-tests of hashcat's modes.
const HASHCAT_MODES: &str = include_str!("../../../scripts/hashcat-modes.py");

/// All programs.
pub const PROGRAMS: &[Program] = &[
    Program {
        name: "llama.cpp",
        packages: &["llama.cpp-tests", "llama.cpp-tools", "libggml0-backend-hip", "python3"],
        python: &["gguf==0.19.0"],
        runs: &[
            run("norms", 600, outcome::ggml, ggml!["SCALE,NORM,RMS_NORM,L2_NORM,GROUP_NORM"]),
            run(
                "unary operators",
                120,
                outcome::ggml,
                ggml!["ABS,SGN,NEG,STEP,TANH,ELU,RELU,SIGMOID,GELU,SILU,EXP,GLU"],
            ),
            run(
                "attention",
                300,
                outcome::ggml,
                ggml!["SOFT_MAX,DIAG_MASK_INF,ARGSORT,ARGMAX,SUM_ROWS,MEAN"],
            ),
            run(
                "language models",
                900,
                outcome::ggml,
                &["/usr/bin/python3", "-c", LANGUAGE_MODELS, "/tmp/models"],
            ),
            long("all operators", 14400, outcome::ggml, ggml![]),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocrand",
        packages: &["librocrand1-tests"],
        runs: &[
            run("graphs", 120, outcome::gtest, rocm!["librocrand1-tests", "test_rocrand_hipgraphs"]),
            run("uniform", 120, outcome::gtest, rocm!["librocrand1-tests", "test_rocrand_generate_uniform"]),
            run("normal", 300, outcome::gtest, rocm!["librocrand1-tests", "test_rocrand_generate_normal"]),
            run(
                "sobol32 kernels",
                300,
                outcome::gtest,
                rocm!["librocrand1-tests", "test_rocrand_kernel_sobol32"],
            ),
            run("XORWOW", 600, outcome::gtest, rocm!["librocrand1-tests", "test_rocrand_xorwow_prng"]),
            long("MT19937", 3600, outcome::gtest, rocm!["librocrand1-tests", "test_rocrand_mt19937_prng"]),
            long("C++ interface", 7200, outcome::gtest, rocm!["librocrand1-tests", "test_rocrand_cpp_basic"]),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocsolver",
        packages: &["librocsolver0-tests"],
        runs: &[
            run(
                "LACGV",
                120,
                outcome::gtest,
                rocm!["librocsolver0-tests", "rocsolver-test", "--gtest_filter=checkin_lapack*LACGV*"],
            ),
            run(
                "POTF2",
                600,
                outcome::gtest,
                rocm!["librocsolver0-tests", "rocsolver-test", "--gtest_filter=checkin_lapack*POTF2*"],
            ),
            run(
                "GETF2",
                600,
                outcome::gtest,
                rocm!["librocsolver0-tests", "rocsolver-test", "--gtest_filter=checkin_lapack*GETF2_NPVT*"],
            ),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocsparse",
        packages: &["librocsparse1-tests"],
        data: Some(("usr/share/librocsparse1-tests/data/rocsparse_test.data", "opt/rocsparse.data")),
        // What the tests of empty products compare with is computed by code that writes to a vector without elements. The
        // others that are left out spend minutes in computing it.
        runs: &[
            run(
                "some of each function",
                300,
                outcome::gtest,
                rocm![
                    "librocsparse1-tests",
                    "rocsparse-test",
                    "--data",
                    "/opt/rocsparse.data",
                    "--gtest_filter=-*csrgemm*.extra*:*bsrgemm.extra*:*csrmm.level3*:*csric0.precond*"
                ],
            ),
            long(
                "all but empty products",
                3600,
                outcome::gtest,
                rocm![
                    "librocsparse1-tests",
                    "rocsparse-test",
                    "--data",
                    "/opt/rocsparse.data",
                    "--gtest_filter=-*csrgemm*.extra*_zero"
                ],
            ),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocblas",
        packages: &["librocblas4-tests"],
        data: Some(("usr/share/librocblas4-tests/data/rocblas_gtest.data", "opt/rocblas.data")),
        environment: &[("GTEST_LISTENER", "PASS_LINE_IN_LOG")],
        runs: &[
            run(
                "vectors",
                900,
                outcome::gtest,
                rocm![
                    "librocblas4-tests",
                    "rocblas-test",
                    "--data",
                    "/opt/rocblas.data",
                    "--gtest_filter=_/scal*:_/axpy*:_/copy*:_/swap*"
                ],
            ),
            run(
                "products of matrices",
                300,
                outcome::gtest,
                rocm![
                    "librocblas4-tests",
                    "rocblas-test",
                    "--data",
                    "/opt/rocblas.data",
                    "--gtest_filter=_/gemm.*-*known_bug*"
                ],
            ),
            long(
                "some of each function",
                7200,
                outcome::gtest,
                rocm![
                    "librocblas4-tests",
                    "rocblas-test",
                    "--data",
                    "/opt/rocblas.data",
                    "--gtest_filter=-*known_bug*:*multi_gpu*"
                ],
            ),
        ],
        ..PROGRAM
    },
    Program {
        name: "hiprand",
        packages: &["libhiprand1-tests"],
        runs: &[
            run("linkage", 120, outcome::gtest, rocm!["libhiprand1-tests", "test_hiprand_linkage"]),
            long(
                "C++ interface",
                7200,
                outcome::gtest,
                rocm!["libhiprand1-tests", "test_hiprand_cpp_wrapper"],
            ),
            long("kernels", 7200, outcome::gtest, rocm!["libhiprand1-tests", "test_hiprand_kernel"]),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocprim",
        packages: &["librocprim-tests"],
        runs: &[
            run("graphs", 600, outcome::gtest, rocm!["librocprim-tests", "test_hipgraph_basic"]),
            run("sums of waves", 120, outcome::gtest, rocm!["librocprim-tests", "test_warp_reduce"]),
            run("scans of waves", 120, outcome::gtest, rocm!["librocprim-tests", "test_warp_scan"]),
            run("scans of blocks", 300, outcome::gtest, rocm!["librocprim-tests", "test_block_scan"]),
            run("searches", 600, outcome::gtest, rocm!["librocprim-tests", "test_device_search"]),
            long("sums", 1800, outcome::gtest, rocm!["librocprim-tests", "test_device_reduce"]),
            long("intrinsics", 3600, outcome::gtest, rocm!["librocprim-tests", "test_intrinsics"]),
        ],
        ..PROGRAM
    },
    Program {
        name: "hipsolver",
        packages: &["libhipsolver0-tests"],
        runs: &[some("one of 100", 100, 300, rocm!["libhipsolver0-tests", "hipsolver-test"])],
        ..PROGRAM
    },
    Program {
        name: "hipsparse",
        packages: &["libhipsparse1-tests"],
        runs: &[some("one of 200", 200, 120, rocm!["libhipsparse1-tests", "hipsparse-test"])],
        ..PROGRAM
    },
    Program {
        name: "hipcub",
        packages: &["libhipcub-tests"],
        runs: &[
            run("sums of blocks", 120, outcome::gtest, rocm!["libhipcub-tests", "test_hipcub_block_reduce"]),
            run("scans of blocks", 120, outcome::gtest, rocm!["libhipcub-tests", "test_hipcub_block_scan"]),
            run(
                "loads and stores",
                300,
                outcome::gtest,
                rocm!["libhipcub-tests", "test_hipcub_block_load_store"],
            ),
            run("loops", 300, outcome::gtest, rocm!["libhipcub-tests", "test_hipcub_device_for"]),
            long("blocks", 1800, outcome::gtest, rocm!["libhipcub-tests", "test_hipcub_block_*"]),
            long("devices", 1800, outcome::gtest, rocm!["libhipcub-tests", "test_hipcub_device_*"]),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocthrust",
        packages: &["librocthrust-tests"],
        runs: &[
            run("tuples", 120, outcome::thrust, rocm!["librocthrust-tests", "test_thrust_tuple*"]),
            long("all", 300, outcome::thrust, rocm!["librocthrust-tests", "test_thrust_*"]),
        ],
        ..PROGRAM
    },
    Program {
        name: "hipblaslt",
        packages: &["libhipblaslt1", "libomp5", "librocm-smi64-1"],
        alone: &["libhipblaslt1-bench"],
        runs: &[
            run(
                "largest magnitude",
                120,
                outcome::max_error,
                rocm!["libhipblaslt1-bench", "hipblaslt-bench-extop-amax", "-m", "64", "-n", "64"],
            ),
            run(
                "layer norm",
                120,
                outcome::max_error,
                rocm!["libhipblaslt1-bench", "hipblaslt-bench-extop-layernorm", "-m", "33", "-n", "64"],
            ),
        ],
        ..PROGRAM
    },
    Program {
        name: "miopen",
        // It calls clang by a shell.
        packages: &["libmiopen1-tests", "dash"],
        compiles: true,
        runs: &[run(
            "softmax",
            900,
            outcome::gtest,
            rocm!["libmiopen1-tests", "miopen_gtest", "--gtest_filter=GPU_SoftmaxFind20*"],
        )],
        ..PROGRAM
    },
    Program {
        name: "hipfft",
        packages: &["libhipfft0-tests"],
        compiles: true,
        runs: &[run(
            "plans and 16 elements",
            900,
            outcome::gtest,
            rocm![
                "libhipfft0-tests",
                "hipfft-test",
                "--gtest_filter=hipfftTest*:pow2_1D/*_len_16_*",
                "--skip_runtime_fails",
                "0"
            ],
        )],
        ..PROGRAM
    },
    Program {
        name: "rccl",
        packages: &["libhsa-runtime64-1", "librocm-smi64-1"],
        alone: &["librccl1", "librccl1-tests"],
        environment: &[("WAVESIM_DEVICES", "gfx1100*2"), ("UT_MIN_GPUS", "2"), ("UT_MAX_GPUS", "2")],
        runs: &[
            run(
                "broadcast",
                600,
                outcome::gtest,
                rocm!["librccl1-tests", "UnitTests", "--gtest_filter=Broadcast.OutOfPlace"],
            ),
            run(
                "sum and minimum",
                600,
                outcome::gtest,
                rocm!["librccl1-tests", "UnitTests", "--gtest_filter=AllReduce.OutOfPlace"],
            ),
            long("all collectives", 14400, outcome::gtest, rocm!["librccl1-tests", "UnitTests"]),
        ],
        ..PROGRAM
    },
    Program {
        name: "cupy",
        packages: &[
            "librocblas4",
            "libhipblas2",
            "librocfft0",
            "libhipfft0",
            "librocrand1",
            "libhiprand1",
            "librocsolver0",
            "libhipsparse1",
            "python3",
        ],
        // Headers that CuPy's kernels include.
        alone: &["librocthrust-dev", "librocprim-dev", "libhipcub-dev"],
        python: &["cupy-rocm-7-0==14.2.0", "pytest"],
        compiles: true,
        source: Some(("cupy", "tests")),
        runs: &[
            run("a few functions", 300, outcome::exit, &["/usr/bin/python3", "-c", CUPY]),
            from_source(run("creation", 900, outcome::pytest, cupy!["20", "creation"])),
            from_source(run("sorting", 900, outcome::pytest, cupy!["20", "sorting"])),
            from_source(run("math", 900, outcome::pytest, cupy!["20", "math"])),
            from_source(run("core", 900, outcome::pytest, cupy!["20", "core"])),
            from_source(run("fft", 900, outcome::pytest, cupy!["20", "fft"])),
            from_source(run("linear algebra", 900, outcome::pytest, cupy!["20", "linalg"])),
            from_source(run("random numbers", 900, outcome::pytest, cupy!["20", "random"])),
        ],
        ..PROGRAM
    },
    Program {
        name: "rocfft",
        packages: &["librocfft0-tests"],
        compiles: true,
        runs: &[run(
            "callbacks",
            600,
            outcome::gtest,
            rocm![
                "librocfft0-tests",
                "rocfft-test",
                "--length",
                "16",
                "--callback",
                "--gtest_filter=manual*"
            ],
        )],
        ..PROGRAM
    },
    Program {
        name: "onnxruntime",
        packages: &["libmiopen1", "librocm-smi64-1", "libhipblas2", "libhipfft0", "python3"],
        python: &["onnxruntime-rocm==1.22.2.post3", "onnx==1.23.2"],
        runs: &[run("a small model", 300, outcome::exit, &["/usr/bin/python3", "-c", ONNX])],
        ..PROGRAM
    },
    Program {
        name: "hip-python",
        packages: &["python3"],
        python: &["rocm-bindings-hip==10.0.0.0.1.2", "rocm-bindings-core==10.0.0.0.1.2"],
        compiles: true,
        runs: &[run("a kernel", 120, outcome::exit, &["/usr/bin/python3", "-c", HIP_PYTHON])],
        ..PROGRAM
    },
    Program {
        name: "clinfo",
        packages: &["clinfo"],
        compiles: true,
        runs: &[run("clinfo", 60, outcome::exit, &["/usr/bin/clinfo"])],
        ..PROGRAM
    },
    Program {
        name: "clpeak",
        packages: &["clpeak"],
        compiles: true,
        runs: &[run("latency", 300, outcome::exit, &["/usr/bin/clpeak", "--kernel-latency"])],
        ..PROGRAM
    },
    Program {
        name: "hashcat",
        packages: &["hashcat", "python3"],
        compiles: true,
        runs: &[
            run("MD5", 900, outcome::hashcat, &["/usr/bin/hashcat", "-b", "-m", "0", "--force"]),
            run(
                "some modes",
                900,
                outcome::pytest,
                &["/usr/bin/python3", "-c", HASHCAT_MODES, "--every", "60", "--seconds", "600"],
            ),
            long("all modes", 28800, outcome::pytest, &["/usr/bin/python3", "-c", HASHCAT_MODES]),
        ],
        ..PROGRAM
    },
];
