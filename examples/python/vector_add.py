"""c = a + b with run_asm, with a device, and with a device and a code object from clang."""
import ctypes
import pathlib
import struct
import sys
import threading

from wavesim import Device, Error, check, lib

# The words of examples/c/kernel.h.
CODE = [
    0xF4080100, 0xF8000000, 0xF4040200, 0xF8000010, 0xD6560000, 0x04010C0F, 0x30000082, 0xBF89FC07, 0xDC520000,
    0x01060000, 0xDC520000, 0x02080000, 0xBF8903F7, 0x06020501, 0xDC6A0000, 0x00040100, 0xBFB00000,
]
GROUPS = 2
N = 64 * GROUPS
Floats = ctypes.c_float * N


def inputs():
    return Floats(*range(N)), Floats(*[0.5] * N), Floats()


def with_run_asm():
    a, b, c = inputs()
    args = (ctypes.c_uint64 * 3)(*map(ctypes.addressof, (c, a, b)))
    words = (ctypes.c_uint32 * len(CODE))(*CODE)
    check(lib.run_asm(words, ctypes.sizeof(words), GROUPS, 1, 1, 64, 1, 1, args))
    print("run_asm:", c[0], c[N - 1])


def with_device(target, groups=GROUPS):
    a, b, c = inputs()
    with Device(target) as device:
        args = (ctypes.c_uint64 * 3)(device.map(c), device.map(a, writable=False), device.map(b, writable=False))
        at = device.map(args, writable=False)
        device.launch(CODE, (groups, 1, 1), (64, 1, 1), [at & 0xFFFFFFFF, at >> 32] + [0] * 13)
    return c[0], c[N - 1]


def with_code_object(path):
    a, b, c = inputs()
    with Device("gfx1100") as device:
        kernarg = struct.pack("<QQQi", device.map(a), device.map(b), device.map(c), N)
        outcome = device.launch_object(path.read_bytes(), "vadd", (GROUPS, 1, 1), (64, 1, 1), kernarg)
    print("code object:", c[0], c[N - 1], "in", outcome.waves, "waves")


with_run_asm()
print("device:", *with_device("gfx1100"))
if len(sys.argv) > 1:
    with_code_object(pathlib.Path(sys.argv[1]))

try:
    with_device("gfx1100", groups=10000)
except Error as error:
    print("error:", str(error).splitlines()[0].split(" at ")[0])

results = [None, None]


def work(index):
    results[index] = with_device(["rdna3", "rdna3.5"][index])


threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads:", *results)
