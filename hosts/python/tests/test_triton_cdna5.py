"""Triton and Gluon kernels for CDNA 5, each with and without checks, compared with NumPy."""

import numpy as np
import pytest

pytest.importorskip("triton", minversion="3.9", reason="skipped: Triton 3.9 is not installed")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.experimental import gluon  # noqa: E402
from triton.experimental.gluon import language as gl  # noqa: E402
from triton.experimental.gluon.language.amd.cdna5 import tdm, wmma  # noqa: E402

import wavesim.triton  # noqa: E402
from wavesim.triton import Tensor  # noqa: E402


@pytest.fixture(params=["", "all"], ids=["plain", "checked"])
def driver(request, monkeypatch):
    monkeypatch.setenv("WAVESIM_CHECK", request.param)
    yield wavesim.triton.use("gfx1250")
    monkeypatch.undo()
    wavesim.triton.use()


def clean(driver):
    """Asserts that the last launch has no findings."""
    assert [str(finding) for finding in driver.outcome.findings] == []


def numbers(*shape, seed=7):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _e4m3(bits):
    exponent, fraction = bits >> 3 & 15, bits & 7
    value = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    return np.where(bits & 0x7F == 0x7F, np.nan, np.where(bits & 0x80, -value, value)).astype(np.float32)


E4M3 = _e4m3(np.arange(256))
E5M2 = (np.arange(256, dtype=np.uint16) << 8).view(np.float16).astype(np.float32)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def finite(table, *shape, seed=7):
    """Returns random bytes that are finite and not too large in the format of the table."""
    choice = np.flatnonzero(np.isfinite(table) & (abs(table) < 20)).astype(np.uint8)
    return np.random.default_rng(seed).choice(choice, shape)


@triton.jit
def dot_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner, mask=(rows[:, None] < M) & (inner < K), other=0.0)
        right = tl.load(b + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns, total, mask=(rows[:, None] < M) & (columns < N))


@pytest.mark.parametrize("name, table", [("float8_e4m3fn", E4M3), ("float8_e5m2", E5M2)])
def test_dot_of_f8(driver, name, table):
    a, b = finite(table, 40, 160), finite(table, 160, 56, seed=8)
    c = np.zeros((40, 56), np.float32)
    kernel = dot_kernel[(2, 2)](Tensor(a, name), Tensor(b, name), c, 40, 56, 160, BM=32, BN=32, BK=64)
    assert "v_wmma_f32_16x16x64_" in kernel.asm["amdgcn"]
    np.testing.assert_allclose(c, table[a] @ table[b], rtol=1e-5, atol=1e-2)
    clean(driver)


def test_dot_of_bf16(driver):
    a, b = (numbers(*shape).view(np.uint32) >> 16 for shape in ((48, 64), (64, 32)))
    c = np.zeros((48, 32), np.float32)
    left, right = (Tensor(x.astype(np.uint16), "bfloat16") for x in (a, b))
    dot_kernel[(3, 1)](left, right, c, 48, 32, 64, BM=16, BN=32, BK=32)
    a, b = ((x << 16).astype(np.uint32).view(np.float32) for x in (a, b))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-4)
    clean(driver)


@triton.jit
def scaled_kernel(
    a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr,
    PER: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    inner, blocks = tl.arange(0, K // PER), tl.arange(0, K // 32)
    left = tl.load(a + rows[:, None] * (K // PER) + inner)
    right = tl.load(b + inner[:, None] * N + columns)
    left_scale = tl.load(a_scale + rows[:, None] * (K // 32) + blocks)
    right_scale = tl.load(b_scale + columns[:, None] * (K // 32) + blocks)
    product = tl.dot_scaled(left, left_scale, FORMAT, right, right_scale, FORMAT)
    tl.store(c + rows[:, None] * N + columns, product)


@pytest.mark.parametrize("format, table", [("e4m3", E4M3), ("e5m2", E5M2), ("e2m1", E2M1)])
def test_dot_with_block_scales(driver, format, table):
    m, n, k = 32, 32, 128
    if format == "e2m1":
        codes = np.random.default_rng(3).integers(0, 16, (2, m, k), dtype=np.uint8)
        left, right = codes[0], codes[1].T
        a, b = left[:, ::2] | left[:, 1::2] << 4, np.ascontiguousarray(right[::2] | right[1::2] << 4)
    else:
        a, b = left, right = finite(table, m, k), finite(table, k, n, seed=8)
    scales = np.random.default_rng(5).integers(124, 131, (2, m, k // 32), dtype=np.uint8)
    c = np.zeros((m, n), np.float32)
    kernel = scaled_kernel[(1,)](a, scales[0], b, scales[1], c, m, n, k, format, 2 if format == "e2m1" else 1)
    assert "v_wmma_scale_f32" in kernel.asm["amdgcn"]
    powers = np.exp2(scales.astype(np.float32) - 127).repeat(32, axis=2)
    expected = (table[left] * powers[0]) @ (table[right] * powers[1].T)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-2)
    clean(driver)


@gluon.jit
def product_kernel(
    a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, DEPTH: gl.constexpr,
    WIDTH: gl.constexpr, WAITS: gl.constexpr,
):  # fmt: skip
    """A matrix product of tiles that the tensor data mover copies to LDS."""
    products: gl.constexpr = gl.amd.AMDWMMALayout(3, True, [[0, 1], [1, 0]], [], [16, 16, DEPTH])
    padded_a: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BK, 16]], [BM, BK], [1, 0])
    padded_b: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BN, 16]], [BK, BN], [1, 0])
    row, column = gl.program_id(0) * BM, gl.program_id(1) * BN
    left = tdm.make_tensor_descriptor(a, shape=(M, K), strides=(K, 1), block_shape=(BM, BK), layout=padded_a)
    right = tdm.make_tensor_descriptor(b, shape=(K, N), strides=(N, 1), block_shape=(BK, BN), layout=padded_b)
    left_tile = gl.allocate_shared_memory(left.dtype, left.block_shape, left.layout)
    right_tile = gl.allocate_shared_memory(right.dtype, right.block_shape, right.layout)
    total = gl.zeros((BM, BN), gl.float32, products)
    for start in range(0, K, BK):
        tdm.async_load(left, [row, start], left_tile)
        tdm.async_load(right, [start, column], right_tile)
        if WAITS:
            tdm.async_wait(0)
        x = left_tile.load(gl.DotOperandLayout(0, products, WIDTH))
        y = right_tile.load(gl.DotOperandLayout(1, products, WIDTH))
        total = wmma(x, y, total)
    rows = row + gl.arange(0, BM, gl.SliceLayout(1, products))
    columns = column + gl.arange(0, BN, gl.SliceLayout(0, products))
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    gl.store(c + rows[:, None] * N + columns[None, :], total, mask=inside)


def test_gluon_product_with_the_tensor_data_mover(driver):
    """The last tiles extend beyond the matrices."""
    a, b = numbers(100, 120).astype(np.float16), numbers(120, 72, seed=8).astype(np.float16)
    c = np.zeros((100, 72), np.float32)
    kernel = product_kernel[(2, 2)](a, b, c, 100, 72, 120, 64, 64, 32, 32, 8, True)
    assert "tensor_load_to_lds" in kernel.asm["amdgcn"] and "v_wmma_f32_16x16x32_f16" in kernel.asm["amdgcn"]
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    clean(driver)


def test_gluon_product_of_f8(driver):
    a, b = finite(E4M3, 64, 128), finite(E4M3, 128, 64, seed=8)
    c = np.zeros((64, 64), np.float32)
    tensors = (Tensor(x, "float8_e4m3fn") for x in (a, b))
    product_kernel[(1, 1)](*tensors, c, 64, 64, 128, 64, 64, 64, 64, 8, True)
    np.testing.assert_allclose(c, E4M3[a] @ E4M3[b], rtol=1e-5, atol=1e-2)
    clean(driver)


def test_a_missing_wait_for_the_tensor_data_mover_is_reported(monkeypatch):
    monkeypatch.setenv("WAVESIM_CHECK", "waits")
    driver = wavesim.triton.use("gfx1250")
    a, b = numbers(64, 32).astype(np.float16), numbers(32, 64).astype(np.float16)
    product_kernel[(1, 1)](a, b, np.zeros((64, 64), np.float32), 64, 64, 32, 64, 64, 32, 32, 8, False)
    findings = driver.outcome.findings
    monkeypatch.undo()
    wavesim.triton.use()
    lines = open(__file__).read().splitlines()
    assert findings and all(finding.file.endswith("test_triton_cdna5.py") for finding in findings)
    assert "left_tile.load" in lines[findings[0].line - 1]
    assert "s_wait_tensorcnt" in str(findings[0])


@gluon.jit
def copy_kernel(source, out, M, N, BM: gl.constexpr, BN: gl.constexpr):
    """Copies a tile at a time, with a descriptor from the host."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    tile = gl.allocate_shared_memory(source.dtype, source.block_shape, source.layout)
    row, column = gl.program_id(0) * BM, gl.program_id(1) * BN
    tdm.async_load(source, [row, column], tile)
    tdm.async_wait(0)
    rows = row + gl.arange(0, BM, gl.SliceLayout(1, layout))
    columns = column + gl.arange(0, BN, gl.SliceLayout(0, layout))
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    gl.store(out + rows[:, None] * N + columns[None, :], tile.load(layout), mask=inside)


@pytest.mark.parametrize("warps", [1, 4])
def test_gluon_descriptors_of_the_host(driver, warps):
    x = numbers(50, 70)
    out = np.zeros_like(x)
    layout = gl.PaddedSharedLayout.with_identity_for([[32, 4]], [16, 32], [1, 0])
    source = gluon.amd.cdna5.TensorDescriptor.from_tensor(Tensor(x), [16, 32], layout)
    copy_kernel[(4, 3)](source, out, 50, 70, 16, 32, num_warps=warps)
    np.testing.assert_array_equal(out, x)
    clean(driver)


@gluon.jit
def cluster_kernel(x, out, N, BLOCK: gl.constexpr, LAYOUT: gl.constexpr):
    """Copies a block, of which each workgroup of a cluster has a part."""
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, LAYOUT)
    gl.store(out + at, gl.load(x + at, mask=at < N) * 2, mask=at < N)


def test_gluon_clusters(driver):
    x = numbers(1000)
    out = np.zeros_like(x)
    layout = gl.BlockedLayout([1], [32], [2], [0], cga_layout=[[1], [2]])
    cluster_kernel[(2,)](x, out, 1000, 512, layout, num_warps=2, num_ctas=4)
    np.testing.assert_array_equal(out, x * 2)
    clean(driver)
