"""Train's table of parameters: read again while a run goes on, and only while it is seen."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import QObject

from app.presenters.live_reading import LiveReading
from app.selection.finding import parameter_of
from app.selection.references import Parameter
from app.workbench import Workbench
from engine.project.document import Project
from engine.protocol import ModelSnapshot, ReadParametersCommand, StructureSnapshot
from engine.protocol.subject_commands import WeightRow, join_structure
from widgets.training.train_view import TrainView

PARAMETERS = "parameters"


class ParametersPresenter(QObject):
    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._switch = bench, view.bar.parameters
        self._pane = pane = view.parameters
        self._form = view.form
        self._parts: list[StructureSnapshot] = []
        self._reading = LiveReading(bench, pane, self._command, self._take, self)
        bench.selection.views[pane] = PARAMETERS
        pane.chosen.connect(lambda name: bench.selection.choose(Parameter(name), PARAMETERS))
        bench.selection.changed.connect(lambda _: self.show_chosen())
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.on(ModelSnapshot, self._offer_blocks)
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

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject or old.model is not new.model:
            self._reading.again()

    def _offer_blocks(self, snapshot: ModelSnapshot) -> None:
        blocks = self._bench.project.model.blocks
        if blocks:
            learning = {report.block for report in snapshot.blocks if report.parameters}
            self._offer([each.name for each in blocks if each.id in learning])

    def _command(self) -> ReadParametersCommand:
        project = self._bench.project
        self._parts.clear()
        return ReadParametersCommand(
            subject=project.subject, model=project.model, training=project.training
        )

    def _take(self, part: StructureSnapshot) -> bool:
        self._parts.append(part)
        if part.left:
            return False
        whole = join_structure(self._parts)
        parameters = tuple(w for w in whole.weights if w.kind == "parameter")
        self._pane.show_parameters(replace(whole, weights=parameters))
        self._offer(list(map(_module_of, parameters)))
        self.show_chosen()
        return True

    def _offer(self, modules: Sequence[str]) -> None:
        """Offer the modules that have parameters, and those that they are in."""
        own = list(dict.fromkeys(modules))
        around = [path[:i] for path in own for i, letter in enumerate(path) if letter == "."]
        self._form.groups.offer_modules(own)
        self._form.execution.offer_modules(list(dict.fromkeys([*around, *own])))


def _module_of(weight: WeightRow) -> str:
    """The path of the module that has a parameter."""
    return weight.name.rpartition(".")[0]
