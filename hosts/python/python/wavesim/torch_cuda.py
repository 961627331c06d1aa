"""torch's device `cuda` without a GPU: its tensors are tensors on the CPU, which kernels on wavesim access in place.

    import wavesim.torch_cuda
    wavesim.torch_cuda.use_cpu()

WAVESIM_TORCH_CUDA=cpu does the same when `wavesim.triton` is imported. Programs that create their tensors on `cuda`, as
torch for ROCm names AMD's GPUs, then run without a change: device arguments of `cuda` mean the CPU, `Tensor.device` and
`Tensor.is_cuda` say `cuda`, and `torch.cuda` describes the GPU that Triton compiles for. Work is synchronous: streams
are empty, and events hold the time of the host, or the predicted time if WAVESIM_TIMING names a GPU.

torch's own modules still see tensors on the CPU, since its operators are those of the CPU.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import types
from typing import Any, Callable, Optional

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from . import Error
from ._arrays import accessible

__all__ = ["use_cpu"]

_CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_MEMORY = 16 << 30
"""Bytes of memory of the device, the default of WAVESIM_MEMORY."""
_VERSION = "7.0.0"
"""The version of ROCm that programs see, by which they tell AMD's GPUs from others."""

_known: Any = WeakTensorKeyDictionary()
"""Tensors that a call created on a device or moved to it, with the device's type. That of others is not known."""


def _own(depth: int = 2) -> bool:
    """Returns whether a function was called by torch or wavesim themselves, which see tensors as they are."""
    name = sys._getframe(depth).f_globals.get("__name__", "")
    return name.partition(".")[0] in ("torch", "wavesim")


def _is_cuda(device: Any) -> bool:
    """Returns whether a device argument means `cuda`; a number does."""
    if isinstance(device, str):
        return device.partition(":")[0] == "cuda"
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


def _on_cpu(device: Any) -> Any:
    return _CPU if _is_cuda(device) else device


def _mark(value: Any, kind: str) -> Any:
    if not torch.compiler.is_compiling() and isinstance(value, torch.Tensor):
        _known[value] = kind
    return value


def _replace(owner: Any, name: str, wrap: Callable) -> None:
    """Replaces an attribute by what `wrap` returns for it, if there is one."""
    original = getattr(owner, name, None)
    if original is not None:
        replaced = wrap(original)
        with contextlib.suppress(AttributeError, TypeError):
            functools.update_wrapper(replaced, original)
        setattr(owner, name, replaced)


def _maps_device(original: Callable) -> Callable:
    """Wraps a function with the keyword `device`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = _CPU
            return _mark(original(*args, **kwargs), "cuda")
        return original(*args, **kwargs)

    return call


def _maps_first(original: Callable) -> Callable:
    """Wraps a function whose first argument, or keyword `device_type`, is a device's type; without it, it is `cuda`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if "device_type" in kwargs:
            kwargs["device_type"] = "cpu" if _is_cuda(kwargs["device_type"]) else kwargs["device_type"]
        elif not args:
            args = ("cpu",)
        elif _is_cuda(args[0]):
            args = ("cpu", *args[1:])
        return original(*args, **kwargs)

    return call


def _moves(original: Callable) -> tuple:
    """Returns `Tensor.to`, `cuda` and `cpu`: a tensor that moves to another device is copied, as between memories."""

    def move(self: Any, kind: str, own: bool, *args: Any, **kwargs: Any) -> Any:
        if not own and _known.get(self) != kind and self.device.type == "cpu" and len(args) < 3:
            kwargs["copy"] = True
        return _mark(original(self, _CPU, *args, **kwargs), kind)

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device", args[0] if args else None)
        kind = "cuda" if _is_cuda(device) else device.type if isinstance(device, torch.device) else device
        if not isinstance(kind, str) or kind.partition(":")[0] not in ("cuda", "cpu"):
            return original(self, *args, **kwargs)
        args = args if kwargs.pop("device", None) is not None else args[1:]
        return move(self, kind.partition(":")[0], _own(), *args, **kwargs)

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        return move(self, "cuda", _own(), **kwargs)

    def cpu(self: Any, **kwargs: Any) -> Any:
        return move(self, "cpu", _own(), **kwargs)

    return to, cuda, cpu


class Event:
    """A point in time, in place of `torch.cuda.Event`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.nanoseconds: Optional[int] = None

    def record(self, stream: Any = None) -> None:
        predicted = _driver().device.native.predicted_nanoseconds
        self.nanoseconds = time.perf_counter_ns() if predicted is None else predicted

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to another one."""
        if self.nanoseconds is None or end.nanoseconds is None:
            raise Error("both events must be recorded before the time between them is asked for")
        return (end.nanoseconds - self.nanoseconds) * 1e-6

    def query(self) -> bool:
        return True

    def wait(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Stream:
    """A stream in place of `torch.cuda.Stream`. Its work has ended when the call that adds it returns."""

    cuda_stream = 0
    stream_id = 0
    device = _CUDA
    device_index = 0
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record_event(self, event: Optional[Event] = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def wait_event(self, event: Any) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class _Context:
    """`torch.cuda.device`, `device_of` and `stream`: there is one device and one stream."""

    def __init__(self, selected: Any = None) -> None:
        self.idx, self.prev_idx, self.stream = 0, 0, selected

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class _Philox:
    """The generator of the device, whose state is a seed and an offset. Kernels with random numbers advance it.

    torch's own functions use the generator of the CPU.
    """

    device = _CUDA

    def __init__(self) -> None:
        self.state = torch.zeros(2, dtype=torch.int64)

    def get_state(self) -> Any:
        return self.state.clone().view(torch.uint8)

    def set_state(self, state: Any) -> "_Philox":
        self.state = state.clone().view(torch.int64)
        return self

    def manual_seed(self, seed: int) -> "_Philox":
        self.state = torch.tensor([seed, 0])
        return self

    def seed(self) -> int:
        self.manual_seed(time.perf_counter_ns())
        return self.initial_seed()

    def initial_seed(self) -> int:
        return int(self.state[0])

    def get_offset(self) -> int:
        return int(self.state[1])

    def set_offset(self, offset: int) -> None:
        self.state[1] = offset


def _driver() -> Any:
    """wavesim's driver of Triton."""
    from . import triton

    driver = triton.active()
    if driver is None:
        raise Error("torch.cuda describes the GPU of wavesim.triton, which is not Triton's driver any more")
    return driver


def _capability(target: str) -> tuple:
    """The numbers of a target, as of 11.0 of gfx1100 and 9.4 of gfx942."""
    digits = target[3:].rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits[:-2]), int(digits[-2], 16)


def _properties(device: Any = None) -> Any:
    driver = _driver()
    found, target = driver.utils.get_device_properties(0), driver.device.target
    major, minor = _capability(target)
    return types.SimpleNamespace(
        name=_name(), major=major, minor=minor, gcnArchName=target, total_memory=_MEMORY, warp_size=found["warpSize"],
        multi_processor_count=found["multiprocessor_count"], regs_per_multiprocessor=found["max_num_regs"],
        max_threads_per_multi_processor=found["max_threads_per_sm"], max_threads_per_block=1024,
        shared_memory_per_block=found["max_shared_mem"], shared_memory_per_block_optin=found["max_shared_mem"],
        shared_memory_per_multiprocessor=found["max_shared_mem"], L2_cache_size=4 << 20, is_integrated=0,
        is_multi_gpu_board=0, clock_rate=found["sm_clock_rate"], memory_clock_rate=found["mem_clock_rate"],
        memory_bus_width=found["mem_bus_width"],
    )  # fmt: skip


def _name(device: Any = None) -> str:
    return f"AMD {_driver().device.target} (wavesim)"


def _constant(value: Any) -> Callable:
    """Returns a new function for each call: torch's compiler tells functions apart by identity."""
    return lambda *_, **__: value


def _for_programs(value: Any) -> Callable:
    """Wraps a query that torch's own modules answer by themselves."""

    def wrap(original: Callable) -> Callable:
        return lambda *args, **kwargs: original(*args, **kwargs) if _own() else value

    return wrap


def _patch_factories() -> None:
    from torch.utils._device import DeviceContext, _device_constructors

    names = [function.__name__ for function in _device_constructors()]
    names += [f"{name}_like" for name in ("empty", "zeros", "ones", "full", "rand", "randn", "randint")]
    for name in names:
        for owner, own in ((torch, name), (torch.fft, name[4:] if name.startswith("fft_") else ""), (torch.nested, name)):
            if own and callable(getattr(owner, own, None)):
                _replace(owner, own, _maps_device)
    for name in ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"):
        _replace(torch.Tensor, name, _maps_device)
    # `with torch.device("cuda")` and `torch.set_default_device`.
    _replace(DeviceContext, "__init__", lambda init: lambda self, device: init(self, _on_cpu(device)))

    def loads(original: Callable) -> Callable:
        def load(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            return original(file, _on_cpu(map_location), *args, **kwargs)

        return load

    _replace(torch, "load", loads)
    _replace(torch.jit, "load", loads)
    # Files of tensors that a GPU has written.
    here = lambda storage, location: storage if location.startswith("cuda") else None  # noqa: E731
    torch.serialization.register_package(0, _constant(None), here)

    class OfGenerators(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, torch._C.Generator)

        def __call__(cls, device: Any = "cpu") -> Any:
            return torch._C.Generator(_on_cpu(device))

    torch.Generator = OfGenerators("Generator", (), {"__doc__": torch._C.Generator.__doc__})


def _patch_tensors() -> None:
    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu = _moves(torch.Tensor.to)
    device, is_cuda, is_cpu = (vars(torch._C.TensorBase)[name] for name in ("device", "is_cuda", "is_cpu"))
    get_device = torch._C.TensorBase.get_device

    def seen(self: Any) -> Any:
        found = device.__get__(self)
        return _CUDA if found.type == "cpu" and not _own() else found

    torch.Tensor.device = property(seen)
    torch.Tensor.is_cuda = property(lambda self: is_cuda.__get__(self) or is_cpu.__get__(self) and not _own())
    torch.Tensor.get_device = lambda self: 0 if is_cpu.__get__(self) and not _own() else get_device(self)
    torch.Tensor.pin_memory = lambda self, device=None: self
    torch.Tensor.is_pinned = lambda self, device=None: is_cpu.__get__(self)
    torch.Tensor.record_stream = _constant(None)


def _patch_autocast() -> None:
    from torch.amp import GradScaler, autocast

    def of_autocast(init: Callable) -> Callable:
        def call(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
            if _is_cuda(device_type):
                # The default of `cuda`; that of the CPU is bfloat16.
                device_type, dtype = "cpu", dtype or torch.float16
            init(self, device_type, dtype, enabled, cache_enabled)

        return call

    _replace(autocast, "__init__", of_autocast)
    _replace(GradScaler, "__init__", lambda init: lambda self, device="cuda", *args, **kwargs: init(
        self, "cpu" if _is_cuda(device) else device, *args, **kwargs))  # fmt: skip
    for name in ("custom_fwd", "custom_bwd"):
        _replace(torch.amp, name, _maps_first)
    for name in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype"):
        _replace(torch, name, _maps_first)


def _patch_registrations() -> None:
    """Makes operators that libraries register for `cuda` those of the tensors, which are on the CPU."""

    def on_key(key: Any) -> Any:
        return key.replace("CUDA", "CPU") if isinstance(key, str) else key

    library = torch.library.Library
    _replace(library, "__init__", lambda init: lambda self, ns, kind, dispatch_key="": init(
        self, ns, kind, on_key(dispatch_key)))  # fmt: skip
    _replace(library, "impl", lambda impl: lambda self, op_name, fn, dispatch_key="", **kwargs: impl(
        self, op_name, fn, on_key(dispatch_key), **kwargs))  # fmt: skip

    def types(given: Any) -> Any:
        if given is None or isinstance(given, str):
            return "cpu" if given == "cuda" else given
        return list(dict.fromkeys("cpu" if one == "cuda" else one for one in given))

    def of_kernels(original: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            if "device_types" in kwargs:
                kwargs["device_types"] = types(kwargs["device_types"])
            elif len(args) > 1 and original.__name__ != "custom_op":
                args = (args[0], types(args[1]), *args[2:])
            return original(*args, **kwargs)

        return call

    definition = torch._library.custom_ops.CustomOpDef
    for owner, name in ((torch.library, "custom_op"), (torch.library, "register_kernel"), (definition, "register_kernel")):
        _replace(owner, name, of_kernels)


def _patch_cuda() -> None:
    cuda, stream, generator = torch.cuda, Stream(), _Philox()
    torch.version.hip, torch.version.cuda = _VERSION, None
    for name, value in {"is_available": True, "device_count": 1}.items():
        _replace(cuda, name, _for_programs(value))

    def seed_with(seed: int, own: bool) -> None:
        generator.manual_seed(int(seed))
        # torch seeds the generator of the CPU itself, before this call.
        if not own:
            torch.default_generator.manual_seed(int(seed))

    def memory_info(device: Any = None) -> tuple:
        return _MEMORY, _MEMORY

    constants = {
        "current_device": 0, "is_initialized": True, "is_bf16_supported": True, "is_tf32_supported": False,
        "is_current_stream_capturing": False, "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0,
        "max_memory_reserved": 0, "memory_cached": 0, "max_memory_cached": 0, "memory_summary": "", "utilization": 0,
        "current_stream": stream, "default_stream": stream, "can_device_access_peer": False,
    }  # fmt: skip
    nothing = (
        "init", "_lazy_init", "synchronize", "set_device", "set_stream", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
        "reset_max_memory_allocated", "reset_max_memory_cached", "reset_accumulated_memory_stats",
        "set_per_process_memory_fraction", "set_sync_debug_mode",
    )  # fmt: skip
    functions = {
        "get_device_name": _name, "get_device_properties": _properties, "mem_get_info": memory_info,
        "get_device_capability": lambda device=None: _capability(_driver().device.target),
        "get_arch_list": lambda: [_driver().device.target], "memory_stats": lambda device=None: {},
        "manual_seed": lambda seed: seed_with(seed, _own()), "manual_seed_all": lambda seed: seed_with(seed, _own()),
        "seed": lambda: seed_with(torch.seed(), True), "seed_all": lambda: seed_with(torch.seed(), True),
        "initial_seed": lambda: torch.initial_seed(),
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "Event": Event, "Stream": Stream, "device": _Context, "device_of": _Context, "stream": _Context,
        "StreamContext": _Context, "default_generators": (generator,),
    }  # fmt: skip
    functions |= {name: _constant(value) for name, value in constants.items()}
    functions |= {name: _constant(None) for name in nothing}
    for name, function in functions.items():
        setattr(cuda, name, function)
        for module in (cuda.memory, cuda.random, cuda.streams):
            if hasattr(module, name):
                setattr(module, name, function)
    for name in ("range_push", "range_pop", "mark"):
        setattr(cuda.nvtx, name, _constant(None))
    torch._C._cuda_getCurrentRawStream = _constant(0)
    accelerator = torch.accelerator
    for name, value in {
        "current_accelerator": torch.device("cuda"),
        "is_available": True, "device_count": 1, "current_device_index": 0, "current_device_idx": 0, "current_stream": stream,
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
        "get_memory_info": (_MEMORY, _MEMORY), "synchronize": None, "empty_cache": None, "set_device_index": None,
        "set_device_idx": None, "set_stream": None, "reset_peak_memory_stats": None, "reset_accumulated_memory_stats": None,
    }.items():  # fmt: skip
        _replace(accelerator, name, _for_programs(value))


@functools.cache
def use_cpu() -> None:
    """Makes torch's device `cuda` the CPU, for the rest of the process. `torch.cuda` describes Triton's GPU on wavesim."""
    # Objects that hold a tensor say its device.
    accessible.add("cuda")
    _patch_factories()
    _patch_tensors()
    _patch_autocast()
    _patch_registrations()
    _patch_cuda()
