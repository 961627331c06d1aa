"""HTML representations for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

_MAX_ELEMENTS = 256
"""Maximum number of elements in a heat map."""


def result(result: Any) -> str:
    """Renders outputs as heat maps, followed by the findings of checks."""
    parts = [f"<b>{result.instructions}</b> instructions in <b>{result.waves}</b> waves"]
    parts += [f"<div><code>{escape(name)}</code> {heat_map(array)}</div>" for name, array in result.outputs.items()]
    if result.findings:
        parts.append(f"<pre>{escape(result.report)}</pre>")
    return "<div>" + "".join(parts) + "</div>"


def heat_map(array: Any) -> str:
    """Renders the first elements of an array; larger values are brighter."""
    shape = getattr(array, "shape", (len(array),))
    try:
        flat = [float(value) for value in array.reshape(-1)[:_MAX_ELEMENTS]]
    except (AttributeError, TypeError, ValueError):
        return f"{shape}"
    finite = [value for value in flat if value - value == 0]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    columns = shape[-1] if len(shape) > 1 and shape[-1] <= 64 else 32
    rows = []
    for start in range(0, len(flat), columns):
        cells = "".join(_cell(value, low, high) for value in flat[start : start + columns])
        rows.append(f"<tr>{cells}</tr>")
    size = array.size
    more = f"<div>the first {_MAX_ELEMENTS} of {size} elements</div>" if size > _MAX_ELEMENTS else ""
    name = escape(f"{array.dtype}{list(shape)} {low:g} … {high:g}")
    return f"{name}<table style='border-collapse:collapse'>{''.join(rows)}</table>{more}"


def _cell(value: float, low: float, high: float) -> str:
    if value - value != 0:
        colour = "#c33"
    else:
        light = 25 + round(65 * ((value - low) / (high - low) if high > low else 0.5))
        colour = f"hsl(210,60%,{light}%)"
    return f"<td title='{value:g}' style='background:{colour};width:.7em;height:.9em;padding:0'></td>"


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
