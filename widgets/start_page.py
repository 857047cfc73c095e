"""The start page: templates, recent files, and buttons for a new file and to open one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QWidget,
)
from superqt import QFlowLayout

from widgets import make, theme
from widgets.icons import icon, set_icon

TemplateRow = tuple[str, str, str] | tuple[str, str, str, "QPixmap | str"]
"""(key, title, summary) and perhaps a picture: a pixmap, or an icon's name."""

_PICTURE_HEIGHT = 56
_CARD = QSize(232, 176)


class StartPage(QScrollArea):
    """Templates as cards, recent files as a list; what is chosen is told by signals."""

    new_requested = Signal()
    open_requested = Signal()
    tensors_requested = Signal()
    template_chosen = Signal(str)
    recent_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("start_page")

        title = make.label("Tensor Lab", "title")
        subtitle = make.label(
            "See what PyTorch does: look under tensors, build a model, step through it, train it.",
            "muted",
            wrap=True,
        )
        self.new_button = make.button(
            "start_new", "New model", slot=self.new_requested, primary=True
        )
        self.new_button.setToolTip("Start with an empty canvas.")
        self.open_button = make.button(
            "start_open", "Open…", "mdi6.folder-open-outline", self.open_requested
        )
        self.open_button.setToolTip("Open a project (.tlab).")
        self.tensors_button = make.button(
            "start_tensors", "Look at tensors", "mdi6.matrix", self.tensors_requested
        )
        self.tensors_button.setToolTip(
            "Type Python, and see the storage, strides and sharing of every tensor it makes."
        )

        self._cards = QFlowLayout()
        self._cards.setHorizontalSpacing(2 * theme.GRID)
        self._cards.setVerticalSpacing(2 * theme.GRID)
        self._recent = make.column(gap=theme.GRID // 2)
        self._no_recent = make.label(
            "Projects you save or open are listed here.", "muted", "start_no_recent"
        )

        column = make.page(
            title,
            subtitle,
            theme.GRID,
            make.row(self.new_button, self.open_button, self.tensors_button, make.STRETCH),
            3 * theme.GRID,
            make.label("Start from a template", "heading"),
            self._cards,
            3 * theme.GRID,
            make.label("Recent", "heading"),
            self._recent,
            self._no_recent,
            make.STRETCH,
            margins=(5 * theme.GRID, 6 * theme.GRID, 5 * theme.GRID, 4 * theme.GRID),
        )
        column.setMaximumWidth(1072)
        body = QWidget()
        make.row(make.STRETCH, (column, 100), make.STRETCH, on=body, gap=-1)
        make.scroll(body, self)

    def show_templates(self, templates: Sequence[TemplateRow]) -> None:
        """Show a card for each (key, title, summary[, picture]), in this order."""
        _clear(self._cards)
        for key, title, summary, *picture in templates:
            card = _Card(key, title, summary, picture[0] if picture else "mdi6.graph-outline")
            card.chosen.connect(self.template_chosen)
            self._cards.addWidget(card)

    def show_recent(self, paths: Sequence[str]) -> None:
        """Show the files used last, newest first; files that are gone are shown disabled."""
        _clear(self._recent)
        for path in paths:
            row = _RecentRow(path)
            row.clicked.connect(lambda _=False, path=path: self.recent_chosen.emit(path))
            self._recent.addWidget(row)
        self._no_recent.setVisible(not paths)


class _Card(QFrame):
    """A template. A click, Enter or Space chooses it."""

    chosen = Signal(str)

    def __init__(self, key: str, title: str, summary: str, picture: QPixmap | str) -> None:
        super().__init__()
        self._key = key
        self._picture = picture
        self._hovered = False
        self.setProperty("role", "card")
        tip = f"{summary}\nClick to start from a copy of it."
        make.named(self, f"template_{key}", f"Template: {title}", tip)
        self.setAccessibleDescription(summary)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._image = QLabel()
        self._image.setFixedHeight(_PICTURE_HEIGHT)
        name = make.label(title, "heading")
        words = make.label(summary, "muted", wrap=True)
        words.setAlignment(Qt.AlignmentFlag.AlignTop)
        parts = (self._image, name, (words, 1))
        layout = make.column(*parts, on=self, gap=theme.GRID // 2, margins=2 * theme.GRID)
        # With larger letters than usual the card grows, so that nothing is cut off.
        width = max(_CARD.width(), name.sizeHint().width() + 4 * theme.GRID)
        height = layout.totalHeightForWidth(width)
        self.setFixedSize(width, max(_CARD.height(), height))
        self._paint_picture()
        theme.notifier.changed.connect(self._paint_picture)

    def _paint_picture(self) -> None:
        if isinstance(self._picture, str):
            self._image.setPixmap(icon(self._picture, "accent").pixmap(40, 40))
        else:
            size = QSize(_CARD.width() - 4 * theme.GRID, _PICTURE_HEIGHT)
            self._image.setPixmap(
                self._picture.scaled(
                    size,
                    Qt.AspectRatioMode.KeepAspectRatio,
                    Qt.TransformationMode.SmoothTransformation,
                )
            )

    def enterEvent(self, event) -> None:
        self._hovered = True
        self.update()
        super().enterEvent(event)

    def leaveEvent(self, event) -> None:
        self._hovered = False
        self.update()
        super().leaveEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._hovered or self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.current().color("accent"), 1.5))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 6, 6)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        inside = self.rect().contains(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and inside:
            self.chosen.emit(self._key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self._key)
        else:
            super().keyPressEvent(event)


class _RecentRow(QPushButton):
    def __init__(self, path: str) -> None:
        file = Path(path)
        super().__init__(f"{file.stem}    {file.parent}")
        self.setObjectName("recent_file")
        self.setFlat(True)
        self.setStyleSheet("text-align: left; padding: 4px 8px;")
        self.setAccessibleName(f"Open {file.name}")
        exists = file.exists()
        self.setEnabled(exists)
        self.setToolTip(path if exists else f"{path}\nThe file is not there any more.")
        set_icon(self, "mdi6.file-outline", "muted")


def _clear(layout) -> None:
    while layout.count():
        widget = layout.takeAt(0).widget()
        widget.hide()
        widget.deleteLater()
