"""The form of a derivative: the function, its inputs, the variables, and the method."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QWidget,
)

from engine.protocol import Command, DerivativeCommand, GradcheckCommand, Variable
from widgets import make
from widgets.shapes.operand_fields import ExpressionField
from widgets.theme import GRID

KINDS = {
    "jacobian": (
        "Jacobian",
        "All of ∂output/∂input: a row per output element, a column per input element",
    ),
    "hessian": (
        "Hessian",
        "Second derivatives of a scalar output, for each pair of input elements",
    ),
    "jvp": ("JVP", "Jacobian · v: how the output changes when the input moves along v"),
    "vjp": ("VJP", "v · Jacobian: what backward computes, with v as the incoming gradient"),
    "hvp": ("HVP", "Hessian · v, without building the Hessian"),
    "gradcheck": ("gradcheck", "Is backward right? Compares its Jacobian with a numeric one"),
    "gradgradcheck": (
        "gradgradcheck",
        "Is double backward right? Compares second derivatives with numeric ones",
    ),
}
_TOLERANCES = {
    "eps": ("1e-6", "Step of the numeric derivative: how far each input element is moved"),
    "atol": ("1e-5", "Absolute tolerance: differences below atol + rtol·|numeric| pass"),
    "rtol": ("1e-3", "Relative tolerance: differences below atol + rtol·|numeric| pass"),
}


class DerivativeForm(QWidget):
    """Emits `asked(Command)` for a question, or `problem(text)` if a field is wrong."""

    asked = Signal(object)
    problem = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = make.combo(
            "derivative_kind",
            "Derivative",
            "The derivative to compute, or the check to make.",
            ((title, key, f"{tip}.") for key, (title, tip) in KINDS.items()),
        )
        self.function = ExpressionField(
            "derivative_function",
            "Function",
            "The function to differentiate, such as f, torch.tanh, net, Gelu.apply or lambda x:"
            " (x @ w).sum(). Empty: the model on the canvas.",
        )
        self.function.setPlaceholderText("the model on the canvas")
        self.inputs = ExpressionField(
            "derivative_inputs",
            "Inputs",
            "The tensors to call the function with, separated by commas: x, w. Empty: the first"
            " sample of the model's batch.",
        )
        self.inputs.setPlaceholderText("the first sample of its batch")
        self.argument = make.spin("derivative_argument", "By input number")
        self.argument.setToolTip(
            "The input to differentiate by: 0 is the first (argnums in torch.func)"
        )
        self.compute = make.button(
            "derivative_compute", "Compute", "mdi6.function-variant", self.ask, primary=True
        )
        self.compute.setAccessibleName("Compute the derivative")
        self.compute.setToolTip("Compute this derivative (Enter in any field)")
        self.vector = ExpressionField(
            "derivative_vector",
            "Vector",
            "The vector v, in the shape of the input (JVP, HVP) or of the output (VJP). Empty:"
            " ones.",
        )
        self.vector.setPlaceholderText("ones")
        modes = (("reverse (jacrev)", "reverse"), ("forward (jacfwd)", "forward"))
        self.mode = make.combo("derivative_mode", "Mode", choices=modes)
        self.mode.setToolTip(
            "Reverse mode goes row by row: cheap for few outputs. Forward mode goes column by"
            " column: cheap for few inputs. Both give the same matrix."
        )
        self.double = make.check("derivative_double", "float64", checked=True)
        self.double.setToolTip(
            "Check in float64. In float32, rounding makes numeric derivatives too inexact to"
            " compare with."
        )
        self.tolerances = {name: self._tolerance(name) for name in _TOLERANCES}
        self._lay_out()
        for field in (self.function, self.inputs, self.vector, *self.tolerances.values()):
            field.returnPressed.connect(self.ask)
        self.kind.currentIndexChanged.connect(self._show_options)
        self.inputs.textChanged.connect(self._show_count)
        self._show_options()
        self._show_count()

    def _lay_out(self) -> None:
        grid = make.grid(self)
        grid.addWidget(self.kind, 0, 0)
        for column, (text, field) in enumerate(
            (("of", self.function), ("at", self.inputs), ("by input", self.argument))
        ):
            label = make.label(text, "muted", of=field)
            grid.addWidget(label, 0, 2 * column + 1)
            grid.addWidget(field, 0, 2 * column + 2)
        grid.addWidget(self.compute, 0, 7)
        grid.setColumnStretch(2, 3)
        grid.setColumnStretch(4, 2)
        self._labels: dict[QWidget, QLabel] = {}
        for text, field in (
            ("vector", self.vector),
            ("mode", self.mode),
            ("", self.double),
            *((name, field) for name, field in self.tolerances.items()),
        ):
            self._labels[field] = make.label(text, "muted", of=field)
        self.vector.setMinimumWidth(24 * GRID)
        parts = (part for field, label in self._labels.items() for part in (label, field))
        grid.addLayout(make.row(*parts, make.STRETCH), 1, 0, 1, 8)

    def _tolerance(self, name: str) -> QLineEdit:
        text, tip = _TOLERANCES[name]
        field = make.field(f"derivative_{name}", name, f"{tip}.", mono=True)
        field.setText(text)
        field.setFixedWidth(9 * GRID)
        return field

    # -- showing ---------------------------------------------------------------------------------

    def show_variables(self, variables: Sequence[Variable]) -> None:
        """Offer the console's tensors and callables."""
        tensors = [v.name for v in variables if v.kind == "tensor"]
        called = [v.name for v in variables if v.kind == "module" or v.type in _CALLED]
        self.function.show_names(called)
        self.inputs.show_names(tensors)
        self.vector.show_names(tensors)

    def show_question(self, kind: str, function: str, inputs: str) -> None:
        """Fill in a question without asking it."""
        self.kind.setCurrentIndex(self.kind.findData(kind))
        self.function.show_text(function)
        self.inputs.setText(inputs)

    def _show_options(self) -> None:
        kind = self.kind.currentData()
        check = kind in ("gradcheck", "gradgradcheck")
        visible = {
            self.vector: kind in ("jvp", "vjp", "hvp"),
            self.mode: kind == "jacobian",
            self.double: check,
            **dict.fromkeys(self.tolerances.values(), check),
        }
        for field, shown in visible.items():
            field.setVisible(shown)
            self._labels[field].setVisible(shown and bool(self._labels[field].text()))
        self.argument.setEnabled(not check)

    def _show_count(self) -> None:
        self.argument.setMaximum(max(0, len(split_inputs(self.inputs.text())) - 1))

    # -- asking ----------------------------------------------------------------------------------

    def code_to_trace(self) -> str:
        """Python that runs the function in the fields forward and backward; empty for the model."""
        function = self.function.text().strip()
        return traced_code(function, split_inputs(self.inputs.text())) if function else ""

    def ask(self) -> None:
        """Ask the question in the fields."""
        try:
            self.asked.emit(self._command())
        except ValueError as error:
            self.problem.emit(str(error))

    def _command(self) -> Command:
        kind = self.kind.currentData()
        function, inputs = self.function.text().strip(), split_inputs(self.inputs.text())
        if kind in ("gradcheck", "gradgradcheck"):
            return GradcheckCommand(
                function=function,
                inputs=inputs,
                second=kind == "gradgradcheck",
                double=self.double.isChecked(),
                eps=self._number("eps"),
                atol=self._number("atol"),
                rtol=self._number("rtol"),
            )
        return DerivativeCommand(
            kind=kind,
            function=function,
            inputs=inputs,
            argument=self.argument.value(),
            vector=self.vector.text().strip(),
            mode=self.mode.currentData(),
        )

    def _number(self, name: str) -> float:
        text = self.tolerances[name].text().strip()
        try:
            number = float(text)
        except ValueError:
            example = _TOLERANCES[name][0]
            message = f"{name} must be a number such as {example}, not “{text}”."
            raise ValueError(message) from None
        if not 0 < number < float("inf"):
            raise ValueError(f"{name} must be above zero, not {text}.")
        return number


def traced_code(function: str, inputs: Sequence[str]) -> str:
    """Python that calls a function and runs its backward. Its arguments are tensors that share the
    inputs' memory: no `.grad` of the inputs changes. Numbers and texts are passed as they are."""
    called = f"({function})" if " " in function else function
    given = ", ".join(
        text if _is_constant(text) else f"{text}.detach().requires_grad_()" for text in inputs
    )
    return f"traced = {called}({given})\ntraced.sum().backward()\n"


def _is_constant(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    return True


_CALLED = frozenset({"function", "builtin_function_or_method", "type", "FunctionMeta", "method"})


def split_inputs(text: str) -> tuple[str, ...]:
    """`"x, w[0, 1]"` -> `("x", "w[0, 1]")`; a text that is not Python stays whole."""
    text = text.strip().rstrip(",")
    if not text:
        return ()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return (text,)
    if isinstance(tree, ast.Tuple) and not text.startswith("("):
        return tuple(ast.unparse(item) for item in tree.elts)
    return (text,)
