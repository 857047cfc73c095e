"""A workspace's page with docks around its central widget."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

_DOCK_VERSION = 1
_FIRST_SIZE = QSize(1368, 832)
"""The size of a page in the window's first size."""


class DockedPage(QMainWindow):
    """A QMainWindow inside the window, because only a QMainWindow has docks."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        self.resize(_FIRST_SIZE)  # docks laid out in Qt's own 640 by 480 stay too small
        self._docks: list[QDockWidget] = []
        self._folded: list[QDockWidget] = []

    def docks(self) -> tuple[QDockWidget, ...]:
        return tuple(self._docks)

    def dock_state(self) -> QByteArray:
        return self.saveState(_DOCK_VERSION)

    def restore_docks(self, state: QByteArray) -> None:
        if not state.isEmpty():
            self.restoreState(state, _DOCK_VERSION)

    def fold(self, area: Qt.DockWidgetArea) -> None:
        """Hide the docks of a side, or show those that were hidden so; all if none was."""
        side = [
            dock
            for dock in self._docks
            if self.dockWidgetArea(dock) == area and not dock.isFloating()
        ]
        shown = [dock for dock in side if not dock.isHidden()]
        if shown:
            self._folded = [dock for dock in self._folded if dock not in side] + shown
            for dock in shown:
                dock.hide()
            return
        for dock in [dock for dock in self._folded if dock in side] or side:
            dock.show()

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(title, self)
        dock.setObjectName(f"{title.lower()}_dock")
        dock.setWidget(widget)
        self.addDockWidget(area, dock)
        dock.toggleViewAction().setToolTip(f"Show or hide the panel “{title}”.")
        self._docks.append(dock)
        return dock
