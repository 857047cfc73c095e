"""Which ranks of a run the window shows, asks about and calls, without processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QPushButton

from app.presenters.attaching.ranks import SETTLE_MS, SHOW_MS
from engine.connecting.greeting import Welcome
from engine.project.subject import ConsoleSubject
from engine.protocol import PauseSignal, RankPlace, RankPlacesSnapshot, WatchCommand
from tests.app.presenters.attaching.rank_desk import BOX, Desk, at, desks, rank


@pytest.fixture
def desk(bench, link, monkeypatch) -> Iterator[Desk]:
    yield from desks(bench, link, monkeypatch, [0.0])


@pytest.fixture
def both(desk: Desk) -> Desk:
    """Rank 1 has been called, too."""
    desk.attach()
    desk.add(1)
    return desk


def test_the_other_ranks_of_a_script_are_looked_for_where_it_is(desk: Desk) -> None:
    desk.link.attach_to(Welcome(rank(0, of=1), "steer"))
    assert desk.siblings.done == []  # it has no others
    desk.attaching.place = BOX
    desk.attach()
    assert desk.siblings.done[-1] == (0, BOX)
    desk.link.state_changed.emit("ready")
    assert desk.siblings.done.count((0, BOX)) == 1
    desk.link.close()
    assert desk.siblings.done[-1] == "forget"


def test_the_places_that_a_rank_tells_are_passed_on(desk: Desk) -> None:
    places = RankPlacesSnapshot(places=())
    desk.say(0, places)
    assert desk.siblings.done == []  # of no script
    desk.attach()
    desk.say(0, places)
    assert [type(each) for each in desk.siblings.done[-1:]] == [RankPlacesSnapshot]


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
    assert both.attaching.called == [("11", ("way", 11, None))]
    assert both.told()[1] == ["close", "delete"]


def test_a_rank_that_ssh_leads_to_is_chosen_through_it(both: Desk) -> None:
    both.add(2, of=3)
    both.presenter.choose(2)
    assert both.attaching.called == [("ssh box 12", ("way", 12, BOX))]


# -- machines that are asked about -----------------------------------------------------------------


def place(number: int, host: str) -> RankPlace:
    return RankPlace(number, host, 10 + number, "python")


@pytest.mark.parametrize(
    ("elsewhere", "title", "ways"),
    [
        ({"two": [place(1, "two")]}, "there is also rank 1 on two.", "ssh two python"),
        (
            {"two": [place(1, "two"), place(2, "two")]},
            "there are also ranks 1, 2 on two.", "ssh two python",
        ),
        (
            {"two": [place(1, "two")], "three": [place(2, "three")]},
            "there are also rank 1 on two and rank 2 on three.",
            "ssh two python and ssh three python",
        ),
    ],
)  # fmt: skip
def test_the_user_is_asked_once_about_machines_with_ranks(
    desk: Desk, bench, elsewhere: dict, title: str, ways: str
) -> None:
    desk.attach(of=3)
    desk.siblings.told.emit()
    assert bench.window.banners.banner("ranks") is None
    desk.siblings.elsewhere = elsewhere
    desk.siblings.told.emit()
    banner = bench.window.banners.banner("ranks")
    assert banner.title == f"Of this run {title}"
    assert banner.text.startswith(f"This window calls them by {ways}, and shows")
    bench.window.banners.dismiss("ranks")
    desk.siblings.told.emit()
    assert bench.window.banners.banner("ranks") is None
    desk.siblings.elsewhere = {**elsewhere, "more": [place(2, "more")]}
    desk.siblings.told.emit()
    banner = bench.window.banners.banner("ranks")
    assert banner.title == "Of this run there is also rank 2 on more."
    banner.findChild(QPushButton).click()
    assert desk.siblings.done[-1] == "more" and bench.window.banners.banner("ranks") is None


def test_a_rank_elsewhere_is_called_when_it_is_chosen(desk: Desk, bench) -> None:
    desk.attach(of=3)
    desk.siblings.elsewhere = {"two": [place(1, "two")], "three": [place(2, "three")]}
    desk.siblings.told.emit()
    desk.presenter.choose(2)
    assert desk.siblings.done[-1] == "three" and desk.attaching.called == []
    assert bench.window.banners.banner("ranks") is None


def test_all_ranks_are_listed_with_how_they_are(desk: Desk, bench) -> None:
    shown: list[Any] = []
    bench.window.show_ranks = lambda *told: shown.append(told)
    desk.attach(of=3)
    desk.siblings.elsewhere = {"two": [place(1, "two")]}
    desk.siblings.problem = "No route."
    desk.add(2, of=3)
    desk.say(0, at(5))
    desk.show()
    ((text, tip, rows),) = shown
    assert text == "rank 0 of 3" and tip.endswith(" No route.")
    assert rows == [
        (0, "rank 0: step 5", True), (2, "rank 2: step 0", False),
        (1, "rank 1: on two, call it by ssh", False),
    ]  # fmt: skip


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
    desk.link.start_at(None)
    assert desk.drawn[-1] == []


def test_what_a_rank_says_is_shown_a_little_later(both: Desk) -> None:
    show = both.timer(SHOW_MS)
    assert show.isActive() and show.isSingleShot()
    show.stop()
    both.add(2, of=3)
    assert show.isActive()
    show.stop()
    both.say(1, RankPlacesSnapshot(places=()))
    assert not show.isActive()
    both.say(1, at(3))
    assert show.isActive()
    show.stop()
    both.siblings.told.emit()
    assert show.isActive()
    show.stop()
    both.links[1].lost.emit(None)
    assert show.isActive()
