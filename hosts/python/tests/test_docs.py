"""The examples of the pages, with the output that the pages print."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]

# What blocks refer to that other blocks or the text around them have defined.
KERNEL = """
import numpy as np
import wavesim
kernel = wavesim.Device("gfx1100").load("examples/scale.s").scale
x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
text = open("examples/saxpy.rdna").read()
"""


def fenced(page):
    """The fenced blocks of a page: the language and the text."""
    text = (ROOT / page).read_text()
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def indented(page):
    """The indented blocks of a page."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", (ROOT / page).read_text(), re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") + "\n" for block in blocks if block.strip()]


def run(program, folder):
    """Runs a program as `example.py` in a folder with the examples; returns its output and its messages."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "scale.s").symlink_to(ROOT / "examples/scale.s")
    (folder / "example.py").write_text(program)
    done = subprocess.run([sys.executable, "example.py"], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def without_addresses(text):
    return re.sub(r"0x[0-9a-f]{8,}", "ADDRESS", text)


def need(program):
    """Skips the test if a package that the program imports is not installed."""
    for package in ("triton", "tinygrad"):
        if re.search(rf"\b{package}\b", program) and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def test_the_first_example_of_python(tmp_path):
    (_, program), (_, expected) = fenced("docs/python.md")[:2]
    code, out, err = run(program, tmp_path)
    assert code == 0, err
    assert without_addresses(out) == without_addresses(expected)


def test_the_first_example_of_triton(tmp_path):
    (_, program), (_, expected) = fenced("docs/triton.md")[:2]
    need(program)
    _, out, err = run(program, tmp_path)
    printed, reported = expected.split("Traceback", 1)
    assert out == printed
    # The traceback's frames are those of Triton.
    reported = reported[reported.index("wavesim.Fault") :]
    assert without_addresses(err).endswith(without_addresses(reported)), err


BLOCKS = [
    pytest.param(page, number, id=f"{pathlib.Path(page).stem}-{number}")
    for page in ("docs/python.md", "hosts/python/README.md")
    for number, (language, _) in enumerate(fenced(page))
    if language == "python" and (page, number) != ("docs/python.md", 0)
]


@pytest.mark.parametrize("page, number", BLOCKS)
def test_blocks_run(page, number, tmp_path):
    program = fenced(page)[number][1]
    need(program)
    code, _, err = run(KERNEL + program, tmp_path)
    assert code == 0, err


def test_the_assembler_in_a_session():
    import doctest

    import wavesim

    session = next(block for block in indented("docs/python.md") if block.startswith(">>> "))
    test = doctest.DocTestParser().get_doctest(session, {"wavesim": wavesim}, "python.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


PROGRAMS = [
    pytest.param(block, id=re.search(r"wavesim\.\w+", block)[0])
    for block in indented("docs/commands.md")
    if block.startswith("import ")
]
assert len(PROGRAMS) == 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_print_what_their_comments_say(program, tmp_path):
    need(program)
    code, out, err = run(program, tmp_path)
    assert code == 0, err
    assert out.splitlines() == re.findall(r"^print\(.*\) +# (.*)$", program, re.MULTILINE)
