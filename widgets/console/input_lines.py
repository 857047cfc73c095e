"""Which lines of the transcript are which lines of the cells, and those that are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtGui import QTextBlock, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

from widgets import theme
from widgets.console.entries import Entry

Line = tuple[str, int]
"""The file name of a cell (`<cell 3>`) and a line in it, from 1."""


class InputLines:
    """Knows the inputs of a transcript by where they start. Only inputs whose `file` is known have
    lines."""

    def __init__(self, text: QPlainTextEdit) -> None:
        self._text = text
        self._inputs: list[tuple[Entry, QTextCursor]] = []
        self._chosen: tuple[Line, ...] = ()

    def add(self, entry: Entry, start: QTextCursor) -> None:
        """An input has been written, from this place on."""
        self._inputs.append((entry, start))
        if any(file == entry.file for file, _ in self._chosen):
            self.light(self._chosen)

    def clear(self) -> None:
        """The transcript has been emptied."""
        self._inputs.clear()

    def name(self, entry: Entry, file: str, first_line: int) -> None:
        """An input is this code: its lines are those of `file`, from `first_line` on."""
        entry.file, entry.first_line = file, first_line
        self.light(self._chosen)

    def forget(self) -> None:
        """The engine that named the cells has ended."""
        for entry, _ in self._inputs:
            entry.file = ""
        self.light(())

    def at(self, block: QTextBlock) -> Line | None:
        """The line that stands in a block; None for output, and for what is not named."""
        for entry, start in reversed(self._inputs):
            for line, each in self._blocks(entry, start):
                if each == block:
                    return entry.file, line
        return None

    def light(self, lines: Sequence[Line]) -> None:
        """Light exactly these lines."""
        self._chosen = tuple(lines)
        marks = []
        for block in self.lit():
            mark = QTextEdit.ExtraSelection()
            color = theme.current().color("text", theme.CHOSEN_ALPHA)
            mark.format.setBackground(color)  # type: ignore[attr-defined]
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)  # type: ignore[attr-defined]
            mark.cursor = QTextCursor(block)  # type: ignore[attr-defined]
            marks.append(mark)
        self._text.setExtraSelections(marks)

    def lit(self) -> list[QTextBlock]:
        """The blocks of the lines that are lit, from the top."""
        files = {file for file, _ in self._chosen}
        return [
            block
            for entry, start in self._inputs
            if entry.file in files
            for line, block in self._blocks(entry, start)
            if (entry.file, line) in self._chosen
        ]

    def reveal(self) -> None:
        """Bring the first line that is lit into view."""
        for block in self.lit()[:1]:
            self._text.setTextCursor(QTextCursor(block))
            self._text.ensureCursorVisible()

    def _blocks(self, entry: Entry, start: QTextCursor) -> Iterator[tuple[int, QTextBlock]]:
        """The lines of an input with their blocks, as far as the transcript still has them."""
        block = start.block()
        for number, text in enumerate(entry.text.split("\n") if entry.file else ()):
            if block.isValid() and block.text() == text:
                yield entry.first_line + number, block
            block = block.next()
