"""The command palette: every action, block and workspace by name. Also inserts blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import qtawesome
from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from widgets import theme
from widgets.theme import GRID


@dataclass(frozen=True)
class Entry:
    """One line: what it says, a hint at its right (keys, group), words to find it by, what it
    does."""

    title: str
    hint: str
    icon: str
    run: Callable[[], object]
    keywords: str = ""
    tip: str = ""


def match_score(query: str, text: str) -> int | None:
    """How well `text` answers `query`: None if its letters do not occur in order; else higher for
    letters that follow each other, begin a word, or stand early. Case does not count."""
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
    """The entries that match, best first; all of them, in order, for an empty query.

    A match in the title counts more than one in the keywords.
    """
    if not query.strip():
        return list(entries)
    scored = []
    for index, entry in enumerate(entries):
        in_title = match_score(query, entry.title)
        in_words = match_score(query, entry.keywords)
        scores = [in_title + 8] if in_title is not None else []
        scores += [in_words] if in_words is not None else []
        if scores:
            scored.append((-max(scores), index, entry))
    return [entry for _, _, entry in sorted(scored, key=lambda row: row[:2])]


class CommandPalette(QFrame):
    """A search field over a list, over its parent. Arrows choose, Enter runs, Esc leaves."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("command_palette")
        self.setProperty("role", "card")
        self.setFixedSize(560, 400)
        self.field = QLineEdit(self, clearButtonEnabled=True)
        self.field.setObjectName("command_palette_field")
        self.field.setAccessibleName("Search for a command or block")
        self.field.setToolTip("Type some letters of a name; Enter runs the first match.")
        self.list = QListWidget(self, uniformItemSizes=True, frameShape=QFrame.Shape.NoFrame)
        self.list.setObjectName("command_palette_list")
        self.list.setAccessibleName("Matches")
        self.list.setIconSize(QSize(18, 18))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.empty = QLabel("Nothing is called like that. Try fewer letters.", self)
        self.empty.setProperty("role", "muted")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID, GRID, GRID, GRID)
        layout.setSpacing(GRID)
        layout.addWidget(self.field)
        layout.addWidget(self.empty)
        layout.addWidget(self.list)
        self._entries: Sequence[Entry] = ()
        self._matches: list[Entry] = []
        self._focus_before: QWidget | None = None
        self.field.textChanged.connect(self._search)
        self.field.returnPressed.connect(self._run_current)
        self.field.installEventFilter(self)
        self.list.clicked.connect(self._on_clicked)
        self.hide()

    def ask(self, entries: Sequence[Entry], hint: str, at: QPoint | None = None) -> None:
        """Show `entries`; at a point of the parent, or at the middle of its top."""
        self._entries = entries
        self._focus_before = self.window().focusWidget()
        self.field.setPlaceholderText(hint)
        self.field.clear()
        self._search("")
        area = self.parentWidget().rect()
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
            event.accept()  # while one types here, no shortcut of the window fires
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
        color = theme.current().muted
        for entry in self._matches:
            text = f"{entry.title}   ·   {entry.hint}" if entry.hint else entry.title
            item = QListWidgetItem(qtawesome.icon(f"mdi6.{entry.icon}", color=color), text)
            item.setToolTip(entry.tip)
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self.list.setVisible(bool(self._matches))
        self.empty.setVisible(not self._matches)

    def _on_clicked(self, index: QModelIndex) -> None:
        self.list.setCurrentRow(index.row())
        self._run_current()

    def _run_current(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._matches):
            entry = self._matches[row]
            self.close_palette()
            entry.run()
