"""Attaching to a process of the user's that listens: which ones there are, calling one, leaving
it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.presenters.attaching.calling import Calling, Way
from app.workbench import Workbench
from engine.connecting.greeting import About, Unwelcome
from engine.system.program import version
from widgets.start.attach_view import AttachView, Running

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

_BANNER = "attach"
LOOK_MS = 1000
"""How often the window looks which processes listen, while it shows them."""


class AttachPresenter(QObject):
    """`may_end()` asks the user, if ending the engine of this window loses anything."""

    def __init__(self, bench: Workbench, may_end: Callable[[str, str], bool], parent: QObject):
        super().__init__(parent)
        self._bench, self._may_end = bench, may_end
        self._view: AttachView | None = None
        self._address = ""
        self._way: Way | None = None  # to the process that was called last
        self.is_here = True
        """Whether that process was called without ssh."""
        self._calling = Calling(self)
        self._calling.answered.connect(self._on_answered)
        self._calling.failed.connect(self._on_failed)
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
        # The window shows before it is needed.
        from engine.connecting.places import has_sockets, listening

        if not has_sockets():
            self._view.show_unlisted()
        try:
            found = listening()
        except (OSError, Unwelcome) as error:
            self._view.show_running(())
            self._view.tell(str(error))
            return
        self._view.show_running([_running(place.about, str(place.socket)) for place in found])

    def tell_former_engine(self) -> None:
        """Say so if the settings of an earlier version let the engine run elsewhere."""
        settings = self._bench.settings
        address = settings.take_engine_address()
        if address:
            settings.attach_address = settings.attach_address or address
            self._bench.window.banners.show_banner(
                "former_engine",
                "accent",
                f"The engine runs on this machine now, not at {address}",
                "Every window starts an engine here. The Start page attaches the window to one"
                " elsewhere, and so does `tensorlab attach --ssh HOST`.",
            )

    # -- attaching -------------------------------------------------------------------------------

    def attach(self, address: str, key: str = "", way: Way | None = None) -> None:
        """Call a process, by `way` if one is given. The user may say no, if the engine of this
        window has what would be lost."""
        if self._may_end("Attach to another process? This engine's", "Attach"):
            from engine.connecting.ssh import call_at  # the window shows before it is needed

            self._address = address
            self._begin_call(way or partial(call_at, address, version(), key))

    def _begin_call(self, way: Way) -> None:
        self._way = way
        if self._view is not None:
            self._view.tell("")
            self._view.show_calling(self._address)
        self._calling.call(way)

    def reconnect(self) -> None:
        """Call the process again that was called last."""
        if self._way is not None:
            self._begin_call(self._way)

    def use(self, call: Call, way: Way) -> None:
        """Attach to a process that was called already; `way` calls it again."""
        self._way = way
        self.is_here = call.through is None
        self._bench.link.attach(call)
        self._bench.window.show_workspace("train")

    def _on_failed(self, error: Unwelcome) -> None:
        if self._view is not None:
            self._view.show_calling("")
        self._tell(str(error))

    def _on_answered(self, call: Call) -> None:
        if self._view is not None:
            self._view.show_calling("")
        assert self._way is not None
        for banner in ("engine", _BANNER):
            self._bench.window.banners.dismiss(banner)
        is_elsewhere = ":" in self._address or call.through is not None
        # The next run of the script has another number, but the same name.
        remembered = self._address if is_elsewhere else call.welcome.about.name
        self._bench.settings.attach_address = remembered
        self.use(call, self._way)

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
