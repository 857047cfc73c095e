"""The transcript of the console: the cells that ran, each with its output."""

from __future__ import annotations

import re

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QMouseEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from engine.protocol import ErrorReport, FailedOperands, Finding, OutputTailSnapshot
from widgets import make, theme
from widgets.advice.note import FindingNote
from widgets.console.entries import ROLES, Entry, Kind
from widgets.console.inline_widgets import InlineWidgets
from widgets.console.input_lines import InputLines
from widgets.console.output_tail import LeftOutNote, TailPlace
from widgets.model.python_highlighter import PythonHighlighter
from widgets.shapes.failure_view import FailureView

MAX_LINES = 5000
MAX_LINE_CHARACTERS = 4000
MAX_ENTRIES = 2000

_IS_INPUT = QTextFormat.Property.UserProperty + 1
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\x07")


class Transcript(QPlainTextEdit):
    """The read-only text of the transcript: the last 5,000 lines, very long ones cut. Text after a
    carriage return replaces its line, so that progress bars work. Colour codes of terminals are
    dropped. `finding_muted(kind)`: no findings of this kind are wanted. `line_chosen(file, line)`:
    the reader has clicked on a line of a cell."""

    finding_muted = Signal(str)
    line_chosen = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "console_output", "Console output")
        self.setToolTip(
            "What was run and what came back. The line that an error points at is marked. Text can"
            " be selected and copied."
        )
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMaximumBlockCount(MAX_LINES)
        self.setWordWrapMode(self.wordWrapMode().WrapAtWordBoundaryOrAnywhere)
        self.setUndoRedoEnabled(False)
        self._entries: list[Entry] = []
        self._input_start = QTextCursor(self.document())
        self._returned = False
        """Whether the last line ends in a carriage return, so that more text replaces it."""
        self._tail: Entry | None = None  # of the cell in hand
        self._tail_place: TailPlace | None = None
        self._tail_note: LeftOutNote | None = None
        self._pictures = InlineWidgets(self)
        self.lines = InputLines(self)
        self._highlighter = _InputHighlighter(self.document())
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    def add_input(self, source: str) -> Entry:
        """Add a cell that begins to run, and scroll to the end, where its output will be."""
        self._tail = None
        entry = Entry("input", source.rstrip())
        self._add(entry)
        self._follow(True)
        return entry

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self._tell_line(event.position().toPoint())

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._tell_line(event.pos())
        menu = self.createStandardContextMenu()
        menu.setParent(self, menu.windowFlags())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        make.pop_up(menu, event.globalPos())

    def _tell_line(self, point: QPoint) -> None:
        line = self.lines.at(self.cursorForPosition(point).block())
        if line is not None:
            self.line_chosen.emit(*line)

    def add_output(self, kind: Kind, text: str) -> None:
        """Add what a cell printed, joined to its output before."""
        last = self._entries[-1] if self._entries else None
        if last is not None and last.kind == kind:
            # The text is needed only for a change of theme, so of a long output the end is enough.
            last.text = (last.text + text)[-MAX_LINES * 100 :]
            self._write(kind, text)
        else:
            self._add(Entry(kind, text))

    def show_tail(self, tail: OutputTailSnapshot) -> None:
        """Show the newest end of a long output, in place of the one shown before."""
        if self._tail is None:
            self._tail = Entry("tail", tail=tail)
            self._add(self._tail)
        else:
            self._tail.tail = tail
            self._write_tail(tail)

    def add_error(self, error: ErrorReport, line_in_input: int | None) -> None:
        """Add the error of a cell: its whole traceback (or message), the hint, and a picture of the
        operands that failed. Mark `line_in_input`, 1-based, in the last input. If not all of it is
        visible, its beginning is."""
        follows = self._follows()
        start = self._end()
        start.setKeepPositionOnInsert(True)
        if line_in_input is not None:
            for entry in reversed(self._entries):
                if entry.kind == "input":
                    entry.faulty_line = line_in_input
                    break
            self._mark(line_in_input)
        text = error.traceback.rstrip() or f"{error.type}: {error.message}"
        self._add(Entry("error", f"{text}\n"))
        if error.hint:
            self._add(Entry("hint", f"{error.hint}\n"))
        if error.operands is not None:
            self._add(Entry("operands", operands=error.operands))
        if follows:
            self._show_from(start.block())

    def begin_output(self, of: str) -> None:
        """Head the output that follows, which is not that of a cell."""
        self._tail = None
        self.add_note(f"{of} prints:")

    def add_note(self, text: str) -> None:
        """Add a message of the program."""
        self._add(Entry("note", f"{text}\n"))

    def add_finding(self, finding: Finding) -> None:
        """Add a note about the code of the cell."""
        self._add(Entry("finding", finding=finding))

    def drop_findings(self, kind: str) -> None:
        """Remove the notes of a kind."""
        for note in self.notes():
            if note.finding.kind == kind:
                self._drop(note)

    def clear(self) -> None:
        self._entries.clear()
        self._tail = None
        self._pictures.clear()
        self.lines.clear()
        super().clear()

    def pictures(self) -> list[FailureView]:
        """The pictures of failed operands, from the top."""
        return [view for view in self._pictures.widgets() if isinstance(view, FailureView)]

    def notes(self) -> list[FindingNote]:
        """The notes about the code, from the top."""
        return [note for note in self._pictures.widgets() if isinstance(note, FindingNote)]

    def faulty_lines(self) -> list[str]:
        """The texts of the marked lines of inputs."""
        found = []
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().property(_IS_INPUT) == "faulty":
                found.append(block.text())
            block = block.next()
        return found

    # -- writing ---------------------------------------------------------------------------------

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        del self._entries[:-MAX_ENTRIES]
        self._write_entry(entry)

    def _write_entry(self, entry: Entry) -> None:
        if entry.kind == "input":
            self._write_input(entry)
        elif entry.operands is not None:
            self._draw(entry.operands)
        elif entry.finding is not None:
            self._insert(self._note_of(entry, entry.finding))
        elif entry.tail is not None:
            self._begin_tail()
            self._write_tail(entry.tail)
        else:
            self._write(entry.kind, entry.text)

    def _draw(self, operands: FailedOperands) -> None:
        view = FailureView()
        view.show_failed(operands)
        self._insert(view)

    def _insert(self, widget: QWidget) -> QTextCursor:
        """Add a widget at the end; the cursor is then below it."""
        follows = self._follows()
        cursor = self._end()
        self._begin_line(cursor)
        self._pictures.insert(cursor, widget)
        self._follow(follows)
        return cursor

    def _note_of(self, entry: Entry, finding: Finding) -> FindingNote:
        note = FindingNote(finding, entry.is_open)

        def fit() -> None:
            entry.is_open = note.is_open
            self._pictures.fit(note)
            if note.is_open:
                self._pictures.bring_up(note)

        note.height_changed.connect(fit)
        note.dismissed.connect(lambda: self._drop(note))
        note.muted.connect(self.finding_muted)
        return note

    def _drop(self, note: FindingNote) -> None:
        self._entries = [each for each in self._entries if each.finding is not note.finding]
        self._pictures.remove(note)

    def _begin_tail(self) -> None:
        self._tail_note = LeftOutNote()
        self._tail_place = TailPlace(self._insert(self._tail_note))

    def _write_tail(self, tail: OutputTailSnapshot) -> None:
        assert self._tail_place is not None
        follows = self._follows()
        if self._tail_note in self._pictures.widgets():
            self._tail_note.show_tail(tail)
        cursor = self._tail_place.selected()
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        for piece in tail.pieces:
            self._write_at(cursor, piece.stream, piece.text)
        cursor.endEditBlock()
        self._tail_place.end_at(cursor)
        self._follow(follows)

    def _write_input(self, entry: Entry) -> None:
        follows = self._follows()
        cursor = self._end()
        self._begin_line(cursor)
        if cursor.position() > 0:
            cursor.insertBlock(QTextBlockFormat())  # an empty line between cells
        colors = theme.current()
        band = QTextBlockFormat()
        band.setProperty(_IS_INPUT, "input")
        band.setBackground(colors.color("accent", 26))
        cursor.setBlockFormat(band)
        cursor.insertText(entry.text, self._format("input"))
        start = self.document().findBlock(cursor.position())
        for _ in range(entry.text.count("\n")):
            start = start.previous()
        self._input_start = QTextCursor(start if start.isValid() else self.document().begin())
        cursor.insertBlock(QTextBlockFormat())
        self.lines.add(entry, self._input_start)
        if entry.faulty_line is not None:
            self._mark(entry.faulty_line)
        self._follow(follows)

    def _write(self, kind: Kind, text: str) -> None:
        follows = self._follows()
        cursor = self._end()
        cursor.beginEditBlock()
        self._write_at(cursor, kind, text)
        cursor.endEditBlock()
        self._follow(follows)

    def _write_at(self, cursor: QTextCursor, kind: Kind, text: str) -> None:
        if kind not in ("stdout", "stderr"):
            self._begin_line(cursor)
        cursor.setCharFormat(self._format(kind))
        lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
        # Of more lines than the transcript holds, only the last ones are laid out.
        for index, line in enumerate(lines[-MAX_LINES:]):
            if index:
                cursor.insertBlock(QTextBlockFormat())
                self._returned = False
            self._write_line(cursor, line, kind)

    def _write_line(self, cursor: QTextCursor, line: str, kind: Kind) -> None:
        """Add to the current line. A carriage return in `line` clears it first."""
        if not line:
            return
        if self._returned:
            line = "\r" + line
        # A return at the end clears only when more text comes: a progress bar stays visible.
        self._returned = line.endswith("\r")
        if "\r" in line:
            kept = line.rstrip("\r").rpartition("\r")[2]
            cursor.movePosition(
                QTextCursor.MoveOperation.StartOfBlock, QTextCursor.MoveMode.KeepAnchor
            )
            cursor.removeSelectedText()
            line = kept
        room = MAX_LINE_CHARACTERS - cursor.positionInBlock()
        if room > 0:
            cut = len(line) > room
            cursor.insertText(f"{line[:room]} …" if cut else line, self._format(kind))

    def _mark(self, line: int) -> None:
        """Mark the 1-based line of the last input."""
        block = self._input_start.block()
        for _ in range(line - 1):
            block = block.next()
        if not block.isValid() or block.blockFormat().property(_IS_INPUT) is None:
            return
        band = QTextBlockFormat()
        band.setProperty(_IS_INPUT, "faulty")
        band.setBackground(theme.current().color("error", 70))
        QTextCursor(block).setBlockFormat(band)

    def _begin_line(self, cursor: QTextCursor) -> None:
        self._returned = False
        if not cursor.atBlockStart():
            cursor.insertBlock(QTextBlockFormat())

    def _end(self) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        return cursor

    def _format(self, kind: Kind) -> QTextCharFormat:
        text_format = QTextCharFormat()
        text_format.setForeground(theme.current().color(ROLES[kind]))
        if kind in ("hint", "note"):
            text_format.setFontItalic(True)
        if kind == "hint":
            text_format.setFontWeight(QFont.Weight.DemiBold)
        return text_format

    def _follows(self) -> bool:
        """Whether the end is visible. If so, new text is scrolled into view."""
        bar = self.verticalScrollBar()
        return bar.value() >= bar.maximum()

    def _follow(self, follows: bool) -> None:
        if follows:
            bar = self.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _show_from(self, block: QTextBlock) -> None:
        """Scroll back to the line above a block if it has left the view at the top."""
        bar = self.verticalScrollBar()
        bar.setValue(min(bar.value(), block.firstLineNumber() - 1))

    def _use_theme(self) -> None:
        """Write all entries again in the colours of the theme."""
        self.setFont(theme.mono_font())
        place = self.verticalScrollBar().value()
        follows = self._follows()
        self._pictures.clear()
        self.lines.clear()
        super().clear()
        for entry in self._entries:
            self._write_entry(entry)
        if not follows:
            self.verticalScrollBar().setValue(place)


class _InputHighlighter(PythonHighlighter):
    """Colours the lines of inputs as Python, and no others."""

    def highlightBlock(self, text: str) -> None:
        if self.currentBlock().blockFormat().property(_IS_INPUT) is None:
            self.setCurrentBlockState(0)
        else:
            super().highlightBlock(text)
