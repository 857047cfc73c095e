"""One call of a trace: its arguments, its result, and the node that it made."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import TraceCall, TraceSnapshot, TraceStepSnapshot
from widgets import make
from widgets.shapes.failure_view import FailureView
from widgets.theme import GRID
from widgets.trace.model import name_of
from widgets.values.value_stack import ValueStack

_KINDS = {
    "line": "line",
    "module": "module",
    "function": "torch function",
    "op": "operator",
}
_MADE_WORDS = {
    "made_nan": "NaN is made here: only finite numbers went in.",
    "made_inf": "Infinity is made here: only finite numbers went in.",
}
_WORDS = ("return", "yield", "goes on at")
"""Keys of a line's result that are verbs before its value, not names."""
PASSED_ON = "The NaN or infinity was in its input already: another call made it."


class CallView(QWidget):
    """Shows one call. `graph_requested()` asks to show its node on the graph."""

    graph_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("trace_call")
        self._title = make.text("trace_call_name", "heading")
        self._facts = make.text("trace_call_facts", "muted", wrap=True)
        self._facts.setToolTip("What kind of call it is, and what it added to the autograd graph.")
        self._mark = make.text("trace_call_mark", "error", wrap=True)
        self._error = make.text("trace_call_error", "error", wrap=True)
        self._arguments = make.text("trace_call_arguments", wrap=True, mono=9)
        self._arguments.setToolTip("Its arguments that are not tensors.")
        self._note = make.text("trace_call_note", "muted", wrap=True)
        self._results = make.text("trace_call_results", wrap=True, mono=9)
        self._results.setToolTip("Its results that are not tensors.")
        self._words = (self._results, self._arguments, self._note)
        self._labels = (self._title, self._facts, self._mark, self._error, *self._words)
        self.failed = FailureView()
        self._graph = make.button(
            "trace_show_node", "Show on graph", "mdi6.sitemap-outline", self.graph_requested
        )
        self._graph.setAccessibleName("Show this call's node on the graph")
        self.values = ValueStack("trace_values", columns=2)
        head = make.row((self._title, 1), self._graph)
        told = (self._facts, self._mark, self._error, self.failed, *self._words)
        margins = (GRID, 0, GRID, 0)
        make.column(head, *told, (self.values, 1), on=self, gap=GRID // 2, margins=margins)
        self.show_step(None, None)

    def show_step(self, trace: TraceSnapshot | None, step: TraceStepSnapshot | None) -> None:
        """Show the current call of the trace; without one, a hint."""
        if trace is None or step is None or step.position < 0:
            self._show_nothing(trace)
            return
        call = trace.calls[step.position]
        self._title.setText(name_of(trace, call))
        self._facts.setText(facts(call, step))
        self._mark.setText(_MADE_WORDS.get(call.mark, ""))
        self._error.setText(step.error)
        operands = trace.error.operands if step.error and trace.error is not None else None
        self.failed.show_failed(operands)
        self.failed.setVisible(operands is not None)
        is_line = call.kind == "line"
        self._results.setText(_texts(step.results, "sets" if is_line else ""))
        self._arguments.setText(_texts(step.arguments, "reads" if is_line else ""))
        passed_on = PASSED_ON if call.mark == "passed_on" else ""
        self._note.setText(" ".join(filter(None, (passed_on, step.note))))
        self._graph.setVisible(call.nodes > 0)
        out, given = ("Sets", "Reads") if is_line else ("Out", "In")
        sections = [(out, step.outputs, ""), (given, step.inputs, "")]
        self.values.show_sections([section for section in sections if section[1]])
        self._show_what_has_text()

    def show_node(self, is_there: bool) -> None:
        """Whether the graph in the tab Step through has a node that this call made."""
        self._graph.setToolTip(
            "Go to the node that this call made, in the tab Step through."
            if is_there
            else "Read the graph of the model's loss, or of a variable, that has this call's"
            " node, and go to the node. This graph replaces the one in the tab Step through."
        )

    def _show_nothing(self, trace: TraceSnapshot | None) -> None:
        for label in self._labels:
            label.setText("")
        words = (
            "Press Start, then choose a call: the values that go into it and come out of it"
            " appear here."
        )
        if trace is not None:
            words = "Press Next line to go to the first line: the values that it sets appear here."
            if not trace.calls:
                words = "No line of this code ran."
        self._facts.setText(words)
        self._graph.hide()
        self.failed.hide()
        self.values.show_sections([])
        self._show_what_has_text()

    def _show_what_has_text(self) -> None:
        for label in self._labels:
            label.setVisible(bool(label.text()))


def _texts(values: tuple[tuple[str, str], ...], verb: str = "") -> str:
    """`k = 3` on a line each, `sets k = 3` with a verb."""
    start = f"{verb} " if verb else ""
    return "\n".join(
        f"{name} {text}" if name in _WORDS else f"{start}{name} = {text}" for name, text in values
    )


def facts(call: TraceCall, step: TraceStepSnapshot) -> str:
    """The kind of the call, its place in the code, and the node that it made."""
    kind = _KINDS[call.kind]
    parts = [f"{kind} in {call.module}" if call.module and call.kind != "module" else kind]
    if call.writes:
        parts.append("writes in place")
    if call.nodes:
        parts.append(f"made {call.nodes:,} autograd node{'s' if call.nodes > 1 else ''}")
    elif step.grad_enabled and call.kind != "line":
        parts.append("no autograd node")
    elif not step.grad_enabled:
        parts.append("no autograd node: grad mode is off")
    return " · ".join(parts)
