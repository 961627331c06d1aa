#!/usr/bin/env python3
"""Writes conformance vectors of image instructions: tests/filetests/vectors/rdna{3,4}/image.jsonl.gz.

    scripts/image-vectors.py [--llvm-mc llvm-mc-19]

The expected values come from the text of AMD's ISA manuals (chapter *Vector Memory Image Instructions*), with exact
rational arithmetic, and from nothing of the simulator. What the manuals leave open follows AMD's open address
library (rows of linear images) and Direct3D's rules (8 fractional bits of coordinates).
"""

import argparse
import gzip
import json
import math
import random
import struct
import subprocess
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = 0x10000

# --- Formats (*Data Formats*): number, widths of the components from the lowest bit on, kind.
FORMATS = {
    "8_UNORM": (1, [8], "unorm"), "8_SNORM": (2, [8], "snorm"), "8_UINT": (5, [8], "uint"), "8_SINT": (6, [8], "sint"),
    "16_UNORM": (7, [16], "unorm"), "16_FLOAT": (13, [16], "float"), "8_8_UNORM": (14, [8, 8], "unorm"),
    "32_UINT": (20, [32], "uint"), "32_SINT": (21, [32], "sint"), "32_FLOAT": (22, [32], "float"),
    "16_16_SNORM": (24, [16, 16], "snorm"), "16_16_FLOAT": (29, [16, 16], "float"),
    "2_10_10_10_UNORM": (36, [10, 10, 10, 2], "unorm"), "2_10_10_10_UINT": (40, [10, 10, 10, 2], "uint"),
    "8_8_8_8_UNORM": (42, [8, 8, 8, 8], "unorm"), "8_8_8_8_SNORM": (43, [8, 8, 8, 8], "snorm"),
    "8_8_8_8_UINT": (46, [8, 8, 8, 8], "uint"), "8_8_8_8_SINT": (47, [8, 8, 8, 8], "sint"),
    "32_32_FLOAT": (50, [32, 32], "float"), "16_16_16_16_FLOAT": (57, [16, 16, 16, 16], "float"),
    "32_32_32_32_UINT": (61, [32, 32, 32, 32], "uint"), "32_32_32_32_FLOAT": (63, [32, 32, 32, 32], "float"),
    "5_6_5_UNORM": (68, [5, 6, 5], "unorm"), "1_5_5_5_UNORM": (69, [5, 5, 5, 1], "unorm"),
    "4_4_4_4_UNORM": (71, [4, 4, 4, 4], "unorm"), "8_8_8_8_SRGB": (66, [8, 8, 8, 8], "srgb"),
}
TYPES = {"1d": 8, "2d": 9, "3d": 10, "cube": 11, "1d_array": 12, "2d_array": 13}
DIMS = {"1d": "SQ_RSRC_IMG_1D", "2d": "SQ_RSRC_IMG_2D", "3d": "SQ_RSRC_IMG_3D", "cube": "SQ_RSRC_IMG_CUBE",
        "1d_array": "SQ_RSRC_IMG_1D_ARRAY", "2d_array": "SQ_RSRC_IMG_2D_ARRAY"}


def f32(x):
    """The bits of a rational number rounded to f32."""
    if isinstance(x, Fraction):
        # Python converts exactly rounded to f64; a second rounding could differ: round by hand.
        if x == 0:
            return 0
        sign, x = (1 << 31 if x < 0 else 0), abs(x)
        e = 0
        while x >= 2:
            x, e = x / 2, e + 1
        while x < 1:
            x, e = x * 2, e - 1
        assert -126 <= e <= 127
        m = round(x * (1 << 23))  # Ties to even, as Fraction rounds.
        return sign + ((e + 127) << 23) + (m - (1 << 23))
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<H", struct.pack("<e", float(x)))[0]


def float_bits(bits, width):
    if width == 32:
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def signed(bits, width):
    return bits - (1 << width) if bits >> (width - 1) else bits


class Format:
    def __init__(self, name):
        self.name = name
        self.number, self.widths, self.kind = FORMATS[name]
        self.bytes = sum(self.widths) // 8
        self.integer = self.kind in ("uint", "sint")

    def one(self):
        return 1 if self.integer else f32(1.0)

    def values(self, element):
        """The components of an element as exact numbers, or bits of floats, with defaults: 0, 0, 0, 1."""
        out, at = [], 0
        for i, width in enumerate(self.widths):
            bits = element >> at & ((1 << width) - 1)
            at += width
            kind = self.kind
            if kind == "srgb":
                kind = "unorm" if i == 3 else "curve"
            if kind == "uint":
                out.append(bits)
            elif kind == "sint":
                out.append(signed(bits, width))
            elif kind == "unorm":
                out.append(Fraction(bits, (1 << width) - 1))
            elif kind == "snorm":
                out.append(max(Fraction(signed(bits, width), (1 << (width - 1)) - 1), Fraction(-1)))
            elif kind == "curve":
                c = bits / 255
                out.append(Fraction(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4))
            else:
                out.append(Fraction(float_bits(bits, width)))
        defaults = [0, 0, 0, 1]
        return out + [Fraction(d) if not self.integer else d for d in defaults[len(out):]]

    def register(self, value):
        return value & 0xFFFFFFFF if self.integer else f32(Fraction(value))

    def half(self, value):
        return value & 0xFFFF if self.integer else f16(value)

    def random(self, rng):
        element, at = 0, 0
        for width in self.widths:
            if self.kind == "float":
                v = rng.choice([0.0, 1.0, -2.5, 0.375, 100.0, rng.randint(-64, 64) / 16])
                bits = f32(v) if width == 32 else f16(v)
            else:
                bits = rng.getrandbits(width)
                # The two encodings of -1 read the same.
            element |= bits << at
            at += width
        return element


class Image:
    """An image with the linear layout: the smallest level first, rows aligned."""

    def __init__(self, arch, kind, fmt, size, layers=1, levels=1, select=(4, 5, 6, 7), rng=None, base_level=0, base_array=0):
        self.arch, self.kind, self.format, self.size = arch, kind, fmt, size
        self.layers, self.levels, self.select = layers, levels, select
        self.base_level, self.base_array = base_level, base_array
        self.row_align = 256 if arch == "rdna3" else 128
        self.offsets, offset = {}, 0
        for level in reversed(range(levels)):
            w, h, _ = self.level(level)
            self.offsets[level] = offset
            offset += self.align(w * fmt.bytes, 256) * h
        self.layer_bytes = offset
        total = offset * layers * size[2]
        self.memory = bytearray(rng.getrandbits(8) for _ in range(total)) if rng else bytearray(total)
        if rng:
            for level in range(levels):
                w, h, d = self.level(level)
                for z in range(d * layers):
                    for y in range(h):
                        for x in range(w):
                            at = self.offset(x, y, z, level)
                            self.memory[at:at + fmt.bytes] = fmt.random(rng).to_bytes(fmt.bytes, "little")

    @staticmethod
    def align(n, to):
        return (n + to - 1) // to * to

    def level(self, level):
        return tuple(max(1, s >> level) for s in self.size)

    def offset(self, x, y, z, level):
        w, _, _ = self.level(level)
        pitch = self.align(w * self.format.bytes, self.row_align)
        return z * self.layer_bytes + self.offsets[level] + y * pitch + x * self.format.bytes

    def inside(self, x, y, z, level):
        own = self.base_level + level
        if own >= self.levels:
            return False
        w, h, d = self.level(own)
        deep = d if self.kind == "3d" else self.layers - self.base_array
        return 0 <= x < w and 0 <= y < h and 0 <= z < deep

    def at(self, x, y, z, level):
        first = 0 if self.kind == "3d" else self.base_array
        return self.offset(x, y, z + first, self.base_level + level)

    def texel(self, x, y, z, level=0):
        if not self.inside(x, y, z, level):
            return 0
        at = self.at(x, y, z, level)
        return int.from_bytes(self.memory[at:at + self.format.bytes], "little")

    def words(self):
        """The descriptor, tables *Image Resource Definition*."""
        bits = 0

        def put(value, high, low):
            nonlocal bits
            assert value >> (high - low + 1) == 0
            bits |= value << low

        w, h, d = self.size
        put(BASE >> 8, 39, 0)
        put(w - 1, 75 if self.arch == "rdna3" else 77, 62)
        put(h - 1, 91 if self.arch == "rdna3" else 93, 78)
        put(TYPES[self.kind], 127, 124)
        for k, select in enumerate(self.select):
            put(select, 98 + 3 * k, 96 + 3 * k)
        depth = d - 1 if self.kind == "3d" else self.layers - 1 if self.kind not in ("1d", "2d") else 0
        if self.arch == "rdna3":
            put(self.levels - 1, 51, 48)
            put(self.format.number, 59, 52)
            put(self.base_level, 111, 108)
            put(self.levels - 1, 115, 112)
            put(depth, 140, 128)
        else:
            put(self.levels - 1, 48, 44)
            put(self.format.number, 56, 49)
            put(self.base_level, 61, 57)
            put(self.levels - 1, 115, 111)
            put(depth, 141, 128)
        put(self.base_array, 156, 144)
        return [bits >> (32 * k) & 0xFFFFFFFF for k in range(8)]


def sampler_words(arch, wrap=0, linear=False, mip=0, border=0, unnormalized=False, compare=0, max_lod=15.0, trunc=True,
                  anisotropy=None):
    bits = wrap | wrap << 3 | wrap << 6 | (anisotropy or 0) << 9 | compare << 12 | int(unnormalized) << 15 | int(trunc) << 27
    if arch == "rdna3":
        bits |= min(int(max_lod * 256), 4095) << 44
    else:
        bits |= min(int(max_lod * 256), 8191) << 45
    # Two bits each: linear, anisotropic.
    xy = int(linear) | (0 if anisotropy is None else 2)
    bits |= xy << 84 | xy << 86 | mip << 90 | border << 126
    return [bits >> (32 * k) & 0xFFFFFFFF for k in range(4)]


def wrapped(i, n, mode):
    """The texel of a wrap mode; None for the border (table *Image Sampler Definition*)."""
    if mode == 0:
        return i % n
    if mode == 1:
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    if mode == 2:
        return min(max(i, 0), n - 1)
    if mode == 3:
        return min(-1 - i if i < 0 else i, n - 1)
    assert mode == 6
    return i if 0 <= i < n else None


class Writer:
    def __init__(self, arch, mc):
        self.arch, self.mc, self.records, self.asm = arch, mc, [], []

    def add(self, op, asm, sgprs, vgprs, memory, out=None, memory_out=None, tol=None, lanes=None):
        number = sum(1 for r in self.records if r["op"] == op)
        record = {
            "id": f"{self.arch}-image-{op}-{number}", "arch": self.arch, "wave": 32, "op": op,
            "enc": "MIMG" if self.arch == "rdna3" else ("VSAMPLE" if "sample" in op or "gather" in op else "VIMAGE"),
            "asm": asm, "words": None, "exec": "ffffffff", "vcc": "00000000", "scc": 0, "m0": "00000000",
            "sgpr_in": {str(k): f"{v:08x}" for k, v in sgprs.items()},
            "vgpr_in": {str(k): "".join(f"{v & 0xffffffff:08x}" for v in vs) for k, vs in vgprs.items()},
            "mem_in": {"base": f"{BASE:016x}", "hex": bytes(memory).hex()},
            "sgpr_out": {},
            "vgpr_out": {str(k): "".join(f"{v:08x}" for v in vs) for k, vs in (out or {}).items()},
            "tol": tol,
        }
        if memory_out is not None:
            changed = {}
            for at in range(0, len(memory), 4):
                if memory[at:at + 4] != memory_out[at:at + 4]:
                    changed[f"{at:x}"] = f"{int.from_bytes(memory_out[at:at + 4], 'little'):08x}"
            record["mem_out"] = changed
        if lanes is not None:
            record["lanes"] = f"{lanes:08x}"
        self.records.append(record)
        self.asm.append(asm)

    def write(self, path):
        cpu = "gfx1100" if self.arch == "rdna3" else "gfx1200"
        run = subprocess.run([self.mc, "-triple=amdgcn", f"-mcpu={cpu}", "-show-encoding"], input="\n".join(self.asm) + "\n",
                             text=True, capture_output=True, check=True)
        encodings = [line for line in run.stdout.splitlines() if "encoding: [" in line]
        assert len(encodings) == len(self.records), (len(encodings), len(self.records), run.stderr[:500])
        for record, line in zip(self.records, encodings):
            data = bytes(int(b, 16) for b in line.split("encoding: [")[1].split("]")[0].split(","))
            record["words"] = [f"{int.from_bytes(data[k:k + 4], 'little'):08x}" for k in range(0, len(data), 4)]
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.GzipFile(path, "wb", mtime=0) as out:
            for record in self.records:
                out.write((json.dumps(record) + "\n").encode())
        print(f"{path.relative_to(ROOT)}: {len(self.records)} records")


def registers(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def addresses(arch, count, first=20):
    if arch == "rdna3" or count == 1:
        return registers(first, count)
    # RDNA 4 has a field for each address.
    return "[" + ", ".join(f"v{first + k}" for k in range(count)) + "]"


COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "cube": 3, "1d_array": 2, "2d_array": 3}


def split(kind, coordinates):
    x = coordinates[0]
    if kind == "1d":
        return x, 0, 0
    if kind == "1d_array":
        return x, 0, coordinates[1]
    if kind == "2d":
        return x, coordinates[1], 0
    return tuple(coordinates[:3])


def random_image(arch, rng, kind=None, fmt=None, levels=1):
    kind = kind or rng.choice(list(TYPES))
    fmt = Format(fmt or rng.choice(list(FORMATS)))
    w, h = rng.randint(1, 13), rng.randint(1, 5)
    size, layers = (w, h, 1), 1
    if kind in ("1d", "1d_array"):
        size = (w, 1, 1)
    if kind == "3d":
        size = (w, h, rng.randint(1, 3))
    if kind == "cube":
        size, layers = (4, 4, 1), 6
    if kind in ("1d_array", "2d_array"):
        layers = rng.randint(1, 3)
    base_array = rng.randrange(layers) if kind in ("1d_array", "2d_array") else 0
    base_level = rng.randrange(levels)
    select = rng.choice([(4, 5, 6, 7), (4, 5, 6, 7), (6, 5, 4, 7), (4, 0, 0, 1), (5, 4, 1, 0)])
    return Image(arch, kind, fmt, size, layers, levels, select, rng, base_level, base_array)


def selected(image, values, c):
    select = image.select[c]
    if select >= 4:
        return values[select - 4]
    return 0 if select == 0 else 1


def loads(writer, rng, count):
    for _ in range(count):
        levels = rng.choice([1, 1, 3])
        image = random_image(writer.arch, rng, levels=levels)
        fmt, kind = image.format, image.kind
        mip = levels > 1 and rng.random() < 0.7
        a16, d16 = rng.random() < 0.3, rng.random() < 0.3
        dmask = rng.randint(1, 15)
        n = COORDINATES[kind] + int(mip)
        sizes = {"1d": [image.size[0]], "2d": image.size[:2], "3d": image.size, "cube": (4, 4, 6),
                 "1d_array": (image.size[0], image.layers), "2d_array": (*image.size[:2], image.layers)}[kind]
        lanes = []
        for _lane in range(32):
            c = [rng.randrange(s) if rng.random() < 0.85 else rng.choice([s, s + 3, 0xFFFF]) for s in sizes]
            lanes.append(c + ([rng.randint(0, levels)] if mip else []))
        outs = [[] for _ in range(bin(dmask).count("1"))]
        for c in lanes:
            x, y, z = split(kind, c)
            level = c[-1] if mip else 0
            values = fmt.values(image.texel(x, y, z, level))
            if not image.inside(x, y, z, level):
                # No texel: zero bits.
                values = fmt.values(0)
            chosen = [selected(image, values, k) for k in range(4) if dmask >> k & 1]
            for out, value in zip(outs, chosen):
                out.append(fmt.half(value) if d16 else fmt.register(value))
        if d16:
            outs.append([0] * 32)
            outs = [[lo | hi << 16 for lo, hi in zip(outs[k], outs[k + 1])] for k in range(0, len(outs) - 1, 2)]
        words = list(zip(*lanes))
        if a16:
            words.append([0] * 32)
            words = [[lo & 0xFFFF | (hi & 0xFFFF) << 16 for lo, hi in zip(words[k], words[k + 1])] for k in range(0, len(words) - 1, 2)]
        op = "image_load_mip" if mip else "image_load"
        asm = (f"{op} {registers(4, len(outs))}, {addresses(writer.arch, len(words))}, s[8:15] dmask:0x{dmask:x} "
               f"dim:{DIMS[kind]}" + (" unorm" if writer.arch == "rdna3" else "") + (" a16" if a16 else "") + (" d16" if d16 else ""))
        inputs = {20 + k: list(w) for k, w in enumerate(words)}
        sgprs = {8 + k: w for k, w in enumerate(image.words())}
        writer.add(op, asm, sgprs, inputs, image.memory, {4 + k: o for k, o in enumerate(outs)})


def stores(writer, rng, count):
    for _ in range(count):
        image = random_image(writer.arch, rng)
        image.select = (4, 5, 6, 7)
        fmt, kind = image.format, image.kind
        if fmt.kind == "srgb":
            continue
        x_positions = [(x, y, z) for z in range(image.size[2] * image.layers) for y in range(image.size[1]) for x in range(image.size[0])
                       if image.inside(x, y, z, 0)]
        rng.shuffle(x_positions)
        dmask = rng.choice([15, 15, 15, rng.randint(1, 15)])
        given = [k for k in range(4) if dmask >> k & 1]
        after = bytearray(image.memory)
        lanes, data = [], [[] for _ in given]
        for lane in range(32):
            where = x_positions[lane] if lane < len(x_positions) else None
            values = fmt.values(fmt.random(rng))
            registers_of = [fmt.register(v) for v in values]
            for d, k in zip(data, given):
                d.append(registers_of[k])
            missing = 0 if writer.arch == "rdna3" else registers_of[given[0]]
            full = [registers_of[k] if k in given else missing for k in range(4)]
            if where is None:
                # Out of range: nothing is stored.
                lanes.append([image.size[0] + lane] + [0] * (COORDINATES[kind] - 1))
                continue
            x, y, z = where
            lanes.append({"1d": [x], "1d_array": [x, z], "2d": [x, y]}.get(kind, [x, y, z]))
            element, at = 0, 0
            for k, width in enumerate(fmt.widths):
                element |= encode(fmt, full[k], width) << at
                at += width
            to = image.at(x, y, z, 0)
            after[to:to + fmt.bytes] = element.to_bytes(fmt.bytes, "little")
        words = list(zip(*lanes))
        asm = (f"image_store {registers(4, len(given))}, {addresses(writer.arch, len(words))}, s[8:15] dmask:0x{dmask:x} "
               f"dim:{DIMS[kind]}" + (" unorm" if writer.arch == "rdna3" else ""))
        inputs = {20 + k: list(w) for k, w in enumerate(words)} | {4 + k: d for k, d in enumerate(data)}
        sgprs = {8 + k: w for k, w in enumerate(image.words())}
        writer.add("image_store", asm, sgprs, inputs, image.memory, memory_out=after)


def encode(fmt, register, width):
    if fmt.kind == "uint":
        return min(register, (1 << width) - 1)
    if fmt.kind == "sint":
        most = (1 << (width - 1)) - 1
        return min(max(signed(register, 32), -most - 1), most) & ((1 << width) - 1)
    value = Fraction(float_bits(register, 32))
    if fmt.kind == "unorm":
        return round(min(max(value, 0), 1) * ((1 << width) - 1))
    if fmt.kind == "snorm":
        return round(min(max(value, -1), 1) * ((1 << (width - 1)) - 1)) & ((1 << width) - 1)
    return f32(value) if width == 32 else f16(value)


def queries(writer, rng, count):
    for _ in range(count):
        levels = rng.randint(1, 3)
        image = random_image(writer.arch, rng, kind=rng.choice(["2d", "3d", "2d_array", "cube"]), levels=levels)
        outs = [[], [], [], []]
        lanes = [rng.randint(0, levels) for _ in range(32)]
        for level in lanes:
            own = image.base_level + level
            w, h, d = image.level(own)
            deep = d if image.kind == "3d" else image.layers - image.base_array
            found = own < image.levels
            for out, value in zip(outs, (w, h, deep)):
                out.append(value if found else 0)
            outs[3].append(image.levels - image.base_level)
        asm = f"image_get_resinfo v[4:7], v20, s[8:15] dmask:0xf dim:{DIMS[image.kind]}" + (" unorm" if writer.arch == "rdna3" else "")
        sgprs = {8 + k: w for k, w in enumerate(image.words())}
        writer.add("image_get_resinfo", asm, sgprs, {20: lanes}, image.memory, {4 + k: o for k, o in enumerate(outs)})


def samples(writer, rng, count):
    """Nearest and linear filters, gathers; coordinates at multiples of 1/16 of a texel, which 8 bits hold."""
    formats = ["8_UNORM", "8_8_8_8_UNORM", "16_FLOAT", "32_FLOAT", "16_16_SNORM", "32_32_32_32_FLOAT", "8_8_8_8_UINT"]
    for number in range(count):
        kind = rng.choice(["1d", "2d", "2d", "3d", "2d_array"])
        gather = rng.random() < 0.3
        if gather:
            kind = rng.choice(["2d", "2d_array"])
        image = random_image(writer.arch, rng, kind=kind, fmt=rng.choice(formats))
        # Powers of two: normalised coordinates are exact.
        size = [1 << rng.randint(0, 3) for _ in range(3)]
        size = (size[0], size[1] if kind != "1d" else 1, size[2] if kind == "3d" else 1)
        image = Image(writer.arch, kind, image.format, size, image.layers, 1, image.select, rng, 0, image.base_array)
        fmt = image.format
        linear = rng.random() < 0.6 and not fmt.integer
        wrap, border = rng.choice([0, 1, 2, 3, 6]), rng.choice([0, 1, 2])
        dims = {"1d": 1, "2d": 2, "3d": 3, "2d_array": 2}[kind]
        dmask = 1 << rng.randrange(4) if gather else rng.randint(1, 15)
        if gather and dmask == 0:
            dmask = 1
        lanes, outs = [], [[] for _ in range(4 if gather else bin(dmask).count("1"))]
        for _lane in range(32):
            position = [Fraction(rng.randint(-24, 16 * size[k] + 24), 16) for k in range(dims)]
            layer = rng.randrange(image.layers - image.base_array) if kind == "2d_array" else 0
            lanes.append([f32(Fraction(p) / size[k]) for k, p in enumerate(position)] + ([f32(Fraction(layer))] if kind == "2d_array" else []))

            def texel(index):
                at = [wrapped(i, size[k], wrap) for k, i in enumerate(index)]
                if None in at:
                    full = {0: [0, 0, 0, 0], 1: [0, 0, 0, 1], 2: [1, 1, 1, 1]}[border]
                    return [Fraction(v) if not fmt.integer else v for v in full]
                at += [0] * (2 - len(at))
                z = at[2] if kind == "3d" else layer
                return fmt.values(image.texel(at[0], at[1], z))

            if gather or linear:
                low = [(p - Fraction(1, 2)).__floor__() for p in position]
                part = [p - Fraction(1, 2) - f for p, f in zip(position, low)]
            else:
                low, part = [p.__floor__() for p in position], [Fraction(0)] * dims
            if gather:
                order = [(0, 1), (1, 1), (1, 0), (0, 0)]
                c = {1: 0, 2: 1, 4: 2, 8: 3}[dmask]
                for out, (dx, dy) in zip(outs, order):
                    out.append(fmt.register(selected(image, texel([low[0] + dx, low[1] + dy]), c)))
                continue
            total = [Fraction(0)] * 4
            for corner in range(1 << dims):
                weight, index = Fraction(1), []
                for k in range(dims):
                    up = corner >> k & 1
                    weight *= part[k] if up else 1 - part[k]
                    index.append(low[k] + up)
                if weight:
                    # A component is converted to f32 before it is weighted.
                    components = texel(index)
                    if not fmt.integer:
                        components = [Fraction(float_bits(f32(Fraction(v)), 32)) for v in components]
                    total = [t + weight * v for t, v in zip(total, components)]
            chosen = [selected(image, total, k) for k in range(4) if dmask >> k & 1]
            for out, value in zip(outs, chosen):
                out.append(fmt.register(int(value) if fmt.integer else value))
        op = "image_gather4_lz" if gather else "image_sample_lz"
        words = list(zip(*lanes))
        asm = f"{op} {registers(4, len(outs))}, {addresses(writer.arch, len(words))}, s[8:15], s[16:19] dmask:0x{dmask:x} dim:{DIMS[kind]}"
        inputs = {20 + k: list(w) for k, w in enumerate(words)}
        sgprs = {8 + k: w for k, w in enumerate(image.words())}
        sgprs |= {16 + k: w for k, w in enumerate(sampler_words(writer.arch, wrap, linear, border=border))}
        tol = {"t": "f32", "nan": "any", "ulp": 2} if linear and not gather else None
        writer.add(op, asm, sgprs, inputs, image.memory, {4 + k: o for k, o in enumerate(outs)}, tol=tol)


def anisotropic_samples(writer, rng, count):
    """Explicit derivatives of two dimensions: samples along the longer one (EXT_texture_filter_anisotropic)."""
    for _ in range(count):
        fmt = rng.choice(["8_8_8_8_UNORM", "16_FLOAT", "32_FLOAT", "16_16_SNORM"])
        image = Image(writer.arch, "2d", Format(fmt), (8 << rng.randint(0, 1), 4 << rng.randint(0, 1), 1), rng=rng)
        size = image.size[:2]
        # Both derivatives of a case are along the axes or the diagonals, so that their lengths are exact.
        first, second = rng.choice([((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 1), (1, -1)), ((-1, 0), (0, 1))])
        most, linear, wrap, dmask = rng.randint(0, 4), rng.random() < 0.7, rng.choice([0, 1, 2, 6]), rng.randint(1, 15)
        lanes, outs = [], [[] for _ in range(bin(dmask).count("1"))]
        for _lane in range(32):
            short = Fraction(rng.choice([1, 1, 2]), 2)
            ratio = Fraction(rng.choice([2, 2, 3, 4, 5, 6, 8, 12, 14, 15, 24, 30, 32, 40]), 2)
            taps = min(math.ceil(ratio), 1 << most)
            long = [short * ratio * k for k in first]
            small = [short * k for k in second]
            # The longer one is that to the right or that down.
            derivatives = (long, small) if rng.random() < 0.5 else (small, long)
            position = [Fraction(rng.randint(8, 16 * n - 8), 16) for n in size]
            places = [position]
            if taps > 1:
                along = [Fraction(tap, taps + 1) - Fraction(1, 2) for tap in range(1, taps + 1)]
                places = [[p + d * part for p, d in zip(position, long)] for part in along]
            # At the edge of a texel, the rounding of a place that f32 does not hold decides.
            while not linear and any(p.denominator == 1 for place in places for p in place):
                position = [p + Fraction(1, 64) for p in position]
                places = [[p + Fraction(1, 64) for p in place] for place in places]
            lanes.append([f32(d / n) for part in derivatives for d, n in zip(part, size)] + [f32(p / n) for p, n in zip(position, size)])
            total = [Fraction(0)] * 4
            for at in places:
                if not linear:
                    fraction, low = [Fraction(0)] * 2, [math.floor(a) for a in at]
                else:
                    fixed = [math.floor(a * 256 + Fraction(1, 2)) - 128 for a in at]
                    low, fraction = [f >> 8 for f in fixed], [Fraction(f & 255, 256) for f in fixed]
                for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
                    weight = (fraction[0] if dx else 1 - fraction[0]) * (fraction[1] if dy else 1 - fraction[1])
                    x, y = wrapped(low[0] + dx, size[0], wrap), wrapped(low[1] + dy, size[1], wrap)
                    if weight and None not in (x, y):
                        components = [Fraction(float_bits(f32(Fraction(v)), 32)) for v in image.format.values(image.texel(x, y, 0))]
                        total = [t + weight * v / taps for t, v in zip(total, components)]
            chosen = [selected(image, total, k) for k in range(4) if dmask >> k & 1]
            for out, value in zip(outs, chosen):
                out.append(f32(Fraction(value)))
        inputs = {20 + k: list(w) for k, w in enumerate(zip(*lanes))}
        # RDNA 4 has a field for each of the first three addresses, and one for the others.
        where = "v[20:25]" if writer.arch == "rdna3" else "[v20, v21, v22, v[23:25]]"
        asm = f"image_sample_d {registers(4, len(outs))}, {where}, s[8:15], s[16:19] dmask:0x{dmask:x} dim:{DIMS['2d']}"
        sgprs = {8 + k: w for k, w in enumerate(image.words())}
        sgprs |= {16 + k: w for k, w in enumerate(sampler_words(writer.arch, wrap, linear, anisotropy=most))}
        tol = {"t": "f32", "nan": "any", "ulp": 4}
        writer.add("image_sample_d", asm, sgprs, inputs, image.memory, {4 + k: o for k, o in enumerate(outs)}, tol=tol)


def statuses(writer, rng, count):
    """The register after the result: LWE writes it where the level of detail is below that of the descriptor, TFE where
    a texel fails, which none does."""
    for _ in range(count):
        image = Image(writer.arch, "2d", Format("8_8_8_8_UINT"), (4, 4, 1), levels=3, rng=rng)
        dmask, d16, lwe = rng.randint(1, 15), rng.random() < 0.3, rng.random() < 0.8
        warn = Fraction(rng.randint(0, 24), 8)
        words = image.words()
        # `min_lod_warn` begins at bit 168 (RDNA 3) or 165 (RDNA 4); it has 8 fractional bits.
        words[5] |= int(warn * 256) << (168 - 160 if writer.arch == "rdna3" else 165 - 160)
        n = bin(dmask).count("1")
        count_out = (n + 1) // 2 if d16 else n
        lanes, outs, status, before = [], [[] for _ in range(n)], [], [0x1234 + lane for lane in range(32)]
        for lane in range(32):
            x, y, lod = rng.randrange(4), rng.randrange(4), Fraction(rng.randint(-8, 24), 8)
            lanes.append([f32(Fraction(2 * x + 1, 8)), f32(Fraction(2 * y + 1, 8)), f32(lod)])
            # Without a filter of levels, all samples are of the first one.
            values = image.format.values(image.texel(x, y, 0))
            for out, k in zip(outs, [k for k in range(4) if dmask >> k & 1]):
                out.append(values[k])
            level = min(max(lod, 0), 2)
            status.append(2 | math.floor(level) << 16 if lwe and level < warn else before[lane])
        if d16:
            outs.append([0] * 32)
            outs = [[lo | hi << 16 for lo, hi in zip(outs[k], outs[k + 1])] for k in range(0, len(outs) - 1, 2)]
        asm = (f"image_sample_l {registers(4, count_out)}, {addresses(writer.arch, 3)}, s[8:15], s[16:19] dmask:0x{dmask:x} "
               f"dim:{DIMS['2d']}" + (" lwe" if lwe else "") + (" d16" if d16 else ""))
        inputs = {20 + k: list(w) for k, w in enumerate(zip(*lanes))} | {4 + count_out: before}
        sgprs = {8 + k: w for k, w in enumerate(words)} | {16 + k: w for k, w in enumerate(sampler_words(writer.arch))}
        writer.add("image_sample_l", asm, sgprs, inputs, image.memory, {4 + k: o for k, o in enumerate(outs + [status])})
        # A load, which has no level of detail: LWE has no effect.
        values = [image.format.values(image.texel(lane % 4, lane // 4 % 4, 0)) for lane in range(32)]
        outs = [[value[k] for value in values] for k in range(4) if dmask >> k & 1]
        asm = (f"image_load {registers(4, n + 1)}, {addresses(writer.arch, 2)}, s[8:15] dmask:0x{dmask:x} dim:{DIMS['2d']}"
               + (" unorm tfe lwe" if writer.arch == "rdna3" else " tfe"))
        inputs = {20: [lane % 4 for lane in range(32)], 21: [lane // 4 % 4 for lane in range(32)], 4 + n: before}
        sgprs = {8 + k: w for k, w in enumerate(words)}
        writer.add("image_load", asm, sgprs, inputs, image.memory, {4 + k: o for k, o in enumerate(outs + [before])})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llvm-mc", default="llvm-mc-19")
    parser.add_argument("--count", type=int, default=50, help="cases of each kind")
    options = parser.parse_args()
    for arch in ("rdna3", "rdna4"):
        rng = random.Random(arch)
        writer = Writer(arch, options.llvm_mc)
        loads(writer, rng, 2 * options.count)
        stores(writer, rng, options.count)
        queries(writer, rng, options.count // 4)
        samples(writer, rng, 2 * options.count)
        anisotropic_samples(writer, rng, options.count)
        statuses(writer, rng, options.count // 4)
        writer.write(ROOT / "tests/filetests/vectors" / arch / "image.jsonl.gz")


main()
