"""How processes end, told from outside, against what their parent is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from engine.process import exit_codes
from engine.process.exit_codes import ExitCode

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
WAIT_S = 60


def waiting() -> subprocess.Popen[bytes]:
    """It ends with what it reads as its exit code."""
    return subprocess.Popen(["/bin/sh", "-c", "read code; exit $code"], stdin=subprocess.PIPE)


def told_after_the_parent(pid: int) -> bool:
    return ExitCode(pid)._ask() is not None


def test_one_that_runs_has_none() -> None:
    with waiting() as process:
        found = ExitCode(process.pid)
        assert found.read() is None and found.wait(0.0) is None
        process.kill()


@pytest.mark.parametrize("code", [0, 7, -signal.SIGKILL])
def test_it_is_told_before_and_after_the_parent_has_asked(code: int) -> None:
    process = waiting()
    found = ExitCode(process.pid)
    tells = told_after_the_parent(process.pid)
    if code < 0:
        process.kill()
    assert process.stdin is not None
    process.stdin.write(b"%d\n" % max(code, 0)) if code >= 0 else None
    process.stdin.close()
    assert found.wait(WAIT_S) == code  # nobody has asked yet: it is a zombie
    assert process.wait() == code
    assert found.wait(WAIT_S) == (code if tells else None)


def test_between_two_looks_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    process, slept = waiting(), []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now

    monkeypatch.setattr(exit_codes.time, "sleep", sleep)
    try:
        assert ExitCode(process.pid).wait(5.0) == -signal.SIGKILL
    finally:
        process.kill()
        process.communicate()
    assert slept == [exit_codes._LOOK_S]


def test_one_that_is_not_there_is_not_waited_for() -> None:
    process = waiting()
    process.kill()
    process.communicate()
    assert ExitCode(process.pid).wait(WAIT_S) is None


def test_nothing_stays_open() -> None:
    found = ExitCode(os.getpid())
    if found._descriptor < 0:
        pytest.skip("this system tells of no process by a descriptor")
    path = f"/proc/self/fd/{found._descriptor}"
    assert "pidfd" in os.readlink(path)
    del found
    assert not os.path.lexists(path)
