"""A run that goes to one of its steps, back or on, and from there another way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import nn

from engine.datasets.load import load_dataset
from engine.project.document import DataSetup, ParamGroup, Schedule, TrainingSetup, replace
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    RunMark,
    StepTrainingCommand,
    TrainCommand,
)
from engine.system.errors import LabError
from engine.training import run
from engine.training.loop import TrainingLoop

from .test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=3, batch_size=512, seed=3, optimizer_params={"lr": 0.01})
STEPS = 9  # three batches of 1,437 samples in each of three epochs
SGD = replace(SETUP, optimizer="optim.SGD", optimizer_params={"lr": 0.5, "momentum": 0.9})


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


@pytest.fixture(autouse=True)
def _every_third_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are kept by steps here, not by time, and where one must be kept."""
    keep = run.TrainingRun._keep

    def by_steps(self: run.TrainingRun) -> None:
        if self.step % 3 == 0 or not self._keep_due_s:
            keep(self)
        self._keep_due_s = 1.0

    monkeypatch.setattr(run.TrainingRun, "_keep", by_steps)
    monkeypatch.setattr(run, "perf_counter", lambda: 2.0)


def begin(client: Client, setup: TrainingSetup = SETUP, **options) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True, **options))


def go_to(client: Client, step: int, setup: TrainingSetup = SETUP) -> None:
    client.send(TrainCommand(id=2, model=MLP, training=setup, to_step=step))
    client.run_to_end()


def after(steps: int, setup: TrainingSetup = SETUP) -> dict[str, torch.Tensor]:
    """The weights of a run that did so many steps and never went back."""
    client = Client()
    begin(client, setup, paused=True)
    for _ in range(steps):
        client.send(StepTrainingCommand(id=2))
    weights = client.weights()
    client.session.close()
    return weights


@pytest.mark.parametrize(
    "setup",
    [
        SETUP,
        replace(SGD, schedule=Schedule("lr_scheduler.StepLR", {"step_size": 1}), clip_norm=0.1),
    ],
)
def test_back_to_each_step_and_on_to_the_end_bit_for_bit(client: Client, setup) -> None:
    begin(client, setup)
    client.run_to_end()
    end = client.weights()
    for step in (5, 9, 0, 3, 4, 8, 1):
        go_to(client, step, setup)
        assert (client.last.state, client.last.step) == ("paused", step), client.last.error
        assert_equal(client.weights(), after(step, setup))
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert client.last.state == "finished"
    assert_equal(client.weights(), end)


def test_the_scaler_of_float16_goes_back_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a scale that grows with each step until a gradient is too large, which skips a step."""
    scaler = partial(torch.amp.GradScaler, init_scale=2.0**17, growth_interval=1)
    monkeypatch.setattr(torch.amp, "GradScaler", scaler)
    setup = replace(SGD, precision="float16")

    def state() -> tuple[float, dict[str, torch.Tensor]]:
        live = client.session.lab.run
        assert isinstance(live, run.TrainingRun)
        return live.loop.checkpoint("run").scaler["scale"], client.weights()  # pyright: ignore

    begin(client, setup, paused=True)
    states = [state()]
    for _ in range(STEPS - 1):
        client.send(StepTrainingCommand(id=2))
        states.append(state())
    scales = [scale for scale, _ in states]
    assert len(set(scales)) > 2 and sorted(scales) != scales  # a step was skipped
    for step in (5, 7, 1, 4, 2):
        go_to(client, step, setup)
        scale, weights = state()
        assert scale == scales[step]
        assert_equal(weights, states[step][1])


def test_a_paused_run_goes_on_to_a_step_and_back(client: Client) -> None:
    begin(client, paused=True)
    first = client.last.run
    go_to(client, 7)
    assert (client.last.step, client.last.run) == (7, first)
    assert_equal(client.weights(), after(7))
    go_to(client, 2)
    assert client.last.step == 2 and client.last.run != first
    assert_equal(client.weights(), after(2))


def test_the_plots_get_the_steps_up_to_there_and_no_others(client: Client) -> None:
    begin(client)
    client.run_to_end()
    before = [s.steps for s in client.said]
    seen = len(client.said)
    go_to(client, 5)
    steps = [n for s in client.said[seen:] for n in s.steps.step]
    assert steps == [1, 2, 3, 4, 5]
    losses = [loss for s in client.said[seen:] for loss in s.steps.loss]
    assert losses == [loss for columns in before for loss in columns.loss][:5]
    epochs = [row.epoch for s in client.said[seen:] for row in s.epoch_rows]
    assert epochs == [1]


@pytest.mark.parametrize(
    "slower",
    [
        replace(SETUP, optimizer_params={"lr": 0.001}),
        replace(SETUP, groups=(ParamGroup("linear1", {}, True),), clip_norm=0.1),
    ],
)
def test_other_settings_on_the_way_are_repeated_where_they_came(client: Client, slower) -> None:
    def train(client: Client, steps: int) -> None:
        begin(client, paused=True)
        for step in range(steps):
            if step == 4:
                client.send(AdjustTrainingCommand(id=2, training=slower))
            client.send(StepTrainingCommand(id=2))

    train(client, 9)
    for step in (8, 5, 3):
        go_to(client, step, slower)
        other = Client()
        train(other, step)
        assert_equal(client.weights(), other.weights())
        marked = [mark.step for mark in client.last.marks]
        assert marked == ([4] if step > 4 else [step])  # at a step before, the settings of now
        other.session.close()


def plain_fork(start: dict[str, torch.Tensor], at: int) -> dict[str, torch.Tensor]:
    """Adam for the first `at` steps, then SGD: written by hand."""
    torch.manual_seed(SETUP.seed)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)
    )
    names = {"1.": "linear1.", "4.": "linear2."}
    model.load_state_dict({new + k: start[old + k] for new, old in names.items()
                           for k in ("weight", "bias")})  # fmt: skip
    torch.manual_seed(SETUP.seed)
    dataset = load_dataset(SETUP.data)
    optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        if step == at:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        x, y = dataset.train_batch(step % 3, SETUP.batch_size, SETUP.seed, step // 3)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    state = model.state_dict()
    return {old + k: state[new + k] for new, old in names.items() for k in ("weight", "bias")}


@pytest.mark.parametrize("at", [0, 4, 6])
def test_from_there_on_with_another_optimizer(client: Client, at: int) -> None:
    begin(client, paused=True)
    start = client.weights()
    client.send(ContinueTrainingCommand(id=2))
    client.run_to_end()
    go_to(client, at, SGD)
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert client.last.state == "finished"
    assert_equal(client.weights(), plain_fork(start, at))


def test_from_there_on_with_another_loss_and_more_epochs(client: Client) -> None:
    begin(client)
    client.run_to_end()
    go_to(client, 6, replace(SETUP, loss="nn.MSELoss", epochs=4))
    seen = len(client.said)
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert (client.last.state, client.last.step, client.last.total_steps) == ("finished", 12, 12)
    losses = [loss for s in client.said[seen:] for loss in s.steps.loss]
    assert max(losses) < 0.3  # against one-hot rows: about a tenth; cross-entropy is 2.3


def test_a_weight_that_was_edited_is_there_again(client: Client) -> None:
    begin(client, paused=True)
    for _ in range(5):
        client.send(StepTrainingCommand(id=2))
    live = client.session.lab.models.live
    assert live is not None
    with torch.no_grad(), client.session.lab.run.between_steps():  # pyright: ignore
        live.module.get_parameter("linear2.bias").fill_(0.25)
    edited = client.weights()
    for _ in range(2):
        client.send(StepTrainingCommand(id=2))
    later = client.weights()
    assert client.last.marks == (RunMark(5, "weights edited"),)
    go_to(client, 5)
    assert_equal(client.weights(), edited)
    go_to(client, 7)
    assert_equal(client.weights(), later)
    go_to(client, 4)
    assert_equal(client.weights(), after(4))


def test_states_are_kept_now_and_then_and_not_for_what_only_reads(client: Client) -> None:
    begin(client, paused=True)
    for _ in range(7):
        client.send(StepTrainingCommand(id=2))
    run = client.session.lab.run
    with run.between_steps():  # pyright: ignore
        torch.rand(3)
    client.send(StepTrainingCommand(id=2))
    kept = {run.kept.newest(step).step for step in range(9)}  # pyright: ignore
    assert kept == {0, 3, 6}


@pytest.mark.parametrize(
    ("setup", "step", "words"),
    [
        (SETUP, 10, r"The run has the steps 0 to 9, not 10"),
        (SETUP, -1, r"The run has the steps 0 to 9, not -1"),
        (replace(SETUP, batch_size=64), 3, "The batch size of a run cannot change"),
        (replace(SETUP, seed=4), 3, "The seed of a run cannot change"),
        (replace(SETUP, precision="bfloat16"), 3, "The precision of a run cannot change"),
        (replace(SETUP, data=DataSetup("digits", {}, 0.5)), 3, "The data set of a run cannot"),
    ],
)
def test_what_cannot_be_is_refused_in_words(client: Client, setup, step: int, words: str) -> None:
    begin(client)
    client.run_to_end()
    end = client.weights()
    client.send(TrainCommand(id=2, model=MLP, training=setup, to_step=step))
    assert isinstance(client.said[-1], ErrorSnapshot)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(client.said[-1].error.message)
    assert_equal(client.weights(), end)


def test_without_a_run_there_is_nothing_to_go_back_in(client: Client) -> None:
    go_to(client, 0)
    assert "There is no run to go back in" in client.said[-1].error.message


def test_a_loop_does_not_become_one_on_a_device_that_is_not_there() -> None:
    loop = TrainingLoop(nn.Linear(2, 2), replace(SETUP, data=DataSetup("moons", {"samples": 50})))
    loop.close()
    with pytest.raises(LabError):
        loop.become(replace(SETUP, device="cuda:7"), loop.objective)
