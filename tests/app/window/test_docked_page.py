"""The panels at a side of a page are hidden and shown again."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from app.window.model_page import ModelPage

LEFT, RIGHT = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea


@pytest.fixture
def page(qtbot) -> ModelPage:
    made = ModelPage()
    qtbot.addWidget(made)
    made.show()
    return made


def hidden(page: ModelPage) -> list[str]:
    return [dock.objectName() for dock in page.docks() if dock.isHidden()]


def test_a_side_is_folded_and_the_canvas_gets_its_room(page, qtbot):
    before = page.canvas.width()
    button = page.canvas.zoom_bar.findChild(QToolButton, "fold_right")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert hidden(page) == ["properties_dock", "code_dock", "problems_dock"]
    wider = before + page.properties_dock.width()
    qtbot.waitUntil(lambda: page.canvas.width() >= wider)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert hidden(page) == []
    qtbot.waitUntil(lambda: page.canvas.width() == before)


def test_a_panel_that_was_closed_before_stays_closed(page):
    page.properties_dock.hide()
    page.fold(RIGHT)
    page.fold(RIGHT)
    assert hidden(page) == ["properties_dock"]


def test_each_side_comes_back_as_it_was(page):
    page.properties_dock.hide()
    page.fold(RIGHT)
    page.fold(LEFT)
    assert hidden(page) == [dock.objectName() for dock in page.docks()]
    page.fold(LEFT)
    page.fold(RIGHT)
    assert hidden(page) == ["properties_dock"]


def test_a_side_whose_panels_were_all_closed_comes_back_whole(page):
    for dock in (page.properties_dock, page.code_dock, page.problems_dock):
        dock.hide()
    page.fold(RIGHT)
    assert hidden(page) == []


def test_the_canvas_has_more_than_half_of_the_page_at_first(page, qtbot):
    qtbot.waitUntil(lambda: page.canvas.width() > page.width() / 2)
