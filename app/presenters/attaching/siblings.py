"""The other ranks of a run: found and called on the machine of the rank that the window is attached
to, which ssh may lead to, and on those that this rank tells of, once the user has agreed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters.attaching.calling import Asking, Calling, Way
from app.settings import Settings
from engine.connecting.engine_place import SSH, EnginePlace
from engine.connecting.greeting import About, Unwelcome
from engine.protocol import RankPlace, RankPlacesSnapshot
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
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What may be the name of a machine: none of the options of ssh."""


class Siblings(QObject):
    """`called(Call)`: another rank of the run has answered. `told()`: `problem` or `elsewhere` has
    changed. Machines that `settings` has are called without asking."""

    called = Signal(object)
    told = Signal()

    def __init__(self, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = settings
        self._own: About | None = None
        self._place: EnginePlace | None = None
        self._calling: dict[int, Calling] = {}
        self._found: set[int] = set()
        self._looks = 0
        self.problem = ""
        """Why the ranks of another machine are not known; "" if they are."""
        self.elsewhere: dict[str, list[RankPlace]] = {}
        """Ranks that are on other machines, by machine, which the user is to agree to call."""
        self._places: tuple[RankPlace, ...] = ()
        self._machines: dict[str, EnginePlace | None] = {}
        """What leads to a machine, by the name that it calls itself."""
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
        self._places, self.elsewhere = (), {}
        self._timer.stop()

    def take(self, told: RankPlacesSnapshot) -> None:
        """The rank that the window is attached to tells where the ranks are."""
        own = next((p for p in told.places if self._own and p.rank == self._own.rank), None)
        if own is None:
            return
        self._machines[own.host] = self._place
        self._places = tuple(p for p in told.places if p.host != own.host)
        self._call_elsewhere()

    def agree(self, host: str) -> None:
        """The ranks on this machine are called through ssh, now and whenever there are some."""
        self._settings.rank_hosts = (*self._settings.rank_hosts, host)
        self._call_elsewhere()

    def place_of(self, rank: int) -> EnginePlace | None:
        """What leads to the machine of a rank; None: nothing needs to."""
        place = next((p for p in self._places if p.rank == rank), None)
        return self._place if place is None else self._machines[place.host]

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
            if about.group == self._own.group:
                self._call(about.rank, about.pid, self._place)

    def _call_elsewhere(self) -> None:
        """Call those on other machines, as far as the user has agreed."""
        self.elsewhere = {}
        agreed = self._settings.rank_hosts
        for place in self._places:
            if place.rank in self._found or not _HOST.fullmatch(place.host):
                continue
            if place.host not in self._machines and place.host in agreed:
                self._machines[place.host] = EnginePlace.on(place.host, place.python)
            if place.host in self._machines:
                self._call(place.rank, place.pid, self._machines[place.host])
            else:
                self.elsewhere.setdefault(place.host, []).append(place)
        self.told.emit()

    def _call(self, rank: int, pid: int, place: EnginePlace | None) -> None:
        if rank not in self._found and rank not in self._calling:
            calling = self._calling[rank] = Calling(self)
            calling.answered.connect(partial(self._on_answered, rank))
            calling.failed.connect(partial(self._on_failed, rank, place))
            calling.call(way_to(pid, place))

    def _on_answered(self, rank: int, call: Call) -> None:
        self._end_call(rank)
        if self._own is None or call.welcome.about.group != self._own.group:
            call.connection.close()
            return
        self._found.add(rank)
        self.called.emit(call)

    def _on_failed(self, rank: int, place: EnginePlace | None, why: Unwelcome) -> None:
        self._end_call(rank)
        if place is not None and place != self._place:
            self._tell(f"Rank {rank} on {place.machine} cannot be reached. {why}")

    def _end_call(self, rank: int) -> None:
        calling = self._calling.pop(rank, None)
        if calling is not None:
            calling.deleteLater()


def address_of(pid: int, place: EnginePlace | None) -> str:
    """What calls a process of the machine that ssh leads to `place`."""
    return str(pid) if place is None else f"{SSH} {place.machine} {pid}"


def way_to(pid: int, place: EnginePlace | None) -> Way:
    return partial(_call, address_of(pid, place), place.python if place is not None else "")


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
