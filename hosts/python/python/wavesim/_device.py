"""Devices, modules and kernels."""

from __future__ import annotations

import operator
import os
import sys
import warnings
from typing import Any, Optional, Sequence, Union

from . import _native, _text
from ._arrays import Pointer, extent
from ._native import Error, Exploration, Outcome

Size = Union[int, Sequence[int]]


def _unsigned(what: str, value: Any, bits: int = 64) -> int:
    """Returns an address, a size or a number."""
    try:
        number = operator.index(value)
    except TypeError:
        raise Error(f"{what} must be an integer, not {type(value).__name__}") from None
    if not 0 <= number < 1 << bits:
        raise Error(f"{what}: {number} is not from 0 to 2^{bits} - 1")
    return number


def _bytes(what: str, value: Any) -> bytes:
    """Returns the contents of a buffer or a list. (Of a number, `bytes` returns that many zeros.)"""
    try:
        return bytes(value if isinstance(value, (list, tuple)) else memoryview(value))
    except (TypeError, ValueError):
        raise Error(f"{what}: {type(value).__name__} has no bytes") from None


class Local:
    """LDS as an argument: a pointer to `size` bytes of the workgroup's LDS."""

    def __init__(self, size: int) -> None:
        self.size = size


def _is_assembly(data: bytes) -> bool:
    """Whether contents without a name are an assembly file: text with a kernel descriptor."""
    return b".amdhsa_kernel" in data and b"\0" not in data


class Device:
    """A simulated GPU: `gfx1100` … `gfx1103`, `gfx1150` … `gfx1153`, `gfx1200`, `gfx1201`,
    `gfx1250`, `gfx1251`, `gfx940` … `gfx942`, `gfx950`.

    Without a target, WAVESIM_TARGET selects it; the default is gfx1100. The environment variables in
    `wavesim.VARIABLES` configure the device.
    """

    def __init__(self, target: Optional[str] = None) -> None:
        self.native = _native.Device(target)

    def __reduce__(self) -> tuple:
        """A device in another process is a new one for the same processor: memory stays where it is."""
        return Device, (self.target,)

    @property
    def target(self) -> str:
        """Name of the processor."""
        return self.native.target

    @property
    def launches(self) -> int:
        """Number of launches so far."""
        return self.native.launches

    def cancel(self) -> None:
        """Cancels launches that are running on other threads. Each raises a `Fault` of kind `interrupted`."""
        self.native.cancel()

    def load(self, source: Any) -> "Module":
        """Loads a code object, an offload bundle, an executable or assembly, from a path or from its contents.

        A string of several lines is assembly itself.
        """
        is_text = isinstance(source, str) and "\n" in source
        if is_text:
            data, name = source.encode(), "<assembly>"
        elif isinstance(source, (str, os.PathLike)):
            data, name = _text.read_file(source), os.fspath(source)
        else:
            data, name = _bytes("a code object", source), "<assembly>"
        if is_text or str(name).endswith((".s", ".S", ".asm")) or _is_assembly(data):
            data = _text.assemble(data.decode(), target=self.target, name=str(name))
        return Module(self, self.native.load(data))

    def alloc(self, size: int, name: str = "allocation") -> Pointer:
        """Allocates zeroed memory. The name appears in messages."""
        return Pointer(self.native.alloc(_unsigned("size", size), name))

    def free(self, pointer: int) -> None:
        """Frees an allocation. A later access to it is a fault."""
        self.native.free(_unsigned("pointer", pointer))

    def read(self, pointer: int, size: int) -> bytes:
        """Copies from device memory."""
        return self.native.read(_unsigned("pointer", pointer), _unsigned("size", size))

    def write(self, pointer: int, data: Any) -> None:
        """Copies to device memory."""
        self.native.write(_unsigned("pointer", pointer), _bytes("data", data))

    def map(self, array: Any, name: str = "mapped memory") -> Pointer:
        """Makes an array accessible to all kernels until it is unmapped. Returns the address of its first element."""
        at = extent(array)
        if at is None:
            raise Error(f"{type(array).__name__} is not an array")
        self.native.map(at.address, at.size, at.writable, name, at.owner)
        return Pointer(at.pointer)

    def unmap(self, array: Any) -> None:
        """Unmaps an array."""
        at = extent(array)
        self.native.unmap(_unsigned("pointer", array) if at is None else at.address)

    def bounds(self, mode: str) -> None:
        """Sets the granularity of bounds checks.

        `exact` (default): kernels can access the bytes of allocations and arrays. `words`: also the rest of the aligned
        words of 4 bytes that contain them, for compilers that widen scalar loads. `pages`: also the rest of their pages,
        for compilers that widen other loads. `trust`: every address; an invalid pointer crashes the process.
        """
        self.native.set_bounds(mode)

    def __repr__(self) -> str:
        return f"<wavesim.Device {self.target}>"


class Module:
    """A loaded code object. Kernels are attributes and items: `module.saxpy`, `module["saxpy"]`."""

    def __init__(self, device: Device, native: Any) -> None:
        self.device, self.native = device, native

    @property
    def kernels(self) -> list:
        """Names of the kernels."""
        return self.native.kernels()

    @property
    def variables(self) -> list:
        """Names of the variables."""
        return self.native.variables()

    def kernel(self, name: Optional[str] = None) -> "Kernel":
        """Returns the kernel with a name; without a name, the only kernel."""
        return Kernel(self, self.native.kernel(name))

    def variable(self, name: str) -> "tuple[Pointer, int]":
        """Returns the address and the size of a variable."""
        address, size = self.native.variable(name)
        return Pointer(address), size

    def __getitem__(self, name: str) -> "Kernel":
        return self.kernel(name)

    def __getattr__(self, name: str) -> "Kernel":
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.kernel(name)
        except Error as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list:
        return sorted({*super().__dir__(), *self.kernels})

    def __repr__(self) -> str:
        return f"<wavesim.Module: {', '.join(self.kernel(name).native.source_name for name in self.kernels)}>"


class Kernel:
    """A kernel. `kernel[grid, block](*arguments)` launches it: `grid` in workgroups, `block` in work-items."""

    def __init__(self, module: Module, native: Any) -> None:
        self.module, self.native = module, native

    @property
    def name(self) -> str:
        return self.native.name

    @property
    def arguments(self) -> list:
        """Name, kind, offset and size of each argument."""
        return self.native.arguments

    def __getitem__(self, shape: "tuple[Size, Size]") -> "Launcher":
        try:
            grid, block = shape
        except TypeError:
            raise Error("a launch has a grid and a block: kernel[grid, block](…)") from None
        return Launcher(self, _dimensions("grid", grid), _dimensions("block", block))

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        raise Error("a launch has a grid and a block: kernel[grid, block](…)")

    def __repr__(self) -> str:
        name = self.native.source_name
        if "(" not in name:
            name += f"({', '.join(self.native.signature)})"
        return f"<wavesim.Kernel {name}>"


def _dimensions(what: str, size: Size) -> "tuple[int, int, int]":
    try:
        # Arrays have `__index__` too, but it succeeds only for arrays with a single element.
        sizes = (operator.index(size),)
    except TypeError:
        try:
            sizes = tuple(map(operator.index, size))
        except TypeError:
            raise Error(f"{what} must be one to three integers, not {size!r}") from None
    if not 1 <= len(sizes) <= 3:
        raise Error(f"{what} must have one to three dimensions, not {len(sizes)}")
    for count in sizes:
        if not 0 <= count < 1 << 32:
            raise Error(f"{what}: {count} is not from 0 to 2^32 - 1")
    return (*sizes, 1, 1)[:3]


class Launcher:
    """A kernel with the shape of a launch."""

    def __init__(self, kernel: Kernel, grid: tuple, block: tuple) -> None:
        self.kernel, self.grid, self.block = kernel, grid, block

    def __call__(
        self,
        *arguments: Any,
        lds: int = 0,
        check: Optional[str] = None,
        max_instructions: Optional[int] = None,
        threads: Optional[int] = None,
        cooperative: bool = False,
        cluster: Optional[Sequence[int]] = None,
        profile: Any = None,
    ) -> Outcome:
        """Runs the kernel to completion.

        Arguments are arrays, which the kernel accesses in place (NumPy, torch on the CPU, `array.array`, anything
        that supports the buffer protocol or DLPack), numbers, `Pointer`, `Local(bytes)`, and `bytes` for structures.

        `lds`: dynamic LDS size in bytes. `cluster`: workgroups of a cluster per dimension (CDNA 5). `check`: `"all"` or a list such as `"mem,race"`; the findings are in the
        outcome. A fault raises `Fault`. `profile`: a device whose time is predicted (docs/cost.md), such as `"mi300a"`, or
        `True` for the default one of the architecture; the prediction is `profile` of the outcome.
        """
        native = self.kernel.native
        kernarg, local, memory, owners = self._laid_out(arguments)
        outcome = native.launch(
            self.grid,
            self.block,
            kernarg,
            memory,
            lds=_unsigned("lds", _unsigned("lds", lds) + local, 32),
            check=check,
            max_instructions=None if max_instructions is None else _unsigned("max_instructions", max_instructions),
            threads=None if threads is None else _unsigned("threads", threads),
            cooperative=cooperative,
            cluster=None if cluster is None else _dimensions("cluster", cluster),
            profile=_text.profiled_device(profile),
        )
        if check is None:
            print_findings(outcome)
        del owners
        return outcome

    def explore(
        self,
        *arguments: Any,
        schedules: int = 1000,
        depth: int = 3,
        first_seed: int = 0,
        tolerance: float = 1e-5,
        delays: bool = True,
        all: bool = False,
        lds: int = 0,
        max_instructions: Optional[int] = None,
        cluster: Optional[Sequence[int]] = None,
    ) -> Exploration:
        """Runs the kernel in random orders of its waves, with delays of its memory operations (docs/exploring.md), on
        copies of its memory: arrays are as before afterwards.

        The result is true if every schedule has the results of the first run, in which waves run one after the other.
        `tolerance`: relative difference of floats that counts as equal. `all`: goes on after the first schedule that
        differs, so that `outcomes` has all that were seen.
        """
        native = self.kernel.native
        kernarg, local, memory, owners = self._laid_out(arguments)
        explored = native.explore(
            self.grid,
            self.block,
            kernarg,
            memory,
            _unsigned("lds", _unsigned("lds", lds) + local, 32),
            None if cluster is None else _dimensions("cluster", cluster),
            None if max_instructions is None else _unsigned("max_instructions", max_instructions),
            _unsigned("schedules", schedules),
            _unsigned("depth", depth, 32),
            _unsigned("first_seed", first_seed),
            float(tolerance),
            bool(delays),
            bool(all),
        )
        del owners
        return explored

    def _laid_out(self, arguments: tuple) -> tuple:
        """Returns the kernarg segment, the LDS of arguments, the arrays, and what keeps these alive."""
        native = self.kernel.native
        values, memory, owners = [], [], []
        names = [name for name, _, _, _ in native.arguments]
        for at, value in enumerate(arguments):
            place = None if isinstance(value, (int, float, bytes)) else extent(value)
            if place is not None and not _is_scalar(value):
                name = names[at] if at < len(names) and names[at] else f"argument {at + 1}"
                _warn_of_elements(native, at, value)
                memory.append((place.address, place.size, place.writable, name))
                owners.append(place.owner)
                values.append(place.pointer.to_bytes(8, "little"))
            elif isinstance(value, Pointer):
                values.append(value.to_bytes(8, "little"))
            elif isinstance(value, Local):
                values.append(("local", value.size))
            elif not names and hasattr(value, "tobytes"):
                # Without metadata, the size of NumPy's scalar is that of the parameter.
                values.append(value.tobytes())
            else:
                values.append(_number(value, at))
        kernarg, local = native.lay_out(values)
        return kernarg, local, memory, owners


def _warn_of_elements(native: Any, at: int, array: Any) -> None:
    """Warns about an array whose elements are not those of the parameter. Kernels may reinterpret memory."""
    dtype = getattr(array, "dtype", None)
    warning = None if dtype is None else native.mismatch(at, str(dtype).replace("torch.", ""))
    if warning is not None:
        # The frame of the launch: above this function, `_laid_out`, and `__call__` or `explore`.
        warnings.warn(warning, stacklevel=4)


def _is_scalar(value: Any) -> bool:
    """Returns whether a value is a NumPy scalar. These have an array interface too, but are passed by value."""
    is_array = hasattr(value, "ctypes") or hasattr(value, "data_ptr")
    return getattr(value, "shape", None) == () and not is_array


def _number(value: Any, at: int) -> Any:
    """Converts a scalar to int or float, which are later converted to the parameter's size, or to bytes."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "b" or hasattr(value, "__index__"):
        return int(value)
    if kind == "f":
        return float(value)
    if isinstance(value, (float, bytes)):
        return value
    if hasattr(value, "tobytes"):
        return value.tobytes()
    raise Error(f"argument number {at + 1}: {type(value).__name__} is not an array, a number or bytes")


def print_findings(outcome: Outcome) -> None:
    """Prints the findings of a launch to standard error."""
    if outcome.findings:
        print(outcome.report, file=sys.stderr, flush=True)
