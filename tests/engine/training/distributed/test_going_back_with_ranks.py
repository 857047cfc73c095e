"""A run of two real processes that goes to its steps, back and on, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from engine.errors import LabError
from engine.project.document import Project, TrainingSetup
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.runs.record import load
from engine.training.checkpoints.run_states import RunStates
from tests.engine.handlers.test_training_handlers import MLP, assert_equal
from tests.engine.training.distributed.driven import Driven, is_paused_at

pytestmark = pytest.mark.timeout(900)
SETUP = TrainingSetup(
    epochs=2, batch_size=512, seed=3, processes=2, optimizer_params={"lr": 0.01}
)  # with dropout: three steps an epoch
SLOWER = msgspec.structs.replace(SETUP, optimizer_params={"lr": 0.001})
Weights = dict[str, torch.Tensor]


def go_to(run: Driven, step: int, setup: TrainingSetup = SLOWER) -> Weights:
    run.send(TrainCommand(model=MLP, training=setup, to_step=step))
    told = run.until(is_paused_at(step))
    assert told.processes == 2
    return run.weights()


@pytest.fixture
def stepped(tmp_path: Path) -> Iterator[tuple[Driven, list[Weights]]]:
    """A run that became slower after its third step, and the weights after each of its steps."""
    run = Driven(Project(model=MLP, training=SETUP), tmp_path / "run")
    run.train()
    run.until(is_paused_at(0))
    weights = [run.weights()]
    for step in range(1, 6):
        run.send(StepTrainingCommand())
        run.until(is_paused_at(step))
        weights.append(run.weights())
        if step == 3:
            run.send(AdjustTrainingCommand(training=SLOWER))
    yield run, weights
    run.session.close()


def test_back_and_on_and_another_way(stepped: tuple[Driven, list[Weights]]) -> None:
    run, weights = stepped
    first = load(run.folder)
    assert_equal(go_to(run, 4), weights[4])  # over the change
    assert load(run.folder).state == "stopped"
    forks = [each for each in run.folder.parent.iterdir() if each != run.folder]
    assert len(forks) == 1
    origin = load(forks[0]).origin
    assert origin is not None and (origin.run, origin.step) == (first.id, 4)
    assert_equal(go_to(run, 2, SETUP), weights[2])
    assert_equal(go_to(run, 3, SETUP), weights[3])  # on, in the same run
    assert len([*run.folder.parent.iterdir()]) == 3
    run.send(StepTrainingCommand())
    run.until(is_paused_at(4))
    faster = run.weights()  # as the run would have been without the change
    assert not torch.equal(faster["linear1.weight"], weights[4]["linear1.weight"])
    run.send(StepTrainingCommand(by="epoch"))
    run.until(lambda told: told.state == "finished")
    assert_equal(go_to(run, 4, SETUP), faster)  # after its end, too
    run.send(ContinueTrainingCommand())
    last = run.until(lambda told: told.state == "finished")
    assert last.step == 6


def test_what_has_no_state_or_another_loss_is_refused(
    stepped: tuple[Driven, list[Weights]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = stepped
    monkeypatch.setattr(RunStates, "newest_in", lambda folder, step: None)
    with pytest.raises(LabError, match="no state from which step 1 can be reached"):
        run.session.lab.run.on_the_way(TrainCommand(model=MLP, training=SLOWER, to_step=1))
    monkeypatch.undo()
    other = msgspec.structs.replace(SLOWER, loss="nn.MultiMarginLoss")
    with pytest.raises(LabError, match="which had another loss"):
        run.session.lab.run.on_the_way(TrainCommand(model=MLP, training=other, to_step=1))
    one = msgspec.structs.replace(SETUP, processes=1)
    run.told.clear()
    run.send(TrainCommand(model=MLP, training=one, to_step=1))
    (refused,) = [each for each in run.told if isinstance(each, ErrorSnapshot)]
    assert "number of processes of a run cannot change" in refused.error.message
    assert not [each for each in run.told if isinstance(each, TrainingSnapshot)]
    assert run.session.lab.is_training
