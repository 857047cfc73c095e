"""A derivative as a heat map; choosing an entry marks its elements of input and output."""

from __future__ import annotations

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QHeaderView,
    QWidget,
)

from engine.protocol import (
    DerivativeComparison,
    DerivativeSnapshot,
    EntrySnapshot,
    MatrixEntry,
    Value,
)
from widgets import make
from widgets.table import ReadTable
from widgets.text import format_number, format_shape
from widgets.theme import GRID
from widgets.values.picture_grid import matrix_steps
from widgets.values.picture_view import PictureView
from widgets.values.value_stack import ValueStack

_SIDE_WIDTH = 384
_COLUMNS = (
    ("computed", "How the derivative was computed."),
    ("max difference", "Largest absolute difference from the analytic derivative in float64."),
    ("relative", "The max difference divided by the largest entry."),
)


class DerivativeResult(QWidget):
    """Emits `entry_chosen(row, column)` when an entry of the matrix is chosen."""

    entry_chosen = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: DerivativeSnapshot | None = None
        self._title = make.text("derivative_title", "heading")
        self._note = make.text("derivative_note", "muted", wrap=True)
        self.picture = PictureView()
        self.picture.setObjectName("derivative_picture")
        self.picture.setToolTip(
            "Rows are elements of the output, columns elements of the input. Click an entry to see"
            " which."
        )
        self.picture.cell_chosen.connect(self._choose)
        self._entry = make.text("derivative_entry", wrap=True, mono=10)
        self._entry.setToolTip("The chosen entry, computed by torch and by a central difference.")
        self.values = ValueStack("derivative_values")
        what = "Analytic against numeric, float32 against float64"
        self._ways = ReadTable("derivative_ways", what, _COLUMNS, tight=False)
        self._ways.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self._ways.setFixedHeight(17 * GRID)
        self._lay_out()

    def _lay_out(self) -> None:
        parts = (self._title, self._note, (self.picture, 1), self._entry)
        left = make.page(*parts, margins=(0, 0, GRID, 0))
        heading = make.label("Against the analytic derivative in float64", "heading")
        right = make.page((self.values, 1), heading, self._ways, margins=(GRID, 0, 0, 0))
        sizes = (3 * _SIDE_WIDTH, _SIDE_WIDTH)
        make.column(make.splitter(left, right, shares=(1,), sizes=sizes), on=self)

    def show_derivative(self, snapshot: DerivativeSnapshot) -> None:
        """Show a derivative, or its comparisons as they arrive."""
        again = self._snapshot is not None and self._snapshot.reply_to == snapshot.reply_to
        self._snapshot = snapshot
        make.tell(self._note, snapshot.note)
        self._show_ways(snapshot.comparisons)
        if again and snapshot.reply_to:
            return
        self._title.setText(title_of(snapshot))
        matrix = snapshot.result is None
        self._entry.setVisible(matrix)
        shown = snapshot.picture if matrix else snapshot.result and snapshot.result.picture
        self.picture.show_picture(shown or None, "The matrix is empty: the output has no elements")
        self.picture.mark_cell(None)
        if snapshot.entry is not None:
            self._show_entry(snapshot.entry)
        self._show_values(())

    def show_entry(self, snapshot: EntrySnapshot) -> None:
        """Show an entry with its row in the input's shape and its column in the output's."""
        self._show_entry(snapshot.entry)
        self._show_values((snapshot.of_output, snapshot.of_input))

    def _show_values(self, moved: tuple[Value, ...]) -> None:
        snapshot = self._snapshot
        assert snapshot is not None
        products = () if snapshot.result is None else (snapshot.result,)
        sections = [("", products, ""), ("Row and column of the entry", moved, "")]
        at = ("Input and output", (snapshot.input, snapshot.output), "")
        self.values.show_sections([s for s in (*sections, at) if s[1]])

    def _show_entry(self, entry: MatrixEntry) -> None:
        snapshot = self._snapshot
        assert snapshot is not None
        self._entry.setText(entry_text(entry, snapshot.kind == "hessian"))
        if snapshot.picture is not None:
            row_step, column_step = matrix_steps(snapshot.picture, snapshot.rows, snapshot.columns)
            self.picture.mark_cell((entry.row // row_step, entry.column // column_step))

    def _show_ways(self, comparisons: tuple[DerivativeComparison, ...]) -> None:
        self._ways.setRowCount(0)
        for way in comparisons:
            none = math.isnan(way.max_difference)
            numbers = ("–", "–") if none else (f"{way.max_difference:.3g}", f"{way.relative:.3g}")
            self._ways.add_row((way.way, *numbers), 3 * (way.note or way.way,))

    def _choose(self, cell: tuple[int, ...]) -> None:
        snapshot = self._snapshot
        if snapshot is None or snapshot.picture is None:
            return
        row_step, column_step = matrix_steps(snapshot.picture, snapshot.rows, snapshot.columns)
        self.entry_chosen.emit(cell[-2] * row_step, cell[-1] * column_step)


def title_of(snapshot: DerivativeSnapshot) -> str:
    """`Jacobian, (6, 4): output (2, 3) by input (2, 2)`"""
    at = format_shape(snapshot.input.summary.shape)
    out = format_shape(snapshot.output.summary.shape)
    size = format_shape((snapshot.rows, snapshot.columns))
    match snapshot.kind:
        case "jacobian":
            return f"Jacobian, {size}: output {out} by input {at}"
        case "hessian":
            return f"Hessian, {size}: by input {at} twice"
    assert snapshot.result is not None
    shape = format_shape(snapshot.result.summary.shape)
    return f"{snapshot.kind.upper()}, {shape}: input {at}, output {out}"


def entry_text(entry: MatrixEntry, hessian: bool = False) -> str:
    """`∂output[1, 1] / ∂input[0, 1] = 3, numerically 3.0001`"""
    a, b = (_index(i) for i in (entry.output_index, entry.input_index))
    what = f"∂²output / ∂input{a} ∂input{b}" if hessian else f"∂output{a} / ∂input{b}"
    value, numeric = format_number(entry.value, 6), format_number(entry.numeric, 6)
    return f"{what} = {value}, numerically {numeric}"


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""
