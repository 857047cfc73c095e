"""The layouts of operands and results, and torch's results beside the predictions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QLabel, QWidget

from engine.protocol import ExplainedStep, FactRow, LayoutSpec
from widgets import make
from widgets.theme import GRID, mono_font

PROPERTIES = {
    "shape": "The size of each dimension",
    "stride": "The storage cells from one element to the next along each dimension",
    "offset": "The cell of the storage where the first element lies",
    "dtype": "The type of each element",
    "device": "The device that holds the memory",
}
FACTS = {
    "kind": "A view, a copy, the same tensor, or changed in place",
    "results": "The number of tensors that the operation gives",
    "shares with": "The tensors of this line over the same memory as the result",
}
PREDICTION, TORCH = "prediction", "PyTorch"
MAX_TEXT = 32
"""The longest text in characters. Longer ones are cut; the tooltip has the whole text."""
_COLUMNS = list(PROPERTIES)
_MARK = len(_COLUMNS) + 1
_TICK, _CROSS = "✓", "✗"


class PredictionTable(QWidget):
    """Shows a row for each operand and each predicted result and, after the run, for each of
    torch's results. If there are several results, torch's are shown only where they differ."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("prediction_table")
        self._grid = make.grid(self, across=2 * GRID, down=GRID // 4, stretch=_MARK + 1)
        self._cells: dict[tuple[int, int], QLabel] = {}
        self._rows: list[str] = []  # the name of each row under the heading
        for column, (name, tip) in enumerate(PROPERTIES.items(), start=1):
            self._cell(0, column, name, "muted").setToolTip(f"{tip}.")

    def show_step(self, step: ExplainedStep) -> None:
        self._rows.clear()
        for cell in self._cells.values():
            cell.hide()
        for column in range(1, _MARK):
            self._cells[0, column].show()
        for name, layout in zip(step.operands, step.layouts, strict=False):
            self._add_layout(name, layout, "muted")
        several = step.many or len(step.results) > 1
        for number, layout in enumerate(step.results):
            of = f" [{number}]" if several else ""
            given = step.actual[number] if number < len(step.actual) else None
            agrees = given == layout
            row = self._add_layout(f"{PREDICTION}{of}", layout)
            if given is None:
                continue
            if not several or not agrees:
                row = self._add_layout(f"{TORCH}{of}", given, against=layout)
            self._mark(row, agrees)
        for number, layout in enumerate(step.actual[len(step.results) :], len(step.results)):
            self._mark(self._add_layout(f"{TORCH} [{number}]", layout), False)
        if step.result_count > len(step.results):
            self._add(f"… and {step.result_count - len(step.results):,} more", "muted")
        self._show_facts(step)

    def rows(self) -> list[str]:
        """The names of the rows, from the top."""
        return list(self._rows)

    def text(self, name: str, row: str) -> str:
        """The text of row `row` in column `name` (a property, or "mark"); empty without one."""
        if row not in self._rows:
            return ""
        column = _MARK if name == "mark" else _COLUMNS.index(name) + 1
        label = self._cells.get((self._rows.index(row) + 1, column))
        return "" if label is None or label.isHidden() else label.text()

    def _show_facts(self, step: ExplainedStep) -> None:
        """Add rows for the facts that are not about one result alone. There are none before the
        run: until then, other parts of the card show them."""
        facts = {fact.name: fact for fact in step.facts}
        if step.many and "results" not in facts:
            self._cell(self._add("results", "muted"), 1, str(step.result_count)).show()
        for name, tip in FACTS.items():
            fact = facts.get(name)
            if fact is None:
                continue
            row = self._add(name, "muted")
            self._cells[row, 0].setToolTip(f"{tip}.")
            self._cell(row, 1, _words(fact), "" if fact.agrees else "error", span=_MARK - 1).show()
            self._mark(row, fact.agrees)

    def _add(self, name: str, role: str = "") -> int:
        self._rows.append(name)
        self._cell(len(self._rows), 0, name, role).show()
        return len(self._rows)

    def _add_layout(
        self, name: str, layout: LayoutSpec, role: str = "", against: LayoutSpec | None = None
    ) -> int:
        row = self._add(name, role or "heading")
        wanted = None if against is None else _texts(against)
        for column, text in enumerate(_texts(layout)):
            differs = wanted is not None and text != wanted[column]
            self._cell(row, column + 1, text, "error" if differs else role).show()
        return row

    def _mark(self, row: int, agrees: bool) -> None:
        mark = self._cell(row, _MARK, _TICK if agrees else _CROSS, "success" if agrees else "error")
        mark.setAccessibleName("as predicted" if agrees else "not as predicted")
        mark.show()

    def _cell(self, row: int, column: int, text: str, role: str = "", span: int = 1) -> QLabel:
        label = self._cells.get((row, column))
        if label is None:
            label = make.text("", width="own")
            if column != _MARK and row:
                label.setFont(mono_font())
            self._cells[row, column] = label
        self._grid.addWidget(label, row, column, 1, span)
        short = len(text) <= MAX_TEXT or span > 1
        label.setText(text if short else f"{text[: MAX_TEXT - 1]}…")
        label.setToolTip("" if short else text)
        make.set_role(label, role)
        return label


def _words(fact: FactRow) -> str:
    return fact.predicted if fact.agrees else f"{fact.predicted}; PyTorch: {fact.actual}"


def _texts(layout: LayoutSpec) -> Sequence[str]:
    """The texts of a layout, in the order of `PROPERTIES`."""
    return (
        str(layout.shape),
        str(layout.stride),
        str(layout.storage_offset),
        layout.dtype,
        layout.device,
    )
