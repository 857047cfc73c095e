"""The newest lines of a long output, below a note that tells how much is left out before them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import OutputTailSnapshot
from widgets import make, theme


class LeftOutNote(QFrame):
    """Says how much is left out, and opens the file that holds it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "console_left_out", "Output that is left out")
        self._path = ""
        self._words = make.label("", "muted", "console_left_out_words")
        self._open = make.button(
            "console_left_out_open",
            "Open all of it",
            slot=self._open_file,
            tip="Open the file that holds all of this cell's output.",
        )
        make.row(self._words, self._open, make.STRETCH, on=self, gap=theme.GRID)

    @property
    def text(self) -> str:
        return self._words.text()

    def show_tail(self, tail: OutputTailSnapshot) -> None:
        lines, characters = tail.left_out_lines, tail.left_out_characters
        count = f"{lines:,} lines" if lines > 1 else f"{characters:,} characters"
        words = f"… {count} are left out here."
        if tail.fault:
            words += f" No file holds all of them: {tail.fault}."
        elif not tail.is_whole:
            words += " The file holds only their beginning: it is full."
        self._path = tail.path
        self._words.setText(words)
        self._open.setVisible(bool(tail.path))
        self._open.setToolTip(f"Open the file that holds this cell's output:\n{tail.path}")

    def _open_file(self) -> None:
        if not Path(self._path).exists():
            self._words.setText(f"The file no longer exists: {self._path}")
        elif not QDesktopServices.openUrl(QUrl.fromLocalFile(self._path)):
            self._words.setText(f"No program opens it. It is here: {self._path}")


class TailPlace:
    """Where the tail stands in a text: what is written after it stays."""

    def __init__(self, cursor: QTextCursor) -> None:
        """`cursor` stands at the beginning of an empty line."""
        cursor.setBlockFormat(QTextBlockFormat())
        self._start, self._end = QTextCursor(cursor), QTextCursor(cursor)
        for end in (self._start, self._end):
            end.setKeepPositionOnInsert(True)

    def selected(self) -> QTextCursor:
        """A cursor that has selected the text, to replace it; then call `end_at`."""
        cursor = QTextCursor(self._start)
        cursor.setKeepPositionOnInsert(False)
        cursor.setPosition(self._start.position())  # text that was inserted has moved its anchor
        cursor.setPosition(self._end.position(), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def end_at(self, cursor: QTextCursor) -> None:
        """The text now ends at `cursor`."""
        self._end.setPosition(cursor.position())
