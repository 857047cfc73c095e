"""What Train asks of the engine once more, after a cell, a file or a change of the project."""

from __future__ import annotations

from typing import Any

import pytest

from app import templates
from app.presenters.train.data import DataPresenter
from app.presenters.train.execution import ExecutionPresenter
from app.presenters.train.holding import HoldingPresenter
from app.presenters.train.objective import ObjectivePresenter
from app.presenters.train.parameters import ParametersPresenter
from app.presenters.train.pictures.over_time import HISTOGRAMS, MODULES, OverTimePresenter
from app.presenters.train.ranks import RanksPresenter
from app.presenters.train.train import TrainPresenter
from app.selection.references import Element, Module, Parameter
from engine.project import edits
from engine.project.document import DataSetup, replace
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    CellSnapshot,
    DescribeDataCommand,
    FileObject,
    FileSnapshot,
    MeasureStepCommand,
    TrainCommand,
    Variable,
    VariableKind,
    VariablesSnapshot,
    WriteStepCommand,
)
from tests.labels import said
from widgets.training.train_view import TrainView

PATH = "/work/net.py"
CELL = CellSnapshot(ok=True, error=None)
FILE = FileSnapshot(path=PATH, digest="", objects=(FileObject("data", "data", "Tensor"),))


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    return view


def asked(link: Any, kind: type) -> int:
    return sum(isinstance(command, kind) for command in link.sent)


def work_on(bench: Any, subject: Any, data: str = "data") -> None:
    bench.store.set_project(replace(bench.project, subject=subject, objective=Objective(data)))


def test_the_step_that_fits_is_asked_for_after_what_may_change_it(view, bench, link) -> None:
    ObjectivePresenter(bench, view.form, bench.window)

    def after(snapshot: Any) -> int:
        before = asked(link, WriteStepCommand)
        link._receive(snapshot)
        return asked(link, WriteStepCommand) - before

    assert [after(each) for each in (CELL, FILE)] == [0, 0]  # of the canvas
    work_on(bench, ConsoleSubject("net"))
    assert [after(each) for each in (CELL, FILE)] == [1, 0]
    work_on(bench, FileSubject(PATH, "Net()"))
    assert [after(each) for each in (CELL, FILE)] == [0, 1]
    work_on(bench, FileSubject("/other.py", "Net()"))
    assert [after(each) for each in (CELL, FILE)] == [0, 0]
    work_on(bench, ConsoleSubject("net"), data="")
    assert after(CELL) == 0  # without data there is none


def test_an_answer_about_data_that_are_named_no_more_is_dropped(view, bench, link) -> None:
    ObjectivePresenter(bench, view.form, bench.window)
    told: list[tuple[str, str]] = []
    view.form.objective.show_words = lambda text, role="": told.append((text, role))
    work_on(bench, ConsoleSubject("net"))
    number = len(link.sent)
    link.fail("There is no data.", "Run a cell.")
    assert told[-1] == ("There is no data. Run a cell.", "error")
    told.clear()
    work_on(bench, ConsoleSubject("net"), data="")
    link.fail("late", to=number)
    assert ("late", "error") not in told


def test_data_of_the_console_are_looked_at_after_each_cell(view, bench, link) -> None:
    DataPresenter(bench, view.form.data, bench.window)
    names: list[list[str]] = []
    view.form.data.console.offer_names = names.append
    kinds: dict[str, VariableKind] = {"x": "tensor", "net": "module", "n": "number"}
    variables = tuple(Variable(name, kind, "") for name, kind in kinds.items())
    link._receive(VariablesSnapshot(variables=variables))
    assert names == [["x"]]
    link._receive(CELL)
    assert asked(link, DescribeDataCommand) == 0
    console = replace(bench.project.training, data=DataSetup("console", path="(x, x)"))
    bench.store.set_project(edits.set_training(bench.project, console))
    assert asked(link, DescribeDataCommand) == 1
    link._receive(CELL)
    assert asked(link, DescribeDataCommand) == 2
    link.get_ready()
    assert asked(link, DescribeDataCommand) == 3
    link.close()
    bench.store.set_project(
        edits.set_training(bench.project, replace(console, data=DataSetup("csv", path="/a.csv")))
    )
    assert said(view.form.data, "data_facts") == link.unsent
    work_on(bench, ConsoleSubject("net"))
    link.get_ready()
    assert asked(link, DescribeDataCommand) == 3  # the code has data of its own


def test_the_memory_of_a_step_is_asked_for_and_its_error_told(view, bench, link) -> None:
    form = view.form.execution
    ExecutionPresenter(bench, form, bench.window)
    told: list[tuple[str, str]] = []
    form.show_words = lambda text, role="": told.append((text, role))
    work_on(bench, ConsoleSubject("net"))
    form.measure_asked.emit()
    (command,) = link.sent
    assert isinstance(command, MeasureStepCommand)
    assert (command.subject, command.objective, command.training) == (
        ConsoleSubject("net"), Objective("data"), bench.project.training,
    )  # fmt: skip
    link.fail("It is too large.", "Use less.")
    link.close()
    form.measure_asked.emit()
    assert told == [
        ("Running one batch…", ""), ("It is too large. Use less.", "error"),
        ("Running one batch…", ""), (link.unsent, ""),
    ]  # fmt: skip


def test_the_table_of_parameters_is_read_again_for_another_model(view, bench, link) -> None:
    presenter = ParametersPresenter(bench, view, bench.window)
    again: list[bool] = []
    presenter._reading.again = lambda: again.append(True)
    training = bench.project.training
    bench.store.set_project(edits.set_training(bench.project, replace(training, epochs=3)))
    assert again == []
    bench.store.set_project(replace(bench.project, subject=ConsoleSubject("net")))
    bench.store.set_project(replace(bench.project, model=templates.load_template("mlp").model))
    assert again == [True, True]
    groups, modules = list[list[str]](), list[list[str]]()
    view.form.groups.offer_modules = groups.append
    view.form.execution.offer_modules = modules.append
    presenter._offer(["a.b.c", "head", "a.b.c", "a.d"])
    assert groups == [["a.b.c", "head", "a.d"]]
    assert modules == [["a", "a.b", "a.b.c", "head", "a.d"]]
    view.parameters.chosen.emit("a.weight")
    assert bench.selection.current == Parameter("a.weight")
    view.bar.parameters.setChecked(True)
    assert bench.settings.train_parameters
    view.bar.parameters.setChecked(False)
    assert not bench.settings.train_parameters


def test_the_command_of_ranks_follows_what_it_depends_on(view, bench, link) -> None:
    presenter = RanksPresenter(bench, view, bench.window)
    shown: list[Any] = []
    presenter._form.show_arguments = shown.append
    presenter._form.show_problem = shown.append

    def use(**changes: Any) -> int:
        shown.clear()
        bench.store.set_project(replace(bench.project, **changes))
        return len(shown)

    assert use(name="other") == 0 and use(model=templates.load_template("mlp").model) == 0
    assert use(training=replace(bench.project.training, seed=5)) == 1
    assert use(subject=ConsoleSubject("net")) == 1 and use(objective=Objective("data")) == 1
    shown.clear()
    bench.files.path_changed.emit("/a.tlab")
    assert len(shown) == 1


def test_the_step_that_diverged_is_sought(view, bench, link) -> None:
    train = TrainPresenter(bench, view, bench.window)
    HoldingPresenter(bench, view, train)
    view.hold.divergence_wanted.emit()
    (command,) = [each for each in link.sent if isinstance(each, TrainCommand)]
    assert command.find_divergence and not command.paused


def test_what_is_read_over_time_is_of_the_run_or_the_loop_that_is_shown(
    view, bench, link, training_snapshot
) -> None:
    presenter = OverTimePresenter(bench, view, bench.window)
    found = presenter._norms_command()
    assert (found.folder, found.of_loop) == ("", False)
    bench.store.take(training_snapshot(folder="/r"))
    pane = view.modules
    found = presenter._norms_command()
    assert (found.folder, found.of_loop, found.depth, found.by_parameter, found.names) == (
        "/r", False, pane.depth, pane.by_parameter, pane.wanted,
    )  # fmt: skip
    histograms = presenter._histograms_command()
    assert (histograms.folder, histograms.name, histograms.kind, histograms.of_loop) == (
        "/r", view.histograms.name, view.histograms.kind, False,
    )  # fmt: skip
    presenter._is_loop = True
    assert (presenter._norms_command().folder, presenter._histograms_command().folder) == ("", "")
    assert presenter._norms_command().of_loop and presenter._histograms_command().of_loop
    wanted: list[object] = []
    presenter.tensor_wanted.connect(wanted.append)
    view.images.chosen.emit("it's")
    assert wanted == [Element('lab.logged["it\'s"]')]
    view.modules.chosen.emit("a.weight", True)
    assert bench.selection.current == Parameter("a.weight")
    view.modules.chosen.emit("a", False)
    assert bench.selection.current == Module("a")
    view.histograms.chosen.emit("b.weight")
    assert bench.selection.current == Parameter("b.weight")
    assert (bench.selection.views[view.modules], bench.selection.views[view.histograms]) == (
        MODULES, HISTOGRAMS,
    )  # fmt: skip


def test_the_lines_show_the_parameter_or_its_module_as_they_are_told_apart(view, bench) -> None:
    OverTimePresenter(bench, view, bench.window)
    shown: list[tuple[str, str | None]] = []
    view.modules.show_chosen = lambda name: shown.append(("lines", name))
    view.histograms.show_chosen = lambda name: shown.append(("maps", name))
    bench.selection.choose(Parameter("a.b.weight"), "elsewhere")
    assert shown == [("maps", "a.b.weight"), ("lines", "a.b")]
    view.modules._depth.setCurrentIndex(view.modules._depth.findData(None))
    assert view.modules.by_parameter
    bench.selection.choose(Parameter("c.bias"), "elsewhere")
    assert shown[2:] == [("maps", "c.bias"), ("lines", "c.bias")]
    bench.selection.choose(Module("a"), "elsewhere")
    assert shown[4:] == [("lines", None)]
