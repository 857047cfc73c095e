"""The Train workspace's presenter: the command of each control, or the message in its place."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from app.presenters.train.train import TrainPresenter
from app.processes.exit_reasons import explain_departure
from app.selection.references import Module
from engine.process import Departure
from engine.project import edits
from engine.project.document import ParamGroup, replace
from engine.project.problems import Problem
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    WHOLE_SUBJECT,
    AdjustTrainingCommand,
    CellSnapshot,
    CheckpointSnapshot,
    ContinueTrainingCommand,
    ErrorReport,
    FileSnapshot,
    FindCheckpointCommand,
    LoopSnapshot,
    ModelSnapshot,
    PauseSignal,
    StepColumns,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.training.failures import code_changed, other_batches, unordered
from tests.app.conftest import SCRIPT
from tests.model_snapshots import model_snapshot
from widgets.training.train_view import TrainView


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.view = TrainView()
        qtbot.addWidget(self.view)
        self.told: list[str] = []
        self.view.show_problem = self.told.append
        self.presenter = TrainPresenter(bench, self.view, bench.window)


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def sent(link) -> list[type]:
    return [type(command) for command in link.sent]


def report(revision: int, *problems: Problem, runnable: bool = False) -> ModelSnapshot:
    return model_snapshot(revision=revision, problems=problems, runnable=runnable)


def test_a_run_is_of_the_model_and_the_set_up_as_they_are(desk, bench, link):
    bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    desk.presenter.train()
    (command,) = link.sent
    assert isinstance(command, TrainCommand) and not command.paused and command.checkpoint == ""
    assert command.model == bench.project.model and command.training == bench.project.training
    assert command.revision == 2


def test_a_model_that_does_not_run_is_not_trained_and_the_first_error_is_told(desk, bench, link):
    problems = (Problem("It is odd.", severity="warning"), Problem("It is wrong."))
    bench.store.take(report(1, *problems))
    desk.presenter.train()
    assert sent(link) == [] and desk.told == ["The model cannot run. It is wrong."]
    bench.store.take(report(1))
    desk.presenter.train()
    assert desk.told[-1] == "The model cannot run: it is empty."


def test_a_report_on_an_older_model_keeps_nobody_from_training(desk, bench, link):
    bench.store.take(report(1, Problem("It is wrong.")))
    bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    desk.presenter.train()
    assert sent(link) == [TrainCommand]


def test_a_model_that_runs_is_trained(desk, bench, link):
    bench.store.take(report(1, Problem("It is odd.", severity="warning"), runnable=True))
    desk.presenter.train()
    assert sent(link) == [TrainCommand] and desk.told == [""]


def test_pause_continues_a_paused_run_and_a_step_needs_one(desk, bench, link, training_snapshot):
    desk.presenter.pause_or_continue()
    assert link.signals == [PauseSignal()] and sent(link) == []
    desk.presenter.step()
    assert sent(link) == [TrainCommand, StepTrainingCommand] and link.sent[0].paused
    bench.store.take(training_snapshot(state="paused"))
    desk.presenter.step()
    desk.presenter.pause_or_continue()
    assert sent(link)[2:] == [StepTrainingCommand, ContinueTrainingCommand]
    assert link.signals == [PauseSignal()]


def test_a_window_that_only_watches_a_script_says_why_it_does_not_pause(desk, bench, link):
    link.attach_to(replace(SCRIPT, role="watch"))
    desk.presenter.pause_or_continue()
    assert "Another window steers" in bench.window.said[-1] and not link.signals
    link.attach_to(replace(SCRIPT, role="steer"))
    desk.presenter.pause_or_continue()
    assert link.signals == [PauseSignal()]


def test_a_run_that_does_not_run_goes_to_a_step(desk, bench, link, training_snapshot):
    desk.presenter.back()
    desk.presenter.go_to(3)
    assert link.sent == []  # there is no run
    bench.store.take(training_snapshot(state="running", step=5))
    desk.presenter.back()
    assert link.sent == []
    bench.store.take(training_snapshot(state="failed", step=5))
    desk.view.bar.weights.choose_fresh(True)
    desk.presenter.back()
    desk.view.bar.step_asked.emit(2)
    assert [(c.to_step, c.training) for c in link.sent] == [
        (4, bench.project.training),
        (2, bench.project.training),
    ]
    bench.store.take(training_snapshot(state="paused", step=0))
    desk.presenter.back()
    assert len(link.sent) == 2


def test_a_run_goes_on_from_its_checkpoint(desk, bench, link, training_snapshot):
    desk.presenter.restore()
    assert sent(link) == []
    bench.store.take(training_snapshot(checkpoint="/a.pt"))
    desk.presenter.resume()
    assert (link.sent[-1].checkpoint, link.sent[-1].paused) == ("/a.pt", False)
    bench.store.take(training_snapshot(checkpoint="/a.pt", state="stopped"))
    desk.presenter.restore()
    assert (link.sent[-1].checkpoint, link.sent[-1].paused) == ("/a.pt", True)


def test_resume_asks_the_engine_for_the_checkpoint_of_an_earlier_start(desk, bench, link):
    desk.presenter.resume()
    assert sent(link) == [FindCheckpointCommand]
    link.answer(CheckpointSnapshot())
    assert bench.window.said == ["There is no checkpoint of this model and set-up to resume from."]
    desk.presenter.resume()
    link.answer(CheckpointSnapshot(path="/old.pt", step=1200, written_s=0.0))
    assert sent(link)[-1] is TrainCommand and link.sent[-1].checkpoint == "/old.pt"
    assert bench.window.said[1] == (
        "Resuming from a checkpoint of step 1,200, written 01 Jan 1970, 00:00."
    )
    desk.presenter.resume()
    link.fail("The model cannot run.", "Wire it.")
    assert desk.told[-1] == "The model cannot run. Wire it."


def test_a_checkpoint_of_an_earlier_start_is_offered_where_there_is_a_model(desk, bench, link):
    project, _ = edits.add_block(bench.project, "nn.Linear", 0, 0)
    assert bench.files.new(project)
    assert sent(link) == [FindCheckpointCommand]
    link.answer(CheckpointSnapshot(path="/old.pt", step=7))
    bar = desk.view.bar
    assert not bar.resume.isHidden()
    assert "There is a checkpoint of step 7, written " in bar._result.text()
    assert bench.files.new()
    assert bar.resume.isHidden() and bar._result.text() == ""


def test_a_checkpoint_of_code_is_offered_once_its_file_has_run(desk, bench, link):
    bench.edit("x", lambda p: edits.set_subject(p, FileSubject("/x/net.py", "Net()")))
    assert sent(link) == [FindCheckpointCommand]
    assert link.sent[0].subject == FileSubject("/x/net.py", "Net()")
    link.fail("net.py has not run in this engine.")
    assert not any(desk.told) and desk.view.bar.resume.isHidden()
    bench.store.take(FileSnapshot(path="/x/net.py", digest="", objects=()))
    assert sent(link) == [FindCheckpointCommand] * 2
    link.answer(CheckpointSnapshot(path="/old.pt", step=7))
    assert not desk.view.bar.resume.isHidden()
    bench.store.take(CellSnapshot(ok=True, error=None))  # it is known by now
    assert len(link.sent) == 2
    desk.presenter.resume()
    link.answer(CheckpointSnapshot(path="/old.pt", step=7))
    assert desk.told[-1].startswith("There is no data to train on.")
    bench.edit("x", lambda p: edits.set_objective(p, Objective(data="loader")))
    desk.presenter.resume()
    link.answer(CheckpointSnapshot(path="/old.pt", step=7))
    assert isinstance(link.sent[-1], TrainCommand) and link.sent[-1].checkpoint == "/old.pt"


def test_a_run_of_another_subject_is_told_and_nothing_goes_on_from_it(
    desk, bench, link, training_snapshot
):
    for name in ("first", "second"):
        bench.edit("x", lambda p, name=name: edits.set_subject(p, ConsoleSubject(name)))
        if name == "first":
            bench.edit("x", lambda p: edits.set_objective(p, Objective(data="loader")))
            desk.presenter.train()
            bench.store.take(training_snapshot(state="running", checkpoint="/a.pt"))
    bar = desk.view.bar
    assert "This was a run" not in bar._result.text()  # it still goes
    bench.store.take(training_snapshot(state="finished", checkpoint="/a.pt"))
    assert bar._result.text() == "This was a run of first. Train starts one of second."
    assert bar.export.isHidden() and bar.resume.isHidden() and not bar.back.isEnabled()
    del link.sent[:]
    desk.presenter.back()
    desk.presenter.resume()
    assert sent(link) == [FindCheckpointCommand]
    bench.edit("x", lambda p: edits.set_subject(p, ConsoleSubject("first")))
    assert "This was a run" not in bar._result.text()
    assert not bar.export.isHidden() and bar.back.isEnabled()


def test_a_run_ends_with_its_engine_and_keeps_its_checkpoint(desk, bench, link, training_snapshot):
    bench.store.take(training_snapshot(checkpoint="/a.pt", remaining_s=9.0))
    link.close()
    run = bench.newest(TrainingSnapshot)
    assert (run.state, run.checkpoint, run.remaining_s) == ("failed", "/a.pt", None)
    bench.store.take(training_snapshot(state="finished"))
    link.get_ready()
    link.close()
    assert bench.newest(TrainingSnapshot).state == "finished"


def test_only_what_went_wrong_with_training_is_told_here(desk, link):
    desk.presenter.train()
    link.fail("It diverged.", "Lower lr.")
    assert desk.told == ["", "It diverged. Lower lr."]
    desk.presenter.step()
    link.fail("told elsewhere")
    assert "told elsewhere" not in desk.told


def test_without_an_engine_a_run_cannot_begin(desk, link):
    link.close()
    desk.presenter.train()
    assert desk.told == ["", "There is no engine: restart it from the status bar."]


def test_the_set_up_is_edited_as_one_step_a_field(desk, bench):
    setup = bench.project.training
    for epochs in (3, 30):
        desk.view.form.setup_edited.emit(type(setup)(epochs=epochs), "Set epochs")
    assert bench.project.training.epochs == 30
    assert bench.history.stack.count() == 1
    desk.view.form.loss.loss_edited.emit("nn.MSELoss")
    assert edits.loss_of(bench.project) == "nn.MSELoss"
    assert bench.history.stack.undoText() == "Choose the loss"


def test_new_settings_of_the_optimizer_reach_a_run_that_goes_on(
    desk, bench, link, training_snapshot
):
    def change(**setup) -> list[type]:
        before = len(link.sent)
        training = replace(bench.project.training, **setup)
        bench.store.set_project(edits.set_training(bench.project, training))
        return [type(command) for command in link.sent[before:]]

    assert change(optimizer_params={"lr": 0.5}) == []  # nothing runs
    bench.store.take(training_snapshot(state="running"))
    assert change(optimizer_params={"lr": 0.25}) == [AdjustTrainingCommand]
    assert link.sent[-1].training == bench.project.training
    assert change(batch_size=7) == []
    assert change(clip_norm=1.0) == [AdjustTrainingCommand]
    assert change(decay="weights") == [AdjustTrainingCommand]
    assert change(groups=(ParamGroup("linear1", {}, True),)) == [AdjustTrainingCommand]
    assert change(optimizer="optim.SGD", optimizer_params={"lr": 0.125}) == []
    bench.store.take(training_snapshot(state="paused"))
    assert change(optimizer_params={"lr": 0.0625}) == [AdjustTrainingCommand]
    bench.store.take(training_snapshot(state="stopped"))
    assert change(optimizer_params={"lr": 1.0}) == []


def test_the_module_of_a_watched_plot_is_chosen_when_its_menu_opens(desk, bench, training_snapshot):
    steps = StepColumns(
        step=(1,),
        figures={
            "body.0: output mean": (0.5,),
            f"{WHOLE_SUBJECT}: output zeros": (0.0,),
            "mine: output mean of all": (1.0,),
        },
    )
    bench.store.take(training_snapshot(steps=steps))
    chosen = []
    bench.selection.changed.connect(chosen.append)
    for plot in desk.view.board.figures.values():
        plot.menu_asked.emit()
    assert chosen == [Module("body.0"), Module("")]
    assert list(bench.selection.views.values()) == ["train", "train"]


def test_of_a_script_no_checkpoint_is_sought_and_its_set_up_is_its_own(desk, bench, link):
    bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    link.attach_to(SCRIPT)
    link.get_ready()
    assert sent(link) == [] and desk.view.form.isHidden()
    link.close()
    link.get_ready()
    assert sent(link) == [FindCheckpointCommand] and not desk.view.form.isHidden()


def loop(*steps: int) -> LoopSnapshot:
    return LoopSnapshot(
        run="Loop in train.py",
        title="Loop in train.py",
        state="running",
        step=steps[-1],
        steps_per_second=10.0,
        steps=StepColumns(step=steps, loss=(1.0,) * len(steps)),
        device="cpu",
    )


def told_left(desk: Desk) -> tuple[str, str]:
    label = desk.view.findChild(QLabel, "train_result")
    return label.text(), str(label.property("role") or "")


def test_a_script_that_is_left_or_has_ended_is_no_error(desk, bench, link):
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.store.take(loop(1, 2, 1200))
    link.close()
    words = "The window has left train.py (pid 4711), which goes on without it."
    assert told_left(desk) == (f"{words} The last step that came is 1,200.", "")
    link.lost.emit(explain_departure(Departure("train.py", lives=False)))
    assert told_left(desk) == ("train.py has ended. The last step that came is 1,200.", "")
    link.get_ready()  # the window's own engine
    assert told_left(desk)[0].startswith("train.py has ended.")


def test_a_script_whose_connection_was_lost_is_an_error(desk, bench, link):
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.store.take(loop(1, 2))
    link.close()
    link.lost.emit(explain_departure(Departure("train.py", lives=True)))
    words = "The connection to train.py was lost. The last step that came is 2."
    assert told_left(desk) == (words, "error")
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.store.take(loop(3, 4))
    assert told_left(desk) == ("", "")


def test_a_loop_of_the_console_whose_engine_ends_is_an_error(desk, bench, link):
    bench.store.take(loop(1, 2))
    link.close()
    assert told_left(desk) == ("The engine stopped after 2 steps.", "error")


def points(desk: Desk) -> list[float]:
    return desk.view.board.plots["loss"].tracks["loss"].raw.x.tolist()


def test_the_curves_of_a_script_go_on_in_it_and_begin_again_in_its_next_run(desk, bench, link):
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.store.take(loop(1, 2, 3))
    link.close()
    assert points(desk) == [1, 2, 3]
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.store.take(loop(7, 8))
    assert points(desk) == [1, 2, 3, 7, 8]
    again = replace(SCRIPT, about=replace(SCRIPT.about, pid=4712))
    link.attach_to(again)
    link.get_ready()
    assert bench.newest(LoopSnapshot) is None
    bench.store.take(loop(1, 2))
    assert points(desk) == [1, 2]


@pytest.mark.parametrize(
    "error",
    [code_changed(("net.py",)), unordered(), other_batches(2, 3)],
    ids=lambda error: error.type,
)
def test_what_a_run_that_goes_on_does_not_share_with_its_beginning_is_told_until_it_is_read(
    desk, bench, link, error
):
    first = TrainingSnapshot(
        run="a", state="running", step=4, steps_per_second=1.0, steps=StepColumns(), device="cpu",
        error=error,
    )  # fmt: skip
    bench.store.take(first)
    bench.store.take(replace(first, step=5, error=None))
    banner = bench.window.banners.banner(error.type)
    assert (f"{banner.title}.", banner.text) == (error.message, error.hint)
    bench.window.banners.dismiss(error.type)
    other = ErrorReport(type="LabError", message="The checkpoint could not be written.")
    bench.store.take(replace(first, step=6, error=other))
    assert not bench.window.banners._banners
