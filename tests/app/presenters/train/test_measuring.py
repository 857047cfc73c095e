"""Checks, the memory of a step and the loss landscape: asked with the settings of now, stopped,
outdated by a change, and ended with the engine."""

from __future__ import annotations

from typing import Any

import pytest

from app import templates
from app.presenters.train.checks import ChecksPresenter
from app.presenters.train.pictures.landscape import LandscapePresenter
from app.presenters.train.pictures.memory import MEMORY, MemoryPresenter
from app.selection.references import Line, Module, Parameter
from engine.project import edits
from engine.project.document import Model, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    Check,
    CheckSnapshot,
    CheckTrainingCommand,
    LandscapeCommand,
    LandscapeSnapshot,
    MemoryBlock,
    MemoryCurveSnapshot,
    MemoryOp,
    StopSignal,
    TraceMemoryCommand,
)
from tests.labels import said
from widgets.training.train_view import TrainView

OTHER = Objective(data="data")


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    bench.store.set_project(replace(templates.load_template("mlp"), objective=OTHER))
    view = TrainView()
    qtbot.addWidget(view)
    view.presenters = [  # pyright: ignore[reportAttributeAccessIssue]
        kind(bench, view, bench.window)
        for kind in (ChecksPresenter, LandscapePresenter, MemoryPresenter)
    ]
    return view


def ask(view: TrainView, name: str) -> None:
    if name == "checks":
        view.bar.check_requested.emit()
    elif name == "landscape":
        view.landscape.compute_requested.emit()
    else:
        view.memory.measure_requested.emit()


def words(view: TrainView, name: str) -> str:
    if name == "checks":
        return view.checks._progress.text()
    label = "landscape_words" if name == "landscape" else "step_memory_words"
    return said(getattr(view, name), label)


def check(done: int, total: int = 2) -> CheckSnapshot:
    found = Check(kind="inputs", verdict="good", text="Fine.", evidence="", fix="")
    return CheckSnapshot(check=found, done=done, total=total)


def losses(first: int, *values: float, total: int = 3) -> LandscapeSnapshot:
    return LandscapeSnapshot(
        along=(-1.0, 0.0, 1.0), is_plane=False, first=first, losses=values, total=total, samples=8
    )


def op(number: int, module: str | None = None, file: str = "", line: int = 0) -> MemoryOp:
    return MemoryOp(number, "aten.relu", "forward", module, file, line, "")


def curve(*ops: MemoryOp, blocks: tuple[MemoryBlock, ...] = ()) -> MemoryCurveSnapshot:
    kinds = ("parameters", "gradients", "optimizer", "activations", "data", "other")
    return MemoryCurveSnapshot(
        samples=8, device="cpu", total=len(ops), peak=ops[0].number, ops=ops, blocks=blocks,
        series={kind: (8,) * len(ops) for kind in kinds},  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


WHOLE: dict[str, list[Any]] = {
    "checks": [check(1), check(2)],
    "landscape": [losses(0, 1.0, 0.5), losses(2, 0.75)],
    "memory": [curve(op(1))],
}
COMMANDS = {
    "checks": CheckTrainingCommand, "landscape": LandscapeCommand, "memory": TraceMemoryCommand,
}  # fmt: skip
ALL = pytest.mark.parametrize("name", WHOLE)


@ALL
def test_it_is_asked_about_the_settings_of_now(view: TrainView, bench, link, name: str) -> None:
    bench.store.set_project(replace(bench.project, subject=ConsoleSubject("net")))
    ask(view, name)
    (command,) = link.sent
    assert type(command) is COMMANDS[name]
    project = bench.project
    assert (command.model, command.training, command.subject, command.objective) == (
        project.model, project.training, ConsoleSubject("net"), OTHER,
    )  # fmt: skip


@ALL
def test_an_error_is_told_in_place(view: TrainView, link, name: str) -> None:
    ask(view, name)
    link.fail("There is no data.", "Choose some.")
    assert words(view, name) == "There is no data. Choose some."
    link.close()
    assert words(view, name) == "There is no data. Choose some."  # it had ended by then


@ALL
def test_an_engine_that_ends_is_told_only_while_it_computes(view, link, name: str) -> None:
    ask(view, name)
    asked = len(link.sent)
    for found in WHOLE[name][:-1]:
        link.answer(found)
    link.close()
    assert words(view, name) == "The engine has ended."
    link.answer(WHOLE[name][-1], to=asked)  # what comes late is of no use
    assert words(view, name) == "The engine has ended."
    link.get_ready()
    ask(view, name)
    for found in WHOLE[name]:
        link.answer(found)
    done = words(view, name)
    link.close()
    assert words(view, name) == done != "The engine has ended."


@ALL
def test_without_an_engine_it_is_told_why_nothing_is_sent(view, link, name: str) -> None:
    link.close()
    ask(view, name)
    assert words(view, name) == link.unsent != ""


@ALL
def test_another_setting_outdates_it_and_another_subject_or_model(view, bench, link, name) -> None:
    def done() -> str:
        ask(view, name)
        for found in WHOLE[name]:
            link.answer(found)
        return words(view, name)

    def use(project: Any) -> str:
        bench.store.set_project(project)
        return words(view, name)

    before = done()
    assert use(replace(bench.project, name="other")) == before  # it has nothing to do with it
    moved = replace(bench.project.training, seed=bench.project.training.seed + 1)
    assert "again" in use(edits.set_training(bench.project, moved))
    done()
    assert "again" in use(replace(bench.project, objective=Objective(data="more")))
    for change in ({"subject": ConsoleSubject("net")}, {"model": Model()}):
        done()
        told = use(replace(bench.project, **change))
        if name == "checks":
            assert "again" in told
        else:
            assert told == ""
            assert not (view.landscape.losses if name == "landscape" else view.memory.found)


@pytest.mark.parametrize("name", ["checks", "landscape"])
def test_it_is_stopped_and_what_comes_late_is_dropped(view, bench, link, name: str) -> None:
    ask(view, name)
    link.answer(WHOLE[name][0])
    seed = replace(bench.project.training, seed=bench.project.training.seed + 1)
    bench.store.set_project(edits.set_training(bench.project, seed))
    assert "again" not in words(view, name)  # it goes on
    (view.checks if name == "checks" else view.landscape).stop_requested.emit()
    assert words(view, name) == "Stopped." and link.signals[0] == StopSignal(command=1)
    link.answer(WHOLE[name][1], to=1)
    assert words(view, name) == "Stopped."


def test_a_rate_that_is_wanted_is_set_and_nothing_else(view: TrainView, bench) -> None:
    before = replace(bench.project.training, optimizer_params={"lr": 1.0, "eps": 1e-5})
    bench.store.set_project(edits.set_training(bench.project, before))
    view.checks.rate_wanted.emit(0.0025)
    assert bench.project.training == replace(before, optimizer_params={"lr": 0.0025, "eps": 1e-5})
    assert bench.history.stack.undoText() == "Set lr to 0.0025"


def test_the_slice_is_as_the_pane_says_and_outdated_by_a_step(
    view: TrainView, bench, link, training_snapshot
) -> None:
    ask(view, "landscape")
    (command,) = link.sent
    pane = view.landscape
    assert (command.is_plane, command.points, command.span, command.batches, command.seed) == (
        pane.is_plane, pane.points, pane.span, pane.batches, pane.seed,
    )  # fmt: skip
    link.answer(losses(0, 1.0))
    link._receive(training_snapshot())
    assert "again" not in words(view, "landscape")
    link.answer(losses(1, 1.0, 2.0), to=1)
    link._receive(training_snapshot(step=2))
    assert "again" in words(view, "landscape")


@pytest.mark.parametrize(
    ("block", "made", "chosen"),
    [
        (("parameters", "0.weight"), None, Parameter("0.weight")),
        (("gradients", "0.weight.grad"), op(1, "0"), Parameter("0.weight")),
        (("optimizer", "exp_avg of 0.weight"), None, Parameter("0.weight")),
        (("parameters", ""), op(1, "0"), Module("0")),
        (("activations", "0.weight"), op(1, "0"), Module("0")),
        (("activations", ""), op(1, "0", "net.py", 7), Line("net.py", 7)),
        (("activations", ""), op(1, ""), Module("")),
        (("activations", ""), op(1), None),
        (("activations", ""), None, None),
    ],
)
def test_the_part_of_a_storage_is_chosen(view: TrainView, bench, block, made, chosen) -> None:
    kind, name = block
    view.memory.block_chosen.emit(MemoryBlock(kind, 8, 1, -1, 0, name), made)
    assert bench.selection.current == chosen
    assert bench.selection.views[view.memory] == MEMORY
