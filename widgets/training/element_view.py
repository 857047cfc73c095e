"""What the optimizer does to a parameter: to one element in numbers that add up, to all of them in
pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from engine.protocol import Element, ElementSnapshot
from widgets import make
from widgets.table import ROW_HEIGHT, ReadTable
from widgets.text import format_number
from widgets.theme import GRID
from widgets.values.value_stack import ValueStack
from widgets.vertical_scroll import VerticalScroll

DIGITS = 7
"""As many as float32 has: the numbers add up."""
_COLUMNS = (
    ("Number", "What is known of the element, with torch's own names"),
    ("Value", "The number now"),
)
_STATE_TIPS = {
    "step": "Steps that the optimizer has done with this parameter",
    "exp_avg": "Running mean of the gradient",
    "exp_avg_sq": "Running mean of the gradient's square",
    "max_exp_avg_sq": "Largest running mean of the square so far",
    "momentum_buffer": "Velocity: the gradients before, each with less weight, and this one's",
}


class ElementView(QWidget):
    """Hidden until a parameter is chosen. `asked()`: the element of `name` at `index` is wanted, or
    the one with the largest gradient where that is None, and all elements if it `is_whole`.
    `came_in_sight()`: the view is shown."""

    asked = Signal()
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "element", "The optimizer's next update of one element")
        self.name = ""
        self.index: tuple[int, ...] | None = None
        self._title = make.text("element_title", "heading", width="any")
        self._place = make.field(
            "element_index",
            "Index of the element",
            "Index of the element in its parameter, one number for each of its dimensions: 3, 0."
            " Empty: the element with the largest gradient. Enter reads it.",
            placeholder="largest gradient",
            mono=True,
            entered=self._read_index,
        )
        self._place.setMaximumWidth(20 * GRID)
        self._trouble = make.paragraph("element_trouble", "error")
        self._rule = make.paragraph("element_rule", "muted")
        self._numbers = ReadTable("element_numbers", "Numbers of the element", _COLUMNS, mono=True)
        self._note = make.paragraph("element_note", "muted")
        self._numbers.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        place = make.row(make.label("Index", of=self._place), self._place, make.STRETCH)
        texts = (self._note, self._rule, make.STRETCH)
        body = make.page(place, self._numbers, *texts, gap=GRID // 2, margins=(0, GRID, GRID, 0))
        self._ratio = make.paragraph("element_ratio", "muted")
        self.stack = ValueStack("element_whole")
        whole = make.page(self._ratio, (self.stack, 1), gap=GRID // 2, margins=(0, GRID, 0, 0))
        self.tabs = make.tabs(
            "element_tabs",
            (
                (VerticalScroll(body), "One element", "The next update in numbers that add up"),
                (
                    whole,
                    "All elements",
                    "The parameter, its gradient, what the optimizer keeps of it, and its next"
                    " update, as pictures with their norms",
                ),
            ),
            "What the optimizer does to the parameter",
        )
        self.tabs.currentChanged.connect(self._on_tab)
        head = make.page(self._title, self._trouble, gap=GRID // 2, margins=(GRID, GRID, GRID, 0))
        tabs = make.row((self.tabs, 1), margins=(GRID, 0, 0, 0))
        make.column(head, (tabs, 1), on=self, gap=GRID // 2)
        self.choose("")

    @property
    def is_whole(self) -> bool:
        return self.tabs.currentIndex() == 1

    def _on_tab(self) -> None:
        if self.name:
            self.asked.emit()

    def choose(self, name: str) -> None:
        """Show a parameter's element with the largest gradient; hidden for an empty name."""
        if name and name == self.name:
            return
        self.name, self.index = name, None
        self._place.clear()
        self._show(None)
        make.tell(self._trouble, "")
        self._title.setText(name)
        if name:
            self.asked.emit()
        self.setVisible(bool(name))

    def show_element(self, found: ElementSnapshot) -> None:
        """Show an answer. The element with the largest gradient stays the one that is shown."""
        if found.name != self.name:
            return
        element = found.element
        if self.index is None and element.gradient is not None:
            self.index = element.index
            if not self._place.isModified():
                self._place.setText(_index_text(element.index))
        make.tell(self._trouble, "")
        place = f"[{_index_text(element.index)}]" if element.index else ""
        kind = f" · {element.optimizer}" if element.optimizer else ""
        self._title.setText(f"{self.name}{'' if self.is_whole else place}{kind}")
        self._show(element)
        if self.is_whole:
            self._show_whole(found)

    def _show_whole(self, found: ElementSnapshot) -> None:
        self.stack.show_sections([("", found.whole, "")])
        norms = {value.label: value.summary.norm for value in found.whole}
        update, norm = norms.get("next update"), norms.get("parameter")
        words = "" if found.element.update is not None else found.element.note
        if update is not None and norm:
            words = (
                f"The next update has {format_number(update / norm, 3)} of the parameter's 2-norm;"
                " 0.001 is usual."
            )
        make.tell(self._ratio, words)

    def show_trouble(self, text: str) -> None:
        """Say why there are no numbers."""
        self._show(None)
        self.stack.show_sections([])
        make.tell(self._ratio, "")
        make.tell(self._trouble, text)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def _read_index(self) -> None:
        text = self._place.text().strip().strip("[]()")
        numbers = [part for part in re.split(r"[,\s]+", text) if part]
        if not all(re.fullmatch(r"-?\d{1,15}", part) for part in numbers):
            self.show_trouble(
                f"“{text}” is not an index: type whole numbers, one for each dimension: 3, 0."
            )
            return
        self._place.setModified(False)
        self.index = tuple(map(int, numbers)) or None
        self.asked.emit()

    def _show(self, element: Element | None) -> None:
        rows = [] if element is None else list(_rows(element))
        self._numbers.setVisible(bool(rows))
        if [row[0] for row in rows] == [row[0] for row in self._numbers.rows()]:
            for place, (_, value, _tip) in enumerate(rows):  # what is selected stays selected
                self._numbers.cell(place, 1).setText(value)
                self._numbers.cell(place, 1).setToolTip(value)
        else:
            self._numbers.setRowCount(0)
            for name, value, tip in rows:
                self._numbers.add_row((name, value), (tip, ""))
            header = self._numbers.horizontalHeader().sizeHint().height()
            self._numbers.setFixedHeight(header + (len(rows) + 1) * ROW_HEIGHT)
        rule = "" if element is None else f"new = {element.rule}" if element.rule else ""
        words = "" if element is None else element.words
        make.tell(self._rule, f"{rule}\n{words}".strip())
        make.tell(self._note, "" if element is None else element.note)


def _index_text(index: tuple[int, ...]) -> str:
    return ", ".join(map(str, index))


def _rows(element: Element) -> Iterator[tuple[str, str, str]]:
    """(name, number, tooltip) from what goes into the update to what comes out."""
    yield "gradient", format_number(element.gradient, DIGITS), "The element of .grad"
    for name, value in element.state.items():
        tip = _STATE_TIPS.get(name, f"The optimizer's state: {name}")
        yield name, format_number(value, DIGITS), tip
    for name, value in element.options.items():
        yield name, format_number(value, DIGITS), f"The optimizer's option {name}, as it is now"
    yield "value", format_number(element.value, DIGITS), "The element of the parameter now"
    if element.update is not None:
        update, after = (format_number(x, DIGITS) for x in (element.update, element.after))
        yield "+ next update", update, "By how much the step changes the value"
        yield "= value after", after, "The value after that step"
