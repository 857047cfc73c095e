"""Values on cards, one under the other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QScrollArea, QWidget

from engine.protocol import Value
from widgets import make
from widgets.theme import GRID
from widgets.values.value_card import ValueCard

CARD_HEIGHT = 264
"""The height in pixels of a card with a picture."""


class ValueStack(QScrollArea):
    """Shows sections, each a heading and cards. Cards are kept and refilled, so that stepping
    does not flicker."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setMinimumHeight(5 * GRID)
        self._body = QWidget()
        margins = (0, 0, GRID // 2, 0)
        self._layout = make.column(make.STRETCH, on=self._body, margins=margins)
        make.scroll(self._body, self)
        self._headings: list[QLabel] = []
        self.cards: list[ValueCard] = []
        """All cards made so far; those in use come first."""
        self._used = 0

    def show_sections(self, sections: Sequence[tuple[str, Sequence[Value | None], str]]) -> None:
        """Show (heading, values, words for a value that is None) one after the other."""
        self._used = 0
        place = 0
        for index, (text, values, missing) in enumerate(sections):
            if index == len(self._headings):
                label = make.label("", "heading", wrap=True)
                self._headings.append(label)
            heading = self._headings[index]
            self._layout.insertWidget(place, heading)
            make.tell(heading, text)
            place += 1
            for value in values:
                self._layout.insertWidget(place, self._card(value, missing))
                place += 1
        for heading in self._headings[len(sections) :]:
            heading.hide()
        for card in self.cards[self._used :]:
            card.hide()

    def minimumSizeHint(self) -> QSize:
        """As wide as a card needs: it is not scrolled sideways."""
        hint = super().minimumSizeHint()
        bar = self.verticalScrollBar().sizeHint().width()
        hint.setWidth(self._body.minimumSizeHint().width() + bar)
        return hint

    def shown_cards(self) -> list[ValueCard]:
        return self.cards[: self._used]

    def _card(self, value: Value | None, missing: str) -> ValueCard:
        if self._used == len(self.cards):
            self.cards.append(ValueCard(self._body))
        card = self.cards[self._used]
        self._used += 1
        card.show_value(value, missing)
        pictured = value is not None and value.picture is not None
        card.setFixedHeight(CARD_HEIGHT if pictured else card.sizeHint().height())
        if value is None:
            card.setFixedHeight(6 * GRID)
        card.show()
        return card
