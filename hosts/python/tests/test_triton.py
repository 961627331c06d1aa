"""Typical Triton kernels, compared with NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("triton", minversion="3.6")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

import wavesim  # noqa: E402
import wavesim.triton  # noqa: E402
from wavesim.triton import Tensor  # noqa: E402

TARGETS = os.environ.get("WAVESIM_TEST_TARGETS", "gfx1100 gfx1201 gfx942 gfx950 gfx1250").split()


@pytest.fixture(params=TARGETS)
def driver(request):
    return wavesim.triton.use(request.param)


def random(*shape, dtype=np.float32):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


@triton.jit
def softmax_kernel(out, x, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * row_stride + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * row_stride + at, powers / tl.sum(powers, axis=0), mask=inside)


def test_fused_softmax(driver):
    x = random(6, 300)
    out = np.zeros_like(x)
    softmax_kernel[(6,)](out, x, 300, 300, BLOCK=512)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_persistent_grids(driver):
    """Programs compute the size of a grid that fills the GPU from its properties and a kernel's registers."""
    x, out = random(6, 300), np.zeros((6, 300), np.float32)
    kernel = softmax_kernel.warmup(out, x, 300, 300, BLOCK=512, num_warps=8, grid=(1,))
    kernel._init_handles()
    properties = driver.utils.get_device_properties(driver.get_current_device())
    waves = properties["max_threads_per_sm"] // properties["warpSize"]
    by_registers = properties["max_num_regs"] // properties["warpSize"] // kernel.n_regs
    assert properties["multiprocessor_count"] * min(waves, by_registers) // 8 > 0


@triton.jit
def norm_kernel(x, y, weight, bias, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    w, b = tl.load(weight + at, mask=inside), tl.load(bias + at, mask=inside)
    tl.store(y + row * columns + at, centred * scale * w + b, mask=inside)


def test_layer_norm(driver):
    x, weight, bias = random(5, 200), random(200), random(200)
    y = np.zeros_like(x)
    norm_kernel[(5,)](x, y, weight, bias, 200, 1e-5, BLOCK=256)
    centred = x - x.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner, mask=(rows[:, None] < M) & (inner < K), other=0.0)
        right = tl.load(b + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns, total, mask=(rows[:, None] < M) & (columns < N))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_matmul(driver, dtype):
    a, b = random(40, 48, dtype=dtype), random(48, 56, dtype=dtype)
    c = np.zeros((40, 56), np.float32)
    matmul_kernel[(3, 2)](a, b, c, 40, 56, 48, BM=16, BN=32, BK=16)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=2e-2, atol=2e-2)


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=inside) / (1 - p), 0.0), mask=inside)


def test_dropout(driver):
    x = np.full(1000, 3.0, np.float32)
    out, again = np.zeros_like(x), np.zeros_like(x)
    dropout_kernel[(4,)](x, out, 1000, 0.25, 5, BLOCK=256)
    dropout_kernel[(4,)](x, again, 1000, 0.25, 5, BLOCK=256)
    np.testing.assert_array_equal(out, again)
    kept = out != 0
    np.testing.assert_allclose(out[kept], 4.0, rtol=1e-6)
    assert 0.7 < kept.mean() < 0.8


@triton.jit
def attention_kernel(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + depth)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    weights = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        keys = start + tl.arange(0, BN)
        scores = tl.dot(queries, tl.trans(tl.load(k + keys[:, None] * D + depth))) * scale
        top = tl.maximum(largest, tl.max(scores, axis=1))
        powers = tl.exp(scores - top[:, None])
        shrink = tl.exp(largest - top)
        weights = weights * shrink + tl.sum(powers, axis=1)
        values = tl.load(v + keys[:, None] * D + depth)
        total = total * shrink[:, None] + tl.dot(powers.to(tl.float16), values)
        largest = top
    tl.store(out + rows[:, None] * D + depth, total / weights[:, None])


def test_attention(driver):
    q, k, v = (random(64, 32, dtype=np.float16) * np.float16(s) for s in (0.5, 0.4, 0.3))
    out = np.zeros((64, 32), np.float32)
    attention_kernel[(4,)](q, k, v, out, 64, 32**-0.5, BM=16, BN=32, D=32)
    scores = q.astype(np.float32) @ k.astype(np.float32).T * 32**-0.5
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True) @ v.astype(np.float32)
    np.testing.assert_allclose(out, expected, rtol=2e-2, atol=2e-3)


@triton.autotune([triton.Config({"BLOCK": size}, num_warps=1) for size in (32, 4096)], key=["n"])
@triton.jit
def tuned_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def test_autotune_counts_instructions(driver):
    x, out = random(96), np.zeros(96, np.float32)
    tuned_kernel[lambda meta: (triton.cdiv(96, meta["BLOCK"]),)](x, out, 96)
    np.testing.assert_array_equal(out, x * 2)
    # Three waves with one element per lane, or one wave with 64 or 128 elements per lane, most of them masked off.
    assert tuned_kernel.best_config.kwargs["BLOCK"] == 32


@triton.jit
def talk_kernel(x):
    tl.device_print("x", tl.load(x + tl.program_id(0)))


def test_kernels_print(driver, capsys):
    talk_kernel[(2,)](np.array([7, 8], np.int32), num_warps=1)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[-1] for line in lines} == {"7", "8"}, lines


@triton.jit
def unmasked_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1)


def test_an_access_beyond_the_end_is_reported_with_its_line(driver):
    x, out = random(100), np.zeros(128, np.float32)
    with pytest.raises(wavesim.Fault) as caught:
        unmasked_kernel[(1,)](x, out, BLOCK=128)
    assert caught.value.kernel == "unmasked_kernel" and "beyond the end of x)" in str(caught.value)
    assert caught.value.file and caught.value.file.endswith("test_triton.py")
    line = open(__file__).read().splitlines()[caught.value.line - 1]
    assert "tl.load(x + at) + 1" in line


@triton.jit
def transpose_kernel(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([column, row], source.load([row, column]).T)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensor_descriptors(driver, dtype):
    if driver.device.target == "gfx1250":
        pytest.skip("the tensor data mover's descriptors have a test of their own")
    x = np.arange(24 * 32, dtype=np.float32 if dtype == "float32" else np.uint16).reshape(24, 32)
    out = np.zeros((32, 24), x.dtype)
    source = TensorDescriptor.from_tensor(Tensor(x, dtype), [8, 16])
    target = TensorDescriptor.from_tensor(Tensor(out, dtype), [16, 8])
    transpose_kernel[(3, 2)](source, target, ROWS=8, COLUMNS=16)
    np.testing.assert_array_equal(out, x.T)
    # Tiles beyond the edge of the tensor are neither loaded nor stored.
    transpose_kernel[(4, 3)](source, target, ROWS=8, COLUMNS=16)
    np.testing.assert_array_equal(out, x.T)


@triton.jit
def gather_kernel(addresses, out, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    source = tl.load(addresses + group).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + group * BLOCK + at, tl.load(source + at))


def test_addresses_in_memory(driver):
    """Kernels load the addresses of tensors that are not arguments, as grouped matrix products do."""
    arrays = [Tensor(np.arange(64, dtype=np.float32) + 100 * group) for group in range(3)]
    addresses = np.array([tensor.data_ptr() for tensor in arrays], np.int64)
    out = np.zeros((3, 64), np.float32)
    gather_kernel[(3,)](addresses, out, BLOCK=64)
    np.testing.assert_array_equal(out, [tensor.array for tensor in arrays])
    # The bounds are those of the arrays, and of those that exist.
    with pytest.raises(wavesim.Fault, match="a tensor"):
        gather_kernel[(3,)](addresses, np.zeros((3, 128), np.float32), BLOCK=128)
    freed = addresses[1:2].copy()
    del arrays[1]
    with pytest.raises(wavesim.Fault, match="outside every buffer"):
        gather_kernel[(1,)](freed, out, BLOCK=64)


@triton.jit
def next_kernel(x, out):
    tl.store(out, tl.load(x) + 1)


def test_addresses_as_arguments(driver):
    """A compiled kernel accepts an address in place of a tensor."""
    x, out = Tensor(np.full(1, 4, np.float32)), np.zeros(1, np.float32)
    kernel = next_kernel.warmup(x, out, grid=(1,))
    kernel[(1, 1, 1)](x.data_ptr(), out)
    assert out[0] == 5
    with pytest.raises(wavesim.Fault, match="outside every buffer"):
        kernel[(1, 1, 1)](x.data_ptr() + 4096 * 16, out)


IR = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = WAVE : i32} {
  tt.func public @kernel(%arg0: !tt.ptr<i32>) {
    %value = arith.constant 7 : i32
    tt.store %arg0, %value : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_kernels_of_text(driver, tmp_path):
    """Triton compiles its intermediate language, which has no names of arguments."""
    text, out = tmp_path / "kernel.ttgir", np.zeros(1, np.int32)
    text.write_text(IR.replace("WAVE", str(driver.warp_size)))
    triton.compile(str(text))[(1, 1, 1)](Tensor(out))
    assert out[0] == 7


def test_addresses_of_torch_tensors(driver):
    torch = pytest.importorskip("torch")
    tensors = [torch.arange(64, dtype=torch.float32) + 100 * group for group in range(3)]
    addresses = torch.tensor([tensor.data_ptr() for tensor in tensors])
    out = torch.zeros(3, 64)
    # Tensors that torch's compiler traces have no memory.
    with torch._subclasses.FakeTensorMode():
        traced = torch.zeros(3)
    assert traced.device.type == "cpu"
    gather_kernel[(3,)](addresses, out, BLOCK=64)
    assert torch.equal(out, torch.stack(tensors))


def test_scalar_loads_of_whole_words(driver):
    """Compilers load the aligned word that contains a value of two bytes, also at the end of a tensor."""

    @triton.jit
    def last_kernel(x, out, n):
        tl.store(out, tl.load(x + n - 1) + tl.load(x))

    storage = np.zeros(8, np.uint16)
    x, out = storage[:5], np.zeros(1, np.float16)
    x[:] = np.arange(1, 6, dtype=np.float16).view(np.uint16)
    last_kernel[(1,)](Tensor(x, "float16"), out, 5)
    assert out[0] == 6


SCHEDULES = """
import sys

import numpy as np
import triton
import triton.language as tl

import wavesim.triton

wavesim.triton.use("gfx1100")


@triton.jit
def last(out, SHARED: tl.constexpr):
    program = tl.program_id(0)
    tl.store(out + (0 if SHARED else program), program + 1)


out = np.zeros(4, np.int32)
last[(4,)](out, SHARED=sys.argv[1] == "shared")
print(out)
"""


def test_schedules_are_explored(tmp_path):
    script = tmp_path / "schedules.py"
    script.write_text(SCHEDULES)
    environment = dict(os.environ, WAVESIM_EXPLORE="50", WAVESIM_ERROR_EXITCODE="86")

    def run(argument):
        return subprocess.run([sys.executable, script, argument], env=environment, capture_output=True, text=True)

    result = run("own")
    assert result.returncode == 0 and "depends on the order" not in result.stderr, result.stderr
    result = run("shared")
    assert result.returncode == 86 and "last (launch 1): the result depends on the order" in result.stderr, result.stderr
    assert "stores at schedules.py:16" in result.stderr, result.stderr


def test_a_launch_is_debugged(tmp_path):
    script, commands = tmp_path / "schedules.py", tmp_path / "commands.txt"
    script.write_text(SCHEDULES)
    lines = ["until global_store_b32", "bt", "next", "last-write out[0]", "until s_endpgm", "set out[0] = 42"]
    commands.write_text("".join(line + "\n" for line in lines))
    environment = dict(os.environ, WAVESIM_DEBUG="last:1", WAVESIM_DEBUG_COMMANDS=str(commands))
    result = subprocess.run([sys.executable, script, "own"], env=environment, capture_output=True, text=True)
    for part in ("launch 1 of `last`", "#0  last+0x", "at schedules.py:16", "  16      tl.store("):
        assert part in result.stderr, result.stderr
    # After the store of the first program, whose element is set, the others run.
    assert result.stdout.split() == ["[42", "2", "3", "4]"], result.stderr


TIMED = """
import numpy as np
import triton
import triton.language as tl

import wavesim.triton

wavesim.triton.use("gfx942")


@triton.autotune([triton.Config({"STRIDE": stride}, num_warps=4) for stride in (64, 1)], key=["n"])
@triton.jit
def spread(x, out, n, STRIDE: tl.constexpr):
    total = tl.zeros((256,), tl.float32)
    for start in range(n):
        total += tl.load(x + start + tl.arange(0, 256) * STRIDE)
    tl.store(out + tl.program_id(0) * 256 + tl.arange(0, 256), total)


x, out = np.ones(256 * 64 + 64, np.float32), np.zeros(256 * 8, np.float32)
run = lambda: spread[(8,)](x, out, 64)
first, again = triton.testing.do_bench(run), triton.testing.do_bench(run)
low, high = triton.testing.do_bench(run, quantiles=(0.0, 1.0))
print(spread.best_config.kwargs["STRIDE"], first, again, low, high, len(triton.testing.do_bench(run, return_mode="all")))
assert (out == 64).all()
"""


def test_benchmarks_and_autotuning_use_predicted_times(tmp_path):
    script = tmp_path / "timed.py"
    script.write_text(TIMED)

    def run(**variables):
        environment = dict(os.environ, TRITON_CACHE_DIR=str(tmp_path / "cache"), **variables)
        return subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)

    result = run(WAVESIM_TIMING="mi300a")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("times are predicted for Instinct MI300A, not measured") == 1, result.stderr
    stride, *times, count = result.stdout.split()
    first, again, low, high = map(float, times)
    # Both strides execute the same instructions; one of them loads a line of memory for each lane.
    assert stride == "1" and count == "3"
    assert 0.001 < low <= first <= high < 0.1 and first == pytest.approx(again, rel=0.05)
    # Addresses of arrays differ from process to process, and with them the sets of caches.
    assert float(run(WAVESIM_TIMING="mi300a").stdout.split()[1]) == pytest.approx(first, rel=0.05)
    slow = run(WAVESIM_TIMING="mi300a,chip.clock=1050")
    assert float(slow.stdout.split()[1]) > 1.2 * first, slow.stderr
    result = run()
    assert result.returncode != 0 and "if WAVESIM_TIMING names it" in result.stderr, result.stderr


def test_torch_compiles_models(driver):
    """A transformer's layer, forward and backward, whose kernels torch generates, equals that of torch itself."""
    torch = pytest.importorskip("torch")
    import torch._inductor.config as inductor

    torch.manual_seed(1)

    class Layer(torch.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
            self.projections = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(4))
            self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            normed = self.norms[0](x)
            split = [p(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.projections[:3]]
            scores = split[0] @ split[1].transpose(-1, -2) * split[0].shape[-1] ** -0.5
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            weights = scores.masked_fill(later, -torch.inf).softmax(-1)
            x = x + self.projections[3]((weights @ split[2]).transpose(1, 2).flatten(-2))
            return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norms[1](x))))

    layer, x = Layer(32, 4), torch.randn(2, 9, 32, requires_grad=True)

    def gradients(model):
        model(x).square().mean().backward()
        found = [p.grad.clone() for p in [x, *layer.parameters()]]
        layer.zero_grad()
        x.grad = None
        return found

    expected, before = gradients(layer), driver.instructions
    torch.compiler.reset()
    with inductor.patch(cpu_backend="triton", compile_threads=1, force_disable_caches=True):
        found = gradients(torch.compile(layer))
    assert driver.instructions > before
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
