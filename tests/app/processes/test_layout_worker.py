"""The layout worker: answers on the window's thread, only the newest, and survives a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.processes.layout_worker import WORKERS, LayoutWorker


@pytest.fixture
def worker(qtbot):
    worker = LayoutWorker()
    yield worker
    worker.close()


def answer(qtbot, worker: LayoutWorker, function, *arguments) -> object:
    got: list[object] = []
    worker.submit("a", function, *arguments, then=got.append)
    qtbot.waitUntil(lambda: bool(got), timeout=30_000)
    return got[0]


def test_the_work_is_done_in_another_process(qtbot, worker):
    assert answer(qtbot, worker, os.getpid) != os.getpid()


def test_only_the_newest_request_is_answered(qtbot, worker):
    got: list[object] = []
    worker.submit("a", int, "1", then=got.append)
    worker.submit("a", int, "2", then=got.append)
    worker.submit("b", int, "3", then=got.append)
    qtbot.waitUntil(lambda: len(got) == 2, timeout=30_000)
    assert set(got) == {2, 3}  # two workers answer in any order


def test_what_is_cancelled_is_not_answered(qtbot, worker):
    got: list[object] = []
    worker.submit("a", int, "1", then=got.append)
    worker.cancel("a")
    worker.cancel("b")
    worker.submit("b", int, "2", then=got.append)
    qtbot.waitUntil(lambda: bool(got), timeout=30_000)
    assert got == [2]


def test_a_superseded_request_never_runs(qtbot, worker, tmp_path):
    """Both workers are held; of ten requests of one slot only the last is run."""
    pipes = [tmp_path / f"pipe{i}" for i in range(WORKERS)]
    for pipe in pipes:
        os.mkfifo(pipe)
        worker.submit(pipe.name, Path.read_text, pipe, then=lambda _: None)
    writers = [pipe.open("w") for pipe in pipes]  # returns when the worker reads
    got: list[object] = []
    for i in range(10):
        worker.submit("a", Path.touch, tmp_path / f"ran{i}", then=got.append)
    for writer in writers:
        writer.close()
    qtbot.waitUntil(lambda: bool(got), timeout=30_000)
    assert [path.name for path in tmp_path.glob("ran*")] == ["ran9"]


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_to_close_with_superseded_and_unsent_requests(qtbot, worker):
    """8 MB are on their way to a worker, others wait, and some are superseded."""
    megabytes = bytes(8_000_000)
    process = answer(qtbot, worker, os.getpid)
    for slot in "abcd":
        worker.submit(slot, len, megabytes, then=lambda _: None)
        worker.submit(slot, len, megabytes, then=lambda _: None)
    worker.cancel("b")
    worker.close()
    assert isinstance(process, int) and not psutil.pid_exists(process)


def test_a_result_that_cannot_be_pickled_is_an_error(qtbot, worker):
    errors: list[BaseException] = []
    worker.submit("a", open, os.devnull, then=lambda _: None, otherwise=errors.append)
    qtbot.waitUntil(lambda: bool(errors), timeout=30_000)
    assert isinstance(errors[0], TypeError)
    assert answer(qtbot, worker, int, "6") == 6


def test_arguments_that_cannot_be_pickled_are_an_error(qtbot, worker):
    with qtbot.waitSignal(worker.failed, timeout=30_000) as told:
        worker.submit("a", len, (i for i in "no generator can be pickled"), then=lambda _: None)
    assert "pickle" in told.args[0]
    assert answer(qtbot, worker, int, "7") == 7


def test_what_nobody_waits_for_holds_nothing_up(qtbot, worker, tmp_path):
    """The first request goes on until the second, which came after it, has been answered."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[object] = []
    worker.submit("a", Path.read_text, pipe, then=got.append)  # reads until somebody writes
    worker.submit("a", int, "2", then=got.append)
    qtbot.waitUntil(lambda: bool(got), timeout=30_000)
    assert got == [2]
    pipe.write_text("end")


def test_to_close_does_not_wait_for_what_is_under_way(qtbot, worker, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = answer(qtbot, worker, os.getpid)
    worker.submit("a", Path.read_text, pipe, then=lambda _: None)  # reads until somebody writes
    worker.close()
    assert isinstance(process, int) and not psutil.pid_exists(process)


def test_a_request_may_say_what_is_to_be_done_when_it_fails(qtbot, worker):
    told: list[str] = []
    errors: list[BaseException] = []
    worker.failed.connect(told.append)
    worker.submit("a", int, "x", then=lambda _: None, otherwise=errors.append)
    qtbot.waitUntil(lambda: bool(errors), timeout=30_000)
    assert isinstance(errors[0], ValueError) and not told


def test_an_error_is_told_and_the_next_request_served(qtbot, worker):
    with qtbot.waitSignal(worker.failed, timeout=30_000) as told:
        worker.submit("a", int, "x", then=lambda _: None)
    assert "invalid literal" in told.args[0]
    assert answer(qtbot, worker, int, "4") == 4


def test_a_worker_that_dies_is_replaced(qtbot, worker):
    with qtbot.waitSignal(worker.failed, timeout=30_000):
        worker.submit("a", os._exit, 3, then=lambda _: None)
    assert answer(qtbot, worker, int, "5") == 5


_WINDOW = """
import os
from PySide6.QtCore import QCoreApplication
from app.processes.layout_worker import LayoutWorker

if __name__ == "__main__":
    application = QCoreApplication([])
    worker = LayoutWorker()
    worker.submit("a", os.getpid, then=lambda pid: print(pid, flush=True))
    application.exec()
"""


def test_the_worker_ends_when_the_window_is_killed(tmp_path):
    script = tmp_path / "window.py"
    script.write_text(_WINDOW)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    window = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert window.stdout is not None
    worker = psutil.Process(int(window.stdout.readline()))
    window.kill()
    window.wait()
    window.stdout.close()
    worker.wait(timeout=30)
    assert not worker.is_running()
