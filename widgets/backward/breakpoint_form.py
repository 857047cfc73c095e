"""A form for a breakpoint: its place and its condition."""

from __future__ import annotations

import re
from typing import Literal, cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from engine.protocol import Breakpoint, StopCondition
from widgets import make
from widgets.theme import GRID

_PLACES = {
    "any": ("any node", "", "At every node"),
    "op": ("op", "addmm", "The operation: addmm, mul, or torch's name, AddmmBackward0"),
    "module": ("module", "layers.0.attn", "A module's path; the modules inside count"),
    "node": ("node", "17", "The number of one node"),
}
_CONDITIONS: dict[str, tuple[str, StopCondition, Literal["incoming", "outgoing"], str]] = {
    "always": ("always, before it runs", "always", "incoming", ""),
    "made": ("it makes NaN or inf", "makes_not_finite", "outgoing", ""),
    "bad_in": ("NaN or inf comes in", "not_finite", "incoming", ""),
    "bad_out": ("NaN or inf goes out", "not_finite", "outgoing", ""),
    "above_in": ("norm coming in is above", "norm_above", "incoming", "10"),
    "above_out": ("norm going out is above", "norm_above", "outgoing", "10"),
    "below_in": ("norm coming in is below", "norm_below", "incoming", "1e-6"),
    "below_out": ("norm going out is below", "norm_below", "outgoing", "1e-6"),
    "shape_in": ("shape coming in is", "shape", "incoming", "64, 10"),
    "shape_out": ("shape going out is", "shape", "outgoing", "64, 10"),
}


class BreakpointForm(QWidget):
    """Emits `added(Breakpoint)`, or `problem(text)` if the fields make none."""

    added = Signal(object)
    problem = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.where = make.combo(
            "breakpoint_where",
            "Where to stop",
            "Nodes to stop at",
            ((title, key) for key, (title, _, _) in _PLACES.items()),
        )
        self.target = _field("breakpoint_target", "Name of the op, module or node")
        self.when = make.combo(
            "breakpoint_when",
            "When to stop",
            "The condition",
            ((title, key) for key, (title, *_) in _CONDITIONS.items()),
        )
        self.when.setCurrentIndex(1)
        self.value = _field("breakpoint_value", "Number or shape to compare with")
        self.value.setToolTip("The number, or the sizes with commas between")
        self.add = make.tool_button("breakpoint_add", "mdi6.plus", slot=self.submit, ink="accent")
        self.add.setAccessibleName("Add the breakpoint")
        self.add.setToolTip("Add this breakpoint (Enter in a field)")
        half = GRID // 2
        upper = make.row(self.where, (self.target, 1), make.Stretch(0), gap=half)
        make.column(
            upper, make.row(self.when, (self.value, 1), self.add, gap=half), on=self, gap=half
        )
        self.where.currentIndexChanged.connect(self._show_fields)
        self.when.currentIndexChanged.connect(self._show_fields)
        for field in (self.target, self.value):
            field.returnPressed.connect(self.submit)
        self._show_fields()

    def submit(self) -> None:
        """Emit the breakpoint in the fields, or its problem."""
        try:
            breakpoint = self.breakpoint()
        except ValueError as error:
            self.problem.emit(str(error))
            return
        self.problem.emit("")
        self.added.emit(breakpoint)

    def breakpoint(self) -> Breakpoint:
        """The breakpoint in the fields. Raises ValueError with the reason if they make none."""
        on = cast(Literal["any", "op", "module", "node"], self.where.currentData())
        _, condition, of, example = _CONDITIONS[self.when.currentData()]
        target = self.target.text().strip() if on != "any" else ""
        if on != "any" and not target:
            raise ValueError(f"Type the {on} to stop at, for example {_PLACES[on][1]}.")
        if on == "node" and not target.isdecimal():
            raise ValueError("A node is given by its number, for example 17.")
        if on == "any" and condition == "always":
            raise ValueError("To stop at every node, step. Choose a condition or a place.")
        text = self.value.text().strip()
        threshold, shape = 0.0, ()
        if condition == "shape":
            if re.fullmatch(r"[\[(]?[\d\s,x×]*[\])]?", text) is None:
                raise ValueError(f"A shape is sizes with commas between, for example {example}.")
            shape = tuple(int(size) for size in re.findall(r"\d+", text))
        elif example:
            try:
                threshold = float(text)
            except ValueError:
                raise ValueError(
                    f"Type the number to compare with, for example {example}."
                ) from None
        return Breakpoint(
            on=on, target=target, condition=condition, of=of, threshold=threshold, shape=shape
        )

    def _show_fields(self) -> None:
        where = _PLACES[self.where.currentData()]
        self.target.setVisible(bool(where[1]))
        self.target.setPlaceholderText(where[1])
        self.target.setToolTip(where[2])
        example = _CONDITIONS[self.when.currentData()][3]
        self.value.setVisible(bool(example))
        self.value.setPlaceholderText(example)


def _field(name: str, title: str) -> QLineEdit:
    field = make.field(name, title, mono=True)
    field.setMinimumWidth(6 * GRID)
    return field
