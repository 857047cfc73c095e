"""The first steps: what the banner says at each stage, and which button leads on."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton

from app import templates
from app.presenters.first_steps import FirstStepsPresenter
from engine.project import edits, files
from engine.project.document import Project
from engine.protocol import (
    EpochRow,
    ForwardSnapshot,
    MoveForwardCommand,
    RunCellCommand,
    StartForwardCommand,
    TrainCommand,
)

ORDER = ("a", "b", "c")


class Desk:
    def __init__(self, bench) -> None:
        self.bench = bench
        self.shown: list[str] = []
        bench.window.show_workspace = self.shown.append
        self.presenter = FirstStepsPresenter(bench, bench.window)
        self.presenter.steps_wanted.connect(lambda: self.shown.append("steps"))
        self.presenter.training_wanted.connect(lambda: self.shown.append("training"))

    @property
    def banner(self):
        return self.bench.window.banners.banner("first_steps")

    @property
    def choices(self) -> list[str]:
        return [button.text() for button in self.banner.findChildren(QPushButton)]

    def press(self, text: str) -> None:
        buttons = self.banner.findChildren(QPushButton)
        next(button for button in buttons if button.text() == text).click()

    def forward(self, position: int, loss: float | None = None) -> None:
        revision = self.bench.store.revision
        self.bench.store.take(
            ForwardSnapshot(
                revision=revision, order=ORDER, position=position, activations=(), loss=loss
            )
        )


@pytest.fixture
def desk(bench, link) -> Desk:
    link.get_ready()
    desk = Desk(bench)
    desk.presenter.begin()
    return desk


def train(desk) -> None:
    desk.press("Next: step")
    desk.forward(3, 2.5)
    desk.press("Next: train")


def test_the_template_is_opened_in_the_model_workspace(desk, bench) -> None:
    assert desk.shown == ["model"]
    assert bench.project.model == templates.load_template("mlp").model
    assert desk.banner.title == "First steps, 1 of 4: open" and desk.choices == ["Next: step"]


def test_a_project_that_is_not_left_stays_open(bench, link) -> None:
    bench.edit("Add", lambda project: edits.add_block(project, "nn.Linear", 0, 0)[0])
    bench.dialogs.leave = "cancel"
    before = bench.project
    desk = Desk(bench)
    desk.presenter.begin()
    assert bench.project is before and desk.banner is None and desk.shown == []


def test_a_template_that_cannot_be_read_is_told(bench, monkeypatch) -> None:
    def refuse(key: str) -> Project:
        raise files.FileProblem("It is damaged.")

    monkeypatch.setattr(templates, "load_template", refuse)
    told: list[str] = []
    bench.files.failed.connect(told.append)
    desk = Desk(bench)
    desk.presenter.begin()
    assert told == ["The template was not opened. It is damaged."] and desk.banner is None


def test_the_blocks_run_one_by_one_or_up_to_the_loss(desk, bench, link) -> None:
    desk.press("Next: step")
    assert desk.shown[-1] == "steps"
    start = link.sent[-1]
    assert isinstance(start, StartForwardCommand)
    assert (start.model, start.training) == (bench.project.model, bench.project.training)
    assert desk.banner.title == "First steps, 2 of 4: step"
    assert desk.banner.text == "The batch is on its way to the first block."
    desk.forward(1)
    assert desk.banner.text.startswith("1 of 3 blocks have run.")
    for text, move in (("Run one block", "step"), ("Run to the loss", "end")):
        desk.press(text)
        assert isinstance(link.sent[-1], MoveForwardCommand) and link.sent[-1].move == move
        desk.forward(2)
        assert desk.choices == ["Run one block", "Run to the loss"]
    desk.forward(3)  # all blocks, and no loss yet
    assert desk.choices == ["Run one block", "Run to the loss"]
    desk.forward(3, 2.3456)
    assert desk.banner.text.startswith("The loss of this batch is 2.35.")
    assert desk.choices == ["Next: train"]
    tip = desk.banner.findChild(QPushButton).toolTip()
    assert tip == f"Train the model for {bench.project.training.epochs} epochs."


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("finished", "The run has finished: epoch 1 of 1."),
        ("stopped", "The run was stopped: epoch 1 of 1."),
        ("failed", "The run has failed: epoch 1 of 1."),
    ],
)
def test_the_end_of_the_run_leads_on_or_back(desk, bench, training_snapshot, state, words) -> None:
    train(desk)
    assert desk.shown[-1] == "training" and desk.banner.title == "First steps, 3 of 4: train"
    assert desk.banner.text == "The run starts."
    bench.store.take(training_snapshot(state=state))
    assert desk.banner.text == words and desk.choices == ["Next: look", "Train again"]
    desk.press("Train again")
    assert desk.shown[-2:] == ["training", "training"]


@pytest.mark.parametrize("state", ["running", "paused"])
def test_the_run_is_told_as_it_goes_in_one_banner(desk, bench, training_snapshot, state) -> None:
    train(desk)
    bench.store.take(training_snapshot(state=state))
    words = "Each step: forward, backward, update of the weights. "
    assert desk.banner.text == f"{words}Epoch 1 of 1." and desk.choices == []
    before = desk.banner
    bench.store.take(training_snapshot(state=state, step=2))
    assert desk.banner is before, "the same words are not shown again"
    row = EpochRow(1, 2, 1.0, 0.5, 1.0, 0.75)
    bench.store.take(training_snapshot(state=state, epoch_rows=(row,)))
    assert desk.banner.text == f"{words}Epoch 1 of 1, validation accuracy 75.0 %."
    bench.store.take(training_snapshot(state=state, epoch_rows=()))  # rows are sent once
    assert desk.banner.text == f"{words}Epoch 1 of 1, validation accuracy 75.0 %."


def test_the_same_batch_goes_through_the_trained_model(desk, bench, link, training_snapshot):
    train(desk)
    bench.store.take(training_snapshot(state="finished"))
    desk.press("Next: look")
    start, end = link.sent[-2:]
    assert isinstance(start, StartForwardCommand) and start.model == bench.project.model
    assert isinstance(end, MoveForwardCommand) and end.move == "end"
    assert desk.shown[-1] == "steps"
    assert desk.banner.text == "The same batch goes through the trained model."
    desk.forward(2)
    assert desk.choices == []
    desk.forward(3, 0.5)
    assert desk.banner.title == "First steps, 4 of 4: look"
    assert "was 2.5 and is now 0.5." in desk.banner.text
    desk.press("Finish")
    desk.forward(3, 0.4)
    assert desk.banner is None


def test_what_fails_can_be_tried_again_at_its_stage(desk, bench, link, training_snapshot) -> None:
    def fail() -> None:
        link.fail("It is busy.", "Wait.")
        assert desk.banner.text == "It is busy. Wait." and desk.choices == ["Try again"]

    desk.press("Next: step")
    fail()
    desk.press("Try again")
    assert isinstance(link.sent[-1], StartForwardCommand)
    desk.forward(3, 2.5)
    desk.press("Next: train")
    link.send(TrainCommand(model=bench.project.model, training=bench.project.training))
    fail()
    desk.press("Try again")
    assert desk.shown[-1] == "training"
    bench.store.take(training_snapshot(state="finished"))
    desk.press("Next: look")
    fail()
    assert desk.banner.title.startswith("First steps, 4 of 4")
    desk.press("Try again")
    assert isinstance(link.sent[-1], MoveForwardCommand) and link.sent[-1].move == "end"


def test_an_error_of_the_console_is_none_of_the_first_steps(desk, link) -> None:
    desk.press("Next: step")
    link.send(RunCellCommand(source="x"))
    link.fail("No x.")
    assert "No x." not in desk.banner.text
