"""The pytest plugin: a test suite of its own, in another process."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import wavesim

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"

SUITE = """
import os
import subprocess
import sys

import numpy as np
import pytest

import wavesim

SOURCE = open({source!r}).read()


def scale(source, n=50):
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, dtype=np.float32)
    wavesim.Device().load(wavesim.assemble(source, target="gfx1100")).scale[2, 32](x, y, 2.5, n)
    return y


def test_clean():
    assert scale(SOURCE)[4] == 10


def test_missing_wait():
    assert scale(SOURCE.replace("s_waitcnt vmcnt(0)", "s_nop 0"))[4] == 10


def test_wrong_result():
    assert scale(SOURCE)[4] == 11


def test_expected_fault():
    with pytest.raises(wavesim.Fault):
        scale(SOURCE, n=64)


def test_program():
    if "CHILD" not in os.environ:
        code = "import sys, pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', __file__ + '::test_missing_wait']))"
        code = code.replace("__file__", repr(__file__))
        subprocess.run([sys.executable, "-c", code], env=dict(os.environ, CHILD="1"), stdout=subprocess.DEVNULL)
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE.format(source=str(EXAMPLES / "scale.s")))

    def run(*options, **environment):
        package = pathlib.Path(wavesim.__file__).parents[1]
        environment = dict(os.environ, PYTHONPATH=str(package), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", **environment)
        command = [sys.executable, "-B", "-m", "pytest", "-p", "wavesim.pytest_plugin", "-p", "no:cacheprovider", "-rA"]
        return subprocess.run([*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


def outcomes(text):
    lines = (line.split() for line in text.splitlines())
    return {words[1].split("::")[1]: words[0] for words in lines if len(words) > 1 and "::" in words[1]}


def test_findings_fail_the_test_that_caused_them(suite, tmp_path):
    result = suite("--wavesim=gfx1100", "--wavesim-check=waits", "--wavesim-json=found.jsonl", "--junitxml=junit.xml")
    assert outcomes(result.stdout) == {
        "test_clean": "PASSED",
        "test_missing_wait": "FAILED",
        "test_wrong_result": "FAILED",
        "test_expected_fault": "PASSED",
        "test_program": "FAILED",
    }, result.stdout + result.stderr
    assert "is read before the wait" in result.stdout and "kernel `scale`, launch 1" in result.stdout
    found = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    by_test = [(f["test"].split("::")[1], f["check"]) for f in found]
    assert ("test_missing_wait", "waits") in by_test and ("test_program", "waits") in by_test
    assert ("test_expected_fault", "fault") in by_test
    assert all(f["kernel"] == "scale" for f in found)
    cases = xml.etree.ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
    properties = {case.get("name"): [p.get("value") for p in case.iter("property")] for case in cases}
    assert any("is read before the wait" in value for value in properties["test_missing_wait"])


def test_the_gpu_is_selected_before_the_suite_is_imported(suite, tmp_path):
    """A `conftest.py` may import libraries that ask for the GPU at once."""
    (tmp_path / "conftest.py").write_text('import os\nassert os.environ["WAVESIM_TARGET"] == "gfx1201"\n')
    result = suite("--wavesim=gfx1201", "-k", "test_wrong_result", "--co", WAVESIM_TARGET="gfx942")
    assert result.returncode == 0 and "wavesim: " in result.stdout and ", gfx1201," in result.stdout, result.stderr


def test_results_that_depend_on_the_order_fail_the_test(suite, tmp_path):
    options = ("--wavesim=gfx1100", "--wavesim-explore=20", "--wavesim-json=found.jsonl", "-k", "clean or missing_wait")
    result = suite(*options)
    # With delays, a load that nobody waits for gives another result.
    assert outcomes(result.stdout) == {"test_clean": "PASSED", "test_missing_wait": "FAILED"}, result.stdout
    assert "delays of memory operations, kernel `scale`" in result.stdout, result.stdout
    assert "20 schedules" in result.stdout and "explore: 1 error" in result.stdout
    (found,) = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert (found["check"], found["kernel"], found["launch"]) == ("explore", "scale", 1)
    assert "depends on the order" in found["message"] and "late: " in found["report"]
    result = suite("--wavesim=gfx1100", "--wavesim-explore=many")
    assert result.returncode == 4 and "--wavesim-explore: " in result.stderr, result.stderr


def test_findings_are_annotations_of_a_job_on_github(suite):
    result = suite("--wavesim=gfx1100", "--wavesim-check=waits", "-k", "clean or missing_wait", GITHUB_ACTIONS="true")
    lines = [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert len(lines) == 1, result.stdout
    assert lines[0].startswith("::error title=wavesim waits") and "(test_suite.py%3A" not in lines[0]
    assert "is read before the wait" in lines[0] and lines[0].endswith("(test_suite.py::test_missing_wait)")


def test_without_options_nothing_changes(suite):
    assert outcomes(suite().stdout)["test_missing_wait"] == "PASSED"


def test_wrong_options_are_explained(suite):
    wrong = suite("--wavesim=gfx9999")
    assert wrong.returncode == 4 and "gfx9999" in wrong.stderr
    wrong = suite("--wavesim-check=wait")
    assert wrong.returncode == 4 and "waits" in wrong.stderr
    wrong = suite("--wavesim-json=missing/found.jsonl")
    assert wrong.returncode == 4 and "missing/found.jsonl" in wrong.stderr, wrong.stderr
