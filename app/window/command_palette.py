"""The command palette: finds every action, block and workspace by name; also inserts blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from widgets import make, theme
from widgets.icons import icon
from widgets.theme import GRID

_HINT_ROLE = Qt.ItemDataRole.UserRole
_WIDTH = 560
_ROW_PX = 4 * GRID
_ROWS = 11


@dataclass(frozen=True)
class Entry:
    """One row: its title, a hint at the right (keys, group), keywords to find it by, and its
    function."""

    title: str
    hint: str
    icon: str
    run: Callable[[], object]
    keywords: str = ""
    tip: str = ""


def match_score(query: str, text: str) -> int | None:
    """How well `text` matches `query`: None if it does not have the letters in this order. The
    score is higher if they follow each other, begin words, or come early. Case does not count."""
    text = text.lower()
    score, position, streak = 0, 0, 0
    for letter in query.lower():
        if letter == " ":
            streak = 0
            continue
        found = text.find(letter, position)
        if found < 0:
            return None
        starts_word = found == 0 or not text[found - 1].isalnum()
        streak = streak + 1 if found == position else 1
        score += 4 * streak + (6 if starts_word else 0) - min(found - position, 6)
        position = found + 1
    return score - len(text) // 8


def search(query: str, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that match, best first; for an empty query all entries, in order.

    Titles match by letters in order, keywords by the beginnings of words. Matches of titles come
    first.
    """
    words = query.lower().split()
    if not words:
        return list(entries)
    by_title, by_keywords = [], []
    for entry in entries:
        score = match_score(query, entry.title)
        if score is not None:
            by_title.append((score, entry))
        elif all(any(k.startswith(w) for k in entry.keywords.lower().split()) for w in words):
            by_keywords.append(entry)
    by_title.sort(key=lambda row: row[0], reverse=True)
    return [entry for _, entry in by_title] + by_keywords


class _RowDelegate(QStyledItemDelegate):
    """Paints the icon and the title at the left, and the hint in the muted colour at the right."""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)
        selected = option.state & QStyle.StateFlag.State_Selected
        painter.save()
        painter.setPen(theme.current().color("on_accent" if selected else "muted"))
        painter.drawText(
            option.rect.adjusted(GRID, 0, -GRID, 0),
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            str(index.data(_HINT_ROLE)),
        )
        painter.restore()

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(0, _ROW_PX)


class CommandPalette(QFrame):
    """A search field over a list, on top of its parent. Arrows select, Enter runs, Esc closes."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._area = parent
        self.setObjectName("command_palette")
        self.setProperty("role", "card")
        self.setFixedWidth(_WIDTH)
        self.field = make.field("command_palette_field", "Search for a command or block")
        self.field.setToolTip("Type some letters of a name; Enter runs the first match.")
        self.field.setClearButtonEnabled(True)
        self.list = make.named(QListWidget(), "command_palette_list", "Matches")
        self.list.setIconSize(QSize(18, 18))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setItemDelegate(_RowDelegate(self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.empty = make.label("Nothing is called like that. Try fewer letters.", "muted")
        make.column(self.field, self.empty, self.list, on=self, margins=GRID)
        self._entries: Sequence[Entry] = ()
        self._matches: list[Entry] = []
        self._focus_before: QWidget | None = None
        self.field.textChanged.connect(self._search)
        self.field.returnPressed.connect(self._run_current)
        self.field.installEventFilter(self)
        self.list.clicked.connect(self._on_clicked)
        self.hide()

    def ask(self, entries: Sequence[Entry], hint: str, at: QPoint | None = None) -> None:
        """Show `entries`, at a point of the parent or in the middle of its top."""
        self._entries = entries
        self._focus_before = self.window().focusWidget()
        self.field.setPlaceholderText(hint)
        self.field.clear()
        self._search("")
        area = self._area.rect()
        point = at or QPoint((area.width() - self.width()) // 2, 8 * GRID)
        self.move(
            max(0, min(point.x(), area.width() - self.width())),
            max(0, min(point.y(), area.height() - self.height())),
        )
        self.show()
        self.raise_()
        self.field.setFocus()

    def close_palette(self) -> None:
        self.hide()
        if self._focus_before is not None:
            self._focus_before.setFocus()
            self._focus_before = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut and self.isVisible():
            self.hide()
        elif event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            event.accept()  # typed keys must not trigger shortcuts of the window
        elif event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step and self._matches:
                self.list.setCurrentRow((self.list.currentRow() + step) % len(self._matches))
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close_palette()
                return True
        return super().eventFilter(watched, event)

    def _search(self, query: str) -> None:
        self._matches = search(query, self._entries)
        self.list.clear()
        for entry in self._matches:
            picture = icon(f"mdi6.{entry.icon}", "muted", selected="on_accent")
            item = QListWidgetItem(picture, entry.title)
            item.setData(_HINT_ROLE, entry.hint)
            item.setToolTip(entry.tip)
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.list.setVisible(bool(self._matches))
        self.empty.setVisible(not self._matches)
        self.list.setFixedHeight(_ROW_PX * min(len(self._matches), _ROWS))
        self.adjustSize()

    def _on_clicked(self, index: QModelIndex) -> None:
        self.list.setCurrentRow(index.row())
        self._run_current()

    def _run_current(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._matches):
            entry = self._matches[row]
            self.close_palette()
            entry.run()
