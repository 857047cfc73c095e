"""Which other ranks of a run are called, where, and what is said of those that cannot be: without
processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from PySide6.QtCore import QObject, Signal

from app.presenters.attaching import siblings as module
from app.presenters.attaching.siblings import (
    LOOK_MS,
    LOOK_THERE_MS,
    MOST_LOOKS_THERE,
    Siblings,
    address_of,
    way_to,
)
from engine.connecting.engine_place import EnginePlace
from engine.connecting.greeting import About, Unwelcome
from engine.protocol import RankPlace, RankPlacesSnapshot

BOX = EnginePlace.on("box", "/usr/bin/python")


def rank(number: int, of: int = 3, group: str = "g") -> About:
    return About(name="r", pid=10 + number, rank=number, world_size=of, group=group)


class Asked(QObject):
    """Keeps what it is asked for; the test answers."""

    answered = Signal(object)
    failed = Signal(object)
    made: ClassVar[list[Asked]] = []

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.ways: list[Any] = []
        Asked.made.append(self)

    def ask(self, way: Any) -> None:
        self.ways.append(way)

    call = ask


class Desk:
    def __init__(self, bench: Any) -> None:
        self.siblings = Siblings(bench.settings, bench.window)
        self.timer = self.siblings._timer
        self.heard: list[int] = []
        self.told: list[str] = []
        self.closed: list[int] = []
        self.siblings.called.connect(lambda call: self.heard.append(call.welcome.about.rank))
        self.siblings.told.connect(lambda: self.told.append(self.siblings.problem))

    def call_of(self, about: About) -> Any:
        connection = SimpleNamespace(close=lambda: self.closed.append(about.rank))
        return SimpleNamespace(welcome=SimpleNamespace(about=about), connection=connection)

    def take(self, *places: RankPlace) -> None:
        self.siblings.take(RankPlacesSnapshot(places=places))


@pytest.fixture
def listens(monkeypatch: pytest.MonkeyPatch) -> list[About]:
    """The processes that listen on this machine."""
    found: list[About] = []
    monkeypatch.setattr(
        "engine.connecting.places.listening", lambda: [(about, None) for about in found]
    )
    monkeypatch.setattr(module, "Calling", Asked)
    monkeypatch.setattr(module, "Asking", Asked)
    monkeypatch.setattr(module, "way_to", lambda pid, place: (pid, place))
    Asked.made = []
    return found


@pytest.fixture
def desk(bench, listens: list[About]) -> Desk:
    return Desk(bench)


def called() -> list[Any]:
    return [way for each in Asked.made for way in each.ways]


def test_the_ranks_of_the_run_on_this_machine_are_called_once_each(desk: Desk, listens) -> None:
    listens += [rank(0), rank(1), rank(2, group="other")]
    desk.siblings.find(rank(0), None)
    assert called() == [(11, None)] and desk.siblings.where == "this machine"
    assert desk.timer.isActive() and desk.timer.interval() == LOOK_MS
    desk.timer.timeout.emit()
    assert len(called()) == 1  # it is being called
    Asked.made[0].answered.emit(desk.call_of(rank(1)))
    assert desk.heard == [1] and desk.closed == []
    listens[2] = rank(2)
    desk.timer.timeout.emit()
    assert called()[1:] == [(12, None)] and desk.timer.isActive()
    Asked.made[1].failed.emit(Unwelcome("No."))
    desk.timer.timeout.emit()
    assert called()[2:] == [(12, None)]  # again
    Asked.made[2].answered.emit(desk.call_of(rank(2)))
    assert desk.heard == [1, 2] and desk.told == []
    desk.timer.timeout.emit()
    assert len(called()) == 3 and not desk.timer.isActive()  # all are found


def test_a_process_that_is_of_another_run_by_now_is_left(desk: Desk, listens) -> None:
    listens += [rank(1)]
    desk.siblings.find(rank(0), None)
    Asked.made[0].answered.emit(desk.call_of(rank(1, group="next")))
    assert desk.heard == [] and desk.closed == [1]
    desk.timer.timeout.emit()
    assert called()[1:] == [(11, None)]  # another process may be that rank by now


def test_a_rank_of_no_group_has_no_siblings_to_find(desk: Desk, listens) -> None:
    listens += [rank(1, group="")]
    desk.siblings.find(rank(0, group=""), None)
    assert called() == [] and not desk.timer.isActive()


def test_a_folder_that_cannot_be_read_is_told_elsewhere(desk: Desk, monkeypatch) -> None:
    def refuse() -> list:
        raise OSError("no")

    monkeypatch.setattr("engine.connecting.places.listening", refuse)
    desk.siblings.find(rank(0), None)
    assert called() == [] and desk.timer.isActive() and desk.told == []


def test_what_is_forgotten_is_looked_for_no_more(desk: Desk, listens) -> None:
    listens += [rank(1)]
    desk.siblings.find(rank(0), None)
    desk.take(RankPlace(0, "here", 10, ""), RankPlace(2, "two", 12, ""))
    assert desk.siblings.elsewhere
    desk.siblings.forget()
    assert not desk.timer.isActive() and not desk.siblings.elsewhere
    Asked.made[0].answered.emit(desk.call_of(rank(1)))
    assert desk.heard == [] and desk.closed == [1]
    assert desk.siblings.place_of(2) is None


def test_on_another_machine_they_are_listed_there_and_called_through_ssh(
    desk: Desk, monkeypatch
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr("engine.connecting.ssh.listening_at", lambda *place: asked.append(place))
    desk.siblings.find(rank(0), BOX)
    listing = Asked.made[0]
    listing.ways[0]()
    assert asked == [("box", "/usr/bin/python")]
    assert desk.timer.interval() == LOOK_THERE_MS and desk.siblings.where == "box"
    listing.failed.emit(Unwelcome("No route."))
    assert desk.told == ["The ranks on box cannot be listed. No route."]
    listing.answered.emit([rank(0), rank(1), rank(2, group="other")])
    assert desk.told[1:] == [""]
    assert called()[1:] == [(11, BOX)] and desk.siblings.place_of(1) == BOX
    Asked.made[1].failed.emit(Unwelcome("No."))
    assert desk.told[2:] == []  # the list is asked for again
    desk.siblings.find(rank(0), None)
    listing.answered.emit([rank(1)])  # to what was asked before
    assert len(Asked.made) == 2 and desk.told[2:] == []


def test_another_machine_is_looked_at_a_few_times_only(desk: Desk) -> None:
    desk.siblings.find(rank(0), BOX)
    for looks in range(1, MOST_LOOKS_THERE + 1):
        assert len(Asked.made[0].ways) == looks
        assert desk.timer.isActive() == (looks < MOST_LOOKS_THERE)
        desk.timer.timeout.emit()


# -- ranks that another one tells of ---------------------------------------------------------------

OWN = RankPlace(0, "one", 10, "python")
THERE = RankPlace(1, "two", 11, "/there/python")
ALSO = RankPlace(2, "two", 12, "/there/python")


def test_ranks_on_other_machines_are_called_once_the_user_agrees(desk: Desk, bench) -> None:
    desk.siblings.find(rank(0), None)
    desk.take(THERE, OWN, ALSO)
    assert desk.siblings.elsewhere == {"two": [THERE, ALSO]} and called() == []
    assert desk.told == [""]
    desk.siblings.agree("two")
    two = EnginePlace.on("two", "/there/python")
    assert bench.settings.rank_hosts == ("two",) and desk.siblings.elsewhere == {}
    assert called() == [(11, two), (12, two)] and desk.told == ["", ""]
    assert [desk.siblings.place_of(number) for number in range(3)] == [None, two, two]
    Asked.made[0].answered.emit(desk.call_of(rank(1)))
    Asked.made[1].failed.emit(Unwelcome("No route."))
    assert desk.told[2:] == ["Rank 2 on two cannot be reached. No route."]
    desk.take(OWN, THERE, ALSO)
    assert called()[2:] == [(12, two)]  # the other is there
    desk.siblings.agree("three")
    assert bench.settings.rank_hosts == ("two", "three")


def test_machines_that_were_agreed_to_before_are_called_at_once(desk: Desk, bench) -> None:
    bench.settings.rank_hosts = ("two",)
    desk.siblings.find(rank(0), None)
    desk.take(OWN, THERE)
    assert len(called()) == 1 and desk.siblings.elsewhere == {}


def test_ranks_on_the_machine_of_the_own_rank_are_no_others(desk: Desk) -> None:
    desk.siblings.find(rank(0), BOX)
    desk.take(OWN, RankPlace(1, "one", 11, "python"))
    assert desk.siblings.elsewhere == {} and desk.siblings.place_of(1) == BOX


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "two;x", ""])
def test_what_is_no_name_of_a_machine_is_not_offered(desk: Desk, host: str) -> None:
    desk.siblings.find(rank(0), None)
    desk.take(OWN, RankPlace(1, host, 11, "python"))
    assert desk.siblings.elsewhere == {}


def test_places_are_of_no_use_without_that_of_the_own_rank(desk: Desk) -> None:
    desk.take(OWN, THERE)
    desk.siblings.find(rank(0), None)
    desk.take(THERE)
    assert desk.siblings.elsewhere == {} and desk.told == []


# -- calling one -----------------------------------------------------------------------------------


def test_the_address_of_a_process_has_its_machine() -> None:
    assert (address_of(7, None), address_of(7, BOX)) == ("7", "ssh box 7")


@pytest.mark.parametrize(
    ("place", "address", "python"), [(None, "7", ""), (BOX, "ssh box 7", "/usr/bin/python")]
)
def test_a_rank_is_called_until_it_lets_the_window_steer(
    monkeypatch, place: EnginePlace | None, address: str, python: str
) -> None:
    closed: list[str] = []
    roles = iter(("watch", "watch", "steer"))

    def call_at(*asked: str, python: str) -> Any:
        role = next(roles)
        connection = SimpleNamespace(close=lambda: closed.append(role))
        return SimpleNamespace(
            welcome=SimpleNamespace(role=role), connection=connection, asked=(asked[0], python)
        )

    monkeypatch.setattr("engine.connecting.ssh.call_at", call_at)
    now_s = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now_s[0], sleep=lambda s: now_s.__setitem__(0, now_s[0] + s)
    )
    monkeypatch.setattr(module, "time", clock)
    call: Any = way_to(7, place)()
    assert (call.welcome.role, call.asked) == ("steer", (address, python))
    assert closed == ["watch", "watch"] and 0 < now_s[0] < module.FREE_S


def test_a_rank_that_another_window_steers_is_watched(monkeypatch) -> None:
    call = SimpleNamespace(
        welcome=SimpleNamespace(role="watch"), connection=SimpleNamespace(close=lambda: None)
    )
    monkeypatch.setattr("engine.connecting.ssh.call_at", lambda *_, **__: call)
    now_s = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now_s[0], sleep=lambda s: now_s.__setitem__(0, now_s[0] + s)
    )
    monkeypatch.setattr(module, "time", clock)
    assert way_to(7, None)() is call
    assert now_s[0] > module.FREE_S


def test_another_run_is_looked_for_anew(desk: Desk, listens) -> None:
    listens += [rank(1)]
    desk.siblings.find(rank(0), BOX)
    Asked.made[0].failed.emit(Unwelcome("No route."))
    desk.take(OWN, THERE)
    desk.siblings.find(rank(0), None)
    assert desk.siblings.problem == "" and desk.siblings.elsewhere == {}
    assert desk.timer.interval() == LOOK_MS


def test_the_way_back_to_the_first_machine_is_known(desk: Desk) -> None:
    desk.siblings.find(rank(0), None)
    desk.take(OWN, THERE)
    two = EnginePlace.on("two", "/there/python")
    desk.siblings.find(rank(1), two)  # the user has chosen that one
    desk.take(OWN, THERE)
    assert called()[-1] == (10, None) and desk.siblings.elsewhere == {}
    assert [desk.siblings.place_of(number) for number in range(2)] == [None, two]
