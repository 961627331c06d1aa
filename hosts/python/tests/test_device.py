"""Devices, launches, faults, checks."""

import array
import pathlib
import threading

import numpy as np
import pytest

import wavesim

ROOT = pathlib.Path(__file__).parents[3]
SCALE = ROOT / "examples" / "scale.s"


@pytest.fixture
def scale():
    return wavesim.Device("gfx1100").load(SCALE).scale


def test_kernels_work_on_arrays_in_place(scale):
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    outcome = scale[2, 32](x, y, 2.5, 50)
    np.testing.assert_array_equal(y, x * 2.5)
    assert outcome.waves == 2 and outcome.instructions == 26 and not outcome.findings


def test_anything_with_a_buffer_is_an_array(scale):
    x, y = array.array("f", range(50)), bytearray(200)
    scale[2, 32](x, memoryview(y), np.float32(0.5), np.int32(50))
    np.testing.assert_array_equal(np.frombuffer(y, np.float32), np.arange(50) / 2)

    class Exported:
        """An array that has DLPack only."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    y = np.zeros(100, np.float32)[::2]
    scale[2, 32](Exported(np.arange(50, dtype=np.float32)), Exported(y), 2.0, 1)
    assert y[0] == 0 and y.base[1] == 0


def test_read_only_arrays_are_not_written(scale):
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    y.flags.writeable = False
    with pytest.raises(wavesim.Fault, match="goes to read-only memory"):
        scale[2, 32](x, y, 2.5, 50)
    assert not y.any()


def test_memory_of_the_device(scale):
    device = scale.module.device
    x, y = device.alloc(200, "x"), device.alloc(200, "y")
    device.write(x, np.arange(50, dtype=np.float32))
    scale[2, 32](x, y, 3.0, 50)
    assert np.frombuffer(device.read(y, 200), np.float32)[49] == 147
    device.free(y)
    with pytest.raises(wavesim.Fault, match="use after free: `y`"):
        scale[2, 32](x, y, 3.0, 50)


def test_faults_say_where(scale):
    x, y = np.arange(40, dtype=np.float32), np.zeros(50, np.float32)
    with pytest.raises(wavesim.Fault) as caught:
        scale[2, 32](x, y, 2.5, 50)
    fault = caught.value
    assert fault.kind == "out-of-bounds" and fault.workgroup == (1, 0, 0) and fault.lane == 8
    assert fault.address == x.ctypes.data + 160 and fault.kernel == "scale" and fault.launch == 1
    assert "global_load_b32" in fault.instruction and fault.instruction in str(fault)


def test_checks_find_it_and_go_on(scale):
    x, y = np.arange(40, dtype=np.float32), np.zeros(50, np.float32)
    outcome = scale[2, 32](x, y, 2.5, 50, check="mem")
    (finding,) = outcome.findings
    assert finding.check == "mem" and finding.count == 10 and finding.lane == 8
    assert str(finding) in outcome.report
    np.testing.assert_array_equal(y[:40], x * 2.5)
    with pytest.raises(wavesim.Error, match="`rase` is not a check"):
        scale[1, 32](x, y, 2.5, 5, check="rase")


def test_the_environment_turns_checks_on(monkeypatch, capfd):
    monkeypatch.setenv("WAVESIM_CHECK", "all")
    monkeypatch.setenv("WAVESIM_TARGET", "gfx1102")
    kernel = wavesim.Device().load(SCALE)["scale"]
    assert kernel.module.device.target == "gfx1102"
    kernel[2, 32](np.zeros(40, np.float32), np.zeros(50, np.float32), 1.0, 50)
    assert "mem: load of 4 bytes" in capfd.readouterr().err
    monkeypatch.setenv("WAVESIM_THREADS", "no")
    with pytest.raises(wavesim.Error, match="WAVESIM_THREADS=no"):
        wavesim.Device()


def test_wrong_arguments_are_errors(scale):
    x = np.zeros(32, np.float32)
    for launch, text in [
        (lambda: scale[1, 32](x, x), "arguments are missing"),
        (lambda: scale[1, 32](x, x, 1.0, 5, 6), "argument"),
        (lambda: scale[1, 2048](x, x, 1.0, 5), "1 to 1024"),
        (lambda: scale[1, 32](x, x, 1.0, 5, lds=1 << 20), "bytes of LDS"),
        (lambda: scale[1, 32](x, "y", 1.0, 5), "neither int, float nor bytes"),
        (lambda: scale[(1, 1, 1, 1), 32](x, x, 1.0, 5), "one to three dimensions"),
        (lambda: scale[1](x, x, 1.0, 5), "a grid and a block"),
        (lambda: wavesim.Device("gfx1"), "is not a target"),
        (lambda: wavesim.Device("gfx1201").load(b"\x7fELF"), "not"),
    ]:
        with pytest.raises(wavesim.Error, match=text):
            launch()
    with pytest.raises(AttributeError, match="no kernel `nothing`"):
        scale.module.nothing


def test_threads_launch_at_once(scale):
    def work():
        for _ in range(20):
            y = np.zeros(50, np.float32)
            scale[2, 32](np.ones(50, np.float32), y, 2.0, 50)
            assert y.sum() == 100

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scale.module.device.launches == 60


def test_every_exported_name_is_in_the_stubs():
    stub = (pathlib.Path(wavesim.__file__).parent / "_native.pyi").read_text()
    for name in dir(wavesim._native):
        if not name.startswith("__") or name == "__version__":
            assert name in stub, name
            cls = getattr(wavesim._native, name)
            for member in [m for m in vars(cls) if not m.startswith("_")] if isinstance(cls, type) else []:
                assert f"def {member}(" in stub or f"    {member}:" in stub, f"{name}.{member}"
