"""tinygrad on the simulated device. Runs in a process of its own, because importing tinygrad selects the device."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("tinygrad")

PROGRAM = """
import wavesim.tinygrad
from tinygrad import Tensor, Device, dtypes
import numpy as np
assert Device.DEFAULT == "AMD" and type(Device["AMD"]).__module__ == "wavesim.tinygrad"
rng = np.random.default_rng(3)
a, b = (rng.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4, atol=1e-4)
x = Tensor(a)
np.testing.assert_allclose(x.softmax().numpy().sum(axis=1), 1, rtol=1e-5)
np.testing.assert_allclose((x.exp() + x.sin()).sum(axis=0).numpy(), (np.exp(a) + np.sin(a)).sum(axis=0), rtol=1e-4)
np.testing.assert_array_equal(Tensor.arange(100).reshape(10, 10).T.contiguous().numpy(), np.arange(100).reshape(10, 10).T)
# LLVM widens a load of seven elements to eight.
np.testing.assert_array_equal(Tensor([3, 1, 2, 7, 5, 6, 4]).sort()[0].numpy(), range(1, 8))
half = x.cast(dtypes.half)
np.testing.assert_allclose((half * 2).numpy(), a.astype(np.float16) * 2, rtol=1e-3)
print("launches", Device["AMD"].wavesim.launches)
"""


CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
# What `scripts/install-llvm22.sh` unpacks: LLVM knows gfx1250 since version 22.
LLVM_22 = CACHE / "wavesim/llvm-22/usr/lib/x86_64-linux-gnu/libLLVM-22.so"


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201", "gfx1250"])
def test_tensors(target, tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "WAVESIM_TARGET": target, "CACHELEVEL": "0"}
    if target == "gfx1250":
        if not LLVM_22.exists():
            pytest.skip("skipped: LLVM 22 is not unpacked (scripts/install-llvm22.sh)")
        environment["LLVM_PATH"] = str(LLVM_22)
    environment["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent)
    if "libLLVM" in done.stderr or "failed to load library" in done.stderr:
        pytest.skip("tinygrad finds no LLVM library")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= 5


BEAM = """
import wavesim.tinygrad
from tinygrad import Tensor, Device
from tinygrad.helpers import Context
import numpy as np

x = np.arange(64, dtype=np.float32)
with Context(BEAM=1):
    np.testing.assert_allclose((Tensor(x) * 2 + 1).numpy(), x * 2 + 1)
print("launches", Device["AMD"].wavesim.launches, "ns", Device["AMD"].wavesim.native.predicted_nanoseconds)
"""


def test_beam_uses_predicted_times(tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CACHELEVEL": "0", "PARALLEL": "0"}
    environment["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    command = [sys.executable, "-c", BEAM]

    def run(**variables):
        variables = dict(environment, **variables)
        folder = pathlib.Path(__file__).parent
        done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=folder)
        if "libLLVM" in done.stderr or "failed to load library" in done.stderr:
            pytest.skip("tinygrad finds no LLVM library")
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr

    # Each launch takes as long as the constants say.
    (_, launches, _, nanoseconds), errors = run(WAVESIM_TIMING="rx7900xtx,launch.first=500,launch.following=500")
    assert errors.count("times are predicted for Radeon RX 7900 XTX") == 1, errors
    assert int(launches) > 3 and int(nanoseconds) > 500_000 * int(launches)
    assert run()[0][3] == "None"
