"""The note of a view while recording is off, and the button that switches it on."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from widgets import make
from widgets.theme import GRID


class RecordingNote(QFrame):
    """Shown only while recording is off. `lacks` says what the view cannot show without."""

    record_wanted = Signal(bool)

    def __init__(self, name: str, lacks: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, f"{name}_recording", "Recording is off")
        words = make.text(f"{name}_unrecorded", "warning", wrap=True, width="any")
        words.setText(f"Recording is off: {lacks}")
        self.button = make.button(
            f"{name}_record",
            "Record",
            "mdi6.record-circle-outline",
            partial(self.record_wanted.emit, True),
            tip="Record what cells run, from the next cell on.",
        )
        make.row((words, 1), self.button, on=self, gap=GRID)
        self.hide()

    def show_recording(self, on: bool) -> None:
        self.setVisible(not on)
