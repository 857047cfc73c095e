"""Processes forked from this one: what it has loaded, they have, too."""

from __future__ import annotations

import ctypes
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

import psutil


def adopt_orphans() -> None:
    """From now on this process is the parent of those that its children leave behind."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def start(work: Callable[[], int]) -> int:
    """A process that exits with what the work returns; its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def end_of(pid: int, wall_s: float) -> str:
    """Wait for the process, and end what it left behind. How it ended: empty if it is well."""

    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, wall_s)
    begun_s = time.monotonic()
    try:
        code = os.waitstatus_to_exitcode(_status_of(pid))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return f"no end in {time.monotonic() - begun_s:.0f} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end_children()
    return "" if not code else f"exit {code}" if code > 0 else f"signal {-code}"


def _status_of(pid: int) -> int:
    """Wait for the process, and take note of each orphan that ends before: a test would wait for
    one that nobody has noted."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return status


def _end_children() -> None:
    left = psutil.Process().children(recursive=True)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left)
