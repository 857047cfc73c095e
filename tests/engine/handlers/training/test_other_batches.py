"""Data that draws random numbers of its own: a run that goes over steps again says that it gets
other batches; one whose batches come again says nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from engine.project.document import Model, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    OTHER_BATCHES,
    ContinueTrainingCommand,
    RunCellCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.training.objectives import seen_batches
from engine.training.objectives.code_data import CodeData
from engine.training.objectives.seen_batches import SeenBatches, digest_of
from engine.training.run import TrainingRun

from ..test_training_handlers import Client

CELL = """\
import random
import numpy as np
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)

class Own(IterableDataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __iter__(self):
        for row in self.rng.permutation(32):
            yield x[row], y[row]

class Noisy(Dataset):
    rng = np.random.default_rng(0)

    def __len__(self):
        return 32

    def __getitem__(self, row):
        return x[row] + self.rng.normal() * 1e-3, y[row]

own_rng = np.random.default_rng(0)

def of_function():
    for rows in own_rng.permutation(32).reshape(4, 8):
        yield x[rows], y[rows]

class Held(IterableDataset):
    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __iter__(self):
        for row in torch.randperm(32, generator=self.generator):
            yield x[row], y[row]

def of_torch():
    for rows in torch.randperm(32).split(8):
        yield x[rows], y[rows]

def of_numpy():
    for rows in np.random.permutation(32).reshape(4, 8):
        noise = torch.tensor(np.random.normal(size=(8, 4))).float()
        yield x[rows] + noise, y[rows]

def of_python():
    for rows in torch.tensor(random.sample(range(32), 32)).split(8):
        yield x[rows] + random.gauss(0, 1), y[rows]

own, noisy = DataLoader(Own(), 8), DataLoader(Noisy(), 8)
held, plain = DataLoader(Held(), 8), DataLoader(TensorDataset(x, y), 8, shuffle=True)
listed = list(zip(x.split(8), y.split(8)))
"""
OTHERS = ("own", "noisy", "of_function")
SAME = ("held", "plain", "listed", "of_torch", "of_numpy", "of_python", "(x, y)")
TRAIN = TrainCommand(
    id=2,
    model=Model(),
    training=TrainingSetup(
        epochs=3, batch_size=8, optimizer="optim.SGD", optimizer_params={"lr": 0.01}
    ),
    subject=ConsoleSubject("net"),
)
STEPS = 12  # four batches in each of three epochs


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    client.send(RunCellCommand(id=1, source=CELL))
    yield client
    client.session.close()


def told(client: Client) -> list[str]:
    return [
        said.error.message
        for said in client.said
        if isinstance(said, TrainingSnapshot) and said.error and said.error.type == OTHER_BATCHES
    ]


def marked(client: Client) -> list[int]:
    return [mark.step for mark in client.last.marks if mark.text == "other batches than before"]


@pytest.mark.parametrize("data", [*OTHERS, *SAME])
def test_going_back_tells_other_batches_once(client: Client, data: str) -> None:
    command = replace(TRAIN, objective=Objective(data))
    client.send(command)
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("finished", STEPS)
    assert told(client) == [] and marked(client) == []
    expected = client.session.lab.console.namespace.variables["net"].weight.clone()
    client.said.clear()
    client.send(replace(command, id=3, to_step=6))
    client.run_to_end()
    client.send(ContinueTrainingCommand(id=4))
    client.run_to_end()
    assert client.last.step == STEPS
    is_other = data in OTHERS
    found = client.session.lab.console.namespace.variables["net"].weight
    assert torch.equal(found, expected) is not is_other
    assert [words.partition(" is not")[0] for words in told(client)] == (
        ["Batch 1 of epoch 1"] if is_other else []
    )
    assert marked(client) == ([1] if is_other else [])


@pytest.mark.parametrize("data", ["own", "held", "of_numpy", "of_python"])
def test_a_later_process_tells_them_when_it_resumes(client: Client, data: str) -> None:
    command = replace(TRAIN, objective=Objective(data))
    client.send(replace(command, paused=True))
    for _ in range(6):
        client.send(StepTrainingCommand(id=3))
    run = client.session.lab.run
    assert isinstance(run, TrainingRun)
    run.save()
    path = run.files.checkpoint_path
    client.session.close()
    later = Client()
    later.send(RunCellCommand(id=1, source=CELL))  # its first draw is that of epoch 1
    later.session.lab.console.namespace.variables["random"].seed()
    later.session.lab.console.namespace.variables["np"].random.seed()
    later.send(replace(command, id=5, checkpoint=path))
    later.run_to_end()
    words = ["Batch 2 of epoch 2 is not the one that the data gave before."]
    assert told(later) == (words if data == "own" else [])
    later.session.close()


def test_other_data_is_compared_with_its_own_batches_only(client: Client) -> None:
    command = replace(TRAIN, objective=Objective("listed"))
    client.send(command)
    client.run_to_end()
    client.send(replace(command, id=3, to_step=0, objective=Objective("of_torch")))
    client.run_to_end()
    client.send(ContinueTrainingCommand(id=4))
    client.run_to_end()
    assert (client.last.step, told(client)) == (STEPS, [])


X = torch.arange(40.0).reshape(8, 5)


@pytest.mark.parametrize(
    "other",
    [X + 1e-4 * torch.eye(8, 5), X.flip(0), X.long(), X[:, :4], X.reshape(5, 8)],
    ids=["value", "order", "dtype", "size", "shape"],
)
def test_a_digest_tells_one_batch_from_another(other: Tensor) -> None:
    assert digest_of((X, {"y": 1})) == digest_of([X.clone()])
    assert digest_of(X) != digest_of(other)


@pytest.mark.parametrize(
    "batch",
    [
        X.bfloat16(),
        X.clone().requires_grad_(),
        torch.ones(3, dtype=torch.complex64).conj(),
        X.T,
        torch.tensor(1.0),
        torch.zeros(0, 3),
        X.to("meta"),
        X.to_sparse(),
        torch.nested.nested_tensor([X, X[:2]]),
        "text",
        None,
    ],
    ids=lambda batch: str(getattr(batch, "dtype", batch)),
)
def test_every_batch_has_a_digest(batch: object) -> None:
    assert digest_of((batch, X)) == digest_of((batch, X.clone())) != digest_of((batch, X + 1))


def test_of_a_large_tensor_elements_all_over_it_count() -> None:
    large = torch.zeros(100_000)
    for place in (slice(0, 100), slice(50_000, 50_100), slice(99_900, 100_000)):
        other = large.clone()
        other[place] = 1
        assert digest_of(other) != digest_of(large)


def test_few_numbers_are_kept_however_many_epochs_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seen_batches, "MAX_KEPT", 40)
    monkeypatch.setattr(seen_batches, "MAX_EPOCHS", 8)
    seen = SeenBatches()
    batches = [torch.tensor([float(n)]) for n in range(50)]
    for epoch in range(100):
        assert len(list(seen.noted(batches[: epoch % 7], epoch, batches))) == epoch % 7
        assert len(seen._epochs) <= 8 and sum(map(len, seen._epochs.values())) <= 46
    assert list(seen.noted(batches, 100, batches)) == batches
    assert len(seen._epochs[100]) == 40
    assert seen.other is None
    list(seen.noted(batches[::-1], 100, batches))
    assert seen.other == (100, 0)


def test_tensors_that_torch_batches_are_not_looked_at() -> None:
    seen = SeenBatches()
    for data in ((X, X), torch.utils.data.TensorDataset(X, X)):
        found = CodeData(data, None, 4)
        assert len(list(found.batches(0, 0, seen))) == 2 and not found.draws_by_code
    assert seen.digest(2) == 0 and not seen._epochs
    assert len(list(CodeData([(X, X), (X, X)], None, 4).batches(0, 0, seen))) == 2
    assert seen.digest(2) and not seen.digest(1)


STEP = """\
def step(batch):
    x, y = batch
    share = np.random.beta(2, 2)
    return F.mse_loss(model(share * x + (1 - share) * x.flip(0)), y) * (1 + random.random())
"""


def test_a_step_that_draws_from_numpy_goes_back_and_on_bit_for_bit(client: Client) -> None:
    """On tensors, in the middle of an epoch."""
    command = replace(TRAIN, objective=Objective("(x, y)", step=STEP))
    client.send(command)
    client.run_to_end()
    net = client.session.lab.console.namespace.variables["net"]
    expected = net.weight.clone()
    for step in (6, 3, 9):
        client.send(replace(command, id=3, to_step=step))
        client.run_to_end()
        client.send(ContinueTrainingCommand(id=4))
        client.run_to_end()
        assert (client.last.state, client.last.step) == ("finished", STEPS)
        assert torch.equal(net.weight, expected)
