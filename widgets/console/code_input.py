"""The input for Python: several lines, highlighting, indenting, history, completion."""

from __future__ import annotations

import codeop
import re
import warnings

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from engine.protocol import Completion, CompletionsSnapshot
from widgets import make, theme
from widgets.console.completion_popup import CompletionPopup
from widgets.console.history import History
from widgets.model.python_highlighter import PythonHighlighter

INDENT = "    "
MAX_SHOWN_LINES = 12
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


def is_complete(source: str) -> bool:
    """Whether Enter after `source` should run it: it has no open bracket, string or block.

    A block of several lines is closed by an empty line. What cannot become Python by going on is
    complete too: running it tells what is wrong.
    """
    lines = source.split("\n")
    last = lines[-1]
    if last.strip() and last[0] in " \t":
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they belong to the run
        try:
            return codeop.compile_command(source, "<input>", "exec") is not None
        except (SyntaxError, ValueError, OverflowError):
            return True


class CodeInput(QPlainTextEdit):
    """Enter runs what is complete and goes on with what is not; Shift+Enter runs in any case,
    Ctrl+Enter never does. Up in the first line and Down in the last walk through the history.

    `submitted(source)` tells what to run; the text stays until `clear`. `completion_wanted(source,
    cursor)` asks for names; `show_completions` answers.
    """

    submitted = Signal(str)
    completion_wanted = Signal(str, int)

    def __init__(self, history: History, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "console_input", "Python to run")
        self.setToolTip(
            "Python, run among the variables of this session.\nEnter runs it (or goes on with an"
            " unfinished block; an empty line ends it), Shift+Enter runs it as it stands,"
            " Ctrl+Enter begins a new line.\nTab completes, Up and Down bring back earlier input."
        )
        self.setPlaceholderText("x = torch.arange(12.).view(3, 4)")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.history = history
        self._asked: tuple[str, int] | None = None
        self._asked_by_key = False
        self._answer: CompletionsSnapshot | None = None
        self._popup: CompletionPopup | None = None
        self._highlighter = PythonHighlighter(self.document())
        self.document().blockCountChanged.connect(self.updateGeometry)
        self.cursorPositionChanged.connect(self._follow_popup)
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    @property
    def popup(self) -> CompletionPopup:
        """Made at its first use, inside the window that the editor then stands in."""
        if self._popup is None:
            self._popup = CompletionPopup(self.window())
            self._popup.chosen.connect(self._insert_completion)
            self.destroyed.connect(self._popup.deleteLater)
        return self._popup

    def source(self) -> str:
        return self.toPlainText()

    def set_source(self, source: str) -> None:
        """Replace all text (one step of undo) and stand at its end."""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(source)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def submit(self) -> None:
        """Run the text, if there is any."""
        self._close_popup()
        if self.source().strip():
            self.submitted.emit(self.source())

    def show_completions(self, snapshot: CompletionsSnapshot) -> None:
        """Show the answer to what was asked last, unless the text has become another since."""
        if self._asked is None:
            return
        source, asked_at = self._asked
        here = self.textCursor().position()
        if self.source()[: snapshot.start] != source[: snapshot.start] or here < asked_at:
            return
        self._answer = snapshot
        fitting = self._fitting()
        # Only Tab inserts at once, and only where it was pressed: whoever types on types the rest.
        by_key = self._asked_by_key and here == asked_at
        if len(fitting) == 1 and self._word() and by_key and not self.popup.isVisible():
            self._insert_completion(fitting[0].text)
            return
        self.popup.show_at(self._caret_rect(), fitting)

    def sizeHint(self) -> QSize:
        lines = min(max(1, self.blockCount()), MAX_SHOWN_LINES)
        margin = round(2 * self.document().documentMargin()) + 2 * self.frameWidth()
        return QSize(400, lines * self.fontMetrics().lineSpacing() + margin + theme.GRID)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        # Esc belongs to the popup while it is open; Ctrl+Enter is no shortcut of the window here.
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            is_escape = event.key() == Qt.Key.Key_Escape and self._popup_is_open()
            if is_escape or event.key() in _ENTER:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._popup_is_open() and self._popup_key(event):
            return
        key, modifiers = event.key(), event.modifiers()
        control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        shift = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        if key in _ENTER:
            if shift or (not control and self._enter_runs()):
                self.submit()
            else:
                self._new_line()
        elif key == Qt.Key.Key_Tab:
            self._tab()
        elif key == Qt.Key.Key_Backtab:
            self._indent_lines(-1)
        elif key == Qt.Key.Key_Space and control:
            self._ask()
        elif key == Qt.Key.Key_Backspace and self._in_indent():
            self._back_to_tab_stop()
        elif key == Qt.Key.Key_Up and not modifiers and self._at_first_line():
            self._recall(self.history.older(self.source()))
        elif key == Qt.Key.Key_Down and not modifiers and self._at_last_line():
            self._recall(self.history.newer())
        else:
            super().keyPressEvent(event)
            if event.text() == ".":
                self._ask(by_key=False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._close_popup()

    # -- lines -----------------------------------------------------------------------------------

    def _enter_runs(self) -> bool:
        cursor = self.textCursor()
        behind = self.source()[cursor.position() :]
        return not behind.strip() and is_complete(self.source())

    def _new_line(self) -> None:
        cursor = self.textCursor()
        line = cursor.block().text()[: cursor.positionInBlock()]
        indent = re.match(r"[ \t]*", line).group()  # pyright: ignore[reportOptionalMemberAccess]
        if line.split("#")[0].rstrip().endswith(":"):
            indent += INDENT
        cursor.insertText("\n" + indent)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def _tab(self) -> None:
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        if cursor.hasSelection():
            self._indent_lines(+1)
        elif before.strip() and (before[-1].isalnum() or before.rstrip()[-1] in "_.(,"):
            self._ask()
        else:
            cursor.insertText(" " * (len(INDENT) - len(before) % len(INDENT)))

    def _indent_lines(self, direction: int) -> None:
        cursor = self.textCursor()
        document = self.document()
        first = document.findBlock(cursor.selectionStart()).blockNumber()
        last = document.findBlock(cursor.selectionEnd()).blockNumber()
        cursor.beginEditBlock()
        for number in range(first, last + 1):
            line = QTextCursor(document.findBlockByNumber(number))
            if direction > 0:
                line.insertText(INDENT)
                continue
            text = line.block().text()
            spaces = min(len(INDENT), len(text) - len(text.lstrip(" ")))
            for _ in range(spaces):
                line.deleteChar()
        cursor.endEditBlock()

    def _in_indent(self) -> bool:
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        return bool(before) and not before.strip(" ") and not cursor.hasSelection()

    def _back_to_tab_stop(self) -> None:
        cursor = self.textCursor()
        for _ in range((cursor.positionInBlock() - 1) % len(INDENT) + 1):
            cursor.deletePreviousChar()

    # -- history ---------------------------------------------------------------------------------

    def _at_first_line(self) -> bool:
        return self.textCursor().blockNumber() == 0

    def _at_last_line(self) -> bool:
        return self.textCursor().blockNumber() == self.blockCount() - 1

    def _recall(self, entry: str | None) -> None:
        if entry is not None:
            self.set_source(entry)

    # -- completion ------------------------------------------------------------------------------

    def _ask(self, by_key: bool = True) -> None:
        self._asked = self.source(), self.textCursor().position()
        self._asked_by_key = by_key
        self._answer = None
        self.completion_wanted.emit(*self._asked)

    def _word(self) -> str:
        """The typed part of the name."""
        assert self._answer is not None
        return self.source()[self._answer.start : self.textCursor().position()]

    def _fitting(self) -> tuple[Completion, ...]:
        assert self._answer is not None
        word = self._word().lower()
        return tuple(c for c in self._answer.completions if c.text.lower().startswith(word))

    def _follow_popup(self) -> None:
        """Narrow the list while the name is typed on; close it when the cursor leaves the name."""
        if not self._popup_is_open() or self._answer is None:
            return
        in_name = self.textCursor().position() >= self._answer.start
        if in_name and (not self._word() or self._word().isidentifier()):
            self.popup.show_at(self._caret_rect(), self._fitting())
        else:
            self._close_popup()

    def _popup_is_open(self) -> bool:
        return self._popup is not None and self._popup.isVisible()

    def _popup_key(self, event: QKeyEvent) -> bool:
        """Handle a key by the popup. Returns whether the popup has used it."""
        steps = {
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_PageUp: -8,
            Qt.Key.Key_PageDown: 8,
        }
        if event.key() in steps:
            self.popup.step(steps[Qt.Key(event.key())])
        elif event.key() in (*_ENTER, Qt.Key.Key_Tab) and not event.modifiers():
            if event.key() in _ENTER and self._word() in self.popup.texts():
                self._close_popup()  # the name is written out: Enter means the line
                return False
            self.popup.accept()
        elif event.key() == Qt.Key.Key_Escape:
            self._close_popup()
        else:
            return False
        return True

    def _insert_completion(self, text: str) -> None:
        assert self._answer is not None
        cursor = self.textCursor()
        cursor.setPosition(self._answer.start, QTextCursor.MoveMode.KeepAnchor)
        self._close_popup()
        cursor.insertText(text)
        self.setTextCursor(cursor)

    def _close_popup(self) -> None:
        self._asked = None
        if self._popup is not None:
            self._popup.hide()

    def _caret_rect(self) -> QRect:
        """Of the beginning of the name, in global coordinates."""
        assert self._answer is not None
        cursor = self.textCursor()
        cursor.setPosition(min(self._answer.start, cursor.position()))
        rect = self.cursorRect(cursor)
        return QRect(self.viewport().mapToGlobal(rect.topLeft()), rect.size())

    def _use_theme(self) -> None:
        self.setFont(theme.mono_font())
        self.updateGeometry()
