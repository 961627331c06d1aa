"""HTML representations for notebooks."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from html import escape
from typing import Any

def result(result: Any) -> str:
    """Renders outputs as heat maps, followed by the findings of checks."""
    parts = [f"<b>{result.instructions}</b> instructions in <b>{result.waves}</b> waves"]
    parts += [f"<div><code>{escape(name)}</code> {heat_map(array)}</div>" for name, array in result.outputs.items()]
    if result.findings:
        parts.append(f"<pre>{escape(result.report)}</pre>")
    return "<div>" + "".join(parts) + "</div>"


def frame(page: str) -> str:
    """Shows a whole page inside a notebook."""
    return f"<iframe srcdoc='{escape(page)}' style='width:100%;height:40em;border:1px solid #888'></iframe>"


def heat_map(array: Any) -> str:
    """Renders all elements of an array, a pixel each; larger values are brighter, and NaNs and infinities are red.

    Arrays of bytes with 3 or 4 elements in the last dimension are images. One-dimensional arrays are broken into rows.
    """
    shape = tuple(getattr(array, "shape", (len(array),)))
    try:
        flat = array.reshape(-1).tolist()
        values = [float(value) for value in flat]
    except (AttributeError, TypeError, ValueError):
        return f"{shape}"
    if not values:
        return f"{shape}"
    channels = shape[-1] if len(shape) == 3 and shape[-1] in (3, 4) and str(array.dtype) == "uint8" else 0
    if channels:
        width, height = shape[1], shape[0]
        rows = [bytes(flat[y * width * channels : (y + 1) * width * channels]) for y in range(height)]
        caption = f"{width} x {height} pixels"
    else:
        width = shape[-1] if len(shape) > 1 else min(len(values), max(64, math.isqrt(len(values) - 1) + 1))
        low, high, rows = _shades(values, width)
        height = len(rows)
        caption = f"{array.dtype}{list(shape)} {low:g} … {high:g}"
    data = base64.b64encode(_png(width, rows, channels or 3)).decode()
    # Small arrays are enlarged, so that their elements can be told apart.
    scale = max(1, min(12, 512 // max(width, height)))
    size = f"width:{width * scale}px;max-width:100%;image-rendering:pixelated;display:block"
    return f"{escape(caption)}<img alt='{escape(caption)}' style='{size}' src='data:image/png;base64,{data}'>"


def _shades(values: "list[float]", width: int) -> "tuple[float, float, list[bytes]]":
    """Returns the least and the greatest finite value, and rows of pixels; the last one is filled with grey."""
    finite = [value for value in values if value - value == 0]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = high - low
    shades = [bytes((26 + 200 * n // 255, 60 + 180 * n // 255, 110 + 145 * n // 255)) for n in range(256)]

    def pixel(value: float) -> bytes:
        if value - value != 0:
            return b"\xcc\x33\x33"
        return shades[int(255 * (value / span - low / span)) if 0 < span < math.inf else 128]

    pixels = [pixel(value) for value in values]
    rows = [b"".join(pixels[start : start + width]) for start in range(0, len(pixels), width)]
    rows[-1] += b"\x80\x80\x80" * (width - len(rows[-1]) // 3)
    return low, high, rows


def _png(width: int, rows: "list[bytes]", channels: int) -> bytes:
    """Encodes rows of 8-bit RGB or RGBA."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2 if channels == 3 else 6, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def debugger(debugger: Any) -> str:
    """Renders the position of each wave, and the first VGPRs lane by lane. Inactive lanes are grey."""
    session = debugger.session
    rows = []
    for wave, (pc, state) in enumerate(zip(session.pcs, session.states)):
        line, text = session.instruction(pc)
        position = f"line {line}" if line else f"0x{pc:x}"
        rows.append(f"<tr><td>{wave}</td><td>{escape(state)}</td><td>{position}</td><td><code>{escape(text)}</code></td></tr>")
    waves = "<table><tr><th>wave</th><th>state</th><th>at</th><th>instruction</th></tr>" + "".join(rows) + "</table>"
    wave = session.next_wave or 0
    mask = session.exec[wave]
    head = "".join(f"<th>{lane}</th>" for lane in range(debugger.wave_size))
    lanes = []
    for number in range(8):
        values = debugger.vgpr(number)[wave]
        cells = "".join(
            f"<td style='color:{'inherit' if mask >> lane & 1 else '#999'}'>{int(value):x}</td>"
            for lane, value in enumerate(values)
        )
        lanes.append(f"<tr><th>v{number}</th>{cells}</tr>")
    table = f"<table><tr><th>wave {wave}</th>{head}</tr>{''.join(lanes)}</table>"
    return f"<div>time {debugger.time}, workgroup {debugger.workgroup}{waves}{table}</div>"
