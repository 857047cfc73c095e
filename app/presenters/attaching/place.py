"""Where the engine of this window runs: the settings, calling the engine there, what is said of
it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.presenters.attaching.calling import Calling
from app.workbench import Workbench
from engine.connecting.engine_place import EnginePlace
from engine.connecting.greeting import Refused, Unwelcome

if TYPE_CHECKING:
    from app.window.settings_dialog import SettingsDialog
    from engine.connecting.dialing import Call


class PlacePresenter(QObject):
    """`may_end()` asks the user, if ending the engine of this window loses anything."""

    def __init__(self, bench: Workbench, may_end: Callable[[str, str], bool], parent: QObject):
        super().__init__(parent)
        self._bench, self._may_end = bench, may_end
        self._place: EnginePlace | None = None  # that is being called
        self._calling = Calling(self)
        self._calling.answered.connect(self._on_answered)
        self._calling.failed.connect(self._on_failed)
        bench.link.place = bench.settings.engine_place
        bench.link.state_changed.connect(self._show_in_use)

    @cached_property
    def dialog(self) -> SettingsDialog:
        """Made when it is first opened."""
        from app.window.settings_dialog import SettingsDialog

        dialog = SettingsDialog(self._bench.window)
        dialog.engine.place_chosen.connect(self.choose)
        return dialog

    def open(self) -> None:
        place = self._bench.settings.engine_place
        if not self.dialog.isVisible():
            self.dialog.engine.show_place(
                place.address if place else "", place.python if place else ""
            )
            self.dialog.engine.tell("")
        self._show_in_use()
        self.dialog.open_beside()

    def choose(self, address: str, python: str = "", key: str = "") -> None:
        """Let the engine run there from now on, if one answers there; on this machine with an empty
        address."""
        if not self._may_end("Use another engine? This one's", "Use"):
            return
        self.dialog.engine.tell("")
        if not address:
            self._use(None, None)
            return
        self._place = EnginePlace(address, python, key)
        self.dialog.engine.show_calling(address)
        self._calling.call(partial(self._place.call, instead=self._is_ours(address)))

    def _is_ours(self, address: str) -> bool:
        """Whether the window that is attached there may be this one."""
        place = self._bench.link.place
        return place is not None and place.address == address

    def _on_answered(self, call: Call) -> None:
        self.dialog.engine.show_calling("")
        self._use(self._place, call)

    def _use(self, place: EnginePlace | None, call: Call | None) -> None:
        self._bench.window.banners.dismiss("engine")
        self._bench.settings.engine_place = place
        self._bench.link.start_at(place, call)

    def _on_failed(self, error: Unwelcome) -> None:
        view = self.dialog.engine
        view.show_calling("")
        view.tell(str(error))
        place = self._place
        if isinstance(error, Refused) and error.is_taken and place is not None:
            question = f"Another window has the engine at {place.address}. Take its place?"
            if self._bench.confirm(question, "Take its place"):
                view.tell("")
                view.show_calling(place.address)
                self._calling.call(partial(place.call, instead=True))

    def _show_in_use(self) -> None:
        if "dialog" not in vars(self):
            return
        link = self._bench.link
        place = link.place.address if link.place else "this machine"
        words = {
            "starting": f"Starting the engine at {place}…",
            "ready": f"In use: the engine at {place}.",
            "lost": "There is no engine now.",
        }[link.state]
        if link.script is not None:
            words = f"In use: {link.script.about.title}."
        self.dialog.engine.show_in_use(words.replace("at this machine", "on this machine"))
