"""The Python console: output above, input below, and the state of the cell that runs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QElapsedTimer, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QWidget

from engine.project.cells import FileCell
from engine.protocol import (
    CompletionsSnapshot,
    ErrorReport,
    Finding,
    HeldSnapshot,
    OutputSnapshot,
    OutputTailSnapshot,
)
from widgets import make, theme
from widgets.console.code_input import CodeInput
from widgets.console.entries import Entry
from widgets.console.file_strip import FileStrip
from widgets.console.held_pane import HeldPane
from widgets.console.history import History
from widgets.console.transcript import Transcript
from widgets.text import format_duration

CELL = "<cell>"
"""The filename of typed code."""


@dataclass(frozen=True)
class _Submission:
    """A cell to run. `source` may begin with empty lines, so that line numbers are those of a file;
    `shown`, the text in the transcript, does not have them."""

    source: str
    filename: str
    shown: str

    @property
    def lines_before(self) -> int:
        return self.source[: self.source.index(self.shown)].count("\n") if self.shown else 0


class ConsoleView(QWidget):
    """Runs one cell at a time. Cells submitted meanwhile wait, and are dropped if the cell before
    fails.

    The owner sends `run_requested(source, filename)` as a RunCellCommand and passes its answers to
    `add_output`, then `finish_cell`; if the engine is lost, it calls `abandon`. It answers
    `completion_requested(source, cursor)` by `show_completions` and `open_requested` by
    `open_file`, and sends an InterruptSignal for `interrupt_requested`. Forms and other panels run
    their Python by `submit(source)`, so that the transcript shows it, too. `cell_ended(source,
    error)` tells them of its end. `record_wanted(on)` is answered by `show_recording`.

    While code is held (`show_held`), what is submitted runs there: the owner sends it for
    `held_run_requested(source)`, and calls `finish_held`.
    """

    run_requested = Signal(str, str)
    held_run_requested = Signal(str)
    interrupt_requested = Signal()
    completion_requested = Signal(str, int)
    open_requested = Signal()
    cell_ended = Signal(str, object)
    busy_changed = Signal(bool)
    record_wanted = Signal(bool)

    def __init__(self, history: History | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console")
        self.history = history or History()
        self._waiting: deque[_Submission] = deque()
        self._running: _Submission | None = None
        self._shown: Entry | None = None  # the cell that runs, in the transcript
        self._interrupted = False
        self._held: HeldSnapshot | None = None
        self._typed = False  # Python that ran where the cell was held follows the cell
        self._clock = QElapsedTimer()
        self._ticks = QTimer(self, interval=100)
        self._ticks.timeout.connect(self._show_state)

        self.output = Transcript(self)
        self.input = CodeInput(self.history, self)
        self.file = FileStrip(self)
        self.held = HeldPane(self)
        self.empty = make.empty(
            "Type Python below: torch, nn, F and np are ready, and canvas.model is the canvas's"
            " model. Every form of this workspace runs its line here, so you see how it is"
            " written.",
            "console_empty",
        )
        self.empty.setMargin(theme.GRID)
        self._state = make.label("", "muted", "console_state")
        self.run_button = make.tool_button(
            "console_run",
            "mdi6.play",
            "Run the input (Enter; Shift+Enter for an unfinished block).",
            self._run_input,
            accessible="Run",
        )
        self.run_button.setParent(self)  # Tab goes from the input to it, then to buttons above
        self.interrupt_button = make.tool_button(
            "console_interrupt",
            "mdi6.stop",
            "Stop the cell that runs: a KeyboardInterrupt is raised in it. Variables stay.",
            self.interrupt,
            accessible="Interrupt",
            ink="error",
        )
        self.open_button = make.tool_button(
            "console_open",
            "mdi6.file-code-outline",
            "Open a Python file and run it cell by cell: a line `# %%` begins a cell.",
            self.open_requested,
            accessible="Open a Python file",
        )
        self.record_button = make.tool_button(
            "console_record",
            "mdi6.record-circle-outline",
            "Record what cells run. Off, from the next cell on: its graphs have no lines, no module"
            " names and no values, nor is it known what wrote to a tensor; its loops run as fast as"
            " in plain Python.",
            toggled=self.record_wanted.emit,
            accessible="Record",
        )
        self.clear_button = make.tool_button(
            "console_clear",
            "mdi6.broom",
            "Clear what is shown above. Variables and history stay.",
            self.clear,
            accessible="Clear the output",
        )
        self.record_button.setChecked(True)
        self._lay_out()
        self.input.submitted.connect(lambda source: self._run_input())
        self.input.completion_wanted.connect(self.completion_requested)
        self.input.interrupt_wanted.connect(self.interrupt)
        self.file.cell_shown.connect(self._show_cell)
        self.file.run_next_requested.connect(self._run_input)
        self.file.run_rest_requested.connect(self._run_rest)
        self.file.closed.connect(lambda: self.input.set_source(""))
        self._show_state()

    # -- what the owner calls --------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a cell runs."""
        return self._running is not None

    def submit(self, source: str, filename: str = CELL, remember: bool = True) -> None:
        """Run Python as if the user had typed it, after the cells that run or wait. Without
        `remember`, it is not added to the history."""
        self._enqueue(_Submission(source, filename, source.strip("\n")), remember)

    def begin_output(self, of: str) -> None:
        """Head the output that follows: it is not that of a cell, but of a file."""
        self.empty.hide()
        self.output.show()
        self.output.begin_output(of)

    def add_output(self, snapshot: OutputSnapshot | OutputTailSnapshot) -> None:
        if isinstance(snapshot, OutputTailSnapshot):
            self.output.show_tail(snapshot)
        else:
            self.output.add_output(snapshot.stream, snapshot.text)

    def show_finding(self, finding: Finding) -> None:
        """Show a note about the code of the cell."""
        self.empty.hide()
        self.output.show()
        self.output.add_finding(finding)

    def finish_cell(self, error: ErrorReport | None, file: str = "") -> None:
        """Show the end of the cell that runs, and run the next one. After an error, drop all
        waiting cells. `file` is the name that torch's records have for the cell, if it is known."""
        done, self._running = self._running, None
        if done is not None and file and self._shown is not None:
            self.output.lines.name(self._shown, file, 1 + done.lines_before)
        if error is not None:
            line = error.line
            if line is not None and done is not None:
                line -= done.lines_before
            marks = line is not None and line > 0 and not self._typed
            self.output.add_error(error, line if marks else None)
            self._drop_waiting("The cell before failed")
        elif done is not None and self._clock.elapsed() > 1000:
            self.output.add_note(f"ran for {format_duration(self._clock.elapsed() / 1000)}")
        if done is not None:
            self.cell_ended.emit(done.shown, error)
        self._run_waiting()

    def show_held(self, held: HeldSnapshot | None) -> None:
        """Show where code is held; None if it goes on."""
        self._held = held
        self.held.show_held(held)
        if held is not None:
            self.empty.hide()
            self.output.show()
        self._show_state()

    def finish_held(self, error: ErrorReport | None) -> None:
        """Show the end of what ran where the code is held."""
        if error is not None:
            self.output.add_error(error, error.line)

    def abandon(self, reason: str) -> None:
        """Drop the cell that runs and those that wait, because the engine is lost."""
        self._running = None
        self._waiting.clear()
        self.output.add_note(reason)
        self.empty.hide()
        self._run_waiting()

    def start_anew(self) -> None:
        """Drop all cells and clear the transcript. The history and the text in the input stay."""
        self._running = None
        self._waiting.clear()
        self.clear()
        self._run_waiting()

    def show_completions(self, snapshot: CompletionsSnapshot) -> None:
        self.input.show_completions(snapshot)

    def show_recording(self, on: bool) -> None:
        with QSignalBlocker(self.record_button):
            self.record_button.setChecked(on)
        self._show_state()

    def open_file(self, path: str, text: str) -> None:
        """Open a Python file cell by cell, and put its first cell into the input."""
        if self.file.open_file(path, text):
            self.input.setFocus()
        else:
            self._note(f"{path} has nothing in it to run.")

    def interrupt(self) -> None:
        """Ask to interrupt the cell that runs, and drop those that wait."""
        if self.busy:
            self._interrupted = True
            self._drop_waiting("Interrupted")
            self.interrupt_requested.emit()
            self._show_state()

    def clear(self) -> None:
        self.output.clear()
        self.empty.show()
        self.output.hide()

    # -- running ---------------------------------------------------------------------------------

    def _run_input(self) -> None:
        """Run the text in the input. If it is a cell of a file, show the next cell there."""
        source = self.input.source()
        if not source.strip():
            return
        cell = self.file.current
        self.input.set_source("")
        if cell is None:
            self.submit(source)
            return
        # The user may have edited the cell, but its first line has the same number as in the file.
        padding = "\n" * (cell.first_line - 1)
        self._enqueue(_Submission(padding + source, self.file.path, source.strip("\n")))
        self.file.show_cell(self.file.position + 1)

    def _run_rest(self) -> None:
        while self.file.current is not None:
            self._run_input()

    def _enqueue(self, submission: _Submission, remember: bool = True) -> None:
        if remember:
            self.history.add(submission.shown)
        if self._held is not None:
            self._typed = True
            self.output.add_input(submission.shown)
            self.held_run_requested.emit(submission.source)
            return
        self._waiting.append(submission)
        if not self.busy:
            self._run_waiting()
        else:
            self._show_state()

    def _run_waiting(self) -> None:
        if self._waiting and not self.busy:
            self._running = self._waiting.popleft()
            self._interrupted = self._typed = False
            self._clock.start()
            self.empty.hide()
            self.output.show()
            self._shown = self.output.add_input(self._running.shown)
            self.run_requested.emit(self._running.source, self._running.filename)
        self._show_state()
        self.busy_changed.emit(self.busy)

    def _drop_waiting(self, why: str) -> None:
        dropped = len(self._waiting)
        self._waiting.clear()
        if dropped:
            cells = "1 more cell was" if dropped == 1 else f"{dropped} more cells were"
            self._note(f"{why}: {cells} not run.")

    def _note(self, text: str) -> None:
        self.empty.hide()
        self.output.show()
        self.output.add_note(text)

    # -- looks -----------------------------------------------------------------------------------

    def _show_cell(self, cell: FileCell | None) -> None:
        self.input.set_source(cell.source if cell else "")

    def _show_state(self) -> None:
        self.interrupt_button.setEnabled(self.busy)
        if self.busy:
            self._ticks.start()
            word = "interrupting" if self._interrupted else "running"
            waits = f", {len(self._waiting)} waiting" if self._waiting else ""
            seconds = self._clock.elapsed() / 1000
            # The times of short cells would only flicker.
            text = f"{word} {seconds:.1f} s{waits}" if seconds >= 0.3 else ""
        else:
            self._ticks.stop()
            unrecorded = "" if self.record_button.isChecked() else "recording is off"
            text = self.history.fault or unrecorded
        if self._held is not None and not self._interrupted:
            text = "held: what you type runs there"
        self._state.setText(text)

    def _lay_out(self) -> None:
        line = QFrame(self)
        line.setFrameShape(QFrame.Shape.HLine)
        line.setFrameShadow(QFrame.Shadow.Plain)
        line.setForegroundRole(QPalette.ColorRole.Mid)
        line.setFixedHeight(1)
        buttons = (
            self.interrupt_button,
            self.record_button,
            self.open_button,
            self.clear_button,
        )
        half = theme.GRID // 2
        top = make.row((self._state, 1), *buttons, gap=2, margins=(theme.GRID, 2, half, 2))
        run = (self.run_button, 0, Qt.AlignmentFlag.AlignBottom)
        bottom = make.row((self.input, 1), run, gap=half, margins=(half, 0, half, half))
        said = make.column((self.empty, 1), (self.output, 1), gap=0)
        middle = make.row((said, 1), (self.held, 1), gap=0)
        parts = (top, (middle, 1), line, self.file, bottom)
        make.column(*parts, on=self, gap=0)
        self.output.hide()
        self.setFocusProxy(self.input)
