"""The workspaces, and the page Files: page and presenters of each, made at its first visit.

A workspace's modules are also imported then: the window is shown before they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox

from app.panels import Panels
from app.presenters.attaching.attach import AttachPresenter
from app.presenters.cells import CellsPresenter
from app.presenters.export import ExportPresenter
from app.presenters.recording import RecordingPresenter
from app.presenters.tensors.held import HeldPresenter
from app.processes.link import Link
from app.window.main_window import let_drops_through
from app.workbench import Workbench
from engine.project.examples import graph_examples
from engine.protocol import Finding, HeldSnapshot, LoopSnapshot

if TYPE_CHECKING:
    from app.presenters.artifacts.files import FilesPresenter
    from app.presenters.autograd.chosen import ChosenPresenter
    from app.presenters.autograd.trace import TracePresenter
    from app.presenters.autograd.workspace import AutogradPresenter
    from app.presenters.model.structure import StructurePresenter
    from app.presenters.model.workspace import ModelPresenter
    from app.presenters.start import StartPresenter
    from app.presenters.tensors.workspace import TensorsPresenter
    from app.presenters.train.parameters import ParametersPresenter
    from app.presenters.train.train import TrainPresenter
    from widgets.start.start_page import StartPage


class Workspaces(QObject):
    """`start`, `tensors`, `model`, `autograd` and `train` are the workspaces' presenters, whether
    their pages are shown or not. `at_tensors()` and the like also show the page.

    `file_wanted(path)`: run a Python file. `advice_muted(kind)`: no findings of a kind are wanted.
    `weights_wanted(path, group, branches)`: see `FilesPresenter.load_requested`.
    `model_wanted(path)`: make the program in a file the subject.
    """

    file_wanted = Signal(str)
    advice_muted = Signal(str)
    weights_wanted = Signal(str, str, object)
    model_wanted = Signal(str)

    def __init__(
        self,
        bench: Workbench,
        cells: CellsPresenter,
        export: ExportPresenter,
        recording: RecordingPresenter,
        attaching: AttachPresenter,
        console_history: Path,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._bench, self._cells, self._export = bench, cells, export
        self._recording, self._console_history = recording, console_history
        self._attaching = attaching
        self._window = bench.window
        self.panels = Panels(bench)
        self._window.page_makers = {
            "start": lambda: self.start,
            "tensors": lambda: self.tensors,
            "model": lambda: self.model,
            "autograd": lambda: self.autograd,
            "train": lambda: self.train,
            "files": lambda: self.files,
        }
        bench.actions.give_step_keys(to_trace=False)
        self._loop = 0  # the command of the newest loop
        bench.store.on(LoopSnapshot, self._show_loop)
        self.held = HeldPresenter(bench, lambda: self.tensors, self)
        self.held.backward_held.connect(self._show_own_call)

    # -- a workspace in front --------------------------------------------------------------------

    def at_start(self) -> StartPage:
        self._window.show_workspace("start")
        return self.start.page

    def at_tensors(self) -> TensorsPresenter:
        self._window.show_workspace("tensors")
        return self.tensors

    def at_model(self) -> ModelPresenter:
        self._window.show_workspace("model")
        return self.model

    def at_passes(self) -> AutogradPresenter:
        """The Autograd workspace with its tab Step through in front."""
        self._window.show_workspace("autograd")
        self.autograd.page.setCurrentWidget(self.autograd.page.steps)
        return self.autograd

    def show_ranks(self, own: int, links: Mapping[int, Link]) -> None:
        """As OverTimePresenter."""
        if self.train:  # makes it
            self._over_time.show_ranks(own, links)

    def at_train(self) -> TrainPresenter:
        self._window.show_workspace("train")
        return self.train

    def at_files(self) -> FilesPresenter:
        self._window.show_workspace("files")
        return self.files

    def at_parameters(self) -> ParametersPresenter:
        """Train in front, with its table of parameters."""
        self.at_train()
        return self.parameters

    def at_structure(self) -> StructurePresenter:
        self._window.show_workspace("model")
        return self.structure

    def at_chosen(self) -> ChosenPresenter:
        """The tab Step through in front, with what is lit there."""
        self.at_passes()
        return self.chosen

    def show_in_new_graph(self) -> None:
        """Start a backward pass, and show what is selected on its graph."""
        self.at_chosen().show_nodes_when_drawn()
        self.autograd.start_backward()

    def at_trace(self) -> TracePresenter:
        self._window.show_workspace("autograd")
        self.autograd.page.show_trace()
        return self.trace

    def show_graph_of(self, root: str) -> None:
        """Show the autograd graph of a tensor of the console."""
        self.at_passes().show_graph_of(root)

    def show_example(self, key: str) -> None:
        """Run an example of the tab Step through, and show its graph."""
        self.at_passes().page.steps.roots.example_chosen.emit(graph_examples()[key])

    def show_mistake(self, key: str) -> None:
        """Show one of the usual mistakes; nothing runs."""
        self._window.show_workspace("autograd")
        self.autograd.page.show_mistake(key)

    def run_python(self, source: str) -> None:
        """Run Python in the console, as if the user had typed it there."""
        self.tensors.submit(source)

    # -- made at the first visit -----------------------------------------------------------------

    @cached_property
    def start(self) -> StartPresenter:
        from app.presenters.first_steps import FirstStepsPresenter
        from app.presenters.start import StartPresenter, start_page
        from widgets.start.start_page import StartPage

        page = self._window.pages.get("start")
        if not isinstance(page, StartPage):
            page = start_page(self._bench.actions, self._bench.settings.recent_files)
            self._window.add_page("start", page)
        presenter = StartPresenter(self._bench, page, self)
        first_steps = FirstStepsPresenter(self._bench, self)
        first_steps.steps_wanted.connect(self.at_passes)
        first_steps.training_wanted.connect(lambda: self.at_train().train())
        presenter.first_steps_requested.connect(first_steps.begin)
        presenter.example_requested.connect(self.show_example)
        presenter.mistake_requested.connect(self.show_mistake)
        self._attaching.show_in(page.attach)
        return presenter

    @cached_property
    def tensors(self) -> TensorsPresenter:
        from app.presenters.tensors.console import ConsolePresenter
        from app.presenters.tensors.workspace import TensorsPresenter
        from app.window.tensors_page import TensorsPage
        from widgets.console.history import History

        page = TensorsPage(History(self._console_history))
        console = ConsolePresenter(self._bench, self._cells, page.console, self)
        page.variables.graph_requested.connect(self.show_graph_of)
        self._recording.show_in(page.console, page.storage.recording)
        page.console.output.finding_muted.connect(self.advice_muted)
        presenter = TensorsPresenter(self._bench, page, console, self)
        self.panels.add("tensors", page)
        return presenter

    @cached_property
    def model(self) -> ModelPresenter:
        from app.presenters.model.checker import ModelChecker
        from app.presenters.model.workspace import ModelPresenter
        from app.window.model_page import ModelPage

        page = self._window.pages.get("model")
        if not isinstance(page, ModelPage):
            page = ModelPage()
        let_drops_through(page.canvas)
        self._bench.actions.give_canvas(page.canvas)
        presenter = ModelPresenter(self._bench, page, self)
        page.code.save_requested.connect(lambda: self._export.open("py"))
        ModelChecker(self._bench, self)
        self.panels.add("model", page)
        self._bench.store.project_changed.connect(self._place_subject)
        self._place_subject()
        return presenter

    def _place_subject(self) -> None:
        """Show the canvas, or the structure of a subject of code, in the Model workspace."""
        is_code = self._bench.project.subject.is_code
        self._window.show_instead("model", self.structure.view if is_code else None)

    @cached_property
    def structure(self) -> StructurePresenter:
        from app.presenters.model.structure import StructurePresenter
        from widgets.structure.view import StructureView

        presenter = StructurePresenter(self._bench, StructureView(), self)
        presenter.cell_requested.connect(self.run_python)
        presenter.cells_requested.connect(lambda: self.tensors.run_again())
        presenter.file_requested.connect(self.file_wanted)
        presenter.data_requested.connect(self.at_train)
        self.tensors.page.console.cell_ended.connect(presenter.take_cell_end)
        return presenter

    @cached_property
    def autograd(self) -> AutogradPresenter:
        from app.presenters.autograd.page import present
        from app.window.autograd_page import AutogradPage
        from widgets.autograd.pass_columns import MODES

        bench, page = self._bench, AutogradPage()
        columns = {mode: bench.settings.bytes(f"autograd_{mode}_columns") for mode in MODES}
        page.steps.columns.restore(columns)
        self._recording.show_in(page.steps.recording)
        let_drops_through(page.steps.graph)
        made = present(bench, page, self._cells, self.at_passes, self.run_python, self)
        passes, self.chosen, self.trace = made
        page.steps.show_more(bench.settings.autograd_more)
        page.steps.bar.more_toggled.connect(lambda on: setattr(bench.settings, "autograd_more", on))
        self._connect_switch(page.steps.roots.own_backward)
        page.currentChanged.connect(self._give_step_keys)
        self._window.workspace_changed.connect(self._give_step_keys)
        self._window.add_page("autograd", page)
        if self.held.in_backward is not None:
            passes.show_held_pass(self.held.in_backward)
        return passes

    @cached_property
    def train(self) -> TrainPresenter:
        from app.presenters.train.checks import ChecksPresenter
        from app.presenters.train.data import DataPresenter
        from app.presenters.train.elements import ElementPresenter
        from app.presenters.train.execution import ExecutionPresenter
        from app.presenters.train.holding import HoldingPresenter
        from app.presenters.train.objective import ObjectivePresenter
        from app.presenters.train.parameters import ParametersPresenter
        from app.presenters.train.pictures.annotations import AnnotationsPresenter
        from app.presenters.train.pictures.landscape import LandscapePresenter
        from app.presenters.train.pictures.memory import MemoryPresenter
        from app.presenters.train.pictures.over_time import OverTimePresenter
        from app.presenters.train.predictions import PredictionsPresenter
        from app.presenters.train.ranks import RanksPresenter
        from app.presenters.train.rates import RatesPresenter
        from app.presenters.train.runs.runs import RunsPresenter
        from app.presenters.train.train import TrainPresenter
        from widgets.training.train_view import TrainView

        view = TrainView()
        view.findings.muted.connect(self.advice_muted)
        presenter = TrainPresenter(self._bench, view, self)
        ObjectivePresenter(self._bench, view.form, self)
        DataPresenter(self._bench, view.form.data, self)
        RatesPresenter(self._bench, view.form.rates, self)
        ExecutionPresenter(self._bench, view.form.execution, self)
        HoldingPresenter(self._bench, view, presenter)
        ChecksPresenter(self._bench, view, presenter)
        self.parameters = ParametersPresenter(self._bench, view, self)
        ElementPresenter(self._bench, view.parameters.element, self)
        PredictionsPresenter(self._bench, view, self)
        AnnotationsPresenter(self._bench, view, self)
        LandscapePresenter(self._bench, view, self)
        MemoryPresenter(self._bench, view, self)
        RanksPresenter(self._bench, view, self)
        over_time = self._over_time = OverTimePresenter(self._bench, view, self)
        over_time.tensor_wanted.connect(lambda wanted: self.at_tensors().show_values(wanted))
        runs = RunsPresenter(self._bench, presenter, self)
        runs.agreement_wanted.connect(self._cells.ask)
        presenter.export_requested.connect(lambda: self._export.open("pt"))
        self._connect_switch(view.bar.own_backward)
        self._window.add_page("train", view)
        return presenter

    @cached_property
    def files(self) -> FilesPresenter:
        from app.presenters.artifacts.files import FilesPresenter
        from widgets.artifacts.file_view import FileView

        view = FileView()
        let_drops_through(view.calls.view)
        presenter = FilesPresenter(self._bench, view, self)
        presenter.opened.connect(self.at_files)
        presenter.cell_requested.connect(self._make_variable)
        presenter.load_requested.connect(self.weights_wanted)
        presenter.blocks_made.connect(self.at_model)
        presenter.work_requested.connect(self.model_wanted)
        self._window.add_page("files", view)
        return presenter

    def _make_variable(self, source: str, name: str) -> None:
        """Run Python that makes a tensor of the console, and select it in Tensors."""
        self.at_tensors().submit(source)
        self.tensors.select(name)

    def _show_loop(self, snapshot: LoopSnapshot) -> None:
        """A cell runs a loop: make Train's page, which shows it, and say so elsewhere."""
        if snapshot.reply_to != self._loop:
            self._loop = snapshot.reply_to
            if self.train and self._window.workspace != "train":
                self._bench.say("Train shows the loop of your code.")

    def show_finding(self, finding: Finding, beside_run: bool) -> None:
        """Show a note beside the run of Train, or in the console."""
        if beside_run:
            self.train.view.findings.add(finding)
        else:
            self.tensors.page.console.show_finding(finding)

    def drop_findings(self, kind: str) -> None:
        if "tensors" in vars(self):
            self.tensors.page.console.output.drop_findings(kind)
        if "train" in vars(self):
            self.train.view.findings.drop(kind)

    def _show_own_call(self, held: HeldSnapshot | None) -> None:
        """The user's code is held in its backward(): show that pass in Autograd."""
        if held is not None and not held.after:
            self.at_passes().show_own_call(held)
        elif "autograd" in self._window.pages:  # a step of Train stays in Train
            self.autograd.show_own_call(held)

    def _connect_switch(self, switch: QCheckBox) -> None:
        switch.setChecked(self._bench.actions["autograd.own_backward"].isChecked())
        switch.toggled.connect(self.held.step_backward)
        self.held.backward_switched.connect(switch.setChecked)

    # -- what pages share ------------------------------------------------------------------------

    def remember_panels(self) -> None:
        """Save the positions of docks and columns for the next start."""
        self.panels.remember()
        if "autograd" in self._window.pages:
            for mode, state in self.autograd.page.steps.columns.states().items():
                self._bench.settings.set_bytes(f"autograd_{mode}_columns", state)

    def _give_step_keys(self) -> None:
        page = self.autograd.page
        seen = page.currentWidget() is page.trace and self._window.workspace == "autograd"
        self._bench.actions.give_step_keys(to_trace=seen)
