"""A rule as a formula, with the meaning of each letter and the numbers of one element."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QLabel,
    QScrollArea,
    QWidget,
)

from engine.protocol import RuleSnapshot, RuleSymbol
from widgets import make
from widgets.text import format_number, format_shape
from widgets.theme import GRID, mono_font
from widgets.values.picture_grid import source_element
from widgets.values.picture_view import PictureView

FORMULA_POINTS = 13
PICTURE_HEIGHT = 15 * GRID
EMPTY_TEXT = (
    "Step backward, or choose a node in the graph: its rule appears here as a formula with the"
    " numbers of this pass."
)


class RuleFormula(QScrollArea):
    """Emits `rule_requested(node, input, element)` when another input or element is chosen."""

    rule_requested = Signal(int, int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rule_formula_page")
        self._snapshot: RuleSnapshot | None = None

        self.inputs = make.combo("rule_input", "Input of the operation")
        self.inputs.setToolTip(
            "The operation had several inputs. Each gets a gradient by its own formula."
        )
        self.inputs.activated.connect(self._choose_input)
        self._copy = make.tool_button(
            "rule_copy",
            "mdi6.content-copy",
            "Copy the formula and its numbers as text",
            self.copy,
            accessible="Copy the rule",
            framed=True,
        )
        self._formula = make.paragraph("rule_formula")
        font = mono_font(FORMULA_POINTS)
        font.setBold(True)
        self._formula.setFont(font)
        self._formula.setToolTip(
            "L is the loss, g the incoming gradient. Products are elementwise unless the text"
            " says otherwise."
        )
        self._general = make.paragraph("rule_general", "muted")
        self._symbols = _Symbols()
        self.element = make.field("rule_element", "Element of the outgoing gradient", mono=True)
        self.element.setToolTip(
            "The index of an element of the outgoing gradient, such as 0, 2. Press Enter to see"
            " its numbers, or click the element in the picture."
        )
        self.element.setMaximumWidth(16 * GRID)
        self.element.returnPressed.connect(self._choose_typed)
        self._of = make.label("of", "muted")
        self._shape = make.label("", "muted", "rule_shape")
        self._numbers = make.paragraph("rule_numbers")
        self._numbers.setFont(mono_font())
        self._numbers.setToolTip(
            "The formula for this element: with its indices, then with the node's numbers, then"
            " the result."
        )
        self._agreement = make.paragraph("rule_agreement")
        self._note = make.paragraph("rule_note", "muted")
        self.picture = PictureView()
        tip = "The outgoing gradient. Click an element for its numbers."
        make.named(self.picture, "rule_picture", "The outgoing gradient", tip)
        self.picture.setFixedHeight(PICTURE_HEIGHT)
        self.picture.cell_chosen.connect(self._choose_cell)

        top = make.row((self.inputs, 1), make.Stretch(0), self._copy)
        self._element_label = make.label("Element", of=self.element)
        fields = (self._element_label, self.element, self._of, self._shape)
        body = make.page(
            top,
            self._formula,
            self._general,
            make.row(*fields, make.STRETCH),
            self._numbers,
            self._note,
            self._symbols,
            self._agreement,
            self.picture,
            make.STRETCH,
            margins=(GRID // 2, GRID, GRID // 2, GRID),
        )
        make.scroll(body, self)
        self.clear()

    # -- showing ---------------------------------------------------------------------------------

    def show_rule(self, snapshot: RuleSnapshot) -> None:
        self._snapshot = snapshot
        self.inputs.clear()
        for each in snapshot.inputs:
            self.inputs.addItem(f"{each.label}, to {each.target}", each.number)
        self.inputs.setCurrentIndex(self.inputs.findData(snapshot.input))
        self.inputs.setVisible(len(snapshot.inputs) > 1)
        self._copy.show()
        self._formula.setText(snapshot.formula)
        self._formula.setAccessibleName(f"Rule: {snapshot.formula}")
        self._general.setText(
            "The program has no formula of its own for this node. This one holds for every node."
        )
        self._general.setVisible(snapshot.general)
        self._symbols.show_symbols(snapshot.symbols)
        self._show_numbers(snapshot)
        make.tell(self._note, snapshot.note)

    def show_problem(self, text: str) -> None:
        """Show why the request failed; the rule shown before stays."""
        make.tell(self._note, text)

    def problem(self) -> str:
        """The words below the numbers."""
        return self._note.text()

    def clear(self, text: str = EMPTY_TEXT) -> None:
        self._snapshot = None
        self._show_numbers(None)
        for widget in (self.inputs, self._copy, self._general, self._symbols, self._formula):
            widget.hide()
        make.tell(self._note, text)

    def text(self) -> str:
        """The shown texts, for copying."""
        snapshot = self._snapshot
        if snapshot is None:
            return ""
        lines = [snapshot.name, snapshot.formula]
        lines += [f"  {s.name}: {symbol_text(s)}" for s in snapshot.symbols]
        if snapshot.numbers is not None:
            lines += snapshot.numbers.lines
        return "\n".join(lines)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())

    def _show_numbers(self, snapshot: RuleSnapshot | None) -> None:
        self._formula.setVisible(snapshot is not None)
        outgoing = None if snapshot is None else snapshot.outgoing
        picture = None if outgoing is None else outgoing.picture
        self.picture.show_picture(picture)
        self.picture.setVisible(picture is not None)
        has_elements = snapshot is not None and snapshot.element is not None
        for widget in (self._element_label, self.element, self._of, self._shape):
            widget.setVisible(has_elements)
        if snapshot is not None and snapshot.element is not None:
            self.element.setText(", ".join(map(str, snapshot.element)))
            shape = outgoing.summary.shape if outgoing is not None else ()
            self.element.setEnabled(bool(shape))
            self._shape.setText(format_shape(shape))
        numbers = None if snapshot is None else snapshot.numbers
        self._numbers.setVisible(numbers is not None)
        self._agreement.setVisible(numbers is not None)
        if snapshot is None or numbers is None:
            return
        self._numbers.setText("\n".join(numbers.lines))
        self._agreement.setText(agreement(snapshot))

    # -- choosing --------------------------------------------------------------------------------

    def _choose_input(self, index: int) -> None:
        if self._snapshot is not None:
            self.rule_requested.emit(self._snapshot.node, self.inputs.itemData(index), None)

    def _choose_cell(self, cell: tuple[int, ...]) -> None:
        snapshot = self._snapshot
        picture = snapshot.outgoing.picture if snapshot and snapshot.outgoing else None
        if snapshot is None or picture is None:
            return
        element = source_element(picture, cell)
        if element is None:
            make.tell(self._note, "The picture leaves out elements here. Type the index instead.")
        else:
            self.rule_requested.emit(snapshot.node, snapshot.input, element)

    def _choose_typed(self) -> None:
        if self._snapshot is None:
            return
        element = parse_element(self.element.text())
        if element is None:
            make.tell(self._note, "Type an index as numbers separated by commas: 0, 2.")
        else:
            self.rule_requested.emit(self._snapshot.node, self._snapshot.input, element)


class _Symbols(QWidget):
    """The meaning of each letter of the formula."""

    def __init__(self) -> None:
        super().__init__()
        make.named(self, "rule_symbols", "What the letters stand for")
        self._grid = make.grid(self, down=GRID // 4, stretch=1)
        self._rows: list[tuple[QLabel, QLabel, QLabel]] = []

    def show_symbols(self, symbols: tuple[RuleSymbol, ...]) -> None:
        while len(self._rows) < len(symbols):
            row = len(self._rows)
            name, meaning = make.label(name="rule_symbol"), make.paragraph("rule_meaning", "muted")
            note = make.paragraph("rule_symbol_note", "error")
            name.setFont(mono_font())
            self._grid.addWidget(name, 2 * row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(meaning, 2 * row, 1)
            self._grid.addWidget(note, 2 * row + 1, 1)
            self._rows.append((name, meaning, note))
        for row, (name, meaning, note) in enumerate(self._rows):
            there = row < len(symbols)
            name.setVisible(there)
            meaning.setVisible(there)
            note.setVisible(there and bool(symbols[row].note))
            if there:
                name.setText(symbols[row].name)
                meaning.setText(symbol_text(symbols[row], with_note=False))
                note.setText(symbols[row].note)
        self.setVisible(bool(symbols))


def symbol_text(symbol: RuleSymbol, *, with_note: bool = True) -> str:
    """`the input, as it was in forward (saved self) · (3, 4)`."""
    text = symbol.meaning
    if symbol.saved and symbol.saved not in symbol.meaning:
        text += f" (torch: {symbol.saved})"
    if symbol.shape is not None:
        text += f" · {format_shape(symbol.shape)}"
    if symbol.text:
        text += f" = {symbol.text}"
    return f"{text} · {symbol.note}" if symbol.note and with_note else text


def agreement(snapshot: RuleSnapshot) -> str:
    """The engine's number, and the largest difference between engine and formula."""
    numbers = snapshot.numbers
    parts = []
    if numbers is not None and numbers.engine is not None:
        parts.append(f"The engine gave {format_number(numbers.engine, 5)}.")
    if snapshot.max_difference is not None:
        difference = format_number(float(snapshot.max_difference))
        parts.append(f"Over the whole gradient, formula and engine differ by at most {difference}.")
    return " ".join(parts)


def parse_element(text: str) -> tuple[int, ...] | None:
    """`"0, 2"` or `"[0, 2]"` -> (0, 2); None if the text is not an index."""
    parts = [part.strip() for part in text.strip().strip("[]()").split(",")]
    if parts and not parts[-1]:
        parts.pop()
    if not all(part.isdecimal() for part in parts):
        return None
    return tuple(int(part) for part in parts)
