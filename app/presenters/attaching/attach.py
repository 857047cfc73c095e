"""Attaching to a process of the user's that listens: which ones there are, calling one, leaving
it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.workbench import Workbench
from engine.connecting.greeting import About, Unwelcome
from engine.version import version
from widgets.start.attach_view import AttachView, Running

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

Way = Callable[[], "Call"]
"""Calls a process. Raises Unwelcome."""
_BANNER = "attach"
LOOK_MS = 1000
"""How often the window looks which processes listen, while it shows them."""


class AttachPresenter(QObject):
    """`may_end()` asks the user, if ending the engine of this window loses anything."""

    _called = Signal(object, object)  # (number of the attempt, Call or Unwelcome)

    def __init__(self, bench: Workbench, may_end: Callable[[str, str], bool], parent: QObject):
        super().__init__(parent)
        self._bench, self._may_end = bench, may_end
        self._view: AttachView | None = None
        self._attempt = 0
        self._address = ""
        self._way: Way | None = None  # to the process that was called last
        self._called.connect(self._on_called, Qt.ConnectionType.QueuedConnection)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)

    def show_in(self, view: AttachView) -> None:
        self._view = view
        view.attach_requested.connect(self.attach)
        view.show_address(self._bench.settings.attach_address)
        self._timer.start()

    def look(self) -> None:
        """Show the processes that listen, if that can be seen."""
        if self._view is None or not self._view.isVisible():
            return
        from engine.connecting.places import listening  # the window shows before it is needed

        try:
            found = listening()
        except (OSError, Unwelcome) as error:
            self._view.show_running(())
            self._view.tell(str(error))
            return
        self._view.show_running([_running(place.about, str(place.socket)) for place in found])

    # -- attaching -------------------------------------------------------------------------------

    def attach(self, address: str, key: str = "") -> None:
        """Call a process. The user may say no, if the engine of this window has what would be
        lost."""
        if self._may_end("Attach to another process? This engine's", "Attach"):
            from engine.connecting.ssh import call_at  # the window shows before it is needed

            self._address = address
            self._begin_call(partial(call_at, address, version(), key))

    def _begin_call(self, way: Way) -> None:
        """Call on a thread: the other side may take its time."""
        self._attempt += 1
        self._way = way
        if self._view is not None:
            self._view.tell("")
            self._view.show_calling(self._address)
        threading.Thread(
            target=self._call, args=(self._attempt, way), name="attach", daemon=True
        ).start()

    def reconnect(self) -> None:
        """Call the process again that was called last."""
        if self._way is not None:
            self._begin_call(self._way)

    def use(self, call: Call, way: Way) -> None:
        """Attach to a process that was called already; `way` calls it again."""
        self._way = way
        self._bench.link.attach(call)
        self._bench.window.show_workspace("train")

    def _call(self, attempt: int, way: Way) -> None:
        try:
            answer: Call | Unwelcome = way()
        except Unwelcome as error:
            answer = error
        with suppress(RuntimeError):  # the window was closed and deleted meanwhile
            self._called.emit(attempt, answer)

    def _on_called(self, attempt: int, answer: Call | Unwelcome) -> None:
        if self._view is not None:
            self._view.show_calling("")
        if attempt != self._attempt or self._way is None:
            if not isinstance(answer, Unwelcome):
                answer.connection.close()
        elif isinstance(answer, Unwelcome):
            self._tell(str(answer))
        else:
            for banner in ("engine", _BANNER):
                self._bench.window.banners.dismiss(banner)
            is_elsewhere = ":" in self._address or answer.through is not None
            # The next run of the script has another number, but the same name.
            remembered = self._address if is_elsewhere else answer.welcome.about.name
            self._bench.settings.attach_address = remembered
            self.use(answer, self._way)

    def _tell(self, words: str) -> None:
        """Beside the list of processes, or where the connection was lost."""
        if self._view is not None and self._view.isVisible():
            self._view.tell(words)
        else:
            self._bench.window.banners.show_banner(
                _BANNER, "error", "No process was attached to", words
            )


def _running(about: About, address: str) -> Running:
    started = datetime.datetime.fromtimestamp(about.started_s)
    return Running(
        address,
        about.title,
        f"since {started:%H:%M:%S}",
        f"{about.script or 'Typed at a prompt'}\nListens since {started:%d %b %Y, %H:%M:%S}.",
    )
