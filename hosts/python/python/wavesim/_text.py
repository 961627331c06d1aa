"""Text kernels: running, checking, tracing and debugging. The assembler and the disassembler."""

from __future__ import annotations

import difflib
import json
import os
from typing import Any, Iterator, NamedTuple, Optional

from . import _html, _native
from ._arrays import extent, from_bytes
from ._native import Error, Exploration, Outcome

_MAX_INSTRUCTIONS = 10_000_000_000

_MAX_FILE = 128 << 20
"""Maximum size of a kernel's file. A device may have no end."""


def read_file(path: Any) -> bytes:
    """Returns the contents of a kernel's file."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_FILE + 1)
    except FileNotFoundError as error:
        near = _similar(os.fspath(path))
        hint = f"; did you mean `{near}`?" if near else ""
        raise FileNotFoundError(error.errno, f"{error.strerror}{hint}", error.filename) from None
    if len(data) > _MAX_FILE:
        raise Error(f"{os.fspath(path)}: larger than {_MAX_FILE >> 20} MiB")
    return data


def _similar(path: str) -> Optional[str]:
    """Returns the file of the same folder whose name is nearest to that of a path."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    near = difflib.get_close_matches(name, names, 1, 0.7)
    return os.path.join(folder, near[0]) if near else None


class Result:
    """Result of a run: outputs as arrays, findings of checks, the trace."""

    def __init__(self, outcome: Outcome, outputs: list, trace: Optional[bytes]) -> None:
        self.outcome = outcome
        self.outputs = {name: from_bytes(dtype, shape, data) for name, dtype, shape, data in outputs}
        """Outputs by name."""
        self._trace = trace

    @property
    def instructions(self) -> int:
        """Wave-instructions executed."""
        return self.outcome.instructions

    @property
    def waves(self) -> int:
        """Waves executed."""
        return self.outcome.waves

    @property
    def findings(self) -> list:
        """Findings of the checks."""
        return self.outcome.findings

    @property
    def report(self) -> str:
        """All findings as text."""
        return self.outcome.report

    @property
    def profile(self) -> "Optional[Profile]":
        """The predicted profile, if the run was profiled."""
        return self.outcome.profile

    @property
    def trace(self) -> Iterator[dict]:
        """One dictionary per executed instruction, if the run was traced."""
        if self._trace is None:
            raise Error("the run was not traced; use run(…, trace=True)")
        return (json.loads(line) for line in self._trace.splitlines())

    def __getitem__(self, name: str) -> Any:
        return self.outputs[name]

    def __repr__(self) -> str:
        names = ", ".join(self.outputs)
        return f"<wavesim.Result {names}: {self.instructions} instructions in {self.waves} waves>"

    def _repr_html_(self) -> str:
        return _html.result(self)


def _source(kernel: Any) -> "tuple[str, str]":
    """Returns the text and the name of a kernel. A single line is a path, otherwise it is the text itself."""
    if isinstance(kernel, os.PathLike) or "\n" not in kernel:
        return read_file(kernel).decode(), os.fspath(kernel)
    return kernel, "<kernel>"


def _inputs(arrays: dict) -> list:
    out = []
    for name, value in arrays.items():
        at = extent(value)
        if at is None:
            raise Error(f"the argument `{name}` is {type(value).__name__}, not an array")
        view = value.tobytes() if hasattr(value, "tobytes") else bytes(value)
        out.append((name, view))
    return out


def run(
    kernel: Any,
    arrays: Optional[dict] = None,
    *,
    target: Optional[str] = None,
    wave: Optional[int] = None,
    seed: int = 0,
    check: Optional[str] = None,
    trace: bool = False,
    max_instructions: int = _MAX_INSTRUCTIONS,
    threads: Optional[int] = None,
    profile: Any = None,
) -> Result:
    """Runs a text kernel: a path, or the text (docs/text-format.md).

    `arrays` replaces the contents of arguments, by name. `check`: `"all"` or a list such as `"mem,race"`. With `trace`,
    the result contains every executed instruction. `profile`: a device whose time is predicted (docs/cost.md), such as
    `"mi300a"`, or `True` for the default one of the architecture.
    """
    text, name = _source(kernel)
    device = profiled_device(profile)
    outcome, outputs, lines = _native.run_text(
        text, name, target, wave, seed, _inputs(arrays or {}), check, trace, max_instructions, threads, device
    )
    return Result(outcome, outputs, lines)


def explore(
    kernel: Any,
    arrays: Optional[dict] = None,
    *,
    schedules: int = 1000,
    depth: int = 3,
    first_seed: int = 0,
    tolerance: float = 1e-5,
    delays: bool = True,
    all: bool = False,
    target: Optional[str] = None,
    wave: Optional[int] = None,
    seed: int = 0,
    max_instructions: int = _MAX_INSTRUCTIONS,
) -> Exploration:
    """Runs a text kernel in random orders of its waves, with delays of its memory operations (docs/exploring.md).

    The result is true if every schedule has the outputs of the first run, in which waves run one after the other.
    `tolerance`: relative difference of floats that counts as equal. `all`: goes on after the first schedule that differs,
    so that `outcomes` has all that were seen.
    """
    text, name = _source(kernel)
    return _native.explore_text(
        text,
        name,
        target,
        wave,
        seed,
        _inputs(arrays or {}),
        max_instructions,
        schedules,
        depth,
        first_seed,
        tolerance,
        delays,
        all,
    )


def profiled_device(profile: Any) -> Optional[str]:
    """Returns the device of a parameter `profile`; an empty text is the default one."""
    if profile is None or profile is False:
        return None
    if profile is True:
        return ""
    if not isinstance(profile, str):
        raise Error(f"profile is True or the name of a device, not {type(profile).__name__}")
    return profile


class Profile:
    """The predicted time of a launch, and where it goes (docs/cost.md). A prediction is not a measurement.

    Items are those of the JSON that `wavesim profile --json` prints: `profile["microseconds"]["predicted"]`. In notebooks,
    it shows itself as the page that `wavesim profile --html` writes.
    """

    def __init__(self, data: str, html: str) -> None:
        self.data: dict = json.loads(data)
        """The profile as a dictionary."""
        self.html = html
        """The report as one file."""

    @property
    def label(self) -> str:
        """For which device the time is predicted, and what of the model has been calibrated."""
        return self.data["label"]

    @property
    def microseconds(self) -> float:
        """The predicted time."""
        return self.data["microseconds"]["predicted"]

    @property
    def instructions(self) -> Any:
        """Costs of each executed instruction: a DataFrame if pandas is installed, otherwise a list of dictionaries."""
        return _frame(self.data["instructions"])

    def save(self, path: Any) -> None:
        """Writes the report to a file of HTML."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def keys(self) -> Any:
        """Names of the items."""
        return self.data.keys()

    def __repr__(self) -> str:
        range_ = self.data["microseconds"]
        bound = self.data["bound"]["by"]
        return (
            f"<wavesim.Profile {self.data['device']}: predicted {range_['predicted']:.2f} us"
            f" ({range_['low']:.2f} to {range_['high']:.2f}), bound by {bound}>"
        )

    def _repr_html_(self) -> str:
        return _html.frame(self.html)


class Report:
    """What a run did: findings, statistics, accesses of memory, active lanes and waves over time.

    In notebooks, it shows itself as the page that ``wavesim check --html`` writes.
    """

    def __init__(self, part: str, html: str) -> None:
        data = json.loads(part)
        self.findings: list = data["findings"]
        """Findings and the fault as dictionaries, as ``wavesim check --json`` prints them."""
        self.stats: dict = data["stats"]
        """Statistics, as ``wavesim run --stats json`` prints them."""
        self.activity: dict = data["activity"]
        """Accesses by allocation, and intervals of time."""
        self.summary: str = data["summary"]
        self.html = html
        """The report as one file."""

    def save(self, path: Any) -> None:
        """Writes the report to a file of HTML."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    @property
    def instructions(self) -> Any:
        """Address, file, line, text and number of executions of each instruction: a DataFrame if pandas is installed,
        otherwise a list of dictionaries."""
        return _frame(self.activity["instructions"])

    @property
    def opcodes(self) -> Any:
        """The number of executions of each opcode, in the same form."""
        return _frame([{"opcode": name, "count": count} for name, count in self.stats["opcodes"].items()])

    @property
    def timeline(self) -> Any:
        """Intervals of time: instructions, active lanes, all lanes, waves, in the same form."""
        names = ("instructions", "active", "lanes", "waves")
        return _frame([dict(zip(names, row)) for row in self.activity["time"]])

    def __repr__(self) -> str:
        return f"<wavesim.Report {self.summary}>"

    def _repr_html_(self) -> str:
        return _html.frame(self.html)


def _frame(rows: list) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def observe(
    kernel: Any,
    arrays: Optional[dict] = None,
    *,
    target: Optional[str] = None,
    wave: Optional[int] = None,
    seed: int = 0,
    check: str = "all",
    max_instructions: int = _MAX_INSTRUCTIONS,
) -> Report:
    """Runs a text kernel under checks, and once more to record what it does."""
    text, name = _source(kernel)
    return Report(
        *_native.observe_text(text, name, target, wave, seed, _inputs(arrays or {}), check, max_instructions)
    )


def debug(
    kernel: Any,
    arrays: Optional[dict] = None,
    *,
    target: Optional[str] = None,
    wave: Optional[int] = None,
    seed: int = 0,
    max_instructions: int = _MAX_INSTRUCTIONS,
) -> "Debugger":
    """Starts a text kernel in the debugger, before its first instruction."""
    text, name = _source(kernel)
    return Debugger(_native.Session(text, name, target, wave, seed, _inputs(arrays or {}), max_instructions))


class Debugger:
    """A debug session, which steps forward and backward. Registers are arrays of waves x lanes."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def step(self, count: int = 1, wave: Optional[int] = None) -> int:
        """Executes up to `count` instructions, of one wave or of all waves in scheduling order.

        Returns the number executed.
        """
        return self.session.step(count, wave)

    def back(self, count: int = 1) -> None:
        """Undoes steps."""
        self.session.go_to(max(0, self.time - count))

    def go_to(self, time: int) -> None:
        """Restores the state at a time that has been reached before."""
        self.session.go_to(time)

    def finish(self) -> None:
        """Runs to the end."""
        while not self.finished and self.session.step(1 << 20, None):
            pass

    def execute(self, command: str) -> str:
        """Runs a command of the debugger (docs/debugging.md) and returns its output."""
        return self.session.execute(command)

    @property
    def time(self) -> int:
        """Number of steps so far."""
        return self.session.time

    @property
    def finished(self) -> bool:
        return self.session.finished

    @property
    def waves(self) -> int:
        """Number of waves in the workgroup."""
        return self.session.waves

    @property
    def wave_size(self) -> int:
        """Number of lanes in a wave."""
        return self.session.wave_size

    @property
    def workgroup(self) -> "tuple[int, int, int]":
        return self.session.workgroup

    def vgpr(self, number: int, dtype: str = "u32") -> Any:
        """A VGPR as an array of waves x lanes."""
        return from_bytes(dtype, [self.waves, self.wave_size], self.session.vgpr(number))

    def sgpr(self, number: int) -> Any:
        """An SGPR as an array with one element per wave."""
        values = self.session.sgpr(number)
        data = b"".join(value.to_bytes(4, "little") for value in values)
        return from_bytes("u32", [len(values)], data)

    @property
    def exec(self) -> Any:
        """EXEC as an array of waves x lanes of 0 and 1."""
        rows = [[mask >> lane & 1 for lane in range(self.wave_size)] for mask in self.session.exec]
        return from_bytes("u8", [self.waves, self.wave_size], bytes(bit for row in rows for bit in row))

    def argument(self, name: str) -> Any:
        """The current contents of an argument."""
        return from_bytes(*self.session.argument(name))

    @property
    def lds(self) -> Any:
        """LDS of the workgroup as bytes."""
        data = self.session.lds
        return from_bytes("u8", [len(data)], data)

    def where(self, wave: Optional[int] = None) -> str:
        """The instruction that a wave executes next; without a wave, that of the next step."""
        wave = self.session.next_wave if wave is None else wave
        if wave is None:
            return "the run has ended"
        line, text = self.session.instruction(self.session.pcs[wave])
        return text if line is None else f"line {line}: {text}"

    def __repr__(self) -> str:
        return f"<wavesim.Debugger time {self.time}: {self.where()}>"

    def _repr_html_(self) -> str:
        return _html.debugger(self)


class Instruction(NamedTuple):
    """A disassembled instruction."""

    address: int
    text: str
    size: int
    """Size in bytes."""
    valid: bool
    """Whether the bytes are a valid instruction."""
    label: Optional[str]
    """Label at this address: a symbol, or a generated name of a branch target."""

    def __str__(self) -> str:
        return f"{self.address:08x}  {self.text}"


def assemble(text: str, target: Optional[str] = None, wave: Optional[int] = None, name: str = "<text>") -> bytes:
    """Assembles text in LLVM's syntax to a code object if it has kernels, otherwise to machine code."""
    return _native.assemble(text, target, wave, name)


def disassemble(code: bytes, target: Optional[str] = None, wave: Optional[int] = None) -> list:
    """Returns the instructions of machine code or of a code object."""
    return [Instruction(*row) for row in _native.disassemble(bytes(code), target, wave)]
