"""The pytest plugin: findings of kernels fail the tests that caused them.

``pytest --wavesim`` runs the kernels of a test suite on the simulator, with checks by ``--wavesim-check``. Kernels are
launched by whatever the tests use: ``wavesim``, Triton, tinygrad, OpenCL, HIP, programs that they start.
"""

from __future__ import annotations

import collections
import json
import os
import tempfile
from typing import Any, Iterator

import pytest

from . import _native


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("wavesim", "kernels on the simulator")
    group.addoption(
        "--wavesim",
        nargs="?",
        const="",
        metavar="TARGET",
        help="run kernels on wavesim, on this GPU (by default WAVESIM_TARGET, or gfx1100)",
    )
    group.addoption(
        "--wavesim-check",
        metavar="CHECKS",
        help="check every launch: all, or a list such as mem,race; findings fail the test that caused them",
    )
    group.addoption(
        "--wavesim-explore",
        metavar="N",
        help="run every kernel in N random orders of its waves too; results that depend on the order fail the test",
    )
    group.addoption("--wavesim-json", metavar="FILE", help="write the findings to a file, a line of JSON each, with the test")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Selects the GPU before the files `conftest.py` import what asks for it."""
    _prepare(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    # The plugin may have been registered after the first hook.
    if not config.pluginmanager.has_plugin("wavesim-findings"):
        _prepare(config, config.option)


def _prepare(config: pytest.Config, options: Any) -> None:
    target = options.wavesim
    # Options that are variables of the environment, too.
    variables = {"WAVESIM_CHECK": options.wavesim_check, "WAVESIM_EXPLORE": options.wavesim_explore}
    given = {variable: value for variable, value in variables.items() if value is not None}
    if target is None and not given and options.wavesim_json is None:
        return
    try:
        device = _native.Device(target or os.environ.get("WAVESIM_TARGET") or None)
    except _native.Error as error:
        raise pytest.UsageError(f"--wavesim: {error}") from None
    os.environ["WAVESIM_TARGET"] = device.target
    for variable, value in given.items():
        os.environ[variable] = value
        try:
            _native.Device(device.target)
        except _native.Error as error:
            option = variable.lower().replace("_", "-")
            raise pytest.UsageError(f"--{option}: {error}") from None
    config.pluginmanager.register(_Plugin(options, device.target), "wavesim-findings")


def _import_adapters() -> None:
    """Triton and tinygrad choose their device when they are imported or first used."""
    import importlib.util

    if importlib.util.find_spec("triton"):
        import wavesim.triton  # noqa: F401
    if importlib.util.find_spec("tinygrad"):
        import wavesim.tinygrad  # noqa: F401


def _annotation(finding: dict[str, Any]) -> str:
    """The command by which a job on GitHub attaches a message to a line of the sources."""

    def escaped(text: str, special: str = "") -> str:
        for character in "%\r\n" + special:
            text = text.replace(character, f"%{ord(character):02X}")
        return text

    places = {"title": f"wavesim {finding['check']}"}
    if finding.get("file") and finding.get("line"):
        # Annotations name files of the repository, relative to its root.
        root = os.environ.get("GITHUB_WORKSPACE", os.getcwd())
        file = os.path.relpath(finding["file"], root) if os.path.isabs(finding["file"]) else finding["file"]
        places |= {"file": file, "line": str(finding["line"])}
    properties = ",".join(f"{key}={escaped(value, ':,')}" for key, value in places.items())
    level = "error" if finding["severity"] == "error" else "notice"
    return f"::{level} {properties}::{escaped(finding['message'] + ' (' + finding['test'] + ')')}"


class _Plugin:
    def __init__(self, options: Any, target: str) -> None:
        self.target = target
        handle, self.path = tempfile.mkstemp(prefix="wavesim-", suffix=".jsonl")
        os.close(handle)
        # Processes that tests start append to the same file.
        os.environ["WAVESIM_REPORT"] = self.path
        self.read = 0
        self.found: list[dict[str, Any]] = []
        # Workers of pytest-xdist each have a file.
        name, worker = options.wavesim_json, os.environ.get("PYTEST_XDIST_WORKER")
        self.json = f"{name}.{worker}" if name and worker else name
        if self.json:
            try:
                open(self.json, "w").close()
            except OSError as error:
                os.unlink(self.path)
                raise pytest.UsageError(f"--wavesim-json: {error}") from None
        if options.wavesim is not None:
            _import_adapters()

    def new(self) -> list[dict[str, Any]]:
        """The findings since the last call."""
        with open(self.path, "rb") as file:
            file.seek(self.read)
            data = file.read()
        # A line that another process has not finished is read the next time.
        complete = data.rfind(b"\n") + 1
        self.read += complete
        return [json.loads(line) for line in data[:complete].split(b"\n") if line]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
        report = yield
        findings = self.new()
        for finding in findings:
            finding["test"] = item.nodeid
        self.found += findings
        if self.json and findings:
            with open(self.json, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(finding) + "\n" for finding in findings)
        if findings:
            text = "\n\n".join(f"{f['report']}\n  kernel `{f['kernel']}`, launch {f['launch']}" for f in findings)
            report.sections.append(("wavesim", text))
            # The report of JUnit has the properties of the test's last phase, which come from the item.
            properties = [("wavesim", f"{f['check']}: {f['message']}") for f in findings]
            report.user_properties += properties
            item.user_properties += properties
        # The call that waits for a kernel raises its fault, which the test may expect.
        raised = os.environ.get("WAVESIM_ON_FAULT") != "continue"
        errors = [f for f in findings if f["severity"] == "error" and not (raised and f["check"] == "fault")]
        if errors and report.outcome == "passed":
            report.outcome = "failed"
            first = errors[0]
            # A result that depends on delays alone has no place.
            line = f"line {first['line']}" if first.get("line") else f"kernel `{first['kernel']}`"
            where = f"{first['file']}:{first['line']}" if first.get("file") else line
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            report.longrepr = f"{item.nodeid}: {first['check']}: {first['message']}, {where}{more}"
        return report

    def pytest_report_header(self) -> str:
        checks = os.environ.get("WAVESIM_CHECK") or "none"
        schedules = os.environ.get("WAVESIM_EXPLORE")
        explored = f", {schedules} schedules" if schedules else ""
        return f"wavesim: {_native.__version__}, {self.target}, checks: {checks}{explored}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.found:
            return
        terminalreporter.section("wavesim")
        counts = collections.Counter((f["check"], f["severity"]) for f in self.found)
        for (check, severity), count in sorted(counts.items()):
            terminalreporter.write_line(f"{check}: {count} {severity}{'s' if count > 1 else ''}")
        if os.environ.get("GITHUB_ACTIONS") == "true":
            for annotation in dict.fromkeys(map(_annotation, self.found)):
                terminalreporter.write_line(annotation)

    def pytest_unconfigure(self) -> None:
        self.found += self.new()
        os.unlink(self.path)
