from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame, QLabel, QPushButton

from widgets.start_page import StartPage


@pytest.fixture
def page(qtbot) -> StartPage:
    widget = StartPage()
    qtbot.addWidget(widget)
    widget.resize(1200, 800)
    picture = QPixmap(40, 20)
    picture.fill(Qt.GlobalColor.red)
    widget.show_templates(
        [
            ("mlp", "MLP for digits", "Two linear layers.", "mdi6.vector-polyline"),
            ("lenet", "LeNet", "Convolutions.", picture),
            ("lstm", "LSTM", "Row by row."),
        ]
    )
    widget.show()
    return widget


def test_a_card_is_chosen_by_mouse_and_by_keyboard(page, qtbot):
    lenet = page.findChild(QFrame, "template_lenet")
    with qtbot.waitSignal(page.template_chosen) as told:
        QTest.mouseClick(lenet, Qt.MouseButton.LeftButton)
    assert told.args == ["lenet"]
    with qtbot.waitSignal(page.template_chosen) as told:
        QTest.keyClick(page.findChild(QFrame, "template_lstm"), Qt.Key.Key_Return)
    assert told.args == ["lstm"]


def test_showing_other_templates_replaces_the_cards(page, qtbot):
    page.show_templates([("attention", "Tiny attention", "Looks around.")])
    qtbot.waitUntil(page.findChild(QFrame, "template_attention").isVisible)
    cards = [card for card in page.findChildren(QFrame) if card.property("role") == "card"]
    assert [card.objectName() for card in cards if card.isVisible()] == ["template_attention"]


def test_recent_files_open_unless_they_are_gone(page, qtbot, tmp_path):
    here, gone = tmp_path / "here.tlab", tmp_path / "gone.tlab"
    here.write_text("{}")
    assert page.findChild(QLabel, "start_no_recent").isVisible()
    page.show_recent([str(here), str(gone)])
    assert not page.findChild(QLabel, "start_no_recent").isVisible()
    first, second = page.findChildren(QPushButton, "recent_file")
    with qtbot.waitSignal(page.recent_chosen) as told:
        QTest.mouseClick(first, Qt.MouseButton.LeftButton)
    assert told.args == [str(here)]
    assert not second.isEnabled() and "not there" in second.toolTip()


def test_new_and_open(page, qtbot):
    with qtbot.waitSignal(page.new_requested):
        QTest.mouseClick(page.new_button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(page.open_requested):
        QTest.keyClick(page.open_button, Qt.Key.Key_Space)
