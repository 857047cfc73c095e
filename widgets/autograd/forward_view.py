"""The forward pass of one batch, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QWidget,
)

from engine.protocol import ForwardSnapshot, Value, ValueSnapshot
from widgets import make
from widgets.autograd.block_list import BlockList, rows_of
from widgets.backward.step_bar import StepBar
from widgets.text import format_number
from widgets.theme import GRID
from widgets.values.value_stack import NARROW_CARD_HEIGHT, ValueStack

EMPTY_TEXT = (
    "Start brings a batch of the training data to the model. Each step runs one block and shows its"
    " output. A model of code runs to its loss at once."
)

_SPACE = "\N{NO-BREAK SPACE}"


class ForwardView(QWidget):
    """Steps through the blocks; shows each block's output."""

    start_requested = Signal(int)
    """The number of the batch to take."""
    move_requested = Signal(str, str)
    """(step | back | to | end | reset, the block for `to`)"""
    inspect_requested = Signal(str, str)
    """("activation", block)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: ForwardSnapshot | None = None
        self._names: Mapping[str, str] = {}
        make.named(self, "forward_view", "Forward pass")
        self._batch = make.spin("forward_batch", "Batch number", high=1_000_000)
        self._batch.setToolTip(
            "Which batch of the training data to run, in the order of the first epoch"
        )
        self._start = make.button("forward_start", "Start", "mdi6.play")
        self._start.setAccessibleName("Start a forward pass")
        self._start.setToolTip("Bring this batch to the first block (F6)")
        self._start.clicked.connect(lambda: self.start_requested.emit(self._batch.value()))
        self._bar = StepBar("forward", "block", self)
        self._bar.moved.connect(self._move)
        self._line = make.label(EMPTY_TEXT, "muted", "forward_line", wrap=True)
        self.blocks = BlockList()
        self.blocks.chosen.connect(self._choose)
        self.blocks.run_to.connect(lambda block: self.move_requested.emit("to", block))
        self.values = ValueStack("forward_values", columns=2)

        heading, label = make.label("Forward", "heading"), make.label("batch", of=self._batch)
        self._controls = (label, self._batch, self._start, self._bar)
        head = make.row(heading, make.STRETCH, label, self._batch, self._start)
        sizes = (NARROW_CARD_HEIGHT, NARROW_CARD_HEIGHT + 4 * GRID)  # a heading and a card
        self._splitter = make.splitter(self.blocks, self.values, upright=True, sizes=sizes)
        parts = (head, self._bar, self._line, (self._splitter, 1), make.Stretch(0))
        make.column(*parts, on=self, margins=(2 * GRID, GRID, GRID, GRID))
        self._splitter.hide()

    # -- showing ---------------------------------------------------------------------------------

    def show_forward(self, snapshot: ForwardSnapshot, names: Mapping[str, str]) -> None:
        """Show the position of the pass; `names` are the blocks' names by id."""
        self._snapshot, self._names = snapshot, names
        self._splitter.show()
        self._batch.setValue(snapshot.batch)
        self.blocks.show_rows(rows_of(snapshot, names))
        self._show_bar()
        self._line.setText(self._position_text(snapshot))
        self.values.setVisible(snapshot.position > 0)
        if snapshot.position == 0:
            self.values.show_sections([])
        else:
            block = snapshot.order[snapshot.position - 1]
            self._show_values(block, ("Output", snapshot.current), ("Input", snapshot.inputs))

    @property
    def batch(self) -> int:
        """The number of the batch to start with."""
        return self._batch.value()

    def show_controls(self, shown: bool) -> None:
        """Show or hide the batch and the moves of this pass alone."""
        for widget in self._controls:
            widget.setVisible(shown)

    def show_value(self, snapshot: ValueSnapshot) -> None:
        """Show the activation that was asked for, and what it was computed from; ignore other
        answers."""
        if snapshot.of == "activation":
            self._show_values(
                snapshot.key,
                ("Output", snapshot.values),
                ("Input", snapshot.inputs),
                ("Weights", snapshot.weights),
            )

    def clear(self) -> None:
        """Return to the empty state."""
        self._snapshot = None
        self._splitter.hide()
        self._line.setText(EMPTY_TEXT)
        self._show_bar()

    def show_ready(self, ready: bool) -> None:
        """Set whether the engine is connected."""
        self._start.setEnabled(ready)

    def _show_values(self, block: str, *parts: tuple[str, Sequence[Value]]) -> None:
        name = self._names.get(block, block)
        self.values.show_sections(
            [(f"{part} of {name}", values, "") for part, values in parts if values]
        )

    def _position_text(self, snapshot: ForwardSnapshot) -> str:
        parts = [f"{snapshot.position} of {len(snapshot.order)} blocks run"]
        if snapshot.batch_size:
            parts.append(f"batch {snapshot.batch} ({snapshot.batch_size} samples)")
        if snapshot.loss is not None:
            parts.append(f"loss{_SPACE}={_SPACE}{format_number(snapshot.loss, 6)}")
        return " · ".join(parts)

    def _show_bar(self) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            self._bar.show_position(0, 0, False)
            return
        selected = self.blocks.selected_block() is not None
        self._bar.show_position(snapshot.position, len(snapshot.order), selected)

    # -- requests --------------------------------------------------------------------------------

    def _move(self, move: str) -> None:
        target = (self.blocks.selected_block() or "") if move == "to" else ""
        self.move_requested.emit(move, target)

    def _choose(self, block: str) -> None:
        self._show_bar()
        snapshot = self._snapshot
        if snapshot is not None and block in snapshot.order[: snapshot.position]:
            self.inspect_requested.emit("activation", block)
