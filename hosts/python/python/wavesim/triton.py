"""Runs Triton kernels on wavesim.

    import wavesim.triton

After this import, `@triton.jit` functions launch on wavesim, with NumPy arrays and torch tensors on the CPU as
arguments. WAVESIM_TARGET selects the GPU (default gfx1100), and WAVESIM_CHECK=all checks every launch.
`wavesim.triton.use("gfx1201")` selects another GPU later.

Autotuning compares numbers of executed instructions instead of times, so its choice is deterministic. If WAVESIM_TIMING
names a GPU, it compares the predicted times of this GPU, and `triton.testing.do_bench` returns them (docs/cost.md).
"""

from __future__ import annotations

import functools
import gc
import os
import struct
import sys
import warnings
import weakref
from typing import Any, Iterator, Optional

import triton
from triton import testing as _testing
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import _allocation
from triton.runtime import driver as _config
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from . import Device, Error
from ._arrays import extent
from ._device import print_findings

__all__ = ["Driver", "Tensor", "use"]

_FORMATS = {
    "i1": "<b", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q",
    "u1": "<B", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q",
    "fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d",
}  # fmt: skip


class _Dtype(str):
    """Name of a type. Triton's tensor descriptors read its attributes, as of torch's types."""

    def __new__(cls, name: str, itemsize: int) -> "_Dtype":
        self = super().__new__(cls, name)
        self.itemsize = itemsize
        return self

    @property
    def is_floating_point(self) -> bool:
        return "float" in self


class Tensor:
    """Adapts an array for Triton, with `data_ptr` and `dtype`. `dtype` can be another type of the same size.

    An example is `bfloat16`.
    """

    def __init__(self, array: Any, dtype: Optional[str] = None) -> None:
        self.array = array
        self.dtype = _Dtype(dtype, array.dtype.itemsize) if dtype else _name(array.dtype)
        self.place = extent(array)
        if self.place is None:
            raise Error(f"{type(array).__name__} is not an array")

    def data_ptr(self) -> int:
        """Returns the address. Kernels can load it from memory and access the array there, while the array exists."""
        _seen.add(self.array)
        return self.place.pointer

    @property
    def shape(self) -> tuple:
        return self.array.shape

    def stride(self, axis: Optional[int] = None) -> Any:
        """Strides in elements."""
        strides = tuple(bytes // self.array.itemsize for bytes in self.array.strides)
        return strides if axis is None else strides[axis]

    def element_size(self) -> int:
        return self.array.itemsize

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.array.__array__(*args, **kwargs)


_NAMES: dict = {}


def _name(dtype: Any) -> str:
    """Returns the name of a type. Cached, because computing it in NumPy takes as long as a launch."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = _Dtype(str(dtype), dtype.itemsize)
    return name


class _Seen:
    """The storages of the tensors that kernels may find by addresses in memory."""

    def __init__(self) -> None:
        self.storages: dict = {}
        """Weak references to NumPy arrays that own memory, by their ids."""

    def add(self, array: Any) -> None:
        """Adds the array whose memory a NumPy array shows."""
        while type(getattr(array, "base", None)) is type(array):
            array = array.base
        key = id(array)
        if key not in self.storages:
            try:
                self.storages[key] = weakref.ref(array, lambda _: self.storages.pop(key, None))
            except TypeError:  # Arrays of other kinds without weak references.
                return

    def ranges(self) -> "Iterator[tuple]":
        """Returns address, size and access of the storages that exist, and the objects that keep them.

        They are those of the arrays that were added, and of all of torch's tensors on the CPU.
        """
        arrays = [reference() for reference in list(self.storages.values())]
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "Tensor"):
            # Of other objects, the type of `isinstance` may run code.
            tensors = (found for found in gc.get_objects() if issubclass(type(found), torch.Tensor))
            arrays += [tensor for tensor in tensors if tensor.device.type == "cpu" and tensor.layout == torch.strided]
        for array in arrays:
            if array is None:
                continue
            try:
                place = extent(array)
            except RuntimeError:  # A tensor without memory, such as torch's compiler traces.
                continue
            if place.size > 0:
                yield (place.address, place.size), place.writable, place.owner


_seen = _Seen()


def _loads_addresses(signature: list) -> bool:
    """Returns whether a kernel may load addresses from memory: an argument points to integers of their size."""
    return any(kind.lstrip("*k") in ("i64", "u64") and kind.startswith("*") for kind in signature)


def _wrap(value: Any) -> Any:
    """Converts NumPy arrays to tensors. Values with `data_ptr` are tensors already."""
    # NumPy builds `__array_interface__` on each access, so the cheaper tests come first.
    plain = type(value) in (int, float, bool, str) or hasattr(value, "data_ptr")
    if plain or not hasattr(value, "__array_interface__"):
        return value
    if value.shape != ():
        return Tensor(value)
    return value.item() if hasattr(value, "item") else value


class _Function:
    """A loaded kernel."""

    def __init__(self, kernel: Any, shared: int) -> None:
        self.native, self.shared = kernel.native, shared
        self.places = [(offset, size) for _, _, offset, size in kernel.native.arguments]
        """Offset and size of each argument in the kernarg segment."""


class _Utils:
    """The functions that Triton's compiler requires of a driver."""

    def __init__(self, driver: "Driver") -> None:
        self.driver = driver

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple:
        module = self.driver.device.load(binary)
        kernel = module.kernel(name)
        return module, _Function(kernel, shared), kernel.native.vgprs, 0, 1024

    def unload_module(self, module: Any) -> None:
        pass

    def get_device_properties(self, device: int) -> dict:
        return {
            "max_shared_mem": self.driver.device.native.lds_bytes,
            # As HIP reports them: registers of a workgroup, work-items of a multiprocessor.
            "max_num_regs": 65_536,
            "max_threads_per_sm": 2048,
            "multiprocessor_count": 16,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 256,
            "arch": self.driver.device.target,
            "warpSize": self.driver.warp_size,
            "cooperativeLaunch": 1,
        }


def _flatten(signature: Any, values: Any, names: Any, describe: Any, out: list) -> None:
    """Appends type, value and name of each argument to `out`, omitting constants. `describe` lists those of a descriptor."""
    for kind, value, name in zip(signature, values, names):
        if isinstance(kind, tuple):
            _flatten(kind, value, [name] * len(kind), describe, out)
        elif kind.startswith("tensordesc"):
            out += [(part, item, name) for part, item in describe(kind, value)]
        elif kind != "constexpr":
            out.append((kind, value, name))


def _pack(kind: str, value: Any) -> bytes:
    if kind == "bf16":
        return struct.pack("<f", value)[2:]
    if kind not in _FORMATS:
        raise Error(f"arguments of type {kind} are not supported by wavesim.triton")
    return struct.pack(_FORMATS[kind], value)


def _tiles(block: Any, warps: int) -> list:
    """Returns the part of a block that each warp copies: Triton halves the outer dimensions first."""
    if len(block) == 1:
        return [-(-block[0] // warps)]
    tiles = []
    for size in block:
        parts = 1
        while warps > 1 and parts * 2 <= size:
            parts, warps = parts * 2, warps // 2
        tiles.append(-(-size // parts))
    return tiles


# First bit and width of the fields of each dimension, the innermost first (CDNA 5 manual, *Tensor DMA Descriptor*).
_DIMENSIONS = [(176, 32), (208, 32), (384, 32), (416, 32), (560, 32)]
_TILES = [(240, 16), (256, 16), (272, 16), (496, 16), (592, 16)]
_STRIDES = [(288, 48), (336, 48), (448, 48), (512, 48)]


class _Descriptor:
    """A tensor descriptor that the tensor data mover decodes."""

    def __init__(self, value: Any, meta: dict, warps: int) -> None:
        self.base, self.bits = value.base, meta["elem_bits"]
        self.shape, self.strides = list(value.shape), list(value.strides)
        self.tiles = _tiles(list(meta["block_size"]), warps)
        self.padding = (list(meta.get("interval_padding_pairs") or ()) or [(0, 0)])[0]

    def encode(self, address: int) -> bytes:
        """Returns the descriptor's groups. The kernel sets the address in LDS."""
        interval, amount = (count * self.bits // 32 for count in self.padding)
        fields = [
            (0, 1, 1),  # COUNT
            (64, 57, address),
            (126, 2, 2),  # TYPE
            (144, 2, (self.bits // 8).bit_length() - 1),  # DATA_SIZE
        ]
        if interval and amount:
            # PAD_ENABLE, PAD_INTERVAL, PAD_AMOUNT
            fields += [(148, 1, 1), (150, 3, interval.bit_length() - 2), (153, 7, amount - 1)]
        for places, values in ((_DIMENSIONS, self.shape), (_TILES, self.tiles), (_STRIDES, self.strides[:-1])):
            fields += [(*place, value) for place, value in zip(places, reversed(values))]
        bits = 0
        for first, width, value in fields:
            bits |= (int(value) & (1 << width) - 1) << first
        return bits.to_bytes(80, "little")


class Launcher:
    """Launches one kernel. Triton creates it with the kernel's signature."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.signature = list(dict(src.signature).values())
        # Kernels of the compiler's text have no function.
        names = list(getattr(getattr(src, "fn", None), "arg_names", ()))
        if len(names) != len(self.signature):
            names = [f"argument {at + 1}" for at in range(len(self.signature))]
        self.names = names
        self.metadata = metadata

    def __call__(self, gx, gy, gz, stream, function, packed, launch_metadata, enter, leave, *args) -> None:
        if enter is not None:
            enter(launch_metadata)
        self._launch((gx, gy, gz), function, args)
        if leave is not None:
            leave(launch_metadata)

    def _describe(self, descriptors: Any, kind: str, value: Any) -> list:
        """Returns types and values of the arguments that stand for a tensor descriptor.

        They are one for the tensor data mover, where `descriptors` has the descriptor's layout, or else base, shape, strides
        and flags; shape and strides follow.
        """
        shape = [("i32", size) for size in value.shape]
        strides = [("i64", stride) for stride in value.strides]
        layout = next(descriptors, None)
        if layout is not None:
            return [("tensordesc", _Descriptor(value, layout, self.metadata.num_warps)), *shape, *strides]
        element = kind.partition("<")[2].partition("[")[0]
        flags = [value.padding == "nan"]
        # Since Triton 3.7.
        flags += [value.round_f32_to_tf32] if hasattr(value, "round_f32_to_tf32") else []
        base = [("*" + element, value.base), *(("i64", number) for number in (*value.shape, *value.strides))]
        return [*base, *(("i1", flag) for flag in flags), *shape, *strides]

    def _launch(self, grid: tuple, function: _Function, args: Any) -> None:
        arguments: list = []
        descriptors = iter(getattr(self.metadata, "tensordesc_meta", None) or ())
        _flatten(self.signature, args, self.names, functools.partial(self._describe, descriptors), arguments)
        metadata, driver = self.metadata, _config.active
        arguments += [("*i8", self._scratch(which, grid), f"{which} scratch") for which in ("global", "profile")]
        if len(arguments) != len(function.places):
            raise Error(f"the kernel has {len(function.places)} arguments instead of {len(arguments)}")
        blob, memory, owners = bytearray(), {}, []
        for (kind, value, name), (offset, size) in zip(arguments, function.places):
            if kind.startswith("*"):
                pointer = 0 if value is None else _address(value, name, memory, owners)
                data = struct.pack("<Q", pointer)
            elif kind == "tensordesc":
                # The groups for dimensions beyond the second are absent if there are none.
                data = value.encode(_address(value.base, name, memory, owners))[:size]
            else:
                data = _pack(kind, value)
            blob += b"\0" * (offset - len(blob)) + data
        addresses = any(kind.startswith("*") and isinstance(value, int) for kind, value, _ in arguments)
        if addresses or _loads_addresses([kind for kind, _, _ in arguments]):
            for key, writable, owner in _seen.ranges():
                memory.setdefault(key, (writable, "a tensor"))
                owners.append(owner)
        ranges = [(start, size, writable, name) for (start, size), (writable, name) in memory.items()]
        groups = getattr(metadata, "num_ctas", 1)
        outcome = function.native.launch(
            # Triton's grid counts clusters.
            (grid[0] * groups, *grid[1:]),
            (metadata.num_warps * metadata.warp_size, 1, 1),
            bytes(blob),
            ranges,
            lds=function.shared,
            cooperative=bool(getattr(metadata, "launch_cooperative_grid", False)),
            cluster=(groups, 1, 1) if groups > 1 else None,
        )
        driver.instructions += outcome.instructions
        driver.outcome = outcome
        print_findings(outcome)

    def _scratch(self, which: str, grid: tuple) -> Any:
        """Allocates the per-workgroup memory that the compiler requires."""
        size = getattr(self.metadata, f"{which}_scratch_size", 0) or 0
        if size == 0:
            return None
        align = getattr(self.metadata, f"{which}_scratch_align", 1)
        total = size * grid[0] * grid[1] * grid[2] * getattr(self.metadata, "num_ctas", 1)
        allocator = _allocation._allocator.get()
        if isinstance(allocator, _allocation.NullAllocator):
            return _Scratch(total)
        return allocator(total, align, 0)


class _Scratch:
    """Zeroed memory with an alignment of 256 bytes."""

    def __init__(self, size: int) -> None:
        self.memory = bytearray(size + 256)
        start = extent(self.memory).pointer
        self.start, self.size = start + -start % 256, size

    def data_ptr(self) -> int:
        return self.start

    def nbytes(self) -> int:
        return self.size


def _address(value: Any, name: str, memory: dict, owners: list) -> int:
    """Returns the address of a tensor, and records its memory in `memory` and `owners`."""
    if isinstance(value, int):
        return value
    base = getattr(value, "base", None)
    # Triton's wrappers that reinterpret a tensor's type.
    if not hasattr(value, "__array_interface__") and hasattr(base, "data_ptr"):
        value = base
    place = value.place if isinstance(value, Tensor) else extent(value)
    if place is None:
        if hasattr(value, "data_ptr"):
            return value.data_ptr()
        raise Error(f"the argument `{name}` is {type(value).__name__}, not a tensor")
    memory.setdefault((place.address, place.size), (place.writable, name))
    owners.append(place.owner)
    return place.pointer


class _Event:
    """A point of the predicted time, with the methods of torch's events."""

    def __init__(self, driver: "Driver") -> None:
        self.driver, self.nanoseconds = driver, 0

    def record(self, *_: Any) -> None:
        now = self.driver.device.native.predicted_nanoseconds
        if now is None:
            raise Error("times of a GPU are predicted if WAVESIM_TIMING names it (docs/cost.md)")
        self.nanoseconds = now

    def elapsed_time(self, end: "_Event") -> float:
        """Milliseconds from this event to another one."""
        return (end.nanoseconds - self.nanoseconds) * 1e-6

    def synchronize(self) -> None:
        pass


class _Interface:
    """What Triton's benchmarks require of `torch.cuda`. Other names are those of `torch.cpu`."""

    def __init__(self, driver: "Driver") -> None:
        self.driver = driver

    def Event(self, **_: Any) -> _Event:
        return _Event(self.driver)

    def synchronize(self, *_: Any) -> None:
        """Does nothing, since launches are synchronous."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        import torch

        return getattr(torch.cpu, name)


_RUNS = 3
"""Runs that a benchmark times: predicted times hardly vary, and each run is simulated."""


def predicted_bench(
    fn: Any,
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Any = None,
    quantiles: Any = None,
    return_mode: str = "mean",
) -> Any:
    """The predicted milliseconds of a call, in place of `triton.testing.do_bench`: after one call, the statistics of three.

    The GPU would run it for `warmup` and `rep` milliseconds, which are thousands of calls.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise Error(f"{return_mode!r} is none of min, max, mean, median, all")
    device = _config.active.get_device_interface()
    fn()
    times = []
    for _ in range(_RUNS):
        for tensor in grad_to_none or ():
            tensor.grad = None
        start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        times.append(start.elapsed_time(end))
    return _testing._summarize_statistics(times, quantiles, return_mode)


class Driver(DriverBase):
    """Triton's driver for wavesim."""

    launcher_cls = Launcher

    def __init__(self, target: Optional[str] = None) -> None:
        super().__init__()
        self.device = Device(target)
        # Compilers widen scalar loads of 2 bytes to the aligned word that contains them.
        self.device.bounds("words")
        self.warp_size = self.device.native.wave_size
        self.utils = _Utils(self)
        self.instructions = 0
        """Number of wave-instructions executed by all launches."""
        self.tuning = 0
        """Number of tuners that compare configurations."""
        self.outcome = None
        """The outcome of the last launch."""

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("hip", self.device.target, self.warp_size)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return _Interface(self)

    def get_benchmarker(self) -> Any:
        return self.cost

    def cost(self, kernel_call: Any, *, quantiles: Any = None, **_: Any) -> Any:
        """Returns the predicted milliseconds of a call, or the number of instructions that it executes."""
        if self.device.native.predicted_nanoseconds is not None:
            return predicted_bench(kernel_call, quantiles=quantiles)
        before = self.instructions
        kernel_call()
        cost = float(self.instructions - before)
        return cost if quantiles is None else [cost] * len(quantiles)

    def get_empty_cache_for_benchmark(self) -> Any:
        return None

    def clear_cache(self, cache: Any) -> None:
        pass

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: Optional[int] = None) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> "tuple[int, int]":
        return (0, 0)


def active() -> Optional[Driver]:
    """Returns the driver on which Triton launches, or `None` if it is not wavesim's."""
    return _config.active if isinstance(_config.active, Driver) else None


def use(target: Optional[str] = None) -> Driver:
    """Makes Triton launch on a new device. Returns its driver."""
    driver = Driver(target)
    _config.set_active(driver)
    return driver


def _accept_arrays() -> None:
    """Makes `JITFunction.run` accept NumPy arrays, since Triton reads types and alignment only from tensors."""
    run = JITFunction.run
    if getattr(run, "takes_arrays", False):
        return

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(_config.active, Driver):
            return run(self, *args, **kwargs)
        return run(self, *map(_wrap, args), **{name: _wrap(value) for name, value in kwargs.items()})

    wrapped.takes_arrays = True
    JITFunction.run = wrapped


def _predict_benchmarks() -> None:
    """Makes `triton.testing.do_bench` time a few runs, where times are predicted."""
    bench = _testing.do_bench
    if getattr(bench, "predicts", False):
        return

    @functools.wraps(bench)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        driver = active()
        if driver is None:
            return bench(*args, **kwargs)
        if driver.tuning:
            return driver.cost(args[0] if args else kwargs["fn"], quantiles=kwargs.get("quantiles"))
        return predicted_bench(*args, **kwargs)

    wrapped.predicts = True
    _testing.do_bench = wrapped


def _compile_for_tensors_on_the_cpu() -> None:
    """Makes `triton.compile` compile for the device what a compiler of models generates for tensors on the CPU.

    It is torch's Inductor, which names the target `cpu` and asks for a backend of this name.
    """
    compile = triton.compile
    if getattr(compile, "takes_cpu", False):
        return

    @functools.wraps(compile)
    def wrapped(src: Any, target: Optional[GPUTarget] = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(_config.active, Driver) and target is not None and target.backend == "cpu":
            target = _config.active.get_current_target()
        return compile(src, target, *args, **kwargs)

    wrapped.takes_cpu = True
    triton.compile = wrapped
    warnings.filterwarnings("ignore", message="Could not find an active CPU backend")


def _tune_by_cost() -> None:
    """Makes tuners that benchmark with `triton.testing.do_bench` compare costs, as others do."""
    bench = Autotuner._bench
    if getattr(bench, "by_cost", False):
        return

    @functools.wraps(bench)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        driver = active()
        if driver is None:
            return bench(self, *args, **kwargs)
        driver.tuning += 1
        try:
            return bench(self, *args, **kwargs)
        finally:
            driver.tuning -= 1

    wrapped.by_cost = True
    Autotuner._bench = wrapped


def _tune_first() -> None:
    """Makes tuners choose the first configuration that can be compiled and launched."""
    bench, prune = Autotuner._bench, Autotuner.prune_configs

    @functools.wraps(prune)
    def begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.has_chosen = False
        return prune(self, *args, **kwargs)

    @functools.wraps(bench)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.has_chosen:
            return [float("inf")] * 3
        times = bench(self, *args, **kwargs)
        self.has_chosen = times[0] < float("inf")
        return times

    Autotuner.prune_configs, Autotuner._bench = begin, wrapped
    # A cache of other runs must not hold the choice.
    Autotuner.check_disk_cache = lambda self, key, configs, benchmark: bool(benchmark())


def _read_environment() -> None:
    """Obeys the variables that are this module's own."""
    tuning = os.environ.get("WAVESIM_TRITON_AUTOTUNE", "")
    if tuning == "first":
        _tune_first()
    elif tuning:
        raise Error(f"WAVESIM_TRITON_AUTOTUNE={tuning}: not `first`")
    device = os.environ.get("WAVESIM_TORCH_CUDA", "")
    if device == "cpu":
        from . import torch_cuda

        torch_cuda.use_cpu()
    elif device:
        raise Error(f"WAVESIM_TORCH_CUDA={device}: not `cpu`")


_accept_arrays()
_predict_benchmarks()
_tune_by_cost()
_compile_for_tensors_on_the_cpu()
use()
_read_environment()
