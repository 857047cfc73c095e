"""Train's table of parameters: read again while a run goes on, and only while it is seen."""

from __future__ import annotations

from time import monotonic

from PySide6.QtCore import QObject, QTimer

from app.presenters.questions import Questions, in_words
from app.selection.finding import parameter_of
from app.selection.references import Parameter
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import (
    ErrorReport,
    FileSnapshot,
    ModelSnapshot,
    ReadParametersCommand,
    RunSnapshot,
    Snapshot,
    StructureSnapshot,
    VariablesSnapshot,
)
from engine.protocol.subject_commands import WeightRow, join_structure
from widgets.training.train_view import TrainView

PARAMETERS = "parameters"
EVERY_MS = 1_000
SHARE = 10
"""Between two readings passes this many times the time that one takes."""


class ParametersPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._switch = bench, view.bar.parameters
        self._pane = pane = view.parameters
        self._groups = view.form.groups
        self._questions = Questions(bench, self)
        self._is_stale, self._asked_s = True, 0.0
        self._parts: list[StructureSnapshot] = []
        self._pause = QTimer(self, interval=EVERY_MS, singleShot=True)
        self._pause.timeout.connect(self._read_if_stale)
        bench.selection.views[pane] = PARAMETERS
        pane.chosen.connect(lambda name: bench.selection.choose(Parameter(name), PARAMETERS))
        pane.came_in_sight.connect(self._read_if_stale)
        bench.selection.changed.connect(lambda _: self.show_chosen())
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.snapshot.connect(self._on_snapshot)
        bench.link.state_changed.connect(self._on_engine_state)
        self._switch.setChecked(bench.settings.train_parameters)
        self._switch.toggled.connect(lambda on: setattr(bench.settings, "train_parameters", on))

    def come_up(self) -> None:
        """Show the table, with what is chosen."""
        self._switch.setChecked(True)
        self.show_chosen()

    def show_chosen(self) -> None:
        """Select the row of the parameter that is chosen, if there is one."""
        name = parameter_of(self._bench.selection.current, self._bench.known)
        if name is not None:
            self._pane.show_chosen(name)

    # -- when to read ----------------------------------------------------------------------------

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject or old.model is not new.model:
            self._forget()
            self._let_read()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ModelSnapshot) and self._bench.project.model.blocks:
            learning = {report.block for report in snapshot.blocks if report.parameters}
            blocks = self._bench.project.model.blocks
            self._groups.offer_modules([each.name for each in blocks if each.id in learning])
        if isinstance(snapshot, RunSnapshot | VariablesSnapshot | FileSnapshot):
            self._let_read()

    def _on_engine_state(self, state: str) -> None:
        self._forget()
        if state == "ready":
            self._let_read()
        else:
            self._pane.show_trouble("The engine starts.")

    def _forget(self) -> None:
        self._questions.drop()
        self._parts.clear()
        self._asked_s = 0.0

    def _let_read(self) -> None:
        self._is_stale = True
        self._read_if_stale()

    def _read_if_stale(self) -> None:
        ready = self._bench.link.state == "ready" and self._pane.isVisible()
        if not (self._is_stale and ready) or self._asked_s or self._pause.isActive():
            return
        project = self._bench.project
        command = ReadParametersCommand(
            subject=project.subject, model=project.model, training=project.training
        )
        self._is_stale, self._asked_s = False, monotonic()
        if not self._questions.ask(command, self._take, self._fail):
            self._asked_s = 0.0
            self._pane.show_trouble(self._bench.link.unsent)

    # -- answers ---------------------------------------------------------------------------------

    def _take(self, part: Snapshot) -> None:
        assert isinstance(part, StructureSnapshot)
        self._parts.append(part)
        if part.left == 0:
            whole = join_structure(self._parts)
            self._pane.show_parameters(whole)
            self._groups.offer_modules(
                list(dict.fromkeys(_module_of(w) for w in whole.weights if w.kind == "parameter"))
            )
            self._end()
            self.show_chosen()

    def _fail(self, error: ErrorReport) -> None:
        self._pane.show_trouble(in_words(error))
        self._end()

    def _end(self) -> None:
        """The answer is there: pause before the next."""
        took_ms = (monotonic() - self._asked_s) * 1_000
        self._asked_s = 0.0
        self._parts.clear()
        self._pause.start(max(EVERY_MS, round(SHARE * took_ms)))


def _module_of(weight: WeightRow) -> str:
    """The path of the module that has a parameter."""
    return weight.name.rpartition(".")[0]
