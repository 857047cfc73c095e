"""The training job in a session: commands in, snapshots out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from engine.datasets.load import load_dataset
from engine.project import catalogue
from engine.project.document import Block, DataSetup, Model, TrainingSetup, Wire, replace
from engine.protocol import (
    AdjustTrainingCommand,
    CheckpointSnapshot,
    ContinueTrainingCommand,
    ErrorSnapshot,
    FindCheckpointCommand,
    RunCellCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    StartForwardCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.runs import record
from engine.server.session import Session


def chain(*blocks: Block) -> Model:
    """The blocks in a row, each wired to the next."""
    wires = tuple(
        Wire(a.id, catalogue.ports(a)[1][0].name, b.id, catalogue.ports(b)[0][0].name)
        for a, b in pairwise(blocks)
    )
    return Model(blocks, wires)


MLP = chain(
    Block("x", "Input", "x", {"shape": (1, 8, 8)}),
    Block("f", "nn.Flatten", "flatten"),
    Block("a", "nn.Linear", "linear1", {"in_features": 64, "out_features": 64}),
    Block("r", "nn.ReLU", "relu"),
    Block("d", "nn.Dropout", "dropout", {"p": 0.1}),
    Block("b", "nn.Linear", "linear2", {"in_features": 64, "out_features": 10}),
    Block("y", "Output", "output"),
)
SETUP = TrainingSetup(epochs=2, batch_size=128, seed=3, optimizer_params={"lr": 0.01})
STEPS = 12  # per epoch: 1,437 samples in batches of 128


class Client:
    """A session and what it has said."""

    def __init__(self) -> None:
        self.said: list[Snapshot] = []
        self.session = Session(self.said.append)

    def send(self, command) -> None:
        self.session.handle(command)

    def run_to_end(self) -> None:
        while self.session.advance():
            pass

    @property
    def last(self) -> TrainingSnapshot:
        snapshot = [s for s in self.said if isinstance(s, TrainingSnapshot)][-1]
        return snapshot

    @property
    def error(self) -> ErrorSnapshot:
        (error,) = (s for s in self.said if isinstance(s, ErrorSnapshot))
        return error

    def weights(self) -> dict[str, torch.Tensor]:
        return {n: t.clone() for n, t in self.session.lab.models.live.module.state_dict().items()}


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def trained(make: Callable[[Client], None]) -> dict[str, torch.Tensor]:
    client = Client()
    make(client)
    return client.weights()


def straight(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP))
    client.run_to_end()


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_training_the_document_equals_training_a_plain_module(client: Client) -> None:
    client.send(StartForwardCommand(id=1, model=MLP, training=SETUP))
    plain = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)
    )
    for layer, name in ((plain[1], "linear1"), (plain[4], "linear2")):
        state = client.weights()
        layer.load_state_dict({k: state[f"{name}.{k}"] for k in ("weight", "bias")})
    straight(client)

    dataset = load_dataset(SETUP.data)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    torch.manual_seed(SETUP.seed)
    for epoch in range(2):
        for index in range(STEPS):
            x, y = dataset.train_batch(index, 128, SETUP.seed, epoch)
            optimizer.zero_grad()
            nn.functional.cross_entropy(plain(x), y).backward()
            optimizer.step()
    found = client.weights()
    for name, layer in (("linear1", plain[1]), ("linear2", plain[4])):
        for key, tensor in layer.state_dict().items():
            assert torch.equal(found[f"{name}.{key}"], tensor)
    plain.eval()
    right = (plain(dataset.x_val).argmax(1) == dataset.y_val).float().mean().item()
    assert client.last.epoch_rows[-1].validation_accuracy == pytest.approx(right)


def test_the_first_snapshot_comes_before_the_first_step(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP))
    assert (client.last.state, client.last.step, client.last.reply_to) == ("running", 0, 1)
    assert client.last.total_steps == 2 * STEPS


def test_pause_step_and_continue_change_nothing_of_the_result(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    assert not client.session.advance()
    assert (client.last.state, client.last.step) == ("paused", 0)
    for step in range(1, STEPS + 3):  # over the end of an epoch
        client.send(StepTrainingCommand(id=1 + step))
        assert (client.last.state, client.last.step) == ("paused", step)
        assert client.last.checkpoint_step == step
    client.send(ContinueTrainingCommand(id=50))
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("finished", 2 * STEPS)
    snapshots = [s for s in client.said if isinstance(s, TrainingSnapshot)]
    assert [i for s in snapshots for i in s.steps.step] == list(range(1, 2 * STEPS + 1))
    assert [row.epoch for s in snapshots for row in s.epoch_rows] == [1, 2]
    assert_equal(client.weights(), trained(straight))


def test_other_commands_between_two_steps_change_nothing_of_the_result(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP))
    while client.session.advance():
        client.send(StartForwardCommand(id=2, model=MLP, training=SETUP))
        client.send(RunCellCommand(id=3, source="import torch\ntorch.rand(3)"))
    assert client.last.state == "finished"
    assert_equal(client.weights(), trained(straight))


def test_stop_ends_the_run_and_keeps_what_it_did(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    for step in range(3):
        client.send(StepTrainingCommand(id=2 + step))
    client.session.lab.control.stop.set()
    client.run_to_end()
    assert (client.last.state, client.last.step, client.last.checkpoint_step) == ("stopped", 3, 3)

    def resume(other: Client) -> None:
        path = client.last.checkpoint
        other.send(TrainCommand(id=1, model=MLP, training=SETUP, checkpoint=path))
        assert other.last.checkpoint == path  # a resumed run that dies at once can be resumed again
        assert (other.last.step, other.last.steps.step) == (3, (1, 2, 3))
        other.run_to_end()
        assert other.last.state == "finished"

    assert_equal(trained(resume), trained(straight))


def test_stopping_a_run_that_stands_before_its_first_step_does_no_step(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    before = client.weights()
    client.session.lab.control.stop.set()
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("stopped", 0)
    assert_equal(client.weights(), before)


def test_a_new_run_replaces_the_old_one(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP))
    client.session.advance()
    old = client.last.run
    client.send(TrainCommand(id=2, model=MLP, training=SETUP))
    stopped = [s for s in client.said if isinstance(s, TrainingSnapshot) and s.run == old][-1]
    assert (stopped.state, stopped.reply_to) == ("stopped", 1)
    assert (client.last.state, client.last.reply_to) == ("running", 2)
    client.run_to_end()
    assert client.last.state == "finished"


def test_a_model_that_does_not_fit_the_data_is_refused_with_the_problem(client: Client) -> None:
    setup = replace(SETUP, data=DataSetup("moons"))
    client.send(TrainCommand(id=1, model=MLP, training=setup))
    assert client.error.command == "TrainCommand"
    assert any(problem.block == "x" for problem in client.error.problems)
    assert not any(isinstance(s, TrainingSnapshot) for s in client.said)
    assert not client.session.advance()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"device": "cuda:99"}, "no device"),
        ({"optimizer_params": {"lr": -1.0}}, "lr"),
    ],
)
def test_a_set_up_that_cannot_be_trained_is_refused(
    client: Client, change: dict, words: str
) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=replace(SETUP, **change)))
    assert words in client.error.error.message


def test_a_checkpoint_that_is_gone_is_refused(client: Client) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, checkpoint="/gone/step.pt"))
    assert "There is no checkpoint /gone/step.pt" in client.error.error.message


def test_a_loss_block_on_the_canvas_takes_precedence(client: Client) -> None:
    block = Block("l", "nn.MSELoss", "loss")
    model = replace(
        MLP, blocks=(*MLP.blocks, block), wires=(*MLP.wires, Wire("b", "output", "l", "input"))
    )
    client.send(TrainCommand(id=1, model=model, training=SETUP, paused=True))
    client.send(StepTrainingCommand(id=2))
    # Ten classes of small scores against one-hot rows: about a tenth, where cross-entropy has 2.3.
    (loss,) = (loss for s in client.said for loss in s.steps.loss)
    assert loss < 0.5
    client.session.close()


def test_the_template_learns_the_digits(client: Client) -> None:
    setup = TrainingSetup(optimizer_params={"lr": 0.003}, epochs=20, batch_size=64)
    client.send(TrainCommand(id=1, model=MLP, training=setup))
    client.run_to_end()
    assert client.last.state == "finished"
    assert client.last.epoch_rows[-1].validation_accuracy >= 0.95


@pytest.mark.parametrize(
    ("optimizer", "params", "hint"),
    [
        ("optim.Adam", {"eps": 0.0}, "eps is 0, so a gradient of zero is divided by zero"),
        ("optim.SGD", {"lr": 1e38}, "it is 1e+38, try 0.1 with fresh weights. Else look"),
    ],
)
def test_a_run_that_diverges_says_what_to_try(client: Client, optimizer, params, hint) -> None:
    setup = replace(SETUP, optimizer=optimizer, optimizer_params=params)
    client.send(TrainCommand(id=1, model=MLP, training=setup))
    client.run_to_end()
    assert client.last.state == "failed"
    assert "The loss became" in client.last.error.message
    assert hint in client.last.error.hint


def test_the_newest_checkpoint_that_fits_is_found_by_another_engine(client: Client) -> None:
    straight(client)
    newest = client.last.checkpoint
    other = replace(SETUP, batch_size=64, epochs=1)
    Client().send(TrainCommand(id=1, model=MLP, training=other))
    again = Client()
    again.send(FindCheckpointCommand(id=1, model=MLP, training=SETUP))
    assert again.said == [
        CheckpointSnapshot(
            reply_to=1, path=newest, step=2 * STEPS, written_s=os.stat(newest).st_mtime
        )
    ]
    Path(newest).write_bytes(b"damaged")
    again.send(FindCheckpointCommand(id=2, model=MLP, training=SETUP))
    assert again.said[1:] == [CheckpointSnapshot(reply_to=2)]


def test_a_run_that_another_process_trains_is_left_to_it(client: Client) -> None:
    straight(client)
    folder = Path(client.last.folder)
    whole, other = record.load(folder), psutil.Process(os.getppid())
    living = replace(whole.writer, pid=other.pid, began_s=other.create_time())
    gone = replace(living, began_s=living.began_s - 60)
    for state, writer, is_found in (
        ("running", whole.writer, True), ("running", living, False), ("running", gone, True),
        ("finished", living, True),
    ):  # fmt: skip
        record.save(folder, replace(whole, state=state, writer=writer))
        client.send(FindCheckpointCommand(id=2, model=MLP, training=SETUP))
        found = client.said[-1]
        assert isinstance(found, CheckpointSnapshot) and bool(found.path) == is_found, state


def test_without_runs_no_checkpoint_is_found(client: Client) -> None:
    client.send(FindCheckpointCommand(id=1, model=MLP, training=SETUP))
    assert client.said == [CheckpointSnapshot(reply_to=1)]


def test_what_is_saved_during_a_run_says_the_step(client: Client, tmp_path: Path) -> None:
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    client.send(StepTrainingCommand(id=2))
    path = tmp_path / "net.safetensors"
    client.send(SaveWeightsCommand(id=3, model=MLP, training=SETUP, path=os.fsencode(path)))
    saved = client.said[-1]
    assert saved == SavedWeightsSnapshot(reply_to=3, run=client.last.run, step=1)
    assert_equal(load_file(path), client.weights())


# -- the weights at the start, and other parameters on the way -------------------------------------


def weights_of(client: Client) -> dict[str, torch.Tensor]:
    live = client.session.lab.models.live
    assert live is not None
    return {name: tensor.clone() for name, tensor in live.module.state_dict().items()}


def final(client: Client) -> TrainingSnapshot:
    last = [s for s in client.said if isinstance(s, TrainingSnapshot)][-1]
    assert last.state == "finished"
    return last


def test_a_run_from_fresh_weights_is_that_of_a_new_engine_whatever_was_there(client) -> None:
    absurd = replace(SETUP, optimizer="optim.SGD", optimizer_params={"lr": 1e30})
    client.send(TrainCommand(model=MLP, training=absurd, id=1))
    client.run_to_end()
    client.send(TrainCommand(model=MLP, training=SETUP, fresh=True, id=2))
    client.run_to_end()
    other = Client()
    other.send(TrainCommand(model=MLP, training=SETUP, id=1))
    other.run_to_end()
    then, now = weights_of(other), weights_of(client)
    assert final(client).step == 2 * STEPS
    assert then.keys() == now.keys()
    assert all(torch.equal(then[name], now[name]) for name in then)


def test_a_run_under_way_takes_another_learning_rate_from_the_next_step_on(client) -> None:
    client.send(TrainCommand(model=MLP, training=SETUP, paused=True, id=1))
    client.send(StepTrainingCommand(id=2))
    slower = replace(SETUP, optimizer_params={"lr": 0.001, "weight_decay": 0.5})
    client.send(AdjustTrainingCommand(training=slower, id=3))
    client.send(StepTrainingCommand(id=4))
    rates = [
        r for s in client.said if isinstance(s, TrainingSnapshot) for r in s.steps.learning_rate
    ]
    assert rates == [0.01, 0.001]
    group = client.session.lab.run.loop.optimizer.param_groups[0]
    assert (group["lr"], group["weight_decay"]) == (0.001, 0.5)


def test_what_the_optimizer_cannot_change_on_the_way_is_refused_in_words(client) -> None:
    client.send(TrainCommand(model=MLP, training=SETUP, paused=True, id=1))
    client.send(StepTrainingCommand(id=2))
    other = replace(SETUP, optimizer_params={"lr": 0.01, "amsgrad": True})
    client.send(AdjustTrainingCommand(training=other, id=3))
    (error,) = [s.error for s in client.said if isinstance(s, ErrorSnapshot)]
    assert "max_exp_avg_sq" in error.message and error.hint == "The next run will use it."
    client.send(ContinueTrainingCommand(id=4))
    client.run_to_end()
    assert final(client).step == 2 * STEPS


def test_a_run_tells_what_guessing_reaches(client) -> None:
    client.send(TrainCommand(model=MLP, training=SETUP, id=1))
    client.run_to_end()
    y_val = load_dataset(SETUP.data).y_val
    counts = [int((y_val == label).sum()) for label in range(10)]
    assert final(client).guess_accuracy == max(counts) / len(y_val)
    assert final(client).guess_labels == len(y_val)
    assert final(client).validation_samples == len(y_val)
