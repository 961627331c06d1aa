"""Zero-copy access to the memory of arrays."""

from __future__ import annotations

import ctypes
import operator
import re
import sys
from typing import Any, NamedTuple, Optional

from ._native import Error


class Extent(NamedTuple):
    """Memory of an array. `owner` keeps it alive."""

    pointer: int
    """Address of the array's first element, which is passed to kernels."""
    address: int
    """Address of the first byte that belongs to the array."""
    size: int
    """Size in bytes, starting at `address`."""
    writable: bool
    owner: Any


class Pointer(int):
    """An address as an argument: device memory or mapped memory."""


class _Buffer(ctypes.Structure):
    """Py_buffer of the stable ABI (Python 3.11 or newer; its layout has not changed since 3.0)."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def extent(value: Any) -> Optional[Extent]:
    """Returns the memory of an array, or `None` for a value that is not an array.

    Kernels access the memory of the process itself, so everything that an array says about its memory is checked as far
    as possible.
    """
    found = _extent(value)
    if found is None:
        return None
    if not 0 <= found.size < 1 << 63 or not 0 <= found.address <= (1 << 64) - found.size:
        raise Error(f"{type(value).__name__}: {found.size} bytes at {found.address:#x} are not in memory")
    if found.address == 0 and found.size > 0:
        raise Error(f"{type(value).__name__}: {found.size} bytes at a null pointer")
    return found


def _extent(value: Any) -> Optional[Extent]:
    interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        try:
            return _of_interface(interface, value)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise Error(f"{type(value).__name__}: a malformed array interface: {error}") from error
    if hasattr(value, "data_ptr"):
        return _of_tensor(value)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    if isinstance(value, (str, int, float, complex, bytes, bool)) or value is None:
        return None
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if not view.contiguous:
        raise Error("the buffer is not contiguous; copy it first")
    if "O" in view.format:
        raise Error("the buffer holds Python objects, which kernels cannot access")
    return _of_buffer(view)


_UNUSABLE = {"O": "Python objects", "M": "dates", "m": "time spans", "t": "single bits"}
"""Kinds of elements that kernels cannot access, by their letter in a type string."""


def _itemsize(typestr: str) -> int:
    """Returns the size of an element. Rejects elements that are not numbers or structures."""
    match = re.fullmatch(r"([<>|=]?)([a-zA-Z])([0-9]*)(\[.*\])?", typestr)
    if match is None:
        raise ValueError(f"`{typestr}` is not a type string")
    order, kind, size, _ = match.groups()
    if kind in _UNUSABLE:
        raise Error(f"the array holds {_UNUSABLE[kind]} (`{typestr}`), which kernels cannot access; convert it first")
    if order == (">" if sys.byteorder == "little" else "<") and size != "1":
        raise Error(f"the array's bytes are in the other order (`{typestr}`); convert it first")
    return int(size)


def _of_interface(interface: dict, owner: Any) -> Extent:
    itemsize = _itemsize(interface["typestr"])
    data = interface.get("data")
    if data is None:
        return _of_buffer(memoryview(owner))
    pointer, readonly = data
    return _strided(pointer, interface["shape"], interface.get("strides"), itemsize, not readonly, owner)


def _strided(pointer, shape, strides, itemsize, writable, owner) -> Extent:
    """Returns the bytes from an array's lowest to its highest element."""
    pointer, shape = operator.index(pointer), [operator.index(n) for n in shape]
    if any(n < 0 for n in shape):
        raise ValueError("a dimension is negative")
    count = 1
    for n in shape:
        count *= n
    if count == 0:
        return Extent(pointer, pointer, 0, writable, owner)
    if strides is None:
        return Extent(pointer, pointer, count * itemsize, writable, owner)
    strides = [operator.index(s) for s in strides]
    if len(strides) != len(shape):
        raise ValueError("shape and strides have different lengths")
    low = sum((n - 1) * s for n, s in zip(shape, strides) if s < 0)
    high = sum((n - 1) * s for n, s in zip(shape, strides) if s > 0)
    return Extent(pointer, pointer + low, high - low + itemsize, writable, owner)


accessible = {"cpu"}
"""Types of torch's devices whose tensors are in memory of the CPU. `torch_cuda` adds one."""


def _of_tensor(tensor: Any) -> Extent:
    """Returns the memory of a torch tensor or a compatible object. A kernel may access all of a tensor's storage."""
    device = getattr(tensor, "device", None)
    kind = getattr(device, "type", "cpu")
    if kind not in accessible:
        raise Error(f"a tensor on the device {device}: wavesim's kernels access tensors on the CPU")
    # Named `storage` before torch 2.
    storage = getattr(tensor, "untyped_storage", None) or getattr(tensor, "storage", None)
    if storage is not None:
        storage = storage()
        return Extent(tensor.data_ptr(), storage.data_ptr(), storage.nbytes(), True, tensor)
    nbytes = tensor.nbytes() if callable(tensor.nbytes) else tensor.nbytes
    return Extent(tensor.data_ptr(), tensor.data_ptr(), nbytes, True, tensor)


class _Tensor(ctypes.Structure):
    """DLTensor (dlpack.h)."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned (dlpack.h), since version 1.0."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_CPU = 1
_READ_ONLY = 1
"""DLPACK_FLAG_BITMASK_READ_ONLY."""
_OPAQUE = 3
"""kDLOpaqueHandle, a type of elements."""


def _of_dlpack(value: Any) -> Extent:
    if value.__dlpack_device__()[0] != _CPU:
        raise Error("the array is not in CPU memory")
    try:
        try:
            # Only this version says whether the memory is read-only.
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = value.__dlpack__()
    except BufferError as error:
        raise Error(f"{type(value).__name__}: {error}") from error
    get, name = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    try:
        kind = name(capsule)
    except ValueError:
        kind = None
    writable = True
    if kind == b"dltensor_versioned":
        versioned = _Versioned.from_address(get(capsule, kind))
        if versioned.major != 1:
            raise Error(f"{type(value).__name__}: version {versioned.major} of DLPack, not 1")
        tensor, writable = versioned.tensor, not versioned.flags & _READ_ONLY
    elif kind == b"dltensor":
        tensor = _Tensor.from_address(get(capsule, kind))
    else:
        raise Error(f"{type(value).__name__}: `__dlpack__` has not returned a tensor")
    if tensor.code == _OPAQUE:
        raise Error("the array holds objects, which kernels cannot access")
    shape = [tensor.shape[k] for k in range(tensor.ndim)]
    itemsize = (tensor.bits * tensor.lanes + 7) // 8
    strides = [tensor.strides[k] * itemsize for k in range(tensor.ndim)] if tensor.strides else None
    pointer = (tensor.data or 0) + tensor.byte_offset
    # The capsule is not consumed: it frees its tensor when it is dropped with the extent.
    return _strided(pointer, shape, strides, itemsize, writable, (value, capsule))


def _of_buffer(view: memoryview) -> Extent:
    buffer = _Buffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
    release.argtypes = [ctypes.POINTER(_Buffer)]
    get(view, ctypes.byref(buffer), 0)
    pointer = buffer.buf or 0
    release(ctypes.byref(buffer))
    # The view keeps the memory alive and in place.
    return Extent(pointer, pointer, view.nbytes, not view.readonly, view)


def from_bytes(dtype: str, shape: list, data: bytes) -> Any:
    """Returns a NumPy array or, without NumPy, a memoryview of the bytes."""
    try:
        import numpy
    except ImportError:
        return memoryview(data)
    names = {"bf16": "u2", "f16": "f2", "f32": "f4", "f64": "f8"}
    code = names.get(dtype) or dtype[0] + str(int(dtype[1:]) // 8)
    return numpy.frombuffer(bytearray(data), dtype="<" + code).reshape(shape)
