"""Small things of Train's presenters: what is asked again, dropped, kept and lit."""

from __future__ import annotations

from typing import Any

import pytest

from app import templates
from app.presenters.train.checks import ChecksPresenter
from app.presenters.train.data import DataPresenter
from app.presenters.train.elements import ElementPresenter
from app.presenters.train.holding import HoldingPresenter
from app.presenters.train.objective import ObjectivePresenter
from app.presenters.train.parameters import PARAMETERS, ParametersPresenter
from app.presenters.train.pictures.memory import MemoryPresenter
from app.presenters.train.predictions import PredictionsPresenter
from app.presenters.train.ranks import RanksPresenter
from app.presenters.train.rates import RatesPresenter
from app.presenters.train.train import TRAIN, TrainPresenter
from app.selection.references import Module, Parameter
from engine.project import edits
from engine.project.document import Averaging, DataSetup, Schedule, replace
from engine.project.problems import Problem
from engine.project.subject import ConsoleSubject, Objective
from engine.project.sweeps.sweep import Sweep
from engine.protocol import (
    BlockReport,
    CheckTrainingCommand,
    DescribeDataCommand,
    ModelSnapshot,
    PreviewRatesCommand,
    RatesSnapshot,
    ReadElementCommand,
    ReadPredictionsCommand,
    ReadRanksCommand,
    StepTrainingCommand,
    TrainCommand,
    WriteStepCommand,
)
from tests.model_snapshots import model_snapshot
from tests.widgets.structure.small_structure import WEIGHTS, WHOLE
from widgets.training.element_view import ElementView
from widgets.training.settings.rate_curve import RateCurve
from widgets.training.train_view import TrainView

STEPS = Schedule("lr_scheduler.StepLR", {"step_size": 2})


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    return view


def asked(link: Any, kind: type) -> list[Any]:
    return [command for command in link.sent if isinstance(command, kind)]


def use(bench: Any, **changes: Any) -> None:
    training = replace(bench.project.training, **changes)
    bench.store.set_project(edits.set_training(bench.project, training))


# -- rates -----------------------------------------------------------------------------------------


@pytest.fixture
def curve(bench, link, qtbot) -> RateCurve:
    link.get_ready()
    curve = RateCurve()
    qtbot.addWidget(curve)
    RatesPresenter(bench, curve, bench.window)
    return curve


@pytest.mark.parametrize(
    "change",
    [
        {"subject": ConsoleSubject("net")},
        {"objective": Objective("loader")},
    ],
)
def test_rates_depend_on_the_subject_and_its_data(curve, bench, link, change) -> None:
    use(bench, schedule=STEPS)
    bench.store.set_project(replace(bench.project, name="other"))
    assert len(asked(link, PreviewRatesCommand)) == 1
    bench.store.set_project(replace(bench.project, **change))
    assert len(asked(link, PreviewRatesCommand)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"data": DataSetup("iris")}, {"batch_size": 3}, {"epochs": 7}, {"accumulate": 2},
        {"optimizer": "optim.SGD"}, {"optimizer_params": {"lr": 0.5}},
        {"schedule": Schedule("lr_scheduler.StepLR", {"step_size": 3})},
        {"averaging": Averaging("SWA", swa_lr=0.25)},
    ],
)  # fmt: skip
def test_rates_depend_on_each_of_these_settings(curve, bench, link, change) -> None:
    use(bench, schedule=STEPS)
    use(bench, **change)
    assert len(asked(link, PreviewRatesCommand)) == 2


def test_the_rate_of_averaged_weights_is_a_curve_by_itself(curve, bench, link) -> None:
    use(bench, averaging=Averaging("SWA"))
    assert asked(link, PreviewRatesCommand) == []
    use(bench, averaging=Averaging("SWA", swa_lr=0.25))
    assert len(asked(link, PreviewRatesCommand)) == 1


def test_the_rates_of_a_schedule_that_was_taken_away_are_dropped(curve, bench, link) -> None:
    use(bench, schedule=STEPS)
    use(bench, schedule=Schedule())
    words = curve.words
    link.answer(RatesSnapshot(steps=(1, 2), rates=(0.1, 0.01), total_steps=2), to=1)
    assert curve.words == words and len(asked(link, PreviewRatesCommand)) == 1


def test_without_an_engine_there_are_no_rates_and_that_is_said(curve, bench, link) -> None:
    link.close()
    use(bench, schedule=STEPS)
    assert curve.words == link.unsent != ""


# -- what is read while it is seen -----------------------------------------------------------------


def test_predictions_are_of_the_part_and_the_cell_that_are_chosen(view, bench, link) -> None:
    PredictionsPresenter(bench, view, bench.window)
    shown: list[object] = []
    view.predictions.show_predictions = shown.append
    view.show()
    assert asked(link, ReadPredictionsCommand) == []
    view.bar.predictions.setChecked(True)
    (command,) = asked(link, ReadPredictionsCommand)
    assert (command.actual, command.predicted, command.first) == (None, None, 0)
    assert command.part == view.predictions.part
    view.predictions.cell, view.predictions.first = (1, 2), 24
    view.predictions.asked.emit()
    command = asked(link, ReadPredictionsCommand)[-1]
    assert (command.actual, command.predicted, command.first) == (1, 2, 24)
    found = model_snapshot(revision=1)  # of any kind: what is answered is shown
    link.answer(found)
    assert [type(each) for each in shown] == [type(found)]


def test_whether_predictions_are_shown_is_kept(view, bench) -> None:
    PredictionsPresenter(bench, view, bench.window)
    for on in (True, False):
        view.bar.predictions.setChecked(on)
        assert bench.settings.train_predictions is on


def test_predictions_that_were_shown_at_the_last_start_are_shown(view, bench) -> None:
    bench.settings.train_predictions = True
    PredictionsPresenter(bench, view, bench.window)
    assert view.bar.predictions.isChecked()


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"subject": ConsoleSubject("net")}, True),
        ({"model": templates.load_template("mlp").model}, True),
        ({"name": "other"}, False),
    ],
)
def test_an_element_is_read_again_for_another_subject_or_model(
    bench, link, qtbot, change, again: bool
) -> None:
    link.get_ready()
    element = ElementView()
    qtbot.addWidget(element)
    ElementPresenter(bench, element, bench.window)
    element.choose("0.weight")
    bench.store.set_project(replace(bench.project, **change))
    commands = asked(link, ReadElementCommand)
    assert len(commands) == (2 if again else 1) and commands[-1].whole == element.is_whole


def test_ranks_are_those_of_the_run(view, bench, link, training_snapshot) -> None:
    RanksPresenter(bench, view, bench.window)
    use(bench, processes=2)
    view.show_setup(bench.project.training, None)
    view.show()
    bench.store.take(training_snapshot(folder="/runs/a"))
    view.tabs.setCurrentWidget(view.ranks)
    assert asked(link, ReadRanksCommand)[-1].folder == "/runs/a"


# -- the table of parameters -----------------------------------------------------------------------


def reported(*blocks: tuple[str, int]) -> ModelSnapshot:
    reports = tuple(BlockReport(block, parameters=count) for block, count in blocks)
    return replace(model_snapshot(revision=2), blocks=reports)


def test_blocks_with_parameters_are_offered_as_modules(view, bench) -> None:
    ParametersPresenter(bench, view, bench.window)
    offered: list[list[str]] = []
    view.form.groups.offer_modules = offered.append
    bench.store.take(replace(reported(), revision=1))
    assert offered == []  # of an empty canvas; code has its own
    project = edits.add_block(bench.project, "nn.Linear", 0, 0)[0]
    bench.store.set_project(edits.add_block(project, "nn.ReLU", 200, 0)[0])
    linear, relu = bench.project.model.blocks
    bench.store.take(reported((linear.id, 1), (relu.id, 0)))
    assert offered == [[linear.name]]


def test_the_whole_table_is_shown_once_all_parts_are_there(view, bench, link) -> None:
    ParametersPresenter(bench, view, bench.window)
    shown: list[list[str]] = []
    view.parameters.show_parameters = lambda whole: shown.append([w.name for w in whole.weights])
    offered: list[list[str]] = []
    view.form.groups.offer_modules = offered.append
    view.show()
    view.bar.parameters.setChecked(True)
    first = replace(WHOLE, weights=WEIGHTS[:1], left=1)
    link.answer(first)
    assert shown == []
    link.answer(replace(WHOLE, modules=(), weights=WEIGHTS[1:]))
    assert shown == [[weight.name for weight in WEIGHTS if weight.kind == "parameter"]]
    paths = [w.name.rpartition(".")[0] for w in WEIGHTS if w.kind == "parameter"]
    assert offered == [list(dict.fromkeys(paths))]


def test_the_parameter_that_is_chosen_is_selected_in_the_table(view, bench) -> None:
    presenter = ParametersPresenter(bench, view, bench.window)
    chosen: list[str] = []
    view.parameters.show_chosen = chosen.append
    bench.selection.choose(Parameter("0.weight"), "elsewhere")
    bench.selection.choose(Module("0"), "elsewhere")  # it is no parameter
    assert chosen == ["0.weight"] and not view.bar.parameters.isChecked()
    bench.selection.choose(Parameter("0.bias"), "elsewhere")
    presenter.come_up()
    assert view.bar.parameters.isChecked() and chosen == ["0.weight", "0.bias", "0.bias"]
    assert bench.selection.views[view.parameters] == PARAMETERS
    bench.settings.train_parameters = False


def test_whether_the_table_is_shown_is_as_it_was_left(view, bench) -> None:
    bench.settings.train_parameters = True
    ParametersPresenter(bench, view, bench.window)
    assert view.bar.parameters.isChecked()


# -- checks, memory, holding -----------------------------------------------------------------------


def test_a_stop_is_of_the_check_that_goes_on(view, bench, link) -> None:
    ChecksPresenter(bench, view, bench.window)
    link.send(StepTrainingCommand())
    link.finish()
    view.bar.check_requested.emit()
    ended: list[int] = []
    link.stop_command = ended.append
    view.checks.stop_requested.emit()
    assert ended == [asked(link, CheckTrainingCommand)[0].id] == [2]


def test_what_is_chosen_is_lit_in_the_memory_of_a_step(view, bench) -> None:
    MemoryPresenter(bench, view, bench.window)
    lit: list[str | None] = []
    view.memory.light = lit.append
    bench.selection.choose(Module("0"), "elsewhere")
    bench.selection.choose(Parameter("1.weight"), "elsewhere")
    bench.selection.choose(None)
    assert lit == ["0", "1", None]


def test_a_phase_of_the_strip_is_a_step_of_train(view, bench, link, training_snapshot) -> None:
    train = TrainPresenter(bench, view, bench.window)
    HoldingPresenter(bench, view, train)
    bench.store.take(training_snapshot(state="paused"))
    view.strip.step_requested.emit("phase")
    assert asked(link, StepTrainingCommand)[-1].by == "phase"
    assert bench.selection.views[view.hold] == TRAIN
    view.hold.divergence_wanted.emit()
    assert asked(link, TrainCommand)[-1].find_divergence


# -- data and objective ----------------------------------------------------------------------------


def test_data_of_points_are_read_once_there_are_some(view, bench, link) -> None:
    DataPresenter(bench, view.form.data, bench.window)
    use(bench, data=DataSetup("painted"))
    assert asked(link, DescribeDataCommand) == []
    use(bench, data=replace(bench.project.training.data, points=((0.0, 0.0, 0), (1.0, 1.0, 1))))
    assert len(asked(link, DescribeDataCommand)) == 1
    use(bench, epochs=5)
    assert len(asked(link, DescribeDataCommand)) == 1


def test_an_answer_about_other_data_is_dropped(view, bench, link) -> None:
    form = view.form.data
    DataPresenter(bench, form, bench.window)
    told: list[str] = []
    form.report.show_problem = told.append
    use(bench, data=DataSetup("csv", path="/a.csv"))
    use(bench, data=DataSetup("csv"))
    link.fail("No such file.", to=1)
    assert told == []


def test_a_file_of_data_is_asked_for_by_its_kind(view, bench) -> None:
    DataPresenter(bench, view.form.data, bench.window)
    wanted: list[str] = []
    paths = iter(["", "/a.csv"])

    def ask(what: str) -> str:
        wanted.append(what)
        return next(paths)

    bench.files.ask_data_path = ask
    chosen: list[str] = []
    view.form.data.set_path = chosen.append
    view.form.data.path_wanted.emit("csv")
    view.form.data.path_wanted.emit("folder")
    assert wanted == ["csv", "folder"] and chosen == ["/a.csv"]


@pytest.mark.parametrize(
    ("objective", "change", "again"),
    [
        (Objective("d"), {"loss": "nn.L1Loss"}, False),
        (Objective("d", loss_of_setup=True), {"loss": "nn.L1Loss"}, True),
        (Objective("d", loss_of_setup=True), {"loss_params": {"reduction": "sum"}}, True),
        (Objective("d", loss_of_setup=True), {"data": DataSetup("iris")}, False),
        (Objective(of_setup=True), {"data": DataSetup("iris")}, True),
        (Objective(of_setup=True), {"loss": "nn.L1Loss"}, False),
        (Objective(of_setup=True, loss_of_setup=True), {"epochs": 7}, False),
    ],
)
def test_the_step_is_written_again_for_what_it_depends_on(
    view, bench, link, objective: Objective, change: dict, again: bool
) -> None:
    ObjectivePresenter(bench, view.form, bench.window)
    bench.store.set_project(
        replace(bench.project, subject=ConsoleSubject("net"), objective=objective)
    )
    before = len(asked(link, WriteStepCommand))
    use(bench, **change)
    assert len(asked(link, WriteStepCommand)) - before == again


@pytest.mark.parametrize(
    ("subject", "objective", "expected"),
    [
        (None, Objective(), (False, True, False)),
        (ConsoleSubject("net"), Objective("d"), (True, False, False)),
        (ConsoleSubject("net"), Objective(of_setup=True), (True, True, False)),
        (ConsoleSubject("net"), Objective("d", loss_of_setup=True), (True, False, True)),
        (ConsoleSubject("net"), Objective("d", step="x"), (True, False, False)),
    ],
)
def test_the_form_shows_what_a_subject_is_trained_with(
    view, bench, subject, objective: Objective, expected: tuple
) -> None:
    if subject is not None:
        project = replace(bench.project, subject=subject, objective=objective)
        bench.store.set_project(project)
    shown: list[tuple] = []
    view.form.show_subject = lambda is_code, of_setup, writes: shown.append(
        (is_code, of_setup, writes)
    )
    ObjectivePresenter(bench, view.form, bench.window)
    assert shown == [expected]


# -- runs and sweeps -------------------------------------------------------------------------------


def test_words_on_a_sweep_that_could_not_begin_go_with_the_next(view, bench, link) -> None:
    train = TrainPresenter(bench, view, bench.window)
    shown: list[str] = []
    view.show_problem = shown.append
    bench.store.take(model_snapshot(revision=1, problems=(Problem("Wrong."),), runnable=False))
    assert not train.sweep(Sweep((), trials=2))
    bench.store.take(model_snapshot(revision=1, runnable=True))
    assert train.sweep(Sweep((), trials=2))
    assert shown == ["The model cannot run. Wrong.", ""]
