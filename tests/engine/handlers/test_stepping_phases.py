"""The phases of a step, one by one: their numbers, what may happen between them, and Back."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

import pytest
import torch
from torch.nn import utils

from engine.datasets.dataset import epoch_order
from engine.datasets.load import load_dataset
from engine.project.document import ParamGroup, TrainingSetup, replace
from engine.project.step_order import PHASES
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    RunMark,
    StepTrainingCommand,
    TrainCommand,
)
from engine.training.checkpoints import checkpoint_files

from .test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=2, batch_size=512, seed=3, optimizer_params={"lr": 0.01})


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def begin(client: Client, setup: TrainingSetup = SETUP) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True, paused=True))


def end(setup: TrainingSetup = SETUP) -> dict[str, torch.Tensor]:
    """The weights of a run without a pause."""
    client = Client()
    client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True))
    client.run_to_end()
    weights = client.weights()
    client.session.close()
    return weights


def module(client: Client) -> torch.nn.Module:
    return client.session.lab.models.live.module


def test_a_step_that_was_left_between_its_phases_has_no_time(client: Client) -> None:
    begin(client)
    for _ in PHASES:
        client.send(StepTrainingCommand(id=2, by="phase"))
    client.send(StepTrainingCommand(id=3))
    rows = checkpoint_files.load(client.last.checkpoint).history
    assert [isnan(row.step_ms) for row in rows] == [True, False]


def test_each_phase_has_the_numbers_of_plain_torch(client: Client) -> None:
    begin(client)
    before = client.weights()
    data = load_dataset(SETUP.data)
    rows = epoch_order(len(data), SETUP.seed, 0)[: SETUP.batch_size]
    seen = []
    for phase in PHASES:
        client.send(StepTrainingCommand(id=2, by="phase"))
        last = client.last
        assert last.state == "paused"
        assert last.step_numbers is not None and last.step_numbers.done[-1] == phase
        assert last.is_in_step == (phase != "step")
        seen.append(last.step_numbers)
    assert [n.prediction for n in seen] == [(), *[(512, 10)] * 4]
    torch.manual_seed(SETUP.seed)
    model = module(client)
    now = client.weights()
    model.load_state_dict(before)
    model.train()
    grads = [p.grad for p in model.parameters()]
    loss = torch.nn.functional.cross_entropy(model(data.x_train[rows]), data.y_train[rows])
    assert [n.loss for n in seen] == [None, None, *[loss.item()] * 3]
    wanted = torch.autograd.grad(loss, list(model.parameters()))
    for mine, theirs in zip(grads, wanted, strict=True):
        assert mine is not None
        assert torch.equal(mine, theirs)
    norm = float(utils.get_total_norm(wanted))
    assert [n.gradient_norm for n in seen] == [None, None, None, norm, norm]
    moved = float(utils.get_total_norm([now[n] - before[n] for n, _ in model.named_parameters()]))
    assert [n.update_norm for n in seen] == [None] * 4 + [pytest.approx(moved)]
    model.load_state_dict(now)


def test_weights_change_in_the_last_phase_only_and_the_run_ends_as_without(client: Client) -> None:
    begin(client)
    before = client.weights()
    for _ in range(4):
        client.send(StepTrainingCommand(id=2, by="phase"))
        assert_equal(client.weights(), before)
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert client.last.state == "finished"
    assert_equal(client.weights(), end())


def test_what_others_do_to_gradients_between_two_phases_does_not_reach_the_run(
    client: Client,
) -> None:
    begin(client)
    for _ in range(4):
        client.send(StepTrainingCommand(id=2, by="phase"))
    lab = client.session.lab
    with lab.run.between_steps():
        for parameter in module(client).parameters():
            parameter.grad.zero_()
        torch.rand(3)
    client.send(StepTrainingCommand(id=4))
    assert client.last.step == 1 and not client.last.is_in_step
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert_equal(client.weights(), end())


@pytest.mark.parametrize("phases", [1, 3, 4])
def test_back_from_the_middle_of_a_step_to_its_start(client: Client, phases: int) -> None:
    begin(client)
    client.send(StepTrainingCommand(id=2))
    here = client.weights()
    for _ in range(phases):
        client.send(StepTrainingCommand(id=3, by="phase"))
    client.send(TrainCommand(id=4, model=MLP, training=SETUP, to_step=1))
    client.run_to_end()
    assert (client.last.state, client.last.step, client.last.is_in_step) == ("paused", 1, False)
    assert_equal(client.weights(), here)
    client.send(ContinueTrainingCommand(id=5))
    client.run_to_end()
    assert_equal(client.weights(), end())


def test_a_step_by_hand_has_the_numbers_too_and_a_running_one_has_none(client: Client) -> None:
    begin(client)
    assert client.last.step_numbers is None
    client.send(StepTrainingCommand(id=2))
    numbers = client.last.step_numbers
    assert numbers is not None
    assert (numbers.number, numbers.done) == (1, PHASES)
    assert numbers.update_norm
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert client.last.step_numbers is None


def test_phases_of_several_batches_and_of_another_order(client: Client) -> None:
    order = ("step", "zero_grad", "forward", "loss", "backward")
    begin(client, replace(SETUP, accumulate=2, order=order))
    done = []
    while not done or client.last.is_in_step:
        client.send(StepTrainingCommand(id=2, by="phase"))
        numbers = client.last.step_numbers
        assert numbers is not None
        done.append((numbers.done[-1], numbers.batches_done))
    assert [n for _, n in done] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert len(done) == 8


@pytest.mark.parametrize("accumulate", [1, 3])
def test_batch_by_batch_through_a_step(client: Client, accumulate: int) -> None:
    setup = replace(SETUP, accumulate=accumulate, epochs=4)
    begin(client, setup)
    told = []
    for _ in range(2 * accumulate):
        client.send(StepTrainingCommand(id=2, by="batch"))
        numbers = client.last.step_numbers
        assert numbers is not None and client.last.state == "paused"
        told.append((client.last.step, client.last.is_in_step, numbers.batches_done))
    assert told == [
        (step + (batch == accumulate), batch < accumulate, batch)
        for step in range(2)
        for batch in range(1, accumulate + 1)
    ]
    client.send(StepTrainingCommand(id=2, by="phase"))
    client.send(StepTrainingCommand(id=2, by="phase"))
    client.send(StepTrainingCommand(id=2, by="batch"))  # the rest of the batch
    assert client.last.is_in_step is (accumulate > 1)
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    found = client.weights()
    begin(client, setup)
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert_equal(found, client.weights())


def test_stopping_in_the_middle_of_a_step_writes_no_state_of_it(client: Client) -> None:
    begin(client)
    client.send(StepTrainingCommand(id=2))
    path = client.last.checkpoint
    client.send(StepTrainingCommand(id=3, by="phase"))
    client.send(StepTrainingCommand(id=3, by="phase"))
    client.session.lab.control.stop.set()
    client.run_to_end()
    assert (client.last.state, client.last.checkpoint, client.last.step) == ("stopped", path, 1)
    client.session.lab.control.stop.clear()
    client.session.lab.control.pause.clear()
    client.send(TrainCommand(id=5, model=MLP, training=SETUP, checkpoint=path))
    client.run_to_end()
    assert_equal(client.weights(), end())


def test_lbfgs_runs_as_one_phase(client: Client) -> None:
    begin(client, replace(SETUP, optimizer="optim.LBFGS", optimizer_params={"lr": 0.1}))
    client.send(StepTrainingCommand(id=2, by="phase"))
    assert (client.last.step, client.last.is_in_step) == (1, False)
    assert client.last.step_numbers is not None and client.last.step_numbers.done == PHASES


def test_new_settings_hold_from_the_step_at_which_they_were_made(client: Client) -> None:
    """Back to a step, with other settings, on, and back again to a step behind it."""
    begin(client)
    for _ in range(3):
        client.send(StepTrainingCommand(id=2))
    clipped = replace(SETUP, clip_norm=0.01)
    client.send(TrainCommand(id=3, model=MLP, training=clipped, to_step=1))
    client.run_to_end()
    client.send(StepTrainingCommand(id=4))
    wanted = client.weights()
    client.send(StepTrainingCommand(id=5))
    client.send(TrainCommand(id=6, model=MLP, training=clipped, to_step=2))
    client.run_to_end()
    assert_equal(client.weights(), wanted)


def test_a_module_frozen_in_the_middle_of_a_step_stays_from_the_next_one_on(
    client: Client,
) -> None:
    frozen = replace(SETUP, groups=(ParamGroup("linear1", {}, True),))
    begin(client)
    for number in range(2):
        client.send(StepTrainingCommand(id=2 + number, by="phase"))
    client.send(AdjustTrainingCommand(id=4, training=frozen))
    client.send(StepTrainingCommand(id=5))  # the rest of the step
    first = client.weights()
    assert [(mark.step, mark.text) for mark in client.last.marks] in ([], [(1, "linear1 frozen")])
    client.send(StepTrainingCommand(id=6))
    second = client.weights()
    assert client.last.marks == (RunMark(1, "linear1 frozen"),)
    assert torch.equal(first["linear1.weight"], second["linear1.weight"])
    assert not torch.equal(first["linear2.weight"], second["linear2.weight"])
    other = Client()
    begin(other)
    other.send(StepTrainingCommand(id=2))
    assert_equal(first, other.weights())
    other.session.close()
