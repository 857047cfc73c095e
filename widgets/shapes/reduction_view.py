"""Reductions: the source elements from which each element of the result is computed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QCheckBox, QWidget

from engine.protocol import ReductionCommand, ReductionSnapshot
from widgets.make import STRETCH, check, combo, label, named, row, tell, text
from widgets.shapes.cells_grid import Index, Marks, reads_mark, selected, written
from widgets.shapes.cells_row import CellsRow
from widgets.shapes.cells_view import CellsView
from widgets.shapes.operand_fields import ExpressionField, name_of
from widgets.shapes.shape_view import ShapeView

EXAMPLE = "(2, 3, 4)"
OPS = {
    "sum": "Adds the elements.",
    "mean": "Their sum divided by their count. Needs a floating-point dtype.",
    "prod": "Multiplies the elements. One dimension, or all.",
    "amax": "The largest; over several dimensions at once. Ties share the gradient.",
    "amin": "The smallest; over several dimensions at once.",
    "max": "The largest, and its index (values, indices). One dimension, or all.",
    "min": "The smallest, and its index (values, indices). One dimension, or all.",
    "argmax": "The index of the largest along the dimension, such as the predicted class.",
    "argmin": "The index of the smallest along the dimension.",
    "median": "The middle number in order; of two middle numbers the lower.",
    "any": "Whether any element is not zero.",
    "all": "Whether no element is zero.",
    "std": "Standard deviation, divided by n - 1.",
    "var": "Variance, divided by n - 1.",
    "norm": "The square root of the sum of squares.",
    "logsumexp": "log(sum(exp(x))) without overflow. The heart of cross entropy.",
}


class ReductionView(ShapeView):
    """Shows the source and the result. The source elements from which the result's selected element
    is computed are highlighted."""

    QUESTION, ANSWER = ReductionCommand, ReductionSnapshot
    _snapshot: ReductionSnapshot | None

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("reduction_view", parent)
        self.expression = ExpressionField(
            "reduction_expression", "Tensor to reduce", "A variable, or a shape such as (2, 3, 4)."
        )
        self.expression.setText(EXAMPLE)
        self.expression.textChanged.connect(self.refresh)
        choices = [(op, None, tip) for op, tip in OPS.items()]
        self.op = combo("reduction_op", "Reduction", choices=choices)
        self.op.currentTextChanged.connect(self._choose_op)
        self._keepdim = check(
            "reduction_keepdim",
            "keepdim",
            "Keep each reduced dimension with size 1, so that the result broadcasts with the"
            " source.",
        )
        self._keepdim.clicked.connect(self.refresh)
        self._dims: list[QCheckBox] = []
        self._dims_row = row()
        self._summary = text("reduction_summary", wrap=True)
        self._fold = text("reduction_fold", wrap=True, mono=10)
        tip = "Click an element to see which element of the result it goes to."
        self.source_cells = CellsView("reduction_source", tip, self._choose_source)
        tip = "Click an element to see which elements it is computed from."
        self.result_cells = CellsView("reduction_result", tip, self._ask)
        self._cells = CellsRow((self.source_cells, self.result_cells))
        fold = label("fold", "muted")
        self._fill(
            [(self.expression, 1), self.op, fold, self._dims_row, self._keepdim, STRETCH],
            [self._summary, self._fold, self._cells],
        )
        self._choose_op(self.op.currentText())

    def show_names(self, names: Sequence[str]) -> None:
        self.expression.show_names(names)

    def show_expression(self, expression: str, shape: Index | None = None) -> None:
        if expression != self.expression.text():
            self.expression.setText(expression)

    def show_snapshot(self, snapshot: ReductionSnapshot) -> None:
        self._snapshot = snapshot
        if self._show_dims(snapshot.source_shape):
            self.refresh()
            return
        self._show_answer(snapshot)
        marks = self._source_marks(snapshot)
        self.source_cells.show_cells(snapshot.source, name_of(snapshot.expression, "x"), marks)
        self.result_cells.show_cells(snapshot.result, "result", selected(snapshot.element))
        self._summary.setText(_summary(snapshot))
        tell(self._fold, _fold(snapshot))
        self._arrange()

    @staticmethod
    def _source_marks(snapshot: ReductionSnapshot) -> Marks:
        if snapshot.element is None:
            return {}
        marks = reads_mark(snapshot.source, snapshot.reads)
        if snapshot.winner in marks:
            marks[snapshot.winner] = "winner"
        return marks

    def _dims_chosen(self) -> tuple[int, ...] | None:
        return tuple(d for d, box in enumerate(self._dims) if box.isChecked()) or None

    def _show_dims(self, shape: Sequence[int]) -> bool:
        """Show a check box for each dimension. Returns True if a ticked box is gone: the question
        is then another."""
        before = self._dims_chosen()
        while len(self._dims) > len(shape):
            box = self._dims.pop()
            self._dims_row.removeWidget(box)
            box.hide()  # deleteLater deletes it only in the next turn of the event loop
            box.deleteLater()
        while len(self._dims) < len(shape):
            self._dims.append(self._dim_box(len(self._dims)))
        for d, (box, size) in enumerate(zip(self._dims, shape, strict=True)):
            box.setText(f"{d} ({size})")
        return before != self._dims_chosen()

    def _dim_box(self, d: int) -> QCheckBox:
        tip = f"dim={d}: reduce this dimension. With no box ticked, all dimensions are reduced."
        box = named(QCheckBox(), f"reduction_dim_{d}", f"Reduce dim {d}", tip)
        box.clicked.connect(self.refresh)
        self._dims_row.addWidget(box)
        return box

    def _choose_op(self, op: str) -> None:
        self.op.setToolTip(OPS[op])
        self.refresh()

    def _choose_source(self, index: Index) -> None:
        """Select the element of the result that reads an element of the source."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        self.element_selected.emit(snapshot.expression, index)
        if snapshot.shape is None:
            return
        keeps = len(snapshot.shape) == len(index)
        self._ask(
            tuple(
                0 if d in snapshot.folded else at
                for d, at in enumerate(index)
                if keeps or d not in snapshot.folded
            )
        )

    def _question(self, element: Index | None) -> ReductionCommand:
        return ReductionCommand(
            expression=self.expression.text(),
            op=self.op.currentText(),
            dims=self._dims_chosen(),
            keepdim=self._keepdim.isChecked(),
            element=element,
        )


def _summary(snapshot: ReductionSnapshot) -> str:
    if snapshot.shape is None:
        return ""
    which = ", ".join(map(str, snapshot.folded))
    what = "No dimension to reduce" if not snapshot.folded else f"Reduces dim {which}"
    if len(snapshot.folded) > 1:
        what = f"Reduces dims {which}"
    shapes = f"{snapshot.source_shape} → {snapshot.shape}"
    each = f"each element of the result is computed from {snapshot.count:,}"
    return f"{what}: {shapes}, {snapshot.dtype}; {each}. {snapshot.note}".rstrip()


def _fold(snapshot: ReductionSnapshot) -> str:
    """The selected element in words: `result[1] = sum of x[1, :] = 4 + 5 + 6 = 15`."""
    if snapshot.element is None:
        return ""
    left = f"result{written(snapshot.element)}"
    source = f"{name_of(snapshot.expression, 'x')}{written(snapshot.reads)}"
    terms = list(snapshot.terms)
    more = ["…"] if snapshot.count > len(terms) else []
    if snapshot.op in ("sum", "mean", "prod") and terms:
        joined = (" · " if snapshot.op == "prod" else " + ").join(terms + more)
        middle = f"({joined}) / {snapshot.count}" if snapshot.op == "mean" else joined
        text = f"{left} = {snapshot.op} of {source} = {middle}"
    else:
        listed = f" = {snapshot.op}({', '.join(terms + more)})" if terms else ""
        text = f"{left} = {snapshot.op} of {source}{listed}"
    return f"{text} = {snapshot.value}" if snapshot.value else text
