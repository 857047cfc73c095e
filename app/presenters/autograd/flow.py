"""The tab Gradient flow of the Autograd workspace."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from app.presenters.questions import Questions
from app.selection.references import Module
from app.workbench import Workbench
from engine.protocol import FlowCommand, ReadFlowCommand
from widgets.derivatives.flow_view import FlowView

FLOW = "flow"
_CHANGED = "The model or its data has changed: press Run to see its gradients."
_ENDED = "The engine has ended, and the runs with it. Press Run to train again."


class FlowPresenter(QObject):
    def __init__(self, bench: Workbench, view: FlowView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        self._has_run = False
        view.run_requested.connect(self._run)
        view.stop_requested.connect(self._questions.stop)
        view.histograms_requested.connect(self._read)
        view.layer_chosen.connect(lambda name: bench.selection.choose(Module(name), FLOW))
        bench.selection.views[view] = FLOW
        bench.store.revision_changed.connect(lambda: self._forget(_CHANGED))
        bench.files.opened.connect(self._on_opened)
        bench.link.ended.connect(partial(self._forget, _ENDED))

    def _run(self, steps: int, initialisations: tuple) -> None:
        project = self._bench.project
        self._has_run = True
        command = FlowCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
            steps=steps,
            initialisations=initialisations,
        )
        self._questions.ask(command, self._view.show_flow, self._view.show_error)

    def _read(self, layer: str, step: int) -> None:
        command = ReadFlowCommand(layer=layer, step=step)
        self._questions.ask(command, self._view.show_histograms, self._view.show_error)

    def _on_opened(self) -> None:
        self._forget("")
        self._view.show_problem("")  # a change of the model may have been told before

    def _forget(self, why: str) -> None:
        if not self._has_run:
            return
        self._has_run = False
        self._questions.drop()
        self._view.clear()
        self._view.show_problem(why)
