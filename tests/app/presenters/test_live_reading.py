"""What a pane shows of a run that goes on is read again now and then, while it is seen."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters import live_reading
from app.presenters.live_reading import EVERY_MS, LiveReading
from engine.protocol import (
    BackwardSnapshot,
    DoneSnapshot,
    FileSnapshot,
    FitSnapshot,
    ImagesSnapshot,
    ReadImagesCommand,
    VariablesSnapshot,
    WeightsSnapshot,
)


class Pane(QObject):
    came_in_sight = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.is_seen, self.told = True, list[str]()

    def isVisible(self) -> bool:
        return self.is_seen

    def show_trouble(self, text: str) -> None:
        self.told.append(text)


class Reading:
    """A reading of images: the pane, what was taken, and whether an answer is the last."""

    def __init__(self, bench: Any, link: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pane, self.taken, self.is_last, self.now_s = Pane(), list[Any](), True, 100.0
        monkeypatch.setattr(live_reading, "monotonic", lambda: self.now_s)
        self._link = link
        self.reading = LiveReading(
            bench, self.pane, lambda: ReadImagesCommand(name="a"), self._take, bench.window
        )
        (self.pause,) = self.reading.findChildren(QTimer)

    def _take(self, found: Any) -> bool:
        self.taken.append(found)
        return self.is_last

    @property
    def asked(self) -> int:
        return sum(isinstance(each, ReadImagesCommand) for each in self._link.sent)

    def run_goes_on(self) -> None:
        self._link._receive(VariablesSnapshot(variables=()))


@pytest.fixture
def reading(bench, link, monkeypatch) -> Reading:
    link.get_ready()
    return Reading(bench, link, monkeypatch)


def images() -> ImagesSnapshot:
    return ImagesSnapshot(name="a", names=("a",))


def test_it_is_read_again_once_the_run_goes_on_and_a_pause_is_over(reading: Reading, link) -> None:
    assert reading.asked == 0
    reading.pane.came_in_sight.emit()
    assert reading.asked == 1
    reading.run_goes_on()
    assert reading.asked == 1  # the answer has not come
    link.answer(images())
    assert len(reading.taken) == 1 and reading.pause.isActive()
    assert reading.pause.interval() == EVERY_MS
    reading.run_goes_on()
    assert reading.asked == 1
    reading.pause.stop()
    reading.pause.timeout.emit()
    assert reading.asked == 2
    link.answer(images())
    reading.pause.stop()
    reading.pause.timeout.emit()
    assert reading.asked == 2  # nothing has come since
    link._receive(DoneSnapshot())
    assert reading.asked == 2  # nor is this of a run
    reading.run_goes_on()
    assert reading.asked == 3


CHANGES = (
    BackwardSnapshot(position=1, step=None, gradients=(), revision=1),
    FileSnapshot(path="/net.py", digest="", objects=()),
    FitSnapshot(path="/w.pt", title="net", loaded=True, matched=1),
    WeightsSnapshot(origin="loaded", parameters=1),
)


@pytest.mark.parametrize("snapshot", CHANGES, ids=lambda each: type(each).__name__)
def test_it_is_read_again_after_all_that_changes_values(reading: Reading, link, snapshot) -> None:
    reading.pane.came_in_sight.emit()
    link.answer(images())
    reading.pause.stop()
    link._receive(snapshot)
    assert reading.asked == 2


def test_nothing_is_asked_while_there_is_no_command(bench, link) -> None:
    link.get_ready()
    pane = Pane()
    LiveReading(bench, pane, lambda: None, lambda _: True, bench.window)
    before = len(link.sent)
    pane.came_in_sight.emit()
    assert len(link.sent) == before and pane.told == []


def test_the_pause_is_many_times_what_a_reading_takes(reading: Reading, link) -> None:
    reading.pane.came_in_sight.emit()
    reading.now_s += 0.25
    link.answer(images())
    assert reading.pause.interval() == 2500


def test_it_is_not_read_while_it_is_not_seen(reading: Reading) -> None:
    reading.pane.is_seen = False
    reading.run_goes_on()
    reading.pane.came_in_sight.emit()
    assert reading.asked == 0
    reading.pane.is_seen = True
    reading.pane.came_in_sight.emit()
    assert reading.asked == 1


def test_an_answer_in_parts_ends_with_the_last(reading: Reading, link) -> None:
    reading.is_last = False
    reading.pane.came_in_sight.emit()
    link.answer(images())
    assert not reading.pause.isActive()
    reading.is_last = True
    link.answer(images())
    assert reading.pause.isActive() and len(reading.taken) == 2


def test_something_else_is_asked_at_once_and_the_answer_before_is_dropped(reading, link) -> None:
    reading.pane.came_in_sight.emit()
    reading.reading.again()
    assert reading.asked == 2
    link.answer(images(), to=1)
    assert reading.taken == []
    link.answer(images())
    assert len(reading.taken) == 1
    reading.reading.again()
    assert reading.asked == 3 and not reading.pause.isActive()


def test_an_error_is_told_and_it_goes_on_after_the_pause(reading: Reading, link) -> None:
    reading.pane.came_in_sight.emit()
    link.fail("It is gone.", "Train again.")
    assert reading.pane.told == ["It is gone. Train again."] and reading.pause.isActive()
    reading.pause.stop()
    reading.run_goes_on()
    assert reading.asked == 2


def test_a_new_engine_is_asked_again(reading: Reading, link) -> None:
    reading.pane.came_in_sight.emit()
    link.close()
    assert reading.pane.told == ["The engine starts."]
    link.start()
    assert reading.asked == 1
    link.get_ready()
    assert reading.asked == 2 and set(reading.pane.told) == {"The engine starts."}
