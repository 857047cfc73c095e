"""The Start page: cards of templates, recent files, and buttons."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame, QLabel, QPushButton

from widgets.start.cards import EntryGroup
from widgets.start.start_page import StartPage


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
    names = [card.objectName() for card in page.findChildren(QFrame) if card.isVisible()]
    assert [n for n in names if n.startswith("template_")] == ["template_attention"]


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
    assert not second.isEnabled() and "does not exist any more" in second.toolTip()


def test_new_and_open(page, qtbot):
    with qtbot.waitSignal(page.new_requested):
        QTest.mouseClick(page.new_button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(page.open_requested):
        QTest.keyClick(page.open_button, Qt.Key.Key_Space)


def test_a_way_shows_its_first_entries_and_a_menu_has_all(page, qtbot):
    entries = tuple((f"k{n}", f"Number {n} & more", f"tip {n}") for n in range(6))
    page.show_ways(
        [
            EntryGroup("long", "Long", "Six of them.", "mdi6.matrix", entries, "All 6"),
            EntryGroup("short", "Short", "Four of them.", "mdi6.matrix", entries[:4], "All 4"),
        ]
    )
    chosen = []
    page.way_chosen.connect(lambda *keys: chosen.append(keys))
    texts = [
        button.text().replace("&&", "&")
        for button in page.findChildren(QPushButton)
        if button.objectName().startswith("start_long_")
    ]
    assert texts == [*(title for _, title, _ in entries[:4]), "All 6"]
    assert page.findChild(QPushButton, "start_short_all") is None
    button = page.findChild(QPushButton, "start_short_k2")
    assert button.accessibleName() == "Number 2 & more" and button.toolTip() == "tip 2"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    actions = page.findChild(QPushButton, "start_long_all").menu().actions()
    assert [action.toolTip() for action in actions] == [tip for _, _, tip in entries]
    actions[5].trigger()
    assert chosen == [("short", "k2"), ("long", "k5")]


def test_the_first_steps_begin(page, qtbot):
    with qtbot.waitSignal(page.first_steps_requested):
        QTest.mouseClick(page.first_steps.button, Qt.MouseButton.LeftButton)
