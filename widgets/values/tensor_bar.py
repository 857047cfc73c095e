"""The bar over all views of one tensor, with the tensor and the selected element."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import Variable
from widgets import make
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID, mono_font

_EXPRESSION_WIDTH = 26 * GRID


class TensorBar(QWidget):
    """Shows the tensor's expression, its main facts and the selected element. Emits
    `expression_entered(text)` when the user typed another tensor, and `element_cleared()` when the
    user asks to select no element."""

    expression_entered = Signal(str)
    element_cleared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tensor_bar")
        self._shown = ""
        self.expression = make.field(
            "tensor_expression", "Tensor shown", placeholder="x, x.grad, net.weight …", mono=True
        )
        self.expression.setToolTip(
            "The tensor that all views show: a variable, an attribute of a variable, or an item"
            " of one (x, x.grad, net[0].weight, xs[1]). Type another and press Enter."
        )
        self.expression.setFixedWidth(_EXPRESSION_WIDTH)
        self.expression.returnPressed.connect(self._enter)
        self._facts = make.text("tensor_facts", "muted", width="any")
        self._element = make.label(name="tensor_element")
        self._element.setFont(mono_font())
        self._element.setToolTip("The selected element: it is lit in every view of this tensor.")
        self._clear = make.tool_button(
            "tensor_element_clear", "mdi6.close", "Select no element.", self.element_cleared
        )
        parts = (self.expression, (self._facts, 1), self._element, self._clear)
        make.row(*parts, on=self, margins=(GRID, GRID // 2, GRID, GRID // 2))
        self.show_tensor("", None)
        self.show_element(None)

    def show_tensor(self, expression: str, variable: Variable | None) -> None:
        """Show a tensor; `variable` has its facts if it is a variable of the console. Text that is
        being typed stays, unless the tensor is another."""
        if expression != self._shown:
            self._shown = expression
            self.expression.setText(expression)
        self._facts.setText("" if variable is None else facts_of(variable))
        self._facts.setToolTip(self._facts.text())

    def show_element(self, index: tuple[int, ...] | None) -> None:
        self._element.setVisible(index is not None)
        self._clear.setVisible(index is not None)
        if index is not None:
            self._element.setText(f"{self._shown}[{', '.join(map(str, index)) or '()'}]")

    def _enter(self) -> None:
        text = self.expression.text().strip()
        if text:
            self.expression_entered.emit(text)


def facts_of(variable: Variable) -> str:
    """The main facts about a variable (`(3, 4) · float32 · cpu · 48 B · ...`)."""
    if variable.kind != "tensor":
        return " · ".join(filter(None, (variable.type, variable.text)))
    parts = [format_shape(variable.shape or ()), variable.dtype, variable.device]
    if variable.size_bytes is not None:
        parts.append(format_bytes(variable.size_bytes))
    if variable.grad_fn:
        parts.append(variable.grad_fn)
    elif variable.requires_grad:
        parts.append("requires grad, leaf" if variable.is_leaf else "requires grad")
    return " · ".join(parts)
