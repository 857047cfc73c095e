"""The layout worker: answers on the window's thread, only the newest, and survives a failure."""

from __future__ import annotations

import os

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
