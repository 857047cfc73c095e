"""Help > Guide: a window beside the main one, which stays usable."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QDialog, QWidget

from widgets import make
from widgets.guide.view import Guide, GuideView


class GuideWindow(QDialog):
    """Esc clears the search, then hides the window."""

    def __init__(self, guides: Sequence[Guide], geometry: QByteArray, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("guide_window")
        self.setWindowTitle("Guide")
        self.resize(1040, 760)
        if not geometry.isEmpty():
            self.restoreGeometry(geometry)
        self.view = GuideView(guides)
        make.column(self.view, on=self)

    def open_beside(self) -> None:
        self.show()
        self.raise_()
        self.activateWindow()
        self.view.page.setFocus()
