"""Work of the lab's between two instructions of the main thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from engine.system.interjections import SIGNAL, Interjections

WAIT_S = 60
pytestmark = pytest.mark.filterwarnings("ignore:Exception in thread interjections")
"""By which the threads end."""


@pytest.fixture
def make() -> Iterator[Callable[..., Interjections]]:
    """Make some; at the end their threads end, and the signal has the handler of before."""
    before, made, ended = signal.getsignal(SIGNAL), [], threading.Event()

    def new(is_wanted: Callable[[], bool], act: Callable[[], object]) -> Interjections:
        def is_wanted_until_the_end() -> bool:
            if ended.is_set():
                raise SystemExit
            return is_wanted()

        made.append(Interjections(is_wanted_until_the_end, act))
        return made[-1]

    yield new
    ended.set()
    for each in made:
        each.wanted()
    signal.signal(SIGNAL, before)


def test_nothing_is_asked_until_something_is_wanted(make):
    asked: list[int] = []
    has_asked = threading.Event()

    def is_wanted() -> bool:
        asked.append(threading.get_ident())
        has_asked.set()
        return False

    acted: list[int] = []
    interjections = make(is_wanted, lambda: acted.append(1))
    for _ in range(3):
        interjections.wanted()
        assert has_asked.wait(WAIT_S)
        has_asked.clear()
    assert len(asked) == 3 and threading.get_ident() not in asked
    assert acted == []


def test_the_main_thread_acts_until_no_more_is_wanted(make):
    left, acted = [3], []

    def act() -> None:
        acted.append(threading.current_thread())
        left[0] -= 1

    interjections = make(lambda: left[0] > 0, act)
    interjections.wanted()
    ended = threading.Event()
    while left[0] > 0:
        assert not ended.wait(0.001)
    assert acted == [threading.main_thread()] * 3


def test_a_cell_that_takes_the_signal_is_not_disturbed(make):
    own: list[int] = []
    asked = threading.Event()
    acted: list[int] = []
    interjections = make(lambda: asked.set() or True, lambda: acted.append(1))
    signal.signal(SIGNAL, lambda *_: own.append(1))
    for _ in range(2):
        interjections.wanted()
        assert asked.wait(WAIT_S)
        asked.clear()
    assert own == acted == []


def test_a_forked_worker_does_not_act(make, monkeypatch):
    acted: list[int] = []
    interjections = make(lambda: False, lambda: acted.append(1))
    signal.raise_signal(SIGNAL)
    assert acted == [1]
    monkeypatch.setattr(interjections, "_process", os.getpid() + 1)
    signal.raise_signal(SIGNAL)
    assert acted == [1]
