"""Grids of cells: side by side if they fit the width, else one under the other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from widgets.make import grid
from widgets.shapes.cells_view import CellsView
from widgets.theme import GRID

GAP = 4 * GRID
_CORNER = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft


class CellsRow(QWidget):
    """The owner calls `arrange` after a change of the grids or of the width."""

    def __init__(self, views: Sequence[CellsView], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._views = tuple(views)
        self._grid = grid(self, across=GAP, stretch=len(self._views))
        for view in self._views:
            view.setParent(self)
        self.arrange(0)

    def arrange(self, width: int) -> None:
        """Place the grids that show something within a width in pixels."""
        shown = [view for view in self._views if not view.isHidden()]
        wanted = sum(view.sizeHint().width() for view in shown) + GAP * (len(shown) - 1)
        columns = max(1, len(shown)) if wanted <= width else 1
        for view in self._views:
            self._grid.removeWidget(view)
        for place, view in enumerate(shown):
            self._grid.addWidget(view, *divmod(place, columns), _CORNER)
