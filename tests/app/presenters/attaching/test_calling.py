"""Another process is asked on a thread: only the last question is answered."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from app.presenters.attaching.calling import Asking, Calling
from engine.connecting.greeting import Unwelcome


class Answers:
    def __init__(self, asking: Asking) -> None:
        self.told: list[Any] = []
        asking.answered.connect(lambda answer: self.told.append(("answered", answer)))
        asking.failed.connect(lambda error: self.told.append(("failed", str(error))))


def refuse() -> Any:
    raise Unwelcome("Nobody is there.")


@pytest.mark.parametrize("kind", [Asking, Calling])
def test_an_answer_or_a_refusal_comes_to_the_window_s_thread(bench, qtbot, kind) -> None:
    asking = kind(bench.window)
    answers = Answers(asking)
    threads: list[int] = []

    def way() -> Any:
        threads.append(threading.get_ident())
        return "here"

    asking.ask(way)
    qtbot.waitUntil(lambda: len(answers.told) == 1)
    asking.ask(refuse)
    qtbot.waitUntil(lambda: len(answers.told) == 2)
    assert answers.told == [("answered", "here"), ("failed", "Nobody is there.")]
    assert threads != [threading.get_ident()]


def test_a_call_that_nobody_wants_any_more_is_hung_up(bench, qtbot) -> None:
    calling = Calling(bench.window)
    answers, closed, go_on = Answers(calling), list[bool](), threading.Event()
    late = SimpleNamespace(connection=SimpleNamespace(close=lambda: closed.append(True)))

    def slow() -> Any:
        go_on.wait(60)
        return late

    calling.call(slow)
    calling.ask(lambda: "second")
    qtbot.waitUntil(lambda: len(answers.told) == 1)
    go_on.set()
    qtbot.waitUntil(lambda: closed == [True])
    assert answers.told == [("answered", "second")]


def test_a_refusal_that_comes_late_is_not_told(bench, qtbot) -> None:
    calling = Calling(bench.window)
    answers, go_on = Answers(calling), threading.Event()
    ended: list[bool] = []

    def slow() -> Any:
        go_on.wait(60)
        ended.append(True)
        return refuse()

    calling.ask(slow)
    calling.ask(lambda: "second")
    qtbot.waitUntil(lambda: len(answers.told) == 1)
    go_on.set()
    qtbot.waitUntil(lambda: ended == [True])
    calling.ask(lambda: "third")
    qtbot.waitUntil(lambda: len(answers.told) == 2)
    assert [told for told, _ in answers.told] == ["answered", "answered"]
