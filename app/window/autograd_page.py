"""The Autograd workspace's page: one tab to step through a pass, and others for related views."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget

from widgets import make
from widgets.autograd.autograd_view import AutogradView
from widgets.autograd.mistakes_view import MistakesView
from widgets.derivatives.flow_view import FlowView
from widgets.derivatives.view import DerivativeView
from widgets.trace.view import TraceView

_STEPS = "One pass forward and backward, node by node on its graph."
_TRACE = "Every line of your code, and every call of torch in it, forward and back."
_DERIVATIVES = "Jacobian, Hessian and their products of any function; gradcheck of its backward."
_FLOW = "The size of each layer's gradients during training, for three initialisations."
_MISTAKES = "Usual mistakes with autograd: run each one, see it on the graph, correct it."


class AutogradPage(QTabWidget):
    """`steps` is the first tab: one pass forward and back."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = AutogradView()
        self.trace = TraceView()
        self.derivatives = DerivativeView()
        self.flow = FlowView()
        self.mistakes = MistakesView()
        views = (
            (self.steps, "Step through", _STEPS),
            (self.trace, "Forward, op by op", _TRACE),
            (self.derivatives, "Derivatives", _DERIVATIVES),
            (self.flow, "Gradient flow", _FLOW),
            (self.mistakes, "Mistakes", _MISTAKES),
        )
        make.tabs("autograd_page", views, tabs=self)
        self.setFocusProxy(self.steps)

    def show_node(self, node: int) -> None:
        """Show a node of the current graph."""
        self.setCurrentWidget(self.steps)
        self.steps.graph.select(node)

    def show_lesson(self, node: int, words: str) -> None:
        """Show a node of a new graph, and a text on what to see there."""
        self.show_node(node)
        self.steps.show_lesson(words)

    def show_mistake(self, key: str) -> None:
        """Show the tab of the mistakes, and this mistake."""
        self.setCurrentWidget(self.mistakes)
        self.mistakes.choose(key)

    def show_code(self, source: str) -> None:
        """Show the tab of the trace, and trace this code."""
        self.setCurrentWidget(self.trace)
        self.trace.trace_code(source)

    def show_example_code(self, source: str) -> None:
        """Show the tab of the trace, and trace this code of an example."""
        self.setCurrentWidget(self.trace)
        self.trace.trace_code(source, example=True)

    def show_trace(self) -> None:
        """Show the tab of the trace."""
        self.setCurrentWidget(self.trace)
