"""Text kernels, the debugger, the assembler."""

import pathlib
import subprocess
import sys

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
    assert "<table" in wavesim.run(ADD_ONE)._repr_html_()
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
