"""Items flow into rows."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from widgets.flow_layout import FlowLayout


class Card(QWidget):
    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.setMinimumSize(width, height)


@pytest.mark.parametrize(
    ("width", "places", "height"),
    [
        (400, [(5, 5, 123), (138, 5, 123), (271, 5, 123)], 50),
        (300, [(5, 5, 140), (155, 5, 140), (5, 55, 140)], 80),
        (120, [(5, 5, 110), (5, 35, 110), (5, 85, 110)], 110),
        (20, [(5, 5, 100), (5, 35, 100), (5, 85, 100)], 110),
    ],
)
def test_as_many_items_in_a_row_as_fit(qapp, width: int, places: list, height: int) -> None:
    page, layout = QWidget(), FlowLayout(10)
    page.setLayout(layout)
    layout.setContentsMargins(5, 5, 5, 5)
    cards = [Card(90, 20), Card(100, 40), Card(80, 20)]
    for card in cards:
        layout.addWidget(card)
    layout.setGeometry(QRect(0, 0, width, 200))
    assert [(card.x(), card.y(), card.width()) for card in cards] == places
    tops = [y for _x, y, _width in places]
    assert [card.height() for card in cards] == [40 if y == places[1][1] else 20 for y in tops]
    assert layout.heightForWidth(width) == height
    assert (layout.minimumSize().width(), layout.minimumSize().height()) == (110, 50)
    assert layout.takeAt(3) is None and layout.itemAt(-1) is None
    first = layout.takeAt(0)
    assert first is not None and first.widget() is cards[0] and layout.count() == 2


def test_a_row_is_as_high_as_words_need_that_wrap(qapp) -> None:
    page, layout = QWidget(), FlowLayout(10)
    page.setLayout(layout)
    layout.setContentsMargins(0, 0, 0, 0)
    words = QLabel("Words that wrap. " * 12)
    words.setWordWrap(True)
    words.setMinimumWidth(100)
    layout.addWidget(words)
    for width in (120, 600):
        assert layout.heightForWidth(width) == words.heightForWidth(width)
    assert layout.heightForWidth(120) > layout.heightForWidth(600)


def test_its_height_is_measured_again_after_a_change(qtbot) -> None:
    page, layout = QWidget(), FlowLayout(10)
    qtbot.addWidget(page)
    page.setLayout(layout)
    layout.setContentsMargins(0, 0, 0, 0)
    words = QLabel("One line")
    words.setWordWrap(True)
    layout.addWidget(words)
    page.show()
    one = layout.heightForWidth(100)
    words.setText("Words that wrap. " * 12)
    QApplication.processEvents()
    assert layout.heightForWidth(100) == words.heightForWidth(100) > one
    layout.addWidget(Card(100, 400))
    QApplication.processEvents()
    assert layout.heightForWidth(100) == words.heightForWidth(100) + 10 + 400
    layout.takeAt(0)
    assert layout.heightForWidth(100) == 400


def test_an_empty_layout_has_the_height_of_its_margins(qapp) -> None:
    layout = FlowLayout(10)
    layout.setContentsMargins(0, 4, 0, 6)
    assert layout.heightForWidth(100) == 10


def test_items_may_keep_their_own_widths_and_hidden_ones_take_no_room(qapp) -> None:
    page, layout = QWidget(), FlowLayout(10, even=False)
    page.setLayout(layout)
    layout.setContentsMargins(0, 0, 0, 0)
    buttons = [QPushButton(text) for text in ("A", "hidden", "A long text", "B")]
    for button in buttons:
        layout.addWidget(button)
    page.show()
    buttons[1].hide()
    wide = [button.sizeHint().width() for button in buttons]
    height = buttons[0].sizeHint().height()
    room = wide[0] + 10 + wide[2]
    layout.setGeometry(QRect(0, 0, room, 200))
    left = [(button.x(), button.y(), button.width()) for button in buttons if not button.isHidden()]
    assert left == [(0, 0, wide[0]), (wide[0] + 10, 0, wide[2]), (0, height + 10, wide[3])]
    assert layout.heightForWidth(room) == 2 * height + 10
    assert layout.heightForWidth(room + 10 + wide[3]) == height
    page.close()
