"""The stepped backward pass: breakpoints, edits, resetting `.grad`, its code."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.document import replace
from engine.protocol import (
    BackwardCodeSnapshot,
    Breakpoint,
    EditGradientCommand,
    ErrorReport,
    ReadBackwardCodeCommand,
    SetBreakpointsCommand,
    UneditGradientCommand,
    ZeroGradientsCommand,
)
from widgets.autograd.autograd_view import AutogradView


class BackwardPresenter(QObject):
    """Connects all of the backward pass except its steps, which AutogradPresenter shows."""

    def __init__(self, bench: Workbench, view: AutogradView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        backward = view.backward
        self._breakpoints = backward.tabs.breakpoints
        self._breakpoints.changed.connect(self._send_breakpoints)
        backward.next_node.edited.connect(self._edit)
        backward.next_node.unedited.connect(self._unedit)
        backward.tabs.unedited.connect(self._unedit)
        backward.tabs.zero_requested.connect(self._zero)
        backward.copy_requested.connect(self._copy)
        backward.node_chosen.connect(view.graph.select)
        backward.table.opened.connect(self._open_gradient)
        view.graph.breakpoint_toggled.connect(self._breakpoints.toggle)
        bench.link.became_ready.connect(self._on_new_engine)

    # -- breakpoints

    def _send_breakpoints(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        self._bench.send(SetBreakpointsCommand(breakpoints=breakpoints))
        self._view.graph.show_breakpoints(self._breakpoints.keys())

    def _on_new_engine(self) -> None:
        """Send the window's breakpoints: a new engine has none."""
        if self._breakpoints.breakpoints:
            self._send_breakpoints(self._breakpoints.breakpoints)

    # -- edits

    def _edit(self, node: int, expression: str, output: int) -> None:
        strip = self._view.backward.next_node
        self._questions.ask(
            EditGradientCommand(node=node, expression=expression, output=output),
            lambda _: strip.show_applied(),
            lambda error: strip.show_problem(in_words(error)),
        )

    def _unedit(self, node: int) -> None:
        self._questions.ask(UneditGradientCommand(node=node), _nothing, self._show_error)

    def _zero(self, set_to_none: bool) -> None:
        self._questions.ask(
            ZeroGradientsCommand(set_to_none=set_to_none), _nothing, self._show_error
        )

    def _open_gradient(self, name: str) -> None:
        """Step through the graph of a gradient, with the chosen options."""
        command = self._view.backward.options.command()
        command = replace(command, inputs=(), of=name)
        self._questions.ask(command, _nothing, self._show_error)

    # -- its code

    def _copy(self) -> None:
        self._questions.ask(ReadBackwardCodeCommand(), self._copy_code, self._show_error)

    def _copy_code(self, snapshot: BackwardCodeSnapshot) -> None:
        QGuiApplication.clipboard().setText(snapshot.text)
        self._bench.say("The code of this pass is in the clipboard.")

    def _show_error(self, error: ErrorReport) -> None:
        self._view.show_problem(in_words(error))


def _nothing(_: object) -> None:
    """The answers are shown when the store emits them."""
