"""The presenters of the Autograd page, made together and connected with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QObject

from app.presenters.autograd.backward import BackwardPresenter
from app.presenters.autograd.chosen import ChosenPresenter
from app.presenters.autograd.derivatives import DerivativesPresenter
from app.presenters.autograd.flow import FlowPresenter
from app.presenters.autograd.graph_examples import GraphExamplesPresenter
from app.presenters.autograd.graph_numbers import GraphNumbersPresenter
from app.presenters.autograd.graph_picture import GraphPicturePresenter
from app.presenters.autograd.mistakes import MistakesPresenter
from app.presenters.autograd.node_details import NodeDetailsPresenter
from app.presenters.autograd.pass_bar import PassBarPresenter
from app.presenters.autograd.rules import RulesPresenter
from app.presenters.autograd.trace import TracePresenter
from app.presenters.autograd.workspace import AutogradPresenter
from app.presenters.cells import CellsPresenter
from app.window.autograd_page import AutogradPage
from app.workbench import Workbench


class AutogradPresenters(NamedTuple):
    """The presenters of the page that other workspaces talk to."""

    passes: AutogradPresenter
    chosen: ChosenPresenter
    trace: TracePresenter


def present(
    bench: Workbench,
    page: AutogradPage,
    cells: CellsPresenter,
    at_passes: Callable[[], AutogradPresenter],
    run_python: Callable[[str], None],
    parent: QObject,
) -> AutogradPresenters:
    """Make the presenters of the page. `at_passes()` brings the tab Step through to the front;
    `run_python(source)` runs Python in the console."""
    passes = AutogradPresenter(bench, page, parent)
    chosen = ChosenPresenter(bench, page.steps, parent)
    PassBarPresenter(bench, passes, parent)
    BackwardPresenter(bench, page.steps, parent)
    rules = RulesPresenter(bench, page.steps, parent)
    NodeDetailsPresenter(bench, page.steps, rules.card, parent)
    GraphNumbersPresenter(bench, page.steps, parent)
    GraphPicturePresenter(bench, page.steps.graph_pane, parent)
    examples = GraphExamplesPresenter(bench, page.steps, parent)
    trace = TracePresenter(bench, cells, page.trace, parent)
    derivatives = DerivativesPresenter(bench, page.derivatives, parent)
    FlowPresenter(bench, page.flow, parent)
    mistakes = MistakesPresenter(bench, page.mistakes, parent)

    trace.node_requested.connect(page.show_node)
    trace.graph_wanted.connect(passes.show_graph_of)
    passes.graph_failed.connect(trace.show_no_graph)
    rules.trace_requested.connect(page.show_trace)
    rules.trace_requested.connect(trace.trace_rule)
    rules.code_requested.connect(page.show_code)
    page.derivatives.trace_requested.connect(page.show_code)
    page.derivatives.example_trace_requested.connect(page.show_example_code)
    mistakes.graph_requested.connect(lambda root: at_passes().show_graph_beside(root))
    mistakes.node_requested.connect(page.show_lesson)
    for asks in (
        examples.graph_wanted,
        trace.example_graph_wanted,
        mistakes.example_graph_requested,
    ):
        asks.connect(passes.show_example)
    derivatives.run_requested.connect(run_python)
    return AutogradPresenters(passes, chosen, trace)
