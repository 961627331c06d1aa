"""Text kernels, the debugger, the assembler."""

import base64
import importlib
import pathlib
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import wavesim

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"

ADD_ONE = """\
---
arg_x: f32[4] = arange(4)
out_y: f32[4]
local = 4, 1, 1
global = 1, 1, 1
---
  s_load_b128 s[4:7], s[3:4], 0
  v_lshlrev_b32 v0, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v1, v0, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_f32 v1, 1.0, v1
  global_store_b32 v0, v1, s[6:7]
  s_endpgm
"""


def test_run_gives_outputs_as_arrays():
    result = wavesim.run(ADD_ONE)
    np.testing.assert_array_equal(result["out_y"], np.arange(4, dtype=np.float32) + 1)
    assert result.instructions == 8 and result.waves == 1
    result = wavesim.run(ADD_ONE, {"arg_x": np.full(4, 7, np.float32)})
    assert result["out_y"].tolist() == [8.0] * 4
    assert wavesim.run(EXAMPLES / "collatz.rdna").outputs


RACE = (EXAMPLES / "explore" / "last_store.rdna").read_text()


def test_schedules_are_explored():
    explored = wavesim.explore(RACE, schedules=50, all=True)
    assert not explored and explored.found and explored.schedules == 50 and explored.waves == 2
    assert "[0]: 32 in the first run, 0 in this schedule" in explored.difference
    assert [line for line, _ in explored.outcomes] == ["out_y=[32, 0]", "out_y=[0, 0]"]
    assert sum(count for _, count in explored.outcomes) == 50
    same = wavesim.explore(RACE.replace("v_mov_b32 v2, s5", "v_mov_b32 v2, 7"), schedules=50)
    assert same and same.found is None and same.difference == "" and 0 < same.probability <= 1
    assert "no difference" in repr(same)
    with pytest.raises(wavesim.Error, match="the depth is from 1 to 64, and not 99"):
        wavesim.explore(RACE, depth=99)


def test_errors_are_those_of_the_command():
    with pytest.raises(wavesim.Error, match="v_add_f33"):
        wavesim.run(ADD_ONE.replace("v_add_f32", "v_add_f33"))
    with pytest.raises(wavesim.Error, match="no argument `z`; it has arg_x, out_y"):
        wavesim.run(ADD_ONE, {"z": np.zeros(4)})
    with pytest.raises(wavesim.Error, match="32 bytes for the argument `arg_x`, which has 16"):
        wavesim.run(ADD_ONE, {"arg_x": np.zeros(4)})


def test_checks_and_traces_are_objects():
    missing = ADD_ONE.replace("  s_waitcnt vmcnt(0)\n", "")
    (finding,) = wavesim.run(missing, check="waits").findings
    assert finding.check == "waits" and finding.line == 11 and finding.instruction.startswith("v_add_f32")
    steps = list(wavesim.run(ADD_ONE, trace=True).trace)
    assert len(steps) == 8 and steps[5]["writes"]["v1"][:2] == ["3f800000", "40000000"]
    with pytest.raises(wavesim.Error, match="was not traced"):
        wavesim.run(ADD_ONE).trace


def test_faults_have_the_findings_before_them():
    wrong = ADD_ONE.replace("  s_waitcnt vmcnt(0)\n", "").replace("v0, v1, s[6:7]", "v0, v1, s[10:11]")
    with pytest.raises(wavesim.Fault) as caught:
        wavesim.run(wrong, check="waits")
    text = str(caught.value)
    assert text.startswith("waits: ") and "out-of-bounds" in text and caught.value.kind == "out-of-bounds"
    assert wavesim.run(ADD_ONE, threads=1 << 60).waves == 1


def test_steps_go_both_ways():
    debugger = wavesim.debug(ADD_ONE)
    assert debugger.vgpr(0).shape == (1, 32) and debugger.vgpr(0)[0, :4].tolist() == [0, 1, 2, 3]
    assert debugger.step(2) == 2
    assert debugger.vgpr(0)[0, :4].tolist() == [0, 4, 8, 12]
    debugger.back()
    assert debugger.vgpr(0)[0, 3] == 3 and debugger.time == 1
    assert "v_lshlrev_b32" in debugger.where() and debugger.exec[0].sum() == 4
    assert debugger.execute("print v0[2]").startswith("v0[2] = 0x00000002") or "2" in debugger.execute("print v0[2]")
    debugger.finish()
    assert debugger.finished and debugger.argument("out_y").tolist() == [1, 2, 3, 4]
    assert debugger.vgpr(1, "f32")[0, 3] == 4.0
    debugger.go_to(0)
    assert debugger.argument("out_y").tolist() == [0, 0, 0, 0]
    for wrong in [lambda: debugger.vgpr(256), lambda: debugger.step(1, wave=9), lambda: debugger.execute("stepp")]:
        with pytest.raises(wavesim.Error):
            wrong()


def test_notebooks_show_tables():
    assert "data:image/png;base64," in wavesim.run(ADD_ONE)._repr_html_()
    assert "v_lshlrev_b32" in wavesim.debug(ADD_ONE)._repr_html_() or "s_load_b128" in wavesim.debug(ADD_ONE)._repr_html_()


def test_assembler_and_disassembler_agree():
    text = "v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[1,0,0]"
    code = wavesim.assemble(text, target="gfx1201")
    (instruction,) = wavesim.disassemble(code, target="gfx1201")
    assert instruction.text == text and instruction.size == len(code) == 8 and instruction.valid
    with pytest.raises(wavesim.Error, match="7 bytes"):
        wavesim.disassemble(code[:7])
    with pytest.raises(wavesim.Error, match="v_pk_fmaa_f16"):
        wavesim.assemble("v_pk_fmaa_f16 v0, v1, v2, v3")
    source = (EXAMPLES / "scale.s").read_text()
    listing = wavesim.disassemble(wavesim.assemble(source))
    assert listing[0].text.startswith("s_load_b128") and listing[-1].text.startswith(("s_endpgm", "s_code_end"))
    assert listing[0].label == "scale"


def test_the_package_has_the_command():
    def command(*arguments):
        return subprocess.run([sys.executable, "-m", "wavesim", *arguments], capture_output=True, text=True)

    assert command("--version").stdout == f"wavesim {wavesim.__version__}\n"
    wrong = command("run", "no_such_file.rdna")
    assert wrong.returncode == 2 and "no_such_file.rdna" in wrong.stderr


def pixels(html):
    """Decodes the first image of a representation: width, height, rows of bytes."""
    data = base64.b64decode(html.split("base64,")[1].split("'")[0])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, _, kind = struct.unpack(">IIBB", data[16:26])
    start = data.index(b"IDAT") + 4
    raw = zlib.decompress(data[start : start + struct.unpack(">I", data[start - 8 : start - 4])[0]])
    step = 1 + width * {2: 3, 6: 4}[kind]
    return width, height, [raw[at + 1 : at + step] for at in range(0, len(raw), step)]


def test_images_are_whole():
    _html = importlib.import_module("wavesim._html")
    values = np.arange(300 * 200, dtype=np.float32).reshape(200, 300)
    values[7, 5] = np.nan
    width, height, rows = pixels(_html.heat_map(values))
    assert (width, height) == (300, 200) and rows[7][15:18] == b"\xcc\x33\x33"
    assert rows[0][:3] < rows[100][:3] < rows[199][-3:]
    picture = np.arange(4 * 5 * 4, dtype=np.uint8).reshape(4, 5, 4)
    width, height, rows = pixels(_html.heat_map(picture))
    assert (width, height) == (5, 4) and b"".join(rows) == picture.tobytes()
    # Long vectors become squares, whose last row is filled.
    width, height, rows = pixels(_html.heat_map(np.ones(10_001, np.int32)))
    assert (width, height) == (101, 100) and rows[-1][-3:] == b"\x80\x80\x80"
    assert _html.heat_map(np.zeros(0)) == "(0,)"


def test_reports_show_what_a_run_did(tmp_path):
    report = wavesim.observe(ADD_ONE)
    assert report.findings == [] and report.stats["instructions"] == 8
    x, y = report.activity["allocations"]
    assert (x["name"], y["name"]) == ("arg_x", "out_y")
    # One part of four bytes for each element: loaded once, or stored once, by the only workgroup.
    assert x["bins"] == [[n, 1, 0, [[0, 0, 0]], False] for n in range(4)]
    assert y["bins"] == [[n, 0, 1, [[0, 0, 0]], False] for n in range(4)]
    assert report._repr_html_().startswith("<iframe") and "arg_x" in report.html
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    rows = report.instructions
    assert len(rows) == 8 and sum(rows["count"] if hasattr(rows, "columns") else [r["count"] for r in rows]) == 8
    (finding,) = wavesim.observe(ADD_ONE.replace("  s_waitcnt vmcnt(0)\n", ""), check="waits").findings
    assert finding["check"] == "waits" and finding["line"] == 11

SESSIONS = EXAMPLES.parent / "tests/filetests/debug"


def _sessions():
    """Sessions of the command with a text kernel and no options: its file, and the commands."""
    for script in sorted(SESSIONS.glob("*.txt")):
        lines = script.read_text().splitlines()
        kernel = lines[0].removeprefix("# args: ")
        if kernel.endswith(".rdna"):
            yield pytest.param(EXAMPLES.parent / kernel, lines, script.with_suffix(".expected"), id=script.stem)


@pytest.mark.parametrize("kernel, lines, expected", _sessions())
def test_sessions_are_those_of_the_command(kernel, lines, expected):
    debugger = wavesim.debug(kernel)
    shown = ""
    for line in lines:
        shown += f"(wavesim) {line}\n"
        try:
            shown += debugger.execute(line)
        except wavesim.Error as error:
            shown += f"error: {error}\n"
    # The command also prints the first position and its exit status.
    assert shown.splitlines() == expected.read_text().splitlines()[1:-1]
