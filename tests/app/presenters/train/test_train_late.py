"""Train's page that is made late, whose engine it is, and what the bar's other buttons send."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.train.pictures.over_time import OverTimePresenter
from app.presenters.train.train import TrainPresenter
from engine.connecting.greeting import About, Welcome
from engine.project import edits
from engine.project.document import replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ChooseWeightsCommand,
    ContinueTrainingCommand,
    HeldSnapshot,
    ImagesSnapshot,
    LoopSnapshot,
    ReadImagesCommand,
    StepColumns,
    StepLineCommand,
    TrainingSnapshot,
)
from tests.app.conftest import SCRIPT, AnsweringLink
from widgets.training.train_view import TrainView

SERVED = Welcome(About(name="engine", pid=7), "steer", serves=True)


def loop(state: str = "running", step: int = 3) -> LoopSnapshot:
    return LoopSnapshot(
        run="l", title="l", state=state,  # pyright: ignore[reportArgumentType]
        step=step, steps_per_second=1.0, steps=StepColumns(), device="cpu",
    )  # fmt: skip


class Desk:
    """`told` is what the view was told: (name, arguments)."""

    def __init__(self, bench: Any, qtbot: Any, make: bool = True) -> None:
        self.bench = bench
        self.view = TrainView()
        qtbot.addWidget(self.view)
        self.told: list[tuple[Any, ...]] = []
        for name in (
            "show_training", "show_devices", "show_engine_state", "show_attached", "clear",
            "show_setup", "show_problem",
        ):  # fmt: skip
            setattr(self.view, name, lambda *given, _name=name: self.told.append((_name, *given)))
        self.held: list[Any] = []
        self.view.bar.show_held = self.held.append
        self.presenter = TrainPresenter(bench, self.view, bench.window)

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [told[1:] for told in self.told if told[0] == name]


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


# -- made late -------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_loop", [True, False])
def test_a_page_that_is_made_late_shows_the_run_or_the_loop(
    bench, link, qtbot, training_snapshot, has_loop: bool
) -> None:
    link.get_ready()
    run = training_snapshot(state="finished")
    bench.store.take(run)
    if has_loop:
        bench.store.take(loop())
    held = HeldSnapshot(at="step", title="cell 1", line=3)
    bench.store.take(held)
    desk = Desk(bench, qtbot)
    ((shown,),) = desk.of("show_training")
    assert isinstance(shown, LoopSnapshot if has_loop else TrainingSnapshot)
    assert desk.held[-1] == held
    (devices,) = desk.of("show_devices")[-1]
    assert [device.name for device in devices] == ["cpu"]
    assert len(desk.of("show_setup")) == 1


def test_without_an_engine_and_a_run_a_page_shows_neither(bench, qtbot) -> None:
    desk = Desk(bench, qtbot)
    assert desk.of("show_training") == desk.of("show_devices") == []
    assert desk.of("show_engine_state") == [("lost",)] and desk.of("show_attached") == [("",)]


# -- whose engine it is ---------------------------------------------------------------------------


def test_the_page_knows_whose_engine_it_has(desk: Desk, link) -> None:
    link.attach_to(SCRIPT)
    link.get_ready()
    assert desk.of("show_attached")[-1] == ("steer",)
    assert desk.of("show_engine_state")[-1] == ("ready",)
    link.close()
    link.start()
    assert desk.of("show_attached")[-1] == ("",)
    assert desk.of("show_engine_state")[-1] == ("starting",)


def test_an_engine_that_serves_windows_tells_all_steps_again(desk: Desk, link) -> None:
    link.attach_to(SERVED)
    assert desk.of("clear") == []
    link.get_ready()
    assert desk.of("clear") == [()] and desk.of("show_attached")[-1] == ("",)


@pytest.mark.parametrize(("state", "after"), [("paused", "failed"), ("finished", "finished")])
def test_a_run_of_this_machine_ends_with_its_engine(
    desk: Desk, bench, link, training_snapshot, state: str, after: str
) -> None:
    bench.store.take(training_snapshot(state=state, remaining_s=5.0))
    link.close()
    newest = bench.newest(TrainingSnapshot)
    assert newest.state == after and (newest.remaining_s is None) == (state == "paused")


def test_another_project_clears_the_plots(desk: Desk, bench, training_snapshot) -> None:
    bench.store.take(training_snapshot(state="paused"))
    bench.files.opened.emit()
    assert desk.of("clear") == [()]


# -- what is shown of the set-up -------------------------------------------------------------------


def test_the_form_follows_the_set_up_and_the_loss_of_the_canvas(desk: Desk, bench) -> None:
    desk.told.clear()
    bench.store.set_project(replace(bench.project, name="other"))
    assert desk.of("show_setup") == []
    training = replace(bench.project.training, epochs=9)
    bench.store.set_project(edits.set_training(bench.project, training))
    assert desk.of("show_setup") == [(training, None)]
    bench.store.set_project(edits.add_block(bench.project, "nn.MSELoss", 0, 0)[0])
    assert desk.of("show_setup")[1:] == [(training, "nn.MSELoss")]


@pytest.mark.parametrize(
    ("change", "goes"),
    [
        ({"subject": ConsoleSubject("net")}, True), ({"objective": Objective("d")}, True),
        ({"name": "other"}, False),
    ],
)  # fmt: skip
def test_words_on_the_subject_before_go_with_it(desk: Desk, bench, change: dict, goes: bool):
    desk.told.clear()
    bench.store.set_project(replace(bench.project, **change))
    assert (("",) in desk.of("show_problem")) == goes


def test_a_setting_that_is_refused_is_shown_as_it_was(desk: Desk, bench) -> None:
    desk.told.clear()
    wrong = replace(bench.project.training, optimizer="optim.Nothing")
    desk.view.form.setup_edited.emit(wrong, "Choose it")
    assert desk.of("show_setup") == [(bench.project.training, None)]
    assert bench.project.training.optimizer != "optim.Nothing" and bench.window.said


# -- the bar's other buttons -----------------------------------------------------------------------


def test_the_bar_goes_on_steps_a_line_and_chooses_weights(desk: Desk, link) -> None:
    wanted: list[bool] = []
    desk.presenter.export_requested.connect(lambda: wanted.append(True))
    bar = desk.view.bar
    bar.continue_requested.emit()
    bar.line_requested.emit()
    bar.weights_requested.emit("best")
    bar.export_requested.emit()
    assert [type(command) for command in link.sent] == [
        ContinueTrainingCommand, StepLineCommand, ChooseWeightsCommand,
    ]  # fmt: skip
    assert link.sent[2].which == "best" and wanted == [True]
    link.fail("There are none.", "Train first.")
    assert desk.of("show_problem")[-1] == ("There are none. Train first.",)
    link.close()
    bar.continue_requested.emit()
    assert desk.of("show_problem")[-1] == (link.unsent,)


# -- what is read over time ------------------------------------------------------------------------


def test_what_is_read_over_time_is_of_the_rank_that_is_chosen(bench, link, qtbot) -> None:
    link.get_ready()
    bench.store.take(loop())
    view = TrainView()
    qtbot.addWidget(view)
    presenter = OverTimePresenter(bench, view, bench.window)
    shown: list[Any] = []
    view.images.show_images = shown.append
    view.modules.show_norms = shown.append
    view.histograms.show_histograms = shown.append
    view.show()
    view.tabs.setCurrentWidget(view.images)
    asked = [each for each in link.sent if isinstance(each, ReadImagesCommand)]
    assert asked and asked[-1].name == view.images.name
    link.answer(ImagesSnapshot(name="a", names=("a",)))
    assert [type(each) for each in shown] == [ImagesSnapshot]
    other = AnsweringLink()
    other.setParent(bench.window)
    other.get_ready()
    presenter.show_ranks(0, {1: other})
    before = len(link.sent)
    view.rank.setCurrentIndex(view.rank.findData(1))
    view.rank.activated.emit(view.rank.currentIndex())
    assert [type(each) for each in other.sent] == [ReadImagesCommand] and len(link.sent) == before
    presenter.show_ranks(0, {})  # that rank has ended: the window's own is read again
    assert isinstance(link.sent[-1], ReadImagesCommand) and len(link.sent) == before + 1
