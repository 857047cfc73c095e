"""gradcheck's verdict, and the two Jacobians that it compares side by side."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QPlainTextEdit,
    QWidget,
)

from engine.protocol import CheckedPair, GradcheckSnapshot, Picture
from widgets import make
from widgets.derivatives.result import entry_text
from widgets.text import format_number
from widgets.theme import mono_font
from widgets.values.picture_grid import matrix_steps
from widgets.values.picture_view import PictureView

_PICTURES = (
    ("analytic", "The Jacobian from backward, row by row, by vector-Jacobian products"),
    ("numeric", "The Jacobian from the function, column by column, by central differences"),
    ("difference", "The absolute difference of the two Jacobians"),
)


class GradcheckResult(QWidget):
    """Shows a GradcheckSnapshot; the reader chooses the pair of output and input."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: GradcheckSnapshot | None = None
        self._verdict = make.text("gradcheck_verdict", "heading")
        self._hint = make.text("gradcheck_hint", wrap=True)
        self._pair = make.combo("gradcheck_pair", "Output and input")
        self._pair.setToolTip("The pair of output and input whose Jacobian is shown.")
        self._pair.currentIndexChanged.connect(self._show_pair)
        self._worst = make.text("gradcheck_worst", wrap=True, mono=10)
        self.pictures = {name: PictureView() for name, _ in _PICTURES}
        self.message = QPlainTextEdit(readOnly=True)
        make.named(self.message, "gradcheck_message", "PyTorch's own message")
        self.message.setFont(mono_font(9))
        self.message.setToolTip("PyTorch's own message in full.")
        upper = QWidget()
        grid = make.grid(upper)
        grid.addWidget(self._verdict, 0, 0, 1, 2)
        grid.addWidget(self._pair, 0, 2, Qt.AlignmentFlag.AlignRight)
        grid.addWidget(self._hint, 1, 0, 1, 3)
        grid.addWidget(self._worst, 2, 0, 1, 3)
        for column, (name, tip) in enumerate(_PICTURES):
            label = make.label(name, tip=f"{tip}.")
            self.pictures[name].setObjectName(f"gradcheck_{name}")
            self.pictures[name].setToolTip(
                f"{tip}. Rows are output elements, columns input elements. The entry that fails"
                " has a frame."
            )
            grid.addWidget(label, 3, column)
            grid.addWidget(self.pictures[name], 4, column)
            grid.setColumnStretch(column, 1)
        grid.setRowStretch(4, 1)
        splitter = make.splitter(upper, self.message, upright=True, shares=(1,), sizes=(480, 160))
        make.column(splitter, on=self)

    def show_check(self, snapshot: GradcheckSnapshot) -> None:
        self._snapshot = snapshot
        self._verdict.setText("✓ The gradients agree." if snapshot.ok else "✗ The check fails.")
        make.set_role(self._verdict, "success" if snapshot.ok else "error")
        make.tell(self._hint, snapshot.hint)
        self.message.setPlainText(snapshot.message)
        self.message.setVisible(bool(snapshot.message))
        self._pair.blockSignals(True)
        self._pair.clear()
        for pair in snapshot.pairs:
            fails = " – fails" if pair.worst is not None else ""
            self._pair.addItem(f"output {pair.output} by input {pair.input}{fails}")
        failing = (i for i, pair in enumerate(snapshot.pairs) if pair.worst is not None)
        self._pair.setCurrentIndex(next(failing, 0))
        self._pair.blockSignals(False)
        self._pair.setVisible(len(snapshot.pairs) > 1)
        self._show_pair()

    def _show_pair(self) -> None:
        snapshot, place = self._snapshot, self._pair.currentIndex()
        some = snapshot is not None and 0 <= place < len(snapshot.pairs)
        pair = snapshot.pairs[place] if snapshot is not None and some else None
        shown = (None,) * 3 if pair is None else (pair.analytic, pair.numeric, pair.difference)
        for view, picture in zip(self.pictures.values(), shown, strict=True):
            view.show_picture(picture, "There are no Jacobians to compare")
            view.mark_cell(None if pair is None else _worst_cell(pair, picture), "error")
        # One scale for all three: equal colours are equal numbers.
        ranges = [view.value_range() for view in self.pictures.values()]
        shared = (min(low for low, _ in ranges), max(high for _, high in ranges))
        for view in self.pictures.values():
            view.set_shared_range(None if pair is None else shared)
        self._worst.setText("" if pair is None else worst_text(pair))


def _worst_cell(pair: CheckedPair, picture: Picture | None) -> tuple[int, int] | None:
    """The (row, column) in the picture of the matrix entry that fails; None if none does."""
    if pair.worst is None or picture is None:
        return None
    row_step, column_step = matrix_steps(picture, pair.rows, pair.columns)
    return pair.worst.row // row_step, pair.worst.column // column_step


def worst_text(pair: CheckedPair) -> str:
    """The entry that fails, with its tolerance; the largest difference if none does."""
    if pair.worst is None:
        return f"largest difference {format_number(pair.max_difference)}"
    difference = abs(pair.worst.value - pair.worst.numeric)
    return (
        f"{entry_text(pair.worst)}: differs by {format_number(difference)}, allowed:"
        f" {format_number(pair.allowed)}"
    )
