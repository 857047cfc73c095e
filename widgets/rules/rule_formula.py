"""A rule as a formula: large, with what each letter is, and with the numbers of one element."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.protocol import RuleSnapshot, RuleSymbol
from widgets.icons import set_icon
from widgets.text import format_number, format_shape
from widgets.theme import GRID, mono_font
from widgets.values.picture_grid import source_element
from widgets.values.picture_view import PictureView

FORMULA_POINTS = 13
PICTURE_HEIGHT = 15 * GRID
EMPTY_TEXT = (
    "Step backward, or choose a node of the graph: here stands its rule as a formula, with the"
    " numbers of this pass."
)


class RuleFormula(QScrollArea):
    """Emits `rule_requested(node, input, element)` when another input or element is chosen."""

    rule_requested = Signal(int, int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rule_formula_page")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._snapshot: RuleSnapshot | None = None

        self.inputs = QComboBox()
        self.inputs.setObjectName("rule_input")
        self.inputs.setAccessibleName("Input of the operation")
        self.inputs.setToolTip(
            "The operation had several inputs, and each gets a gradient by a formula of its own."
        )
        self.inputs.activated.connect(self._choose_input)
        self._copy = QToolButton()
        self._copy.setObjectName("rule_copy")
        self._copy.setAccessibleName("Copy the rule")
        self._copy.setToolTip("Copy the formula and its numbers as text")
        set_icon(self._copy, "mdi6.content-copy")
        self._copy.clicked.connect(self.copy)
        self._formula = wrapped("rule_formula")
        font = mono_font(FORMULA_POINTS)
        font.setBold(True)
        self._formula.setFont(font)
        self._formula.setToolTip(
            "L is the loss, g the gradient that comes in. Elementwise, unless the words say more."
        )
        self._general = wrapped("rule_general", "muted")
        self._symbols = _Symbols()
        self.element = QLineEdit()
        self.element.setObjectName("rule_element")
        self.element.setAccessibleName("Element of the outgoing gradient")
        self.element.setToolTip(
            "The index of an element of the outgoing gradient, as 0, 2: Enter shows its numbers."
            " Or click it in the picture."
        )
        self.element.setFont(mono_font())
        self.element.setMaximumWidth(16 * GRID)
        self.element.returnPressed.connect(self._choose_typed)
        self._of = QLabel("of")
        self._of.setProperty("role", "muted")
        self._shape = QLabel()
        self._shape.setObjectName("rule_shape")
        self._shape.setProperty("role", "muted")
        self._numbers = wrapped("rule_numbers")
        self._numbers.setFont(mono_font())
        self._numbers.setToolTip(
            "The same formula with the indices of this element, then with the numbers that the node"
            " keeps, then what they give."
        )
        self._agreement = wrapped("rule_agreement")
        self._note = wrapped("rule_note", "muted")
        self.picture = PictureView()
        self.picture.setObjectName("rule_picture")
        self.picture.setAccessibleName("The outgoing gradient")
        self.picture.setToolTip("The outgoing gradient. Click an element for its numbers.")
        self.picture.setFixedHeight(PICTURE_HEIGHT)
        self.picture.cell_chosen.connect(self._choose_cell)

        top = QHBoxLayout()
        top.setSpacing(GRID)
        top.addWidget(self.inputs, 1)
        top.addStretch(0)
        top.addWidget(self._copy)
        chosen = QHBoxLayout()
        chosen.setSpacing(GRID)
        self._element_label = QLabel("Element")
        self._element_label.setBuddy(self.element)
        for widget in (self._element_label, self.element, self._of, self._shape):
            chosen.addWidget(widget)
        chosen.addStretch(1)
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(GRID // 2, GRID, GRID // 2, GRID)
        layout.setSpacing(GRID)
        layout.addLayout(top)
        layout.addWidget(self._formula)
        layout.addWidget(self._general)
        layout.addLayout(chosen)
        layout.addWidget(self._numbers)
        layout.addWidget(self._note)
        layout.addWidget(self._symbols)
        layout.addWidget(self._agreement)
        layout.addWidget(self.picture)
        layout.addStretch(1)
        self.setWidget(body)
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
        self._general.setText("The library has no formula for this node: this holds for any.")
        self._general.setVisible(snapshot.general)
        self._symbols.show_symbols(snapshot.symbols)
        self._show_numbers(snapshot)
        _say(self._note, snapshot.note)

    def show_problem(self, text: str) -> None:
        """What was asked for is not there: the rule shown before stays."""
        _say(self._note, text)

    def problem(self) -> str:
        """What is said below the numbers."""
        return self._note.text()

    def clear(self, text: str = EMPTY_TEXT) -> None:
        self._snapshot = None
        self._show_numbers(None)
        for widget in (self.inputs, self._copy, self._general, self._symbols, self._formula):
            widget.hide()
        _say(self._note, text)

    def text(self) -> str:
        """What is shown, to be copied."""
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
            _say(self._note, "The picture leaves elements out here: type the index instead.")
        else:
            self.rule_requested.emit(snapshot.node, snapshot.input, element)

    def _choose_typed(self) -> None:
        if self._snapshot is None:
            return
        element = parse_element(self.element.text())
        if element is None:
            _say(self._note, "An index is numbers with commas between: 0, 2.")
        else:
            self.rule_requested.emit(self._snapshot.node, self._snapshot.input, element)


class _Symbols(QWidget):
    """What each letter of the formula stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("rule_symbols")
        self.setAccessibleName("What the letters stand for")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(GRID)
        self._grid.setVerticalSpacing(GRID // 4)
        self._grid.setColumnStretch(1, 1)
        self._rows: list[tuple[QLabel, QLabel, QLabel]] = []

    def show_symbols(self, symbols: tuple[RuleSymbol, ...]) -> None:
        while len(self._rows) < len(symbols):
            row = len(self._rows)
            name, meaning = QLabel(), wrapped("rule_meaning", "muted")
            note = wrapped("rule_symbol_note", "error")
            name.setObjectName("rule_symbol")
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
    """`the input, as it was in forward (saved self) · 3 × 4`."""
    text = symbol.meaning
    if symbol.saved and symbol.saved not in symbol.meaning:
        text += f" (torch: {symbol.saved})"
    if symbol.shape is not None:
        text += f" · {format_shape(symbol.shape)}"
    if symbol.text:
        text += f" = {symbol.text}"
    return f"{text} · {symbol.note}" if symbol.note and with_note else text


def agreement(snapshot: RuleSnapshot) -> str:
    """What the engine gave, beside what the formula gives."""
    numbers = snapshot.numbers
    parts = []
    if numbers is not None and numbers.engine is not None:
        parts.append(f"The engine gave {format_number(numbers.engine, 5)}.")
    if snapshot.max_difference is not None:
        difference = format_number(float(snapshot.max_difference))
        parts.append(f"Over the whole gradient, formula and engine differ by at most {difference}.")
    return " ".join(parts)


def parse_element(text: str) -> tuple[int, ...] | None:
    """`"0, 2"` or `"[0, 2]"` -> (0, 2); None for what is no index."""
    parts = [part.strip() for part in text.strip().strip("[]()").split(",")]
    if parts and not parts[-1]:
        parts.pop()
    if not all(part.isdecimal() for part in parts):
        return None
    return tuple(int(part) for part in parts)


def wrapped(name: str, role: str = "") -> QLabel:
    """A paragraph of plain text that can be selected."""
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    if role:
        label.setProperty("role", role)
    return label


def _say(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))
