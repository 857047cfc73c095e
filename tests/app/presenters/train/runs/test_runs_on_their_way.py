"""Runs that are written as event files or copied along: where to, progress, Stop, and the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.presenters.train.runs.event_files import EventFilesPresenter
from app.presenters.train.runs.run_copies import RunCopies
from app.presenters.train.runs.sweeps import options_of
from engine.project.document import Block, Model, Project, TrainingSetup
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    CopiedRunsSnapshot,
    CopyRunsCommand,
    EventsSnapshot,
    KeptState,
    ListRunsCommand,
    RunRow,
    RunsSnapshot,
    StopSignal,
    WriteEventsCommand,
)
from widgets.runs.run_pane import RunPane
from widgets.runs.sweep_pane import SweepOption

OUT = "/out"


@pytest.fixture
def pane(bench, link, qtbot) -> RunPane:
    link.get_ready()
    pane = RunPane()
    qtbot.addWidget(pane)
    EventFilesPresenter(bench, pane, bench.window)
    RunCopies(bench, pane, bench.window)
    bench.dialogs.open_folder = lambda parent, title, start: OUT
    return pane


def told(pane: RunPane) -> str:
    return pane.told.text()


def test_runs_are_written_as_event_files(pane: RunPane, link) -> None:
    pane.events_requested.emit(("/runs/a", "/runs/b"))
    command = link.sent[-1]
    assert isinstance(command, WriteEventsCommand)
    assert (command.folders, command.path) == (("/runs/a", "/runs/b"), OUT)
    assert told(pane) == "Writing event files into /out…" and not pane.stop.isHidden()
    link.answer(EventsSnapshot(path=OUT, runs=1, steps=2000))
    assert told(pane) == "Writing event files into /out: run 2 of 2, 2,000 steps…"
    link.answer(EventsSnapshot(path=OUT, runs=2, written=("/out/a", "/out/b")))
    assert told(pane).startswith("Written into /out: a, b.") and pane.stop.isHidden()
    link.close()
    assert told(pane).startswith("Written into /out")  # it had ended


def test_without_a_folder_or_an_engine_none_is_written(pane: RunPane, bench, link) -> None:
    bench.dialogs.open_folder = lambda parent, title, start: ""
    pane.events_requested.emit(("/runs/a",))
    assert link.sent == [] and told(pane) == ""
    bench.dialogs.open_folder = lambda parent, title, start: OUT
    link.close()
    pane.events_requested.emit(("/runs/a",))
    assert told(pane) == link.unsent and pane.stop.isHidden()


def test_writing_is_stopped_and_its_error_told(pane: RunPane, link) -> None:
    pane.stop_requested.emit()
    assert link.signals == []  # nothing goes on
    pane.events_requested.emit(("/runs/a",))
    pane.stop_requested.emit()
    assert told(pane).startswith("Stopped. The event files of the runs before stay")
    assert isinstance(link.signals[0], StopSignal) and pane.stop.isHidden()
    link.answer(EventsSnapshot(path=OUT, runs=0, steps=5))
    assert told(pane).startswith("Stopped.")
    pane.events_requested.emit(("/runs/a",))
    link.fail("It has something already.", "Choose another.")
    assert told(pane) == "It has something already. Choose another." and pane.stop.isHidden()


# -- copies ------------------------------------------------------------------------------------


@pytest.fixture
def saved_as(pane: RunPane, bench, link, tmp_path: Path):
    """Say that the project has been saved as `new.tlab`, with these runs beside the file before."""

    def save(*states: KeptState, name: str = "new.tlab") -> None:
        bench.files.path = str(tmp_path / name) if name else ""
        bench.files.saved_as.emit(str(tmp_path / "old.tlab"))
        assert isinstance(link.sent[-1], ListRunsCommand)
        assert link.sent[-1].runs == str(tmp_path / "old.runs")
        rows = tuple(RunRow(folder=f"/{n}", state=state) for n, state in enumerate(states))
        link.answer(RunsSnapshot(folder=str(tmp_path / "old.runs"), runs=rows))

    return save


def test_runs_are_copied_along_once_the_user_agrees(saved_as, pane, bench, link, tmp_path) -> None:
    seen: list[bool] = []
    pane.came_in_sight.connect(lambda: seen.append(True))
    saved_as("finished", "running", "stopped", "silent", "damaged", "cut off")
    (question,) = bench.dialogs.asked
    assert "old.runs has 3 runs of this project. Copy them beside new.tlab, too?" in question
    assert question.endswith(" The run that is under way stays there.")
    command = link.sent[-1]
    assert isinstance(command, CopyRunsCommand)
    assert (command.folders, command.runs) == (("/0", "/2", "/5"), str(tmp_path / "new.runs"))
    assert told(pane) == "Copying 3 runs…"
    link.answer(CopiedRunsSnapshot(runs=3, copied=1))
    assert told(pane) == "Copying runs: 2 of 3…" and not pane.stop.isHidden() and not seen
    link.answer(CopiedRunsSnapshot(runs=3, copied=3))
    assert told(pane) == "3 runs are copied." and pane.stop.isHidden() and seen == [True]


def test_nothing_is_copied_that_is_not_wanted(saved_as, bench, link, pane) -> None:
    for states, name in (((), "new.tlab"), (("running",), "new.tlab"), (("finished",), "old.tlab")):
        saved_as(*states, name=name)
        assert bench.dialogs.asked == []
    bench.dialogs.agrees = False
    saved_as("finished")
    assert bench.dialogs.asked[0].endswith("Copy them beside new.tlab, too?")
    assert "has 1 run of" in bench.dialogs.asked[0]
    assert not any(isinstance(each, CopyRunsCommand) for each in link.sent)
    pane.stop_requested.emit()
    assert link.signals == [] and told(pane) == ""


def test_copying_is_stopped_and_its_error_told(saved_as, pane, link) -> None:
    saved_as("finished")
    pane.stop_requested.emit()
    assert told(pane).startswith("Stopped. The runs that are copied stay")
    assert isinstance(link.signals[0], StopSignal)
    saved_as("finished")
    link.fail("The disk is full.", "Free some space.")
    assert told(pane) == "The disk is full. Free some space." and pane.stop.isHidden()
    saved_as("finished")
    link.close()
    assert told(pane) == "" and pane.stop.isHidden()


# -- what can vary in a sweep --------------------------------------------------------------------


def test_the_usual_settings_of_a_sweep_come_first_each_with_what_to_try() -> None:
    setup = TrainingSetup(optimizer="optim.SGD", batch_size=1, epochs=5)
    linear = Block("1", "nn.Linear", "linear", {"in_features": 2, "out_features": 3})
    dropout = Block("2", "nn.Dropout", "dropout")
    found = options_of(Project(model=Model((linear, dropout), ()), training=setup))
    assert found[:7] == [
        SweepOption("optimizer_params.lr", "Learning rate", "1e-4..1e-1:log"),
        SweepOption("batch_size", "Batch size", "1, 2"),
        SweepOption("optimizer", "Optimizer", "optim.Adam, optim.AdamW, optim.SGD, optim.RMSprop"),
        SweepOption("epochs", "Epochs", "2, 5, 10"),
        SweepOption("seed", "Seed", "0, 1, 2, 3, 4"),
        SweepOption("clip_norm", "Largest gradient norm", "0.1..10:log"),
        SweepOption("accumulate", "Batches per step", "1, 2, 4"),
    ]
    others = {option.name: option.values for option in found[7:]}
    assert others["optimizer_params.weight_decay"] == "1e-6..1e-1:log"
    assert others["optimizer_params.nesterov"] == "True, False"
    assert "optimizer_params.lr" not in others and "optimizer_params.maximize" not in others
    assert others["blocks.linear.bias"] == "True, False" and others["blocks.dropout.p"] == "0..0.99"
    assert not any("features" in name for name in others)
    adam = options_of(Project(training=TrainingSetup(optimizer="optim.Adam")))
    assert not any(option.name.endswith("eps") for option in adam)


def test_the_blocks_of_a_canvas_that_is_not_trained_do_not_vary() -> None:
    dropout = Model((Block("2", "nn.Dropout", "dropout"),), ())
    found = options_of(Project(model=dropout, subject=ConsoleSubject("net")))
    assert not any(option.name.startswith("blocks") for option in found)
