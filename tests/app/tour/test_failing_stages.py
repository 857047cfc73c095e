"""Each stage of the tour fails, with words, at whatever the window did not do."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from PySide6.QtCore import QPoint, QRect, QRectF

from app.tour.autograd_stage import AutogradStage
from app.tour.build_stage import BuildStage
from app.tour.export_stage import ExportStage
from app.tour.hand import TourFailure
from app.tour.tensors_stage import CELL, WRITTEN, TensorsStage
from app.tour.train_stage import EPOCHS, LEARNING_RATE, TrainStage
from engine.project import edits
from engine.project.document import Project, Wire, replace
from engine.protocol import (
    BackwardSnapshot,
    CellReader,
    EpochRow,
    ErrorReport,
    ForwardSnapshot,
    GraphSnapshot,
    LocationSnapshot,
    StorageSnapshot,
    TrainingSnapshot,
)
from engine.tensors.memory.storage import read_window


class Hand:
    """Does what the test says in place of a mouse and keys; `done` are its movements."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.act: Callable[..., Any] = lambda name, *given: None

    def __getattr__(self, name: str) -> Any:
        def move(*given: Any) -> Any:
            self.done.append((name, *given))
            return self.act(name, *given)

        return move

    def until(self, condition: Callable[[], bool], what: str) -> None:
        if not condition():
            raise TourFailure(f"waited in vain for {what}")


class Anything:
    """Any part of a window: whatever it is asked for is there."""

    def __getattr__(self, name: str) -> Any:
        return Anything()

    def __call__(self, *given: Any) -> Any:
        return Anything()


@pytest.fixture
def stage(stage_of: Callable[..., Any], monkeypatch) -> Callable[..., Any]:
    """A stage before a window in which everything is there."""

    def make(kind: type, **parts: Any) -> Any:
        made = stage_of(kind, window=Anything(), workspaces=Anything(), **parts)
        made.hand, made._page, made._view = Hand(), Anything(), Anything()
        made.picture = lambda name: made.hand.picture(name)
        made.press = lambda parent, name: made.hand.press_button(name)
        made.find = lambda parent, kind, name: name
        return made

    return make


# -- building --------------------------------------------------------------------------------------


def two_blocks(stage: Any) -> list[str]:
    project = Project()
    for kind in ("nn.Linear", "nn.ReLU"):
        project = edits.add_block(project, kind, 0, 0)[0]
    stage.store.set_project(project)
    return [block.id for block in project.model.blocks]


@pytest.mark.parametrize("kinds", [(), ("nn.ReLU",), ("nn.Linear", "nn.Linear")])
def test_a_block_that_was_not_dragged_in_is_told(stage, kinds: tuple[str, ...]) -> None:
    building = stage(BuildStage)

    def drag(*_: Any) -> None:
        for kind in kinds:
            building.store.set_project(edits.add_block(building.project, kind, 0, 0)[0])

    building.hand.act = drag
    building._page = SimpleNamespace(
        canvas=Anything(),
        block_palette=SimpleNamespace(
            list=SimpleNamespace(
                scrollTo=lambda _: None, index_of=lambda kind: kind, viewport=lambda: "rows",
                visualRect=lambda _: QRect(0, 0, 11, 11),
            )
        ),
    )  # fmt: skip
    with pytest.raises(TourFailure, match=r"dragging nn\.Linear onto the canvas did not add it"):
        building._drag_in("nn.Linear", 2, 1)
    assert "blocks_dragged" not in building.report
    building.store.set_project(Project())
    kinds = ("nn.Linear",)
    assert building._drag_in("nn.Linear", 2, 1) == building.project.model.blocks[0].id
    assert building.report == {"blocks_dragged": 1}
    _, rows, at, _, goal = building.hand.done[-1]
    assert (rows, at, goal) == ("rows", QPoint(5, 5), QPoint(120 + 2 * 224, 96 + 144))


def test_a_wire_that_was_not_drawn_is_told(stage) -> None:
    building = stage(BuildStage)
    first, second = two_blocks(building)
    with pytest.raises(TourFailure, match=f"the wire from {first} to {second} was not drawn"):
        building._draw_wire(first, second)
    wire = Wire(first, "output", second, "input")
    building.hand.act = lambda *_: building.store.set_project(edits.connect(building.project, wire))
    building._draw_wire(first, second)
    assert building.report == {"wires_drawn": 1}


def test_an_argument_that_was_not_taken_is_told(stage) -> None:
    building = stage(BuildStage)
    linear, _ = two_blocks(building)
    project = building.project
    bare = replace(project.model.blocks[0], params={})
    model = replace(project.model, blocks=(bare, project.model.blocks[1]))
    building.store.set_project(replace(project, model=model))
    with pytest.raises(TourFailure, match=f"typing 10 into out_features of {linear} set nothing"):
        building._set_param(linear, "out_features", "10")
    building.store.set_project(project)
    building._set_param(linear, "out_features", "10")


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ((True,), "was not refused"), ((False, False), "does not run after the fix"),
        ((False, True), ""),
    ],
)  # fmt: skip
def test_a_mistake_is_seen_and_mended(stage, runs: tuple[bool, ...], words: str) -> None:
    building = stage(BuildStage)
    checks = iter(runs)
    building._check = lambda: SimpleNamespace(runnable=next(checks))
    if words:
        with pytest.raises(TourFailure, match=words):
            building._mend("b5")
    else:
        building._mend("b5")
        done = [each[:2] for each in building.hand.done]
        assert done[-2:] == [("picture", "shape-error"), ("press_button", "problem_fix")]


def test_blocks_that_were_not_arranged_are_told(stage) -> None:
    building = stage(BuildStage)
    first, _ = two_blocks(building)
    with pytest.raises(TourFailure, match="the blocks to be arranged"):
        building._arrange()
    building.hand.act = lambda *_: building.store.set_project(
        edits.move_blocks(building.project, {first: (64.0, 64.0)})
    )
    building._arrange()


# -- the passes ------------------------------------------------------------------------------------


def forward(position: int, loss: float | None = None) -> ForwardSnapshot:
    return ForwardSnapshot(
        revision=1, order=("a", "b", "c"), position=position, activations=(), loss=loss
    )


@pytest.mark.parametrize("loss", [None, 0.5])
def test_a_forward_pass_without_a_loss_is_told(stage, loss: float | None) -> None:
    passes = stage(AutogradStage)
    places = iter(range(4))

    def press(*_: Any) -> None:
        if _[0] == "press_button":
            place = next(places)
            passes.store.take(forward(place, loss if place == 3 else None))

    passes.hand.act = press
    if loss is None:
        with pytest.raises(TourFailure, match="the forward pass ended without a loss"):
            passes._forward()
    else:
        passes._forward()
    assert passes.report == {"forward_steps": 3}
    names = [each[1] for each in passes.hand.done]
    assert names == ["pass_start", "pass_step", "pass_step", "forward", "pass_step"]


def test_a_backward_pass_is_stepped_once_its_graph_is_drawn(stage) -> None:
    passes = stage(AutogradStage)
    graph = GraphSnapshot(revision=1, nodes=(), edges=(), plan=(2, 1, 0))
    passes.application.workspaces = SimpleNamespace(autograd=SimpleNamespace(drawn=graph))
    places = iter(range(4))

    def press(name: str, *_: Any) -> None:
        if name == "press_button":
            place = next(places)
            if not place:
                passes.store.take(graph)
            passes.store.take(BackwardSnapshot(revision=1, position=place, step=None, gradients=()))

    passes.hand.act = press
    passes._backward()
    assert passes.report == {"backward_steps": 3}
    assert [each[1] for each in passes.hand.done].index("backward") == 3
    places = iter(range(4))
    passes.application.workspaces.autograd.drawn = None
    with pytest.raises(TourFailure, match="the graph to be drawn"):
        passes._backward()


# -- training --------------------------------------------------------------------------------------


class Run:
    """The states that Train tells, one at each wait."""

    def __init__(self, stage: Any, snapshot: Callable[..., TrainingSnapshot], end: str) -> None:
        self.stage, self.made = stage, snapshot
        error = ErrorReport("LabError", "It broke.") if end == "failed" else None
        self.states = iter(
            (
                {"state": "running", "epoch": 3}, {"state": "paused", "step": 7},
                {"state": "paused", "step": 8}, {"state": "running", "step": 9},
                {"state": end, "step": 10, "error": error},
            )
        )  # fmt: skip
        self.waits: list[Callable[..., Any]] = []

    def wait_for(self, kind: type, condition: Callable[..., Any], what: str) -> Any:
        told = self.made(**next(self.states))
        assert condition(told), what
        assert not condition(self.made(state="starting")) or what == "the run to end"
        return told


@pytest.mark.parametrize("end", ["finished", "failed"])
def test_a_run_that_does_not_finish_is_told(stage, training_snapshot, end: str) -> None:
    training = stage(TrainStage)
    training.application.window = SimpleNamespace(
        show_workspace=lambda name: None, page=lambda name: Anything()
    )
    project = training.project
    setup = replace(project.training, epochs=EPOCHS, optimizer_params={"lr": LEARNING_RATE})
    row = EpochRow(EPOCHS, 9, 0.1, 0.99, 0.1, 0.99)

    def write(name: str, *given: Any) -> None:
        if name == "write":
            training.store.set_project(replace(project, training=setup))
            training._rows = [row]

    training.hand.act = write
    training.wait_for = Run(training, training_snapshot, end).wait_for
    if end == "failed":
        with pytest.raises(TourFailure, match=r"training failed: It broke\."):
            training.run()
    else:
        training.run()
        assert training.report["val_accuracy"] == 0.99
    pressed = [each[1] for each in training.hand.done if each[0] == "press_button"]
    assert pressed == ["train_button", "pause_button", "step_button", "train_button"]
    typed = [each[1:] for each in training.hand.done if each[0] == "write"]
    assert typed == [("param_epochs", str(EPOCHS)), ("param_lr", str(LEARNING_RATE))]


@pytest.mark.parametrize(
    "setup", [{"epochs": EPOCHS}, {"optimizer_params": {"lr": LEARNING_RATE}}, {}]
)
def test_a_set_up_that_was_not_taken_is_told(stage, setup: dict) -> None:
    training = stage(TrainStage)
    project = training.project
    changed = replace(project.training, **setup)
    training.store.set_project(replace(project, training=changed))
    with pytest.raises(TourFailure, match="typed into the training set-up was not taken"):
        training.run()


# -- files and tensors -----------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [(0.0, 0.0, 0.0), (0.0, 1e-6, 0.0)])
def test_a_file_that_differs_from_the_model_is_told(stage, errors: tuple[float, ...]) -> None:
    exporting = stage(ExportStage, export=SimpleNamespace(dialog=Anything()))
    found = iter(errors)
    forms: list[str] = []

    def export(form: str) -> float:
        forms.append(form)
        return next(found)

    exporting._export = export
    exporting.album = SimpleNamespace(add=lambda widget, name: forms.append(name))
    loaded: list[bool] = []
    exporting._load_without_us = lambda: loaded.append(True)
    if any(errors):
        with pytest.raises(TourFailure, match="what was exported differs from the model by 1e-06"):
            exporting.run()
    else:
        exporting.run()
    assert forms == ["pt", "safetensors", "py", "exported"] and loaded == [True] * (not any(errors))
    assert exporting.report == {"export_max_error": max(errors)}


def storage(*values: str, first: int) -> StorageSnapshot:
    whole = read_window("y", torch.zeros(len(values)), None, 1024)
    return replace(whole, values=values, first=first)


@pytest.mark.parametrize(
    ("value", "readers", "words"),
    [
        (WRITTEN, {"y": (0, 1), "x": (1, 2)}, ""),
        ("6", {"y": (0, 1), "x": (1, 2)}, "does not hold what was written through the slice"),
        (WRITTEN, {"y": (0, 1)}, "is read by "),
        (WRITTEN, {"y": (0, 1), "x": (1, 1)}, "is read by "),
    ],
)
def test_a_cell_that_is_not_as_written_is_told(stage, value: str, readers: dict, words: str):
    tensors = stage(TensorsStage)
    tensors._show = lambda title: None
    strip = SimpleNamespace(cell_rect=lambda cell: QRectF(0, 0, 8, 8), viewport=lambda: "cells")
    tensors._page = cast(Any, SimpleNamespace(storage=SimpleNamespace(strip=strip)))
    tensors.store.take(storage("0", "0", "0", "0", value, first=1))
    found = tuple(CellReader(name, (index,)) for name, index in readers.items())
    where = LocationSnapshot(expression="y", index=(0, 1), cell=CELL, readers=found)
    tensors.store.take(where)
    if words:
        with pytest.raises(TourFailure, match=words):
            tensors._read_storage()
    else:
        tensors._read_storage()
        assert tensors.report == {"cell_read_by": ["x", "y"]}
        assert tensors.hand.done == [("click", "cells", QPoint(4, 4))]
