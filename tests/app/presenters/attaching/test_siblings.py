"""Which other ranks of a run are called: without processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from PySide6.QtCore import QObject, Signal

from app.presenters.attaching import siblings as module
from app.presenters.attaching.siblings import LOOK_MS, Siblings, way_to
from engine.connecting.greeting import About, Unwelcome
from engine.system.program import version


def rank(number: int, of: int = 3, group: str = "g") -> About:
    return About(name="r", pid=10 + number, rank=number, world_size=of, group=group)


class Asked(QObject):
    """Keeps the calls that it is asked for; the test answers."""

    answered = Signal(object)
    failed = Signal(object)
    made: ClassVar[list[Asked]] = []

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.ways: list[Any] = []
        Asked.made.append(self)

    def call(self, way: Any) -> None:
        self.ways.append(way)


class Desk:
    def __init__(self, bench: Any) -> None:
        self.siblings = Siblings(bench.window)
        self.timer = self.siblings._timer
        self.heard: list[int] = []
        self.closed: list[int] = []
        self.siblings.called.connect(lambda call: self.heard.append(call.welcome.about.rank))

    def call_of(self, about: About) -> Any:
        connection = SimpleNamespace(close=lambda: self.closed.append(about.rank))
        return SimpleNamespace(welcome=SimpleNamespace(about=about), connection=connection)


@pytest.fixture
def listens(monkeypatch: pytest.MonkeyPatch) -> list[About]:
    """The processes that listen on this machine."""
    found: list[About] = []
    monkeypatch.setattr(
        "engine.connecting.places.listening", lambda: [(about, None) for about in found]
    )
    monkeypatch.setattr(module, "Calling", Asked)
    monkeypatch.setattr(module, "way_to", lambda pid: pid)
    Asked.made = []
    return found


@pytest.fixture
def desk(bench, listens: list[About]) -> Desk:
    return Desk(bench)


def called() -> list[Any]:
    return [way for each in Asked.made for way in each.ways]


def test_the_ranks_of_the_run_on_this_machine_are_called_once_each(desk: Desk, listens) -> None:
    listens += [rank(0), rank(1), rank(2, group="other")]
    desk.siblings.find(rank(0))
    assert called() == [11]
    assert desk.timer.isActive() and desk.timer.interval() == LOOK_MS
    desk.timer.timeout.emit()
    assert len(called()) == 1  # it is being called
    Asked.made[0].answered.emit(desk.call_of(rank(1)))
    assert desk.heard == [1] and desk.closed == []
    listens[2] = rank(2)
    desk.timer.timeout.emit()
    assert called()[1:] == [12] and desk.timer.isActive()
    Asked.made[1].failed.emit(Unwelcome("No."))
    desk.timer.timeout.emit()
    assert called()[2:] == [12]  # again
    Asked.made[2].answered.emit(desk.call_of(rank(2)))
    assert desk.heard == [1, 2]
    desk.timer.timeout.emit()
    assert len(called()) == 3 and not desk.timer.isActive()  # all are found


def test_a_process_that_is_of_another_run_by_now_is_left(desk: Desk, listens) -> None:
    listens += [rank(1)]
    desk.siblings.find(rank(0))
    Asked.made[0].answered.emit(desk.call_of(rank(1, group="next")))
    assert desk.heard == [] and desk.closed == [1]
    desk.timer.timeout.emit()
    assert called()[1:] == [11]  # another process may be that rank by now


def test_a_rank_of_no_group_has_no_siblings_to_find(desk: Desk, listens) -> None:
    listens += [rank(1, group="")]
    desk.siblings.find(rank(0, group=""))
    assert called() == [] and not desk.timer.isActive()


def test_a_folder_that_cannot_be_read_is_told_elsewhere(desk: Desk, monkeypatch) -> None:
    def refuse() -> list:
        raise OSError("no")

    monkeypatch.setattr("engine.connecting.places.listening", refuse)
    desk.siblings.find(rank(0))
    assert called() == [] and desk.timer.isActive()


def test_what_is_forgotten_is_looked_for_no_more(desk: Desk, listens) -> None:
    listens += [rank(1)]
    desk.siblings.find(rank(0))
    desk.siblings.forget()
    assert not desk.timer.isActive()
    Asked.made[0].answered.emit(desk.call_of(rank(1)))
    assert desk.heard == [] and desk.closed == [1]


# -- calling one -----------------------------------------------------------------------------------


def test_a_rank_is_called_until_it_lets_the_window_steer(monkeypatch) -> None:
    closed: list[str] = []
    roles = iter(("watch", "watch", "steer"))

    def dial(*asked: str) -> Any:
        role = next(roles)
        connection = SimpleNamespace(close=lambda: closed.append(role))
        return SimpleNamespace(
            welcome=SimpleNamespace(role=role), connection=connection, asked=asked
        )

    monkeypatch.setattr("engine.connecting.dialing.dial", dial)
    now_s = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now_s[0], sleep=lambda s: now_s.__setitem__(0, now_s[0] + s)
    )
    monkeypatch.setattr(module, "time", clock)
    call: Any = way_to(7)()
    assert (call.welcome.role, call.asked) == ("steer", ("7", version()))
    assert closed == ["watch", "watch"] and 0 < now_s[0] < module.FREE_S


def test_a_rank_that_another_window_steers_is_watched(monkeypatch) -> None:
    call = SimpleNamespace(
        welcome=SimpleNamespace(role="watch"), connection=SimpleNamespace(close=lambda: None)
    )
    monkeypatch.setattr("engine.connecting.dialing.dial", lambda *_: call)
    now_s = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now_s[0], sleep=lambda s: now_s.__setitem__(0, now_s[0] + s)
    )
    monkeypatch.setattr(module, "time", clock)
    assert way_to(7)() is call
    assert now_s[0] > module.FREE_S
