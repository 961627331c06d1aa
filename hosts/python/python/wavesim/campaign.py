"""Campaigns: many cases on any executor, with their results in a database.

    from concurrent.futures import ProcessPoolExecutor
    from wavesim import campaign

    with ProcessPoolExecutor(8) as pool:
        report = campaign.run("plan.toml", executor=pool, results="results.db")

An executor is anything with the interface of `concurrent.futures.Executor`: a pool of threads or processes,
`mpi4py.futures.MPIPoolExecutor`, or `RayExecutor` of this module; or a Dask client. Each case is a process, wherever it
runs.
The database is that of `wavesim campaign`, whose subcommands report it.
"""

from __future__ import annotations

import concurrent.futures as futures
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Optional, Union

from . import _native
from ._native import Error

__all__ = ["RayExecutor", "Report", "run"]


class Report:
    """Results of a campaign."""

    def __init__(self, value: dict, done: int, known: int) -> None:
        self.name: str = value["name"]
        self.counts: dict = value["counts"]
        """Numbers of cases by status: passed, failed, invalid, timeout, crashed."""
        self.cases: list = value["cases"]
        """A dictionary for each case: name, kernel, status, code, seconds, memory_kb, output, messages."""
        self.done = done
        """Number of cases that this call has run."""
        self.known = known
        """Number of cases that had a result before."""

    @property
    def passed(self) -> bool:
        """Whether all cases have passed."""
        return all(count == 0 for status, count in self.counts.items() if status != "passed")

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"<wavesim.campaign.Report {self.name}: {counts}>"


class RayExecutor(futures.Executor):
    """Runs functions as tasks of Ray, to which the program is connected (`ray.init()`).

    `options` are those of `ray.remote`, such as `num_cpus` or `resources`. A task whose worker is lost fails: a campaign
    runs its case again.
    """

    def __init__(self, **options: Any) -> None:
        import ray

        self._call = ray.remote(**{"num_cpus": 1, "max_retries": 0, **options})(_call)

    def submit(self, function: Callable, /, *args: Any, **named: Any) -> futures.Future:
        """Starts `function(*args, **named)` on a worker."""
        return self._call.remote(function, args, named).future()


def _call(function: Callable, args: tuple, named: dict) -> Any:
    return function(*args, **named)


def _case(case: tuple, limits: tuple, keep_all: bool) -> tuple:
    """Runs a case in a process of its own; on a worker."""
    with tempfile.TemporaryDirectory(prefix="wavesim-") as folder:
        program = [sys.executable, "-m", "wavesim"]
        return _native.run_case(program, case, limits, keep_all, os.path.join(folder, "log.sarif"))


def run(
    plan: Union[str, os.PathLike, dict],
    executor: Any = None,
    *,
    results: Union[str, os.PathLike],
    shard: str = "1/1",
    retries: int = 2,
    window: int = 256,
    progress: Optional[Callable[[int, int], Any]] = None,
) -> Report:
    """Runs the cases of a plan that have no result.

    `plan` is the path of a plan in TOML (docs/scaling.md), or a dictionary with the same keys, whose paths are relative to
    the current folder. `executor` is a `concurrent.futures.Executor`, a function that makes one, or a Dask client.
    Without one, cases run on as many threads as there are processors. At most `window`
    cases are submitted at a time. Results are stored as they arrive; a case whose worker is lost runs again, at most
    `retries` times. A pool that breaks with its worker, such as `ProcessPoolExecutor`, can only be replaced if
    `executor` is a function that makes one. `progress` is called with the numbers of results and of cases.
    """
    if isinstance(plan, dict):
        text, folder = json.dumps(plan), Path()
    else:
        path = Path(plan)
        try:
            text, folder = path.read_text(), path.parent
        except OSError as e:
            raise Error(f"{path}: {e.strerror}") from None
    name, limits, keep_all, cases = _native.cases(text, os.fspath(folder), isinstance(plan, dict), shard)
    # Workers may have another current folder.
    cases = [(*case[:4], [*case[4][:-1], os.path.abspath(case[4][-1])], case[5]) for case in cases]
    database = _native.Results(os.fspath(results))
    database.name(name or "campaign")
    stored = database.done()
    waiting = [case for case in cases if stored.get(case[0]) != case[3]]
    known, done, total = len(cases) - len(waiting), 0, len(cases)
    waiting.reverse()
    if hasattr(executor, "get_executor"):
        # A Dask client. Cases that repeat are lost workers, so that Dask need not retry.
        executor = executor.get_executor(pure=False, retries=0)
    make = executor if callable(executor) and not hasattr(executor, "submit") else None
    own = make() if make else executor
    threads = own is None
    if threads:
        own = futures.ThreadPoolExecutor(os.cpu_count())
    tries: dict = {}
    running: dict = {}
    try:
        while waiting or running:
            lost = None
            while waiting and len(running) < window and lost is None:
                case = waiting.pop()
                try:
                    running[own.submit(_case, case, limits, keep_all)] = case
                except futures.BrokenExecutor as e:
                    waiting.append(case)
                    lost = e
            ended, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
            records = []
            for future in ended:
                case = running.pop(future)
                try:
                    records.append(future.result())
                except Error:
                    raise
                except (Exception, futures.CancelledError) as e:
                    tries[case[0]] = tries.get(case[0], 0) + 1
                    if tries[case[0]] > retries:
                        raise Error(f"{case[0]}: no worker has returned a result: {e!r}") from e
                    waiting.append(case)
                    lost = e if isinstance(e, futures.BrokenExecutor) else lost
            database.write(records)
            done += len(records)
            if progress:
                progress(known + done, total)
            if lost is not None:
                if make is None:
                    raise Error("the executor is broken; give a function that makes one") from lost
                # Its other cases fail in the same way, and are no tries of theirs.
                waiting.extend(running.values())
                running.clear()
                own.shutdown(wait=False)
                own = make()
    finally:
        for future in running:
            future.cancel()
        if threads or make:
            own.shutdown(wait=True)
    return Report(json.loads(database.json()), done, known)
