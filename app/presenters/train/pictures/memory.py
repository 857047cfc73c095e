"""The memory of one step: asked of the engine; its operations and storages are chosen in all
views."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.selection.finding import module_of
from app.selection.references import Line, Module, Parameter
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import (
    ErrorReport,
    MemoryBlock,
    MemoryCurveSnapshot,
    MemoryOp,
    TraceMemoryCommand,
)
from widgets.training.train_view import TrainView

MEMORY = "step memory"
_ESTIMATED_FROM = ("model", "training", "subject", "objective")


class MemoryPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, view.memory
        self._questions = Questions(bench)
        self._goes_on = False
        bench.selection.views[self._pane] = MEMORY
        self._pane.measure_requested.connect(self.measure)
        self._pane.op_chosen.connect(self._choose_op)
        self._pane.block_chosen.connect(self._choose_block)
        bench.selection.changed.connect(self._show_chosen)
        bench.store.project_changed.connect(self._on_project_changed)
        bench.link.state_changed.connect(self._on_engine_state)

    def measure(self) -> None:
        """Follow a step with the settings of now."""
        project = self._bench.project
        command = TraceMemoryCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
        )
        self._pane.begin()
        self._goes_on = bool(self._questions.ask(command, self._show, self._fail))
        if not self._goes_on:
            self._pane.end(self._bench.link.unsent)

    def _show(self, found: MemoryCurveSnapshot) -> None:
        self._goes_on = False
        self._pane.show_step(found)

    def _fail(self, error: ErrorReport) -> None:
        self._goes_on = False
        self._pane.end(in_words(error))

    def _on_engine_state(self, state: str) -> None:
        if self._goes_on and state != "ready":
            self._questions.drop()
            self._goes_on = False
            self._pane.end("The engine has ended.")

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject or old.model is not new.model:
            self._pane.clear()
        elif any(getattr(old, name) != getattr(new, name) for name in _ESTIMATED_FROM):
            self._pane.tell_outdated()

    # -- the selection ---------------------------------------------------------------------------

    def _choose_op(self, op: MemoryOp) -> None:
        """The line of the user's code, else the module."""
        if op.line:
            self._bench.selection.choose(Line(op.file, op.line), MEMORY)
        elif op.module is not None:
            self._bench.selection.choose(Module(op.module), MEMORY)

    def _choose_block(self, block: MemoryBlock, op: MemoryOp | None) -> None:
        """The parameter that it belongs to, else what made it."""
        if block.kind in ("parameters", "gradients", "optimizer") and block.name:
            name = block.name.rpartition(" of ")[2]
            if block.kind == "gradients":
                name = name.removesuffix(".grad")
            self._bench.selection.choose(Parameter(name), MEMORY)
        elif op is not None:
            self._choose_op(op)

    def _show_chosen(self, reference: object) -> None:
        self._pane.light(module_of(self._bench.selection.current, self._bench.known))
