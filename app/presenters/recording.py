"""Whether the engine records what cells run: one switch, shown by every view that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.workbench import Workbench
from engine.protocol import RecordCommand

if TYPE_CHECKING:  # both are imported with the workspaces that have them
    from widgets.console.console_view import ConsoleView
    from widgets.recording_note import RecordingNote


class RecordingPresenter(QObject):
    """Recording is on when the program starts; the switch is not remembered after the window is
    closed."""

    _changed = Signal(bool)

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self.is_on = True
        bench.link.became_ready.connect(self._tell_new_engine)

    def show_in(self, *views: ConsoleView | RecordingNote) -> None:
        for view in views:
            view.record_wanted.connect(self.switch)
            self._changed.connect(view.show_recording)
            view.show_recording(self.is_on)

    def switch(self, on: bool) -> None:
        if on != self.is_on:
            self.is_on = on
            self._bench.send(RecordCommand(on=on))
            self._changed.emit(on)

    def _tell_new_engine(self) -> None:
        """An engine begins with recording on."""
        if not self.is_on and self._bench.link.script is None:
            self._bench.send(RecordCommand(on=False))
