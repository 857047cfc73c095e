"""The code of a trace: an editor for new code, and the code that ran with its line marked."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import (
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from engine.protocol import OutputSnapshot, OutputTailSnapshot, TraceSnapshot
from widgets import make
from widgets.console.code_input import CodeInput
from widgets.console.history import History
from widgets.console.transcript import Transcript
from widgets.icons import set_icon
from widgets.model.code_editor import CodeEditor
from widgets.theme import GRID
from widgets.trace.traced_lines import TraceLines

OUTPUT_HEIGHT = 96
BATCH_TEXT = (
    "Start runs the current batch through the model and records everything that torch does. If no"
    " forward pass is under way, one begins."
)


class TraceInput(CodeInput):
    """A console's input as tall as its place: Enter begins a new line, Shift+Enter starts."""

    def __init__(self) -> None:
        super().__init__(History())
        make.named(self, "trace_input", "Python to trace")
        self.setToolTip(
            "Python code. It runs with the console's variables, and what it defines stays there; an"
            " unchanged example has its own variables. Shift+Enter starts the trace, Tab completes."
        )
        self.setPlaceholderText("y = model(x)")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return QSize(400, 300)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 80)

    def _enter_runs(self) -> bool:
        return False


class TraceSource(QWidget):
    """`line_chosen(number)` asks to go to this call: the reader has clicked on its line."""

    line_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("trace_source")
        self._lines = TraceLines()
        self._position = -1
        self._file = ""  # the one in the reader; "" for the model's own code
        self._model_code = ""
        self._mode = "code"
        self._place = ""
        self._is_editing = True
        self.input = TraceInput()
        self.reader = CodeEditor(
            "trace_code",
            "The code that was traced",
            "The code that ran. Click a line to go to the next time it runs; after the last time"
            " comes the first.",
        )
        self.reader.line_clicked.connect(self._on_line)
        hint = make.empty(BATCH_TEXT, "trace_batch_hint")
        hint.setMargin(2 * GRID)
        self._pages = QStackedWidget()
        for page in (self.input, self.reader, hint):
            self._pages.addWidget(page)
        self._where = QLabel()
        self._where.setObjectName("trace_where")
        self._where.setTextFormat(Qt.TextFormat.PlainText)
        self._where.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._where.setToolTip(
            "The line that the current call belongs to, and which time the line ran."
        )
        self._edit = make.tool_button("trace_edit")
        self._edit.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._edit.clicked.connect(lambda: self.edit(not self._is_editing))
        self.output = Transcript()
        make.named(self.output, "trace_output", "What the code printed", "What the code printed.")
        self.output.setMaximumHeight(OUTPUT_HEIGHT)
        self._printed = make.label("Printed", "muted")
        self._printed.setContentsMargins(GRID, GRID // 2, 0, 0)
        head = make.row((self._where, 1), self._edit, gap=-1, margins=(GRID, 0, GRID // 2, 0))
        head.addStrut(self._edit.sizeHint().height())
        make.column(head, (self._pages, 1), self._printed, self.output, on=self, gap=0)
        self.clear_output()
        self._show_page()

    # -- showing ---------------------------------------------------------------------------------

    def show_mode(self, mode: str) -> None:
        """Set whether `code` or the `batch` is traced next. The last trace stays visible, except
        one of the batch when there is code to write."""
        self._mode = mode
        trace = self._lines.trace
        self._is_editing = trace is None or not (trace.source or trace.rule)
        self._show_page()

    def edit(self, editing: bool) -> None:
        """Show the input, or the code that ran."""
        self._is_editing = editing
        self._show_page()
        (self.input if editing else self.reader).setFocus()

    def show_trace(self, trace: TraceSnapshot | None, model_code: str = "") -> None:
        """Show a trace; `model_code` is the model's Python, for a trace of its batch."""
        self._lines = TraceLines(trace)
        self._model_code = model_code
        self._is_editing = trace is None or (bool(trace.source) and not trace.calls)
        error = None if trace is None else trace.error
        if error is not None and error.line is not None and self._is_editing:
            block = self.input.document().findBlockByNumber(error.line - 1)
            self.input.setTextCursor(QTextCursor(block))
        self.show_position(-1)

    def show_position(self, position: int) -> None:
        """Mark the line of a call; before the first call, the line at which the code failed, if it
        did."""
        self._position = position
        mark = self._lines.mark(position)
        self._show_file(mark.file)
        self.reader.highlight(mark.lines, scroll=True, role=mark.role)
        self._place = mark.text
        self._show_page()

    def _show_file(self, file: str) -> None:
        self._file = file
        source = self._lines.source_of(file)
        if source is None:
            source = "" if self._lines.trace is None else self._model_code
        if source != self.reader.toPlainText():
            self.reader.setPlainText(source)

    def add_output(self, output: OutputSnapshot | OutputTailSnapshot) -> None:
        if isinstance(output, OutputTailSnapshot):
            self.output.show_tail(output)
        else:
            self.output.add_output(output.stream, output.text)
        self.output.show()
        self._printed.show()

    def clear_output(self) -> None:
        self.output.clear()
        self.output.hide()
        self._printed.hide()

    def _show_page(self) -> None:
        is_batch = self._mode == "batch"
        has_trace = self._lines.trace is not None
        shows_input = not is_batch and (self._is_editing or not has_trace)
        self._pages.setCurrentIndex(0 if shows_input else 1 if has_trace else 2)
        self._where.setText("Code to trace" if shows_input else self._place)
        self._edit.setVisible(not is_batch and has_trace)
        text, icon = ("Show the trace", "mdi6.eye-outline") if shows_input else (
            "Edit", "mdi6.pencil-outline",
        )  # fmt: skip
        self._edit.setText(text)
        self._edit.setAccessibleName(text)
        self._edit.setToolTip(
            "Go back to the code that ran."
            if shows_input
            else "Change the code. The last trace stays until you start another."
        )
        set_icon(self._edit, icon)

    def _on_line(self, line: int) -> None:
        call = self._lines.next_call(line, self._position, self._file)
        if call is not None:
            self.line_chosen.emit(call)
