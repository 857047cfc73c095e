"""The options of a backward pass: gradient, inputs, what it keeps, which engine."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QSizePolicy,
    QWidget,
)

from engine.protocol import StartBackwardCommand
from widgets import make
from widgets.icons import set_icon
from widgets.shapes.operand_fields import ExpressionField
from widgets.theme import GRID
from widgets.vertical_scroll import VerticalScroll


class PassOptions(QWidget):
    """The options for the next start, folded to a line that sums them up."""

    started = Signal()
    """Enter was pressed in a field: start a pass."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("backward_options")
        self._fold = make.tool_button(
            "backward_options_fold",
            text="Options",
            accessible="Options of the backward pass",
            toggled=self._show_fold,
        )
        self._fold.setToolTip("What the next pass starts with, keeps, and is run by")
        self._fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._summary = make.label("", "muted", "backward_options_summary", wrap=True)
        self._summary.setMinimumWidth(1)
        self.gradient = ExpressionField(
            "backward_gradient",
            "Gradient that backward starts with",
            "What backward starts with, of the root's shape: torch.ones_like(y), v. Needed where"
            " the root is not a scalar; empty: 1.",
        )
        self.gradient.setPlaceholderText("1")
        self.inputs = ExpressionField(
            "backward_inputs",
            "Only for these inputs",
            "Names with commas between, as autograd.grad(y, inputs): only their gradients are"
            " found, and no .grad changes. Empty: backward() for all leaves.",
        )
        self.inputs.setPlaceholderText("all leaves, into .grad")
        self.create_graph = _check(
            "create_graph",
            "Gradients get graphs of their own, so that they can be differentiated again (for"
            " second derivatives, gradient penalties, or learning to learn, as in MAML): choose"
            " x.grad as the graph's root then.",
        )
        self.accumulate = _check(
            "add to .grad",
            "Do not set .grad to None before the pass: it adds to what is there, as backward() does"
            " without zero_grad().",
        )
        self.real_engine = _check(
            "Real engine (no way back)",
            "backward() itself runs, held before each node: the truth for checkpoints, and saved"
            " tensors are freed as it goes. Else nodes run one by one, and steps can be undone.",
        )
        self.retain_graph = _check(
            "retain_graph",
            "The real engine keeps the saved tensors, so that another pass can follow. Stepping"
            " node by node always does.",
        )
        form_page = QWidget()
        form = QFormLayout(form_page)
        form.setContentsMargins(GRID, 0, 0, GRID)
        form.setHorizontalSpacing(GRID)
        form.setVerticalSpacing(GRID // 2)
        form.addRow("gradient", self.gradient)
        form.addRow("inputs", self.inputs)
        for left, right in (
            (self.create_graph, self.accumulate),
            (self.real_engine, self.retain_graph),
        ):
            form.addRow(make.row((left, 3), (right, 2), gap=-1))
        self._area = VerticalScroll(form_page)
        self._area.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._head = make.row(self._fold, (self._summary, 1), gap=GRID // 2)
        make.column(self._head, self._area, on=self, gap=0)
        for field in (self.gradient, self.inputs):
            field.textChanged.connect(self._show_summary)
            field.returnPressed.connect(self.started)
        for box in (self.create_graph, self.accumulate, self.real_engine, self.retain_graph):
            box.toggled.connect(self._show_summary)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._show_fold(False)
        self._show_summary()

    def add_beside(self, widget: QWidget) -> None:
        """Put a widget at the right of the line that sums the options up."""
        self._head.addWidget(widget)

    def command(self, root: str = "") -> StartBackwardCommand:
        """The command that starts a pass from `root` with these options."""
        inputs = tuple(filter(None, (name.strip() for name in self.inputs.text().split(","))))
        return StartBackwardCommand(
            root=root,
            gradient=self.gradient.text().strip(),
            create_graph=self.create_graph.isChecked(),
            accumulate=self.accumulate.isChecked(),
            inputs=inputs,
            real_engine=self.real_engine.isChecked(),
            retain_graph=self.retain_graph.isChecked(),
        )

    def summary(self) -> str:
        """The options in words."""
        command = self.command()
        words = ["real engine" if command.real_engine else "node by node"]
        if command.real_engine:
            words.append("graph kept" if command.retain_graph else "graph freed")
        if command.gradient:
            words.append(f"gradient {command.gradient}")
        if command.create_graph:
            words.append("create_graph")
        if command.inputs:
            words.append(f"only {', '.join(command.inputs)}")
        elif command.accumulate:
            words.append("adds to .grad")
        return " · ".join(words)

    def _show_fold(self, opened: bool) -> None:
        self._area.setVisible(opened)
        set_icon(self._fold, "mdi6.chevron-down" if opened else "mdi6.chevron-right", "muted")

    def _show_summary(self) -> None:
        self.retain_graph.setEnabled(self.real_engine.isChecked())
        text = self.summary()
        self._summary.setText(text)
        self._summary.setToolTip(text)


def _check(text: str, tip: str) -> QCheckBox:
    name = text.partition(" (")[0].replace(".", "").replace(" ", "_").lower()
    box = make.check(f"backward_{name}", text, tip)
    box.setAccessibleDescription(tip)
    return box
