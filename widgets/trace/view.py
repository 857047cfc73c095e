"""The trace of code that ran, stepped through by lines and ops, with code and values."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QPushButton,
    QWidget,
)

from engine.project.examples import trace_examples
from engine.protocol import (
    ErrorReport,
    OutputSnapshot,
    OutputTailSnapshot,
    TraceSnapshot,
    TraceStepSnapshot,
)
from widgets import make
from widgets.backward.step_bar import Move, StepBar
from widgets.theme import GRID
from widgets.trace.call_view import CallView
from widgets.trace.source import TraceSource
from widgets.trace.tree import TraceTree

_LINE_TIP = "Go to the next line that ran, also inside functions of the code"
_NAN_TIP = "Go to the operator that made the first NaN or infinity from finite numbers"
_LINE_BACK = Move("Line back", "arrow-up-bold-outline", "Go to the line that ran before", "back")
_INTO = Move("Into", "debug-step-into", "Go to the next call, also inside this one", "on")
_OVER = Move("Over", "debug-step-over", "Go to the next line or call outside this one", "on")
_OUT = Move("Out", "debug-step-out", "Leave the enclosing call", "on", folds=1)
MOVES: Mapping[str, Move] = {
    "start": Move("First", "skip-backward", "Go before the first call", "back", folds=4),
    "back_line": _LINE_BACK._replace(window_keys="Shift+F12", folds=2),
    "line": Move("Next line", "arrow-down-bold-outline", _LINE_TIP, "on", "", "F12"),
    "back": Move("Back", "step-backward", "Go to the call before", "back", "", "Shift+F10"),
    "step": _INTO._replace(window_keys="F11"),
    "over": _OVER._replace(window_keys="F10"),
    "out": _OUT._replace(window_keys="Shift+F11"),
    "end": Move("Last", "skip-forward", "Go to the last call", "on", folds=5),
    "origin": Move("First NaN", "alert-outline", _NAN_TIP, "target", folds=3),
}
CALL_WIDTH = 43 * GRID
"""The width in pixels of a card of values with a scroll bar."""
_EMPTY_TEXT = (
    "Press Start: the code runs once, and each line and every call of torch is recorded with its"
    " values. Then step through them, forward and back, as often as you like."
)


class TraceView(QWidget):
    """Emits `started(source)` ("" for the batch of the model), `example_started(source)`,
    `moved(move, call)`, `interrupt_requested()` and `graph_requested()` for the call that the trace
    stands at."""

    started = Signal(str)
    example_started = Signal(str)
    moved = Signal(str, int)
    interrupt_requested = Signal()
    graph_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("trace_view")
        self._trace: TraceSnapshot | None = None
        self._position = -1
        self._is_ready = False
        self._is_running = False
        self._had_focus = False
        self.source = TraceSource()
        self._example = next(iter(trace_examples().values())).code
        self.source.input.set_source(self._example)
        self.source.input.submitted.connect(lambda _: self.start())
        self.source.line_chosen.connect(lambda call: self.moved.emit("to", call))
        self.tree = TraceTree()
        self.tree.call_chosen.connect(lambda call: self.moved.emit("to", call))
        self.call = CallView()
        self.call.setMinimumWidth(CALL_WIDTH)
        self.call.graph_requested.connect(self.graph_requested)
        self.what = self._make_choice()
        self._examples = self._make_examples()
        self._start = make.button("trace_start", "Start", "mdi6.play", self.start, primary=True)
        self._start.setToolTip(
            "Run the code once and record all that torch does (F6; Shift+Enter in the code)"
        )
        self._interrupt = make.button(
            "trace_interrupt", "Interrupt", "mdi6.stop", self.interrupt_requested, ink="error"
        )
        self.source.input.interrupt_wanted.connect(self._on_interrupt_key)
        self._interrupt.setToolTip(
            "Stop code that does not end. You can step through what ran until then."
        )
        self._state = make.text("trace_state", "muted")
        self._problem = make.text("trace_problem", "error", wrap=True)
        self._hint = make.text("trace_hint", "muted", wrap=True)
        self.bar = StepBar("trace", "call", self, MOVES)
        self.bar.moved.connect(lambda move: self.moved.emit(move, -1))
        self._lay_out()
        self.setFocusProxy(self.source.input)
        self.clear()

    def _make_choice(self) -> QComboBox:
        choices = (("Code", "code"), ("Batch of the model", "batch"))
        choice = make.combo("trace_what", "What to trace", choices=choices)
        choice.setToolTip("Trace your own code, or one batch through the model on the canvas.")
        choice.currentIndexChanged.connect(self._on_mode)
        return choice

    def _make_examples(self) -> QPushButton:
        examples = make.button("trace_examples", "Examples", "mdi6.school-outline")
        examples.setToolTip("Replace the code by an example. Undo brings your code back.")
        menu = make.menu(examples, tips=True)
        for example in trace_examples().values():
            code = example.code
            make.action(menu, example.title, lambda code=code: self._try(code), tip=example.tip)
        return examples

    def _on_interrupt_key(self) -> None:
        if self._is_running:
            self.interrupt_requested.emit()

    def _lay_out(self) -> None:
        label = make.label("Trace", of=self.what)
        buttons = (self._examples, self._start, self._interrupt)
        head = make.row(label, self.what, *buttons, (self._state, 1), self.bar)
        panes = (self.tree, self.source, self.call)
        self._splitter = make.splitter(*panes, sizes=(560, 440, 360), shares=(5, 4, 3))
        parts = (head, self._problem, self._hint, (self._splitter, 1))
        make.column(*parts, on=self, margins=(2 * GRID, GRID, GRID, GRID))

    # -- showing ---------------------------------------------------------------------------------

    @property
    def trace(self) -> TraceSnapshot | None:
        return self._trace

    def show_ready(self, ready: bool) -> None:
        """Set whether the engine is connected."""
        self._is_ready = ready
        self._show_state()

    def show_running(self) -> None:
        """Show that the code runs; the last trace stays until it has ended."""
        focus = QApplication.focusWidget()
        self._had_focus = focus is not None and self.isAncestorOf(focus)
        self._is_running = True
        self.source.clear_output()
        self._show_problem("")
        self._show_state()

    def add_output(self, output: OutputSnapshot | OutputTailSnapshot) -> None:
        self.source.add_output(output)

    def show_trace(self, trace: TraceSnapshot, model_code: str = "") -> None:
        """Show a new trace before its first call; `model_code` is the model's Python, for a trace
        of its batch."""
        self._is_running = False
        self._trace = trace
        self._show_error(trace.error, trace.note)
        self.tree.show_trace(trace)
        self.source.show_trace(trace, model_code)
        self.show_step(TraceStepSnapshot(position=-1))
        if trace.calls and (self._had_focus or trace.rule):
            self.tree.setFocus()  # the next key press steps

    def show_step(self, step: TraceStepSnapshot) -> None:
        """Show the current call of the trace."""
        if self._trace is None:
            return
        self._position = step.position
        self.tree.show_position(step.position)
        self.source.show_position(step.position)
        self.call.show_step(self._trace, step)
        self._show_state()

    def show_error(self, error: ErrorReport) -> None:
        """Show why the request failed; the trace stays."""
        self._is_running = False
        self._show_error(error)
        self._show_state()

    def show_problem(self, text: str) -> None:
        self._show_problem(text)

    def clear(self) -> None:
        """Return to the empty state; the code stays."""
        self._trace, self._position, self._is_running = None, -1, False
        self._show_problem("", _EMPTY_TEXT)
        self.tree.show_trace(None)
        self.source.show_trace(None)
        self.source.clear_output()
        self.call.show_step(None, None)
        self._show_state()

    def _show_error(self, error: ErrorReport | None, note: str = "") -> None:
        if error is None:
            self._show_problem("", note)
            return
        name = "" if error.type == "LabError" else error.type
        line = "" if error.line is None else f" (line {error.line})"
        self._show_problem(
            ": ".join(filter(None, (name, error.message))) + line,
            " ".join(filter(None, (error.hint, note))),
        )

    def _show_problem(self, text: str, hint: str = "") -> None:
        make.tell(self._problem, text)
        make.tell(self._hint, hint)

    def _show_state(self) -> None:
        trace = self._trace
        self._start.setEnabled(self._is_ready and not self._is_running)
        self._interrupt.setVisible(self._is_running)
        self._start.setVisible(not self._is_running)  # a low window has no room for both
        count = 0 if trace is None else len(trace.calls)
        can_move = self._is_ready and not self._is_running
        has_origin = trace is not None and trace.origin >= 0 and can_move
        shown = count if can_move else 0
        self.bar.show_position(self._position + 1 if can_move else 0, shown, has_origin)
        self.tree.setEnabled(can_move)
        if self._is_running:
            self._state.setText("Running…")
        elif trace is None:
            self._state.setText("")
        else:
            of = f"Rule of {trace.rule}: call" if trace.rule else "Call"
            self._state.setText(f"{of} {self._position + 1:,} of {count:,}")

    # -- asking ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Ask to run and trace the code or the batch."""
        if not self._start.isEnabled():
            return
        source = self.source.input.source()
        if self.what.currentData() == "batch":
            self.started.emit("")
        elif source == self._example:
            self.example_started.emit(source)
        elif source.strip():
            self.started.emit(source)
        else:
            self._show_problem("", "There is no code yet. Write some, or choose an example.")

    def trace_code(self, source: str, *, example: bool = False) -> None:
        """Replace the reader's code by this one (undo restores it), and run it: in the console, or
        as an example."""
        self.what.setCurrentIndex(self.what.findData("code"))
        self._show_code(source)
        self._example = source if example else ""
        self.start()

    def _on_mode(self) -> None:
        is_code = self.what.currentData() == "code"
        self._examples.setVisible(is_code)
        self.source.show_mode(self.what.currentData())

    def _try(self, example: str) -> None:
        self._example = example
        self._show_code(example)

    def _show_code(self, source: str) -> None:
        self.source.input.set_source(source)
        self.source.edit(True)
