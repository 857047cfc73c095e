"""How a result will lie in memory, beside its operands and beside what torch gave."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from engine.protocol import ExplainedStep, FactRow, LayoutSpec
from widgets.theme import GRID, mono_font

_ROWS = {
    "kind": "A view, a copy, the same tensor, or changed in place",
    "results": "How many tensors the operation gives",
    "shape": "How many elements each dimension has",
    "stride": "Cells to walk in the storage for one step along each dimension",
    "offset": "The cell of the storage where the first element lies",
    "dtype": "The type of each element",
    "device": "Where the memory is",
    "shares with": "What of this line lies over the same memory as the result",
}
MAX_TEXT = 32
"""Longer texts are cut; the tooltip has them whole."""
_MAX_OPERANDS = 2
_PREDICTED, _ACTUAL, _MARK = _MAX_OPERANDS + 1, _MAX_OPERANDS + 2, _MAX_OPERANDS + 3


class PredictionTable(QWidget):
    """A row for each property. The last columns are empty until the step has run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("prediction_table")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(2 * GRID)
        self._grid.setVerticalSpacing(GRID // 4)
        self._grid.setColumnStretch(_MARK + 1, 1)
        self._cells: dict[tuple[int, int], QLabel] = {}
        for row, (name, tip) in enumerate(_ROWS.items(), start=1):
            self._cell(row, 0, name, "muted").setToolTip(f"{tip}.")

    def show_step(self, step: ExplainedStep) -> None:
        operands = list(zip(step.operands, step.layouts, strict=False))[:_MAX_OPERANDS]
        facts = {fact.name: fact for fact in step.facts}
        for column in range(_MAX_OPERANDS):
            name = operands[column][0] if column < len(operands) else ""
            self._cell(0, column + 1, name, "muted").setVisible(bool(name))
        self._cell(0, _PREDICTED, "prediction", "heading").show()
        self._cell(0, _ACTUAL, "PyTorch", "heading").setVisible(bool(facts))
        predicted = _predicted(step)
        for row, name in enumerate(_ROWS, start=1):
            fact = facts.get(name)
            said = fact.predicted if fact is not None else predicted.get(name)
            self._cells[row, 0].setVisible(said is not None)
            for column in range(_MAX_OPERANDS):
                has = said is not None and column < len(operands)
                text = _texts([operands[column][1]]).get(name, "") if has else ""
                self._cell(row, column + 1, text, "muted").setVisible(has)
            self._cell(row, _PREDICTED, said or "").setVisible(said is not None)
            self._show_fact(row, fact)

    def text(self, name: str, column: str) -> str:
        """What stands in the row `name` under "prediction" or "PyTorch"; empty where nothing."""
        place = {"prediction": _PREDICTED, "PyTorch": _ACTUAL, "mark": _MARK}[column]
        label = self._cells.get((list(_ROWS).index(name) + 1, place))
        return "" if label is None or label.isHidden() else label.text()

    def _show_fact(self, row: int, fact: FactRow | None) -> None:
        agrees = fact is not None and fact.agrees
        self._cell(row, _ACTUAL, "" if fact is None else fact.actual).setVisible(fact is not None)
        mark = self._cell(row, _MARK, "✓" if agrees else "✗", "success" if agrees else "error")
        mark.setVisible(fact is not None)
        mark.setAccessibleName("as predicted" if agrees else "not as predicted")

    def _cell(self, row: int, column: int, text: str, role: str = "") -> QLabel:
        label = self._cells.get((row, column))
        if label is None:
            label = QLabel()
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            if column and column != _MARK:
                label.setFont(mono_font())
            self._cells[row, column] = label
            self._grid.addWidget(label, row, column)
        short = len(text) <= MAX_TEXT
        label.setText(text if short else f"{text[: MAX_TEXT - 1]}…")
        if column:
            label.setToolTip("" if short else text)
        if label.property("role") != role:
            label.setProperty("role", role)
            label.style().polish(label)
        return label


def _predicted(step: ExplainedStep) -> dict[str, str]:
    texts = _texts(step.results)
    if step.many:
        texts["results"] = str(step.result_count)
    if step.results:
        texts["shares with"] = ", ".join(step.shares_with) or "nothing"
    return texts


def _texts(layouts: Sequence[LayoutSpec]) -> dict[str, str]:
    """Property -> its values, each told once (`0; 3`)."""
    if not layouts:
        return {}
    values = {
        "shape": [x.shape for x in layouts],
        "stride": [x.stride for x in layouts],
        "offset": [x.storage_offset for x in layouts],
        "dtype": [x.dtype for x in layouts],
        "device": [x.device for x in layouts],
    }
    return {name: "; ".join(dict.fromkeys(map(str, all_))) for name, all_ in values.items()}
