#!/usr/bin/env python3
"""Runs a sample of the test suite of a Python project on wavesim, and prints a table and the reasons of failures.

    scripts/run-python-suite.py SUITE CHECKOUT [--sample N] [--each N] [--seed S] [--seconds T] [--target GPU] [FILE...]

SUITE is one of those that --help lists with their commits and packages; CHECKOUT is a clone of its project. The Python that
runs the script has wavesim (docs/python.md), pytest, pytest-timeout and pytest-xdist, and the packages of the suite. The
sample is drawn from all tests of the files with the seed. Each file runs in a process of its own, which is started again if
a test ends it.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

Suite = collections.namedtuple("Suite", "commit packages folder files options environment")
# Tensors on `cuda` are on the CPU, and kernels are not tuned (docs/triton.md).
CUDA = {"WAVESIM_TORCH_CUDA": "cpu", "WAVESIM_TRITON_AUTOTUNE": "first"}
SUITES = {
    "triton": Suite(
        "triton-lang/triton 10f6be363d24 (branch release/3.8.x)",
        "triton==3.8.0 torch==2.15.0 scipy",
        "python/test",
        ["unit/language/test_*.py"],
        ["--device=cpu"],
        {},
    ),
    "gluon": Suite(
        "triton-lang/triton f797708c0626 (branch release/3.7.x)",
        "triton==3.7.0 torch==2.15.0 scipy",
        "python/test",
        ["gluon/test_core.py", "gluon/test_lowerings.py", "gluon/test_layout.py"],
        ["--device=cuda"],
        CUDA,
    ),
    "triton-amd": Suite(
        "triton-lang/triton 10f6be363d24 (branch release/3.8.x)",
        "triton==3.9.0 torch==2.15.0 scipy",
        "third_party/amd/python/test",
        ["test_*.py"],
        [],
        CUDA,
    ),
    "fla": Suite(
        "fla-org/flash-linear-attention bc3b101d",
        "flash-linear-attention==0.6.0 triton==3.9.0 torch==2.15.0 transformers",
        ".",
        ["tests/ops/test_*.py"],
        [],
        CUDA,
    ),
    "flaggems": Suite(
        "FlagOpen/FlagGems 532ff438",
        "flag_gems==5.0.2 triton==3.6.0 torch==2.15.0",
        ".",
        ["tests/test_*_ops.py"],
        # Its conftest.py demands that tests run in pytest's own process.
        ["--mode=quick", "-n0"],
        {**CUDA, "GEMS_VENDOR": "amd"},
    ),
    "liger": Suite(
        "linkedin/Liger-Kernel ead96b61",
        "liger-kernel==0.8.5 triton==3.9.0 torch==2.15.0 transformers",
        ".",
        ["test/transformers/test_*.py"],
        [],
        {},
    ),
    "tinygrad": Suite(
        "tinygrad/tinygrad a9069c177a",
        "tinygrad==0.14.0 hypothesis torch==2.15.0",
        ".",
        ["test/backend/test_*.py"],
        [],
        {},
    ),
}

# Of the tests that pytest has collected, keeps those of the file that a variable names.
PLUGIN = """
import os
def pytest_collection_modifyitems(items):
    with open(os.environ["WAVESIM_SAMPLE"]) as file:
        wanted = set(file.read().splitlines())
    items[:] = [item for item in items if item.nodeid in wanted]
"""
# Parts of messages that differ from test to test.
VARIABLE = re.compile(r"0x[0-9a-f]+|\b\d+(\.\d+)?(e[-+]?\d+)?\b")


def arguments():
    suites = "; ".join(f"{name}: {suite.commit}, {suite.packages}" for name, suite in SUITES.items())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES, help=suites)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("files", nargs="*", help="files below the suite's folder, or patterns, in place of all")
    parser.add_argument("--sample", type=int, default=200, metavar="N", help="number of tests; 0 for all")
    parser.add_argument("--each", type=int, metavar="N", help="draw the sample from at most N tests of each function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="time limit of a test")
    parser.add_argument("--target", default="gfx1100", metavar="GPU")
    parser.add_argument("--list", action="store_true", help="print the tests of the sample instead")
    given = parser.parse_intermixed_args()
    folder = given.checkout / SUITES[given.suite].folder
    if not folder.is_dir():
        parser.error(f"there is no {folder}: CHECKOUT is a clone of {SUITES[given.suite].commit}")
    return given


class Runner:
    def __init__(self, given):
        self.suite, self.given = SUITES[given.suite], given
        self.folder = given.checkout / self.suite.folder
        self.scratch = tempfile.TemporaryDirectory(prefix="wavesim-suite-")
        self.at = pathlib.Path(self.scratch.name)
        (self.at / "wavesim_sample.py").write_text(PLUGIN)
        path = os.pathsep.join([str(self.at), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = {**os.environ, **self.suite.environment, "PYTHONPATH": path}

    def pytest(self, *options, **keywords):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--wavesim={self.given.target}"]
        return subprocess.run(
            [*command, *map(str, options), *self.suite.options],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, text=True, capture_output=True, **keywords,
        )  # fmt: skip

    def collect(self):
        """The tests of all files, in their order."""
        patterns = self.given.files or self.suite.files
        files = sorted({path.relative_to(self.folder) for pattern in patterns for path in self.folder.glob(pattern)})
        output = self.pytest("--collect-only", "-W", "ignore", *files).stdout
        tests = [line for line in output.splitlines() if "::" in line and not line.startswith(("ERROR", "FAILED"))]
        broken = [line for line in output.splitlines() if line.startswith("ERROR")]
        return tests, broken

    def run(self, file, tests):
        """Outcomes of the tests of a file: test, outcome, reason."""
        wanted, report = self.at / "tests", self.at / "report.xml"
        wanted.write_text("\n".join(tests))
        report.unlink(missing_ok=True)
        self.environment["WAVESIM_SAMPLE"] = str(wanted)
        limit = [f"--timeout={self.given.seconds}", "--timeout-method=signal"]
        options = ["-p", "wavesim_sample", "-W", "ignore", "-n1", "--max-worker-restart=50", f"--junitxml={report}", *limit]
        try:
            done = self.pytest(*options, file, timeout=self.given.seconds * len(tests) + 300)
        except subprocess.TimeoutExpired:
            return [(test, "failed", "the process does not end") for test in tests]
        if not report.exists():
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            return [(test, "failed", "no report: " + "".join(last)) for test in tests]
        return list(map(outcome, xml.parse(report).iter("testcase")))


def outcome(case):
    name = f"{case.get('classname')}::{case.get('name')}"
    for kind, result in [("failure", "failed"), ("error", "failed"), ("skipped", "skipped")]:
        found = case.find(kind)
        if found is not None:
            message = (found.get("message") or found.text or "").strip()
            return name, result, message.splitlines()[0] if message else kind
    return name, "passed", ""


def main():
    given = arguments()
    runner = Runner(given)
    tests, broken = runner.collect()
    for line in broken:
        print(line)
    draw, sample = random.Random(given.seed), tests
    if given.each:
        functions = collections.defaultdict(list)
        for test in tests:
            functions[test.split("[")[0]].append(test)
        sample = [test for of in functions.values() for test in draw.sample(of, min(given.each, len(of)))]
    if given.sample and given.sample < len(sample):
        sample = draw.sample(sample, given.sample)
    files = collections.defaultdict(list)
    for test in sample:
        files[test.split("::")[0]].append(test)
    if given.list:
        print("\n".join(sample))
        return
    print(f"{runner.suite.commit}; {given.target}; {len(sample)} of {len(tests)} tests, seed {given.seed}")
    print(f"{'file':<50} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>8}", flush=True)
    totals, reasons = collections.Counter(), collections.defaultdict(list)
    for file in sorted(files):
        started = time.monotonic()
        outcomes = runner.run(file, files[file])
        counts = collections.Counter(result for _, result, _ in outcomes)
        totals += counts
        for test, result, reason in outcomes:
            if result != "passed":
                reasons[result, VARIABLE.sub("#", reason)[:160]].append(test)
        seconds = time.monotonic() - started
        row = " ".join(f"{counts[result]:>7}" for result in ("passed", "failed", "skipped"))
        print(f"{file:<50} {row} {seconds:>8.0f}", flush=True)
    print(f"{'all':<50} " + " ".join(f"{totals[result]:>7}" for result in ("passed", "failed", "skipped")))
    for (result, reason), of in sorted(reasons.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"{result} {len(of)}: {reason}\n    {of[0]}")
    sys.exit(1 if totals["failed"] else 0)


if __name__ == "__main__":
    main()
