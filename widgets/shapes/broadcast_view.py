"""Broadcasting of two to four shapes, dimension by dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from engine.protocol import BroadcastCommand, BroadcastSnapshot
from widgets.make import check, grid, row, tell, text, tool_button
from widgets.shapes.alignment_view import AlignmentView
from widgets.shapes.cells_grid import Index, selected, stretched, text_of, written
from widgets.shapes.cells_view import CellsView
from widgets.shapes.operand_fields import NAMES, OperandFields, name_of
from widgets.shapes.shape_view import ShapeView
from widgets.text import format_shape
from widgets.theme import GRID

ROW_WIDTH = 800
"""Operands and result are side by side if they fit this width in pixels."""
EXAMPLE = ("(8, 1, 6, 1)", "(7, 1, 5)")
STEPS = (
    ("start", "skip-backward", "Go before the first dimension.", -99),
    ("back", "chevron-left", "Go back one dimension.", -1),
    ("next", "chevron-right", "Go to the next dimension.", 1),
    ("all", "skip-forward", "Go to the end: all dimensions.", 99),
)
"""The buttons, each with the number of dimensions by which it steps."""


class BroadcastView(ShapeView):
    """Steps through shapes aligned from the right. Under them are the elements; an element that
    stretching repeats is shown as a ghost."""

    QUESTION, ANSWER = BroadcastCommand, BroadcastSnapshot
    _snapshot: BroadcastSnapshot | None

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("broadcast_view", parent)
        self._steps = 0
        self.operands = OperandFields(EXAMPLE, 2, 4)
        self.operands.changed.connect(self.refresh)
        self._in_place = check(
            "broadcast_in_place",
            "in place",
            "a += b writes into a's own memory, so a cannot be stretched: the result must have a's"
            " shape.",
        )
        self._in_place.clicked.connect(self.refresh)
        self.alignment = AlignmentView()
        self.alignment.step_chosen.connect(self._go_to)
        self._rule = text("broadcast_rule", wrap=True)
        self._strides = text(
            "broadcast_strides",
            "muted",
            tip="Strides, in elements. A stretched dimension has stride 0: the same element is"
            " read again, nothing is copied.",
        )
        self._sum = text("broadcast_sum", mono=10)
        self.operand_cells = [
            CellsView(f"broadcast_cells_{name}", chosen=self._ask, parent=self) for name in NAMES
        ]
        tip = "Click an element to see which elements it is computed from."
        self.result_cells = CellsView("broadcast_cells_result", tip, self._ask, self)
        self._buttons = [
            tool_button(f"broadcast_{name}", f"mdi6.{icon}", tip, partial(self._step, by))
            for name, icon, tip, by in STEPS
        ]
        self._grid = grid(across=3 * GRID, down=2 * GRID, stretch=9)
        steps = row(*self._buttons, (self._rule, 1), gap=GRID // 2)
        self._fill(
            [(self.operands, 1), self._in_place],
            [self.alignment, steps, self._strides, self._sum, self._grid],
        )

    def show_names(self, names: Sequence[str]) -> None:
        self.operands.show_names(names)

    def show_expression(self, expression: str, shape: Index | None = None) -> None:
        """Broadcast the tensor with one row of it: a shape of one dimension."""
        self.operands.follow(expression, shape[-1:] if shape else None)

    def show_snapshot(self, snapshot: BroadcastSnapshot) -> None:
        before = self._snapshot
        same = before is not None and (before.shapes, before.in_place) == (
            snapshot.shapes,
            snapshot.in_place,
        )
        self._show_answer(snapshot)
        self._show_cells(snapshot)
        self._go_to(self._steps if same else _telling_step(snapshot))

    def _question(self, element: Index | None) -> BroadcastCommand:
        return BroadcastCommand(
            operands=self.operands.texts(), in_place=self._in_place.isChecked(), element=element
        )

    def _step(self, by: int) -> None:
        self._go_to(self._steps + by)

    def _go_to(self, steps: int) -> None:
        if self._snapshot is None:
            return
        dims = self._snapshot.dims
        self._steps = min(max(steps, 0), len(dims))
        self.alignment.show_steps(self._snapshot, self._steps)
        for button, (*_, by) in zip(self._buttons, STEPS, strict=True):
            button.setEnabled(self._steps > 0 if by < 0 else self._steps < len(dims))
        if self._steps == 0:
            self._rule.setText("Align the shapes at their last dimension, then go left.")
        else:
            dim = dims[self._steps - 1]
            self._rule.setText(f"Dim {dim.dim}: {dim.text}")

    def _show_cells(self, snapshot: BroadcastSnapshot) -> None:
        result = snapshot.result
        names = [name_of(text, name) for text, name in zip(snapshot.operands, NAMES, strict=False)]
        views = self.operand_cells[: len(names)]
        for view in self.operand_cells[len(names) :]:
            view.show_cells(None, "")
        for view, cells, name in zip(views, snapshot.cells, names, strict=True):
            if result is None:
                view.show_cells(cells, name)
                continue
            repeated, marks = stretched(cells, result)
            if snapshot.element is not None:
                ghost = marks.get(snapshot.element, "")
                marks[snapshot.element] = f"{ghost} selected".strip()
            view.show_cells(repeated, f"{name} {format_shape(cells.shape)} seen as", marks)
        self.result_cells.show_cells(result, "result", selected(snapshot.element))
        shown = [*views, self.result_cells]
        for view in (*self.operand_cells, self.result_cells):
            self._grid.removeWidget(view)
        width = sum(view.sizeHint().width() + 3 * GRID for view in shown)
        per_row = len(shown) if width <= ROW_WIDTH else 2
        corner = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft
        for number, view in enumerate(shown):
            self._grid.addWidget(view, *divmod(number, per_row), corner)
        strides = [
            f"{name} {stride}" for name, stride in zip(names, snapshot.strides, strict=False)
        ]
        told = f"strides after stretching:  {',   '.join(strides)}"
        tell(self._strides, told if strides else "")
        tell(self._sum, _sum(snapshot, names))


def _telling_step(snapshot: BroadcastSnapshot) -> int:
    """The number of steps to show first: up to the dimension that fails, else all."""
    return -snapshot.fails_at or len(snapshot.dims)


def _sum(snapshot: BroadcastSnapshot, names: Sequence[str]) -> str:
    """The selected element as a sum: `result[0, 1] = a[0, 0] + b[1] = 1 + 20 = 21`."""
    if snapshot.element is None or snapshot.result is None:
        return ""
    made = [f"{name}{written(at)}" for name, at in zip(names, snapshot.reads, strict=True)]
    left = f"result{written(snapshot.element)} = {' + '.join(made)}"
    if not snapshot.result.texts:
        return left
    numbers = [text_of(cells, at) for cells, at in zip(snapshot.cells, snapshot.reads, strict=True)]
    return f"{left} = {' + '.join(numbers)} = {text_of(snapshot.result, snapshot.element)}"
