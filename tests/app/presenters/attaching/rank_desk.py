"""A window that is attached to rank 0 of a run; the test says what all ranks say."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters.attaching import ranks
from app.presenters.attaching.ranks import SHOW_MS, RanksPresenter
from engine.connecting.greeting import About, Welcome
from engine.protocol import HeldSnapshot, LoopSnapshot, StepColumns

AFTER_STEP, IN_STEP, ON = HeldSnapshot(at="step"), HeldSnapshot(at="line"), HeldSnapshot()


def rank(number: int, of: int = 2) -> About:
    return About(name="r", pid=10 + number, rank=number, world_size=of, group="g")


def at(step: int) -> LoopSnapshot:
    return LoopSnapshot(
        run="r", title="r", state="running", step=step, steps_per_second=1.0,
        steps=StepColumns(step=(step,), loss=(1.0,)), device="cpu",
    )  # fmt: skip


class Siblings(QObject):
    """In place of those that look for the other ranks."""

    called = Signal(object)
    newest: Siblings

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        Siblings.newest = self
        self.done: list[Any] = []

    def find(self, own: About) -> None:
        self.done.append(own.rank)

    def forget(self) -> None:
        self.done.append("forget")


class Link(QObject):
    """A link to another rank that keeps what the rank was told."""

    snapshot, lost = Signal(object), Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.told: list[Any] = []

    def attach(self, call: Any) -> None:
        self.call = call

    def send(self, command: Any) -> None:
        self.told.append(command)

    signal = send

    def go_to_step(self, step: int, is_held: bool) -> None:
        self.told.append((step, is_held))

    def close(self) -> None:
        self.told.append("close")

    def deleteLater(self) -> None:
        self.told.append("delete")

    def wait_closed(self) -> None:
        self.told.append("closed")


class Attaching:
    """In place of the presenter that calls processes."""

    def __init__(self) -> None:
        self.is_here = True
        self.called: list[tuple[str, Any]] = []

    def attach(self, address: str, way: Any) -> None:
        self.called.append((address, way))


class Desk:
    """The window is attached to rank 0."""

    def __init__(self, bench: Any, link: Any) -> None:
        self.bench, self.link = bench, link
        self.attaching, self.links = Attaching(), dict[int, Link]()
        self.drawn: list[list[str]] = []
        self.shown_links: list[tuple[int, list[int]]] = []
        self.own: list[Any] = []
        link.go_to_step = lambda step, is_held: self.own.append((step, is_held))
        self.presenter = RanksPresenter(
            bench, self.attaching,  # pyright: ignore[reportArgumentType]
            lambda runs: self.drawn.append([title for title, _ in runs]), bench.window,
            lambda number, links: self.shown_links.append((number, sorted(links))),
        )  # fmt: skip
        self.siblings = Siblings.newest

    def attach(self, of: int = 2) -> None:
        self.link.attach_to(Welcome(rank(0, of), "steer"))

    def add(self, number: int, of: int = 2) -> Link:
        call = SimpleNamespace(welcome=SimpleNamespace(about=rank(number, of)))
        self.siblings.called.emit(call)
        made = self.presenter.findChildren(Link)[-1]
        assert made.call is call
        self.links[number] = made
        return made

    def say(self, number: int, *snapshots: Any) -> None:
        for snapshot in snapshots:
            if number:
                self.links[number].snapshot.emit(snapshot)
            else:
                self.bench.store.take(replace(snapshot, revision=self.bench.store.revision))

    def timer(self, interval_ms: int) -> QTimer:
        timers = self.presenter.findChildren(QTimer)
        return next(each for each in timers if each.interval() == interval_ms)

    def show(self) -> None:
        self.timer(SHOW_MS).timeout.emit()

    def told(self) -> dict[int, list[Any]]:
        """What each rank was told since the last time; 0 is that of the window, which is told by
        its link itself."""
        said = {0: self.own[:], **{number: link.told[:] for number, link in self.links.items()}}
        self.own.clear()
        for link in self.links.values():
            link.told.clear()
        return said


def desks(
    bench: Any, link: Any, monkeypatch: pytest.MonkeyPatch, now_s: list[float]
) -> Iterator[Desk]:
    """For a fixture; `now_s` is the time."""
    monkeypatch.setattr(ranks, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(ranks, "Siblings", Siblings)
    monkeypatch.setattr(ranks, "EngineLink", Link)
    monkeypatch.setattr(ranks, "way_to", lambda pid: ("way", pid))
    made = Desk(bench, link)
    yield made
    made.presenter.close()
