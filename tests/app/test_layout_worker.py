"""The layout worker: answers on the window's thread, only the newest, and survives a failure."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from app.layout_worker import LayoutWorker


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
    assert got == [2, 3]


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
from app.layout_worker import LayoutWorker

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
