"""The bar of the tab Step through: one pass of a batch, forward and then backward."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.autograd.workspace import AutogradPresenter
from app.workbench import Workbench
from engine.protocol import BackwardSnapshot, ForwardSnapshot, GraphSnapshot


class PassBarPresenter(QObject):
    """Makes each move in the pass that is under way: backward if there is one, else forward. A
    graph of the console, and a step of code, have no forward pass to step."""

    def __init__(self, bench: Workbench, passes: AutogradPresenter, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._passes = bench, passes
        self._view = passes.page.steps
        bar = self._view.bar
        bar.start_requested.connect(self._start)
        bar.back_requested.connect(self._back)
        bar.step_requested.connect(self._step)
        bar.run_requested.connect(self._run)
        bar.compare_requested.connect(passes.compare)

    def _start(self) -> None:
        if self._passes.has_forward():
            self._passes.start_forward(self._view.forward.batch)
        else:
            self._passes.start_backward()

    def _step(self) -> None:
        if self._goes_backward():
            self._passes.step_backward()
        elif self._bench.newest(ForwardSnapshot) is None:
            self._passes.start_forward(self._view.forward.batch)
        else:
            self._passes.step_forward()

    def _run(self) -> None:
        if self._goes_backward():
            self._passes.run_backward()
            return
        if self._bench.newest(ForwardSnapshot) is None:
            self._passes.start_forward(self._view.forward.batch)
        self._passes.finish_forward()

    def _back(self) -> None:
        backward, graph = self._bench.newest(BackwardSnapshot), self._bench.newest(GraphSnapshot)
        of_console = graph is not None and bool(graph.root)
        if backward is not None and (backward.position or of_console):
            self._passes.step_back()
        else:
            self._passes.undo_forward()

    def _goes_backward(self) -> bool:
        """Whether the next move is one of backward: a pass is under way, there is no forward pass
        to step, or it is done."""
        if self._bench.newest(BackwardSnapshot) is not None or not self._passes.has_forward():
            return True
        forward = self._bench.newest(ForwardSnapshot)
        return forward is not None and forward.position == len(forward.order)
