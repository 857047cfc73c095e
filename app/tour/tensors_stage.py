"""Tour, Tensors workspace: make a tensor, slice it, write through the slice, read its storage."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from app.tour.hand import TourFailure
from app.tour.stage import Stage
from engine.protocol import (
    CellSnapshot,
    LocationSnapshot,
    StorageSnapshot,
    VariablesSnapshot,
)

WRITTEN = "42"
CELL = 5
"""The storage cell of `y[0, 1]`, where `y` is the slice `x[1:, ::2]` of `x`, 2 rows of 3
elements."""


class TensorsStage(Stage):
    def run(self) -> None:
        self.application.export.dialog.hide()
        self.hand.choose(
            self.application.window.menuBar(),
            self.application.window.actions_table["tensors.console"],
        )
        self._page = self.application.workspaces.tensors.page
        self._create("x")
        self._run("y = x[1:, ::2]")
        self._see_sharing()
        self._write_element()
        self.picture("values")
        self._read_storage()
        self.picture("storage")
        self._show("Aliases")
        self.picture("aliases")

    def _create(self, name: str) -> None:
        """Make the tensor that the form proposes, under the name `name`."""
        self.store.forget(CellSnapshot)
        self.hand.write(self.find(self._page.create_form, QLineEdit, "create_name"), name)
        self._wait_for_cell(f"{name} = torch.tensor(...)")

    def _run(self, source: str) -> None:
        """Type a line into the console and press Enter."""
        self.store.forget(CellSnapshot)
        self.hand.write(self._page.console.input, source)
        self._wait_for_cell(source)

    def _wait_for_cell(self, source: str) -> None:
        cell = self.wait_for(CellSnapshot, lambda cell: True, f"the cell {source}")
        if not cell.ok:
            raise TourFailure(f"{source} failed: {cell.error.message if cell.error else ''}")
        self.count("cells_run")

    def _see_sharing(self) -> None:
        shown = self.store.newest(VariablesSnapshot)
        storages = {v.name: v.storage for v in shown.variables} if shown else {}
        if storages.get("x") is None or storages.get("x") != storages.get("y"):
            raise TourFailure("a slice and its tensor do not bear the same chip")

    def _write_element(self) -> None:
        """Type a number into the table of the slice, which runs as Python in the console."""
        self._show("Values")
        table = self._page.values.table
        self.hand.until(lambda: table.text_at(0, 1) == "6", "the elements of y")
        self.hand.click(table.viewport(), table.cell_rect(0, 1).center())
        self.hand.press(table, Qt.Key.Key_F2)
        self.store.forget(CellSnapshot)
        self.hand.write(self.find(table, QLineEdit, "cell_editor"), WRITTEN)
        self._wait_for_cell(f"y[0, 1] = {WRITTEN}")
        self.hand.until(lambda: table.text_at(0, 1) == WRITTEN, "the new number in the table")
        link = self.application.bench.link
        self.hand.until(lambda: not link.busy, "the statistics of the new numbers")

    def _read_storage(self) -> None:
        """Click the cell that was written through the slice, and find both elements named."""
        self._show("Storage")
        strip = self._page.storage.strip
        shown = self.wait_for(StorageSnapshot, lambda s: s.expression == "y", "the storage of y")
        if shown.values[CELL - shown.first] != WRITTEN:
            raise TourFailure(f"cell {CELL} does not hold what was written through the slice")
        self.hand.until(lambda: not strip.cell_rect(CELL).isEmpty(), "the cells to be drawn")
        self.hand.click(strip.viewport(), strip.cell_rect(CELL).center().toPoint())
        where = self.wait_for(LocationSnapshot, lambda s: s.cell == CELL, "who reads the cell")
        readers = {reader.expression: reader.elements for reader in where.readers}
        self.report["cell_read_by"] = sorted(readers)
        if readers != {"y": ((0, 1),), "x": ((1, 2),)}:
            raise TourFailure(f"cell {CELL} is read by {readers}")

    def _show(self, title: str) -> None:
        tabs = self._page.tabs
        bar = tabs.tabBar()
        index = next(i for i in range(tabs.count()) if tabs.tabText(i) == title)
        self.hand.click(bar, bar.tabRect(index).center())
