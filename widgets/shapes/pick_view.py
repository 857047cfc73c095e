"""Indexing: which elements are picked or written, part by part of the index."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtWidgets import QLabel, QWidget

from engine.protocol import PickCommand, PickSnapshot
from widgets.make import grid, label, tell, text
from widgets.shapes.cells_grid import Index, Marks, indices, selected, text_of, written
from widgets.shapes.cells_row import CellsRow
from widgets.shapes.cells_view import CellsView
from widgets.shapes.operand_fields import ExpressionField
from widgets.shapes.shape_view import ShapeView
from widgets.theme import GRID, mono_font

EMPTY_TEXT = (
    "Type an index of a tensor, such as x[0, :, ::2], x[x > 0] or x.gather(1, i); or a line that"
    " writes to one, such as x[x > 0] = 0, x[[0, 2]] += 1 or x.scatter_(1, i, src)."
)


class PickView(ShapeView):
    """Shows the source with its picked elements, each part of the index in words, and the result.
    The source element of the result's selected element is highlighted. For a line that writes, it
    shows the tensor with the elements that are written (marked if written more than once), the
    values, and the tensor after the write."""

    QUESTION, ANSWER = PickCommand, PickSnapshot
    _snapshot: PickSnapshot | None

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("pick_view", parent)
        self.source = ExpressionField(
            "pick_source",
            "Index of a tensor, or a line that writes through one",
            "Integers take one index, slices (start:stop:step) keep some, ... stands for all"
            " dimensions not named, None adds a dimension of size 1, lists and masks pick"
            " elements one by one. Assignments (x[i] = v), scatter_, scatter_add_, index_add_,"
            " index_copy_, index_fill_, index_put_ and masked_fill_ show what they would write:"
            " only Run writes it.",
        )
        self.source.setPlaceholderText("x[0, :, ::2]")
        self.source.textChanged.connect(self.refresh)
        self._kind = text("pick_kind", "heading")
        self._why = text("pick_why", "muted", wrap=True)
        self._read = text("pick_read", mono=10)
        self._part_rows: list[tuple[QLabel, QLabel]] = []
        self._parts = grid(across=2 * GRID, down=GRID // 2, stretch=1)
        tip = "The coloured elements are picked, or written; those with a corner more than once."
        self.source_cells = CellsView("pick_cells_source", tip, self._choose_source)
        tip = "Click an element to see where it comes from or goes to."
        self.result_cells = CellsView("pick_cells_result", tip, self._ask)
        tip = "The tensor after this line. The line has not run yet."
        self.after_cells = CellsView("pick_cells_after", tip)
        self._cells = CellsRow((self.source_cells, self.result_cells, self.after_cells))
        self._fill(
            [(self.source, 1)], [self._parts, self._kind, self._why, self._read, self._cells]
        )
        tell(self._kind, "")
        tell(self._why, EMPTY_TEXT)

    def show_names(self, names: Sequence[str]) -> None:
        self.source.show_names([f"{name}[" for name in names])

    def show_expression(self, expression: str, shape: Index | None = None) -> None:
        """Index another tensor. A line that already indexes this tensor stays."""
        if not self.source.text().startswith((f"{expression}[", f"{expression}.")):
            self.source.setText(f"{expression}[...]")

    def show_snapshot(self, snapshot: PickSnapshot) -> None:
        self._show_answer(snapshot)
        self._show_parts(snapshot)
        tell(self._kind, _kind(snapshot))
        tell(self._why, snapshot.why)
        tell(self._read, _read(snapshot))
        marks = _touched(snapshot) | selected(snapshot.reads)
        before = f"{snapshot.expression} before" if snapshot.write else snapshot.expression
        self.source_cells.show_cells(snapshot.source, before, marks)
        chosen = dict.fromkeys(snapshot.others, "read") | selected(snapshot.element)
        self.result_cells.show_cells(snapshot.result, _result_name(snapshot), chosen)
        after = f"{snapshot.expression} after"
        if snapshot.write == "copy":
            after = f"the copy of {snapshot.expression}"
        self.after_cells.show_cells(snapshot.after, after, marks)
        self._arrange()

    def _show_parts(self, snapshot: PickSnapshot) -> None:
        while len(self._part_rows) < len(snapshot.parts):
            row = len(self._part_rows)
            part, rule = label(), text(f"pick_rule_{row}")
            part.setFont(mono_font())
            self._parts.addWidget(part, row, 0)
            self._parts.addWidget(rule, row, 1)
            self._part_rows.append((part, rule))
        for row, labels in enumerate(self._part_rows):
            for shown in labels:
                shown.setVisible(row < len(snapshot.parts))
        for (typed, rule), part in zip(self._part_rows, snapshot.parts, strict=False):
            dims = part.result_dims
            made = f"dim{'s' if len(dims) > 1 else ''} {', '.join(map(str, dims))}"
            where = f"  →  {made} of the {'values' if snapshot.write else 'result'}" if dims else ""
            typed.setText(part.text or "(not named)")
            rule.setText(f"{part.rule}{where}")

    def _choose_source(self, index: Index) -> None:
        if self._snapshot is not None:
            self.element_selected.emit(self._snapshot.expression, index)

    def _question(self, element: Index | None) -> PickCommand | None:
        source = self.source.text()
        return PickCommand(source=source, element=element) if source.strip() else None


def _touched(snapshot: PickSnapshot) -> Marks:
    """Mark the cells of the source that are picked or written; `repeated` if written twice."""
    often = "repeated" if snapshot.write else "picked"
    return {
        index: "picked" if count == 1 else often
        for index, count in zip(indices(snapshot.source), snapshot.picked, strict=True)
        if count
    }


def _result_name(snapshot: PickSnapshot) -> str:
    return f"written: {snapshot.value}" if snapshot.write else "result"


def _kind(snapshot: PickSnapshot) -> str:
    if snapshot.shape is None:
        return ""
    if snapshot.write:
        where = snapshot.expression if snapshot.write == "in place" else "a copy"
        return f"{math.prod(snapshot.shape):,} values of shape {snapshot.shape} → {where}"
    what = "view" if snapshot.is_view else "copy"
    return f"{snapshot.source_shape} → {snapshot.shape}, a {what}"


def _read(snapshot: PickSnapshot) -> str:
    """The selected element in words: `result[1] = x[0, 1] = 4`; for a write,
    `x[0, 1] = 4 gets 1, 2: afterwards 7`."""
    if snapshot.element is None or snapshot.reads is None or snapshot.result is None:
        return ""
    if snapshot.write:
        place = f"{snapshot.expression}{written(snapshot.reads)}"
        values = sorted((snapshot.element, *snapshot.others))
        told = ", ".join(text_of(snapshot.result, value) or written(value) for value in values)
        into = text_of(snapshot.after, snapshot.reads) if snapshot.after is not None else ""
        end = f": afterwards {into}" if into else ""
        return f"{place} = {text_of(snapshot.source, snapshot.reads)} gets {told}{end}"
    made = f"result{written(snapshot.element)} = {snapshot.expression}{written(snapshot.reads)}"
    value = text_of(snapshot.result, snapshot.element)
    return f"{made} = {value}" if value else made
