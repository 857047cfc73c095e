"""The other ranks of a run: found and called on this machine."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.presenters.attaching.calling import Calling, Way
from engine.connecting.greeting import About, Unwelcome
from engine.system.program import version

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

LOOK_MS = 1000
"""How often ranks that do not listen yet are looked for."""
FREE_S = 2.0
"""The time that a rank has to see that a connection has ended."""
TRY_S = 0.05


class Siblings(QObject):
    """`called(Call)`: another rank of the run has answered."""

    called = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._own: About | None = None
        self._calling: dict[int, Calling] = {}
        self._found: set[int] = set()
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)

    def find(self, own: About) -> None:
        """Look for the other ranks of the run of `own`, until all are found."""
        self.forget()
        self._own, self._found = own, {own.rank}
        self._timer.start()
        self._look()

    def forget(self) -> None:
        for rank in tuple(self._calling):
            self._end_call(rank)
        self._own = None
        self._timer.stop()

    def _look(self) -> None:
        own = self._own
        if own is None or not own.group or len(self._found) >= own.world_size:
            self._timer.stop()
            return
        from engine.connecting.places import listening  # the window shows before it is needed

        with suppress(OSError, Unwelcome):  # Start says so
            for about, _ in listening():
                if about.group == own.group:
                    self._call(about)

    def _call(self, about: About) -> None:
        rank = about.rank
        if rank not in self._found and rank not in self._calling:
            calling = self._calling[rank] = Calling(self)
            calling.answered.connect(partial(self._on_answered, rank))
            calling.failed.connect(lambda _: self._end_call(rank))
            calling.call(way_to(about.pid))

    def _on_answered(self, rank: int, call: Call) -> None:
        self._end_call(rank)
        if self._own is None or call.welcome.about.group != self._own.group:
            call.connection.close()
            return
        self._found.add(rank)
        self.called.emit(call)

    def _end_call(self, rank: int) -> None:
        calling = self._calling.pop(rank, None)
        if calling is not None:
            calling.deleteLater()


def way_to(pid: int) -> Way:
    return partial(_call, pid)


def _call(pid: int) -> Call:
    """Call a rank that another connection of this window has just left: once its process has seen
    that, this one steers. Raises Unwelcome."""
    from engine.connecting.dialing import dial  # the window shows before it is needed

    late_s = time.monotonic() + FREE_S
    while True:
        call = dial(str(pid), version())
        if call.welcome.role == "steer" or time.monotonic() > late_s:
            return call
        call.connection.close()
        time.sleep(TRY_S)
