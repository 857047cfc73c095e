"""A slice of the loss landscape as a command: its points, its end, its errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.project.document import TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    MAX_POINTS_ALONG,
    LandscapeCommand,
    LandscapeSnapshot,
    RunCellCommand,
    encode_snapshot,
)
from tests.engine.handlers.test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=1, batch_size=512, seed=3)
CELL = """\
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
x = torch.randn(64, 4)
data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
"""


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.session.close()


def found(client: Client) -> list[LandscapeSnapshot]:
    return [each for each in client.said if isinstance(each, LandscapeSnapshot)]


def test_the_points_of_a_plane_come_in_parts_that_fit_together(client: Client) -> None:
    client.send(LandscapeCommand(id=1, model=MLP, training=SETUP, is_plane=True, points=5))
    losses: list[float] = []
    for part in found(client):
        assert part.first == len(losses) and part.total == 25
        losses += part.losses
    assert len(losses) == 25 and part.along == (-1.0, -0.5, 0.0, 0.5, 1.0)
    assert part.samples == 1437  # 3 batches of 512 at most
    client.send(LandscapeCommand(id=2, model=MLP, training=SETUP, points=3))
    line = [loss for part in found(client) if not part.is_plane for loss in part.losses]
    assert line[1] == pytest.approx(losses[12])  # the weights themselves


def test_a_module_of_the_console_keeps_its_weights_and_the_random_numbers(client: Client) -> None:
    client.send(RunCellCommand(id=1, source=CELL))
    net = client.session.lab.console.namespace.variables["net"]
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    torch.manual_seed(5)
    client.send(
        LandscapeCommand(
            id=2,
            model=MLP,
            training=SETUP,
            subject=ConsoleSubject("net"),
            objective=Objective(data="data"),
        )
    )
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    assert sum(len(part.losses) for part in found(client)) == 31
    assert_equal(net.state_dict(), before)


def test_a_stop_ends_it_and_leaves_the_weights(client: Client) -> None:
    client.send(LandscapeCommand(id=1, model=MLP, training=SETUP, points=3))
    weights = client.weights()
    client.said.clear()
    emit, control = client.session._emit, client.session.lab.control

    def stop_at_once(snapshot) -> None:
        emit(snapshot)
        control.mark = 2
        control.stop.set()

    client.session._emit = stop_at_once
    client.send(LandscapeCommand(id=2, model=MLP, training=SETUP, is_plane=True, points=31))
    assert 0 < sum(len(part.losses) for part in found(client)) < 31 * 31
    assert_equal(client.weights(), weights)


def test_what_cannot_be_had_is_told(client: Client) -> None:
    for command, words in (
        (LandscapeCommand(id=1, model=MLP, training=SETUP, points=2), "2 points"),
        (LandscapeCommand(id=2, model=MLP, training=SETUP, span=float("nan")), "nan"),
        (LandscapeCommand(id=3, model=MLP, training=SETUP, batches=0), "one batch"),
    ):
        client.said.clear()
        client.send(command)
        assert words in client.error.error.message and client.error.error.hint


def test_the_largest_plane_fits_into_a_snapshot() -> None:
    part = LandscapeSnapshot(
        along=(0.1,) * MAX_POINTS_ALONG,
        is_plane=True,
        first=0,
        losses=(0.1,) * MAX_POINTS_ALONG**2,
        total=MAX_POINTS_ALONG**2,
    )
    assert encode_snapshot(part)  # raises if it is too large
