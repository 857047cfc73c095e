"""Widgets between the lines of a text: the room that they get, and what goes with them."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from widgets.console.inline_widgets import MAX_WIDGETS, InlineWidgets
from widgets.theme import GRID


class Tile(QWidget):
    """A widget that asks for this size."""

    def __init__(self, wide: int, high: int) -> None:
        super().__init__()
        self.wanted = QSize(wide, high)

    def sizeHint(self) -> QSize:
        return self.wanted


class Wrapped(Tile):
    """Twice as high where it is narrow."""

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self.wanted.height() * (1 if width >= self.wanted.width() else 2)


@pytest.fixture
def editor(qtbot) -> QPlainTextEdit:
    editor = QPlainTextEdit()
    editor.setReadOnly(True)
    qtbot.addWidget(editor)
    editor.resize(400, 300)
    editor.show()
    return editor


@pytest.fixture
def inline(editor) -> InlineWidgets:
    return InlineWidgets(editor)


def add(editor: QPlainTextEdit, inline: InlineWidgets, widget: QWidget, after: str) -> None:
    cursor = QTextCursor(editor.document())
    cursor.movePosition(QTextCursor.MoveOperation.End)
    inline.insert(cursor, widget)
    cursor.insertText(f"{after}\n")


def lines_for(editor: QPlainTextEdit, high: int) -> int:
    return math.ceil((high + GRID) / editor.fontMetrics().lineSpacing())


def lines(editor: QPlainTextEdit) -> list[str]:
    return editor.toPlainText().split("\n")


def test_a_widget_lies_in_the_empty_lines_before_the_next_text(editor, inline) -> None:
    first, second = Tile(100, 50), Tile(9_999, 20)
    add(editor, inline, first, "one")
    add(editor, inline, second, "two")
    room = [lines_for(editor, high) for high in (50, 20)]
    assert lines(editor) == [*[""] * room[0], "one", *[""] * room[1], "two", ""]
    assert inline.widgets() == [first, second]
    left = round(editor.document().documentMargin())
    assert first.isVisible() and first.size() == QSize(100, 50)
    assert second.size() == QSize(editor.viewport().width() - 2 * left, 20)
    block = editor.document().findBlockByNumber(room[0] + 1)
    top = editor.blockBoundingGeometry(block).translated(editor.contentOffset()).top()
    assert second.pos().toTuple() == (left, round(top) + GRID // 2)


@pytest.mark.parametrize("high", [10, 51, 200])
def test_a_widget_gets_room_for_its_new_height(editor, inline, high) -> None:
    first, second = Tile(100, 50), Tile(100, 20)
    add(editor, inline, first, "one")
    add(editor, inline, second, "two")
    first.wanted = QSize(120, high)
    inline.fit(first)
    room = [lines_for(editor, each) for each in (high, 20)]
    assert lines(editor) == [*[""] * room[0], "one", *[""] * room[1], "two", ""]
    assert first.size() == QSize(120, high)
    line = editor.blockBoundingRect(editor.document().begin()).height()
    assert second.y() - first.y() == pytest.approx((room[0] + 1) * line, abs=1)


def test_a_wider_text_makes_wrapped_widgets_lower(editor, inline, qapp) -> None:
    tile = Wrapped(420, 40)
    add(editor, inline, tile, "one")
    assert tile.height() == 80 and len(lines(editor)) == lines_for(editor, 80) + 2
    editor.resize(600, 300)
    qapp.processEvents()
    assert tile.height() == 40 and len(lines(editor)) == lines_for(editor, 40) + 2


def test_a_widget_goes_with_its_lines(editor, inline) -> None:
    first, second = Tile(100, 50), Tile(100, 20)
    add(editor, inline, first, "one")
    add(editor, inline, second, "two")
    inline.remove(first)
    assert inline.widgets() == [second] and first.isHidden()
    assert lines(editor) == ["one", *[""] * lines_for(editor, 20), "two", ""]
    inline.clear()
    assert inline.widgets() == [] and second.isHidden()


def test_only_the_newest_widgets_stay(editor, inline) -> None:
    tiles = [Tile(10, 5) for _ in range(MAX_WIDGETS + 2)]
    for tile in tiles:
        add(editor, inline, tile, "text")
    assert inline.widgets() == tiles[2:]


def test_a_widget_is_brought_up_as_far_as_there_is_room(editor, inline, qapp) -> None:
    editor.setPlainText("text\n" * 30)
    tile = Tile(100, 150)
    add(editor, inline, tile, "after\n" * 30)
    bar = editor.verticalScrollBar()
    bar.setValue(14)
    qapp.processEvents()
    assert tile.geometry().bottom() > editor.viewport().height()
    inline.bring_up(tile)
    qapp.processEvents()
    line = editor.blockBoundingRect(editor.document().begin()).height()
    hidden = editor.viewport().height() - tile.geometry().bottom() - 1
    assert 0 <= hidden <= line
    now = bar.value()
    inline.bring_up(tile)
    assert bar.value() == now
    editor.resize(400, 100)  # lower than the widget
    bar.setValue(25)
    qapp.processEvents()
    inline.bring_up(tile)
    qapp.processEvents()
    assert 0 <= tile.y() <= line
    bar.setValue(0)
    qapp.processEvents()
    assert not tile.isVisible()
