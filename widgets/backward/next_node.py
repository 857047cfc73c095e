"""The node that runs next, its incoming gradients, and the line of Python that edits them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QWidget,
)

from engine.protocol import GradientEdit
from widgets import make
from widgets.shapes.operand_fields import ExpressionField
from widgets.theme import GRID


def templates(shape: Sequence[int | str]) -> dict[str, tuple[str, str, str, bool]]:
    """Edits of a gradient of this shape: key -> (title, tooltip, Python, whether it is made at
    once; if not, its Python goes to the field, where the reader changes the number)."""
    element = f"g[{', '.join('0' for _ in shape)}] = 1.0" if shape else "torch.full_like(g, 1.0)"
    return {
        "scale": ("Scale…", "Multiply it by a number", "g * 2.0", False),
        "zero": ("Zero", "Zero gradient: all zeros", "torch.zeros_like(g)", True),
        "clip_norm": (
            "Clip by norm…",
            "Shorten it to a largest 2-norm, as clip_grad_norm_ does",
            "g * (1.0 / (g.norm() + 1e-6)).clamp(max=1.0)",
            False,
        ),
        "clip_value": (
            "Clip by value…",
            "Keep every element in a range",
            "g.clamp(-1.0, 1.0)",
            False,
        ),
        "element": ("Set an element…", "Put a number at one place", element, False),
        "cut": ("Cut", "None: the branch below gets no gradient", "None", True),
        "expression": (
            "Expression…",
            "Any Python of g, torch, F, np and your variables",
            "g",
            False,
        ),
    }


_SET_ELEMENT = re.compile(r"g\s*\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*,?\s*\]\s*=(?!=)\s*(.+)")


def as_expression(text: str) -> str:
    """The typed text as an expression. An assignment (`g[0, 1] = 2`) becomes an expression that
    returns a changed copy of g."""
    found = _SET_ELEMENT.fullmatch(text.strip())
    if found is None:
        return text.strip()
    places = ", ".join(f"torch.tensor({place.strip()})" for place in found[1].split(","))
    return f"g.index_put(({places},), g.new_tensor({found[2]}))"


class NextNode(QFrame):
    """One node that has not run. `edited(node, expression, output)` asks for an edit,
    `unedited(node)` removes the node's edits, `looked(node)` asks for its gradients in full."""

    edited = Signal(int, str, int)
    unedited = Signal(int)
    looked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._node = -1
        self._buttons_shown, self._can_look = True, False
        self._shapes: tuple[tuple[int | str, ...], ...] = ()
        self.setProperty("role", "card")
        self.setObjectName("next_node")
        self._title = make.text("next_title", "heading", wrap=True, width="any")
        self._facts = make.text("next_facts", "muted", wrap=True, width="any")
        self._edits = make.text("next_edits", wrap=True, width="any")
        self._problem = make.text("next_problem", "error", wrap=True, width="any")
        self._outputs = make.combo("next_output", "Output whose gradient is edited")
        self._outputs.setToolTip("This node has several outputs in forward: a gradient for each")
        self.look = make.tool_button(
            "next_look", "mdi6.eye-outline", "Show the incoming gradient", self.looked
        )
        self.undo = make.tool_button("next_undo", "mdi6.undo-variant", "Undo the edit")
        self.undo.clicked.connect(lambda: self.unedited.emit(self._node))
        self.edit = make.tool_button(
            "next_edit", "mdi6.pencil-outline", "Edit the gradient before the node gets it"
        )
        menu = make.menu(self.edit, tips=True)
        menu.setObjectName("next_edit_menu")
        self.actions_by_key: dict[str, QAction] = {}
        for key, (title, tip, _, _) in templates(()).items():
            self.actions_by_key[key] = make.action(
                menu, title, lambda key=key: self._begin(key), name=f"next_{key}", tip=tip
            )
        self.field = ExpressionField(
            "next_expression",
            "Python for the gradient",
            "What the node is given instead: Python of g (the incoming gradient), grads (all"
            " of them), torch, F, np and your variables. g[0, 1] = 2 sets an element. Enter applies"
            " it, Esc leaves it as it is.",
        )
        self.field.returnPressed.connect(self._apply)
        apply = make.tool_button(
            "next_apply", "mdi6.check", "Apply the edit (Enter)", self._apply, ink="accent"
        )
        make.shortcut(Qt.Key.Key_Escape, self.field, self._end)
        head = make.row(
            (self._title, 1), self._outputs, self.look, self.edit, self.undo, gap=GRID // 2
        )
        self._editor = QWidget()
        make.row((self.field, 1), apply, on=self._editor, gap=GRID // 2)
        parts = (head, self._facts, self._edits, self._problem, self._editor)
        make.column(*parts, on=self, gap=2, margins=(GRID, GRID // 2, GRID // 2, GRID // 2))
        self._end()

    def show_controls(self, shown: bool) -> None:
        """Show or hide the buttons that look at the gradient and edit it."""
        self._buttons_shown = shown
        self.edit.setVisible(shown)
        self.look.setVisible(shown and self._can_look)
        if not shown:
            self._end()

    @property
    def node(self) -> int:
        return self._node

    def show_node(
        self,
        node: int,
        title: str,
        facts: str,
        shapes: Sequence[Sequence[int | str]],
        edits: Sequence[GradientEdit] = (),
        problem: str = "",
        can_look: bool = False,
    ) -> None:
        """Show a node: `shapes` has one for each of its outputs, `edits` are those on it."""
        if node != self._node:
            self._end()
        self._node, self._shapes = node, tuple(tuple(shape) for shape in shapes)
        self._title.setText(title)
        self._title.setToolTip(title)
        self._facts.setText(facts)
        several = len(self._shapes) > 1
        if self._outputs.count() != len(self._shapes):
            self._outputs.clear()
            self._outputs.addItems([f"output {i}" for i in range(len(self._shapes))])
        self._outputs.setVisible(several)
        lines = [f"g{f' {e.output}' if several else ''} ← {e.expression}" for e in edits]
        make.tell(self._edits, "\n".join(lines))
        self.undo.setVisible(bool(lines))
        self.show_problem(problem)
        self._can_look = can_look
        self.look.setVisible(can_look and self._buttons_shown)

    def _begin(self, key: str) -> None:
        output = max(0, self._outputs.currentIndex())
        shape = self._shapes[output] if output < len(self._shapes) else ()
        _, _, expression, at_once = templates(shape)[key]
        if at_once:
            self.edited.emit(self._node, expression, output)
            return
        self._editor.show()
        self.field.show_text(expression)
        self.field.setFocus()
        number = expression.find(".0")
        if key == "element" and shape:
            self.field.setSelection(2, expression.find("]") - 2)
        elif number < 1:
            self.field.selectAll()
        else:
            self.field.setSelection(number - 1, 3)

    def _apply(self) -> None:
        expression = as_expression(self.field.text())
        if expression:
            self.edited.emit(self._node, expression, max(0, self._outputs.currentIndex()))

    def show_problem(self, text: str) -> None:
        """Show why the edit was refused; its text stays in the field."""
        make.tell(self._problem, text)

    def show_applied(self) -> None:
        """Close the field: the edit was accepted."""
        self._end()

    def _end(self) -> None:
        self._editor.hide()
