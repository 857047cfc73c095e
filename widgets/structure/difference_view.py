"""Two modules, or one before and after, compared: in words, and in a table of three parts."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QWidget

from engine.protocol import DifferenceSnapshot
from widgets import make, theme
from widgets.structure.difference_words import (
    difference_text,
    is_equal,
    modules_words,
    output_name,
    outputs_words,
    weights_words,
)
from widgets.theme import GRID

_HEADINGS = ("", "Before", "After", "Max |difference|")
_WIDTHS = (176, 144, 144, 112)
_WIDEST = 288
_INDENTATION = 6 * GRID
_PATH = Qt.ItemDataRole.UserRole


class DifferenceView(QWidget):
    """`closed()`: the reader has seen enough. `module_chosen(path)`: the reader has selected a row
    of this module, or of a weight in it."""

    closed = Signal()
    module_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._told: DifferenceSnapshot | None = None
        self._is_old = False
        self.title = make.text("difference_title", "heading")
        self.words = make.text("difference_words", wrap=True)
        self.close_button = make.tool_button(
            "difference_close",
            "mdi6.close",
            "Close the comparison: the picture of one forward comes back.",
            self.closed,
            accessible="Close the comparison",
        )
        self.table = make.named(QTreeWidget(), "difference_table", "What differs")
        self.table.setHeaderLabels(list(_HEADINGS))
        self.table.setFrameShape(QTreeWidget.Shape.NoFrame)
        self.table.setUniformRowHeights(True)
        self.table.setToolTip(
            "Modules, parameters and buffers that differ; and the outputs of all calls for the same"
            " input, in the order in which the calls end: the first that differs is where to look."
        )
        for column, width in enumerate(_WIDTHS):
            self.table.setColumnWidth(column, width)
        # Beside the names: Before and After are often the same, and a window may show no more.
        self.table.header().moveSection(len(_HEADINGS) - 1, 1)
        self.table.currentItemChanged.connect(self._on_current)
        theme.notifier.changed.connect(self._paint)
        head = make.row((self.title, 1), self.close_button)
        parts = (head, self.words, (self.table, 1))
        make.column(*parts, on=self, gap=GRID // 2, margins=(GRID, 0, GRID, 0))

    def show_difference(self, told: DifferenceSnapshot) -> None:
        self._told, self._is_old = told, False
        self.title.setText(f"{told.before} → {told.after}")
        self._paint()

    def refuse(self, problem: str) -> None:
        """Say why there is no comparison."""
        self._told = None
        self.title.setText("No comparison")
        self.table.clear()
        make.set_role(self.words, "error")
        self.words.setText(problem)

    def tell_outdated(self) -> None:
        """The weights that were compared have changed since."""
        self._is_old = True
        self._paint()

    def _paint(self) -> None:
        told = self._told
        if told is None:
            return
        is_success = is_equal(told) and not self._is_old
        make.set_role(self.words, "success" if is_success else "")
        old = ("The weights have changed since: compare again.",) if self._is_old else ()
        words = (*old, modules_words(told), weights_words(told), outputs_words(told))
        self.words.setText("\n".join(words))
        self.table.clear()
        modules = [
            (row.path, row.path or "the whole", row.before, row.after, "") for row in told.modules
        ]
        weights = [
            (row.name.rpartition(".")[0], row.name, row.before, row.after, difference_text(row))
            for row in told.weights
        ]
        outputs = [
            (row.path, output_name(row), row.before, row.after, difference_text(row))
            for row in told.outputs
        ]
        names = [texts[0] for _, *texts in (*modules, *weights, *outputs)]
        self._make_room(names)
        self._add_part("Modules", told.module_count, modules)
        self._add_part("Parameters and buffers", told.weight_count, weights)
        of_outputs = self._add_part("Outputs", told.output_count, outputs)
        colors = theme.current()
        for number, (row, item) in enumerate(zip(told.outputs, of_outputs, strict=True)):
            if row.difference == 0.0:
                item.setForeground(3, colors.color("muted"))
            elif number == told.first:
                for column in range(len(_HEADINGS)):
                    item.setForeground(column, colors.color("error"))
                self.table.scrollToItem(item)

    def _make_room(self, names: Iterable[str]) -> None:
        """Make the first column as wide as the names, up to _WIDEST."""
        metrics = QFontMetrics(theme.mono_font(9))
        wanted = max(map(metrics.horizontalAdvance, names), default=0) + _INDENTATION
        self.table.setColumnWidth(0, min(max(wanted, _WIDTHS[0]), _WIDEST))

    def _add_part(
        self, title: str, count: int, rows: Iterable[tuple[str, str, str, str, str]]
    ) -> list[QTreeWidgetItem]:
        """Rows of (path of the module, the texts of the columns) under a heading."""
        items: list[QTreeWidgetItem] = []
        part = QTreeWidgetItem([f"{title} ({count:,})"])
        self.table.addTopLevelItem(part)
        part.setFirstColumnSpanned(True)
        for path, *texts in rows:
            item = QTreeWidgetItem(part, texts)
            item.setData(0, _PATH, path)
            item.setFont(0, theme.mono_font(9))
            for column, text in enumerate(texts):
                item.setToolTip(column, text)
            items.append(item)
        left = count - len(items)
        if left:
            QTreeWidgetItem(part, [f"and {left:,} more"])
        part.setExpanded(True)
        return items

    def _on_current(self, item: QTreeWidgetItem | None) -> None:
        path = None if item is None else item.data(0, _PATH)
        if path is not None:
            self.module_chosen.emit(path)
