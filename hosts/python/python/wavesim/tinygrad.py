"""Runs tinygrad's AMD device on wavesim.

    import wavesim.tinygrad
    from tinygrad import Tensor

The device `AMD` is then a simulated GPU, and the default device unless DEV names another. WAVESIM_TARGET selects the
GPU (default gfx1100), and WAVESIM_CHECK=all checks every launch. tinygrad compiles with the system's LLVM library (18
or newer), or with ROCm's comgr if it is installed.

BEAM compares numbers of executed instructions instead of times, or the predicted times of a GPU if WAVESIM_TIMING names
one (docs/cost.md).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import sys
import types
from typing import Any, Optional

os.environ.setdefault("DEV", "AMD")
# tinygrad's device `CPU`, which evaluates constants, needs clang. Distributions install it with a version suffix.
if "CC" not in os.environ and not shutil.which("clang"):
    found = next((name for name in (f"clang-{n}" for n in range(30, 13, -1)) if shutil.which(name)), None)
    if found is not None:
        os.environ["CC"] = found

from tinygrad.device import BufferSpec, Compiled, LRUAllocator, Program, TinyELF  # noqa: E402
from tinygrad.renderer.cstyle import HIPRenderer  # noqa: E402
from tinygrad.renderer.llvmir import AMDLLVMRenderer  # noqa: E402
from tinygrad.runtime.support.elf import elf_loader  # noqa: E402

from . import Device, Error  # noqa: E402
from ._device import print_findings  # noqa: E402

__all__ = ["AMDDevice"]

_REL64 = 5
_DESCRIPTOR_BYTES = 64
_PACKET_BYTES = 64
_SECONDS_PER_INSTRUCTION = 1e-9
# Size of the largest scalar load. LLVM widens loads as far as alignment permits, such as seven dwords to eight.
_LOAD_BYTES = 64


class Buffer(int):
    """The address of a buffer, with its size in bytes."""

    size: int

    def __new__(cls, address: int, size: int) -> "Buffer":
        buffer = super().__new__(cls, address)
        buffer.size = size
        return buffer


class AMDAllocator(LRUAllocator):
    """Allocates buffers, which are addresses in the process."""

    def __init__(self, dev: "AMDDevice") -> None:
        super().__init__(dev, supports_copy_from_disk=False, supports_transfer=False)

    def _alloc(self, size: int, options: BufferSpec) -> Buffer:
        if options.external_ptr is not None:
            self.dev.wavesim.native.map(options.external_ptr, size)
            return Buffer(options.external_ptr, size)
        return Buffer(self.dev.wavesim.alloc(size + -size % _LOAD_BYTES, f"buffer of {size} bytes"), size)

    def _free(self, opaque: Buffer, options: BufferSpec) -> None:
        if options.external_ptr is None:
            self.dev.wavesim.free(opaque)
        else:
            self.dev.wavesim.native.unmap(opaque)

    def _copyin(self, dest: Buffer, src: memoryview) -> None:
        ctypes.memmove(dest, bytes(src) if src.readonly else (ctypes.c_char * src.nbytes).from_buffer(src), src.nbytes)

    def _copyout(self, dest: memoryview, src: Buffer) -> None:
        ctypes.memmove((ctypes.c_char * dest.nbytes).from_buffer(dest), src, dest.nbytes)

    def _as_buffer(self, src: Buffer) -> memoryview:
        return memoryview((ctypes.c_uint8 * src.size).from_address(src)).cast("B")

    def _offset(self, buf: Buffer, size: int, offset: int) -> Buffer:
        return Buffer(buf + offset, size)


class AMDProgram(Program):
    """A kernel, loaded from the compiler's output, which may be an unlinked object."""

    def __init__(self, dev: "AMDDevice", obj: TinyELF) -> None:
        self.dev, self.name, self.signature = dev, obj.name, obj.signature
        image, sections, relocations = elf_loader(obj.lib)
        data = bytearray(image)
        for at, target, kind, addend in relocations:
            if kind != _REL64:
                raise Error(f"{obj.name}: relocations of type {kind} are not supported by wavesim.tinygrad")
            data[at : at + 8] = struct.pack("<q", target - at + addend)
        start = next(s.header.sh_addr for s in sections if s.name == ".rodata")
        text = next(s for s in sections if s.name == ".text").header
        kd = data[start : start + _DESCRIPTOR_BYTES]
        lds, self.scratch, kernarg_bytes = struct.unpack_from("<III", kd, 0)
        (entry,) = struct.unpack_from("<q", kd, 16)
        self.rsrc1, rsrc2 = struct.unpack_from("<II", kd, 48)
        (self.properties,) = struct.unpack_from("<H", kd, 56)
        self.rsrc2 = rsrc2 | (lds + 511) // 512 << 15
        self.lds = lds
        device = dev.wavesim
        self.image = device.alloc(len(data), obj.name)
        device.write(self.image, data)
        self.entry = self.image + start + entry
        self.code = bytes(data[start + entry : text.sh_addr + text.sh_size])
        self.kernarg = device.alloc(max(kernarg_bytes, 16), f"kernarg of {obj.name}")
        self.packet = device.alloc(_PACKET_BYTES, f"dispatch packet of {obj.name}")

    # Module globals may already be cleared when the interpreter exits, so `is_finalizing` is bound as a default.
    def __del__(self, finalizing: Any = sys.is_finalizing) -> None:
        if finalizing() or not hasattr(self, "packet"):
            return
        for address in (self.image, self.kernarg, self.packet):
            self.dev.wavesim.free(address)

    def __call__(
        self,
        *bufs: Any,
        global_size: tuple = (1, 1, 1),
        local_size: tuple = (1, 1, 1),
        vals: tuple = (),
        wait: bool = False,
        **_: Any,
    ) -> Optional[float]:
        blob = bytearray(struct.pack(f"<{len(bufs)}Q", *bufs))
        for value, (offset, dtype) in zip(vals, TinyELF.iter_sig(self.signature[len(bufs) :], len(blob))):
            blob += b"\0" * (offset - len(blob)) + int(value).to_bytes(dtype.itemsize, "little", signed=value < 0)
        ctypes.memmove(self.kernarg, bytes(blob), len(blob))
        device = self.dev.wavesim.native
        before = device.predicted_nanoseconds
        outcome = device.launch_raw(
            self.code,
            self.entry,
            list(global_size),
            list(local_size),
            self._user_sgprs(global_size, local_size),
            self.rsrc1,
            self.rsrc2,
            self.scratch,
            32 if self.properties & 0x400 else 64,
        )
        print_findings(outcome)
        if not wait:
            return None
        if before is not None:
            return (device.predicted_nanoseconds - before) * 1e-9
        return outcome.instructions * _SECONDS_PER_INSTRUCTION

    def _user_sgprs(self, global_size: tuple, local_size: tuple) -> list:
        """Returns the user SGPRs that the descriptor enables, in its order (LLVM AMDGPUUsage, *Kernel Descriptor*)."""
        sgprs: list = []
        if self.properties & 1:
            sgprs += [0, 0, 0, 0]
        if self.properties & 2:
            items = [groups * block for groups, block in zip(global_size, local_size)]
            packet = struct.pack("<HH3HH3III", 0, 0, *local_size, 0, *items, self.scratch, self.lds)
            packet += struct.pack("<QQQ", 0, self.kernarg, 0)
            ctypes.memmove(self.packet, packet, len(packet))
            sgprs += _halves(self.packet)
        if self.properties & 4:
            sgprs += _halves(0)
        if self.properties & 8:
            sgprs += _halves(self.kernarg)
        if self.properties & 16:
            sgprs += _halves(0)
        return sgprs


def _halves(address: int) -> list:
    return [address & 0xFFFFFFFF, address >> 32]


class AMDDevice(Compiled):
    """tinygrad's device `AMD`, simulated."""

    has_copy_queue = False

    def __init__(self, device: str = "") -> None:
        self.wavesim = Device()
        super().__init__(
            device, AMDAllocator(self), [HIPRenderer, AMDLLVMRenderer], AMDProgram, arch=self.wavesim.target
        )

    def synchronize(self) -> None:
        """Does nothing, since launches are synchronous."""


def _install() -> None:
    """Registers the module in which tinygrad looks up the device."""
    name = "tinygrad.runtime.ops_amd"
    if name in sys.modules and getattr(sys.modules[name], "AMDDevice", None) is not AMDDevice:
        raise Error("tinygrad has opened its own AMD device already: import wavesim.tinygrad first")
    module = types.ModuleType(name, "tinygrad's AMD device on wavesim.")
    module.AMDDevice, module.AMDProgram, module.AMDAllocator = AMDDevice, AMDProgram, AMDAllocator
    sys.modules[name] = module


_install()
