"""The one bar that takes a batch forward and then backward."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import BackwardSnapshot, ForwardSnapshot, GraphSnapshot
from widgets import make
from widgets.icons import set_icon
from widgets.text import format_number
from widgets.theme import GRID


class PassBar(QWidget):
    """Start, Back, Step, Run, Compare, whichever way the pass goes, and More."""

    start_requested = Signal()
    back_requested = Signal()
    step_requested = Signal()
    run_requested = Signal()
    compare_requested = Signal()
    more_toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pass_bar")
        self._ready = False
        self._forward: ForwardSnapshot | None = None
        self._graph: GraphSnapshot | None = None
        self._backward: BackwardSnapshot | None = None
        self.start = make.button(
            "pass_start",
            "Start",
            "mdi6.play",
            self.start_requested,
            primary=True,
            accessible="Start the pass",
            tip="Start again: bring a batch to the first block, or read the graph of the chosen"
            " tensor.",
        )
        self.back = make.button(
            "pass_back",
            "Back",
            "mdi6.step-backward",
            self.back_requested,
            accessible="Undo the last step",
            tip="Undo the last step: of backward, and before its first node of forward.",
        )
        self.step = make.button(
            "pass_step",
            "Step",
            "mdi6.step-forward",
            self.step_requested,
            accessible="One step",
            tip="Forward: run the next block (F10). After the loss: read the graph. Backward: run"
            " the next node (F11).",
        )
        self.run = make.button(
            "pass_run",
            "Run",
            "mdi6.fast-forward",
            self.run_requested,
            accessible="Run on",
            tip="Forward: run all blocks to the loss. Backward: run to the next breakpoint or to"
            " the end (F12).",
        )
        self.compare = make.button(
            "pass_compare",
            "Compare",
            "mdi6.scale-balance",
            self.compare_requested,
            accessible="Compare with plain backward()",
            tip="At the end of backward: run plain backward() and compare every .grad.",
        )
        self._where = make.label("", "muted", "pass_position")
        self._where.setMinimumWidth(1)
        self.more = make.tool_button(
            "pass_more",
            text="More",
            accessible="More controls",
            toggled=self._show_more,
            framed=True,
        )
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.setToolTip(
            "Show all controls: the batch, options, breakpoints, edits, the code, search and"
            " drawing of the graph, checks of a rule. The choice is remembered."
        )
        parts = (self.start, self.back, self.step, self.run, self.compare)
        make.row(
            *parts,
            (self._where, 1),
            self.more,
            on=self,
            margins=(2 * GRID, 0, 2 * GRID, 0),
        )
        self._show_more(False)
        self._show()

    def show_more(self, on: bool) -> None:
        """Set More, as the reader left it."""
        self.more.setChecked(on)

    def show_ready(self, ready: bool) -> None:
        """Set whether the engine is connected."""
        self._ready = ready
        self._show()

    def show_forward(self, snapshot: ForwardSnapshot | None) -> None:
        self._forward, self._graph, self._backward = snapshot, None, None
        self._show()

    def show_backward(self, graph: GraphSnapshot | None, snapshot: BackwardSnapshot | None) -> None:
        self._graph, self._backward = graph, snapshot
        self._show()

    def _show_more(self, on: bool) -> None:
        set_icon(self.more, "mdi6.chevron-up" if on else "mdi6.chevron-down", "muted")
        self.more_toggled.emit(on)

    def _show(self) -> None:
        backward, ready = self._backward, self._ready
        length = len(self._graph.plan) if self._graph is not None else 0
        at_end = backward is not None and backward.position == length
        one_way = backward is not None and backward.real_engine
        model = self._graph is None or not self._graph.root
        behind = backward.position if backward is not None else 0
        if not behind and model and self._forward is not None:
            behind = self._forward.position
        self.start.setEnabled(ready)
        self.back.setEnabled(ready and behind > 0 and not one_way)
        self.step.setEnabled(ready and not at_end)
        self.run.setEnabled(ready and not at_end)
        self.compare.setEnabled(ready and at_end)
        self._where.setText(position_words(self._forward, backward, length))


def position_words(
    forward: ForwardSnapshot | None, backward: BackwardSnapshot | None, length: int
) -> str:
    """Where the pass stands: `Forward: 3 of 9 blocks`, `Backward: 2 of 14 nodes`."""
    if backward is not None:
        return f"Backward: {backward.position:,} of {length:,} nodes"
    if forward is not None:
        return f"Forward: {forward.position:,} of {len(forward.order):,} blocks"
    return ""


def next_words(forward: ForwardSnapshot, name: str = "") -> str:
    """The next step while there is no graph, for the middle of the page; `name` is that of the next
    block."""
    if forward.position < len(forward.order):
        ran = f"{forward.position:,} of {len(forward.order):,} blocks have run."
        return f"{ran}\n\nNext: {name}. Step runs it, Run goes on to the loss."
    loss = f"The loss is {format_number(forward.loss, 6)}." if forward.loss is not None else ""
    return (
        f"Forward is done. {loss}\n\nNext: backward. Step reads the graph that autograd"
        " recorded; each further step runs one node."
    )
