"""Values that are not what they seem, and Ctrl-C."""

import ctypes
import pathlib
import signal
import time

import numpy as np
import pytest

import wavesim

ROOT = pathlib.Path(__file__).parents[3]
SCALE = ROOT / "examples" / "scale.s"

ENDLESS = """\
---
local = 32, 1, 1
---
loop:
  s_branch loop
"""


@pytest.fixture
def device():
    return wavesim.Device("gfx1100")


@pytest.fixture
def scale(device):
    return device.load(SCALE).scale


@pytest.mark.parametrize("size", [2**64 - 1, 2**63, 2**63 - 1, 2**40, 2**64, -1, 101, 1.5, None])
def test_reads_of_impossible_sizes(device, size):
    pointer = device.alloc(100)
    with pytest.raises(wavesim.Error):
        device.read(pointer, size)
    assert device.read(pointer, 100) == bytes(100)


@pytest.mark.parametrize("pointer", [-1, 2**64, 2**64 - 1, 0, "x"])
def test_impossible_pointers(device, pointer):
    for use in (lambda p: device.read(p, 8), lambda p: device.write(p, bytes(8)), device.free, device.unmap):
        with pytest.raises(wavesim.Error):
            use(pointer)
    for size in (-1, 2**64, 2**64 - 1, "x"):
        with pytest.raises(wavesim.Error):
            device.alloc(size)


def test_impossible_launches(device, scale):
    x = np.zeros(32, np.float32)
    for options in ({"lds": -1}, {"lds": 2**32}, {"lds": 2**70}, {"threads": -1}, {"max_instructions": -1}, {"lds": 1.5}):
        with pytest.raises(wavesim.Error):
            scale[1, 32](x, x, 1.0, 1, **options)
    # `bytes` of a number is that many zeros.
    for use in (device.load, lambda data: device.write(device.alloc(8), data)):
        for data in (2**40, None, 1.5, ["x"], [256]):
            with pytest.raises(wavesim.Error):
                use(data)


def test_files_without_an_end(device):
    for load in (device.load, wavesim.run):
        with pytest.raises(wavesim.Error, match="larger than 128 MiB"):
            load("/dev/zero")


@pytest.mark.parametrize(
    "array",
    [
        np.array([object(), None] * 50),
        np.arange("2024-01-01", "2024-04-10", dtype="datetime64[D]"),
        np.arange(100).astype("timedelta64[ns]"),
        np.arange(100, dtype=">f4"),
    ],
    ids=["object", "datetime", "timedelta", "big-endian"],
)
def test_elements_that_kernels_cannot_access(device, scale, array):
    for use in (device.map, lambda a: scale[1, 32](a, a, 1.0, 1)):
        with pytest.raises(wavesim.Error, match="convert it first"):
            use(array)


class Claims:
    """An object that claims to be an array."""

    def __init__(self, **interface):
        self.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": (100,), **interface}


@pytest.mark.parametrize(
    "interface",
    [
        {"data": (0, False)},
        {"data": None, "typestr": "<f4"},
        {"data": (0, True)},
        {"data": (16, False)},
        {"data": (2**63, False)},
        {"data": (-4, False)},
        {"data": (2**64 - 4, False)},
        {"data": (2**64, False)},
        {"data": "text"},
        {"data": (1,)},
        {"data": (4096, False), "shape": (-1,)},
        {"data": (4096, False), "shape": (2**62, 2**62)},
        {"data": (4096, False), "shape": None},
        {"data": (4096, False), "shape": (2,), "strides": (-(2**63),)},
        {"data": (4096, False), "shape": (2,), "strides": (1, 2)},
        {"data": (4096, False), "typestr": "nonsense"},
        {"data": (4096, False), "typestr": None},
    ],
)
def test_malformed_array_interfaces(device, scale, interface):
    array = Claims(**interface)
    for use in (device.map, lambda a: scale[1, 32](a, a, 1.0, 1)):
        with pytest.raises(wavesim.Error):
            use(array)


def test_null_pointers_of_other_arrays(device):
    class Interface:
        __array_interface__ = "nonsense"

    class Tensor:
        nbytes = 400

        def data_ptr(self):
            return 0

    for array in (Interface(), Tensor()):
        with pytest.raises(wavesim.Error):
            device.map(array)
    # An empty array has no memory.
    device.map(np.zeros(0, np.float32))


class Exported:
    """An array that supports only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_read_only_tensors_are_not_written(scale):
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    scale[1, 32](Exported(x), Exported(y), 2.0, 32)
    assert (y == 2).all()
    y = np.zeros(32, np.float32)
    y.flags.writeable = False
    with pytest.raises(wavesim.Error):
        scale[1, 32](Exported(x), Exported(y), 2.0, 32)
    assert (y == 0).all()
    # As an input, it is fine if its producer can say so.
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1):
        x.flags.writeable = False
        z = np.zeros(32, np.float32)
        scale[1, 32](Exported(x), z, 2.0, 32)
        assert (z == 2).all()


def test_things_that_are_no_tensors(device):
    class Fake:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    for capsule in (None, 5, new(1, b"other", None)):
        with pytest.raises(wavesim.Error):
            device.map(Fake(capsule))


def _interrupted(run):
    """Returns the seconds after which a function ends that is interrupted after half a second.

    Another thread cannot send the signal: it does not run while the debugger does.
    """
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return time.monotonic() - start


def test_ctrl_c_ends_a_launch(device):
    assert _interrupted(lambda: wavesim.run(ENDLESS, max_instructions=10**15)) < 10
    source = """\
  .globl endless
  .p2align 8
  .type endless,@function
endless:
  s_branch endless
  .size endless, .-endless
  .rodata
  .p2align 6
  .amdhsa_kernel endless
    .amdhsa_next_free_vgpr 1
    .amdhsa_next_free_sgpr 1
  .end_amdhsa_kernel
"""
    kernel = device.load(wavesim.assemble(source, target="gfx1100")).endless
    assert _interrupted(lambda: kernel[1, 32](max_instructions=10**15)) < 10
    # The device can be used further.
    with pytest.raises(wavesim.Fault):
        kernel[1, 32](max_instructions=1000)


def test_ctrl_c_ends_a_command_of_the_debugger():
    debugger = wavesim.debug(ENDLESS, max_instructions=10**15)
    assert _interrupted(lambda: debugger.execute("continue")) < 10
    assert _interrupted(debugger.finish) < 10
    assert debugger.step(3) == 3
