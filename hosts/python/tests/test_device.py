"""Devices, launches, faults, checks."""

import array
import gc
import pathlib
import pickle
import subprocess
import sys
import threading
import weakref

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


def test_launches_are_profiled(scale, monkeypatch, tmp_path):
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    outcome = scale[2, 32](x, y, 2.5, 50, profile=True)
    np.testing.assert_array_equal(y, x * 2.5)
    profile = outcome.profile
    assert repr(profile).startswith("<wavesim.Profile rx7900xtx: predicted ") and dict(profile) == profile.data
    assert sum(row["executed"] for row in profile["instructions"]) == outcome.instructions
    assert pickle.loads(pickle.dumps(outcome)).profile.data == profile.data
    profile.save(tmp_path / "profile.html")
    assert "not measured" in (tmp_path / "profile.html").read_text()
    slower = scale[2, 32](x, y, 2.5, 50, profile="rx7900xtx,chip.clock=100").profile
    # Not exactly as many clocks: the arguments of each launch are at another address.
    assert slower["clocks"] == pytest.approx(profile["clocks"], rel=0.05) and slower.microseconds > profile.microseconds
    assert scale[2, 32](x, y, 2.5, 50).profile is None
    for device, message in (("rx7900xt", "rx7900xtx"), ("mi300a", "cdna3"), (7, "the name of a device")):
        with pytest.raises(wavesim.Error, match=message):
            scale[2, 32](x, y, 2.5, 50, profile=device)
    with pytest.raises(wavesim.Error, match="without checks"):
        scale[2, 32](x, y, 2.5, 50, profile=True, check="all")


MEMORY = """
import resource, sys
import numpy as np
import wavesim

x, y = np.ones(1 << 26, np.float32), np.ones(1 << 26, np.float32)
kernel = wavesim.Device("gfx1100").load(sys.argv[1]).scale
outcome = kernel[64, 32](x, y, 2.5, 1 << 26, profile=sys.argv[2] == "profile")
print(outcome.profile is not None, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_profiles_need_no_copy_of_memory():
    """Two arrays of 256 MB: the profile of a launch takes no more memory than what it has recorded."""
    kilobytes = {}
    for what in ("run", "profile"):
        command = [sys.executable, "-c", MEMORY, str(SCALE), what]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        profiled, peak = done.stdout.split()
        assert profiled == str(what == "profile")
        kilobytes[what] = int(peak)
    assert kilobytes["run"] > 512 << 10 and kilobytes["profile"] < kilobytes["run"] + (64 << 10), kilobytes


def test_schedules_are_explored_on_copies(scale):
    x, y = np.arange(50, dtype=np.float32), np.full(50, 7, np.float32)
    explored = scale[2, 32].explore(x, y, 2.5, 50, schedules=20)
    assert explored, explored.difference
    assert explored.schedules == 20 and len(explored.outcomes) == 1 and explored.waves == 2
    assert (y == 7).all()
    with pytest.raises(wavesim.Error, match="the tolerance is from 0 to 1"):
        scale[2, 32].explore(x, y, 2.5, 50, tolerance=2)


def test_anything_with_a_buffer_is_an_array(scale):
    x, y = array.array("f", range(50)), bytearray(200)
    scale[2, 32](x, memoryview(y), np.float32(0.5), np.int32(50))
    np.testing.assert_array_equal(np.frombuffer(y, np.float32), np.arange(50) / 2)

    class Exported:
        """An array that supports only DLPack."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    y = np.zeros(100, np.float32)[::2]
    scale[2, 32](Exported(np.arange(50, dtype=np.float32)), Exported(y), 2.0, 1)
    assert y[0] == 0 and y.base[1] == 0


# u64 *out, i64 a, f64 b, f32 c: stores a, b and c. Each parameter has 8 bytes, except the last, which has 4.
STORE = """\
  .globl store
  .p2align 8
  .type store,@function
store:
  s_load_b256 s[4:11], s[0:1], 0x0
  v_mov_b32 v6, 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v0, s6
  v_mov_b32 v1, s7
  v_mov_b32 v2, s8
  v_mov_b32 v3, s9
  v_mov_b32 v4, s10
  global_store_b128 v6, v[0:3], s[4:5]
  global_store_b32 v6, v4, s[4:5] offset:16
  s_endpgm
  .size store, .-store
  .rodata
  .p2align 6
  .amdhsa_kernel store
    .amdhsa_kernarg_size 32
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 7
    .amdhsa_next_free_sgpr 12
  .end_amdhsa_kernel
METADATA
"""
METADATA = """\
  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: store
    .symbol: store.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 12
    .vgpr_count: 7
    .max_flat_workgroup_size: 1024
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer}
      - {.name: a, .offset: 8, .size: 8, .value_kind: by_value}
      - {.name: b, .offset: 16, .size: 8, .value_kind: by_value}
      - {.name: c, .offset: 24, .size: 4, .value_kind: by_value}
...
  .end_amdgpu_metadata
"""


def stored(metadata, a, b, c):
    """Returns the parameters as the kernel receives them."""
    code = wavesim.assemble(STORE.replace("METADATA", metadata), target="gfx1100")
    out = np.zeros(3, np.uint64)
    wavesim.Device("gfx1100").load(code).store[1, 1](out, a, b, c)
    return out.view(np.int64)[0], out.view(np.float64)[1], out.view(np.float32)[4]


def test_contents_of_an_assembly_file_are_loaded():
    text = STORE.replace("METADATA", METADATA).encode()
    out = np.zeros(3, np.uint64)
    wavesim.Device("gfx1100").load(text).store[1, 1](out, np.int64(7), 0.0, 0.0)
    assert out[0] == 7


def test_tensors_of_torch_are_arrays(scale):
    torch = pytest.importorskip("torch")
    x, y = torch.arange(50, dtype=torch.float32), torch.zeros(50)
    scale[2, 32](x, y, 2.5, 50)
    assert torch.equal(y, x * 2.5)
    with pytest.raises(wavesim.Fault):
        scale[2, 32](x[:40].clone(), y, 2.5, 50)


def test_scalars_have_the_size_of_the_parameter():
    assert stored(METADATA, np.int32(-1), np.float32(1.5), np.float64(2.5)) == (-1, 1.5, 2.5)
    assert stored(METADATA, np.bool_(True), np.float16(-2), np.float32(3)) == (1, -2, 3)
    assert stored(METADATA, np.uint8(200), np.longdouble(0.5), 4.0) == (200, 0.5, 4)
    with pytest.raises(wavesim.Error, match="bytes for a parameter"):
        stored(METADATA, np.complex128(1), 1.0, 1.0)
    # Without metadata, the size of a parameter is that of the scalar.
    assert stored("", np.int64(-1), np.float64(1.5), np.float32(2.5)) == (-1, 1.5, 2.5)


def test_mapped_arrays_live_until_launches_have_ended(scale):
    class Owned(np.ndarray):
        pass

    device = scale.module.device
    array = np.ones(4, np.float32).view(Owned)
    gone = weakref.ref(array)
    device.map(array)
    address = array.ctypes.data
    del array
    gc.collect()
    assert gone() is not None
    device.unmap(address)
    gc.collect()
    assert gone() is None


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


def test_checks_report_and_continue(scale):
    # An access beyond an array that reaches another argument is not out of bounds: how far apart two arrays of
    # NumPy are depends on its allocator, so both are parts of one.
    room = np.zeros(200, np.float32)
    x, y = room[:40], room[100:150]
    x[:] = np.arange(40)
    outcome = scale[2, 32](x, y, 2.5, 50, check="mem")
    (finding,) = outcome.findings
    assert finding.check == "mem" and finding.count == 10 and finding.lane == 8
    assert str(finding) in outcome.report
    np.testing.assert_array_equal(y[:40], x * 2.5)
    outcome = scale[2, 32](x, room[44:94], 2.5, 50, check="mem")
    assert [f.count for f in outcome.findings] == [4]
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


def test_kernels_print_as_python_does(capsys):
    talk = wavesim.Device("gfx1100").load(ROOT / "hosts/hip/tests/prebuilt/features.o").talk
    assert repr(talk) == "<wavesim.Kernel talk()>" and "histogram(unsigned char const*" in repr(talk.module)
    talk[2, 32]()
    lines = [f"block {block}, thread   1: text 0.25 x %\n" for block in range(2)]
    assert capsys.readouterr().out == "".join(lines)


def test_wrong_arguments_are_errors(scale):
    x = np.zeros(32, np.float32)
    for launch, text in [
        (lambda: scale[1, 32](x, x), "arguments are missing"),
        (lambda: scale[1, 32](x, x, 1.0, 5, 6), "argument"),
        (lambda: scale[1, 2048](x, x, 1.0, 5), "1 to 1024"),
        (lambda: scale[1, 32](x, x, 1.0, 5, lds=1 << 20), "bytes of LDS"),
        (lambda: scale[1, 32](x, "y", 1.0, 5), "argument number 2: str is not an array"),
        (lambda: scale[-1, 32](x, x, 1.0, 5), "grid: -1 is not from 0"),
        (lambda: scale[1, 1.5](x, x, 1.0, 5), "block must be one to three integers, not 1.5"),
        (lambda: scale(x, x, 1.0, 5), "a grid and a block"),
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


# An infinite loop.
SPIN = """\
  .globl spin
  .p2align 8
  .type spin,@function
spin:
  s_branch spin
  s_endpgm
  .size spin, .-spin
  .rodata
  .p2align 6
  .amdhsa_kernel spin
    .amdhsa_next_free_vgpr 1
    .amdhsa_next_free_sgpr 2
  .end_amdhsa_kernel
"""


def test_launches_can_be_cancelled():
    device = wavesim.Device("gfx1100")
    spin = device.load(wavesim.assemble(SPIN)).spin
    faults = []

    def launch():
        try:
            spin[1, 32]()
        except wavesim.Fault as fault:
            faults.append(fault.kind)

    thread = threading.Thread(target=launch)
    thread.start()
    # A launch that has not started yet is not cancelled.
    while thread.is_alive():
        device.cancel()
        thread.join(0.01)
    assert faults == ["interrupted"]


def test_a_string_of_several_lines_is_assembly():
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    wavesim.Device("gfx1100").load(SCALE.read_text()).scale[2, 32](x, y, 2.5, 50)
    np.testing.assert_array_equal(y, x * 2.5)
    with pytest.raises(wavesim.Error, match="has no instruction `s_mov_b33`"):
        wavesim.Device("gfx1100").load("s_mov_b33 s0, s1\ns_endpgm\n")


def test_misspelt_files_are_named():
    with pytest.raises(FileNotFoundError, match="did you mean `.*scale.s`"):
        wavesim.Device("gfx1100").load(SCALE.with_name("sacle.s"))


def test_parameters_have_names_and_types():
    """Names are those of the debug information: clang leaves them out of the metadata."""
    blur = wavesim.Device("gfx1100").load(ROOT / "examples" / "debugger" / "smooth.co").blur
    assert repr(blur) == "<wavesim.Kernel blur(float* x, float* out_y, half2* out_pair, int radius)>"
    x, y, pair = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(128, np.float16)
    blur[1, 64](x, y, pair, 1.0)
    assert y[1] == 1
    with pytest.warns(UserWarning, match="x: elements of f64 for `float\\*`, whose elements are f32") as warned:
        blur[1, 64](np.zeros(64), y, pair, 1)
    assert [pathlib.Path(warning.filename).name for warning in warned] == ["test_device.py"]
    with pytest.raises(wavesim.Error, match="radius: 1.5 for `int`, which is an integer"):
        blur[1, 64](x, y, pair, 1.5)
