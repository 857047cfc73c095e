"""Items flow into rows."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QWidget

from widgets.flow_layout import FlowLayout


class Card(QWidget):
    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.setFixedWidth(width)
        self.setMinimumHeight(height)


@pytest.mark.parametrize(
    ("width", "places", "height"),
    [
        (400, [(5, 5), (115, 5), (225, 5)], 50),
        (300, [(5, 5), (115, 5), (5, 55)], 80),
        (120, [(5, 5), (5, 35), (5, 85)], 110),
        (20, [(5, 5), (5, 35), (5, 85)], 110),
    ],
)
def test_as_many_items_in_a_row_as_fit(qapp, width: int, places: list, height: int) -> None:
    page, layout = QWidget(), FlowLayout(10)
    page.setLayout(layout)
    layout.setContentsMargins(5, 5, 5, 5)
    cards = [Card(100, 20), Card(100, 40), Card(100, 20)]
    for card in cards:
        layout.addWidget(card)
    layout.setGeometry(QRect(0, 0, width, 200))
    assert [(card.x(), card.y()) for card in cards] == places
    tops = [y for _x, y in places]
    assert [card.height() for card in cards] == [40 if y == places[1][1] else 20 for y in tops]
    assert layout.heightForWidth(width) == height
    assert (layout.minimumSize().width(), layout.minimumSize().height()) == (110, 50)
    assert layout.takeAt(3) is None and layout.itemAt(-1) is None
    first = layout.takeAt(0)
    assert first is not None and first.widget() is cards[0] and layout.count() == 2


def test_an_empty_layout_has_the_height_of_its_margins(qapp) -> None:
    layout = FlowLayout(10)
    layout.setContentsMargins(0, 4, 0, 6)
    assert layout.heightForWidth(100) == 10
