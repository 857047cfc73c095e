"""Back to a step, again to the end, and another way from there: each template and two modules of a
file, bit for bit as a plain loop that goes there by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from app.templates import load_template
from engine.datasets.load import load_dataset
from engine.project.document import TrainingSetup, replace
from engine.protocol import ContinueTrainingCommand, RunFileCommand, TrainCommand
from engine.training import run
from tests.engine.runs.killed import NAMES, OWN, command_of
from tests.engine.subjects.eight import imported

from ..test_training_handlers import Client, assert_equal

BACK, AGAIN, FORK = 2, 5, 4
OWN_CASES = {case.name: case for case in OWN}
Weights = dict[str, Tensor]
Change = Callable[[torch.optim.Optimizer], torch.optim.Optimizer]


@pytest.fixture(autouse=True)
def _every_third_state(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = run.TrainingRun._keep

    def by_steps(self: run.TrainingRun) -> None:
        if self.step % 3 == 0 or not self._keep_due_s:
            keep(self)
        self._keep_due_s = 1.0

    monkeypatch.setattr(run.TrainingRun, "_keep", by_steps)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def model_of(client: Client) -> nn.Module:
    return client.session.lab.run.loop.model  # pyright: ignore[reportOptionalMemberAccess]


def weights_of(model: nn.Module) -> Weights:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def losses(name: str, model: nn.Module | None, command: TrainCommand) -> Iterator[tuple]:
    """Each model of a loop with the loss of its next batch."""
    setup = command.training
    if name in OWN_CASES:
        case = OWN_CASES[name]
        with imported(case.path) as file:
            model = case.model(file).train()
            torch.manual_seed(setup.seed)
            for _ in range(setup.epochs):
                for batch in case.batches(file):
                    yield model, case.loss(file, model, batch)
        return
    assert model is not None
    torch.manual_seed(setup.seed)
    dataset = load_dataset(setup.data)
    for epoch in range(setup.epochs):
        for index in range(-(-len(dataset.x_train) // setup.batch_size)):
            x, y = dataset.train_batch(index, setup.batch_size, setup.seed, epoch)
            yield model, F.cross_entropy(model(x), y)


def plain(
    name: str, first: nn.Module, command: TrainCommand, at: int = -1, change: Change | None = None
) -> list[Weights]:
    """The weights after each step of a plain loop, which changes its optimizer at one of them."""
    told: list[Weights] = []
    optimizer: torch.optim.Optimizer | None = None
    for step, (model, loss) in enumerate(losses(name, copy.deepcopy(first), command)):
        if optimizer is None:
            lr = command.training.optimizer_params.get("lr", 0.001)
            assert isinstance(lr, float)
            optimizer = torch.optim.Adam(model.parameters(), lr=lr)
            told.append(weights_of(model))
        if step == at:
            assert change is not None
            optimizer = change(optimizer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told.append(weights_of(model))
    return told


def slower(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    for group in optimizer.param_groups:
        group["lr"] = 0.0005
    return optimizer


def to_sgd(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    return torch.optim.SGD(optimizer.param_groups[0]["params"], lr=0.05, momentum=0.9)


def forks(setup: TrainingSetup) -> Iterator[tuple[TrainingSetup, Change]]:
    yield replace(setup, optimizer_params={**setup.optimizer_params, "lr": 0.0005}), slower
    sgd = {"lr": 0.05, "momentum": 0.9}
    yield replace(setup, optimizer="optim.SGD", optimizer_params=sgd), to_sgd


def test_the_templates_are_all_here() -> None:
    assert all(load_template(name) for name in NAMES if name not in OWN_CASES)
    assert len(OWN_CASES) == 2


@pytest.mark.parametrize("name", NAMES)
def test_back_again_and_another_way_are_those_of_a_plain_loop(client: Client, name: str) -> None:
    command = command_of(name)
    if name in OWN_CASES:
        client.send(RunFileCommand(id=1, path=str(OWN_CASES[name].path)))
    client.send(replace(command, id=2, fresh=True, paused=True))
    first = copy.deepcopy(model_of(client))
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    straight = plain(name, first, command)
    end = len(straight) - 1
    assert (client.last.state, client.last.step) == ("finished", end), client.last.error
    assert_equal(weights_of(model_of(client)), straight[end])

    def go_to(step: int, setup: TrainingSetup = command.training) -> None:
        client.send(replace(command, id=4, training=setup, to_step=step))
        client.run_to_end()
        assert (client.last.state, client.last.step) == ("paused", step), client.last.error

    def go_on() -> Weights:
        client.send(ContinueTrainingCommand(id=5))
        client.run_to_end()
        assert (client.last.state, client.last.step) == ("finished", end), client.last.error
        return weights_of(model_of(client))

    for step in (BACK, AGAIN, BACK - 1):
        go_to(step)
        assert_equal(weights_of(model_of(client)), straight[step])
    assert_equal(go_on(), straight[end])
    for setup, change in forks(command.training):
        fork = plain(name, first, command, FORK, change)[end]  # before: it draws random numbers
        assert any(not torch.equal(fork[key], straight[end][key]) for key in fork)
        go_to(FORK, setup)
        assert_equal(weights_of(model_of(client)), straight[FORK])
        assert_equal(go_on(), fork)
