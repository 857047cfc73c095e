"""The Start page's cards: a template, a way into a workspace, the first steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy

from widgets import make, theme
from widgets.icons import icon, set_icon
from widgets.theme import GRID

_ICON_PX = 24
# In a window of 1366 pixels the five templates stand side by side, and so do the three ways.
_TEMPLATE = QSize(27 * GRID, 108)
_WAY_PX = 46 * GRID


class EntryGroup(Struct, frozen=True):
    """Some entries of a workspace: each (key, title, tooltip). The card shows the first `shown`
    entries; a menu with the title `more` has all."""

    key: str
    title: str
    summary: str
    icon: str
    entries: tuple[tuple[str, str, str], ...]
    more: str = ""
    shown: int = 4


class TemplateCard(QFrame):
    """A template. A click, Enter or Space chooses it."""

    chosen = Signal(str)

    def __init__(self, key: str, title: str, summary: str, picture: QPixmap | str) -> None:
        super().__init__()
        self._key = key
        self._picture = picture
        self._hovered = False
        self.setProperty("role", "card")
        tip = f"{summary}\nClick to open a copy of it."
        make.named(self, f"template_{key}", f"Template: {title}", tip)
        self.setAccessibleDescription(summary)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._image = QLabel()
        name = make.label(title, "heading")
        words = make.label(summary, "muted", wrap=True)
        words.setAlignment(Qt.AlignmentFlag.AlignTop)
        head = make.row(self._image, (name, 1))
        make.column(head, (words, 1), on=self, margins=2 * GRID - 2)
        self._title = name
        self._paint_picture()
        theme.notifier.changed.connect(self._paint_picture)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Polish:  # fonts and frame are known
            self._fit_text()
        return super().event(event)

    def _fit_text(self) -> None:
        """Grow with the font, so that no text is cut off."""
        width = max(_TEMPLATE.width(), self._title.sizeHint().width() + _ICON_PX + 5 * GRID)
        self.setMinimumSize(width, _TEMPLATE.height())

    def _paint_picture(self) -> None:
        if isinstance(self._picture, str):
            self._image.setPixmap(icon(self._picture, "accent").pixmap(_ICON_PX, _ICON_PX))
        else:
            self._image.setPixmap(
                self._picture.scaledToHeight(_ICON_PX, Qt.TransformationMode.SmoothTransformation)
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


class WayCard(QFrame):
    """The entries of an `EntryGroup`, each a button. `chosen(key)`: the key of the entry."""

    chosen = Signal(str)

    def __init__(self, way: EntryGroup) -> None:
        super().__init__()
        self.setProperty("role", "card")
        make.named(self, f"way_{way.key}", way.title)
        self._icon, self._image = way.icon, make.label()
        summary = make.label(way.summary, "muted", wrap=True)
        rows = make.column(gap=0)
        for entry in way.entries[: way.shown]:
            rows.addWidget(self._entry(way.key, *entry))
        if len(way.entries) > way.shown:
            rows.addWidget(self._all_button(way))
        head = make.row(self._image, (make.label(way.title, "heading"), 1))
        make.column(head, summary, rows, make.STRETCH, on=self, margins=2 * GRID - 2)
        self._paint_icon()
        theme.notifier.changed.connect(self._paint_icon)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Polish:  # fonts are known
            # The card grows with the font, so that no title is cut off.
            widest = max(row.sizeHint().width() for row in self.findChildren(QPushButton))
            self.setMinimumWidth(max(_WAY_PX, widest + 4 * GRID))
        return super().event(event)

    def _paint_icon(self) -> None:
        self._image.setPixmap(icon(self._icon, "accent").pixmap(_ICON_PX, _ICON_PX))

    def _entry(self, way: str, key: str, title: str, tip: str) -> QPushButton:
        made = flat_button(f"start_{way}_{key}", title, tip)
        made.clicked.connect(lambda: self.chosen.emit(key))
        return made

    def _all_button(self, way: EntryGroup) -> QPushButton:
        made = flat_button(f"start_{way.key}_all", way.more, f"{way.title}: the whole list.")
        set_icon(made, "mdi6.dots-horizontal", "muted")
        menu = make.menu(made, accessible=way.more, tips=True)
        for key, title, tip in way.entries:
            choose = partial(self.chosen.emit, key)
            make.action(menu, title.replace("&", "&&"), choose, name=key, tip=tip)
        return made


class FirstStepsCard(QFrame):
    """The path of a first minute, and a button that begins it."""

    begun = Signal()

    def __init__(self, steps: Sequence[tuple[str, str]]) -> None:
        """`steps` are (title, words)."""
        super().__init__()
        self.setProperty("role", "card")
        make.named(self, "first_steps", "First steps")
        self.button = make.button("start_first_steps", "Begin", slot=self.begun, primary=True)
        self.button.setToolTip(
            "Open a template, step through it, train it, and look at what has changed. A bar at the"
            " top of the window says what to do."
        )
        places = make.row(gap=3 * GRID)
        for number, (title, words) in enumerate(steps, start=1):
            about = make.label(words, "muted", wrap=True)
            about.setAlignment(Qt.AlignmentFlag.AlignTop)
            step = make.column(make.label(f"{number}  {title}", "heading"), (about, 1), gap=2)
            places.addLayout(step, 1)
        parts = ((places, 1), (self.button, 0, Qt.AlignmentFlag.AlignVCenter))
        make.row(*parts, on=self, gap=3 * GRID, margins=2 * GRID - 2)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)


def flat_button(name: str, text: str, tip: str) -> QPushButton:
    """A button that looks like a line of a list."""
    made = make.button(name, text.replace("&", "&&"), tip=tip, accessible=text)
    made.setFlat(True)
    made.setProperty("role", "line")
    made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    return made
