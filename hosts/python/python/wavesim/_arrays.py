"""Zero-copy access to the memory of arrays."""

from __future__ import annotations

import ctypes
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
    """Returns the memory of an array, or `None` for a value that is not an array."""
    interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        return _of_interface(interface, value)
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
    return _of_buffer(view)


def _of_interface(interface: dict, owner: Any) -> Extent:
    data = interface.get("data")
    if data is None:
        return _of_buffer(memoryview(owner))
    pointer, readonly = data
    itemsize = int(interface["typestr"][2:])
    return _strided(pointer, interface["shape"], interface.get("strides"), itemsize, not readonly, owner)


def _strided(pointer, shape, strides, itemsize, writable, owner) -> Extent:
    """Returns the bytes from an array's lowest to its highest element."""
    count = 1
    for n in shape:
        count *= n
    if count == 0:
        return Extent(pointer, pointer, 0, writable, owner)
    if strides is None:
        return Extent(pointer, pointer, count * itemsize, writable, owner)
    low = sum((n - 1) * s for n, s in zip(shape, strides) if s < 0)
    high = sum((n - 1) * s for n, s in zip(shape, strides) if s > 0)
    return Extent(pointer, pointer + low, high - low + itemsize, writable, owner)


def _of_tensor(tensor: Any) -> Extent:
    """Returns the memory of a torch tensor or a compatible object. A kernel may access all of a tensor's storage."""
    device = getattr(tensor, "device", None)
    kind = getattr(device, "type", "cpu")
    if kind != "cpu":
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


_CPU = 1


def _of_dlpack(value: Any) -> Extent:
    if value.__dlpack_device__()[0] != _CPU:
        raise Error("the array is not in CPU memory")
    capsule = value.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    shape = [tensor.shape[k] for k in range(tensor.ndim)]
    itemsize = (tensor.bits * tensor.lanes + 7) // 8
    strides = [tensor.strides[k] * itemsize for k in range(tensor.ndim)] if tensor.strides else None
    pointer = (tensor.data or 0) + tensor.byte_offset
    # The capsule is not consumed: it frees its tensor when it is dropped with the extent.
    return _strided(pointer, shape, strides, itemsize, True, (value, capsule))


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
