"""Native module of wavesim. Use the package's public API, which is built on these classes."""

from typing import Any, Optional, Sequence

__version__: str
VARIABLES: list[tuple[str, str]]
"""Name and description of each environment variable."""

def command(arguments: Sequence[str]) -> int:
    """Runs the command ``wavesim``; the first argument is the program's name. Returns the exit code."""

_Case = tuple[str, str, str, int, list[str], bool]
"""Name, kernel, target, hash of the kernel, arguments of the command, whether it writes a log in SARIF."""
_Record = tuple[tuple[str, str, str, int], tuple[str, int, float, int], tuple[str, str, str]]
"""Name, kernel, target, hash; status, exit code, seconds, kilobytes; output, messages, SARIF."""

def cases(plan: str, folder: str, is_json: bool, shard: str) -> tuple[str, tuple[float, int], bool, list[_Case]]:
    """Returns the name of a plan, its limits, whether all outputs are kept, and the cases of a shard."""

def run_case(
    program: list[str], case: _Case, limits: tuple[float, int], keep_all: bool, scratch: str
) -> _Record:
    """Runs a case in a process."""

class Results:
    """The database of a campaign."""

    def __init__(self, path: str) -> None: ...
    def name(self, name: str) -> None: ...
    def done(self) -> dict[str, int]: ...
    def write(self, records: list[_Record]) -> None: ...
    def json(self) -> str: ...

def observe_text(
    text: str,
    name: str,
    target: Optional[str],
    wave: Optional[int],
    seed: int,
    inputs: list[tuple[str, bytes]],
    check: str,
    max_instructions: int,
) -> tuple[str, str]:
    """Returns the part of a run in a report as JSON, and the report in HTML."""

def explore_text(
    text: str,
    name: str,
    target: Optional[str],
    wave: Optional[int],
    seed: int,
    inputs: list[tuple[str, bytes]],
    max_instructions: int,
    schedules: int,
    depth: int,
    first_seed: int,
    tolerance: float,
    delays: bool,
    all: bool,
) -> Exploration:
    """Runs a text kernel in random orders of its waves."""

class Error(RuntimeError):
    """An error of wavesim."""

class Fault(Error):
    """A kernel faulted."""

    kind: str
    message: str
    file: Optional[str]
    line: Optional[int]
    pc: int
    instruction: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: Optional[int]
    address: Optional[int]
    kernel: str
    launch: int

class Finding:
    """An error found by a check. `str()` returns the report."""

    @property
    def check(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def file(self) -> Optional[str]: ...
    @property
    def line(self) -> Optional[int]: ...
    @property
    def pc(self) -> int: ...
    @property
    def instruction(self) -> str: ...
    @property
    def workgroup(self) -> tuple[int, int, int]: ...
    @property
    def wave(self) -> int: ...
    @property
    def lane(self) -> Optional[int]: ...
    @property
    def address(self) -> Optional[int]: ...
    @property
    def hint(self) -> Optional[str]: ...
    @property
    def count(self) -> int: ...

class Exploration:
    """Result of an exploration. It is true if every schedule has the results of the first run."""

    @property
    def schedules(self) -> int: ...
    @property
    def outcomes(self) -> list[tuple[str, int]]: ...
    @property
    def found(self) -> Optional[int]: ...
    @property
    def difference(self) -> str: ...
    @property
    def probability(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def waves(self) -> int: ...
    def __bool__(self) -> bool: ...

class Outcome:
    """Result of a launch that ended without a fault."""

    @property
    def instructions(self) -> int: ...
    @property
    def waves(self) -> int: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def report(self) -> str: ...
    @property
    def profile(self) -> Optional[Any]: ...

class Device:
    """A simulated GPU."""

    def __init__(self, target: Optional[str] = None) -> None: ...
    @property
    def target(self) -> str: ...
    @property
    def arch(self) -> str: ...
    @property
    def wave_size(self) -> int: ...
    @property
    def lds_bytes(self) -> int: ...
    @property
    def launches(self) -> int: ...
    @property
    def predicted_nanoseconds(self) -> Optional[int]: ...
    @property
    def checks(self) -> list[str]: ...
    def cancel(self) -> None: ...
    def load(self, object: bytes) -> Module: ...
    def alloc(self, size: int, name: str = "allocation") -> int: ...
    def free(self, address: int) -> None: ...
    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...
    def map(
        self,
        address: int,
        size: int,
        writable: bool = True,
        name: str = "mapped memory",
        owner: Optional[object] = None,
    ) -> None: ...
    def map_all(self, ranges: Sequence[tuple[int, int]]) -> None: ...
    def unmap(self, address: int) -> None: ...
    def set_bounds(self, bounds: str) -> None: ...
    def launch_raw(
        self,
        code: bytes,
        code_address: int,
        grid: Sequence[int],
        block: Sequence[int],
        user_sgprs: Sequence[int],
        rsrc1: int,
        rsrc2: int,
        scratch: int = 0,
        wave_size: int = 32,
    ) -> Outcome: ...

class Module:
    """A loaded code object."""

    def kernels(self) -> list[str]: ...
    def kernel(self, name: Optional[str] = None) -> Kernel: ...
    def variables(self) -> list[str]: ...
    def variable(self, name: str) -> tuple[int, int]: ...

class Kernel:
    """A kernel of a module."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> list[tuple[Optional[str], str, int, int]]: ...
    @property
    def source_name(self) -> str: ...
    @property
    def signature(self) -> list[str]: ...
    def mismatch(self, index: int, dtype: str) -> Optional[str]: ...
    @property
    def lds_bytes(self) -> int: ...
    @property
    def scratch_bytes(self) -> int: ...
    @property
    def wave_size(self) -> int: ...
    @property
    def vgprs(self) -> int: ...
    @property
    def kernarg_bytes(self) -> int: ...
    def lay_out(self, arguments: Sequence[object]) -> tuple[bytes, int]: ...
    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        kernarg: bytes,
        memory: Sequence[tuple[int, int, bool, str]] = ...,
        lds: int = 0,
        check: Optional[str] = None,
        max_instructions: Optional[int] = None,
        threads: Optional[int] = None,
        cooperative: bool = False,
        cluster: Optional[Sequence[int]] = None,
        profile: Optional[str] = None,
    ) -> Outcome: ...
    def explore(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        kernarg: bytes,
        memory: Sequence[tuple[int, int, bool, str]],
        lds: int,
        cluster: Optional[Sequence[int]],
        max_instructions: Optional[int],
        schedules: int,
        depth: int,
        first_seed: int,
        tolerance: float,
        delays: bool,
        all: bool,
    ) -> Exploration: ...

class Session:
    """A debug session."""

    def __init__(
        self,
        text: str,
        name: str,
        target: Optional[str],
        wave: Optional[int],
        seed: int,
        inputs: Sequence[tuple[str, bytes]],
        max_instructions: int,
    ) -> None: ...
    def step(self, count: int = 1, wave: Optional[int] = None) -> int: ...
    def go_to(self, time: int) -> None: ...
    def execute(self, command: str) -> str: ...
    @property
    def time(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    @property
    def waves(self) -> int: ...
    @property
    def workgroup(self) -> tuple[int, int, int]: ...
    @property
    def wave_size(self) -> int: ...
    @property
    def next_wave(self) -> Optional[int]: ...
    @property
    def pcs(self) -> list[int]: ...
    @property
    def states(self) -> list[str]: ...
    @property
    def exec(self) -> list[int]: ...
    def instruction(self, pc: int) -> tuple[Optional[int], str]: ...
    def vgpr(self, number: int) -> bytes: ...
    def sgpr(self, code: int) -> list[int]: ...
    def argument(self, name: str) -> tuple[str, list[int], bytes]: ...
    @property
    def lds(self) -> bytes: ...

def run_text(
    text: str,
    name: str,
    target: Optional[str],
    wave: Optional[int],
    seed: int,
    inputs: Sequence[tuple[str, bytes]],
    check: Optional[str],
    trace: bool,
    max_instructions: int,
    threads: Optional[int],
    profile: Optional[str],
) -> tuple[Outcome, list[tuple[str, str, list[int], bytes]], Optional[bytes]]: ...
def assemble(
    text: str, target: Optional[str] = None, wave: Optional[int] = None, name: str = "<text>"
) -> bytes: ...
def disassemble(
    code: bytes, target: Optional[str] = None, wave: Optional[int] = None
) -> list[tuple[int, str, int, bool, Optional[str]]]: ...
