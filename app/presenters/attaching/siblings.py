"""The other ranks of a run: found and called on the machine of the rank that the window is attached
to, which ssh may lead to."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters.attaching.calling import Asking, Calling, Way
from engine.connecting.engine_place import SSH, EnginePlace
from engine.connecting.greeting import About, Unwelcome
from engine.version import version

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

LOOK_MS = 1000
"""How often ranks that do not listen yet are looked for."""
LOOK_THERE_MS = 10_000
MOST_LOOKS_THERE = 6
"""Through ssh, each look starts a program there."""
FREE_S = 2.0
"""The time that a rank has to see that a connection has ended."""
TRY_S = 0.05


class Siblings(QObject):
    """`called(Call)`: another rank of the run has answered. `told()`: `problem` has changed."""

    called = Signal(object)
    told = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._own: About | None = None
        self._place: EnginePlace | None = None
        self._calling: dict[int, Calling] = {}
        self._found: set[int] = set()
        self._looks = 0
        self.problem = ""
        """Why the ranks of another machine are not known; "" if they are."""
        self._listing: Asking | None = None
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._look)

    @property
    def where(self) -> str:
        """The machine on which ranks are looked for."""
        return self._place.machine if self._place is not None else "this machine"

    def find(self, own: About, place: EnginePlace | None) -> None:
        """Look for the other ranks of the run of `own`, until all are found."""
        self.forget()
        self._own, self._place, self._found = own, place, {own.rank}
        self._looks = 0
        if place is not None:
            self._listing = Asking(self)
            self._listing.answered.connect(partial(self._on_listed, own))
            self._listing.failed.connect(partial(self._on_not_listed, own))
        self._timer.start(LOOK_MS if place is None else LOOK_THERE_MS)
        self._look()

    def forget(self) -> None:
        for rank in tuple(self._calling):
            self._end_call(rank)
        if self._listing is not None:
            self._listing.deleteLater()
        self._own, self._listing, self.problem = None, None, ""
        self._timer.stop()

    def _look(self) -> None:
        own, place, listing = self._own, self._place, self._listing
        if own is None or not own.group or len(self._found) >= own.world_size:
            self._timer.stop()
        elif place is not None and listing is not None:
            # The window shows before these are needed.
            from engine.connecting.ssh import listening_at

            self._looks += 1
            if self._looks >= MOST_LOOKS_THERE:
                self._timer.stop()
            listing.ask(partial(listening_at, place.machine, place.python))
        else:
            from engine.connecting.places import listening

            with suppress(OSError, Unwelcome):  # Start says so
                self._call_those(about for about, _ in listening())

    def _on_listed(self, own: About, listed: list[About]) -> None:
        if own is self._own:
            self._tell("")
            self._call_those(listed)

    def _on_not_listed(self, own: About, error: Unwelcome) -> None:
        if own is self._own:
            self._tell(f"The ranks on {self.where} cannot be listed. {error}")

    def _tell(self, problem: str) -> None:
        self.problem = problem
        self.told.emit()

    def _call_those(self, abouts: Iterable[About]) -> None:
        """Call those of the run that are not called yet."""
        assert self._own is not None
        for about in abouts:
            rank = about.rank
            is_new = rank not in self._found and rank not in self._calling
            if is_new and about.group == self._own.group:
                calling = self._calling[rank] = Calling(self)
                calling.answered.connect(partial(self._on_answered, rank))
                calling.failed.connect(partial(self._on_failed, rank))
                calling.call(way_to(about, self._place))

    def _on_answered(self, rank: int, call: Call) -> None:
        self._end_call(rank)
        if self._own is None or call.welcome.about.group != self._own.group:
            call.connection.close()
            return
        self._found.add(rank)
        self.called.emit(call)

    def _on_failed(self, rank: int, _why: Unwelcome) -> None:
        self._end_call(rank)

    def _end_call(self, rank: int) -> None:
        calling = self._calling.pop(rank, None)
        if calling is not None:
            calling.deleteLater()


def address_of(about: About, place: EnginePlace | None) -> str:
    """What calls a rank beside the one that ssh has led to `place`."""
    return str(about.pid) if place is None else f"{SSH} {place.machine} {about.pid}"


def way_to(about: About, place: EnginePlace | None) -> Way:
    return partial(_call, address_of(about, place), place.python if place is not None else "")


def _call(address: str, python: str) -> Call:
    """Call a rank that another connection of this window has just left: once its process has seen
    that, this one steers. Raises Unwelcome."""
    from engine.connecting.ssh import call_at

    late_s = time.monotonic() + FREE_S
    while True:
        call = call_at(address, version(), python=python)
        if call.welcome.role == "steer" or time.monotonic() > late_s:
            return call
        call.connection.close()
        time.sleep(TRY_S)
