"""Runs of pytest in copies of the program, in processes forked from this one: what it has loaded,
torch and Qt, they have too."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

CODE = ["app", "widgets", "engine"]
_ROOT = Path(__file__).parents[2]
_WALL_S, _TEST_S, _CPU_S = 1800, 600, 60
_DATA_BYTES = 8 << 30
"""More, and a mutant that fills the memory would end its neighbours."""


class Report:
    """Seconds of the tests that passed, and those that did not, as pytest tells them."""

    def __init__(self) -> None:
        self.passed: dict[str, float] = {}
        self.failed: list[str] = []
        self._seconds = 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds = report.duration + (self._seconds if report.when != "setup" else 0)
        if report.failed:
            self.failed.append(report.nodeid)
            self.passed.pop(report.nodeid, None)
        elif report.passed and (report.when == "call" or report.nodeid in self.passed):
            self.passed[report.nodeid] = self._seconds

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


@dataclass
class Job:
    """Pytest with these arguments in a copy that `prepare` makes ready."""

    arguments: list[str]
    seconds: float
    """What its tests take; a loop without an end is ended after a few times as much."""
    prepare: Callable[[Path], None]
    done: Callable[[Path, Report, str], None]
    """Called with the copy, the report, and how the process ended: empty if all is well."""


def run_all(jobs: Iterable[Job], copies: list[Path]) -> None:
    """Run the jobs, one at a time in each copy."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans of tests are ours
    waiting, free = iter(jobs), list(copies)
    running: dict[int, tuple[Job, Path, float]] = {}
    while True:
        while free and (job := next(waiting, None)):
            copy = free.pop()
            job.prepare(copy)
            pid = os.fork()
            if not pid:
                os._exit(_pytest(copy, job))
            running[pid] = job, copy, time.monotonic() + _WALL_S
        if not running:
            return
        ended, status = _wait(min(limit for *_, limit in running.values()))
        for pid, (*_, limit) in running.items():
            if not ended and time.monotonic() > limit:
                os.kill(pid, signal.SIGKILL)
        if ended in running:
            job, copy, limit = running.pop(ended)
            _end_what_is_left(ended, copy)
            code = os.waitstatus_to_exitcode(status)
            end = f"exit {code}" if code >= 0 else f"signal {-code}"
            end = "timed out" if code < 0 and time.monotonic() > limit else end
            job.done(copy, _report(copy), "" if code == 0 else end)
            free.append(copy)


def _wait(until: float) -> tuple[int, int]:
    """The next child that ends, and its status; 0 if none does in time."""

    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 0.1))
    try:
        return os.waitpid(-1, 0)
    except TimeoutError:
        return 0, 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end_what_is_left(pid: int, copy: Path) -> None:
    """End the processes that the tests in this copy started and left behind."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, ProcessLookupError):
            own = process.environ().get("TENSORLAB_COPY") == str(copy)
            if own or os.getsid(process.pid) == pid:
                process.kill()


def _report(copy: Path) -> Report:
    report = Report()
    with suppress(FileNotFoundError):  # the process ended before it was written
        vars(report).update(json.loads((copy / "report.json").read_text()))
        (copy / "report.json").unlink()
    return report


def _pytest(copy: Path, job: Job) -> int:
    """In the forked process: its exit code."""
    try:
        os.setsid()
        os.chdir(copy)
        os.environ["TENSORLAB_COPY"] = str(copy)
        output = os.open(copy / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for standard, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
            os.dup2(descriptor, standard)
        cpu_s = int(_CPU_S + 5 * job.seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
        ours = {str(_ROOT), str(Path(__file__).parent)}
        sys.path[:] = [str(copy), *(path for path in sys.path if path not in ours)]
        for name in [name for name in sys.modules if name.split(".")[0] in (*CODE, "tests")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        report = Report()
        code = pytest.main(
            ["-q", "--assert=plain", "-p", "no:cacheprovider", f"--timeout={_TEST_S}",
             f"--rootdir={copy}", f"--basetemp={copy / 'temporary'}", *job.arguments],
            plugins=[report],
        )  # fmt: skip
        (copy / "report.json").write_text(json.dumps(vars(report)))
        return int(code)
    except BaseException:
        traceback.print_exc()
        return 70
