"""The input for Python of several lines: highlighting, indenting, history, completion."""

from __future__ import annotations

import codeop
import re
import warnings

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QTextCursor
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
    """Whether Enter after `source` runs it: no bracket, string or block is open.

    An empty line closes a block. A source with a syntax error that further lines cannot mend is
    complete, too: running it shows the error.
    """
    lines = source.split("\n")
    last = lines[-1]
    if last.strip() and last[0] in " \t":
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run itself shows them
        try:
            return codeop.compile_command(source, "<input>", "exec") is not None
        except (SyntaxError, ValueError, OverflowError):
            return True


class CodeInput(QPlainTextEdit):
    """An editor for a cell. Enter runs a complete source, and adds a line to an incomplete one.
    Shift+Enter always runs, Ctrl+Enter always adds a line. Up in the first line and Down in the
    last line go through the history.

    `submitted(source)` asks to run; the text stays until `clear`. `completion_wanted(source,
    cursor)` asks for completions; the owner answers by `show_completions`. `interrupt_wanted()`:
    Ctrl+C was pressed, and there is nothing to copy.
    """

    submitted = Signal(str)
    completion_wanted = Signal(str, int)
    interrupt_wanted = Signal()

    def __init__(self, history: History, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "console_input", "Python to run")
        self.setToolTip(
            "Python, run among the variables of this session.\nEnter runs it (or goes on with an"
            " unfinished block; an empty line ends it), Shift+Enter runs it as it stands,"
            " Ctrl+Enter begins a new line.\nTab completes, Up and Down bring back earlier input."
            " Ctrl+C without a selection stops the code that runs."
        )
        self.setPlaceholderText("x = torch.arange(12.).view(3, 4)")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.history = history
        self._asked: tuple[str, int] | None = None
        self._answer: CompletionsSnapshot | None = None
        self._popup: CompletionPopup | None = None
        self._highlighter = PythonHighlighter(self.document())
        self.document().blockCountChanged.connect(self.updateGeometry)
        self.cursorPositionChanged.connect(self._follow_popup)
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    @property
    def popup(self) -> CompletionPopup:
        """The list of completions, made at its first use, as a child of the editor's window."""
        if self._popup is None:
            self._popup = CompletionPopup(self.window())
            self._popup.chosen.connect(self._insert_completion)
            self.destroyed.connect(self._popup.deleteLater)
        return self._popup

    def source(self) -> str:
        return self.toPlainText()

    def set_source(self, source: str) -> None:
        """Replace all text, as one step of undo, and move the cursor to its end."""
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(source)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def submit(self) -> None:
        """Emit `submitted`, unless the text is empty."""
        self._close_popup()
        if self.source().strip():
            self.submitted.emit(self.source())

    def show_completions(self, snapshot: CompletionsSnapshot) -> None:
        """Show the answer to the last `completion_wanted`, unless the text before the name has
        changed since."""
        if self._asked is None:
            return
        source, asked_at = self._asked
        here = self.textCursor().position()
        if self.source()[: snapshot.start] != source[: snapshot.start] or here < asked_at:
            return
        self._answer = snapshot
        fitting = self._fitting()
        # A single completion is inserted at once after Tab, unless the user has typed on since;
        # after a dot there is no word yet.
        is_single = len(fitting) == 1 and here == asked_at
        if is_single and self._word() and not self.popup.isVisible():
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
        # The editor takes these keys before shortcuts: Esc while the popup is open, and Ctrl+Enter.
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
        if event.matches(QKeySequence.StandardKey.Copy) and not self.textCursor().hasSelection():
            self.interrupt_wanted.emit()
        elif key in _ENTER:
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
                self._ask()

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

    def _ask(self) -> None:
        self._asked = self.source(), self.textCursor().position()
        self._answer = None
        self.completion_wanted.emit(*self._asked)

    def _word(self) -> str:
        """The part of the name before the cursor."""
        assert self._answer is not None
        return self.source()[self._answer.start : self.textCursor().position()]

    def _fitting(self) -> tuple[Completion, ...]:
        assert self._answer is not None
        word = self._word().lower()
        return tuple(c for c in self._answer.completions if c.text.lower().startswith(word))

    def _follow_popup(self) -> None:
        """Narrow the list as the user types the name; close it when the cursor leaves the name."""
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
        """Let the popup handle a key. Returns whether it has."""
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
                self._close_popup()  # the name is complete: this Enter is for the editor
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
        """The rect of the caret at the beginning of the name, in global coordinates."""
        assert self._answer is not None
        cursor = self.textCursor()
        cursor.setPosition(min(self._answer.start, cursor.position()))
        rect = self.cursorRect(cursor)
        return QRect(self.viewport().mapToGlobal(rect.topLeft()), rect.size())

    def _use_theme(self) -> None:
        self.setFont(theme.mono_font())
        self.updateGeometry()
