"""Another process is called on a thread: only the last call counts."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from app.presenters.attaching.calling import Calling
from engine.connecting.greeting import Unwelcome


class Answers:
    def __init__(self, calling: Calling) -> None:
        self.told: list[Any] = []
        calling.answered.connect(lambda answer: self.told.append(("answered", answer)))
        calling.failed.connect(lambda error: self.told.append(("failed", str(error))))


def here() -> Any:
    return "here"


def refuse() -> Any:
    raise Unwelcome("Nobody is there.")


def test_an_answer_or_a_refusal_comes_to_the_window_s_thread(bench, qtbot) -> None:
    calling = Calling(bench.window)
    answers = Answers(calling)
    threads: list[int] = []

    def way() -> Any:
        threads.append(threading.get_ident())
        return here()

    calling.call(way)
    qtbot.waitUntil(lambda: len(answers.told) == 1)
    calling.call(refuse)
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
    calling.call(here)
    qtbot.waitUntil(lambda: len(answers.told) == 1)
    go_on.set()
    qtbot.waitUntil(lambda: closed == [True])
    assert answers.told == [("answered", "here")]


def test_a_refusal_that_comes_late_is_not_told(bench, qtbot) -> None:
    calling = Calling(bench.window)
    answers, go_on = Answers(calling), threading.Event()
    ended: list[bool] = []

    def slow() -> Any:
        go_on.wait(60)
        ended.append(True)
        return refuse()

    calling.call(slow)
    calling.call(here)
    qtbot.waitUntil(lambda: len(answers.told) == 1)
    go_on.set()
    qtbot.waitUntil(lambda: ended == [True])
    calling.call(here)
    qtbot.waitUntil(lambda: len(answers.told) == 2)
    assert [told for told, _ in answers.told] == ["answered", "answered"]
