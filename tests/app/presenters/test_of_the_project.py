"""Each question to the engine is about the project as it is: its model, set-up, subject and
objective, none of which is that of an empty project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtCore import QObject

from app import templates
from app.presenters.autograd.flow import FlowPresenter
from app.presenters.autograd.workspace import AutogradPresenter
from app.presenters.cells import CellsPresenter
from app.presenters.export import ExportPresenter
from app.presenters.model.structure import StructurePresenter
from app.presenters.python_files import PythonFiles
from app.presenters.subject import SubjectPresenter
from app.presenters.tensors.console import ConsolePresenter
from app.presenters.train.elements import ElementPresenter
from app.presenters.train.execution import ExecutionPresenter
from app.presenters.train.objective import ObjectivePresenter
from app.presenters.train.parameters import ParametersPresenter
from app.presenters.train.predictions import PredictionsPresenter
from app.presenters.train.rates import RatesPresenter
from app.presenters.train.train import TrainPresenter
from app.presenters.weights import WeightsPresenter
from engine.project.document import Project, Schedule, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    Command,
    CompareSubjectsCommand,
    ExportCommand,
    FindCheckpointCommand,
    FlowCommand,
    KeepBeforeCommand,
    LoadWeightsCommand,
    MeasureStepCommand,
    PlanExportCommand,
    PreviewInitCommand,
    PreviewRatesCommand,
    ReadElementCommand,
    ReadForwardGraphCommand,
    ReadParametersCommand,
    ReadPredictionsCommand,
    ReadStructureCommand,
    RunCellCommand,
    ShowSubjectCommand,
    StartBackwardCommand,
    TrainCommand,
    WriteStepCommand,
)
from tests.widgets.structure.small_structure import BARE, WHOLE
from widgets.autograd.autograd_view import AutogradView
from widgets.console.console_view import ConsoleView
from widgets.derivatives.flow_view import FlowView
from widgets.structure.view import StructureView
from widgets.subject.chooser import SubjectChooser
from widgets.training.element_view import ElementView
from widgets.training.train_view import TrainView

FIELDS = ("model", "training", "subject", "objective")


@pytest.fixture
def project(bench, link) -> Project:
    link.get_ready()
    template = templates.load_template("mlp")
    steps = Schedule("lr_scheduler.StepLR", {"step_size": 2})
    project = replace(
        template,
        training=replace(template.training, seed=99, batch_size=7, schedule=steps),
        subject=ConsoleSubject("net"),
        objective=Objective(data="loader"),
    )
    bench.store.set_project(project)
    return project


Ask = Callable[[Any, Any], QObject | None]


def of_rates(bench: Any, keep: Any) -> QObject:
    return RatesPresenter(bench, keep(TrainView()).form.rates, bench.window)


def of_memory(bench: Any, keep: Any) -> None:
    form = keep(TrainView()).form.execution
    ExecutionPresenter(bench, form, bench.window)
    form.measure_asked.emit()


def of_element(bench: Any, keep: Any) -> None:
    view = keep(ElementView())
    ElementPresenter(bench, view, bench.window)
    view.choose("0.weight")


def of_parameters(bench: Any, keep: Any) -> None:
    view = keep(TrainView())
    ParametersPresenter(bench, view, bench.window)
    view.show()
    view.bar.parameters.setChecked(True)


def of_predictions(bench: Any, keep: Any) -> None:
    view = keep(TrainView())
    PredictionsPresenter(bench, view, bench.window)
    view.show()
    view.bar.predictions.setChecked(True)


def of_step(bench: Any, keep: Any) -> None:
    ObjectivePresenter(bench, keep(TrainView()).form, bench.window)


def of_checkpoint(bench: Any, keep: Any) -> None:
    TrainPresenter(bench, keep(TrainView()), bench.window).resume()


def of_run(bench: Any, keep: Any) -> None:
    TrainPresenter(bench, keep(TrainView()), bench.window).train()


def of_flow(bench: Any, keep: Any) -> None:
    view = keep(FlowView())
    FlowPresenter(bench, view, bench.window)
    view.run_requested.emit(3, ("zeros",))


def of_backward(bench: Any, keep: Any) -> None:
    page = cast(Any, SimpleNamespace(steps=keep(AutogradView())))
    AutogradPresenter(bench, page, bench.window).start_backward()


def of_export(bench: Any, keep: Any) -> None:
    ExportPresenter(bench, bench.window).export("pt", "/a.pt")


def of_plan(bench: Any, keep: Any) -> None:
    ExportPresenter(bench, bench.window).open()


def of_weights(bench: Any, keep: Any) -> None:
    WeightsPresenter(bench, bench.window).load("/a.pt")


def of_subject(bench: Any, keep: Any) -> None:
    files = PythonFiles(bench, bench.window)
    SubjectPresenter(bench, files, keep(SubjectChooser()), bench.window)
    bench.link.became_ready.emit()


def of_cell(bench: Any, keep: Any) -> None:
    view = keep(ConsoleView())
    ConsolePresenter(bench, CellsPresenter(bench, bench.window), view, bench.window)
    view.submit("x = 1")


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (of_rates, PreviewRatesCommand),
        (of_memory, MeasureStepCommand),
        (of_element, ReadElementCommand),
        (of_parameters, ReadParametersCommand),
        (of_predictions, ReadPredictionsCommand),
        (of_step, WriteStepCommand),
        (of_checkpoint, FindCheckpointCommand),
        (of_run, TrainCommand),
        (of_flow, FlowCommand),
        (of_backward, StartBackwardCommand),
        (of_export, ExportCommand),
        (of_plan, PlanExportCommand),
        (of_weights, LoadWeightsCommand),
        (of_subject, ShowSubjectCommand),
        (of_cell, RunCellCommand),
    ],
)
def test_what_is_asked_is_about_the_project(
    bench, link, qtbot, project: Project, ask: Ask, kind: type[Command]
) -> None:
    def keep(widget: Any) -> Any:
        qtbot.addWidget(widget)
        return widget

    ask(bench, keep)
    asked = [command for command in link.sent if type(command) is kind]
    assert asked
    assert_of(project, asked[-1])


def assert_of(project: Project, command: Command, fields: Sequence[str] = FIELDS) -> None:
    told = {name: getattr(command, name) for name in fields if hasattr(command, name)}
    assert told and told == {name: getattr(project, name) for name in told}


def test_what_is_asked_of_a_structure_is_about_the_project(
    bench, link, qtbot, project: Project
) -> None:
    view = StructureView()
    qtbot.addWidget(view)
    StructurePresenter(bench, view, bench.window)
    view.show()

    def asked(kind: type[Command]) -> Command:
        def found() -> list[Command]:
            return [command for command in link.sent if type(command) is kind]

        qtbot.waitUntil(lambda: bool(found()), timeout=30_000)
        return found()[-1]

    assert_of(project, asked(ReadStructureCommand), FIELDS[1:])  # of code, the canvas is no part
    link.answer(WHOLE)
    assert_of(project, asked(ReadForwardGraphCommand))
    link.answer(BARE)
    view.compare.keep_requested.emit()
    assert_of(project, asked(KeepBeforeCommand))
    view.compare.compare_requested.emit(None)
    assert_of(project, asked(CompareSubjectsCommand))
    view.bar.preview_requested.emit(("0.weight",), "zeros_", "")
    assert_of(project, asked(PreviewInitCommand))
