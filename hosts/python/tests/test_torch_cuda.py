"""Programs whose tensors are on torch's device `cuda`, without a change, in processes of their own."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", minversion="3.6")
pytest.importorskip("torch")


def run(tmp_path, text, target="gfx1100", **variables):
    script = tmp_path / "program.py"
    script.write_text(text)
    environment = {**os.environ, "WAVESIM_TORCH_CUDA": "cpu", "WAVESIM_TARGET": target, **variables}
    result = subprocess.run([sys.executable, "-W", "ignore", script], env=environment, capture_output=True, text=True)
    return result.returncode, result.stdout.split("\n"), result.stderr


START = """
import copy
import pickle

import numpy as np
import torch
import triton
import triton.language as tl

import wavesim.triton

"""

KERNEL = """
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


x = torch.arange(100, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
with torch.cuda.device(x.device):
    double[(4,)](x, out, 100, BLOCK=32)
torch.cuda.synchronize()
assert torch.equal(out, x * 2) and out[-1] == 198
"""

DEVICE = """
assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
assert torch.version.hip and torch.version.cuda is None
properties = torch.cuda.get_device_properties(0)
print(properties.gcnArchName, properties.warp_size, torch.cuda.get_device_capability(), torch.cuda.get_device_name())
assert properties.multi_processor_count > 0 and properties.shared_memory_per_block >= 65536
assert torch.accelerator.current_accelerator().type == "cuda"
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(torch.cuda.Stream()):
    start.record()
    end.record()
torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
assert start.elapsed_time(end) >= 0 and torch.cuda.mem_get_info()[1] > 0
"""

TENSORS = """
assert x.device == torch.device("cuda", 0) and x.is_cuda and x.get_device() == 0
for made in (torch.zeros(2, device=torch.device("cuda")), x.new_ones(2, device="cuda:0"), torch.rand_like(x, device=0)):
    assert made.is_cuda and made.sum() >= 0
with torch.device("cuda"):
    assert torch.ones(2).sum() == 2
# What moves is a copy, as between two memories; what is there stays.
host = torch.zeros(3)
here = host.cuda()
here += 1
assert host.sum() == 0 and here.cuda() is here and here.to("cuda") is here and here.to(0) is here
back = here.cpu()
here += 1
assert back.tolist() == [1, 1, 1] and here.to("cpu", torch.float16).dtype == torch.float16
assert here.to(torch.float64).dtype == torch.float64 and here.to(x.half()).dtype == torch.float16
torch.testing.assert_close(here, torch.full((3,), 2.0, device="cuda"))
assert copy.deepcopy(here).is_cuda and pickle.loads(pickle.dumps(here)).tolist() == [2, 2, 2]
assert np.asarray(here).sum() == 6 and np.from_dlpack(here).sum() == 6
try:
    torch.empty(2, device="xpu")
except Exception as error:
    print(type(error).__name__)
"""

MODELS = """
model = torch.nn.Linear(4, 4).to("cuda")
values = torch.randn(2, 4, device="cuda", requires_grad=True)
with torch.autocast("cuda"):
    product = model(values)
    assert torch.is_autocast_enabled("cuda")
assert product.dtype == torch.float16 and not torch.is_autocast_enabled("cuda")
product.float().sum().backward()
torch.testing.assert_close(values.grad, model.weight.sum(0).expand(2, 4), rtol=1e-2, atol=1e-2)
with torch.amp.autocast("cuda", dtype=torch.bfloat16):
    assert (model(values)).dtype == torch.bfloat16


class Twice(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
    def forward(ctx, x):
        return x * 2


with torch.autocast("cuda"):
    assert Twice.apply(values).dtype == torch.float16
generator = torch.Generator(device="cuda").manual_seed(5)
assert isinstance(generator, torch.Generator)
first = torch.rand(3, device="cuda", generator=generator)
assert torch.equal(first, torch.rand(3, device="cuda", generator=generator.manual_seed(5)))
torch.cuda.manual_seed(7)
seed, offset = torch.cuda.default_generators[0].get_state().view(torch.int64).tolist()
assert (seed, offset) == (7, 0)
torch.save({"x": x}, "values.pt")
assert torch.load("values.pt", map_location="cuda")["x"].is_cuda
"""

OPERATORS = """
library = torch.library.Library("aten", "IMPL")
library.impl("sinc", lambda x: torch.full_like(x, 5), "CUDA")
assert torch.sinc(x).unique().tolist() == [5]


@torch.library.custom_op("wavesim_test::double", mutates_args=(), device_types="cuda")
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    double[(4,)](x, out, x.numel(), BLOCK=32)
    return out


assert torch.equal(twice(x), x * 2)
"""


@pytest.mark.parametrize("target, wave, version", [("gfx1100", 32, (11, 0)), ("gfx942", 64, (9, 4)), ("gfx90a", None, None)])
def test_the_device_is_described(tmp_path, target, wave, version):
    code, lines, errors = run(tmp_path, START + KERNEL + DEVICE, target)
    if wave is None:
        assert code != 0 and "gfx90a" in errors
        return
    assert code == 0, errors
    assert lines[0] == f"{target} {wave} {version} AMD {target} (wavesim)"


def test_tensors(tmp_path):
    code, lines, errors = run(tmp_path, START + KERNEL + TENSORS)
    assert code == 0, errors
    # Other devices are as torch says.
    assert lines[0] in ("RuntimeError", "AssertionError", "NotImplementedError"), lines


def test_models(tmp_path):
    code, _, errors = run(tmp_path, START + KERNEL + "import os\nos.chdir(os.path.dirname(__file__))\n" + MODELS)
    assert code == 0, errors


def test_operators_of_cuda(tmp_path):
    code, _, errors = run(tmp_path, START + KERNEL + OPERATORS)
    assert code == 0, errors


def test_models_are_compiled(tmp_path):
    """torch's compiler sees tensors on the CPU, also in a program that names `cuda`."""
    text = """
import torch._inductor.config as inductor
inductor.cpu_backend, inductor.compile_threads = "triton", 1
model = torch.nn.Sequential(torch.nn.LayerNorm(32), torch.nn.GELU()).to("cuda")
values = torch.randn(4, 32, device="cuda", requires_grad=True)
before = wavesim.triton.active().instructions
def loss(model):
    scale = torch.full((32,), 3.0, device="cuda")
    return (model(values) * scale).square().mean()
gradients = []
for call in (loss, torch.compile(loss)):
    call(model).backward()
    gradients.append(values.grad.clone())
    values.grad = None
torch.testing.assert_close(*gradients)
assert wavesim.triton.active().instructions > before
"""
    code, _, errors = run(tmp_path, START + text)
    assert code == 0, errors


def test_other_values_are_errors(tmp_path):
    code, _, errors = run(tmp_path, START, WAVESIM_TORCH_CUDA="gpu")
    assert code != 0 and "WAVESIM_TORCH_CUDA=gpu: not `cpu`" in errors
    code, _, errors = run(tmp_path, START, WAVESIM_TRITON_AUTOTUNE="last")
    assert code != 0 and "WAVESIM_TRITON_AUTOTUNE=last: not `first`" in errors


TUNED = """
@triton.autotune([triton.Config({"BLOCK": size}) for size in (8192, 4096, 32)], key=["n"], **OPTIONS)
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 4096)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


x = np.ones(96, np.float32)
out = np.zeros_like(x)
tuned[lambda meta: (triton.cdiv(96, meta["BLOCK"]),)](x, out, 96)
assert (out == 2).all()
print(tuned.best_config.kwargs["BLOCK"])
"""


def test_the_first_configuration_that_is_valid(tmp_path):
    options = "OPTIONS = {}\n"
    code, lines, errors = run(tmp_path, START + options + TUNED, WAVESIM_TRITON_AUTOTUNE="first")
    assert code == 0 and lines[0] == "4096", errors
    code, lines, errors = run(tmp_path, START + options + TUNED)
    assert code == 0 and lines[0] == "32", errors


def test_tuners_with_a_duration_compare_costs(tmp_path):
    options = "OPTIONS = {'warmup': 1, 'rep': 10}\n"
    code, lines, errors = run(tmp_path, START + options + TUNED)
    assert code == 0 and lines[0] == "32", errors
