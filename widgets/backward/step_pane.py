"""One node of the backward pass with its incoming and outgoing gradients."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabWidget, QWidget

from engine.protocol import NextNode, NodeStep, Value
from widgets import make
from widgets.backward.words import NOT_NEEDED, UNDEFINED
from widgets.theme import GRID
from widgets.values.value_stack import ValueStack

_FIRST_PAGES = 2
"""The pages that a first pass needs: the values and the formula."""

Sections = Sequence[tuple[str, Sequence[Value | None], str]]


def step_sections(step: NodeStep) -> Sections:
    """The gradients of a node that has run."""
    sections = [("", step.incoming, UNDEFINED), ("", step.outgoing, NOT_NEEDED)]
    if step.grad_after is not None:
        none = ".grad was None; it is now the incoming gradient"
        sections.append(("", (step.grad_before,), none))
        sections.append(("", (step.grad_after,), ""))
    return sections


def next_sections(following: NextNode | None) -> Sections:
    """The incoming gradients of the next node."""
    if following is None:
        return []
    sections: list[tuple[str, Sequence[Value | None], str]] = [("", following.incoming, UNDEFINED)]
    if following.edited:
        sections.append(("", following.edited, "Cut: the edit gives no gradient"))
    return sections


class StepPane(QWidget):
    """A title, some words, and `values`; tabs that explain the rule can be added to these."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = make.text("node_title", "heading", wrap=True, width="any")
        self._about = make.text("node_about", "muted", wrap=True, width="any")
        self._about.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.values = ValueStack("backward_values", columns=2)
        self._card: QTabWidget | None = None
        parts = (self._title, self._about, (self.values, 1))
        self._column = make.column(*parts, on=self, gap=GRID // 2, margins=(0, 0, 0, GRID))

    def set_rule_card(self, card: QTabWidget) -> None:
        """Make the values and the pages that explain the rule tabs of one place.

        One above the other, neither could be read in a window of 900 pixels.
        """
        self._card = card
        self._column.replaceWidget(self.values, card)
        self._column.setStretchFactor(card, 1)
        card.insertTab(0, self.values, "Values")
        card.setTabToolTip(0, "The gradients that go in and out")
        card.setCurrentIndex(0)

    def show_controls(self, shown: bool) -> None:
        """Show or hide the pages after the values and the formula. Without them there is room for
        two lines on the node always, so that the values keep their place from step to step."""
        lines = 0 if shown else 2
        self._about.setMinimumHeight(lines * self._about.fontMetrics().lineSpacing())
        if self._card is not None:
            for place in range(_FIRST_PAGES, self._card.count()):
                self._card.setTabVisible(place, shown)

    def show_node(self, title: str, about: str, sections: Sections = ()) -> None:
        self._title.setText(title)
        self._about.setText(about)
        self.values.show_sections(sections)
