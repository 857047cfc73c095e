"""Compare what a view says, in all its controls and tooltips, with the words kept in `words/`.

`UPDATE_PICTURES=1` writes the words anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtGui import QAction, QFontInfo, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPlainTextEdit,
    QScrollBar,
    QSlider,
    QSpinBox,
    QTabBar,
    QTableView,
    QTabWidget,
    QTextEdit,
    QTreeView,
    QWidget,
)

FOLDER = Path(__file__).parent / "words"
MAX_ROWS = 100
"""The rows of a list or a table that are kept."""


def assert_same_words(view: QWidget, name: str) -> None:
    """Fail when the words of `view` are not those of `words/{name}.txt`."""
    words = "\n".join(words_of(view)) + "\n"
    kept = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_PICTURES"):
        FOLDER.mkdir(exist_ok=True)
        kept.write_text(words, encoding="utf-8")
        return
    assert kept.exists(), f"{kept} is missing: run with UPDATE_PICTURES=1 and read it"
    assert words.splitlines() == kept.read_text(encoding="utf-8").splitlines()


def words_of(view: QWidget) -> Iterator[str]:
    """Line by line: each control with its words and state, in the order in which they were made."""
    for widget in (view, *view.findChildren(QWidget)):
        if isinstance(widget, QScrollBar) or (widget is not view and _is_part(widget)):
            continue
        facts = list(_facts(widget, view))
        if facts:
            yield f"{type(widget).__name__} {widget.objectName()}".strip()
            yield from (f"    {kind}: {_one_line(text)}" for kind, text in facts)


def _is_part(widget: QWidget) -> bool:
    """Whether Qt made the widget as a part of a control."""
    parent = widget.parent()
    made_by = (parent, parent.parent() if parent is not None else None)
    return widget.objectName().startswith("qt_") or any(
        isinstance(maker, QComboBox | QAbstractSpinBox) for maker in made_by
    )


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n")


def _facts(widget: QWidget, view: QWidget) -> Iterator[tuple[str, str]]:
    texts = {
        "name": widget.accessibleName(),
        "description": widget.accessibleDescription(),
        "tooltip": widget.toolTip(),
        "role": str(widget.property("role") or ""),
        "face": "monospace" if QFontInfo(widget.font()).fixedPitch() else "",
        **_texts(widget),
    }
    yield from ((kind, text) for kind, text in texts.items() if text)
    if isinstance(widget, QComboBox):
        yield from _rows("choice", widget.model(), 1)
    elif isinstance(widget, QTableView | QTreeView) and widget.model() is not None:
        yield from _headings(widget.model())
        yield from _rows("row", widget.model(), widget.model().columnCount())
    elif isinstance(widget, QListView) and widget.model() is not None:
        yield from _rows("row", widget.model(), 1)
    elif isinstance(widget, QTextEdit):
        yield from (("line", line) for line in widget.toPlainText().splitlines() if line)
    for action in widget.actions():
        yield "action", _action(action)
    for shortcut in widget.findChildren(
        QShortcut, options=Qt.FindChildOption.FindDirectChildrenOnly
    ):
        yield "shortcut", shortcut.key().toString()
    if texts["name"] or texts["tooltip"] or isinstance(widget, QLabel):
        if not widget.isEnabledTo(view):
            yield "disabled", "yes"
        if widget is not view and not widget.isVisibleTo(view) and not isinstance(widget, QMenu):
            yield "hidden", "yes"


def _texts(widget: QWidget) -> dict[str, str]:
    if isinstance(widget, QLabel):
        return {
            "text": widget.text(),
            "buddy": getattr(widget.buddy(), "objectName", str)(),
            "wraps": "yes" if widget.wordWrap() else "",
        }
    if isinstance(widget, QAbstractButton):
        return {"text": widget.text(), "checked": "yes" if widget.isChecked() else ""}
    if isinstance(widget, QLineEdit):
        return {"text": widget.text(), "placeholder": widget.placeholderText()}
    if isinstance(widget, QPlainTextEdit):
        return {"text": widget.toPlainText(), "placeholder": widget.placeholderText()}
    if isinstance(widget, QSpinBox):
        return {"text": widget.text(), "range": f"{widget.minimum()} to {widget.maximum()}"}
    if isinstance(widget, QSlider):
        return {"text": str(widget.value()), "range": f"{widget.minimum()} to {widget.maximum()}"}
    if isinstance(widget, QComboBox):
        return {"text": widget.currentText()}
    if isinstance(widget, QTabWidget | QTabBar):
        tabs = (f"{widget.tabText(i)} ({widget.tabToolTip(i)})" for i in range(widget.count()))
        return {"tabs": " | ".join(tabs)}
    return {}


def _action(action: QAction) -> str:
    keys = action.shortcut().toString()
    state = "" if action.isEnabled() else "disabled"
    return " | ".join(filter(None, (action.text(), action.toolTip(), keys, state)))


def _headings(model: QAbstractItemModel) -> Iterator[tuple[str, str]]:
    for column in range(model.columnCount()):
        roles = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
        told = [model.headerData(column, Qt.Orientation.Horizontal, role) for role in roles]
        yield "heading", " | ".join(str(text) for text in told if text)


def _rows(kind: str, model: QAbstractItemModel, columns: int) -> Iterator[tuple[str, str]]:
    for row in range(min(model.rowCount(), MAX_ROWS)):
        for column in range(columns):
            index = model.index(row, column)
            roles = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
            told = [index.data(role) for role in roles]
            yield kind, " | ".join(dict.fromkeys(str(text) for text in told if text))
