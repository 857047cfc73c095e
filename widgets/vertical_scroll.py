"""A page that scrolls up and down, and never sideways."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QScrollArea, QWidget

from widgets.theme import GRID


class VerticalScroll(QScrollArea):
    """Scrolls its page up and down. It is as high as the page if there is room, and at least as
    wide as the page's minimum."""

    def __init__(self, page: QWidget) -> None:
        super().__init__()
        self._page = page
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(page)

    def sizeHint(self) -> QSize:
        return self._page.sizeHint()

    def minimumSizeHint(self) -> QSize:
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(self._page.minimumSizeHint().width() + bar, 3 * GRID)
