"""A run of two real processes, as the window has it: stepped, adjusted, paused, read, stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import torch

from engine.project import files
from engine.project.document import Project
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    RanksSnapshot,
    ReadRanksCommand,
    Snapshot,
    StepPhaseCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.session import Session
from engine.training.checkpoints import checkpoint_files
from tests.engine.training.distributed.one_rank import TEMPLATES

pytestmark = pytest.mark.timeout(600)
LR = 0.02


class Driven:
    """A session that trains a project, and what it has told."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.told = project, list[Snapshot]()
        self.session = Session(self.told.append)
        self.folder = folder
        self._id = 0

    def send(self, command) -> None:
        self._id += 1
        self.session.handle(msgspec.structs.replace(command, id=self._id))

    def train(self) -> None:
        self.send(
            TrainCommand(
                model=self.project.model,
                training=self.project.training,
                paused=True,
                folder=str(self.folder),
            )
        )

    def until(self, is_there: Callable[[TrainingSnapshot], bool]) -> TrainingSnapshot:
        """Go on until the run tells something."""
        while True:
            self.session.advance()
            for snapshot in self.told:
                if isinstance(snapshot, TrainingSnapshot) and is_there(snapshot):
                    self.told.clear()
                    return snapshot
            assert self.session.lab.is_training, self.told

    def weights(self) -> dict[str, torch.Tensor]:
        """Those of the live model."""
        live = self.session.lab.models.live
        assert live is not None
        return {name: tensor.clone() for name, tensor in live.module.state_dict().items()}


def project_of(processes: int) -> Project:
    project = files.load(TEMPLATES / "mlp.tlab")
    training = msgspec.structs.replace(
        project.training,
        processes=processes,
        epochs=400,
        optimizer="optim.SGD",
        optimizer_params={"lr": 0.1, "momentum": 0.9},
    )
    return msgspec.structs.replace(project, training=training)


def is_paused_at(step: int) -> Callable[[TrainingSnapshot], bool]:
    return lambda run: run.state == "paused" and run.step == run.checkpoint_step == step


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Driven]]:
    """By the number of processes, a run that was stepped by hand with settings that changed."""
    found = {}
    for processes in (1, 2):
        folder = tmp_path_factory.mktemp("driven") / "run"
        run = found[processes] = Driven(project_of(processes), folder)
        run.train()
        run.until(is_paused_at(0))
        for step in (1, 2):
            run.send(StepTrainingCommand())
            run.until(is_paused_at(step))
        setup = run.project.training
        params = {**setup.optimizer_params, "lr": LR}
        run.send(
            AdjustTrainingCommand(training=msgspec.structs.replace(setup, optimizer_params=params))
        )
        run.send(StepTrainingCommand())
        run.until(is_paused_at(3))
    yield found
    for run in found.values():
        run.session.close()


def test_steps_by_hand_are_those_of_one_process(driven: dict[int, Driven]) -> None:
    one, two = (driven[processes].weights() for processes in (1, 2))
    assert one.keys() == two.keys()
    for name, expected in one.items():
        torch.testing.assert_close(two[name], expected, rtol=0, atol=1e-6)


def test_the_ranks_of_a_run_are_read(driven: dict[int, Driven]) -> None:
    run = driven[2]
    run.send(ReadRanksCommand(folder=str(run.folder), rank=1))
    told = next(each for each in run.told if isinstance(each, RanksSnapshot))
    assert [(row.rank, row.state) for row in told.rows] == [(0, "running"), (1, "running")]
    process = told.rows[1].process
    assert told.lines == (f"Rank 1 of 2: process {process}.",) == (told.rows[1].last,)
    assert psutil.Process(process).environ()["RANK"] == "1"
    assert Path(told.log).read_text().splitlines() == list(told.lines)


def test_a_phase_by_hand_and_a_way_back_are_refused_in_words(driven: dict[int, Driven]) -> None:
    run = driven[2]
    run.told.clear()
    run.send(StepPhaseCommand())
    run.send(TrainCommand(model=run.project.model, training=run.project.training, to_step=1))
    refused = [each.error.message for each in run.told if isinstance(each, ErrorSnapshot)]
    assert "whole steps" in refused[0] and "Only a run of one process" in refused[1]
    assert run.session.lab.is_training  # it goes on as it was


def test_a_run_goes_on_pauses_and_tells_of_a_rank_that_is_killed(driven: dict[int, Driven]) -> None:
    run = driven[2]
    run.send(ContinueTrainingCommand())
    run.until(lambda told: told.state == "running" and told.step > 3)
    run.session.lab.control.pause.set()
    paused = run.until(lambda told: told.state == "paused" and told.step == told.checkpoint_step)
    saved = checkpoint_files.load(paused.checkpoint)
    assert saved.step == paused.step
    for name, value in run.weights().items():
        assert torch.equal(value, saved.model[name])
    written = {path.name for path in Path(paused.checkpoint).iterdir()}
    assert written == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    run.told.clear()
    run.send(ReadRanksCommand(folder=str(run.folder), rank=1))
    (told,) = (each for each in run.told if isinstance(each, RanksSnapshot))
    os.kill(told.rows[1].process, signal.SIGKILL)
    run.send(ContinueTrainingCommand())
    failed = run.until(lambda told: told.state == "failed")
    assert failed.error is not None
    assert failed.error.message == "Rank 1 was ended by SIGKILL."
    assert f"It printed last:\nRank 1 of 2: process {told.rows[1].process}." in failed.error.hint
    assert f"checkpoint is step {paused.step:,}." in failed.error.hint
    run.send(ReadRanksCommand(folder=str(run.folder)))
    (told,) = (each for each in run.told if isinstance(each, RanksSnapshot))
    assert [row.state for row in told.rows] == ["failed", "failed"]
    other, killed = (row.end for row in told.rows)
    assert killed == "was ended by SIGKILL."
    # Rank 0 misses it, unless the launcher is quicker.
    assert other in ("ended since another one had.", "was ended by SIGTERM.")


def test_a_run_is_stopped_while_its_processes_start(tmp_path: Path) -> None:
    run = Driven(project_of(2), tmp_path / "run")
    run.train()
    run.session.lab.control.stop.set()
    run.until(lambda told: told.state == "stopped")
    while run.session.advance():
        pass
    assert not run.folder.exists()
    run.session.close()
