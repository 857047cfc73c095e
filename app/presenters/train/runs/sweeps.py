"""Sweeps: what can vary in the project, and the sweep that the user starts."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.presenters.train.train import TrainPresenter
from app.workbench import Workbench
from engine.project import catalogue
from engine.project.document import Block, Project
from engine.project.sweeps.sweep import RATE, Sweep, SweepProblem
from engine.project.sweeps.trials import check_sweep
from engine.protocol import TrainingSnapshot
from widgets.runs.run_pane import RunPane
from widgets.runs.sweep_pane import SweepOption

_SWITCHES = ("bias", "amsgrad", "nesterov")
_OPTIMIZERS = "optim.Adam, optim.AdamW, optim.SGD, optim.RMSprop"


class SweepsPresenter(QObject):
    def __init__(self, bench: Workbench, train: TrainPresenter, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._train = bench, train
        self._pane: RunPane = train.view.runs
        self._pane.sweeps.sweep_requested.connect(self._start)
        self._pane.sweep_opened.connect(self._show_options)
        bench.store.project_changed.connect(self._on_project_changed)

    def _on_project_changed(self, _old: Project, _new: Project) -> None:
        if self._pane.sweeps.isVisible():
            self._show_options()

    def _show_options(self) -> None:
        self._pane.sweeps.show_options(options_of(self._bench.project))

    def _start(self, wanted: Sweep) -> None:
        run = self._bench.newest(TrainingSnapshot)
        if run is not None and run.state in ("running", "paused"):
            self._pane.sweeps.show_problem("Another run is under way. Stop it first.")
            return
        try:
            check_sweep(wanted, self._bench.project)
        except SweepProblem as problem:
            self._pane.sweeps.show_problem(str(problem))
            return
        if self._train.sweep(wanted):
            self._pane.sweep.setChecked(False)  # the list has the room now


def options_of(project: Project) -> list[SweepOption]:
    """The settings of a project that can vary, the usual ones first, each with what to try."""
    setup = project.training
    options = [
        SweepOption(RATE, "Learning rate", "1e-4..1e-1:log"),
        SweepOption("batch_size", "Batch size", _half_to_twice(setup.batch_size)),
        SweepOption("optimizer", "Optimizer", _OPTIMIZERS),
        SweepOption("epochs", "Epochs", _half_to_twice(setup.epochs)),
        SweepOption("seed", "Seed", "0, 1, 2, 3, 4"),
        SweepOption("clip_norm", "Largest gradient norm", "0.1..10:log"),
        SweepOption("accumulate", "Batches per step", "1, 2, 4"),
    ]
    for param in catalogue.optimizers()[setup.optimizer]:
        name = f"optimizer_params.{param.name}"
        if name != RATE and (values := _usual(param)):
            options.append(SweepOption(name, f"{setup.optimizer}: {param.name}", values))
    if not project.subject.is_code:
        for block in project.model.blocks:
            options += _of_block(block)
    return options


def _of_block(block: Block) -> list[SweepOption]:
    params = catalogue.kind(block.kind).params
    return [
        SweepOption(f"blocks.{block.name}.{param.name}", f"{block.name}: {param.name}", values)
        for param in params
        if (values := _usual(param))
    ]


def _usual(param: catalogue.Param) -> str:
    """The values to try for a parameter; "" for one that is not offered, such as a size that other
    blocks depend on."""
    if param.type == "bool" and param.name in _SWITCHES:
        return "True, False"
    if param.type != "float" or param.name == "eps":
        return ""
    low = param.minimum if param.minimum is not None else 0.0
    if param.name == "weight_decay":
        return "1e-6..1e-1:log"
    return f"{low:g}..{min(param.maximum, 0.99) if param.maximum is not None else low + 1:g}"


def _half_to_twice(value: int) -> str:
    """Half of it, itself and twice of it."""
    return ", ".join(map(str, dict.fromkeys((max(1, value // 2), value, 2 * value))))
