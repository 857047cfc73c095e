"""Values on cards, one under the other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QScrollArea, QWidget

from engine.protocol import Value
from widgets import make
from widgets.theme import GRID
from widgets.values.value_card import ValueCard, has_picture

CARD_HEIGHT = 264
"""The height in pixels of a card with a picture."""


NARROW_CARD_HEIGHT = 304
_EMPTY_CARD_HEIGHT = 8 * GRID
"""Two lines of words."""


class ValueStack(QScrollArea):
    """Shows sections, each a heading and cards, in turn in each of `columns` columns. Cards are
    used again for other values, so that stepping does not flicker."""

    def __init__(self, name: str, parent: QWidget | None = None, *, columns: int = 1) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setMinimumHeight(5 * GRID)
        self._body = QWidget()
        self._columns = [QWidget(self._body) for _ in range(columns)]
        self._layouts = [make.column(make.STRETCH, on=column) for column in self._columns]
        shares = [(column, 1) for column in self._columns]
        make.row(*shares, on=self._body, gap=GRID // 2, margins=(0, 0, GRID // 2, 0))
        make.scroll(self._body, self)
        self._headings: list[QLabel] = []
        self.cards: list[ValueCard] = []
        """All cards made so far, those in use first."""
        self._used = 0

    def show_sections(self, sections: Sequence[tuple[str, Sequence[Value | None], str]]) -> None:
        """Show sections: (heading, values, text for a value that is None)."""
        self._used = 0
        places = [0] * len(self._layouts)
        for index, (text, values, missing) in enumerate(sections):
            if index == len(self._headings):
                label = make.label("", "heading", wrap=True)
                self._headings.append(label)
            heading = self._headings[index]
            column = index % len(self._layouts)
            self._layouts[column].insertWidget(places[column], heading)
            make.tell(heading, text)
            places[column] += 1
            for value in values:
                card = self._card(value, missing)
                self._layouts[column].insertWidget(places[column], card)
                card.show()  # a card that changes its column has been hidden
                places[column] += 1
        for heading in self._headings[len(sections) :]:
            heading.hide()
        for card in self.cards[self._used :]:
            card.hide()

    def minimumSizeHint(self) -> QSize:
        """The width of a card: the stack does not scroll sideways."""
        hint = super().minimumSizeHint()
        bar = self.verticalScrollBar().sizeHint().width()
        hint.setWidth(self._body.minimumSizeHint().width() + bar)
        return hint

    def shown_cards(self) -> list[ValueCard]:
        return self.cards[: self._used]

    def _card(self, value: Value | None, missing: str) -> ValueCard:
        if self._used == len(self.cards):
            self.cards.append(ValueCard(self._body, narrow=len(self._layouts) > 1))
        card = self.cards[self._used]
        self._used += 1
        card.show_value(value, missing)
        pictured = value is not None and has_picture(value)
        high = CARD_HEIGHT if len(self._layouts) == 1 else NARROW_CARD_HEIGHT
        card.setFixedHeight(high if pictured else card.sizeHint().height())
        if value is None:
            card.setFixedHeight(_EMPTY_CARD_HEIGHT)
        return card
