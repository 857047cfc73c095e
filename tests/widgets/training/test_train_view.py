"""The Train workspace: the form, the run bar, and the plots of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QProgressBar,
    QPushButton,
    QSplitter,
    QWidget,
)

from engine.project.catalogue import datasets, optimizers
from engine.project.document import DataSetup, TrainingSetup, replace
from engine.project.limits import MAX_BATCH_SIZE, MAX_EPOCHS, MAX_SEED
from engine.project.updates import update_rule
from engine.protocol import (
    WATCHED_FIGURES,
    BestSoFar,
    Device,
    EpochRow,
    ErrorReport,
    LoopSnapshot,
    RunMark,
    StepColumns,
    TrainingMemory,
    TrainingSnapshot,
)
from tests.labels import said
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme
from widgets.fields import TextField
from widgets.forms import ParamForm
from widgets.training.plot_board import MAX_FIGURES, memory_text
from widgets.training.run_words import at_chance, cut_off_text, progress_text, result_text
from widgets.training.train_view import TrainView

pytestmark = pytest.mark.one_program
STEPS = StepColumns(
    step=(1, 2),
    loss=(2.5, 2.0),
    accuracy=(0.25, 0.5),
    gradient_norm=(1.5, 1.25),
    learning_rate=(0.1, 0.05),
    step_ms=(0.75, 0.5),
    rss_bytes=(400 * 2**20, 401 * 2**20),
    samples_per_second=(math.nan, 64_000.0),
)
ROWS = (
    EpochRow(1, 10, 2.0, 0.5, 2.125, 0.45),
    EpochRow(2, 20, 1.0, 0.9, 1.25, 0.875),
    EpochRow(3, 30, 0.5, 0.95, 1.5, 0.85),
)


def snapshot(state: str = "running", **changes) -> TrainingSnapshot:
    fields = {
        "run": "a",
        "state": state,
        "step": 30,
        "total_steps": 120,
        "epoch": 4,
        "epochs": 12,
        "steps_per_second": 1500.0,
        "remaining_s": 65.0 if state == "running" else None,
        "steps": StepColumns(),
        "epoch_rows": (),
        "device": "cpu",
    }
    return TrainingSnapshot(**{**fields, **changes})


def shown_view() -> TrainView:
    view = TrainView()
    theme.dress(view)
    view.resize(1440, 900)
    view.show_engine_state("ready")
    view.show()
    return view


@pytest.fixture(scope="module")
def shared_view(qapp) -> Iterator[TrainView]:
    """To build one takes longer than most tests."""
    view = shown_view()
    yield view
    view.close()
    view.deleteLater()


@pytest.fixture
def view(request, qtbot, shared_view: TrainView) -> TrainView:
    """As before the first run, with an engine that is ready. That of the module, but for tests that
    change what does not come back with it."""
    if request.node.get_closest_marker("own_program"):
        view = shown_view()
        qtbot.addWidget(view)
    else:
        view = shared_view
        view.clear()
        view.show_setup(TrainingSetup(), None)
        view.show_attached("")
        view.show_engine_state("ready")
    qtbot.waitExposed(view)
    return view


def drawn_points(view: TrainView) -> int:
    x, _ = view.board.plots["loss"]._canvas.curves["loss"].getData()
    return 0 if x is None else len(x)


def button(view: TrainView, name: str) -> QPushButton:
    found = view.findChild(QPushButton, f"{name}_button")
    assert found is not None
    return found


def enabled(view: TrainView) -> set[str]:
    names = ("train", "pause", "step", "stop", "resume", "export")
    return {n for n in names if button(view, n).isEnabled() and button(view, n).isVisibleTo(view)}


def combo(view: TrainView, name: str) -> QComboBox:
    found = view.findChild(QComboBox, name)
    assert found is not None
    return found


def choose(view: TrainView, name: str, key: str) -> None:
    box = combo(view, name)
    box.setCurrentIndex(box.findData(key))
    box.activated.emit(box.currentIndex())


def type_into(view: TrainView, qtbot, form: str, name: str, value: str) -> None:
    found = view.findChild(ParamForm, form)
    assert found is not None
    field = found.field(name)
    assert isinstance(field, TextField)
    field.selectAll()
    qtbot.keyClicks(field, value)
    qtbot.keyClick(field, Qt.Key.Key_Return)


# -- the run ---------------------------------------------------------------------------------------


def test_every_number_reaches_its_plot(view: TrainView) -> None:
    view.show_training(snapshot(steps=STEPS, epoch_rows=ROWS))
    view.board.refresh()
    newest = {
        key: value
        for plot in view.board.plots.values()
        for key, value in plot.legend_values().items()
    }
    assert newest == {
        "loss": 2.0,
        "train_loss": 0.5,
        "validation_loss": 1.5,
        "accuracy": 50.0,
        "train_accuracy": 95.0,
        "validation_accuracy": 85.0,
        "gradient_norm": 1.25,
        "learning_rate": 0.05,
        "step_ms": 0.5,
        "samples_per_second": 64_000.0,
        "gpu_percent": None,
        "rss_bytes": 401.0,
        "cuda_allocated_bytes": None,
        "cuda_reserved_bytes": None,
    }
    legend = view.board.plots["memory"].findChild(QLabel, "plot_legend")
    assert legend is not None and "<b>401&nbsp;MiB</b>" in legend.text()
    assert view.board.plots["loss"].tracks["validation_loss"].raw.x.tolist() == [10, 20, 30]


def test_cuda_memory_is_shown_where_there_is_some(view: TrainView) -> None:
    steps = StepColumns(
        step=(1,), loss=(1.0,), cuda_allocated_bytes=(2**30,), cuda_reserved_bytes=(2**31,)
    )
    view.show_training(snapshot(steps=steps, device="cuda:0"))
    assert view.board.plots["memory"].legend_values() == {
        "rss_bytes": None,
        "cuda_allocated_bytes": 1024.0,
        "cuda_reserved_bytes": 2048.0,
    }


def test_progress_says_where_the_run_is(view: TrainView) -> None:
    view.show_training(snapshot(steps=STEPS, epoch_rows=ROWS))
    assert said(view, "train_line") == (
        "epoch 4 of 12 · step 30 of 120 · 1,500 steps/s · 1 min 5 s left"
        " · best validation accuracy 87.5 % (epoch 2) · on cpu"
    )
    bar = view.findChild(QProgressBar, "train_progress")
    assert bar is not None and (bar.value(), bar.maximum()) == (30, 120)


def test_a_new_run_clears_the_plots_and_the_same_one_goes_on(view: TrainView) -> None:
    view.show_training(snapshot(steps=STEPS, epoch_rows=ROWS))
    view.show_training(snapshot(steps=StepColumns(step=(3,), loss=(1.0,))))
    assert view.board.plots["loss"].tracks["loss"].raw.x.tolist() == [1, 2, 3]
    view.show_training(snapshot(run="b", steps=StepColumns(step=(1,), loss=(9.0,))))
    assert view.board.plots["loss"].tracks["loss"].raw.x.tolist() == [1]
    assert len(view.board.plots["accuracy"].tracks["accuracy"].raw) == 0
    assert "best" not in said(view, "train_line")


@pytest.mark.own_program
def test_plots_are_painted_at_the_next_frame_only(view: TrainView, qtbot) -> None:
    view.show_training(snapshot(steps=STEPS))
    assert drawn_points(view) == 0
    qtbot.waitUntil(lambda: drawn_points(view) == 2)


@pytest.mark.own_program
def test_a_frame_paints_two_plots_and_the_next_frames_the_others_in_turn(view: TrainView) -> None:
    view.board.refresh()
    painted = []
    for name, plot in view.board.plots.items():
        plot.refresh = lambda name=name, whole=plot.refresh: (painted.append(name), whole())
    view.show_training(snapshot(steps=STEPS, epoch_rows=ROWS))
    view.board._frame.timeout.emit()
    assert len(painted) == 2
    for _ in range(3):
        view.board._frame.timeout.emit()
    assert sorted(painted) == sorted(view.board.plots.keys() - {"gpu_percent"})  # it is hidden


@pytest.mark.own_program
def test_a_hidden_page_paints_when_it_is_shown_again(view: TrainView, qtbot) -> None:
    view.hide()
    view.show_training(snapshot(steps=STEPS))
    view.board.refresh()
    assert drawn_points(view) == 0
    view.show()
    qtbot.waitUntil(lambda: drawn_points(view) == 2)


def test_buttons_follow_the_state(view: TrainView) -> None:
    view.show_engine_state("starting")
    assert enabled(view) == set()
    assert "torch is loading" in said(view, "train_line")
    view.show_engine_state("ready")
    assert enabled(view) == {"train", "step"}
    view.show_training(snapshot("running"))
    assert enabled(view) == {"pause", "stop"}
    view.show_training(snapshot("paused"))
    assert enabled(view) == {"train", "step", "stop"}
    assert button(view, "train").text() == "Continue"
    view.show_training(snapshot("stopped", checkpoint="/runs/a.pt", checkpoint_step=25))
    assert enabled(view) == {"train", "step", "resume", "export"}
    view.show_training(snapshot("finished", checkpoint="/runs/a.pt", checkpoint_step=30))
    assert enabled(view) == {"train", "step", "export"}
    view.show_training(snapshot("running"))
    view.show_engine_state("lost")
    assert enabled(view) == set()


@pytest.mark.parametrize(
    ("state", "name", "signal"),
    [
        (None, "train", "train_requested"),
        (None, "step", "step_requested"),
        ("running", "pause", "pause_requested"),
        ("running", "stop", "stop_requested"),
        ("paused", "train", "continue_requested"),
        ("paused", "step", "step_requested"),
        ("paused", "stop", "stop_requested"),
        ("stopped", "resume", "resume_requested"),
        ("finished", "export", "export_requested"),
        ("finished", "train", "train_requested"),
    ],
)
def test_buttons_ask(view: TrainView, qtbot, state, name, signal) -> None:
    if state is not None:
        view.show_training(snapshot(state, checkpoint="/runs/a.pt"))
    with qtbot.waitSignal(getattr(view.bar, signal)):
        qtbot.mouseClick(button(view, name), Qt.MouseButton.LeftButton)


def test_result_in_words(view: TrainView) -> None:
    view.show_training(snapshot("finished", step=120, epoch=12, epoch_rows=ROWS))
    assert said(view, "train_result") == (
        "Finished 12 epochs, 120 steps. Validation accuracy 85.0 %, at best 87.5 % in epoch 2."
        " Next: export the weights, or train again."
    )
    view.show_training(snapshot("finished", step=1, epoch=1, epochs=1))
    assert said(view, "train_result").startswith("Finished 1 epoch, 1 step.")
    view.show_training(snapshot("stopped", checkpoint="/c.pt", checkpoint_step=25))
    assert said(view, "train_result") == (
        "Stopped after 30 of 120 steps. Validation accuracy 85.0 %, at best 87.5 % in epoch 2."
        " The last checkpoint is of step 25: Resume goes on from there."
    )
    view.show_training(snapshot("running"))
    assert said(view, "train_result") == ""


def test_a_lost_rank_tells_of_the_checkpoint_once(view: TrainView) -> None:
    error = ErrorReport(
        type="RankLost", message="Rank 1 was ended by SIGKILL.",
        hint="The run's last checkpoint is step 25. Go on from it with Resume.",
    )  # fmt: skip
    view.show_training(snapshot("failed", error=error, checkpoint="/c", checkpoint_step=25))
    assert said(view, "train_result") == (
        "Failed after 30 of 120 steps. RankLost: Rank 1 was ended by SIGKILL. The run's last"
        " checkpoint is step 25. Go on from it with Resume."
    )


def test_the_tabs_stay_where_they_are_while_the_numbers_of_a_run_change(
    view: TrainView, qapp
) -> None:
    view.resize(900, 600)
    view.show()
    heights, rows = [], set()
    line = view.findChild(QLabel, "train_line")
    assert line is not None
    for step in (11, 111_111, 12, 111_112):
        for _ in range(2):
            running = snapshot("running", step=step, total_steps=10**6, steps_per_second=step)
            view.show_training(running)
            qapp.processEvents()
        heights.append(view.bar.height())
        rows.add(line.heightForWidth(line.width()))
    assert len(rows) > 1
    assert len(set(heights[1:])) == 1  # it grows once


def test_the_end_of_a_run_on_numbers_tells_r2_and_rmse(view: TrainView) -> None:
    def tip_of(plot: QWidget) -> str:
        return " ".join(label.toolTip() for label in plot.findChildren(QLabel))

    def result(r2: float) -> str:
        row = EpochRow(12, 120, 0.5, math.nan, 0.6, math.nan, {}, {"R2": r2, "RMSE": 54.125})
        return result_text(snapshot("finished"), row, None)

    assert " Validation R2 0.4531, RMSE 54.12. Next: export" in result(0.45312)
    assert "Always guessing the mean of the targets has an R2 of 0" in result(-0.01)
    row = EpochRow(1, 1, 0.5, math.nan, 0.6, math.nan, {"R2": 0.5, "mine": 1.0}, {})
    view.show_training(snapshot("running", epoch_rows=(row,)))
    assert {"R2", "mine"} <= set(view.board.figures)
    assert "explains" in tip_of(view.board.figures["R2"])
    assert "which the code names" in tip_of(view.board.figures["mine"])


def test_a_data_set_of_numbers_brings_its_loss_and_one_of_classes_that_of_classes(
    view: TrainView,
) -> None:
    def chosen(setup: TrainingSetup, key: str) -> TrainingSetup:
        edited: list[TrainingSetup] = []
        view.show_setup(setup, None)
        view.form.setup_edited.connect(lambda new, text: edited.append(new))
        view.form.data._choose(key)
        return edited[-1]

    numbers = chosen(TrainingSetup(), "diabetes")
    assert (numbers.data.kind, numbers.loss) == ("diabetes", "nn.MSELoss")
    assert chosen(numbers, "iris").loss == "nn.CrossEntropyLoss"
    assert chosen(TrainingSetup(loss="nn.MSELoss"), "wine").loss == "nn.MSELoss"


def test_an_end_at_chance_level_is_said_and_offers_no_export(view: TrainView) -> None:
    rows = (EpochRow(1, 10, 2.3, 0.1, 2.3, 0.11),)
    end = {"epoch_rows": rows, "guess_accuracy": 0.1, "guess_labels": 400}
    view.show_training(snapshot("finished", **end))
    result = said(view, "train_result")
    assert "Always guessing the most frequent class reaches 10.0 %" in result
    assert "fresh weights" in result and "export" not in result
    assert view.bar.weights.fresh


@pytest.mark.parametrize(("accuracy", "chance"), [(0.13, True), (0.1301, False), (0.09, True)])
def test_chance_level_ends_two_standard_deviations_above_guessing(accuracy, chance) -> None:
    row = EpochRow(1, 10, 2.3, 0.1, 2.3, accuracy)  # sqrt(0.1 * 0.9 / 400) is 0.015
    end = snapshot("finished", guess_accuracy=0.1, guess_labels=400)
    assert at_chance(end, row) == chance
    assert not at_chance(snapshot("finished"), row)
    without_validation = EpochRow(1, 10, 2.3, accuracy, math.nan, math.nan)
    assert at_chance(end, without_validation) == chance
    without_accuracy = EpochRow(1, 10, 2.3, accuracy, 2.3, math.nan)
    assert not at_chance(end, without_accuracy)


def test_weights_are_chosen_beside_train_and_not_during_a_run(view: TrainView) -> None:
    box = combo(view, "run_weights")
    view.bar.weights.choose_fresh(True)
    assert view.bar.weights.fresh and box.currentText() == "fresh weights"
    view.show_training(snapshot("running"))
    assert not box.isVisibleTo(view)
    view.show_training(snapshot("stopped"))
    assert box.isVisibleTo(view) and view.bar.weights.fresh  # the user's choice stays


def test_fresh_weights_after_a_spoilt_run_are_for_one_run(view: TrainView) -> None:
    diverged = ErrorReport(type="Diverged", message="The loss became nan.")
    view.show_training(snapshot("failed", error=diverged))
    assert view.bar.weights.fresh
    view.show_training(snapshot("running", run="b"))
    view.show_training(snapshot("finished", run="b"))
    assert not view.bar.weights.fresh


def test_the_users_own_choice_of_fresh_weights_is_not_taken_back(view: TrainView, qtbot) -> None:
    diverged = ErrorReport(type="Diverged", message="The loss became nan.")
    view.show_training(snapshot("failed", error=diverged))
    box = combo(view, "run_weights")
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
        qtbot.keyClick(box, key)
    view.show_training(snapshot("running", run="b"))
    view.show_training(snapshot("finished", run="b"))
    assert view.bar.weights.fresh


def test_a_failure_says_what_and_what_to_try(view: TrainView) -> None:
    error = ErrorReport("RuntimeError", "mat1 and mat2 differ.", "Set in_features to 64.")
    view.show_training(snapshot("failed", error=error))
    assert said(view, "train_result") == (
        "Failed after 30 of 120 steps. RuntimeError: mat1 and mat2 differ. Set in_features to 64."
    )
    label = view.findChild(QLabel, "train_result")
    assert label is not None and label.property("role") == "error"


def test_a_run_that_diverges_at_once_says_so_in_its_plot(view: TrainView) -> None:
    diverged = ErrorReport(type="Diverged", message="The loss became nan at step 1.")
    view.show_training(snapshot("failed", step=0, error=diverged))
    view.board.refresh()
    caption = view.board.plots["loss"].findChild(QLabel, "plot_caption")
    assert caption is not None and caption.isVisibleTo(view)
    assert caption.text() == "The loss became nan at step 1."
    view.show_training(snapshot("running", run="b"))
    assert not caption.isVisibleTo(view)


def test_a_lost_engine_ends_its_run_but_not_its_checkpoint(view: TrainView) -> None:
    view.show_training(snapshot("running", checkpoint="/c.pt", checkpoint_step=25))
    view.show_engine_state("lost")
    assert said(view, "train_result") == (
        "The engine stopped after 30 of 120 steps."
        " The last checkpoint is of step 25: Resume goes on from there."
    )
    view.show_engine_state("starting")
    view.show_engine_state("ready")
    assert enabled(view) == {"train", "step", "resume", "export"}
    view.show_training(snapshot("running", run="b"))
    assert enabled(view) == {"pause", "stop"}
    assert said(view, "train_result") == ""


def test_a_run_that_was_over_is_not_cut_off(view: TrainView) -> None:
    view.show_training(snapshot("finished", step=120, epoch=12))
    view.show_engine_state("lost")
    assert said(view, "train_result").startswith("Finished 12 epochs")


def test_a_warning_is_shown_while_the_run_goes_on(view: TrainView) -> None:
    warning = ErrorReport("OSError", "The checkpoint could not be written.", "Free some space.")
    view.show_training(snapshot("running", error=warning))
    words = "The checkpoint could not be written. Free some space."
    assert said(view, "train_result") == words
    assert enabled(view) == {"pause", "stop"}


def test_what_training_keeps_is_told_beside_the_memory(view: TrainView) -> None:
    memory = TrainingMemory(parameter_bytes=4096, gradient_bytes=4096, optimizer_bytes=8192)
    view.show_training(snapshot(memory=memory))
    caption = view.board.plots["memory"].findChild(QLabel, "plot_caption")
    assert caption is not None
    assert (
        caption.text() == "parameters\xa04\xa0KiB · gradients\xa04\xa0KiB · optimizer\xa08\xa0KiB"
    )


def test_a_problem_is_shown_and_taken_back(view: TrainView) -> None:
    view.show_problem("The model has no output. Add an Output block.")
    assert said(view, "train_result") == "The model has no output. Add an Output block."
    view.show_problem("")
    assert said(view, "train_result") == ""


def test_runs_without_accuracy_stay_quiet_about_it(view: TrainView) -> None:
    row = EpochRow(1, 10, 2.0, math.nan, 2.0, math.nan)
    view.show_training(snapshot("finished", epoch_rows=(row,)))
    assert "accuracy" not in said(view, "train_line") + said(view, "train_result")


# -- the set-up ------------------------------------------------------------------------------------


@pytest.mark.own_program
def test_the_set_up_can_be_folded_away_the_run_cannot(view: TrainView) -> None:
    splitter = view.form.parentWidget()
    assert isinstance(splitter, QSplitter)
    splitter.setSizes([0, 1400])
    assert splitter.sizes()[0] == 0
    splitter.setSizes([1400, 0])
    assert splitter.sizes()[1] > 0


def test_shows_the_setup(view: TrainView) -> None:
    setup = TrainingSetup(
        data=DataSetup("spirals", {"turns": 2.5}, 0.25),
        loss="nn.MSELoss",
        optimizer="optim.SGD",
        optimizer_params={"lr": 0.1},
        batch_size=32,
    )
    view.show_setup(setup, None)
    assert combo(view, "setup_data").currentText() == "Spirals"
    assert combo(view, "setup_loss").currentData() == "nn.MSELoss"
    assert combo(view, "setup_optimizer").currentText() == "SGD"
    assert "one-hot" in said(view, "setup_loss_words")
    shown = {}
    for form, name in (
        ("setup_data_form", "turns"),
        ("setup_split_form", "validation_fraction"),
        ("setup_optimizer_form", "lr"),
        ("setup_optimizer_form", "momentum"),
        ("setup_run_form", "batch_size"),
    ):
        found = view.findChild(ParamForm, form)
        assert found is not None
        field = found.field(name)
        assert isinstance(field, TextField)
        shown[name] = field.text_value()
    assert shown == {
        "turns": "2.5",
        "validation_fraction": "0.25",
        "lr": "0.1",
        "momentum": "0.0",
        "batch_size": "32",
    }


@pytest.mark.parametrize(
    ("form", "name", "typed", "expected", "words"),
    [
        (
            "setup_run_form",
            "batch_size",
            "32",
            TrainingSetup(batch_size=32),
            "Set batch size to 32",
        ),
        (
            "setup_optimizer_form",
            "lr",
            "0.01",
            TrainingSetup(optimizer_params={"lr": 0.01}),
            "Set lr to 0.01",
        ),
        (
            "setup_split_form",
            "validation_fraction",
            "0.3",
            TrainingSetup(data=DataSetup(validation_fraction=0.3)),
            "Set validation fraction to 0.3",
        ),
    ],
)
def test_edits_tell_the_new_setup(view, qtbot, form, name, typed, expected, words) -> None:
    view.show_setup(TrainingSetup(), None)
    with qtbot.waitSignal(view.form.setup_edited) as edited:
        type_into(view, qtbot, form, name, typed)
    assert edited.args == [expected, words]


def test_data_parameters_are_edited_too(view: TrainView, qtbot) -> None:
    view.show_setup(TrainingSetup(data=DataSetup("moons", {"noise": 0.25})), None)
    with qtbot.waitSignal(view.form.setup_edited) as edited:
        type_into(view, qtbot, "setup_data_form", "samples", "500")
    assert edited.args[0].data == DataSetup("moons", {"noise": 0.25, "samples": 500})


def test_a_default_is_not_kept_in_the_document(view: TrainView, qtbot) -> None:
    default = next(p.default for p in optimizers()["optim.Adam"] if p.name == "lr")
    view.show_setup(TrainingSetup(optimizer_params={"lr": 0.5}), None)
    with qtbot.waitSignal(view.form.setup_edited) as edited:
        type_into(view, qtbot, "setup_optimizer_form", "lr", str(default))
    assert edited.args[0] == TrainingSetup()


def test_what_is_wrong_is_said_and_not_told(view: TrainView, qtbot) -> None:
    view.show_setup(TrainingSetup(), None)
    with qtbot.assertNotEmitted(view.form.setup_edited):
        type_into(view, qtbot, "setup_run_form", "batch_size", "0")
    form = view.findChild(ParamForm, "setup_run_form")
    assert form is not None and "batch_size" in form.error("batch_size")


@pytest.mark.own_program
def test_choices_tell_the_new_setup(view: TrainView, qtbot) -> None:
    view.show_setup(TrainingSetup(optimizer_params={"lr": 0.5, "betas": (0.8, 0.9)}), None)
    view.show_devices((Device("cpu", "CPU"), Device("cuda:0", "NVIDIA H200", 2**37)))
    told: list[tuple] = []
    view.form.setup_edited.connect(lambda setup, what: told.append((setup, what)))
    choose(view, "setup_data", "circles")
    choose(view, "setup_optimizer", "optim.SGD")
    choose(view, "setup_device", "cuda:0")
    assert [what for _, what in told] == [
        "Use the data set Circles",
        "Use the optimizer SGD",
        "Train on cuda:0",
    ]
    assert told[0][0].data.kind == "circles"
    assert (told[1][0].optimizer, told[1][0].optimizer_params) == ("optim.SGD", {"lr": 0.5})
    assert told[2][0].device == "cuda:0"
    with qtbot.waitSignal(view.form.loss.loss_edited) as loss:
        choose(view, "setup_loss", "nn.MSELoss")
    assert loss.args == ["nn.MSELoss"]


def test_a_loss_block_on_the_canvas_decides(view: TrainView) -> None:
    view.show_setup(TrainingSetup(loss="nn.CrossEntropyLoss"), "nn.MSELoss")
    assert combo(view, "setup_loss").currentData() == "nn.MSELoss"
    assert not combo(view, "setup_loss").isEnabled()
    assert "canvas" in said(view, "setup_loss_words")


@pytest.mark.own_program
def test_devices_are_named_and_a_missing_one_is_told(view: TrainView) -> None:
    view.show_setup(TrainingSetup(device="cuda:1"), None)
    assert said(view, "setup_device_words") == ""
    view.show_devices((Device("cpu", "CPU"), Device("cuda:0", "NVIDIA H200", 141 * 2**30)))
    box = combo(view, "setup_device")
    assert [box.itemText(i) for i in range(box.count())] == [
        "CPU",
        "NVIDIA H200 (141 GiB)",
        "cuda:1",
    ]
    assert box.currentData() == "cuda:1"
    assert "no cuda:1" in said(view, "setup_device_words")


@pytest.mark.own_program
def test_every_control_has_a_name_a_tooltip_and_an_accessible_name(view: TrainView) -> None:
    view.show_training(snapshot("stopped", checkpoint="/c.pt"))
    for kind in (QPushButton, QComboBox):
        for control in view.findChildren(kind):
            assert control.objectName() and control.toolTip() and control.accessibleName()


@pytest.mark.own_program
def test_a_run_looks_as_it_did(view: TrainView, qapp) -> None:
    memory = TrainingMemory(450 * 2**20, 2**20, 450 * 2**20, 900 * 2**20)
    view.show_training(snapshot("paused", steps=STEPS, epoch_rows=ROWS, memory=memory))
    for plot in view.board.plots.values():
        plot.refresh()
    qapp.processEvents()
    assert_same_picture(view, "train_run")
    assert_same_words(view.bar, "train_run")


@pytest.mark.parametrize(
    ("engine", "state", "words"),
    [
        ("starting", "", "The engine is starting"),
        ("lost", "", "The engine has stopped"),
        ("ready", "", "Train the model"),
        ("ready", "paused", "Continue the run"),
        ("ready", "finished", "Train the model"),
    ],
)
def test_the_button_says_why_it_waits_or_what_it_does(
    view: TrainView, engine, state, words
) -> None:
    if state:
        view.show_training(snapshot(state))
    view.show_engine_state(engine)
    assert button(view, "train").toolTip().startswith(words)
    assert button(view, "train").isEnabled() == (engine == "ready")


@pytest.mark.own_program
@pytest.mark.parametrize("unknown", ["optim.Later", "spiral_galaxies"])
def test_a_choice_that_this_version_does_not_know_is_offered_once(view: TrainView, unknown) -> None:
    boxes = {name: combo(view, f"setup_{name}") for name in ("optimizer", "data", "loss")}
    counts = {name: box.count() for name, box in boxes.items()}
    setup = TrainingSetup(optimizer=unknown, data=DataSetup(unknown), loss=unknown)
    for shown in (setup, TrainingSetup(), setup):
        view.show_setup(shown, None)
    assert {name: box.count() for name, box in boxes.items()} == {
        name: count + 1 for name, count in counts.items()
    }
    assert {box.currentData() for box in boxes.values()} == {unknown}
    assert said(view, "setup_data_words") == "This version does not know this data set."
    assert said(view, "setup_optimizer_words") == ""
    view.show_setup(TrainingSetup(), None)
    assert boxes["optimizer"].currentData() == TrainingSetup().optimizer


def test_the_set_up_is_told_in_words(view: TrainView) -> None:
    view.show_setup(TrainingSetup(data=DataSetup("moons"), optimizer="optim.SGD"), None)
    moons = datasets()["moons"]
    assert said(view, "setup_data_words") == (
        f"{moons.summary} Shape of a sample: {moons.sample_shape}. {moons.classes} classes."
    )
    assert said(view, "setup_loss_words").startswith("Takes raw scores")
    rule = update_rule("optim.SGD", {})
    assert said(view, "setup_optimizer_words") == f"new = {rule.step}\n{rule.words}".strip()
    words = view.findChild(QLabel, "setup_optimizer_words")
    assert words is not None and words.toolTip().startswith(
        "How the optimizer updates each element"
    )


def test_choosing_what_is_chosen_edits_nothing(view: TrainView) -> None:
    view.show_setup(TrainingSetup(), None)
    view.show_devices((Device("cpu", "CPU"),))
    told: list[object] = []
    view.form.setup_edited.connect(lambda *edit: told.append(edit))
    view.form.loss.loss_edited.connect(told.append)
    for name in ("data", "loss", "optimizer", "device"):
        box = combo(view, f"setup_{name}")
        box.activated.emit(box.currentIndex())
    assert told == []


def test_every_field_of_a_run_is_shown_and_bounded(view: TrainView) -> None:
    view.show_setup(TrainingSetup(batch_size=7, epochs=8, seed=9), None)
    form = view.findChild(ParamForm, "setup_run_form")
    assert form is not None
    shown = {}
    for name in ("batch_size", "epochs", "seed"):
        field = form.field(name)
        assert isinstance(field, TextField)
        shown[name] = (field.text_value(), field.toolTip().splitlines()[-1])
    assert shown == {
        "batch_size": ("7", f"Between 1 and {MAX_BATCH_SIZE:,}."),
        "epochs": ("8", f"Between 1 and {MAX_EPOCHS:,}."),
        "seed": ("9", f"Between 0 and {MAX_SEED:,}."),
    }
    split = view.findChild(ParamForm, "setup_split_form")
    assert split is not None
    assert split.field("validation_fraction").toolTip().splitlines()[-1] == "Between 0 and 0.9."


def test_the_wheel_scrolls_the_form_and_changes_no_choice(view: TrainView) -> None:
    view.show_setup(TrainingSetup(), None)
    for name in ("data", "loss", "optimizer", "device"):
        box = combo(view, f"setup_{name}")
        before = box.currentIndex()
        at = QPointF(box.rect().center())
        event = QWheelEvent(
            at, box.mapToGlobal(at), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(box, event)
        assert box.currentIndex() == before


def test_a_set_without_settings_hides_their_form(view: TrainView) -> None:
    form = view.findChild(ParamForm, "setup_data_form")
    assert form is not None
    for key, kind in datasets().items():
        view.show_setup(TrainingSetup(data=DataSetup(key)), None)
        assert form.isVisibleTo(view) == bool(kind.params)


BEST = EpochRow(2, 20, 1.0, 0.9, 1.25, 0.875)


@pytest.mark.parametrize(
    ("state", "changes", "best", "line"),
    [
        ("paused", {"samples_per_second": 48_000.0}, None,
         "1,500 steps/s · 48,000 samples/s · on cpu"),
        ("paused", {"remaining_s": 65.0}, None, "1,500 steps/s · on cpu"),
        ("running", {"steps_per_second": 0.0, "remaining_s": None}, None, "on cpu"),
        ("running", {"steps_per_second": 0.5, "remaining_s": 0.0}, None,
         "0.5 steps/s · 0 s left · on cpu"),
        ("failed", {"device": "cuda:0"}, BEST,
         "1,500 steps/s · best validation accuracy 87.5 % (epoch 2) · on cuda:0"),
        ("finished", {}, BEST, "1,500 steps/s · on cpu"),
        ("stopped", {}, BEST, "1,500 steps/s · on cpu"),
    ],
)  # fmt: skip
def test_the_progress_in_one_line(state, changes, best, line) -> None:
    shown = progress_text(snapshot(state, **changes), best)
    assert shown == f"epoch 4 of 12 · step 30 of 120 · {line}"


ERROR = ErrorReport("RuntimeError", "No.")


@pytest.mark.parametrize(
    ("state", "changes", "rows", "words"),
    [
        ("running", {}, (), ""),
        ("running", {"error": ERROR}, (), "No."),
        (
            "paused",
            {},
            (),
            "Paused. Step runs one optimizer step, Back undoes one; Continue runs the rest.",
        ),
        ("failed", {}, (), "Failed after 30 of 120 steps."),
        ("failed", {"error": ERROR}, (), "Failed after 30 of 120 steps. RuntimeError: No."),
        ("stopped", {}, (), "Stopped after 30 of 120 steps."),
        ("stopped", {}, (BEST, BEST), "Stopped after 30 of 120 steps. Validation accuracy 87.5 %."),
        ("stopped", {}, (ROWS[2], BEST),
         "Stopped after 30 of 120 steps. Validation accuracy 85.0 %, at best 87.5 % in epoch 2."),
        ("stopped", {}, (ROWS[2], None), "Stopped after 30 of 120 steps."),
        ("failed", {"checkpoint": "/c.pt", "checkpoint_step": 1025}, (),
         "Failed after 30 of 120 steps."
         " The last checkpoint is of step 1,025: Resume goes on from there."),
    ],
)  # fmt: skip
def test_the_end_of_a_run_in_words(state, changes, rows, words) -> None:
    last, best = rows or (None, None)
    assert result_text(snapshot(state, **changes), last, best) == words


def test_a_run_cut_off_before_its_first_checkpoint_starts_anew() -> None:
    assert cut_off_text(snapshot()) == (
        "The engine stopped after 30 of 120 steps. It had written no checkpoint yet: train again."
    )


def test_memory_that_is_not_taken_is_not_told() -> None:
    assert memory_text(TrainingMemory()) == ""
    assert memory_text(TrainingMemory(buffer_bytes=1024)) == "buffers\xa01\xa0KiB"
    memory = TrainingMemory(parameter_bytes=2048, gradient_bytes=1024, buffer_bytes=512)
    told = memory_text(memory).replace("\xa0", " ")
    assert told == "parameters 2 KiB · gradients 1 KiB · buffers 512 B"


def test_a_failed_or_warned_run_is_red_and_a_good_one_is_not(view: TrainView) -> None:
    label = view.findChild(QLabel, "train_result")
    assert label is not None
    for state, error, role in (
        ("failed", None, "error"),
        ("finished", None, ""),
        ("running", ERROR, "error"),
        ("paused", None, ""),
    ):
        view.show_training(snapshot(state, error=error))
        assert (label.property("role") or "") == role
    view.show_problem("The model has no output.")
    assert label.property("role") == "error"
    view.show_training(snapshot("paused"))
    assert said(view, "train_result").startswith("Paused.")
    view.show_engine_state("lost")
    assert label.property("role") == "error"
    assert said(view, "train_result").startswith("The engine stopped after 30 of 120 steps.")


def test_a_long_line_or_result_does_not_widen_the_bar(view: TrainView) -> None:
    width = view.bar.minimumSizeHint().width()
    view.show_training(snapshot("failed", error=ErrorReport("E", "long words " * 60)))
    assert view.bar.minimumSizeHint().width() <= width + 200
    view.show_training(snapshot("running", device="a device with a long name " * 20))
    assert view.bar.minimumSizeHint().width() <= width + 200
    result = view.findChild(QLabel, "train_result")
    assert result is not None and result.wordWrap()


def test_the_best_epoch_is_the_first_with_the_highest_accuracy(view: TrainView) -> None:
    rows = (EpochRow(1, 1, 1, 0, 1, 0.5), EpochRow(2, 2, 1, 0, 1, math.nan),
            EpochRow(3, 3, 1, 0, 1, 0.75), EpochRow(4, 4, 1, 0, 1, 0.75))  # fmt: skip
    for row in rows:
        view.show_training(snapshot(epoch_rows=(row,)))
    assert "best validation accuracy 75.0 % (epoch 3)" in said(view, "train_line")


def test_changes_while_a_run_goes_on_are_said_to_come_later(view: TrainView) -> None:
    for state, note in (("running", True), ("paused", True), ("stopped", False)):
        view.show_training(snapshot(state))
        assert (said(view, "setup_note") != "") == note


@pytest.mark.own_program
def test_the_page_says_what_to_do_until_a_run_is_shown(view: TrainView) -> None:
    empty = view.findChild(QLabel, "train_empty")
    assert empty is not None and empty.isVisible() and not view.board.plots["loss"].isVisible()
    assert not view.findChild(QProgressBar, "train_progress").isVisible()
    assert said(view, "train_line") == "Ready to train"
    view.show_training(snapshot())
    assert not empty.isVisible() and view.board.plots["loss"].isVisible()
    assert view.findChild(QProgressBar, "train_progress").isVisible()


@pytest.mark.own_program
def test_plots_stand_in_rows_of_which_the_first_is_twice_as_high(view: TrainView, qapp) -> None:
    view.show_training(snapshot())
    qapp.processEvents()
    loss, accuracy, *rest = (p.geometry() for p in view.board.plots.values() if p.isVisible())
    assert abs(loss.width() - accuracy.width()) <= 1 and loss.top() == accuracy.top()
    assert len({place.top() for place in rest}) == 2  # three and two
    assert rest[3].left() == loss.left() and rest[4].right() == accuracy.right()
    assert loss.height() > 1.5 * rest[0].height()
    assert abs(rest[0].height() - rest[4].height()) <= 1
    assert view.board.plots["loss"].smoothing and view.board.plots["accuracy"].smoothing
    assert not view.board.plots["memory"].smoothing


def test_a_resumed_run_is_drawn_anew(view: TrainView) -> None:
    view.show_training(snapshot(steps=STEPS, reply_to=1))
    view.show_training(snapshot(steps=STEPS, reply_to=2))
    assert view.board.plots["loss"].tracks["loss"].raw.x.tolist() == [1, 2]


def test_a_run_without_validation_or_accuracy_draws_neither(qtbot):
    view = TrainView()
    qtbot.addWidget(view)
    nan = math.nan
    columns = StepColumns(
        step=(1, 2), loss=(2.0, 1.0), accuracy=(nan, nan), figures={"F1": (0.25, 0.5)}
    )
    row = EpochRow(1, 2, 1.5, nan, nan, nan, {"F1": 0.375}, {})
    view.show_training(snapshot(steps=columns, epoch_rows=(row,)))
    loss, accuracy, figure = (
        view.board.plots["loss"],
        view.board.plots["accuracy"],
        view.board.figures["F1"],
    )
    assert {key: len(track.raw) for key, track in loss.tracks.items()} == {
        "loss": 2, "train_loss": 1, "validation_loss": 0,
    }  # fmt: skip
    assert not any(len(track.raw) for track in accuracy.tracks.values())
    columns_of = [view.board._grid.getItemPosition(view.board._grid.indexOf(loss))]
    assert accuracy.isHidden() and columns_of == [(0, 0, 1, 6)]
    assert figure.tracks["step"].raw.y.tolist() == [0.25, 0.5]
    assert figure.tracks["train"].raw.y.tolist() == [0.375]
    assert len(figure.tracks["validation"].raw) == 0
    view.show_training(snapshot(run="next", steps=STEPS, epoch_rows=ROWS))
    assert not accuracy.isHidden()
    assert view.board._grid.getItemPosition(view.board._grid.indexOf(loss)) == (0, 0, 1, 3)


def test_a_validation_loss_that_is_not_finite_is_told(qtbot):
    view = TrainView()
    qtbot.addWidget(view)
    row = EpochRow(1, 2, 1.5, 0.5, math.nan, 0.5)
    view.show_training(snapshot(epoch_rows=(row,), validation_samples=4))
    assert len(view.board.plots["loss"].tracks["validation_loss"].raw) == 1


def test_a_new_run_has_its_own_figures_and_at_most_eight(qtbot):
    view = TrainView()
    qtbot.addWidget(view)
    many = {f"f{n}": (1.0,) for n in range(12)}
    view.show_training(snapshot(steps=StepColumns(step=(1,), loss=(1.0,), figures=many)))
    assert list(view.board.figures) == [f"f{n}" for n in range(8)]
    view.show_training(snapshot(run="b", steps=StepColumns(step=(1,), loss=(1.0,))))
    assert view.board.figures == {}


# -- a loop of a cell ------------------------------------------------------------------------------


def loop(state: str = "running", **changes) -> LoopSnapshot:
    fields = {
        "run": "Loop in cell 3",
        "title": "Loop in cell 3",
        "state": state,
        "step": 1200,
        "steps_per_second": 400.0,
        "steps": StepColumns(),
        "device": "cpu",
    }
    return LoopSnapshot(**{**fields, **changes})


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (loop(), ""),
        (loop("finished"), "The loop has ended after 1,200 steps."),
        (loop("stopped", step=1), "Stopped after 1 step."),
        (
            loop("failed", error=ErrorReport(type="ValueError", message="No.", hint="Try y.")),
            "Failed after 1,200 steps. ValueError: No. Try y.",
        ),
        (loop("failed"), "The engine stopped after 1,200 steps."),
        (
            loop("paused"),
            "Held after step 1,200. Step runs to the next optimizer step; Continue runs the rest.",
        ),
    ],
)
def test_a_loop_is_told_without_epochs_and_checkpoints(shown: LoopSnapshot, words: str) -> None:
    assert result_text(shown, None, None) == words
    assert progress_text(shown, None).startswith(f"Loop in cell 3 · step {shown.step:,} · 400 ")


def test_a_loop_has_the_buttons_that_apply_to_it(view: TrainView) -> None:
    seen = {}
    for state in ("running", "paused", "finished"):
        view.show_training(loop(state))
        seen[state] = enabled(view)
        bar = view.findChild(QProgressBar, "train_progress")
        assert bar is not None and not bar.isVisibleTo(view)
    assert seen == {
        "running": {"pause", "stop"},
        "paused": {"train", "step", "stop"},
        "finished": {"train", "step"},
    }


def test_a_loop_leaves_the_choice_of_weights_and_the_form_as_they_are(view: TrainView) -> None:
    error = ErrorReport(type="Diverged", message="The loss became nan at step 3.")
    view.show_training(snapshot("failed", error=error))
    assert view.bar.weights.fresh
    view.show_training(loop())
    assert said(view, "setup_note") == (
        "The loop in cell 3 has its own data, loss and optimizer. Of all here only “Hold when…”"
        " applies to it: not finite, loss spike and gradient norm."
    )
    view.show_training(loop("finished"))
    assert view.bar.weights.fresh


def test_figures_that_are_not_known_are_no_points(view: TrainView) -> None:
    nan = math.nan
    steps = StepColumns(
        step=(1, 2, 3),
        loss=(2.0, nan, 1.0),
        accuracy=(nan, nan, nan),
        gradient_norm=(1.0, 1.0, 1.0),
        learning_rate=(0.1, 0.1, nan),
        step_ms=(nan, 2.0, 3.0),
        rss_bytes=(2**20,) * 3,
        figures={"a": (nan, 5.0, nan)},
    )
    view.show_training(loop(steps=steps))
    plots = view.board.plots
    assert plots["step_ms"].tracks["step_ms"].raw.x.tolist() == [2, 3]
    assert plots["learning_rate"].tracks["learning_rate"].raw.x.tolist() == [1, 2]
    assert view.board.figures["a"].tracks["step"].raw.x.tolist() == [2]
    bad = plots["loss"].tracks["loss"].bad
    assert bad is not None and bad.first == 2  # a loss is NaN only if it went wrong


def test_an_average_of_equal_numbers_is_drawn_as_a_flat_line(view: TrainView) -> None:
    steps = StepColumns(step=tuple(range(60)), figures={"a": (0.1,) * 60}, loss=(1.0,) * 60)
    view.show_training(loop(steps=steps))
    view.board.refresh()
    low, high = view.board.figures["a"]._canvas.box.viewRange()[1]
    assert (low, high) == pytest.approx((0.09, 0.11))


# -- watched modules -------------------------------------------------------------------------------


def test_a_watched_module_has_plots_of_its_own(qtbot):
    view = TrainView()
    qtbot.addWidget(view)
    figures = {f"net.0: {name}": (float(i), i + 0.5) for i, name in enumerate(WATCHED_FIGURES)}
    named = {f"figure {i}": (1.0, 2.0) for i in range(9)}
    steps = replace(STEPS, figures={**figures, **named, "odd: name": (3.0, 4.0)})
    view.show_training(snapshot(steps=steps))
    watched = [name for name in view.board.figures if name.startswith("net.0")]
    assert watched == ["net.0: output", "net.0: zeros", "net.0: norms"]
    assert len(view.board.figures) == 3 + MAX_FIGURES
    told = {
        key: list(track.raw.y)
        for name in watched
        for key, track in view.board.figures[name].tracks.items()
    }
    assert told == {name: [float(i), i + 0.5] for i, name in enumerate(WATCHED_FIGURES)}
    assert view.board.figures["net.0: norms"].log and not view.board.figures["net.0: output"].log
    view.clear()
    assert not view.board.figures


def test_many_plots_scroll(qtbot):
    view = TrainView()
    qtbot.addWidget(view)
    lowest = view.minimumSizeHint().height()
    figures = {f"{i}: {name}": (1.0, 2.0) for i in range(4) for name in WATCHED_FIGURES}
    view.show_training(snapshot(steps=replace(STEPS, figures=figures)))
    assert len(view.board.figures) == 12
    assert view.minimumSizeHint().height() == lowest


@pytest.mark.own_program
def test_the_buttons_of_a_narrow_bar_take_more_rows(view: TrainView, qapp) -> None:
    view.show_training(snapshot("stopped", checkpoint="c.pt"))
    bar = view.bar
    shown = [
        w for w in (bar.train, bar.weights.box, bar.step, bar.resume, bar.export) if w.isVisible()
    ]
    assert bar.minimumSizeHint().width() < sum(w.minimumSizeHint().width() for w in shown)
    for width, rows in ((1000, 1), (460, 2)):
        bar.setFixedWidth(width)
        qapp.processEvents()
        assert len({button.y() // 20 for button in shown}) == rows
        assert all(button.geometry().right() < width for button in shown)


@pytest.mark.own_program
def test_after_a_run_all_buttons_are_in_one_row(view: TrainView, qapp) -> None:
    """Beside the settings of a window of 1440 pixels the bar has a thousand."""
    ahead = (EpochRow(1, 1, 0.3, 0.9, 0.4, 0.9), EpochRow(2, 2, 0.2, 0.9, 0.5, 0.8))
    best = BestSoFar("validation loss", 1, 0.4)
    view.show_training(snapshot("finished", epoch_rows=ahead, best=best))
    bar = view.bar
    bar.setFixedWidth(1000)
    qapp.processEvents()
    shown = [each for each in bar.findChildren(QPushButton) if each.isVisible()]
    assert {bar.train, bar.back, bar.best, bar.export} <= set(shown)
    assert len({button.y() // 20 for button in (*shown, bar.check)}) == 1


def test_what_was_changed_is_marked_on_all_plots_and_told_on_the_loss(view: TrainView) -> None:
    mark = RunMark(2, "linear1 frozen")
    view.show_training(snapshot(steps=STEPS, marks=(mark,)))
    for name, plot in view.board.plots.items():
        assert plot._marks == ((2, "linear1 frozen" if name == "loss" else ""),)
    view.show_training(snapshot(steps=StepColumns(), run="b"))
    assert all(plot._marks == () for plot in view.board.plots.values())


EARLY = {"best": BestSoFar("validation loss", 2, 1.25), "stopped_early": True, "epoch_rows": ROWS}


def test_a_run_that_stopped_early_says_so_and_offers_its_best_weights(view: TrainView) -> None:
    asked = []
    view.bar.weights_requested.connect(asked.append)
    view.show_training(snapshot("running", steps=STEPS, **EARLY))
    assert not view.bar.best.isVisible()
    view.show_training(snapshot("finished", **{**EARLY, "epoch_rows": ()}))
    assert said(view, "train_result").startswith(
        "Stopped early after 3 of 12 epochs: the best was epoch 2, validation loss 1.25."
    )
    assert view.bar.best.text() == "Best weights"
    assert view.bar.best.toolTip() == "Load the weights of epoch 2, validation loss 1.25"
    view.bar.best.click()
    assert view.bar.best.text() == "Last weights"
    view.bar.best.click()
    assert asked == ["best", "last"]
    view.show_training(snapshot("running", run="b"))
    assert not view.bar.best.isVisible()


def test_best_weights_are_not_offered_if_the_last_epoch_was_the_best(view: TrainView) -> None:
    best = BestSoFar("validation accuracy", 3, 0.85)
    view.show_training(snapshot("stopped", best=best, epoch_rows=ROWS))
    assert not view.bar.best.isVisible()


def test_averaged_weights_are_offered_after_a_run_that_has_some(view: TrainView) -> None:
    asked = []
    view.bar.weights_requested.connect(asked.append)
    view.show_training(snapshot("running", averaged=True))
    assert not view.bar.averaged.isVisible()
    view.show_training(snapshot("finished", averaged=True))
    view.bar.averaged.click()
    assert asked == ["averaged"]
    view.show_training(snapshot("finished"))
    assert not view.bar.averaged.isVisible()


def test_processes_that_start_are_told():
    starting = snapshot("running", run="", step=0, total_steps=0)
    assert "processes of the run are starting" in progress_text(starting, None)


def test_several_processes_go_to_steps_and_on_by_phases(view):
    paused = snapshot("paused", processes=2)
    view.bar.show_engine_state("ready")
    view.show_training(paused)
    assert view.bar.back.isEnabled() and view.bar.to_step.isEnabled()
    hidden = [unit for unit, button in view.strip.buttons.items() if button.isHidden()]
    assert hidden == ["op", "module", "batch"] and view.bar.step.isEnabled()
    assert said(view, "train_result").startswith("2 processes are paused. Step runs one")
    view.show_training(replace(paused, processes=1))
    assert view.bar.back.isEnabled() and not view.strip.buttons["op"].isHidden()


def offered(view: TrainView) -> dict[str, bool]:
    """The buttons of the bar that are there, and which can be pressed."""
    bar = view.bar
    buttons = (bar.train, bar.pause, bar.step, bar.line, bar.stop, bar.own_backward, bar.check,
               bar.predictions, bar.resume, bar.weights.box)  # fmt: skip
    return {b.objectName(): b.isEnabled() for b in buttons if not b.isHidden()}


def test_of_a_scripts_loop_only_what_holds_it_is_offered(view):
    view.show_engine_state("ready")
    view.show_attached("steer")
    assert view.form.isHidden() and said(view, "train_empty").startswith("No step yet.")
    view.show_training(loop())
    assert offered(view) == {"pause_button": True, "step_button": False, "run_own_backward": True}
    view.show_training(loop("paused"))
    assert offered(view) == {
        "train_button": True, "pause_button": False, "step_button": True, "run_own_backward": True,
    }  # fmt: skip
    assert view.bar.train.text() == "Continue"


def test_a_script_that_another_window_steers_is_only_watched(view):
    view.show_engine_state("ready")
    view.show_attached("watch")
    view.show_training(loop("paused"))
    assert not any(offered(view).values())
    view.show_training(loop())
    assert not any(offered(view).values())


def test_after_a_script_train_has_its_own_controls_again(view):
    view.show_engine_state("ready")
    before = offered(view)
    view.show_attached("watch")
    view.show_attached("")
    assert offered(view) == before and not view.form.isHidden()
    assert said(view, "train_empty").startswith("No run yet.")


def test_a_second_click_on_step_is_on_step_again(view: TrainView, qtbot) -> None:
    """What comes and goes with a run moves neither it nor Stop to where the other was."""
    view.resize(1300, 800)
    view.show()
    bar, before = view.bar, view.bar.step.mapTo(view.bar, view.bar.step.rect().center())
    view.show_training(snapshot("paused"))
    QApplication.processEvents()
    assert bar.childAt(before) is bar.step
