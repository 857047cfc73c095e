"""Which ranks of a run the window shows and calls, without processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.presenters.attaching.ranks import SETTLE_MS, SHOW_MS
from engine.connecting.greeting import Welcome
from engine.project.subject import ConsoleSubject
from engine.protocol import FarewellSnapshot, PauseSignal, WatchCommand
from tests.app.presenters.attaching.rank_desk import Desk, at, desks, rank


@pytest.fixture
def desk(bench, link, monkeypatch) -> Iterator[Desk]:
    yield from desks(bench, link, monkeypatch, [0.0])


@pytest.fixture
def both(desk: Desk) -> Desk:
    """Rank 1 has been called, too."""
    desk.attach()
    desk.add(1)
    return desk


def test_the_other_ranks_of_a_script_are_looked_for_where_it_is_here(desk: Desk) -> None:
    desk.link.attach_to(Welcome(rank(0, of=1), "steer"))
    assert desk.siblings.done == []  # it has no others
    desk.attach()
    assert desk.siblings.done[-1] == 0
    desk.link.state_changed.emit("ready")
    assert desk.siblings.done.count(0) == 1
    desk.link.close()
    assert desk.siblings.done[-1] == "forget"
    desk.attaching.is_here = False
    desk.attach()
    assert desk.siblings.done.count(0) == 1


def test_what_is_watched_is_watched_by_all_and_by_those_who_come_later(both: Desk) -> None:
    watch = WatchCommand(subject=ConsoleSubject("net"), paths=("0",))
    both.link.steered.emit(watch)
    both.add(2, of=3)
    assert both.told() == {0: [], 1: [watch], 2: [watch]}


def test_the_ranks_are_left_with_the_one_of_the_window(both: Desk) -> None:
    shown: list[Any] = []
    both.bench.window.show_ranks = lambda *told: shown.append(told)
    both.show()
    assert both.shown_links == [(0, [1])] and len(shown) == 1
    both.link.steered.emit(PauseSignal())
    assert both.timer(SETTLE_MS).isActive()
    both.told()
    both.link.close()
    assert both.told()[1] == ["close", "delete"]
    assert both.shown_links[1:] == [(0, [])] and shown[1:] == [("", "", ())]
    assert not both.timer(SHOW_MS).isActive() and not both.timer(SETTLE_MS).isActive()
    assert both.link.pause_at() == 0
    both.presenter.close()
    both.presenter.close()
    assert both.told()[1] == ["closed"] and len(both.shown_links) == 2


def test_the_next_run_has_nothing_of_the_one_before(both: Desk) -> None:
    both.link.steered.emit(WatchCommand(subject=ConsoleSubject("net"), paths=("0",)))
    both.say(1, at(3))
    both.links[1].lost.emit(None)
    both.link.close()
    assert both.drawn[-1] == ["rank 1 (ended)"]  # it stays until there is another engine
    both.attach()
    both.add(1)
    assert both.told()[1] == []
    both.show()
    assert both.drawn[-1] == []


def test_another_rank_is_chosen_by_its_process(both: Desk) -> None:
    both.add(2, of=3)
    both.presenter.choose(0)  # it is shown
    both.presenter.choose(7)  # there is none
    assert both.attaching.called == []
    both.presenter.choose(1)
    assert both.attaching.called == [("11", ("way", 11))]
    assert both.told()[1] == ["close", "delete"]


def test_all_ranks_are_listed_with_how_they_are(desk: Desk, bench) -> None:
    shown: list[Any] = []
    bench.window.show_ranks = lambda *told: shown.append(told)
    desk.attach(of=3)
    desk.add(2, of=3)
    desk.say(0, at(5))
    desk.show()
    ((text, tip, rows),) = shown
    assert text == "rank 0 of 3" and " 1 of them does not listen" in tip
    assert rows == [(0, "rank 0: step 5", True), (2, "rank 2: step 0", False)]


# -- curves ----------------------------------------------------------------------------------------


def test_the_curves_of_ranks_are_drawn_in_their_order_once_they_have_steps(desk: Desk) -> None:
    desk.attach(of=4)
    for number in (3, 1, 2):
        desk.add(number, of=4)
    desk.show()
    assert desk.drawn == []  # there are none
    desk.say(0, at(1))
    for number in (3, 1):
        desk.say(number, at(1))
    desk.show()
    assert desk.drawn == [["rank 1", "rank 3"]]
    desk.links[1].lost.emit(None)
    desk.show()
    assert desk.drawn[1:] == [["rank 1 (ended)", "rank 3"]]
    assert desk.shown_links[-1] == (0, [2, 3])
    desk.link.restart()
    assert desk.drawn[-1] == []


def test_what_a_rank_says_is_shown_a_little_later(both: Desk) -> None:
    show = both.timer(SHOW_MS)
    assert show.isActive() and show.isSingleShot()
    show.stop()
    both.add(2, of=3)
    assert show.isActive()
    show.stop()
    both.say(1, FarewellSnapshot())
    assert not show.isActive()
    both.say(1, at(3))
    assert show.isActive()
    show.stop()
    both.links[1].lost.emit(None)
    assert show.isActive()
