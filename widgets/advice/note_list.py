"""The findings about a run, under each other."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import Finding
from widgets import make
from widgets.advice.note import FindingNote
from widgets.theme import GRID


class FindingList(QWidget):
    """Takes no room while it is empty. `muted(kind)`: no note of this kind is to be shown."""

    muted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "finding_list", "Advice about this run")
        self._notes: list[FindingNote] = []
        self._column = make.column(on=self, gap=GRID // 2)
        self.hide()

    def notes(self) -> list[FindingNote]:
        return list(self._notes)

    def add(self, finding: Finding) -> None:
        note = FindingNote(finding)
        note.dismissed.connect(lambda: self._remove(note))
        note.muted.connect(self.muted)
        self._notes.append(note)
        self._column.addWidget(note)
        self.show()

    def drop(self, kind: str) -> None:
        """Remove the notes of a kind."""
        for note in self.notes():
            if note.finding.kind == kind:
                self._remove(note)

    def clear(self) -> None:
        for note in self.notes():
            self._remove(note)

    def _remove(self, note: FindingNote) -> None:
        self._notes.remove(note)
        self._column.removeWidget(note)
        note.hide()
        note.deleteLater()
        self.setVisible(bool(self._notes))
