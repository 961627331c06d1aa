"""wavesim through ctypes: the declarations that the examples in this folder need.

WAVESIM_LIBRARY is the path of the library. Without it, the system searches for the library.
"""
import ctypes
import os
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

lib = ctypes.CDLL(os.environ.get("WAVESIM_LIBRARY", "libwavesim_capi.so"))


class Launch(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("wave_size", c_uint32), ("code", c_void_p), ("code_bytes", c_uint64),
        ("code_address", c_uint64), ("entry_offset", c_uint64), ("grid", c_uint32 * 3), ("block", c_uint32 * 3),
        ("lds_bytes", c_uint32), ("scratch_bytes", c_uint32), ("user_sgprs", POINTER(c_uint32)),
        ("user_sgpr_count", c_uint32), ("group_ids", c_uint32), ("item_ids", c_uint32), ("mode", c_uint32),
        ("max_instructions", c_uint64), ("threads", c_uint32), ("reserved", c_uint32),
    ]


class ObjectLaunch(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("dynamic_lds_bytes", c_uint32), ("object", c_void_p), ("object_bytes", c_uint64),
        ("kernel", c_char_p), ("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("kernarg", c_void_p),
        ("kernarg_bytes", c_uint64), ("max_instructions", c_uint64), ("threads", c_uint32), ("reserved", c_uint32),
    ]


class Outcome(ctypes.Structure):
    _fields_ = [
        ("instructions", c_uint64), ("waves", c_uint64), ("fault", c_char * 32), ("pc", c_uint64),
        ("address", c_uint64), ("has_address", c_bool), ("workgroup", c_uint32 * 3), ("wave", c_uint32),
        ("lane", c_int32),
    ]


lib.wavesim_last_error.restype = c_char_p
lib.wavesim_device_create.argtypes = [c_char_p, POINTER(c_uint64)]
lib.wavesim_device_destroy.argtypes = [c_uint64]
lib.wavesim_device_map.argtypes = [c_uint64, c_uint64, c_void_p, c_uint64, c_bool]
lib.wavesim_launch_init.argtypes = [POINTER(Launch)]
lib.wavesim_object_launch_init.argtypes = [POINTER(ObjectLaunch)]
lib.wavesim_device_launch.argtypes = [c_uint64, POINTER(Launch), POINTER(Outcome)]
lib.wavesim_device_launch_object.argtypes = [c_uint64, POINTER(ObjectLaunch), POINTER(Outcome)]
lib.run_asm.argtypes = [c_void_p] + [c_uint32] * 7 + [c_void_p]
lib.run_asm.restype = c_int32


class Error(Exception):
    pass


def check(status):
    if status != 0:
        raise Error(lib.wavesim_last_error().decode())


class Device:
    """A device with mapped ctypes arrays, which its kernels access at the host addresses of the arrays."""

    def __init__(self, target):
        handle = c_uint64()
        check(lib.wavesim_device_create(target.encode(), handle))
        self.handle, self.arrays = handle.value, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        check(lib.wavesim_device_destroy(self.handle))

    def map(self, array, writable=True):
        address = ctypes.addressof(array)
        check(lib.wavesim_device_map(self.handle, address, address, ctypes.sizeof(array), writable))
        self.arrays.append(array)  # It must live as long as the device.
        return address

    def launch(self, code, grid, block, user_sgprs, **more):
        words = (c_uint32 * len(code))(*code)
        launch, outcome = Launch(), Outcome()
        check(lib.wavesim_launch_init(launch))
        launch.code, launch.code_bytes = ctypes.addressof(words), ctypes.sizeof(words)
        launch.grid, launch.block = (c_uint32 * 3)(*grid), (c_uint32 * 3)(*block)
        launch.user_sgprs, launch.user_sgpr_count = (c_uint32 * len(user_sgprs))(*user_sgprs), len(user_sgprs)
        for name, value in more.items():
            setattr(launch, name, value)
        check(lib.wavesim_device_launch(self.handle, launch, outcome))
        return outcome

    def launch_object(self, data, kernel, grid, block, kernarg):
        launch, outcome = ObjectLaunch(), Outcome()
        check(lib.wavesim_object_launch_init(launch))
        held = (c_char * len(data)).from_buffer_copy(data), (c_char * len(kernarg)).from_buffer_copy(kernarg)
        launch.object, launch.object_bytes = ctypes.addressof(held[0]), len(data)
        launch.kernarg, launch.kernarg_bytes = ctypes.addressof(held[1]), len(kernarg)
        launch.kernel = kernel.encode()
        launch.grid, launch.block = (c_uint32 * 3)(*grid), (c_uint32 * 3)(*block)
        check(lib.wavesim_device_launch_object(self.handle, launch, outcome))
        return outcome
