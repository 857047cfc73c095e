"""Products: the row and the column from which each element is computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from engine.protocol import Cells, ProductCommand, ProductSnapshot
from widgets.make import STRETCH, combo, grid, page, tell, text
from widgets.shapes.cells_grid import Index, Marks, indices, selected, written
from widgets.shapes.cells_view import CellsView
from widgets.shapes.operand_fields import NAMES, ExpressionField, OperandFields, name_of
from widgets.shapes.shape_view import ShapeView
from widgets.theme import GRID

EXAMPLE = ("(2, 3)", "(3, 4)")
EQUATION = "ik,kj->ij"
_WORDS_PX = 44 * GRID
OPS = {
    "matmul": "a @ b: rows of a times columns of b; dimensions in front are batches and broadcast.",
    "mm": "A product of two matrices, without broadcasting.",
    "bmm": "Matrix by matrix over one batch dimension of equal size; nothing broadcasts.",
    "mv": "A matrix times a vector.",
    "dot": "Two vectors: the sum of products.",
    "outer": "Two vectors: every element of one times every element of the other.",
    "einsum": "Letters name dimensions; those that the result leaves out are summed over.",
}


class ProductView(ShapeView):
    """Shows the operands and the result as on paper: b above the result, a to its left, and the
    words in the corner that they leave free. The selected element is where its row of a and its
    column of b meet."""

    QUESTION, ANSWER = ProductCommand, ProductSnapshot
    _snapshot: ProductSnapshot | None

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("product_view", parent)
        choices = [(op, None, tip) for op, tip in OPS.items()]
        self.op = combo("product_op", "Product", choices=choices)
        self.equation = ExpressionField(
            "product_equation",
            "einsum equation",
            "A letter for each dimension of each operand: ik,kj->ij is a matrix product, ij->ji a"
            " transpose, ii-> the trace. ... stands for the dimensions in front.",
        )
        self.equation.setText(EQUATION)
        self.operands = OperandFields(EXAMPLE, 2, 2)
        self._letters = text(
            "product_letters",
            tip="Each dimension with its letter and size. A letter in both operands and not in the"
            " result is summed over; one in both and in the result is a batch.",
            wrap=True,
            mono=10,
        )
        self._meaning = text("product_meaning", "muted", wrap=True)
        self._sum = text("product_sum", wrap=True, mono=10)
        tip = (
            "The elements that the selected element of the result is computed from are highlighted."
        )
        self.operand_cells = [
            CellsView(f"product_cells_{name}", tip, partial(self._choose_operand, number), self)
            for number, name in enumerate(NAMES)
        ]
        tip = "Click an element to see its row and its column."
        self.result_cells = CellsView("product_cells_result", tip, self._ask, self)
        self._words = page(self._letters, self._meaning, self._sum, STRETCH)
        self._grid = grid(across=2 * GRID, stretch=9)
        self._grid.addWidget(self._words, 0, 0, 1, 10)
        self._fill(
            [self.op, self.equation, (self.operands, 1)],
            [self._grid],
        )
        self.op.currentTextChanged.connect(self._choose_op)
        self.equation.textChanged.connect(self.refresh)
        self.operands.changed.connect(self.refresh)
        self._choose_op(self.op.currentText())

    def show_names(self, names: Sequence[str]) -> None:
        self.operands.show_names(names)

    def show_expression(self, expression: str, shape: Index | None = None) -> None:
        self.operands.follow(expression, _partner(self.op.currentText(), shape or ()))

    def show_snapshot(self, snapshot: ProductSnapshot) -> None:
        self._show_answer(snapshot)
        tell(self._letters, _letters(snapshot))
        tell(self._meaning, _meaning(snapshot) if snapshot.letters else "")
        tell(self._sum, _sum(snapshot))
        for number, view in enumerate(self.operand_cells):
            if number >= len(snapshot.cells):
                view.show_cells(None, "")
                continue
            cells = snapshot.cells[number]
            view.show_cells(cells, _name(snapshot, number), _marks(snapshot, number, cells))
        self.result_cells.show_cells(snapshot.result, "result", selected(snapshot.element))
        self._place(len(snapshot.cells))

    def _place(self, operands: int) -> None:
        views = [*self.operand_cells[:operands], self.result_cells]
        for view in (*self.operand_cells, self.result_cells):
            self._grid.removeWidget(view)
            view.set_cell_width(None)
        self._grid.removeWidget(self._words)
        self._grid.setColumnMinimumWidth(0, _WORDS_PX if operands == 2 else 0)
        width = max(view.wanted_cell_width() for view in views)
        for view in views:
            view.set_cell_width(width)
        bottom = Qt.AlignmentFlag.AlignBottom
        corner = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft
        if operands == 2:
            left = Qt.AlignmentFlag.AlignLeft
            self._grid.addWidget(self._words, 0, 0)
            self._grid.addWidget(self.operand_cells[1], 0, 1, bottom | left)
            self._grid.addWidget(self.operand_cells[0], 1, 0, corner)
            self._grid.addWidget(self.result_cells, 1, 1, corner)
            return
        self._grid.addWidget(self._words, 0, 0, 1, 10)
        for column, view in enumerate(views):
            self._grid.addWidget(view, 1, column, corner)

    def _choose_op(self, op: str) -> None:
        self.op.setToolTip(OPS[op])
        self.equation.setVisible(op == "einsum")
        self.operands.set_limits(*((1, 4) if op == "einsum" else (2, 2)))
        self.refresh()

    def _choose_operand(self, number: int, index: Index) -> None:
        """Select an element of the result that reads element `index` of operand `number`."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        self.element_selected.emit(snapshot.operands[number], index)
        if snapshot.element is None or snapshot.shape is None:
            return
        at = dict(zip(snapshot.result_letters, snapshot.element, strict=True))
        own = zip(snapshot.letters[number], index, snapshot.shapes[number], strict=True)
        at |= {letter: i for letter, i, size in own if letter in at and size > 1}
        self._ask(tuple(at[letter] for letter in snapshot.result_letters))

    def _question(self, element: Index | None) -> ProductCommand:
        return ProductCommand(
            operands=self.operands.texts(),
            op=self.op.currentText(),  # pyright: ignore[reportArgumentType]
            equation=self.equation.text(),
            element=element,
        )


def _name(snapshot: ProductSnapshot, number: int) -> str:
    return name_of(snapshot.operands[number], NAMES[number])


def _marks(snapshot: ProductSnapshot, number: int, cells: Cells) -> Marks:
    """Mark the operand's elements that the selected element reads. If a letter occurs twice in the
    operand (`ii`), these are on its diagonal."""
    if snapshot.element is None:
        return {}
    letters, reads = snapshot.letters[number], snapshot.reads[number]
    marks: Marks = {}
    for index in indices(cells):
        met: dict[str, int] = {}
        if all(
            (at is None or at == i) and met.setdefault(letter, i) == i
            for letter, at, i in zip(letters, reads, index, strict=True)
        ):
            marks[index] = "read"
    return marks


def _letters(snapshot: ProductSnapshot) -> str:
    if not snapshot.letters:
        return ""
    parts = []
    for number, (letters, shape) in enumerate(zip(snapshot.letters, snapshot.shapes, strict=True)):
        sizes = ", ".join(f"{c}={size}" for c, size in zip(letters, shape, strict=True))
        parts.append(f"{_name(snapshot, number)}[{sizes}]")
    return f"{' · '.join(parts)}  →  result[{', '.join(snapshot.result_letters)}]"


def _meaning(snapshot: ProductSnapshot) -> str:
    every = "".join(dict.fromkeys("".join(snapshot.letters)))
    summed = [c for c in every if c not in snapshot.result_letters]
    batch = [c for c in snapshot.result_letters if all(c in own for own in snapshot.letters)]
    said = [f"{', '.join(summed)}: multiplied pair by pair and summed"] if summed else []
    if batch and len(snapshot.letters) > 1:
        said.append(f"{', '.join(batch)}: batch, one product for each index")
    return "; ".join([*said, *([snapshot.note] if snapshot.note else [])])


def _sum(snapshot: ProductSnapshot) -> str:
    """The selected element as a sum: `result[0, 1] = a[0, :] · b[:, 1] = 1 · 7 + 2 · 9 = 25`."""
    if snapshot.element is None:
        return ""
    parts = [f"{_name(snapshot, k)}{written(reads)}" for k, reads in enumerate(snapshot.reads)]
    text = f"result{written(snapshot.element)} = {' · '.join(parts)}"
    if snapshot.terms:
        more = ["…"] if snapshot.count > len(snapshot.terms) else []
        text += f" = {' + '.join([*snapshot.terms, *more])}"
    return f"{text} = {snapshot.value}" if snapshot.value else text


def _partner(op: str, shape: Index) -> Index | None:
    """A shape that can be multiplied with `shape`; None if there is none."""
    if op == "einsum" or not shape:
        return None
    last = shape[-1]
    of_vectors = {"mv": (last,), "dot": (last,), "outer": (2,)}
    return of_vectors.get(op) or (*(shape[:1] if op == "bmm" else ()), last, 2)
