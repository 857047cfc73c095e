"""The presenter of the gradient flow: its runs are of the model as it is, and go with it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from app.presenters.autograd.flow import FlowPresenter
from app.selection.references import Module
from engine.project import edits
from engine.project.document import Project
from engine.protocol import FlowCommand, ReadFlowCommand, StopSignal
from widgets.derivatives.flow_view import FlowView

RUN = (30, ("default", "normal_1", "zeros"))


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.bench = bench
        self.view = FlowView()
        qtbot.addWidget(self.view)
        self.presenter = FlowPresenter(bench, self.view, bench.window)
        self.cleared: list[int] = []
        clear = self.view.clear
        self.view.clear = lambda: (self.cleared.append(1), clear())

    def problem(self) -> str:
        return self.view.findChild(QLabel, "flow_problem").text()

    def add_linear(self) -> None:
        self.bench.edit("Add", lambda project: edits.add_block(project, "nn.Linear", 0, 0)[0])


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def test_a_run_is_of_the_model_as_it_is_and_a_layer_is_read_from_it(desk, link) -> None:
    desk.add_linear()
    desk.view.run_requested.emit(*RUN)
    run = link.sent[-1]
    assert isinstance(run, FlowCommand)
    assert (run.model, run.training) == (desk.bench.project.model, desk.bench.project.training)
    assert (run.steps, run.initialisations) == RUN
    desk.view.histograms_requested.emit("linear1.weight", 7)
    read = link.sent[-1]
    assert isinstance(read, ReadFlowCommand) and (read.layer, read.step) == ("linear1.weight", 7)
    link.fail("It is busy.", "Wait.")
    assert desk.problem() == "It is busy. Wait."
    desk.view.stop_requested.emit()
    assert link.signals[0] == StopSignal(command=1)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("model", "The model or its data has changed: press Run to see its gradients."),
        ("engine", "The engine has ended, and the runs with it. Press Run to train again."),
        ("project", ""),
    ],
)
def test_what_ends_a_run_takes_its_picture_and_says_why(desk, bench, link, end, words) -> None:
    def happen() -> None:
        if end == "model":
            desk.add_linear()
        elif end == "engine":
            link.ended.emit()
        else:
            bench.files.new(Project(name="Other"))

    happen()
    assert desk.problem() == "" and desk.cleared == []  # there was no run
    desk.view.run_requested.emit(*RUN)
    asked = len(link.sent)
    happen()
    assert desk.problem() == words and desk.cleared == [1]
    link.fail("Too late.", to=asked)
    assert desk.problem() == words
    happen()
    assert desk.cleared == [1]


def test_another_project_takes_back_what_was_said_of_the_model_before(desk, bench) -> None:
    desk.view.run_requested.emit(*RUN)
    desk.add_linear()
    assert desk.problem() != ""
    bench.dialogs.leave = "discard"
    bench.files.new(Project(name="Other"))
    assert desk.problem() == ""


def test_a_layer_of_the_table_is_chosen_as_a_module(desk, bench) -> None:
    desk.view.layer_chosen.emit("linear1")
    assert bench.selection.current == Module("linear1")
