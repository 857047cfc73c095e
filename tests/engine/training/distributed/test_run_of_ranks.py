"""A run of two real processes, as the window has it: stepped, adjusted, paused, read, stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from engine.project import files
from engine.project.document import HoldWhen, Project
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    RanksSnapshot,
    ReadRanksCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.runs.record import load
from engine.training.checkpoints import checkpoint_files
from tests.engine.training.distributed.driven import Driven, is_paused_at
from tests.engine.training.distributed.one_rank import TEMPLATES

pytestmark = [pytest.mark.usefixtures("forked_processes"), pytest.mark.timeout(600)]
LR = 0.02


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


@pytest.fixture(scope="module")
def driven(
    forked_processes: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, Driven]]:
    """Runs that go on from test to test."""
    found = drive(tmp_path_factory.mktemp("driven"))
    yield found
    for run in found.values():
        run.session.close()


def drive(folder: Path) -> dict[int, Driven]:
    """By the number of processes, a run that was stepped by hand with settings that changed."""
    found = {}
    for processes in (1, 2):
        run = found[processes] = Driven(project_of(processes), folder / str(processes) / "run")
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
    return found


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
    assert Path(told.log).read_text().splitlines() == list(told.lines)


def test_what_they_cannot_do_is_refused_in_words_and_the_run_goes_on(
    driven: dict[int, Driven],
) -> None:
    run = driven[2]
    run.told.clear()
    run.send(StepTrainingCommand(by="op"))
    run.send(TrainCommand(model=run.project.model, training=run.project.training, to_step=1))
    refused = [each.error.message for each in run.told if isinstance(each, ErrorSnapshot)]
    assert "go on by phases" in refused[0]
    assert "does not go to one of its steps" in refused[1]
    assert run.session.lab.is_training  # it goes on as it was


def test_the_phases_of_a_step_and_what_holds_it_are_those_of_one_process(
    forked_processes: None, tmp_path: Path
) -> None:
    driven, texts = drive(tmp_path), {}
    for processes, run in driven.items():
        for done in ("zero_grad", "forward", "loss"):
            run.send(StepTrainingCommand(by="phase"))
            told = run.until(lambda told, done=done: _done(told)[-1:] == (done,))
            assert told.is_in_step and told.step == 3
        run.send(StepTrainingCommand())
        run.until(is_paused_at(4))
        setup = run.project.training
        params = {**setup.optimizer_params, "lr": LR}
        held = msgspec.structs.replace(
            setup, optimizer_params=params, hold=HoldWhen(gradient_norm=1e-6)
        )
        run.send(AdjustTrainingCommand(training=held))
        run.send(ContinueTrainingCommand())
        told = run.until(lambda told: told.hold is not None)
        assert (told.state, told.is_in_step, told.step) == ("paused", True, 4)
        texts[processes] = told.hold.text
        let_go = msgspec.structs.replace(held, hold=HoldWhen())
        run.send(AdjustTrainingCommand(training=let_go))
        run.send(StepTrainingCommand())
        run.until(is_paused_at(5))
    norms = [float(text.partition(" is ")[2].partition(",")[0]) for text in texts.values()]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    test_steps_by_hand_are_those_of_one_process(driven)
    for run in driven.values():
        run.session.close()


def _done(told: TrainingSnapshot) -> tuple[str, ...]:
    return () if told.step_numbers is None else told.step_numbers.done


def test_a_run_goes_on_pauses_and_tells_of_a_rank_that_is_killed(driven: dict[int, Driven]) -> None:
    run = driven[2]
    run.send(ContinueTrainingCommand())
    run.until(lambda told: told.state == "running" and told.step > 5)
    run.session.lab.control.pause.set()
    paused = run.until(lambda told: told.state == "paused" and told.step == told.checkpoint_step)
    saved = checkpoint_files.load(paused.checkpoint)
    assert saved.step == paused.step
    for name, value in run.weights().items():
        assert torch.equal(value, saved.model[name])
    assert Path(paused.checkpoint).suffix == ".pt"
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
    record = load(run.folder)
    assert (record.state, record.error) == ("failed", failed.error.message)
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
